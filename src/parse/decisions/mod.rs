//! Decisions: one file each under `decisions/`, and the entries of `decisions.md`.

mod date;
mod entries;
mod found;
mod groups;
mod headings;
mod metadata;
mod own;
mod places;
mod split;
mod status;
mod titles;

use std::collections::{HashMap, HashSet};

pub(crate) use headings::{IMPORTED, NO_DECISION};
#[cfg(test)]
pub(crate) use own::read as decision_file;
pub(crate) use places::{KNOWLEDGE, holds_decisions, is_record_of_decisions, main_file, stands_before_another};
pub(crate) use split::{Piece, sources, split};

use super::front_matter::{self, Several};
use super::words::is_blank;
use super::{Files, line_feeds};
use crate::model::{Decision, DecisionId, Problem, Severity, Slug, Sort, plural};
use entries::Entries;
use found::LocatedDecision;
use places::{FileKind, file_kind, is_beside};
use titles::is_section;

/// The decisions of a team folder.
#[derive(Default)]
pub(super) struct Decisions {
    /// Newest first; undated ones last, in reading order.
    pub(super) current: Vec<Decision>,
    /// Archived ones, in the same order.
    pub(super) archived: Vec<Decision>,
    /// Notes of knowledge, in the same order.
    pub(super) knowledge: Vec<Decision>,
}

pub(super) fn read(files: &Files, problems: &mut Vec<Problem>) -> Decisions {
    let main = main_file(files);
    let own = own::all(files, problems);
    let mut decisions = Decisions::default();
    let (mut beside, mut processed) = (Vec::new(), Vec::new());
    for (path, text) in &files.texts {
        match file_kind(path, main) {
            Some(FileKind::Main) => {
                let entries = entries(files, path, text, problems);
                if entries.is_empty() && text.trim().len() > UNFILLED {
                    let message = "squad found no decision in it";
                    let problem = Problem::new(Severity::Note, files.at(path, 1), "decisions-empty", message);
                    problems.push(problem.hint("an entry begins with a heading such as `### 2026-01-05: Title`"));
                }
                decisions.current.extend(entries);
            }
            Some(FileKind::Inbox) => decisions.current.extend(notes(files, path, text, problems)),
            Some(FileKind::Archive) => decisions.archived.extend(entries(files, path, text, problems)),
            Some(FileKind::Processed) => processed.extend(notes(files, path, text, &mut Vec::new())),
            None if is_beside(path) => {
                let found = notes(files, path, text, &mut Vec::new());
                beside.extend(found.into_iter().filter(|decision| decision.date.is_some()));
            }
            Some(FileKind::Own) | None => {}
        }
    }
    // A merge may restore an entry that has its own file. The file wins, because people edit it. Archives repeat one another.
    let mut ids: HashSet<DecisionId> = own.iter().map(|decision| decision.id.clone()).collect();
    for list in [&mut decisions.current, &mut decisions.archived] {
        list.retain(|decision| ids.insert(decision.id.clone()));
    }
    decisions.current.splice(0..0, own);
    let beside = decisions.without_copies(beside);
    decisions.current.extend(beside);
    let processed = decisions.without_copies(processed);
    decisions.archived.extend(processed);
    report_superseded_twice(&decisions, problems);
    decisions.knowledge = decisions.current.extract_if(.., |decision| decision.note.is_some()).collect();
    for list in [&mut decisions.current, &mut decisions.archived, &mut decisions.knowledge] {
        list.stable_sort_by(|a, b| b.moment().cmp(&a.moment()));
    }
    decisions
}

impl Decisions {
    /// Notes without copies of known decisions: they were merged into another file, and kept.
    fn without_copies(&self, mut notes: Vec<Decision>) -> Vec<Decision> {
        let title = |decision: &Decision| Slug::fold(&decision.title).map(|slug| slug.as_str().to_owned());
        let mut known: HashMap<Option<String>, Vec<Option<String>>> = HashMap::new();
        for decision in self.current.iter().chain(&self.archived) {
            known.entry(title(decision)).or_default().push(decision.date.clone());
        }
        notes.retain(|note| {
            let dates = known.entry(title(note)).or_default();
            let is_copy = dates.iter().any(|date| *date == note.date || date.is_none() || note.date.is_none());
            if !is_copy {
                dates.push(note.date.clone());
            }
            !is_copy
        });
        notes
    }
}

