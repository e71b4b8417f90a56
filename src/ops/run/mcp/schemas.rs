//! The schemas of the tools. Written by hand, because strict clients reject schemas with references and with types that
//! may be null.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::check::{MOST_MEMBERS, MOST_SECONDS};
use crate::ops::run::reviewing::MOST_REVIEWERS;

fn tool(name: &str, title: &str, description: &str, hints: Value, input: Value) -> Value {
    json!({"name": name, "title": title, "description": description, "inputSchema": input, "annotations": hints})
}

/// The schema of a tool's arguments.
pub(super) fn input(tool: &str) -> Option<&'static Value> {
    static TOOLS: LazyLock<Vec<Value>> = LazyLock::new(tools);
    TOOLS.iter().find(|known| known["name"] == tool)?.get("inputSchema")
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn reads() -> Value {
    json!({"readOnlyHint": true, "openWorldHint": false})
}

pub(super) fn tools() -> Vec<Value> {
    vec![
        list_roles(),
        start_squad_members(),
        review_changes(),
        list_engines(),
        get_run(),
        cancel_run(),
        orchestrate(),
        log_decision(),
        list_decisions(),
        init_squad(),
    ]
}

/// The tools as a client sees them: with the engines there are, and without chats where the server keeps none.
pub(super) fn offered(engines: &[String], is_stateful: bool) -> Vec<Value> {
    let mut tools = tools();
    for tool in &mut tools {
        let input = &mut tool["inputSchema"]["properties"];
        if let Some(member) = input.pointer_mut("/members/items/properties").and_then(Value::as_object_mut) {
            member["engine"]["enum"] = json!(engines);
            if !is_stateful {
                member.shift_remove("chatId");
            }
        }
        if let Some(engine) = input.pointer_mut("/engines/items") {
            engine["enum"] = json!(engines);
        }
    }
    tools
}

fn list_roles() -> Value {
    let role = json!({
        "id": {"type": "string"}, "name": {"type": "string"}, "description": {"type": "string"},
        "digest": {"type": "string"}, "source": {"type": "string"}, "error": {"type": "string"},
    });
    let role = json!({"type": "object", "properties": role, "required": ["id", "name", "description", "digest"]});
    let roles = json!({
        "roles": {"type": "array", "items": role},
        "problems": {"type": "array", "items": {"type": "string"}},
    });
    let mut tool = tool(
        "list_roles",
        "List roles",
        "The roles that members can be started in. One with an `error` cannot be used.",
        reads(),
        object(json!({"query": text("Only roles whose id, name or description contains these words.")}), &[]),
    );
    tool["outputSchema"] = json!({"type": "object", "properties": roles, "required": ["roles"]});
    tool
}

/// The result of every tool that returns a run. Only one tool describes it: clients pay for each copy.
fn run() -> Value {
    let status = json!({"type": "string", "enum": ["queued", "running", "completed", "error", "timeout"]});
    let member = json!({
        "memberId": {"type": "string"}, "roleId": {"type": "string"}, "cwd": {"type": "string"},
        "chatId": {"type": "string"}, "status": status, "exitCode": {"type": "integer"},
        "signal": {"type": "integer"}, "reason": {"type": "string"}, "durationMs": {"type": "integer"},
        "text": {"type": "string"}, "textUri": {"type": "string"}, "changedMore": {"type": "integer"},
        "changed": {"type": "array", "items": {"type": "object"}}, "inputTokens": {"type": "integer"},
        "outputTokens": {"type": "integer"},
        "rawStdout": {"type": "string"}, "rawStderr": {"type": "string"}, "truncated": {"type": "boolean"},
        "governedBy": {"type": "string"}, "logUri": {"type": "string"},
    });
    let required = ["memberId", "roleId", "status", "durationMs", "rawStdout", "rawStderr", "truncated", "logUri"];
    let member = json!({"type": "object", "properties": member, "required": required});
    let decision = json!({"id": {"type": "string"}, "title": {"type": "string"}, "state": {"type": "string"}});
    let decision = json!({"type": "object", "properties": decision, "required": ["id", "title", "state"]});
    let properties = json!({
        "squadId": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
        "answer": {"type": "string"}, "hint": {"type": "string"},
        "decisions": {"type": "array", "items": decision}, "agents": {"type": "object"},
        "reasons": {"type": "object"}, "members": {"type": "array", "items": member},
    });
    json!({"type": "object", "properties": properties, "required": ["squadId", "status", "members"]})
}

fn start_squad_members() -> Value {
    let member = object(
        json!({
            "roleId": text("The id of a role, from `list_roles`."),
            "task": text("The whole task: the member does not see your conversation."),
            "cwd": text("A folder of the project to work in. Default: the project's root."),
            "chatId": text("Continues an earlier member's chat, if the server keeps chats."),
            "engine": text("Default: the project's."),
            "timeoutSec": {"type": "integer", "minimum": 1, "maximum": MOST_SECONDS,
                           "description": "Time limit in seconds."},
        }),
        &["roleId", "task"],
    );
    let members = json!({"type": "array", "items": member, "minItems": 1, "maxItems": MOST_MEMBERS});
    let wait = json!({"type": "boolean", "default": true, "description":
        "Whether to wait. For what is still `running` then, call `get_run`."});
    let metadata = json!({"type": "object", "description": "Your own notes; squad ignores it."});
    let mut tool = tool(
        "start_squad_members",
        "Start members",
        "Starts members side by side, each with a role and a task, and returns each one's answer in `text`. If one is \
         invalid, none is started. Cancelling this call cancels the run. For one that is still `running`, call `get_run`.",
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}),
        object(json!({"members": members, "wait": wait, "metadata": metadata}), &["members"]),
    );
    tool["outputSchema"] = run();
    tool
}

