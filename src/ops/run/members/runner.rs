//! A process that carries one run, so that server, client and terminal may die: the same program, in a session of its
//! own. It is told on its standard input what to do, and says on its standard output when the run is durable.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use serde::{Deserialize, Serialize};

use super::place::{insist_on_sound, open_without_team};
use crate::engine::command::blueprint::Blueprint;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Event, RunId, What};
use crate::ops::run::orchestrate;
use crate::ops::run::order::{NamedMember, Order, flag_settings};
use crate::ops::team::engines;
use crate::ops::team::members::named_agents;
use crate::ops::{Project, own_settings};
use crate::policy::Permissions;
use crate::pool::Show;
use crate::program::Program;
use crate::route::Wishes;

/// What a runner is told.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunRequest {
    pub(crate) message: String,
    /// Whose work it is, where they are named; otherwise it is routed.
    pub(crate) members: Vec<NamedMember>,
    pub(crate) agents: Vec<String>,
    pub(crate) permissions: Permissions,
    /// Settings by their flags, without dashes.
    pub(crate) flags: BTreeMap<String, String>,
}

/// What it says at the beginning.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Greeting {
    Run(RunId),
    Failure(Failure),
}

/// A run that has begun, and its process.
pub(crate) struct Begun {
    pub(crate) run: RunId,
    pub(crate) child: Child,
}

/// Starts a runner. When this returns, the run is in the ledger.
pub(crate) fn start(env: &Env, directory: &Path, request: &RunRequest) -> Result<Begun, Failure> {
    let program = env.program.as_ref().ok_or_else(|| Failure::failed("this program's own path is not known"))?;
    let mut command = Program::of_user(program).command_apart();
    command.arg("-C").arg(directory).arg("carry").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let failed =
        |error: &dyn std::fmt::Display| Failure::failed(format!("the run's process cannot be started: {error}"));
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed(&"it has no standard streams"));
    };
    let sent = serde_json::to_writer(&mut input, request).map_err(std::io::Error::from).and_then(|()| input.flush());
    drop(input);
    let mut line = String::new();
    // Only the greeting: what it started may hold its output open.
    let heard = BufReader::new(output.take(1024 * 1024)).read_line(&mut line);
    match serde_json::from_str(&line) {
        Ok(Greeting::Run(run)) => Ok(Begun { run, child }),
        Ok(Greeting::Failure(failure)) => {
            let _ = child.wait();
            Err(failure)
        }
        Err(_) => {
            let _ = child.kill();
            let ended = child.wait();
            let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            let reason = sent.and(heard.map(drop)).err().map_or(status, |error| error.to_string());
            Err(failed(&format!("it said nothing ({reason})")))
        }
    }
}

/// The runner's own side.
pub(crate) fn carry(env: &Env, directory: &Path, told: &[u8], mut out: Box<dyn Write + Send>) -> Result<(), Failure> {
    leave_terminal();
    let prepared = serde_json::from_slice(told)
        .map_err(|error| Failure::usage(format!("a runner is told what to do by `squad mcp`: {error}")))
        .and_then(|request| prepare(env, directory, request));
    let (project, order) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            greet(&mut *out, &Greeting::Failure(failure.clone()));
            return Err(failure);
        }
    };
    let (mut greeter, ended) = orchestrate::run(env, &project, order, Greeter(Some(out)));
    if let (Err(failure), Some(out)) = (&ended, greeter.0.as_mut()) {
        greet(out, &Greeting::Failure(failure.clone()));
    }
    ended.map(drop)
}

fn prepare(env: &Env, directory: &Path, request: RunRequest) -> Result<(Project, Order), Failure> {
    let RunRequest { message, members, agents, permissions, flags } = request;
    let Blueprint { profile: described, agents: roles, .. } = described(env, directory)?;
    let mut project = match roles {
        Some(_) => open_without_team(env, directory, flag_settings(&flags))?,
        None => Project::open(env, directory, flag_settings(&flags))?,
    };
    if members.is_empty() {
        project.insist_on_sound()?
    } else {
        insist_on_sound(&project)?
    }
    engines::check_names(&project)?;
    if let Some(profile) = &described {
        project.settings.engine.name.clone_from(&profile.name);
    }
    let script = engines::script(&project.settings, directory)?;
    let agents = named_agents(&project.team, &agents)?;
    let default_tier = project.settings.sessions.default_tier;
    let order = Order {
        message,
        wishes: Wishes { agents, tier: None, default_tier },
        flags,
        attachments: Vec::new(),
        permissions,
        script,
        // Nobody is in the foreground: what is decided lands when somebody says so.
        commit: false,
        ask: None,
        land: None,
        conversation: None,
        resumed: None,
        members,
        described,
    };
    Ok((project, order))
}

/// What the user's environment says of the engine, of chats, time and roles.
pub(crate) fn described(env: &Env, directory: &Path) -> Result<Blueprint, Failure> {
    let users = own_settings(env).engines;
    Blueprint::from_environment(&env.os_variables(), directory, &users)
        .map_err(|wrong| Failure::usage(wrong.join("\n")).hint("`squad mcp --help` says what these variables mean"))
}

/// Whoever started this may be gone; the work goes on.
fn greet(out: &mut dyn Write, greeting: &Greeting) {
    let line = serde_json::to_string(greeting).unwrap_or_default();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Says which run it is, once that is durable.
struct Greeter(Option<Box<dyn Write + Send>>);

impl Show for Greeter {
    fn show(&mut self, event: &Event) {
        if let (What::RunStarted { .. }, Some(mut out)) = (&event.what, self.0.take()) {
            greet(&mut *out, &Greeting::Run(event.run.clone()));
        }
    }
}

/// A terminal that closes, or a group of processes that is ended, takes this one not along.
#[cfg(unix)]
fn leave_terminal() {
    // It fails for the leader of a group, which nobody starts this as.
    let _ = rustix::process::setsid();
}

#[cfg(not(unix))]
fn leave_terminal() {}
