//! Synchronizes this clone's ledger with a remote's: fetch, merge, push, never force.
//!
//! A remote can hold a ledger under three refs. All are read, whichever was agreed on:
//!
//! ```text
//! refs/squad/log           the regular ref
//! refs/squad/clones/NAME   pushed by a single clone, so that it need not wait for others
//! refs/heads/squad/state   on hosts that accept only branches
//! ```
//!
//! The remote's refs are copied to `refs/squad/remotes/<remote>/`. Diverged ledgers are joined by a merge commit that
//! depends only on its parents, so every clone creates the same one.

mod merge;
mod push;

use std::{collections::BTreeMap, thread, time::Duration};

use gix::ObjectId;

pub(super) use self::merge::Records;
pub(crate) use self::push::{Destination, PushResult, Refusal};
use super::{
    disk,
    error::Error,
    ledger_tree::TreeReader,
    object_store::ObjectStore,
    program::Call,
    references::{REFERENCE, parse_id},
    repository::Repository,
    union::count_missing,
};
use crate::model::{IntoMap, Sort};

/// The ledger's ref on hosts that accept only branches.
const BRANCH: &str = "refs/heads/squad/state";

/// The refs of single clones, which push their ledgers without waiting for each other.
const CLONES: &str = "refs/squad/clones/";

/// The remotes' ledgers as of the last fetch.
const COPIES: &str = "refs/squad/remotes/";

/// Networks may be slow.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Milliseconds to wait before retrying a fetch that collided with another git.
const FETCH_RETRIES: [u64; 4] = [20, 100, 400, 1_000];

/// A remote's ledger, as this clone knows it.
pub(crate) struct Remote<'a> {
    pub(super) repository: &'a Repository,
    pub(super) name: String,
}

/// How this clone's ledger differs from a remote's, as of the last fetch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Difference {
    /// Entries that the remote lacks.
    pub(crate) to_send: usize,
    /// Entries that this clone lacks.
    pub(crate) to_receive: usize,
}

/// A ref of a remote that holds a ledger, and the commit it is at.
#[derive(Clone, Debug, Eq, PartialEq)]
struct RemoteRef {
    /// The ref's name on the remote.
    reference: String,
    commit: ObjectId,
}

impl Repository {
    /// The names of the configured remotes, the upstream of the checked-out branch first.
    pub(crate) fn remotes(&self) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> =
            self.call(&["remote"]).succeed()?.text().lines().map(str::to_owned).filter(|name| is_plain(name)).collect();
        let followed = match self.head()?.branch {
            Some(branch) => self.setting(&format!("branch.{branch}.remote"))?,
            None => None,
        };
        names.stable_sort_by_key(|name| (Some(name) != followed.as_ref(), name != "origin"));
        Ok(names)
    }

    pub(crate) fn remote(&self, name: &str) -> Remote<'_> {
        Remote { repository: self, name: name.to_owned() }
    }

    /// The remotes' ledger commits as of the last fetch.
    pub(crate) fn remote_tips(&self) -> Result<Vec<String>, Error> {
        let references = self.references();
        let names = references.list(COPIES)?;
        let tips = names.iter().map(|name| Ok(references.read(name)?.map(|id| id.to_string())));
        Ok(tips.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }

    /// The number of entries below these folders that no remote had as of the last fetch; `None`: there was no fetch.
    pub(crate) fn unsynced(&self, folders: &[String]) -> Result<Option<usize>, Error> {
        let store = self.limited_objects();
        let reader = TreeReader::new(&store, self.damage());
        let tips = self.remote_tips()?.into_iter().map(|tip| self.parse_commit(&tip));
        let known = readable_trees(&store, &tips.collect::<Result<Vec<_>, _>>()?)?;
        if known.is_empty() {
            return Ok(None);
        }
        let Some(tip) = self.references().read(REFERENCE)? else { return Ok(Some(0)) };
        let root = store.tree_of(&tip)?;
        let folder_of = |root: ObjectId, folder: &str| -> Result<Option<ObjectId>, Error> {
            Ok(reader.find(root, folder)?.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id))
        };
        let counts = folders.iter().map(|folder| {
            let Some(ours) = folder_of(root, folder)? else { return Ok(0) };
            let theirs = known.iter().map(|root| folder_of(*root, folder)).collect::<Result<Vec<_>, _>>()?;
            count_missing(&reader, ours, &theirs.into_iter().flatten().collect::<Vec<_>>())
        });
        counts.sum::<Result<usize, _>>().map(Some)
    }

    fn setting(&self, key: &str) -> Result<Option<String>, Error> {
        let answer = self.call(&["config", "--get", key]).run()?;
        Ok(answer.is_success().then(|| answer.text()).filter(|value| !value.is_empty()))
    }
}

