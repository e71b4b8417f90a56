//! Runs the steps of a plan in order; each agent gets the results of the earlier steps.

use crate::compile::{self, Part};
use crate::model::{Ceremony, EventKind, Evidence, Member, Outcome, Plan, Position, Slug, Sort, Verdict};
use crate::ops::ledger::contents::file_verdicts;
use crate::ops::run::executor::{Executor, Results, reports_of};
use crate::ops::run::hand_off::step_of;
use crate::pool::{Job, Work, WorkKind, Workers};
use crate::route::asks_each_for_work;

impl Executor<'_> {
    /// Runs all steps, the reviews and the answer.
    pub(super) async fn agents(&self, plan: &Plan, results: &mut Results) {
        let mut done: Vec<Work> = Vec::new();
        // Those of revisions and reviews between the steps, too.
        let mut reports: Vec<Work> = Vec::new();
        let mut recorded = 0;
        let mut handed_on = self.take_up_handed_on(plan.tier);
        // A reviewer must not work on what it reviews.
        self.workers.colleagues.keep_out(plan.reviewers(), "it reviews the work");
        let (repository, prefix) = (&self.project.repository, self.project.ledger_prefix());
        // A run's own verdicts are added as it goes on.
        match file_verdicts(repository, &prefix, Some(self.run)) {
            Ok(verdicts) => results.file_verdicts = verdicts,
            Err(error) => self.complain(&format!("earlier verdicts cannot be read: {error}")),
        }
        for (number, agents) in (1..).zip(&plan.steps) {
            let workers = self.workers.at(Position::new(number, 1));
            let step = match unfinished(&done, plan, results) {
                Some(reason) => agents.iter().map(|agent| workers.skip(agent, &reason)).collect(),
                None if agents.iter().all(|agent| plan.is_reviewer(agent)) => {
                    results.work.extend(done[recorded..].iter().cloned());
                    recorded = done.len();
                    let before = results.work.len();
                    let judged = [&done[..], &handed_on, &reports].concat();
                    self.review_step(&workers, plan, agents, &judged, results).await;
                    reports.extend(results.work[before..].iter().filter(|work| is_agent(work)).cloned());
                    Vec::new()
                }
                None => {
                    let step = self.step(&workers, plan, agents, &[&done[..], &handed_on, &reports].concat()).await;
                    handed_on.extend(self.workers.colleagues.take_done());
                    step
                }
            };
            done.extend(step);
        }
        self.workers.colleagues.settled().await;
        handed_on.extend(self.workers.colleagues.take_done());
        results.work.extend(done[recorded..].iter().chain(&handed_on).cloned());
        self.fail_uncommitted(&mut results.work);
        self.last_review(plan, &[&done[..], &handed_on, &reports].concat(), results).await;
        self.refuse_rejections(&done, results);
        let is_whole = results.work.iter().all(|work| work.outcome == Outcome::Completed);
        if is_whole {
            let work = results.work.clone();
            self.check(Position::default(), work.iter(), results).await;
        }
        if !is_whole || results.is_unapproved || self.workers.cancel.is_set() {
            self.skip_reviewers(plan, &done, results);
        }
        match &done[..] {
            // Whoever reviews what is there already has answered.
            [] if plan.agents.len() == 1 => {}
            // After a rejection, neither the work nor its author's report is the answer.
            _ if results.verdicts.contains(&Verdict::Rejected) => self.answer(results).await,
            [_] if plan.reviewer.is_some() && results.verdicts.last() != Some(&Verdict::Approved) => {}
            [only] => {
                let text = results.checked.in_front_of(&only.agent, &only.text);
                results.answer = Some(text).filter(|_| only.outcome == Outcome::Completed);
            }
            [] => self.answer(results).await,
            several if several.iter().any(|work| work.outcome == Outcome::Completed) => self.answer(results).await,
            _ => {}
        }
    }

    /// The reviewers that are in no step judge everything.
    async fn last_review(&self, plan: &Plan, all: &[Work], results: &mut Results) {
        let reviewers: Vec<&Member> =
            plan.final_reviewers().filter_map(|slug| self.project.team.member(slug)).collect();
        if reviewers.is_empty() {
            return;
        }
        // A meeting is only reviewed if its facilitator changed files.
        let is_meeting = |work: &Work| {
            let step = work.position.step.and_then(|step| plan.ceremony(step));
            step.is_some() && work.changed.as_ref().is_some_and(Vec::is_empty)
        };
        // A review that the message orders after the work waits for all of it.
        let is_asked = |evidence: &Evidence| evidence.source == "message" && plan.is_reviewer(&evidence.agent);
        let is_whole = all.iter().all(|work| work.outcome == Outcome::Completed);
        if !is_whole && plan.evidence.iter().any(is_asked) {
            return;
        }
        let is_work = |work: &&Work| !is_meeting(work) && !plan.is_reviewer(&work.agent);
        let judged: Vec<Work> = all.iter().filter(is_work).cloned().collect();
        if !judged.is_empty() {
            self.review(&reviewers, plan, None, &judged, results).await;
        }
    }

    /// Reviewers that never began, because the run did not come so far, are skipped.
    fn skip_reviewers(&self, plan: &Plan, done: &[Work], results: &mut Results) {
        results.checked.is_cancelled |= self.workers.cancel.is_set();
        let reason = unfinished(done, plan, results).unwrap_or_else(|| "the work did not complete".to_owned());
        let workers = self.workers.at(Position::new(step_of(done), 1));
        for reviewer in plan.reviewers() {
            if !results.work.iter().any(|work| work.agent == *reviewer) {
                results.work.push(workers.skip(reviewer, &reason));
            }
        }
    }

    /// A step whose agents review the work before it, or what was there already.
    async fn review_step(
        &self,
        workers: &Workers,
        plan: &Plan,
        agents: &[Slug],
        earlier: &[Work],
        results: &mut Results,
    ) {
        let position = workers.reports.position();
        if !self.past.has_step(position, false) {
            workers.reports.tell(None, EventKind::StepStarted { agents: agents.to_vec() });
        }
        let reviewers: Vec<&Member> = agents.iter().filter_map(|slug| self.project.team.member(slug)).collect();
        let judged: Vec<Work> = earlier.iter().filter(|work| !plan.is_reviewer(&work.agent)).cloned().collect();
        let before = results.work.len();
        self.review(&reviewers, plan, position.step, &judged, results).await;
        let failed = results.work[before..].iter().map(|work| work.outcome).find(|it| *it != Outcome::Completed);
        let status = failed.unwrap_or(if results.is_unapproved { Outcome::Failed } else { Outcome::Completed });
        if !self.past.has_step(position, true) {
            workers.reports.tell(None, EventKind::StepCompleted { status });
        }
    }

    /// A report that ends with a rejection is one, whoever gives it.
    fn refuse_rejections(&self, done: &[Work], results: &mut Results) {
        for Work { agent, .. } in done.iter().filter(|work| Verdict::read(&work.text) == Verdict::Rejected) {
            results.is_unapproved = true;
            self.complain(&format!("{agent} rejects the work in its report, so the run has failed"));
        }
    }

    /// Runs one step, with its agents side by side.
    async fn step(&self, workers: &Workers, plan: &Plan, agents: &[Slug], earlier: &[Work]) -> Vec<Work> {
        let position = workers.reports.position();
        if !self.past.has_step(position, false) {
            workers.reports.tell(None, EventKind::StepStarted { agents: agents.to_vec() });
        }
        let earlier = reports_of(earlier);
        if plan.ceremony(position.step.unwrap_or(1)).is_some()
            && let Some(clones) = self.used_clones()
        {
            agents.iter().for_each(|agent| clones.join(agent));
        }
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
        let mut conflicting = self.collect(agents, &mut done).await;
        // What an earlier process set aside, and did not give back before it died.
        if let (Some(clones), false) = (self.clones, self.past.has_step(position, true)) {
            let before = agents.iter().filter(|agent| self.past.completed(agent, position).is_some());
            for agent in clones.set_aside_of(before) {
                if !conflicting.contains(&agent) {
                    conflicting.push(agent);
                }
            }
        }
        done.stable_sort_by_key(|work| agents.iter().position(|agent| *agent == work.agent));
        self.resolve(plan, step, &conflicting, &mut done).await;
        let status = done.iter().map(|work| work.outcome).find(|outcome| *outcome != Outcome::Completed);
        if !self.past.has_step(position, true) {
            workers.reports.tell(None, EventKind::StepCompleted { status: status.unwrap_or(Outcome::Completed) });
        }
        done
    }

    /// An agent's job in a step. An agent that has worked in an earlier step continues in the same session.
    fn task(&self, member: &Member, plan: &Plan, position: Position, part: &Part<'_>) -> Job {
        let directory = &*self.directory_of(&member.slug);
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

fn is_agent(work: &Work) -> bool {
    work.agent.as_str() != Slug::COORDINATOR
}

/// Why a step may not begin: work before it did not complete, or a reviewer has not approved it.
fn unfinished(done: &[Work], plan: &Plan, results: &Results) -> Option<String> {
    if let Some(work) = done.iter().find(|work| work.outcome != Outcome::Completed) {
        let step = work.position.step.unwrap_or(1);
        return Some(format!("step {step} did not complete ({}: {})", work.agent, work.outcome));
    }
    let failed = |work: &&Work| plan.is_reviewer(&work.agent) && work.outcome != Outcome::Completed;
    if let Some(work) = results.work.iter().find(failed) {
        return Some(format!("the review did not complete ({}: {})", work.agent, work.outcome));
    }
    // What a review of earlier work found is for those who come after it.
    (results.is_unapproved && !done.is_empty()).then(|| "the work before it is not approved".to_owned())
}
