mod diff;
mod show;

use clap::Subcommand;

use super::{Context, Ended};
use crate::model::{Kind, Status, plural, printable};
use crate::ops::Project;
use crate::ops::agents::{self, AgentReport};
use crate::settings::Layer;
use crate::ui::{FAINT, STRONG};

/// Show the team as squad reads it
///
/// Who is on it, which model each agent gets and why, and what in the team's files was not understood. Exits with 0
/// whatever it finds.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  squad agents
  squad agents show backend
  squad agents --json | jq '.problems'"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Show(show::Args),
    Diff(diff::Args),
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        match self.command {
            Some(Command::Show(args)) => {
                let project = Project::open(context.env, &context.directory, Layer::default())?;
                return args.run(&mut context.ui, &project);
            }
            Some(Command::Diff(args)) => return args.run(context),
            None => {}
        }
        let report = agents::report(context.env, &context.directory)?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&report);
            return Ok(0);
        }
        let widest = |width: fn(&AgentReport) -> usize| report.agents.iter().map(width).max().unwrap_or(0);
        let (name, role) = (widest(|agent| agent.name.chars().count()), widest(|agent| agent.role.chars().count()));
        for agent in &report.agents {
            let line = format!("{:<name$}  {:<role$}  ", printable(&agent.name), printable(&agent.role));
            let rest = match agent.kind {
                Kind::Agent => format!("{}{}", agent.resolved_model, note(agent.status)),
                Kind::Helper => "built-in helper, its work is squad's own".to_owned(),
                Kind::Human => "a person".to_owned(),
                Kind::Bot => "works elsewhere".to_owned(),
            };
            let style = if agent.kind == Kind::Agent { STRONG } else { FAINT };
            ui.data(&format!("{}{}", ui.out_paint(style, &line), printable(&rest)));
        }
        let more = [(report.roles.len(), "role"), (report.skills.len(), "skill")];
        let more = more.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(count, noun));
        let counts = [
            plural(report.agents.len(), "member"),
            plural(report.rules.len(), "routing rule"),
            plural(report.decisions.total, "decision"),
        ];
        ui.say(&format!("\n{}", counts.into_iter().chain(more).collect::<Vec<_>>().join(", ")));
        ui.all_problems(&report.problems);
        Ok(0)
    }
}

fn note(status: Status) -> &'static str {
    match status {
        Status::Active => "",
        Status::Silent => ", silent",
        Status::Monitor => ", monitor",
        Status::Inactive => ", inactive",
        Status::Retired => ", retired",
    }
}
