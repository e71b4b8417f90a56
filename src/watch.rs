//! Reports changes of a team's folder as ticks.
//!
//! System events are only hints: editors save files in different ways, and files created together with their folder are
//! missed. So a tick only says that it is time to look; the caller compares the files with their previous state.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Changes closer together than this make one tick.
pub(crate) const DEBOUNCE: Duration = Duration::from_millis(50);
/// A tick comes after this time even if changes continue.
const MAX_DELAY: Duration = Duration::from_millis(500);
/// Interval of checks without any events.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of checks if the system reports no events.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct FolderChanges {
    folder: PathBuf,
    watcher: Option<RecommendedWatcher>,
    hints: mpsc::UnboundedReceiver<Hint>,
    /// Never used; keeps the channel open if there is no watcher.
    _sender: mpsc::UnboundedSender<Hint>,
    /// Files that are being written.
    open: BTreeSet<PathBuf>,
    /// Why the system reports no events.
    pub(crate) problem: Option<String>,
}

/// A notification about changed files.
struct Hint {
    paths: Vec<PathBuf>,
    /// The writer has not closed them yet.
    is_open: bool,
}

impl Hint {
    /// `None` for read access.
    fn of(event: notify::Result<notify::Event>) -> Option<Self> {
        let Ok(event) = event else { return Some(Self { paths: Vec::new(), is_open: false }) };
        let is_open = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => return None,
            // Other systems do not report when a file is closed.
            EventKind::Modify(ModifyKind::Data(_)) => cfg!(any(target_os = "linux", target_os = "android")),
            _ => false,
        };
        Some(Self { paths: event.paths, is_open })
    }
}

impl FolderChanges {
    /// Watches a folder, and its parent in case the folder is removed or created.
    pub(crate) fn of(folder: &Path) -> Self {
        let (sender, hints) = mpsc::unbounded_channel();
        let tell = sender.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if let Some(hint) = Hint::of(event) {
                // The receiver is gone, so nobody needs the hint.
                let _ = tell.send(hint);
            }
        });
        let (watcher, problem) = match watcher {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let (folder, open) = (folder.to_owned(), BTreeSet::new());
        let mut changes = Self { folder, watcher, hints, _sender: sender, open, problem };
        changes.watch_folders();
        changes
    }

    /// Returns when it is time to look: there are no more events and written files are closed, or it takes too long.
    pub(crate) async fn tick(&mut self) {
        let rest = if self.problem.is_some() { POLL_INTERVAL } else { IDLE_INTERVAL };
        let deadline = Instant::now() + rest;
        let Ok(mut hint) = timeout_at(deadline, self.hints.recv()).await else { return };
        let latest = Instant::now() + MAX_DELAY;
        loop {
            self.note(hint.take());
            let quiet = if self.open.is_empty() { latest.min(Instant::now() + DEBOUNCE) } else { latest };
            hint = tokio::select! {
                biased;
                () = sleep_until(quiet) => break,
                hint = self.hints.recv() => hint,
            };
        }
        self.open.clear();
        // The folder may have been replaced, or have new subfolders.
        self.watch_folders();
        while self.hints.try_recv().is_ok() {}
    }

    fn note(&mut self, hint: Option<Hint>) {
        let Some(Hint { paths, is_open }) = hint else { return };
        match is_open {
            true => self.open.extend(paths),
            false => self.open.retain(|open| !paths.contains(open)),
        }
    }

    fn watch_folders(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        let parent = self.folder.parent().unwrap_or(&self.folder);
        let parent_watched = watcher.watch(parent, RecursiveMode::NonRecursive);
        self.problem = match watcher.watch(&self.folder, RecursiveMode::Recursive) {
            // The parent's watcher notices if it is created again.
            Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => None,
            folder_watched => parent_watched.and(folder_watched).err().map(|error| error.to_string()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    async fn ticks_soon(changes: &mut FolderChanges) -> bool {
        tokio::time::timeout(IDLE_INTERVAL - Duration::from_secs(1), changes.tick()).await.is_ok()
    }

    #[tokio::test]
    async fn every_way_of_saving_makes_a_tick() {
        let project = tempfile::tempdir().expect("a folder");
        let folder = project.path().join(".squad");
        fs::create_dir_all(folder.join("agents/ada")).expect("a folder");
        let charter = folder.join("agents/ada/charter.md");
        let mut changes = FolderChanges::of(&folder);
        assert_eq!(changes.problem, None);
        fs::write(&charter, "one").expect("a file");
        assert!(ticks_soon(&mut changes).await, "written");
        let beside = folder.join("agents/ada/charter.md~");
        fs::write(&beside, "two").expect("a file");
        fs::rename(&beside, &charter).expect("a rename");
        assert!(ticks_soon(&mut changes).await, "replaced");
        fs::create_dir_all(folder.join("agents/bob/more")).expect("a folder");
        assert!(ticks_soon(&mut changes).await, "a new folder");
        fs::write(folder.join("agents/bob/more/a.md"), "three").expect("a file");
        assert!(ticks_soon(&mut changes).await, "in a new folder");
        fs::remove_dir_all(&folder).expect("it is ours");
        assert!(ticks_soon(&mut changes).await, "gone");
        fs::create_dir_all(&folder).expect("a folder");
        assert!(ticks_soon(&mut changes).await, "back");
        fs::write(folder.join("team.md"), "four").expect("a file");
        assert!(ticks_soon(&mut changes).await, "in the folder that came back");
    }

    #[tokio::test]
    async fn reading_makes_no_tick() {
        let project = tempfile::tempdir().expect("a folder");
        let folder = project.path().join(".squad");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("team.md"), "one").expect("a file");
        let mut changes = FolderChanges::of(&folder);
        let _ = fs::read(folder.join("team.md"));
        let tick = tokio::time::timeout(Duration::from_millis(300), changes.tick()).await;
        assert!(tick.is_err());
    }
}
