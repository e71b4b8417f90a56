//! Squad's own tools, which every session is offered.
//!
//! [`Tool::ALL`] is the one list. A call is first read into what the agent means, strictly; what is wrong with it is
//! told to the model, which can then mend its call.

mod files;
mod shell;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::{ToolCall, ToolSpec};
use crate::model::{Decision, DecisionId, Judgement, NoteKind, first_line, printable};
use crate::parse::{self, Files};

pub(crate) use files::{FileCall, Operation, text_at};
pub(crate) use shell::ShellCall;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    LogDecision,
    Remember,
    Decisions,
    Verdict,
    Route,
    Status,
    Commit,
    Shell,
    FileOps,
}

/// What a call asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Intent {
    /// Persist a decision. Its id, date and run are given when it is recorded.
    Decide(Box<Decision>),
    /// Persist something learned.
    Remember {
        text: String,
        /// Proposed as a note of knowledge.
        share: Option<NoteKind>,
    },
    /// Search the decisions in force and the notes of knowledge.
    Search(String),
    /// Say what a review found.
    Judge(Judgement),
    /// Hand work to a colleague.
    Route(Handing),
    /// Who is at what.
    Status,
    /// Commit files.
    Commit(Committing),
    /// Run a command.
    Shell(ShellCall),
    /// Read, write or list files.
    Files(FileCall),
}

/// Work for a colleague.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Handing {
    /// As the model names it.
    pub(crate) agent: String,
    pub(crate) task: String,
    pub(crate) wait: bool,
}

/// A commit of the agent's own files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Committing {
    pub(crate) message: String,
    /// Files and folders, from the project's root; empty: all that can be committed.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
}

/// Longer than any decision in the trees we know; keeps one call from filling the ledger.
const LONGEST_TEXT: usize = 64 * 1024;

