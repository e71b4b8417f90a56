use super::{Context, Ended};
use crate::git::Extent;
use crate::model::{SkippedFile, megabytes, plural, printable};
use crate::ops::ledger::gc::{self, OnlyCopies};

/// How many copies of a run are listed that stay.
const MAX_SHOWN: usize = 5;

/// Pack the ledger and remove old snapshots and sessions
///
/// Each ledger entry is a small pack in git's object database, and squad merges these packs as they accumulate. `gc`
/// merges them into one now, and runs git's own maintenance for loose objects. It deletes an object only if another
/// pack has it.
///
/// It removes the work tree snapshots of runs that ended more than 14 days ago. Snapshots that hold the only copy of a
/// file or commit stay, and are listed; `--force` removes them too.
///
/// It also removes sessions that the engine stored under `.git/squad/homes`: those of completed runs after 3 days, or the
/// oldest of them beyond 256 MiB in total, and all others after 14 days. Sessions of live runs are never removed.
///
/// The clones of ended runs are removed, unless one holds changes that are not committed.
///
/// The caches of the sandbox lie in squad's state folder, one for each project. Those that were not used for 14 days are
/// removed, and the oldest of them beyond 2 GiB in total.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad gc\n  squad gc --json")]
pub(super) struct Args {
    /// Also remove old snapshots that hold the only copy of something, and list what they held; and such clones
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let tidied = gc::gc(context.env, &context.directory, self.force)?;
        let ui = &mut context.ui;
        ui.all_problems(&tidied.problems);
        if ui.json() {
            ui.value(&tidied);
            return Ok(0);
        }
        if tidied.snapshots > 0 {
            ui.data(&format!("{} of finished runs removed", plural(tidied.snapshots, "snapshot")));
        }
        for OnlyCopies { run, copies } in &tidied.only_copies {
            let count = plural(copies.len(), "only copy");
            let verb = if tidied.force { "removed with" } else { "kept:" };
            ui.data(&format!("snapshots of run {run} {verb} {count}"));
            let shown = if tidied.force { copies.len() } else { MAX_SHOWN };
            copies.iter().take(shown).for_each(|copy| ui.data(&format!("  {}", printable(copy))));
            if copies.len() > shown {
                ui.data(&format!("  and {} more", copies.len() - shown));
            }
        }
        if !tidied.force && !tidied.only_copies.is_empty() {
            ui.hint("`git show REF:PATH` prints a file; `squad gc --force` removes these snapshots");
        }
        if tidied.clones > 0 {
            let (count, size) = (plural(tidied.clones, "clone"), megabytes(tidied.clone_bytes));
            ui.data(&format!("{count} of ended runs removed ({size})"));
        }
        for run in &tidied.unmerged {
            ui.data(&format!("some work of run {run} is on no branch: `squad merge {run}` brings it"));
        }
        for SkippedFile { path, why } in &tidied.clones_kept {
            ui.warning(&format!("the clone {} stays: {why}", printable(path)));
        }
        if tidied.sessions > 0 {
            let (count, size) = (plural(tidied.sessions, "stored session"), megabytes(tidied.session_bytes));
            ui.data(&format!("{count} removed ({size})"));
        }
        if tidied.sandboxes > 0 {
            let (count, size) = (plural(tidied.sandboxes, "old folder"), megabytes(tidied.sandbox_bytes));
            ui.data(&format!("{count} of sandboxes removed ({size})"));
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
