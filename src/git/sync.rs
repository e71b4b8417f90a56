//! The ledger of this clone and that of a remote become one: fetched, united, pushed, never forced.
//!
//! What the remote has is kept under `refs/squad/remotes/<remote>/log`. Two ledgers of which neither holds the other
//! are united in a merge commit that says nothing but what it unites, so every clone makes the same one.

use std::{collections::BTreeSet, time::Duration};

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    commit::{self, Identity},
    disk,
    error::Error,
    ledger::REFERENCE,
    program::Call,
    repository::Repository,
    scrub,
    union::{self, Scrubbed, Settle},
};

/// Where the ledger goes on hosts that take branches and nothing else.
const BRANCH: &str = "refs/heads/squad/state";

/// Where clones that do not wait for each other put their ledgers, each under a name of its own.
const CLONES: &str = "refs/squad/clones/";

/// A network may be slow.
const PATIENCE: Duration = Duration::from_secs(600);

/// A remote's ledger, as this clone knows it.
pub(crate) struct Remote<'a> {
    repository: &'a Repository,
    name: String,
}

/// How this clone's ledger stands to what a remote had when it was asked last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Standing {
    /// Entries that the remote lacks.
    pub(crate) to_send: usize,
    /// Entries that this clone lacks.
    pub(crate) to_take: usize,
}

/// What became of an attempt to push.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Delivery {
    /// The remote has what we have.
    Done,
    /// Somebody else was faster: fetch again.
    Outrun,
    /// What the remote has leads to what was taken out of the ledger here. The commit it has, and ours.
    Unscrubbed { theirs: String, ours: String },
    /// The remote takes no such ref; its reason.
    Refused(String),
}

impl Repository {
    /// The names of the configured remotes, the one that the checked-out branch follows first.
    pub(crate) fn remotes(&self) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> =
            self.call(&["remote"]).succeed()?.text().lines().map(str::to_owned).filter(|name| is_plain(name)).collect();
        let followed = match self.head()?.branch {
            Some(branch) => self.setting(&format!("branch.{branch}.remote"))?,
            None => None,
        };
        names.sort_by_key(|name| (Some(name) != followed.as_ref(), name != "origin"));
        Ok(names)
    }

    pub(crate) fn remote(&self, name: &str) -> Remote<'_> {
        Remote { repository: self, name: name.to_owned() }
    }

    /// The ledgers' commits that remotes had when they were asked last.
    pub(crate) fn remote_tips(&self) -> Result<Vec<String>, Error> {
        let references = self.references();
        let names = references.list("refs/squad/remotes/")?;
        let tips = names.iter().map(|name| Ok(references.read(name)?.map(|id| id.to_string())));
        Ok(tips.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }

    /// Entries below some folders that no remote had when it was asked last; None: none was ever asked.
    pub(crate) fn unsynced(&self, folders: &[String]) -> Result<Option<usize>, Error> {
        let references = self.references();
        let store = self.objects();
        let known = self.remote_tips()?.into_iter().map(|tip| store.tree_of(&self.parse_commit(&tip)?));
        let known: Vec<ObjectId> = known.collect::<Result<_, _>>()?;
        let Some(tip) = references.read(REFERENCE)? else { return Ok(Some(0)) };
        let root = store.tree_of(&tip)?;
        let folder_of = |root: ObjectId, folder: &str| -> Result<Option<ObjectId>, Error> {
            Ok(store.find(root, folder)?.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id))
        };
        let missing = |base: ObjectId| -> Result<usize, Error> {
            let counts = folders.iter().map(|folder| match folder_of(root, folder)? {
                Some(ours) => union::count_missing(&store, ours, folder_of(base, folder)?),
                None => Ok(0),
            });
            counts.sum()
        };
        let counts: Vec<usize> = known.into_iter().map(missing).collect::<Result<_, _>>()?;
        Ok(counts.into_iter().min())
    }

    fn setting(&self, key: &str) -> Result<Option<String>, Error> {
        let answer = self.call(&["config", "--get", key]).run()?;
        Ok(answer.is_success().then(|| answer.text()).filter(|value| !value.is_empty()))
    }
}

