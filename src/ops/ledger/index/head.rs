//! The folders of a team's entries, with their ids and entry counts.

use serde::{Deserialize, Serialize};

use crate::git::{Error, Folder, Readable, Snapshot, Walk};
use crate::model::{Activity, Sort};

/// A folder with at most this many entries is one span. A larger limit would make reading the newest entries slow, a
/// smaller one would make many files.
pub(super) const MAX_SPAN: usize = 1_000;

/// How often a folder can be split into subfolders: years, months, days, hours, minutes.
const MAX_DEPTH: usize = 5;

/// The length of `yyyy/mm/dd`.
const DAY: usize = 10;

/// The top-level folder of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Place {
    Log,
    Decisions,
    Memory,
}

impl Place {
    pub(in crate::ops) const ALL: [Self; 3] = [Self::Log, Self::Decisions, Self::Memory];

    /// The folder's path for the team with this prefix.
    pub(in crate::ops) fn path(self, prefix: &str) -> String {
        let name = match self {
            Self::Log => "log",
            Self::Decisions => "decisions",
            Self::Memory => "memory",
        };
        format!("{prefix}{name}")
    }
}

/// A folder that is indexed as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::ops) struct Span {
    pub(in crate::ops) path: String,
    pub(super) key: String,
    /// The offset of the date in its path.
    root: usize,
}

impl Span {
    /// Whether all its entries are from before a day: `2026/01/05`, or a prefix of it.
    pub(in crate::ops) fn is_before(&self, day: &str) -> bool {
        let date = self.path.get(self.root..).unwrap_or_default();
        let length = date.len().min(day.len());
        date.get(..length) < day.get(..length)
    }

    pub(super) fn sort<T>(&self, rows: &mut [super::Row<T>]) {
        rows.stable_sort_by(|one, other| self.order(&one.path).cmp(&self.order(&other.path)));
    }

    /// Sort key for entries in order of creation, at any folder depth: the day, and the name, which starts with the
    /// time.
    fn order<'p>(&self, path: &'p str) -> (Option<&'p str>, &'p str) {
        let day = path.get(self.root..self.root + DAY);
        (day, path.rsplit('/').next().unwrap_or(path))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    /// The ledger commit this describes; empty if something could not be read, so that it is derived again.
    pub(super) tip: String,
    /// In the order of [`Place::ALL`]; `None`: there is no such folder.
    places: Vec<Option<Node>>,
    /// The remotes' tips, and the number of entries none of them has.
    pub(super) unsynced: Option<(Vec<String>, usize)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Node {
    path: String,
    /// Empty if something could not be read.
    key: String,
    entries: usize,
    /// Its subfolders, if it is not a span.
    below: Vec<Node>,
}

impl Head {
    /// Reads the folders that changed since `old`. Also returns the paths that are no longer spans.
    pub(super) fn derive(
        snapshot: &Snapshot,
        prefix: &str,
        tip: String,
        old: Option<Self>,
        activity: &Activity,
    ) -> Result<(Self, Vec<String>), Error> {
        let old = old.map(|old| old.places).unwrap_or_default();
        let mut is_whole = true;
        let mut builder = NodeBuilder { snapshot, visited: Walk::default(), divided: Vec::new(), activity, counted: 0 };
        let mut places = Vec::new();
        for (at, place) in Place::ALL.iter().enumerate() {
            let found = snapshot.find_folder(&place.path(prefix))?;
            let old = old.get(at).and_then(Option::as_ref);
            let node = found.value.map(|folder| builder.node(&folder, old, MAX_DEPTH)).transpose()?;
            is_whole &= found.is_whole && node.as_ref().is_none_or(|node| !node.key.is_empty());
            places.push(node);
        }
        let tip = if is_whole { tip } else { String::new() };
        Ok((Self { tip, places, unsynced: None }, builder.divided))
    }

    pub(super) fn count(&self) -> usize {
        self.places.iter().flatten().map(|node| node.entries).sum()
    }

    pub(super) fn spans(&self, place: Place) -> Vec<Span> {
        let mut spans = Vec::new();
        if let Some(root) = self.root(place) {
            collect(root, root.path.len() + 1, &mut spans);
        }
        spans
    }

    /// Whether both have the same folders and entries for a place.
    pub(super) fn is_like(&self, other: &Self, place: Place) -> bool {
        self.root(place) == other.root(place)
    }

    fn root(&self, place: Place) -> Option<&Node> {
        let at = Place::ALL.iter().position(|other| *other == place)?;
        self.places.get(at)?.as_ref()
    }
}

fn collect(node: &Node, root: usize, spans: &mut Vec<Span>) {
    if node.below.is_empty() {
        spans.push(Span { path: node.path.clone(), key: node.key.clone(), root });
    }
    // Folder names are dates, and a tree is sorted by name.
    node.below.iter().rev().for_each(|node| collect(node, root, spans));
}

struct NodeBuilder<'a> {
    snapshot: &'a Snapshot,
    visited: Walk,
    /// The paths of folders that are no longer spans.
    divided: Vec<String>,
    activity: &'a Activity,
    /// Entries counted so far.
    counted: usize,
}

impl NodeBuilder<'_> {
    fn node(&mut self, folder: &Folder, old: Option<&Node>, depth: usize) -> Result<Node, Error> {
        let key = folder.key();
        if let Some(old) = old.filter(|old| old.key == key) {
            return Ok(old.clone());
        }
        let whole = |key: String, entries| Node { path: folder.path.clone(), key, entries, below: Vec::new() };
        if let Some(old) = old.filter(|old| old.below.is_empty())
            && let Some(added) = self.snapshot.additions(folder, &old.key)
            && old.entries + added.len() <= MAX_SPAN
        {
            return Ok(whole(key, old.entries + added.len()));
        }
        let Readable { value: (folders, files), mut is_whole } = self.snapshot.children(folder, &mut self.visited)?;
        if depth == 0 || folders.is_empty() {
            let mut entries = files;
            if !folders.is_empty() {
                let listing = self.snapshot.listing(&folder.path)?;
                entries = listing.value.len();
                is_whole = listing.is_whole;
            }
            self.counted += entries;
            self.activity.at("counting the ledger", self.counted, None, "entry");
            return Ok(whole(if is_whole { key } else { String::new() }, entries));
        }
        let mut below = Vec::with_capacity(folders.len());
        for folder in &folders {
            let old = old.and_then(|old| old.below.iter().find(|old| old.path == folder.path));
            below.push(self.node(folder, old, depth - 1)?);
        }
        is_whole &= below.iter().all(|node| !node.key.is_empty());
        let key = if is_whole { key } else { String::new() };
        let entries = files + below.iter().map(|node| node.entries).sum::<usize>();
        // Files next to subfolders would otherwise belong to no span.
        if entries <= MAX_SPAN || files > 0 {
            return Ok(whole(key, entries));
        }
        if old.is_some_and(|old| old.below.is_empty()) {
            self.divided.push(folder.path.clone());
        }
        Ok(Node { below, ..whole(key, entries) })
    }
}
