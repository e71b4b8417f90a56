use super::{Context, Ended};
use crate::git::Extent;
use crate::model::plural;
use crate::ops::ledger::gc;

/// Pack the ledger and remove old snapshots
///
/// Each ledger entry is a small pack in git's object database, and squad folds these packs as they accumulate. `gc`
/// folds them into one now, runs git's own maintenance for loose objects, and forgets the work tree snapshots of
/// finished runs. It deletes no object that is not in another pack.
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
