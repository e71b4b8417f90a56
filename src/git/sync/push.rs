//! Pushing this clone's ledger to one of the refs where a remote can hold it.

use gix::{ObjectId, objs};
use jiff::Timestamp;

use super::{
    super::{
        commit::{self, Identity},
        error::Error,
        ledger_tree::TreeReader,
        objects::NewObjects,
        pack::KeptPack,
        references::REFERENCE,
        scrub,
        tree_edit::{Insertion, TreeEdit},
        union::{count_missing, missing},
    },
    BRANCH, CLONES, Remote, is_plain,
};

/// Which ref a ledger is pushed to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Destination {
    Log,
    /// A ref that only this clone writes, so that it need not wait for others.
    Own,
    Branch,
}

/// The result of a push.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PushResult {
    /// The remote has our ledger.
    Done,
    /// The remote's ref moved or is locked: fetch again. With the remote's message.
    Raced(String),
    /// The remote's history still references content that was scrubbed here. Its commit, and ours.
    Unscrubbed {
        theirs: String,
        ours: String,
    },
    Refused {
        reason: String,
        refusal: Refusal,
    },
}

/// Why a host refused a push.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// The host hides such refs.
    HiddenRef,
    /// A rule or hook refused: such refs, this push, or for now.
    Declined,
    /// The host failed, which says nothing about the ref.
    Failed,
}

/// How much of a ledger can be sent.
enum Part {
    Whole,
    Nothing,
    /// A commit on top of theirs, with the readable files they lack.
    Commit(ObjectId, KeptPack),
}

