//! Tracks changes in the work tree while agents work, and attributes them to agents.

mod activity;
mod before;
mod intervals;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Reports;
use crate::engine::{spawn, spawn_blocking};
use crate::git::{FetchedCommit, Landing, WorkTreeSnapshot};
use crate::model::{
    Change, Content, EventKind, GitChanges, IntoMap, OtherRuns, SkippedFile, Slug, TakenSnapshot, seconds,
};
use crate::sandbox::Sandbox;
use activity::Activity;
pub(crate) use before::{AgentChanges, Before};
pub(crate) use intervals::{Committable, Interval};
use intervals::{changes_of, committable, git_changes_of};
use lines::{add_lines, unrecorded};

/// The repository as a run uses it. Slow: a snapshot looks at every file.
pub(crate) trait RunRepository: Send + Sync {
    fn take(&self, previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String>;

    fn changed(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, String>;

    /// Whether it is one agent's clone. Its snapshots are not reported: the run's entries are about the project.
    fn is_clone(&self) -> bool {
        false
    }

    /// Who makes all changes, because nobody else can reach the files.
    fn owner(&self) -> Option<&Slug> {
        None
    }

    /// The name of the work tree, if it is a linked one.
    fn linked_name(&self) -> Option<String> {
        None
    }

    /// What changed in the repository itself.
    fn git_changes(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<GitChanges, String>;

    /// The changed lines of these files, whose paths are relative to the repository's root.
    fn diff(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot, paths: &[String]) -> Result<String, String>;

    /// Tells the other runs in this work tree.
    fn announce(&self, action: Action<'_>);

    /// What the other runs in this work tree have done since the last call, and what they are at now.
    fn others(&self) -> (OtherRuns, OtherRuns);

    /// Those of these files that differed from the checked-out commit when the run's first snapshot was taken.
    fn uncommitted(&self, first: &WorkTreeSnapshot, paths: &BTreeSet<String>) -> Result<BTreeSet<String>, String>;

    /// Commits these files as a snapshot has them.
    fn commit(
        &self,
        agent: &Slug,
        snapshot: &WorkTreeSnapshot,
        paths: &[String],
        message: &str,
    ) -> Result<Landing, String>;

    /// Fetches what agents' own git has committed in the sandbox: references, commits and names.
    fn fetch_commits(&self, _sandbox: &Sandbox) -> Result<Vec<FetchedCommit>, String> {
        Ok(Vec::new())
    }

    /// A hash of what a file holds now; `None`: there is none.
    fn fingerprint(&self, path: &str) -> Option<blake3::Hash>;

    /// The contents of these files, whose paths are relative to the repository's root, as far as known.
    fn contents(&self, snapshot: &WorkTreeSnapshot, paths: &[String]) -> Result<BTreeMap<String, Content>, String>;
}

/// What other runs have to know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'a> {
    /// An agent's commands begin, after it ran none.
    Begin(&'a Slug),
    /// The agent's last command has ended.
    End(&'a Slug),
    /// A tool call writes a file, named relative to the repository's root.
    Write { agent: &'a Slug, call: &'a str, path: &'a str },
}

/// The work tree of a run. Snapshots cut the run into intervals with known commands and tool calls.
pub(crate) struct WorkTree {
    source: Arc<dyn RunRepository>,
    /// See `Env::threads`.
    threads: bool,
    /// The project's path relative to the repository's root, ending in `/`; empty if they are the same.
    prefix: String,
    reports: Reports,
    /// Held while a snapshot is taken: they are taken one at a time, in order.
    cutting: tokio::sync::Mutex<()>,
    /// The last comparison, which agents that work side by side share.
    compared: tokio::sync::Mutex<Option<Comparison>>,
    activity: Mutex<Activity>,
    /// The first snapshot has been taken or has failed.
    is_ready: watch::Sender<bool>,
    /// The run's end has been recorded.
    is_over: AtomicBool,
}

/// The changes between two snapshots, which are named by index.
struct Comparison {
    snapshots: (usize, usize),
    changes: Vec<Change>,
}

impl WorkTree {
    pub(crate) fn new(source: Arc<dyn RunRepository>, threads: bool, prefix: String, reports: Reports) -> Arc<Self> {
        Arc::new(Self {
            source,
            threads,
            prefix,
            reports,
            cutting: tokio::sync::Mutex::default(),
            compared: tokio::sync::Mutex::default(),
            activity: Mutex::default(),
            is_ready: watch::Sender::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    /// Takes the first snapshot in the background.
    pub(crate) fn begin(self: &Arc<Self>) {
        let tree = Arc::clone(self);
        spawn(async move {
            let _guard = tree.cutting.lock().await;
            if !tree.cut().await {
                tree.activity.lock().lacks_first = true;
            }
            tree.is_ready.send_replace(true);
        });
    }

    /// Begins with an earlier snapshot of an agent's clone: what differs from it by now is the agent's.
    pub(crate) async fn begin_at(&self, base: WorkTreeSnapshot, agent: &Slug) {
        let _guard = self.cutting.lock().await;
        {
            let mut activity = self.activity.lock();
            activity.snapshots.push(base);
            activity.open.commands.insert(agent.clone());
            activity.begun.insert(agent.clone(), 0);
        }
        self.cut().await;
        self.is_ready.send_replace(true);
    }

    /// The last snapshot.
    pub(crate) fn last(&self) -> Option<WorkTreeSnapshot> {
        self.activity.lock().snapshots.last().cloned()
    }

    /// Continues a resumed run.
    pub(crate) async fn go_on(&self, before: Before) {
        let _guard = self.cutting.lock().await;
        let source = Arc::clone(&self.source);
        let compared = self.run_blocking(move || Ok(before.compared(|from, to| source.changed(from, to)))).await;
        match compared {
            Ok((before, failed)) => {
                failed.iter().for_each(|reason| self.warn(reason));
                self.activity.lock().go_on(before);
            }
            Err(reason) => self.warn(&reason),
        }
        self.cut().await;
        self.is_ready.send_replace(true);
    }

    /// Returns once later changes will be noticed.
    pub(crate) async fn is_ready(&self) {
        // The sender lives as long as `self`.
        let _ = self.is_ready.subscribe().wait_for(|is_ready| *is_ready).await;
    }

    /// Reports nothing about a snapshot still being taken.
    pub(crate) fn close(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn tell(&self, kind: EventKind) {
        let is_kept_back = matches!(kind, EventKind::SnapshotTaken(_)) && self.source.is_clone();
        if !is_kept_back && !self.is_over.load(Ordering::Relaxed) {
            self.reports.tell(None, kind);
        }
    }

    /// Registers that an agent begins to work.
    pub(crate) fn enter(&self, agent: &Slug) {
        let mut activity = self.activity.lock();
        let interrupted = activity.begun.remove(agent).or_else(|| activity.interrupted_at.take());
        let at = interrupted.unwrap_or(activity.snapshots.len().saturating_sub(1));
        activity.left.remove(agent);
        activity.at_work.insert(agent.clone(), at);
    }

    /// Registers that an agent's tool call writes this file, relative to the project's root. `is_allowed`: it has been
    /// asked for and granted.
    pub(crate) fn begin_write(&self, agent: &Slug, call: &str, path: &str, is_allowed: bool) {
        let path = format!("{}{path}", self.prefix);
        self.source.announce(Action::Write { agent, call, path: &path });
        let mut activity = self.activity.lock();
        activity.at_once(|interval| interval.name(agent, call, &path));
        activity.named.entry(agent.clone()).or_default().insert(path.clone());
        let naming = activity.naming.entry((agent.clone(), call.to_owned())).or_default();
        naming.paths.insert(path);
        naming.is_allowed |= is_allowed;
    }

    /// Returns once a call may run a command: the changes before it are told apart from its own. `None`: a call without
    /// an id, which counts until the end of the agent's work.
    pub(crate) async fn begin_command(&self, agent: &Slug, call: Option<&str>) {
        let asked = {
            let mut activity = self.activity.lock();
            if !activity.running.is_empty() {
                return self.run(&mut activity, agent, call);
            }
            // A snapshot that is being taken will do: what happens meanwhile belongs to both intervals.
            activity.cuts - u64::from(activity.next.is_some())
        };
        self.is_ready().await;
        let _guard = self.cutting.lock().await;
        let (is_first, is_cut) = {
            let activity = self.activity.lock();
            (activity.running.is_empty(), activity.cuts > asked)
        };
        match (is_first, is_cut) {
            (true, false) => {
                self.cut_for(Some(agent)).await;
            }
            (true, true) => self.tell_running(agent),
            (false, _) => {}
        }
        self.run(&mut self.activity.lock(), agent, call);
    }

    /// Reports that an agent's commands begin after a snapshot that was taken for another reason: a resumed run has to
    /// know.
    fn tell_running(&self, agent: &Slug) {
        let Some(commit) = self.activity.lock().snapshots.last().map(WorkTreeSnapshot::commit) else { return };
        let running = BTreeSet::from([agent.clone()]);
        self.tell(EventKind::SnapshotTaken(TakenSnapshot { commit, running, ..TakenSnapshot::default() }));
    }

    fn run(&self, activity: &mut Activity, agent: &Slug, call: Option<&str>) {
        if !activity.running.contains_key(agent) {
            self.source.announce(Action::Begin(agent));
        }
        let running = activity.running.entry(agent.clone()).or_default();
        running.is_unasked |= call.is_none();
        running.calls.extend(call.map(str::to_owned));
        activity.at_once(|interval| interval.commands.extend([agent.clone()]));
    }

    /// Registers the end of a call. `ok`: its result says that it succeeded.
    pub(crate) fn end_call(self: &Arc<Self>, agent: &Slug, call: &str, ok: bool) {
        let mut activity = self.activity.lock();
        if let Some(naming) = activity.naming.remove(&(agent.clone(), call.to_owned())) {
            for path in &naming.paths {
                activity.written.insert(path.clone(), self.source.fingerprint(path));
            }
            match ok || naming.is_allowed {
                true => naming.paths.iter().for_each(|path| self.source.announce(Action::Write { agent, call, path })),
                false => {
                    activity.intervals.iter_mut().for_each(|interval| interval.withdraw(agent, call));
                    activity.at_once(|interval| interval.withdraw(agent, call));
                }
            }
        }
        let Some(running) = activity.running.get_mut(agent) else { return };
        running.calls.remove(call);
        if running.is_unasked || !running.calls.is_empty() {
            return;
        }
        self.stop_running(&mut activity, agent);
        if activity.running.is_empty() {
            let (tree, ended) = (Arc::clone(self), activity.cuts);
            spawn(async move {
                let _guard = tree.cutting.lock().await;
                // The next command, or the agent's end, may have cut here already.
                if tree.activity.lock().cuts == ended {
                    tree.cut().await;
                }
            });
        }
    }

    fn stop_running(&self, activity: &mut Activity, agent: &Slug) {
        if activity.running.remove(agent).is_some() {
            self.source.announce(Action::End(agent));
        }
    }

    /// Files that other agents' tools said they write.
    pub(crate) fn written_by_others(&self, agent: &Slug) -> BTreeMap<Slug, Vec<String>> {
        let activity = self.activity.lock();
        let others = activity.named.iter().filter(|(other, _)| *other != agent);
        others.map(|(other, paths)| (other.clone(), paths.iter().cloned().collect())).into_map()
    }

    /// Ends an agent's work. Returns its changes, or `None` if they are unknown. One snapshot serves all agents whose
    /// work was over before it began. `has_left_running`: processes that its commands started went on after them.
    pub(crate) async fn leave(&self, agent: &Slug, has_left_running: bool) -> Option<AgentChanges> {
        self.is_ready().await;
        {
            let mut activity = self.activity.lock();
            if has_left_running {
                activity.ran_on(agent);
            }
            activity.leaving.insert(agent.clone());
            activity.naming.retain(|(other, _), _| other != agent);
        }
        let guard = self.cutting.lock().await;
        if !self.activity.lock().left.contains_key(agent) {
            let mut leaving = std::mem::take(&mut self.activity.lock().leaving);
            // Whoever was to end it may have been dropped in the middle.
            leaving.insert(agent.clone());
            {
                let mut activity = self.activity.lock();
                leaving.iter().for_each(|agent| self.stop_running(&mut activity, agent));
            }
            let is_cut = self.cut().await;
            self.activity.lock().end(leaving, is_cut);
        }
        let (begun, ended) = self.activity.lock().left.remove(agent)?;
        drop(guard);
        let (from, to) = {
            let activity = self.activity.lock();
            if begun == 0 && activity.lacks_first {
                return None;
            }
            (activity.snapshots.get(begun)?.clone(), activity.snapshots.get(ended)?.clone())
        };
        let net = self.compare((begun, ended), from.clone(), to.clone()).await?;
        let intervals = self.activity.lock().intervals.get(begun..ended).unwrap_or_default().to_vec();
        let files = self.with_lines(changes_of(Some(agent), &intervals, net), from, to).await;
        Some(AgentChanges { files, git: git_changes_of(agent, &intervals) })
    }

    /// The changes up to now that no agent of the run made.
    pub(crate) async fn of_others(&self) -> Vec<Change> {
        self.is_ready().await;
        let _guard = self.cutting.lock().await;
        self.cut().await;
        let (intervals, ends) = {
            let activity = self.activity.lock();
            let ends = activity.snapshots.first().cloned().zip(activity.snapshots.last().cloned());
            (activity.intervals.clone(), ends)
        };
        let Some((from, to)) = ends else { return Vec::new() };
        let net = self.compare((0, intervals.len()), from, to).await;
        changes_of(None, &intervals, net.unwrap_or_default())
    }

    /// The commit of a snapshot of now. `None`: it cannot be taken.
    pub(crate) async fn snapshot(&self) -> Option<String> {
        self.is_ready().await;
        let _guard = self.cutting.lock().await;
        let is_cut = self.cut().await;
        self.activity.lock().snapshots.last().map(WorkTreeSnapshot::commit).filter(|_| is_cut)
    }

    /// Tells the other runs in this work tree that a command of squad's own begins or ends.
    pub(crate) fn announce(&self, action: Action<'_>) {
        self.source.announce(action);
    }

    /// What an agent may commit now, as the snapshot has it; `None`: unknown.
    pub(crate) async fn committable(&self, agent: &Slug) -> Option<(Committable, WorkTreeSnapshot)> {
        self.is_ready().await;
        let _guard = self.cutting.lock().await;
        if !self.cut().await {
            return None;
        }
        let (intervals, origin, ends, written) = {
            let activity = self.activity.lock();
            if activity.lacks_first {
                return None;
            }
            let ends = activity.snapshots.first().cloned().zip(activity.snapshots.last().cloned())?;
            (activity.intervals.clone(), activity.origin.clone(), ends, activity.written.clone())
        };
        let (from, to) = ends;
        let first = origin.unwrap_or_else(|| from.clone());
        let net = self.compare((0, intervals.len()), from, to.clone()).await?;
        let mut found = committable(agent, &intervals, &net);
        let is_as_written =
            |path: &String| written.get(path).is_some_and(|left| *left == self.source.fingerprint(path));
        let may_be_by_command = |path: &String| {
            let named = intervals.iter().filter(|interval| interval.named.contains_key(path));
            named.into_iter().any(|interval| interval.commands.contains(agent))
        };
        let since: Vec<String> = found.own.iter().filter(|path| !is_as_written(path)).cloned().collect();
        for path in since {
            match may_be_by_command(&path) {
                true => {
                    found.own.remove(&path);
                    found.by_command.insert(path);
                }
                false => found.leave_out(path, "it was changed since you wrote it"),
            }
        }
        let paths = found.own.union(&found.by_command).cloned().collect();
        let source = Arc::clone(&self.source);
        let uncommitted = self.run_blocking(move || source.uncommitted(&first, &paths)).await;
        for path in uncommitted.inspect_err(|reason| self.warn(reason)).ok()? {
            found.leave_out(path, "it held uncommitted changes before the run began");
        }
        for SkippedFile { path, why } in to.left_out() {
            found.leave_out(path, &why);
        }
        Some((found, to))
    }

    /// Commits these files as a snapshot has them.
    pub(crate) async fn commit(
        &self,
        agent: &Slug,
        snapshot: WorkTreeSnapshot,
        paths: Vec<String>,
        message: String,
    ) -> Result<Landing, String> {
        let (source, agent) = (Arc::clone(&self.source), agent.clone());
        self.run_blocking(move || source.commit(&agent, &snapshot, &paths, &message)).await
    }

    /// The project's path relative to the repository's root, ending in `/`; empty if they are the same.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The changes between two snapshots.
    async fn compare(
        &self,
        (begun, ended): (usize, usize),
        from: WorkTreeSnapshot,
        to: WorkTreeSnapshot,
    ) -> Option<Vec<Change>> {
        {
            let activity = self.activity.lock();
            let mut changed =
                activity.intervals.get(begun..ended)?.iter().filter(|interval| !interval.changes.is_empty());
            match (changed.next(), changed.next()) {
                (None, _) => return Some(Vec::new()),
                (Some(only), None) => return Some(only.changes.clone()),
                _ => {}
            }
        }
        let mut compared = self.compared.lock().await;
        if let Some(last) = compared.as_ref().filter(|last| last.snapshots == (begun, ended)) {
            return Some(last.changes.clone());
        }
        let source = Arc::clone(&self.source);
        let changes = self.run_blocking(move || source.changed(&from, &to)).await;
        let changes = changes.inspect_err(|reason| self.warn(reason)).ok()?;
        *compared = Some(Comparison { snapshots: (begun, ended), changes: changes.clone() });
        Some(changes)
    }

    /// Adds the lines of files that commands changed: no tool call has recorded them.
    async fn with_lines(&self, mut changes: Vec<Change>, from: WorkTreeSnapshot, to: WorkTreeSnapshot) -> Vec<Change> {
        let paths = unrecorded(&changes);
        if !paths.is_empty() {
            let source = Arc::clone(&self.source);
            let diff = self.run_blocking(move || source.diff(&from, &to, &paths)).await;
            add_lines(&mut changes, &diff.unwrap_or_default());
        }
        changes
    }

    /// Changed lines of these files since the run began; empty if unknown.
    pub(crate) async fn diff(&self, paths: Vec<String>) -> String {
        let (from, to) = {
            let activity = self.activity.lock();
            let first = activity.origin.as_ref().or_else(|| activity.snapshots.first());
            let (Some(first), Some(last)) = (first, activity.snapshots.last()) else { return String::new() };
            (first.clone(), last.clone())
        };
        let source = Arc::clone(&self.source);
        self.run_blocking(move || source.diff(&from, &to, &paths)).await.unwrap_or_else(|reason| {
            self.warn(&reason);
            String::new()
        })
    }

    /// The contents of these files in the last snapshot, as far as known.
    pub(crate) async fn contents(&self, paths: Vec<String>) -> BTreeMap<String, Content> {
        let Some(last) = self.activity.lock().snapshots.last().cloned() else { return BTreeMap::new() };
        let source = Arc::clone(&self.source);
        self.run_blocking(move || source.contents(&last, &paths)).await.unwrap_or_else(|reason| {
            self.warn(&reason);
            BTreeMap::new()
        })
    }

    async fn cut(&self) -> bool {
        self.cut_for(None).await
    }

    /// Takes a snapshot, which ends the current interval. The caller holds `cutting`. `false`: it failed, and the
    /// interval goes on. `begins`: the agent whose command is about to run.
    async fn cut_for(&self, begins: Option<&Slug>) -> bool {
        let (previous, others) = {
            let mut activity = self.activity.lock();
            activity.cuts += 1;
            let (since, now) = self.source.others();
            activity.open.others.extend(&since);
            activity.next = Some(activity.beginning(now.clone()));
            (activity.snapshots.last().cloned(), now)
        };
        let (source, before) = (Arc::clone(&self.source), previous.clone());
        let taken = self.run_blocking(move || {
            let asked = Instant::now();
            let taken = source.take(before.as_ref())?;
            let seconds = seconds(asked.elapsed());
            let Some(before) = before else { return Ok((taken, seconds, Vec::new(), GitChanges::default())) };
            let changes = source.changed(&before, &taken)?;
            let git = source.git_changes(&before, &taken)?;
            Ok((taken, seconds, changes, git))
        });
        let taken = taken.await;
        let mut activity = self.activity.lock();
        let (since, now) = self.source.others();
        activity.at_once(|interval| interval.others.extend(&since));
        let mut next = activity.next.take().unwrap_or_default();
        next.others.extend(&others);
        next.others.extend(&now);
        let (snapshot, seconds, changes, git) = match taken {
            Ok(taken) => taken,
            Err(reason) => {
                drop(activity);
                self.warn(&reason);
                return false;
            }
        };
        let ended = std::mem::replace(&mut activity.open, next);
        let mut ended = Interval { changes, git, ..ended };
        if let Some(owner) = self.source.owner() {
            ended.is_down = false;
            ended.commands.insert(owner.clone());
        }
        // Named once, not with every snapshot.
        let known = previous.as_ref().map(WorkTreeSnapshot::left_out).unwrap_or_default();
        let report = TakenSnapshot {
            commit: snapshot.commit(),
            left_out: snapshot.left_out().into_iter().filter(|left| !known.contains(left)).collect(),
            seconds,
            commands: ended.commands.clone(),
            running: activity.open.commands.iter().chain(begins).cloned().collect(),
            writing: activity.open.writing(),
            others: ended.others.clone(),
            git: ended.git.clone(),
            work_tree: self.source.linked_name(),
            down: ended.is_down,
        };
        let is_new = previous.as_ref().is_none_or(|previous| previous.commit() != report.commit);
        let is_news = is_new || report.down || !report.git.is_empty() || begins.is_some();
        if previous.is_some() {
            activity.intervals.push(ended);
        }
        activity.snapshots.push(snapshot);
        if is_news {
            // Before anything else can begin: a resumed run knows the intervals by the order of the entries.
            self.tell(EventKind::SnapshotTaken(report));
        }
        true
    }

    /// Fetches what an agent's own git has committed in the sandbox, and reports it.
    pub(super) async fn fetch_commits(&self, agent: &Slug, sandbox: Option<&Sandbox>) {
        let Some((sandbox, git)) = sandbox.and_then(|sandbox| Some((sandbox.clone(), sandbox.git()?))) else { return };
        let source = Arc::clone(&self.source);
        // One after the other: they are numbered.
        let guard = self.cutting.lock().await;
        let fetched = self.run_blocking(move || source.fetch_commits(&sandbox)).await;
        drop(guard);
        match fetched {
            Ok(commits) => {
                for FetchedCommit { reference, commit, name } in commits {
                    self.reports.tell(Some(agent), EventKind::GitFetched { reference, commit, name });
                }
            }
            Err(reason) => {
                git.keep();
                let folder = git.path().display();
                let reason = format!("the commits of its git are only in {folder}, until `squad gc`: {reason}");
                self.reports.tell(Some(agent), EventKind::SessionError { session: String::new(), reason });
            }
        }
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        if !self.threads {
            return work();
        }
        spawn_blocking(work).await.map_err(|error| error.to_string()).flatten()
    }

    fn warn(&self, reason: &str) {
        let reason = format!("what changes in the work tree cannot be seen: {reason}");
        self.tell(EventKind::SessionError { session: String::new(), reason });
    }
}
