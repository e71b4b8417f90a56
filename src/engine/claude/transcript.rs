//! Reads what the program has stored of a session: a JSON object a line, in its home under `projects/`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::engine::Recall;
use crate::env::files::read_within;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// The file of a session. The program names the folder after the project's path.
pub(super) fn find(homes: &[PathBuf], session: &str) -> Option<PathBuf> {
    let folders = homes.iter().filter_map(|home| fs::read_dir(home.join("projects")).ok()).flatten();
    let files = folders.filter_map(|folder| Some(folder.ok()?.path().join(format!("{session}.jsonl"))));
    files.into_iter().find(|file| file.is_file())
}

/// `None`: it cannot be read.
pub(super) fn recall(file: &Path, prompt: &str) -> Option<Recall> {
    let bytes = read_within(file, MAX_BYTES).ok()?.ok()?;
    Some(read(&String::from_utf8_lossy(&bytes), prompt))
}

/// Evaluates the lines since a prompt was last sent.
fn read(text: &str, prompt: &str) -> Recall {
    // The last line may be half written.
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_prompt = |line: &Value| said(line).is_some_and(|said| said.contains(prompt.trim()));
    let Some(begin) = lines.iter().rposition(is_prompt) else { return Recall::default() };
    let since = lines.get(begin..).unwrap_or_default();
    let (mut begun, mut ended, mut last_words) = (Vec::<(&str, &str)>::new(), Vec::new(), 0);
    for (place, line) in since.iter().enumerate() {
        let is_of_model = line["type"] == "assistant";
        if is_of_model {
            last_words = place;
        }
        for part in line.pointer("/message/content").and_then(Value::as_array).into_iter().flatten() {
            match (part["type"].as_str(), part["id"].as_str(), part["tool_use_id"].as_str()) {
                (Some("tool_use"), Some(id), _) if is_of_model => {
                    begun.push((id, part["name"].as_str().unwrap_or("?")))
                }
                (Some("tool_result"), _, Some(id)) => ended.push((place, id, part["is_error"] == true)),
                _ => {}
            }
        }
    }
    // When the program is told to end, it fails the running calls, and the model does not see that.
    let has_ended =
        |call: &str| ended.iter().any(|(place, id, failed)| *id == call && (!failed || *place < last_words));
    let unfinished = begun.iter().filter(|(id, _)| !has_ended(id));
    Recall {
        has_prompt: true,
        unfinished: unfinished.map(|(_, tool)| super::tools::Tool::parse(tool).shown()).collect(),
        calls: begun.iter().map(|(id, _)| (*id).to_owned()).collect(),
    }
}

/// What a line has of a message of squad's: one that began a turn, or came into it.
fn said(line: &Value) -> Option<String> {
    let content = match line["type"].as_str()? {
        "user" => line.pointer("/message/content")?,
        "attachment" if line["attachment"]["type"] == "queued_command" => line.pointer("/attachment/prompt")?,
        _ => return None,
    };
    match content {
        Value::String(text) => Some(text.clone()),
        parts => {
            let texts = parts.as_array()?.iter().filter_map(|part| part["text"].as_str());
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn recall_finds_prompts_and_unfinished_calls() {
        let user = |content: Value| json!({ "type": "user", "message": { "role": "user", "content": content } });
        let call = |id: &str, name: &str| {
            let part = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
            json!({ "type": "assistant", "message": { "content": [part] } })
        };
        let end = |id: &str, failed: bool| {
            user(json!([{ "type": "tool_result", "tool_use_id": id, "content": "x", "is_error": failed }]))
        };
        let of = |lines: &[Value]| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            read(&(text + "{\"type\":\"assis"), "the work\n")
        };
        let begun =
            [user(json!("old")), user(json!("the work")), call("a", "Bash"), call("b", "mcp__squad__squad_status")];
        let recall = of(&begun);
        assert_eq!((recall.has_prompt, recall.unfinished), (true, vec!["Bash".to_owned(), "squad_status".to_owned()]));
        let recall = of(&[&begun[..], &[end("a", false), end("b", true)]].concat());
        assert_eq!(recall.unfinished, ["squad_status"], "the model has not seen the failure");
        assert_eq!(recall.calls, ["a", "b"]);
        let recall = of(&[&begun[..], &[end("a", true), end("b", true), call("c", "Read"), end("c", false)]].concat());
        assert_eq!(recall.unfinished, [""; 0]);
        assert_eq!(of(&[user(json!("other")), call("a", "Bash")]), Recall::default());
        let steered = json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": "the work" } });
        assert!(of(&[user(json!("x")), steered]).has_prompt);
        for odd in [json!(null), json!([]), json!({ "type": 1 }), user(json!(7)), user(json!([7]))] {
            assert_eq!(of(&[odd]), Recall::default());
        }
    }
}
