//! The CLI's process, which is ended with everything it started.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use super::options::{Home, Options};
use crate::engine::EngineError;
use crate::engine::child::ServingChild;
use crate::engine::connection::{Connection, Incoming};
use crate::engine::dialect::Dialect;
use crate::engine::process_group::Mark;
use crate::program::{Program, Programs};
use crate::sandbox::command_in;

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
    child: ServingChild,
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
        let (child, connection) = ServingChild::start(command.env(name, value), Dialect::Framed, incoming)
            .map_err(|why| unusable(program.path(), &why))?;
        mark.guard(options.squad.as_deref(), false);
        Ok((Self { child, mark }, connection))
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        self.child.ended().await
    }

    pub(crate) fn has_died(&mut self) -> bool {
        self.child.has_died()
    }

    pub(crate) async fn exit_report(&mut self) -> String {
        self.child.exit_report().await
    }

    /// Ends the process within `grace`, and what its tools left running: when its input closes, the CLI ends its tools'
    /// foreground shells only.
    pub(crate) async fn end(mut self, connection: &Connection, grace: Duration) {
        self.mark.look();
        self.child.end(connection, grace).await;
        self.mark.end().await;
    }

    /// Kills a process that is no longer useful.
    pub(crate) async fn kill(&mut self) {
        self.mark.look();
        self.child.kill().await;
        self.mark.end().await;
    }
}

/// The processor time that a process has used, in any unit; `None` if unknown. In the sandbox, that of the program.
#[cfg(target_os = "linux")]
pub(super) fn processor_time(id: u32) -> Option<u64> {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    if crate::sandbox::is_entering(&String::from_utf8_lossy(&line).replace('\0', " ")) {
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        return processor_time(children.split_whitespace().next()?.parse().ok()?);
    }
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
