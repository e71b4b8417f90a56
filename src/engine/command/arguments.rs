//! A command line that is filled in: each value becomes one argument or a part of one, and is never split again.

use super::template::Template;
use super::values::{Values, no_option};
use crate::settings::{Argument, PLACEHOLDERS};

/// What stands for the arguments of the mode.
const MODE: &str = "{mode}";
/// What stands for the arguments that name the server of squad's own tools.
const TOOLS: &str = "{tools}";
/// Tells Codex that it trusts none of the projects around the folder it works in.
const CODEX_PROJECTS: &str = "{codexProjects}";

#[derive(Clone, Debug)]
pub(crate) enum Arguments {
    Listed(Vec<Argument>),
    Template(Template),
}

impl Arguments {
    pub(crate) fn filled(&self, values: &Values) -> Vec<String> {
        match self {
            Self::Template(template) => template.arguments(values),
            Self::Listed(arguments) => {
                let mut filled = Vec::new();
                fill(arguments, values, &mut filled);
                filled
            }
        }
    }

    /// Whether the prompt, or the task, is among them.
    pub(crate) fn has_prompt(&self) -> bool {
        match self {
            Self::Template(template) => template.names().any(|name| name == "prompt" || name == "task"),
            Self::Listed(arguments) => has(arguments, "{prompt}") || has(arguments, "{task}"),
        }
    }

    pub(crate) fn has_tools(&self) -> bool {
        matches!(self, Self::Listed(arguments) if has(arguments, TOOLS))
    }

    /// Whether it says where the mode's arguments belong.
    pub(crate) fn has_mode(&self) -> bool {
        matches!(self, Self::Listed(arguments) if has(arguments, MODE))
    }
}

fn has(arguments: &[Argument], text: &str) -> bool {
    arguments.iter().any(|argument| match argument {
        Argument::One(one) => one == text,
        Argument::Group(group) => has(group, text),
    })
}

fn fill(arguments: &[Argument], values: &Values, filled: &mut Vec<String>) {
    for argument in arguments {
        match argument {
            Argument::Group(group) if is_complete(group, values) => fill(group, values, filled),
            Argument::Group(_) => {}
            Argument::One(text) if text == MODE => filled.extend(values.mode.iter().cloned()),
            Argument::One(text) if text == TOOLS => filled.extend(values.tools.iter().cloned()),
            Argument::One(text) if text == CODEX_PROJECTS => filled.push(values.codex_projects.clone()),
            Argument::One(text) => match placeholder(text) {
                Some(name) => filled.push(no_option(values.get(name).unwrap_or_default())),
                None => filled.push(text.clone()),
            },
        }
    }
}

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
    fn values_are_whole_arguments_and_groups_vanish() {
        let arguments = listed(
            r#"["-p", "{mode}", "{tools}", ["--resume", "{chatId}"], ["-m", "{model}"], "{\"a\":\"{x}\"}", "{prompt}"]"#,
        );
        let mut values = Values { prompt: Some("a 'b' $(c)\n\"d\"".to_owned()), ..Values::default() };
        values.mode = vec!["--safe".to_owned()];
        assert_eq!(arguments.filled(&values), ["-p", "--safe", "{\"a\":\"{x}\"}", "a 'b' $(c)\n\"d\""]);
        values.chat_id = Some("c-1".to_owned());
        assert_eq!(arguments.filled(&values)[2..4], ["--resume", "c-1"]);
        assert!(arguments.has_prompt() && arguments.has_mode());
    }

    #[test]
    fn no_value_is_an_option() {
        let values = Values { task: Some("--dangerously-skip-permissions".to_owned()), ..Values::default() };
        assert_eq!(listed(r#"["{task}"]"#).filled(&values), [" --dangerously-skip-permissions"]);
    }
}
