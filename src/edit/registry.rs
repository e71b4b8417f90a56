//! Edits the casting registry, which has members' names and statuses.

use std::ops::Range;

use super::Draft;
use super::naming::Naming;
use crate::model::{Member, Slug, Sort};

const PATH: &str = "casting/registry.json";

const NAMES: [&str; 3] = ["\"persistent_name\"", "\"name\"", "\"display_name\""];

/// Changes a member's status from active to retired.
pub(super) fn retire(draft: &mut Draft<'_>, member: &Member) {
    let text = draft.text(PATH);
    let Some(entry) = entry(text, &member.name, member.slug.as_str()) else { return };
    if let Some(status) =
        value_of(text, &entry.inner, "\"status\"").filter(|status| &text[status.clone()] == "\"active\"")
    {
        let text = format!("{}\"retired\"{}", &text[..status.start], &text[status.end..]);
        draft.put(PATH, text);
    }
}

/// Renames a member's names, and its key if that is its slug.
pub(super) fn rename(draft: &mut Draft<'_>, naming: &Naming<'_>) {
    let text = draft.text(PATH);
    let Some(entry) = entry(text, naming.old, naming.old_slug) else { return };
    let mut places: Vec<(Range<usize>, &str)> = Vec::new();
    let is = |place: &Range<usize>, name: &str| string(text, place).as_deref() == Some(name);
    if let Some(key) = entry.key.filter(|key| is(key, naming.old_slug)) {
        places.push((key, naming.new_slug));
    }
    let names = NAMES.iter().filter_map(|key| value_of(text, &entry.inner, key));
    places.extend(names.filter(|name| is(name, naming.old)).map(|name| (name, naming.new)));
    places.stable_sort_by_key(|(place, _)| place.start);
    let mut renamed = text.to_owned();
    for (place, name) in places.into_iter().rev() {
        renamed.replace_range(place, &serde_json::to_string(name).unwrap_or_default());
    }
    draft.put(PATH, renamed);
}

/// An object without nested objects, and its key if any. Ranges of keys include the quotes.
#[derive(Debug, Default)]
struct Entry {
    key: Option<Range<usize>>,
    inner: Range<usize>,
}

/// The entry of a member. `None` if the file is not JSON.
fn entry(text: &str, name: &str, slug: &str) -> Option<Entry> {
    serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}')).ok()?;
    let is_it = |text: Option<String>| text.and_then(|text| Slug::spelled(&text)) == Slug::spelled(name);
    let is_own = |entry: &Entry| {
        let names = NAMES.iter().find_map(|key| value_of(text, &entry.inner, key));
        let is_key = entry.key.as_ref().and_then(|key| string(text, key)).is_some_and(|key| key == slug);
        is_key || names.is_some_and(|name| is_it(string(text, &name)))
    };
    entries(text).into_iter().find(is_own)
}

fn entries(text: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    // The last string, and the current object.
    let (mut last, mut open): (Option<Range<usize>>, Option<Entry>) = (None, None);
    let (mut begun, mut is_escaped) = (None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (begun, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(start), b'"') => (last, begun) = (Some(start..at + 1), None),
            (Some(_), _) => {}
            (None, b'"') => begun = Some(at),
            (None, b'{') => open = Some(Entry { key: last.take(), inner: at..at }),
            (None, b'}') => found.extend(open.take().map(|entry| Entry { inner: entry.inner.start..at, ..entry })),
            (None, b',') => last = None,
            _ => {}
        }
    }
    found
}

fn string(text: &str, place: &Range<usize>) -> Option<String> {
    serde_json::from_str(text.get(place.clone())?).ok()
}

/// A key's string value, with its quotes.
fn value_of(text: &str, inner: &Range<usize>, key: &str) -> Option<Range<usize>> {
    let body = text.get(inner.clone())?;
    let at = body.find(key)? + key.len();
    let colon = at + body[at..].find(':')? + 1;
    let start = colon + body[colon..].find('"').filter(|gap| body[colon..colon + gap].trim().is_empty())?;
    let end = start + 1 + body[start + 1..].find('"')? + 1;
    Some(inner.start + start..inner.start + end)
}
