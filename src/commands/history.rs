use clap::Subcommand;

use super::change::short;
use super::{Context, Ended};
use crate::model::{plural, printable, printable_line};
use crate::ops::Project;
use crate::ops::change::WriteMode;
use crate::ops::decisions::history::{self, HistoryLanding};
use crate::settings::Layer;
use crate::ui::Ui;

/// Add what agents have learned to their history files
///
/// Alone, it shows what waits to land, as `squad history land --dry-run` does.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Add recorded learnings to the agents' history.md, in one commit
    ///
    /// Agents record what they learn in the ledger, and their prompts include it from there. This command appends it to
    /// `## Learnings` in `.squad/agents/AGENT/history.md`, where people can review and edit it; the rest of the file
    /// does not change. Each learning lands once, on one branch. If the branch cannot take a commit now, the learnings
    /// wait. Your index, stash and edits stay untouched.
    #[command(after_help = "\
Examples:
  squad history land --dry-run
  squad history land
  squad history land tester")]
    Land {
        /// Only the learnings of this agent
        agent: Option<String>,
        /// Show the changes as a diff and change nothing
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        matches!(self.command, Some(Command::Land { dry_run: false, .. }))
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let Command::Land { agent, dry_run } = self.command.unwrap_or(Command::Land { agent: None, dry_run: true });
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        project.require_readable()?;
        let landing = history::land(context.env, &project, agent.as_deref(), WriteMode::new(dry_run, false))?;
        if landing.commit.is_some() {
            context.say_passed_hooks();
        }
        if context.ui.json() {
            context.ui.value(&landing);
        } else {
            show(&mut context.ui, &landing, dry_run);
        }
        Ok(0)
    }
}

fn show(ui: &mut Ui, landing: &HistoryLanding, dry_run: bool) {
    for (agent, count) in &landing.strangers {
        ui.warning(&format!(
            "{} of `{agent}` stay in the ledger: no agent of that name is on the roster",
            plural(*count, "learning")
        ));
    }
    if landing.histories.is_empty() {
        match landing.recorded {
            0 => {
                ui.say("There is nothing to land: no learning is recorded.");
                ui.hint("agents record what they learn while they work: squad orchestrate \"…\"");
            }
            _ if !landing.strangers.is_empty() => ui.say("There is nothing else to land."),
            1 => ui.say("There is nothing to land: the one recorded learning has landed."),
            count => ui.say(&format!("There is nothing to land: all {count} recorded learnings have landed.")),
        }
        return;
    }
    for history in &landing.histories {
        match dry_run {
            true => ui.data(&printable(&history.diff)),
            false => {
                ui.data(&printable_line(&format!("{}  {}", history.file, plural(history.learnings.len(), "learning"))))
            }
        }
    }
    let count = plural(landing.histories.iter().map(|history| history.learnings.len()).sum(), "learning");
    match &landing.commit {
        Some(commit) => {
            ui.say(&format!("{count} landed on {} in {}.", landing.branch, short(commit)));
        }
        None => ui.say(&format!("{count} would land on {}.", landing.branch)),
    }
}
