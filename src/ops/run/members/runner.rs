//! A process that is the host of one run, so that server, client and terminal may end before it. It is the same program
//! in a session of its own. It takes its order on standard input, and reports on standard output the run's first event,
//! once it is durable, and its last: stopping engines and tidying the repository may take longer than the work.
//!
//! A runner that does not confirm in time is replaced: somebody may have suspended it. It never gets the word to go, so
//! it does nothing if it continues, and two processes cannot act on one request.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::chats;
use super::place::require_sound;
use crate::engine::command::blueprint::Blueprint;
use crate::env::Env;
use crate::error::Failure;
use crate::git;
use crate::model::{Event, EventKind, RunId, plural};
use crate::ops::run::host::{FromClient, FromHost, Request, next, to_line};
use crate::ops::run::orchestrate;
use crate::ops::run::order::{Order, flag_settings};
use crate::ops::team::engines;
use crate::ops::{Project, Workspace, own_settings};
use crate::pool::Show;
use crate::program::{Program, leave_terminal};

/// How long a runner may take to confirm its request. The second one is new and has no successor, so it gets longer.
const HAND_OVER: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// How long it may then take until the run is in the ledger.
const BEGINNING: Duration = Duration::from_secs(120);
/// How long to read what a runner has said that has ended.
const LAST_NOTICE: Duration = Duration::from_secs(1);

/// A run that has started, and its process.
pub(crate) struct StartedRun {
    pub(crate) run: RunId,
    /// The ledger's tip before the run.
    pub(crate) tip: Option<String>,
    process: Process,
}

impl StartedRun {
    /// Waits for the run's end, calls `ended`, then waits for its process, so that no zombie stays. Returns why the
    /// process could not carry out the run, or record it.
    pub(crate) fn wait(self, ended: impl FnOnce()) -> Option<Failure> {
        let Self { process: Process { mut child, notices, .. }, .. } = self;
        let mut notice = notices.recv().ok();
        if !matches!(notice, Some(FromHost::Event(_))) {
            let _ = child.wait();
        }
        ended();
        let _ = child.wait();
        if let Some(FromHost::Event(_)) = notice {
            notice = notices.recv_timeout(LAST_NOTICE).ok();
        }
        if let Some(FromHost::Failed(failure)) = notice { Some(*failure) } else { None }
    }
}

/// A runner that waits for its request.
pub(crate) struct Runner {
    command: Command,
    process: Option<Process>,
}

struct Process {
    child: Child,
    notices: Receiver<FromHost>,
}

impl Runner {
    pub(crate) fn spawn(env: &Env, directory: &Path) -> Result<Self, Failure> {
        let program = env.program.as_ref().ok_or_else(|| Failure::failed("this program's own path is not known"))?;
        if !directory.is_dir() {
            return Err(git::Error::NoFolder { path: directory.to_owned() }.into());
        }
        let mut command = Program::of_user(program).command_apart();
        // This process's own working directory may have been deleted and made again.
        command.arg("-C").arg(directory).arg("carry").current_dir(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = Some(Process::spawn(&mut command)?);
        Ok(Self { command, process })
    }

    /// Sends the request. When this returns, the run is in the ledger.
    pub(in crate::ops) fn start(mut self, project: &Project, request: Request) -> Result<StartedRun, Failure> {
        let tip = project.repository.ledger().tip()?;
        let process = self.hand_over(&to_line(&FromClient::Orchestrate(Box::new(request))).into(), HAND_OVER)?;
        match process.notices.recv_timeout(BEGINNING) {
            Ok(FromHost::Event(event)) => Ok(StartedRun { run: event.run, tip, process }),
            Ok(FromHost::Failed(failure)) => {
                process.end();
                Err(*failure)
            }
            Err(RecvTimeoutError::Timeout) => {
                process.end();
                Err(cannot_start(&format!("it did not begin within {}, and was ended", seconds(BEGINNING)))
                    .hint("`squad log` shows whether a run has begun"))
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(cannot_start(&process.last_words())),
        }
    }

    /// Gives the request to a process that confirms it.
    fn hand_over(&mut self, request: &Arc<[u8]>, patience: [Duration; 2]) -> Result<Process, Failure> {
        let mut reason = String::new();
        for patience in patience {
            let process = self.process.take().map_or_else(|| Process::spawn(&mut self.command), Ok)?;
            match process.hand_over(request, patience) {
                Ok(process) => return Ok(process),
                Err(NotTaken::Failure(failure)) => return Err(failure),
                Err(NotTaken::Silent(why)) => reason = why,
            }
        }
        Err(cannot_start(&reason))
    }
}

/// A runner without a request has changed nothing.
impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.end();
        }
    }
}

/// Why a process did not take a request. It has been ended.
enum NotTaken {
    /// It confirmed nothing, so another one may have the request.
    Silent(String),
    Failure(Failure),
}

