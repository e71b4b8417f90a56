mod diff;
mod export;
mod membership;
mod show;

use clap::Subcommand;

use super::{Context, Ended};
use crate::model::{Kind, Module, Rule, Status, first_line, plural};
use crate::ops::Project;
use crate::ops::team::agents::{self, AgentReport, TeamReport};
use crate::settings::Layer;
use crate::ui::Ui;
use crate::view::{LineStyle, Text};

/// Show the team as squad reads it
///
/// Lists the members, the model each one gets and why, and everything in the team's files that squad could not
/// read. Listing exits with 0, unless a file holds the markers of an unfinished merge. `add`, `retire` and `rename`
/// change the team's files; `export` writes agent files for other hosts.
#[derive(Default, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  squad agents
  squad agents show backend
  squad agents add Nora --role \"Data engineer\" --routes \"ETL, warehouse, reports\"
  squad agents --json | jq '.problems'"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Show the team, as `squad agents` does
    #[command(hide = true)]
    List,
    Show(show::Args),
    Diff(diff::Args),
    Add(membership::Add),
    Retire(membership::Retire),
    Rename(membership::Rename),
    Export(export::Args),
}

/// Names and roles are cut where the table shows them: one of 300 characters would push all others aside.
const WIDEST: usize = 40;

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        match &self.command {
            Some(Command::Add(add)) => add.write.writes(),
            Some(Command::Retire(retire)) => retire.write.writes(),
            Some(Command::Rename(rename)) => rename.write.writes(),
            Some(Command::Export(export)) => export.write.writes(),
            Some(Command::List | Command::Show(_) | Command::Diff(_)) | None => false,
        }
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        match self.command {
            Some(Command::Show(args)) => {
                let project = Project::open(context.env, &context.directory, Layer::default())?;
                project.require_readable()?;
                args.run(&mut context.ui, &project)
            }
            Some(Command::Diff(args)) => args.run(context),
            Some(Command::Add(args)) => args.run(context),
            Some(Command::Retire(args)) => args.run(context),
            Some(Command::Rename(args)) => args.run(context),
            Some(Command::Export(args)) => args.run(context),
            Some(Command::List) | None => {
                let report = agents::report(context.env, &context.directory)?;
                match context.ui.json() {
                    true => context.ui.value(&report),
                    false => shown(&mut context.ui, &report),
                }
                Ok(0)
            }
        }
    }
}

fn shown(ui: &mut Ui, report: &TeamReport) {
    let rows = report.agents.iter().map(|it| (it, first_line(&it.name, WIDEST), first_line(&it.role, WIDEST)));
    let rows: Vec<_> = rows.collect();
    let name = rows.iter().map(|(_, name, _)| name.chars().count()).max().unwrap_or(0);
    let role = rows.iter().map(|(_, _, role)| role.chars().count()).max().unwrap_or(0);
    let model = rows.iter().filter(|(agent, ..)| agent.kind == Kind::Agent);
    let model = model.map(|(agent, ..)| agent.resolved_model.chars().count()).max().unwrap_or(0);
    for (agent, its_name, its_role) in &rows {
        let line = format!("{its_name:<name$}  {its_role:<role$}  ");
        let rest = match agent.kind {
            Kind::Agent => {
                let routes = routes(report, agent);
                format!("{:<model$}  {routes}{}", agent.resolved_model, note(agent.status))
            }
            Kind::Helper => "built-in helper, its work is squad's own".to_owned(),
            Kind::Human => "a person".to_owned(),
            Kind::Bot => "works elsewhere".to_owned(),
        };
        let style = if agent.kind == Kind::Agent { LineStyle::Strong } else { LineStyle::Faint };
        ui.texts(&[Text::default().with(style, &line).hanging().plain(&rest)]);
    }
    let more = [(report.roles.len(), "role"), (report.skills.len(), "skill")];
    let more = more.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(count, noun));
    let counts = [
        plural(report.agents.len(), "member"),
        plural(report.rules.len(), "routing rule"),
        format!("{} in force", plural(report.decisions.in_force, "decision")),
    ];
    ui.say(&format!("\n{}", counts.into_iter().chain(more).collect::<Vec<_>>().join(", ")));
    ui.all_problems(&report.problems);
}

/// `9 routes`: how messages reach an agent without its name.
fn routes(report: &TeamReport, agent: &AgentReport) -> String {
    let slug = Some(&agent.slug);
    let is_in = |rule: &&Rule| rule.agents.contains(&agent.slug) || rule.reviewer.as_ref() == slug;
    let is_owner = |module: &&Module| module.primary == agent.slug || module.secondary.as_ref() == slug;
    let rules = report.rules.iter().filter(is_in).count();
    let owned = report.modules.iter().filter(is_owner).count();
    let parts = [(rules, "route"), (owned, "module")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(count, noun));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { format!("no route: reached only as @{}", agent.slug) } else { parts.join(", ") }
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
