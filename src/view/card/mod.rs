//! The end of a run on one card, made from its events, whether they come from the run or from the ledger.

mod changes;

pub(crate) use self::changes::lines_changed;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use self::changes::{ChangeSummary, FileCount};
use super::LineStyle;
use super::text::{Mark, Text};
use crate::model::{
    ChangeClass, ChangeEvidence, CheckRun, DecisionId, EventKind, IntoSet, Outcome, Plan, PlanKind, ProjectCheck,
    RunEnd, RunId, SandboxLevel, Slug, UndoState, Usage, Verdict, WorkReport, abbreviated, but, clock, first_line,
    list, plural, together,
};

/// Columns of the longest name and of what an agent changed; more is counted, not named.
pub(super) const MAX_NAME: usize = 12;
const MAX_CHANGE: usize = 44;
/// Below this width, files are only counted.
const NARROW: usize = 70;
/// Of a run whose agents have all completed.
const NOTHING_OPEN: &str = "goes on with it";
/// The most decisions that are named.
const DECISIONS: usize = 3;

/// Most hosts that a card names.
const SHOWN_HOSTS: usize = 4;

/// Collects what the card of a run says.
#[derive(Debug, Default)]
pub(crate) struct Card {
    run: Option<RunId>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    allows_all: bool,
    /// Its members were named, with their tasks: whoever did can name them again, and nothing is resumed.
    has_named_members: bool,
    plan: Option<Plan>,
    decisions: Vec<(DecisionId, String)>,
    landed: BTreeMap<DecisionId, String>,
    verdicts: BTreeMap<Slug, (Verdict, String)>,
    /// What bounded the agents' programs.
    sandboxes: BTreeSet<SandboxLevel>,
    /// The hosts that they were refused.
    refused_hosts: BTreeSet<String>,
    /// Commits of agents' own git, as refs.
    fetched: Vec<(Slug, String)>,
    /// When each agent's commands were completed, and when any agent last wrote a file, as counts of tool calls.
    commands: HashMap<(Slug, String), u64>,
    last_write: u64,
    calls: u64,
    /// Budgets that were used up.
    budgets: Vec<String>,
    /// Engines whose account's quota is used up.
    quotas: BTreeSet<String>,
    end: Option<RunEnd>,
    undone: UndoState,
    /// The agents that have worked in clones, which have something to merge.
    cloned: BTreeSet<Slug>,
    /// What was merged last, and whether that is all.
    merged: Option<(String, bool)>,
    /// Nothing is there for further commands.
    pub(crate) names_no_commands: bool,
}

impl Card {
    pub(crate) fn see(&mut self, at: Timestamp, run: Option<&RunId>, agent: Option<&Slug>, kind: &EventKind) {
        if self.run.is_none() {
            self.run = run.cloned();
        }
        match kind {
            EventKind::CloneCommitted { .. } => self.cloned.extend(agent.cloned()),
            EventKind::GitFetched { reference, .. } => {
                self.fetched.extend(agent.cloned().map(|agent| (agent, reference.clone())))
            }
            EventKind::RunUndone(undone) => {
                self.undone.add(undone);
                return;
            }
            EventKind::RunMerged { left, .. } => {
                self.merged = super::agent_line(kind).map(|(_, text)| (text, left.is_empty()));
                return;
            }
            EventKind::RunStarted { permissions, members, .. } => {
                self.allows_all = permissions.as_deref() == Some("allow");
                self.has_named_members = !members.is_empty();
            }
            EventKind::RunResumed { permissions, .. } => {
                self.allows_all = permissions == "allow";
                self.end = None;
                self.budgets.clear();
                self.quotas.clear();
            }
            EventKind::RoutePlanned(plan) => self.plan = Some(plan.clone()),
            EventKind::BudgetReached { budget, .. } => self.budgets.push(format!("budget.{budget}")),
            EventKind::QuotaOpened { engine, .. } => drop(self.quotas.insert(engine.clone())),
            EventKind::QuotaClosed { engine } => drop(self.quotas.remove(engine)),
            EventKind::DecisionLogged { decision, .. } => {
                self.decisions.push((decision.id.clone(), decision.title.clone()));
            }
            EventKind::DecisionLanded { decisions, branch, .. } => {
                self.landed.extend(decisions.iter().map(|id| (id.clone(), branch.clone())));
            }
            EventKind::ToolCompleted { detail, wrote, ok, .. } => {
                self.calls += 1;
                if wrote.is_some() && *ok {
                    self.last_write = self.calls;
                }
                if let Some(agent) = agent {
                    self.commands.insert((agent.clone(), detail.clone()), self.calls);
                }
            }
            EventKind::ReviewVerdict { verdict, text, .. } => {
                if let Some(reviewer) = agent {
                    self.verdicts.insert(reviewer.clone(), (*verdict, text.clone()));
                }
            }
            EventKind::RunCompleted(end) => self.end = Some(end.clone()),
            kind => {
                if let Some((_, end)) = kind.end().filter(|_| agent.is_some()) {
                    self.sandboxes.extend(end.sandbox);
                    self.refused_hosts.extend(end.hosts.refused.iter().cloned());
                }
            }
        }
        self.first = self.first.or(Some(at));
        self.last = self.last.max(Some(at));
    }

