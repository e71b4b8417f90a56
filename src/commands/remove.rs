use super::{Context, Ended};
use crate::model::{list, plural, printable};
use crate::ops::team::remove::{self, Removal, Wish};
use crate::ui::Ui;

/// Take squad out of this repository
///
/// Deletes squad's refs (the ledger, rescues), its folder beside git's own and its entries in git's configuration.
/// Commits and files on your branches stay. Names first what no remote has, and then removes it only with --force. Your
/// own configuration of squad stays.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad remove --dry-run        Name what would go
  squad remove                  Keep the team's files
  squad remove --team           Delete .squad/ too, in one commit")]
pub(super) struct Args {
    /// Delete the team's folder too, in one commit
    #[arg(long)]
    team: bool,
    /// Remove what no remote has, too
    #[arg(long)]
    force: bool,
    /// Name what would go and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        !self.dry_run
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let wish = Wish { team: self.team, force: self.force, dry_run: self.dry_run };
        let removal = remove::remove(context.env, &context.directory, wish)?;
        match context.ui.json() {
            true => context.ui.value(&removal),
            false => said(&mut context.ui, &removal, self.dry_run),
        }
        Ok(0)
    }
}

fn said(ui: &mut Ui, removal: &Removal, is_shown: bool) {
    let groups = [
        ("ref", &removal.references),
        ("setting", &removal.settings),
        ("folder", &removal.folders),
        ("file", &removal.team),
    ];
    for (kind, names) in groups {
        for name in names {
            ui.data(&printable(&format!("{kind:<8} {name}")));
        }
    }
    if is_shown && !removal.unshared.is_empty() {
        ui.warning(&format!("no remote has {}", list(&removal.unshared)));
        ui.hint("`squad sync` shares the ledger; without that, only --force removes it");
    }
    let counts =
        groups.into_iter().filter(|(_, names)| !names.is_empty()).map(|(kind, names)| plural(names.len(), kind));
    let counts: Vec<String> = counts.collect();
    let committed =
        removal.commit.as_ref().map(|commit| format!(", committed in {}", commit.get(..10).unwrap_or(commit)));
    match (counts.is_empty(), is_shown) {
        (true, _) => ui.say("There is nothing of squad's in this repository but its files on branches."),
        (false, true) => ui.say(&format!("{} would be removed.", list(&counts))),
        (false, false) => ui.say(&format!("Removed {}{}.", list(&counts), committed.unwrap_or_default())),
    }
}
