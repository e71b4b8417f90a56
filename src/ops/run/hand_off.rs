//! Reviews, and revisions of rejected work: never by its author, and at most twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::{self, Rejection, ReviewedWork};
use crate::git::Error;
use crate::model::{
    Change, Content, EventKind, IntoSet, JudgedFiles, Member, Outcome, Plan, Position, Slug, Verdict, list,
};
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
    judged: JudgedFiles,
}

/// Work for review.
struct Submission {
    /// Work that is judged now: all of it, or its revision.
    now: Vec<Work>,
    /// All work so far, whose files the reviewers are shown.
    all: Vec<Work>,
    /// No step comes after the review.
    is_last: bool,
}

impl Executor<'_> {
    /// Has work reviewed, or what is there already if there is no work. Somebody else revises what is rejected, and it
    /// is reviewed again.
    pub(super) async fn review(
        &self,
        reviewers: &[&Member],
        plan: &Plan,
        step: Option<u32>,
        done: &[Work],
        results: &mut Results,
    ) {
        let now: Vec<Work> = done.iter().filter(|work| work.outcome == Outcome::Completed).cloned().collect();
        let mut submission = Submission { all: now.clone(), is_last: step.is_none(), now };
        let step = step.unwrap_or_else(|| step_of(&submission.now));
        let was_unapproved = results.is_unapproved;
        let mut locked: BTreeSet<Slug> = reviewers.iter().map(|reviewer| reviewer.slug.clone()).into_set();
        for attempt in 1..=REVISIONS + 1 {
            if (submission.now.is_empty() && !done.is_empty()) || self.workers.cancel.is_set() {
                return;
            }
            let position = Position::new(step, attempt);
            self.check(position, submission.all.iter(), results).await;
            if self.workers.cancel.is_set() {
                return;
            }
            let Some((reviewer, review)) = self.judge(reviewers, plan, position, &submission, results).await else {
                return;
            };
            let Review { verdict, reasons, authors, judged, .. } = review;
            results.is_unapproved = was_unapproved || verdict != Verdict::Approved;
            if verdict == Verdict::Approved {
                self.check_approval(&judged, &submission.now, results);
            }
            // Nobody in this run can revise what was there before.
            if done.is_empty() {
                results.answer = Some(reasons).filter(|reasons| !reasons.is_empty());
                return;
            }
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
            let check = results.checked.check.clone();
            let rejection =
                Rejection { reviewer: &reviewer.slug, authors: &authors, reasons: &reasons, check: check.as_ref() };
            let next = Position::new(step, attempt + 1);
            let known = self.past.reviser(next, &locked).and_then(|slug| self.project.team.member(slug));
            let member = match known {
                Some(member) => Some(member),
                None => self.reviser(plan, &rejection, &locked, results).await,
            };
            let Some(member) = member else { return };
            let resume = results.has_worked(&member.slug);
            let revision = self.revise(member, plan, next, &rejection, &submission.now, resume).await;
            results.work.push(revision.clone());
            submission.now.clear();
            if revision.outcome == Outcome::Completed {
                submission.now.push(revision.clone());
                submission.all.push(revision);
            }
        }
    }

    /// An approval of the very content that was rejected does not count, and neither does one of changes that could not
    /// be seen.
    fn check_approval(&self, judged: &JudgedFiles, work: &[Work], results: &mut Results) {
        let unseen: Vec<&Slug> = work.iter().filter(|work| work.changed.is_none()).map(|work| &work.agent).collect();
        if !unseen.is_empty() {
            results.is_unapproved = true;
            self.complain(&format!("what {} changed could not be seen, so the approval does not count", list(unseen)));
        }
        let rejected: Vec<&String> = results.file_verdicts.rejected_among(judged).collect();
        if !rejected.is_empty() {
            let stands = if rejected.len() == 1 { "it was" } else { "they were" };
            let reason = format!("{} did not change since {stands} rejected, so the rejection stands", list(rejected));
            results.is_unapproved = true;
            self.complain(&reason);
        }
    }

    /// Asks the reviewers in order, until one of them does not approve. `None`: one did not give a verdict.
    async fn judge<'m>(
        &self,
        reviewers: &[&'m Member],
        plan: &Plan,
        position: Position,
        submission: &Submission,
        results: &mut Results,
    ) -> Option<(&'m Member, Review)> {
        let mut last = None;
        for reviewer in reviewers {
            let known = self.known(reviewer, position, submission, results).await;
            let review = match known {
                Some(review) => review,
                None => self.ask(reviewer, plan, position, submission, results).await,
            };
            let has_judged = review.work.outcome == Outcome::Completed;
            results.work.push(review.work.clone());
            if !has_judged {
                return None;
            }
            results.verdicts.push(review.verdict);
            results.file_verdicts.add(review.verdict, Some(&reviewer.slug), &review.judged);
            let goes_on = review.verdict == Verdict::Approved;
            last = Some((*reviewer, review));
            if !goes_on {
                break;
            }
        }
        last
    }

    /// One review. Records its verdict and lockouts.
    async fn ask(
        &self,
        reviewer: &Member,
        plan: &Plan,
        position: Position,
        submission: &Submission,
        results: &Results,
    ) -> Review {
        let workers = self.workers.at(position);
        let Submission { now, all, .. } = submission;
        let clones = self.used_clones().inspect(|clones| clones.join(&reviewer.slug));
        let others = self.changed_by_others().await;
        let changed = changed_by(all).chain(&others);
        let mut files: Vec<String> = changed.map(|change| change.path.clone()).collect();
        files.sort();
        files.dedup();
        let shown: Vec<String> = files.iter().take(FILES).cloned().collect();
        let (diff, aside) = match (clones, &workers.tree) {
            (Some(clones), _) => {
                let diff = clones.diff(&shown).await;
                (diff.inspect_err(|reason| self.complain(reason)).unwrap_or_default(), BTreeMap::new())
            }
            (None, Some(tree)) => {
                let commits = self.commits_aside(all);
                if all.iter().any(|work| work.git.has_more_commits()) {
                    self.complain("agents made more commits than the reviewer is shown");
                }
                let diff = self.readable(self.project.repository.diff_of_commits(&commits));
                (tree.diff(shown).await + &diff, self.contents_aside(&commits, all))
            }
            (None, None) => Default::default(),
        };
        let contents = self.contents(&files).await;
        let judged = JudgedFiles { files, contents, aside, ..JudgedFiles::default() };
        let unchanged: Vec<&String> = results.file_verdicts.rejected_among(&judged).collect();
        let directory = &*self.directory_of(&reviewer.slug);
        let shown = ReviewedWork {
            work: &reports_of(now),
            others: &others,
            unchanged: &unchanged,
            check: results.checked.check.as_ref().filter(|_| !all.is_empty()),
            diff: &diff,
        };
        let prompt = compile::review_prompt(&self.order.message, &shown, directory);
        let job = self.job(reviewer, plan.tier, prompt, WorkKind::Review, position.attempt > Some(1));
        let goes_on = self.past.interrupted(&reviewer.slug, position);
        let work = workers.work(Job { goes_on, ..job }).await;
        if work.outcome != Outcome::Completed {
            let (authors, reasons) = (authors_of(now, &[]), String::new());
            return Review { work, verdict: Verdict::Unclear, reasons, authors, judged };
        }
        self.conclude(reviewer, position, now, work, judged)
    }

    /// Reads a reviewer's verdict and records it.
    fn conclude(
        &self,
        reviewer: &Member,
        position: Position,
        now: &[Work],
        mut work: Work,
        judged: JudgedFiles,
    ) -> Review {
        let given = work.judgement();
        let verdict = match (&given, Verdict::read(&work.text)) {
            // The report contradicts the tool.
            (Some(judgement), Verdict::Rejected) if judgement.approved => Verdict::Unclear,
            (Some(judgement), _) if judgement.approved => Verdict::Approved,
            (Some(_), _) => Verdict::Rejected,
            (None, verdict) => verdict,
        };
        work.verdict = Some(verdict);
        let (reasons, named) = given.map_or((String::new(), Vec::new()), |given| (given.reasons, given.files));
        let reasons = if reasons.is_empty() { work.text.clone() } else { reasons };
        let is_rejected = verdict == Verdict::Rejected;
        let authors = authors_of(now, if is_rejected { &named } else { &[] });
        let rejected = is_rejected.then(|| rejected_files(&judged, now, &named)).flatten();
        let are_named = is_rejected && judged.paths().into_iter().any(|path| named.contains(path));
        let judged = JudgedFiles { rejected, are_named, ..judged };
        let event = EventKind::ReviewVerdict {
            verdict,
            authors: authors.clone(),
            judged: judged.clone(),
            text: reasons.clone(),
        };
        self.workers.at(position).reports.tell(Some(&reviewer.slug), event);
        if is_rejected {
            self.lock_out(reviewer, position, &authors, now);
        }
        Review { work, verdict, reasons, authors, judged }
    }

    /// Records lockouts in the ledger, where later runs find them.
    fn lock_out(&self, reviewer: &Member, position: Position, authors: &[Slug], work: &[Work]) {
        let known = self.past.locked_out(position);
        for author in authors.iter().filter(|author| !known.contains(author)) {
            let of_author = agents_changes(work).filter(|(_, authors)| authors.contains(&author));
            let mut files: BTreeSet<String> = of_author.map(|(change, _)| change.path.clone()).into_set();
            let committed = work.iter().filter(|work| work.agent == *author).flat_map(commits_of);
            files.extend(self.contents_aside(&self.aside(committed), work).into_keys());
            let lockout = EventKind::Lockout { reviewer: reviewer.slug.clone(), files: files.into_iter().collect() };
            self.workers.at(position).reports.tell(Some(author), lockout);
        }
    }

    /// Those of the work's commits that the checked-out branch does not have: the work tree does not show what they
    /// change.
    fn commits_aside(&self, work: &[Work]) -> BTreeSet<String> {
        self.aside(work.iter().flat_map(|work| commits_of(work).chain(&work.git.unknown.commits)))
    }

    fn aside<'c>(&self, commits: impl Iterator<Item = &'c String>) -> BTreeSet<String> {
        let mut commits: BTreeSet<String> = commits.cloned().into_set();
        let repository = &self.project.repository;
        let read = || match repository.head()?.commit {
            Some(head) if !commits.is_empty() => repository.merged(&commits, &head),
            _ => Ok(BTreeSet::new()),
        };
        let merged = self.readable(read());
        commits.retain(|commit| !merged.contains(commit));
        commits
    }

    /// What files hold on branches, and on refs that this work moved, that have these commits.
    fn contents_aside(&self, commits: &BTreeSet<String>, work: &[Work]) -> BTreeMap<String, BTreeSet<Content>> {
        let repository = &self.project.repository;
        let moved = work.iter().flat_map(|work| work.git.refs()).cloned().into_set();
        let read = || repository.contents_aside(commits, &moved, repository.head()?.commit.as_deref());
        if commits.is_empty() { BTreeMap::new() } else { self.readable(read()) }
    }

    /// Nothing, after a complaint, if it cannot be read.
    fn readable<T: Default>(&self, read: Result<T, Error>) -> T {
        read.unwrap_or_else(|error| {
            self.complain(&format!("what agents committed cannot be shown to the reviewer: {error}"));
            T::default()
        })
    }

    /// What is changed in the work tree and no agent's work.
    async fn changed_by_others(&self) -> Vec<Change> {
        match &self.workers.tree {
            Some(tree) if self.used_clones().is_none() => tree.of_others().await,
            _ => Vec::new(),
        }
    }

    /// What files hold, as far as known.
    async fn contents(&self, files: &[String]) -> BTreeMap<String, Content> {
        match (self.used_clones(), &self.workers.tree) {
            (Some(clones), _) => {
                let contents = clones.contents(files).await;
                contents.inspect_err(|reason| self.complain(reason)).unwrap_or_default()
            }
            (None, Some(tree)) => tree.contents(files.to_vec()).await,
            (None, None) => BTreeMap::new(),
        }
    }

    /// A review that was finished before the run was interrupted, if its verdict stands. What the reviewer said before
    /// that is added to the results.
    async fn known(
        &self,
        reviewer: &Member,
        position: Position,
        submission: &Submission,
        results: &mut Results,
    ) -> Option<Review> {
        let mut earlier = self.past.judged(&reviewer.slug, position);
        let standing = match earlier.last() {
            Some(last) if self.stands(last, position, submission).await => earlier.pop(),
            _ => None,
        };
        for Judged { verdict, judged, .. } in earlier {
            results.verdicts.push(verdict);
            results.file_verdicts.add(verdict, Some(&reviewer.slug), judged);
        }
        let Judged { verdict, authors, judged, text } = standing?;
        let end = self.past.completed(&reviewer.slug, position)?;
        let mut work = self.workers.at(position).recorded(&reviewer.slug, end.clone());
        work.verdict = Some(verdict);
        let locked: Vec<Slug> = self.past.locked_out(position).into_iter().cloned().collect();
        let is_locked = verdict == Verdict::Rejected && !locked.is_empty();
        let authors = if is_locked { locked } else { authors.to_vec() };
        if verdict == Verdict::Rejected {
            self.lock_out(reviewer, position, &authors, &submission.now);
        }
        Some(Review { work, verdict, reasons: text.to_owned(), authors, judged: judged.clone() })
    }

    /// Whether a verdict of an earlier process is still one on the work: the reviewer is asked again where it gave none,
    /// or where there is something else now, as a person may have corrected what was rejected.
    async fn stands(&self, last: &Judged<'_>, position: Position, submission: &Submission) -> bool {
        let Judged { verdict, judged, .. } = last;
        if *verdict == Verdict::Unclear {
            return false;
        }
        if self.past.goes_on_after(position, !submission.is_last) {
            return true;
        }
        let others = self.changed_by_others().await;
        let now = self.contents(&judged.files).await;
        let is_same = |(path, content): (&String, &Content)| now.get(path).is_none_or(|now| now == content);
        if self.contents_aside(&self.commits_aside(&submission.all), &submission.all) != judged.aside {
            return false;
        }
        let mut changed = changed_by(&submission.all).chain(&others);
        changed.all(|change| judged.files.contains(&change.path)) && judged.contents.iter().all(is_same)
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
        let answer = self.workers.requests.ask_person(&self.workers.reports, None, question, None).await?;
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
        if let Some(clones) = self.clones.filter(|clones| judged.iter().any(|work| clones.is_for(&work.agent))) {
            clones.join(&member.slug);
        }
        let prompt = compile::revision_prompt(
            &self.order.message,
            &reports_of(judged),
            rejection,
            &self.directory_of(&member.slug),
            self.run.as_str(),
        );
        let mut work =
            workers.work(Job { goes_on, ..self.job(member, plan.tier, prompt, WorkKind::Work, resume) }).await;
        self.collect(std::slice::from_ref(&member.slug), std::slice::from_mut(&mut work)).await;
        work
    }
}

