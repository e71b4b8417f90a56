//! Engine profiles: how to start a command-line agent. A profile is built in, or a table `[engines.NAME]` of the user's
//! configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::model::list;

/// The fields of a profile. Missing ones come from the profile named by `like`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EngineProfile {
    /// The profile that this one is based on.
    pub(crate) like: Option<String>,
    pub(crate) about: Option<String>,
    /// A name to look up in `PATH`, or an absolute path.
    pub(crate) program: Option<String>,
    /// The protocol in which the program serves sessions on its standard streams. Without one, it is started for each
    /// message, as the fields below say.
    pub(crate) protocol: Option<SessionProtocol>,
    pub(crate) args: Option<Vec<Argument>>,
    /// Replaces `{mode}` when the agent may change nothing.
    pub(crate) strict: Option<Vec<String>>,
    /// Replaces `{mode}` when the agent may change files and run commands.
    pub(crate) free: Option<Vec<String>>,
    /// Replaces `{mode}` in squad's sandbox, which keeps an agent that may change nothing from it by itself.
    pub(crate) inside: Option<Vec<String>>,
    /// Where the program keeps its login and its sessions: files it may write in the sandbox, and folders, which end in
    /// `/` and are made. `~/` is the user's home, and `$NAME/` a folder that an environment variable names.
    pub(crate) home: Option<Vec<String>>,
    /// Files and folders of its home that decide what it runs, which it may only read at level `full` of the sandbox.
    pub(crate) settings: Option<Vec<String>>,
    /// Which host has its models: the first of these that is there. A host, `$NAME` for the address in an environment
    /// variable, or `~/FILE#WORD` for the addresses behind a word in a file. Without it, it works with an open network.
    pub(crate) endpoint: Option<Vec<String>>,
    /// Other hosts that it needs, such as those of its login, in the same form.
    pub(crate) hosts: Option<Vec<String>>,
    pub(crate) chat: Option<Chats>,
    /// Arguments that make the program create a chat and print its id.
    pub(crate) create_chat: Option<Vec<Argument>>,
    pub(crate) state: Option<StateMode>,
    pub(crate) prompt: Option<PromptWay>,
    pub(crate) stream: Option<StreamKind>,
    /// More environment variables to pass on; `NAME_*` stands for all that begin with `NAME_`.
    pub(crate) env: Option<Vec<String>>,
    /// Environment variables to set.
    pub(crate) set: Option<BTreeMap<String, String>>,
    /// The default model.
    pub(crate) model: Option<String>,
    /// Files of a repository that the program always reads. If one exists, the program is not started.
    pub(crate) reads: Option<Vec<String>>,
    /// Start the program even if files of `reads` exist.
    pub(crate) trust_repository: Option<bool>,
    /// The form in which `{tools}` passes squad's MCP server, which offers squad's own tools.
    pub(crate) tools: Option<ToolsWay>,
    /// `false`: the program can neither run commands nor change files, so it gets squad's `shell` and `file_ops`.
    pub(crate) own_tools: Option<bool>,
    /// The npm package that has the program.
    pub(crate) package: Option<String>,
    /// How to install the program, if not with npm.
    pub(crate) install: Option<String>,
    /// How to log in. Without it, a login that is not seen may be there.
    pub(crate) login: Option<String>,
    /// Arguments with which the program exits with 0 if it is logged in.
    pub(crate) login_check: Option<Vec<String>>,
    /// What makes a login unnecessary: an environment variable (`$NAME`), a file, or a word in one (`~/FILE#WORD`).
    pub(crate) login_by: Option<Vec<String>>,
    /// How the program reaches a model on loopback, for `squad engines NAME --prove`.
    pub(crate) loopback: Option<Loopback>,
    pub(crate) permission: Option<Permission>,
    /// Why a field is invalid. The profile is then unusable: ignoring the field could make it less strict.
    #[serde(skip)]
    pub(crate) wrong: Option<String>,
}

/// How a program reaches a model on loopback, in a home of its own. `{url}` is the model's address without a path, and
/// `{model}` its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Loopback {
    /// The model, as the program calls it.
    pub(crate) model: Option<String>,
    /// Environment variables.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Files by their paths from the home.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
}

/// Whether an engine may be started that did what it was told not to do, when it was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Permission {
    Allow,
    #[default]
    Refuse,
}

/// The protocols that squad speaks with a program which serves sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionProtocol {
    Claude,
    /// `codex app-server`.
    Codex,
}

/// An argument, or a group that is left out if one of its values is missing.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Argument {
    One(String),
    Group(Vec<Argument>),
}

/// Where the id of a chat comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Chats {
    /// The program has no chats.
    None,
    /// squad makes it, as a UUID.
    Client,
    /// The first answer contains it.
    Answer,
    /// The command `create_chat` prints it.
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateMode {
    /// Each message starts a new chat, with the whole role.
    Stateless,
    /// The messages of a session share a chat.
    Stateful,
}

/// How the prompt is passed if `args` does not contain it or it is too long for an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PromptWay {
    /// On standard input, always.
    Stdin,
    /// As an argument; a long prompt is a file that the argument names.
    File,
}

/// The format of its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StreamKind {
    Text,
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// The programs whose options for MCP servers squad knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolsWay {
    Claude,
    Codex,
}

