//! A cache of the decisions that have landed nowhere. They are few, and with the cache a landing need not read all
//! decisions ever made.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{DAMAGE, Derived, EntryFacts, Fact, Place, cache_folder, file_name, kind_of, newer};
use crate::git::{Error, Repository, Snapshot};
use crate::model::{Damage, DamageKind, Decision, DecisionId, EntryId, Sort};
use crate::ops::team::cache::CacheFolder;
use crate::record::{Entry, Read};

const UNLANDED: &str = "unlanded";

/// A decision that has landed nowhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct Unlanded {
    /// The entry that records it.
    pub(in crate::ops) entry: EntryId,
    pub(in crate::ops) decision: Decision,
    /// The branch it was made for.
    pub(in crate::ops) branch: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Cache {
    /// The ledger's tip when this was written. While it stays, the ledger is not opened.
    tip: String,
    /// The key of the decisions folder that this describes.
    folder: String,
    unlanded: Vec<Unlanded>,
    /// Landed decisions whose own entries are not known yet.
    landed: BTreeSet<DecisionId>,
    /// Keys and paths of entries that could not be read, and are tried again next time.
    unread: Vec<(String, String)>,
}

/// A team's decisions that have landed nowhere, newest first. Reads only new entries, and reports known damage.
pub(in crate::ops) fn unlanded(repository: &Repository, prefix: &str) -> Result<Vec<Unlanded>, Error> {
    let Some(tip) = repository.ledger().tip()? else { return Ok(Vec::new()) };
    let (cache_folder, name) = (cache_folder(repository), file_name(prefix));
    let known: Vec<Damage> = cache_folder.read(&name, DAMAGE).unwrap_or_default();
    let cache = cache_folder.read::<Cache>(&name, UNLANDED);
    let is_known = |cache: &Cache| cache.tip == tip && cache.unread.is_empty() && known.is_empty();
    if let Some(cache) = cache.filter(is_known) {
        return Ok(cache.unlanded);
    }
    let snapshot = repository.ledger().snapshot_at(&tip)?.require_readable()?;
    snapshot.still_damaged(&known).for_each(|damage| repository.damage().add(damage.clone()));
    let unlanded = read(repository, &snapshot, prefix, &tip)?;
    let found = repository.damage().all();
    if found.is_empty() {
        cache_folder.remove(&name, DAMAGE);
    } else if found != known && cache_folder.prepare().is_some() {
        cache_folder.write(&name, DAMAGE, &found);
    }
    Ok(unlanded)
}

fn read(repository: &Repository, snapshot: &Snapshot, prefix: &str, tip: &str) -> Result<Vec<Unlanded>, Error> {
    let (cache_folder, name) = (cache_folder(repository), file_name(prefix));
    let Some(folder) = snapshot.folder(&Place::Decisions.path(prefix))? else {
        if cache_folder.prepare().is_some() {
            cache_folder.write(&name, UNLANDED, &Cache { tip: tip.to_owned(), ..Cache::default() });
        }
        return Ok(Vec::new());
    };
    let known = cache_folder.read::<Cache>(&name, UNLANDED).and_then(|mut cache| {
        let added =
            if cache.folder == folder.key() { Vec::new() } else { snapshot.additions(&folder, &cache.folder)? };
        let mut new = std::mem::take(&mut cache.unread);
        new.extend(added.into_iter().map(|file| (file.key(), file.path)));
        Some((cache, new))
    });
    let (mut cache, new, is_whole) = match known {
        Some((cache, new)) if new.is_empty() && cache.folder == folder.key() && cache.tip == tip => {
            return Ok(cache.unlanded);
        }
        Some((cache, new)) => (cache, new, true),
        None => {
            let all = snapshot.listing(&folder.path)?;
            let files = all.value.into_iter().map(|file| (file.key(), file.path));
            (Cache::default(), files.collect(), all.is_whole)
        }
    };
    (cache.folder, cache.tip) = (folder.key(), tip.to_owned());
    cache.add(new, |path, key| snapshot.read(path, key), &|damage| repository.damage().add(damage))?;
    if is_whole && cache_folder.prepare().is_some() {
        cache_folder.write(&name, UNLANDED, &cache);
    }
    Ok(cache.unlanded)
}

/// Whether the cache, if there is one, matches the ledger.
pub(super) fn is_current(snapshot: &Snapshot, cache_folder: &CacheFolder, prefix: &str) -> Result<bool, Error> {
    let Some(cache) = cache_folder.read::<Cache>(&file_name(prefix), UNLANDED) else { return Ok(true) };
    let folder = snapshot.folder(&Place::Decisions.path(prefix))?.filter(|folder| folder.key() == cache.folder);
    let Some(folder) = folder else { return Ok(true) };
    let mut derived = Cache { folder: cache.folder.clone(), ..Cache::default() };
    let all = snapshot.listing(&folder.path)?.value.into_iter();
    let all = all.map(|file| (file.key(), file.path)).collect();
    derived.add(all, |path, key| snapshot.read(path, key), &|_| {})?;
    // Entries that cannot be read now may have been readable before.
    Ok(!derived.unread.is_empty() || derived.unlanded == cache.unlanded)
}

