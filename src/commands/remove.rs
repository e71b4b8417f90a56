use super::change::short;
use super::{Context, Ended};
use crate::model::{list, plural};
use crate::ops::change::WriteMode;
use crate::ops::overview::remove::{self, Options, Removal};
use crate::ui::Ui;
use crate::view::{LineStyle, Text};

/// A run has several of these, which say nothing to people.
const SNAPSHOTS: &str = "refs/squad/runs/";

/// Take squad out of this repository
///
/// Deletes squad's refs (the ledger and rescues), its local folders and its entries in git's configuration. Commits and
/// files on your branches stay, and so does your own squad configuration. Lists what no remote has, and removes that
/// only with --force.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad remove --dry-run        List what would be removed
  squad remove                  Remove squad, but keep the team's files
  squad remove --team           Delete .squad/ and exported files too, in one commit")]
pub(super) struct Args {
    /// Delete the team's folder and the files exported from it too, in one commit
    #[arg(long)]
    team: bool,
    /// Also remove what no remote has
    #[arg(long)]
    force: bool,
    /// List what would be removed, and change nothing
    #[arg(long, short = 'n')]
    pub(super) dry_run: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let options = Options { team: self.team, force: self.force, mode: WriteMode::new(self.dry_run, false) };
        let removal = remove::remove(context.env, &context.directory, options)?;
        match context.ui.json() {
            true => context.ui.value(&removal),
            false => show(&mut context.ui, &removal, self.dry_run, self.team),
        }
        Ok(0)
    }
}

fn show(ui: &mut Ui, removal: &Removal, dry_run: bool, is_team_wanted: bool) {
    let groups = [
        ("ref", &removal.references),
        ("setting", &removal.settings),
        ("folder", &removal.folders),
        ("file", &removal.team),
    ];
    let line = |kind: &str, text: &str| Text::default().with(LineStyle::Faint, kind).filled(9).hanging().plain(text);
    let mut lines = Vec::new();
    for (kind, names) in groups {
        let (snapshots, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.starts_with(SNAPSHOTS));
        for name in others {
            lines.push(line(kind, name));
        }
        if !snapshots.is_empty() {
            let count = plural(snapshots.len(), "snapshot");
            let text = format!("{SNAPSHOTS}  ({count} of the work tree, from before and after runs)");
            lines.push(line(kind, &text));
        }
    }
    lines.extend(removal.skipped.iter().map(|file| line("left", &format!("{}  ({})", file.path, file.why))));
    ui.texts(&lines);
    if dry_run && !removal.unshared.is_empty() {
        ui.warning(&format!("no remote has {}", list(&removal.unshared)));
        ui.hint("`squad sync` shares the ledger, never rescues; only --force removes what no remote has");
    }
    let counts =
        groups.into_iter().filter(|(_, names)| !names.is_empty()).map(|(kind, names)| plural(names.len(), kind));
    let counts: Vec<String> = counts.collect();
    let committed = removal.commit.as_ref().map(|commit| format!(", committed in {}", short(commit)));
    match (counts.is_empty(), dry_run) {
        (true, _) if is_team_wanted => {
            ui.say("There is nothing to remove: the team's files are not committed, and stay.");
            ui.hint("delete them by hand; `git clean -n .squad` shows the files that git does not track");
        }
        (true, _) => ui.say("Nothing of squad is in this repository, except files on branches."),
        (false, true) => ui.say(&format!("{} would be removed.", list(&counts))),
        (false, false) => ui.say(&format!("Removed {}{}.", list(&counts), committed.unwrap_or_default())),
    }
    if !is_team_wanted && !counts.is_empty() {
        ui.hint("the team's files stay; `squad remove --team` deletes them too");
    }
}