impl EngineProfile {
    /// Sets one field. The error says what the value must be.
    pub(super) fn put(&mut self, field: &str, value: &Value) -> Result<(), String> {
        let (name, rest) = field.split_once('.').unwrap_or((field, ""));
        if name == "set" {
            let text = value.as_str().filter(|_| !rest.is_empty()).ok_or("must be a table of strings")?;
            self.set.get_or_insert_default().insert(rest.to_owned(), text.to_owned());
            return Ok(());
        }
        if let Some((table, key)) = rest.split_once('.').filter(|_| name == "loopback") {
            let text = value.as_str().ok_or("must be a table of strings")?.to_owned();
            let loopback = self.loopback.get_or_insert_default();
            let table = match table {
                "env" => &mut loopback.env,
                "files" => &mut loopback.files,
                _ => return Err("has `model`, `env` and `files`".to_owned()),
            };
            table.insert(key.to_owned(), text);
            return Ok(());
        }
        if name == "loopback" {
            let model = value.as_str().filter(|_| rest == "model").ok_or("has `model`, `env` and `files`")?;
            self.loopback.get_or_insert_default().model = Some(model.to_owned());
            return Ok(());
        }
        if name == "args" || name == "create_chat" {
            check_arguments(value)?;
        }
        let table = toml::Table::from_iter([(field.to_owned(), value.clone())]);
        let read: Self =
            table.try_into().map_err(|error: toml::de::Error| format!("cannot be used: {}", error.message()))?;
        *self = read.over(std::mem::take(self));
        Ok(())
    }

    /// Whether it says how to start the program for each message.
    pub(crate) fn is_one_shot(&self) -> bool {
        let modes = [&self.strict, &self.free, &self.inside];
        let is_told = self.args.is_some() || self.create_chat.is_some() || self.chat.is_some() || self.state.is_some();
        let is_read = self.prompt.is_some() || self.stream.is_some();
        let has_tools = self.tools.is_some() || self.own_tools.is_some();
        self.protocol.is_none() && (is_told || is_read || has_tools || modes.iter().any(|mode| mode.is_some()))
    }

    /// Fills missing fields from `other`.
    pub(crate) fn over(self, other: Self) -> Self {
        let mut set = other.set.unwrap_or_default();
        set.extend(self.set.unwrap_or_default());
        // More variables, beside those that the program needs.
        let env = [other.env, self.env].into_iter().flatten().reduce(|all, more| all.into_iter().chain(more).collect());
        Self {
            like: self.like.or(other.like),
            about: self.about.or(other.about),
            program: self.program.or(other.program),
            protocol: self.protocol.or(other.protocol),
            args: self.args.or(other.args),
            strict: self.strict.or(other.strict),
            free: self.free.or(other.free),
            inside: self.inside.or(other.inside),
            home: self.home.or(other.home),
            settings: self.settings.or(other.settings),
            endpoint: self.endpoint.or(other.endpoint),
            hosts: self.hosts.or(other.hosts),
            chat: self.chat.or(other.chat),
            create_chat: self.create_chat.or(other.create_chat),
            state: self.state.or(other.state),
            prompt: self.prompt.or(other.prompt),
            stream: self.stream.or(other.stream),
            env,
            set: Some(set),
            model: self.model.or(other.model),
            reads: self.reads.or(other.reads),
            trust_repository: self.trust_repository.or(other.trust_repository),
            tools: self.tools.or(other.tools),
            own_tools: self.own_tools.or(other.own_tools),
            package: self.package.or(other.package),
            install: self.install.or(other.install),
            login: self.login.or(other.login),
            login_check: self.login_check.or(other.login_check),
            login_by: self.login_by.or(other.login_by),
            loopback: self.loopback.or(other.loopback),
            permission: self.permission.or(other.permission),
            wrong: self.wrong.or(other.wrong),
        }
    }
}

/// The names that stand for values.
pub(crate) const PLACEHOLDERS: [&str; 7] = ["prompt", "chatId", "cwd", "roleId", "task", "model", "generatedUuid"];
/// The names that stand for several arguments.
const OTHERS: [&str; 3] = ["mode", "tools", "codexProjects"];

/// A word in braces that is not a placeholder: perhaps a misspelt one.
fn unknown_placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (is_word && !PLACEHOLDERS.iter().chain(&OTHERS).any(|known| *known == name)).then_some(name)
}

fn check_arguments(value: &Value) -> Result<(), String> {
    const WHAT: &str = "must be a list of strings; an inner list is left out if one of its values is missing";
    for argument in value.as_array().ok_or(WHAT)? {
        match argument {
            Value::Array(_) => check_arguments(argument)?,
            Value::String(text) => {
                let is_part = |name: &str| text.contains(&format!("{{{name}}}")) && text.len() > name.len() + 2;
                if let Some(name) = PLACEHOLDERS.iter().find(|name| is_part(name)) {
                    return Err(format!("has `{{{name}}}` within an argument; it must be an argument of its own"));
                }
                if let Some(name) = unknown_placeholder(text) {
                    let known = PLACEHOLDERS.iter().chain(&OTHERS).map(|name| format!("`{{{name}}}`"));
                    return Err(format!("has `{{{name}}}`, which is unknown; the known names are {}", list(known)));
                }
            }
            _ => return Err(WHAT.to_owned()),
        }
    }
    Ok(())
}