fn review_changes() -> Value {
    let texts = |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
    let reviewers = json!({"type": ["array", "integer"], "items": {"type": "string"}, "minimum": 1,
                           "maximum": MOST_REVIEWERS,
                           "description": "Role ids, or how many. Default: the team's reviewers, or the built-in one."});
    tool(
        "review_changes",
        "Review changes",
        "Has reviewers judge a diff that squad computes. Returns verdicts, and findings by place, never merged, each with \
         the quoted line; `in_diff` is false if the diff has no such line.",
        json!({"readOnlyHint": true, "openWorldHint": true}),
        object(
            json!({
                "base": text("A branch, tag or commit. Default: what is not committed."),
                "staged": {"type": "boolean", "default": false, "description": "Only what is staged."},
                "paths": texts("Only these files and folders."),
                "reviewers": reviewers,
                "engines": texts("Each reviewer works on each."),
                "cross": {"type": "boolean", "default": false,
                          "description": "Each then answers the others' findings, blind."},
                "squadId": text("A review that was still running."),
            }),
            &[],
        ),
    )
}

fn list_engines() -> Value {
    tool(
        "list_engines",
        "List engines",
        "Engines, whether each is ready, and what governs it.",
        reads(),
        object(json!({}), &[]),
    )
}

fn get_run() -> Value {
    let wait = json!({"type": "integer", "minimum": 0, "maximum": 50, "default": 0,
                      "description": "Seconds to wait for the run to end."});
    tool(
        "get_run",
        "Get a run",
        "The status of a run, with each member's answer so far.",
        reads(),
        object(json!({"squadId": text("The run's id."), "waitSec": wait}), &["squadId"]),
    )
}

fn cancel_run() -> Value {
    let member = text("Cancels only this member's work.");
    tool(
        "cancel_run",
        "Cancel a run",
        "Cancels a run, or one member's work in it. Finished work is kept.",
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false}),
        object(json!({"squadId": text("The run's id."), "memberId": member}), &["squadId"]),
    )
}

fn orchestrate() -> Value {
    let agents = json!({"type": "array", "items": {"type": "string"}, "description":
        "The agents to start. Default: squad chooses by the team's routing."});
    let wait = json!({"type": "boolean", "default": true, "description":
        "Whether to wait for the answer. While it is `running`, poll with `get_run`."});
    tool(
        "orchestrate",
        "Give the team a task",
        "Chooses the agents that work on a message, runs them and returns their answer. Cancelling this call cancels the \
         run.",
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}),
        object(json!({"message": text("The task."), "agents": agents, "wait": wait}), &["message"]),
    )
}

fn log_decision() -> Value {
    tool(
        "log_decision",
        "Log a decision",
        "Records a decision that the team must follow. It is durable at once, and lands on the branch with \
         `squad decisions land`.",
        json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false}),
        object(
            json!({
                "decision": text("The decision, in Markdown. Its first line is its title."),
                "context": text("Why it was made, so that a later reader knows when it no longer holds."),
                "supersedes": text("The id of the decision it replaces."),
            }),
            &["decision"],
        ),
    )
}

fn list_decisions() -> Value {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": 500, "default": 20});
    tool(
        "list_decisions",
        "List decisions",
        "The team's decisions in every state, newest first.",
        reads(),
        object(json!({"limit": limit, "query": text("Only decisions that contain these words.")}), &[]),
    )
}

fn init_squad() -> Value {
    tool(
        "init_squad",
        "Install a team",
        "Installs a team in this repository, in one commit, after the user has agreed.",
        json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}),
        object(json!({"preset": text("default, solo, library, web, service, docs or research")}), &[]),
    )
}

pub(super) fn templates() -> Vec<Value> {
    let template = |uri: &str, name: &str, about: &str, mime: &str| json!({"uriTemplate": uri, "name": name, "description": about, "mimeType": mime});
    vec![
        template("squad://roles/{id}", "role", "The prompt of a role", "text/markdown"),
        template("squad://runs/{run}", "run", "A run and its members", "application/json"),
        template("squad://runs/{run}/{member}/text", "text", "A member's whole answer", "text/markdown"),
        template("squad://runs/{run}/{member}/stdout", "stdout", "A member's standard output", "text/plain"),
        template("squad://runs/{run}/{member}/stderr", "stderr", "A member's standard error", "text/plain"),
        template("squad://squads/{name}", "squad", "A project of yours and how its team is", "application/json"),
        template("squad://runs/{run}/{member}/prompt", "prompt", "The prompt a member got", "text/plain"),
    ]
}
