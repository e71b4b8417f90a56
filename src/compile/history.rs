//! Selects what an agent is told of its own past, from its history file and the ledger's learnings; and selects notes
//! for the whole team.
//!
//! A file is split into notes: short sections, or the bullets and paragraphs of long ones. Sections of project context
//! come first, then relevant notes, then newer ones, as long as they fit.

use super::Learning;
use super::budget::tokens;
use super::choice::{Selected, Selection, choose, included};
use super::notes::{Note, notes};
use super::receipt::{Input, InputKind, hash};
use super::text::{cite_source, head, one_line};
use super::topic::{Hits, Topic};
use crate::model::{ContextItem, Sort, Source, TeamNote, plural, quote};
use crate::parse::learned;

/// Most characters of a note in a prompt; the file has the rest.
const LENGTH: usize = 400;
/// If not everything fits, project context may take this fraction of the space.
const CONTEXT_SHARE: usize = 2;

/// Notes of an agent or of the team, ranked for a task.
pub(super) struct RankedNotes<'a> {
    category: &'static Category,
    /// Best first.
    candidates: Vec<Candidate<'a>>,
}

/// The kind of notes.
struct Category {
    heading: &'static str,
    kind: InputKind,
    /// Why some tiers get none of them.
    none: &'static str,
}

const OWN: Category = Category {
    heading: "\n## What you learned before\n\nQuoted from your own history; it may be out of date.\n",
    kind: InputKind::History,
    none: "this tier gets no history",
};

const OF_TEAM: Category = Category {
    heading: "\n## What the team is on and has learned\n\nQuoted from notes for all of the team; they may be out of date.\n",
    kind: InputKind::Note,
    none: "this tier gets no notes",
};

struct Candidate<'a> {
    origin: Origin<'a>,
    /// Its index in the original order.
    index: usize,
    text: String,
    /// Tokens including a citation. Consecutive notes may share one, which leaves a little space unused.
    size: usize,
    full_text: &'a str,
    is_project_context: bool,
    date: &'a str,
    relevance: u32,
    shared: Vec<&'a str>,
}

enum Origin<'a> {
    /// The heading and the location.
    File(String, Source),
    Ledger(&'a Learning),
}

impl Origin<'_> {
    fn citation(&self) -> String {
        match self {
            Self::File(heading, source) if heading.is_empty() => format!("\nFrom {}:\n", cite_source(source)),
            Self::File(heading, source) => format!("\nFrom {}, “{}”:\n", cite_source(source), one_line(heading)),
            Self::Ledger(learning) => {
                format!("\nFrom the ledger, `{}`, {}:\n", one_line(&learning.entry), one_line(&learning.date))
            }
        }
    }
}

impl<'a> RankedNotes<'a> {
    /// `file` is the path of the history.
    pub(super) fn new(
        history: &'a str,
        file: &str,
        learnings: impl Iterator<Item = &'a Learning>,
        topic: &'a Topic,
    ) -> Self {
        let candidates =
            notes(history).into_iter().filter(|note| has_content(note.text)).map(|note| Candidate::of_note(note, file));
        // Learnings that are already in the file are not repeated.
        let is_held = |learning: &&Learning| {
            learned::holds(history, &learning.date, &learning.text)
                || (learning.is_elsewhere && learned::holds_edited(history, &learning.date, &learning.text))
        };
        let others = learnings.filter(|learning| !is_held(learning));
        Self::ranked(&OWN, candidates.chain(others.map(Candidate::of_learning)).collect(), topic)
    }

    /// The notes for the whole team.
    pub(super) fn of_team(files: &'a [TeamNote], topic: &'a Topic) -> Self {
        let candidates = files.iter().flat_map(|file| {
            let all = notes(&file.text).into_iter().filter(|note| has_content(note.text));
            all.map(|note| Candidate {
                is_project_context: file.is_current || note.is_project_context,
                ..Candidate::of_note(note, &file.path)
            })
        });
        Self::ranked(&OF_TEAM, candidates.collect(), topic)
    }

    fn ranked(category: &'static Category, mut candidates: Vec<Candidate<'a>>, topic: &'a Topic) -> Self {
        let hits: Vec<Hits> = candidates
            .iter()
            .map(|candidate| match &candidate.origin {
                Origin::File(heading, _) => hits_of(heading, candidate.full_text, topic),
                Origin::Ledger(learning) => hits_of("", &learning.text, topic),
            })
            .collect();
        let weights = topic.weights(&hits);
        for (index, (candidate, hits)) in candidates.iter_mut().zip(&hits).enumerate() {
            candidate.index = index;
            candidate.relevance = topic.relevance(*hits, &weights);
            candidate.shared = topic.shared(*hits);
        }
        candidates.stable_sort_by(|a, b| {
            let project_context = b.is_project_context.cmp(&a.is_project_context);
            let newer = || (b.date, b.index).cmp(&(a.date, a.index));
            project_context.then_with(|| match a.is_project_context {
                true => a.index.cmp(&b.index),
                false => b.relevance.cmp(&a.relevance).then_with(newer),
            })
        });
        Self { category, candidates }
    }

    /// Tokens needed for all notes.
    pub(super) fn wanted(&self) -> usize {
        if self.candidates.is_empty() { 0 } else { self.frame() + self.all() }
    }

