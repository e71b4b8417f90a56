//! Decisions: a file each under `decisions/`, and the entries of a `decisions.md`.

mod date;
mod entries;
mod headings;
mod matter;
mod metadata;
mod rows;
mod split;
mod status;
mod titles;

use std::collections::{HashMap, HashSet};

pub(crate) use entries::IMPORTED;
pub(crate) use split::{sources, split};

use date::Order;

use super::front_matter;
use super::words::is_blank;
use super::{Files, line_feeds};
use crate::model::{Decision, DecisionId, Problem, RunId, Severity, Source, plural};

/// The decisions of a team folder.
#[derive(Default)]
pub(super) struct Decisions {
    /// Newest first; undated ones last, in the order they were read.
    pub(super) current: Vec<Decision>,
    /// Those that were moved out of the file that agents read, in the same order.
    pub(super) archived: Vec<Decision>,
}

pub(super) fn read(files: &Files, problems: &mut Vec<Problem>) -> Decisions {
    let main = main_file(files);
    let mut own = Vec::new();
    for (path, text) in files.texts.iter().filter(|(path, _)| matches!(place(path, main), Some(Place::Own))) {
        match decision_file(text, files.at(path, 1)) {
            Ok(decision) => own.push(decision),
            Err(problem) => problems.push(*problem),
        }
    }
    let mut decisions = Decisions::default();
    for (path, text) in &files.texts {
        match place(path, main) {
            Some(Place::Main) => {
                let entries = entries(files, path, text, problems);
                if entries.is_empty() && text.trim().len() > UNFILLED {
                    problems.push(
                        Problem::new(
                            Severity::Note,
                            files.at(path, 1),
                            "decisions-empty",
                            "squad found no decision in it",
                        )
                        .hint("an entry begins with a heading such as `### 2026-01-05: Title`"),
                    );
                }
                decisions.current.extend(entries);
            }
            Some(Place::Inbox) => decisions.current.extend(notes(files, path, text, problems)),
            Some(Place::Archive) => decisions.archived.extend(entries(files, path, text, problems)),
            Some(Place::Own) | None => {}
        }
    }
    // A merge may bring back an entry that has a file of its own: the file is what people edit.
    let ids: HashSet<&DecisionId> = own.iter().map(|decision| &decision.id).collect();
    for list in [&mut decisions.current, &mut decisions.archived] {
        list.retain(|decision| !ids.contains(&decision.id));
    }
    decisions.current.splice(0..0, own);
    say_superseded_twice(&decisions, problems);
    for list in [&mut decisions.current, &mut decisions.archived] {
        list.sort_by(|a, b| b.date.cmp(&a.date));
    }
    decisions
}

/// Two branches may each have replaced a decision, and their merge holds both: that is for people to settle.
fn say_superseded_twice(decisions: &Decisions, problems: &mut Vec<Problem>) {
    let all = || decisions.current.iter().chain(&decisions.archived);
    let superseded: HashSet<&DecisionId> = all().filter_map(|decision| decision.supersedes.as_ref()).collect();
    let mut first: HashMap<&DecisionId, &DecisionId> = HashMap::new();
    for decision in all().filter(|decision| !superseded.contains(&decision.id)) {
        let (Some(old), Some(source)) = (&decision.supersedes, &decision.source) else { continue };
        match first.get(old) {
            None => drop(first.insert(old, &decision.id)),
            Some(other) if **other == decision.id => {}
            Some(other) => problems.push(
                Problem::warning(
                    source.clone(),
                    "decision-superseded-twice",
                    format!("`{}` and `{other}` both supersede `{old}`, and both are in force", decision.id),
                )
                .hint(format!("keep one: `squad decisions supersede {other} \"…\"`, or delete the file of the other")),
            ),
        }
    }
}

/// A file that has only been laid out for decisions is shorter than this.
const UNFILLED: usize = 1200;

enum Place {
    /// A decision's own file.
    Own,
    Main,
    Inbox,
    Archive,
}

/// The file that agents read: `decisions.md`, or one in the folder where there is no other.
fn main_file(files: &Files) -> &'static str {
    if files.texts.contains_key("decisions.md") { "decisions.md" } else { "decisions/decisions.md" }
}

fn place(path: &str, main: &str) -> Option<Place> {
    if path == main {
        return Some(Place::Main);
    }
    let name = path.strip_suffix(".md")?;
    let parts: Vec<&str> = name.split('/').collect();
    let is_archive = |name: &str| name.contains("archive") && name.contains("decision");
    match parts[..] {
        ["decisions", year, month, _] if is_day_folder(year, month) => Some(Place::Own),
        ["decisions", "undated", _] => Some(Place::Own),
        ["decisions", "inbox", _] => Some(Place::Inbox),
        ["decisions", "decisions"] => Some(Place::Archive),
        ["decisions", "archive" | "archived", _] => Some(Place::Archive),
        ["decisions", name] if name.contains("archive") => Some(Place::Archive),
        [name] | ["archive", name] if is_archive(name) => Some(Place::Archive),
        _ => None,
    }
}

