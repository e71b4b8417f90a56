//! Removing squad from a repository: its refs, its folders in the git directory, its entries in git's configuration.
//! Commits on branches stay; git gc removes unreferenced objects.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{error::Error, repository::Repository};

const REFERENCES: &str = "refs/squad/";

/// Everything squad has stored in a repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredState {
    pub(crate) references: Vec<String>,
    /// Keys and values in the repository's git configuration.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) folders: Vec<PathBuf>,
}

impl Repository {
    pub(crate) fn stored_state(&self) -> Result<StoredState, Error> {
        let work_trees = self.common_dir().join("worktrees");
        let work_trees = fs::read_dir(work_trees).into_iter().flatten().flatten().map(|entry| entry.path());
        let homes = [self.common_dir().to_owned(), self.git_dir().to_owned()].into_iter().chain(work_trees);
        let mut folders: Vec<PathBuf> = homes.map(|home| home.join("squad")).filter(|folder| folder.is_dir()).collect();
        folders.sort();
        folders.dedup();
        Ok(StoredState { references: self.references().list(REFERENCES)?, settings: self.own_settings()?, folders })
    }

    fn own_settings(&self) -> Result<Vec<(String, String)>, Error> {
        let listed = self.call(&["config", "--local", "-z", "--list"]).run()?.stdout;
        let entries = listed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let own = entries.filter_map(|entry| {
            let (key, value) = entry.split_once('\n')?;
            let is_refspec = key.starts_with("remote.") && key.ends_with(".fetch") && value.contains(":refs/squad/");
            let is_place = key.starts_with("remote.") && key.ends_with(".squadledger");
            (is_refspec || is_place || key == "squad.clone").then(|| (key.to_owned(), value.to_owned()))
        });
        Ok(own.collect())
    }

    /// Removes these. If interrupted, the next call continues. Refs go first, since removing them needs the rest.
    pub(crate) fn remove_stored_state(&self, stored_state: &StoredState) -> Result<(), Error> {
        self.delete_references(&stored_state.references)?;
        for (key, value) in &stored_state.settings {
            self.call(&["config", "--local", "--fixed-value", "--unset-all", key, value]).succeed()?;
        }
        stored_state.folders.iter().try_for_each(|folder| remove(folder))
    }
}

fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", folder)(cause)),
        _ => Ok(()),
    }
}