    fn all(&self) -> usize {
        self.candidates.iter().map(|candidate| candidate.size).sum()
    }

    fn frame(&self) -> usize {
        tokens(self.category.heading) + tokens(&left_out(self.candidates.len()))
    }

    /// Selects notes that fit into this many tokens.
    pub(super) fn select(&self, room: usize) -> Selected {
        if room < self.frame() || self.candidates.is_empty() {
            return Selected::nothing(self.candidates.len());
        }
        let room = room - self.frame();
        let (project_context, others) =
            self.candidates.split_at(self.candidates.partition_point(|candidate| candidate.is_project_context));
        let context_room = if self.all() <= room { room } else { room / CONTEXT_SHARE };
        let mut selections = choose(project_context.iter().map(|candidate| Some(candidate.size)), context_room);
        let used: usize = project_context
            .iter()
            .zip(&selections)
            .map(|(candidate, selection)| used_size(candidate, *selection))
            .sum();
        selections.extend(choose(others.iter().map(|candidate| Some(candidate.size)), room - used));
        let chosen = self.chosen(&selections);
        let item = |candidate: &&Candidate<'_>| {
            ContextItem::new(self.category.heading, candidate.origin.citation() + &quote(&candidate.text))
        };
        Selected { text: self.render(&chosen), items: chosen.iter().map(item).collect(), selections }
    }

    /// The selected notes in their original order.
    fn chosen(&self, selections: &[Selection]) -> Vec<&Candidate<'a>> {
        let mut chosen: Vec<&Candidate<'a>> = included(&self.candidates, selections).collect();
        chosen.stable_sort_by_key(|candidate| candidate.index);
        chosen
    }

    /// Renders notes, grouped by heading.
    fn render(&self, chosen: &[&Candidate<'_>]) -> String {
        let mut text = self.category.heading.to_owned();
        let mut heading = None;
        for candidate in chosen {
            let same = matches!((&candidate.origin, heading), (Origin::File(this, _), Some(last)) if this == last);
            if !same {
                text.push_str(&candidate.origin.citation());
            }
            text.push_str(&quote(&candidate.text));
            heading = match &candidate.origin {
                Origin::File(heading, _) => Some(heading),
                Origin::Ledger(_) => None,
            };
        }
        if let Some(more) = self.candidates.len().checked_sub(chosen.len()).filter(|more| *more > 0) {
            text.push_str(&left_out(more));
        }
        text
    }

    pub(super) fn receipt(&self, selected: &Selected, room: usize, inputs: &mut Vec<Input>) {
        for (candidate, selection) in selected.included_first(&self.candidates) {
            inputs.push(candidate.input(self.category, selection, room));
        }
    }
}

/// The first line of a note counts as a title.
fn hits_of(heading: &str, text: &str, topic: &Topic) -> Hits {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    topic.hits(&format!("{heading} {first}"), rest)
}

fn used_size(candidate: &Candidate<'_>, selection: Selection) -> usize {
    if selection == Selection::Included { candidate.size } else { 0 }
}

impl<'a> Candidate<'a> {
    fn new(origin: Origin<'a>, full_text: &'a str, date: &'a str) -> Self {
        let text = head(full_text.trim(), LENGTH);
        let size = tokens(&origin.citation()) + tokens(&quote(&text));
        Self {
            origin,
            text,
            size,
            full_text,
            date,
            is_project_context: false,
            index: 0,
            relevance: 0,
            shared: Vec::new(),
        }
    }

    fn of_note(note: Note<'a>, file: &str) -> Self {
        let origin = Origin::File(note.heading, Source::new(file, note.line));
        Self { is_project_context: note.is_project_context, ..Self::new(origin, note.text, note.date) }
    }

    fn of_learning(learning: &'a Learning) -> Self {
        Self::new(Origin::Ledger(learning), &learning.text, &learning.date)
    }

    fn input(&self, category: &Category, selection: Selection, room: usize) -> Input {
        let (source, kind, title, full_text) = match &self.origin {
            Origin::File(heading, source) => (source.to_string(), category.kind, heading.clone(), &self.text),
            Origin::Ledger(learning) => {
                (format!("ledger:{}", learning.entry), InputKind::Learning, String::new(), &learning.text)
            }
        };
        Input {
            source,
            kind,
            title,
            hash: hash(&[full_text]),
            tokens: self.size,
            included: selection == Selection::Included,
            why: self.why(category, selection, room),
        }
    }

    fn why(&self, category: &Category, selection: Selection, room: usize) -> String {
        if room == 0 {
            return category.none.to_owned();
        }
        let reason = match (self.is_project_context, self.relevance) {
            (true, _) => "project context".to_owned(),
            (false, 0) => "by its age".to_owned(),
            (false, relevance) => format!("about the task: {} ({relevance})", self.shared.join(", ")),
        };
        match selection {
            Selection::Included => reason,
            Selection::NotConsidered | Selection::NoRoom => format!("no room left; {reason}"),
        }
    }
}

/// Whether a note contains more than comments of a template.
fn has_content(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        if !before.trim().is_empty() {
            return true;
        }
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    !rest.trim().is_empty()
}

fn left_out(more: usize) -> String {
    format!("\n{} not shown here.\n", plural(more, "more note"))
}
