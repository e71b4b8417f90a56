//! What a team remembers of its work in a project: standing sessions, and the record where a session is gone.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::env::Env;
use crate::git::{Error, Repository};
use crate::model::{ChangeClass, EventKind, RunId, Slug, ago, first_line, list, plural};
use crate::ops::Workspace;
use crate::ops::ledger::contents;
use crate::ops::ledger::index::{EntryFacts, Fact, Index, Place, Row};
use crate::ops::ledger::log::{self, Choice, message_of};
use crate::ops::run::local_file::place_key;
use crate::ops::run::resume::Past;
use crate::pool::{EarlierRuns, SessionStore, standing_session_id};

/// The longest record of an agent's last work, in words, and what its parts may take of it.
const WORDS: usize = 200;
const TASK_WORDS: usize = 40;
const MOST_FILES: usize = 20;
/// Others' work that is looked at for changed files.
const MOST_ENDS: usize = 100;
/// An older run that was killed is no longer taken up.
const RECENT_RUNS: usize = 20;

pub(in crate::ops) fn store(workspace: &Workspace) -> SessionStore {
    let key = place_key(&workspace.repository, &workspace.folder_in_repository());
    SessionStore::new(workspace.local().join("sessions"), key)
}

/// Whether a run's agents worked in their standing sessions.
pub(super) fn was_standing(past: &Past) -> bool {
    past.events.iter().any(|event| match (&event.agent, &event.kind) {
        (Some(agent), EventKind::SessionCreated { session, .. } | EventKind::SessionResumed { session, .. }) => {
            *session == standing_session_id(agent)
        }
        _ => false,
    })
}

/// The ledger, for an agent's session in this work tree.
pub(in crate::ops) struct Record {
    repository: Repository,
    prefix: String,
    /// The run that the session works for.
    run: Option<RunId>,
}

/// The end of an agent's work.
struct WorkEnd {
    run: RunId,
    by: Slug,
    row: Row<EntryFacts>,
    /// The entry that started the run, as soon as it is found.
    started: Option<Row<EntryFacts>>,
}

impl Record {
    pub(in crate::ops) fn new(workspace: &Workspace, run: Option<&RunId>) -> Self {
        Self { repository: workspace.repository.clone(), prefix: workspace.ledger_prefix(), run: run.cloned() }
    }

    /// Task, outcome, files and the end of the report, which says what is left.
    fn read_last_work(&self, agent: &Slug) -> Result<Option<String>, Error> {
        let Some(index) = Index::open(&self.repository, &self.prefix)? else { return Ok(None) };
        let ends = self.ends(&index, agent, |by| by == agent)?;
        let Some(WorkEnd { row, started: Some(started), .. }) = ends.first() else { return Ok(None) };
        let end = index.entry(row)?.and_then(|entry| entry.known_kind());
        let Some(text) = end.as_ref().and_then(rendered) else { return Ok(None) };
        let task = first_line(&message_of(&index, started)?, 400);
        let task = words(task.split_whitespace(), TASK_WORDS);
        Ok(Some(words(format!("Task: {task}\n{text}").split(' '), WORDS)))
    }

    fn read_changed_since(&self, agent: &Slug) -> Result<BTreeMap<Slug, Vec<String>>, Error> {
        let mut files: BTreeMap<Slug, Vec<String>> = BTreeMap::new();
        let Some(index) = Index::open(&self.repository, &self.prefix)? else { return Ok(files) };
        let ends = self.ends(&index, agent, |_| true)?;
        for WorkEnd { by, row, .. } in ends.into_iter().take_while(|end| end.by != *agent) {
            let kind = index.entry(&row)?.and_then(|entry| entry.known_kind());
            let changed = kind.as_ref().and_then(EventKind::end).and_then(|(_, end)| end.changed.as_ref());
            let own = changed.into_iter().flatten().filter(|change| change.class == ChangeClass::Own);
            let paths = files.entry(by).or_default();
            paths.extend(own.map(|change| change.path.clone()));
            paths.sort_unstable();
            paths.dedup();
        }
        Ok(files)
    }

    /// The ends of these agents' work in this work tree, the newest first, up to the last one of an agent. What is done in
    /// another work tree has not happened in this one.
    fn ends(&self, index: &Index<'_>, agent: &Slug, is_wanted: impl Fn(&Slug) -> bool) -> Result<Vec<WorkEnd>, Error> {
        let here = self.repository.linked_name();
        let mut ends: Vec<WorkEnd> = Vec::new();
        for span in index.spans(Place::Log) {
            for row in index.rows::<EntryFacts>(&span)?.into_iter().rev() {
                let Some(EntryFacts { run: Some(run), agent: by, fact, .. }) = &row.value else { continue };
                match (fact, by) {
                    (Fact::AgentEnded { .. }, Some(by))
                        if self.run.as_ref() != Some(run) && is_wanted(by) && ends.len() < MOST_ENDS =>
                    {
                        ends.push(WorkEnd { run: run.clone(), by: by.clone(), row: row.clone(), started: None });
                    }
                    (Fact::Started { work_tree, .. }, _) if *work_tree == here => {
                        let of_run = ends.iter_mut().filter(|end| end.run == *run);
                        of_run.for_each(|end| end.started = Some(row.clone()));
                    }
                    (Fact::Started { .. }, _) => ends.retain(|end| end.run != *run),
                    _ => continue,
                }
                let last = ends.iter().position(|end| end.by == *agent).and_then(|last| ends.get(..=last));
                if let Some(last) = last.filter(|last| last.iter().all(|end| end.started.is_some())) {
                    ends.truncate(last.len());
                    return Ok(ends);
                }
            }
        }
        ends.retain(|end| end.started.is_some());
        Ok(ends)
    }
}

