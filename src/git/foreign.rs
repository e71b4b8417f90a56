//! Files of somebody else's repository, fetched to a temporary place: nothing is checked out, no hook, filter or
//! submodule of it runs, and what is not needed is not fetched where the server can leave it out.

use std::{path::Path, time::Duration};

use gix::objs::tree::EntryKind;

use super::{
    error::Error,
    program::{Call, Environment},
    repository::Repository,
    walk::PassedOver,
};

/// How long a fetch may take.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The ways git may take: no helper that is a command.
const PROTOCOLS: &str = "file:git:http:https:ssh";

/// The newest commit of a repository's own branch.
pub(crate) struct ForeignRepository {
    repository: Repository,
    commit: String,
    // Last: it goes with everything in it.
    _folder: tempfile::TempDir,
}

/// A file, and whether it is a plain one.
pub(crate) struct ForeignFile {
    pub(crate) path: String,
    pub(crate) is_plain: bool,
    /// 0 if it is not there.
    pub(crate) size: u64,
    id: gix::ObjectId,
}

impl ForeignRepository {
    pub(crate) fn fetch(url: &str, environment: &Environment) -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let place = folder.path().join("preset.git");
        let clone = [
            "clone",
            "--quiet",
            "--bare",
            "--depth=1",
            "--single-branch",
            "--no-tags",
            "--no-recurse-submodules",
            "--template=",
            "--filter=blob:limit=1m",
            "--",
            url,
        ];
        Call::new(environment, folder.path(), &clone)
            .arguments(&[place.as_os_str()])
            .variable("GIT_ALLOW_PROTOCOL", PROTOCOLS)
            .timeout(TIMEOUT)
            .succeed()?;
        let repository = Repository::discover(&place, environment)?;
        let commit = repository.head()?.commit.ok_or_else(|| Error::damaged(Path::new(url), "it has no commit"))?;
        Ok(Self { repository, commit, _folder: folder })
    }

    pub(crate) fn commit(&self) -> &str {
        &self.commit
    }

    /// The id of what it has at a path.
    pub(crate) fn id_at(&self, path: &str) -> Result<Option<String>, Error> {
        self.repository.id_at(&self.commit, path)
    }

    pub(crate) fn has(&self, path: &str) -> Result<bool, Error> {
        self.repository.has_at(&self.commit, path)
    }

    /// All files below a folder, by their whole paths, and what is too large to be walked.
    pub(crate) fn files(&self, folder: &str) -> Result<(Vec<ForeignFile>, Vec<PassedOver>), Error> {
        let store = self.repository.limited_objects();
        let root = store.tree_of(&self.repository.parse_commit(&self.commit)?)?;
        let mut passed_over = Vec::new();
        let entries = store.readable_below(root, folder, &mut passed_over)?;
        let file = |(path, mode, id): (String, gix::objs::tree::EntryMode, gix::ObjectId)| {
            // What was too large to be fetched is not there.
            let size = store.size(&id);
            let is_blob = matches!(mode.kind(), EntryKind::Blob | EntryKind::BlobExecutable);
            ForeignFile { path, is_plain: is_blob && size.is_some(), size: size.unwrap_or(0), id }
        };
        Ok((entries.into_iter().map(file).collect(), passed_over))
    }

    /// The contents of plain files, in their order, up to so many bytes together.
    pub(crate) fn contents(&self, files: &[ForeignFile], most: u64) -> Result<Vec<Vec<u8>>, Error> {
        let store = self.repository.limited_objects();
        let mut bytes = 0;
        let fit = files.iter().take_while(|file| {
            bytes += file.size;
            bytes <= most
        });
        fit.map(|file| store.blob(&file.id)).collect()
    }

    pub(crate) fn read(&self, path: &str, largest: u64) -> Result<Option<Vec<u8>>, Error> {
        self.repository.file_at(&self.commit, path, largest)
    }
}
