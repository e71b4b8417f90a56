//! A rehearsal's script: a small TOML file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::model::{Slug, Usage};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    #[serde(rename = "turn", default)]
    pub(super) turns: Vec<Turn>,
    /// The models it offers, the default first; `None`: every model.
    pub(super) models: Option<Vec<String>>,
    /// As it is written.
    #[serde(skip)]
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    pub(super) agent: String,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub(super) enum Step {
    Wait(Duration),
    Say(String),
    Tool {
        name: String,
        arguments: Value,
    },
    Write {
        path: String,
        text: String,
    },
    /// Runs a command line in the project.
    Run(String),
    /// Reads a file of the project. Only improvised turns have this step.
    Read(String),
    Ask(String),
    /// Waits for a message from the user during the turn, and repeats it.
    Listen,
    /// The turn fails, also when it is tried again.
    Fail(String),
    /// The turn fails. When it is tried again, the steps after this one are played.
    Error(String),
    /// The turn ends because the account's quota is used up for so long. When it is tried again, the rest is played.
    Quota(Duration),
    /// A model call used this.
    Use(Box<Usage>),
    /// Never ends, to test time limits.
    Hang,
    /// The whole engine dies.
    Die,
    /// Simulates a bug in squad: the task that reads the session panics.
    Panic(String),
}

/// A step as written in the file: a table with one of these keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    wait: Option<String>,
    say: Option<String>,
    tool: Option<String>,
    args: Option<Value>,
    write: Option<String>,
    text: Option<String>,
    run: Option<String>,
    ask: Option<String>,
    listen: Option<bool>,
    fail: Option<String>,
    error: Option<String>,
    quota: Option<String>,
    usage: Option<Usage>,
    hang: Option<bool>,
    die: Option<bool>,
    panic: Option<String>,
}

impl TryFrom<Written> for Step {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let mut steps = Vec::new();
        let time = |name: &str, text: String| {
            let span: jiff::SignedDuration =
                text.parse().map_err(|_| format!("`{name} = \"{text}\"` is not a duration such as \"300ms\""))?;
            Duration::try_from(span).map_err(|_| format!("a {name} cannot be negative"))
        };
        if let Some(text) = written.wait {
            steps.push(Self::Wait(time("wait", text)?));
        }
        if let Some(text) = written.quota {
            steps.push(Self::Quota(time("quota", text)?));
        }
        steps.extend(written.say.map(Self::Say));
        if let Some(name) = written.tool {
            steps.push(Self::Tool {
                name,
                arguments: written.args.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
            });
        }
        if let Some(path) = written.write {
            // A multi-line text begins on the line after its quotes.
            let text = written.text.unwrap_or_default();
            let text = text.strip_prefix('\n').map_or(text.clone(), str::to_owned);
            steps.push(Self::Write { path, text });
        }
        steps.extend(written.run.map(Self::Run));
        steps.extend(written.ask.map(Self::Ask));
        steps.extend(written.listen.filter(|yes| *yes).map(|_| Self::Listen));
        steps.extend(written.fail.map(Self::Fail));
        steps.extend(written.error.map(Self::Error));
        steps.extend(written.usage.map(|usage| Self::Use(Box::new(usage))));
        steps.extend(written.hang.filter(|yes| *yes).map(|_| Self::Hang));
        steps.extend(written.die.filter(|yes| *yes).map(|_| Self::Die));
        steps.extend(written.panic.map(Self::Panic));
        match <[Self; 1]>::try_from(steps) {
            Ok([step]) => Ok(step),
            Err(steps) => Err(format!(
                "a step has one of wait, say, tool, write, run, ask, listen, fail, error, quota, usage, hang, die, panic; this one has {}",
                steps.len()
            )),
        }
    }
}

impl Script {
    /// The rest of the script after these numbers of turns have been played.
    pub(crate) fn after(mut self, mut played: BTreeMap<Slug, usize>) -> Self {
        self.turns.retain(|turn| match played.iter_mut().find(|(agent, _)| agent.as_str() == turn.agent) {
            Some((_, left @ 1..)) => {
                *left -= 1;
                false
            }
            _ => true,
        });
        self
    }

    /// Parses a script. The error names the line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut script: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text.bytes().take(span.start).filter(|b| *b == b'\n').count());
            format!("line {line}: {}", error.message().trim())
        })?;
        if script.models.as_ref().is_some_and(Vec::is_empty) {
            return Err("line 1: `models` is empty; leave it out to offer every model".to_owned());
        }
        text.clone_into(&mut script.text);
        let says_nothing = script.turns.is_empty() && script.models.is_none();
        if says_nothing { Err("line 1: there is no `[[turn]]` in it".to_owned()) } else { Ok(script) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read() {
        let script = Script::parse(
            "[[turn]]\nagent = \"a\"\nsteps = [{ wait = \"1s\" }, { say = \"hi\" }, { tool = \"t\", args = { x = 1 } }, { die = true }]\n",
        );
        let steps = script.expect("a script").turns.remove(0).steps;
        assert_eq!(
            steps,
            [
                Step::Wait(Duration::from_secs(1)),
                Step::Say("hi".to_owned()),
                Step::Tool { name: "t".to_owned(), arguments: serde_json::json!({"x": 1}) },
                Step::Die,
            ]
        );
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [
            ("[[turn]]\nagent = \"a\"\nsteps = [{ sey = \"hi\" }]\n", "line 3"),
            ("[[turn]]\nagent = \"a\"\nsteps = [{ say = \"hi\", fail = \"x\" }]\n", "line 3"),
            ("[[turn]]\nagent = \"a\"\nsteps = [{ wait = \"soon\" }]\n", "line 3"),
            ("\nx", "line 2"),
            ("models = []\n", "line 1"),
            ("", "line 1"),
        ] {
            let error = Script::parse(text).expect_err("a mistake");
            assert!(error.starts_with(line), "{error}");
        }
    }
}
