//! Registers `squad mcp` with the clients that start it, in their own configuration files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::edit::{with_json_server, with_toml_server};
use crate::env::files::{read_within, replace};
use crate::env::{Env, ProjectPath, real};
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{ChangeKind, IntoMap};
use crate::ops::change::{Change, FileChange, WriteMode};
use crate::ops::repository;

/// Members work for longer than clients wait by themselves.
const HOUR: u64 = 3600;

/// The largest file that is read, in bytes: `~/.claude.json` also holds what was typed.
const LARGEST: u64 = 64 << 20;

/// Variables that configure the server. Hosts do not pass on their own.
const VARIABLES: [&str; 8] = [
    "AGENTS_DIRECTORY_PATH",
    "CREATE_CHAT_TEMPLATE_PATH",
    "ENGINE_COMMAND",
    "PROCESS_TIMEOUT_MS",
    "RUN_TEMPLATE_PATH",
    "SQUAD_ENGINE",
    "SQUAD_MODEL",
    "STATE_MODE",
];

#[derive(Clone, Copy, Debug, clap::ValueEnum, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Client {
    Copilot,
    Claude,
    Vscode,
    Cursor,
    Codex,
}

/// Whose sessions get the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scope {
    /// Those of everybody who works on the project.
    Project,
    /// The user's, in every project.
    User,
}

/// What was registered.
#[derive(Debug, Serialize)]
pub(crate) struct Registered {
    pub(crate) client: Client,
    pub(crate) file: String,
    /// False: the file had it already.
    pub(crate) changed: bool,
    /// As `git diff` shows it; empty if nothing changed.
    pub(crate) diff: String,
    /// Variables that configure the server here and are not written, for they hold for this machine only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<&'static str>,
}

impl Client {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Copilot => "Copilot CLI",
            Self::Claude => "Claude Code",
            Self::Vscode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
        }
    }

    /// As on the command line.
    pub(crate) fn name(self) -> String {
        clap::ValueEnum::to_possible_value(&self).map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The file in the project's root.
    pub(crate) fn project_file(self) -> &'static str {
        match self {
            Self::Copilot => ".github/mcp.json",
            Self::Claude => ".mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Codex => ".codex/config.toml",
        }
    }

    /// `None`: a variable that leads to it is not set.
    fn user_file(self, env: &Env) -> Option<PathBuf> {
        let home = env.variable(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        let home = home.filter(|home| Path::new(home).is_absolute());
        let at_home = |path: &str| Some(Path::new(home?).join(path));
        let own = |variable: &str, folder: &str| env.variable(variable).map(PathBuf::from).or_else(|| at_home(folder));
        match self {
            Self::Copilot => Some(own("COPILOT_HOME", ".copilot")?.join("mcp-config.json")),
            Self::Claude => Some(own("CLAUDE_CONFIG_DIR", "")?.join(".claude.json")),
            Self::Cursor => at_home(".cursor/mcp.json"),
            Self::Codex => Some(own("CODEX_HOME", ".codex")?.join("config.toml")),
            Self::Vscode => {
                let folder = match std::env::consts::OS {
                    "windows" => env.variable("APPDATA").map(PathBuf::from),
                    "macos" => at_home("Library/Application Support"),
                    _ => env.variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| at_home(".config")),
                };
                Some(folder?.join("Code/User/mcp.json"))
            }
        }
    }

    /// The client's file with the server added. A client starts it in the folder of its session, so that one entry
    /// serves every project.
    fn with_server(
        self,
        text: &str,
        command: &str,
        options: &[String],
        variables: &BTreeMap<&str, &str>,
    ) -> Result<String, String> {
        let arguments: Vec<&str> = ["mcp"].into_iter().chain(options.iter().map(String::as_str)).collect();
        let mut server =
            Map::from_iter([("command".to_owned(), command.into()), ("args".to_owned(), json!(arguments))]);
        let more = match self {
            Self::Copilot => vec![("type", "local".into()), ("tools", json!(["*"])), ("timeout", (HOUR * 1000).into())],
            Self::Vscode => vec![("type", "stdio".into())],
            // Codex asks before each call of each tool by itself.
            Self::Codex => vec![("tool_timeout_sec", HOUR.into()), ("default_tools_approval_mode", "approve".into())],
            Self::Claude | Self::Cursor => Vec::new(),
        };
        server.extend(more.into_iter().map(|(key, value): (&str, Value)| (key.to_owned(), value)));
        if !variables.is_empty() {
            server.insert("env".to_owned(), json!(variables));
        }
        match self {
            Self::Codex => with_toml_server(text, &server),
            Self::Vscode => with_json_server(text, "servers", &server),
            Self::Copilot | Self::Claude | Self::Cursor => with_json_server(text, "mcpServers", &server),
        }
    }
}

/// A file of the client's that only registers the server, and the variables that are left out.
pub(crate) fn printed(
    env: &Env,
    (client, scope): (Client, Scope),
    options: &[String],
) -> Result<(String, Vec<&'static str>), Failure> {
    let (command, variables, left_out) = starting(env, scope);
    let text = client.with_server("", &command, options, &variables).map_err(Failure::failed)?;
    Ok((text, left_out))
}