impl Process {
    fn spawn(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.spawn().map_err(|error| cannot_start(&error))?;
        let output = child.stdout.take().ok_or_else(|| cannot_start(&"it has no standard output"))?;
        let (sender, notices) = channel();
        let process = Self { child, notices };
        let mut output = BufReader::new(output);
        let read = move || while next(&mut output).is_some_and(|notice| sender.send(notice).is_ok()) {};
        match thread::Builder::new().spawn(read) {
            Ok(_) => Ok(process),
            Err(error) => {
                process.end();
                Err(cannot_start(&error))
            }
        }
    }

    /// Sends the request, and the word to go once it is confirmed.
    fn hand_over(mut self, request: &Arc<[u8]>, patience: Duration) -> Result<Self, NotTaken> {
        let Some(input) = self.child.stdin.take() else { return Err(NotTaken::Silent(self.last_words())) };
        let (sender, sent) = channel();
        let request = Arc::clone(request);
        // A suspended process reads nothing, and a long request does not fit into a pipe.
        let writer = thread::Builder::new().spawn(move || sender.send(write(input, &request)));
        if let Err(error) = writer {
            self.end();
            return Err(NotTaken::Silent(error.to_string()));
        }
        match self.notices.recv_timeout(patience) {
            Ok(FromHost::Ready {}) => {}
            Ok(FromHost::Failed(failure)) => {
                self.end();
                return Err(NotTaken::Failure(*failure));
            }
            Err(RecvTimeoutError::Timeout) => {
                self.end();
                return Err(NotTaken::Silent(format!("it did not answer within {}", seconds(patience))));
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Err(NotTaken::Silent(self.last_words())),
        }
        // It has read the whole request, so the writer is done.
        match sent
            .recv()
            .map_err(io::Error::other)
            .flatten()
            .and_then(|input| write(input, &to_line(&FromClient::Go {})))
        {
            Ok(_) => Ok(self),
            Err(_) => Err(NotTaken::Silent(self.last_words())),
        }
    }

    /// Why a process says no more. Ends it.
    fn last_words(mut self) -> String {
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        format!("it said nothing ({status})")
    }

    /// Kills the process, without waiting: a process may take its time even then.
    fn end(mut self) {
        let _ = self.child.kill();
        // So that no zombie stays.
        let _ = thread::Builder::new().spawn(move || self.child.wait());
    }
}

fn write(mut input: ChildStdin, bytes: &[u8]) -> io::Result<ChildStdin> {
    input.write_all(bytes).map(|()| input)
}

fn seconds(patience: Duration) -> String {
    plural(patience.as_secs().try_into().unwrap_or(usize::MAX), "second")
}

fn cannot_start(error: &dyn Display) -> Failure {
    Failure::failed(format!("the run's process cannot be started: {error}"))
}

/// The main function of a runner.
pub(crate) fn carry(
    env: &Env,
    directory: &Path,
    input: fn() -> Box<dyn BufRead>,
    mut out: Box<dyn Write + Send>,
) -> Result<(), Failure> {
    make_room_for_files();
    let mut input = input();
    let prepared = match next(&mut *input) {
        Some(FromClient::Orchestrate(request)) => {
            leave_terminal();
            say(&mut *out, &FromHost::Ready {});
            prepare(env, directory, *request)
        }
        _ => Err(Failure::usage("a runner is told what to do by `squad mcp`")),
    };
    let (project, order, chats) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            say(&mut *out, &FromHost::Failed(Box::new(failure.clone())));
            return Err(failure);
        }
    };
    if !matches!(next(&mut *input), Some(FromClient::Go {})) {
        return Err(Failure::failed("nobody waits for this run any more"));
    }
    let (mut announcer, ended) = orchestrate::run(env, &project, order, Announcer { out, chats });
    let ended = ended.and_then(|ended| {
        let unrecorded = |reason| Failure::failed(format!("the run's end could not be recorded: {reason}"));
        ended.unrecorded.map_or(Ok(()), |reason| Err(unrecorded(reason)))
    });
    if let Err(failure) = &ended {
        say(&mut *announcer.out, &FromHost::Failed(Box::new(failure.clone())));
    }
    ended
}

fn prepare(env: &Env, directory: &Path, request: Request) -> Result<(Project, Order, Vec<File>), Failure> {
    let flags = flag_settings(&request.flags);
    let Blueprint { profile: described, .. } = described(env, directory)?;
    let mut project = Project::open_without_team(env, directory, flags)?;
    if request.members.is_empty() {
        Workspace::find(env, directory)?;
        project.require_sound()?
    } else {
        require_sound(&project)?
    }
    engines::check_names(&project)?;
    if let Some(profile) = &described {
        project.settings.engine.name.clone_from(&profile.name);
    }
    let script = engines::script(&project.settings, &project.folder.root)?;
    let chats = chats::lock_all(&project.local(), &request.members)?;
    let order = Order { script, described, ..request.order(project.settings.sessions.default_tier) };
    Ok((project, order, chats))
}

