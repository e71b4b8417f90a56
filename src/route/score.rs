//! Ranks the agents for a message or a part of it, with one confidence for every plan.

use super::index::Index;
use super::support::Unit;
use crate::model::Sort;

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

/// A kind of work that speaks for an agent besides the words.
pub(super) struct Point {
    pub(super) agent: usize,
    pub(super) area: usize,
    /// The line that claims the area for the agent.
    pub(super) line: usize,
    pub(super) weight: f64,
    /// The message begins by asking for it; otherwise it speaks of it most.
    pub(super) is_asked: bool,
    /// Only this agent's role names it.
    pub(super) is_alone: bool,
}

pub(super) struct Ranking<'u> {
    pub(super) units: Vec<&'u Unit<'u>>,
    pub(super) points: Vec<Point>,
    /// By agent: what words and points say.
    pub(super) evidence: Vec<f64>,
    pub(super) scores: Vec<f64>,
    pub(super) best: Option<usize>,
}

impl<'u> Ranking<'u> {
    pub(super) fn of(index: &Index<'_>, units: Vec<&'u Unit<'u>>, asked: &[usize]) -> Self {
        let points = points(index, &units, asked);
        let mut evidence = vec![0.0; index.agents.len()];
        units.iter().flat_map(|unit| &*unit.supports).for_each(|support| evidence[support.agent] += support.weight);
        points.iter().for_each(|point| evidence[point.agent] += point.weight);
        let score = |(sum, is_coder): (&f64, &bool)| sum + if *is_coder { CODER } else { 0.0 };
        let scores: Vec<f64> = evidence.iter().zip(&index.is_coder).map(score).collect();
        let best = (0..scores.len()).rev().max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        Self { units, points, evidence, scores, best }
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
        let is_strong = |unit: &&Unit<'_>| unit.supports.iter().any(|support| support.weight >= SOLID);
        self.content() > 1 || self.units.iter().any(is_strong)
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
}

fn points(index: &Index<'_>, units: &[&Unit<'_>], asked: &[usize]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    // The kind of each agent's that is asked for most.
    for area in asked {
        for share in &index.shares[*area] {
            let (agent, line, weight) = (share.agent, share.line, HEAD * share.weight);
            let point = Point { agent, area: *area, line, weight, is_asked: true, is_alone: false };
            match points.iter_mut().find(|known| known.agent == agent) {
                Some(known) if known.weight < point.weight => *known = point,
                Some(_) => {}
                None => points.push(point),
            }
        }
    }
    let alone = |area: usize, is_asked: bool, weight: f64| {
        let (agent, line) = index.specialist(area)?;
        Some(Point { agent, area, line, weight, is_asked, is_alone: true })
    };
    points.extend(asked.iter().find_map(|area| alone(*area, true, ALONE)));
    let kinds = || units.iter().filter(|unit| !unit.token.is_denied).filter_map(|unit| unit.kind);
    let most = kinds().max_by_key(|kind| (kinds().filter(|other| other == kind).count(), usize::MAX - kind));
    points.extend(most.and_then(|area| alone(area, false, SAID)));
    points
}
