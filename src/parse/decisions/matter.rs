//! Front matter in the middle of a file, where notes were appended to one another.

use std::ops::Range;

use super::super::markdown::Document;
use super::super::words::is_blank;

/// A block of `key: value` lines between two `---`, and the start of its note.
pub(super) struct Matter {
    pub(super) lines: Range<usize>,
    pub(super) fields: Vec<(String, String)>,
    /// The offset of the first non-empty line below.
    pub(super) next: usize,
}

/// Keys for the title of the note.
const SUBJECT: [&str; 3] = ["subject", "title", "topic"];

/// A block between two rules is front matter if it has one of these keys, or a subject and an owner.
const TELLING: [&str; 6] = ["date", "by", "author", "timestamp", "created", "decided_by"];

/// The most lines of front matter.
const LONGEST: usize = 40;

pub(super) fn all(document: &Document<'_>, text: &str) -> Vec<Matter> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_rule = |line: &&str| line.trim_end() == "---";
    let mut found = Vec::new();
    let (mut at, mut offset) = (0, 0);
    let mut fence: Option<&str> = None;
    while let Some(line) = lines.get(at) {
        let marks = ["```", "~~~"].into_iter().find(|marks| line.trim_start().starts_with(marks));
        if marks.is_some() && (fence.is_none() || fence == marks) {
            fence = if fence.is_some() { None } else { marks };
        }
        let close = || lines.iter().skip(at + 1).take(LONGEST).position(is_rule).map(|inner| at + 1 + inner);
        let close = if fence.is_none() && is_rule(line) { close() } else { None };
        let fields = close.and_then(|close| fields(lines.get(at + 1..close)?));
        let (Some(close), Some(fields)) = (close, fields) else {
            offset += line.len();
            at += 1;
            continue;
        };
        let end = offset + lines[at..=close].iter().map(|line| line.len()).sum::<usize>();
        let blank: usize = lines[close + 1..].iter().take_while(|line| line.trim().is_empty()).map(|l| l.len()).sum();
        found.push(Matter { lines: document.line_start(offset)..end, fields, next: end + blank });
        offset = end;
        at = close + 1;
    }
    found
}

/// The fields of the lines, if they have a date or an author.
pub(super) fn fields(lines: &[&str]) -> Option<Vec<(String, String)>> {
    let is_telling = |fields: &Vec<(String, String)>| {
        fields.iter().any(|(key, _)| TELLING.contains(&key.as_str()))
            || (subject(fields).is_some() && fields.iter().any(|(key, _)| key == "owner"))
    };
    pairs(lines).filter(is_telling)
}

/// The subject in the fields.
pub(super) fn subject(fields: &[(String, String)]) -> Option<&str> {
    let find = |name: &&str| fields.iter().find(|(key, value)| key == name && !is_blank(value));
    SUBJECT.iter().find_map(find).map(|(_, value)| value.as_str())
}

/// The subject, as a slice of the text.
pub(super) fn subject_in<'t>(text: &'t str, matter: &Matter) -> Option<&'t str> {
    let lines = text.get(matter.lines.clone())?.lines();
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let (_, value) =
        fields.find(|(key, value)| SUBJECT.contains(&key.trim().to_lowercase().as_str()) && !is_blank(value))?;
    Some(value.trim().trim_matches(['"', '\'']))
}

/// The fields of lines that are all `key: value`, or lists below a key.
pub(super) fn pairs(lines: &[&str]) -> Option<Vec<(String, String)>> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        let inner = line.trim();
        let is_below = line.starts_with([' ', '\t', '-']);
        if let (true, Some((_, value))) = (is_below, fields.last_mut()) {
            let item = inner.trim_start_matches(['-', ' ']).trim_matches(['"', '\'']);
            *value = if value.is_empty() { item.to_owned() } else { format!("{value}, {item}") };
            continue;
        }
        let (key, value) = inner.split_once(':')?;
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
        if !is_key || !(value.is_empty() || value.starts_with(' ')) {
            return None;
        }
        let value = value.trim().trim_matches(['"', '\'', '[', ']']);
        fields.push((key.to_lowercase(), value.to_owned()));
    }
    Some(fields)
}