impl EarlierRuns for Record {
    fn last_work(&self, agent: &Slug) -> Option<String> {
        self.read_last_work(agent).unwrap_or_else(|error| unread(agent, &error))
    }

    fn changed_since(&self, agent: &Slug) -> BTreeMap<Slug, Vec<String>> {
        self.read_changed_since(agent).unwrap_or_else(|error| unread(agent, &error))
    }
}

/// A record that cannot be read keeps nobody from work; the run's own entries say what is damaged.
fn unread<T: Default>(agent: &Slug, error: &Error) -> T {
    tracing::debug!("earlier runs cannot be read for {agent}: {error}");
    T::default()
}

fn rendered(end: &EventKind) -> Option<String> {
    let (outcome, end) = end.end()?;
    let reason = if end.reason.is_empty() { String::new() } else { format!(": {}", first_line(&end.reason, 200)) };
    let changed = end.changed.iter().flatten().filter(|change| change.class.is_of_agents());
    let files: Vec<String> = changed.take(MOST_FILES).map(|change| first_line(&change.path, 120)).collect();
    let files = if files.is_empty() { "none".to_owned() } else { list(files) };
    let all: Vec<&str> = end.text.split_whitespace().collect();
    let left = all.len().saturating_sub(WORDS - TASK_WORDS - 3 * MOST_FILES);
    let cut = if left > 0 { "… " } else { "" };
    let report = all.get(left..).unwrap_or_default().join(" ");
    Some(format!("Outcome: {outcome}{reason}\nFiles: {files}\nReport: {cut}{report}"))
}

/// The first words.
fn words<'t>(all: impl Iterator<Item = &'t str>, most: usize) -> String {
    let mut all = all.peekable();
    let mut text = all.by_ref().take(most).collect::<Vec<_>>().join(" ");
    if all.peek().is_some() {
        text.push_str(" …");
    }
    text
}

/// What a run or a watch goes on with, as one line. `None`: it is the first.
pub(crate) fn line(env: &Env, workspace: &Workspace) -> Option<String> {
    let (agents, last) = store(workspace).used();
    let last = last.and_then(|last| Timestamp::try_from(last).ok());
    let (repository, prefix) = (&workspace.repository, workspace.ledger_prefix());
    let runs = log::runs(repository, &prefix, &workspace.leases(), &Choice::default(), RECENT_RUNS).unwrap_or_default();
    let unfinished = runs.iter().find(|run| run.status == "lost").map(|run| &run.run);
    let mut parts = Vec::new();
    if !agents.is_empty() {
        let since =
            last.map(|last| ago(env.clock.now().as_second().saturating_sub(last.as_second()).max(0).unsigned_abs()));
        let noun = if agents.len() == 1 { "the session" } else { "the sessions" };
        parts.push(format!("{noun} of {}{}", list(agents), since.map(|ago| format!(", {ago}")).unwrap_or_default()));
        let date = |date: &Option<String>| date.as_ref().and_then(|date| date.parse::<Timestamp>().ok());
        let decided = contents::decisions(repository, &prefix).unwrap_or_default();
        let new = decided.iter().filter(|logged| date(&logged.decision.date).is_some_and(|at| Some(at) > last)).count();
        if new > 0 {
            parts.push(format!("{} since", plural(new, "decision")));
        }
    }
    if let Some(run) = unfinished {
        parts.push(format!("run {run} was killed: `squad orchestrate --resume {run}` takes it up"));
    }
    (!parts.is_empty()).then(|| format!("recalled: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, End, Outcome};

    #[test]
    fn a_record_is_short_and_keeps_what_is_left() {
        let text = "word ".repeat(1_000) + "Left: the lighthouse.";
        let change = |path: &str| Change { path: path.to_owned(), class: ChangeClass::Own, ..Change::default() };
        let changed = Some((0..500).map(|at| change(&format!("src/{at}.rs"))).collect());
        let end = EventKind::of_end(Outcome::Completed, End { text, changed, ..End::default() });
        let record = rendered(&end).expect("an end");
        assert!(record.starts_with("Outcome: completed\nFiles: src/0.rs, src/1.rs"), "{record}");
        assert!(record.ends_with("Left: the lighthouse."), "{record}");
        assert!(
            format!("Task: {}\n{record}", "do ".repeat(TASK_WORDS)).split_whitespace().count() <= WORDS,
            "{record}"
        );
    }
}