/// The last step that changed files, or else the last step.
pub(super) fn step_of(done: &[Work]) -> u32 {
    let step = |work: &Work| work.position.step;
    let has_changed = |work: &&Work| work.changed.as_ref().is_none_or(|changed| !changed.is_empty());
    done.iter().filter(has_changed).filter_map(step).max().or_else(|| done.iter().filter_map(step).max()).unwrap_or(1)
}

fn changed_by(work: &[Work]) -> impl Iterator<Item = &Change> {
    work.iter().flat_map(|work| work.changed.iter().flatten())
}

/// The changes that agents made, each with its authors.
fn agents_changes(work: &[Work]) -> impl Iterator<Item = (&Change, Vec<&Slug>)> {
    work.iter().flat_map(|work| {
        let of_agents = work.changed.iter().flatten().filter(|change| change.class.is_of_agents());
        of_agents.map(|change| match &change.by[..] {
            [] => (change, vec![&work.agent]),
            several => (change, several.iter().collect()),
        })
    })
}

/// The commits that an agent made, alone or with others.
fn commits_of(work: &Work) -> impl Iterator<Item = &String> {
    let shared = work.git.together.iter().flat_map(|shared| &shared.changes.commits);
    work.git.own.commits.iter().chain(shared)
}

/// The authors of the named files, or of all the work if none of its files is named.
fn authors_of(work: &[Work], named: &[String]) -> Vec<Slug> {
    let of_named = agents_changes(work).filter(|(change, _)| named.contains(&change.path));
    let of_named = unique(of_named.flat_map(|(_, authors)| authors.into_iter().cloned()));
    if !of_named.is_empty() {
        return of_named;
    }
    let of_files = agents_changes(work).flat_map(|(_, authors)| authors.into_iter().cloned());
    unique(work.iter().map(|work| work.agent.clone()).chain(of_files))
}

/// The files that a rejection is about, if not all that were shown: the named ones, else those of agents.
fn rejected_files(judged: &JudgedFiles, work: &[Work], named: &[String]) -> Option<Vec<String>> {
    let shown = judged.paths();
    let of_named: Vec<String> = shown.iter().filter(|path| named.contains(path)).copied().cloned().collect();
    if !of_named.is_empty() {
        return Some(of_named);
    }
    let others: BTreeSet<&String> =
        changed_by(work).filter(|change| !change.class.is_of_agents()).map(|change| &change.path).into_set();
    let is_of_agents = |path: &&&String| !others.contains(*path) || judged.aside.contains_key(**path);
    let rejected: Vec<String> = shown.iter().filter(is_of_agents).copied().cloned().collect();
    (rejected.len() < shown.len()).then_some(rejected)
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
