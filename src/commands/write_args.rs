use crate::model::printable_line;
use crate::ops::team::merge::Conflict;
use crate::ops::team::write_mode::WriteMode;
use crate::ui::Ui;

/// Whether changes are listed, shown as a patch, written, or committed.
#[derive(clap::Args)]
pub(super) struct WriteArgs {
    /// List what would change, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Show what would change as a patch, and change nothing
    #[arg(long)]
    pub(super) diff: bool,
    /// Write the files but do not commit them
    #[arg(long)]
    no_commit: bool,
}

impl WriteArgs {
    pub(super) fn writes(&self) -> bool {
        !self.dry_run && !self.diff
    }

    pub(super) fn mode(&self) -> WriteMode {
        WriteMode::new(!self.writes(), self.no_commit)
    }
}

/// Lists the files in conflict.
pub(super) fn say_conflicts(ui: &mut Ui, conflicts: &[Conflict], is_shown: bool) {
    for conflict in conflicts {
        let (verb, path) = (if is_shown { "would stay" } else { "stays" }, printable_line(&conflict.path));
        ui.warning(&format!("{path} {verb} as it is: you and squad changed the same lines"));
        ui.hint(&format!(
            "squad's version is {}; copy what you want from it, then delete it",
            printable_line(&conflict.new)
        ));
    }
}
