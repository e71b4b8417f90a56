//! What a session that is resumed holds: its events, as `session.getMessages` gives them.

use serde_json::Value;

use crate::engine::Recall;

/// The events since a prompt; of a prompt that was sent more than once, since the last time.
pub(super) fn read(answer: &Value, prompt: &str) -> Recall {
    let empty = Vec::new();
    let events = answer.get("events").or(Some(answer)).and_then(Value::as_array).unwrap_or(&empty);
    let text = |event: &Value, pointer: &str| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let is_of = |event: &&Value, kind: &str| event.get("type").and_then(Value::as_str) == Some(kind);
    let is_prompt = |event: &Value| {
        // What was decided meanwhile may stand before it, and behind it what was so at that moment.
        let is_it = |said: String| said.trim().contains(prompt.trim());
        is_of(&event, "user.message") && text(event, "/data/content").is_some_and(is_it)
    };
    let Some(begin) = events.iter().rposition(is_prompt) else { return Recall::default() };
    let since = events.get(begin..).unwrap_or_default();
    let calls = |kind: &'static str| since.iter().enumerate().filter(move |(_, event)| is_of(event, kind));
    let last_words = calls("assistant.message").map(|(place, _)| place).next_back().unwrap_or(0);
    // A CLI that is told to end gives the calls that are under way a failure, which the model has not seen.
    let has_ended = |(place, event): &(usize, &Value)| {
        *place < last_words || event.pointer("/data/success").and_then(Value::as_bool) != Some(false)
    };
    let ended = calls("tool.execution_complete").filter(has_ended);
    let ended: Vec<String> = ended.filter_map(|(_, event)| text(event, "/data/toolCallId")).collect();
    let is_open = |event: &&Value| text(event, "/data/toolCallId").is_some_and(|call| !ended.contains(&call));
    let begun = calls("tool.execution_start").map(|(_, event)| event).filter(is_open);
    let unfinished = begun.filter_map(|event| text(event, "/data/toolName"));
    Recall { has_prompt: true, unfinished: unfinished.collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_asked_and_what_was_begun() {
        let call = |kind: &str, id: &str| json!({ "type": kind, "data": { "toolCallId": id, "toolName": "bash" } });
        let failed =
            |id: &str| json!({ "type": "tool.execution_complete", "data": { "toolCallId": id, "success": false } });
        let answered = json!({ "type": "assistant.message", "data": {} });
        let of = |events: &[Value]| read(&json!({ "events": events }), "work").unfinished;
        let said = |text: &str| json!({ "type": "user.message", "data": { "content": text } });
        let events = json!({ "events": [
            said("work"), call("tool.execution_start", "a"), said("work"), call("tool.execution_start", "b"),
            call("tool.execution_complete", "b"), call("tool.execution_start", "c"), json!({ "type": 7 }), json!([]),
        ]});
        assert_eq!(read(&events, "work\n"), Recall { has_prompt: true, unfinished: vec!["bash".to_owned()] });
        assert_eq!(read(&events, "other work"), Recall::default());
        assert!(read(&json!({ "events": [said("Decided: tabs.\n---\n\nwork")] }), "work").has_prompt);
        let [begun, lost] = [call("tool.execution_start", "a"), failed("a")];
        assert_eq!(of(&[said("work"), begun.clone(), answered.clone(), lost.clone()]), ["bash"]);
        assert!(of(&[said("work"), begun, lost, answered]).is_empty(), "the model has seen it");
        for odd in [json!(null), json!({ "events": 1 }), json!([{}])] {
            assert_eq!(read(&odd, "work"), Recall::default());
        }
    }
}