    /// Seconds that the run worked, without those in which it waited for a person.
    fn seconds(&self) -> u64 {
        let usage = self.end.as_ref().map(|end| &end.usage);
        match self.first.zip(self.last) {
            Some((first, last)) if usage.is_none_or(|usage| usage.seconds <= 0.0) => {
                last.as_second().saturating_sub(first.as_second()).max(0).unsigned_abs()
            }
            _ => usage.map_or(0, |usage| usage.worked() as u64),
        }
    }

    fn short(&self) -> &str {
        self.run.as_ref().map_or("", RunId::short)
    }

    /// Whether nobody worked but squad or the coordinator.
    fn is_answer(&self, end: &RunEnd) -> bool {
        let has_agents = self.plan.as_ref().is_some_and(|plan| plan.kind == PlanKind::Agents);
        !has_agents && end.work.iter().all(|work| work.step.is_none())
    }

    /// The lines of the card, for a screen of this width. Without an end, the run goes on or its end is not known here.
    pub(crate) fn lines(&self, columns: usize) -> Vec<Text> {
        let Some(end) = &self.end else { return Vec::new() };
        let changes = ChangeSummary::of(&end.work);
        let mut rows = Rows { is_narrow: columns < NARROW, ..Rows::default() };
        for agent in self.agents(end) {
            rows.push(self.agent_row(end, &changes, &agent, rows.is_narrow));
        }
        for (by, files) in &changes.together {
            let remark = format!("{} worked here at once", together(by));
            rows.push(Row::of_files("together", files, &remark, rows.is_narrow));
        }
        for (class, files) in &changes.others {
            let remark = class.of_others().unwrap_or_default();
            rows.push(Row::of_files(&class.to_string(), files, remark, rows.is_narrow));
        }
        for ((class, by), git) in &changes.git {
            let who = match class {
                ChangeClass::Own => list(by),
                ChangeClass::Together => format!("{class} ({})", together(by)),
                _ => class.to_string(),
            };
            rows.note("git", Text::default().plain(&format!("{who}: {git}")));
        }
        for (agent, reference) in &self.fetched {
            rows.note("git", Text::default().plain(&format!("{agent}: a commit is kept as {reference}")));
        }
        match &end.check {
            Some(check) => Self::project_check(end, check).into_iter().for_each(|text| rows.note("checked", text)),
            None => self.check_row(end, &changes).into_iter().for_each(|text| rows.note("checked", text)),
        }
        self.decision_rows().into_iter().for_each(|text| rows.note("decision", text));
        if let Some(used) = used(&end.usage) {
            rows.note("used", Text::default().plain(&used));
        }
        Self::uncounted_row(end).into_iter().for_each(|text| rows.note("budget", text));
        if let Some(forecast) = &end.forecast {
            rows.note("forecast", Text::default().plain(&forecast.against(&end.usage)));
        }
        // At level `rules` nothing bounds them, which is no remark to make of each run.
        for level in self.sandboxes.iter().filter(|level| **level != SandboxLevel::Rules) {
            let text = format!("{level}: only the project, temporary files and caches could be written");
            rows.note("sandbox", Text::default().plain(&text));
        }
        if !self.refused_hosts.is_empty() {
            let more = self.refused_hosts.len().saturating_sub(SHOWN_HOSTS);
            let more = (more > 0).then(|| format!("{more} more"));
            let shown = list(self.refused_hosts.iter().take(SHOWN_HOSTS).cloned().chain(more));
            rows.note("network", Text::default().plain(&format!("{shown} not reached; `sandbox.hosts` lists hosts")));
        }
        if let Some((merged, _)) = &self.merged {
            rows.note("merged", Text::default().plain(merged.strip_prefix("merged ").unwrap_or(merged)));
        }
        if self.undone.has(None) {
            let but = but(self.undone.left_of(None));
            rows.note("undone", Text::default().plain(&format!("all that it changed was taken back{but}")));
        }
        let next = if self.names_no_commands { Vec::new() } else { self.next(end, &changes) };
        next.into_iter().for_each(|(command, why)| rows.next(&command, &why));
        std::iter::once(self.head(end)).chain(rows.lines()).collect()
    }

    fn head(&self, end: &RunEnd) -> Text {
        let (mark, style) = mark_of(end.status);
        let (time, run) = (clock(self.seconds()), self.short());
        let head = Text::marked(style, mark).with(style, &end.status.to_string());
        let why = self.why(end);
        if end.status == Outcome::Completed {
            let after = match end.rejections {
                0 => String::new(),
                count => format!(" after {}", plural(count as usize, "rejection")),
            };
            let waited = match end.usage.waited as u64 {
                0 => String::new(),
                waited => format!(", and {} waiting for you", clock(waited)),
            };
            return head.plain(&format!("{after} in {time}{waited}; run ")).with(LineStyle::Faint, run);
        }
        let why = if why.is_empty() { why } else { format!(": {why}") };
        head.plain(&format!("{why}; run ")).with(LineStyle::Faint, run).plain(&format!(", {time}"))
    }

