//! Saved conversations, so that a later process can continue the last one.
//!
//! ```text
//! .git/squad/conversations/KEY-ID.lock    locked while a process uses the conversation
//! .git/squad/conversations/KEY-ID.json    its messages and answers
//! ```
//!
//! `KEY` is a hash of the work tree and the team's folder, `ID` the conversation's id.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use crate::env::{Env, lock};
use crate::error::Failure;
use crate::model::{RunId, Sort};
use crate::ops::Workspace;
use crate::ops::run::local_file::{place_key, read, replace};

/// How many days a conversation is offered: as long as sessions of unfinished work are kept.
const DAYS: i64 = 14;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedConversation {
    pub(crate) id: RunId,
    /// The time of the last message or answer.
    pub(crate) at: Timestamp,
    /// Message and answer, oldest first.
    pub(crate) turns: Vec<(String, String)>,
    /// The last run, if it did not complete.
    pub(crate) interrupted: Option<RunId>,
}

impl SavedConversation {
    pub(super) fn new(id: RunId) -> Self {
        Self { id, at: Timestamp::UNIX_EPOCH, turns: Vec::new(), interrupted: None }
    }
}

/// A conversation's file, locked against other processes.
pub(super) struct ConversationFile {
    path: PathBuf,
    _lock: File,
}

impl ConversationFile {
    pub(super) fn take(workspace: &Workspace, id: &RunId) -> Result<Self, Failure> {
        let (folder, key) = place(workspace);
        let path = folder.join(format!("{key}-{id}.json"));
        match locked(&path) {
            Ok(Some(lock)) => Ok(Self { path, _lock: lock }),
            Ok(None) => Err(Failure::failed("another process has continued this conversation")),
            Err(error) => Err(Failure::team(format!("cannot write to {}: {error}", folder.display()))
                .hint("squad keeps its local state there; check the folder's permissions")),
        }
    }

    pub(super) fn write(&self, conversation: &SavedConversation) {
        // If this fails, the conversation cannot be continued later. The ledger has it all the same.
        let _ = replace(&self.path, conversation);
    }
}

/// The last conversation that no process uses. Deletes older ones: the ledger has their messages.
pub(crate) fn last_conversation(env: &Env, workspace: &Workspace) -> Option<SavedConversation> {
    let (folder, key) = place(workspace);
    let of_this_place = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&key) && name.ends_with(".json")
    };
    let files = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).filter(of_this_place);
    let mut free: Vec<(SavedConversation, PathBuf)> = files
        .filter(|path| matches!(locked(path), Ok(Some(_))))
        .filter_map(|path| Some((read::<SavedConversation>(&path)?, path)))
        .collect();
    free.stable_sort_by_key(|(conversation, _)| conversation.at);
    let last = free.pop();
    for (_, path) in free {
        delete(&path);
    }
    let oldest = env.clock.now().checked_sub((DAYS * 24).hours()).unwrap_or(Timestamp::UNIX_EPOCH);
    last.map(|(conversation, _)| conversation).filter(|conversation| conversation.at >= oldest)
}

fn delete(path: &Path) {
    for path in [path.to_owned(), path.with_extension("lock")] {
        let _ = fs::remove_file(path);
    }
}

fn place(workspace: &Workspace) -> (PathBuf, String) {
    let key = place_key(&workspace.repository, &workspace.folder_in_repository());
    (workspace.local().join("conversations"), key)
}

/// `None`: another process holds it.
fn locked(path: &Path) -> std::io::Result<Option<File>> {
    let lock = lock::open(&path.with_extension("lock"))?;
    Ok(lock::try_take(&lock)?.then_some(lock))
}
