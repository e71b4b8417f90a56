//! Work that conflicts with what others did at the same time goes back to its agent, who knows what it was for.

use crate::compile;
use crate::git::conflicting_files;
use crate::model::{Outcome, Plan, Position, Slug, list};
use crate::ops::run::clones::{Clones, OpenConflict};
use crate::ops::run::executor::{Executor, reports_of};
use crate::ops::run::resume::Returned;
use crate::pool::{Job, Work, WorkKind};

/// How often an agent gets its work back.
pub(super) const RETURNS: usize = 2;

/// The position of what an agent does then: no attempt at a step, of which a revision would be the next.
pub(super) fn is_return(position: Position) -> bool {
    position.step.is_some() && position.attempt.is_none()
}

impl Executor<'_> {
    /// Has agents resolve their conflicts, one after the other. What none of them resolves stays set aside.
    pub(super) async fn resolve(&self, plan: &Plan, step: u32, conflicting: &[Slug], done: &mut Vec<Work>) {
        let Some(clones) = self.clones else { return };
        let completed =
            |agent: &&Slug| done.iter().any(|work| work.agent == **agent && work.outcome == Outcome::Completed);
        let agents: Vec<Slug> = conflicting.iter().filter(completed).cloned().collect();
        for agent in agents {
            let others: Vec<Work> = done.iter().filter(|work| work.agent != agent).cloned().collect();
            self.return_work((&agent, None), clones, (plan, step), &others, done).await;
        }
    }

    /// The same for a merge of an ended run.
    pub(super) async fn return_works(&self, plan: &Plan, returned: &Returned, done: &mut Vec<Work>) {
        let Some(clones) = self.clones else {
            return self.complain("work cannot be given back: agents do not work in clones any more");
        };
        clones.merge_onto(&returned.onto);
        let step = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX).max(1);
        for (agent, work) in &returned.works {
            let others =
                self.past.completed_by_others(agent).map(|(other, end)| self.workers.recorded(other, end.clone()));
            let others: Vec<Work> = others.filter(|work| work.agent.as_str() != Slug::COORDINATOR).collect();
            self.return_work((agent, Some(work)), clones, (plan, step), &others, done).await;
        }
    }

    async fn return_work(
        &self,
        (agent, work): (&Slug, Option<&str>),
        clones: &Clones,
        (plan, step): (&Plan, u32),
        others: &[Work],
        done: &mut Vec<Work>,
    ) {
        if let Err(reason) = self.return_to((agent, work), clones, (plan, step), others, done).await {
            self.complain(&format!("the work of {agent} stays set aside: {reason}"));
            if let Err(reason) = clones.give_up(agent).await {
                self.complain(&format!("the clone of {agent} is not as it was: {reason}"));
            }
        }
    }

    /// The error says why the conflict is not resolved.
    async fn return_to(
        &self,
        (agent, given): (&Slug, Option<&str>),
        clones: &Clones,
        (plan, step): (&Plan, u32),
        others: &[Work],
        done: &mut Vec<Work>,
    ) -> Result<(), String> {
        let member = self.project.team.member(agent).ok_or("it is not on the team")?;
        let workers = self.workers.at(Position { step: Some(step), attempt: None });
        let mut left = Vec::new();
        for _ in 0..RETURNS {
            let conflict = clones.reopen(agent, given).await?.ok_or("it was done on another machine")?;
            let OpenConflict { work, onto, paths, .. } = &conflict;
            left = conflicting_files(paths);
            let (directory, run) = (self.directory_of(agent), self.run.as_str());
            let sides = (onto.as_str(), work.as_str());
            let message = &self.order.message;
            let prompt = compile::conflict_prompt(message, &reports_of(others), paths, sides, &directory, run);
            let job = self.job(member, plan.tier, prompt, WorkKind::Work, true);
            let again = workers.work(Job { asks_for_work: false, ..job }).await;
            let (outcome, report) = (again.outcome, again.text.clone());
            done.push(again);
            if outcome != Outcome::Completed {
                return Err(format!("{agent}: {outcome}"));
            }
            clones.keep(agent, conflict, &report)?;
            let is_resolved = self.collect(std::slice::from_ref(agent), done).await.is_empty();
            if let Some(failed) = done.last().filter(|work| work.outcome != Outcome::Completed) {
                return Err(failed.reason.clone());
            }
            if is_resolved {
                return Ok(());
            }
        }
        Err(format!("it conflicts in {}", list(&left)))
    }
}