/// What starts the server: its command and variables, and those that are left out. A file of the project belongs to
/// everybody: nothing of this machine goes into it.
fn starting(env: &Env, scope: Scope) -> (String, BTreeMap<&'static str, &str>, Vec<&'static str>) {
    match scope {
        Scope::User => (env.command_name().trim_matches('"').to_owned(), variables(env), Vec::new()),
        Scope::Project => {
            let (local, shared): (BTreeMap<_, _>, BTreeMap<_, _>) =
                variables(env).into_iter().partition(|(_, value)| value.contains(['/', '\\']));
            ("squad".to_owned(), shared, local.into_keys().collect())
        }
    }
}

fn variables(env: &Env) -> BTreeMap<&'static str, &str> {
    VARIABLES.into_iter().filter_map(|name| Some((name, env.variable(name)?))).into_map()
}

/// Adds the server to the client's file, which keeps all else.
///
/// # Errors
///
/// Fails, and changes nothing, if the file is not what the client reads, is a link, or cannot be written.
pub(crate) fn register(
    env: &Env,
    directory: &Path,
    (client, scope): (Client, Scope),
    options: &[String],
) -> Result<Registered, Failure> {
    let (command, variables, left_out) = starting(env, scope);
    let add = |text: &str| client.with_server(text, &command, options, &variables);
    match scope {
        Scope::User => {
            let unset = || Failure::failed("squad does not know your home folder: no variable names it");
            let path = client.user_file(env).ok_or_else(unset)?;
            let (old, new) = merged(client, &path, add)?;
            let shown = path.display().to_string();
            let file = FileChange::new(shown.trim_start_matches('/').to_owned(), old, Some(new));
            if file.changes() {
                // A client that runs writes its file itself.
                if fs::read(&path).ok() != file.old {
                    return Err(cannot_write(&path, "it has changed meanwhile; try again"));
                }
                replace(&path, file.new.as_deref().unwrap_or_default())
                    .map_err(|error| cannot_write(&path, &error.to_string()))?;
            }
            Ok(Registered { file: shown, ..registered(client, &file, left_out) })
        }
        Scope::Project => {
            let (repository, root) = work_tree(env, directory)?;
            let shown = client.project_file();
            let path = root.join(shown);
            if !ProjectPath::named(&root, &root, shown).is_ok_and(|found| found.path == real(&root).join(shown)) {
                return Err(is_link(client, Path::new(shown)));
            }
            let (old, new) = merged(client, &path, add)?;
            let file = FileChange::new(shown.to_owned(), old, Some(new));
            let registered = registered(client, &file, left_out);
            if registered.changed {
                let change = Change::new(ChangeKind::Register { client: client.name() }, String::new(), vec![file]);
                change.apply(env, &repository, WriteMode::WorkTree)?;
            }
            Ok(registered)
        }
    }
}

fn work_tree(env: &Env, directory: &Path) -> Result<(Repository, PathBuf), Failure> {
    repository(env, directory).map_err(|failure| failure.hint("or `--user`, for all your projects"))
}

fn registered(client: Client, file: &FileChange, left_out: Vec<&'static str>) -> Registered {
    let changed = file.changes();
    let diff = if changed { file.diff() } else { String::new() };
    Registered { client, file: file.path.clone(), changed, diff, left_out }
}

/// The file's bytes before, if it exists, and after.
fn merged(
    client: Client,
    path: &Path,
    change: impl FnOnce(&str) -> Result<String, String>,
) -> Result<(Option<Vec<u8>>, Vec<u8>), Failure> {
    let old = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(cannot_read(path, &error.to_string())),
        Ok(found) if found.is_symlink() => return Err(is_link(client, path)),
        Ok(found) if !found.is_file() => return Err(cannot_read(path, "it is not a file")),
        Ok(found) if found.permissions().readonly() => return Err(cannot_write(path, "it is read-only")),
        Ok(_) => match read_within(path, LARGEST) {
            Ok(Ok(bytes)) => Some(bytes),
            Ok(Err(size)) => return Err(cannot_read(path, &format!("it has {size} bytes"))),
            Err(error) => return Err(cannot_read(path, &error.to_string())),
        },
    };
    let unreadable = |why: String| {
        Failure::failed(format!("squad cannot read it, and has not changed it: {why}"))
            .at(path.display())
            .hint(format!("mend it, or add what `squad mcp --print-config {}` prints", client.name()))
    };
    let text =
        std::str::from_utf8(old.as_deref().unwrap_or_default()).map_err(|error| unreadable(error.to_string()))?;
    let mut new = change(text).map_err(unreadable)?;
    if old.is_none() && !new.ends_with('\n') {
        new.push('\n');
    }
    Ok((old, new.into_bytes()))
}

fn is_link(client: Client, path: &Path) -> Failure {
    Failure::failed("it is a link, or lies behind one, and squad has not changed what that leads to")
        .at(path.display())
        .hint(format!("add what `squad mcp --print-config {}` prints to the file itself", client.name()))
}

fn cannot_read(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("squad cannot read it: {why}")).at(path.display())
}

fn cannot_write(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("squad cannot write it: {why}")).at(path.display())
}
