//! Tracks changes in the work tree while agents work, and attributes them to agents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::Reports;
use crate::git::WorkTreeSnapshot;
use crate::model::{Change, EventKind, GitChanges, OtherRuns, Slug, seconds};

/// Takes snapshots. Slow, because it looks at every file.
pub(crate) trait TakeSnapshots: Send + Sync {
    fn take(&self, previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String>;

    fn changed(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, String>;

    /// The changed lines of these files, whose paths are relative to the repository's root.
    fn diff(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot, paths: &[String]) -> Result<String, String>;
}

/// The work tree of a run. Snapshots divide the run into spans of time with known agents at work.
pub(crate) struct WorkTree {
    source: Arc<dyn TakeSnapshots>,
    /// See `Env::threads`.
    threads: bool,
    /// The project's path relative to the repository's root, ending in `/`; empty if they are the same.
    prefix: String,
    reports: Reports,
    /// Taken one at a time, in order. An error says why a snapshot is missing.
    snapshots: tokio::sync::Mutex<Vec<Result<WorkTreeSnapshot, String>>>,
    /// The last comparison, which agents that work side by side share.
    compared: tokio::sync::Mutex<Option<Comparison>>,
    /// The run's first snapshot, if it was taken before the run was resumed.
    origin: Mutex<Option<WorkTreeSnapshot>>,
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

/// Changes made before the run was resumed.
pub(crate) struct Before {
    /// Relative to the repository's root: changes that belong to finished work.
    pub(crate) settled: BTreeSet<String>,
    /// Relative to the project's root: files named by agents' tools.
    pub(crate) named: Vec<(Slug, String)>,
}

/// Which agents worked when.
#[derive(Default)]
struct Activity {
    /// Each with the index of the snapshot its work began at.
    at_work: BTreeMap<Slug, usize>,
    /// Agents whose work is over and that no snapshot has ended yet.
    leaving: BTreeSet<Slug>,
    /// The first and last snapshot of agents that have not fetched them yet.
    left: BTreeMap<Slug, (usize, usize)>,
    /// The agents at work in each span; a span begins with a snapshot.
    spans: Vec<BTreeSet<Slug>>,
    /// Files that agents' tools said they write.
    named: BTreeMap<Slug, BTreeSet<String>>,
    /// Files changed by work that was finished when the run was interrupted.
    settled: BTreeSet<String>,
}

impl WorkTree {
    pub(crate) fn new(source: Arc<dyn TakeSnapshots>, threads: bool, prefix: String, reports: Reports) -> Arc<Self> {
        Arc::new(Self {
            source,
            threads,
            prefix,
            reports,
            snapshots: tokio::sync::Mutex::default(),
            compared: tokio::sync::Mutex::default(),
            origin: Mutex::default(),
            activity: Mutex::new(Activity { spans: vec![BTreeSet::new()], ..Activity::default() }),
            is_ready: watch::Sender::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    /// Takes the first snapshot in the background.
    pub(crate) fn begin(self: &Arc<Self>) {
        let tree = Arc::clone(self);
        tokio::spawn(async move {
            let mut snapshots = tree.snapshots.lock().await;
            let first = tree.take(None).await;
            snapshots.push(first);
            tree.is_ready.send_replace(true);
        });
    }

    /// Continues a resumed run from two of its snapshots: its first, and the one that its unfinished step began with.
    pub(crate) async fn go_on(&self, first: WorkTreeSnapshot, last: WorkTreeSnapshot, before: Before) {
        let Before { mut settled, named } = before;
        // A changed file that a tool has named is an agent's change; any other may be anyone's, such as the user's.
        if let Ok(now) = self.take(Some(&last)).await {
            let (source, from) = (Arc::clone(&self.source), last.clone());
            let changed = self.run_blocking(move || source.changed(&from, &now)).await.unwrap_or_default();
            let is_named = |path: &str| named.iter().any(|(_, named)| format!("{}{named}", self.prefix) == path);
            settled.extend(changed.into_iter().map(|change| change.path).filter(|path| !is_named(path)));
        }
        self.activity().settled = settled;
        for (agent, path) in named {
            self.name(&agent, &path);
        }
        *self.origin.lock().unwrap_or_else(PoisonError::into_inner) = Some(first);
        self.snapshots.lock().await.push(Ok(last));
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
        if !self.is_over.load(Ordering::Relaxed) {
            self.reports.tell(None, kind);
        }
    }

    /// Registers that an agent begins to work.
    pub(crate) fn enter(&self, agent: &Slug) {
        let mut activity = self.activity();
        let span = activity.spans.len() - 1;
        activity.left.remove(agent);
        activity.at_work.insert(agent.clone(), span);
        activity.spans[span].insert(agent.clone());
    }

    /// Registers that an agent's tool writes this file, relative to the project's root.
    pub(crate) fn name(&self, agent: &Slug, path: &str) {
        let path = format!("{}{path}", self.prefix);
        self.activity().named.entry(agent.clone()).or_default().insert(path);
    }

    /// Files that other agents' tools said they write.
    pub(crate) fn written_by_others(&self, agent: &Slug) -> BTreeMap<Slug, Vec<String>> {
        let activity = self.activity();
        let others = activity.named.iter().filter(|(other, _)| *other != agent);
        others.map(|(other, paths)| (other.clone(), paths.iter().cloned().collect())).collect()
    }

    /// Ends an agent's work. Returns its changes, or `None` if they are unknown. One snapshot serves all agents whose
    /// work was over before it began.
    pub(crate) async fn leave(&self, agent: &Slug) -> Option<Vec<Change>> {
        self.is_ready().await;
        self.activity().leaving.insert(agent.clone());
        let mut snapshots = self.snapshots.lock().await;
        if !self.activity().left.contains_key(agent) {
            let mut leaving = std::mem::take(&mut self.activity().leaving);
            // Whoever was to end it may have been dropped in the middle.
            leaving.insert(agent.clone());
            let next = match snapshots.last() {
                Some(Ok(previous)) => self.take(Some(previous)).await,
                _ => Err(String::new()),
            };
            snapshots.push(next);
            self.activity().end_span(leaving);
        }
        let (begun, ended) = self.activity().left.remove(agent)?;
        let (Ok(from), Ok(to)) = (snapshots.get(begun)?.clone(), snapshots.get(ended)?.clone()) else { return None };
        drop(snapshots);
        let mut compared = self.compared.lock().await;
        let changes = match &*compared {
            Some(last) if last.snapshots == (begun, ended) => last.changes.clone(),
            _ => {
                let source = Arc::clone(&self.source);
                let changes = self.run_blocking(move || source.changed(&from, &to)).await;
                let changes = changes.inspect_err(|reason| self.warn(reason)).ok()?;
                *compared = Some(Comparison { snapshots: (begun, ended), changes: changes.clone() });
                changes
            }
        };
        drop(compared);
        Some(self.activity().attribute(changes, agent, begun, ended))
    }

    /// Changed lines of these files since the run began; empty if unknown.
    pub(crate) async fn diff(&self, paths: Vec<String>) -> String {
        let snapshots = self.snapshots.lock().await;
        let (Some(Ok(first)), Some(Ok(to))) = (snapshots.first().cloned(), snapshots.last().cloned()) else {
            return String::new();
        };
        drop(snapshots);
        let from = self.origin.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(first);
        let source = Arc::clone(&self.source);
        self.run_blocking(move || source.diff(&from, &to, &paths)).await.unwrap_or_else(|reason| {
            self.warn(&reason);
            String::new()
        })
    }

    async fn take(&self, previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String> {
        let (source, before, asked) = (Arc::clone(&self.source), previous.cloned(), Instant::now());
        let taken = self.run_blocking(move || source.take(before.as_ref())).await;
        match &taken {
            Ok(snapshot) if previous.is_none_or(|previous| previous.commit() != snapshot.commit()) => {
                let (commit, left_out) = (snapshot.commit(), snapshot.left_out());
                let seconds = seconds(asked.elapsed());
                let (commands, others, git) = (Vec::new(), OtherRuns::default(), GitChanges::default());
                self.tell(EventKind::SnapshotTaken { commit, left_out, seconds, commands, others, git });
            }
            Ok(_) => {}
            Err(reason) => self.warn(reason),
        }
        taken
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        if !self.threads {
            return work();
        }
        tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string()).flatten()
    }

    fn warn(&self, reason: &str) {
        let reason = format!("what changes in the work tree cannot be seen: {reason}");
        self.tell(EventKind::SessionError { session: String::new(), reason });
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Activity {
    /// Starts a new span after the snapshot for the end of these agents.
    fn end_span(&mut self, leaving: BTreeSet<Slug>) {
        let ended = self.spans.len();
        for agent in leaving {
            if let Some(begun) = self.at_work.remove(&agent) {
                self.left.insert(agent, (begun, ended));
            }
        }
        self.spans.push(self.at_work.keys().cloned().collect());
    }

    /// The changes between two snapshots that are, or may be, an agent's. The latter name all agents that were at work.
    fn attribute(&self, changes: Vec<Change>, agent: &Slug, begun: usize, ended: usize) -> Vec<Change> {
        let at_work: BTreeSet<&Slug> = self.spans[begun..ended].iter().flatten().collect();
        let has_named = |who: &Slug, path: &str| self.named.get(who).is_some_and(|paths| paths.contains(path));
        let attribute = |change: Change| {
            let namers: Vec<&Slug> = at_work.iter().copied().filter(|who| has_named(who, &change.path)).collect();
            let by = match &namers[..] {
                [] if self.settled.contains(&change.path) => return None,
                [] if at_work.len() <= 1 => Vec::new(),
                [] => at_work.iter().copied().cloned().collect(),
                [only] if *only == agent => Vec::new(),
                several if several.contains(&agent) => several.iter().copied().cloned().collect(),
                _ => return None,
            };
            Some(Change { by, ..change })
        };
        changes.into_iter().filter_map(attribute).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;

    use super::*;

    fn slug(name: &str) -> Slug {
        Slug::fold(name).expect("a slug")
    }

    fn changes(paths: &[&str]) -> Vec<Change> {
        let change =
            |path: &&str| Change { path: (*path).to_owned(), added: Some(1), removed: Some(0), ..Change::default() };
        paths.iter().map(change).collect()
    }

    fn shown(changes: &[Change]) -> Vec<String> {
        let names = |change: &Change| change.by.iter().map(|by| format!(" {by}")).collect::<String>();
        changes.iter().map(|change| format!("{}{}", change.path, names(change))).collect()
    }

    /// ada works in the first two spans, bob in the first, eve in the second.
    fn activity() -> Activity {
        let mut activity = Activity { spans: vec![BTreeSet::new()], ..Activity::default() };
        for name in ["ada", "bob"] {
            activity.at_work.insert(slug(name), 0);
            activity.spans[0].insert(slug(name));
        }
        let end = |activity: &mut Activity, name| {
            activity.end_span(BTreeSet::from([slug(name)]));
            activity.left.remove(&slug(name))
        };
        assert_eq!(end(&mut activity, "bob"), Some((0, 1)));
        activity.at_work.insert(slug("eve"), 1);
        activity.spans[1].insert(slug("eve"));
        assert_eq!(end(&mut activity, "ada"), Some((0, 2)));
        assert_eq!(end(&mut activity, "eve"), Some((1, 3)));
        assert_eq!(end(&mut activity, "nobody"), None);
        activity
    }

    /// Counts its snapshots, each of which takes as long as agents need to finish, and its comparisons.
    #[derive(Default)]
    struct Counting {
        snapshots: AtomicU8,
        comparisons: AtomicU8,
    }

    impl TakeSnapshots for Counting {
        fn take(&self, _previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String> {
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok(WorkTreeSnapshot::sample(self.snapshots.fetch_add(1, Ordering::Relaxed)))
        }

        fn changed(&self, _from: &WorkTreeSnapshot, _to: &WorkTreeSnapshot) -> Result<Vec<Change>, String> {
            self.comparisons.fetch_add(1, Ordering::Relaxed);
            Ok(changes(&["x"]))
        }

        fn diff(&self, _from: &WorkTreeSnapshot, _to: &WorkTreeSnapshot, _paths: &[String]) -> Result<String, String> {
            Ok(String::new())
        }
    }

    #[tokio::test]
    async fn one_snapshot_ends_the_work_of_all_that_have_finished() {
        let (reports, _messages) = Reports::channel();
        let source = Arc::new(Counting::default());
        let tree = WorkTree::new(Arc::<Counting>::clone(&source), true, String::new(), reports);
        tree.begin();
        let names: Vec<Slug> = (0..32).map(|number| slug(&format!("a{number}"))).collect();
        names.iter().for_each(|name| tree.enter(name));
        let mut leaving = tokio::task::JoinSet::new();
        for name in names {
            let tree = Arc::clone(&tree);
            leaving.spawn(async move { tree.leave(&name).await });
        }
        while let Some(left) = leaving.join_next().await {
            let change = left.expect("it ends").expect("changes are known").remove(0);
            assert_eq!((change.path.as_str(), change.by.len()), ("x", 32));
        }
        // The first, that of whoever was first, and that of all others.
        assert_eq!(source.snapshots.load(Ordering::Relaxed), 3);
        assert!(source.comparisons.load(Ordering::Relaxed) <= 2);
        assert!(tree.activity().at_work.is_empty() && tree.activity().left.is_empty());
    }

    #[test]
    fn changes_are_attributed_by_tool_or_to_all_agents_at_work() {
        let mut activity = activity();
        for (name, path) in [("ada", "a"), ("bob", "b"), ("ada", "both"), ("bob", "both"), ("eve", "e")] {
            activity.named.entry(slug(name)).or_default().insert(path.to_owned());
        }
        let all = || changes(&["a", "b", "both", "e", "x"]);
        let of = |name: &str, begun, ended| shown(&activity.attribute(all(), &slug(name), begun, ended));
        assert_eq!(of("ada", 0, 2), ["a", "both ada bob", "x ada bob eve"]);
        assert_eq!(of("bob", 0, 1), ["b", "both ada bob", "e ada bob", "x ada bob"], "eve was not there");
        assert_eq!(of("eve", 2, 3), ["a", "b", "both", "e", "x"], "nobody else was");
    }
}
