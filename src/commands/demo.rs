use super::{Context, Ended, orchestrate};
use crate::ops::run::demo::{self, Demo};
use crate::ui::STRONG;

/// See a team at work in a throw-away repository
///
/// Creates a repository in a temporary folder, installs a team and plays a rehearsal: three agents work side by
/// side, one records a decision, a reviewer reviews, the coordinator answers. It uses no model and touches nothing
/// outside that folder, which stays for you to look around.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad demo")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, mut context: Context<'_>) -> (Context<'_>, Ended) {
        let Demo { folder, project, order } = match demo::prepare(context.env) {
            Ok(demo) => demo,
            Err(failure) => return (context, Err(failure)),
        };
        let shown = folder.display().to_string();
        context.ui.say(&format!("A repository with a team of six: {shown}"));
        let command = context.ui.err_paint(STRONG, &format!("squad orchestrate \"{}\"", order.message));
        context.ui.say(&format!("$ {command}\n"));
        let (mut context, ended) = orchestrate::perform(context, &project, order);
        let ended = ended.and_then(|code| {
            if !context.ui.json() {
                let history = demo::history(&project)?;
                let ui = &mut context.ui;
                if !history.is_empty() {
                    ui.say("\nWhat is on the branch now:");
                    ui.data(&history);
                }
                let squad = context.env.command_name();
                let next = [
                    (format!("cd {shown}"), ""),
                    (format!("{squad} log"), "what happened; add a run's id for all of it"),
                    (format!("{squad} decisions list"), "what was decided"),
                    ("git show HEAD".to_owned(), "the decision, as a reviewer sees it"),
                    ("git status".to_owned(), "what the agents wrote, yours to commit"),
                    ("git log -p refs/squad/log".to_owned(), "the ledger itself"),
                ];
                let width = next.iter().skip(1).map(|(command, _)| command.len()).max().unwrap_or_default();
                ui.say("\nWhere to look next:");
                for (command, what) in next {
                    ui.say(format!("  {command:<width$}  {what}").trim_end());
                }
            }
            Ok(code)
        });
        (context, ended)
    }
}
