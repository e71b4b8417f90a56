//! Reads the whole ledger and reports damage.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};

use crate::git::{Error, File, Repository, Snapshot};
use crate::model::{Damage, DamageKind, EventKind};
use crate::ops::ledger::duplicates::{DecisionEntry, resolve_duplicates};
use crate::ops::ledger::index::{Index, newer};
use crate::record::{Entry, Read};

/// The result of reading the whole ledger.
#[derive(Default)]
pub(in crate::ops) struct Examined {
    pub(in crate::ops) entries: usize,
    /// Written by a later squad.
    pub(in crate::ops) newer: usize,
    /// Hashes of the runs' ids.
    pub(in crate::ops) runs: HashSet<u64>,
    /// Hashes of folder paths: with many entries, the paths would take most of the memory.
    pub(in crate::ops) folders: HashSet<u64>,
    /// The path prefix of each team.
    pub(in crate::ops) teams: BTreeSet<String>,
    /// The paths of the first misplaced entries, with messages that say where they belong.
    pub(in crate::ops) misplaced: Vec<(String, String)>,
}

/// The maximum number of misplaced entries to report.
const MAX_MISPLACED: usize = 100;

/// Reads every entry. Damage goes to the repository's damage log.
pub(in crate::ops) fn examine(repository: &Repository, snapshot: &Snapshot) -> Result<Examined, Error> {
    let mut examined = Examined::default();
    let hasher = RandomState::new();
    let mut decisions: BTreeMap<String, Vec<DecisionEntry>> = BTreeMap::new();
    snapshot.each(|file, bytes| {
        let (team, _) = split(&file.path);
        if !examined.teams.contains(team) {
            examined.teams.insert(team.to_owned());
        }
        if let Some((folder, _)) = file.path.rsplit_once('/') {
            examined.folders.insert(hasher.hash_one(folder));
        }
        let damage = match read(bytes) {
            Ok((entry, kind)) => {
                examined.entries += 1;
                examined.runs.extend(entry.run.as_ref().map(|run| hasher.hash_one(run.as_str())));
                if !entry.has_path(&file.path, team) && examined.misplaced.len() < MAX_MISPLACED {
                    let message = format!("entry {} belongs at {}", entry.id, entry.path(team));
                    examined.misplaced.push((file.path.clone(), message));
                }
                if let Some(EventKind::DecisionLogged { mut decision, .. }) = kind {
                    // The text is only compared, so keep just its hash to save memory.
                    decision.text = blake3::hash(decision.text.as_bytes()).to_string();
                    let recorded =
                        DecisionEntry { path: file.path.clone(), key: file.key(), entry: entry.id, decision };
                    decisions.entry(team.to_owned()).or_default().push(recorded);
                }
                return;
            }
            Err((kind, reason)) => damage_of(file, kind, reason),
        };
        examined.newer += usize::from(damage.kind == DamageKind::Newer);
        repository.damage().add(damage);
    })?;
    for recorded in decisions.values() {
        resolve_duplicates(recorded.iter()).1.into_iter().for_each(|damage| repository.damage().add(damage));
    }
    // Opening an index reports its damage.
    examined
        .teams
        .iter()
        .filter(|_| snapshot.is_there())
        .try_for_each(|team| Index::open(repository, team).map(drop))?;
    Ok(examined)
}

fn read(bytes: &[u8]) -> Result<(Entry, Option<EventKind>), (DamageKind, String)> {
    match Entry::parse(bytes) {
        Read::Entry(entry) => {
            let kind = entry.understood().map_err(|reason| (DamageKind::Malformed, reason))?;
            Ok((*entry, kind))
        }
        Read::Newer { version } => Err((DamageKind::Newer, newer(version))),
        Read::Damaged { reason } => Err((DamageKind::Malformed, reason)),
    }
}

fn damage_of(file: &File, kind: DamageKind, reason: String) -> Damage {
    Damage { path: file.path.clone(), object: Some(file.key()), kind, reason }
}

/// Splits a path into the team's prefix and the rest, which starts with `log/`, `decisions/` or `memory/`.
fn split(path: &str) -> (&str, &str) {
    let parts = path.strip_prefix("teams/").and_then(|rest| rest.split_once('/'));
    parts.map_or(("", path), |(_, rest)| path.split_at(path.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_its_team() {
        assert_eq!(split("log/2026/01/05/a.md"), ("", "log/2026/01/05/a.md"));
        assert_eq!(split("teams/a%2Fb/memory/2026/x.md"), ("teams/a%2Fb/", "memory/2026/x.md"));
        assert_eq!(split("teams/x.md"), ("", "teams/x.md"));
    }
}
