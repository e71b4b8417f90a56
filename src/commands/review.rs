use clap::Subcommand;

use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{Activity, Event, Outcome, list, plural, printable_line};
use crate::ops::ledger::log;
use crate::ops::run::lockouts;
use crate::ops::run::members::{described, require_sound};
use crate::ops::run::order::flag_settings;
use crate::ops::run::reviewing::{self, Asked, Bench, Opinion, Range, Review};
use crate::ops::team::engines;
use crate::ops::team::roles::Roles;
use crate::ops::{Project, Workspace};
use crate::pool::Show;
use crate::ui::Ui;

/// Have reviewers judge what changed
///
/// squad computes the diff, of what is not committed or of all since the branch left BASE, and gives it to the team's
/// reviewers, side by side. They change nothing. Findings are grouped by place and never merged: each has the line it is
/// about, and one whose quoted line is not in the diff is listed last. Nobody is locked out. The exit code is 1 when a
/// reviewer rejects, or none approves. Without a team, the built-in reviewer reviews.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  squad review                                  What is not committed
  squad review main                             What this branch has and main has not
  squad review --staged --path src              Only what is staged below src
  squad review --engine claude,codex --count 2  Two reviewers on each of two engines
  squad review --count 3 --cross                Three, who then answer each other's findings
  squad review -- lift                          Against a branch called lift")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// A branch, tag or commit; default: the last commit
    base: Option<String>,
    /// Only what is staged
    #[arg(long)]
    staged: bool,
    /// Only this file or folder
    #[arg(long, value_name = "PATH")]
    path: Vec<String>,
    /// Who reviews: agents or roles
    #[arg(long, short, value_name = "NAME,…", value_delimiter = ',')]
    agent: Vec<String>,
    /// How many, of each that --agent names or in all [default: each once]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=16))]
    count: Option<u8>,
    /// Each reviews once on each of these engines
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    engine: Vec<String>,
    /// Each then agrees or disagrees with what the others found, without being told who did
    #[arg(long)]
    cross: bool,
    /// Print the findings as ReviewBench reads them, for the pull request in its variables. Exits with 1 only if
    /// nobody has reviewed
    #[arg(long, conflicts_with = "json")]
    reviewbench: bool,
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
        if let Some(Command::Lift(lift)) = self.command {
            return lift.run(context);
        }
        let (env, directory) = (context.env, context.directory.clone());
        let bench = self.reviewbench.then(|| Bench::of(env)).transpose()?;
        let flags = engines::flags_without_team(env, &directory);
        let project = Project::open_without_team(env, &directory, flag_settings(&flags))?;
        require_sound(&project)?;
        let described = match self.engine.is_empty() {
            true => described(env, &directory)?.profile,
            false => None,
        };
        let roles = Roles::read(Some(&project), None).map_err(Failure::team)?;
        let paths = self.path.iter().map(|path| project.path_from_root(&directory, path)).collect();
        let asked = Asked {
            range: Range { base: self.base, staged: self.staged, paths },
            reviewers: self.agent,
            count: self.count.map(usize::from),
            engines: self.engine,
            cross: self.cross,
        };
        let prepared = reviewing::prepare(env, &project, &roles, described.as_ref(), (&asked, None))?;
        let ui = &mut context.ui;
        prepared.notes.iter().for_each(|note| ui.warning(note));
        let count = prepared.members.len();
        let reviewers = plural(if self.cross { count / 2 } else { count }, "reviewer");
        ui.say(&printable_line(&format!("{}, by {reviewers}", prepared.title)));
        let default = described.as_ref().map_or(&project.settings.engine.name, |profile| &profile.name).clone();
        let shown = Reviewing { activity: env.damage.activity().clone(), members: count, ended: 0 };
        let result = reviewing::carry_out(env, &project, prepared, described, shown)?;
        let review = reviewing::of_run(&result, &default)
            .ok_or_else(|| Failure::failed(format!("run {} is not a review", result.run)))?;
        let is_interrupted = result.status == Outcome::Cancelled.to_string();
        if let Some(bench) = bench {
            let unanswered = review.verdicts.iter().filter(|verdict| verdict.verdict == "none");
            for verdict in unanswered.clone() {
                let why = verdict.reason.as_deref().unwrap_or("no verdict");
                ui.warning(&printable_line(&format!("{} has not reviewed: {why}", verdict.role)));
            }
            ui.data(&bench.findings(&review).to_string());
            let has_nobody = unanswered.count() == review.verdicts.len();
            return Ok(if is_interrupted { 130 } else { u8::from(has_nobody) });
        }
        if ui.json() {
            ui.value(&review);
        } else {
            show(ui, &review);
        }
        let is_approved = review.verdicts.iter().any(|verdict| verdict.verdict == "approved");
        Ok(if is_interrupted { 130 } else { u8::from(review.is_rejected() || !is_approved) })
    }
}

/// Counts the reviewers that are done. Their verdicts are the whole story: there are no lines for what they do.
struct Reviewing {
    activity: Activity,
    members: usize,
    ended: usize,
}

impl Show for Reviewing {
    fn show(&mut self, event: &Event) {
        self.ended += usize::from(event.kind.end().is_some());
        self.activity.at("reviewing", self.ended, Some(self.members), "reviewer");
    }
}

fn show(ui: &mut Ui, review: &Review) {
    const HEADINGS: [&str; 3] = ["", "too long to be shown, so not checked:", "not found in the diff:"];
    let mut shown = 0;
    for ((rank, path, line), findings) in reviewing::places(&review.findings) {
        if rank != shown {
            shown = rank;
            ui.data(HEADINGS[usize::from(rank)]);
        }
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        ui.data(&printable_line(&format!("{path}{line}")));
        let mut quote = "";
        for finding in findings {
            if finding.quote != quote {
                quote = &finding.quote;
                ui.data(&printable_line(&format!("  > {quote}")));
            }
            let said = format!("{} ({}): {}", finding.by, finding.engine, finding.text);
            ui.data(&printable_line(&format!("  {:<8} {}", finding.severity, said.replace('\n', " "))));
            for Opinion { by, engine, answer, evidence } in &finding.answers {
                let said = format!("           {by} ({engine}) {answer}s: {evidence}");
                ui.data(&printable_line(&said.replace('\n', " ")));
            }
        }
    }
    for verdict in &review.verdicts {
        let reason = verdict.reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
        let said = if verdict.verdict == "none" { "no verdict" } else { verdict.verdict };
        ui.data(&printable_line(&format!("{said} by {} ({}){reason}", verdict.role, verdict.engine)));
    }
}

impl Lift {
    fn run(self, context: &mut Context<'_>) -> Ended {
        let Lift { run: id } = self;
        let workspace = Workspace::find_or_recorded(context.env, &context.directory)?;
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
