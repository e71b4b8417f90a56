use super::{Context, Ended};
use crate::git::Extent;
use crate::model::plural;
use crate::ops::ledger::gc;

/// Pack the ledger and remove old snapshots and sessions
///
/// Each ledger entry is a small pack in git's object database, and squad folds these packs as they accumulate. `gc`
/// folds them into one now, runs git's own maintenance for loose objects, and forgets the work tree snapshots of
/// finished runs. It deletes no object that is not in another pack.
///
/// Of what the engine has stored of sessions under `.git/squad/homes`, it removes those of completed runs after 3 days, or
/// when they take more than 256 MiB together, and all others after 14 days; never those of live runs.
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
            ui.data(&format!("{} of runs that are over forgotten", plural(tidied.snapshots, "snapshot")));
        }
        if tidied.sessions > 0 {
            let megabytes = tidied.session_bytes as f64 / 1e6;
            ui.data(&format!("{} of {megabytes:.1} MB removed", plural(tidied.sessions, "stored session")));
        }
        let said = |extent: &Extent| {
            format!(
                "{} of {} KiB and {} of the ledger of {} KiB",
                plural(extent.objects, "loose object"),
                extent.kibibytes,
                plural(extent.packs, "pack"),
                extent.pack_kibibytes
            )
        };
        ui.data(&format!("{} before, {} now", said(&tidied.before), said(&tidied.after)));
        Ok(0)
    }
}
