//! The folders of a team's entries: which there are, by which ids they are known, and how much is in them.

use serde::{Deserialize, Serialize};

use crate::git::{Error, Folder, Readable, Seen, Snapshot};

/// A folder with no more entries than these is read as a whole. More would make each look at the newest costly, fewer
/// would make many files.
pub(super) const MOST: usize = 1_000;

/// Folders are divided where they have to be: years, months, days, hours, minutes.
const DEPTH: usize = 5;

/// Bytes of `yyyy/mm/dd`.
const DAY: usize = 10;

/// Where entries lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Place {
    Log,
    Decisions,
    Memory,
}

impl Place {
    pub(in crate::ops) const ALL: [Self; 3] = [Self::Log, Self::Decisions, Self::Memory];

    /// Its folder, for the team with this prefix.
    pub(in crate::ops) fn path(self, prefix: &str) -> String {
        let name = match self {
            Self::Log => "log",
            Self::Decisions => "decisions",
            Self::Memory => "memory",
        };
        format!("{prefix}{name}")
    }
}

/// A folder that is read as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::ops) struct Span {
    pub(in crate::ops) path: String,
    pub(super) key: String,
    /// Where its path goes on after the place's own.
    root: usize,
}

impl Span {
    /// Whether all its entries are of days before this one: `2026/01/05`, or the beginning of it.
    pub(in crate::ops) fn is_before(&self, day: &str) -> bool {
        let date = self.path.get(self.root..).unwrap_or_default();
        let length = date.len().min(day.len());
        date.get(..length) < day.get(..length)
    }

    pub(super) fn sort<T>(&self, rows: &mut [super::Row<T>]) {
        rows.sort_by(|one, other| self.order(&one.path).cmp(&self.order(&other.path)));
    }

    /// By this the entries of a span are in the order in which they were made, however deep they lie: the day, and the
    /// name, which begins with the time.
    fn order<'p>(&self, path: &'p str) -> (Option<&'p str>, &'p str) {
        let day = path.get(self.root..self.root + DAY);
        (day, path.rsplit('/').next().unwrap_or(path))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    /// The commit of the ledger that this is of; empty where not all could be read, so that it is looked at again.
    pub(super) tip: String,
    /// As in [`Place::ALL`]; `None`: there is no such folder.
    places: Vec<Option<Node>>,
    /// The remotes' tips, and how many entries none of them has.
    pub(super) unsynced: Option<(Vec<String>, usize)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Node {
    path: String,
    /// Empty where not all could be read.
    key: String,
    entries: usize,
    /// The folders in it, where it is not read as a whole.
    below: Vec<Node>,
}

impl Head {
    /// Looks at the folders that are not as they were. Returns also the paths of those that are no spans any more.
    pub(super) fn derive(
        snapshot: &Snapshot,
        prefix: &str,
        tip: String,
        old: Option<Self>,
        tell: &dyn Fn(usize),
    ) -> Result<(Self, Vec<String>), Error> {
        let old = old.map(|old| old.places).unwrap_or_default();
        let mut is_whole = true;
        let mut looking = Looking { snapshot, seen: Seen::default(), divided: Vec::new(), tell, counted: 0 };
        let mut places = Vec::new();
        for (at, place) in Place::ALL.iter().enumerate() {
            let found = snapshot.look_for(&place.path(prefix))?;
            let old = old.get(at).and_then(Option::as_ref);
            let node = found.value.map(|folder| looking.node(&folder, old, DEPTH)).transpose()?;
            is_whole &= found.is_whole && node.as_ref().is_none_or(|node| !node.key.is_empty());
            places.push(node);
        }
        let tip = if is_whole { tip } else { String::new() };
        Ok((Self { tip, places, unsynced: None }, looking.divided))
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

    /// Whether both say the same of a place.
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
    // Folders are named by dates, and a tree has its names in order.
    node.below.iter().rev().for_each(|node| collect(node, root, spans));
}

struct Looking<'a> {
    snapshot: &'a Snapshot,
    seen: Seen,
    /// The paths of folders that were read as a whole and are not any more.
    divided: Vec<String>,
    tell: &'a dyn Fn(usize),
    /// Entries so far.
    counted: usize,
}

impl Looking<'_> {
    fn node(&mut self, folder: &Folder, old: Option<&Node>, depth: usize) -> Result<Node, Error> {
        let key = folder.key();
        if let Some(old) = old.filter(|old| old.key == key) {
            return Ok(old.clone());
        }
        let whole = |key: String, entries| Node { path: folder.path.clone(), key, entries, below: Vec::new() };
        if let Some(old) = old.filter(|old| old.below.is_empty())
            && let Some(added) = self.snapshot.additions(folder, &old.key)
            && old.entries + added.len() <= MOST
        {
            return Ok(whole(key, old.entries + added.len()));
        }
        let Readable { value: (folders, files), mut is_whole } = self.snapshot.inside(folder, &mut self.seen)?;
        if depth == 0 || folders.is_empty() {
            let mut entries = files;
            if !folders.is_empty() {
                let listing = self.snapshot.listing(&folder.path)?;
                entries = listing.value.len();
                is_whole = listing.is_whole;
            }
            self.counted += entries;
            (self.tell)(self.counted);
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
        // Entries beside folders would be in no span of their own.
        if entries <= MOST || files > 0 {
            return Ok(whole(key, entries));
        }
        if old.is_some_and(|old| old.below.is_empty()) {
            self.divided.push(folder.path.clone());
        }
        Ok(Node { below, ..whole(key, entries) })
    }
}
