//! Says in words, and with sources, what speaks for an agent.

use super::index::Index;
use super::lines::Line;
use super::score::Ranking;
use crate::model::{Evidence, Slug, Sort, list};

/// Limits on one quoted word, and on the number of quoted words.
const WORD: usize = 40;
const WORDS: usize = 8;

pub(super) struct Explainer<'w, 't> {
    pub(super) index: &'w Index<'t>,
    pub(super) message: &'w str,
    pub(super) ranking: &'w Ranking<'w>,
}

#[derive(PartialEq)]
enum Why {
    Words,
    Area(usize),
    Kind { area: usize, is_asked: bool, is_alone: bool },
}

/// What speaks for an agent, in a line of the team's files: by the message's words, or in itself.
struct Reason<'w> {
    why: Why,
    /// What the line is called, and where it is.
    line: (&'static str, &'w str),
    weight: f64,
    words: Vec<&'w str>,
}

impl<'w> Explainer<'w, '_> {
    /// The strongest reasons for an agent. What is one reason for the reader is told once.
    pub(super) fn of(&self, agent: usize, most: usize) -> Vec<Evidence> {
        let mut reasons: Vec<Reason<'_>> = Vec::new();
        let mut add = |why: Why, line: usize, weight: f64, word: Option<&'w str>| {
            let line =
                self.index.lines.get(line).map_or(("role", ""), |it: &Line<'_>| (it.field.weights().0, &it.source));
            match reasons.iter_mut().find(|known| known.why == why && known.line == line) {
                Some(known) => {
                    known.weight += weight;
                    known.words.extend(word);
                }
                None => reasons.push(Reason { why, line, weight, words: word.into_iter().collect() }),
            }
        };
        for unit in &self.ranking.units {
            let Some(support) = unit.supports.iter().find(|support| support.agent == agent) else { continue };
            let word = &self.message[unit.range.clone()];
            let word = word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end]);
            let why = support.area.map_or(Why::Words, Why::Area);
            add(why, support.line, support.weight, Some(word).filter(|_| support.area.is_none()));
        }
        for point in self.ranking.points.iter().filter(|point| point.agent == agent) {
            let (area, is_asked, is_alone) = (point.area, point.is_asked, point.is_alone);
            add(Why::Kind { area, is_asked, is_alone }, point.line, point.weight, None);
        }
        reasons.retain(|reason| reason.weight >= 0.005);
        reasons.stable_sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.line.1.cmp(b.line.1)));
        reasons.truncate(most);
        reasons.iter().map(|reason| reason.told(&self.index.agents[agent].slug, self.index)).collect()
    }

    /// The reviewer named in the row that speaks most for an agent.
    pub(super) fn reviewer(&self, agent: usize) -> Option<Slug> {
        let mut rows = vec![0.0; self.index.team.rules.len()];
        for support in self.ranking.units.iter().flat_map(|unit| &*unit.supports).filter(|it| it.agent == agent) {
            let rule = self.index.lines.get(support.line).and_then(|line| line.rule);
            rule.into_iter().for_each(|row| rows[row] += support.weight);
        }
        let (row, weight) = rows.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1))?;
        let reviewer = self.index.team.rules[row].reviewer.as_ref().filter(|_| *weight > 0.0)?;
        self.index.team.startable_member(reviewer).map(|member| member.slug.clone())
    }
}

impl Reason<'_> {
    fn told(&self, agent: &Slug, index: &Index<'_>) -> Evidence {
        let (what, source) = self.line;
        let area = |area: usize| index.areas.list[area].name;
        let why = match self.why {
            Why::Words if self.words.len() == 1 => [what, ": `", self.words[0], "`"].concat(),
            Why::Words => [what, ": ", &list(self.words.iter().take(WORDS).map(|word| format!("`{word}`")))].concat(),
            Why::Area(it) => ["message and ", what, " are both about ", area(it)].concat(),
            Why::Kind { area: it, is_asked, is_alone } => {
                let verb = if is_asked { "asks for" } else { "is most about" };
                let only = if is_alone { ", which only this agent's role covers" } else { "" };
                ["the message ", verb, " ", area(it), only].concat()
            }
        };
        Evidence::new(agent, why, source, (self.weight * 100.0).round() / 100.0)
    }
}
