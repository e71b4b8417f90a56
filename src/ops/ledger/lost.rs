//! Runs whose processes died: the next command that writes in this clone, or is asked about them, records their end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::compile::{PastCalls, unknown_calls};
use crate::env::Env;
use crate::git::{Error, Repository};
use crate::model::{
    Access, Change, ChangeEvidence, End, EntryId, Event, EventKind, HookAnswered, HookEffect, Outcome, Position,
    ProjectCheck, RunEnd, RunId, Slug, Verdict, WorkReport, change_by,
};
use crate::ops::ledger::journal::append;
use crate::ops::ledger::log::{Choice, timeline};
use crate::ops::run::actions::writes;
use crate::ops::run::before::{Since, before};
use crate::ops::run::lease::{self, RunFiles};
use crate::ops::team::secrets;
use crate::ops::team::workspace::{below, place_of};
use crate::pool::AgentChanges;
use crate::record::{Entry, Read, entry_of};

/// Records the end of every dead run of this clone, and deletes the refs that a killed import left. If that fails, the
/// next command tries again: what is old must not block the user's command.
pub(crate) fn settle(env: &Env, repository: &Repository) {
    if let Err(error) = repository.forget_imports() {
        tracing::debug!("the refs of an import cannot be deleted: {error}");
    }
    for dead in lease::dead(&repository.own_folder()) {
        match record_end(env, repository, dead.team.as_deref().unwrap_or_default(), &dead.run) {
            Ok(()) => dead.forget(),
            Err(error) => tracing::debug!("the end of run {} cannot be recorded: {error}", dead.run),
        }
    }
}

/// Records the end of a run whose process is known to be dead, unless it has one.
pub(crate) fn record_end(env: &Env, repository: &Repository, prefix: &str, run: &RunId) -> Result<(), Error> {
    let (mut state, mut events) = (RunState::default(), Vec::new());
    for entry in timeline(repository, prefix, Some(run), &Choice::default())?.entries() {
        if let (_, Read::Entry(entry)) = entry? {
            state.read(&entry);
            events.extend(entry.event());
        }
    }
    if !state.has_started || state.has_ended {
        return Ok(());
    }
    let redactor = secrets::redactor(env, repository.work_dir().unwrap_or(repository.git_dir()));
    // No entry may be older than the run's last one, even if the clock was set back.
    let at = env.clock.now().max(state.last);
    let mut event = |agent, position, kind, causes| {
        state.seq += 1;
        let (seq, run, id) = (state.seq, run.clone(), env.ids.entry(at));
        Event { seq, at, run, agent, kind, id, position, causes }
    };
    let mut entries = Vec::new();
    for (agent, call, path) in unrecorded(repository, prefix, run, &events) {
        let kind = EventKind::ToolStarted { call, tool: "write".to_owned(), detail: path };
        let open = state.open.get_mut(&agent);
        let position = open.as_ref().map_or(Position::FIRST, |open| open.position);
        let causes = open.as_ref().map(|open| open.cause.clone()).into_iter().collect();
        if let Some(open) = open {
            open.has_begun = true;
            open.calls.note(&kind);
        }
        let event = event(Some(agent), position, kind, causes);
        entries.push(entry_of(&event, &redactor));
        events.push(event);
    }
    let mut changes = changes(repository, prefix, run, &events);
    let mut ends = Vec::new();
    let mut push = |agent: Option<Slug>, position, kind, causes| {
        let event = event(agent, position, kind, causes);
        ends.push(event.id.clone());
        entries.push(entry_of(&event, &redactor));
    };
    for (agent, mut work) in std::mem::take(&mut state.open) {
        work.name_unknown_calls();
        work.name_changes(&agent, changes.remove(&agent), prefix);
        let report = work.report(&agent);
        push(Some(agent), work.position, EventKind::of_end(work.outcome(), work.end), vec![work.cause]);
        state.done.push(report);
    }
    let seconds = state.last.duration_since(state.began).as_secs_f64().max(0.0);
    let end = RunEnd::of(Outcome::Lost, std::mem::take(&mut state.done), seconds);
    let kind = EventKind::RunCompleted(RunEnd { rejections: state.rejections, check: state.check.take(), ..end });
    let causes = std::mem::take(&mut state.ends);
    push(None, Position::default(), kind, causes);
    if let Some(last) = entries.last_mut() {
        last.causes.extend(ends.iter().rev().skip(1).rev().cloned());
    }
    append(repository, prefix, &entries, at)
}

