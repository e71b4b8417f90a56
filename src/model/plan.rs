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
    /// The team's automatic meetings about this work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ceremonies: Vec<PlannedCeremony>,
}

/// A meeting that the team's files ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedCeremony {
    pub(crate) name: String,
    pub(crate) when: Moment,
    /// `FILE:LINE`
    pub(crate) source: String,
    /// The step of the plan that it is, counted from 1. `None`: it is left to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u32>,
}

/// When a meeting is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Moment {
    /// Before the work.
    Before,
    /// After it.
    After,
}

impl Moment {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// A member that a caller outside of squad has named, and its work. It may be no agent of the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GivenMember {
    /// Within its run.
    pub(crate) id: Slug,
    /// The role, as the caller names it.
    pub(crate) role: String,
    pub(crate) task: String,
    /// Where it works, from the project's root with `/`; `None`: there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<String>,
    /// The session that it goes on in, of an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<String>,
    /// The caller may go on in its session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keeps_chat: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// Seconds of working time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u64>,
}

impl Plan {
    /// The meeting that a step is.
    pub(crate) fn ceremony(&self, step: u32) -> Option<&PlannedCeremony> {
        self.ceremonies.iter().find(|ceremony| ceremony.step == Some(step))
    }

    /// One line on the meetings that are.
    pub(crate) fn left_to_people(&self) -> Option<String> {
        /// What a line has room for.
        const NAMED: usize = 3;
        let mut left = self.ceremonies.iter().filter(|ceremony| ceremony.step.is_none());
        let named = left
            .by_ref()
            .take(NAMED)
            .map(|PlannedCeremony { name, when, source, .. }| format!("{name} {} the work ({source})", when.word()));
        let mut named: Vec<String> = named.collect();
        match left.count() {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        (!named.is_empty()).then(|| format!("left to people: {}", list(named)))
    }

    /// Those who work on the message, and do not only facilitate a meeting about it.
    pub(crate) fn at_work(&self) -> Vec<Slug> {
        let works = |agent: &&Slug| {
            let mut steps = (1..).zip(&self.steps).filter(|(step, _)| self.ceremony(*step).is_none());
            self.ceremonies.is_empty() || steps.any(|(_, agents)| agents.contains(agent))
        };
        self.agents.iter().filter(works).cloned().collect()
    }

    /// `backend`, `backend and docs`, `backend, then tester and docs`; with each name as `shown`.
    pub(crate) fn order(&self, shown: impl Fn(&Slug) -> String) -> String {
        let step = |step: &Vec<Slug>| list(step.iter().map(&shown));
        match &self.steps[..] {
            [] => step(&self.agents),
            steps => steps.iter().map(step).collect::<Vec<_>>().join(", then "),
        }
    }
}