    /// Why a run did not complete.
    fn why(&self, end: &RunEnd) -> String {
        if let Some(error) = &end.error {
            return first_line(&error.message, 200);
        }
        let rejected = self.verdicts.iter().rfind(|(_, (verdict, _))| *verdict == Verdict::Rejected);
        if let Some((reviewer, (_, text))) = rejected.filter(|_| end.rejections > 0 && end.status == Outcome::Failed) {
            let times = match end.rejections {
                1 => String::new(),
                2 => "twice ".to_owned(),
                count => format!("{count} times "),
            };
            let reasons = reasons(text);
            let reasons = if reasons.is_empty() { reasons } else { format!(": {reasons}") };
            return format!("rejected {times}by {reviewer}{}", reasons.trim_end_matches('.'));
        }
        // A run whose agent lost its machine has failed.
        let is_cause = |status| status == end.status || (status == Outcome::Lost && end.status == Outcome::Failed);
        let mut causes = end.work.iter().filter(|work| is_cause(work.status));
        let Some(first) = causes.next() else {
            if let Some((reviewer, Verdict::Unclear)) = self.unapproved(end) {
                return format!("{reviewer} gave no clear verdict");
            }
            return match (&end.check, end.status) {
                (_, Outcome::Failed) if end.rejections > 0 => "what was rejected is unchanged".to_owned(),
                (_, Outcome::Cancelled) => "interrupted during the check".to_owned(),
                (Some(check), Outcome::Failed) if !check.passed => {
                    format!("the check {} {}", first_line(&check.command, 80), first_line(&check.result(), 120))
                }
                _ => String::new(),
            };
        };
        let others: BTreeSet<&Slug> = causes.map(|work| &work.agent).filter(|agent| **agent != first.agent).into_set();
        let more = if others.is_empty() { String::new() } else { format!(", and so did {}", list(others)) };
        match end.status {
            Outcome::Claimed => {
                format!("{} says it is done, but used no tool and changed nothing{more}", first.agent)
            }
            // Each says who cancelled it.
            Outcome::Cancelled => first_line(&first.reason, 120),
            _ => format!("{}: {}{more}", first.agent, first_line(&first.reason, 160)),
        }
    }

    /// In the order of the plan, then of their work.
    fn agents(&self, end: &RunEnd) -> Vec<Slug> {
        let planned = self.plan.iter().flat_map(Plan::at_work);
        let worked = end.work.iter().filter(|work| work.step.is_some() || work.status != Outcome::Completed);
        let mut agents: Vec<Slug> = Vec::new();
        for agent in planned.chain(worked.map(|work| work.agent.clone())) {
            if !agents.contains(&agent) && end.work.iter().any(|work| work.agent == agent) {
                agents.push(agent);
            }
        }
        agents
    }

    fn agent_row(&self, end: &RunEnd, changes: &ChangeSummary, agent: &Slug, is_narrow: bool) -> Row {
        let work: Vec<&WorkReport> = end.work.iter().filter(|work| work.agent == *agent).collect();
        let last = work.last();
        let status = end.agents.get(agent).copied().or_else(|| last.map(|work| work.status));
        let status = status.unwrap_or(Outcome::Skipped);
        let (mut style, mut word) = (mark_of(status).1, status.to_string());
        if status == Outcome::Completed
            && let Some((verdict, _)) = self.verdicts.get(agent)
        {
            (style, word) = verdict_word(*verdict);
        }
        let reason = last.map(|work| first_line(&work.reason, 160)).unwrap_or_default();
        let files = changes.own.iter().find(|(known, _)| known == agent).map(|(_, files)| files);
        let files = files.filter(|files| !files.paths.is_empty());
        let change = match files {
            Some(files) => Some(change_text(files, is_narrow)),
            None if status == Outcome::Skipped => None,
            None if changes.unseen.contains(agent) => Some(Text::default().plain("changes unseen")),
            None if changes.has_shared(agent) => Some(Text::default().plain("see below")),
            None if changes.git.contains_key(&(ChangeClass::Own, vec![agent.clone()])) => {
                Some(Text::default().plain("git only"))
            }
            None => Some(Text::default().plain("no change")),
        };
        let sum = |count: fn(&WorkReport) -> u64| work.iter().map(|work| count(work)).sum::<u64>();
        let (passed, failed) = (sum(|work| work.commands.passed), sum(|work| work.commands.failed));
        let refused = sum(|work| work.refused);
        let mut remarks = Vec::new();
        match (passed, failed) {
            (0, 0) => {}
            (0, failed) => remarks.push(format!("{} failed", plural(failed as usize, "command"))),
            (passed, 0) => remarks.push(format!("{} passed", plural(passed as usize, "command"))),
            (passed, failed) => {
                remarks.push(format!("{} passed, {failed} failed", plural(passed as usize, "command")));
            }
        }
        if refused > 0 {
            remarks.push(format!("{refused} refused"));
        }
        let has_changed = files.is_some();
        if last.is_some_and(|work| work.no_tool_used) && status != Outcome::Claimed {
            remarks.push("no tool used".to_owned());
        }
        match status {
            Outcome::Completed | Outcome::Claimed => {}
            Outcome::Lost if has_changed && end.status == Outcome::Lost => {
                remarks.push("it is on disk; its last command may be half done".to_owned());
            }
            Outcome::Skipped => remarks.push(reason),
            Outcome::Lost if !has_changed => remarks.push(reason),
            _ if has_changed && self.cloned.contains(agent) => remarks.push("stays in its clone".to_owned()),
            _ if has_changed => remarks.push("stays in your work tree".to_owned()),
            // The first line of the card has the reason of one.
            _ if !reason.is_empty() && !self.why(end).contains(&reason) => remarks.push(reason),
            _ => {}
        }
        remarks.retain(|remark| !remark.is_empty());
        Row { name: agent.to_string(), word: (style, word), change, remark: remarks.join(", ") }
    }

