//! Landing: recorded decisions become files on the branch they were made for, in one commit.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{ToSpan, civil::Date};
use serde::{Deserialize, Serialize};

use crate::env::{Clock, Env};
use crate::error::Failure;
use crate::git::{Landing, Repository};
use crate::model::{
    Actor, ChangeKind, Decision, DecisionId, EntryId, EventKind, RunId, Slug, first_line, list, plural,
};
use crate::ops::Workspace;
use crate::ops::change::{Change, FileChange, lock};
use crate::ops::decisions::withdrawn::Withdrawn;
use crate::ops::ledger::contents::as_recorded;
use crate::ops::ledger::index::Unlanded;
use crate::ops::ledger::journal::{append, aside};
use crate::ops::ledger::{contents as ledger, lost};
use crate::ops::team::secrets;
use crate::parse::KNOWLEDGE;
use crate::pool::Cancel;
use crate::record::{Entry, decision_path, render_decision};

/// Lands decisions. Owns its data, so that a run can land on another thread and still react to Ctrl-C.
pub(crate) struct Lander {
    repository: Repository,
    prefix: String,
    /// The team folder, relative to the repository's root.
    folder: String,
    /// The team folder on disk.
    team: PathBuf,
    is_borrowed: bool,
    clock: Clock,
    /// Cancels the wait for the lock.
    cancel: Option<Cancel>,
    /// A decision made just now, which no branch can have yet.
    new: Option<DecisionId>,
}

/// Which decisions land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those made for the checked-out branch.
    OfThisBranch,
    /// Also those made while no branch was checked out; only when the user asks for it.
    AndOfNone,
}

/// The result of a landing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Landed {
    pub(crate) decisions: Vec<DecisionId>,
    /// The entries that recorded them.
    pub(crate) causes: Vec<EntryId>,
    pub(crate) commit: Option<String>,
    pub(crate) branch: String,
    /// The decisions that stay unlanded, and why.
    pub(crate) left: Option<Pending>,
    /// Decisions of the branch that the next commit would withdraw.
    #[serde(default, skip_serializing_if = "Withdrawn::is_empty")]
    pub(crate) withdrawn: Withdrawn,
    /// Held until the landing is recorded, so that nothing lands twice. The kernel frees the lock of a process that dies.
    #[serde(skip)]
    _lock: Option<Arc<File>>,
}

/// Decisions that stay unlanded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// `None`: the number is unknown.
    pub(crate) count: Option<usize>,
    pub(crate) reason: String,
    pub(crate) hint: String,
}

impl Landed {
    /// A copy for another process; this process keeps the lock.
    pub(crate) fn without_lock(&self) -> Self {
        Self { _lock: None, ..self.clone() }
    }
}

impl Lander {
    pub(crate) fn new(env: &Env, workspace: &Workspace) -> Self {
        Self {
            repository: workspace.repository.clone(),
            prefix: workspace.ledger_prefix(),
            folder: workspace.folder_in_repository(),
            team: workspace.folder.path.clone(),
            is_borrowed: workspace.folder.is_borrowed(),
            clock: env.clock.clone(),
            cancel: None,
            new: None,
        }
    }

    /// Skips the search for this decision in the branch's history: it was made just now.
    pub(crate) fn of_new(self, decision: &DecisionId) -> Self {
        Self { new: Some(decision.clone()), ..self }
    }

    /// Stops waiting for the lock when the user cancels.
    pub(crate) fn until(self, cancel: Cancel) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    /// Lands a run's decisions on another thread: landing may wait, and Ctrl-C must work meanwhile.
    pub(crate) async fn land_aside(self, threads: bool) -> Result<Landed, Failure> {
        aside(threads, move || self.land(Which::OfThisBranch)).await.map_err(Failure::failed).flatten()
    }

    /// Lands every selected decision that has not landed anywhere, in one commit. The caller records the landing.
    pub(crate) fn land(&self, which: Which) -> Result<Landed, Failure> {
        let landed = self.land_waiting(which)?;
        // Afterwards: another git may have read the branch before the landing.
        Ok(Landed { withdrawn: Withdrawn::find(&self.repository, &self.folder).unwrap_or_default(), ..landed })
    }

