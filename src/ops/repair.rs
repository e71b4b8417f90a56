//! `squad doctor --repair`: fetches what the ledger lost from remotes, and sets aside what nobody has.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::examine::examine;
use super::journal::writer;
use super::repository;
use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{Actor, Damage, DamageKind, What, plural};
use crate::policy::Redactor;
use crate::record::Entry;
use crate::view::Progress;

/// What was done, or would be.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Repaired {
    pub(crate) dry_run: bool,
    /// Objects that were lost.
    pub(crate) lost: usize,
    /// Objects that remotes still had.
    pub(crate) fetched: usize,
    /// What nobody had, and what squad did not write: it is no part of the ledger any more.
    pub(crate) set_aside: Vec<Damage>,
    /// Remotes whose ledger leads there still, as far as this clone knows.
    pub(crate) remotes: Vec<String>,
    /// Remotes that could not be asked, and why.
    pub(crate) unreachable: Vec<String>,
}

/// Asks once, before anything changes.
pub(crate) fn repair(env: &Env, directory: &Path, ask: impl FnOnce(&Repaired) -> bool) -> Result<Repaired, Failure> {
    let (repository, _) = repository(env, directory)?;
    let (mut damage, mut lost) = look(env, &repository)?;
    let mut repaired = Repaired { dry_run: true, lost: lost.len(), set_aside: damage, ..Repaired::default() };
    if repaired.is_needless() || !ask(&repaired) {
        return Ok(repaired);
    }
    repaired.dry_run = false;
    for remote in repository.remotes()? {
        if lost.is_empty() {
            break;
        }
        match repository.fetch_lost(&remote, &lost) {
            Ok(count) => repaired.fetched += count,
            Err(error) => repaired.unreachable.push(format!("{remote}: {error}")),
        }
        lost = repository.lost_objects()?;
    }
    (damage, lost) = look(env, &repository)?;
    if !damage.is_empty() || !lost.is_empty() {
        set_aside(env, &repository, &damage)?;
        repaired.remotes = repository.stale_copies(true)?;
        repository.remove_broken(&lost)?;
    }
    repaired.set_aside = damage;
    let index = repository.common_dir().join("squad").join("index");
    if index.exists() {
        fs::remove_dir_all(&index)
            .map_err(|error| Failure::failed(format!("cannot be removed: {error}")).at(index.display()))?;
    }
    // What is said from here on is what is left.
    env.damage.take();
    Ok(repaired)
}

/// What of the ledger is damaged, and the objects that are not here as they were written.
fn look(env: &Env, repository: &Repository) -> Result<(Vec<Damage>, Vec<String>), Failure> {
    env.damage.take();
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(Default::default()) };
    examine(repository, &snapshot, &Progress::new(false))?;
    let is_wrong = |damage: &Damage| !matches!(damage.kind, DamageKind::Newer | DamageKind::Displaced);
    let damage = env.damage.take().into_iter().filter(is_wrong).collect();
    Ok((damage, repository.lost_objects()?))
}

fn set_aside(env: &Env, repository: &Repository, damage: &[Damage]) -> Result<(), Failure> {
    if repository.ledger().snapshot()?.is_some_and(|ledger| !ledger.is_there()) {
        return Err(Failure::team("the ledger's newest commit is lost, and no remote has it: nothing was changed")
            .hint("point refs/squad/log at an older commit of the ledger: git fsck --lost-found"));
    }
    let at = env.clock.now();
    let entries = damage.iter().map(|damage| damage.path.clone()).collect();
    let what = What::ScrubCompleted { entries, kinds: vec!["damaged".to_owned()], set_aside: damage.to_vec() };
    let entry = Entry::new(env.ids.entry(at), at, Actor::User, &what, &Redactor::default());
    Ok(repository.ledger().set_aside(damage, (entry.path(""), entry.render()), &writer(), at)?)
}

impl Repaired {
    /// Whether nothing was wrong.
    pub(crate) fn is_needless(&self) -> bool {
        self.set_aside.is_empty() && self.lost == 0
    }

    /// What it comes to, in a sentence.
    pub(crate) fn summary(&self) -> String {
        let aside = plural(self.set_aside.len(), "entry");
        match self.dry_run {
            true => format!("what remotes have of it is fetched; up to {aside} would be set aside"),
            false => format!("{} fetched, {aside} set aside", plural(self.fetched, "object")),
        }
    }
}
