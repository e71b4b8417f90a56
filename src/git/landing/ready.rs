//! Whether a repository is ready for a commit.

use std::{path::Path, time::Duration};

use gix::ObjectId;

use super::{Change, NewFile, Stop, refuse};
use crate::git::{repository::Repository, staging};

/// How long we wait for another git's index lock before reporting it: that git may have died.
const INDEX_TIMEOUT: Duration = Duration::from_millis(100);

/// The work tree's root and the commit to build on, if the repository is ready for a commit.
pub(super) fn check_ready<'a>(
    repository: &'a Repository,
    branch: &str,
    allow_unborn: bool,
) -> Result<(&'a Path, Option<ObjectId>), Stop> {
    let Some(root) = repository.work_dir() else {
        return refuse("the repository is bare: no branch is checked out", "use a clone with a work tree");
    };
    let head = repository.head()?;
    let switch = format!("git switch {branch}");
    match &head.branch {
        None => return refuse("HEAD is detached: no branch is checked out", switch),
        Some(other) if other != branch => {
            return refuse(format!("{other} is checked out, not {branch}"), switch);
        }
        Some(_) => {}
    }
    if let Some(operation) = repository.operation() {
        return refuse(format!("a {operation} is in progress"), "finish it: `git status` tells how");
    }
    staging::wait_for_lock(repository, INDEX_TIMEOUT);
    let lock = staging::lock_path(repository);
    if lock.exists() {
        return refuse("another git process is changing the index", format!("if none is, remove '{}'", lock.display()));
    }
    match &head.commit {
        Some(commit) => Ok((root, Some(repository.parse_commit(commit)?))),
        None if allow_unborn => Ok((root, None)),
        None => refuse(format!("{branch} has no commit yet"), "make the first commit, then try again"),
    }
}

/// With some attributes git stores converted bytes, for example through the user's filter programs. A commit of the
/// plain bytes would then always show as changed.
pub(super) fn check_attributes(repository: &Repository, change: &Change) -> Result<(), Stop> {
    let names = ["filter", "ident", "working-tree-encoding", "text", "eol"];
    let paths: String = change.files.iter().map(|file| format!("{}\0", file.path)).collect();
    let call = repository.call(&["check-attr", "-z", "--stdin"]).arguments(&names);
    let answer = call.input(paths).succeed()?;
    let fields: Vec<_> = answer.stdout.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    for field in fields.chunks_exact(3) {
        let (path, name, value) = (&field[0], &field[1], &field[2]);
        let is_on = !matches!(value.as_ref(), "unspecified" | "unset" | "auto");
        let has_carriage_returns = || {
            let is_it = |file: &&NewFile| file.path == *path;
            change.files.iter().filter(is_it).any(|file| file.bytes.windows(2).any(|pair| pair == b"\r\n"))
        };
        let converts = match name.as_ref() {
            "text" | "eol" => is_on && has_carriage_returns(),
            _ => is_on,
        };
        if converts {
            return refuse(
                format!("the attribute {name}={value} makes git store {path} in another form"),
                format!("exempt it in .gitattributes: {path} -{name}"),
            );
        }
    }
    Ok(())
}
