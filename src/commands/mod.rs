//! One file per subcommand: its `Args`, whose doc comment is the help, and its `run`.

mod adopt;
mod agents;
#[cfg(feature = "bench")]
#[path = "../../tests/bench/append_command.rs"]
mod append;
mod begun;
#[cfg(feature = "bench")]
#[path = "../../tests/bench/frames_command.rs"]
mod bench_frames;
#[cfg(feature = "bench")]
#[path = "../../tests/bench/policy_command.rs"]
mod bench_policy;
#[cfg(feature = "bench")]
#[path = "../../tests/bench/route_command.rs"]
mod bench_route;
#[cfg(feature = "bench")]
#[path = "../../tests/bench/snapshot_command.rs"]
mod bench_snapshot;
mod cancel;
mod carry;
mod change;
mod completions;
mod config;
mod decisions;
mod demo;
mod diff;
mod doctor;
mod engines;
mod export;
mod gc;
#[cfg(unix)]
mod guard;
mod help;
mod history;
mod hosts;
mod import;
mod init;
mod knowledge;
mod log;
mod man;
mod mcp;
mod merge;
mod orchestrate;
mod pager;
mod policy;
mod remove;
mod rescue;
mod review;
mod route;
mod scrub;
mod squads;
mod status;
mod sync;
mod tier;
mod trust;
mod undo;
mod upgrade;
mod watch;
mod why;
mod within;
mod worker;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use serde::Serialize;
use serde_json::Value;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Outcome, Recovered, Repository};
use crate::model::{ChangeKind, Problem, Team};
use crate::ops::repository;
use crate::ops::team::hooks;
use crate::route::Router;
use crate::settings::BAD_VALUE;
use crate::store::TeamFolder;
use crate::ui::{ColorChoice, Ui};
use tier::TierName;

/// Run a team of AI coding agents that lives in a git repository
///
/// The team is plain Markdown under `.squad/`. `squad orchestrate` decides in code who works on a message, starts
/// those agents side by side, streams what they do, and records what happened and what was decided as git commits.
#[derive(Parser)]
#[command(name = "squad", version, max_term_width = 100, disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// `None`: the status, or how to begin.
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    pub(crate) globals: Globals,
}

const EXAMPLES: &str = "\
Examples:
  squad demo                                      See a team at work; no login, no network
  squad init                                      Install a team in this repository
  squad orchestrate \"Add a health endpoint\"       Give the team a task
  squad route \"Fix the login form\"                Show who would work on it, and why
  squad log                                       Show what happened
  squad decisions list                            Show what was decided

Exit codes: 0 done, 1 the work failed, 2 usage, 3 the team or configuration cannot be used,
4 no engine, 5 stopped by policy or budget, 130 interrupted.";

/// An invalid value is a usage error in a flag; in a file it is only a warning.
fn require_flags(problems: &[Problem]) -> Result<(), Failure> {
    let is_flags = |problem: &&Problem| problem.code == BAD_VALUE && problem.file.starts_with("--");
    match problems.iter().find(is_flags) {
        Some(problem) => Err(Failure::usage(problem.message.clone()).at(&problem.file)),
        None => Ok(()),
    }
}

/// Warns about `@names` in a message that look mistyped: routing goes on without them.
fn say_mistyped(ui: &mut Ui, team: &Team, message: &str) {
    // Few messages name anybody, and reading one takes time.
    if !message.contains('@') {
        return;
    }
    for (name, near) in Router::new(team, &[]).mistyped(message) {
        ui.warning(&format!("nobody on the team is called @{name}"));
        ui.hint(&near.map_or("`squad agents` lists them".to_owned(), |near| format!("did you mean @{near}?")));
    }
}

/// What to do where there is nothing yet: a team is needed first.
fn begin_with<'t>(folder: &TeamFolder, command: &'t str) -> &'t str {
    if folder.is_there() { command } else { "squad init" }
}

/// Warns, once per repository, that squad's commits do not run its hooks.
fn say_passed_hooks(ui: &mut Ui, repository: &Repository) {
    if let Some(said) = hooks::skipped_hooks(repository) {
        ui.warning(&said);
        ui.hint("squad skips hooks because it commits only its own files. This is shown once");
    }
}

