//! squad's own check of what agents changed: `check.run`.
//!
//! It is run before each review and at the end, unless the work tree is as the last check left it. Its result holds for
//! that content, also when the run is resumed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::command::OwnCommand;
use crate::env::real;
use crate::model::{Change, ChangeClass, EventKind, IntoSet, Position, ProjectCheck, Slug, command_line, seconds};
use crate::ops::run::checked::Checked;
use crate::ops::run::executor::{Executor, Results};
use crate::ops::run::own_commands::{program, require_approved};
use crate::ops::team::trust;
use crate::pool::{Action, Places, SessionPool, Work, WorkTree, session_id};
use crate::program::Programs;

/// The setting.
pub(crate) const SETTING: &str = "check.run";
/// Bytes of the end of its output that are kept in the record.
const SHOWN: u64 = 4 * 1024;
/// Stands for an agent where processes and their output are told apart by agents.
const NAME: &str = "check";
/// The clone that it is run in, where agents have clones.
const CLONE: &str = "squad-check";

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
        let has_own_files = self.named().any(|path| is_of_team(&path));
        let standing = last.filter(|last| {
            last.command == command && !has_own_files && self.are_alike(last.snapshot.as_deref(), before.as_deref())
        });
        let check = match standing {
            Some(check) => Some(check),
            None => self.check_now(position, &checked, before, &written).await.map(|check| {
                let rewritten = self.named().filter(|path| written.contains(path.as_str())).collect();
                let check = ProjectCheck { rewritten, ..check };
                self.workers.reports.at(position).tell(None, EventKind::CheckCompleted(check.clone()));
                check
            }),
        };
        results.checked = Checked { is_cancelled: check.is_none(), check, covered };
    }

    /// Where the work is checked: in the project, or in a clone of all that is merged so far. `None`: nowhere.
    async fn checked_place(&self) -> Option<CheckedPlace> {
        let Some(clones) = self.clones else {
            let (root, pool) = (self.project.folder.root.clone(), Arc::clone(&self.workers.pool));
            return Some(CheckedPlace { root, pool, tree: self.workers.tree.clone()? });
        };
        let place = clones.place(&Slug::fold(CLONE)?).await;
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
        let arguments = &self.project.settings.check;
        let command = command_line(arguments);
        reports.tell(None, EventKind::CheckStarted { command: command.clone() });
        let tree = &checked.tree;
        // A constant that folds to itself.
        let name = Slug::fold(NAME)?;
        tree.announce(Action::Begin(&name));
        let ran = self.run_check(arguments, &name, checked).await;
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

    /// The files of the project that the check's arguments name, relative to the repository's root.
    fn named(&self) -> impl Iterator<Item = String> {
        let (root, top) = (real(&self.project.folder.root), real(&self.project.work_dir));
        let named = self.project.settings.check.iter().flat_map(|text| trust::named_in(text, (&root, &top)));
        let inner = |path: String| Some(real(&root.join(path)).strip_prefix(&top).ok()?.to_str()?.to_owned());
        let named: BTreeSet<String> = named.filter_map(inner).into_set();
        named.into_iter()
    }

    /// Fails closed: the error is the reason why it could not be run. `None`: the run is being cancelled.
    async fn run_check(
        &self,
        arguments: &[String],
        name: &Slug,
        checked: &CheckedPlace,
    ) -> Result<Option<ProjectCheck>, String> {
        let Self { env, project, .. } = self;
        require_approved(env, project, SETTING)?;
        let (variables, root) = (env.os_variables(), &checked.root);
        let programs = Programs::new(root, &variables);
        let program = program(arguments.first().map(String::as_str).unwrap_or_default(), root, &programs)?;
        let (local, session) = (project.local(), session_id(name, self.run));
        let command = OwnCommand {
            program,
            arguments: arguments.get(1..).unwrap_or_default(),
            directory: root,
            variables,
            sandbox: checked.pool.sandbox(),
            squad: env.program.as_deref(),
            local: &local,
            session: &session,
            input: None,
            kept: SHOWN,
        };
        let mut cancel = self.workers.cancel.clone();
        let ended = command.run(project.settings.sessions.tool_limit, cancel.wait()).await;
        if self.workers.cancel.is_set() {
            return Ok(None);
        }
        let ended = ended.map_err(|error| format!("it cannot be started: {error}"))?;
        Ok(Some(ProjectCheck {
            passed: ended.exit_code == Some(0),
            exit_code: ended.exit_code,
            reason: ended.reason,
            seconds: seconds(ended.duration),
            output: ended.output,
            output_bytes: ended.output_bytes,
            output_file: Some(ended.output_file),
            ..ProjectCheck::default()
        }))
    }
}
