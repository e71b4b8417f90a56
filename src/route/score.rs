//! Ranks the agents for a message or a part of it, with one confidence for every plan.

use super::index::Index;
use super::support::Reading;

const HEAD: f64 = 2.0;
const ASKED: f64 = 1.2;
const SAID: f64 = 1.0;
const CODER: f64 = 0.4;

/// Differences of scores count up to this.
const MOST: f64 = 4.0;
/// What an agent without colleagues is compared with.
const NOBODY: f64 = -3.0;

/// Why an agent has points besides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// The message begins by asking for a kind of work that the agent does.
    Head(usize),
    /// Only the agent's role names that kind, or the kind that the message speaks of most.
    Asked(usize),
    Said(usize),
    /// It implements, and does not lead.
    Coder,
}

pub(super) struct Ranking {
    pub(super) reading: Reading,
    /// By agent.
    pub(super) scores: Vec<f64>,
    pub(super) points: Vec<(usize, Point, f64)>,
    /// The agents, best first.
    pub(super) order: Vec<usize>,
}

impl Ranking {
    pub(super) fn of(index: &Index<'_>, reading: Reading) -> Self {
        let mut scores = vec![0.0; index.agents.len()];
        for support in reading.supports.iter().flat_map(|(_, supports)| supports) {
            scores[support.agent] += support.weight;
        }
        let points = points(index, &reading);
        points.iter().for_each(|(agent, _, weight)| scores[*agent] += weight);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        Self { reading, scores, points, order }
    }

    pub(super) fn best(&self) -> Option<usize> {
        self.order.first().copied()
    }

    /// What the words alone say for an agent.
    pub(super) fn evidence(&self, agent: usize) -> f64 {
        let points = self.points.iter().filter(|(of, point, _)| *of == agent && *point == Point::Coder);
        self.scores[agent] - points.map(|(.., weight)| weight).sum::<f64>()
    }

    /// The agent's part of all scores, as a softmax.
    pub(super) fn chance(&self, agent: usize) -> f64 {
        let most = self.scores.iter().fold(0.0, |most: f64, score| most.max(*score));
        let sum: f64 = self.scores.iter().map(|score| (score - most).exp()).sum();
        (self.scores[agent] - most).exp() / sum
    }

    /// How likely the best agent is right, 0..1. Fitted on labelled messages of real teams; round numbers do as well.
    pub(super) fn confidence(&self) -> f64 {
        let Some(best) = self.best() else { return 0.0 };
        let lead_of = |scores: &[f64]| {
            let others = scores.iter().enumerate().filter(|(agent, _)| *agent != best);
            let next = others.map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
            (scores[best] - if next.is_finite() { next } else { NOBODY }).clamp(-MOST, MOST)
        };
        let of_best = |supports: &[super::index::Support]| {
            supports.iter().find(|support| support.agent == best).map_or(0.0, |support| support.weight)
        };
        let strongest = self.reading.supports.iter().map(|(_, supports)| supports);
        let strongest = strongest.max_by(|a, b| of_best(a).total_cmp(&of_best(b)));
        let mut without = self.scores.clone();
        strongest.into_iter().flatten().for_each(|support| without[support.agent] -= support.weight);
        let points: f64 = self
            .points
            .iter()
            .filter(|(agent, ..)| *agent == best)
            .map(|(_, point, weight)| match point {
                Point::Coder => 0.0,
                _ => *weight,
            })
            .sum();
        let content = self.reading.content().min(20) as f64;
        // The more colleagues, the likelier one of them is meant whom the words do not name.
        let crowd = self.scores.len().saturating_sub(8).min(6) as f64;
        let logit = 1.36 + 0.52 * lead_of(&self.scores) + 0.11 * lead_of(&without) + 0.27 * points
            - 0.73 * (1.0 + content).ln()
            - 0.15 * crowd;
        1.0 / (1.0 + (-logit).exp())
    }
}

fn points(index: &Index<'_>, reading: &Reading) -> Vec<(usize, Point, f64)> {
    let mut points = Vec::new();
    let only = |area: usize| match &index.roles[area][..] {
        [only] if index.is_special(area) => Some(*only),
        _ => None,
    };
    for agent in 0..index.agents.len() {
        let heads = reading.asked.iter().map(|(area, strength)| (*area, strength * index.shares[*area][agent].0));
        if let Some((area, amount)) = heads.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, amount)| *amount > 0.0) {
            points.push((agent, Point::Head(area), HEAD * amount));
        }
        if index.is_coder(agent) {
            points.push((agent, Point::Coder, CODER));
        }
    }
    let alone = reading
        .asked
        .iter()
        .filter(|(_, strength)| *strength == 1.0)
        .filter_map(|(area, _)| Some((*area, only(*area)?)));
    let mut seen = Vec::new();
    for (area, agent) in alone {
        if !seen.contains(&agent) {
            seen.push(agent);
            points.push((agent, Point::Asked(area), ASKED));
        }
    }
    if let Some((area, agent)) = reading.said.and_then(|area| Some((area, only(area)?))) {
        points.push((agent, Point::Said(area), SAID));
    }
    points
}
