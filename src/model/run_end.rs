//! The outcome of a run: what its last line, card, log, status and JSON say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Forecast, IntoMap, Outcome, ProjectCheck, Slug, Usage, WorkReport};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    pub(crate) status: Outcome,
    /// The outcome of each agent's last work.
    pub(crate) agents: BTreeMap<Slug, Outcome>,
    #[serde(default)]
    pub(crate) work: Vec<WorkReport>,
    /// How often work was rejected.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) rejections: u64,
    /// The work was rejected and nobody may revise it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stuck: bool,
    /// The last result of `check.run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Box<ProjectCheck>>,
    /// What the run was likely to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forecast: Option<Box<Forecast>>,
    pub(crate) commits: Vec<String>,
    pub(crate) usage: Usage,
    /// Why no agent could begin. With `--json`, only the run's last line has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RunError>,
}

impl RunEnd {
    /// The end of a run with this work, which took so long.
    pub(crate) fn of(status: Outcome, work: Vec<WorkReport>, seconds: f64) -> Self {
        let agents = work.iter().map(|work| (work.agent.clone(), work.status)).into_map();
        let mut usage = Usage::default();
        work.iter().for_each(|work| usage += &work.usage);
        // Agents work in parallel, so their seconds are not added up.
        (usage.seconds, usage.waited) = (seconds, 0.0);
        let (rejections, stuck, check, forecast, commits, error) = Default::default();
        Self { status, agents, work, rejections, stuck, check, forecast, commits, usage, error }
    }

    /// Whether the last check failed: the project's, or else the last that an agent ran.
    pub(crate) fn has_failed_check(&self) -> bool {
        let checks = self.work.iter().filter_map(|work| Some(((work.step, work.attempt), work.check.as_ref()?)));
        match &self.check {
            Some(check) => !check.passed,
            None => checks.max_by_key(|(position, _)| *position).is_some_and(|(_, check)| !check.passed),
        }
    }
}

/// The error that ended a run before any agent could begin, with the fields of every command's `{"error": …}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunError {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) source: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
