//! Ranks the agents for a message or a part of it, with one confidence for every plan, and says in words and with sources
//! what speaks for an agent.

use super::index::{Index, Support, Why};
use super::support::Unit;
use crate::model::{Evidence, Slug, Sort, list};

const HEAD: f64 = 2.0;
const ALONE: f64 = 1.2;
const SAID: f64 = 1.0;
/// Whoever implements is meant a little more often than others.
const CODER: f64 = 0.4;

/// A word that says this much says enough alone.
const SOLID: f64 = 1.0;
/// Differences of scores count up to this.
const MOST: f64 = 4.0;
/// What an agent without colleagues is compared with.
const NOBODY: f64 = -3.0;

/// Limits on one quoted word, and on the number of quoted words.
const WORD: usize = 40;
const WORDS: usize = 8;

/// Why, what the line is called and where it is, how much, and the words.
type Reason<'w> = (Why, (&'w str, &'w str), f64, Vec<&'w str>);

pub(super) struct Ranking<'u> {
    index: &'u Index<'u>,
    text: &'u str,
    pub(super) units: Vec<&'u Unit<'u>>,
    /// Kinds of work that speak for agents besides the words.
    pub(super) points: Vec<Support>,
    /// By agent: what words and points say.
    pub(super) evidence: Vec<f64>,
    pub(super) scores: Vec<f64>,
    pub(super) best: Option<usize>,
}

impl<'u> Ranking<'u> {
    /// Ranks for some units of a text and the areas that they ask for.
    pub(super) fn of(index: &'u Index<'u>, text: &'u str, units: Vec<&'u Unit<'u>>, asked: &[usize]) -> Self {
        let points = points(index, &units, asked);
        let mut evidence = vec![0.0; index.agents.len()];
        let supports = units.iter().flat_map(|unit| &*unit.supports).chain(&points);
        supports.for_each(|support| evidence[support.agent] += support.weight);
        let score = |(sum, is_coder): (&f64, &bool)| sum + if *is_coder { CODER } else { 0.0 };
        let scores: Vec<f64> = evidence.iter().zip(&index.is_coder).map(score).collect();
        let best = (0..scores.len()).rev().max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        Self { index, text, units, points, evidence, scores, best }
    }

