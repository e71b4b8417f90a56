//! git's own upkeep of the object database, which every append makes work for.

use std::time::Duration;

use serde::Serialize;

use super::{error::Error, repository::Repository};

/// Large repositories take their time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Objects that lie in a file of their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Loose {
    pub(crate) objects: usize,
    pub(crate) kibibytes: usize,
}

impl Repository {
    /// Lets git pack loose objects in the background if it finds enough of them. Every append leaves about nine.
    pub(crate) fn maintain(&self) -> Result<(), Error> {
        self.call(&["maintenance", "run", "--auto", "--quiet"]).detach()
    }

    /// Packs all loose objects now. git's lock keeps its own maintenance from doing the same meanwhile, and an append
    /// survives both.
    pub(crate) fn pack(&self) -> Result<(), Error> {
        // What a run packs, the next one removes.
        for _ in 0..2 {
            let tasks = ["maintenance", "run", "--quiet", "--task=pack-refs", "--task=loose-objects"];
            self.call(&tasks).patience(PATIENCE).succeed()?;
        }
        Ok(())
    }

    pub(crate) fn loose(&self) -> Result<Loose, Error> {
        let said = self.call(&["count-objects", "-v"]).succeed()?.text();
        let number = |name: &str| {
            let found = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        Ok(Loose { objects: number("count"), kibibytes: number("size") })
    }
}
