//! `squad doctor --repair`: fetches lost objects from remotes, and sets aside entries that nobody has.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{Actor, Damage, DamageKind, EventKind, plural};
use crate::ops::ledger::examine::examine;
use crate::ops::ledger::journal::writer;
use crate::ops::repository;
use crate::policy::Redactor;
use crate::record::Entry;

/// The repairs made, or planned in a dry run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Repaired {
    pub(crate) dry_run: bool,
    /// Objects that were lost.
    pub(crate) lost: usize,
    /// Objects that remotes still had.
    pub(crate) fetched: usize,
    /// Folders that were unreadable once, and are back at their original paths.
    pub(crate) put_back: usize,
    /// Entries that nobody had or that squad did not write, removed from the ledger.
    pub(crate) set_aside: Vec<Damage>,
    /// Deleted refs of squad's that led to no commit, so that git failed on them.
    pub(crate) references: Vec<String>,
    /// Remotes whose ledger still references them, as far as this clone knows.
    pub(crate) remotes: Vec<String>,
    /// Remotes that could not be reached, and why.
    pub(crate) unreachable: Vec<String>,
}

/// Calls `ask` once, before anything changes.
pub(crate) fn repair(env: &Env, directory: &Path, ask: impl FnOnce(&Repaired) -> bool) -> Result<Repaired, Failure> {
    let (repository, _) = repository(env, directory)?;
    repository.forget_imports()?;
    let Findings { damage, displaced, mut lost } = find_damage(env, &repository)?;
    let mut repaired = Repaired {
        dry_run: true,
        lost: lost.len(),
        put_back: displaced.len(),
        set_aside: damage,
        references: repository.dangling_references()?,
        ..Repaired::default()
    };
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
    (repaired.put_back, repaired.set_aside) = (0, Vec::new());
    // Repairs may reveal more damage.
    for _ in 0..ROUNDS {
        let found = find_damage(env, &repository)?;
        if !found.displaced.is_empty() {
            repository.ledger().restore_displaced(&found.displaced, &writer(), env.clock.now())?;
        } else if !found.damage.is_empty() || !found.lost.is_empty() {
            set_aside(env, &repository, &found.damage)?;
            repaired.remotes = repository.stale_copies(true)?;
            repository.remove_broken(&found.lost)?;
        } else {
            break;
        }
        repaired.put_back += found.displaced.len();
        repaired.set_aside.extend(if found.displaced.is_empty() { found.damage } else { Vec::new() });
    }
    // What a remote had is back, and is no longer missing.
    repaired.references = repository.dangling_references()?;
    repository.delete_references(&repaired.references)?;
    let index = repository.own_folder().join("index");
    if index.exists() {
        fs::remove_dir_all(&index)
            .map_err(|error| Failure::failed(format!("cannot be removed: {error}")).at(index.display()))?;
    }
    // Drop the damage reported so far; later reports show what is left.
    env.damage.take();
    Ok(repaired)
}

/// How often the ledger is examined and repaired at most.
const ROUNDS: usize = 5;

/// The damage found in the ledger.
#[derive(Default)]
struct Findings {
    damage: Vec<Damage>,
    displaced: Vec<Damage>,
    /// Missing or corrupt objects.
    lost: Vec<String>,
}

fn find_damage(env: &Env, repository: &Repository) -> Result<Findings, Failure> {
    env.damage.take();
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(Default::default()) };
    examine(repository, &snapshot)?;
    let found = env.damage.take().into_iter().filter(|damage| damage.kind != DamageKind::Newer);
    let (displaced, damage) = found.partition(|damage| damage.kind == DamageKind::Displaced);
    Ok(Findings { damage, displaced, lost: repository.lost_objects()? })
}

fn set_aside(env: &Env, repository: &Repository, damage: &[Damage]) -> Result<(), Failure> {
    let at = env.clock.now();
    let entries = damage.iter().map(|damage| damage.path.clone()).collect();
    let kind = EventKind::ScrubCompleted { entries, kinds: vec!["damaged".to_owned()], set_aside: damage.to_vec() };
    let entry = Entry::new(env.ids.entry(at), at, Actor::User, &kind, &Redactor::default());
    Ok(repository.ledger().set_aside(damage, (entry.path(""), entry.render()), &writer(), at)?)
}

impl Repaired {
    /// Whether there was nothing to repair.
    pub(crate) fn is_needless(&self) -> bool {
        self.set_aside.is_empty() && self.lost == 0 && self.put_back == 0 && self.references.is_empty()
    }

    /// A one-sentence summary.
    pub(crate) fn summary(&self) -> String {
        let aside = plural(self.set_aside.len(), "entry");
        let references = match (self.references.len(), self.dry_run) {
            (0, _) => String::new(),
            (count, true) => format!("; {} without a commit would be deleted", plural(count, "ref")),
            (count, false) => format!(", {} without a commit deleted", plural(count, "ref")),
        };
        let summary = match self.dry_run {
            true => format!("objects that remotes have would be fetched; up to {aside} would be set aside"),
            false if self.put_back > 0 => {
                let (objects, folders) = (plural(self.fetched, "object"), plural(self.put_back, "folder"));
                format!("{objects} fetched, {folders} put back, {aside} set aside")
            }
            false => format!("{} fetched, {aside} set aside", plural(self.fetched, "object")),
        };
        summary + &references
    }
}
