//! squad runs a team of AI coding agents that lives in a git repository.
//!
//! The team is Markdown under `.squad/`. `squad orchestrate "…"` reads and compiles it, decides in code who works,
//! starts those agents side by side in engine sessions, and writes what happened and what was decided back to git.
//!
//! # The house
//!
//! Values flow one way:
//!
//! ```text
//! .squad files ─ store → parse → compile ─┐
//!                       message → route ─┴→ plan → pool → engine sessions
//! engine facts → dispatcher → events ─┬→ view  (terminal lines, or NDJSON)
//!                                     └→ record → ledger entries, decision files → git
//! ```
//!
//! | module | job |
//! | --- | --- |
//! | [`model`] | the nouns: agent, team, plan, decision, event, ids |
//! | [`settings`] | configuration in layers, with their sources |
//! | [`parse`] | text to model, with problems |
//! | [`edit`] | a team file to the same file with one thing changed |
//! | [`compile`] | team and settings to one session spec for each agent |
//! | [`route`] | message and team to a plan with evidence |
//! | [`policy`] | what may happen: permissions, secrets |
//! | [`record`] | events and decisions to the files that are kept |
//! | [`review`] | two states of a team's decisions to what changed and what that contradicts |
//! | [`mod@env`] | arguments, variables, clock, ids, paths; captured once |
//! | [`program`] | which programs are started, and the only place that starts any |
//! | [`sandbox`] | what bounds the programs that engines start |
//! | [`store`] | reads a team folder |
//! | [`git`] | the only user of gix and of the `git` program: ledger and landing |
//! | [`engine`] | one trait; `copilot` and `rehearsal` behind it |
//! | [`tools`] | squad's own tools, which every session is offered |
//! | [`pool`] | workers and the dispatcher |
//! | [`mod@watch`] | changes of a team folder, as ticks |
//! | [`mcp`] | the Model Context Protocol, from the server's side |
//! | [`view`] | events to lines, or to JSON |
//! | [`error`], [`ui`] | exit codes and hints; what is said and where |
//! | [`ops`] | what a command does |
//! | [`trace`] | the log for reports of defects |
//! | [`commands`] | one file for each subcommand |
//!
//! A module uses those above it in the table. The first nine are pure: no files, no async, no clock. `store`, `git`
//! and `engine` do not know each other. `tests/it/house.rs` checks all of this.
//!
//! # The processes
//!
//! Every run lives in a host. Hosts and their clients speak one protocol, `ops::run::host`:
//!
//! ```text
//! orchestrate ─ order, cancel, answers ──→ watch ─────┐  socket in .git/squad/watch
//!             ←─ events, questions, end ──            ├─→ engines
//! mcp ─ order, go ─→ runner ──────────────────────────┤  standard input and output
//! orchestrate without a watch: its own host ──────────┘
//! cancel, status, a line to an agent ─→ any run         socket in .git/squad/runs, named by its lease
//! a host's agents ─ launcher ─→ worker ─ socket ─→ the process that works, in a clone there
//! ```
//!
//! Three things go through files, because they outlive a process or cross a sandbox: leases and places, whose locks the
//! kernel frees; a run's actions, for the runs beside it; the calls of `squad mcp --member`, which an engine starts. What
//! happened is in the ledger, and `log --follow` reads it there.
//!
//! Three rules explain most of the rest. *Acknowledged means durable*: what is reported as written has been flushed.
//! *A failed load is an error, never "empty"*. *No agent ends without an outcome.*

mod commands;
mod compile;
mod edit;
mod engine;
mod env;
mod error;
#[cfg(test)]
#[path = "../tests/fuzz/mod.rs"]
mod fuzz;
mod git;
mod mcp;
mod model;
mod ops;
mod parse;
mod policy;
mod pool;
mod program;
mod record;
mod review;
mod route;
mod sandbox;
#[cfg(test)]
#[path = "../tests/support/script.rs"]
mod script;
mod settings;
mod store;
mod tools;
mod trace;
mod ui;
mod view;
mod watch;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use commands::{Arguments, Context};
pub use env::{Clock, DamageLog, Env, Ids, Release, Streams};
use error::{Failure, FailureKind};
use model::{list, nearest, printable};
use ui::{OutputOptions, Ui};

