//! Measures the router on labelled cases: figures, and mistakes grouped by cause.

mod cases;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub(crate) use self::cases::{Case, CaseKind, cases, strangers};
use crate::model::{Evidence, Plan, PlanKind, Slug, Sort};

/// The mean over some cases of how right their plans are, 0..1 each. It serializes as that; `None` without cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "Option<f64>")]
pub(crate) struct Rate {
    pub(crate) cases: usize,
    sum: f64,
}

impl Rate {
    fn of(rights: impl Iterator<Item = f64>) -> Self {
        rights.fold(Self::default(), |rate, right| Self { cases: rate.cases + 1, sum: rate.sum + right })
    }
}

impl From<Rate> for Option<f64> {
    fn from(rate: Rate) -> Self {
        (rate.cases > 0).then(|| rate.sum / rate.cases as f64)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// Single cases whose first agent is accepted.
    pub(crate) accuracy: Rate,
    /// Single cases whose plan has an agent.
    pub(crate) coverage: Rate,
    /// The accuracy of these.
    pub(crate) precision: Rate,
    /// The share of accepted agents in the plans of multi cases.
    pub(crate) multi_recall: Rate,
    pub(crate) abstain_rate: Rate,
    pub(crate) direct_rate: Rate,
}

impl Figures {
    fn of(predictions: &[Prediction]) -> Self {
        let of = |kind: CaseKind| predictions.iter().filter(move |prediction| prediction.kind == kind);
        let right = |prediction: &Prediction| f64::from(u8::from(prediction.mistake.is_none()));
        let is_answered = |prediction: &Prediction| !given(&prediction.plan).is_empty();
        let found = |prediction: &Prediction| {
            let is_found = |agent: &&Slug| given(&prediction.plan).contains(agent);
            prediction.accept.iter().filter(is_found).count() as f64 / prediction.accept.len().max(1) as f64
        };
        Self {
            accuracy: Rate::of(of(CaseKind::Single).map(right)),
            coverage: Rate::of(of(CaseKind::Single).map(|it| f64::from(u8::from(is_answered(it))))),
            precision: Rate::of(of(CaseKind::Single).filter(|it| is_answered(it)).map(right)),
            multi_recall: Rate::of(of(CaseKind::Multi).map(found)),
            abstain_rate: Rate::of(of(CaseKind::Ambiguous).map(right)),
            direct_rate: Rate::of(of(CaseKind::Direct).map(right)),
        }
    }
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
            Self::TakenForDirect => "treated as a message that needs no agent",
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
    let predict = |(case, plan): (Case, Plan)| {
        let (mistake, accept) = (Mistake::of(&case, &plan), case.accepted());
        Prediction { line: case.line, message: case.message, kind: case.kind, accept, mistake, plan }
    };
    let predictions: Vec<Prediction> = planned.into_iter().map(predict).collect();
    let (figures, curve, groups) = (Figures::of(&predictions), curve(&predictions), groups(&predictions));
    Evaluation { figures, curve, groups, predictions }
}

/// The points at each tenth of the answers, from the least confident answer on.
fn curve(predictions: &[Prediction]) -> Vec<Point> {
    const STEPS: usize = 10;
    let singles = || predictions.iter().filter(|prediction| prediction.kind == CaseKind::Single);
    let mut answers: Vec<(f64, bool)> = singles()
        .filter(|prediction| !given(&prediction.plan).is_empty())
        .map(|prediction| (prediction.plan.confidence, prediction.mistake.is_none()))
        .collect();
    answers.stable_sort_by(|a, b| a.0.total_cmp(&b.0));
    let steps = STEPS.min(answers.len());
    let mut starts: Vec<f64> =
        (0..steps).filter_map(|step| Some(answers.get(step * answers.len() / steps)?.0)).collect();
    starts.dedup();
    let point = |confidence: f64| {
        let kept = || answers.iter().filter(|(other, _)| *other >= confidence);
        let (count, right) = (kept().count() as f64, kept().filter(|(_, right)| *right).count() as f64);
        Point { confidence, coverage: count / singles().count() as f64, precision: right / count }
    };
    starts.into_iter().map(point).collect()
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
    groups.stable_sort_by(|a, b| a.mistake.cmp(&b.mistake).then(b.lines.len().cmp(&a.lines.len())));
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
