//! Command engines: command-line agents, started once for each message, with their answer on standard output.
//!
//! ```text
//! Profile (built in, or the user's) ─→ Command ── open ─→ Session ── send ─→ one process
//!                                                            │                 ├─ stdout, stderr ─→ Spool (files)
//!                                                            └─ Chats          └─ StreamParser: stdout to facts
//! ```
//!
//! No shell is used anywhere. These engines do not ask before they act, so squad chooses one of the engine's own modes
//! for each message, and reports which.

mod arguments;
pub(crate) mod blueprint;
mod calls;
mod chats;
mod environment;
mod output;
mod own_command;
mod profile;
mod run;
mod served;
mod session;
pub(crate) mod shape;
mod spool;
mod stream;
mod template;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use calls::{Finished, Performed, Planned, ToolHost};
pub(in crate::engine) use chats::{Chat, Chats, is_session_id};
pub(in crate::engine) use environment::allowed as allowed_variables;
pub(crate) use environment::common as common_variables;
pub(crate) use own_command::OwnCommand;
pub(crate) use profile::Profile;
pub(crate) use session::Session;
pub(in crate::engine) use session::{model_of, usage_since, with_attachments};
pub(in crate::engine) use stream::{StreamParser, content};
pub(crate) use values::Values;

use super::copilot::McpServers;
use super::descendants::Descendants;
use super::process_group::Mark;
use super::{Account, Adapter, EngineError, Opening};
use crate::env::{ProjectPath, real};
use crate::model::{AvailableModels, first_line};
use crate::program::{Program, ProgramRefusal, Programs, Variables, repository_file};
use crate::sandbox::{Sandbox, Traffic, command_in};
use crate::settings::SessionProtocol;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) profile: Profile,
    /// squad's own program, which guards the engine's processes and serves their tools.
    pub(crate) squad: Option<PathBuf>,
    pub(crate) variables: Variables,
    /// The project's root. Sessions work in it or below.
    pub(crate) directory: PathBuf,
    /// squad's local folder, for output and chats.
    pub(crate) local: PathBuf,
    /// See [`Chats::new`].
    pub(crate) place: String,
    pub(crate) run: String,
    /// `None`: the program may do what the user can do.
    pub(crate) sandbox: Option<Sandbox>,
    /// The user's own servers, by name, for programs that serve sessions.
    pub(crate) mcp_servers: McpServers,
}

/// Parts of the names of variables that tell accounts apart: endpoints, keys, and where a login is kept.
const OF_ACCOUNT: [&str; 7] = ["KEY", "TOKEN", "BASE_URL", "ENDPOINT", "CONFIG_DIR", "HOME", "PROFILE"];

/// Whose quota an engine uses, as far as its environment tells.
pub(crate) fn account(options: &Options) -> Account {
    let passed = environment::allowed(&options.variables, &options.profile.env);
    let is_of_account = |name: &str| OF_ACCOUNT.iter().any(|part| name.to_ascii_uppercase().contains(part));
    let own = passed.iter().filter(|(name, _)| is_of_account(&name.to_string_lossy()));
    let parts = own.flat_map(|(name, value)| [name.as_encoded_bytes(), value.as_encoded_bytes()]);
    Account::new(&options.profile.name, None, parts)
}

/// How long a program may take to say its version, or whether it is logged in.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The environment variable by which the processes that a session leaves running are found.
const SESSION_VARIABLE: &str = "SQUAD_SESSION";

pub(crate) struct Command(pub(in crate::engine) Arc<Shared>);

/// The state that all sessions of an engine share, also one that serves sessions in its program's protocol.
pub(in crate::engine) struct Shared {
    pub(in crate::engine) profile: Profile,
    pub(in crate::engine) program: Program,
    programs: Programs,
    variables: Variables,
    directory: PathBuf,
    local: PathBuf,
    pub(in crate::engine) chats: Chats,
    run: String,
    mark: Mark,
    squad: Option<PathBuf>,
    pub(in crate::engine) sandbox: Option<Sandbox>,
    /// The same with the traffic of each session.
    of_sessions: Mutex<BTreeMap<String, Sandbox>>,
    pub(in crate::engine) mcp_servers: McpServers,
}

