//! The files that a change starts from: those on the branch, or those in the work tree.

use std::fs;

use super::{WriteMode, branch_tip};
use crate::error::Failure;
use crate::git::{PlainFiles, is_executable};
use crate::ops::Workspace;

/// Larger files are not read, and stay as they are.
const MAX_SIZE: u64 = 64 << 20;

/// Paths are from the repository's root, with `/`.
pub(in crate::ops) struct Tree<'w> {
    workspace: &'w Workspace,
    /// `None`: the work tree.
    pub(in crate::ops) commit: Option<String>,
}

/// What is at a path.
pub(in crate::ops) enum Found {
    Nothing,
    File {
        bytes: Vec<u8>,
        executable: bool,
    },
    /// A folder, a link, or a very large file.
    Other,
}

impl<'w> Tree<'w> {
    /// Fails if the branch is to be read and has no commit.
    pub(in crate::ops) fn of(workspace: &'w Workspace, mode: WriteMode) -> Result<Self, Failure> {
        let tip = || branch_tip(&workspace.repository, true).map(|(_, commit)| commit);
        Ok(Self { workspace, commit: mode.uses_branch().then(tip).transpose()? })
    }

    pub(in crate::ops) fn find(&self, path: &str) -> Result<Found, Failure> {
        if self.commit.is_some() {
            let mut found = self.below(path)?;
            return Ok(match found.pop() {
                None => Found::Nothing,
                Some((file, found)) if file == path => found,
                Some(_) => Found::Other,
            });
        }
        let place = self.workspace.work_dir.join(path);
        match fs::symlink_metadata(&place) {
            Err(_) => Ok(Found::Nothing),
            Ok(facts) if facts.is_file() && facts.len() <= MAX_SIZE => match fs::read(&place) {
                Ok(bytes) => Ok(Found::File { bytes, executable: is_executable(&place) }),
                Err(error) => Err(Failure::failed(format!("cannot be read: {error}")).at(path)),
            },
            Ok(_) => Ok(Found::Other),
        }
    }

    /// The file's content; `None` if there is no regular file.
    pub(in crate::ops) fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(match self.find(path)? {
            Found::File { bytes, .. } => Some(bytes),
            _ => None,
        })
    }

    /// All files in a folder with their paths, or the file at the path itself.
    pub(in crate::ops) fn below(&self, place: &str) -> Result<Vec<(String, Found)>, Failure> {
        if let Some(commit) = &self.commit {
            let PlainFiles { plain, executables, other } = self.workspace.repository.plain_files_at(commit, place)?;
            let file = |(path, bytes): (String, Vec<u8>)| {
                let executable = executables.contains(&path);
                (path, Found::File { bytes, executable })
            };
            let other = other.into_iter().map(|path| (path, Found::Other));
            return Ok(plain.into_iter().map(file).chain(other).collect());
        }
        let (mut paths, mut open) = (Vec::new(), vec![place.to_owned()]);
        while let Some(path) = open.pop() {
            let folder = self.workspace.work_dir.join(&path);
            // A link may lead out, or in a circle.
            let is_link = folder.is_symlink();
            match fs::read_dir(folder).ok().filter(|_| !is_link) {
                Some(entries) => {
                    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                    open.extend(names.map(|name| format!("{path}/{name}")));
                }
                None => paths.push(path),
            }
        }
        paths.sort();
        paths.into_iter().map(|path| self.find(&path).map(|found| (path, found))).collect()
    }
}
