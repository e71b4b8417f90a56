use crate::ops::team::membership::Outlet;

/// Whether changes are listed, shown as a patch, written, or committed.
#[derive(clap::Args)]
pub(super) struct OutletArgs {
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

impl OutletArgs {
    pub(super) fn writes(&self) -> bool {
        !self.dry_run && !self.diff
    }

    pub(super) fn outlet(&self) -> Outlet {
        Outlet::of(!self.writes(), self.no_commit)
    }
}
