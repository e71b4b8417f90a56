use clap::Subcommand;

use super::{Context, Ended};
use crate::error::Failure;
use crate::model::list;
use crate::ops::Workspace;
use crate::ops::ledger::log;
use crate::ops::run::lockouts;

/// Lift lockouts that a review imposed
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Lift(Lift),
}

/// Let the authors of rejected work change those files again
///
/// After a reviewer rejects an agent's work, the agent may not write the files it had changed, and messages that name
/// them are not routed to it, until somebody's work on them is approved or two weeks have passed. An @mention in the
/// message, or --agent, lifts the lockout for one run.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad review lift 20260105-090000-a1b2c3
  squad log                                   Find the run's id")]
struct Lift {
    /// The run's id, or a prefix of it
    run: String,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Command::Lift(Lift { run: id }) = self.command;
        let workspace = Workspace::find(context.env, &context.directory)?;
        let run = log::one_run(&workspace.repository, &workspace.ledger_prefix(), &id)?;
        let lifted = lockouts::lift(context.env, &workspace, &run)?;
        if lifted.is_empty() {
            return Err(Failure::usage(format!("run {run} locks nobody out"))
                .hint("a lockout ends with an approval or after two weeks"));
        }
        let ui = &mut context.ui;
        if ui.json() {
            let lifted: Vec<_> = lifted
                .iter()
                .map(|lockout| serde_json::json!({ "agent": lockout.agent, "files": lockout.files }))
                .collect();
            ui.value(&serde_json::json!({ "run": run, "lifted": lifted }));
        } else {
            for lockout in lifted {
                ui.say(&format!("{} may work on {} again.", lockout.agent, list(&lockout.files)));
            }
        }
        Ok(0)
    }
}
