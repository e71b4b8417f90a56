//! squad's own check of what agents changed: `check.run`.
//!
//! It is run before each review and at the end, unless the work tree is as the last check left it. Its result holds for
//! that content, also when the run is resumed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{Change, ChangeClass, EventKind, Position, ProjectCheck, Slug, command_line};
use crate::ops::run::checked::Checked;
use crate::ops::run::clones;
use crate::ops::run::executor::{Executor, Results};
use crate::ops::run::own_commands::{self, CHECKER};
use crate::pool::{Action, SessionPool, Work, WorkTree};

/// Where the check is run.
struct CheckedPlace {
    root: PathBuf,
    pool: Arc<SessionPool>,
    tree: Arc<WorkTree>,
}

impl Executor<'_> {
    /// Checks all the work of the run so far, unless agents changed nothing since the last check.
    pub(super) async fn check<'w>(
        &self,
        position: Position,
        work: impl Iterator<Item = &'w Work>,
        results: &mut Results,
    ) {
        let is_off = self.project.settings.check.is_empty() || !self.order.is_checked();
        if is_off || self.workers.cancel.is_set() {
            return;
        }
        let (mut covered, mut written) = (BTreeSet::new(), BTreeSet::new());
        for work in work {
            let own = work.changed.iter().flatten().filter(|change| self.is_work(change));
            let own: Vec<&str> = own.map(|change| change.path.as_str()).collect();
            if work.changed.is_none() || !own.is_empty() {
                covered.insert((work.agent.clone(), work.position));
            }
            written.extend(own);
        }
        if covered.is_empty() {
            return;
        }
        let Some(checked) = self.checked_place().await else { return };
        let tree = &checked.tree;
        let before = tree.snapshot().await;
        let last = results.checked.check.take().or_else(|| self.past.check().cloned());
        let command = command_line(&self.project.settings.check);
        let is_of_team = |path: &String| Path::new(path).starts_with(self.project.folder_in_repository());
        // Snapshots of work do not tell what became of the team's own files.
        let named = own_commands::named_by_check(self.project);
        let has_own_files = named.iter().any(is_of_team);
        let standing = last.filter(|last| {
            last.command == command && !has_own_files && self.are_alike(last.snapshot.as_deref(), before.as_deref())
        });
        let check = match standing {
            Some(check) => Some(check),
            None => self.check_now(position, &checked, before, &written).await.map(|check| {
                let rewritten = named.into_iter().filter(|path| written.contains(path.as_str())).collect();
                let check = ProjectCheck { rewritten, ..check };
                self.workers.reports.at(position).tell(None, EventKind::CheckCompleted(check.clone()));
                check
            }),
        };
        results.checked = Checked { is_cancelled: check.is_none(), check, covered };
    }

    /// Where the work is checked: in the project, or in a clone of all that is merged so far. `None`: nowhere.
    async fn checked_place(&self) -> Option<CheckedPlace> {
        let Some(clones) = self.used_clones() else {
            let (root, pool) = (self.project.folder.root.clone(), Arc::clone(&self.workers.pool));
            return Some(CheckedPlace { root, pool, tree: self.workers.tree.clone()? });
        };
        let place = clones.clone_of(&Slug::fold(clones::CHECK)?).await;
        let place = place.inspect_err(|reason| self.complain(&format!("the work cannot be checked: {reason}"))).ok()?;
        let (pool, tree) = (Arc::clone(&place.pool), Arc::clone(&place.tree));
        Some(CheckedPlace { root: PathBuf::from(&place.project), pool, tree })
    }

    /// Whether a change is an agent's, and of the project itself: what agents say in the team's files is not checked.
    fn is_work(&self, change: &Change) -> bool {
        change.class.is_of_agents() && !self.is_of_team(change)
    }

    fn is_of_team(&self, change: &Change) -> bool {
        Path::new(&change.path).starts_with(self.project.folder_in_repository())
    }

    /// Whether the project is the same in two snapshots, as far as that is known.
    fn are_alike(&self, before: Option<&str>, now: Option<&str>) -> bool {
        let (Some(before), Some(now)) = (before, now) else { return false };
        before == now || self.changed(before, now).is_some_and(|all| all.iter().all(|change| self.is_of_team(change)))
    }

    fn changed(&self, from: &str, to: &str) -> Option<Vec<Change>> {
        let repository = &self.project.repository;
        let (from, to) = (repository.snapshot_at(from).ok()?, repository.snapshot_at(to).ok()?);
        repository.changed_between(&from, &to).ok()
    }

    /// `None`: the run is being cancelled.
    async fn check_now(
        &self,
        position: Position,
        checked: &CheckedPlace,
        before: Option<String>,
        written: &BTreeSet<&str>,
    ) -> Option<ProjectCheck> {
        let reports = self.workers.reports.at(position);
        let command = command_line(&self.project.settings.check);
        reports.tell(None, EventKind::CheckStarted { command: command.clone() });
        let tree = &checked.tree;
        // A constant that folds to itself.
        let name = Slug::fold(CHECKER)?;
        tree.announce(Action::Begin(&name));
        let (root, sandbox) = (&checked.root, checked.pool.sandbox());
        let whose = (self.env, self.project, self.run);
        let ran = own_commands::check(whose, root, sandbox, self.workers.cancel.clone()).await;
        tree.announce(Action::End(&name));
        let mut check = match ran {
            Ok(None) => return None,
            Ok(Some(check)) => check,
            Err(reason) => ProjectCheck { reason, ..ProjectCheck::default() },
        };
        check.command = command;
        check.snapshot = tree.snapshot().await;
        if let (Some(before), Some(after)) = (&before, &check.snapshot) {
            let changed = self.changed(before, after).unwrap_or_default();
            // Nobody's tool was at work, and no agent's command.
            check.changed = changed.iter().map(|it| Change { class: ChangeClass::Yours, ..it.summary() }).collect();
            // What agents wrote was changed under its eyes: nobody knows which of the two it saw.
            if check.changed.iter().any(|change| written.contains(change.path.as_str())) {
                check.snapshot = None;
            }
        }
        Some(check)
    }
}