/// Runs the program and returns its exit code.
pub fn run(mut env: Env, mut streams: Streams) -> u8 {
    let name = std::ffi::OsString::from("squad");
    let arguments = std::iter::once(&name).chain(&env.arguments).cloned().collect::<Vec<_>>();
    // A terminal without a name can do nothing.
    let plain = env.variables.get("TERM").is_some_and(|term| matches!(term.as_str(), "dumb" | ""));
    let ascii = plain || !is_utf8(&env);
    let colorless = plain || env.variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_given = |wanted: &str| env.arguments.iter().any(|argument| argument == wanted);
            let json = is_given("--json");
            let ui = Ui::new(streams, OutputOptions { json, ascii, plain, colorless, ..OutputOptions::default() });
            let unknown = error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
            let is_word = |value: &ContextValue| !value.to_string().starts_with('-');
            let hint = match unknown {
                Some(word) if is_word(word) && is_given("orchestrate") => {
                    Some("a message of several words needs quotes: squad orchestrate \"Add a health endpoint\"")
                }
                Some(word) if word.to_string() == "-n" && is_given("log") => {
                    Some("`squad log --limit 5` lists the five newest runs")
                }
                Some(_) if is_given("decisions") && is_given("add") => {
                    Some("the first line of TEXT is the title, and the lines below it say what and why")
                }
                _ => None,
            };
            return misunderstood(ui, &error, hint);
        }
    };
    let globals = &arguments.globals;
    above_region(&mut streams);
    if !globals.quiet {
        let mut err = streams.share_err();
        // A stderr that nobody reads is no reason to stop.
        env.damage.speak_with(move |text| drop(writeln!(err, "{}", printable(text))));
    }
    let options = OutputOptions {
        json: globals.json,
        quiet: globals.quiet,
        verbose: globals.verbose,
        color: globals.color,
        ascii,
        plain,
        colorless,
        pages: !globals.no_pager,
    };
    let directory = directory(&env, globals.directory.as_deref());
    if globals.directory.is_some() {
        program::leave_checkout(&mut env);
    }
    let mut ui = Ui::new(streams, options);
    let directory = match directory {
        Ok(directory) => directory,
        Err(failure) => {
            ui.failure(&failure);
            return failure.kind.exit_code();
        }
    };
    let mut context = Context { env: &env, directory, ui, recovered: None };
    if let Err(unknown) = trace::start(context.env, &context.directory) {
        context.ui.warning(&unknown);
    }
    if globals.directory.is_some() && !context.directory.is_dir() {
        let failure = Failure::usage(format!("there is no folder {}", context.directory.display()))
            .hint("-C names the folder to work in");
        context.ui.failure(&failure);
        return failure.kind.exit_code();
    }
    let (mut context, ended) = arguments.run(context);
    context.ui.end_paging();
    context.ui.all_problems(&env.damage.problems());
    let ended = ended.and_then(|code| context.ui.output_failure().map_or(Ok(code), Err));
    let code = ended.unwrap_or_else(|failure| {
        context.ui.failure(&failure);
        failure.kind.exit_code()
    });
    view::drain();
    code
}

/// The folder to work in: `named` may be `@NAME`, one of the user's projects.
fn directory(env: &Env, named: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(named) = named else { return Ok(env.directory.clone()) };
    match named.to_str().and_then(|text| text.strip_prefix('@')) {
        Some(name) => ops::team::projects::find(env, name).map(|project| project.path),
        None => Ok(env.directory.join(named)),
    }
}

/// Lets what is written to the terminal take away what is redrawn there.
fn above_region(streams: &mut Streams) {
    use view::StandardStream::{Err, Out};

    for (stream, is_terminal, terminal) in
        [(&mut streams.out, streams.out_is_terminal, Out), (&mut streams.err, streams.err_is_terminal, Err)]
    {
        if is_terminal {
            *stream = Box::new(view::Above::new(terminal));
        }
    }
}

/// Whether the locale's characters are UTF-8's, if it says.
fn is_utf8(env: &Env) -> bool {
    let named =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env.variable(name).filter(|value| !value.is_empty()));
    named.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// A call that lacks an argument, in words.
