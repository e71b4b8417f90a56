//! Which files of the work tree git tracks, would add, or ignores.

use std::env;

use gix::index::entry::Mode;

use super::{error::Error, repository::Repository, rescue::read_index};

#[derive(Debug, Default)]
pub(crate) struct StagedMoves {
    pub(crate) added: Vec<String>,
    pub(crate) deleted: Vec<String>,
}

impl Repository {
    /// The files of the work tree that git tracks or would add, as `/` paths from its root.
    pub(crate) fn listed_files(&self) -> Result<Vec<String>, Error> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = self.call(&list).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| String::from_utf8(name.to_owned()).ok()).collect())
    }

    /// Where submodules lie, as `/` paths from the work tree's root.
    pub(crate) fn submodules(&self) -> Result<Vec<String>, Error> {
        let index = read_index(&self.git_dir().join("index"), self)?;
        let links = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        Ok(links.map(|entry| entry.path(&index).to_string()).collect())
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
