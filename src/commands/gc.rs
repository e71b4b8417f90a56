use super::{Context, Ended};
use crate::git::Extent;
use crate::model::plural;
use crate::ops::ledger::gc;

/// Pack the ledger and remove old snapshots and sessions
///
/// Each ledger entry is a small pack in git's object database, and squad merges these packs as they accumulate. `gc`
/// merges them into one now, runs git's own maintenance for loose objects, and removes the work tree snapshots of
/// finished runs. It deletes an object only if another pack has it.
///
/// It also removes sessions that the engine stored under `.git/squad/homes`: those of completed runs after 3 days, or the
/// oldest of them beyond 256 MiB in total, and all others after 14 days. Sessions of live runs are never removed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad gc\n  squad gc --json")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let tidied = gc::gc(context.env, &context.directory)?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&tidied);
            return Ok(0);
        }
        if tidied.snapshots > 0 {
            ui.data(&format!("{} of finished runs removed", plural(tidied.snapshots, "snapshot")));
        }
        if tidied.sessions > 0 {
            let megabytes = tidied.session_bytes as f64 / 1e6;
            ui.data(&format!("{} removed ({megabytes:.1} MB)", plural(tidied.sessions, "stored session")));
        }
        let extent = |extent: &Extent| {
            format!(
                "{} ({} KiB) and {} ({} KiB)",
                plural(extent.objects, "loose object"),
                extent.kibibytes,
                plural(extent.packs, "ledger pack"),
                extent.pack_kibibytes
            )
        };
        ui.data(&format!("{} before, {} now", extent(&tidied.before), extent(&tidied.after)));
        Ok(0)
    }
}
