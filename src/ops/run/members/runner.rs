//! A process that carries one run, so that server, client and terminal may die: the same program, in a session of its
//! own. It is told on its standard input what to do, and says on its standard output when the run is durable, and when
//! its end is: ending engines and tidying the repository take longer than many a member.

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

/// What it says, one a line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Notice {
    Run(RunId),
    Failure(Failure),
    Ended,
}

/// A run that has begun, and its process.
pub(crate) struct StartedRun {
    pub(crate) run: RunId,
    /// The ledger's, before the run began.
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

/// Of a runner, in bytes.
const LONGEST_OUTPUT: u64 = 1024 * 1024;

/// A runner that has not been told what to do. It starts while its request is checked.
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

    /// When this returns, the run is in the ledger.
    pub(crate) fn start(mut self, project: &Project, request: &RunRequest) -> Result<StartedRun, Failure> {
        let tip = project.repository.ledger().tip()?;
        let request = serde_json::to_vec(request).map_err(|error| cannot_start(&error))?;
        let mut sent = self.process.as_mut().map(|process| process.send(&request));
        if !matches!(sent, Some(Ok(()))) {
            // It was ended while it waited. It acts on whole requests only, so nothing has begun.
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
            read_notice @ (Ok(Notice::Ended) | Err(_)) => {
                let _ = child.kill();
                let ended = child.wait();
                let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                let failure = sent.and_then(Result::err).or(read_notice.err());
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

/// It has changed nothing yet.
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

    /// The end of its input is the end of the request.
    fn send(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.child.stdin.take().map_or(Ok(()), |mut input| input.write_all(request))
    }
}

fn cannot_start(error: &dyn Display) -> Failure {
    Failure::failed(format!("the run's process cannot be started: {error}"))
}

/// The next line of a runner's output.
fn read_notice(output: &mut impl BufRead) -> std::io::Result<Notice> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
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
            say(&mut *out, &Notice::Failure(failure.clone()));
            return Err(failure);
        }
    };
    let (mut greeter, ended) = orchestrate::run(env, &project, order, Announcer { out, has_begun: false });
    if let (Err(failure), false) = (&ended, greeter.has_begun) {
        say(&mut *greeter.out, &Notice::Failure(failure.clone()));
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
fn say(out: &mut dyn Write, notice: &Notice) {
    let line = serde_json::to_string(notice).unwrap_or_default();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Says which run it is, once that is durable, and when it has ended.
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

/// A terminal that closes, or a group of processes that is ended, takes this one not along.
#[cfg(unix)]
fn leave_terminal() {
    // It fails for the leader of a group, which nobody starts this as.
    let _ = rustix::process::setsid();
}

#[cfg(not(unix))]
fn leave_terminal() {}
