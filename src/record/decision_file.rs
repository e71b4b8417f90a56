//! A decision as a separate file that people can read, edit and review.

use serde_json::Value;

use crate::model::{Decision, Slug};

/// `.squad/decisions/<yyyy>/<mm>/<dd>-<slug>-<id>.md`, from the project's root; `undated/<slug>-<id>.md` for an
/// imported decision without a date. A decision has the same path in every clone. A note is in `knowledge/` instead.
pub(crate) fn decision_path(folder: &str, decision: &Decision) -> String {
    let name = format!("{}-{}.md", title_in_path(decision), decision.id);
    let kind = if decision.note.is_some() { "knowledge" } else { "decisions" };
    match decision.date.as_deref().and_then(day) {
        Some((year, month, day)) => format!("{folder}/{kind}/{year}/{month}/{day}-{name}"),
        None => format!("{folder}/{kind}/undated/{name}"),
    }
}

/// The part of the file's name that its title gives. Decisions of the same title have the same.
pub(crate) fn title_in_path(decision: &Decision) -> String {
    Slug::spelled(&decision.title).map_or_else(|| "decision".to_owned(), |slug| short(slug.as_str()))
}

/// Year, month and day of a date that starts with `yyyy-mm-dd`.
fn day(date: &str) -> Option<(&str, &str, &str)> {
    let [year, month, day] = date.get(..10)?.split('-').collect::<Vec<_>>()[..] else { return None };
    let is_number = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
    (is_number(year, 4) && is_number(month, 2) && is_number(day, 2)).then_some((year, month, day))
}

/// Cuts at the end of a word, so that paths stay readable and well below the Windows limit.
fn short(slug: &str) -> String {
    const MAX_LENGTH: usize = 48;
    match slug.get(..MAX_LENGTH) {
        Some(cut) if cut.len() < slug.len() => cut.rsplit_once('-').map_or(cut, |(words, _)| words).to_owned(),
        _ => slug.to_owned(),
    }
}

/// `parse::decision_file` reads this back.
pub(crate) fn render_decision(decision: &Decision) -> String {
    let mut file = head(decision, None);
    let text = decision.text.trim();
    if !text.is_empty() {
        file.push_str(&format!("\n{text}\n"));
    }
    file
}

/// The file for one entry of a file with many decisions. The text below the entry's heading is copied unchanged; the
/// heading goes into the front matter if it differs from the title. An entry without a heading, such as a short note, is
/// copied unchanged.
pub(crate) fn render_imported(decision: &Decision, heading: &str, body: &str) -> String {
    let heading = heading.strip_suffix('\n').map_or(heading, |line| line.strip_suffix('\r').unwrap_or(line));
    let mut file = head(decision, (!heading.is_empty()).then_some(heading));
    if heading.is_empty() {
        file.push('\n');
    }
    file.push_str(body);
    file
}

/// The end of the front matter, and its last key.
const MATTER_END: &str = "\n---\n";
const DUPLICATES: &str = "twins: ";

/// Adds a duplicate entry of the same decision, unchanged, to the file of an imported entry.
pub(super) fn with_duplicate(file: &str, duplicate: &str) -> String {
    let (matter, rest) = file.split_once(MATTER_END).unwrap_or((file, ""));
    let (matter, list) = matter.split_once(&format!("\n{DUPLICATES}")).unwrap_or((matter, "[]"));
    let mut duplicates: Vec<String> = serde_json::from_str(list).unwrap_or_default();
    if !duplicates.iter().any(|other| other == duplicate) {
        duplicates.push(duplicate.to_owned());
    }
    format!("{matter}\n{DUPLICATES}{}{MATTER_END}{rest}", yaml(&Value::from(duplicates)))
}

/// Whether two files of an imported entry are equal, ignoring duplicate entries.
pub(super) fn equal_except_duplicates(file: &str, other: &str) -> bool {
    let [one, two] = [file, other].map(|file| {
        let (matter, rest) = file.split_once(MATTER_END).unwrap_or((file, ""));
        (matter.split_once(&format!("\n{DUPLICATES}")).map_or(matter, |(matter, _)| matter), rest.trim_end())
    });
    one == two
}

/// JSON is valid YAML, except for control characters, byte order marks and line ends that JSON leaves unescaped and
/// YAML forbids. Escapes them, so that the result is valid as both.
fn yaml(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => text.push(c),
        }
    }
    text
}

/// Front matter and title.
fn head(decision: &Decision, heading: Option<&str>) -> String {
    let mut file = String::from("---\n");
    let mut line = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            file.push_str(&format!("{key}: {}\n", yaml(&Value::from(value))));
        }
    };
    let title = decision.title.split_whitespace().collect::<Vec<_>>().join(" ");
    line("id", Some(decision.id.as_str()));
    line("date", decision.date.as_deref());
    line("by", decision.by.as_deref());
    line("run", decision.run.as_ref().map(|run| run.as_str()));
    line("supersedes", decision.supersedes.as_ref().map(|id| id.as_str()));
    let status = decision.status.and_then(|status| serde_json::to_value(status).ok());
    line("status", status.as_ref().and_then(Value::as_str));
    line("heading", heading.filter(|heading| *heading != format!("# {title}")));
    let mut lists = vec![("scope", &decision.scope), ("tags", &decision.tags)];
    if let Some(note) = &decision.note {
        line("kind", Some(note.kind.word()));
        line("project", note.project.as_deref());
        line("from", note.from.as_ref().map(|id| id.as_str()));
        lists.extend([("languages", &note.languages), ("frameworks", &note.frameworks), ("evidence", &note.evidence)]);
    }
    for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        file.push_str(&format!("{key}: {}\n", yaml(&Value::from(list.clone()))));
    }
    file.push_str(&format!("---\n# {title}\n"));
    file
}
