use super::write_args::{WriteArgs, say_conflicts};
use super::{Context, Ended, say_passed_hooks};
use crate::model::{plural, printable, printable_line};
use crate::ops::Workspace;
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
    write: WriteArgs,
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        self.write.writes()
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let mut upgraded = upgrade::upgrade(context.env, &context.directory, self.write.mode())?;
        if let Some(commit) = context.finished("upgrade") {
            upgraded.commit = upgraded.commit.or(commit);
        }
        if upgraded.commit.is_some() {
            say_passed_hooks(&mut context.ui, &Workspace::find(context.env, &context.directory)?);
        }
        if context.ui.json() {
            let mut value = serde_json::to_value(&upgraded).unwrap_or_default();
            if self.write.diff {
                value["diff"] = upgraded.diff.into();
            }
            context.ui.value(&value);
        } else {
            said(&mut context.ui, &upgraded, &self);
        }
        Ok(0)
    }
}

fn said(ui: &mut Ui, upgraded: &Upgraded, args: &Args) {
    for path in &upgraded.edited {
        ui.say(&format!("{} keeps your edits.", printable_line(path)));
    }
    for file in &upgraded.unexported {
        ui.say(&printable_line(&format!("{} is not exported: {}.", file.path, file.why)));
    }
    if upgraded.files.is_empty() {
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
    if args.write.diff {
        let diff = printable(&upgraded.diff);
        ui.data(diff.strip_suffix('\n').unwrap_or(&diff));
    } else {
        for file in &upgraded.files {
            ui.data(&printable_line(&format!("{:<8} {}", file.change, file.path)));
        }
    }
    let is_shown = !args.writes_to_the_branch();
    say_conflicts(ui, &upgraded.conflicts, is_shown);
    for path in &upgraded.unmanaged {
        ui.say(&format!(
            "{} is yours now: you deleted it, or squad does not install it any more.",
            printable_line(path)
        ));
    }
    let count = plural(upgraded.files.len(), "file");
    let releases = match upgraded.from.filter(|from| *from != upgraded.to) {
        Some(from) => format!(" from release {from} to {}", upgraded.to),
        None => String::new(),
    };
    match &upgraded.commit {
        Some(commit) => {
            ui.say(&format!("Upgraded {count}{releases}, committed in {}.", commit.get(..10).unwrap_or(commit)));
        }
        None if is_shown => ui.say(&format!("{count} would be upgraded{releases}.")),
        None => ui.say(&format!("Upgraded {count}{releases}, not committed.")),
    }
}
