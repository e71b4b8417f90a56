use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::{disk, error::Error};
use crate::program::{Program, ProgramRefusal, Programs, Variables};
use crate::sandbox::Sandbox;

/// Everything this module knows about the environment; it never reads the process environment itself.
#[derive(Clone)]
pub(crate) struct Environment {
    /// The `git` program: an absolute path, or a name to look up.
    pub(super) git: PathBuf,
    pub(super) programs: Programs,
    /// All variables passed to `git`: `PATH`, `HOME`, `GIT_CONFIG_GLOBAL`, `GIT_AUTHOR_NAME`, …
    pub(super) variables: Variables,
}

/// Omits the variables: some hold secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("git", &self.git).finish_non_exhaustive()
    }
}

impl Environment {
    /// For a user working in `directory`.
    pub(crate) fn new(git: PathBuf, directory: &Path, mut variables: Variables) -> Self {
        let programs = Programs::new(directory, &variables);
        programs.restrict(&mut variables);
        Self { git, programs, variables }
    }

    pub(super) fn git(&self) -> Result<Program, ProgramRefusal> {
        self.programs.named(&self.git)
    }

    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }
}

/// Variables that tell a hook which repository it runs in. They name the caller's repository and index, perhaps a
/// temporary one, so we remove them and discover the repository ourselves. From `git rev-parse --local-env-vars`,
/// without those that carry settings.
const REPOSITORY_VARIABLES: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Variables through which a signing program could prompt the user.
const PROMPT_VARIABLES: [&str; 4] = ["DISPLAY", "GPG_TTY", "SSH_ASKPASS", "WAYLAND_DISPLAY"];

/// Settings of every call: no hook and no file system monitor runs, which an agent may have configured; writes are
/// flushed; paths are literal and not patterns; what the user prefers to read and search by changes no answer.
const SETTINGS: [&str; 15] = [
    "--literal-pathspecs",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.fsync=all",
    "-c",
    "core.fsyncMethod=fsync",
    "-c",
    "grep.patternType=basic",
    "-c",
    "trailer.separators=:",
    "-c",
    "log.showSignature=false",
];

const TIMEOUT: Duration = Duration::from_secs(60);

/// One call of the `git` program, without a terminal and without prompts.
pub(super) struct Call {
    command: Result<Command, ProgramRefusal>,
    display: String,
    input: Vec<u8>,
    stdin: Option<File>,
    timeout: Duration,
}

pub(super) struct Output {
    status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Call {
    pub(super) fn new(environment: &Environment, directory: &Path, arguments: &[&str]) -> Self {
        let command = environment.git().map(|git| Self::prepared(git.command(), environment, directory, arguments));
        Self { command, display: shown("git", arguments), input: Vec::new(), stdin: None, timeout: TIMEOUT }
    }

    /// A call of git on what agents can write: it runs what their settings name, as they could, in their sandbox.
    pub(super) fn inside(sandbox: &Sandbox, environment: &Environment, directory: &Path, arguments: &[&str]) -> Self {
        let inside = |git: &Program| Self::prepared(sandbox.command(git), environment, directory, arguments);
        Self { command: environment.git().map(|git| inside(&git)), ..Self::new(environment, directory, arguments) }
    }

    fn prepared(mut command: Command, environment: &Environment, directory: &Path, arguments: &[&str]) -> Command {
        command
            .current_dir(directory)
            .env_clear()
            .envs(&environment.variables)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            // A filter in Python loads no module of the work tree.
            .env("PYTHONSAFEPATH", "1")
            // Asking for a password fails at once instead of waiting for one.
            .env("GIT_ASKPASS", "false")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .args(SETTINGS)
            .args(arguments);
        for name in REPOSITORY_VARIABLES.iter().chain(&PROMPT_VARIABLES) {
            command.env_remove(name);
        }
        command.env("SSH_ASKPASS", "false");
        own_process_group(&mut command);
        command
    }

    /// As if that folder were the work tree.
    pub(super) fn in_work_tree(mut self, git_dir: &Path, folder: &Path) -> Self {
        if let Ok(command) = &mut self.command {
            command.current_dir(folder).env("GIT_DIR", git_dir).env("GIT_WORK_TREE", folder);
        }
        self
    }

    pub(super) fn arguments<A: AsRef<OsStr>>(mut self, arguments: &[A]) -> Self {
        // What is called is named, and not each path.
        if !self.display.contains(' ') {
            let words = arguments.iter().take(1).filter_map(|word| word.as_ref().to_str());
            self.display = shown(&self.display, &words.collect::<Vec<_>>());
        }
        self.command = self.command.map(|mut command| {
            command.args(arguments);
            command
        });
        self
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.command = self.command.map(|mut command| {
            command.env(name, value);
            command
        });
        self
    }

    pub(super) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Keeps a file, and the lock on it, open for as long as git runs, even if we die. It becomes git's stdin, unless
    /// the call has input.
    pub(super) fn holding(mut self, file: Option<File>) -> Self {
        self.stdin = file;
        self
    }

    pub(super) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs it to its end; any exit status is `Ok`. `Err`: it could not be started or did not end in time.
    pub(super) fn run(self) -> Result<Output, Error> {
        self.run_while(|| ()).map(|(output, ())| output)
    }

    /// Like [`Self::run`], and does something else once it is started.
    fn run_while<T>(mut self, meanwhile: impl FnOnce() -> T) -> Result<(Output, T), Error> {
        let (display, input) = (self.display.clone(), std::mem::take(&mut self.input));
        let mut failure = None;
        let answered = disk::git(&display, || {
            self.answer(input, meanwhile).map_err(|error| {
                failure = Some(error);
                io::ErrorKind::Other.into()
            })
        });
        answered.map_err(|cause| failure.unwrap_or(Error::Program { command: display, message: cause.to_string() }))
    }

    fn answer<T>(&mut self, input: Vec<u8>, meanwhile: impl FnOnce() -> T) -> Result<(Output, T), Error> {
        let stdin = (!input.is_empty()).then(Stdio::piped);
        let child = self.spawn(stdin, Stdio::piped)?;
        communicate(child, input, self.timeout, meanwhile).map_err(|cause| self.failure(cause))
    }

    /// Runs it; a failing exit status is an error.
    pub(super) fn succeed(self) -> Result<Output, Error> {
        self.succeed_while(|| ()).map(|(output, ())| output)
    }

    /// Like [`Self::succeed`], and does something else once it is started.
    pub(super) fn succeed_while<T>(self, meanwhile: impl FnOnce() -> T) -> Result<(Output, T), Error> {
        let command = self.display.clone();
        let (answer, done) = self.run_while(meanwhile)?;
        match answer.is_success() {
            true => Ok((answer, done)),
            false => Err(Error::Program { command, message: answer.error_line() }),
        }
    }

    /// Starts it in the background.
    pub(super) fn detach(mut self) -> Result<(), Error> {
        let mut child = self.spawn(None, Stdio::null)?;
        // Without a wait the child would stay a zombie for as long as we live.
        thread::spawn(move || child.wait());
        Ok(())
    }

    fn spawn(&mut self, input: Option<Stdio>, output: fn() -> Stdio) -> Result<Child, Error> {
        let command = self.command.as_mut().map_err(|unfit| Error::NoGit(unfit.clone()))?;
        let input = input.or_else(|| self.stdin.take().map(Stdio::from)).unwrap_or_else(Stdio::null);
        let child = command.stdin(input).stdout(output()).stderr(output()).spawn();
        child.map_err(|cause| self.failure(cause.to_string()))
    }

    fn failure(&self, message: String) -> Error {
        let directory = self.command.as_ref().ok().and_then(Command::get_current_dir);
        let message = match directory.filter(|directory| !directory.is_dir()) {
            Some(gone) => format!("{} is gone", gone.display()),
            None => message,
        };
        Error::Program { command: self.display.clone(), message }
    }
}

impl Output {
    pub(super) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// What it printed, with a NUL byte behind each.
    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout.split(|byte| *byte == 0).filter(|record| !record.is_empty())
    }