/// The entries of a file, those that stand in it twice counted once.
fn entries(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> Vec<Decision> {
    let found = entries::read(files, path, &line_feeds(super::without_mark(text)));
    problems.extend(found.problems);
    let mut decisions: Vec<Decision> = found.found.into_iter().map(|found| found.decision).collect();
    let before = decisions.len();
    let mut doubled: Option<Source> = None;
    let mut seen = HashSet::new();
    decisions.retain(|decision| {
        let new = seen.insert(decision.id.clone());
        if !new && doubled.is_none() {
            doubled = decision.source.clone();
        }
        new
    });
    if let Some(source) = doubled {
        let count = before - decisions.len();
        let message = match count {
            1 => "this entry stands in the file twice, letter for letter".to_owned(),
            _ => format!("this entry and {} stand in the file twice, letter for letter", plural(count - 1, "other")),
        };
        problems.push(
            Problem::new(Severity::Note, source, "decision-duplicate", message)
                .hint("each is counted once; delete the second"),
        );
    }
    decisions
}

/// A note in the inbox is a decision even when it has no heading that says so.
fn notes(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> Vec<Decision> {
    let text = line_feeds(super::without_mark(text));
    let (matter, body_at) = front_matter::split(&text);
    let body = text.get(body_at..).unwrap_or_default();
    let mut decisions = entries(files, path, &blank_lines(&text, body_at), problems);
    if decisions.is_empty() && !is_blank(body) && !text.contains(IMPORTED) {
        decisions.push(entries::whole(body, files.at(path, 1)));
    }
    let mut all: Vec<&mut Decision> = decisions.iter_mut().collect();
    complete(path, matter, &mut all);
    decisions
}

/// What a note says of itself in its front matter or its name.
fn complete(path: &str, matter: Option<&str>, decisions: &mut [&mut Decision]) {
    if let Some(matter) = matter.and_then(|matter| front_matter::read::<NoteMatter>(matter).ok()) {
        for decision in decisions.iter_mut() {
            decision.date = decision
                .date
                .take()
                .or_else(|| matter.date.as_deref().and_then(|day| date::date_in(day, Order::Unknown)));
            decision.by = decision.by.take().or_else(|| matter.by.clone().or_else(|| matter.author.clone()));
            decision.status = decision.status.or_else(|| status::said(matter.status.as_deref()?));
        }
    }
    let named = path.rsplit('/').next().and_then(|name| date::date_in(name, Order::Unknown));
    // One decision, though it may stand there twice.
    let first = decisions.first().map(|decision| decision.id.clone());
    if decisions.iter().all(|decision| Some(&decision.id) == first.as_ref()) {
        for decision in decisions.iter_mut() {
            decision.date = decision.date.take().or_else(|| named.clone());
        }
    }
}

/// The text with everything before `at` replaced by empty lines, so that lines keep their numbers.
fn blank_lines(text: &str, at: usize) -> String {
    let (before, after) = text.split_at_checked(at).unwrap_or(("", text));
    let mut blanked = "\n".repeat(before.matches('\n').count());
    blanked.push_str(after);
    blanked
}

#[derive(serde::Deserialize)]
struct NoteMatter {
    date: Option<String>,
    by: Option<String>,
    author: Option<String>,
    status: Option<String>,
}

/// `decisions/<yyyy>/<mm>/<dd>-<slug>-<id>.md`
fn is_day_folder(year: &str, month: &str) -> bool {
    year.len() == 4 && month.len() == 2 && year.bytes().chain(month.bytes()).all(|b| b.is_ascii_digit())
}

#[derive(serde::Deserialize)]
struct Matter {
    id: String,
    date: Option<String>,
    by: Option<String>,
    run: Option<String>,
    supersedes: Option<String>,
    /// What the entry said that the file was made of.
    status: Option<String>,
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
    let id = DecisionId::new(matter.id);
    Ok(Decision {
        title: title.trim().to_owned(),
        date: matter.date,
        by: matter.by,
        run: matter.run.map(RunId::new),
        // One that names itself replaces nothing.
        supersedes: matter.supersedes.map(DecisionId::new).filter(|old| *old != id),
        scope: matter.scope,
        tags: matter.tags,
        text: text.trim().to_owned(),
        status: matter.status.as_deref().and_then(status::said),
        source: Some(source),
        id,
    })
}
