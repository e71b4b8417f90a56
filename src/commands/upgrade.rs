use super::change::{self, WriteArgs};
use super::{Context, Ended};
use crate::model::{plural, printable_line};
use crate::ops::change::Changed;
use crate::ops::team::upgrade::{self, Upgraded};
use crate::ui::Ui;

/// Bring the files that squad installed up to date
///
/// Merges what this squad installs, or the preset that `squad init --from` took, into what your team has made of it, in
/// one commit that `git revert` undoes. Your edits are kept. If you and squad changed the same lines, your file stays and
/// squad's version is written next to it as FILE.new, uncommitted. team.md, decisions, histories and all files of your
/// own are never touched, and neither is a team that squad did not install. Files made by `squad agents export` follow
/// the team's files. squad never upgrades by itself; `squad status` says when an upgrade is due.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad upgrade --dry-run    Name the files that would change
  squad upgrade --diff       Show the changes as a patch
  squad upgrade")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) write: WriteArgs,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let upgraded = upgrade::upgrade(context.env, &context.directory, self.write.mode())?;
        change::show(context, upgraded, self.write.diff, |ui, upgraded| said(ui, upgraded, self.write.diff))
    }
}

fn said(ui: &mut Ui, upgraded: &Changed<Upgraded>, as_patch: bool) {
    let report = &upgraded.change;
    for path in &upgraded.edited {
        ui.say(&format!("{} keeps your edits.", printable_line(path)));
    }
    for file in &upgraded.unexported {
        ui.say(&printable_line(&format!("{} is not exported: {}.", file.path, file.why)));
    }
    if report.files.is_empty() {
        ui.say(&match upgraded.from {
            Some(_) if upgraded.preset.is_some() => {
                let preset = upgraded.preset.as_deref().unwrap_or_default();
                printable_line(&format!("There is nothing to upgrade: the team's files are those of {preset}."))
            }
            Some(from) => format!("There is nothing to upgrade: the team's files are up to release {from}."),
            None => "There is nothing to upgrade: this team has no manifest, so all its files are its own.".to_owned(),
        });
        if let Some(old) = &upgraded.adoptable {
            ui.hint(&format!("`squad adopt` takes over the team in {old}"));
        }
        for path in &upgraded.uncommitted {
            ui.hint(&printable_line(&format!("{path} has uncommitted changes, which an upgrade ignores")));
        }
        return;
    }
    change::say_files(ui, report, as_patch);
    change::say_conflicts(ui, &upgraded.conflicts, report.is_dry_run);
    for path in &upgraded.unmanaged {
        ui.say(&format!(
            "{} is yours now: you deleted it, or squad does not install it any more.",
            printable_line(path)
        ));
    }
    let count = plural(report.files.len(), "file");
    let releases = match upgraded.from.filter(|from| *from != upgraded.to) {
        Some(from) => format!(" from release {from} to {}", upgraded.to),
        None => String::new(),
    };
    match report.is_dry_run {
        true => ui.say(&format!("{count} would be upgraded{releases}.")),
        false => ui.say(&format!("Upgraded {count}{releases}{}.", change::outcome(report))),
    }
}
