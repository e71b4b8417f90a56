//! Which files of the work tree git tracks, would add, or ignores.

use std::collections::BTreeSet;
use std::{env, path::PathBuf};

use gix::index::entry::Mode;

use super::{error::Error, repository::Repository, rescue::read_index};
use crate::model::IntoSet;
use crate::program::git_dir_at;

/// Where a submodule lies.
#[derive(Debug)]
pub(crate) struct Submodule {
    pub(crate) root: PathBuf,
    /// `None`: it is not checked out.
    pub(crate) git_dir: Option<PathBuf>,
}

#[derive(Debug, Default)]
pub(crate) struct StagedMoves {
    pub(crate) added: Vec<String>,
    pub(crate) deleted: Vec<String>,
}

impl Repository {
    /// The files of the work tree that git tracks or would add, as `/` paths from its root.
    pub(crate) fn listed_files(&self) -> Result<Vec<String>, Error> {
        let listed = |kinds: &[&str]| -> Result<BTreeSet<String>, Error> {
            let output = self.call(&[&["ls-files", "-z"], kinds].concat()).succeed()?.stdout;
            let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            Ok(names.filter_map(|name| String::from_utf8(name.to_owned()).ok()).into_set())
        };
        // Git lists a tracked file that is no longer there.
        let deleted = listed(&["--deleted"])?;
        let there = listed(&["--cached", "--others", "--exclude-standard"])?;
        Ok(there.into_iter().filter(|path| !deleted.contains(path)).collect())
    }

    /// The submodules, and those in them.
    pub(crate) fn submodules(&self) -> Result<Vec<Submodule>, Error> {
        let root = self.work_dir().unwrap_or(self.git_dir());
        let mut found: Vec<Submodule> = Vec::new();
        let mut unread = vec![(root.to_owned(), self.git_dir().to_owned())];
        while let Some((root, git_dir)) = unread.pop() {
            let index = read_index(&git_dir.join("index"), self)?;
            for link in index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT) {
                let root = root.join(link.path(&index).to_string());
                let git_dir = git_dir_at(&root);
                // One may name the git directory of another as its own.
                let is_new = |git_dir: &&PathBuf| found.iter().all(|known| known.git_dir.as_ref() != Some(git_dir));
                unread.extend(git_dir.as_ref().filter(is_new).map(|git_dir| (root.clone(), git_dir.clone())));
                found.push(Submodule { root, git_dir });
            }
        }
        Ok(found)
    }

    /// The files below some folders that the next commit would add or delete. Empty before the first commit, and while a
    /// rebase or the like is going on, whose business the index is.
    pub(crate) fn staged_moves(&self, folders: &[&str]) -> Result<StagedMoves, Error> {
        let mut moves = StagedMoves::default();
        if self.head()?.commit.is_none() || self.operation().is_some() {
            return Ok(moves);
        }
        let diff = ["diff-index", "--cached", "--no-renames", "--diff-filter=AD", "--name-status", "-z", "HEAD", "--"];
        let listed = self.call(&["--literal-pathspecs"]).arguments(&diff).arguments(folders).succeed()?.stdout;
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            let path = String::from_utf8_lossy(path).into_owned();
            if status == b"D" { moves.deleted.push(path) } else { moves.added.push(path) }
        }
        Ok(moves)
    }

    /// Those of some files, by their `/` paths from the work tree's root, that git ignores.
    pub(crate) fn ignored(&self, files: &[String]) -> Result<Vec<String>, Error> {
        let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"];
        let listed = self.call(&list).arguments(files).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// The files of the work tree that git ignores and that patterns match, which are like those of a `.gitignore` there, as
    /// `/` paths from its root; and how many matching files were not looked at, beyond the first `most`.
    pub(crate) fn ignored_matching(&self, patterns: &[String], most: usize) -> Result<(Vec<String>, usize), Error> {
        /// A command line has room for their names.
        const AT_ONCE: usize = 200;
        let excludes: Vec<String> = patterns.iter().map(|pattern| format!("--exclude={pattern}")).collect();
        let listed = self.call(&["ls-files", "-z", "--others", "--ignored"]).arguments(&excludes).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty() && !name.ends_with(b"/"));
        let mut names: Vec<String> = names.filter_map(|name| String::from_utf8(name.to_owned()).ok()).collect();
        let more = names.len().saturating_sub(most);
        names.truncate(most);
        let ignored = names.chunks(AT_ONCE).map(|names| self.ignored(names)).collect::<Result<Vec<_>, _>>()?;
        Ok((ignored.concat(), more))
    }

    /// The tracked files below folders, as `/` paths from the work tree's root.
    pub(crate) fn tracked_files(&self, folders: &[&str]) -> Result<Vec<String>, Error> {
        let listed = self.call(&["ls-files", "-z", "--"]).arguments(folders).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Whether git ignores a file or folder of the work tree.
    pub(crate) fn is_ignored(&self, path: &str) -> bool {
        // Not `check-ignore`: that does not accept literal paths.
        let list = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "--", path];
        self.call(&list).run().is_ok_and(|answer| answer.is_success() && !answer.stdout.is_empty())
    }

    /// Whether git would ignore a file that does not exist yet.
    pub(crate) fn would_ignore(&self, path: &str) -> Result<bool, Error> {
        // With a temporary index, since `git add` locks the index.
        let folder = tempfile::tempdir().map_err(Error::io("write to", env::temp_dir()))?;
        let call = self.call(&["add", "--dry-run", "--ignore-missing", "--", path]);
        let answer = call.variable("GIT_INDEX_FILE", &folder.path().join("index").to_string_lossy()).run()?;
        Ok(!answer.is_success() && answer.error_lines().iter().any(|line| line == path))
    }
}