impl Remote<'_> {
    /// Pushes the ledger to a ref, if that moves it forward.
    ///
    /// Unreadable parts do not block the rest: they are reported, and sent once repaired.
    pub(crate) fn push(&self, reference: &str, identity: &Identity) -> Result<PushResult, Error> {
        let Some(ours) = self.tip()? else { return Ok(PushResult::Done) };
        let theirs = self
            .remote_refs()?
            .into_iter()
            .find(|remote_ref| remote_ref.reference == reference)
            .map(|remote_ref| remote_ref.commit);
        if Some(ours) == theirs {
            return Ok(PushResult::Done);
        }
        if let Some(theirs) = theirs
            && !self.has_records_of(ours, theirs)?
        {
            return Ok(PushResult::Unscrubbed { theirs: theirs.to_string(), ours: ours.to_string() });
        }
        let (sent, delivery) = match self.send(ours, reference) {
            failed @ (Ok(PushResult::Refused { .. }) | Err(_)) => match self.readable_part(ours, theirs, identity)? {
                Part::Whole => (ours, failed?),
                Part::Nothing => return Ok(PushResult::Done),
                Part::Commit(commit, _kept) => (commit, self.send(commit, reference)?),
            },
            delivery => (ours, delivery?),
        };
        if delivery == PushResult::Done
            && let Some(copy) = self.local_copy(reference)
        {
            self.repository.references().announce(&[(copy.clone(), Some(sent.to_string()))]);
            self.repository.call(&["update-ref", &copy, &sent.to_string()]).succeed()?;
        }
        Ok(delivery)
    }

    /// Whether all objects exist that only our commit references.
    fn is_whole(&self, ours: ObjectId, theirs: Option<ObjectId>) -> Result<bool, Error> {
        let walk = self.call(&["rev-list", "--objects", "--quiet", &ours.to_string()]);
        let walk = walk.arguments(&theirs.iter().map(|theirs| format!("^{theirs}")).collect::<Vec<_>>());
        Ok(walk.variable("GIT_NO_LAZY_FETCH", "1").run()?.is_success())
    }

    /// What can be sent if git cannot read all of it.
    fn readable_part(&self, ours: ObjectId, theirs: Option<ObjectId>, identity: &Identity) -> Result<Part, Error> {
        let store = self.repository.limited_objects();
        let reader = TreeReader::new(&store, self.repository.damage());
        let base = theirs.map(|theirs| store.tree_of(&theirs)).transpose()?;
        let mut files = Vec::new();
        missing(&reader, ("", store.tree_of(&ours)?), base.as_slice(), |file| files.push((file.path(), file.id())))?;
        let (mut edit, mut is_new) = (TreeEdit::new(&store, base)?, false);
        for (path, id) in files {
            if reader.skip_unreadable(&path, id, store.blob(&id))?.is_some() {
                is_new |= edit.insert(&path, id)? == Insertion::Added;
            }
        }
        if reader.is_whole() && self.is_whole(ours, theirs)? {
            return Ok(Part::Whole);
        }
        if !is_new {
            return Ok(Part::Nothing);
        }
        let mut objects = NewObjects::new(store.hash());
        let tree = edit.finish(&mut objects)?;
        let at = Timestamp::from_second(store.time_of(&ours)?).unwrap_or(Timestamp::UNIX_EPOCH);
        let bytes = commit::encode(tree, theirs.as_slice(), identity, at, "what can be read");
        let commit = objects.add(objs::Kind::Commit, bytes)?;
        Ok(Part::Commit(commit, self.repository.packs().add(&objects)?))
    }

    /// The remote ref of a destination. `name` returns a unique name for this clone, if it has none yet.
    pub(crate) fn reference(&self, to: Destination, name: impl FnOnce() -> String) -> Result<String, Error> {
        const KEY: &str = "squad.clone";
        let name = match to {
            Destination::Log => return Ok(REFERENCE.to_owned()),
            Destination::Branch => return Ok(BRANCH.to_owned()),
            Destination::Own => match self.repository.setting(KEY)?.filter(|name| is_plain(name)) {
                Some(known) => known,
                None => {
                    let name = name();
                    self.repository.call(&["config", KEY, &name]).succeed()?;
                    name
                }
            },
        };
        Ok(format!("{CLONES}{name}"))
    }

    /// Deletes the remote's single-clone refs that this ledger fully contains, if they have not moved; the remote must
    /// already have this ledger. If deleting is not allowed, they stay and do no harm.
    pub(crate) fn tidy(&self) -> Result<(), Error> {
        let Some(ours) = self.tip()? else { return Ok(()) };
        let store = self.repository.objects();
        let tree = store.tree_of(&ours)?;
        let mut clones = self.remote_refs()?;
        clones.retain(|remote_ref| remote_ref.reference.starts_with(CLONES));
        let (mut leases, mut refspecs) = (Vec::new(), Vec::new());
        for remote_ref in &clones {
            let reader = TreeReader::new(&store, self.repository.damage());
            if count_missing(&reader, store.tree_of(&remote_ref.commit)?, &[tree])? == 0 && reader.is_whole() {
                leases.push(format!("--force-with-lease={}:{}", remote_ref.reference, remote_ref.commit));
                refspecs.push(format!(":{}", remote_ref.reference));
            }
        }
        if refspecs.is_empty() {
            return Ok(());
        }
        let call = self.call(&["push", "--quiet", "--no-signed"]).arguments(&leases);
        call.arguments(&["--", &self.name]).arguments(&refspecs).run()?;
        // The next fetch brings them back, if they still exist.
        clones.iter().try_for_each(|remote_ref| self.forget(remote_ref))
    }

    fn send(&self, ours: ObjectId, reference: &str) -> Result<PushResult, Error> {
        let refspec = format!("{ours}:{reference}");
        let arguments = ["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules", "--no-signed", "--"];
        let answer = self.call(&arguments).arguments(&[&self.name, &refspec]).run()?;
        if answer.is_success() {
            return Ok(PushResult::Done);
        }
        // `! <tab> from:to <tab> [rejected] (why)`
        let stderr = answer.text();
        let verdict =
            stderr.lines().find_map(|line| line.strip_prefix("!\t")?.split_once('\t').map(|(_, verdict)| verdict));
        match verdict {
            Some(verdict) => Ok(interpret(verdict, &answer.error_lines())),
            None => Err(Error::Program { command: format!("git push {}", self.name), message: answer.error_line() }),
        }
    }

    /// Whether `ledger` has all scrub records of `of`.
    fn has_records_of(&self, of: ObjectId, ledger: ObjectId) -> Result<bool, Error> {
        let store = self.repository.objects();
        let records = |commit: ObjectId| scrub::records(&store, store.tree_of(&commit)?);
        Ok(records(of)?.is_subset(&records(ledger)?))
    }
}