    /// The agents, best first.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.scores.len()).collect();
        order.stable_sort_by(|a, b| self.scores[*b].total_cmp(&self.scores[*a]));
        order
    }

    /// The agent's part of all scores, as a softmax.
    pub(super) fn chance(&self, agent: usize) -> f64 {
        let sum: f64 = self.scores.iter().map(|score| (score - self.scores[agent]).exp()).sum();
        1.0 / sum
    }

    /// Whether the message says enough to tell agents apart.
    pub(super) fn is_solid(&self) -> bool {
        let mut supports = self.units.iter().flat_map(|unit| &*unit.supports);
        self.content() > 1 || supports.any(|support| support.weight >= SOLID)
    }

    /// How many words tell something of the work.
    fn content(&self) -> usize {
        self.units.iter().filter(|unit| !unit.token.is_denied).map(|unit| unit.telling).sum()
    }

    /// How likely the best agent is right, 0..1. Fitted on labelled messages of real teams; round numbers do as well.
    pub(super) fn confidence(&self) -> f64 {
        let Some(best) = self.best else { return 0.0 };
        let others = self.scores.iter().enumerate().filter(|(agent, _)| *agent != best);
        let next = others.map(|(_, score)| *score).max_by(f64::total_cmp).unwrap_or(NOBODY);
        let lead = (self.scores[best] - next).min(MOST);
        let points: f64 = self.points.iter().filter(|point| point.agent == best).map(|point| point.weight).sum();
        let content = self.content().min(20) as f64;
        let logit = 1.36 + 0.63 * lead + 0.27 * points - 0.73 * (1.0 + content).ln();
        1.0 / (1.0 + (-logit).exp())
    }

    /// The strongest reasons for an agent. What is one reason for the reader is told once.
    pub(super) fn reasons(&self, agent: usize, most: usize) -> Vec<Evidence> {
        let words =
            self.units.iter().flat_map(|unit| unit.supports.iter().map(|it| (it, &self.text[unit.range.clone()])));
        let all = words.chain(self.points.iter().map(|point| (point, "")));
        let mut reasons: Vec<Reason<'_>> = Vec::new();
        for (support, word) in all.filter(|(support, _)| support.agent == agent) {
            let line = self.index.lines.get(support.line);
            let line = line.map_or(("role", ""), |line| (line.field.weights().0, line.source.as_str()));
            let word = word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end]);
            match reasons.iter_mut().find(|(why, of, ..)| (*why, *of) == (support.why, line)) {
                Some((.., weight, words)) => {
                    *weight += support.weight;
                    words.push(word);
                }
                None => reasons.push((support.why, line, support.weight, vec![word])),
            }
        }
        reasons.retain(|(.., weight, _)| *weight >= 0.005);
        reasons.stable_sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.1.1.cmp(b.1.1)));
        let told = |(why, (what, source), weight, words): Reason<'_>| {
            let area = |area: usize| self.index.areas.list[area].name;
            let only = |is_alone| if is_alone { ", which only this agent's role covers" } else { "" };
            let why = match why {
                Why::Words => [what, ": ", &list(words.iter().take(WORDS).map(|word| format!("`{word}`")))].concat(),
                Why::Area(it) => ["message and ", what, " are both about ", area(it)].concat(),
                Why::Asked(it, is_alone) => ["the message asks for ", area(it), only(is_alone)].concat(),
                Why::Said(it) => ["the message is most about ", area(it), only(true)].concat(),
            };
            Evidence::new(&self.index.agents[agent].slug, why, source, (weight * 100.0).round() / 100.0)
        };
        reasons.into_iter().take(most).map(told).collect()
    }

    /// The reviewer named in the row that speaks most for an agent.
    pub(super) fn reviewer(&self, agent: usize) -> Option<Slug> {
        let mut rows = vec![0.0; self.index.team.rules.len()];
        for support in self.units.iter().flat_map(|unit| &*unit.supports).filter(|it| it.agent == agent) {
            let rule = self.index.lines.get(support.line).and_then(|line| line.rule);
            rule.into_iter().for_each(|row| rows[row] += support.weight);
        }
        let (row, weight) = rows.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1))?;
        let reviewer = self.index.team.rules[row].reviewer.as_ref().filter(|_| *weight > 0.0)?;
        self.index.team.startable_member(reviewer).map(|member| member.slug.clone())
    }
}

fn points(index: &Index<'_>, units: &[&Unit<'_>], asked: &[usize]) -> Vec<Support> {
    let mut points: Vec<Support> = Vec::new();
    // The kind of each agent's that is asked for most.
    for (area, share) in asked.iter().flat_map(|area| index.shares[*area].iter().map(move |share| (*area, share))) {
        let point = Support { weight: HEAD * share.weight, why: Why::Asked(area, false), ..*share };
        match points.iter_mut().find(|known| known.agent == point.agent) {
            Some(known) if known.weight < point.weight => *known = point,
            Some(_) => {}
            None => points.push(point),
        }
    }
    let alone = |area: usize, why: Why, weight: f64| {
        let (agent, line) = index.specialist(area)?;
        Some(Support { agent, line, weight, why })
    };
    points.extend(asked.iter().find_map(|area| alone(*area, Why::Asked(*area, true), ALONE)));
    let kinds = || units.iter().filter(|unit| !unit.token.is_denied).filter_map(|unit| unit.kind);
    let most = kinds().max_by_key(|kind| (kinds().filter(|other| other == kind).count(), usize::MAX - kind));
    points.extend(most.and_then(|area| alone(area, Why::Said(area), SAID)));
    points
}
