use super::{Context, Ended};
use crate::error::Failure;
use crate::model::list;
use crate::ops::overview::status::status;
use crate::ops::run::cancel::cancel;

/// Cancel a run, or one agent's work in it, from another terminal
///
/// The run ends as with Ctrl-C: each agent gets the outcome `cancelled`, and decisions made until then are kept and
/// committed. With AGENT, only that agent's work is cancelled and the others continue. Works from every work tree of
/// the repository.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad status                 Show live runs and their agents
  squad cancel 602796          Cancel a run, by the end or the beginning of its id
  squad cancel 602796 tester   Cancel only tester's work in it")]
pub(super) struct Args {
    /// The run's short or whole id, or a prefix of it
    run: Option<String>,
    /// Cancel only this agent's work
    agent: Option<String>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Some(run) = self.run else {
            let live = status(context.env, &context.directory)?.runs_live;
            let failure = Failure::usage("`squad cancel` needs a run");
            return Err(match live.is_empty() {
                true => failure.hint("no run is live here"),
                false => failure.hint(format!("live: {}", list(live.iter().map(|live| live.run.run.short())))),
            });
        };
        let request = cancel(context.env, &context.directory, &run, self.agent.as_deref())?;
        if context.ui.json() {
            context.value(&request);
            return Ok(0);
        }
        let agent = request.agent.map(|agent| format!("{agent} in ")).unwrap_or_default();
        let state = if request.was_cancelled { "was already cancelled" } else { "is being cancelled" };
        context.ui.say(&format!("{agent}run {} {state}.", request.run.short()));
        Ok(0)
    }
}