/// Options of every command.
#[derive(clap::Args)]
pub(crate) struct Globals {
    /// Work in DIR, or in your project @NAME; `squad squads` lists them
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Write JSON to stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more detail
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
    /// Print long output at once, without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Args),
    Adopt(adopt::Args),
    Upgrade(upgrade::Args),
    Orchestrate(orchestrate::Args),
    Watch(watch::Args),
    Route(route::Args),
    Agents(agents::Args),
    Config(config::Args),
    Decisions(decisions::Args),
    Knowledge(knowledge::Args),
    Log(log::Args),
    Diff(diff::Args),
    Undo(undo::Args),
    Merge(merge::Args),
    Status(status::Args),
    Squads(squads::Args),
    Cancel(cancel::Args),
    Mcp(mcp::Args),
    Policy(policy::Args),
    Trust(trust::Args),
    Why(why::Args),
    Sync(sync::Args),
    History(history::Args),
    Gc(gc::Args),
    Review(review::Args),
    Export(export::Args),
    Import(import::Args),
    Remove(remove::Args),
    Rescue(rescue::Args),
    Scrub(scrub::Args),
    Engines(engines::Args),
    Hosts(hosts::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Help(help::Args),
    Man(man::Args),
    Completions(completions::Args),
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchAppend(append::Args),
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchFrames(bench_frames::Args),
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchPolicy(bench_policy::Args),
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchRoute(bench_route::Args),
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchSnapshot(bench_snapshot::Args),
    #[command(hide = true)]
    Carry(carry::Args),
    #[cfg(unix)]
    #[command(hide = true)]
    Guard(guard::Args),
    #[command(hide = true)]
    Within(within::Args),
    Worker(worker::Args),
}

/// What a command works with: the environment, its folder and the terminal.
pub(crate) struct Context<'a> {
    pub(crate) env: &'a Env,
    pub(crate) directory: PathBuf,
    pub(crate) ui: Ui,
    /// An earlier command that was stopped; this one has finished or undone it.
    pub(crate) recovered: Option<Recovered>,
}

impl Context<'_> {
    /// `Some` if this call has finished the same change, stopped earlier: its files, and its commit if it made one.
    fn finished(&self, kind: &ChangeKind) -> Option<(Vec<String>, Option<String>)> {
        match self.recovered.as_ref()? {
            Recovered { kind: stopped, outcome: Outcome::Finished { commit }, paths, .. } if stopped == kind => {
                Some((paths.clone(), commit.clone()))
            }
            _ => None,
        }
    }

    /// See [`say_passed_hooks`].
    fn say_passed_hooks(&mut self) {
        if let Ok((repository, _)) = repository(self.env, &self.directory) {
            say_passed_hooks(&mut self.ui, &repository);
        }
    }

    /// Prints an answer as JSON, adding the parts of the ledger that could not be read to its `problems`.
    fn value(&mut self, answer: impl Serialize) {
        let problems = self.env.damage.problems();
        let mut value = serde_json::to_value(answer).unwrap_or_default();
        if let (Value::Object(answer), false) = (&mut value, problems.is_empty()) {
            let known = answer.entry("problems").or_insert_with(|| Value::Array(Vec::new()));
            if let (Value::Array(known), Ok(Value::Array(more))) = (known, serde_json::to_value(problems)) {
                known.extend(more);
            }
        }
        self.ui.value(&value);
    }
}

/// An exit code, or the failure.
type Ended = Result<u8, Failure>;

impl Arguments {
    /// Runs the command. Returns the context, so that the caller can report what is left.
    pub(crate) fn run<'a>(self, mut context: Context<'a>) -> (Context<'a>, Ended) {
        let command = self.command.unwrap_or(Command::Status(status::Args { is_first: true }));
        if command.writes_to_the_branch()
            && let Err(failure) = begun::finish(&mut context)
        {
            return (context, Err(failure));
        }
        // The doctor lists interrupted commands among its problems.
        let is_doctor = matches!(command, Command::Doctor(_));
        let progress = command.is_long().then(|| context.ui.progress(context.env.damage.activity()));
        let (mut context, ended) = command.perform(context);
        drop(progress);
        if !is_doctor || ended.is_err() {
            begun::report(&mut context);
        }
        (context, ended)
    }
}

