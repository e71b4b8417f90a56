//! The CLI's process: runs in its own process group, its stderr is recorded, and it is ended with everything it
//! started.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connection::{Connection, Incoming};
use super::options::{Home, Options};
use crate::engine::EngineError;
use crate::engine::process_group::{Ending, Mark, ProcessGroup};
use crate::model::{first_line, printable};
use crate::program::{Program, Programs};
use crate::sandbox::command_in;

/// Bytes of stderr that are kept for messages.
const MAX_STDERR: usize = 4 * 1024;
/// How long to wait for the exit status of an ended process, and for the rest of its stderr.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// What decides in its home which programs the CLI runs.
const SETTINGS: [&str; 8] = [
    "mcp-config.json",
    "lsp-config.json",
    "settings.json",
    "copilot-instructions.md",
    "hooks",
    "agents",
    "skills",
    "installed-plugins",
];

pub(crate) struct Process {
    child: Child,
    group: ProcessGroup,
    recorded: Arc<Mutex<VecDeque<u8>>>,
    /// Ends when stderr is closed.
    reader: JoinHandle<()>,
    mark: Mark,
}

impl Process {
    /// Starts the CLI as a server on its standard streams.
    pub(crate) fn start(
        program: &Program,
        options: &Options,
        home: &Home,
        incoming: Arc<dyn Incoming>,
    ) -> Result<(Self, Arc<Connection>), EngineError> {
        // Not the run id, since one run may have several engines: one after the other, or one to probe.
        let mut mark = Mark::new();
        let mut command = command(program, options, home);
        let (name, value) = mark.variable();
        let (mut child, group) = ProcessGroup::spawn(command.env(name, value))
            .map_err(|error| unusable(program.path(), &format!("cannot be run: {error}")))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(unusable(program.path(), "has no standard streams"));
        };
        let recorded = Arc::default();
        let reader = tokio::spawn(record_stderr(errors, Arc::clone(&recorded)));
        mark.guard(options.squad.as_deref());
        let process = Self { child, group, recorded, reader, mark };
        Ok((process, Connection::start(input, output, incoming)))
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.group.id()
    }

    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// Whether it was killed or has failed. One that found its input closed ends well.
    pub(crate) fn has_died(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// How the process ended, if it has, and its last line of stderr.
    pub(crate) async fn exit_report(&mut self) -> String {
        let ended = timeout(EXIT_TIMEOUT, self.child.wait()).await;
        if ended.is_ok() && !self.reader.is_finished() {
            // The last output may still be in the pipe, and a child process may hold the pipe open.
            let _ = timeout(EXIT_TIMEOUT, &mut self.reader).await;
        }
        let last = self.last_line();
        let last = if last.is_empty() { last } else { format!(": {last}") };
        match ended {
            Ok(Ok(status)) => format!("its process ended ({status}){last}"),
            _ => format!("its process is still running{last}"),
        }
    }

    fn last_line(&self) -> String {
        let bytes: Vec<u8> = self.recorded.lock().iter().copied().collect();
        let text = printable(&String::from_utf8_lossy(&bytes));
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        first_line(last, 200)
    }

    /// Ends the process within `grace`: closes its input, then signals it, then kills it. When its input closes, the
    /// CLI ends its tools' foreground shells; we find and end the others.
    pub(crate) async fn end(mut self, connection: &Connection, grace: Duration) {
        self.mark.look();
        connection.close_input();
        let half = grace / 2;
        if timeout(half, self.child.wait()).await.is_err() {
            self.group.signal(Ending::Asked);
            if timeout(half, self.child.wait()).await.is_err() {
                self.kill().await;
            }
        }
        connection.fail("the engine was stopped");
        self.mark.end().await;
    }

    /// Kills a process that is no longer useful.
    pub(crate) async fn kill(&mut self) {
        self.mark.look();
        let _ = self.group.kill(&mut self.child).await;
        self.mark.end().await;
    }
}

