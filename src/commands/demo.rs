use super::{Context, Ended, orchestrate, why};
use crate::ops::run::demo::{self, Demo};
use crate::ui::Ui;
use crate::view::{LineStyle, Screen, Text};

/// A line of what the script leaves that follows from its decision.
const LINE: &str = "app/health.py:17";

/// See a team at work in a throw-away repository
///
/// Creates a repository in a temporary folder, installs a team and plays a rehearsal: three agents work side by
/// side, one records a decision, a reviewer rejects the work and may not change it, and another agent revises it. It
/// uses no model, touches nothing outside that folder, and removes it at the end.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad demo\n  squad demo --keep")]
pub(super) struct Args {
    /// Keep the repository to look around
    #[arg(long)]
    keep: bool,
}

impl Args {
    pub(super) fn run(self, mut context: Context<'_>) -> (Context<'_>, Ended) {
        let Demo { env, folder, project, order } = match demo::prepare(context.env) {
            Ok(demo) => demo,
            Err(failure) => return (context, Err(failure)),
        };
        context.ui.say("A throw-away shop with a team of six.");
        say_command(&mut context.ui, &format!("squad orchestrate \"{}\"", order.message));
        let Context { env: outer, directory, ui, recovered } = context;
        let inner = Context { env: &env, directory: project.work_dir.clone(), ui, recovered: None };
        let (mut inner, ended) = orchestrate::perform(inner, &project, order, self.keep);
        let ended = ended.and_then(|code| {
            if code == 0 && !inner.ui.json() {
                say_command(&mut inner.ui, &format!("squad why {LINE}"));
                why::Args { subject: LINE.to_owned(), is_passing: !self.keep }.run(&mut inner)?;
            }
            Ok(code)
        });
        let mut ui = inner.ui;
        if self.keep {
            drop(folder.keep());
            ui.say(&format!("\nThe shop stays: cd {}", project.work_dir.display()));
        } else {
            drop(project);
            demo::remove(folder);
            ui.say(&format!("\nRemoved the shop; keep it with --keep. Your turn: {} init", outer.command_name()));
        }
        (Context { env: outer, directory, ui, recovered }, ended)
    }
}

fn say_command(ui: &mut Ui, command: &str) {
    ui.text(&Text::default().plain("$ ").with(LineStyle::Strong, command).hanging());
}
