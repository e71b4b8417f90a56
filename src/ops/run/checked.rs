//! What squad's own checks have found in a run so far.

use std::collections::BTreeSet;

use crate::model::{Position, ProjectCheck, Slug};
use crate::pool::Work;

/// What is known of a run's checks.
#[derive(Default)]
pub(super) struct Checked {
    /// The last result.
    pub(super) check: Option<ProjectCheck>,
    /// The work that it covers.
    pub(super) covered: BTreeSet<(Slug, Position)>,
    /// It was cancelled.
    pub(super) is_cancelled: bool,
}

impl Checked {
    pub(super) fn has_failed(&self) -> bool {
        self.check.as_ref().is_some_and(|check| !check.passed)
    }

    /// An agent's report as the run's answer: what the check found comes first if it contradicts it.
    pub(super) fn in_front_of(&self, agent: &Slug, report: &str) -> String {
        match self.check.as_ref().filter(|check| !check.passed) {
            Some(check) => format!("The check `{}` {}. {agent} reports:\n\n{report}", check.command, check.result()),
            None => report.to_owned(),
        }
    }

    /// Whether this work holds; `None`: it changed nothing, or was not checked.
    pub(super) fn verified(&self, work: &Work) -> Option<bool> {
        let is_covered = self.covered.contains(&(work.agent.clone(), work.position));
        self.check.as_ref().map(|check| check.passed).filter(|_| is_covered)
    }
}