/// The processor time that a process has used, in any unit; `None` if unknown.
#[cfg(target_os = "linux")]
pub(super) fn processor_time(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may contain anything. After it, the 12th and 13th fields are user and kernel time.
    let (_, fields) = text.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    Some(times.next()?.parse::<u64>().ok()? + times.next()?.parse::<u64>().ok()?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn processor_time(_id: u32) -> Option<u64> {
    None
}

fn command(program: &Program, options: &Options, home: &Home) -> Command {
    let sandbox = options.sandbox.clone().map(|sandbox| {
        let folder = home_folder(options, home);
        // What is not there cannot be allowed.
        let _ = folder.as_deref().map(std::fs::create_dir_all);
        let settings = SETTINGS.iter().filter_map(|name| Some(folder.as_ref()?.join(name))).collect::<Vec<_>>();
        sandbox.with_writable(folder).with_read_only(settings)
    });
    let mut command = Command::from(command_in(sandbox.as_ref(), program));
    command.args(["--server", "--stdio", "--no-auto-update"]);
    if options.provider.is_some() {
        command.arg("--no-auto-login");
    }
    let mut variables = options.variables.clone();
    // The CLI itself runs `git`, `gh` and the like, before any agent asks for anything.
    Programs::new(&options.directory, &variables).restrict(&mut variables);
    command.env_clear().envs(variables).env("SQUAD_RUN", &options.run);
    // With it, the CLI would require a token that is meant for another server.
    command.env_remove("COPILOT_CONNECTION_TOKEN");
    if let Home::Auto { local: folder } | Home::At(folder) = home {
        command.env("COPILOT_HOME", folder);
    }
    if options.provider.is_some() {
        // Sessions pass the key; tools inherit the environment and must not see it.
        command.env_remove("COPILOT_PROVIDER_API_KEY");
    }
    offline_needs(&mut command, options);
    command.current_dir(&options.directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The folder in which the CLI keeps its state.
fn home_folder(options: &Options, home: &Home) -> Option<PathBuf> {
    match home {
        Home::Auto { local: folder } | Home::At(folder) => Some(folder.clone()),
        Home::User => {
            let named = options.variable("COPILOT_HOME").map(PathBuf::from);
            named.or_else(|| Some(Path::new(options.variable("HOME")?).join(".copilot")))
        }
    }
}

/// With `COPILOT_OFFLINE`, the CLI refuses to start unless these variables name a model, although each session brings
/// its own.
fn offline_needs(command: &mut Command, options: &Options) {
    let Some(provider) = &options.provider else { return };
    if options.variable("COPILOT_OFFLINE").is_none() {
        return;
    }
    if options.variable("COPILOT_PROVIDER_BASE_URL").is_none() {
        command.env("COPILOT_PROVIDER_BASE_URL", &provider.base_url);
    }
    if options.variable("COPILOT_MODEL").is_none() {
        command.env("COPILOT_MODEL", provider.models.first().map_or("default", String::as_str));
    }
}

/// Keeps the end of stderr.
async fn record_stderr(mut errors: impl AsyncRead + Unpin, recorded: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        let chunk = &buffer[..read];
        tracing::debug!("the engine says: {}", printable(&String::from_utf8_lossy(chunk)).trim_end());
        let mut recorded = recorded.lock();
        recorded.extend(chunk);
        let surplus = recorded.len().saturating_sub(MAX_STDERR);
        recorded.drain(..surplus);
    }
}

fn unusable(program: &Path, why: &str) -> EngineError {
    EngineError::Unusable { reason: format!("the Copilot CLI {} {why}", program.display()), hint: None }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::super::options::{Provider, ProviderKind, Timeouts};
    use super::*;

    #[test]
    fn the_cli_gets_the_variables_and_no_key() {
        let variables = [
            ("COPILOT_OFFLINE", "1"),
            ("COPILOT_PROVIDER_API_KEY", "k"),
            ("COPILOT_CONNECTION_TOKEN", "t"),
            ("A", "b"),
        ];
        let options = Options {
            program: None,
            squad: None,
            variables: variables.map(|(name, value)| (name.into(), value.into())).into(),
            directory: "/".into(),
            home: Home::User,
            provider: Some(Provider {
                kind: ProviderKind::Openai,
                wire_api: None,
                base_url: "http://x".into(),
                api_key: Some("k".into()),
                models: vec!["m".into()],
                max_prompt_tokens: None,
            }),
            run: "r".into(),
            mcp_servers: Default::default(),
            timeouts: Timeouts::default(),
            sandbox: None,
        };
        let command = command(&Program::of_user(Path::new("/copilot")), &options, &Home::At("/home".into()));
        let mut variables: Vec<_> =
            command.as_std().get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?))).collect();
        variables.sort_unstable();
        // Windows gets another, which keeps programs of the working directory from being started.
        variables.retain(|(name, _)| *name != "NoDefaultCurrentDirectoryInExePath");
        let expected = [
            ("A", "b"),
            ("COPILOT_HOME", "/home"),
            ("COPILOT_MODEL", "m"),
            ("COPILOT_OFFLINE", "1"),
            ("COPILOT_PROVIDER_BASE_URL", "http://x"),
            ("SQUAD_RUN", "r"),
        ];
        assert_eq!(variables, expected);
        assert!(command.as_std().get_args().any(|argument| argument == OsStr::new("--no-auto-login")));
    }
}
