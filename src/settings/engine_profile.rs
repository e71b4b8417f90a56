//! How a command-line agent is started: a table `[engines.NAME]` of the user's own configuration, or one of those that
//! squad brings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::model::list;

/// What a table says. What it does not say is as in the profile it is like.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EngineProfile {
    /// Another profile, which this one differs from in what it says itself.
    pub(crate) like: Option<String>,
    pub(crate) about: Option<String>,
    /// A name to look up in `PATH`, or a whole path.
    pub(crate) program: Option<String>,
    pub(crate) args: Option<Vec<Argument>>,
    /// In place of `{mode}`: with which it changes nothing, and with which it does as it likes.
    pub(crate) strict: Option<Vec<String>>,
    pub(crate) free: Option<Vec<String>>,
    pub(crate) chat: Option<Chats>,
    /// The arguments with which it makes a chat and prints its id.
    pub(crate) create_chat: Option<Vec<Argument>>,
    pub(crate) state: Option<StateMode>,
    pub(crate) prompt: Option<PromptWay>,
    pub(crate) stream: Option<StreamKind>,
    /// Variables of the environment it is given beside the usual ones; `NAME_*` for all that begin so.
    pub(crate) env: Option<Vec<String>>,
    /// Variables that are set for it.
    pub(crate) set: Option<BTreeMap<String, String>>,
    /// Used where a message to an agent names none.
    pub(crate) model: Option<String>,
    /// Files of a repository that it reads by itself and cannot be told not to. Where one is there, it is not started.
    pub(crate) reads: Option<Vec<String>>,
    /// The user lets it read them.
    pub(crate) trust_repository: Option<bool>,
    /// How it is told of an MCP server, which is how it gets squad's own tools. They stand where `{tools}` does.
    pub(crate) tools: Option<ToolsWay>,
    /// `false`: it can neither run commands nor change files by itself, and is offered squad's `shell` and `file_ops`.
    pub(crate) own_tools: Option<bool>,
    /// How to install it.
    pub(crate) install: Option<String>,
    /// What is wrong with a line of it. Without that line it would be another one, and perhaps a more dangerous one.
    #[serde(skip)]
    pub(crate) wrong: Option<String>,
}

/// An argument, or some that are left out together where a value is missing.
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
    /// It has none.
    None,
    /// Squad makes one, a UUID.
    Client,
    /// Its first answer says it.
    Answer,
    /// A command of its own prints it.
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateMode {
    /// Each message begins anew, with the whole role.
    Stateless,
    /// A session's messages go on in one chat.
    Stateful,
}

/// How a prompt that is too long for an argument gets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PromptWay {
    /// Every prompt comes by standard input.
    Stdin,
    /// As an argument; a long one is a file, which the argument names.
    File,
}

/// What its standard output is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StreamKind {
    Text,
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// The programs whose way of being told of MCP servers squad knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolsWay {
    Claude,
    Codex,
}

impl EngineProfile {
    /// Sets one field; the error says what it is to be.
    pub(super) fn put(&mut self, field: &str, value: &Value) -> Result<(), String> {
        let (name, rest) = field.split_once('.').unwrap_or((field, ""));
        if name == "set" {
            let text = value.as_str().filter(|_| !rest.is_empty()).ok_or("must be a table of strings")?;
            self.set.get_or_insert_default().insert(rest.to_owned(), text.to_owned());
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

    /// This profile where it says something, else the other.
    pub(crate) fn over(self, other: Self) -> Self {
        let mut set = other.set.unwrap_or_default();
        set.extend(self.set.unwrap_or_default());
        Self {
            like: self.like.or(other.like),
            about: self.about.or(other.about),
            program: self.program.or(other.program),
            args: self.args.or(other.args),
            strict: self.strict.or(other.strict),
            free: self.free.or(other.free),
            chat: self.chat.or(other.chat),
            create_chat: self.create_chat.or(other.create_chat),
            state: self.state.or(other.state),
            prompt: self.prompt.or(other.prompt),
            stream: self.stream.or(other.stream),
            env: self.env.or(other.env),
            set: Some(set),
            model: self.model.or(other.model),
            reads: self.reads.or(other.reads),
            trust_repository: self.trust_repository.or(other.trust_repository),
            tools: self.tools.or(other.tools),
            own_tools: self.own_tools.or(other.own_tools),
            install: self.install.or(other.install),
            wrong: self.wrong.or(other.wrong),
        }
    }
}

/// The names that stand for values.
pub(crate) const PLACEHOLDERS: [&str; 6] = ["prompt", "chatId", "cwd", "roleId", "task", "model"];
/// Those that stand for arguments.
const OTHERS: [&str; 3] = ["mode", "tools", "codexProjects"];

/// A word in braces that is no placeholder, misspelt perhaps.
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
                    return Err(format!(
                        "has `{{{name}}}`, which stands for nothing; these are known: {}",
                        list(known)
                    ));
                }
            }
            _ => return Err(WHAT.to_owned()),
        }
    }
    Ok(())
}