impl Tool {
    pub(crate) const ALL: [Self; 9] = [
        Self::LogDecision,
        Self::Remember,
        Self::Decisions,
        Self::Verdict,
        Self::Route,
        Self::Status,
        Self::Commit,
        Self::Shell,
        Self::FileOps,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LogDecision => "squad_log_decision",
            Self::Remember => "squad_remember",
            Self::Decisions => "squad_decisions",
            Self::Verdict => "squad_verdict",
            Self::Route => "squad_route",
            Self::Status => "squad_status",
            Self::Commit => "squad_commit",
            Self::Shell => "shell",
            Self::FileOps => "file_ops",
        }
    }

    /// Whether it can be used beside a run: it needs no turn of an agent.
    pub(crate) fn is_independent(self) -> bool {
        matches!(self, Self::LogDecision | Self::Remember | Self::Decisions | Self::Status)
    }

    /// Whether it stands in for tools that an engine lacks. Others would have two of each.
    pub(crate) fn is_project_tool(self) -> bool {
        matches!(self, Self::Shell | Self::FileOps)
    }

    pub(crate) fn spec(self) -> ToolSpec {
        // A test checks that it parses and has every tool.
        static SPECS: LazyLock<Value> =
            LazyLock::new(|| serde_json::from_str(include_str!("specs.json")).unwrap_or_default());
        let spec = &SPECS[self.name()];
        let description = spec["description"].as_str().unwrap_or_default();
        ToolSpec { name: self.name().into(), description: description.into(), parameters: spec["parameters"].clone() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogDecision {
    title: String,
    // `decision` and `context` are what the "squads" document calls them.
    #[serde(alias = "decision", default)]
    what: String,
    #[serde(alias = "context", default)]
    why: String,
    #[serde(default)]
    scope: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    supersedes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remember {
    text: String,
    #[serde(default)]
    share: Option<NoteKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenVerdict {
    approved: bool,
    reasons: String,
    #[serde(default)]
    files: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenRoute {
    agent: String,
    task: String,
    #[serde(default = "yes")]
    wait: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Search {
    #[serde(default)]
    query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

/// What a call means, or what the model should mend.
pub(crate) fn read(call: &ToolCall) -> Result<Intent, String> {
    let tool = Tool::ALL.into_iter().find(|tool| tool.name() == call.tool);
    match tool {
        None => Err(format!("squad has no tool `{}`", call.tool)),
        Some(Tool::LogDecision) => {
            let given: LogDecision = arguments(call)?;
            let title = title_of(&given.title);
            if title.is_empty() {
                return Err("`title` is empty; say the decision in a sentence".to_owned());
            }
            let text = [("What", given.what), ("Why", given.why)]
                .iter()
                .filter(|(_, text)| !text.trim().is_empty())
                .map(|(name, text)| format!("**{name}:** {}", printable(text.trim())))
                .collect::<Vec<_>>()
                .join("\n\n");
            limited(&text)?;
            limited(&title)?;
            let supersedes = given.supersedes.as_deref().map(str::trim).filter(|id| !id.is_empty());
            let no_id = |id: &str| format!("`supersedes`: {id:?} is not a decision's id");
            let supersedes = supersedes.map(|id| DecisionId::parse(id).ok_or_else(|| no_id(id))).transpose()?;
            Ok(Intent::Decide(Box::new(Decision {
                supersedes,
                scope: given.scope,
                tags: given.tags,
                ..decision(title, text)
            })))
        }
        Some(Tool::Remember) => {
            let Remember { text, share } = arguments(call)?;
            let text = printable(text.trim());
            if text.is_empty() {
                return Err("`text` is empty".to_owned());
            }
            limited(&text)?;
            Ok(Intent::Remember { text, share })
        }
        Some(Tool::Decisions) => Ok(Intent::Search(arguments::<Search>(call)?.query)),
        Some(Tool::Verdict) => {
            let GivenVerdict { approved, reasons, files } = arguments(call)?;
            let reasons = printable(reasons.trim());
            limited(&reasons)?;
            if !approved && reasons.is_empty() {
                return Err("`reasons` is empty; say what has to change".to_owned());
            }
            Ok(Intent::Judge(Judgement { approved, reasons, files }))
        }
        Some(Tool::Route) => {
            let GivenRoute { agent, task, wait } = arguments(call)?;
            let task = printable(task.trim());
            if task.is_empty() {
                return Err("`task` is empty; say what the colleague is to do".to_owned());
            }
            limited(&task)?;
            Ok(Intent::Route(Handing { agent, task, wait }))
        }
        Some(Tool::Status) => arguments::<NoArguments>(call).map(|NoArguments {}| Intent::Status),
        Some(Tool::Commit) => {
            let Committing { message, paths } = arguments(call)?;
            let message = printable(message.trim());
            if message.is_empty() {
                return Err("`message` is empty; say what the commit changes".to_owned());
            }
            limited(&message)?;
            Ok(Intent::Commit(Committing { message, paths }))
        }
        Some(Tool::Shell) => arguments::<ShellCall>(call)?.check().map(Intent::Shell),
        Some(Tool::FileOps) => arguments::<FileCall>(call)?.check().map(Intent::Files),
    }
}

/// The decisions of a note as agents of other tools write it into an inbox; one at least.
pub(crate) fn note(text: &str) -> Result<Vec<Decision>, String> {
    const NOTE: &str = "decisions/inbox/note.md";
    limited(text)?;
    let text = printable(text);
    let files = Files { texts: [(NOTE.to_owned(), text.clone())].into(), ..Files::default() };
    let found = parse::decisions(&files).into_iter().map(|found| {
        let title = title_of(&found.title);
        let text = match found.text.split_once('\n') {
            // A note that is one decision begins with its title.
            Some((first, rest)) if first.starts_with('#') && first.contains(&title) => rest,
            _ => &found.text,
        };
        Decision { status: found.status, ..decision(title, text.trim().to_owned()) }
    });
    let mut found: Vec<Decision> = found.filter(|decision| !decision.title.is_empty()).collect();
    // The newest stands first there, and is recorded last.
    found.reverse();
    if found.is_empty() {
        let title = title_of(first_line(&text, 120).trim_start_matches('#'));
        if title.is_empty() {
            return Err("the note is empty".to_owned());
        }
        found.push(decision(title, text.trim().to_owned()));
    }
    Ok(found)
}

/// What a model says may hold anything; in a file and a commit message it has to be text.
fn title_of(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn decision(title: String, text: String) -> Decision {
    Decision::new(DecisionId::unrecorded(), title, text)
}

fn arguments<T: for<'a> Deserialize<'a>>(call: &ToolCall) -> Result<T, String> {
    // Some models send the arguments as a text that holds JSON, and none as null.
    let value = match &call.arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| call.arguments.clone()),
        Value::Null => json!({}),
        other => other.clone(),
    };
    serde_json::from_value(value).map_err(|error| format!("invalid arguments for `{}`: {error}", call.tool))
}

fn limited(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_TEXT {
        return Err(format!("the text is {} bytes; at most {LONGEST_TEXT} are kept", text.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: Value) -> ToolCall {
        ToolCall { call: "c".to_owned(), tool: tool.to_owned(), arguments }
    }

    #[test]
    fn a_decision_is_read_with_what_and_why() {
        let call = call("squad_log_decision", json!({"title": " Use\nSQLite ", "what": "one file", "why": "simple"}));
        let Ok(Intent::Decide(decision)) = read(&call) else { panic!("not a decision") };
        assert_eq!(
            (decision.title.as_str(), decision.text.as_str()),
            ("Use SQLite", "**What:** one file\n\n**Why:** simple")
        );
    }

    #[test]
    fn control_characters_do_not_get_into_a_decision() {
        let call = call("squad_log_decision", json!({"title": "Bad \u{0}\u{1b}[2Jtitle", "what": "a\u{7}b"}));
        let Ok(Intent::Decide(decision)) = read(&call) else { panic!("not a decision") };
        assert_eq!(
            (decision.title.as_str(), decision.text.as_str()),
            ("Bad [U+0000][U+001B][2Jtitle", "**What:** a[U+0007]b")
        );
    }

    #[test]
    fn a_note_is_a_decision_or_several() {
        let read = |text: &str| -> Vec<(String, String)> {
            note(text).expect("a note").into_iter().map(|decision| (decision.title, decision.text)).collect()
        };
        let of = |title: &str, text: &str| (title.to_owned(), text.to_owned());
        assert_eq!(
            read("### 2026-01-05: Use tar\n**By:** Kane\n**What:** tar\n"),
            [of("Use tar", "**By:** Kane\n**What:** tar")]
        );
        assert_eq!(
            read("# Use tar\n\nIt is black.\n\n## Why\n\nWax melts.\n"),
            [of("Use tar", "It is black.\n\n## Why\n\nWax melts.")]
        );
        assert_eq!(read("Use tar"), [of("Use tar", "Use tar")]);
        let two = "### 2026-01-05: Tar\nblack\n\n### 2026-01-06: Wax\nwhite\n";
        assert_eq!(read(two), [of("Tar", "black"), of("Wax", "white")]);
        assert!(!read("\u{1b}[2JUse \u{0}tar").remove(0).0.contains(char::is_control));
        assert!(note(" \n").is_err() && note(&"x".repeat(LONGEST_TEXT + 1)).is_err());
    }

    #[test]
    fn what_is_wrong_is_told_to_the_model() {
        for (tool, arguments) in [
            ("squad_log_decision", json!({})),
            ("squad_log_decision", json!({"title": " "})),
            ("squad_log_decision", json!({"title": "Use tar", "text": "It is black."})),
            ("squad_remember", json!({"text": "a", "why": "b"})),
            ("squad_verdict", json!({"approved": false, "reasons": "a", "file": ["b"]})),
            ("squad_route", json!({"agent": "a", "task": "b", "context": "c"})),
            ("squad_decisions", json!({"query": "a", "text": "b"})),
            ("squad_remember", json!({"text": 1})),
            ("squad_remember", json!([])),
            ("squad_remember", json!({"text": "x".repeat(LONGEST_TEXT + 1)})),
            ("squad_commit", json!({})),
            ("squad_commit", json!({"message": " \n"})),
            ("squad_commit", json!({"message": "a", "paths": "b"})),
            ("squad_unknown", json!({})),
        ] {
            assert!(read(&call(tool, arguments)).is_err(), "{tool}");
        }
    }

    /// Every tool, with each of its arguments missing, of another type, and with one that it does not have.
    #[test]
    fn every_tool_takes_what_its_schema_has_and_nothing_else() {
        let example = |name: &str, schema: &Value| match (name, schema["type"].as_str()) {
            ("operation", _) => json!("read"),
            ("share", _) => json!("pitfall"),
            ("supersedes", _) => json!("0123456789ab"),
            (_, Some("boolean")) => json!(true),
            (_, Some("integer")) => json!(1),
            (_, Some("array")) => json!(["a"]),
            _ => json!("a"),
        };
        for tool in Tool::ALL {
            let ToolSpec { parameters, .. } = tool.spec();
            let name = tool.name();
            let properties = parameters["properties"].as_object().expect("an object");
            let required: Vec<&str> =
                parameters["required"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
            let all: serde_json::Map<String, Value> =
                properties.iter().map(|(name, schema)| (name.clone(), example(name, schema))).collect();
            let is_read =
                |given: &serde_json::Map<String, Value>| read(&call(name, Value::Object(given.clone()))).is_ok();
            // A file is not read with a text to write.
            let fits = |given: &serde_json::Map<String, Value>| {
                let mut given = given.clone();
                if tool == Tool::FileOps && given.len() == properties.len() {
                    given.remove("content");
                }
                given
            };
            assert!(is_read(&fits(&all)), "{name}");
            for argument in properties.keys() {
                let mut without = fits(&all);
                without.remove(argument);
                // A decision of one sentence has no more to say.
                let may_lack = !required.contains(&argument.as_str())
                    || (name, argument.as_str()) == ("squad_log_decision", "what");
                assert_eq!(is_read(&without), may_lack, "{name} without {argument}");
                let mut wrong = fits(&all);
                wrong.insert(argument.clone(), json!({"a": 1}));
                assert!(!is_read(&wrong), "{name} with a wrong {argument}");
                let mut mistyped = without;
                mistyped.insert(format!("{argument}x"), all[argument].clone());
                assert!(!is_read(&mistyped), "{name} with {argument}x");
            }
            let mut more = fits(&all);
            more.insert("another".to_owned(), json!("a"));
            assert!(!is_read(&more), "{name} with another");
        }
    }

    #[test]
    fn arguments_may_come_as_text() {
        assert_eq!(
            read(&call("squad_remember", json!("{\"text\":\"a\"}"))),
            Ok(Intent::Remember { text: "a".to_owned(), share: None })
        );
        assert_eq!(read(&call("squad_decisions", Value::Null)), Ok(Intent::Search(String::new())));
    }
}