    /// What squad's own check found, and what else there is to know of it.
    fn project_check(end: &RunEnd, check: &ProjectCheck) -> Vec<Text> {
        let is_changed = |work: &&WorkReport| work.changed.iter().flatten().any(|it| it.class.is_of_agents());
        let sees_all = end.work.iter().filter(is_changed).all(|work| work.verified.is_some());
        let result = first_line(&check.result(), 120);
        let (word, rest) = result.split_at(if check.passed { result.len() } else { "failed".len() });
        let style = if check.passed { LineStyle::Good } else { LineStyle::Bad };
        let line = Text::default().plain(&first_line(&check.command, 80)).plain(" ").with(style, word).plain(rest);
        let line = line.plain(if sees_all { " after the last change" } else { "" });
        let remarks = check.remarks().into_iter().map(|text| Text::default().with(LineStyle::Warning, &text));
        std::iter::once(line).chain(remarks).collect()
    }

    /// The last check of any agent, and whether it saw the last change.
    fn check_row(&self, end: &RunEnd, changes: &ChangeSummary) -> Option<Text> {
        let last = end.work.iter().filter_map(|work| work.check.as_ref().map(|check| (work, check)));
        let place =
            |agent: &Slug, check: &CheckRun| self.commands.get(&(agent.clone(), check.command.clone())).copied();
        let last = last.max_by_key(|(work, check)| (work.step, work.attempt, place(&work.agent, check)));
        let unverified = || {
            let text = Text::default().with(LineStyle::Warning, "unverified");
            text.plain(": no check ran after the last change")
        };
        let Some((work, check)) = last else { return changes.is_any_of_agents().then(unverified) };
        let command = first_line(&check.command, 80);
        if !check.passed {
            let code = check.exit_code.map(|code| format!(", exit {code}")).unwrap_or_default();
            return Some(Text::default().plain(&command).plain(" ").with(LineStyle::Bad, "failed").plain(&code));
        }
        let at = place(&work.agent, check);
        if at.is_some_and(|at| at < self.last_write) {
            return Some(unverified());
        }
        // A command's changes have no place among the calls.
        let by_command =
            |work: &WorkReport| work.changed.iter().flatten().any(|change| change.how != Some(ChangeEvidence::Named));
        let is_after = at.is_some() && changes.is_any_of_agents() && !end.work.iter().any(by_command);
        let after = if is_after { " after the last change" } else { "" };
        Some(Text::default().plain(&command).plain(" ").with(LineStyle::Good, "passed").plain(after))
    }

    /// The budgets that did not bound all agents.
    fn uncounted_row(end: &RunEnd) -> Option<Text> {
        let work: Vec<&WorkReport> = end.work.iter().filter(|work| !work.uncounted.is_empty()).collect();
        let names: BTreeSet<&String> = work.iter().flat_map(|work| &work.uncounted).into_set();
        let agents: BTreeSet<&Slug> = work.iter().map(|work| &work.agent).into_set();
        let text = format!(
            "{} did not hold for {}: its engine does not tell it",
            list(names.iter().map(|name| format!("`{name}`"))),
            list(&agents)
        );
        (!names.is_empty()).then(|| Text::default().with(LineStyle::Warning, &text))
    }

    fn decision_rows(&self) -> Vec<Text> {
        let row = |id: &DecisionId, rest: &str| Text::default().with(LineStyle::Faint, id.short()).plain(rest);
        let own = self.decisions.iter().map(|(id, title)| match self.landed.get(id) {
            Some(branch) => row(id, &format!(" landed on {branch}: {}", first_line(title, 200))),
            None => row(id, &format!(" is not on the branch yet: {}", first_line(title, 200))),
        });
        let is_earlier = |(id, _): &(&DecisionId, &String)| self.decisions.iter().all(|(own, _)| own != *id);
        let earlier = self.landed.iter().filter(is_earlier);
        let earlier = earlier.map(|(id, branch)| row(id, &format!(" of an earlier run landed on {branch}")));
        let mut rows: Vec<Text> = own.chain(earlier).collect();
        let more = rows.len().saturating_sub(DECISIONS);
        rows.truncate(DECISIONS);
        rows.extend((more > 0).then(|| Text::default().plain(&format!("and {more} more: squad decisions list"))));
        rows
    }

