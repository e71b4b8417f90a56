//! A process that carries out one run, so that server, client and terminal may end before it. It is the same program in
//! a session of its own. It reads its request from standard input, and reports on standard output when the run is
//! durable and when it has ended: stopping engines and tidying the repository may take longer than the work.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Take, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

use super::place::{open_without_team, require_sound};
use crate::engine::command::blueprint::Blueprint;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Event, EventKind, RunId};
use crate::ops::run::orchestrate;
use crate::ops::run::order::{NamedMember, Order, flag_settings};
use crate::ops::team::engines;
use crate::ops::team::members::named_agents;
use crate::ops::{Project, own_settings};
use crate::policy::Permissions;
use crate::pool::Show;
use crate::program::Program;
use crate::route::RouteOptions;

/// The input of a runner.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunRequest {
    pub(crate) message: String,
    /// Named members with their tasks; if there are none, the message is routed.
    pub(crate) members: Vec<NamedMember>,
    pub(crate) agents: Vec<String>,
    pub(crate) permissions: Permissions,
    /// Settings given as flags, by flag name without dashes.
    pub(crate) flags: BTreeMap<String, String>,
}

/// The output of a runner, one JSON value per line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Notice {
    Run(RunId),
    Failure(Failure),
    Ended,
}

/// A run that has started, and its process.
pub(crate) struct StartedRun {
    pub(crate) run: RunId,
    /// The ledger's tip before the run.
    pub(crate) tip: Option<String>,
    child: Child,
    output: BufReader<Take<ChildStdout>>,
}

impl StartedRun {
    /// Waits for the run's end, calls `ended`, then waits for its process, so that no zombie stays.
    pub(crate) fn wait(self, ended: impl FnOnce()) {
        let Self { mut child, mut output, .. } = self;
        if !matches!(read_notice(&mut output), Ok(Notice::Ended)) {
            let _ = child.wait();
        }
        ended();
        let _ = child.wait();
    }
}

/// Most bytes of a runner's output.
const LONGEST_OUTPUT: u64 = 1024 * 1024;

/// A runner that waits for its request.
pub(crate) struct Runner {
    command: Command,
    process: Option<Process>,
}

struct Process {
    child: Child,
    output: BufReader<Take<ChildStdout>>,
}

impl Runner {
    pub(crate) fn spawn(env: &Env, directory: &Path) -> Result<Self, Failure> {
        let program = env.program.as_ref().ok_or_else(|| Failure::failed("this program's own path is not known"))?;
        let mut command = Program::of_user(program).command_apart();
        command.arg("-C").arg(directory).arg("carry");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = Some(Process::spawn(&mut command)?);
        Ok(Self { command, process })
    }

    /// Sends the request. When this returns, the run is in the ledger.
    pub(crate) fn start(mut self, project: &Project, request: &RunRequest) -> Result<StartedRun, Failure> {
        let tip = project.repository.ledger().tip()?;
        let request = serde_json::to_vec(request).map_err(|error| cannot_start(&error))?;
        let mut sent = self.process.as_mut().map(|process| process.send(&request));
        if !matches!(sent, Some(Ok(()))) {
            // The process was ended while it waited. A runner acts only on a complete request, so nothing has begun.
            self.dismiss();
            sent = Some(self.process.insert(Process::spawn(&mut self.command)?).send(&request));
        }
        let Some(Process { mut child, mut output }) = self.process.take() else {
            return Err(cannot_start(&"it is not there"));
        };
        match read_notice(&mut output) {
            Ok(Notice::Run(run)) => Ok(StartedRun { run, tip, child, output }),
            Ok(Notice::Failure(failure)) => {
                let _ = child.wait();
                Err(failure)
            }
            notice @ (Ok(Notice::Ended) | Err(_)) => {
                let _ = child.kill();
                let ended = child.wait();
                let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                let failure = sent.and_then(Result::err).or(notice.err());
                let reason = failure.map_or(status, |error| error.to_string());
                Err(cannot_start(&format!("it said nothing ({reason})")))
            }
        }
    }

    fn dismiss(&mut self) {
        if let Some(Process { mut child, .. }) = self.process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A runner without a request has changed nothing.
impl Drop for Runner {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl Process {
    fn spawn(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.spawn().map_err(|error| cannot_start(&error))?;
        let output = child.stdout.take().ok_or_else(|| cannot_start(&"it has no standard output"))?;
        Ok(Self { child, output: BufReader::new(output.take(LONGEST_OUTPUT)) })
    }

    /// Sends the request and closes the input, which ends the request.
    fn send(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.child.stdin.take().map_or(Ok(()), |mut input| input.write_all(request))
    }
}

fn cannot_start(error: &dyn Display) -> Failure {
    Failure::failed(format!("the run's process cannot be started: {error}"))
}

/// Reads the next line of a runner's output.
fn read_notice(output: &mut impl BufRead) -> std::io::Result<Notice> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// The main function of a runner.
pub(crate) fn carry(env: &Env, directory: &Path, input: &[u8], mut out: Box<dyn Write + Send>) -> Result<(), Failure> {
    leave_terminal();
    let prepared = serde_json::from_slice(input)
        .map_err(|error| Failure::usage(format!("a runner is told what to do by `squad mcp`: {error}")))
        .and_then(|request| prepare(env, directory, request));
    let (project, order) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            say(&mut *out, &Notice::Failure(failure.clone()));
            return Err(failure);
        }
    };
    let (mut announcer, ended) = orchestrate::run(env, &project, order, Announcer { out, has_begun: false });
    if let (Err(failure), false) = (&ended, announcer.has_begun) {
        say(&mut *announcer.out, &Notice::Failure(failure.clone()));
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
        project.require_sound()?
    } else {
        require_sound(&project)?
    }
    engines::check_names(&project)?;
    if let Some(profile) = &described {
        project.settings.engine.name.clone_from(&profile.name);
    }
    let script = engines::script(&project.settings, &project.folder.root)?;
    let agents = named_agents(&project.team, &agents)?;
    let default_tier = project.settings.sessions.default_tier;
    let order = Order {
        message,
        route_options: RouteOptions { agents, tier: None, default_tier },
        flags,
        attachments: Vec::new(),
        permissions,
        script,
        // A command in the foreground lands the decisions.
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

/// The engine, chats, time limit and roles that environment variables describe.
pub(crate) fn described(env: &Env, directory: &Path) -> Result<Blueprint, Failure> {
    let users = own_settings(env).engines;
    Blueprint::from_environment(&env.os_variables(), directory, &users)
        .map_err(|wrong| Failure::usage(wrong.join("\n")).hint("`squad mcp --help` says what these variables mean"))
}

/// Ignores errors: the run continues after its reader has gone.
fn say(out: &mut dyn Write, notice: &Notice) {
    let line = serde_json::to_string(notice).unwrap_or_default();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Reports the run's id once it is durable, and the run's end.
struct Announcer {
    out: Box<dyn Write + Send>,
    has_begun: bool,
}

impl Show for Announcer {
    fn show(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted { .. } => {
                self.has_begun = true;
                say(&mut *self.out, &Notice::Run(event.run.clone()));
            }
            EventKind::RunCompleted { .. } => say(&mut *self.out, &Notice::Ended),
            _ => {}
        }
    }
}

/// Leaves the terminal's session and process group, so that neither ends this process.
#[cfg(unix)]
fn leave_terminal() {
    // It fails only for a process group leader, which a runner never is.
    let _ = rustix::process::setsid();
}

#[cfg(not(unix))]
fn leave_terminal() {}
