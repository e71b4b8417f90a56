//! The decisions that have landed nowhere. They are few, however many have landed: whoever lands one need not go through
//! all that there ever were.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{DAMAGE, Derived, EntryFacts, Fact, Place, cache_folder, file_name, kind_of, newer};
use crate::git::{Error, Repository, Snapshot};
use crate::model::{Damage, DamageKind, Decision, DecisionId, EntryId};
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
struct Kept {
    /// The key of the folder of decisions that this is of.
    folder: String,
    unlanded: Vec<Unlanded>,
    /// Landings of decisions that are not known.
    landed: BTreeSet<DecisionId>,
    /// Entries that could not be read and may be there the next time: keys and paths.
    unread: Vec<(String, String)>,
}

/// The decisions of a team that have landed nowhere, the newest first. Reads what is new since the last time, and
/// reports what is known to be damaged.
pub(in crate::ops) fn unlanded(repository: &Repository, prefix: &str) -> Result<Vec<Unlanded>, Error> {
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok(Vec::new()) };
    let snapshot = snapshot.insist()?;
    let (cache_folder, name) = (cache_folder(repository), file_name(prefix));
    let known: Vec<Damage> = cache_folder.read(&name, DAMAGE).unwrap_or_default();
    let holds = known.iter().filter(|damage| snapshot.still_has(damage));
    holds.for_each(|damage| repository.damage().add(damage.clone()));
    let unlanded = read(repository, &snapshot, prefix)?;
    let found = repository.damage().all();
    if found.is_empty() {
        cache_folder.remove(&name, DAMAGE);
    } else if found != known && cache_folder.prepare().is_some() {
        cache_folder.write(&name, DAMAGE, &found);
    }
    Ok(unlanded)
}

fn read(repository: &Repository, snapshot: &Snapshot, prefix: &str) -> Result<Vec<Unlanded>, Error> {
    let Some(folder) = snapshot.folder(&Place::Decisions.path(prefix))? else { return Ok(Vec::new()) };
    let (cache_folder, name) = (cache_folder(repository), file_name(prefix));
    let known = cache_folder.read::<Kept>(&name, UNLANDED).and_then(|mut kept| {
        let added = if kept.folder == folder.key() { Vec::new() } else { snapshot.additions(&folder, &kept.folder)? };
        let mut new = std::mem::take(&mut kept.unread);
        new.extend(added.into_iter().map(|file| (file.key(), file.path)));
        Some((kept, new))
    });
    let (mut kept, new, is_whole) = match known {
        Some((kept, new)) if new.is_empty() && kept.folder == folder.key() => return Ok(kept.unlanded),
        Some((kept, new)) => (kept, new, true),
        None => {
            let all = snapshot.listing(&folder.path)?;
            let files = all.value.into_iter().map(|file| (file.key(), file.path));
            (Kept::default(), files.collect(), all.is_whole)
        }
    };
    kept.folder = folder.key();
    kept.add(new, |path, key| snapshot.read(path, key), &|damage| repository.damage().add(damage))?;
    if is_whole && cache_folder.prepare().is_some() {
        cache_folder.write(&name, UNLANDED, &kept);
    }
    Ok(kept.unlanded)
}

/// Whether what is kept, if anything is, says what the ledger says.
pub(super) fn is_current(snapshot: &Snapshot, cache_folder: &CacheFolder, prefix: &str) -> Result<bool, Error> {
    let Some(kept) = cache_folder.read::<Kept>(&file_name(prefix), UNLANDED) else { return Ok(true) };
    let folder = snapshot.folder(&Place::Decisions.path(prefix))?.filter(|folder| folder.key() == kept.folder);
    let Some(folder) = folder else { return Ok(true) };
    let mut derived = Kept { folder: kept.folder.clone(), ..Kept::default() };
    let all = snapshot.listing(&folder.path)?.value.into_iter();
    let all = all.map(|file| (file.key(), file.path)).collect();
    derived.add(all, |path, key| snapshot.read(path, key), &|_| {})?;
    // What cannot be read now may have been readable then.
    Ok(!derived.unread.is_empty() || derived.unlanded == kept.unlanded)
}

impl Kept {
    /// Takes files with these keys and paths in.
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
            let told = match Entry::parse(&bytes) {
                Read::Entry(entry) => EntryFacts::of(*entry).map_err(|reason| (DamageKind::Malformed, reason)),
                Read::Newer { version } => Err((DamageKind::Newer, newer(version))),
                Read::Damaged { reason } => Err((DamageKind::Malformed, reason)),
            };
            match told.map(|told| told.map(|told| (told.id, told.fact))) {
                Ok(Some((entry, Fact::Decided { decision, branch }))) => {
                    self.unlanded.push(Unlanded { entry, decision, branch });
                }
                Ok(Some((_, Fact::Landed { decisions, .. }))) => self.landed.extend(decisions),
                Ok(_) => {}
                Err((kind, reason)) => report(Damage { path, object: Some(key), kind, reason }),
            }
        }
        // A landing may come before what it lands: its entry may be read later.
        let mut met = BTreeSet::new();
        self.unlanded.retain(|waiting| {
            let is_landed = self.landed.contains(&waiting.decision.id);
            if is_landed {
                met.insert(waiting.decision.id.clone());
            }
            !is_landed
        });
        self.landed.retain(|id| !met.contains(id));
        // An id begins with the time.
        self.unlanded.sort_by(|one, other| other.entry.cmp(&one.entry));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Actor, What};

    fn decided(id: &str) -> What {
        let decision = serde_json::json!({"id": id, "title": id, "date": null, "by": null, "text": ""});
        let decision = serde_json::from_value(decision).expect("a decision");
        What::DecisionLogged { decision, branch: Some("main".to_owned()) }
    }

    fn landed(ids: &[&str]) -> What {
        let decisions = ids.iter().map(|id| DecisionId::new(*id)).collect();
        What::DecisionLanded { decisions, branch: "main".to_owned(), commit: String::new() }
    }

    /// Hands over what happened in several parts; files whose number is among `missing` cannot be read at first.
    fn play(parts: &[&[What]], missing: &[usize]) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut kept = Kept::default();
        for (turn, part) in parts.iter().enumerate() {
            let mut new = std::mem::take(&mut kept.unread);
            for what in *part {
                let number = bytes.len();
                let id = EntryId::new(format!("019b8d1f-6c00-7000-8000-{number:012}"));
                let entry = Entry::new(
                    id,
                    "2026-01-05T09:00:00Z".parse().expect("a time"),
                    Actor::User,
                    what,
                    &crate::policy::Redactor::default(),
                );
                new.push((number.to_string(), entry.path("")));
                bytes.push(entry.render());
            }
            let read = |_: &str, key: &str| {
                let number: usize = key.parse().expect("a number");
                Ok((!missing.contains(&number) || turn + 1 == parts.len()).then(|| bytes[number].clone()))
            };
            kept.add(new, read, &|damage| panic!("{damage:?}")).expect("it is read");
        }
        kept.unlanded.iter().map(|unlanded| unlanded.decision.id.to_string()).collect()
    }

    #[test]
    fn what_has_landed_is_not_waiting_in_whatever_order_it_is_heard_of() {
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
