//! Reads the events of a resumed session.

use std::time::Duration;

use serde_json::{Value, json};

use crate::engine::Recall;
use crate::engine::connection::{CallError, Connection};

/// Part of the error of a squad tool call that squad could not answer any more.
const CUT_OFF: &str = "disconnected before responding";

/// The kinds of events we need. All events might be too long for one message.
const KINDS: [&str; 4] = ["user.message", "assistant.message", "tool.execution_start", "tool.execution_complete"];
/// The maximum number of pages; the CLI limits a page's size in bytes.
const MAX_PAGES: usize = 100;

pub(super) async fn events(connection: &Connection, session: &str, timeout: Duration) -> Result<Value, CallError> {
    let mut params = json!({ "sessionId": session, "types": KINDS, "max": 1000 });
    let mut events = Vec::new();
    for _ in 0..MAX_PAGES {
        let mut page = match connection.request("session.eventLog.read", &params, timeout).await {
            // An older CLI lacks this method.
            Err(CallError::Refused { .. }) => {
                return connection.request("session.getMessages", &json!({ "sessionId": session }), timeout).await;
            }
            page => page?,
        };
        if let Some(Value::Array(more)) = page.get_mut("events").map(Value::take) {
            events.extend(more);
        }
        if page["hasMore"] != json!(true) {
            break;
        }
        params["cursor"] = page["cursor"].take();
    }
    Ok(Value::Array(events))
}

/// Evaluates the events since a prompt was last sent.
pub(super) fn read(answer: &Value, prompt: &str) -> Recall {
    let empty = Vec::new();
    let events = answer.get("events").or(Some(answer)).and_then(Value::as_array).unwrap_or(&empty);
    let text = |event: &Value, pointer: &str| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let is_of = |event: &&Value, kind: &str| event.get("type").and_then(Value::as_str) == Some(kind);
    let is_prompt = |event: &Value| {
        // The message may have new decisions before the prompt, and the current state after it.
        let is_it = |said: String| said.trim().contains(prompt.trim());
        is_of(&event, "user.message") && text(event, "/data/content").is_some_and(is_it)
    };
    let Some(begin) = events.iter().rposition(is_prompt) else { return Recall::default() };
    let since = events.get(begin..).unwrap_or_default();
    let calls = |kind: &'static str| since.iter().enumerate().filter(move |(_, event)| is_of(event, kind));
    let last_words = calls("assistant.message").map(|(place, _)| place).next_back().unwrap_or(0);
    // When the CLI is told to end, it fails the running calls, and the model does not see that. When squad dies, calls
    // of squad's own tools fail, and the model may continue for a moment.
    let is_cut_off = |event: &Value| text(event, "/data/error/message").is_some_and(|error| error.contains(CUT_OFF));
    let has_ended = |(place, event): &(usize, &Value)| {
        let has_failed = event.pointer("/data/success").and_then(Value::as_bool) == Some(false);
        !has_failed || (*place < last_words && !is_cut_off(event))
    };
    let ended = calls("tool.execution_complete").filter(has_ended);
    let ended: Vec<String> = ended.filter_map(|(_, event)| text(event, "/data/toolCallId")).collect();
    // The start event of a requested call may not have reached the disk.
    let asked = calls("assistant.message").filter_map(|(_, event)| event.pointer("/data/toolRequests")?.as_array());
    let asked = asked.flatten().map(|request| (text(request, "/toolCallId"), text(request, "/name")));
    let started = calls("tool.execution_start");
    let started = started.map(|(_, event)| (text(event, "/data/toolCallId"), text(event, "/data/toolName")));
    let mut begun: Vec<(String, String)> = Vec::new();
    for (call, tool) in asked.chain(started).filter_map(|(call, tool)| call.zip(tool)) {
        if begun.iter().all(|(known, _)| *known != call) {
            begun.push((call, tool));
        }
    }
    let calls = begun.iter().map(|(call, _)| call.clone()).collect();
    let unfinished = begun.into_iter().filter(|(call, _)| !ended.contains(call)).collect();
    Recall { has_prompt: true, unfinished, calls }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_finds_prompts_and_unfinished_calls() {
        let call = |kind: &str, id: &str| json!({ "type": kind, "data": { "toolCallId": id, "toolName": "bash" } });
        let failed =
            |id: &str| json!({ "type": "tool.execution_complete", "data": { "toolCallId": id, "success": false } });
        let answered = json!({ "type": "assistant.message", "data": {} });
        let of = |events: &[Value]| read(&json!({ "events": events }), "work");
        let said = |text: &str| json!({ "type": "user.message", "data": { "content": text } });
        let events = json!({ "events": [
            said("work"), call("tool.execution_start", "a"), said("work"), call("tool.execution_start", "b"),
            call("tool.execution_complete", "b"), call("tool.execution_start", "c"), json!({ "type": 7 }), json!([]),
        ]});
        let (unfinished, calls) = (vec![("c".to_owned(), "bash".to_owned())], ["b", "c"].map(str::to_owned).to_vec());
        assert_eq!(read(&events, "work\n"), Recall { has_prompt: true, unfinished, calls });
        assert_eq!(read(&events, "other work"), Recall::default());
        assert!(read(&json!({ "events": [said("Decided: tabs.\n---\n\nwork")] }), "work").has_prompt);
        let [begun, lost] = [call("tool.execution_start", "a"), failed("a")];
        assert_eq!(of(&[said("work"), begun.clone(), answered.clone(), lost.clone()]).unfinished_tools(), ["bash"]);
        assert!(
            of(&[said("work"), begun.clone(), lost.clone(), answered.clone()]).unfinished.is_empty(),
            "the model has seen it"
        );
        let mut cut_off = lost;
        cut_off["data"]["error"] = json!({ "message": "Extension disconnected before responding to tool call" });
        assert_eq!(of(&[said("work"), begun, cut_off, answered]).unfinished_tools(), ["bash"]);
        let asked = |id: &str| {
            let requests = json!([{ "toolCallId": id, "name": "edit" }]);
            json!({ "type": "assistant.message", "data": { "toolRequests": requests } })
        };
        assert_eq!(
            of(&[said("work"), call("tool.execution_start", "a"), asked("b"), call("tool.execution_start", "b")])
                .unfinished_tools(),
            ["edit", "bash"]
        );
        for odd in [json!(null), json!({ "events": 1 }), json!([{}])] {
            assert_eq!(read(&odd, "work"), Recall::default());
        }
    }
}