impl Command {
    /// Checks that the program exists. Nothing is started yet.
    pub(crate) fn start(options: Options) -> Result<Self, EngineError> {
        let Options { profile, squad, variables, directory, local, place, run, sandbox, mcp_servers } = options;
        let sandbox = sandbox.map(|sandbox| {
            sandbox.with_writable(profile.home_paths(&variables)).with_read_only(profile.settings_paths(&variables))
        });
        let programs = Programs::new(&directory, &variables);
        let chats = Chats::new(&local, &place);
        let mark = Mark::new();
        let program = locate(&profile, &programs)?;
        let mut shared = Shared {
            profile,
            program,
            programs,
            variables,
            directory,
            local,
            chats,
            run,
            mark,
            squad,
            sandbox,
            of_sessions: Mutex::default(),
            mcp_servers,
        };
        // Claude Code stores each message as it comes, and goes on with its turn when nobody answers any more.
        let at_once = shared.profile.protocol == Some(SessionProtocol::Claude);
        shared.mark.guard(shared.squad.as_deref(), at_once);
        Ok(Self(Arc::new(shared)))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.profile.name
    }

    /// The program's path, because asking for its version would start a process.
    pub(crate) fn version(&self) -> String {
        self.0.program.path().display().to_string()
    }
}

impl Shared {
    /// The program that creates a chat.
    fn chat_program(&self) -> Result<Program, EngineError> {
        let name = self.profile.create_program.as_ref().unwrap_or(&self.profile.program);
        locate_named(&self.profile, name, &self.programs)
    }

    /// Starts its program for a session, in a folder, with the environment and the sandbox of the profile. Folders of
    /// `writable` may be written in as well; the project only if the session may change it.
    pub(in crate::engine) fn command(
        &self,
        program: &Program,
        (session, directory): (&str, &Path),
        may_write: bool,
        writable: Option<PathBuf>,
    ) -> tokio::process::Command {
        let sandbox = self.sandbox_of(session).map(|sandbox| sandbox.with_writable(writable));
        let sandbox =
            sandbox.map(|sandbox| if may_write { sandbox } else { sandbox.without_writable(&real(&self.directory)) });
        let mut variables = environment::allowed(&self.variables, &self.profile.env);
        self.programs.restrict(&mut variables);
        let mut command = tokio::process::Command::from(command_in(sandbox.as_ref(), program));
        command.env_clear().envs(variables).envs(&self.profile.set);
        command.env("SQUAD_RUN", &self.run).env(SESSION_VARIABLE, session);
        command.envs([self.mark.variable()]).current_dir(directory);
        command
    }

    /// The sandbox in which a session's program is started, each time with the same traffic.
    fn sandbox_of(&self, session: &str) -> Option<Sandbox> {
        let sandbox = self.sandbox.as_ref()?;
        let mut known = self.of_sessions.lock();
        Some(known.entry(session.to_owned()).or_insert_with(|| sandbox.clone().of_session()).clone())
    }

    /// The hosts that a session's program reaches.
    pub(in crate::engine) fn traffic(&self, session: &str) -> Option<Arc<Traffic>> {
        self.sandbox_of(session)?.traffic().cloned()
    }

    /// Where the program keeps its sessions.
    pub(in crate::engine) fn homes(&self) -> Vec<PathBuf> {
        self.profile.home_paths(&self.variables)
    }

    /// The project's root.
    pub(in crate::engine) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The processes that a session has started.
    pub(in crate::engine) fn descendants(&self, session: &str) -> Descendants {
        self.mark.with((SESSION_VARIABLE, session))
    }

    /// A session must be inside the project, and no file of the repository may configure the engine without the user's
    /// consent.
    pub(in crate::engine) fn check_folder(&self, directory: &Path) -> Result<(), EngineError> {
        let unusable = |reason: String, hint: String| EngineError::Unusable { reason, hint: Some(hint) };
        confined(&self.directory, directory)
            .map_err(|reason| unusable(reason, "name a folder of the project".to_owned()))?;
        if self.profile.trusts_repository {
            return Ok(());
        }
        match repository_file(&self.directory, &self.directory.join(directory), &self.profile.reads) {
            None => Ok(()),
            Some(file) => {
                let name = &self.profile.name;
                let reason =
                    format!("{name} always reads {}, so the repository could decide what it runs", file.display());
                let hint = format!("if you trust it: squad config set --user engines.{name}.trust_repository true");
                Err(unusable(reason, hint))
            }
        }
    }
}

