//! A file that squad keeps under a ref of its own, in a commit without a history.

use gix::objs;
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    objects::NewObjects,
    repository::Repository,
    tree_edit::TreeEdit,
};

/// The name of the file that was there before.
pub(crate) fn previous(name: &str) -> String {
    format!("previous-{name}")
}

impl Repository {
    /// Puts a file under a ref of ours, in place of the one that was there, which becomes the one of [`previous`]; if it is
    /// no other version, that stays. Durable when it returns. False: another process moved the ref meanwhile.
    pub(crate) fn keep_file(
        &self,
        reference: &str,
        (name, bytes, is_other): (&str, Vec<u8>, bool),
        message: &str,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<bool, Error> {
        let old = self.references().read(reference)?;
        let (store, mut objects) = (self.objects(), NewObjects::new(self.hash()));
        let blob = objects.add(objs::Kind::Blob, bytes)?;
        let mut tree = TreeEdit::new(&store, None)?;
        tree.insert(name, blob)?;
        let previous = previous(name);
        let from = if is_other { name } else { &*previous };
        // One that cannot be read is no reason to keep nothing.
        let kept = old.and_then(|old| store.find(store.tree_of(&old).ok()?, from).ok()?);
        if let Some((_, kept)) = kept.filter(|(mode, _)| mode.is_blob()) {
            tree.insert(&previous, kept)?;
        }
        let tree = tree.finish(&mut objects)?;
        let commit = objects.add(objs::Kind::Commit, commit::encode(tree, &[], committer, at, message))?;
        let pack = self.packs().add(&objects)?;
        let is_moved = self.ledger().move_ref(reference, old, commit)?;
        drop(pack);
        Ok(is_moved)
    }

    /// The commit with the file under a ref of ours: another one, another file.
    pub(crate) fn kept_commit(&self, reference: &str) -> Result<Option<String>, Error> {
        Ok(self.references().read(reference)?.map(|commit| commit.to_string()))
    }
}
