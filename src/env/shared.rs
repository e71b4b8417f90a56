//! Small files that several processes read and change: JSON, replaced in one step while a lock is held.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{files, lock};
use crate::model::{from_json, to_json};

/// How long the lock may be held by others: they hold it only while they read and write.
const LOCKED: Duration = Duration::from_secs(5);
/// Bytes of a file.
const MOST: u64 = 4 << 20;
/// Of the form in which squad writes them.
const VERSION: u32 = 1;

/// The file of a value.
pub(crate) struct SharedFile<T> {
    path: PathBuf,
    content: PhantomData<fn() -> T>,
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    content: T,
}

impl<T: Serialize + DeserializeOwned + Clone + PartialEq> SharedFile<T> {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, content: PhantomData }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `None`: there is no file. The error names it.
    pub(crate) fn read(&self) -> Result<Option<T>, String> {
        use io::ErrorKind::{NotADirectory, NotFound};

        if self.path.symlink_metadata().is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory)) {
            return Ok(None);
        }
        let bytes = files::read_regular(&self.path, MOST).ok_or_else(|| self.says("cannot be read"))?;
        let Versioned { version, content } = from_json::<Versioned<T>>(bytes)
            .map_err(|error| self.says(&format!("is not as squad writes it: {error}")))?;
        match version {
            VERSION => Ok(Some(content)),
            other => Err(self.says(&format!("is of version {other}, which this squad does not know"))),
        }
    }

    /// Changes what is there, while nobody else does. `None` stands for no file, before and after.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Option<T>) -> R) -> Result<R, String> {
        let error = |error: io::Error| self.says(&format!("cannot be written: {error}"));
        let guard = lock::open(&self.path.with_extension("lock")).map_err(error)?;
        if !lock::take_within(&guard, LOCKED, || false, &|_| {}).map_err(error)? {
            return Err(self.says("is locked by another process"));
        }
        let mut content = self.read()?;
        let before = content.clone();
        let changed = change(&mut content);
        if content != before
            && let Some(content) = content
        {
            let text = to_json(&Versioned { version: VERSION, content });
            files::replace(&self.path, text.map_err(|problem| error(problem.into()))?.as_bytes()).map_err(error)?;
        }
        Ok(changed)
    }

    fn says(&self, what: &str) -> String {
        format!("{} {what}", self.path.display())
    }
}
