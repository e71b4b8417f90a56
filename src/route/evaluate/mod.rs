//! Measures the router on labelled cases: figures, and mistakes grouped by cause.

mod cases;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub(crate) use self::cases::{Case, CaseKind, cases, strangers};
use crate::model::{Evidence, Plan, PlanKind, Slug};

/// Counts. A rate is `None` if there are no cases for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) single: usize,
    /// Single cases whose plan has an agent.
    pub(crate) answered: usize,
    /// Answered cases whose first agent is accepted.
    pub(crate) right: usize,
    pub(crate) multi: usize,
    /// Sum over the multi cases of the share of accepted agents in the plan.
    pub(crate) recalled: f64,
    pub(crate) ambiguous: usize,
    pub(crate) abstained: usize,
    pub(crate) direct: usize,
    pub(crate) seen: usize,
}

impl Figures {
    pub(crate) fn accuracy(&self) -> Option<f64> {
        share(self.right as f64, self.single)
    }

    pub(crate) fn coverage(&self) -> Option<f64> {
        share(self.answered as f64, self.single)
    }

    pub(crate) fn precision(&self) -> Option<f64> {
        share(self.right as f64, self.answered)
    }

    pub(crate) fn multi_recall(&self) -> Option<f64> {
        share(self.recalled, self.multi)
    }

    pub(crate) fn abstain_rate(&self) -> Option<f64> {
        share(self.abstained as f64, self.ambiguous)
    }

    pub(crate) fn direct_rate(&self) -> Option<f64> {
        share(self.seen as f64, self.direct)
    }

    fn count(&mut self, case: &Case, plan: &Plan) {
        let agents = given(plan);
        match case.kind {
            CaseKind::Single => {
                self.single += 1;
                self.answered += usize::from(!agents.is_empty());
                self.right += usize::from(agents.first().is_some_and(|agent| case.accepted().contains(agent)));
            }
            CaseKind::Multi => {
                let accepted = case.accepted();
                let found = accepted.iter().filter(|agent| agents.contains(agent)).count();
                self.multi += 1;
                self.recalled += share(found as f64, accepted.len()).unwrap_or(0.0);
            }
            CaseKind::Ambiguous => {
                self.ambiguous += 1;
                self.abstained += usize::from(plan.kind == PlanKind::Abstain);
            }
            CaseKind::Direct => {
                self.direct += 1;
                self.seen += usize::from(plan.kind == PlanKind::Direct);
            }
        }
    }
}

fn share(part: f64, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}

/// The agents a plan gives the work to.
fn given(plan: &Plan) -> &[Slug] {
    if plan.kind == PlanKind::Agents { &plan.agents } else { &[] }
}

/// Coverage and precision on single cases if the router answered from this confidence on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) confidence: f64,
    pub(crate) coverage: f64,
    pub(crate) precision: f64,
}

/// The kind of mistake in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mistake {
    WrongAgent,
    /// The plan lacks some of the needed agents.
    Incomplete,
    /// The router abstained, but the label names an agent.
    NotAnswered,
    /// The router answered an ambiguous case.
    NotAbstained,
    TakenForDirect,
    NotDirect,
}

impl Mistake {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::WrongAgent => "the wrong agent",
            Self::Incomplete => "some agents are missing",
            Self::NotAnswered => "abstained, and need not have",
            Self::NotAbstained => "answered, and should have abstained",
            Self::TakenForDirect => "taken for a message that needs no agent",
            Self::NotDirect => "needs no agent, and was not seen to",
        }
    }

    fn of(case: &Case, plan: &Plan) -> Option<Self> {
        let (accepted, agents) = (case.accepted(), given(plan));
        match (case.kind, plan.kind) {
            (CaseKind::Direct, PlanKind::Direct) | (CaseKind::Ambiguous, PlanKind::Abstain) => None,
            (CaseKind::Direct, _) => Some(Self::NotDirect),
            (_, PlanKind::Direct) => Some(Self::TakenForDirect),
            (CaseKind::Ambiguous, PlanKind::Agents) => Some(Self::NotAbstained),
            (CaseKind::Single | CaseKind::Multi, _) if agents.is_empty() => Some(Self::NotAnswered),
            (CaseKind::Single, _) => {
                (!agents.first().is_some_and(|agent| accepted.contains(agent))).then_some(Self::WrongAgent)
            }
            (CaseKind::Multi, _) => (!accepted.iter().all(|agent| agents.contains(agent))).then_some(Self::Incomplete),
        }
    }
}

