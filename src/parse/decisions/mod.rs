//! Decisions: a file each under `decisions/`, and the entries of a `decisions.md`.

mod date;
mod entries;
mod found;
mod groups;
mod headings;
mod matter;
mod metadata;
mod own;
mod places;
mod rows;
mod split;
mod status;
mod titles;

use std::collections::{HashMap, HashSet};

pub(crate) use headings::IMPORTED;
#[cfg(test)]
pub(crate) use own::decision_file;
pub(crate) use places::{holds_decisions, main_file, stands_before_another};
pub(crate) use split::{sources, split};

use date::Order;

use super::front_matter;
use super::words::is_blank;
use super::{Files, line_feeds};
use crate::model::{Decision, DecisionId, Problem, Severity, Slug, Source, plural};
use places::{Place, place};
use titles::is_section;

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
    let own = own::all(files, problems);
    let mut decisions = Decisions::default();
    let mut processed = Vec::new();
    for (path, text) in &files.texts {
        match place(path, main) {
            Some(Place::Main) => {
                let (entries, _) = entries(files, path, text, problems);
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
            Some(Place::Archive) => decisions.archived.extend(entries(files, path, text, problems).0),
            Some(Place::Processed) => processed.extend(notes(files, path, text, &mut Vec::new())),
            Some(Place::Own) => {}
            None => say_unread(files, path, text, problems),
        }
    }
    // A merge may bring back an entry that has a file of its own: the file is what people edit.
    let ids: HashSet<&DecisionId> = own.iter().map(|decision| &decision.id).collect();
    for list in [&mut decisions.current, &mut decisions.archived] {
        list.retain(|decision| !ids.contains(&decision.id));
    }
    decisions.current.splice(0..0, own);
    decisions.archive_processed(processed);
    say_superseded_twice(&decisions, problems);
    for list in [&mut decisions.current, &mut decisions.archived] {
        list.sort_by(|a, b| b.moment().cmp(&a.moment()));
    }
    decisions
}

impl Decisions {
    /// Notes that were merged into another file and kept: each is a copy of what stands there, or an archived decision.
    fn archive_processed(&mut self, notes: Vec<Decision>) {
        let title = |decision: &Decision| Slug::fold(&decision.title).map(|slug| slug.as_str().to_owned());
        let mut known: HashMap<Option<String>, Vec<Option<String>>> = HashMap::new();
        for decision in self.current.iter().chain(&self.archived) {
            known.entry(title(decision)).or_default().push(decision.date.clone());
        }
        for note in notes {
            let dates = known.entry(title(&note)).or_default();
            let is_copy = dates.iter().any(|date| *date == note.date || date.is_none() || note.date.is_none());
            if !is_copy {
                dates.push(note.date.clone());
                self.archived.push(note);
            }
        }
    }
}

/// A file beside the decisions that seems to hold some, under a name that says nothing of them.
fn say_unread(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) {
    let is_beside = path.starts_with("decisions/") && path.ends_with(".md");
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    if !is_beside || ["readme.md", "template.md", "index.md"].contains(&name.as_str()) {
        return;
    }
    let found = entries::read(files, path, &line_feeds(super::without_mark(text))).found;
    if found.iter().any(|found| found.decision.date.is_some()) {
        let message = "has entries with a day, and is not where squad reads decisions";
        let hint = "move it to `decisions/inbox/` or `decisions/archive/`, or begin its name with its day";
        problems.push(Problem::new(Severity::Note, files.at(path, 1), "decision-unread", message).hint(hint));
    }
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

/// The entries of a file, those that stand in it twice counted once; and whether, as a note, it is one decision.
fn entries(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> (Vec<Decision>, bool) {
    let found = entries::read(files, path, &line_feeds(super::without_mark(text)));
    let is_one = found.is_one;
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
                .hint("each counts once; delete the duplicate"),
        );
    }
    (decisions, is_one)
}

/// A note in the inbox is a decision even when it has no heading that says so.
fn notes(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> Vec<Decision> {
    let text = line_feeds(super::without_mark(text));
    let (matter, body_at) = front_matter::split(&text);
    let body = text.get(body_at..).unwrap_or_default();
    let mut doubts = Vec::new();
    let (mut decisions, is_one) = entries(files, path, &blank_lines(&text, body_at), &mut doubts);
    if (decisions.is_empty() || is_one) && !is_blank(body) && !text.contains(IMPORTED) {
        let mut whole = entries::whole(body, files.at(path, 1));
        let subject = matter.and_then(|matter| NoteMatter::read(matter)?.subject());
        if let Some(subject) = subject.filter(|_| !body.trim_start().starts_with('#') || is_section(&whole.title)) {
            whole.title = subject;
        }
        decisions = vec![whole];
    } else {
        problems.append(&mut doubts);
    }
    let mut all: Vec<&mut Decision> = decisions.iter_mut().collect();
    complete(path, matter, &mut all);
    decisions
}

/// What a note says of itself in its front matter or its name.
fn complete(path: &str, matter: Option<&str>, decisions: &mut [&mut Decision]) {
    if let Some(matter) = matter.and_then(NoteMatter::read) {
        for decision in decisions.iter_mut() {
            decision.date = decision
                .date
                .take()
                .or_else(|| matter.date.as_deref().and_then(|day| date::date_in(day, Order::Unknown)));
            decision.by = decision.by.take().or_else(|| matter.by.clone()).or_else(|| matter.author.clone());
            decision.by = decision.by.take().or_else(|| matter.owner.clone());
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
    owner: Option<String>,
    status: Option<String>,
    subject: Option<String>,
    title: Option<String>,
    topic: Option<String>,
}

impl NoteMatter {
    fn read(text: &str) -> Option<Self> {
        // Lists and the like, where a text is meant.
        front_matter::read(text).ok().or_else(|| Self::of_lines(text))
    }

    fn subject(self) -> Option<String> {
        self.subject.or(self.title).or(self.topic).filter(|subject| !is_blank(subject))
    }

    fn of_lines(text: &str) -> Option<Self> {
        let fields = matter::fields(&text.lines().collect::<Vec<_>>())?;
        let find = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        Some(Self {
            date: find("date"),
            by: find("by"),
            author: find("author"),
            owner: find("owner"),
            status: find("status"),
            subject: find("subject"),
            title: find("title"),
            topic: find("topic"),
        })
    }
}
