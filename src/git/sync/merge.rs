//! Merging a remote's ledgers into this clone's.

use std::collections::{BTreeMap, BTreeSet};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    super::{
        commit::{self, Identity},
        error::Error,
        ledger_tree::TreeReader,
        scrub,
        union::{self, MergeFile, Scrubbed, count_missing},
    },
    Remote,
};
use crate::model::{Damage, IntoSet, Sort};

/// Parses a scrub record: the paths of changed files, and the entries set aside as damaged.
pub(crate) type Records<'a> = dyn Fn(&[u8]) -> (Vec<String>, Vec<Damage>) + 'a;

impl Remote<'_> {
    /// Merges the fetched ledgers into this clone's, durably.
    ///
    /// If one history still references content scrubbed from the other, its files are merged but it does not become a
    /// parent. `scrubbed` parses a scrub record; `merge_file` merges two versions of a file.
    pub(crate) fn merge_fetched(
        &self,
        scrubbed: &Records<'_>,
        merge_file: &MergeFile<'_>,
        identity: &Identity,
    ) -> Result<(), Error> {
        self.remote_refs()?
            .into_iter()
            .try_for_each(|remote_ref| self.merge_ledger(remote_ref.commit, scrubbed, merge_file, identity))
    }

    /// Merges the ledger at a local commit.
    pub(in crate::git) fn merge_ledger(
        &self,
        theirs: ObjectId,
        scrubbed: &Records<'_>,
        merge_file: &MergeFile<'_>,
        identity: &Identity,
    ) -> Result<(), Error> {
        self.repository.ledger().advance(|tip, objects| {
            let Some(ours) = tip else { return Ok(Some(theirs)) };
            if ours == theirs || self.is_ancestor(theirs, ours)? {
                return Ok(None);
            }
            let store = self.repository.objects();
            let trees = [store.tree_of(&ours)?, store.tree_of(&theirs)?];
            // A commit built on ours by hand may have removed entries.
            let reader = TreeReader::new(&store, self.repository.damage());
            if self.is_ancestor(ours, theirs)? && count_missing(&reader, trees[0], &[trees[1]])? == 0 {
                return Ok(Some(theirs));
            }
            let records = [scrub::records(&store, trees[0])?, scrub::records(&store, trees[1])?];
            let (mut paths, mut set_aside) = (BTreeSet::new(), BTreeMap::<String, Vec<Damage>>::new());
            for (tree, records) in trees.iter().zip(&records) {
                for record in records {
                    if let Some((_, id)) = store.find(*tree, record)? {
                        let (changed, damaged) = scrubbed(&store.blob(&id)?);
                        paths.extend(changed);
                        for damage in damaged {
                            set_aside.entry(damage.path.clone()).or_default().push(damage);
                        }
                    }
                }
            }
            let tree = union::union(&store, trees[0], trees[1], &Scrubbed { paths, set_aside, merge_file }, objects)?;
            // Sorted, so that every clone creates the same commit.
            let mut parents = vec![(ours, trees[0], &records[0]), (theirs, trees[1], &records[1])];
            parents.stable_sort_by_key(|(commit, _, _)| *commit);
            let all: BTreeSet<&String> = records.iter().flatten().into_set();
            let dirty: Vec<ObjectId> = parents
                .iter()
                .filter(|(_, _, records)| records.len() < all.len())
                .map(|(commit, _, _)| *commit)
                .collect();
            parents.retain(|(commit, _, _)| !dirty.contains(commit));
            if !dirty.is_empty() {
                self.repository.record_replaced(&dirty)?;
            }
            if let [(commit, has, _)] = parents[..]
                && has == tree
            {
                return Ok(Some(commit));
            }
            let at = store.time_of(&ours)?.max(store.time_of(&theirs)?);
            let at = Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH);
            let parents: Vec<ObjectId> = parents.iter().map(|(commit, _, _)| *commit).collect();
            objects.add(objs::Kind::Commit, commit::encode(tree, &parents, identity, at, "union")).map(Some)
        })
    }

    fn is_ancestor(&self, ancestor: ObjectId, of: ObjectId) -> Result<bool, Error> {
        let arguments = ["merge-base", "--is-ancestor", &ancestor.to_string(), &of.to_string()];
        Ok(self.call(&arguments).run()?.is_success())
    }
}
