//! What squad and the real programs say to each other, as shapes: which messages there are, and which fields of which
//! types they have. What is new in another release of a program is then the difference of a file.
//!
//! `UPDATE_EXPECT=1 cargo test --test real -- frames::` writes the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::codex::on_codex;
use crate::model_server::Script;
use crate::session_engines::world_of;
use crate::support::{World, call, decide, plays, shell};

/// Fields whose values tell kinds of messages apart.
const KINDS: [&str; 9] = [
    "/method",
    "/type",
    "/subtype",
    "/request/subtype",
    "/event/type",
    "/event/delta/type",
    "/params/event/type",
    "/params/item/type",
    "/params/hookType",
];
/// What a tool takes and returns, and tables whose keys are names of models, tools or sessions.
const OPAQUE: [&str; 13] = [
    "arguments",
    "env",
    "input",
    "inputSchema",
    "modelMetrics",
    "modelUsage",
    "model_usage_since_last_result",
    "parameters",
    "toolArgs",
    "tool_input",
    "tool_response",
    "updatedInput",
    "usageAccountingWatermarks",
];

/// The types of all fields, by their paths.
type Shape = BTreeMap<String, BTreeSet<&'static str>>;

#[derive(Default)]
struct Shapes {
    all: BTreeMap<String, Shape>,
    /// What was asked, by who asked and the request's id.
    asked: BTreeMap<(String, String), String>,
}

impl Shapes {
    /// A line of squad's log.
    fn add(&mut self, line: &str) {
        let Some((direction, message)) =
            ["-> {", "<- {"].iter().find_map(|mark| Some((&mark[..2], &line[line.find(mark)? + 3..])))
        else {
            return;
        };
        let message: Value = serde_json::from_str(message).expect(line);
        let kind = format!("{direction} {}", self.kind(direction, &message));
        describe(self.all.entry(kind).or_default(), "", &message);
    }

    fn kind(&mut self, direction: &str, message: &Value) -> String {
        let named = KINDS.iter().filter_map(|path| message.pointer(path)?.as_str()).collect::<Vec<_>>().join(" ");
        let other = if direction == "->" { "<-" } else { "->" };
        let answered = message.pointer("/response/request_id").or(message.get("id").filter(|_| named.is_empty()));
        if let Some(question) = answered.and_then(|id| self.asked.get(&(other.to_owned(), id.to_string()))) {
            return format!("answer to {question}");
        }
        if let Some(id) = message.get("request_id").or(message.get("id")) {
            self.asked.insert((direction.to_owned(), id.to_string()), named.clone());
        }
        named
    }

    fn shown(&self) -> String {
        let mut text = String::new();
        for (kind, shape) in &self.all {
            text.push_str(&format!("{kind}\n"));
            for (path, types) in shape {
                text.push_str(&format!("  {path}: {}\n", types.iter().copied().collect::<Vec<_>>().join(" or ")));
            }
        }
        text
    }
}

fn describe(shape: &mut Shape, path: &str, value: &Value) {
    let name = path.rsplit('.').next().unwrap_or_default();
    let mut is = |what| {
        shape.entry(path.to_owned()).or_default().insert(what);
    };
    match value {
        Value::Null => is("null"),
        Value::Bool(_) => is("boolean"),
        Value::Number(_) => is("number"),
        Value::String(_) => is("string"),
        Value::Object(_) if OPAQUE.contains(&name) => is("object"),
        Value::Array(_) if OPAQUE.contains(&name) => is("array"),
        Value::Array(items) if items.is_empty() => is("array"),
        Value::Object(fields) if fields.is_empty() => is("object"),
        Value::Array(items) => items.iter().for_each(|item| describe(shape, &format!("{path}[]"), item)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            describe(shape, &path, value);
        }),
    }
}

/// An agent calls a tool of squad's and a command, and answers in pieces; then it is refused the same command.
fn shapes(world: impl Fn(Script) -> World, own: &str, command: &str) -> String {
    let mut shapes = Shapes::default();
    for (permissions, steps, code) in
        [("allow", &[own, command, "stream:3 say:The endpoint is there."][..], 0), ("deny", &[command, "say:No."], 5)]
    {
        let mut world = world(plays("ada", steps));
        world.repo.variables.insert("SQUAD_LOG".to_owned(), "debug".to_owned());
        let ended = world.run(&["orchestrate", "--json", "--permissions", permissions, "--agent", "ada", "Build it"]);
        assert_eq!(ended.code, Some(code), "{ended}");
        ended.err.lines().for_each(|line| shapes.add(line));
    }
    shapes.shown()
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/frames").join(name)
}

fn decision() -> Value {
    json!({ "title": "Errors are JSON", "what": "One shape.", "why": "Clients parse it." })
}

#[test]
fn claude_code_says_what_it_said() {
    let own = call("mcp__squad__squad_log_decision", &decision());
    let command = call("Bash", &json!({ "command": "echo one > ada.txt", "description": "A test's command" }));
    let shapes = shapes(|script| world_of("", |_| [script]), &own, &command);
    expect_file![golden("claude.txt")].assert_eq(&shapes);
}

#[test]
fn codex_says_what_it_said() {
    let world = |script| {
        let mut world = World::new(|_| [script]);
        on_codex(&mut world, &[], "gpt-5.5");
        world
    };
    let command = call("exec_command", &json!({ "cmd": "echo one > ada.txt" }));
    let shapes = shapes(world, &call("squad_log_decision", &decision()), &command);
    expect_file![golden("codex.txt")].assert_eq(&shapes);
}

#[test]
fn copilot_says_what_it_said() {
    let shapes = shapes(|script| World::new(|_| [script]), &decide("Errors are JSON"), &shell("echo one > ada.txt"));
    expect_file![golden("copilot.txt")].assert_eq(&shapes);
}