/// A name that is no option, no address, and fits into a ref.
fn is_plain(name: &str) -> bool {
    !name.starts_with(['-', '.'])
        && !name.contains("..")
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.'))
}

impl Remote<'_> {
    /// The ref that holds the ledger there, once somebody agreed to keep it there.
    pub(crate) fn agreed(&self) -> Result<Option<String>, Error> {
        let found = self.repository.setting(&self.key())?;
        Ok(found.filter(|reference| reference == REFERENCE || reference == BRANCH))
    }

    /// Remembers where the ledger is kept, and has `git fetch` bring it from now on.
    pub(crate) fn agree(&self, is_refused: bool) -> Result<String, Error> {
        let reference = if is_refused { BRANCH } else { REFERENCE };
        self.repository.call(&["config", &self.key(), reference]).succeed()?;
        if !is_refused {
            // A pattern, since git fails where a ref that it is told to fetch by name is not there.
            let refspec = format!("+{REFERENCE}*:{}*", self.tracking());
            let key = format!("remote.{}.fetch", self.name);
            let all = self.repository.call(&["config", "--get-all", &key]).run()?.text();
            if !all.lines().any(|line| line == refspec) {
                self.repository.call(&["config", "--add", &key, &refspec]).succeed()?;
            }
        }
        Ok(reference.to_owned())
    }

    fn key(&self) -> String {
        format!("remote.{}.squadLedger", self.name)
    }

    fn tracking(&self) -> String {
        format!("refs/squad/remotes/{}/log", self.name)
    }

    fn tracking_of_clones(&self) -> String {
        format!("refs/squad/remotes/{}/clones/", self.name)
    }

    /// The ledgers of single clones that the remote had when it was asked last: our names for them and their commits.
    fn clones(&self) -> Result<Vec<(String, ObjectId)>, Error> {
        let references = self.repository.references();
        let names = references.list(&self.tracking_of_clones())?.into_iter();
        let read = names.map(|name| Ok(references.read(&name)?.map(|id| (name, id))));
        Ok(read.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }

    /// Asks the remote what it has, under `agreed` or wherever a ledger may be.
    pub(crate) fn fetch(&self, agreed: Option<&str>) -> Result<Standing, Error> {
        let candidates = match agreed {
            Some(reference) => vec![reference],
            None => vec![REFERENCE, BRANCH],
        };
        let listed = self.call(&["ls-remote", "--", &self.name]).arguments(&candidates);
        let listed = listed.arguments(&[format!("{CLONES}*")]).succeed()?.text();
        let names: Vec<&str> = listed.lines().filter_map(|line| line.split_once('\t')).map(|(_, at)| at).collect();
        let mut refspecs = Vec::new();
        if let Some(reference) = candidates.into_iter().find(|name| names.contains(name)) {
            refspecs.push(format!("+{reference}:{}", self.tracking()));
        }
        if names.iter().any(|name| name.starts_with(CLONES)) {
            refspecs.push(format!("+{CLONES}*:{}*", self.tracking_of_clones()));
        }
        if !refspecs.is_empty() {
            // As a pack, whose folder can be flushed; whole, also in a partial clone; and nothing else.
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
            self.call(&arguments).arguments(&more).arguments(&[&self.name]).arguments(&refspecs).succeed()?;
            disk::flush_folder(&self.repository.objects_directory().join("pack"))?;
        }
        self.standing()
    }

    fn tips(&self) -> Result<(Option<ObjectId>, Option<ObjectId>), Error> {
        let references = self.repository.references();
        Ok((references.read(REFERENCE)?, references.read(&self.tracking())?))
    }

    /// How the ledger stands to what the remote had when it was asked last.
    pub(crate) fn standing(&self) -> Result<Standing, Error> {
        let (ours, theirs) = self.tips()?;
        let store = self.repository.objects();
        let tree = |tip: Option<ObjectId>| tip.map(|tip| store.tree_of(&tip)).transpose();
        let (ours, theirs) = (tree(ours)?, tree(theirs)?);
        let missing =
            |tree: Option<ObjectId>, base| tree.map_or(Ok(0), |tree| union::count_missing(&store, tree, base));
        let mut to_take = missing(theirs, ours)?;
        for (_, clone) in self.clones()? {
            to_take += missing(tree(Some(clone))?, ours)?;
        }
        Ok(Standing { to_send: missing(ours, theirs)?, to_take })
    }

    /// Brings what was fetched into this clone's ledger, durably.
    ///
    /// A history that leads to what was taken out of the other one gives its files and is not led to: `scrubbed` reads
    /// the paths of changed files from a record of that, `settle` is asked about files of which there are two versions.
    pub(crate) fn unite(
        &self,
        scrubbed: &dyn Fn(&[u8]) -> Vec<String>,
        settle: &Settle<'_>,
        identity: &Identity,
    ) -> Result<(), Error> {
        let (_, theirs) = self.tips()?;
        let clones = self.clones()?.into_iter().map(|(_, id)| id);
        theirs.into_iter().chain(clones).try_for_each(|theirs| self.take(theirs, scrubbed, settle, identity))
    }

    fn take(
        &self,
        theirs: ObjectId,
        scrubbed: &dyn Fn(&[u8]) -> Vec<String>,
        settle: &Settle<'_>,
        identity: &Identity,
    ) -> Result<(), Error> {
        self.repository.ledger().advance(|tip, objects| {
            let Some(ours) = tip else { return Ok(Some(theirs)) };
            if ours == theirs || self.is_ancestor(theirs, ours)? {
                return Ok(None);
            }
            if self.is_ancestor(ours, theirs)? {
                return Ok(Some(theirs));
            }
            let store = self.repository.objects();
            let trees = [store.tree_of(&ours)?, store.tree_of(&theirs)?];
            let records = [scrub::records(&store, trees[0])?, scrub::records(&store, trees[1])?];
            let mut paths = BTreeSet::new();
            for (tree, records) in trees.iter().zip(&records) {
                for record in records {
                    if let Some((_, id)) = store.find(*tree, record)? {
                        paths.extend(scrubbed(&store.blob(&id)?));
                    }
                }
            }
            let tree = union::union(&store, trees[0], trees[1], &Scrubbed { paths, settle }, objects)?;
            // The same in every clone.
            let mut parents = vec![(ours, trees[0], &records[0]), (theirs, trees[1], &records[1])];
            parents.sort_by_key(|(commit, _, _)| *commit);
            let all: BTreeSet<&String> = records.iter().flatten().collect();
            let dirty: Vec<ObjectId> = parents
                .iter()
                .filter(|(_, _, records)| records.len() < all.len())
                .map(|(commit, _, _)| *commit)
                .collect();
            parents.retain(|(commit, _, _)| !dirty.contains(commit));
            if !dirty.is_empty() {
                self.repository.remember_old(&dirty)?;
            }
            if let [(commit, has, _)] = parents[..]
                && has == tree
            {
                return Ok(Some(commit));
            }
            let at = store.time_of(&ours)?.max(store.time_of(&theirs)?);
            let at = Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH);
            let parents: Vec<ObjectId> = parents.iter().map(|(commit, _, _)| *commit).collect();
            objects.add(objs::Kind::Commit, commit::encode(tree, &parents, identity, at, "union")).map(Some)
        })
    }

    fn is_ancestor(&self, ancestor: ObjectId, of: ObjectId) -> Result<bool, Error> {
        let arguments = ["merge-base", "--is-ancestor", &ancestor.to_string(), &of.to_string()];
        Ok(self.call(&arguments).run()?.is_success())
    }

    /// Sends the ledger there, if it moves that ref forward.
    pub(crate) fn push(&self, reference: &str) -> Result<Delivery, Error> {
        let (Some(ours), theirs) = self.tips()? else { return Ok(Delivery::Done) };
        if Some(ours) == theirs {
            return Ok(Delivery::Done);
        }
        if let Some(theirs) = theirs
            && !self.has_records_of(ours, theirs)?
        {
            return Ok(Delivery::Unscrubbed { theirs: theirs.to_string(), ours: ours.to_string() });
        }
        let delivery = self.send(ours, reference)?;
        if delivery == Delivery::Done {
            self.repository.call(&["update-ref", &self.tracking(), &ours.to_string()]).succeed()?;
        }
        Ok(delivery)
    }

    /// Sends the ledger to a ref that only this clone writes, so that it need not wait for others. `name` makes one for
    /// the clone that no other has, where it has none yet.
    pub(crate) fn push_own(&self, name: impl FnOnce() -> String) -> Result<(String, Delivery), Error> {
        let reference = format!("{CLONES}{}", self.own_name(name)?);
        let (Some(ours), _) = self.tips()? else { return Ok((reference, Delivery::Done)) };
        let delivery = self.send(ours, &reference)?;
        Ok((reference, delivery))
    }

    /// What this clone is called among others.
    fn own_name(&self, make: impl FnOnce() -> String) -> Result<String, Error> {
        const KEY: &str = "squad.clone";
        if let Some(known) = self.repository.setting(KEY)?.filter(|name| is_plain(name)) {
            return Ok(known);
        }
        let name = make();
        self.repository.call(&["config", KEY, &name]).succeed()?;
        Ok(name)
    }

    /// Removes the refs of single clones there of which this ledger has every entry, if they are still as they were
    /// seen; the remote must have this ledger. Where that is not allowed they stay, and are no harm.
    pub(crate) fn tidy(&self) -> Result<(), Error> {
        let (Some(ours), _) = self.tips()? else { return Ok(()) };
        let store = self.repository.objects();
        let tree = store.tree_of(&ours)?;
        let (prefix, mut arguments, mut refspecs) = (self.tracking_of_clones(), Vec::new(), Vec::new());
        for (name, id) in self.clones()? {
            if union::count_missing(&store, store.tree_of(&id)?, Some(tree))? == 0 {
                let reference = name.replacen(&prefix, CLONES, 1);
                arguments.push(format!("--force-with-lease={reference}:{id}"));
                refspecs.push(format!(":{reference}"));
            }
            // Known again with the next fetch, if it is still there.
            self.repository.call(&["update-ref", "-d", &name, &id.to_string()]).succeed()?;
        }
        if refspecs.is_empty() {
            return Ok(());
        }
        let call = self.call(&["push", "--quiet", "--no-signed"]).arguments(&arguments);
        call.arguments(&["--", &self.name]).arguments(&refspecs).run().map(drop)
    }

    fn send(&self, ours: ObjectId, reference: &str) -> Result<Delivery, Error> {
        let refspec = format!("{ours}:{reference}");
        let arguments = ["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules", "--no-signed", "--"];
        let answer = self.call(&arguments).arguments(&[&self.name, &refspec]).run()?;
        if answer.is_success() {
            return Ok(Delivery::Done);
        }
        // `! <tab> from:to <tab> [rejected] (why)`
        let said = answer.text();
        let verdict =
            said.lines().find_map(|line| line.strip_prefix("!\t")?.split_once('\t').map(|(_, verdict)| verdict));
        let races =
            ["[rejected]", "cannot lock ref", "failed to update ref", "incorrect old value", "reference already"];
        match verdict {
            Some(verdict) if races.iter().any(|race| verdict.contains(race)) => Ok(Delivery::Outrun),
            Some(verdict) if verdict.contains("remote rejected") => Ok(Delivery::Refused(verdict.to_owned())),
            _ => Err(Error::Program { command: format!("git push {}", self.name), message: answer.complaint() }),
        }
    }

    /// Whether a ledger says of everything that was taken out of another one that it was.
    fn has_records_of(&self, of: ObjectId, ledger: ObjectId) -> Result<bool, Error> {
        let store = self.repository.objects();
        let records = |commit: ObjectId| scrub::records(&store, store.tree_of(&commit)?);
        Ok(records(of)?.is_subset(&records(ledger)?))
    }

    fn call(&self, arguments: &[&str]) -> Call {
        self.repository.call(arguments).patience(PATIENCE)
    }
}