/// Interprets git's status of a pushed ref, `[summary] (reason)`. `stderr` is the other output of git and the remote.
fn interpret(verdict: &str, stderr: &[String]) -> PushResult {
    // Another push was faster, or is running.
    const RACES: [&str; 4] = ["cannot lock ref", "failed to update ref", "incorrect old value", "reference already"];
    // Messages of receive-pack; hosts use similar words for their own failures.
    const TROUBLES: [&str; 8] =
        ["unpacker error", "missing necessary", "failed", "unable", "internal", "unavailable", "timeout", "timed out"];
    let reason = match stderr.iter().filter_map(|line| line.strip_prefix("remote: ")).find(|line| is_telling(line)) {
        Some(words) => format!("{verdict}: {}", words.trim()),
        None => verdict.to_owned(),
    };
    if verdict.starts_with("[rejected]") || RACES.iter().any(|race| verdict.contains(race)) {
        return PushResult::Raced(reason);
    }
    let why = verdict.split_once('(').map_or("", |(_, why)| why).to_lowercase();
    let refusal = if why.contains("hidden ref") {
        Refusal::HiddenRef
    } else if !verdict.starts_with("[remote rejected]") || TROUBLES.iter().any(|trouble| why.contains(trouble)) {
        Refusal::Failed
    } else {
        Refusal::Declined
    };
    PushResult::Refused { reason, refusal }
}

/// Whether a line from the remote adds to the status.
fn is_telling(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("error: hook declined") && !line.starts_with("error: cannot lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(verdict: &str) -> Option<Refusal> {
        match interpret(verdict, &[]) {
            PushResult::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    #[test]
    fn a_push_status_tells_a_refused_ref_from_a_refused_push() {
        for (verdict, wanted) in [
            ("[rejected] (fetch first)", None),
            ("[rejected] (non-fast-forward)", None),
            ("[remote rejected] (failed to update ref)", None),
            ("[remote rejected] (cannot lock ref 'refs/squad/log': is at a but expected b)", None),
            ("[remote rejected] (incorrect old value provided)", None),
            ("[remote rejected] (deny updating a hidden ref)", Some(Refusal::HiddenRef)),
            ("[remote rejected] (hook declined)", Some(Refusal::Declined)),
            ("[remote rejected] (pre-receive hook declined)", Some(Refusal::Declined)),
            ("[remote rejected] (prohibited by Gerrit: not permitted: create)", Some(Refusal::Declined)),
            ("[remote rejected] (unpacker error)", Some(Refusal::Failed)),
            ("[remote rejected] (Internal Server Error)", Some(Refusal::Failed)),
            ("[remote failure] (remote failed to report status)", Some(Refusal::Failed)),
        ] {
            assert_eq!(refusal(verdict), wanted, "{verdict}");
        }
    }

    #[test]
    fn the_remotes_message_is_reported() {
        let stderr = ["remote: ", "remote: error: hook declined to update refs/squad/log", "remote: no such refs here"];
        let stderr: Vec<String> = stderr.map(str::to_owned).to_vec();
        let PushResult::Refused { reason, .. } = interpret("[remote rejected] (hook declined)", &stderr) else {
            panic!("it is a refusal");
        };
        assert_eq!(reason, "[remote rejected] (hook declined): no such refs here");
    }
}
