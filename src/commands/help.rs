use clap::{Command, CommandFactory};

use super::{Arguments, Context, Ended};
use crate::error::Failure;
use crate::model::list;

/// A text on what a command's own help has no room for.
struct Topic {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! topics {
    ($($name:literal $about:literal;)*) => {
        const TOPICS: &[Topic] = &[$(Topic {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../templates/help/", $name, ".md")),
        }),*];
    };
}

topics! {
    "charters" "charters that work";
    "routing" "how a message finds its agents";
    "decisions" "decisions, in pull requests too";
    "ci" "squad without a terminal";
    "engines" "which programs run the agents";
    "hosts" "agents on other machines";
    "ledger" "what is recorded, and in which format";
    "migrate" "coming from other tools";
    "rehearsal" "scripts that play without a model";
}

/// Show the help of a command, or a topic
#[derive(clap::Args)]
#[command(after_help = listed())]
pub(super) struct Args {
    /// A command such as `decisions add`, or a topic
    #[arg(value_name = "COMMAND or TOPIC")]
    words: Vec<String>,
}

fn listed() -> String {
    let lines = TOPICS.iter().map(|topic| format!("\n  {:<12} {}", topic.name, topic.about));
    format!("Topics:{}", lines.collect::<String>())
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let topic = TOPICS.iter().find(|topic| words == [topic.name]);
        let text = match topic {
            Some(topic) => topic.text.to_owned(),
            None => help_of(&words)?,
        };
        if context.ui.json() {
            context.ui.value(&serde_json::json!({ "help": text }));
            return Ok(0);
        }
        context.page();
        context.ui.data(&text);
        if topic.is_some_and(|topic| Arguments::command().find_subcommand(topic.name).is_some()) {
            context.ui.hint(&format!("`squad {} --help` describes the command", words.join(" ")));
        }
        Ok(0)
    }
}

/// The help of a command, which is named by one word or several.
fn help_of(words: &[&str]) -> Result<String, Failure> {
    let mut found = command(words).ok_or_else(|| {
        Failure::usage(format!("there is no command or topic `{}`", words.join(" ")))
            .hint(format!("`squad --help` lists the commands; topics: {}", list(TOPICS.iter().map(|topic| topic.name))))
    })?;
    let help = found.render_long_help().to_string();
    Ok(if words.is_empty() { format!("{help}\n\n{}", listed()) } else { help })
}

/// A command, which is named by one word or several, with its whole name and the options of all.
pub(super) fn command(words: &[&str]) -> Option<Command> {
    let mut command = Arguments::command();
    command.build();
    words.iter().try_fold(command, |command, word| command.find_subcommand(word).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EventKind;

    #[test]
    fn the_topic_on_the_ledger_names_every_type_of_event() {
        let topic = TOPICS.iter().find(|topic| topic.name == "ledger").expect("the topic");
        let rows: Vec<_> = topic.text.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(". ")).collect();
        for name in EventKind::NAMES {
            let Some((group, kind)) = name.split_once('.') else {
                assert!(topic.text.contains(&format!("\n    {name} ")), "{name}");
                continue;
            };
            let of_group = rows.iter().filter(|(other, _)| *other == group);
            assert!(of_group.flat_map(|(_, kinds)| kinds.trim().split(", ")).any(|other| other == kind), "{name}");
        }
    }
}