/// The calls of the dead process that wrote files, and that were not recorded any more: each with its agent and its file,
/// relative to the project.
fn unrecorded(
    repository: &Repository,
    prefix: &str,
    run: &RunId,
    events: &[Event],
) -> BTreeSet<(Slug, String, String)> {
    let place = below(&place_of(prefix), "");
    let is_start = |event: &Event| matches!(event.kind, EventKind::RunStarted { .. } | EventKind::RunResumed { .. });
    let of_process = events.get(events.iter().rposition(is_start).unwrap_or_default()..).unwrap_or_default();
    let is_recorded = |agent: &Slug, call: &str| {
        let is_it = |event: &Event| matches!(&event.kind, EventKind::ToolStarted { call: begun, .. } if begun == call);
        of_process.iter().any(|event| event.agent.as_ref() == Some(agent) && is_it(event))
    };
    let writes = writes(&RunFiles::new(&repository.own_folder(), run)).into_iter();
    let writes = writes.filter(|(agent, call, _)| !call.is_empty() && !is_recorded(agent, call));
    writes.filter_map(|(agent, call, path)| Some((agent, call, path.strip_prefix(&place)?.to_owned()))).collect()
}

/// What the agents of an unfinished step had changed at the run's last snapshot.
fn changes(repository: &Repository, prefix: &str, run: &RunId, events: &[Event]) -> BTreeMap<Slug, AgentChanges> {
    let place = place_of(prefix);
    let root = repository.work_dir().unwrap_or(repository.git_dir()).join(&place).display().to_string();
    let first = repository.first_snapshot(run.as_str()).ok().flatten();
    let read = |commit: &str| repository.snapshot_at(commit).ok();
    let Some(before) = before(Since::UnfinishedStep, events, (&root, &below(&place, "")), first.as_deref(), read)
    else {
        return BTreeMap::new();
    };
    let failed = |error: Error| error.to_string();
    before.changes(
        |from, to| repository.changed_between(from, to).map_err(failed),
        |from, to, paths| repository.diff_between(from, to, paths).map_err(failed),
    )
}

/// The state of a dead run, from its entries.
#[derive(Default)]
struct RunState {
    has_started: bool,
    has_ended: bool,
    rejections: u64,
    check: Option<Box<ProjectCheck>>,
    seq: u64,
    /// When its last process began it.
    began: Timestamp,
    last: Timestamp,
    /// Work that was planned or begun, and has no end.
    open: BTreeMap<Slug, OpenWork>,
    started: BTreeSet<Slug>,
    done: Vec<WorkReport>,
    ends: Vec<EntryId>,
}

struct OpenWork {
    position: Position,
    cause: EntryId,
    has_begun: bool,
    calls: PastCalls,
    /// Files that its tools wrote, relative to the project's root.
    written: BTreeSet<String>,
    end: End,
}

impl OpenWork {
    fn begun(position: Position, cause: EntryId) -> Self {
        let end = End { reason: "the process of its run died".to_owned(), ..End::default() };
        Self { position, cause, has_begun: true, calls: PastCalls::default(), written: BTreeSet::new(), end }
    }

    fn planned(position: Position, cause: EntryId) -> Self {
        let reason = "the process of its run died before it began".to_owned();
        let end = End { reason, changed: Some(Vec::new()), ..End::default() };
        Self { has_begun: false, end, ..Self::begun(position, cause) }
    }

    /// Adds to the reason what became of its calls, as far as anybody knows.
    fn name_unknown_calls(&mut self) {
        if let Some(unknown) = unknown_calls(&self.calls.0) {
            self.end.reason.push_str(&format!("; it is unknown whether {unknown} finished"));
        }
    }

    /// Adds the changes up to the last snapshot, and the files that its tools have written since.
    fn name_changes(&mut self, agent: &Slug, known: Option<AgentChanges>, prefix: &str) {
        let Some(AgentChanges { mut files, git }) = known else { return };
        let place = place_of(prefix);
        for path in self.written.iter().map(|path| below(&place, path)) {
            if !files.iter().any(|change| change.path == path && change.by.contains(agent)) {
                let (by, how) = (vec![agent.clone()], Some(ChangeEvidence::Named));
                files.push(Change { path, by, how, ..Change::default() });
            }
        }
        (self.end.changed, self.end.git) = (Some(files), git);
    }