    /// What to type next, and why.
    fn next(&self, end: &RunEnd, changes: &ChangeSummary) -> Vec<(String, String)> {
        let id = self.short();
        let log = (format!("squad log {id}"), "what happened".to_owned());
        let is_any = changes.is_any_of_agents() && !self.undone.has(None);
        let diff = is_any.then(|| (format!("squad diff {id}"), "what it changed".to_owned()));
        let merge = (format!("squad merge {id}"), "bring it to your branch".to_owned());
        // `merge` takes the work of those who completed it.
        let has_completed = end.agents.values().any(|outcome| *outcome == Outcome::Completed);
        let is_cloned = !self.cloned.is_empty();
        let is_rejected = self.unapproved(end).is_some_and(|(_, verdict)| verdict == Verdict::Rejected);
        let is_merged = self.merged.as_ref().is_some_and(|(_, is_all)| *is_all);
        let merge = (is_any && has_completed && !is_rejected && !is_merged).then_some(merge);
        let undo = match is_cloned {
            true => merge.clone(),
            false => is_any.then(|| (format!("squad undo {id}"), "take it back".to_owned())),
        };
        let resume = |options: &str| (format!("squad orchestrate --resume {id}{options}"), self.rest(end));
        match end.status {
            Outcome::Completed if is_any && is_cloned => diff.into_iter().chain(merge).collect(),
            Outcome::Completed if is_any => vec![
                match changes.has_commits() {
                    true => (format!("squad diff {id}"), "what it changed, committed or not".to_owned()),
                    false => (format!("squad diff {id}"), "the files are yours to commit".to_owned()),
                },
                (format!("squad undo {id}"), "take them back".to_owned()),
            ],
            Outcome::Completed if self.is_answer(end) => Vec::new(),
            Outcome::Completed => vec![log],
            _ if self.has_named_members => [diff.or(Some(log)), undo].into_iter().flatten().collect(),
            _ if end.stuck => {
                let lift = (format!("squad review lift {id}"), "lets its authors revise it, in a new run".to_owned());
                [Some(lift), Some(resume("")), diff, undo].into_iter().flatten().collect()
            }
            Outcome::Stopped if !self.budgets.is_empty() => {
                let budgets: BTreeSet<&String> = self.budgets.iter().into_set();
                vec![(resume("").0, format!("after a higher {}", list(budgets))), log]
            }
            Outcome::Stopped if !self.quotas.is_empty() => {
                vec![(resume(" --wait").0, "sleeps until the quota is there again".to_owned()), log]
            }
            Outcome::Stopped if self.allows_all => vec![log],
            Outcome::Stopped => vec![resume(" --permissions allow"), log],
            Outcome::Skipped => vec![log],
            // Nobody has anything left to do.
            Outcome::Failed if self.rest(end) == NOTHING_OPEN && end.check.is_some() => {
                let log = (log.0, "what the check printed".to_owned());
                [Some(log), diff, undo].into_iter().flatten().collect()
            }
            _ => [Some(resume("")), diff.or(Some(log)), undo].into_iter().flatten().collect(),
        }
    }

    /// The reviewer that has not approved what there is in the end, and its verdict.
    fn unapproved(&self, end: &RunEnd) -> Option<(&Slug, Verdict)> {
        let mut verdicts = self.verdicts.iter().map(|(reviewer, (verdict, _))| (reviewer, *verdict));
        verdicts.rfind(|(_, verdict)| *verdict != Verdict::Approved && end.status == Outcome::Failed)
    }

    /// Whom a resumed run goes on with.
    fn rest(&self, end: &RunEnd) -> String {
        match self.unapproved(end) {
            Some((reviewer, Verdict::Rejected)) => {
                return format!("{reviewer} judges it again, once you have corrected it");
            }
            Some((reviewer, _)) => return format!("asks {reviewer} again"),
            None => {}
        }
        let is_open = |agent: &Slug| end.agents.get(agent).is_some_and(|status| *status != Outcome::Completed);
        let open: Vec<Slug> = self.agents(end).into_iter().filter(is_open).collect();
        if open.is_empty() { NOTHING_OPEN.to_owned() } else { format!("goes on with {}", list(open)) }
    }
}

/// The first line of a reviewer's text that says something.
pub(super) fn reasons(text: &str) -> String {
    let is_said = |line: &&str| Verdict::read(line) == Verdict::Unclear && !line.trim().is_empty();
    first_line(text.lines().find(is_said).unwrap_or_default(), 160)
}

pub(crate) fn mark_of(outcome: Outcome) -> (Mark, LineStyle) {
    match outcome {
        Outcome::Completed => (Mark::Good, LineStyle::Good),
        Outcome::Stopped => (Mark::Attention, LineStyle::Warning),
        Outcome::Cancelled | Outcome::Skipped => (Mark::Neutral, LineStyle::Faint),
        Outcome::Claimed | Outcome::Failed | Outcome::TimedOut | Outcome::Lost => (Mark::Bad, LineStyle::Bad),
    }
}

fn verdict_word(verdict: Verdict) -> (LineStyle, String) {
    match verdict {
        Verdict::Approved => (LineStyle::Good, "approved".to_owned()),
        Verdict::Rejected => (LineStyle::Bad, "rejected".to_owned()),
        Verdict::Unclear => (LineStyle::Warning, "no verdict".to_owned()),
    }
}

/// `+3 -1`
pub(crate) fn counted(added: u64, removed: u64) -> Text {
    let added = Text::default().with(LineStyle::Good, &format!("+{added}"));
    added.plain(" ").with(LineStyle::Bad, &format!("-{removed}"))
}

fn change_text(files: &FileCount, is_narrow: bool) -> Text {
    let lines = match (files.added, files.removed) {
        // Not known, or of what has no lines.
        (0, 0) => Text::default(),
        (added, removed) => Text::default().plain(" ").extend(&counted(added, removed)),
    };
    let names = files.paths.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let named = Text::default().plain(&names).extend(&lines);
    if !is_narrow && (files.paths.len() == 1 || named.width() <= MAX_CHANGE) {
        return named;
    }
    Text::default().plain(&plural(files.paths.len(), "file")).extend(&lines)
}

