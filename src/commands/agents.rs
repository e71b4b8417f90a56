mod diff;
mod export;
mod membership;
mod show;

use clap::Subcommand;

use super::{Context, Ended};
use crate::env::Clock;
use crate::model::{Kind, Module, Problem, Rule, Severity, Status, first_line, plural};
use crate::ops::Project;
use crate::ops::ledger::log::AgentRuns;
use crate::ops::team::agents::{self, AgentReport, TeamReport};
use crate::settings::Layer;
use crate::ui::Ui;
use crate::view::{LineStyle, Mark, Text};

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
                args.run(&mut context.ui, &project, &context.env.clock)
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
                    false => shown(&mut context.ui, &report, &context.env.clock),
                }
                Ok(0)
            }
        }
    }
}

fn shown(ui: &mut Ui, report: &TeamReport, clock: &Clock) {
    let rows = report.agents.iter().map(|agent| {
        let AgentReport { name, role, kind, .. } = agent;
        let (model, rest) = match kind {
            Kind::Agent => (&*agent.resolved_model, format!("{}{}", routes(report, agent), note(agent.status))),
            Kind::Helper => ("", "built-in helper, its work is squad's own".to_owned()),
            Kind::Human => ("", "a person".to_owned()),
            Kind::Bot => ("", "works elsewhere".to_owned()),
        };
        (agent, first_line(name, WIDEST), first_line(role, WIDEST), model, rest)
    });
    let rows: Vec<_> = rows.collect();
    let name = rows.iter().map(|row| row.1.chars().count()).max().unwrap_or(0);
    let role = rows.iter().map(|row| row.2.chars().count()).max().unwrap_or(0);
    let model = rows.iter().map(|row| row.3.chars().count()).max().unwrap_or(0);
    let worked = rows.iter().filter(|row| row.0.runs.count > 0);
    let rest = worked.map(|row| row.4.chars().count()).max().unwrap_or(0);
    for (agent, its_name, its_role, its_model, its_rest) in &rows {
        let is_wrong = |problem: &&Problem| problem.severity != Severity::Note;
        let mut wrong = report.problems.iter().filter(is_wrong);
        let is_doubtful = wrong.any(|problem| agents::is_about(problem, &agent.slug, &agent.source));
        let start = if is_doubtful { Text::marked(LineStyle::Warning, Mark::Attention) } else { Text::unmarked() };
        let style = if agent.kind == Kind::Agent { LineStyle::Strong } else { LineStyle::Faint };
        let line = start.with(style, &format!("{its_name:<name$}  {its_role:<role$}  ")).hanging();
        let line = if its_model.is_empty() { line } else { line.plain(&format!("{its_model:<model$}  ")) };
        ui.texts(&[match runs(&agent.runs, clock) {
            Some(runs) => line.plain(&format!("{its_rest:<rest$}  ")).with(LineStyle::Faint, &runs),
            None => line.plain(its_rest),
        }]);
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

/// `31 runs, 2 failed, last 24 Nov`
fn runs(AgentRuns { count, failed, last }: &AgentRuns, clock: &Clock) -> Option<String> {
    let last = clock.day((*last)?);
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    Some(format!("{}{failed}, last {last}", plural(*count, "run")))
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
