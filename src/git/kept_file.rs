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

impl Repository {
    /// Puts a file under a ref of ours, in place of the one that was there. Durable when it returns. False: another
    /// process moved the ref meanwhile.
    pub(crate) fn keep_file(
        &self,
        reference: &str,
        (name, bytes): (&str, Vec<u8>),
        message: &str,
        committer: &Identity,
        at: Timestamp,
    ) -> Result<bool, Error> {
        let old = self.references().read(reference)?;
        let (store, mut objects) = (self.objects(), NewObjects::new(self.hash()));
        let blob = objects.add(objs::Kind::Blob, bytes)?;
        let mut tree = TreeEdit::new(&store, None)?;
        tree.insert(name, blob)?;
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