    fn land_waiting(&self, which: Which) -> Result<Landed, Failure> {
        let lock = lock(&self.repository, self.cancel.as_ref())?;
        let head = self.repository.head()?;
        let recorded = as_recorded(head.work());
        let (waiting, others): (Vec<_>, Vec<_>) = ledger::unlanded(&self.repository, &self.prefix)?
            .into_iter()
            .partition(|unlanded| match &unlanded.branch {
                Some(_) => unlanded.branch == recorded,
                None => which == Which::AndOfNone || head.branch.is_none(),
            });
        let Some(branch) = head.branch else {
            let (reason, hint) = self.why_no_branch();
            return Ok(pending(waiting.len(), &reason, hint));
        };
        if waiting.is_empty() {
            return Ok(Landed {
                branch,
                ..pending(others.len(), "they were made for other branches", &elsewhere(&others))
            });
        }
        let is_on_branch = match &head.commit {
            Some(commit) => self.repository.has_at(commit, &self.folder)?,
            None => false,
        };
        if let Some((reason, hint)) = self.obstacle(is_on_branch) {
            return Ok(pending(waiting.len(), &reason, hint));
        }
        let decisions: Vec<&Decision> = waiting.iter().map(|unlanded| &unlanded.decision).collect();
        let known = self.files_known(head.commit.as_deref(), &decisions)?;
        let files: Vec<FileChange> = decisions
            .iter()
            // A file that the branch has or once had means that the decision landed; only the ledger entry is missing.
            .filter(|decision| !known.iter().any(|path| is_file_of(path, &decision.id)))
            .map(|decision| FileChange::added(decision_path(&self.folder, decision), render_decision(decision)))
            .collect();
        let commit = if files.is_empty() {
            None
        } else {
            let change = Change::new(ChangeKind::LandDecisions, message(&decisions), files);
            match self.repository.land(
                &change.on_branch(branch.clone()),
                self.repository.identity().as_ref(),
                self.clock.now(),
            ) {
                Ok(Landing::Landed { commit }) => Some(commit),
                Ok(Landing::NotLanded { reason, hint }) => return Ok(pending(decisions.len(), &reason, &hint)),
                // For example a read-only or full file system, or a locked branch: the decisions stay unlanded.
                Err(error) => {
                    let hint = error.hint().unwrap_or_else(|| "`git status` may show the cause".to_owned());
                    return Ok(pending(decisions.len(), &error.to_string(), &hint));
                }
            }
        };
        let decisions = decisions.iter().map(|decision| decision.id.clone()).collect();
        let causes = waiting.iter().map(|logged| logged.entry.clone()).collect();
        Ok(Landed { decisions, causes, commit, branch, _lock: Some(Arc::new(lock)), ..Landed::default() })
    }

    /// The team's files on the branch, and the decision files that it has had since these decisions were made. Empty if no
    /// branch can have these decisions yet.
    fn files_known(&self, commit: Option<&str>, decisions: &[&Decision]) -> Result<Vec<String>, Failure> {
        let Some(commit) = commit.filter(|_| decisions.iter().any(|decision| Some(&decision.id) != self.new.as_ref()))
        else {
            return Ok(Vec::new());
        };
        let mut files = self.repository.paths_at(commit, &self.folder)?;
        files.extend(files_since(&self.repository, &self.folder, commit, decisions.iter().copied())?);
        Ok(files)
    }

    fn why_no_branch(&self) -> (String, &'static str) {
        match self.repository.operation() {
            Some(operation) => (format!("a {operation} is in progress"), "finish it: `git status` tells how"),
            None => ("HEAD is detached".to_owned(), "check out the branch the work is on"),
        }
    }

    /// Why nothing of this team can land now, with a hint.
    pub(in crate::ops) fn obstacle(&self, is_on_branch: bool) -> Option<(String, &'static str)> {
        if self.is_borrowed {
            return Some((
                "the team belongs to the main work tree, and this branch has none".to_owned(),
                "bring the team to this branch",
            ));
        }
        if self.team.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            return Some((format!("{} is a symbolic link", self.folder), "make it a folder of the repository"));
        }
        // A team that git ignores is meant to stay out of the repository, and so are its decisions.
        if !is_on_branch && self.repository.is_ignored(&self.folder) {
            return Some((
                format!("git ignores {}", self.folder),
                "the decisions stay in the ledger; remove it from .gitignore to land them",
            ));
        }
        None
    }
}

/// The hint for decisions that were made for other branches.
fn elsewhere(others: &[Unlanded]) -> String {
    let mut branches: Vec<String> =
        others.iter().filter_map(|other| Some(format!("`{}`", other.branch.as_ref()?))).collect();
    branches.sort();
    branches.dedup();
    match branches.is_empty() {
        true => "check out the branch they are for".to_owned(),
        false => format!("check out {}, or recreate it if it is gone", list(branches)),
    }
}

