//! Command lines with placeholders. A value becomes one argument, or part of one, and is never split.

use std::path::Path;

use super::codex_projects;
use super::template::Template;
use super::values::{Values, escape_option};
use crate::settings::{Argument, PLACEHOLDERS};

/// The placeholder of the mode's arguments.
const MODE: &str = "{mode}";
/// The placeholder of the arguments that configure the server of squad's tools.
const TOOLS: &str = "{tools}";
/// The placeholder of an option that marks all projects around the folder as untrusted.
const CODEX_PROJECTS: &str = "{codexProjects}";

#[derive(Clone, Debug)]
pub(crate) enum Arguments {
    Listed(Vec<Argument>),
    Template(Template),
}

impl Arguments {
    pub(crate) fn expand(&self, values: &Values) -> Vec<String> {
        match self {
            Self::Template(template) => template.arguments(values),
            Self::Listed(arguments) => {
                let mut expanded = Vec::new();
                expand(arguments, values, &mut expanded);
                expanded
            }
        }
    }

    /// Whether the prompt or the task is an argument.
    pub(crate) fn has_prompt(&self) -> bool {
        match self {
            Self::Template(template) => template.names().any(|name| name == "prompt" || name == "task"),
            Self::Listed(arguments) => contains(arguments, "{prompt}") || contains(arguments, "{task}"),
        }
    }

    pub(crate) fn has_tools(&self) -> bool {
        matches!(self, Self::Listed(arguments) if contains(arguments, TOOLS))
    }

    pub(crate) fn has_model(&self) -> bool {
        match self {
            Self::Template(template) => template.names().any(|name| name == "model"),
            Self::Listed(arguments) => contains(arguments, "{model}"),
        }
    }

    pub(crate) fn has_mode(&self) -> bool {
        matches!(self, Self::Listed(arguments) if contains(arguments, MODE))
    }
}

fn contains(arguments: &[Argument], text: &str) -> bool {
    arguments.iter().any(|argument| match argument {
        Argument::One(one) => one == text,
        Argument::Group(group) => contains(group, text),
    })
}

fn expand(arguments: &[Argument], values: &Values, expanded: &mut Vec<String>) {
    for argument in arguments {
        match argument {
            Argument::Group(group) if is_complete(group, values) => expand(group, values, expanded),
            Argument::Group(_) => {}
            Argument::One(text) if text == MODE => expanded.extend(values.mode.iter().cloned()),
            Argument::One(text) if text == TOOLS => expanded.extend(values.tools.iter().cloned()),
            Argument::One(text) if text == CODEX_PROJECTS => {
                expanded.extend(values.cwd.iter().map(|folder| codex_projects(Path::new(folder))));
            }
            Argument::One(text) => match placeholder(text) {
                Some(name) => expanded.push(escape_option(values.get(name).unwrap_or_default())),
                None => expanded.push(text.clone()),
            },
        }
    }
}

/// Whether every placeholder of a group has a value. Nested groups do not count.
fn is_complete(group: &[Argument], values: &Values) -> bool {
    group.iter().all(|argument| match argument {
        Argument::Group(_) => true,
        Argument::One(text) => placeholder(text).is_none_or(|name| values.get(name).is_some()),
    })
}

fn placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    PLACEHOLDERS.contains(&name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Arguments {
        #[derive(serde::Deserialize)]
        struct Table {
            args: Vec<Argument>,
        }
        let table: Table = toml::from_str(&format!("args = {text}")).expect("a list");
        Arguments::Listed(table.args)
    }

    #[test]
    fn values_are_whole_arguments_and_incomplete_groups_are_left_out() {
        let arguments = listed(
            r#"["-p", "{mode}", "{tools}", ["--resume", "{chatId}"], ["-m", "{model}"], "{\"a\":\"{x}\"}", "{prompt}"]"#,
        );
        let mut values = Values { prompt: Some("a 'b' $(c)\n\"d\"".to_owned()), ..Values::default() };
        values.mode = ["--mode", "safe"].map(str::to_owned).to_vec();
        assert_eq!(arguments.expand(&values), ["-p", "--mode", "safe", "{\"a\":\"{x}\"}", "a 'b' $(c)\n\"d\""]);
        values.chat_id = Some("c-1".to_owned());
        assert_eq!(arguments.expand(&values)[3..5], ["--resume", "c-1"]);
        assert!(arguments.has_prompt() && arguments.has_mode());
    }

    #[test]
    fn a_value_never_becomes_an_option() {
        let values = Values { task: Some("--dangerously-skip-permissions".to_owned()), ..Values::default() };
        assert_eq!(listed(r#"["{task}"]"#).expand(&values), [" --dangerously-skip-permissions"]);
    }
}
