//! Scrub: removes a leaked secret from everything squad stores in this clone.
//!
//! It rewrites the ledger and the rescues, and drops old copies of remotes' ledgers and all derived data. Files on
//! branches are only reported: rewriting them is up to the owners of the branches.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{Actor, EntryId, EventKind, list};
use crate::ops::ledger::journal::writer;
use crate::ops::ledger::rescue::message_after_scrub;
use crate::ops::repository;
use crate::ops::team::secrets;
use crate::policy::Redactor;
use crate::record::{Entry, scrubbed};
use crate::store;

/// What to search for.
pub(crate) enum Search {
    Value(String),
    Kind(String),
    /// Everything the current rules find, and the values of the current `.env` files.
    Everything,
}

/// The matches, which were removed unless this was a dry run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Scrubbed {
    pub(crate) dry_run: bool,
    /// Kinds of secrets by entry.
    pub(crate) entries: BTreeMap<String, Vec<String>>,
    /// Files by rescue.
    pub(crate) rescues: BTreeMap<String, Vec<String>>,
    /// Remotes whose local copy of the ledger referenced the old text and was deleted.
    pub(crate) remotes: Vec<String>,
    /// Matching team files on branches, `BRANCH:PATH`. They are not rewritten.
    pub(crate) branches: Vec<String>,
    /// Matching files in `.git/squad`, such as an engine's sessions. They are not rewritten.
    pub(crate) local: Vec<String>,
}

impl Scrubbed {
    /// Whether neither ledger nor rescues match.
    pub(crate) fn is_nothing(&self) -> bool {
        self.entries.is_empty() && self.rescues.is_empty()
    }
}

/// Shorter values would match ordinary words.
const MIN_LENGTH: usize = 4;

pub(crate) fn scrub(env: &Env, directory: &Path, search: &Search, dry_run: bool) -> Result<Scrubbed, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let redactor = redactor(env, &work_dir, search)?;
    let at = env.clock.now();
    let id = env.ids.entry(at);
    let mut done = Scrubbed { dry_run, ..Scrubbed::default() };
    if let Some(snapshot) = repository.ledger().snapshot()? {
        snapshot.each(|file, bytes| {
            if let Some((_, kinds)) = scrubbed(bytes, &redactor) {
                done.entries.insert(file.path.clone(), kinds);
            }
        })?;
    }
    if !dry_run && !done.entries.is_empty() {
        done.entries = rewrite(&repository, &redactor, &id, at)?;
    }
    let clean = |bytes: &[u8]| redactor.bytes(bytes).map(|(clean, _)| clean);
    let (activity, rescues) = (env.damage.activity(), repository.rescues()?);
    let count = rescues.len();
    for (number, rescue) in rescues.into_iter().enumerate() {
        activity.at("reading the rescues", number, Some(count), "rescue");
        let files = repository.affected_files(&rescue, &clean)?;
        let text = |text: &str| redactor.text(text, &mut Vec::new());
        if files.is_empty() && text(&rescue.message) == rescue.message {
            continue;
        }
        if !dry_run {
            let message = message_after_scrub(&rescue, &files, text);
            repository.rewrite_rescue(&rescue, &clean, &message, &writer())?;
        }
        done.rescues.insert(rescue.id, files);
    }
    // In a dry run, the scrub record that identifies old copies does not exist yet.
    done.remotes = if dry_run { Vec::new() } else { repository.stale_copies(true)? };
    activity.begin("reading the branches");
    done.branches = on_branches(&repository, &redactor)?;
    let local = repository.own_folder();
    if !dry_run {
        // Snapshots contain old work trees, which are not searched for the secret.
        repository.forget_snapshots(|_| false)?;
        remove_derived(&local)?;
    }
    activity.begin("reading what engines left");
    done.local = in_files(&local, &redactor);
    Ok(done)
}

