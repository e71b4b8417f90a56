use super::{Context, Ended};
use crate::model::plural;
use crate::ops::init::{self, Installed};
use crate::ui::GOOD;

/// Install a team in this repository
///
/// Writes a small `.squad/` folder at the repository's root and commits it, and nothing else: six agents with their
/// charters, a routing table, a note on decisions and a configuration file. Where there is a team already, nothing is
/// changed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad init                 Install a team, in one commit
  squad init --no-commit     Write the files and leave the commit to you")]
pub(super) struct Args {
    /// Write the files and do not commit them
    #[arg(long)]
    no_commit: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let installed = init::init(context.env, &context.directory, !self.no_commit)?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&match &installed {
                Installed::Already { folder } => {
                    serde_json::json!({"installed": false, "folder": folder, "files": 0, "commit": null})
                }
                Installed::Committed { files, commit } => {
                    serde_json::json!({"installed": true, "folder": ".squad", "files": files, "commit": commit})
                }
                Installed::Written { files, .. } => {
                    serde_json::json!({"installed": true, "folder": ".squad", "files": files, "commit": null})
                }
            });
            return Ok(0);
        }
        match installed {
            Installed::Already { folder } => {
                ui.say(&format!("There is a team in {folder}/ already; nothing was changed."))
            }
            Installed::Committed { files, commit } => {
                let short = ui.err_paint(GOOD, commit.get(..10).unwrap_or(&commit));
                ui.say(&format!("Installed a team in .squad/: {}, committed in {short}.", plural(files, "file")));
                next_steps(context);
            }
            Installed::Written { files, reason } => {
                ui.say(&format!("Installed a team in .squad/: {}, not committed: {reason}.", plural(files, "file")));
                ui.hint("git add .squad && git commit -m \"Add a squad\"");
                next_steps(context);
            }
        }
        Ok(0)
    }
}

fn next_steps(context: &mut Context<'_>) {
    context.ui.say("\nNext:\n  squad orchestrate --dry-run \"Add a health endpoint\"   see who would work, and why");
    context.ui.say("  squad orchestrate \"Add a health endpoint\"             let the team work");
    context.ui.say("  squad engines                                         see whether an engine is ready");
}
