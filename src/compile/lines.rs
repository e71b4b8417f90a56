//! Selects lines of a list that fit into a session: relevant lines first, shown in their original order.

use super::budget::tokens;
use super::receipt::{Input, InputKind, hash};
use super::topic::Topic;
use crate::model::Sort;

/// A list of candidate lines.
pub(super) struct CandidateLines {
    heading: &'static str,
    kind: InputKind,
    /// The reason given in receipts.
    reason: &'static str,
    lines: Vec<Line>,
}

struct Line {
    source: String,
    title: String,
    text: String,
    /// Relevance to the task.
    relevance: u32,
}

/// The selected lines.
pub(super) struct SelectedLines {
    pub(super) text: String,
    /// Limit in bytes.
    pub(super) limit: usize,
    candidates: CandidateLines,
    included: Vec<bool>,
}

impl CandidateLines {
    pub(super) fn new(heading: &'static str, kind: InputKind, reason: &'static str) -> Self {
        Self { heading, kind, reason, lines: Vec::new() }
    }

    /// Adds a line for each item. `read` returns source, title, other text on its subject, and the line itself.
    pub(super) fn extend<'a, T: 'a, S: ToString>(
        &mut self,
        topic: &Topic,
        items: &'a [T],
        read: impl Fn(&'a T) -> (S, String, String, String),
    ) {
        let read: Vec<_> = items.iter().map(read).collect();
        let hits: Vec<_> = read.iter().map(|(_, title, text, _)| topic.hits(title, text)).collect();
        let weights = topic.weights(&hits);
        self.lines.extend(read.into_iter().zip(hits).map(|((source, title, _, text), hits)| {
            let relevance = topic.relevance(hits, &weights);
            Line { source: source.to_string(), title, text, relevance }
        }));
    }

    /// Adds lines that are already ranked, best first.
    pub(super) fn in_order(&mut self, lines: impl Iterator<Item = (String, String, String)>) {
        self.lines.extend(lines.map(|(source, title, text)| Line { source, title, text, relevance: 0 }));
    }

    /// Bytes needed for all lines.
    pub(super) fn wanted(&self) -> usize {
        match self.lines.is_empty() {
            true => 0,
            false => self.heading.len() + self.lines.iter().map(|line| line.text.len()).sum::<usize>(),
        }
    }

    /// Selects lines that fit into this many bytes.
    pub(super) fn within(self, limit: usize) -> SelectedLines {
        let mut included = vec![self.wanted() <= limit; self.lines.len()];
        if self.wanted() > limit {
            let mut room = limit.saturating_sub(self.heading.len() + left_out(self.lines.len()).len());
            let mut best: Vec<(&Line, &mut bool)> = self.lines.iter().zip(&mut included).collect();
            best.stable_sort_by_key(|(line, _)| std::cmp::Reverse(line.relevance));
            for (line, included) in best {
                *included = line.text.len() <= room;
                room -= if *included { line.text.len() } else { 0 };
            }
        }
        let chosen = self.lines.iter().zip(&included).filter(|(_, included)| **included);
        let mut text: String = chosen.map(|(line, _)| line.text.as_str()).collect();
        if !text.is_empty() {
            text.insert_str(0, self.heading);
            let more = included.iter().filter(|included| !**included).count();
            text.push_str(&if more > 0 { left_out(more) } else { String::new() });
        }
        SelectedLines { text, limit, candidates: self, included }
    }
}

impl SelectedLines {
    pub(super) fn receipt(&self, inputs: &mut Vec<Input>) {
        let (included_lines, omitted): (Vec<_>, Vec<_>) =
            self.candidates.lines.iter().zip(&self.included).partition(|(_, included)| **included);
        for (line, included) in included_lines.into_iter().chain(omitted) {
            let why = if *included {
                self.candidates.reason.to_owned()
            } else {
                format!("no room left; {}", self.candidates.reason)
            };
            inputs.push(Input {
                source: line.source.clone(),
                kind: self.candidates.kind,
                title: line.title.clone(),
                hash: hash(&[&line.text]),
                tokens: tokens(&line.text),
                included: *included,
                why,
            });
        }
    }
}

fn left_out(more: usize) -> String {
    format!("- and {more} more\n")
}
