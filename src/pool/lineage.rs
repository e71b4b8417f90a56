//! Which entries an entry of a run follows from: those without which it would not be.

use std::collections::BTreeMap;

use crate::model::{EntryId, Event, Position, Slug, What};

/// What a run has left so far.
#[derive(Default)]
pub(super) struct Lineage {
    start: Option<EntryId>,
    /// The plan that holds, and the agents it names.
    plan: Option<(EntryId, Vec<Slug>)>,
    /// The entry that opened each agent's last session.
    sessions: BTreeMap<Slug, EntryId>,
    /// How each agent's last work ended.
    ends: BTreeMap<Slug, EntryId>,
    verdict: Option<EntryId>,
    lockouts: Vec<EntryId>,
}

impl Lineage {
    pub(super) fn causes(&self, agent: Option<&Slug>, position: Position, what: &What) -> Vec<EntryId> {
        let plan = self.plan.as_ref().map(|(id, _)| id.clone());
        let origin = || plan.clone().or_else(|| self.start.clone());
        let ends_of = |agents: &[Slug]| agents.iter().filter_map(|agent| self.ends.get(agent)).cloned().collect();
        let one = |id: Option<EntryId>| id.into_iter().collect::<Vec<_>>();
        match (agent, what) {
            (_, What::RunStarted { .. }) => Vec::new(),
            // The coordinator's choice is its answer's doing.
            (_, What::RoutePlanned(_)) => one(self.ends.values().next().or(self.start.as_ref()).cloned()),
            (Some(agent), What::SessionCreated { .. } | What::SessionResumed { .. }) => {
                let mut causes = one(origin());
                match &self.plan {
                    // A reviewer's and an answering coordinator's follow the others' work.
                    Some((_, agents)) if !agents.contains(agent) => causes.extend::<Vec<_>>(ends_of(agents)),
                    _ if position.attempt.is_some_and(|attempt| attempt > 1) => {
                        causes.extend(self.lockouts.iter().cloned());
                    }
                    _ => {}
                }
                causes
            }
            (Some(reviewer), What::ReviewVerdict { authors, .. }) => {
                let mut causes: Vec<EntryId> = ends_of(authors);
                causes.extend(self.ends.get(reviewer).cloned());
                causes
            }
            (_, What::Lockout { .. }) => one(self.verdict.clone()),
            (Some(agent), _) => one(self.sessions.get(agent).cloned().or_else(origin)),
            (None, What::Answer { .. }) if self.ends.contains_key(&Slug::coordinator()) => {
                ends_of(&[Slug::coordinator()])
            }
            (None, What::Answer { .. } | What::StepCompleted { .. } | What::RunCompleted { .. })
                if !self.ends.is_empty() =>
            {
                self.ends.values().cloned().collect()
            }
            (None, _) => one(origin()),
        }
    }

    pub(super) fn note(&mut self, event: &Event) {
        let id = || event.id.clone();
        match (&event.agent, &event.what) {
            (_, What::RunStarted { .. }) => self.start = Some(id()),
            (_, What::RoutePlanned(plan)) => self.plan = Some((id(), plan.agents.clone())),
            (Some(agent), What::SessionCreated { .. } | What::SessionResumed { .. }) => {
                self.sessions.insert(agent.clone(), id());
            }
            (_, What::ReviewVerdict { .. }) => self.verdict = Some(id()),
            (_, What::Lockout { .. }) => self.lockouts.push(id()),
            (Some(agent), what) if what.end().is_some() => {
                self.ends.insert(agent.clone(), id());
            }
            _ => {}
        }
    }
}
