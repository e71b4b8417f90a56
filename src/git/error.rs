use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::walk::PassedOver;
use crate::program::ProgramRefusal;

/// Why a repository operation failed. Each message names the path or item it is about.
#[derive(Debug)]
pub(crate) enum Error {
    /// The folder does not exist, or no longer.
    NoFolder { path: PathBuf },
    /// No folder from `start` up holds a repository.
    NoRepository { start: PathBuf },
    /// The repository belongs to another user and `safe.directory` does not list it.
    UnsafeOwnership { path: PathBuf },
    /// The repository uses a feature we do not support.
    Unsupported { path: PathBuf, what: String },
    /// The repository exists, but its files cannot be read.
    Unreadable { path: PathBuf, cause: String },
    /// The operating system refused an operation on a file.
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// An object or a ref is missing or malformed.
    Damaged { path: PathBuf, what: String },
    /// An object is missing, or does not match its id.
    Object { path: PathBuf, what: String },
    /// We gave up waiting for one of git's lock files.
    Locked { path: PathBuf },
    /// The ledger already holds different bytes at this path; its files never change.
    Taken { path: String },
    /// A file in a commit exceeds the size limit for its kind, or a folder the limits of a walk.
    TooLarge(PassedOver),
    /// A path that a tree cannot contain.
    BadPath { path: String },
    /// A command was interrupted and must be finished before another one starts here.
    InterruptedCommand { command: String },
    /// The intent file of an interrupted command cannot be read.
    UnknownIntent { path: PathBuf, what: String },
    /// Git could not reach a remote.
    Unreachable { remote: String, message: String },
    /// The `git` program could not be run, or failed.
    Program { command: String, message: String },
    /// There is no `git` program that we are allowed to run.
    NoGit(ProgramRefusal),
}

impl Error {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn damaged(path: &Path, what: impl fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.to_string() }
    }

    /// Whether a file may not be written.
    pub(super) fn is_refused(&self) -> bool {
        let refused = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
        matches!(self, Self::Io { source, .. } if refused.contains(&source.kind()))
    }

    /// A next step for the user, if one helps.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoFolder { .. } => "if it was deleted or moved, restore it, or start squad in another folder".into(),
            Self::NoRepository { .. } => "run it inside a git repository, or make one with `git init`".into(),
            Self::UnsafeOwnership { path } => {
                format!("if you trust it: git config --global --add safe.directory '{}'", path.display())
            }
            Self::Unsupported { .. } | Self::BadPath { .. } | Self::Taken { .. } => return None,
            Self::TooLarge(_) => "split it and commit the parts, or take it out of the branch".into(),
            Self::Unreadable { .. } => "check who owns the folder and its permissions".into(),
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => "check who owns the folder and its permissions".into(),
                io::ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only".into(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space and try again".into(),
                _ => return None,
            },
            Self::Damaged { .. } => "`git fsck --full` shows what is wrong".into(),
            Self::Object { .. } => {
                "`squad doctor --repair` repairs the ledger; `git fsck --full` shows what else is damaged".into()
            }
            Self::Locked { path } => format!("if no git is running, remove '{}'", path.display()),
            Self::InterruptedCommand { command } => format!("finish it: squad {command}"),
            Self::UnknownIntent { path, .. } => {
                format!("check `git status`, then remove '{}'", path.display())
            }
            Self::Unreachable { remote, .. } => {
                format!("check its address, your network and your access: git ls-remote {remote}")
            }
            Self::Program { .. } => "check that git runs in this folder: git status".into(),
            Self::NoGit(ProgramRefusal::InCheckout(path)) => format!(
                "install git elsewhere; or, if you trust that one: squad config set --user git.program '{}'",
                path.display()
            ),
            Self::NoGit(ProgramRefusal::Missing(_)) => {
                "install git, or name it: squad config set --user git.program PATH".into()
            }
            Self::NoGit(ProgramRefusal::Relative(_)) => {
                "set `git.program` to a whole path, or to a name to look up".into()
            }
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder { path } => write!(f, "there is no folder {}", path.display()),
            Self::NoRepository { start } => write!(f, "no git repository at {} or above", start.display()),
            Self::UnsafeOwnership { path } => {
                write!(f, "the repository at {} belongs to another user, and git does not trust it", path.display())
            }
            Self::Unsupported { path, what } => write!(f, "the repository at {} {what}", path.display()),
            Self::Unreadable { path, cause } => {
                write!(f, "the repository at {} cannot be read: {cause}", path.display())
            }
            Self::Io { action, path, source } => write!(f, "cannot {action} {}: {source}", path.display()),
            Self::Damaged { path, what } | Self::Object { path, what } => {
                write!(f, "the repository at {} is damaged: {what}", path.display())
            }
            Self::Locked { path } => write!(f, "another git process holds {}", path.display()),
            Self::Taken { path } => write!(f, "the ledger already holds another text under {path}"),
            Self::TooLarge(PassedOver { path, why }) => write!(f, "{path} is not read: {why}"),
            Self::BadPath { path } => write!(f, "{path:?} cannot be the path of a file in a repository"),
            Self::InterruptedCommand { command } => write!(f, "`squad {command}` was interrupted"),
            Self::UnknownIntent { path, what } => {
                write!(f, "a command was stopped, and its record {} cannot be read: {what}", path.display())
            }
            Self::Unreachable { remote, message } => write!(f, "cannot reach the remote `{remote}`: {message}"),
            Self::Program { command, message } => write!(f, "`{command}` failed: {message}"),
            Self::NoGit(unfit) => write!(f, "git cannot be run: {unfit}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
