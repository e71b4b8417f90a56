//! Front matter that is no valid YAML, or has lists instead of texts: read line by line.

use super::super::words::is_blank;

/// Keys for the title of the note.
const SUBJECT: [&str; 3] = ["subject", "title", "topic"];

/// A block between two rules is front matter if it has one of these keys, or a subject and an owner.
const TELLING: [&str; 6] = ["date", "by", "author", "timestamp", "created", "decided_by"];

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
