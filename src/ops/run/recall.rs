//! What a team remembers of its work in a project: standing sessions, and the record where a session is gone.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::env::Env;
use crate::git::{Error, Repository};
use crate::model::{ChangeClass, EventKind, RunId, Slug, ago, first_line, list, plural};
use crate::ops::Workspace;
use crate::ops::ledger::contents;
use crate::ops::ledger::index::{EntryFacts, Fact, Index, Place};
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

/// The ledger, for the sessions of a run.
pub(super) struct Record {
    repository: Repository,
    prefix: String,
    run: RunId,
}

impl Record {
    pub(super) fn new(workspace: &Workspace, run: &RunId) -> Self {
        Self { repository: workspace.repository.clone(), prefix: workspace.ledger_prefix(), run: run.clone() }
    }

    /// Task, outcome, files and the end of the report, which says what is left.
    fn read_last_work(&self, agent: &Slug) -> Result<Option<String>, Error> {
        let Some(index) = Index::open(&self.repository, &self.prefix)? else { return Ok(None) };
        let mut found: Option<(RunId, String)> = None;
        for span in index.spans(Place::Log) {
            for row in index.rows::<EntryFacts>(&span)?.into_iter().rev() {
                let Some(EntryFacts { run: Some(run), agent: by, fact, .. }) = &row.value else { continue };
                match (&found, fact) {
                    (None, Fact::AgentEnded { .. }) if *run != self.run && by.as_ref() == Some(agent) => {
                        let end = index.entry(&row)?.and_then(|entry| entry.known_kind());
                        found = end.as_ref().and_then(rendered).map(|text| (run.clone(), text));
                    }
                    (Some((wanted, text)), Fact::Started { .. }) if run == wanted => {
                        let task = first_line(&message_of(&index, &row)?, 400);
                        let task = words(task.split_whitespace(), TASK_WORDS);
                        return Ok(Some(words(format!("Task: {task}\n{text}").split(' '), WORDS)));
                    }
                    _ => {}
                }
            }
        }
        Ok(found.map(|(_, text)| words(text.split(' '), WORDS)))
    }

    fn read_changed_since(&self, agent: &Slug) -> Result<BTreeMap<Slug, Vec<String>>, Error> {
        let mut files: BTreeMap<Slug, Vec<String>> = BTreeMap::new();
        let Some(index) = Index::open(&self.repository, &self.prefix)? else { return Ok(files) };
        let mut ends = 0;
        for span in index.spans(Place::Log) {
            for row in index.rows::<EntryFacts>(&span)?.into_iter().rev() {
                let Some(EntryFacts { run, agent: Some(by), fact: Fact::AgentEnded { .. }, .. }) = &row.value else {
                    continue;
                };
                if by == agent || ends == MOST_ENDS {
                    return Ok(files);
                }
                if run.as_ref() == Some(&self.run) {
                    continue;
                }
                ends += 1;
                let kind = index.entry(&row)?.and_then(|entry| entry.known_kind());
                let changed = kind.as_ref().and_then(EventKind::end).and_then(|(_, end)| end.changed.as_ref());
                let own = changed.into_iter().flatten().filter(|change| change.class == ChangeClass::Own);
                let paths = files.entry(by.clone()).or_default();
                paths.extend(own.map(|change| change.path.clone()));
                paths.sort_unstable();
                paths.dedup();
            }
        }
        Ok(files)
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
