//! Reads the file in which Codex keeps a thread: what a resumed one contains of a turn that was cut short.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use super::items::text;
use crate::engine::Recall;

/// Most bytes of the file. It holds results in full.
const MOST: u64 = 512 << 20;

/// `None`: the file cannot be read.
pub(super) fn read(file: &Path, prompt: &str) -> Option<Recall> {
    let lines = BufReader::new(File::open(file).ok()?.take(MOST)).split(b'\n');
    let mut recall = Recall::default();
    // Calls without a result, with their tools.
    let mut open: Vec<(String, String)> = Vec::new();
    for line in lines {
        // The last line may have been cut short with the process.
        let Ok(line) = serde_json::from_slice::<Value>(&line.ok()?) else { continue };
        let payload = &line["payload"];
        let kind = text(payload, "/type").unwrap_or_default();
        let call = || text(payload, "/call_id").map(str::to_owned);
        match text(&line, "/type") {
            Some("response_item") if kind == "message" && payload["role"] == "user" => {
                let parts = payload["content"].as_array().into_iter().flatten();
                let said: String = parts.filter_map(|part| text(part, "/text")).collect();
                // The message may have new decisions before the prompt, and the current state after it.
                if said.trim().contains(prompt.trim()) {
                    recall = Recall { has_prompt: true, ..Recall::default() };
                    open.clear();
                }
            }
            Some("response_item") if kind.ends_with("_call") => {
                if let Some(call) = call() {
                    let tool = text(payload, "/name").unwrap_or(kind).to_owned();
                    recall.calls.push(call.clone());
                    open.push((call, tool));
                }
            }
            Some("response_item") if kind.ends_with("_call_output") => {
                let is_whole = !is_cut_off(&payload["output"]);
                open.retain(|(id, _)| !is_whole || Some(id.as_str()) != text(payload, "/call_id"));
            }
            // Calls that a script of the model's makes have ids of their own.
            Some("event_msg") if kind == "item_completed" && payload["item"]["status"].is_string() => {
                let id = text(payload, "/item/id").map(str::to_owned);
                recall.calls.extend(id.filter(|id| !recall.calls.contains(id)));
            }
            _ => {}
        }
    }
    if !recall.has_prompt {
        return Some(Recall::default());
    }
    recall.unfinished = open;
    Some(recall)
}

/// Whether a result is what Codex writes for a call that its own end, or squad's, has cut short.
fn is_cut_off(output: &Value) -> bool {
    let parts = output.as_array().into_iter().flatten().filter_map(|part| text(part, "/text"));
    let whole = output.as_str().map_or_else(|| parts.collect(), str::to_owned);
    let last = whole.lines().next_back().unwrap_or_default();
    whole == "aborted" || last.starts_with("aborted by user") || whole.starts_with("dynamic tool call was cancelled")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_since_the_prompt_are_found_with_those_that_never_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("rollout.jsonl");
        let item = |payload: Value| json!({ "type": "response_item", "payload": payload }).to_string();
        let said = |text: &str| {
            item(json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }))
        };
        let call = |id: &str, name: &str| item(json!({ "type": "function_call", "name": name, "call_id": id }));
        let output =
            |id: &str, text: &str| item(json!({ "type": "custom_tool_call_output", "call_id": id, "output": text }));
        let nested = json!({ "type": "event_msg", "payload": { "type": "item_completed", "item": { "id": "exec-1", "status": "completed" } } });
        let lines = [
            said("Do it."),
            call("c0", "old"),
            said("News.\n\nDo it.\nMore."),
            call("c1", "exec_command"),
            output("c1", "done"),
            nested.to_string(),
            call("c2", "apply_patch"),
            output("c2", "aborted"),
            call("c3", "exec_command"),
            output("c3", "Wall time: 0.3 seconds\naborted by user"),
            call("c4", "squad_status"),
            output("c4", "dynamic tool call was cancelled before receiving a response"),
            call("c5", "exec_command"),
            output("c5", "it was aborted by user"),
            call("c6", "exec_command"),
        ];
        std::fs::write(&file, lines.join("\n") + "\n{\"type\":\"resp").expect("a file");
        let recall = read(&file, "Do it.").expect("it can be read");
        assert!(recall.has_prompt);
        assert_eq!(recall.calls, ["c1", "exec-1", "c2", "c3", "c4", "c5", "c6"]);
        let unfinished =
            [("c2", "apply_patch"), ("c3", "exec_command"), ("c4", "squad_status"), ("c6", "exec_command")];
        assert_eq!(recall.unfinished, unfinished.map(|(call, tool)| (call.to_owned(), tool.to_owned())));
        assert_eq!(read(&file, "Something else."), Some(Recall::default()));
        assert_eq!(read(&folder.path().join("none"), ""), None);
    }
}
