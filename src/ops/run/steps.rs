//! Runs the steps of a plan in order; each agent gets the results of the earlier steps.

use crate::compile::{self, Part};
use crate::model::{Ceremony, EventKind, Member, Outcome, Plan, Position, Slug, Verdict};
use crate::ops::run::executor::{Executor, Results, reports_of};
use crate::pool::{Job, Work, WorkKind, Workers};
use crate::route::asks_each_for_work;

impl Executor<'_> {
    /// Runs all steps, the review and the answer.
    pub(super) async fn agents(&self, plan: &Plan, results: &mut Results) {
        let mut done: Vec<Work> = Vec::new();
        let mut handed_on = self.take_up_handed_on(plan.tier);
        // A reviewer must not work on what it reviews.
        self.workers.colleagues.keep_out(&plan.reviewer, "it reviews the work");
        for (number, agents) in (1..).zip(&plan.steps) {
            let workers = self.workers.at(Position::new(number, 1));
            let unfinished = done.iter().find(|work| work.outcome != Outcome::Completed);
            let step = match unfinished {
                None => {
                    let step = self.step(&workers, plan, agents, &[&done[..], &handed_on].concat()).await;
                    handed_on.extend(self.workers.colleagues.take_done());
                    step
                }
                Some(work) => {
                    let step = work.position.step.unwrap_or(1);
                    let reason = format!("step {step} did not complete ({}: {})", work.agent, work.outcome);
                    agents.iter().map(|agent| workers.skip(agent, &reason)).collect()
                }
            };
            done.extend(step);
        }
        self.workers.colleagues.settled().await;
        handed_on.extend(self.workers.colleagues.take_done());
        let all = [&done[..], &handed_on].concat();
        results.work.extend(all.iter().cloned());
        if let Some(reviewer) = plan.reviewer.as_ref().and_then(|slug| self.project.team.member(slug)) {
            // A meeting is only reviewed if its facilitator changed files.
            let is_meeting = |work: &Work| {
                let step = work.position.step.and_then(|step| plan.ceremony(step));
                step.is_some() && work.changed.as_ref().is_some_and(Vec::is_empty)
            };
            let judged: Vec<Work> = all.iter().filter(|work| !is_meeting(work)).cloned().collect();
            self.review(reviewer, plan, &judged, results).await;
        }
        match &done[..] {
            // After a rejection, neither the work nor its author's report is the answer.
            _ if results.verdicts.contains(&Verdict::Rejected) => self.answer(results).await,
            [_] if plan.reviewer.is_some() && results.verdicts.last() != Some(&Verdict::Approved) => {}
            [only] => results.answer = Some(only.text.clone()).filter(|_| only.outcome == Outcome::Completed),
            several if several.iter().any(|work| work.outcome == Outcome::Completed) => self.answer(results).await,
            _ => {}
        }
    }

    /// Runs one step, with its agents side by side.
    async fn step(&self, workers: &Workers, plan: &Plan, agents: &[Slug], earlier: &[Work]) -> Vec<Work> {
        let position = workers.reports.position();
        if !self.past.has_step(position, false) {
            workers.reports.tell(None, EventKind::StepStarted { agents: agents.to_vec() });
        }
        let earlier = reports_of(earlier);
        let members = agents.iter().filter_map(|slug| self.project.team.member(slug));
        let (step, steps) = (position.step.unwrap_or(1), plan.steps.len());
        let part = |agent| Part { agent, at_work: agents, step, steps, earlier: &earlier };
        let (mut done, mut jobs) = (Vec::new(), Vec::new());
        for member in members {
            match self.past.completed(&member.slug, position) {
                Some(end) => done.push(workers.recorded(&member.slug, end.clone())),
                None => jobs.push(self.task(member, plan, position, &part(&member.slug))),
            }
        }
        done.extend(workers.fan_out(jobs).await);
        done.sort_by_key(|work| agents.iter().position(|agent| *agent == work.agent));
        let status = done.iter().map(|work| work.outcome).find(|outcome| *outcome != Outcome::Completed);
        if !self.past.has_step(position, true) {
            workers.reports.tell(None, EventKind::StepCompleted { status: status.unwrap_or(Outcome::Completed) });
        }
        done
    }

    /// An agent's job in a step. An agent that has worked in an earlier step continues in the same session.
    fn task(&self, member: &Member, plan: &Plan, position: Position, part: &Part<'_>) -> Job {
        let directory = &self.workers.requests.project;
        let (message, run) = (&self.order.message, self.run.as_str());
        let prompt = match plan.ceremony(part.step) {
            None => compile::task_prompt(message, part, directory, run),
            Some(planned) => {
                let is_it = |ceremony: &&Ceremony| ceremony.source.to_string() == planned.source;
                let of_team = self.project.team.ceremonies.iter().find(is_it);
                compile::meeting_prompt(message, planned, of_team, &plan.at_work(), part, directory, run)
            }
        };
        let resume = part.earlier.iter().any(|work| *work.agent == member.slug);
        let goes_on = self.past.interrupted(&member.slug, position);
        // A meeting yields words.
        let is_asked = plan.ceremony(part.step).is_none()
            && (plan.agents.len() < 2 || asks_each_for_work(message, member.slug.as_str()));
        let job = self.job(member, plan.tier, prompt, WorkKind::Work, resume);
        Job { goes_on, asks_for_work: job.asks_for_work && is_asked, ..job }
    }
}
