//! Front matter in the midst of a file, as it gets there when notes are appended to one another.

use std::ops::Range;

use super::super::markdown::Document;
use super::super::words::is_blank;

/// A block of `key: value` lines between two `---`, and where what it is about begins.
pub(super) struct Matter {
    pub(super) lines: Range<usize>,
    pub(super) fields: Vec<(String, String)>,
    /// The first line below it that is not empty.
    pub(super) next: usize,
}

/// What front matter calls the title of what is below it.
const SUBJECT: [&str; 3] = ["subject", "title", "topic"];

/// Keys without one of which a block between two rules may be anything; or it says a subject and whose it is.
const TELLING: [&str; 6] = ["date", "by", "author", "timestamp", "created", "decided_by"];

/// More lines than this are no front matter.
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

/// The pairs of lines that say when or by whom.
pub(super) fn fields(lines: &[&str]) -> Option<Vec<(String, String)>> {
    let is_telling = |fields: &Vec<(String, String)>| {
        fields.iter().any(|(key, _)| TELLING.contains(&key.as_str()))
            || (subject(fields).is_some() && fields.iter().any(|(key, _)| key == "owner"))
    };
    pairs(lines).filter(is_telling)
}

/// What the fields say that it is about.
pub(super) fn subject(fields: &[(String, String)]) -> Option<&str> {
    let find = |name: &&str| fields.iter().find(|(key, value)| key == name && !is_blank(value));
    SUBJECT.iter().find_map(find).map(|(_, value)| value.as_str())
}

/// The same, where it stands in the text.
pub(super) fn subject_in<'t>(text: &'t str, matter: &Matter) -> Option<&'t str> {
    let lines = text.get(matter.lines.clone())?.lines();
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let (_, value) =
        fields.find(|(key, value)| SUBJECT.contains(&key.trim().to_lowercase().as_str()) && !is_blank(value))?;
    Some(value.trim().trim_matches(['"', '\'']))
}

/// The pairs of lines that are nothing but such, with lists below a key.
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