    fn outcome(&self) -> Outcome {
        if self.has_begun { Outcome::Lost } else { Outcome::Skipped }
    }

    fn report(&self, agent: &Slug) -> WorkReport {
        report(agent, self.position, self.outcome(), &self.end)
    }
}

fn report(agent: &Slug, position: Position, status: Outcome, end: &End) -> WorkReport {
    WorkReport::of(agent.clone(), (position.step, position.attempt), status, end.clone())
}

impl RunState {
    /// Reopens work that had not completed.
    fn resume(&mut self, cause: &EntryId) {
        self.has_ended = false;
        for work in self.done.extract_if(.., |work| work.status != Outcome::Completed) {
            let WorkReport { agent, step, attempt, status, .. } = work;
            let open = if status == Outcome::Skipped { OpenWork::planned } else { OpenWork::begun };
            self.open.insert(agent, open(Position { step, attempt }, cause.clone()));
        }
    }

    fn read(&mut self, entry: &Entry) {
        self.last = self.last.max(entry.at);
        self.seq = self.seq.max(entry.seq.unwrap_or_default());
        let Some(kind) = entry.known_kind() else { return };
        if matches!(kind, EventKind::RunStarted { .. } | EventKind::RunResumed { .. }) {
            self.began = entry.at;
        }
        match (kind, entry.agent.clone()) {
            (EventKind::RunStarted { .. }, _) => self.has_started = true,
            (EventKind::RunCompleted(_), _) => self.has_ended = true,
            (EventKind::ReviewVerdict { verdict: Verdict::Rejected, .. }, _) => self.rejections += 1,
            (EventKind::CheckCompleted(check), _) => self.check = Some(Box::new(check)),
            (EventKind::RunResumed { .. }, _) => self.resume(&entry.id),
            (EventKind::RoutePlanned(plan), _) => {
                let reviewers: Vec<Slug> = plan.reviewers().cloned().collect();
                // Plans of earlier squads have only one step.
                let mut steps = if plan.steps.is_empty() { vec![plan.agents] } else { plan.steps };
                if let Some(last) = steps.last_mut() {
                    last.extend(reviewers);
                }
                for (step, agents) in (1..).zip(steps) {
                    for agent in agents.into_iter().filter(|agent| !self.started.contains(agent)) {
                        self.open
                            .entry(agent)
                            .or_insert_with(|| OpenWork::planned(Position::new(step, 1), entry.id.clone()));
                    }
                }
            }
            (EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. }, Some(agent)) => {
                let begun = self.open.get_mut(&agent).filter(|open| open.has_begun && open.position == entry.position);
                // Its engine's process ended meanwhile, and it goes on.
                if let Some(open) = begun {
                    open.end.usage.turns += 1;
                    return;
                }
                let mut open = OpenWork::begun(entry.position, entry.id.clone());
                open.end.usage.turns = 1;
                self.started.insert(agent.clone());
                self.open.insert(agent, open);
            }
            (kind, Some(agent)) => {
                if let Some((status, end)) = kind.end() {
                    self.open.remove(&agent);
                    self.started.insert(agent.clone());
                    self.done.push(report(&agent, entry.position, status, end));
                    self.ends.push(entry.id.clone());
                } else if let Some(open) = self.open.get_mut(&agent) {
                    open.read(kind);
                }
            }
            (_, None) => {}
        }
    }
}

impl OpenWork {
    fn read(&mut self, kind: EventKind) {
        self.calls.note(&kind);
        match kind {
            EventKind::Message { text } => self.end.text = text,
            EventKind::Usage(usage) => self.end.usage += &usage,
            // It went back to work.
            EventKind::HookAnswered(HookAnswered { on, effect: HookEffect::Denied, .. }) if on == "agent_stop" => {
                self.end.usage.turns += 1;
            }
            EventKind::ToolCompleted { tool, ok, exit_code, wrote, .. } => {
                self.written.extend(wrote.map(|wrote| wrote.path));
                self.end.usage.tool_calls += 1;
                // A failure without an exit code may be a refusal.
                if change_by(&tool) == Some(Access::Shell) {
                    match exit_code.map_or(ok.then_some(true), |code| Some(code == 0)) {
                        Some(true) => self.end.commands.passed += 1,
                        Some(false) => self.end.commands.failed += 1,
                        None => {}
                    }
                }
            }
            EventKind::ToolDenied { .. } => self.end.usage.refused += 1,
            _ => {}
        }
    }
}
