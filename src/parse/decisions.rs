//! Decisions: a file each under `decisions/`, and the entries of a `decisions.md`.

use std::ops::Range;

use super::front_matter;
use super::markdown::{Document, Section, field};
use super::words::{trim_pictographs, without_pictographs};
use super::{Files, line_feeds};
use crate::model::{Decision, DecisionId, Problem, RunId, Source};

/// All decisions of a team folder, newest first; undated ones last, in the order they were read.
pub(super) fn read(files: &Files, problems: &mut Vec<Problem>) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for (path, text) in &files.texts {
        if is_decision_file(path) {
            match decision_file(text, files.at(path, 1)) {
                Ok(decision) => decisions.push(decision),
                Err(problem) => problems.push(*problem),
            }
        }
    }
    if let Some(text) = files.text("decisions.md") {
        decisions.extend(entries(files, "decisions.md", text));
    }
    decisions.sort_by(|a, b| b.date.cmp(&a.date));
    decisions
}

/// `decisions/<yyyy>/<mm>/<dd>-<slug>-<id>.md`
fn is_decision_file(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["decisions", year, month, name]
        if year.len() == 4 && month.len() == 2 && name.ends_with(".md")
            && year.bytes().chain(month.bytes()).all(|b| b.is_ascii_digit()))
}

#[derive(serde::Deserialize)]
struct Matter {
    id: String,
    date: Option<String>,
    by: Option<String>,
    run: Option<String>,
    supersedes: Option<String>,
    #[serde(default)]
    scope: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
}

/// A decision's own file, as `record` writes it and people edit it.
pub(crate) fn decision_file(text: &str, source: Source) -> Result<Decision, Box<Problem>> {
    let text = line_feeds(super::without_mark(text));
    let (matter, body_at) = front_matter::split(&text);
    let Some(matter) = matter else {
        return Err(Box::new(
            Problem::warning(source, "decision-front-matter", "a decision's file begins with front matter")
                .hint("`---`, then at least `id:`, then `---`"),
        ));
    };
    let matter: Matter = front_matter::read(matter).map_err(|error| {
        let at = Source::new(&source.file, 1 + error.line);
        Box::new(Problem::warning(
            at,
            "decision-front-matter",
            format!("the front matter cannot be read: {}", error.message),
        ))
    })?;
    let body = text[body_at..].trim_start();
    let (title, text) = match body.strip_prefix("# ") {
        Some(rest) => rest.split_once('\n').unwrap_or((rest, "")),
        None => body.split_once('\n').unwrap_or((body, "")),
    };
    Ok(Decision {
        id: DecisionId::new(matter.id),
        title: title.trim().to_owned(),
        date: matter.date,
        by: matter.by,
        run: matter.run.map(RunId::new),
        supersedes: matter.supersedes.map(DecisionId::new),
        scope: matter.scope,
        tags: matter.tags,
        text: text.trim().to_owned(),
        source: Some(source),
    })
}

/// The entries of a `decisions.md`. Dated headings are entries at whatever level they have; where none is dated, the
/// headings below a `## … Decisions` are, or else those of the second level.
fn entries(files: &Files, path: &str, text: &str) -> Vec<Decision> {
    let text = line_feeds(text);
    let document = Document::new(&text);
    let sections = document.sections();
    let level = entry_level(&sections);
    let mut covered: Range<usize> = 0..0;
    let mut decisions = Vec::new();
    for section in &sections {
        let (date, title) = dated(section.title);
        let is_entry = if date.is_some() { section.level <= level } else { section.level == level };
        if !is_entry || covered.contains(&section.offset) || is_frame(section.title) {
            continue;
        }
        covered = section.body.clone();
        decisions.push(entry(&document, section, (date, title), files.at(path, document.line(section.offset))));
    }
    decisions
}

fn entry_level(sections: &[Section<'_>]) -> u8 {
    let dated_levels = sections.iter().filter(|section| dated(section.title).0.is_some()).map(|section| section.level);
    let frame = sections.iter().find(|section| section.level == 2 && is_frame(section.title));
    dated_levels.max().unwrap_or(if frame.is_some() { 3 } else { 2 })
}

/// Headings that hold entries or rules about them.
fn is_frame(title: &str) -> bool {
    matches!(
        title.trim().to_lowercase().as_str(),
        "active decisions" | "decisions" | "squad decisions" | "team decisions" | "governance" | "archive" | "inbox"
    )
}

fn entry(
    document: &Document<'_>,
    section: &Section<'_>,
    (date, title): (Option<String>, String),
    source: Source,
) -> Decision {
    let body = document.text(&section.body).trim();
    let fields: Vec<(String, String)> = document
        .lines_in(&section.body)
        .flat_map(|(block, _)| block.lines())
        .filter_map(field)
        .map(|(key, value)| (key, value.to_owned()))
        .collect();
    let find = |names: &[&str]| {
        fields.iter().find(|(key, value)| names.contains(&key.as_str()) && !value.is_empty()).map(|(_, value)| value)
    };
    let date = date.or_else(|| find(&["date"]).and_then(|value| dated(value).0));
    let by = find(&["by", "author", "owner", "decided by"]).map(|value| without_pictographs(value));
    let hash = blake3::hash(format!("{}\n{title}\n{body}", date.as_deref().unwrap_or("")).as_bytes());
    Decision {
        id: DecisionId::new(&hash.to_hex()[..12]),
        title,
        date,
        by,
        run: None,
        supersedes: None,
        scope: Vec::new(),
        tags: Vec::new(),
        text: body.to_owned(),
        source: Some(source),
    }
}

/// A date in a heading, and the heading without it: `2026-01-05: Title`, `2026-01-05T10:00:00Z — Title`,
/// `Title (2026-01-05)`.
fn dated(title: &str) -> (Option<String>, String) {
    let title = trim_pictographs(title);
    let Some(at) = find_date(title) else { return (None, title.to_owned()) };
    let date = title[at..at + 10].to_owned();
    let after = &title[at + 10..];
    let time = after
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, 'T' | 'Z' | ':' | '-' | '+' | '.')))
        .unwrap_or(after.len());
    // `2026-01-05: Title` has a colon that is not part of a time.
    let time = if after.starts_with('T') { after[..time].trim_end_matches([':', '-']).len() } else { 0 };
    let rest = format!("{} {}", &title[..at], &after[time..]);
    let marks: &[char] = &[' ', ':', '-', '—', '–', '|', '(', ')', '[', ']', '/', '·'];
    let rest = trim_pictographs(rest.trim_matches(marks)).to_owned();
    (Some(date), if rest.is_empty() { title.to_owned() } else { rest })
}

/// Where `dddd-dd-dd` stands, not within a longer number.
fn find_date(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(9)).find(|&at| {
        let shape = |i: usize| if i == 4 || i == 7 { bytes[at + i] == b'-' } else { bytes[at + i].is_ascii_digit() };
        (0..10).all(shape)
            && (at == 0 || !bytes[at - 1].is_ascii_alphanumeric())
            && bytes.get(at + 10).is_none_or(|next| !next.is_ascii_digit())
    })
}
