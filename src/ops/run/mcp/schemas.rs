//! The schemas of the tools. Written by hand, because strict clients reject schemas with references and with types that
//! may be null.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// The schema of a tool's arguments.
pub(super) fn input(tool: &str) -> Option<&'static Value> {
    static TOOLS: LazyLock<Vec<Value>> = LazyLock::new(tools);
    TOOLS.iter().find(|known| known["name"] == tool)?.get("inputSchema")
}

/// Only one tool describes the run that several return: clients pay for each copy.
pub(super) fn tools() -> Vec<Value> {
    // A test checks that it parses.
    serde_json::from_str(include_str!("tools.json")).unwrap_or_default()
}

/// Arguments of other servers of the blueprint that squad has no use for. Callers may send them; nobody need know them.
pub(super) const UNUSED: [&str; 2] = ["orchestratorChatId", "workspaceId"];

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
        if let Some(input) = input.as_object_mut() {
            input.retain(|name, _| !UNUSED.contains(&name.as_str()));
        }
        if let Some(engine) = input.pointer_mut("/engines/items") {
            engine["enum"] = json!(engines);
        }
    }
    tools
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::run::reviewing::MOST_REVIEWERS;

    #[test]
    fn the_limit_is_the_one_that_is_checked() {
        let limit = input("review_changes").and_then(|input| input.pointer("/properties/reviewers/maximum")).cloned();
        assert_eq!(limit, Some(json!(MOST_REVIEWERS)));
    }
}