/// `61.2k tokens in (48.0k cached), 9.4k out, $0.41`
pub(crate) fn used(usage: &Usage) -> Option<String> {
    let mut parts = Vec::new();
    if usage.input_tokens + usage.output_tokens > 0 {
        let cached = match usage.cache_read_tokens {
            0 => String::new(),
            cached => format!(" ({} cached)", abbreviated(cached)),
        };
        parts.push(format!("{} tokens in{cached}", abbreviated(usage.input_tokens)));
        parts.push(format!("{} out", abbreviated(usage.output_tokens)));
    }
    parts.extend(usage.billed.iter().map(|billed| format!("{} {}", billed.amount, billed.unit.replace('_', " "))));
    parts.extend(usage.cost_usd.map(|cost| format!("${cost:.2}")));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// An agent, or what nobody did alone.
struct Row {
    name: String,
    word: (LineStyle, String),
    change: Option<Text>,
    remark: String,
}

impl Row {
    fn of_files(name: &str, files: &FileCount, remark: &str, is_narrow: bool) -> Self {
        let (word, change) = ((LineStyle::Plain, String::new()), Some(change_text(files, is_narrow)));
        Self { name: name.to_owned(), word, change, remark: remark.to_owned() }
    }
}

/// The rows below the first line, in columns.
#[derive(Default)]
struct Rows {
    is_narrow: bool,
    rows: Vec<Row>,
    notes: Vec<(&'static str, Text)>,
    next: Vec<(String, String)>,
}

impl Rows {
    fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    fn note(&mut self, label: &'static str, text: Text) {
        self.notes.push((label, text));
    }

    fn next(&mut self, command: &str, why: &str) {
        self.next.push((command.to_owned(), why.to_owned()));
    }

    fn lines(self) -> Vec<Text> {
        let gap = if self.is_narrow { 2 } else { 3 };
        let labels = self.notes.iter().map(|(label, _)| label.len()).chain(self.next.first().map(|_| "next".len()));
        let names = self.rows.iter().map(|row| row.name.chars().count()).chain(labels).max().unwrap_or_default();
        let text_at = 2 + names.min(MAX_NAME) + gap;
        let words = self.rows.iter().map(|row| row.word.1.len()).max().unwrap_or_default();
        let widest = |row: &Row| row.change.as_ref().filter(|_| !row.remark.is_empty()).map(Text::width);
        let changes = self.rows.iter().filter_map(widest).max().unwrap_or_default();
        let change_at = text_at + if words == 0 { 0 } else { words + gap };
        let remark_at = change_at + changes + gap;
        let mut lines = Vec::new();
        for row in &self.rows {
            let mut line = start(&row.name, text_at).with(row.word.0, &row.word.1);
            if let Some(change) = &row.change {
                line = line.filled(change_at).extend(change);
                if !row.remark.is_empty() {
                    line = line.filled(remark_at).plain(&row.remark);
                }
            } else if !row.remark.is_empty() {
                line = line.filled(change_at).plain(&row.remark);
            }
            lines.push(line);
        }
        let mut before = "";
        for (label, text) in &self.notes {
            let shown = if *label == before { "" } else { label };
            lines.push(start(shown, text_at).extend(text));
            before = label;
        }
        let commands = self.next.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
        for (index, (command, why)) in self.next.iter().enumerate() {
            let label = if index == 0 { "next" } else { "" };
            let line = start(label, text_at).with(LineStyle::Strong, command);
            lines.push(line.filled(text_at + commands + gap).with(LineStyle::Faint, why));
        }
        lines
    }
}

/// A name, and the text's column. A name that is too long pushes its text away.
fn start(name: &str, text_at: usize) -> Text {
    let line = Text::unmarked().plain(name);
    let line = if line.width() < text_at { line.filled(text_at) } else { line.plain("  ") };
    line.hanging()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AgentGitChanges, Change, CommandCounts, End, GitChanges, RefChange, SkippedFile, Undone};

    fn slug(name: &str) -> Slug {
        Slug::fold(name).expect("a slug")
    }

    fn change(path: &str, class: ChangeClass, by: &[&str]) -> Change {
        let by = by.iter().map(|name| slug(name)).collect();
        let how = Some(ChangeEvidence::Named);
        Change { path: path.to_owned(), added: Some(2), removed: Some(1), class, by, how, ..Change::default() }
    }

    fn work(agent: &str, changed: Vec<Change>, own: GitChanges) -> WorkReport {
        let end = End { changed: Some(changed), git: AgentGitChanges { own, ..Default::default() }, ..End::default() };
        WorkReport::of(slug(agent), (Some(1), Some(1)), Outcome::Completed, end)
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_603_600 + second).expect("a time")
    }

    fn see(card: &mut Card, at: i64, agent: Option<&str>, kind: &EventKind) {
        let run = RunId::new("20260105-090000-602796");
        card.see(second(at), Some(&run), agent.map(slug).as_ref(), kind);
    }

    fn ends(status: Outcome, work: &[WorkReport]) -> EventKind {
        EventKind::RunCompleted(RunEnd::of(status, work.to_vec(), 161.0))
    }

    fn lines(card: &Card, columns: usize) -> Vec<String> {
        card.lines(columns).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    fn shown(status: Outcome, work: &[WorkReport]) -> Vec<String> {
        let mut card = Card::default();
        see(&mut card, 0, None, &ends(status, work));
        lines(&card, 100)
    }

    fn starting(lines: &[String], label: &str) -> Option<String> {
        let rest = |line: &String| Some(line.trim_start().strip_prefix(label)?.trim().to_owned());
        lines.iter().find_map(rest)
    }

    /// Own, shared, git's and others' changes: who changed nothing.
    #[test]
    fn who_changed_anything_did_not_change_nothing() {
        let hooks = GitChanges { hooks: vec!["pre-commit".to_owned()], ..GitChanges::default() };
        let none = GitChanges::default();
        for (changed, git, said) in [
            (vec![], &none, "no change"),
            (vec![], &hooks, "git only"),
            (vec![change("a", ChangeClass::Own, &["ada"])], &none, "a +2 -1"),
            (vec![change("a", ChangeClass::Together, &["ada", "bob"])], &none, "see below"),
            (vec![change("a", ChangeClass::Yours, &[])], &none, "no change"),
            (vec![change("a", ChangeClass::Yours, &[])], &hooks, "git only"),
        ] {
            let lines = shown(Outcome::Completed, &[work("ada", changed, git.clone())]);
            assert_eq!(starting(&lines, "ada").expect("a row"), format!("completed   {said}"), "{lines:?}");
        }
    }

    /// Each class × two agents in one step, and one after the other: only those who worked side by side report the same
    /// change.
    #[test]
    fn a_file_that_changed_in_two_steps_changed_twice() {
        let (yours, other) = (ChangeClass::Yours, ChangeClass::OtherRun);
        for class in [ChangeClass::Together, yours, other, ChangeClass::Unknown] {
            let by: &[&str] = if class == ChangeClass::Together { &["ada", "bob"] } else { &[] };
            let report = |agent, step| {
                let work = work(agent, vec![change("a", class, by)], GitChanges::default());
                WorkReport { step: Some(step), ..work }
            };
            for (step, counted) in [(1, "a +2 -1"), (2, "a +4 -2")] {
                let lines = shown(Outcome::Completed, &[report("ada", 1), report("bob", step)]);
                let row = starting(&lines, &class.to_string()).expect("a row");
                assert!(row.starts_with(counted), "step {step}: {lines:?}");
            }
        }
    }

    #[test]
    fn each_change_is_counted_once_and_for_who_made_it() {
        let shared = || {
            vec![
                change("both", ChangeClass::Together, &["ada", "bob"]),
                change("mine", ChangeClass::Yours, &[]),
                change("theirs", ChangeClass::OtherRun, &[]),
                change("down", ChangeClass::Unknown, &[]),
            ]
        };
        let of_ada = [vec![change("a", ChangeClass::Own, &["ada"])], shared()].concat();
        let main = RefChange { name: "refs/heads/main".to_owned(), from: None, to: Some("c".repeat(40)) };
        let tag = RefChange { name: "refs/tags/v1".to_owned(), from: None, to: Some("d".repeat(40)) };
        let git = GitChanges {
            commits: vec!["c".repeat(40)],
            has_more_commits: false,
            refs: vec![main, tag],
            config: vec!["core.hooksPath".to_owned()],
            hooks: vec!["pre-commit".to_owned()],
            index: vec!["x".to_owned()],
        };
        let reports = [work("ada", of_ada, GitChanges::default()), work("bob", shared(), git)];
        let eve = work("eve", vec![change("mine", ChangeClass::Yours, &[])], GitChanges::default());
        let reports = [&reports[..], &[eve]].concat();
        assert_eq!(
            shown(Outcome::Completed, &reports).join("\n"),
            "\
✓ completed in 2:41; run 602796
  ada         completed   a +2 -1
  bob         completed   see below
  eve         completed   no change
  together                both +2 -1     ada and bob worked here at once
  yours                   mine +2 -1     changed by you or another program
  other run               theirs +2 -1   changed by or beside another run
  unknown                 down +2 -1     changed while the run was down
  git         bob: 1 commit (ccccccc), branch main created and tag v1 created, configuration core.hooksPath, hooks pre-commit, 1 \
             path staged or unstaged
  checked     unverified: no check ran after the last change
  next        squad diff 602796   what it changed, committed or not
              squad undo 602796   take them back"
        );
    }

    fn tool(detail: &str, wrote: bool) -> EventKind {
        let wrote = wrote.then(|| crate::model::Written { path: detail.to_owned(), ..Default::default() });
        let (call, tool, result) = Default::default();
        EventKind::ToolCompleted {
            call,
            tool,
            ok: true,
            exit_code: Some(0),
            seconds: 1.0,
            detail: detail.to_owned(),
            result,
            wrote,
        }
    }

    /// The last check of all counts, and whether it saw the last write.
    #[test]
    fn a_check_counts_if_it_saw_the_last_change() {
        let test = "make test";
        let check = |passed| Some(CheckRun { command: test.to_owned(), passed, exit_code: Some(i64::from(!passed)) });
        for (calls, check, said) in [
            (vec![("a", true), (test, false)], check(true), "make test passed after the last change"),
            (vec![(test, false), ("a", true)], check(true), "unverified: no check ran after the last change"),
            (vec![("a", true), (test, false)], check(false), "make test failed, exit 1"),
            (vec![("a", true), ("ls", false)], None, "unverified: no check ran after the last change"),
            (vec![("a", true)], None, "unverified: no check ran after the last change"),
            // The engine does not report it as it was recorded.
            (vec![("a", true)], check(true), "make test passed"),
        ] {
            let mut card = Card::default();
            for (detail, wrote) in calls {
                see(&mut card, 0, Some("ada"), &tool(detail, wrote));
            }
            let mut report = work("ada", vec![change("a", ChangeClass::Own, &["ada"])], GitChanges::default());
            report.check = check;
            see(&mut card, 1, None, &ends(Outcome::Completed, &[report]));
            assert_eq!(starting(&lines(&card, 100), "checked").as_deref(), Some(said));
        }
        let idle = shown(Outcome::Completed, &[work("ada", Vec::new(), GitChanges::default())]);
        assert_eq!(starting(&idle, "checked"), None);
    }

    /// Two agents that wait at the same time wait once, and an agent that is gone waits no more.
    #[test]
    fn the_persons_time_is_not_the_teams() {
        let mut end = ends(Outcome::Completed, &[]);
        if let EventKind::RunCompleted(end) = &mut end {
            end.usage.waited = 12.0;
        }
        let mut card = Card::default();
        see(&mut card, 30, None, &end);
        assert_eq!(lines(&card, 100)[0], "✓ completed in 2:29, and 0:12 waiting for you; run 602796");
    }

    #[test]
    fn a_bad_end_says_why_first_and_what_to_type() {
        let failed = |agent: &str, status, reason: &str| {
            let changed = vec![change("app/cart.py", ChangeClass::Own, &[agent])];
            WorkReport { status, reason: reason.to_owned(), ..work(agent, changed, GitChanges::default()) }
        };
        let skipped = WorkReport { changed: Some(Vec::new()), ..failed("rex", Outcome::Skipped, "ada failed") };
        let first = failed("ada", Outcome::Failed, "the model is overloaded");
        assert_eq!(
            shown(Outcome::Failed, &[first, skipped]).join("\n"),
            "\
✗ failed: ada: the model is overloaded; run 602796, 2:41
  ada       failed    app/cart.py +2 -1   stays in your work tree
  rex       skipped   ada failed
  checked   unverified: no check ran after the last change
  next      squad orchestrate --resume 602796   goes on with ada and rex
            squad diff 602796                   what it changed
            squad undo 602796                   take it back"
        );
        for (outcome, first) in [
            (
                Outcome::Claimed,
                "✗ claimed: ada says it is done, but used no tool and changed nothing; run 602796, 2:41",
            ),
            (Outcome::Lost, "✗ lost: ada: why; run 602796, 2:41"),
            (Outcome::Cancelled, "- cancelled: why; run 602796, 2:41"),
            (Outcome::Stopped, "! stopped: ada: why; run 602796, 2:41"),
            (Outcome::TimedOut, "✗ timed out: ada: why; run 602796, 2:41"),
        ] {
            assert_eq!(shown(outcome, &[failed("ada", outcome, "why")])[0], first);
        }
        // Its machine is gone, and not the run's process.
        let lost = shown(Outcome::Failed, &[failed("ada", Outcome::Lost, "one is gone")]);
        assert_eq!(lost[0], "✗ failed: ada: one is gone; run 602796, 2:41");
        assert_eq!(lost[1], "  ada       lost   app/cart.py +2 -1   stays in your work tree");
    }

    /// What is undone is not offered for it again; what was brought back is.
    #[test]
    fn an_undone_run_is_not_to_be_undone() {
        let undo = |redo| {
            let (rescue, commit, left) = (None, None, Vec::<SkippedFile>::new());
            EventKind::RunUndone(Undone { only: None, redo, files: vec!["a".to_owned()], left, rescue, commit })
        };
        let mut card = Card::default();
        let report = work("ada", vec![change("a", ChangeClass::Own, &["ada"])], GitChanges::default());
        see(&mut card, 0, None, &ends(Outcome::Completed, &[report]));
        see(&mut card, 9, None, &undo(false));
        let undone = lines(&card, 100);
        assert_eq!(starting(&undone, "undone").as_deref(), Some("all that it changed was taken back"));
        assert!(!undone.iter().any(|line| line.contains("squad undo")), "{undone:?}");
        see(&mut card, 10, None, &undo(true));
        assert!(lines(&card, 100).iter().any(|line| line.contains("squad undo")));
    }

    /// On a narrow screen, files are counted, and no line but a command's is wider.
    #[test]
    fn a_narrow_card_counts_files() {
        let path = "a/very/long/path/to/a/file/with/a/long/name.rs";
        let mut card = Card::default();
        let report = work("ada", vec![change(path, ChangeClass::Own, &["ada"])], GitChanges::default());
        let commands = CommandCounts { passed: 3, failed: 1 };
        see(&mut card, 0, None, &ends(Outcome::Completed, &[WorkReport { commands, refused: 2, ..report }]));
        let narrow: Vec<String> =
            card.lines(60).iter().flat_map(|line| line.wrapped(60)).map(|line| line.to_string()).collect();
        assert_eq!(narrow[1].trim_end(), "  ada      completed  1 file +2 -1  3 commands passed, 1");
        assert!(narrow.iter().all(|line| line.trim_end().chars().count() <= 60), "{narrow:?}");
    }
}