/// The engine, chats, time limit and roles that environment variables describe.
pub(crate) fn described(env: &Env, directory: &Path) -> Result<Blueprint, Failure> {
    let users = own_settings(env).engines;
    Blueprint::from_environment(&env.os_variables(), directory, &users)
        .map_err(|wrong| Failure::usage(wrong.join("\n")).hint("`squad mcp --help` says what these variables mean"))
}

/// Ignores errors: the run continues after its reader has gone.
fn say(out: &mut dyn Write, notice: &FromHost) {
    let _ = out.write_all(&to_line(notice)).and_then(|()| out.flush());
}

/// Reports the run's first event once it is durable, and its last.
struct Announcer {
    out: Box<dyn Write + Send>,
    /// The locked chats of its members.
    chats: Vec<File>,
}

impl Show for Announcer {
    fn show(&mut self, event: &Event) {
        let is_end = matches!(event.kind, EventKind::RunCompleted(_));
        if is_end {
            // The caller may continue them at once, while this process still tidies the repository.
            self.chats.clear();
        }
        if is_end || matches!(event.kind, EventKind::RunStarted { .. }) {
            say(&mut *self.out, &FromHost::Event(Box::new(event.clone())));
        }
    }
}

/// Has the system enlarge this process's table of open files while it has one thread. With several, Linux takes some
/// 10 ms for it (a grace period of RCU) at each power of two from 64, and a member at work has five files open.
#[cfg(target_os = "linux")]
fn make_room_for_files() {
    const FILES: i32 = 512;
    // It fails where fewer files are allowed.
    let _ = rustix::io::fcntl_dupfd_cloexec(io::stdin(), FILES - 1);
}

#[cfg(not(target_os = "linux"))]
fn make_room_for_files() {}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    /// A runner that is this script, in a folder of its own.
    fn runner(folder: &Path, script: &str) -> Runner {
        let mut command = Program::of_user(Path::new("/bin/sh")).command_apart();
        command.args(["-c", script]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = Process::spawn(&mut command).ok();
        Runner { command, process }
    }

    fn line(frame: &FromHost) -> String {
        String::from_utf8(to_line(frame)).expect("UTF-8").trim_end().to_owned()
    }

    /// Any event of a run.
    fn event() -> FromHost {
        let (run, at) = (RunId::parse("20260101-000000-abcdef").expect("an id"), jiff::Timestamp::UNIX_EPOCH);
        let kind = EventKind::Answer { text: "Done.".to_owned() };
        let (agent, position, causes) = Default::default();
        let id = crate::model::EntryId::new("20260101T000000.000Z-0001");
        FromHost::Event(Box::new(Event { seq: 1, at, run, agent, kind, id, position, causes }))
    }

    /// More than fits into a pipe.
    fn long() -> Arc<[u8]> {
        [vec![b'x'; 1024 * 1024], vec![b'\n']].concat().into()
    }

    #[test]
    fn a_suspended_runner_is_replaced_and_never_acts() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            "if mkdir first; then kill -STOP $$; name=old; else name=new; fi
            read request; echo '{}'; read go; [ \"$go\" = '{{\"go\":{{}}}}' ] && echo acted >$name; echo '{}'",
            line(&FromHost::Ready {}),
            line(&event())
        );
        let mut runner = runner(folder.path(), &script);
        let second = runner.hand_over(&long(), [Duration::from_secs(1), Duration::from_secs(60)]).expect("it takes it");
        assert!(matches!(second.notices.recv(), Ok(FromHost::Event(_))));
        assert_eq!(fs::read_to_string(folder.path().join("new")).ok().as_deref(), Some("acted\n"));
        assert!(!folder.path().join("old").exists());
    }

    #[test]
    fn a_failure_is_heard_whenever_it_comes() {
        let failure = Failure::failed("the disk is full");
        let (said, event) = (line(&FromHost::Failed(Box::new(failure.clone()))), line(&event()));
        for (ends, expected) in [
            (format!("echo '{said}'"), true),
            (format!("echo '{event}'; echo '{said}'"), true),
            (format!("echo '{event}'"), false),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let ready = line(&FromHost::Ready {});
            let mut runner =
                runner(folder.path(), &format!("read request; echo '{ready}'; read go; echo '{event}'; {ends}"));
            let process = runner.hand_over(&long(), HAND_OVER).expect("it takes it");
            assert!(matches!(process.notices.recv(), Ok(FromHost::Event(_))));
            let started =
                StartedRun { run: RunId::parse("20260101-000000-abcdef").expect("an id"), tip: None, process };
            assert_eq!(started.wait(|| ()), expected.then(|| failure.clone()), "{ends}");
        }
    }

    #[test]
    fn runners_that_are_all_suspended_are_a_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        // This one has read its request and would confirm it next.
        let mut runner =
            runner(folder.path(), "read request; kill -STOP $$; echo '{\"ready\":{}}'; read go; touch acted");
        let failed = runner.hand_over(&long(), [Duration::from_secs(1); 2]).err().expect("nobody takes it");
        assert_eq!(failed.message, "the run's process cannot be started: it did not answer within 1 second");
        assert!(!folder.path().join("acted").exists());
    }
}
