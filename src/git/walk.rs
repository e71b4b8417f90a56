//! How much one walk of a tree may read. Trees come from anybody: ten folders, each of which holds the next one ten
//! times, are a few hundred bytes and ten billion paths.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use gix::ObjectId;

/// The limits of one walk. What is beyond them is passed over and named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How many folders lie inside each other. Ours are nine deep.
    pub(super) depth: usize,
    /// How many folders are read again that were read at another path.
    repeats: usize,
    /// How many entries are read in such folders.
    repeated: usize,
    entries: usize,
    /// Of all paths, in bytes.
    paths: usize,
    time: Duration,
}

impl Limits {
    /// Of a ledger, in which a folder that squad wrote has one path only. It may be long.
    pub(super) const LEDGER: Self = Self {
        depth: 64,
        repeats: 8,
        repeated: usize::MAX,
        entries: 50_000_000,
        paths: usize::MAX,
        time: Duration::from_secs(3600),
    };
    /// Of a folder in a commit. A large real team has 2,500 files.
    const FOLDER: Self = Self {
        depth: 64,
        repeats: 5_000,
        repeated: 20_000,
        entries: 1_000_000,
        paths: 128 << 20,
        time: Duration::from_secs(20),
    };
    /// Of all that a commit has. Vendored packages repeat many folders.
    const COMMIT: Self = Self {
        depth: 256,
        repeats: 50_000,
        repeated: 100_000,
        entries: 10_000_000,
        paths: 2 << 30,
        time: Duration::from_secs(120),
    };

    /// Of all states that a folder of a repository had.
    pub(super) const HISTORY: Self = Self {
        depth: 64,
        repeats: 0,
        repeated: 0,
        entries: 100_000_000,
        paths: usize::MAX,
        time: Duration::from_secs(60),
    };

    /// For all that lies below a folder of a commit; the empty path is the commit's own folder.
    pub(super) fn below(folder: &str) -> Self {
        if folder.is_empty() { Self::COMMIT } else { Self::FOLDER }
    }
}

/// What a walk did not read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PassedOver {
    pub(crate) path: String,
    pub(crate) why: String,
}

/// What a walk has read so far.
pub(crate) struct Walk {
    limits: Limits,
    start: Instant,
    folders: HashSet<ObjectId>,
    repeats: usize,
    repeated: usize,
    entries: usize,
    paths: usize,
    is_again: bool,
}

/// A walk of a ledger.
impl Default for Walk {
    fn default() -> Self {
        Self::new(Limits::LEDGER)
    }
}

impl Walk {
    pub(super) fn new(limits: Limits) -> Self {
        let (start, folders) = (Instant::now(), HashSet::new());
        Self { limits, start, folders, repeats: 0, repeated: 0, entries: 0, paths: 0, is_again: false }
    }

    pub(super) fn has_entered(&self, id: &ObjectId) -> bool {
        self.folders.contains(id)
    }

    /// To be asked before a folder is read. `Err`: why it must not be.
    pub(super) fn enter(&mut self, path: &str, id: ObjectId) -> Result<(), String> {
        let Limits { depth, repeats, repeated, entries, paths, time } = self.limits;
        if path.matches('/').count() >= depth {
            return Err(format!("the folder lies deeper than {depth}"));
        }
        if self.entries >= entries {
            return Err(format!("there are more than {entries} files and folders"));
        }
        if self.paths >= paths {
            return Err(format!("the paths have more than {paths} bytes"));
        }
        if self.start.elapsed() >= time {
            return Err(format!("reading took longer than {} seconds", time.as_secs()));
        }
        self.is_again = !self.folders.insert(id);
        // Beyond these limits each folder is read once.
        if self.is_again && (self.repeats >= repeats || self.repeated >= repeated) {
            return Err("the folder is one of too many that are the same".to_owned());
        }
        self.repeats += usize::from(self.is_again);
        Ok(())
    }

    /// Whether the folder entered last had been read before.
    pub(super) fn is_again(&self) -> bool {
        self.is_again
    }

    /// To be told of each entry of the folder entered last.
    pub(super) fn count(&mut self, path: &str) {
        self.entries += 1;
        self.repeated += usize::from(self.is_again);
        self.paths += path.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk through folders with these ids, each with so many entries whose paths are so long; how many it enters.
    fn entered(limits: Limits, ids: &[u8], count: usize, length: usize) -> usize {
        let mut walk = Walk::new(limits);
        let enter = |id: &&u8| {
            let is_entered = walk.enter("a/b", ObjectId::from([**id; 20])).is_ok();
            (0..count).for_each(|_| walk.count(&"x".repeat(length)));
            is_entered
        };
        ids.iter().take_while(enter).count()
    }

    /// Each limit × folders that are new and that are read again.
    #[test]
    fn each_limit_ends_a_walk() {
        let free =
            Limits { depth: 9, repeats: 99, repeated: 99, entries: 99, paths: 9999, time: Duration::from_secs(99) };
        for (limits, other, same) in [
            (free, 4, 4),
            (Limits { depth: 1, ..free }, 0, 0),
            (Limits { depth: 2, ..free }, 4, 4),
            (Limits { repeats: 1, ..free }, 4, 2),
            (Limits { repeated: 10, ..free }, 4, 2),
            (Limits { entries: 20, ..free }, 2, 2),
            (Limits { entries: 21, ..free }, 3, 3),
            (Limits { paths: 60, ..free }, 2, 2),
            (Limits { paths: 61, ..free }, 3, 3),
            (Limits { time: Duration::ZERO, ..free }, 0, 0),
        ] {
            let all = [entered(limits, &[1, 2, 3, 4], 10, 3), entered(limits, &[1; 4], 10, 3)];
            assert_eq!(all, [other, same], "{limits:?}");
        }
    }
}