impl Cache {
    /// Adds files with these keys and paths.
    fn add(
        &mut self,
        new: Vec<(String, String)>,
        read: impl Fn(&str, &str) -> Result<Option<Vec<u8>>, Error>,
        report: &dyn Fn(Damage),
    ) -> Result<(), Error> {
        for (key, path) in new {
            if !matches!(kind_of(&path), "decision.logged" | "decision.landed") {
                continue;
            }
            let Some(bytes) = read(&path, &key)? else {
                self.unread.push((key, path));
                continue;
            };
            let facts = match Entry::parse(&bytes) {
                Read::Entry(entry) => EntryFacts::of(*entry).map_err(|reason| (DamageKind::Malformed, reason)),
                Read::Newer { version } => Err((DamageKind::Newer, newer(version))),
                Read::Damaged { reason } => Err((DamageKind::Malformed, reason)),
            };
            match facts.map(|facts| facts.map(|facts| (facts.id, facts.fact))) {
                Ok(Some((entry, Fact::Decided { decision, branch }))) => {
                    self.unlanded.push(Unlanded { entry, decision: *decision, branch });
                }
                Ok(Some((_, Fact::Landed { decisions, .. }))) => self.landed.extend(decisions),
                Ok(_) => {}
                Err((kind, reason)) => report(Damage { path, object: Some(key), kind, reason }),
            }
        }
        // A landing may be read before the decision it lands.
        let mut known = BTreeSet::new();
        self.unlanded.retain(|unlanded| {
            let is_landed = self.landed.contains(&unlanded.decision.id);
            if is_landed {
                known.insert(unlanded.decision.id.clone());
            }
            !is_landed
        });
        self.landed.retain(|id| !known.contains(id));
        // An id starts with its time.
        self.unlanded.stable_sort_by(|one, other| other.entry.cmp(&one.entry));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Actor, EventKind};

    fn decided(id: &str) -> EventKind {
        let decision = serde_json::json!({"id": id, "title": id, "date": null, "by": null, "text": ""});
        let decision = serde_json::from_value(decision).expect("a decision");
        EventKind::DecisionLogged { decision, branch: Some("main".to_owned()) }
    }

    fn landed(ids: &[&str]) -> EventKind {
        let decisions = ids.iter().map(|id| DecisionId::new(*id)).collect();
        EventKind::DecisionLanded { decisions, branch: "main".to_owned(), commit: String::new() }
    }

    /// Adds events in several parts; files whose number is in `missing` cannot be read before the last part.
    fn play(parts: &[&[EventKind]], missing: &[usize]) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut cache = Cache::default();
        for (part_number, part) in parts.iter().enumerate() {
            let mut new = std::mem::take(&mut cache.unread);
            for kind in *part {
                let number = bytes.len();
                let id = EntryId::new(format!("019b8d1f-6c00-7000-8000-{number:012}"));
                let entry = Entry::new(
                    id,
                    "2026-01-05T09:00:00Z".parse().expect("a time"),
                    Actor::User,
                    kind,
                    &crate::policy::Redactor::default(),
                );
                new.push((number.to_string(), entry.path("")));
                bytes.push(entry.render());
            }
            let read = |_: &str, key: &str| {
                let number: usize = key.parse().expect("a number");
                Ok((!missing.contains(&number) || part_number + 1 == parts.len()).then(|| bytes[number].clone()))
            };
            cache.add(new, read, &|damage| panic!("{damage:?}")).expect("it is read");
        }
        cache.unlanded.iter().map(|unlanded| unlanded.decision.id.to_string()).collect()
    }

    #[test]
    fn landed_decisions_are_removed_in_any_order() {
        let (a, b, both) = (decided("a"), decided("b"), landed(&["a", "b"]));
        let [one, other, end] = [[a.clone()], [b.clone()], [both]];
        for (parts, missing, left) in [
            (&[&[a.clone(), b.clone()][..]][..], &[][..], &["b", "a"][..]),
            (&[&[a.clone(), landed(&["a"]), b.clone()]], &[], &["b"]),
            (&[&one, &other, &end], &[], &[]),
            (&[&end, &one, &other], &[], &[]),
            (&[&[a.clone(), landed(&["a"])], &other], &[0], &["b"]),
            (&[&[a.clone(), landed(&["a"])], &other], &[1], &["b"]),
            (&[&one, &[], &other], &[0], &["b", "a"]),
        ] {
            assert_eq!(play(parts, missing), left, "{parts:?} {missing:?}");
        }
    }
}