/// The trees of commits, without those that were lost: the next fetch brings them again.
fn readable_trees(store: &ObjectStore, commits: &[ObjectId]) -> Result<Vec<ObjectId>, Error> {
    let mut trees = Vec::new();
    for commit in commits {
        match store.tree_of(commit) {
            Err(Error::Object { .. }) => {}
            tree => trees.push(tree?),
        }
    }
    Ok(trees)
}

/// Whether a name is not an option or URL, and valid in a ref.
fn is_plain(name: &str) -> bool {
    !name.starts_with(['-', '.'])
        && !name.contains("..")
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.'))
}

impl Remote<'_> {
    /// The remote ref that last accepted the ledger; `None`: the user has not agreed yet to keep the ledger there.
    pub(crate) fn recorded_reference(&self) -> Result<Option<String>, Error> {
        let found = self.repository.setting(&self.key())?;
        Ok(found.filter(|reference| reference == REFERENCE || reference == BRANCH))
    }

    /// Records the ledger's ref on the remote, and makes `git fetch` include it. The record is only a hint: every sync
    /// reads all refs, and tries [`REFERENCE`] first.
    pub(crate) fn record_reference(&self, to: Destination) -> Result<String, Error> {
        let reference = if to == Destination::Branch { BRANCH } else { REFERENCE };
        self.repository.call(&["config", &self.key(), reference]).succeed()?;
        if let Some(copy) = self.local_copy(reference) {
            // A pattern, since git fails if a ref it should fetch by name does not exist.
            let refspec = format!("+{reference}*:{copy}*");
            let key = format!("remote.{}.fetch", self.name);
            let all = self.repository.call(&["config", "--get-all", &key]).run()?.text();
            if !all.lines().any(|line| line == refspec) {
                self.repository.call(&["config", "--add", &key, &refspec]).succeed()?;
            }
        }
        Ok(reference.to_owned())
    }

    /// Where the remote's ledger is read: where it is pushed to. Read elsewhere, it would lack what we pushed.
    pub(super) fn place(&self) -> Result<String, Error> {
        let key = |name: &str| format!("remote.{}.{name}", self.name);
        let all = |name: &str| Ok::<_, Error>(self.repository.call(&["config", "--get-all", &key(name)]).run()?.text());
        let (pushed, fetched) = (all("pushurl")?, all("url")?);
        let is_fetched = fetched.lines().next().is_some_and(|url| pushed.lines().any(|other| other == url));
        Ok(pushed.lines().next().filter(|_| !is_fetched).unwrap_or(&self.name).to_owned())
    }

    fn key(&self) -> String {
        format!("remote.{}.squadLedger", self.name)
    }

    /// The local copy of a remote's ref; `None`: the ref holds no ledger.
    fn local_copy(&self, reference: &str) -> Option<String> {
        let name = match reference {
            REFERENCE => "log".to_owned(),
            BRANCH => "state".to_owned(),
            other => format!("clones/{}", other.strip_prefix(CLONES).filter(|name| !name.is_empty())?),
        };
        Some(format!("{COPIES}{}/{name}", self.name))
    }

    /// The remote's ledgers as of the last fetch: [`REFERENCE`] first, those of single clones last.
    fn remote_refs(&self) -> Result<Vec<RemoteRef>, Error> {
        let references = self.repository.references();
        let mut found = Vec::new();
        for reference in [REFERENCE, BRANCH] {
            found.extend(self.local_copy(reference).map(|copy| (reference.to_owned(), copy)));
        }
        let clones = format!("{COPIES}{}/clones/", self.name);
        let names = references.list(&clones)?.into_iter();
        found.extend(names.map(|copy| (copy.replacen(&clones, CLONES, 1), copy)));
        let refs = found
            .into_iter()
            .map(|(reference, copy)| Ok(references.read(&copy)?.map(|commit| RemoteRef { reference, commit })));
        Ok(refs.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }

    /// Fetches all the remote's ledger refs. Copies of refs it no longer has are deleted: merge them before.
    pub(crate) fn fetch(&self) -> Result<Difference, Error> {
        let mut pauses = FETCH_RETRIES.iter();
        loop {
            match self.fetch_once() {
                Ok(()) => return self.difference(),
                Err(error) => match pauses.next().filter(|_| is_transient(&error)) {
                    Some(pause) => thread::sleep(Duration::from_millis(*pause)),
                    None => return Err(error),
                },
            }
        }
    }

    fn fetch_once(&self) -> Result<(), Error> {
        let there = self.list()?;
        let here = self.remote_refs()?;
        for deleted in here.iter().filter(|remote_ref| !there.contains_key(&remote_ref.reference)) {
            self.forget(deleted)?;
        }
        let is_known = |reference: &String, commit: &ObjectId| {
            here.iter().any(|remote_ref| remote_ref.reference == *reference && remote_ref.commit == *commit)
        };
        let new: Vec<&String> =
            there.iter().filter(|(reference, commit)| !is_known(reference, commit)).map(|(name, _)| name).collect();
        let copy = |reference: &&String| Some((self.local_copy(reference)?, Some(there.get(*reference)?.to_string())));
        let copies: Vec<_> = new.iter().filter_map(copy).collect();
        let refspec = |reference: &String| Some(format!("+{reference}:{}", self.local_copy(reference)?));
        let (clones, shared): (Vec<&String>, Vec<&String>) = new.into_iter().partition(|name| name.starts_with(CLONES));
        let mut refspecs: Vec<String> = shared.into_iter().filter_map(refspec).collect();
        if !clones.is_empty() {
            // A pattern, since a clone that has merged them may delete them at any time.
            refspecs.push(format!("+{CLONES}*:{COPIES}{}/clones/*", self.name));
        }
        if refspecs.is_empty() {
            return Ok(());
        }
        self.repository.references().announce(&copies);
        // Fetch as a pack, so that flushing one folder is enough; complete, even in a partial clone; and nothing else.
        let arguments = [
            "-c",
            "fetch.unpackLimit=1",
            "-c",
            "fetch.fsckObjects=true",
            "fetch",
            "--quiet",
            "--no-filter",
            "--no-tags",
            "--refmap=",
        ];
        let more = ["--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--"];
        self.call(&arguments).arguments(&more).arguments(&[self.place()?]).arguments(&refspecs).succeed()?;
        disk::flush_folder(&self.repository.objects_directory().join("pack"))
    }

    /// The remote's current ledger refs.
    fn list(&self) -> Result<BTreeMap<String, ObjectId>, Error> {
        let call = self.call(&["ls-remote", "--", &self.place()?]);
        let listed =
            call.arguments(&[REFERENCE, BRANCH, &format!("{CLONES}*")]).succeed().map_err(|error| match error {
                Error::Program { message, .. } => Error::Unreachable { remote: self.name.clone(), message },
                other => other,
            });
        let listed = listed?.text();
        let lines = listed.lines().filter_map(|line| line.split_once('\t'));
        // The patterns also match the ends of other names.
        let lines = lines.filter(|(_, reference)| self.local_copy(reference).is_some());
        Ok(lines
            .filter_map(|(id, reference)| {
                Some((reference.to_owned(), parse_id(id.as_bytes(), self.repository.hash())?))
            })
            .into_map())
    }

    fn forget(&self, remote_ref: &RemoteRef) -> Result<(), Error> {
        let Some(copy) = self.local_copy(&remote_ref.reference) else { return Ok(()) };
        self.repository.references().announce(&[(copy.clone(), None)]);
        self.repository.call(&["update-ref", "-d", &copy, &remote_ref.commit.to_string()]).succeed().map(drop)
    }

    /// The result of the last [`Self::fetch`].
    pub(crate) fn tips(&self) -> Result<Vec<String>, Error> {
        Ok(self
            .remote_refs()?
            .into_iter()
            .map(|remote_ref| format!("{} {}", remote_ref.commit, remote_ref.reference))
            .collect())
    }

    fn tip(&self) -> Result<Option<ObjectId>, Error> {
        self.repository.references().read(REFERENCE)
    }

    /// How our ledger differs from the remote's, as of the last fetch.
    pub(crate) fn difference(&self) -> Result<Difference, Error> {
        let store = self.repository.limited_objects();
        let reader = TreeReader::new(&store, self.repository.damage());
        let commits: Vec<ObjectId> = self.remote_refs()?.into_iter().map(|remote_ref| remote_ref.commit).collect();
        let theirs = readable_trees(&store, &commits)?;
        let ours = self.tip()?.map(|tip| store.tree_of(&tip)).transpose()?;
        let to_send = ours.map_or(Ok(0), |ours| count_missing(&reader, ours, &theirs))?;
        // Count entries that several of their ledgers have once.
        let mut known: Vec<ObjectId> = ours.into_iter().collect();
        let mut to_receive = 0;
        for theirs in theirs {
            to_receive += count_missing(&reader, theirs, &known)?;
            known.push(theirs);
        }
        Ok(Difference { to_send, to_receive })
    }

    fn call(&self, arguments: &[&str]) -> Call {
        self.repository.call(arguments).timeout(TIMEOUT)
    }
}

/// Whether a fetch failed for a temporary reason: another git moves the same refs, or a ref was deleted after listing.
fn is_transient(error: &Error) -> bool {
    let passing = ["cannot lock ref", "Unable to create", "couldn't find remote ref", "unable to update"];
    matches!(error, Error::Program { message, .. } if passing.iter().any(|cause| message.contains(cause)))
}
