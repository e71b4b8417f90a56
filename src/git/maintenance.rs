//! Maintenance of the object database: git's own, and that of the ledger's packs.

use std::time::Duration;

use serde::Serialize;

use super::{error::Error, repository::Repository};

/// Large repositories take long.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Counts and sizes of loose objects and of the ledger's packs. git counts its own packs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Extent {
    /// Loose objects.
    pub(crate) objects: usize,
    pub(crate) kibibytes: usize,
    pub(crate) packs: usize,
    pub(crate) pack_kibibytes: u64,
}

impl Repository {
    /// Folds the packs a run has left, and runs git's automatic maintenance, both in the background.
    pub(crate) fn maintain(&self) -> Result<(), Error> {
        self.fold_in_background()?;
        self.call(&["maintenance", "run", "--auto", "--quiet"]).detach()
    }

    /// Packs all loose objects now, and folds the ledger's packs into one. git's lock keeps its own maintenance from
    /// running at the same time, and an append survives both.
    pub(crate) fn pack(&self) -> Result<(), Error> {
        // The first round packs the loose objects, the second removes them.
        for _ in 0..2 {
            let tasks = ["maintenance", "run", "--quiet", "--task=pack-refs", "--task=loose-objects"];
            self.call(&tasks).timeout(TIMEOUT).succeed()?;
        }
        self.fold_now()
    }

    /// The errors `git fsck` reports; empty means sound. Reads every object.
    pub(crate) fn fsck_errors(&self) -> Result<Vec<String>, Error> {
        // Every interrupted write leaves unreferenced objects, git's own writes too.
        let answer = self.call(&["fsck", "--full", "--no-dangling"]).timeout(TIMEOUT).run()?;
        let mut errors = answer.error_lines();
        errors.retain(|line| !line.starts_with("notice:") && !line.starts_with("Checking "));
        if errors.is_empty() && !answer.is_success() {
            errors.push(answer.error_line());
        }
        Ok(errors)
    }

    pub(crate) fn extent(&self) -> Result<Extent, Error> {
        let said = self.call(&["count-objects", "-v"]).succeed()?.text();
        let number = |name: &str| {
            let found = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let (packs, bytes) = self.packs().extent()?;
        Ok(Extent { objects: number("count"), kibibytes: number("size"), packs, pack_kibibytes: bytes.div_ceil(1024) })
    }
}
