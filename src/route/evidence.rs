//! Says in words, and with sources, what speaks for an agent.

use super::index::{Index, Reason};
use super::lines::{Field, Line};
use super::score::Ranking;
use crate::model::{Evidence, Slug, list};

/// Limits on one quoted word, and on the number of quoted words.
const WORD: usize = 40;
const WORDS: usize = 8;

pub(super) struct Explainer<'w, 't> {
    pub(super) index: &'w Index<'t>,
    pub(super) message: &'w str,
    pub(super) ranking: &'w Ranking<'w>,
}

/// What speaks for an agent, in a line of the team's files: by the message's words, or in itself.
struct Speaks<'w> {
    why: String,
    line: Option<&'w Line>,
    weight: f64,
    words: Vec<&'w str>,
}

impl Explainer<'_, '_> {
    /// The strongest reasons for an agent. What is one reason for the reader is told once.
    pub(super) fn of(&self, agent: usize, most: usize) -> Vec<Evidence> {
        let mut reasons: Vec<Speaks<'_>> = Vec::new();
        for one in self.of_words(agent).chain(self.of_points(agent)) {
            let source = |line: Option<&Line>| line.map(|line| line.source.clone());
            let is_same = |known: &&mut Speaks<'_>| known.why == one.why && source(known.line) == source(one.line);
            match reasons.iter_mut().find(is_same) {
                Some(known) => {
                    known.weight += one.weight;
                    known.words.extend(one.words);
                }
                None => reasons.push(one),
            }
        }
        let slug = &self.index.agents[agent].slug;
        let mut evidence: Vec<Evidence> = reasons
            .into_iter()
            .map(|Speaks { why, line, weight, words }| {
                let words = words.iter().take(WORDS).map(|word| format!("`{word}`"));
                let why = if words.len() > 0 { format!("{why}: {}", list(words)) } else { why };
                let source = line.map_or("", |line| &line.source);
                Evidence::new(slug, why, source, (weight * 100.0).round() / 100.0)
            })
            .filter(|evidence| evidence.weight > 0.0)
            .collect();
        evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.source.cmp(&b.source)));
        evidence.truncate(most);
        evidence
    }

    /// The reviewer named in the row that speaks most for an agent.
    pub(super) fn reviewer(&self, agent: usize) -> Option<Slug> {
        let mut rows = vec![0.0; self.index.team.rules.len()];
        for support in self.ranking.units.iter().flat_map(|unit| &unit.supports).filter(|it| it.agent == agent) {
            let rule = self.index.line(agent, support.reason).and_then(|line| line.rule);
            rule.into_iter().for_each(|row| rows[row] += support.weight);
        }
        let (row, _) =
            rows.iter().enumerate().filter(|(_, weight)| **weight > 0.0).rev().max_by(|a, b| a.1.total_cmp(b.1))?;
        let reviewer = self.index.team.rules[row].reviewer.as_ref()?;
        self.index.team.startable_member(reviewer).map(|member| member.slug.clone())
    }

    fn of_words(&self, agent: usize) -> impl Iterator<Item = Speaks<'_>> {
        self.ranking.units.iter().filter_map(move |unit| {
            let support = unit.supports.iter().find(|support| support.agent == agent)?;
            let line = self.index.line(agent, support.reason);
            let what = line.map_or("role", |line| line.field.what());
            let word = self.message.get(unit.range.clone()).unwrap_or_default();
            let word = word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end]);
            let (why, words) = match support.reason {
                Reason::Line(_) => (what.to_owned(), vec![word]),
                Reason::Area(area) => (format!("message and {what} are both about {}", self.area(area)), Vec::new()),
            };
            Some(Speaks { why, line, weight: support.weight, words })
        })
    }

    fn of_points(&self, agent: usize) -> impl Iterator<Item = Speaks<'_>> {
        self.ranking.points.iter().filter(move |point| point.agent == agent).map(move |point| {
            let verb = if point.is_asked { "asks for" } else { "is most about" };
            let only = if point.is_alone { ", which only this agent's role covers" } else { "" };
            let why = format!("the message {verb} {}{only}", self.area(point.area));
            let role = || self.index.lines.iter().find(|line| line.agent == agent && line.field == Field::Role);
            let line = if point.is_alone { role() } else { self.index.line(agent, Reason::Area(point.area)) };
            Speaks { why, line, weight: point.weight, words: Vec::new() }
        })
    }

    fn area(&self, area: usize) -> &'static str {
        self.index.areas.list[area].name
    }
}
