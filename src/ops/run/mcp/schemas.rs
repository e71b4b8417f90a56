//! The schemas of the tools. Written by hand, because strict clients reject schemas with references and with types that
//! may be null.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::check::{MOST_MEMBERS, MOST_SECONDS};

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
        get_run(),
        cancel_run(),
        orchestrate(),
        log_decision(),
        list_decisions(),
        init_squad(),
    ]
}

fn list_roles() -> Value {
    let role = json!({
        "id": {"type": "string"}, "name": {"type": "string"}, "description": {"type": "string"},
        "digest": {"type": "string"}, "error": {"type": "string"},
    });
    let role = json!({"type": "object", "properties": role, "required": ["id", "name", "description", "digest"]});
    let roles = json!({
        "roles": {"type": "array", "items": role},
        "problems": {"type": "array", "items": {"type": "string"}},
    });
    let mut tool = tool(
        "list_roles",
        "List roles",
        "The roles that members can be started in. One with an `error` cannot be used until its file is fixed.",
        reads(),
        object(json!({"query": text("Only roles whose id, name or description has these words.")}), &[]),
    );
    tool["outputSchema"] = json!({"type": "object", "properties": roles, "required": ["roles"]});
    tool
}

/// The result of every tool that returns a run.
fn run() -> Value {
    let status = json!({"type": "string", "enum": ["queued", "running", "completed", "error", "timeout"]});
    let member = json!({
        "memberId": {"type": "string"}, "roleId": {"type": "string"}, "cwd": {"type": "string"},
        "chatId": {"type": "string"}, "status": status, "exitCode": {"type": "integer"},
        "signal": {"type": "integer"}, "reason": {"type": "string"}, "durationMs": {"type": "integer"},
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
            "roleId": text("The id of a role, as `list_roles` has it."),
            "task": text("The whole task: the member knows nothing of your conversation."),
            "cwd": text("A folder of the project to work in; the project's root if left out."),
            "chatId": text("Goes on in the chat of an earlier member, where the server keeps chats."),
            "engine": text("The engine to run it on; the project's own if left out."),
            "timeoutSec": {"type": "integer", "minimum": 1, "maximum": MOST_SECONDS,
                           "description": "Seconds it may work."},
        }),
        &["roleId", "task"],
    );
    let members = json!({"type": "array", "items": member, "minItems": 1, "maxItems": MOST_MEMBERS});
    let wait = json!({"type": "boolean", "default": true, "description":
        "Whether to wait for all members. Without it, `get_run` says how they are."});
    let metadata = json!({"type": "object", "description": "Whatever you want to note; squad does not read it."});
    let mut tool = tool(
        "start_squad_members",
        "Start members",
        "Starts members of the squad side by side, each in a role and with a task, and gives each one's own result. \
         Nobody starts if anything is wrong with one of them. Cancelling this call cancels the run. If the call times out \
         or the connection is lost, the run goes on; `get_run` says how it is.",
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}),
        object(json!({"members": members, "wait": wait, "metadata": metadata}), &["members"]),
    );
    tool["outputSchema"] = run();
    tool
}

fn get_run() -> Value {
    let wait = json!({"type": "integer", "minimum": 0, "maximum": 50, "default": 0,
                      "description": "Seconds to wait for its end."});
    let mut tool = tool(
        "get_run",
        "Look at a run",
        "How a run is, with each member's output so far. Runs outlive the server that started them.",
        reads(),
        object(json!({"squadId": text("The run's id."), "waitSec": wait}), &["squadId"]),
    );
    tool["outputSchema"] = run();
    tool
}

fn cancel_run() -> Value {
    let member = text("Only this member's work.");
    let mut tool = tool(
        "cancel_run",
        "Cancel a run",
        "Ends a run, or one member's work in it. What was done until then stays.",
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false}),
        object(json!({"squadId": text("The run's id."), "memberId": member}), &["squadId"]),
    );
    tool["outputSchema"] = run();
    tool
}

fn orchestrate() -> Value {
    let agents = json!({"type": "array", "items": {"type": "string"}, "description":
        "Only these agents of the team; left out, squad decides by the team's routing."});
    let wait = json!({"type": "boolean", "default": true, "description":
        "Whether to wait for the answer. Without it, `get_run` says how it is."});
    let mut tool = tool(
        "orchestrate",
        "Give the team a task",
        "Has squad decide who of the team works on a message, runs them and gives their answer. Cancelling this call \
         cancels the run. If the call times out or the connection is lost, the run goes on; `get_run` says how it is.",
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}),
        object(json!({"message": text("What is to be done."), "agents": agents, "wait": wait}), &["message"]),
    );
    tool["outputSchema"] = run();
    tool
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
                "decision": text("What is decided, in Markdown; its first line is its title."),
                "context": text("Why, so that a later reader knows when it no longer holds."),
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
        "The team's decisions in every state, the newest first.",
        reads(),
        object(json!({"limit": limit, "query": text("Only those with these words.")}), &[]),
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
        template("squad://runs/{run}/{member}/stdout", "stdout", "All that a member said", "text/plain"),
        template("squad://runs/{run}/{member}/stderr", "stderr", "What a member's engine complained of", "text/plain"),
        template("squad://runs/{run}/{member}/prompt", "prompt", "What a member was told", "text/plain"),
    ]
}
