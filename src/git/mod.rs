//! The door to git: the only user of gix and of the `git` program.
//!
//! Paths, bytes and ids go in and out; nothing here knows what an entry or a decision is.
//!
//! | file | what it holds |
//! |---|---|
//! | `repository` | where the repository is, what is checked out |
//! | `operation` | merges, rebases and the like that are going on |
//! | `references`, `ref_lock` | reading refs, and moving the ledger's ref durably |
//! | `disk` | the changes on disk, step by step |
//! | `objects`, `recent`, `pack`, `quarantine` | writing objects so that neither a power cut nor git's gc loses them |
//! | `tree` | reading folders of a commit, adding files to a tree |
//! | `lock`, `queue`, `ledger`, `snapshot` | the append-only ledger on `refs/squad/log` |
//! | `repair` | bringing back what of it was lost, and going on without the rest |
//! | `ledger_tree` | reading it where parts of it are damaged |
//! | `sync`, `union` | the ledgers of two clones become one |
//! | `landing`, `checkout` | one commit of our files on the user's branch |
//! | `intent`, `transaction`, `staging` | changes of work tree, index and branch that a kill leaves to be finished |
//! | `work_tree` | snapshots of the work tree, and what changed between two of them |
//! | `rescue` | what is not committed, kept before something of it goes, and given back |
//! | `scrub` | taking something out of all that squad keeps |
//! | `history` | revisions, where histories part, trailers, branches, what was removed |
//! | `foreign` | files of somebody else's repository |
//! | `program`, `maintenance` | running `git`, and letting it tidy up |
//!
//! Reads stay in this process. The `git` program is asked where only it knows the answer (identity, attributes,
//! signing), where gix would damage the index, and for every ref of a reftable repository.

mod bundle;
mod checkout;
mod commit;
mod disk;
mod error;
mod foreign;
mod history;
mod intent;
mod landing;
mod ledger;
mod ledger_tree;
mod lock;
mod maintenance;
mod merge_text;
mod objects;
mod operation;
mod pack;
mod program;
mod quarantine;
mod queue;
mod recent;
mod ref_lock;
mod references;
mod remove;
mod repair;
mod repository;
mod rescue;
mod scrub;
mod second_copy;

mod snapshot;
mod staging;
mod sync;
mod transaction;
mod tree;
mod union;
mod work_tree;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    commit::Identity,
    error::Error,
    foreign::ForeignRepository,
    history::Blame,
    intent::Begun,
    landing::{Change, Edit, Landing, Outcome, Recovered},
    ledger_tree::Seen,
    maintenance::Extent,
    objects::sha1_of_blob,
    program::Environment,
    remove::Belongings,
    repository::{Head, Repository},
    rescue::{Kept, LeftOut, Place, Rescue, Saved, State},
    scrub::Undone,
    snapshot::{File, Folder, Readable, Snapshot},
    sync::{Delivery, Destination, Refusal, Remote, Standing},
    transaction::Rewrite,
    work_tree::WorkTreeSnapshot,
};