/// Reports decisions with two successors, as after a merge. People have to choose.
fn report_superseded_twice(decisions: &Decisions, problems: &mut Vec<Problem>) {
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

/// An unfilled template is shorter than this.
const UNFILLED: usize = 1200;

/// The entries of a file without duplicates.
fn entries(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> Vec<Decision> {
    distinct(entries::read(files, path, &line_feeds(super::without_mark(text))), problems)
}

fn distinct(entries: Entries, problems: &mut Vec<Problem>) -> Vec<Decision> {
    problems.extend(entries.problems);
    let mut seen = HashSet::new();
    let (decisions, doubled): (Vec<Decision>, Vec<Decision>) =
        entries.found.into_iter().map(|found| found.decision).partition(|decision| seen.insert(decision.id.clone()));
    if let Some(source) = doubled.first().and_then(|first| first.source.clone()) {
        let message = match doubled.len() {
            1 => "this entry is in the file twice, word for word".to_owned(),
            count => {
                format!("this entry and {} are in the file twice, word for word", plural(count - 1, "other"))
            }
        };
        problems.push(
            Problem::new(Severity::Note, source, "decision-duplicate", message)
                .hint("each counts once; delete the duplicate"),
        );
    }
    decisions
}

/// Reads an inbox note, which is a decision even without a suitable heading.
fn notes(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> Vec<Decision> {
    distinct(note(files, path, &line_feeds(super::without_mark(text))), problems)
}

/// The decisions of a note, with their places in its text.
fn note(files: &Files, path: &str, text: &str) -> Entries {
    let (matter, body_at) = front_matter::split(text);
    let matter = matter.and_then(|matter| front_matter::read::<NoteMatter>(matter).ok()).unwrap_or_default();
    let body = text.get(body_at..).unwrap_or_default();
    let mut entries = entries::read(files, path, &blank_lines(text, body_at));
    // `blank_lines` shortened the front matter: shift the offsets back.
    let shift = body_at - text.get(..body_at).map_or(0, |before| before.matches('\n').count());
    for LocatedDecision { start, body, end, .. } in &mut entries.found {
        [start, body, end].into_iter().for_each(|at| *at += shift);
    }
    if (entries.found.is_empty() || entries.is_one) && !is_blank(body) && !text.contains(IMPORTED) {
        let mut decision = entries::whole(body, files.at(path, 1));
        let subject = [&matter.subject, &matter.title, &matter.topic].into_iter().find_map(Option::clone);
        let subject = subject.filter(|subject| !is_blank(subject));
        if let Some(subject) = subject.filter(|_| !body.trim_start().starts_with('#') || is_section(&decision.title)) {
            decision.title = subject;
        }
        let whole = LocatedDecision { decision, start: body_at, body: body_at, end: text.len() };
        entries = Entries { found: vec![whole], problems: Vec::new(), is_one: true };
    }
    complete(path, matter, &mut entries.found.iter_mut().map(|found| &mut found.decision).collect::<Vec<_>>());
    entries
}

/// Fills gaps from a note's front matter and file name.
fn complete(path: &str, matter: NoteMatter, decisions: &mut [&mut Decision]) {
    let date = matter.date.as_deref().and_then(date::date_in);
    let by = matter.by.or(matter.author).or(matter.owner).map(Several::text);
    let status = matter.status.as_deref().and_then(status::parse);
    for decision in decisions.iter_mut() {
        decision.date = decision.date.take().or_else(|| date.clone());
        decision.by = decision.by.take().or_else(|| by.clone());
        decision.status = decision.status.or(status);
    }
    let named = path.rsplit('/').next().and_then(date::date_in);
    // The date in the file name applies if there is one decision, perhaps twice.
    let first = decisions.first().map(|decision| decision.id.clone());
    if decisions.iter().all(|decision| Some(&decision.id) == first.as_ref()) {
        for decision in decisions.iter_mut() {
            decision.date = decision.date.take().or_else(|| named.clone());
        }
    }
}

/// Replaces the text before `at` by empty lines, to keep line numbers.
fn blank_lines(text: &str, at: usize) -> String {
    let (before, after) = text.split_at_checked(at).unwrap_or(("", text));
    let mut blanked = "\n".repeat(before.matches('\n').count());
    blanked.push_str(after);
    blanked
}

#[derive(Default, serde::Deserialize)]
struct NoteMatter {
    date: Option<String>,
    by: Option<Several>,
    author: Option<Several>,
    owner: Option<Several>,
    status: Option<String>,
    subject: Option<String>,
    title: Option<String>,
    topic: Option<String>,
}
