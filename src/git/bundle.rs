//! A team in one file: a git bundle, which `git clone` accepts too.
//!
//! ```text
//! refs/heads/team, HEAD   a commit without a parent, with the team's folder as `.squad`; the same for the same team
//! refs/squad/log          the ledger, optional
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::commit::Identity;
use super::contents::contents;
use super::error::Error;
use super::landing::NewFile;
use super::ledger::REFERENCE;
use super::ledger_tree::TreeReader;
use super::path::check_path;
use super::program::Call;
use super::repository::Repository;
use super::sync::Records;
use super::union::{MergeFile, count_missing};

const TEAM: &str = "refs/heads/team";

/// The team's folder in the bundled commit, whatever its name in the source repository.
pub(crate) const FOLDER: &str = ".squad";

/// The refs of a bundle that was read but not taken over yet. Not a remote: nobody shares it.
const IMPORTS: &str = "refs/squad/imports/";

/// The contents of a bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// The files below [`FOLDER`], with paths relative to it.
    pub(crate) files: Vec<NewFile>,
    /// The paths of links and submodules, which are left out.
    pub(crate) left_out: Vec<String>,
    /// The number of entries that our ledger lacks; `None`: the bundle has no ledger.
    pub(crate) entries: Option<usize>,
}

impl Repository {
    /// Writes the team's folder at a commit to a file, optionally with the ledger.
    pub(crate) fn write_bundle(
        &self,
        commit: &str,
        folder: &str,
        with_ledger: bool,
        writer: &Identity,
        file: &Path,
    ) -> Result<(), Error> {
        let (store, commit) = (self.objects(), self.parse_commit(commit)?);
        let found = store.find(store.tree_of(&commit)?, folder)?.filter(|(mode, _)| mode.is_tree());
        let Some((_, tree)) = found else { return Err(Error::damaged(Path::new(folder), "it is not in the commit")) };
        // Use a temporary repository, so that this one stays unchanged.
        let place = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let git = |arguments: &[&str]| Call::new(self.environment(), place.path(), arguments);
        git(&["init", "--quiet", "--bare", &format!("--object-format={}", self.hash())]).succeed()?;
        let alternates = place.path().join("objects").join("info").join("alternates");
        let objects = [self.objects_directory().as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(&alternates, objects).map_err(Error::io("write to", &alternates))?;
        let root = git(&["mktree"]).input(format!("040000 tree {tree}\t{FOLDER}\n")).succeed()?.text();
        let (name, email) = (format!("user.name={}", writer.name), format!("user.email={}", writer.email));
        let made = ["-c", &name, "-c", &email, "commit-tree", "-m", "squad: a team", root.trim()];
        let at = format!("{} +0000", store.time_of(&commit)?);
        let team = git(&made).variable("GIT_AUTHOR_DATE", &at).variable("GIT_COMMITTER_DATE", &at).succeed()?.text();
        git(&["update-ref", TEAM, team.trim()]).succeed()?;
        git(&["symbolic-ref", "HEAD", TEAM]).succeed()?;
        let mut bundled = vec!["HEAD", TEAM];
        if let Some(tip) = self.references().read(REFERENCE)?.filter(|_| with_ledger) {
            git(&["update-ref", REFERENCE, &tip.to_string()]).succeed()?;
            bundled.push(REFERENCE);
        }
        let written = git(&["bundle", "create", "--quiet"]).arguments(&[file]).arguments(&bundled);
        written.succeed().map(drop)
    }

    /// The files below a folder that differ from the checked-out commit, without ignored ones.
    pub(crate) fn changed_below(&self, folder: &str) -> Result<Vec<String>, Error> {
        let status =
            ["--no-optional-locks", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--"];
        let changed = self.call(&status).arguments(&[folder]).succeed()?.stdout;
        // Two letters and a space before each path.
        let paths = changed.split(|byte| *byte == 0).filter_map(|line| line.get(3..));
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Reads a bundle without taking it over. `largest`: the size limit of one file in bytes.
    pub(crate) fn read_bundle(&self, file: &Path, largest: u64) -> Result<Bundle, Error> {
        self.forget_imports()?;
        let quiet =
            ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance"];
        // The ledger is a pattern, since it is optional.
        let refspecs = [format!("+{TEAM}:{IMPORTS}team"), format!("+{REFERENCE}*:{IMPORTS}log*")];
        let fetch = self.call(&["-c", "fetch.unpackLimit=1", "-c", "fetch.fsckObjects=true", "fetch"]);
        fetch.arguments(&quiet).arguments(&["--"]).arguments(&[file]).arguments(&refspecs).succeed()?;
        let (store, references) = (self.objects(), self.references());
        let team = references.read(&format!("{IMPORTS}team"))?;
        let Some(team) = team else { return Err(Error::damaged(file, "it holds no team")) };
        let root = store.tree_of(&team)?;
        let inner = |path: &str| path.strip_prefix(FOLDER).unwrap_or(path).trim_start_matches('/').to_owned();
        let files = contents(&store, store.files_below(root, FOLDER)?, |_| Some(largest))?;
        files.iter().try_for_each(|(path, _)| check_path(path))?;
        let all = store.entries_below(root, FOLDER)?;
        let executables: BTreeSet<&str> =
            all.iter().filter(|(_, mode, _)| mode.is_executable()).map(|(path, ..)| path.as_str()).collect();
        let left_out = all.iter().filter(|(_, mode, _)| !mode.is_blob()).map(|(path, ..)| inner(path)).collect();
        let entries = match references.read(&format!("{IMPORTS}log"))? {
            None => None,
            Some(theirs) => {
                let ours = references.read(REFERENCE)?.map(|tip| store.tree_of(&tip)).transpose()?;
                let (limited, ours) = (self.ledger_objects(), ours.into_iter().collect::<Vec<_>>());
                let theirs = limited.tree_of(&theirs)?;
                Some(count_missing(&TreeReader::new(&limited, self.damage()), theirs, &ours)?)
            }
        };
        let file = |(path, bytes): (String, Vec<u8>)| NewFile {
            path: inner(&path),
            bytes,
            executable: executables.contains(&*path),
        };
        Ok(Bundle { files: files.into_iter().map(file).collect(), left_out, entries })
    }

    /// Merges the ledger of the last bundle read into this clone's, durably.
    pub(crate) fn take_bundled_ledger(
        &self,
        scrubbed: &Records<'_>,
        merge_file: &MergeFile<'_>,
        identity: &Identity,
    ) -> Result<(), Error> {
        match self.references().read(&format!("{IMPORTS}log"))? {
            Some(theirs) => self.remote(IMPORTS).merge_ledger(theirs, scrubbed, merge_file, identity),
            None => Ok(()),
        }
    }

    /// Deletes the refs of a bundle that was read.
    pub(crate) fn forget_imports(&self) -> Result<(), Error> {
        let references = self.references();
        for name in references.list(IMPORTS)? {
            self.call(&["update-ref", "-d", &name]).succeed()?;
        }
        Ok(())
    }
}
