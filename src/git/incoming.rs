//! Objects from outside: they come into a repository of their own, and only what is wanted of them comes into ours, as
//! a pack that git keeps until its ref has moved. A kill in between leaves nothing in ours, neither a ref nor an object.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{error::Error, pack::KeptPack, repository::Repository};

/// Large repositories take long.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Dropping it deletes everything that was not taken.
#[derive(Debug)]
pub(crate) struct Incoming {
    place: PathBuf,
    repository: Repository,
    // Last: it goes with everything in it.
    _folder: tempfile::TempDir,
}

impl Incoming {
    /// Fetches from a remote's URL or a bundle. `settings` are options of git before `fetch`.
    pub(super) fn fetch(
        ours: &Repository,
        settings: &[&str],
        source: &OsStr,
        refspecs: &[String],
    ) -> Result<Self, Error> {
        Self::fetch_onto(ours, settings, source, refspecs, &[])
    }

    /// The same of a bundle that leaves out what these commits of ours have.
    pub(super) fn fetch_onto(
        ours: &Repository,
        settings: &[&str],
        source: &OsStr,
        refspecs: &[String],
        bases: &[String],
    ) -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("write to", std::env::temp_dir()))?;
        let place = folder.path().join("incoming.git");
        let format = format!("--object-format={}", ours.hash());
        ours.call(&["init", "--quiet", "--bare", "--template=", &format]).arguments(&[&place]).succeed()?;
        let git_dir = format!("--git-dir={}", place.display());
        if !bases.is_empty() {
            see_objects_of(&place, ours)?;
        }
        for base in bases {
            // git looks for them in the history of the refs that it has.
            let name = format!("refs/squad/bases/{base}");
            ours.call(&[&git_dir, "update-ref", &name, base]).succeed()?;
        }
        let call = ours.call(&[&git_dir]).arguments(settings);
        let options = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
        let call = call.arguments(&options).arguments(&["--no-auto-maintenance", "--"]);
        call.arguments(&[source]).arguments(refspecs).timeout(TIMEOUT).succeed()?;
        let repository = Repository::discover(&place, ours.environment())?;
        Ok(Self { place, repository, _folder: folder })
    }

    /// What was fetched, under the names that it was given.
    pub(super) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Makes the objects of another repository readable here. Only after the fetch: git does not fetch what it can read
    /// already, and that may be about to go.
    pub(super) fn see_objects_of(&self, ours: &Repository) -> Result<(), Error> {
        see_objects_of(&self.place, ours)
    }

    /// Copies everything fetched from a bundle, which git makes a pack of, into `ours`, durably. git keeps it until the
    /// result is dropped: do that once the ref that references it has moved.
    pub(super) fn take(&self, ours: &Repository) -> Result<Vec<KeptPack>, Error> {
        let folder = self.place.join("objects").join("pack");
        let files = fs::read_dir(&folder).map_err(Error::io("read", &folder))?.flatten().map(|file| file.path());
        let indexes = files.filter(|path| path.extension().is_some_and(|kind| kind == "idx"));
        indexes.map(|index| ours.packs().copy_of(&index)).collect()
    }
}

fn see_objects_of(place: &Path, ours: &Repository) -> Result<(), Error> {
    let info = place.join("objects").join("info");
    let alternates = [ours.objects_directory().as_os_str().as_encoded_bytes(), b"\n"].concat();
    let made = fs::create_dir_all(&info).and_then(|()| fs::write(info.join("alternates"), alternates));
    made.map_err(Error::io("write to", &info))
}
