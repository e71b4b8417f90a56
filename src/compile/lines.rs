//! Lists of which a session is told as much as there is room for: what is about the task first, shown in its own order.

use super::budget::tokens;
use super::receipt::{Input, InputKind, hash};
use super::topic::Topic;

/// What a list might tell.
pub(super) struct Offer {
    heading: &'static str,
    kind: InputKind,
    /// Why a line is told.
    merit: &'static str,
    lines: Vec<Line>,
}

struct Line {
    source: String,
    title: String,
    text: String,
    /// To the task.
    relevance: u32,
}

/// What it does tell.
pub(super) struct Lines {
    pub(super) text: String,
    /// In bytes.
    pub(super) limit: usize,
    offer: Offer,
    is_in: Vec<bool>,
}

impl Offer {
    pub(super) fn new(heading: &'static str, kind: InputKind, merit: &'static str) -> Self {
        Self { heading, kind, merit, lines: Vec::new() }
    }

    /// Adds a line for each item: where it is from, its title, what else it is about, and the line.
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

    /// Adds lines of which the first is the best.
    pub(super) fn in_order(&mut self, lines: impl Iterator<Item = (String, String, String)>) {
        self.lines.extend(lines.map(|(source, title, text)| Line { source, title, text, relevance: 0 }));
    }

    /// What all of them take.
    pub(super) fn wanted(&self) -> usize {
        match self.lines.is_empty() {
            true => 0,
            false => self.heading.len() + self.lines.iter().map(|line| line.text.len()).sum::<usize>(),
        }
    }

    /// As many as fit into so many bytes.
    pub(super) fn within(self, limit: usize) -> Lines {
        let mut is_in = vec![self.wanted() <= limit; self.lines.len()];
        if self.wanted() > limit {
            let mut room = limit.saturating_sub(self.heading.len() + left_out(self.lines.len()).len());
            let mut best: Vec<(&Line, &mut bool)> = self.lines.iter().zip(&mut is_in).collect();
            best.sort_by_key(|(line, _)| std::cmp::Reverse(line.relevance));
            for (line, is_in) in best {
                *is_in = line.text.len() <= room;
                room -= if *is_in { line.text.len() } else { 0 };
            }
        }
        let chosen = self.lines.iter().zip(&is_in).filter(|(_, is_in)| **is_in);
        let mut text: String = chosen.map(|(line, _)| line.text.as_str()).collect();
        if !text.is_empty() {
            text.insert_str(0, self.heading);
            let more = is_in.iter().filter(|is_in| !**is_in).count();
            text.push_str(&if more > 0 { left_out(more) } else { String::new() });
        }
        Lines { text, limit, offer: self, is_in }
    }
}

impl Lines {
    pub(super) fn receipt(&self, inputs: &mut Vec<Input>) {
        let (ins, outs): (Vec<_>, Vec<_>) = self.offer.lines.iter().zip(&self.is_in).partition(|(_, is_in)| **is_in);
        for (line, is_in) in ins.into_iter().chain(outs) {
            let why = if *is_in { self.offer.merit.to_owned() } else { format!("no room left; {}", self.offer.merit) };
            inputs.push(Input {
                source: line.source.clone(),
                kind: self.offer.kind,
                title: line.title.clone(),
                hash: hash(&[&line.text]),
                tokens: tokens(&line.text),
                included: *is_in,
                why,
            });
        }
    }
}

fn left_out(more: usize) -> String {
    format!("- and {more} more\n")
}
