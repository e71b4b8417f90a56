use super::outlet::OutletArgs;
use super::{Context, Ended, say_passed_hooks};
use crate::model::{plural, printable};
use crate::ops::Workspace;
use crate::ops::team::upgrade::{self, Upgraded};
use crate::ui::Ui;

/// Bring the files that squad installed up to date
///
/// Merges what this squad installs into what your team has made of it, in one commit that `git revert` undoes. Your
/// edits are kept. If you and squad changed the same lines, your file stays and squad's version is written next to it as
/// FILE.new, uncommitted. team.md, decisions, histories and all files of your own are never touched, and neither is a
/// team that squad did not install. squad never upgrades by itself; `squad status` says when an upgrade is due.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad upgrade --dry-run    Name the files that would change
  squad upgrade --diff       Show the changes as a patch
  squad upgrade")]
pub(super) struct Args {
    #[command(flatten)]
    outlet: OutletArgs,
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        self.outlet.writes()
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let mut upgraded = upgrade::upgrade(context.env, &context.directory, self.outlet.outlet())?;
        if let Some(commit) = context.finished("upgrade") {
            upgraded.commit = upgraded.commit.or(commit);
        }
        if upgraded.commit.is_some() {
            say_passed_hooks(&mut context.ui, &Workspace::find(context.env, &context.directory)?);
        }
        if context.ui.json() {
            let mut value = serde_json::to_value(&upgraded).unwrap_or_default();
            if self.outlet.diff {
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
    let Some(from) = upgraded.from else {
        return ui.say("There is nothing to upgrade: this team has no manifest, so all its files are its own.");
    };
    if upgraded.files.is_empty() {
        return ui.say(&format!("There is nothing to upgrade: the team's files are up to release {from}."));
    }
    if args.outlet.diff {
        let diff = printable(&upgraded.diff);
        ui.data(diff.strip_suffix('\n').unwrap_or(&diff));
    } else {
        for file in &upgraded.files {
            ui.data(&printable(&format!("{:<8} {}", file.change, file.path)));
        }
    }
    let is_shown = !args.writes_to_the_branch();
    for conflict in &upgraded.conflicts {
        let (verb, path) = (if is_shown { "would stay" } else { "stays" }, printable(&conflict.path));
        ui.warning(&format!("{path} {verb} as it is: you and squad changed the same lines"));
        ui.hint(&format!("squad's new one is {}; take over what you want and delete it", printable(&conflict.new)));
    }
    for path in &upgraded.left {
        ui.say(&format!("{} is left to you: you deleted it, or squad does not install it any more.", printable(path)));
    }
    let count = plural(upgraded.files.len(), "file");
    let releases = format!("from release {from} to {}", upgraded.to);
    match &upgraded.commit {
        Some(commit) => {
            ui.say(&format!("Upgraded {count} {releases}, committed in {}.", commit.get(..10).unwrap_or(commit)));
        }
        None if is_shown => ui.say(&format!("{count} would be upgraded {releases}.")),
        None => ui.say(&format!("Upgraded {count} {releases}, not committed.")),
    }
}