fn redactor(env: &Env, work_dir: &Path, search: &Search) -> Result<Redactor, Failure> {
    match search {
        Search::Everything => Ok(secrets::redactor(env, work_dir)),
        Search::Kind(kind) => secrets::redactor(env, work_dir).of_kind(kind).ok_or_else(|| {
            Failure::usage(format!("there is no kind of secret `{kind}`"))
                .hint(format!("the kinds are {}", list(Redactor::all_kinds())))
        }),
        Search::Value(value) if value.chars().count() < MIN_LENGTH => Err(Failure::usage(format!(
            "the value is shorter than {MIN_LENGTH} characters and would match ordinary words"
        ))
        .hint("use a longer value, including the text around it")),
        Search::Value(value) => Ok(Redactor::of_value(value)),
    }
}

fn rewrite(
    repository: &Repository,
    redactor: &Redactor,
    id: &EntryId,
    at: Timestamp,
) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let found: RefCell<BTreeSet<String>> = RefCell::default();
    let each: RefCell<Vec<Vec<String>>> = RefCell::default();
    let clean = |bytes: &[u8]| {
        let (clean, kinds) = scrubbed(bytes, redactor)?;
        found.borrow_mut().extend(kinds.iter().cloned());
        each.borrow_mut().push(kinds);
        Some(clean)
    };
    let record = |paths: &[String]| {
        let kinds = found.borrow().iter().cloned().collect();
        let kind = EventKind::ScrubCompleted { entries: paths.to_vec(), kinds, set_aside: Vec::new() };
        let entry = Entry::new(id.clone(), at, Actor::User, &kind, redactor);
        // One record covers all teams in the repository.
        (entry.path(""), entry.render())
    };
    let paths = repository.ledger().rewrite(&clean, &record, &writer(), at)?;
    // If the ref moved meanwhile there were several attempts: use the last one's kinds.
    let mut each = each.into_inner();
    let kinds = each.split_off(each.len().saturating_sub(paths.len()));
    Ok(paths.into_iter().zip(kinds).collect())
}

/// Matching team files at the tips of branches.
fn on_branches(repository: &Repository, redactor: &Redactor) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (branch, commit) in repository.branches()? {
        if !seen.insert(commit.clone()) {
            continue;
        }
        let is_team = |path: &str| path.split('/').any(|part| store::FOLDERS.contains(&part));
        for (path, bytes) in repository.readable_files_at(&commit, "", |path| is_team(path).then_some(u64::MAX))? {
            if redactor.bytes(&bytes).is_some() {
                found.push(format!("{branch}:{path}"));
            }
        }
    }
    Ok(found)
}

/// Removes data that is rebuilt from the ledger on demand.
fn remove_derived(local: &Path) -> Result<(), Failure> {
    // The queue may have entries of dead writers. Live writers may be adding to it: they then append by themselves, and
    // entries that remain are found below.
    let _ = fs::remove_dir_all(local.join("queue"));
    for name in ["index", "cache"] {
        let folder = local.join(name);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound && folder.is_dir() => {
                return Err(Failure::failed(format!("cannot remove {}: {error}", folder.display()))
                    .hint("delete it; squad will recreate it"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Larger files are not text.
const MAX_SIZE: u64 = 64 << 20;

fn in_files(folder: &Path, redactor: &Redactor) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file()
                && metadata.len() <= MAX_SIZE
                && fs::read(&path).is_ok_and(|bytes| redactor.bytes(&bytes).is_some())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// The result of pruning old objects.
#[derive(Debug, Serialize)]
pub(crate) struct Pruned {
    pub(crate) removed: usize,
    /// Objects that could not be removed: in a pack with a `.keep` file, or in another repository.
    pub(crate) left: Vec<String>,
}

/// Deletes the objects that only rewritten history references.
pub(crate) fn prune(env: &Env, directory: &Path) -> Result<Pruned, Failure> {
    let (repository, _) = repository(env, directory)?;
    let (removed, left) = repository.prune_replaced()?;
    Ok(Pruned { removed, left })
}
