//! Git access: the only user of gix and of the `git` program.
//!
//! Paths, bytes and ids go in and out; nothing here knows what an entry or a decision is.
//!
//! | file | contents |
//! |---|---|
//! | `repository`, `discover` | where the repository is, what is checked out |
//! | `operation` | detects a merge, rebase or similar in progress |
//! | `references`, `ref_lock` | reading refs, and moving the ledger's ref durably |
//! | `disk` | every write to disk, as separate steps |
//! | `objects`, `recent`, `pack`, `quarantine` | writing objects so that neither a power cut nor git's gc loses them |
//! | `object_store`, `tree`, `contents` | reading objects, folders and files of a commit |
//! | `walk` | how much one walk of a tree may read |
//! | `tree_edit` | adding files to a tree |
//! | `lock`, `queue`, `ledger`, `snapshot` | the append-only ledger on `refs/squad/log` |
//! | `incoming` | objects of remotes and bundles, before they are taken |
//! | `repair` | recovering lost ledger objects, and carrying on without the rest |
//! | `ledger_tree` | reading a ledger with damaged parts |
//! | `sync`, `union` | merging the ledgers of two clones |
//! | `landing`, `checkout` | committing our files to the user's branch |
//! | `intent`, `transaction`, `rewrite`, `staging` | changes to work tree, index and branch that can be finished after a kill |
//! | `listing`, `settings_files` | which files git tracks, would add, or ignores, and takes settings from |
//! | `work_tree` | snapshots of the work tree, and the diff between two of them |
//! | `transfer` | commits on their way to and from another machine, as bundles |
//! | `clone` | clones in which agents work, and commits of what they did there |
//! | `merge` | merging their work into the user's branch |
//! | `rescue` | backing up uncommitted changes before they are removed, and restoring them |
//! | `undo` | taking changes out of the work tree by a merge, and planning to |
//! | `scrub` | removing content from everything squad stores |
//! | `history` | revisions, merge bases, trailers, branches, removed files |
//! | `foreign` | files of another repository |
//! | `program`, `maintenance` | running `git`, and its maintenance |
//!
//! Reads stay in this process. The `git` program runs where only it knows the answer (identity, attributes, signing),
//! where gix would damage the index, and for every ref of a reftable repository.

mod agents_git;
mod bundle;
mod checkout;
mod clone;
mod clone_config;
mod commit;
mod contents;
mod diff;
mod discover;
mod disk;
mod error;
mod exchange;
mod filters;
mod foreign;
mod history;
mod incoming;
mod intent;
mod kept_file;
mod landing;
mod ledger;
mod ledger_tree;
mod listing;
mod lock;
mod maintenance;
mod merge;
mod merge_text;
mod mode;
mod object_store;
mod objects;
mod operation;
mod own_writes;
mod pack;
mod path;
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
mod rewrite;
mod scrub;
mod second_copy;
mod settings_files;
mod snapshot;
mod staging;
mod sync;
mod transaction;
mod transfer;
mod tree;
mod tree_edit;
mod undo;
mod union;
mod walk;
mod work_tree;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    agents_git::{FetchedCommit, SHARED},
    bundle::BundledLedger,
    clone::{ClonedWork, MergedWork, clone_folders, conflicting_files},
    commit::Identity,
    contents::PlainFiles,
    error::Error,
    foreign::ForeignRepository,
    history::{Blame, unquoted},
    intent::{InterruptedCommand, may_be_begun},
    kept_file::previous,
    landing::{Change, Edit, Landing, NewFile, Outcome, Recovered},
    listing::Submodule,
    maintenance::Extent,
    merge::{MergePlan, MergeTarget, MergedFile, RunCommit, WorkToMerge},
    mode::is_executable,
    objects::sha1_of_blob,
    own_writes::{OwnWrite, RefWrite},
    program::Environment,
    references::REFERENCE as LEDGER,
    repository::{Head, Repository},
    rescue::{FileStatus, NewRescue, Rescue, RescuedFile, TargetState},
    snapshot::{File, Folder, Readable, Snapshot},
    sync::{Destination, Difference, PushResult, Refusal, Remote},
    undo::{CommittedFile, CommittedVersions, IgnoreRules, UndoPlan, UndoRequest},
    walk::Walk,
    work_tree::{FileStep, RepositoryState, RunOfSnapshots, WorkTreeSnapshot},
};
