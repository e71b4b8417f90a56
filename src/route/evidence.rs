//! Says in words, and with sources, what speaks for an agent.

use super::index::{Index, Reason};
use super::lines::Field;
use super::score::{Point, Ranking};
use crate::model::{Evidence, Slug, list};

/// Limits on one quoted word, and on the number of quoted words.
const WORD: usize = 40;
const WORDS: usize = 8;

pub(super) struct Explainer<'w, 't> {
    pub(super) index: &'w Index<'t>,
    pub(super) message: &'w str,
    pub(super) ranking: &'w Ranking,
}

impl Explainer<'_, '_> {
    /// The strongest reasons for an agent.
    pub(super) fn of(&self, agent: usize, most: usize) -> Vec<Evidence> {
        let mut reasons: Vec<(Reason, f64, Vec<&str>)> = Vec::new();
        for (units, supports) in &self.ranking.reading.supports {
            let Some(support) = supports.iter().find(|support| support.agent == agent) else { continue };
            let of_units = self.ranking.reading.units[units.clone()].iter().map(|unit| self.word(&unit.range));
            match reasons.iter_mut().find(|(reason, ..)| self.is_same(*reason, support.reason)) {
                Some((_, weight, words)) => {
                    *weight += support.weight;
                    words.extend(of_units);
                }
                None => reasons.push((support.reason, support.weight, of_units.collect())),
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
        let mut rows: Vec<(usize, f64)> = Vec::new();
        for support in self.ranking.reading.supports.iter().flat_map(|(_, supports)| supports) {
            let rule = self.index.lines.get(self.line(agent, support.reason)).and_then(|line| line.rule);
            let Some((row, _)) = rule.filter(|_| support.agent == agent) else { continue };
            match rows.iter_mut().find(|(known, _)| *known == row) {
                Some((_, weight)) => *weight += support.weight,
                None => rows.push((row, support.weight)),
            }
        }
        let (row, _) = rows.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        let reviewer = self.index.team.rules.get(row)?.reviewer.as_ref()?;
        self.index.team.startable_member(reviewer).map(|member| member.slug.clone())
    }

    /// The line behind a reason.
    fn line(&self, agent: usize, reason: Reason) -> usize {
        match reason {
            Reason::Line(line) => line,
            Reason::Area(area) => self.index.shares[area][agent].1,
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
        words.dedup();
        words.truncate(WORDS);
        let line = self.index.lines.get(self.line(agent, reason));
        let what = line.map_or("role", |line| line.field.what());
        let why = match reason {
            Reason::Line(_) => format!("{what}: {}", list(words.iter().map(|word| format!("`{word}`")))),
            Reason::Area(area) => {
                format!("message and {what} are both about {}", self.index.areas.list[area].name)
            }
        };
        self.evidence(agent, why, line.map(|line| line.source.clone()), weight)
    }

    fn points(&self, agent: usize) -> Vec<Evidence> {
        let mut evidence: Vec<(usize, &str, f64, bool)> = Vec::new();
        for (_, point, weight) in self.ranking.points.iter().filter(|(of, ..)| *of == agent) {
            let (area, verb, is_alone) = match *point {
                Point::Head(area) => (area, "asks for", false),
                Point::Asked(area) => (area, "asks for", true),
                Point::Said(area) => (area, "is most about", true),
                Point::Coder => continue,
            };
            match evidence.iter_mut().find(|(of, known, ..)| *of == area && *known == verb) {
                Some((.., known, alone)) => (*known, *alone) = (*known + weight, *alone || is_alone),
                None => evidence.push((area, verb, *weight, is_alone)),
            }
        }
        let of_role = |line: &&super::lines::Line| line.agent == agent && line.field == Field::Role;
        let role = self.index.lines.iter().find(of_role).map(|line| line.source.clone());
        let evidence = evidence.into_iter().map(|(area, verb, weight, is_alone)| {
            let area_name = self.index.areas.list[area].name;
            let (why, source) = match is_alone {
                true => (format!("the message {verb} {area_name}, which only this agent's role covers"), role.clone()),
                false => {
                    let line = self.index.lines.get(self.index.shares[area][agent].1);
                    (format!("the message {verb} {area_name}"), line.map(|line| line.source.clone()))
                }
            };
            self.evidence(agent, why, source, weight)
        });
        evidence.collect()
    }

    fn evidence(&self, agent: usize, why: String, source: Option<String>, weight: f64) -> Evidence {
        let weight = (weight * 100.0).round() / 100.0;
        Evidence::new(&self.index.agents[agent].slug, why, source.unwrap_or_default(), weight)
    }

    fn word(&self, range: &std::ops::Range<usize>) -> &str {
        let word = self.message.get(range.clone()).unwrap_or_default();
        word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end])
    }
}
