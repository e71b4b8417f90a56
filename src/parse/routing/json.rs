//! A routing table as JSON, which `routing.md` links to.

use serde_json::{Map, Value};

use super::super::Files;
use super::super::json::{self, Lines};
use super::super::words::{comma_list, path_words};
use super::columns::TableKind;
use super::{Cells, RoutingReader};
use crate::model::{Problem, Severity};

const SUBJECT: &str =
    "worktype, signal, domain, type, task, tasktype, pattern, keyword, area, category, topic, work, name";
const LABEL: &str = "label, labels";
const MODULE: &str = "module, path, paths, glob";
const FIRST: &str =
    "routeto, route, agents, agent, primaryagent, primary, owner, owners, who, member, members, assignee, assignedto";
const SECOND: &str = "secondary, secondaryagent, backup";
const REVIEW: &str = "reviewer, reviewers, reviewedby";
const EXAMPLES: &str = "examples, example, keywords, patterns";

/// The JSON files of the team folder that a text names, in order: targets of links, and paths in backticks.
pub(crate) fn linked(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for word in path_words(text) {
        let word = word.trim_end_matches(['.', ',', ':', ';']).trim_start_matches("./");
        let word = [".squad/", ".ai-team/"].iter().find_map(|folder| word.strip_prefix(folder)).unwrap_or(word);
        let inside = !word.starts_with('/') && !word.contains(['\\', ':', '{', '*']) && !word.contains("..");
        if word.len() > ".json".len() && word.ends_with(".json") && inside && !paths.iter().any(|path| path == word) {
            paths.push(word.to_owned());
        }
    }
    paths
}

/// Reports JSON files that a routing file links to, or names with a path in the team folder, and that squad cannot
/// read. Table rows are skipped: they name files of the project.
pub(super) fn report_missing(files: &Files, text: &str, reader: &mut RoutingReader<'_>) {
    let mut reported: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('|')) {
        for target in pointers(line) {
            if reported.contains(&target) || linked(target).iter().any(|path| files.text(path).is_some()) {
                continue;
            }
            reported.push(target);
            let (message, hint) = match linked(target).is_empty() {
                true => (format!("`{target}` is outside the team's folder and is not read"), "move it into the folder"),
                false => (format!("`{target}` does not exist or cannot be read"), "add it, or fix the link"),
            };
            let source = files.at("routing.md", index + 1);
            let severity = if reader.routing.rules.is_empty() { Severity::Warning } else { Severity::Note };
            reader.problems.push(Problem::new(severity, source, "routing-json", message).hint(hint));
        }
    }
}

/// Links and `.squad/` paths to JSON files in a line.
fn pointers(line: &str) -> impl Iterator<Item = &str> {
    let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    let paths = line.split([' ', '`', '(', ')', '[', ']', '"', '\'']).filter(|word| word.starts_with(".squad/"));
    let is_file = |target: &&str| target.ends_with(".json") && !target.contains("://");
    links.chain(paths).filter(is_file)
}

pub(super) fn read(files: &Files, path: &str, text: &str, reader: &mut RoutingReader<'_>) {
    let report = ("routing-json", "`routing.md` points to it; the file is ignored");
    let Some(value) = json::read(files, path, text, report, reader.problems) else { return };
    let mut lines = Lines::new(text);
    for entry in entries(&value) {
        let entry = Entry::new(entry);
        let kinds = [(TableKind::Work, SUBJECT), (TableKind::Labels, LABEL), (TableKind::Modules, MODULE)];
        let subject = kinds.iter().find_map(|(kind, keys)| Some((*kind, entry.text(keys)?)));
        let first = entry.text(FIRST);
        let ((kind, subject), first) = match (subject, first) {
            (Some(subject), Some(first)) => (subject, first),
            (Some((_, of)), None) | (None, Some(of)) => {
                let message = format!("the entry for `{of}` lacks a `workType` or a `routeTo`");
                let problem = Problem::warning(files.at(path, lines.next(&of)), "routing-json-entry", message);
                reader.problems.push(problem.hint("add both; until then the entry is ignored"));
                continue;
            }
            (None, None) => continue,
        };
        let source = files.at(path, lines.next(&subject));
        let cells = Cells {
            subject: &subject,
            first: &first,
            second: &entry.text(SECOND).unwrap_or_default(),
            review: &entry.text(REVIEW).unwrap_or_default(),
            action: &entry.text("action, description").unwrap_or_default(),
            examples: entry.list(EXAMPLES),
        };
        reader.cells(kind, &cells, source);
    }
}

/// The objects in a list, or in the lists of an object.
fn entries(value: &Value) -> Vec<&Map<String, Value>> {
    let lists: Vec<&Vec<Value>> = match value {
        Value::Array(list) => vec![list],
        Value::Object(fields) => fields.values().filter_map(Value::as_array).collect(),
        _ => Vec::new(),
    };
    lists.into_iter().flatten().filter_map(Value::as_object).collect()
}

/// An entry with normalized keys: `workType` and `work_type` are equal.
struct Entry<'v>(Vec<(String, &'v Value)>);

impl<'v> Entry<'v> {
    fn new(fields: &'v Map<String, Value>) -> Self {
        let fold = |key: &str| key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        Self(fields.iter().map(|(key, value)| (fold(key), value)).collect())
    }

    fn value(&self, keys: &str) -> Option<&'v Value> {
        keys.split(", ").find_map(|key| self.0.iter().find(|(name, _)| name == key)).map(|(_, value)| *value)
    }

    fn text(&self, keys: &str) -> Option<String> {
        match self.value(keys)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(list) => {
                let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                (!texts.is_empty()).then(|| texts.join(", "))
            }
            _ => None,
        }
    }

    fn list(&self, keys: &str) -> Vec<String> {
        match self.value(keys) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(text)) => comma_list(text),
            _ => Vec::new(),
        }
    }
}
