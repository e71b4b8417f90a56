//! A decision as a file of its own, for people to read, edit and review.

use serde_json::Value;

use crate::model::{Decision, Slug};

/// `.squad/decisions/<yyyy>/<mm>/<dd>-<slug>-<id>.md`, from the project's root; `undated/<slug>-<id>.md` for an imported
/// one that does not say when. The same decision has the same path in every clone.
pub(crate) fn decision_path(folder: &str, decision: &Decision) -> String {
    let slug = Slug::fold(&decision.title).map_or_else(|| "decision".to_owned(), |slug| short(slug.as_str()));
    let name = format!("{slug}-{}.md", decision.id);
    match decision.date.as_deref().and_then(day) {
        Some((year, month, day)) => format!("{folder}/decisions/{year}/{month}/{day}-{name}"),
        None => format!("{folder}/decisions/undated/{name}"),
    }
}

/// Year, month and day of a date that begins `yyyy-mm-dd`.
fn day(date: &str) -> Option<(&str, &str, &str)> {
    let (year, rest) = date.get(..10)?.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let fits = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
    (fits(year, 4) && fits(month, 2) && fits(day, 2)).then_some((year, month, day))
}

/// At a word's end, so that paths stay readable and far below what Windows can hold.
fn short(slug: &str) -> String {
    const LONGEST: usize = 48;
    if slug.len() <= LONGEST {
        return slug.to_owned();
    }
    let cut = &slug[..LONGEST];
    cut.rsplit_once('-').map_or(cut, |(words, _)| words).to_owned()
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

/// The file of an entry that was written into a file of many, from the entry's bytes: what stood below its heading is
/// here as it was, and the heading is kept in the front matter where it says more than the title. An entry without a
/// heading, such as a row of a table, is here as it was.
pub(crate) fn render_imported(decision: &Decision, heading: &str, body: &str) -> String {
    let heading = heading.strip_suffix('\n').map_or(heading, |line| line.strip_suffix('\r').unwrap_or(line));
    let mut file = head(decision, (!heading.is_empty()).then_some(heading));
    if heading.is_empty() {
        file.push('\n');
    }
    file.push_str(body);
    file
}

/// What ends front matter, and the last key in it.
const ENDS: &str = "\n---\n";
const TWINS: &str = "twins: ";

/// The file of an imported entry, with another entry of the same decision from the same place, as it was.
pub(super) fn with_twin(file: &str, twin: &str) -> String {
    let (matter, rest) = file.split_once(ENDS).unwrap_or((file, ""));
    let (matter, said) = matter.split_once(&format!("\n{TWINS}")).unwrap_or((matter, "[]"));
    let mut twins: Vec<String> = serde_json::from_str(said).unwrap_or_default();
    if !twins.iter().any(|other| other == twin) {
        twins.push(twin.to_owned());
    }
    format!("{matter}\n{TWINS}{}{ENDS}{rest}", yaml(&Value::from(twins)))
}

/// Whether two files of an imported entry say the same, but for what its twins said.
pub(super) fn same_but_for_twins(file: &str, other: &str) -> bool {
    parts(file) == parts(other)
}

fn parts(file: &str) -> (&str, &str) {
    let (matter, rest) = file.split_once(ENDS).unwrap_or((file, ""));
    (matter.split_once(&format!("\n{TWINS}")).map_or(matter, |(matter, _)| matter), rest.trim_end())
}

/// JSON is YAML but for what YAML takes for no text: control characters, marks and line ends that JSON has as they are.
/// They are escaped as JSON escapes the others, so that it can be read as either.
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
    for (key, list) in [("scope", &decision.scope), ("tags", &decision.tags)] {
        if !list.is_empty() {
            file.push_str(&format!("{key}: {}\n", yaml(&Value::from(list.clone()))));
        }
    }
    file.push_str(&format!("---\n# {title}\n"));
    file
}
