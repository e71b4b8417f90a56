//! Commits on their way between a repository and one on another machine, as bundles.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use super::{
    error::Error,
    incoming::Incoming,
    objects::NewObjects,
    program::{Call, Environment},
    repository::Repository,
};

/// Large repositories take long.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Where the commits are that another machine works on.
const BASES: &str = "refs/squad/bases/";
/// What a bundle names, in the repository that it comes into.
const TAKEN: &str = "refs/squad/taken/";
/// How many of them are told, the latest first: one is enough unless a branch was rewritten.
const TOLD: usize = 64;

impl Repository {
    /// The repository of a folder that holds nothing but what is taken into it. Makes it if it is not there.
    pub(crate) fn store_at(folder: &Path, format: &str, environment: &Environment) -> Result<Self, Error> {
        if !folder.join("HEAD").exists() {
            std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            let format = format!("--object-format={format}");
            let init = ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", &format];
            Call::new(environment, folder, &init).succeed()?;
        }
        let store = Self::discover(folder, environment)?;
        match store.git_dir() == folder {
            true => Ok(store),
            false => Err(Error::damaged(folder, "it is no repository")),
        }
    }

    /// git's object format.
    pub(crate) fn format(&self) -> String {
        self.hash().to_string()
    }

    /// Whether a commit is here.
    pub(crate) fn has_commit(&self, commit: &str) -> bool {
        self.parse_commit(commit).is_ok_and(|commit| self.objects().commit(&commit).is_ok())
    }

    /// Commits that were taken, the latest first.
    pub(crate) fn bases(&self) -> Result<Vec<String>, Error> {
        let count = format!("--count={TOLD}");
        let call = ["for-each-ref", "--sort=-committerdate", &count, "--format=%(objectname)", BASES];
        Ok(self.call(&call).succeed()?.text().lines().map(str::to_owned).collect())
    }

    /// Writes a bundle of what `reference` holds, without what these commits have.
    pub(crate) fn bundle(&self, reference: &str, without: &[String], file: &Path) -> Result<(), Error> {
        let call = self.call(&["bundle", "create", "--quiet"]).arguments(&[file]).arguments(&[reference, "--not"]);
        call.arguments(without).timeout(TIMEOUT).succeed().map(drop)
    }

    /// Takes a commit from a bundle that may leave out what `bases` have, and keeps it as a base.
    pub(crate) fn take_base(&self, file: &Path, commit: &str, bases: &[String]) -> Result<(), Error> {
        self.take_bundled(file, (commit, &format!("{BASES}{commit}")), bases, &[])
    }

    /// Takes work on top of bases from a bundle of somebody who is not trusted.
    pub(crate) fn take_work(&self, file: &Path, kept: (&str, &str), bases: &[String]) -> Result<(), Error> {
        self.take_bundled(file, kept, bases, &["-c", "fetch.fsckObjects=true"])
    }

    /// Keeps a commit that is here.
    pub(crate) fn keep(&self, reference: &str, commit: &str) -> Result<(), Error> {
        self.keep_commit(reference, self.parse_commit(commit)?, &NewObjects::new(self.hash()))
    }

    /// Has a commit that is here be the one that a branch is at, and no other branch.
    pub(crate) fn set_branch(&self, branch: &str, commit: &str) -> Result<(), Error> {
        let (name, commit) = (format!("refs/heads/{branch}"), self.parse_commit(commit)?.to_string());
        for other in self.references_below("refs/heads/")?.iter().filter(|other| **other != name) {
            self.call(&["update-ref", "-d", other]).succeed()?;
        }
        self.call(&["update-ref", &name, &commit]).succeed()?;
        self.call(&["symbolic-ref", "HEAD", &name]).succeed().map(drop)
    }

    fn take_bundled(
        &self,
        file: &Path,
        (commit, reference): (&str, &str),
        bases: &[String],
        settings: &[&str],
    ) -> Result<(), Error> {
        let id = self.parse_commit(commit)?;
        // git would follow a file with the path of another repository.
        let mut first = [0; 14];
        let is_read = std::fs::File::open(file).and_then(|mut opened| opened.read_exact(&mut first)).is_ok();
        if !is_read || !matches!(&first, b"# v2 git bundl" | b"# v3 git bundl") {
            return Err(Error::damaged(file, "it is no bundle"));
        }
        let refspec = [format!("+refs/squad/*:{TAKEN}*")];
        let incoming = Incoming::fetch_onto(self, settings, file.as_os_str(), &refspec, bases)?;
        let fetched = incoming.repository().references_below(TAKEN)?;
        let is_it = |name: &String| incoming.repository().reference(name).ok().flatten().as_deref() == Some(commit);
        if !fetched.iter().any(is_it) {
            return Err(Error::damaged(file, format!("{commit} is not in it")));
        }
        let kept = incoming.take(self)?;
        let is_kept = self.keep_commit(reference, id, &NewObjects::new(self.hash()));
        drop(kept);
        is_kept
    }
}
