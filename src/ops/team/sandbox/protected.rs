//! What lies in a project that its agents may not write, or not read. Level `full` only: a mount on a path holds it, and
//! Landlock cannot take anything out of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::env::{follow, real};
use crate::git::{Error, Submodule};
use crate::model::IntoSet;
use crate::ops::Project;
use crate::program::git_folders;
use crate::sandbox::{Lack, Placeholder};

/// Where git finds settings, which name programs that git also runs outside of the sandbox; and what stands where an
/// agent could otherwise make such a place. `root` is what agents may write.
pub(super) fn settings_of_git(project: &Project, root: &Path) -> Result<(Vec<PathBuf>, Vec<Placeholder>), Lack> {
    let failed = |error: Error| Lack::Broken(error.to_string());
    let placeholder = |path: &Path| Placeholder::at(path).map_err(|error| Lack::of(path, &error));
    let mut protected = git_folders(root);
    let mut named = vec![root.join(".git")];
    // git looks there first, where a team's folder lies in a repository.
    let mut placeholders: Vec<Placeholder> = placeholder(&root.join(".git"))?.into_iter().collect();
    for Submodule { root: folder, git_dir } in project.repository.submodules().map_err(failed)? {
        let is_inside = follow(&folder, |_| {}).is_some_and(|end| end.starts_with(root));
        if is_inside && !folder.exists() {
            placeholders.extend(placeholder(&folder)?);
        }
        // One that is not checked out has no `.git`, and an agent could make it.
        named.push(if git_dir.is_some() { folder.join(".git") } else { folder });
        protected.extend(git_dir);
    }
    named.extend(project.repository.settings_files().map_err(failed)?);
    for path in named {
        protected.extend(held(&path, root, &protected)?);
    }
    Ok((protected, placeholders))
}

/// What a path leads to, if that lies in `root` and not in what is protected already.
fn held(path: &Path, root: &Path, protected: &[PathBuf]) -> Result<Option<PathBuf>, Lack> {
    let is_inner = |place: &Path| protected.iter().any(|folder| place.starts_with(folder));
    let mut links = Vec::new();
    let end = follow(path, |place| {
        let is_exposed = place.starts_with(root) && place.parent().is_some_and(|parent| !is_inner(parent));
        links.extend((is_exposed && place.is_symlink()).then(|| place.to_owned()));
    });
    let refused = |place: &Path, why: &str| Err(Lack::Broken(format!("{} {why}", place.display())));
    let Some(end) = end else { return refused(path, "is a link in a circle") };
    match links.first() {
        Some(link) => refused(link, "is a symbolic link, in whose place an agent could put settings of git"),
        None if !end.starts_with(root) || is_inner(&end) => Ok(None),
        None if end.exists() => Ok(Some(end)),
        None => refused(&end, "does not exist, and git takes settings from there, so an agent could make it"),
    }
}

/// Folders of dependencies and build results, which are large, and git's.
const SKIPPED: [&str; 4] = ["node_modules", "target", "__pycache__", ".git"];
/// How deep folders outside of the work tree are looked through, which links lead to.
const BEHIND_LINKS: usize = 3;

/// A folder to look through.
struct Folder {
    path: PathBuf,
    /// Levels below it that are looked through, too; `None`: all.
    depth: Option<usize>,
    /// The work tree's own git does not know its files.
    is_foreign: bool,
}

/// The `.env` files of the work tree that git ignores: they hold what only this machine is to know. Those behind links,
/// and in repositories inside, count as ignored.
pub(crate) fn ignored_environment_files(project: &Project) -> Result<Vec<PathBuf>, String> {
    let tree = real(&project.work_dir);
    let (mut own, mut hidden) = (Vec::new(), Vec::new());
    let mut open = vec![Folder { path: tree.clone(), depth: None, is_foreign: false }];
    while let Some(Folder { path, depth, is_foreign }) = open.pop() {
        let is_foreign = is_foreign || path != tree && path.join(".git").exists();
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let Ok(kind) = entry.file_type() else { continue };
            if is_environment_file(&name.to_string_lossy()) && path.is_file() {
                let file = real(&path);
                let inner = file.strip_prefix(&tree).ok().filter(|_| !is_foreign);
                match inner.map(|inner| inner.to_string_lossy().replace('\\', "/")) {
                    Some(inner) => own.push(inner),
                    None => hidden.push(file),
                }
                continue;
            }
            let below = depth.map(|depth| depth - 1);
            if below == Some(0) || SKIPPED.iter().any(|skipped| name == *skipped) {
                continue;
            }
            if kind.is_dir() {
                open.push(Folder { path, depth: below, is_foreign });
            } else if kind.is_symlink() && depth.is_none() && path.is_dir() {
                let path = real(&path);
                if !path.starts_with(&tree) && !tree.starts_with(&path) {
                    open.push(Folder { path, depth: Some(BEHIND_LINKS), is_foreign: true });
                }
            }
        }
    }
    if !own.is_empty() {
        let ignored = project.repository.ignored(&own).map_err(|error| error.to_string())?;
        hidden.extend(ignored.iter().map(|file| tree.join(file)));
    }
    Ok(hidden.into_set().into_iter().collect())
}

/// `.env`, `.env.local`, `.envrc`, but no sample.
fn is_environment_file(name: &str) -> bool {
    let is_sample = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
    name.starts_with(".env") && !is_sample
}
