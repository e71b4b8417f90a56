//! The files from which git takes settings. Whoever writes one of them has git run programs.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use gix::config;

use super::{error::Error, repository::Repository};

/// Sections that name further files, as `path`.
const INCLUDES: [&str; 2] = ["include", "includeIf"];

impl Repository {
    /// The user's files, those of this repository and its submodules, and all that they include, under whatever
    /// condition, whether that exists or not.
    pub(crate) fn settings_files(&self) -> Result<Vec<PathBuf>, Error> {
        let variable = |name: &str| self.environment().variable(name).map(PathBuf::from);
        let home = variable("HOME");
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let moved = variable("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
        let mut files: Vec<PathBuf> =
            ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"].iter().filter_map(|name| variable(name)).collect();
        files.extend(below_home(".gitconfig"));
        files.extend(moved.map(|folder| folder.join("git/config")));
        let submodules = self.submodules()?.into_iter().filter_map(|submodule| submodule.git_dir);
        let git_dirs = [self.common_dir(), self.git_dir()].map(Path::to_owned).into_iter().chain(submodules);
        files.extend(git_dirs.flat_map(|git_dir| ["config", "config.worktree"].map(|name| git_dir.join(name))));
        files.retain(|file| file.exists());
        let mut read = 0;
        while let Some(file) = files.get(read).cloned() {
            read += 1;
            for included in included(&file)? {
                let path = match included.strip_prefix("~/").ok().zip(home.as_ref()) {
                    Some((rest, home)) => home.join(rest),
                    None => file.parent().unwrap_or(&file).join(included),
                };
                if !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        Ok(files)
    }
}

/// What a file includes, as it says it.
fn included(file: &Path) -> Result<Vec<PathBuf>, Error> {
    let text = match fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(source) => return Err(Error::Io { action: "read", path: file.to_owned(), source }),
    };
    let parsed = config::File::try_from(&*text);
    let parsed = parsed.map_err(|error| Error::Unreadable { path: file.to_owned(), cause: error.to_string() })?;
    let sections = INCLUDES.iter().filter_map(|name| parsed.sections_by_name(name)).flatten();
    let values = sections.flat_map(|section| section.values("path"));
    Ok(values.map(|value| PathBuf::from(value.to_string())).collect())
}
