//! What a run is likely to use, from this team's own ledger.

use std::collections::BTreeSet;

use crate::git::Repository;
use crate::model::{Forecast, IntoSet, Outcome, Plan, PlanKind, Slug};
use crate::ops::ledger::log::{self, Choice, RunSummary};
use crate::ops::run::lease::Leases;

/// The newest runs, which are looked at: older ones had other charters and models.
const RUNS: usize = 200;

/// From completed runs in which the same agents worked. `None`: there are too few, or nobody knows who will work.
/// `prefix`: the ledger's for the team.
pub(super) fn forecast(repository: &Repository, prefix: &str, plan: &Plan) -> Option<Forecast> {
    if plan.kind != PlanKind::Agents {
        return None;
    }
    let planned: BTreeSet<Slug> = plan.at_work().into_iter().chain(plan.reviewers().cloned()).into_set();
    let is_like = |run: &&RunSummary| {
        let worked = run.agents.keys().filter(|agent| agent.as_str() != Slug::COORDINATOR);
        run.status == Outcome::Completed.to_string() && worked.into_set() == planned.iter().collect()
    };
    let leases = Leases::default();
    let runs = log::runs(repository, prefix, &leases, &Choice::default(), RUNS);
    // Without a ledger that can be read, nothing is known.
    Forecast::of(runs.unwrap_or_default().iter().filter(is_like).map(|run| &run.usage))
}
