//! A chat has one user at a time: two messages at once would mix.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::results::RunResult;
use crate::env::lock;
use crate::error::Failure;
use crate::model::RunId;
use crate::ops::Project;
use crate::ops::run::order::NamedMember;

/// The live run that has a chat, until the run's end.
pub(crate) fn user_of(project: &Project, chat: &str) -> Option<RunId> {
    /// A run that has answered ends within a moment, which may be long on a busy machine.
    const MOMENT: Duration = Duration::from_secs(5);
    const POLL: Duration = Duration::from_millis(20);
    let has_it = |result: &RunResult| result.members.iter().any(|member| member.session == chat);
    let begun = Instant::now();
    loop {
        let live = project.leases().live.into_iter();
        let mut results = live.filter_map(|live| RunResult::read(project, &live.run).ok().flatten());
        let user = results.find(has_it)?;
        let is_over = user.members.iter().all(|member| member.end.is_some());
        if !is_over || begun.elapsed() > MOMENT {
            return Some(user.run);
        }
        thread::sleep(POLL);
    }
}

/// Locks the chats that members continue, for as long as the files are open. Two runs may have looked at the same time.
pub(super) fn lock_all(local: &Path, members: &[NamedMember]) -> Result<Vec<File>, Failure> {
    let chats = members.iter().filter_map(|member| member.given.chat.as_ref());
    chats.map(|chat| lock_one(local, chat)).collect()
}

fn lock_one(local: &Path, chat: &str) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot lock the chat `{chat}`: {error}"));
    // In the folder of the chat's output, with which it is cleared.
    let file = lock::open(&local.join("output").join(chat).join("lock")).map_err(failed)?;
    match lock::take(&file) {
        Ok(true) => Ok(file),
        Ok(false) => Err(Failure::failed(format!("the chat `{chat}` is in use"))
            .hint("wait for that run's end, or start a new chat")),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_locked_once() {
        let local = tempfile::tempdir().expect("a folder");
        let held = lock_one(local.path(), "a-1").expect("it is free");
        let refused = lock_one(local.path(), "a-1").expect_err("it is not");
        assert_eq!(refused.message, "the chat `a-1` is in use");
        lock_one(local.path(), "b-1").expect("another chat");
        drop(held);
        lock_one(local.path(), "a-1").expect("it is free again");
    }
}