impl Command {
    fn perform<'a>(self, mut context: Context<'a>) -> (Context<'a>, Ended) {
        let ended = match self {
            Self::Init(args) => args.run(&mut context),
            Self::Adopt(args) => args.run(&mut context),
            Self::Upgrade(args) => args.run(&mut context),
            Self::Orchestrate(args) => return args.run(context),
            Self::Watch(args) => return args.run(context),
            Self::Route(args) => args.run(&mut context),
            Self::Agents(args) => args.run(&mut context),
            Self::Config(args) => args.run(&mut context),
            Self::Decisions(args) => args.run(&mut context),
            Self::Knowledge(args) => args.run(&mut context),
            Self::Log(args) => args.run(&mut context),
            Self::Diff(args) => args.run(&mut context),
            Self::Undo(args) => args.run(&mut context),
            Self::Merge(args) => args.run(&mut context),
            Self::Status(args) => args.run(&mut context),
            Self::Squads(args) => args.run(&mut context),
            Self::Cancel(args) => args.run(&mut context),
            Self::Mcp(args) => args.run(&mut context),
            Self::Policy(args) => args.run(&mut context),
            Self::Trust(args) => args.run(&mut context),
            Self::Why(args) => args.run(&mut context),
            Self::Sync(args) => args.run(&mut context),
            Self::History(args) => args.run(&mut context),
            Self::Gc(args) => args.run(&mut context),
            Self::Review(args) => args.run(&mut context),
            Self::Export(args) => args.run(&mut context),
            Self::Import(args) => args.run(&mut context),
            Self::Remove(args) => args.run(&mut context),
            Self::Rescue(args) => args.run(&mut context),
            Self::Scrub(args) => args.run(&mut context),
            Self::Engines(args) => args.run(&mut context),
            Self::Hosts(args) => args.run(&mut context),
            Self::Doctor(args) => args.run(&mut context),
            Self::Demo(args) => return args.run(context),
            Self::Help(args) => args.run(&mut context),
            Self::Man(args) => args.run(&mut context),
            Self::Completions(args) => args.run(&mut context),
            #[cfg(feature = "bench")]
            Self::BenchAppend(args) => args.run(&mut context),
            #[cfg(feature = "bench")]
            Self::BenchFrames(args) => args.run(&mut context),
            #[cfg(feature = "bench")]
            Self::BenchPolicy(args) => args.run(&mut context),
            #[cfg(feature = "bench")]
            Self::BenchRoute(args) => args.run(&mut context),
            #[cfg(feature = "bench")]
            Self::BenchSnapshot(args) => args.run(&mut context),
            Self::Carry(args) => args.run(&mut context),
            #[cfg(unix)]
            Self::Guard(args) => args.run(&mut context),
            Self::Within(args) => args.run(&mut context),
            Self::Worker(args) => args.run(&mut context),
        };
        (context, ended)
    }

    /// Whether the command may take long and says what it does meanwhile.
    fn is_long(&self) -> bool {
        let is_of_team = matches!(self, Self::Adopt(_) | Self::Agents(_) | Self::Export(_) | Self::Import(_));
        let is_of_ledger = matches!(self, Self::Gc(_) | Self::Scrub(_) | Self::Status(_) | Self::Sync(_));
        is_of_team
            || is_of_ledger
            || matches!(self, Self::Hosts(args) if args.is_long())
            || matches!(
                self,
                Self::Decisions(_) | Self::Knowledge(_) | Self::Doctor(_) | Self::Review(_) | Self::Squads(_)
            )
    }

    /// Whether the command changes commits, the index or the work tree.
    fn writes_to_the_branch(&self) -> bool {
        match self {
            Self::Init(_) => true,
            Self::Adopt(args) => args.write.writes(),
            Self::Export(args) => args.writes(),
            Self::Upgrade(args) => args.write.writes(),
            Self::Agents(args) => args.writes_to_the_branch(),
            Self::Orchestrate(args) => args.writes_to_the_branch(),
            Self::Decisions(args) => args.writes_to_the_branch(),
            Self::Knowledge(args) => args.writes_to_the_branch(),
            Self::History(args) => args.writes_to_the_branch(),
            Self::Import(args) => !args.dry_run,
            Self::Remove(args) => !args.dry_run,
            Self::Rescue(args) => args.writes_to_the_branch(),
            Self::Undo(args) => !args.dry_run,
            Self::Merge(args) => !args.dry_run,
            Self::Mcp(args) => args.writes_to_the_work_tree(),
            _ => false,
        }
    }
}

/// A text given as an argument, where `-` stands for standard input.
fn text_or_input(ui: &Ui, argument: &str) -> Result<String, Failure> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let bytes = ui.read_input().map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))
}