fn incomplete(error: &clap::Error) -> Option<Failure> {
    let (Some(ContextValue::Strings(missing)), Some(ContextValue::StyledStr(usage))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::Usage))
    else {
        return None;
    };
    let usage = usage.to_string();
    let (command, usage) = command_of(&usage);
    (error.kind() == ErrorKind::MissingRequiredArgument).then(|| {
        let is_run = missing.iter().any(|name| name == "<RUN>");
        let lists = if is_run { "; `squad log` lists runs" } else { "" };
        let example = example(command).filter(|_| !is_run).unwrap_or_else(|| usage.to_owned());
        Failure::usage(format!("`{command}` needs {}", list(missing)))
            .hint(format!("{example}; `{command} --help` says more{lists}"))
    })
}

/// The first example in the help of a command that says more than its name.
fn example(command: &str) -> Option<String> {
    let help = command_named(command)?.get_after_help()?.to_string();
    let examples = help.split_once("Examples:\n")?.1.lines().map(|line| line.trim_start().split("  ").next());
    examples.flatten().find(|example| example.len() > command.len() && example.starts_with(command)).map(str::to_owned)
}

/// `squad decisions add`
fn command_named(name: &str) -> Option<clap::Command> {
    name.split(' ').skip(1).try_fold(Arguments::command(), |all, name| all.find_subcommand(name).cloned())
}

/// `squad log` of its usage, which is returned as well.
fn command_of(usage: &str) -> (&str, &str) {
    let usage = usage.trim_start_matches("Usage:").trim();
    let end = [" [", " <", " -"].iter().filter_map(|begin| usage.find(begin)).min();
    (&usage[..end.unwrap_or(usage.len())], usage)
}

/// A call with a command, an option or a word that there is not, in words. `hint`: the way out, where it is known.
fn unknown(error: &clap::Error, hint: Option<&str>) -> Option<Failure> {
    let text = |kind| error.get(kind).map(ContextValue::to_string);
    let usage = text(ContextKind::Usage)?;
    let (command, _) = command_of(&usage);
    let (message, found) = match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = text(ContextKind::InvalidArg)?;
            let takes = if word.starts_with('-') { "has no" } else { "takes no" };
            let near = text(ContextKind::SuggestedArg).map(|near| format!("did you mean `{near}`?"));
            (format!("`{command}` {takes} `{word}`"), near)
        }
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand)?;
            (format!("`{command}` has no command `{word}`"), similar_command(command, &word))
        }
        _ => return None,
    };
    let found = hint.map(str::to_owned).or(found);
    Some(Failure::usage(message).hint(found.unwrap_or_else(|| format!("`{command} --help` says what there is"))))
}

/// A command that a word may have been meant for: one that is spelled much like it, or one of another command.
fn similar_command(command: &str, word: &str) -> Option<String> {
    /// Of 1.0 for equal names.
    const LIKE: f64 = 0.6;
    let all = command_named(command)?;
    let names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
    let near = nearest(word, LIKE, names.into_iter()).map(str::to_owned);
    let below = all.get_subcommands().find(|other| other.find_subcommand(word).is_some());
    let path = near.or_else(|| below.map(|other| format!("{} {word}", other.get_name())));
    path.map(|path| format!("did you mean `{command} {path}`?"))
}

/// Help and version are answers; the rest are mistakes in the call.
fn misunderstood(mut ui: Ui, error: &clap::Error, hint: Option<&str>) -> u8 {
    if !error.use_stderr() {
        ui.data(&error.to_string());
        return ui.output_failure().map_or(0, |failure| {
            ui.failure(&failure);
            failure.kind.exit_code()
        });
    }
    if let Some(failure) = incomplete(error).or_else(|| unknown(error, hint)) {
        ui.failure(&failure);
    } else if ui.json() {
        let text = error.to_string();
        let mut parts = text.trim_start_matches("error: ").split("\n\n");
        let message = parts.next().unwrap_or_default().trim_end();
        let tip = parts.find_map(|part| part.trim().strip_prefix("tip: "));
        ui.failure(&Failure::usage(message).hint(tip.unwrap_or("see --help")));
    } else {
        ui.say(error.to_string().trim_end());
    }
    FailureKind::Usage.exit_code()
}
