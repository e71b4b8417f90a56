//! Finds the causes of a run's entries: the entries without which an entry would not exist.

use std::collections::BTreeMap;

use crate::model::{EntryId, Event, EventKind, Position, Slug};

/// What a run has recorded so far.
#[derive(Default)]
pub(super) struct Lineage {
    start: Option<EntryId>,
    /// The current plan, and the agents it names.
    plan: Option<(EntryId, Vec<Slug>)>,
    /// The entry that opened each agent's last session.
    sessions: BTreeMap<Slug, EntryId>,
    /// The entry that ended each agent's last work.
    ends: BTreeMap<Slug, EntryId>,
    /// The agents of the current step, and the end of the step before.
    at_work: Vec<Slug>,
    step: Option<EntryId>,
    verdict: Option<EntryId>,
    /// The last verdict with its lockouts, and the ends of work since; before any verdict, the ends of all work.
    latest: Vec<EntryId>,
}

impl Lineage {
    pub(super) fn causes(&self, agent: Option<&Slug>, position: Position, kind: &EventKind) -> Vec<EntryId> {
        let plan = self.plan.as_ref().map(|(id, _)| id.clone());
        let origin = || plan.clone().or_else(|| self.start.clone());
        let ends_of = |agents: &[Slug]| agents.iter().filter_map(|agent| self.ends.get(agent)).cloned().collect();
        let one = |id: Option<EntryId>| id.into_iter().collect::<Vec<_>>();
        match (agent, kind) {
            (_, EventKind::RunStarted { .. }) => Vec::new(),
            // The coordinator's plan follows from its answer.
            (_, EventKind::RoutePlanned(_)) => one(self.ends.values().next().or(self.start.as_ref()).cloned()),
            (Some(agent), EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. }) => {
                let mut causes = one(origin());
                let is_planned = self.plan.as_ref().is_none_or(|(_, agents)| agents.contains(agent));
                match position.attempt {
                    // Reviewing, revising, routing and answering follow from the latest work and verdict.
                    attempt if !is_planned || attempt > Some(1) => causes.extend(self.latest.iter().cloned()),
                    // Its task includes the results of earlier steps.
                    _ => causes.extend(self.step.clone()),
                }
                causes
            }
            (Some(reviewer), EventKind::ReviewVerdict { authors, .. }) => {
                let mut causes: Vec<EntryId> = ends_of(authors);
                causes.extend(self.ends.get(reviewer).cloned());
                causes
            }
            (_, EventKind::Lockout { .. }) => one(self.verdict.clone()),
            (Some(agent), _) => one(self.sessions.get(agent).cloned().or_else(origin)),
            (None, EventKind::Answer { .. }) if self.ends.contains_key(&Slug::coordinator()) => {
                ends_of(&[Slug::coordinator()])
            }
            (None, EventKind::StepCompleted { .. }) => ends_of(&self.at_work),
            (None, EventKind::Answer { .. } | EventKind::RunCompleted(_)) if !self.ends.is_empty() => {
                self.ends.values().cloned().collect()
            }
            (None, _) => one(origin()),
        }
    }

    pub(super) fn note(&mut self, event: &Event) {
        let id = || event.id.clone();
        match (&event.agent, &event.kind) {
            (_, EventKind::RunStarted { .. }) => self.start = Some(id()),
            (_, EventKind::RoutePlanned(plan)) => self.plan = Some((id(), plan.agents.clone())),
            (Some(agent), EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. }) => {
                self.sessions.insert(agent.clone(), id());
            }
            (_, EventKind::StepStarted { agents }) => self.at_work.clone_from(agents),
            (_, EventKind::StepCompleted { .. }) => self.step = Some(id()),
            (_, EventKind::ReviewVerdict { .. }) => {
                self.verdict = Some(id());
                self.latest = vec![id()];
            }
            (_, EventKind::Lockout { .. }) => self.latest.push(id()),
            (Some(agent), kind) if kind.end().is_some() => {
                self.ends.insert(agent.clone(), id());
                self.latest.push(id());
            }
            _ => {}
        }
    }
}
