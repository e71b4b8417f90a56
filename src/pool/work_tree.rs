//! What changes in the work tree while agents work, and whose doing it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::Reports;
use crate::git::WorkTreeSnapshot;
use crate::model::{Change, Slug, What, seconds};

/// Takes snapshots. Slow: it looks at every file.
pub(crate) trait TakeSnapshots: Send + Sync {
    fn take(&self, previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String>;

    fn changed(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, String>;

    /// The lines that differ in these files, named from the repository's root.
    fn diff(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot, paths: &[String]) -> Result<String, String>;
}

/// The work tree of a run. Snapshots divide the run into spans of time, of each of which it is known who was at work.
pub(crate) struct WorkTree {
    source: Arc<dyn TakeSnapshots>,
    /// See `Env::threads`.
    threads: bool,
    /// The project's root from the repository's, with `/` at its end; empty where they are the same.
    prefix: String,
    reports: Reports,
    /// Taken one at a time, in order. An error is why there are none.
    snapshots: tokio::sync::Mutex<Vec<Result<WorkTreeSnapshot, String>>>,
    /// The first one of the run, where it was taken before the run was resumed.
    origin: Mutex<Option<WorkTreeSnapshot>>,
    activity: Mutex<Activity>,
    /// The first snapshot is taken, or will never be.
    is_ready: watch::Sender<bool>,
    /// The run's end is on record.
    is_over: AtomicBool,
}

/// What is known of the files of a run that is resumed.
pub(crate) struct Before {
    /// From the repository's root: those whose change belongs to work that is done.
    pub(crate) settled: BTreeSet<String>,
    /// From the project's root: whose tools have named which.
    pub(crate) named: Vec<(Slug, String)>,
}

/// Who worked when.
#[derive(Default)]
struct Activity {
    /// Each with the snapshot its work began at.
    at_work: BTreeMap<Slug, usize>,
    /// Who was at work in each span; a span begins with a snapshot.
    spans: Vec<BTreeSet<Slug>>,
    /// Files that agents' tools named as those they write.
    named: BTreeMap<Slug, BTreeSet<String>>,
    /// Files that those changed whose work was done when the run was interrupted.
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
            origin: Mutex::default(),
            activity: Mutex::new(Activity { spans: vec![BTreeSet::new()], ..Activity::default() }),
            is_ready: watch::Sender::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    /// Takes the first snapshot, beside everything else that begins.
    pub(crate) fn begin(self: &Arc<Self>) {
        let tree = Arc::clone(self);
        tokio::spawn(async move {
            let mut snapshots = tree.snapshots.lock().await;
            let first = tree.take(None).await;
            snapshots.push(first);
            tree.is_ready.send_replace(true);
        });
    }

    /// Goes on from the snapshots of a run that is resumed: its first, and the one that the unfinished step began with.
    pub(crate) async fn go_on(&self, first: WorkTreeSnapshot, last: WorkTreeSnapshot, before: Before) {
        let Before { mut settled, named } = before;
        // What differs by now was an agent's where its tool has named it; else it may be anybody's, such as the user's.
        if let Ok(now) = self.take(Some(&last)).await {
            let (source, from) = (Arc::clone(&self.source), last.clone());
            let changed = self.aside(move || source.changed(&from, &now)).await.unwrap_or_default();
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

    /// Returns when what is changed from now on will be seen.
    pub(crate) async fn is_ready(&self) {
        // The sender lives as long as this.
        let _ = self.is_ready.subscribe().wait_for(|is_ready| *is_ready).await;
    }

    /// Nothing is said any more of a snapshot that is still being taken.
    pub(crate) fn close(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn tell(&self, what: What) {
        if !self.is_over.load(Ordering::Relaxed) {
            self.reports.tell(None, what);
        }
    }

    /// An agent begins to work.
    pub(crate) fn enter(&self, agent: &Slug) {
        let mut activity = self.activity();
        let span = activity.spans.len() - 1;
        activity.at_work.insert(agent.clone(), span);
        activity.spans[span].insert(agent.clone());
    }

    /// An agent's tool writes this file, named from the project's root.
    pub(crate) fn name(&self, agent: &Slug, path: &str) {
        let path = format!("{}{path}", self.prefix);
        self.activity().named.entry(agent.clone()).or_default().insert(path);
    }

    /// What others have written so far, as far as their tools said.
    pub(crate) fn written_by_others(&self, agent: &Slug) -> BTreeMap<Slug, Vec<String>> {
        let activity = self.activity();
        let others = activity.named.iter().filter(|(other, _)| *other != agent);
        others.map(|(other, paths)| (other.clone(), paths.iter().cloned().collect())).collect()
    }

    /// An agent has ended its work. Returns what it changed; `None`: that could not be seen.
    pub(crate) async fn leave(&self, agent: &Slug) -> Option<Vec<Change>> {
        self.is_ready().await;
        let mut snapshots = self.snapshots.lock().await;
        let next = match snapshots.last() {
            Some(Ok(previous)) => self.take(Some(previous)).await,
            _ => Err(String::new()),
        };
        snapshots.push(next);
        let (begun, ended) = self.activity().divide(agent)?;
        let (Ok(from), Ok(to)) = (snapshots.get(begun)?.clone(), snapshots.get(ended)?.clone()) else { return None };
        drop(snapshots);
        let source = Arc::clone(&self.source);
        let changed = self.aside(move || source.changed(&from, &to)).await;
        match changed {
            Ok(changes) => Some(self.activity().attribute(changes, agent, begun, ended)),
            Err(reason) => {
                self.complain(&reason);
                None
            }
        }
    }

    /// What these files' lines were when the run began and are now; empty where that cannot be seen.
    pub(crate) async fn diff(&self, paths: Vec<String>) -> String {
        let snapshots = self.snapshots.lock().await;
        let (Some(Ok(first)), Some(Ok(to))) = (snapshots.first().cloned(), snapshots.last().cloned()) else {
            return String::new();
        };
        drop(snapshots);
        let from = self.origin.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(first);
        let source = Arc::clone(&self.source);
        self.aside(move || source.diff(&from, &to, &paths)).await.unwrap_or_else(|reason| {
            self.complain(&reason);
            String::new()
        })
    }

    async fn take(&self, previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String> {
        let (source, before, asked) = (Arc::clone(&self.source), previous.cloned(), Instant::now());
        let taken = self.aside(move || source.take(before.as_ref())).await;
        match &taken {
            Ok(snapshot) if previous.is_none_or(|previous| previous.commit() != snapshot.commit()) => {
                let (commit, left_out) = (snapshot.commit(), snapshot.left_out());
                self.tell(What::SnapshotTaken { commit, left_out, seconds: seconds(asked.elapsed()) });
            }
            Ok(_) => {}
            Err(reason) => self.complain(reason),
        }
        taken
    }

    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        if !self.threads {
            return work();
        }
        tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string()).flatten()
    }

    fn complain(&self, reason: &str) {
        let reason = format!("what changes in the work tree cannot be seen: {reason}");
        self.tell(What::SessionError { session: String::new(), reason });
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Activity {
    /// A snapshot was taken because the agent has ended. Returns the first and the last of its snapshots.
    fn divide(&mut self, agent: &Slug) -> Option<(usize, usize)> {
        let begun = self.at_work.remove(agent);
        self.spans.push(self.at_work.keys().cloned().collect());
        Some((begun?, self.spans.len() - 1))
    }

    /// The changes between two snapshots that are an agent's, or may be: then with all who were at work.
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
    use super::*;

    fn slug(name: &str) -> Slug {
        Slug::fold(name).expect("a slug")
    }

    fn changes(paths: &[&str]) -> Vec<Change> {
        let change =
            |path: &&str| Change { path: (*path).to_owned(), added: Some(1), removed: Some(0), by: Vec::new() };
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
        assert_eq!(activity.divide(&slug("bob")), Some((0, 1)));
        activity.at_work.insert(slug("eve"), 1);
        activity.spans[1].insert(slug("eve"));
        assert_eq!(activity.divide(&slug("ada")), Some((0, 2)));
        assert_eq!(activity.divide(&slug("eve")), Some((1, 3)));
        assert_eq!(activity.divide(&slug("nobody")), None);
        activity
    }

    #[test]
    fn a_change_is_whose_tool_named_it_or_who_was_alone_and_else_anybodys() {
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