/// Mistakes that have the same cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Group {
    pub(crate) mistake: Mistake,
    /// The strongest evidence for a wrong agent, if there is any.
    pub(crate) misled_by: Option<Evidence>,
    /// Lines in the file of cases.
    pub(crate) lines: Vec<usize>,
}

/// The result for one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Prediction {
    pub(crate) line: usize,
    pub(crate) message: String,
    /// The label.
    pub(crate) kind: CaseKind,
    pub(crate) accept: BTreeSet<Slug>,
    pub(crate) mistake: Option<Mistake>,
    pub(crate) plan: Plan,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evaluation {
    pub(crate) figures: Figures,
    pub(crate) curve: Vec<Point>,
    /// By kind of mistake, the most frequent cause of each first.
    pub(crate) groups: Vec<Group>,
    /// In the order of the cases.
    pub(crate) predictions: Vec<Prediction>,
}

/// Compares each case with its plan.
pub(crate) fn evaluate(planned: impl IntoIterator<Item = (Case, Plan)>) -> Evaluation {
    let mut figures = Figures::default();
    let mut predictions = Vec::new();
    for (case, plan) in planned {
        figures.count(&case, &plan);
        let mistake = Mistake::of(&case, &plan);
        let accept = case.accepted();
        predictions.push(Prediction { line: case.line, message: case.message, kind: case.kind, accept, mistake, plan });
    }
    Evaluation { curve: curve(&predictions), groups: groups(&predictions), figures, predictions }
}

/// The points at each tenth of the answers, from the least confident answer on.
fn curve(predictions: &[Prediction]) -> Vec<Point> {
    const STEPS: usize = 10;
    let singles: Vec<&Prediction> =
        predictions.iter().filter(|prediction| prediction.kind == CaseKind::Single).collect();
    let mut answers: Vec<(f64, bool)> = singles
        .iter()
        .filter(|prediction| !given(&prediction.plan).is_empty())
        .map(|prediction| (prediction.plan.confidence, prediction.mistake.is_none()))
        .collect();
    answers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut points: Vec<Point> = Vec::new();
    for step in 0..STEPS.min(answers.len()) {
        let Some(&(confidence, _)) = answers.get(step * answers.len() / STEPS.min(answers.len())) else { break };
        if points.last().is_some_and(|last| last.confidence == confidence) {
            continue;
        }
        let kept: Vec<bool> =
            answers.iter().filter(|(other, _)| *other >= confidence).map(|(_, right)| *right).collect();
        let right = kept.iter().filter(|right| **right).count();
        points.extend(
            share(kept.len() as f64, singles.len())
                .zip(share(right as f64, kept.len()))
                .map(|(coverage, precision)| Point { confidence, coverage, precision }),
        );
    }
    points
}

fn groups(predictions: &[Prediction]) -> Vec<Group> {
    let mut groups: BTreeMap<(Mistake, Option<(Slug, String)>), Group> = BTreeMap::new();
    for prediction in predictions {
        let Some(mistake) = prediction.mistake else { continue };
        let misled_by = misleading(prediction);
        let cause = misled_by.map(|evidence| (evidence.agent.clone(), evidence.source.clone()));
        groups
            .entry((mistake, cause))
            .or_insert_with(|| Group { mistake, misled_by: misled_by.cloned(), lines: Vec::new() })
            .lines
            .push(prediction.line);
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by(|a, b| a.mistake.cmp(&b.mistake).then(b.lines.len().cmp(&a.lines.len())));
    groups
}

/// The strongest evidence for a wrong agent; for one that the plan names, if it names any.
fn misleading(prediction: &Prediction) -> Option<&Evidence> {
    let plan = &prediction.plan;
    let is_wrong = |agent: &Slug| !prediction.accept.contains(agent);
    let blamed = given(plan).iter().find(|agent| is_wrong(agent));
    plan.evidence
        .iter()
        .filter(|evidence| match blamed {
            Some(agent) => evidence.agent == *agent,
            None => is_wrong(&evidence.agent),
        })
        .filter(|evidence| evidence.weight > 0.0)
        .max_by(|a, b| a.weight.total_cmp(&b.weight))
}

#[cfg(test)]
mod tests;
