//! A plan: who works on a message, and why.

use serde::{Deserialize, Serialize};

use super::{Slug, Tier, list};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlanKind {
    /// These agents work.
    Agents,
    /// Nobody is started.
    Direct,
    /// The router is not sure; the coordinator decides among the candidates in the evidence.
    Abstain,
}

/// One reason for or against an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) agent: Slug,
    pub(crate) why: String,
    /// `FILE:LINE`, `message` or `command line`.
    pub(crate) source: String,
    /// Larger is stronger; comparable within one plan only.
    pub(crate) weight: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) kind: PlanKind,
    pub(crate) agents: Vec<Slug>,
    /// The same agents in the order of their work: those of a step work side by side, and somebody may have work in
    /// several. Plans of an earlier squad have none.
    #[serde(default)]
    pub(crate) steps: Vec<Vec<Slug>>,
    pub(crate) reviewer: Option<Slug>,
    pub(crate) tier: Tier,
    /// 0..1.
    pub(crate) confidence: f64,
    pub(crate) evidence: Vec<Evidence>,
}

impl Plan {
    /// `backend`, `backend and docs`, `backend, then tester and docs`; with each name as `shown`.
    pub(crate) fn order(&self, shown: impl Fn(&Slug) -> String) -> String {
        let step = |step: &Vec<Slug>| list(step.iter().map(&shown));
        match &self.steps[..] {
            [] => step(&self.agents),
            steps => steps.iter().map(step).collect::<Vec<_>>().join(", then "),
        }
    }
}
