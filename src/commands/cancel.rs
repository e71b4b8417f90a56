use super::{Context, Ended};
use crate::ops::run::cancel::cancel;

/// Cancel a run, or one agent of it, from another terminal
///
/// The run ends as with Ctrl-C: each agent gets the outcome `cancelled`, and what was decided until then is kept and
/// committed. With AGENT, only that agent's work is cancelled and the others go on. Works from every work tree of the
/// repository.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad status                        The runs that are live, and who works in them
  squad cancel 20260105-0900          The run, by the beginning of its id
  squad cancel 20260105-0900 tester   Only what tester does in it")]
pub(super) struct Args {
    /// The run's id, or a prefix of it
    run: String,
    /// Cancel only this agent's work
    agent: Option<String>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let request = cancel(context.env, &context.directory, &self.run, self.agent.as_deref())?;
        if context.ui.json() {
            context.value(&request);
            return Ok(0);
        }
        let whom = request.agent.map(|agent| format!("{agent} in ")).unwrap_or_default();
        let said = if request.was_cancelled { "was cancelled already" } else { "is being cancelled" };
        context.ui.say(&format!("{whom}run {} {said}.", request.run));
        Ok(0)
    }
}
