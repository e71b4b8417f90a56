//! Finding and opening a repository, and why one was not opened.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use super::{
    error::Error,
    program::{Call, Environment},
};

/// Extensions that do not affect this module, or that it supports. From git's `Documentation/config/extensions.adoc`.
const KNOWN_EXTENSIONS: [&str; 9] = [
    "compatobjectformat",
    "noop",
    "noop-v1",
    "objectformat",
    "partialclone",
    "preciousobjects",
    "refstorage",
    "relativeworktrees",
    "worktreeconfig",
];

/// The repository that contains a folder, if its settings may be trusted.
pub(super) fn open(start: &Path, environment: &Environment) -> Result<gix::Repository, Error> {
    let found = find(start, environment).map_err(|cause| explain(start, environment, &cause))?;
    if found.git_dir_trust() == gix::sec::Trust::Full {
        return Ok(found);
    }
    check_trust(start, found.workdir().unwrap_or(found.git_dir()), environment)?;
    open_trusted(&found)
}

/// gix reads only the repository's own settings; whatever it needs from the environment comes from us.
fn options() -> gix::open::Options {
    gix::open::Options::isolated()
}

fn find(start: &Path, environment: &Environment) -> Result<gix::Repository, String> {
    if env::current_dir().is_err() {
        // gix asks for the working directory even if it does not need it, and a server's may have been deleted since. If
        // `start` is gone too, the search fails, and the error says so.
        let _ = env::set_current_dir(start);
    }
    let ceilings = environment.variable("GIT_CEILING_DIRECTORIES").map(env::split_paths);
    let search = gix::discover::upwards::Options {
        ceiling_dirs: ceilings.into_iter().flatten().filter(|path| path.is_absolute()).collect(),
        match_ceiling_dir_or_error: false,
        ..Default::default()
    };
    let trust = gix::sec::trust::Mapping { full: options(), reduced: options() };
    let found = gix::ThreadSafeRepository::discover_opts(start, search, trust).map_err(|cause| cause.to_string())?;
    Ok(found.to_thread_local())
}

/// Explains why no repository was opened, from the first `.git` found upwards of `start`; git would not look past it.
fn explain(start: &Path, environment: &Environment, cause: &str) -> Error {
    if let Err(source) = fs::metadata(start) {
        if source.kind() == io::ErrorKind::NotFound {
            return Error::NoFolder { path: start.to_owned() };
        }
        return Error::Io { action: "open", path: start.to_owned(), source };
    }
    for folder in start.ancestors() {
        let candidate = folder.join(".git");
        match fs::symlink_metadata(&candidate) {
            Err(absent) if absent.kind() == io::ErrorKind::NotFound => {}
            Err(refused) => return Error::Unreadable { path: candidate, cause: refused.to_string() },
            Ok(_) => return explain_candidate(candidate, folder, environment, cause),
        }
    }
    Error::NoRepository { start: start.to_owned() }
}

/// gix could not open it. Report git's own message: that is the one users can search for.
fn explain_candidate(path: PathBuf, folder: &Path, environment: &Environment, cause: &str) -> Error {
    match Call::new(environment, folder, &["rev-parse", "--git-dir"]).run() {
        Ok(answer) if answer.is_success() => Error::Unsupported { path, what: format!("cannot be opened: {cause}") },
        Ok(answer) => match answer.error_line() {
            newer if newer.contains("repo version") || newer.contains("unknown repository") => {
                Error::Unsupported { path, what: format!("is of a newer format: {newer}") }
            }
            error_line => Error::Unreadable { path, cause: error_line },
        },
        Err(_) => Error::Unreadable { path, cause: cause.to_owned() },
    }
}

/// Another user's repository may have settings that run programs. Only git knows what `safe.directory` says in its many
/// configuration files.
fn check_trust(start: &Path, path: &Path, environment: &Environment) -> Result<(), Error> {
    match Call::new(environment, start, &["rev-parse", "--git-dir"]).run() {
        Ok(answer) if answer.is_success() => Ok(()),
        _ => Err(Error::UnsafeOwnership { path: path.to_owned() }),
    }
}

fn open_trusted(found: &gix::Repository) -> Result<gix::Repository, Error> {
    let path = found.workdir().unwrap_or(found.git_dir());
    let opened = options().with(gix::sec::Trust::Full).open(path);
    let opened = opened.map_err(|cause| Error::Unreadable { path: path.to_owned(), cause: cause.to_string() })?;
    Ok(opened.to_thread_local())
}

/// Like git, refuses a repository with an unknown extension.
pub(super) fn check_format(git_dir: &Path, config: &gix::config::Snapshot<'_>) -> Result<(), Error> {
    let version = config.integer("core.repositoryFormatVersion").unwrap_or(0);
    if version > 1 {
        return Err(unsupported(git_dir, format!("has the format version {version}, which is newer than we know")));
    }
    let sections = config.plumbing().sections_by_name("extensions").into_iter().flatten();
    let mut names = sections.flat_map(|section| section.value_names().collect::<Vec<_>>());
    match names.find(|name| !KNOWN_EXTENSIONS.contains(&name.to_ascii_lowercase().as_str())) {
        Some(name) if version > 0 => {
            Err(unsupported(git_dir, format!("uses the extension {name:?}, which we do not know")))
        }
        _ => Ok(()),
    }
}

pub(super) fn unsupported(git_dir: &Path, what: String) -> Error {
    Error::Unsupported { path: git_dir.to_owned(), what }
}

/// Resolves `..` where possible: a linked work tree names its common folder as `…/worktrees/x/../..`.
pub(super) fn tidy(path: &Path) -> PathBuf {
    if path.components().any(|component| component == std::path::Component::ParentDir) {
        return crate::env::real(path);
    }
    path.to_owned()
}