    /// Its stdout, without trailing white space.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// The non-empty lines of stderr.
    pub(super) fn error_lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.stderr);
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The line of stderr that best tells what went wrong.
    pub(super) fn error_line(&self) -> String {
        let lines = self.error_lines();
        let is_telling = |line: &&String| line.starts_with("fatal: ") || line.starts_with("error: ");
        let line = lines.iter().find(is_telling).or(lines.last());
        line.map_or_else(|| self.status.to_string(), String::clone)
    }
}

/// Writes the child's input and reads both outputs at once, so that no pipe can fill up and block it.
fn communicate<T>(
    mut child: Child,
    input: Vec<u8>,
    timeout: Duration,
    meanwhile: impl FnOnce() -> T,
) -> Result<(Output, T), String> {
    let deadline = Instant::now() + timeout;
    if let Some(mut stdin) = child.stdin.take() {
        // If the child ends without reading everything, the pipe breaks; its exit status tells what happened.
        thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = read_in_background(child.stdout.take());
    let stderr = read_in_background(child.stderr.take());
    let done = meanwhile();
    let outputs =
        [stdout, stderr].map(|output| output.recv_timeout(deadline.saturating_duration_since(Instant::now())));
    let status = wait(&mut child, deadline);
    match (outputs, status) {
        ([Ok(stdout), Ok(stderr)], Ok(Some(status))) => Ok((Output { status, stdout, stderr }, done)),
        (_, Err(cause)) => Err(cause.to_string()),
        _ => {
            kill(&mut child);
            Err(format!("it did not end within {} seconds", timeout.as_secs()))
        }
    }
}

/// A call without the settings before its subcommand.
fn shown(program: &str, arguments: &[&str]) -> String {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-c" => drop(words.next()),
            option if option.starts_with('-') => {}
            subcommand => return [&[program, subcommand], words.as_slice()].concat().join(" "),
        }
    }
    program.to_owned()
}

fn read_in_background(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Output read before an error is still worth showing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        // The receiver is gone after a timeout.
        let _ = sender.send(bytes);
    });
    receiver
}

/// The pipes are closed by now, so it has ended, or is about to.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_micros(10);
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() >= deadline => return Ok(None),
            None => thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Runs git in its own process group: Ctrl-C does not stop it halfway, a program that reads from the terminal is
/// stopped, and the whole group can be killed together.
#[cfg(unix)]
fn own_process_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_process_group(_command: &mut Command) {}

fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended just now.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_subcommand() {
        for (arguments, name) in [
            (&["fetch", "-c", "x"][..], "git fetch -c x"),
            (&["-c", "a=b", "--literal-pathspecs", "status", "-z"], "git status -z"),
            (&["-c", "a=b"], "git"),
            (&["-c"], "git"),
            (&[], "git"),
        ] {
            assert_eq!(shown("git", arguments), name, "{arguments:?}");
        }
    }
}
