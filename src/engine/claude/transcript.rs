//! Reads what the program has stored of a session: a JSON object a line, in its home under `projects/`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::tools::Tool;
use crate::engine::Recall;
use crate::env::files::read_within;
use crate::model::IntoSet;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Results of calls that were running when squad was gone. The program goes on with the turn for a moment.
const CUT_OFF: [&str; 3] = [
    "The user doesn't want to take this action right now. STOP",
    "Tool permission stream closed",
    "The tool call was interrupted before a result was received",
];

/// What is stored of a session.
#[derive(Default)]
pub(super) struct Transcript {
    /// Its messages, but no branches that were left.
    lines: Vec<Value>,
    /// US dollars, as the program has counted them and goes on to.
    pub(super) cost: f64,
}

/// The file of a session. The program names the folder after the project's path.
pub(super) fn find(homes: &[PathBuf], session: &str) -> Option<PathBuf> {
    let folders = homes.iter().filter_map(|home| fs::read_dir(home.join("projects")).ok()).flatten();
    let files = folders.filter_map(|folder| Some(folder.ok()?.path().join(format!("{session}.jsonl"))));
    files.into_iter().find(|file| file.is_file())
}

impl Transcript {
    /// `None`: it cannot be read.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let bytes = read_within(file, MAX_BYTES).ok()?.ok()?;
        Some(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    fn parse(text: &str) -> Self {
        // The last line may be half written.
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let costs = lines.iter().rev().filter(|line| line["type"] == "cost-state");
        let cost = costs.filter_map(|line| line["totalCostUSD"].as_f64()).next().unwrap_or(0.0);
        let by_id: HashMap<&str, usize> =
            lines.iter().enumerate().filter_map(|(place, line)| Some((line["uuid"].as_str()?, place))).collect();
        let parent = |place: &usize| {
            let line = lines.get(*place)?;
            let id = line["parentUuid"].as_str().or_else(|| line["logicalParentUuid"].as_str())?;
            by_id.get(id).copied()
        };
        let last = lines.iter().rposition(|line| line["uuid"].is_string() && line["isSidechain"] != true);
        // Damage could make a circle of it.
        let branch: BTreeSet<usize> = std::iter::successors(last, parent).take(lines.len()).into_set();
        // Results of calls that were made at once stand beside it.
        let is_result = |place: &usize| results(&lines[*place]).next().is_some();
        let is_of_branch = |place: &usize| {
            branch.contains(place) || is_result(place) && parent(place).is_some_and(|parent| branch.contains(&parent))
        };
        let places: BTreeSet<usize> = (0..lines.len()).filter(is_of_branch).into_set();
        let mut place = 0..;
        let lines = lines.into_iter().filter(|_| place.next().is_some_and(|place| places.contains(&place))).collect();
        Self { lines, cost }
    }

    /// Where the program went on without squad, if it did: the first result of a call that was cut off.
    fn cut(&self) -> usize {
        let begin = self.lines.iter().rposition(|line| said(line).is_some()).unwrap_or(0);
        let is_cut_off = |line: &Value| {
            results(line).any(|result| CUT_OFF.iter().any(|words| result["content"].to_string().contains(words)))
        };
        let found = self.lines.iter().skip(begin).position(is_cut_off);
        found.map_or(self.lines.len(), |place| begin + place)
    }

    /// The id of the message behind which a session has to go on that was cut off.
    pub(super) fn resume_at(&self) -> Option<&str> {
        let cut = self.cut();
        let before = self.lines.get(..cut).filter(|before| before.len() < self.lines.len())?;
        before.iter().rev().find(|line| line["type"] == "assistant")?["uuid"].as_str()
    }

    /// Evaluates the lines since a prompt was last sent.
    pub(super) fn recall(&self, prompt: &str) -> Recall {
        let lines = self.lines.get(..self.cut()).unwrap_or_default();
        let is_prompt = |line: &Value| said(line).is_some_and(|said| said.contains(prompt.trim()));
        let Some(begin) = lines.iter().rposition(is_prompt) else { return Recall::default() };
        let since = lines.get(begin..).unwrap_or_default();
        let words = since.iter().rposition(|line| line["type"] == "assistant").unwrap_or(0);
        let made = since.iter().filter(|line| line["type"] == "assistant").flat_map(parts);
        let made = made.filter(|part| part["type"] == "tool_use");
        let begun: Vec<(&str, &str)> =
            made.filter_map(|part| Some((part["id"].as_str()?, part["name"].as_str()?))).collect();
        // When the program is told to end, it fails the running calls, and the model does not see that.
        let has_ended = |call: &str| {
            let of_call = |result: &&Value| result["tool_use_id"] == call;
            let mut ended = since.iter().enumerate().flat_map(|(place, line)| {
                results(line).filter(of_call).map(move |result| result["is_error"] != true || place < words)
            });
            ended.any(|has_ended| has_ended)
        };
        Recall {
            has_prompt: true,
            unfinished: begun
                .iter()
                .filter(|(id, _)| !has_ended(id))
                .map(|(id, tool)| ((*id).to_owned(), Tool::parse(tool).shown()))
                .collect(),
            calls: begun.iter().map(|(id, _)| (*id).to_owned()).collect(),
        }
    }
}

fn parts(line: &Value) -> impl Iterator<Item = &Value> {
    line.pointer("/message/content").and_then(Value::as_array).into_iter().flatten()
}

/// The results of calls in a line.
fn results(line: &Value) -> impl Iterator<Item = &Value> {
    parts(line).filter(|part| part["type"] == "tool_result")
}

/// What a line has of a message of squad's: one that began a turn, or came into it.
fn said(line: &Value) -> Option<String> {
    let content = match line["type"].as_str()? {
        "user" if results(line).next().is_none() => line.pointer("/message/content")?,
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

    /// A file of these lines, each behind the one before it, and half a line.
    fn transcript(lines: &[Value]) -> Transcript {
        let mut text = String::new();
        for (place, line) in lines.iter().enumerate() {
            let mut line = line.clone();
            if let Some(fields) = line.as_object_mut() {
                fields.entry("uuid").or_insert(format!("u{place}").into());
                fields.entry("parentUuid").or_insert(format!("u{}", place.wrapping_sub(1)).into());
            }
            text.push_str(&format!("{line}\n"));
        }
        Transcript::parse(&(text + "{\"type\":\"assis"))
    }

    fn user(content: Value) -> Value {
        json!({ "type": "user", "message": { "role": "user", "content": content } })
    }

    fn call(id: &str, name: &str) -> Value {
        let part = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        json!({ "type": "assistant", "message": { "content": [part] } })
    }

    fn end(id: &str, failed: bool, text: &str) -> Value {
        user(json!([{ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed }]))
    }

    #[test]
    fn recall_finds_prompts_and_unfinished_calls() {
        let of = |lines: &[Value]| transcript(lines).recall("the work\n");
        let own = "mcp__squad__squad_status";
        let begun = [user(json!("old")), user(json!("the work")), call("a", "Bash"), call("b", own)];
        let recall = of(&begun);
        assert_eq!((recall.has_prompt, recall.unfinished_tools()), (true, vec!["Bash", "squad_status"]));
        let recall = of(&[&begun[..], &[end("a", false, "x"), end("b", true, "x")]].concat());
        assert_eq!(recall.unfinished_tools(), ["squad_status"], "the model has not seen the failure");
        assert_eq!(recall.calls, ["a", "b"]);
        let ended = [end("a", true, "x"), end("b", true, "x"), call("c", "Read"), end("c", false, "x")];
        assert_eq!(of(&[&begun[..], &ended].concat()).unfinished, []);
        assert_eq!(of(&[user(json!("other")), call("a", "Bash")]), Recall::default());
        let steered = json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": "the work" } });
        assert!(of(&[user(json!("x")), steered]).has_prompt);
        for odd in [json!(null), json!([]), json!({ "type": 1 }), user(json!(7)), user(json!([7]))] {
            assert_eq!(of(&[odd]), Recall::default());
        }
    }

    #[test]
    fn what_the_program_did_without_squad_is_left() {
        let closed =
            "Tool permission request failed: AbortError: Tool permission stream closed before response received";
        let words =
            json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "All is done." }] } });
        let mut lines = vec![
            user(json!("the work")),
            call("a", "Bash"),
            end("a", false, "x"),
            call("b", "Bash"),
            end("b", true, closed),
        ];
        lines.extend([call("c", "Write"), end("c", true, "No."), words.clone()]);
        let cut = transcript(&lines);
        assert_eq!(cut.resume_at(), Some("u3"));
        let recall = cut.recall("the work");
        assert_eq!((recall.unfinished_tools(), &*recall.calls), (vec!["Bash"], &["a".to_owned(), "b".to_owned()][..]));
        // It went on behind that message, and has ended well.
        let mut on = user(json!("Go on."));
        on["parentUuid"] = "u3".into();
        lines.extend([
            on,
            call("d", "Bash"),
            end("d", false, "x"),
            words,
            json!({ "type": "cost-state", "totalCostUSD": 0.5 }),
        ]);
        lines.last_mut().expect("a line")["uuid"] = Value::Null;
        let whole = transcript(&lines);
        assert_eq!((whole.resume_at(), whole.cost), (None, 0.5));
        assert_eq!(whole.recall("the work").calls, ["a", "b", "d"]);
        assert_eq!(whole.recall("Go on.").unfinished, []);
    }
}
