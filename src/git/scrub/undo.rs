//! Undoing a scrub, until the old objects are pruned.
//!
//! A scrub keeps each commit it replaces under a ref, so that gc does not remove it:
//!
//! ```text
//! refs/squad/scrubbed/ID/log         the ledger before the scrub ID
//! refs/squad/scrubbed/ID/rescue/R    the rescue R before it
//! ```
//!
//! These refs are never pushed, and are deleted when the old objects are pruned.

use std::{cell::Cell, collections::BTreeSet};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    super::{
        commit::{self, Identity},
        error::Error,
        ledger::REFERENCE,
        ledger_tree::TreeReader,
        repository::Repository,
        rescue::FOLDER,
        tree_edit::TreeEdit,
    },
    records,
};

const BACKUPS: &str = "refs/squad/scrubbed/";

/// The remotes' ledgers as of the last fetch.
const COPIES: &str = "refs/squad/remotes/";

/// How much was restored.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct UndoCounts {
    pub(crate) entries: usize,
    pub(crate) rescues: usize,
}

impl Repository {
    /// Backs up a commit that the scrub `id` is about to replace.
    pub(super) fn back_up(&self, id: &str, name: &str, commit: ObjectId) -> Result<(), Error> {
        self.call(&["update-ref", &format!("{BACKUPS}{id}/{name}"), &commit.to_string()]).succeed().map(drop)
    }

    /// The scrubs that can be undone, oldest first.
    pub(crate) fn scrubs(&self) -> Result<Vec<String>, Error> {
        let names = self.references().list(BACKUPS)?;
        let ids = names.iter().filter_map(|name| name.strip_prefix(BACKUPS)?.split('/').next());
        Ok(ids.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Why a scrub cannot be undone here: other clones may have it, or another scrub came on top of it.
    pub(crate) fn obstacle_to_undo(&self, id: &str) -> Result<Option<String>, Error> {
        let (references, store) = (self.references(), self.objects());
        for reference in references.list(COPIES)? {
            let Some(commit) = references.read(&reference)? else { continue };
            if records(&store, store.tree_of(&commit)?)?.iter().any(|record| is_of(record, id)) {
                let remote = reference[COPIES.len()..].split('/').next().unwrap_or_default();
                return Ok(Some(format!(
                    "`{remote}` has the scrubbed ledger, and other clones take it over from there"
                )));
            }
        }
        let tips = [REFERENCE, &format!("{BACKUPS}{id}/log")].map(|name| references.read(name));
        let [Some(tip), Some(old)] = tips.into_iter().collect::<Result<Vec<_>, _>>()?[..] else { return Ok(None) };
        let before = records(&store, store.tree_of(&old)?)?;
        let now = records(&store, store.tree_of(&tip)?)?;
        let is_alone = now.difference(&before).all(|record| is_of(record, id));
        Ok((!is_alone).then(|| "another clone's scrub came on top of it".to_owned()))
    }

    /// Restores what a scrub replaced; later changes stay. Deletes its backups once everything is durable.
    pub(crate) fn undo_scrub(&self, id: &str, committer: &Identity, at: Timestamp) -> Result<UndoCounts, Error> {
        let references = self.references();
        let mut undone = UndoCounts::default();
        let backups = references.list(&format!("{BACKUPS}{id}/"))?;
        for name in &backups {
            let Some(old) = references.read(name)? else { continue };
            match name.strip_prefix(&format!("{BACKUPS}{id}/rescue/")) {
                Some(rescue) => {
                    let reference = format!("{FOLDER}{rescue}");
                    // A rescue that was deleted since then stays deleted.
                    if let Some(now) = references.read(&reference)? {
                        undone.rescues += usize::from(self.ledger().move_ref(&reference, Some(now), old)?);
                    }
                }
                None => undone.entries = self.undo_in_ledger(id, old, committer, at)?,
            }
        }
        self.remove_backups(&backups)?;
        Ok(undone)
    }

    fn undo_in_ledger(&self, id: &str, old: ObjectId, committer: &Identity, at: Timestamp) -> Result<usize, Error> {
        let count = Cell::new(0);
        self.ledger().advance(|tip, objects| {
            let Some(tip) = tip else { return Ok(Some(old)) };
            let store = self.objects();
            let (root, before) = (store.tree_of(&tip)?, store.tree_of(&old)?);
            let own: Vec<String> = records(&store, root)?.into_iter().filter(|record| is_of(record, id)).collect();
            if own.is_empty() {
                // Already undone, by a process that died before it deleted the backups.
                return Ok(None);
            }
            let mut edit = TreeEdit::new(&store, Some(root))?;
            let mut replaced = 0;
            // The scrub did not change unreadable files either.
            let reader = TreeReader::new(&store, self.damage());
            for (path, blob) in reader.files_below("", before)? {
                match reader.find(root, &path)? {
                    Some((_, now)) if now != blob => {
                        replaced += usize::from(edit.replace(&path, now, Some(blob))?.is_some());
                    }
                    _ => {}
                }
            }
            for record in own {
                if let Some((_, blob)) = store.find(root, &record)? {
                    edit.replace(&record, blob, None)?;
                }
            }
            count.set(replaced);
            let tree = edit.finish(objects)?;
            let message = "undo a scrub";
            objects.add(objs::Kind::Commit, commit::encode(tree, &[old], committer, at, message)).map(Some)
        })?;
        Ok(count.get())
    }

    /// Deletes all backups; scrubs can no longer be undone.
    pub(super) fn forget_backups(&self) -> Result<(), Error> {
        let backups = self.references().list(BACKUPS)?;
        self.remove_backups(&backups)
    }

    fn remove_backups(&self, names: &[String]) -> Result<(), Error> {
        let input: String = names.iter().map(|name| format!("delete {name}\n")).collect();
        if input.is_empty() {
            return Ok(());
        }
        self.call(&["update-ref", "--stdin"]).input(input).succeed().map(drop)
    }
}

/// A record's file name starts with the time and id of its entry.
fn is_of(record: &str, id: &str) -> bool {
    record.rsplit('/').next().is_some_and(|name| name.starts_with(id))
}
