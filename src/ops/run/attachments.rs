//! Files that the user attaches to a message: checked before anything starts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::env::files::read_within;
use crate::env::{Env, real};
use crate::error::Failure;
use crate::model::{Attachment, IntoSet, hidden, list, printable};
use crate::ops::Project;
use crate::ops::team::secrets;
use crate::policy::{PathScope, Redactor};

/// The size limit of one file: models take no larger images, and agents can read larger files in parts from the project.
const LARGEST: u64 = 10 * 1024 * 1024;
const MOST: usize = 20;

/// Checks files named on the command line; relative paths count from `directory`.
pub(crate) fn check(
    env: &Env,
    project: &Project,
    directory: &Path,
    paths: &[String],
) -> Result<Vec<Attachment>, Failure> {
    if paths.len() > MOST {
        return Err(Failure::usage(format!("{} files are attached; the limit is {MOST}", paths.len()))
            .hint("commit them to the repository and name their folder in the message"));
    }
    let mut found: Vec<Attachment> = Vec::new();
    if paths.is_empty() {
        return Ok(found);
    }
    let redactor = secrets::redactor(env, &project.folder.root);
    for path in paths {
        let attachment = check_file(project, &redactor, &directory.join(path))
            .map_err(|reason| Failure::usage(format!("cannot attach {}: {reason}", printable(path))))?;
        if found.iter().all(|other| other.path != attachment.path) {
            found.push(attachment);
        }
    }
    Ok(found)
}

/// Checks the files of a resumed run again. Returns their current state, and those that have changed since.
///
/// The ledger names them, and its entries also come from other clones. So a file outside the project must still have the
/// recorded content: whoever made up the entry cannot know the content of a file of this machine.
pub(crate) fn check_again(
    env: &Env,
    project: &Project,
    before: &[Attachment],
) -> Result<(Vec<Attachment>, Vec<String>), Failure> {
    let paths: Vec<String> = before.iter().map(|attachment| attachment.path.clone()).collect();
    let now = check(env, project, &project.folder.root, &paths)
        .map_err(|failure| failure.hint("the run started with this file: put it back, or start the task again"))?;
    let changed = now.iter().filter(|attachment| !before.contains(attachment));
    let changed: Vec<String> = changed.map(|attachment| attachment.path.clone()).collect();
    if let Some(path) = changed.iter().find(|path| Path::new(path).is_absolute()) {
        let reason = "it lies outside the project and is not the file that the run started with";
        return Err(Failure::usage(format!("cannot attach {}: {reason}", printable(path))).hint("start the task again"));
    }
    Ok((now, changed))
}

/// The absolute paths of attached files, to compare with requests to read them.
pub(super) fn absolute(project: &Project, attachments: &[Attachment]) -> BTreeSet<String> {
    let place = |attachment: &Attachment| dunce::canonicalize(project.folder.root.join(&attachment.path)).ok();
    attachments.iter().filter_map(place).map(|path| path.display().to_string()).into_set()
}

fn check_file(project: &Project, redactor: &Redactor, path: &Path) -> Result<Attachment, String> {
    let place = dunce::canonicalize(path).map_err(|error| error.to_string())?;
    // Opening a pipe would wait for its writer.
    let about = place.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a file; name folders in the message instead".to_owned());
    }
    let Ok(bytes) = read_within(&place, LARGEST).map_err(|error| error.to_string())? else {
        return Err(format!("it is larger than {} MiB", LARGEST >> 20));
    };
    let kinds = redactor.kinds(&String::from_utf8_lossy(&bytes));
    if !kinds.is_empty() {
        return Err(format!("it holds what looks like a secret: {}", list(kinds)));
    }
    Ok(Attachment { path: named(project, place)?, hash: blake3::hash(&bytes).to_string(), bytes: bytes.len() as u64 })
}

/// The path for prompts, relative to the project's root if it is inside. It must fit on one line.
fn named(project: &Project, place: PathBuf) -> Result<String, String> {
    let name = match PathScope::of(&place, &real(&project.folder.root)) {
        PathScope::Project(inner) => inner,
        _ => place.to_str().ok_or("its path is not UTF-8")?.to_owned(),
    };
    if name.chars().any(char::is_control) || hidden(&name).next().is_some() {
        return Err("its path has invisible characters".to_owned());
    }
    Ok(name)
}
