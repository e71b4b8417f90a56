//! Files that two machines pass each other through refs of a remote that both reach.

use std::time::Duration;

use gix::objs;
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    error::Error,
    objects::NewObjects,
    references::parse_id,
    repository::Repository,
    sync::Remote,
    tree_edit::TreeEdit,
};

/// Networks may be slow, and a project large.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What a ref of the remote held when it was fetched.
pub(crate) struct Posted {
    pub(crate) commit: String,
    repository: Repository,
}

impl Remote<'_> {
    /// The commit of a ref of the remote, as it is now.
    pub(crate) fn posted(&self, reference: &str) -> Result<Option<String>, Error> {
        let listed =
            self.repository.call(&["ls-remote", "--", &self.place()?, reference]).timeout(TIMEOUT).succeed()?;
        // The pattern also matches the ends of other names.
        let lines = listed.text();
        let id = lines.lines().find_map(|line| line.split_once('\t').filter(|(_, name)| *name == reference));
        Ok(id.and_then(|(id, _)| parse_id(id.as_bytes(), self.repository.hash())).map(|id| id.to_string()))
    }

    /// Has a ref of the remote be at a new commit with these files, if it is at the commit `before` there. `parent`: a
    /// commit of this repository that goes along; then the ref is here, too, before it is there. Returns the new commit;
    /// `None`: the ref is not at `before`.
    pub(crate) fn post(
        &self,
        reference: &str,
        files: Vec<(&str, Vec<u8>)>,
        parent: Option<&str>,
        before: Option<&str>,
        (writer, at): (&Identity, Timestamp),
    ) -> Result<Option<String>, Error> {
        let (store, repository) = (self.repository.objects(), self.repository);
        let (mut objects, mut edit) = (NewObjects::new(repository.hash()), TreeEdit::new(&store, None)?);
        for (path, bytes) in files {
            edit.insert(path, objects.add(objs::Kind::Blob, bytes)?)?;
        }
        let tree = edit.finish(&mut objects)?;
        let parents: Vec<_> = parent.map(|parent| repository.parse_commit(parent)).transpose()?.into_iter().collect();
        let bytes = commit::encode(tree, &parents, writer, at, &format!("squad: {reference}"));
        let commit = objects.add(objs::Kind::Commit, bytes)?;
        let _kept = repository.packs().add(&objects)?;
        if parent.is_some() {
            repository.keep(reference, &commit.to_string())?;
        }
        let lease = format!("--force-with-lease={reference}:{}", before.unwrap_or_default());
        let options =
            ["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules", "--no-signed", &lease, "--"];
        let call = repository.call(&options).arguments(&[&self.name, &format!("{commit}:{reference}")]);
        let answer = call.timeout(TIMEOUT).run()?;
        if answer.is_success() {
            return Ok(Some(commit.to_string()));
        }
        let now = self.posted(reference)?;
        if now == Some(commit.to_string()) {
            // Only the answer was lost.
            return Ok(now);
        }
        if now.as_deref() != before {
            return Ok(None);
        }
        // What the other side says comes before git's own word.
        let said = answer.error_lines().into_iter().filter(|line| line.starts_with("remote: "));
        let message = said.chain([answer.error_line()]).collect::<Vec<_>>().join("; ");
        Err(Error::Program { command: format!("git push {}", self.name), message })
    }

    /// Fetches a ref of the remote to one here. It comes from outside.
    pub(crate) fn fetch_post(&self, reference: &str, to: &str) -> Result<Posted, Error> {
        let settings = ["-c", "fetch.unpackLimit=1", "-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-filter"];
        let options = ["--no-tags", "--refmap=", "--no-write-fetch-head", "--no-recurse-submodules"];
        self.repository.references().announce(&[(to.to_owned(), self.posted(reference)?)]);
        let call = self.repository.call(&settings).arguments(&options).arguments(&["--no-auto-maintenance", "--"]);
        call.arguments(&[self.place()?, format!("+{reference}:{to}")]).timeout(TIMEOUT).succeed()?;
        let commit = self.repository.reference(to)?;
        let commit = commit.ok_or_else(|| Error::damaged(self.repository.git_dir(), "it did not come"))?;
        Ok(Posted { commit, repository: self.repository.clone() })
    }

    /// Deletes refs of the remote, and says nothing of those that are not there.
    pub(crate) fn unpost(&self, references: &[String]) -> Result<(), Error> {
        let there = references.iter().map(|reference| Ok(self.posted(reference)?.map(|_| format!(":{reference}"))));
        let there: Vec<String> = there.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
        if there.is_empty() {
            return Ok(());
        }
        let call = self.repository.call(&["push", "--quiet", "--no-signed", "--", &self.name]).arguments(&there);
        call.timeout(TIMEOUT).succeed().map(drop)
    }
}

impl Posted {
    /// What the commit is on top of.
    pub(crate) fn parent(&self) -> Result<String, Error> {
        let (_, parents, _) = self.repository.objects().commit(&self.repository.parse_commit(&self.commit)?)?;
        let missing = || Error::damaged(self.repository.git_dir(), format!("{} is on top of no commit", self.commit));
        parents.first().map(ToString::to_string).ok_or_else(missing)
    }

    /// One of the files; `None`: it is not there. A larger one is an error.
    pub(crate) fn file(&self, path: &str, largest: u64) -> Result<Option<Vec<u8>>, Error> {
        self.repository.file_at(&self.commit, path, largest)
    }
}
