//! What the agents of a run changed, each change once however many of them report it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Change, ChangeClass, GitChanges, Outcome, Slug, WorkReport};

#[derive(Debug, Default)]
pub(super) struct ChangeSummary {
    /// Agents in order of appearance; those that changed nothing have no files.
    pub(super) own: Vec<(Slug, FileCount)>,
    /// Several agents were at work, any of whom may have made them.
    pub(super) together: BTreeMap<Vec<Slug>, FileCount>,
    /// Nobody of the run made them.
    pub(super) others: BTreeMap<ChangeClass, FileCount>,
    /// By who made them, or may have; nobody: it is unknown. Those of one agent alone come first.
    pub(super) git: BTreeMap<(ChangeClass, Vec<Slug>), GitChanges>,
    /// What they changed is not known.
    pub(super) unseen: BTreeSet<Slug>,
}

#[derive(Debug, Default)]
pub(super) struct FileCount {
    pub(super) paths: BTreeSet<String>,
    pub(super) added: u64,
    pub(super) removed: u64,
}

impl FileCount {
    fn add(&mut self, change: &Change) {
        self.paths.insert(change.path.clone());
        self.added += change.added.unwrap_or_default();
        self.removed += change.removed.unwrap_or_default();
    }
}

impl ChangeSummary {
    pub(super) fn of(work: &[WorkReport]) -> Self {
        let mut summary = Self::default();
        let mut seen: BTreeSet<(&str, ChangeClass, &[Slug], Option<u32>)> = BTreeSet::new();
        for WorkReport { agent, step, status, changed, git, .. } in work.iter().filter(|work| work.step.is_some()) {
            summary.of_agent(agent);
            let Some(changed) = changed else {
                let is_known = matches!(status, Outcome::Lost | Outcome::Skipped);
                summary.unseen.extend((!is_known).then(|| agent.clone()));
                continue;
            };
            for change in changed {
                let is_own = change.class == ChangeClass::Own;
                // Those who worked in the same step report the same changes.
                if !is_own && !seen.insert((&change.path, change.class, &change.by, *step)) {
                    continue;
                }
                match change.class {
                    ChangeClass::Own => summary.of_agent(agent).add(change),
                    ChangeClass::Together => summary.together.entry(change.by.clone()).or_default().add(change),
                    class => summary.others.entry(class).or_default().add(change),
                }
            }
            let own = ((ChangeClass::Own, vec![agent.clone()]), &git.own);
            let unknown = ((ChangeClass::Unknown, Vec::new()), &git.unknown);
            let shared = git.together.iter();
            let shared = shared.map(|shared| ((ChangeClass::Together, shared.by.clone()), &shared.changes));
            for (by, changes) in [own, unknown].into_iter().chain(shared).filter(|(_, changes)| !changes.is_empty()) {
                summary.git.entry(by).or_default().extend(changes);
            }
        }
        summary
    }

    fn of_agent(&mut self, agent: &Slug) -> &mut FileCount {
        let at = self.own.iter().position(|(known, _)| known == agent).unwrap_or_else(|| {
            self.own.push((agent.clone(), FileCount::default()));
            self.own.len() - 1
        });
        &mut self.own[at].1
    }

    /// Whether an agent may have made a change that several may have made.
    pub(super) fn has_shared(&self, agent: &Slug) -> bool {
        let git = self.git.keys().filter(|(class, _)| *class == ChangeClass::Together).map(|(_, by)| by);
        self.together.keys().chain(git).any(|by| by.contains(agent))
    }

    /// Whether an agent may have committed something itself.
    pub(super) fn has_commits(&self) -> bool {
        self.git.iter().any(|((_, by), changes)| !by.is_empty() && !changes.commits.is_empty())
    }

    /// Whether there is anything that `squad diff` and `squad undo` take for the run's.
    pub(super) fn is_any_of_agents(&self) -> bool {
        !self.together.is_empty() || self.own.iter().any(|(_, files)| !files.paths.is_empty())
    }
}

/// The lines that the agents of a run added and removed.
pub(crate) fn lines_changed(work: &[WorkReport]) -> (u64, u64) {
    let changes = ChangeSummary::of(work);
    let own = changes.own.iter().map(|(_, files)| files);
    own.chain(changes.together.values())
        .fold((0, 0), |(added, removed), files| (added + files.added, removed + files.removed))
}
