//! Reviews, and revisions of rejected work: never by its author, and at most twice.

use std::collections::BTreeSet;

use crate::compile::{self, Rejection};
use crate::model::{EventKind, Member, Outcome, Plan, Position, Slug, Verdict, list};
use crate::ops::run::executor::{Executor, Results, reports_of};
use crate::ops::run::resume::Judged;
use crate::pool::{Job, Work, WorkKind};
use crate::route::choice::{self, Chosen};

/// How often work is revised before a rejection is final.
const REVISIONS: u32 = 2;
/// A reviewer sees the diff of at most this many files.
const FILES: usize = 200;

/// A review of some work.
struct Review {
    work: Work,
    verdict: Verdict,
    reasons: String,
    /// The authors of rejected work, or of all the work.
    authors: Vec<Slug>,
}

impl Executor<'_> {
    /// Has work reviewed. Somebody else revises what is rejected, and it is reviewed again.
    pub(super) async fn review(&self, reviewer: &Member, plan: &Plan, done: &[Work], results: &mut Results) {
        let mut judged: Vec<Work> = done.iter().filter(|work| work.outcome == Outcome::Completed).cloned().collect();
        let step = step_of(&judged);
        let mut locked: BTreeSet<Slug> = BTreeSet::new();
        for attempt in 1..=REVISIONS + 1 {
            if judged.is_empty() || self.workers.cancel.is_set() {
                return;
            }
            let position = Position::new(step, attempt);
            let Review { work, verdict, reasons, authors } = self.ask(reviewer, plan, position, &judged).await;
            let has_judged = work.outcome == Outcome::Completed;
            results.work.push(work);
            if !has_judged {
                return;
            }
            results.verdicts.push(verdict);
            if verdict == Verdict::Unclear {
                let authors = list(&authors);
                results.answer =
                    Some(format!("{} gave no clear verdict on the work of {authors}:\n\n{reasons}", reviewer.slug));
            }
            if verdict != Verdict::Rejected || attempt > REVISIONS {
                return;
            }
            locked.extend(authors.iter().cloned());
            self.workers.colleagues.keep_out(&authors, "the reviewer rejected its work");
            locked.insert(reviewer.slug.clone());
            let rejection = Rejection { reviewer: &reviewer.slug, authors: &authors, reasons: &reasons };
            let next = Position::new(step, attempt + 1);
            let known = self.past.reviser(next, &reviewer.slug).and_then(|slug| self.project.team.member(slug));
            let member = match known {
                Some(member) => Some(member),
                None => self.reviser(plan, &rejection, &locked, results).await,
            };
            let Some(member) = member else { return };
            judged = vec![{
                let resume = results.has_worked(&member.slug);
                self.revise(member, plan, next, &rejection, &judged, resume).await
            }];
            results.work.extend(judged.iter().cloned());
            judged.retain(|work| work.outcome == Outcome::Completed);
        }
    }

    /// One review. Records its verdict and lockouts.
    async fn ask(&self, reviewer: &Member, plan: &Plan, position: Position, judged: &[Work]) -> Review {
        if let Some(review) = self.known(reviewer, position, judged) {
            return review;
        }
        let workers = self.workers.at(position);
        let mut paths: Vec<String> = changed_by(judged.iter()).into_iter().collect();
        paths.truncate(FILES);
        let diff = match &workers.tree {
            Some(tree) => tree.diff(paths).await,
            None => String::new(),
        };
        let prompt = compile::review_prompt(&self.order.message, &reports_of(judged), &diff, &workers.requests.project);
        let job = self.job(reviewer, plan.tier, prompt, WorkKind::Review, position.attempt > Some(1));
        let goes_on = self.past.interrupted(&reviewer.slug, position);
        let mut work = workers.work(Job { goes_on, ..job }).await;
        let mut authors: Vec<Slug> = unique(judged.iter().map(|work| work.agent.clone()));
        if work.outcome != Outcome::Completed {
            return Review { work, verdict: Verdict::Unclear, reasons: String::new(), authors };
        }
        let given = work.judgement();
        let verdict = match &given {
            Some(judgement) if judgement.approved => Verdict::Approved,
            Some(_) => Verdict::Rejected,
            None => Verdict::read(&work.text),
        };
        work.verdict = Some(verdict);
        let (reasons, named) = given.map_or((String::new(), Vec::new()), |given| (given.reasons, given.files));
        let reasons = if reasons.is_empty() { work.text.clone() } else { reasons };
        let of_named: Vec<&Work> = judged.iter().filter(|work| meets(work, &named)).collect();
        let rejected = if of_named.is_empty() { judged.iter().collect() } else { of_named };
        if verdict == Verdict::Rejected {
            authors = unique(rejected.iter().map(|work| work.agent.clone()));
        }
        let files = changed_by(judged.iter()).into_iter().collect();
        let text = reasons.clone();
        workers
            .reports
            .tell(Some(&reviewer.slug), EventKind::ReviewVerdict { verdict, authors: authors.clone(), files, text });
        if verdict != Verdict::Rejected {
            return Review { work, verdict, reasons, authors };
        }
        self.lock_out(reviewer, position, &authors, judged);
        Review { work, verdict, reasons, authors }
    }

    /// Records lockouts in the ledger, where later runs find them.
    fn lock_out(&self, reviewer: &Member, position: Position, authors: &[Slug], judged: &[Work]) {
        let known = self.past.locked_out(position);
        for author in authors.iter().filter(|author| !known.contains(author)) {
            let files = changed_by(judged.iter().filter(|work| work.agent == *author)).into_iter().collect();
            let lockout = EventKind::Lockout { reviewer: reviewer.slug.clone(), files };
            self.workers.at(position).reports.tell(Some(author), lockout);
        }
    }

    /// A review that was finished before the run was interrupted.
    fn known(&self, reviewer: &Member, position: Position, judged: &[Work]) -> Option<Review> {
        let Judged { verdict, authors, text } = self.past.judged(position)?;
        let end = self.past.completed(&reviewer.slug, position)?;
        let mut work = self.workers.at(position).recorded(&reviewer.slug, end.clone());
        work.verdict = Some(verdict);
        let locked: Vec<Slug> = self.past.locked_out(position).into_iter().cloned().collect();
        let authors = if locked.is_empty() { authors.to_vec() } else { locked };
        if verdict == Verdict::Rejected {
            self.lock_out(reviewer, position, &authors, judged);
        }
        Some(Review { work, verdict, reasons: text.to_owned(), authors })
    }

    /// Chooses who revises: another agent of the plan, else the person at the terminal chooses, else the coordinator.
    async fn reviser(
        &self,
        plan: &Plan,
        rejection: &Rejection<'_>,
        locked: &BTreeSet<Slug>,
        results: &mut Results,
    ) -> Option<&Member> {
        let team = &self.project.team;
        let is_free = |member: &&Member| member.is_startable() && !locked.contains(&member.slug);
        if let Some(second) = plan.agents.iter().filter_map(|slug| team.member(slug)).find(is_free) {
            return Some(second);
        }
        let free: Vec<&Member> = team.startable().filter(is_free).collect();
        if free.is_empty() {
            results.is_stuck = true;
            self.complain("nobody is left to revise the work: its authors and its reviewer may not");
            return None;
        }
        if let Some(named) = self.person_chooses(rejection, &free).await {
            return Some(named);
        }
        let prompt = compile::reviser_prompt(&self.order.message, rejection, &free);
        let work = self.workers.work(self.coordinator(prompt, results.has_worked(&Slug::coordinator()))).await;
        let chosen = (work.outcome == Outcome::Completed).then(|| choice::apply(team, plan, &work.text));
        results.work.push(work);
        let chosen = match chosen? {
            Ok(Chosen::Agents(plan)) => {
                plan.agents.into_iter().find(|slug| free.iter().any(|member| member.slug == *slug))
            }
            Ok(Chosen::Nobody(..)) | Err(_) => None,
        };
        let free_names: Vec<&Slug> = free.iter().map(|member| &member.slug).collect();
        let found = free.iter().find(|member| Some(&member.slug) == chosen.as_ref()).copied();
        if found.is_none() {
            let names = list(free_names);
            self.complain(&format!("the coordinator named nobody who may revise the work ({names})"));
        }
        found
    }

    /// `None`: nobody can be asked, or the person leaves it to the coordinator.
    async fn person_chooses<'m>(&self, rejection: &Rejection<'_>, free: &[&'m Member]) -> Option<&'m Member> {
        let names = list(free.iter().map(|member| &member.slug));
        let question = format!(
            "{} rejected the work of {}. Who revises it: {names}? [Enter: the coordinator chooses] ",
            rejection.reviewer,
            list(rejection.authors)
        );
        let answer = self.workers.requests.ask_person(&self.workers.reports, None, question).await?;
        let answer = answer.trim().trim_start_matches('@').to_lowercase();
        free.iter().find(|member| member.slug.as_str() == answer).copied()
    }

    async fn revise(
        &self,
        member: &Member,
        plan: &Plan,
        position: Position,
        rejection: &Rejection<'_>,
        judged: &[Work],
        resume: bool,
    ) -> Work {
        let workers = self.workers.at(position);
        if let Some(end) = self.past.completed(&member.slug, position) {
            return workers.recorded(&member.slug, end.clone());
        }
        let goes_on = self.past.interrupted(&member.slug, position);
        let prompt = compile::revision_prompt(
            &self.order.message,
            &reports_of(judged),
            rejection,
            &workers.requests.project,
            self.run.as_str(),
        );
        workers.work(Job { goes_on, ..self.job(member, plan.tier, prompt, WorkKind::Work, resume) }).await
    }
}

/// The last step that changed files, or else the last step.
fn step_of(done: &[Work]) -> u32 {
    let step = |work: &Work| work.position.step;
    let has_changed = |work: &&Work| work.changed.as_ref().is_none_or(|changed| !changed.is_empty());
    done.iter().filter(has_changed).filter_map(step).max().or_else(|| done.iter().filter_map(step).max()).unwrap_or(1)
}

fn changed_by<'w>(work: impl Iterator<Item = &'w Work>) -> BTreeSet<String> {
    work.flat_map(|work| work.changed.iter().flatten()).map(|change| change.path.clone()).collect()
}

fn meets(work: &Work, files: &[String]) -> bool {
    work.changed.iter().flatten().any(|change| files.contains(&change.path))
}

fn unique(slugs: impl Iterator<Item = Slug>) -> Vec<Slug> {
    let mut found: Vec<Slug> = Vec::new();
    for slug in slugs {
        if !found.contains(&slug) {
            found.push(slug);
        }
    }
    found
}
