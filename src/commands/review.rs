use clap::Subcommand;

use super::{Context, Ended};
use crate::error::Failure;
use crate::model::list;
use crate::ops::Workspace;
use crate::ops::ledger::log;
use crate::ops::run::lockouts;

/// Reviews of agents' work
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Lift(Lift),
}

/// Let those work again whose work the run's reviewer rejected
///
/// An agent whose work was rejected is not routed to, and may not write, the files it had changed, until somebody's work
/// on them is approved or two weeks have passed. An @mention in the message, or --agent, lifts it for one run.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad review lift 20260105-090000-a1b2c3
  squad log                                   Which runs there were")]
struct Lift {
    /// The run, or the beginning of its id
    run: String,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Command::Lift(Lift { run: id }) = self.command;
        let workspace = Workspace::find(context.env, &context.directory)?;
        let run = log::one_run(&workspace.repository, &workspace.ledger_prefix(), &id)?;
        let lifted = lockouts::lift(context.env, &workspace, &run)?;
        if lifted.is_empty() {
            return Err(Failure::usage(format!("no review of run {run} locks anybody out"))
                .hint("a lockout ends with an approval, and after two weeks"));
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