/// The names of the decision files that a commit and its history have, as far back as these decisions go.
pub(in crate::ops) fn files_since<'d>(
    repository: &Repository,
    folder: &str,
    commit: &str,
    decisions: impl Iterator<Item = &'d Decision>,
) -> Result<BTreeSet<String>, crate::git::Error> {
    let mut has_notes = false;
    let day = |decision: &'d Decision| {
        has_notes |= decision.note.is_some();
        decision.date.as_deref()?.get(..10)
    };
    let days: Vec<Option<&str>> = decisions.map(day).collect();
    if days.is_empty() {
        return Ok(BTreeSet::new());
    }
    // `None` sorts first: a decision without a date may be as old as the repository.
    let oldest = days.into_iter().min().flatten().and_then(|day| day.parse::<Date>().ok());
    // Two days of tolerance for clocks and time zones that differ.
    let since = oldest.and_then(|day| day.checked_sub(2.days()).ok());
    let mut names = repository.names_since(commit, &format!("{folder}/decisions"), since)?;
    if has_notes {
        names.extend(repository.names_since(commit, &format!("{folder}/{KNOWLEDGE}"), since)?);
    }
    Ok(names)
}

/// Whether a path is a decision's file. Only the end of the name counts, because people may rename the rest.
pub(in crate::ops) fn is_file_of(path: &str, id: &DecisionId) -> bool {
    path.strip_suffix(".md").is_some_and(|path| path.ends_with(&format!("-{id}")))
}

/// Records a landing, so that nothing lands twice. If squad is killed before this, the file on the branch shows it.
pub(crate) fn record(env: &Env, workspace: &Workspace, landed: &Landed) -> Result<(), Failure> {
    landed.event().map_or(Ok(()), |kind| record_event(env, workspace, &kind, &landed.causes))
}

pub(super) fn record_event(
    env: &Env,
    workspace: &Workspace,
    kind: &EventKind,
    causes: &[EntryId],
) -> Result<(), Failure> {
    lost::settle(env, &workspace.repository);
    let at = env.clock.now();
    let redactor = secrets::redactor(env, &workspace.folder.root);
    let entry = Entry::new(env.ids.entry(at), at, Actor::Squad, kind, &redactor);
    append(&workspace.repository, &workspace.ledger_prefix(), &[Entry { causes: causes.to_vec(), ..entry }], at)?;
    Ok(())
}

impl Landed {
    /// The event to record, if anything landed.
    pub(crate) fn event(&self) -> Option<EventKind> {
        (!self.decisions.is_empty()).then(|| EventKind::DecisionLanded {
            decisions: self.decisions.clone(),
            branch: self.branch.clone(),
            commit: self.commit.clone().unwrap_or_default(),
        })
    }
}

impl Pending {
    pub(crate) fn because(failure: Failure) -> Self {
        let hint = failure.hint.unwrap_or_else(|| "try again".to_owned());
        Self { count: None, reason: failure.message, hint }
    }

    /// `2 decisions`, or `decisions` if the number is unknown.
    pub(crate) fn what(&self) -> String {
        self.count.map_or_else(|| "decisions".to_owned(), |count| plural(count, "decision"))
    }
}

fn pending(count: usize, reason: &str, hint: &str) -> Landed {
    let left = (count > 0).then(|| Pending { count: Some(count), reason: reason.to_owned(), hint: hint.to_owned() });
    Landed { left, ..Landed::default() }
}

/// The commit's message: a subject, the titles, and a trailer for each run, agent and decision.
fn message(decisions: &[&Decision]) -> String {
    let mut message = match decisions {
        [decision] => {
            let verb = if decision.note.is_some() { "note" } else { "decide" };
            format!("squad: {verb}: {}\n", first_line(&decision.title, 60))
        }
        decisions => {
            let titles: Vec<String> = decisions.iter().map(|decision| format!("- {}", decision.title)).collect();
            format!("squad: record {}\n\n{}\n", plural(decisions.len(), "decision"), titles.join("\n"))
        }
    };
    let mut trailers: Vec<String> = Vec::new();
    let runs = decisions.iter().filter_map(|decision| decision.run.as_ref()).map(RunId::as_str).map(|run| ("Run", run));
    let agents = decisions.iter().filter(|decision| decision.run.is_some());
    let agents =
        agents.filter_map(|decision| decision.by.as_deref()).filter_map(Slug::fold).map(|slug| slug.to_string());
    let agents: Vec<String> = agents.collect();
    let ids = decisions.iter().map(|decision| ("Decision", decision.id.as_str()));
    for (name, value) in runs.chain(agents.iter().map(|agent| ("Agent", agent.as_str()))).chain(ids) {
        let trailer = format!("Squad-{name}: {value}");
        if !trailers.contains(&trailer) {
            trailers.push(trailer);
        }
    }
    message.push('\n');
    message.push_str(&trailers.join("\n"));
    message.push('\n');
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_file_is_recognized_by_its_id() {
        let id = DecisionId::new("0a1b");
        assert!(is_file_of(".squad/decisions/2026/01/05-any-title-0a1b.md", &id));
        assert!(!is_file_of(".squad/decisions/2026/01/05-any-title-20a1b.md", &id) && !is_file_of("0a1b.txt", &id));
    }
}
