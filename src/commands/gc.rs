use super::{Context, Ended};
use crate::model::plural;
use crate::ops::gc;

/// Pack the ledger
///
/// Every entry leaves a few small files in git's object database. git packs them by itself in time; this does it now,
/// with git's own maintenance, and deletes nothing.
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
        let (before, after) = (&tidied.before, &tidied.after);
        ui.data(&format!(
            "{} of {} KiB before, {} of {} KiB now",
            plural(before.objects, "loose object"),
            before.kibibytes,
            after.objects,
            after.kibibytes
        ));
        Ok(0)
    }
}
