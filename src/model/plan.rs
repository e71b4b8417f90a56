//! A plan: who works on a message, and why.

use serde::{Deserialize, Serialize};

use super::{Slug, Tier, list};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlanKind {
    /// These agents work.
    Agents,
    /// No agent is started.
    Direct,
    /// The router is not sure; the coordinator decides among the candidates in the evidence.
    #[default]
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

impl Evidence {
    pub(crate) fn new(agent: &Slug, why: impl Into<String>, source: impl Into<String>, weight: f64) -> Self {
        Self { agent: agent.clone(), why: why.into(), source: source.into(), weight }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) kind: PlanKind,
    pub(crate) agents: Vec<Slug>,
    /// The same agents in order of work: agents of one step work in parallel, and an agent may work in several steps.
    /// Plans of older versions have none.
    #[serde(default)]
    pub(crate) steps: Vec<Vec<Slug>>,
    /// It judges all work. If it is also in the steps, its step is a review of the work before.
    pub(crate) reviewer: Option<Slug>,
    /// Further reviewers, who judge after it. The work is approved if all of them approve it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) other_reviewers: Vec<Slug>,
    pub(crate) tier: Tier,
    /// Between 0 and 1.
    pub(crate) confidence: f64,
    pub(crate) evidence: Vec<Evidence>,
    /// The team's automatic meetings for this work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ceremonies: Vec<PlannedCeremony>,
    /// Agents that work side by side on the same paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) overlaps: Vec<Overlap>,
}

/// Agents of one step whose modules overlap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overlap {
    pub(crate) agents: Vec<Slug>,
    /// Where they do, as the team's files write it.
    pub(crate) paths: Vec<String>,
    /// `FILE:LINE`
    pub(crate) source: String,
}

/// A meeting that the team's files require.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedCeremony {
    pub(crate) name: String,
    pub(crate) when: CeremonyTiming,
    /// `FILE:LINE`
    pub(crate) source: String,
    /// The plan's step for the meeting, counted from 1. `None`: it is left to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u32>,
}

/// When a meeting is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CeremonyTiming {
    /// Before the work.
    Before,
    /// After it.
    After,
}

impl CeremonyTiming {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// A member and its work, as given by a caller outside squad. It need not be in the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GivenMember {
    /// Unique in its run.
    pub(crate) id: Slug,
    /// The role in the caller's words.
    pub(crate) role: String,
    pub(crate) task: String,
    /// The member of the same run for whom it answers the findings of the others, when all have ended. It has no task
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answers_for: Option<Slug>,
    /// Its working directory, relative to the project's root with `/`; `None`: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<String>,
    /// A session of an earlier run to continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<String>,
    /// The caller may continue its session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keeps_chat: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// Limit on working time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<f64>,
}

impl Plan {
    /// The meeting held in a step.
    pub(crate) fn ceremony(&self, step: u32) -> Option<&PlannedCeremony> {
        self.ceremonies.iter().find(|ceremony| ceremony.step == Some(step))
    }

    /// One line about each pair of agents that may change the same files at once.
    pub(crate) fn overlap_warnings(&self) -> impl Iterator<Item = String> {
        self.overlaps.iter().map(|Overlap { agents, paths, source }| {
            let (agents, paths) = (list(agents), list(paths));
            format!("{agents} work side by side, and both on {paths} ({source}): their changes may conflict")
        })
    }

    /// One line about the meetings left to people.
    pub(crate) fn left_to_people(&self) -> Option<String> {
        /// How many fit on the line.
        const MAX_NAMED: usize = 3;
        let mut left = self.ceremonies.iter().filter(|ceremony| ceremony.step.is_none());
        let named = left
            .by_ref()
            .take(MAX_NAMED)
            .map(|PlannedCeremony { name, when, source, .. }| format!("{name} {} the work ({source})", when.word()));
        let mut named: Vec<String> = named.collect();
        match left.count() {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        (!named.is_empty()).then(|| format!("left to people: {}", list(named)))
    }

    /// The agents that work on the message, without those that only facilitate a meeting.
    pub(crate) fn at_work(&self) -> Vec<Slug> {
        let works = |agent: &&Slug| {
            let mut steps = (1..).zip(&self.steps).filter(|(step, _)| self.ceremony(*step).is_none());
            self.ceremonies.is_empty() || steps.any(|(_, agents)| agents.contains(agent))
        };
        self.agents.iter().filter(works).cloned().collect()
    }

    /// The reviewers, in order.
    pub(crate) fn reviewers(&self) -> impl Iterator<Item = &Slug> {
        self.reviewer.iter().chain(&self.other_reviewers)
    }

    pub(crate) fn is_reviewer(&self, agent: &Slug) -> bool {
        self.reviewers().any(|reviewer| reviewer == agent)
    }

    /// The reviewers that judge after all steps.
    pub(crate) fn final_reviewers(&self) -> impl Iterator<Item = &Slug> {
        self.reviewers().filter(|reviewer| !self.agents.contains(reviewer))
    }

    /// `backend works on it`, `backend, then tester and docs work on it, then reviewer reviews`, `reviewer reviews it`;
    /// with each name as `shown`.
    pub(crate) fn summary(&self, shown: impl Fn(&Slug) -> String) -> String {
        let verb = |count: usize, verb: &str| if count == 1 { format!("{verb}s") } else { verb.to_owned() };
        if !self.agents.is_empty() && self.agents.iter().all(|agent| self.is_reviewer(agent)) {
            return format!("{} {} it", list(self.agents.iter().map(&shown)), verb(self.agents.len(), "review"));
        }
        let named = |agent: &Slug| if self.is_reviewer(agent) { shown(agent) + " (review)" } else { shown(agent) };
        let step = |step: &Vec<Slug>| list(step.iter().map(named));
        let order = match &self.steps[..] {
            [] => step(&self.agents),
            steps => steps.iter().map(step).collect::<Vec<_>>().join(", then "),
        };
        let last: Vec<String> = self.final_reviewers().map(&shown).collect();
        let review = match last.len() {
            0 => String::new(),
            count => format!(", then {} {}", list(&last), verb(count, "review")),
        };
        format!("{order} {} on it{review}", verb(self.agents.len(), "work"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_whole_seconds_are_read() {
        let entry = r#"{"id":"ada","role":"tester","task":"Begin.","limit":60}"#;
        let member: GivenMember = serde_json::from_str(entry).expect("an entry of an earlier squad");
        assert_eq!(member.limit, Some(60.0));
    }
}
