//! The folders of a team's entries: which there are, by which ids they are known, and how much is in them.

use serde::{Deserialize, Serialize};

use crate::git::{Error, Folder, Snapshot};

/// A folder with no more entries than these is read as a whole. More would make each look at the newest costly, fewer
/// would make many files.
pub(super) const MOST: usize = 1_000;

/// Folders are divided down to the day, and further where a day is: years, months, days, hours.
const DEPTH: usize = 4;

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

    /// By this the entries of a span are in the order in which they were made, however deep they lie: the day, and the
    /// name, which begins with the time.
    pub(super) fn order<'p>(&self, path: &'p str) -> (Option<&'p str>, &'p str) {
        let day = path.get(self.root..self.root + DAY);
        (day, path.rsplit('/').next().unwrap_or(path))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    /// The commit of the ledger that this is of.
    pub(super) tip: String,
    /// As in [`Place::ALL`]; `None`: there is no such folder.
    places: Vec<Option<Node>>,
    /// The remotes' tips, and how many entries none of them has.
    pub(super) unsynced: Option<(Vec<String>, usize)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Node {
    path: String,
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
    ) -> Result<(Self, Vec<String>), Error> {
        let old = old.map(|old| old.places).unwrap_or_default();
        let mut divided = Vec::new();
        let places = Place::ALL.iter().enumerate().map(|(at, place)| {
            let Some(folder) = snapshot.folder(&place.path(prefix))? else { return Ok(None) };
            let old = old.get(at).and_then(Option::as_ref);
            node(snapshot, &folder, old, DEPTH, &mut divided).map(Some)
        });
        let places = places.collect::<Result<_, Error>>()?;
        Ok((Self { tip, places, unsynced: None }, divided))
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

fn node(
    snapshot: &Snapshot,
    folder: &Folder,
    old: Option<&Node>,
    depth: usize,
    divided: &mut Vec<String>,
) -> Result<Node, Error> {
    let key = folder.key();
    if let Some(old) = old.filter(|old| old.key == key) {
        return Ok(old.clone());
    }
    let whole = |entries| Node { path: folder.path.clone(), key: key.clone(), entries, below: Vec::new() };
    if let Some(old) = old.filter(|old| old.below.is_empty())
        && let Some(added) = snapshot.additions(folder, &old.key)
        && old.entries + added.len() <= MOST
    {
        return Ok(whole(old.entries + added.len()));
    }
    let (folders, files) = snapshot.inside(folder)?;
    if depth == 0 || folders.is_empty() {
        let entries = if folders.is_empty() { files } else { snapshot.listing(&folder.path)?.len() };
        return Ok(whole(entries));
    }
    let mut below = Vec::with_capacity(folders.len());
    for folder in &folders {
        let old = old.and_then(|old| old.below.iter().find(|old| old.path == folder.path));
        below.push(node(snapshot, folder, old, depth - 1, divided)?);
    }
    let entries = files + below.iter().map(|node| node.entries).sum::<usize>();
    // Entries beside folders would be in no span of their own.
    if entries <= MOST || files > 0 {
        return Ok(whole(entries));
    }
    if old.is_some_and(|old| old.below.is_empty()) {
        divided.push(folder.path.clone());
    }
    Ok(Node { below, ..whole(entries) })
}