/// Finds the program of a profile.
pub(crate) fn locate(profile: &Profile, programs: &Programs) -> Result<Program, EngineError> {
    locate_named(profile, &profile.program, programs)
}

fn locate_named(profile: &Profile, name: &str, programs: &Programs) -> Result<Program, EngineError> {
    let missing = |what: String| {
        let install = profile.install.as_ref().map(|how| format!("install it: {how}; or ")).unwrap_or_default();
        let hint = format!("{install}name it: squad config set --user engines.{}.program PATH", profile.name);
        EngineError::Missing { what, hint }
    };
    let path = Path::new(name);
    match programs.named(path) {
        Ok(program) if !path.is_absolute() || path.is_file() => Ok(program),
        Ok(_) => Err(missing(format!("the program of `{}` does not exist: {}", profile.name, path.display()))),
        Err(ProgramRefusal::Missing(_)) => {
            Err(missing(format!("{} is not installed: no `{name}` in PATH", profile.name)))
        }
        Err(refusal) => Err(missing(format!("{} is not run: {refusal}", profile.name))),
    }
}

/// The first line of `--version`.
pub(crate) async fn version(profile: &Profile, program: &Program, variables: &Variables) -> Option<String> {
    let (is_success, text) = asked(profile, program, variables, &["--version".to_owned()]).await?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    is_success.then(|| first_line(line, 100))
}

/// Whether a login is seen. Fails if the program says that it has none, or has nothing that a login leaves. Nobody can
/// know whether a login still holds before it is used.
pub(crate) async fn require_login(
    profile: &Profile,
    program: &Program,
    variables: &Variables,
) -> Result<bool, EngineError> {
    let Some(login) = &profile.login else { return Ok(false) };
    if login.is_unnecessary(variables) {
        return Ok(true);
    }
    let asked = match login.check.is_empty() {
        true => None,
        false => asked(profile, program, variables, &login.check).await,
    };
    match (asked, &login.how) {
        (Some((true, _)), _) => Ok(true),
        // A program that does not answer may be logged in.
        (None, how) if how.is_none() || !login.check.is_empty() => Ok(false),
        (_, how) => {
            let reason = format!("{} is installed, but not logged in", profile.name);
            Err(EngineError::Unauthenticated { reason, hint: how.clone().unwrap_or_default() })
        }
    }
}

/// Whether the program succeeds with these arguments, and its output. It runs in an empty folder, where no repository
/// file configures it.
async fn asked(
    profile: &Profile,
    program: &Program,
    variables: &Variables,
    arguments: &[String],
) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().ok()?;
    let mut command = tokio::process::Command::from(program.command());
    command.args(arguments).env_clear().envs(environment::allowed(variables, &profile.env));
    command.current_dir(folder.path()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(ANSWER_TIMEOUT, command.output()).await.ok()?.ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Resolves a folder to work in, which must be one of the project.
pub(crate) fn confined(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    let found = ProjectPath::folder(root, folder).map(|folder| folder.path);
    found.map_err(|reason| format!("cannot work in {}: it {reason}", folder.display()))
}

/// A Codex option that marks every project around a folder as untrusted, so that it ignores their configuration.
pub(in crate::engine) fn codex_projects(directory: &Path) -> String {
    let folder = real(directory);
    let around = folder.ancestors().map(Path::to_owned).chain(crate::program::work_trees(&folder));
    let mut projects = toml::Table::new();
    // In a preview, the folder is the name of a placeholder.
    for path in around.filter(|path| !path.as_os_str().is_empty()) {
        let level = toml::Table::from_iter([("trust_level".to_owned(), toml::Value::from("untrusted"))]);
        projects.insert(path.display().to_string(), level.into());
    }
    format!("projects={}", toml::Value::from(projects))
}

impl Adapter for Command {
    type Session = Session;

    async fn open(&self, opening: Opening) -> Result<Session, EngineError> {
        Session::open(Arc::clone(&self.0), opening)
    }

    async fn offer(&self) -> AvailableModels {
        AvailableModels { engine: self.name().to_owned(), ..AvailableModels::default() }
    }

    async fn stop(self) {
        // While a session is open, its processes are left to the guard, which ends them with squad.
        if let Some(mut shared) = Arc::into_inner(self.0) {
            shared.mark.end().await;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "../../../tests/real/engine/command.rs"]
pub(in crate::engine) mod real_tests;
#[cfg(all(test, unix))]
mod tests;
