//! A team in one file: a git bundle, which `git clone` accepts too.
//!
//! ```text
//! refs/heads/team, HEAD   a commit without a parent, with the team's folder as `.squad`; the same for the same team
//! refs/squad/log          the ledger, optional
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gix::ObjectId;

use super::commit::Identity;
use super::contents::contents;
use super::error::Error;
use super::incoming::Incoming;
use super::landing::NewFile;
use super::ledger::PREFIX;
use super::ledger_tree::TreeReader;
use super::path::check_path;
use super::program::Call;
use super::references::REFERENCE;
use super::repository::Repository;
use super::sync::Records;
use super::union::{MergeFile, count_missing};
use crate::model::IntoSet;

const TEAM: &str = "refs/heads/team";

/// The team's folder in the bundled commit, whatever its name in the source repository.
pub(crate) const FOLDER: &str = ".squad";

/// Where earlier versions kept the refs of a bundle while they read it. A killed one left them.
const IMPORTS: &str = "refs/squad/imports/";

/// The contents of a bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// The files below [`FOLDER`], with paths relative to it.
    pub(crate) files: Vec<NewFile>,
    /// The paths of links and submodules, which are left out.
    pub(crate) left_out: Vec<String>,
    /// `None`: the bundle has no ledger.
    pub(crate) ledger: Option<BundledLedger>,
}

/// The ledger of a bundle, outside the repository.
#[derive(Debug)]
pub(crate) struct BundledLedger {
    /// The number of entries that our ledger lacks.
    pub(crate) entries: usize,
    tip: ObjectId,
    incoming: Incoming,
}

impl Repository {
    /// Writes the team's folder at a commit to a file, if there is one, optionally with the ledger.
    pub(crate) fn write_bundle(
        &self,
        commit: &str,
        folder: Option<&str>,
        with_ledger: bool,
        writer: &Identity,
        file: &Path,
    ) -> Result<(), Error> {
        let (store, commit) = (self.objects(), self.parse_commit(commit)?);
        let mut root = String::new();
        if let Some(folder) = folder {
            let found = store.find(store.tree_of(&commit)?, folder)?.filter(|(mode, _)| mode.is_tree());
            let missing = || Error::damaged(Path::new(folder), "it is not in the commit");
            root = format!("040000 tree {}\t{FOLDER}\n", found.ok_or_else(missing)?.1);
        }
        // Use a temporary repository, so that this one stays unchanged.
        let place = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let git = |arguments: &[&str]| Call::new(self.environment(), place.path(), arguments);
        git(&["init", "--quiet", "--bare", &format!("--object-format={}", self.hash())]).succeed()?;
        let alternates = place.path().join("objects").join("info").join("alternates");
        let objects = [self.objects_directory().as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(&alternates, objects).map_err(Error::io("write to", &alternates))?;
        let root = git(&["mktree"]).input(root).succeed()?.text();
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
        let status = ["--no-optional-locks", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"];
        let call = self.call(&status).arguments(&["--ignore-submodules=dirty", "--", folder]);
        let changed = call.succeed()?.stdout;
        // Two letters and a space before each path.
        let paths = changed.split(|byte| *byte == 0).filter_map(|line| line.get(3..));
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Reads a bundle without taking it over. `largest`: the size limit of one file in bytes.
    pub(crate) fn read_bundle(&self, file: &Path, largest: u64) -> Result<Bundle, Error> {
        // The ledger is a pattern, since it is optional.
        let refspecs = [format!("+{TEAM}:{TEAM}"), format!("+{REFERENCE}*:{REFERENCE}*")];
        let incoming = Incoming::fetch(self, &["-c", "fetch.fsckObjects=true"], file.as_os_str(), &refspecs)?;
        let (store, references) = (incoming.repository().limited_objects(), incoming.repository().references());
        let team = references.read(TEAM)?;
        let Some(team) = team else { return Err(Error::damaged(file, "it holds no team")) };
        let root = store.tree_of(&team)?;
        let inner = |path: &str| path.strip_prefix(FOLDER).unwrap_or(path).trim_start_matches('/').to_owned();
        // All of it or nothing: half a team is nobody's.
        let all = store.entries_below(root, FOLDER)?;
        let plain = all.iter().filter(|(_, mode, _)| mode.is_blob()).map(|(path, _, id)| (path.clone(), *id));
        let files = contents(&store, plain.collect(), |_| Some(largest))?;
        files.iter().try_for_each(|(path, _)| check_path(path))?;
        let executables: BTreeSet<&str> =
            all.iter().filter(|(_, mode, _)| mode.is_executable()).map(|(path, ..)| path.as_str()).into_set();
        let left_out = all.iter().filter(|(_, mode, _)| !mode.is_blob()).map(|(path, ..)| inner(path)).collect();
        let file = |(path, bytes): (String, Vec<u8>)| NewFile {
            path: inner(&path),
            bytes,
            executable: executables.contains(&*path),
        };
        let files = files.into_iter().map(file).collect();
        let ledger = references.read(REFERENCE)?.map(|tip| BundledLedger::new(self, incoming, tip)).transpose()?;
        Ok(Bundle { files, left_out, ledger })
    }

    /// Merges a bundle's ledger into this clone's, durably.
    pub(crate) fn take_bundled_ledger(
        &self,
        ledger: &BundledLedger,
        scrubbed: &Records<'_>,
        merge_file: &MergeFile<'_>,
        identity: &Identity,
    ) -> Result<(), Error> {
        let kept = ledger.incoming.take(self)?;
        self.remote("import").merge_ledger(ledger.tip, scrubbed, merge_file, identity)?;
        drop(kept);
        Ok(())
    }

    /// Deletes the refs that a killed import left. git fails on them once their objects are gone.
    pub(crate) fn forget_imports(&self) -> Result<(), Error> {
        self.delete_references(&self.references().list(IMPORTS)?)
    }

    /// Refs of ours that git fails on: they lead to no commit. The ledger's own is not among them.
    pub(crate) fn dangling_references(&self) -> Result<Vec<String>, Error> {
        let (references, store) = (self.references(), self.objects());
        let mut names = references.list(PREFIX)?;
        names.retain(|name| name != REFERENCE);
        let mut dangling = Vec::new();
        for name in names {
            let Some(commit) = references.read(&name)? else { continue };
            match store.tree_of(&commit).and_then(|tree| store.tree(&tree)) {
                Ok(_) => {}
                Err(Error::Object { .. }) => dangling.push(name),
                Err(error) => return Err(error),
            }
        }
        Ok(dangling)
    }

    pub(crate) fn delete_references(&self, names: &[String]) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        self.references().announce(&names.iter().map(|name| (name.clone(), None)).collect::<Vec<_>>());
        let input: String = names.iter().map(|name| format!("delete {name}\0\0")).collect();
        self.call(&["update-ref", "-z", "--stdin"]).input(input).succeed().map(drop)
    }
}

impl BundledLedger {
    fn new(ours: &Repository, incoming: Incoming, tip: ObjectId) -> Result<Self, Error> {
        let known = ours.references().read(REFERENCE)?.map(|tip| ours.objects().tree_of(&tip)).transpose()?;
        incoming.see_objects_of(ours)?;
        let store = incoming.repository().limited_objects();
        let reader = TreeReader::new(&store, ours.damage());
        let entries = count_missing(&reader, store.tree_of(&tip)?, known.as_slice())?;
        Ok(Self { entries, tip, incoming })
    }
}
