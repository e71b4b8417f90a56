//! Says in words, and with sources, what speaks for an agent.

use std::ops::Range;

use super::index::{Index, Reason};
use super::lines::Field;
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

impl Explainer<'_, '_> {
    /// The strongest reasons for an agent.
    pub(super) fn of(&self, agent: usize, most: usize) -> Vec<Evidence> {
        let mut reasons: Vec<(Reason, f64, Vec<&str>)> = Vec::new();
        for unit in &self.ranking.units {
            let Some(support) = unit.supports.iter().find(|support| support.agent == agent) else { continue };
            match reasons.iter_mut().find(|(reason, ..)| self.is_same(*reason, support.reason)) {
                Some((_, weight, words)) => {
                    *weight += support.weight;
                    words.push(self.word(&unit.range));
                }
                None => reasons.push((support.reason, support.weight, vec![self.word(&unit.range)])),
            }
        }
        let mut evidence: Vec<Evidence> =
            reasons.into_iter().map(|(reason, weight, words)| self.reason(agent, reason, weight, words)).collect();
        evidence.extend(self.points(agent));
        evidence.retain(|it| it.weight >= 0.01);
        evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.source.cmp(&b.source)));
        evidence.truncate(most);
        evidence
    }

    /// The reviewer named in the row that speaks most for an agent.
    pub(super) fn reviewer(&self, agent: usize) -> Option<Slug> {
        let mut rows = vec![0.0; self.index.team.rules.len()];
        for support in self.ranking.units.iter().flat_map(|unit| &unit.supports).filter(|it| it.agent == agent) {
            let rule = self.index.lines.get(self.line(agent, support.reason)).and_then(|line| line.rule);
            rule.into_iter().for_each(|(row, _)| rows[row] += support.weight);
        }
        let spoken = rows.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        let (row, _) = spoken.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
        let reviewer = self.index.team.rules[row].reviewer.as_ref()?;
        self.index.team.startable_member(reviewer).map(|member| member.slug.clone())
    }

    /// The line behind a reason.
    fn line(&self, agent: usize, reason: Reason) -> usize {
        match reason {
            Reason::Line(line) => line,
            Reason::Area(area) => self.index.share(area, agent).map_or(usize::MAX, |share| share.line),
        }
    }

    /// Whether two reasons are one for the reader: the same area, or lines of one source.
    fn is_same(&self, one: Reason, other: Reason) -> bool {
        match (one, other) {
            (Reason::Line(one), Reason::Line(other)) => {
                let (one, other) = (&self.index.lines[one], &self.index.lines[other]);
                one.source == other.source && one.field == other.field
            }
            _ => one == other,
        }
    }

    fn reason(&self, agent: usize, reason: Reason, weight: f64, mut words: Vec<&str>) -> Evidence {
        words.truncate(WORDS);
        let line = self.line(agent, reason);
        let what = self.index.lines.get(line).map_or("role", |line| line.field.what());
        let why = match reason {
            Reason::Line(_) => format!("{what}: {}", list(words.iter().map(|word| format!("`{word}`")))),
            Reason::Area(area) => format!("message and {what} are both about {}", self.index.areas.list[area].name),
        };
        self.evidence(agent, why, line, weight)
    }

    fn points(&self, agent: usize) -> Vec<Evidence> {
        let mut shown: Vec<(usize, bool, f64, bool)> = Vec::new();
        for point in self.ranking.points.iter().filter(|point| point.agent == agent) {
            match shown.iter_mut().find(|(area, asked, ..)| (*area, *asked) == (point.area, point.is_asked)) {
                Some((.., weight, alone)) => (*weight, *alone) = (*weight + point.weight, *alone || point.is_alone),
                None => shown.push((point.area, point.is_asked, point.weight, point.is_alone)),
            }
        }
        let of_role = |line: &super::lines::Line| line.agent == agent && line.field == Field::Role;
        let role = self.index.lines.iter().position(of_role).unwrap_or(usize::MAX);
        let evidence = shown.into_iter().map(|(area, is_asked, weight, is_alone)| {
            let verb = if is_asked { "asks for" } else { "is most about" };
            let only = if is_alone { ", which only this agent's role covers" } else { "" };
            let why = format!("the message {verb} {}{only}", self.index.areas.list[area].name);
            self.evidence(agent, why, if is_alone { role } else { self.line(agent, Reason::Area(area)) }, weight)
        });
        evidence.collect()
    }

    fn evidence(&self, agent: usize, why: String, line: usize, weight: f64) -> Evidence {
        let source = self.index.lines.get(line).map(|line| line.source.clone());
        let weight = (weight * 100.0).round() / 100.0;
        Evidence::new(&self.index.agents[agent].slug, why, source.unwrap_or_default(), weight)
    }

    fn word(&self, range: &Range<usize>) -> &str {
        let word = self.message.get(range.clone()).unwrap_or_default();
        word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end])
    }
}
