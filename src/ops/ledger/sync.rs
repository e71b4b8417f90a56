//! `squad sync`: synchronizes the ledgers of this clone and a remote.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Destination, Difference, PushResult, Refusal, Remote, Repository};
use crate::model::{Activity, list, plural};
use crate::ops::ledger::journal::writer;
use crate::ops::ledger::lost;
use crate::ops::repository;
use crate::ops::team::lock;
use crate::record::{scrubbed_paths, settle};

/// How often other clones may win the race. Each time another clone has pushed its entries.
const ATTEMPTS: u64 = 50;

/// How many refusals count as permanent.
const ROUNDS: usize = 3;

/// How often the remote may report a moved or locked ref that has not changed.
const STALLS: usize = 6;

/// Options from the command line.
pub(crate) struct Options {
    pub(crate) remote: Option<String>,
    pub(crate) dry_run: bool,
    /// Push to a ref that only this clone writes.
    pub(crate) own_ref: bool,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Synced {
    pub(crate) remote: String,
    /// The ledger's ref on the remote; `None`: not agreed on yet.
    pub(crate) reference: Option<String>,
    pub(crate) dry_run: bool,
    /// Entries received, or that would be.
    pub(crate) taken: usize,
    /// Entries sent, or that would be.
    pub(crate) sent: usize,
    /// Why the remote refused the ledger's regular ref, if it did this time.
    pub(crate) refused: Option<String>,
}

/// Fetches, merges and pushes. Calls `ask` before the first push to a remote.
pub(crate) fn sync(
    env: &Env,
    directory: &Path,
    options: &Options,
    ask: impl FnOnce(&Synced) -> bool,
) -> Result<Synced, Failure> {
    let (repository, _) = repository(env, directory)?;
    if !options.dry_run {
        lost::settle(env, &repository);
    }
    let name = choose(&repository, options.remote.as_deref())?;
    let remote = repository.remote(&name);
    let recorded_reference = remote.recorded_reference()?;
    let mut synced = Synced {
        remote: name.clone(),
        reference: recorded_reference.clone(),
        dry_run: options.dry_run,
        taken: 0,
        sent: 0,
        refused: None,
    };
    let lock = repository.own_folder().join("sync.lock");
    let _lock = lock::acquire(&lock, "syncing", repository.damage(), None)?;
    let activity = repository.damage().activity();
    activity.begin(format!("fetching the ledger from {name}"));
    if !(options.dry_run || options.own_ref) {
        // The next fetch overwrites earlier copies, so merge them first.
        synced.taken = merge_fetched(&remote, remote.difference()?)?;
    }
    let difference = if options.own_ref { remote.difference()? } else { remote.fetch()? };
    if options.dry_run || recorded_reference.is_none() {
        let planned = Synced { taken: difference.to_receive, sent: difference.to_send, ..synced };
        if options.dry_run {
            return Ok(planned);
        }
        if !ask(&planned) {
            let entries = plural(planned.sent, "entry");
            return Err(Failure::usage(format!(
                "the ledger was never pushed to `{name}`; everyone who can read it would see {entries}"
            ))
            .hint("use `squad sync --yes` to confirm, or `squad sync --dry-run` to look first"));
        }
        synced = Synced { reference: Some(remote.record_reference(Destination::Log)?), taken: 0, sent: 0, ..planned };
    }
    if options.own_ref {
        return send_own(env, &remote, Synced { sent: difference.to_send, ..synced });
    }
    let own = own_reference(env, &remote)?;
    let fell_back = recorded_reference.is_some_and(|reference| reference.starts_with("refs/heads/"));
    Exchange { activity, remote, own, fell_back, difference, synced, refused: Vec::new(), rounds: 0, stalls: 0 }.run()
}

/// Merges the fetched ledgers into ours. Returns the number of new entries.
fn merge_fetched(remote: &Remote<'_>, difference: Difference) -> Result<usize, Failure> {
    remote.merge_fetched(&scrubbed_paths, &settle, &writer())?;
    Ok(difference.to_receive)
}

/// Pushes to this clone's own ref without receiving anything. The next sync without `--own-ref` merges it.
fn send_own(env: &Env, remote: &Remote<'_>, synced: Synced) -> Result<Synced, Failure> {
    let name = &synced.remote;
    let reference = own_reference(env, remote)?;
    match remote.push(&reference, &writer())? {
        PushResult::Done => Ok(Synced { reference: Some(reference), ..synced }),
        PushResult::Raced(_) | PushResult::Unscrubbed { .. } => {
            Err(Failure::failed(format!("`{name}` has something else under {reference}"))
                .hint("this clone may be a copy of another one: `git config --unset squad.clone`, then try again"))
        }
        PushResult::Refused { reason, .. } => {
            Err(Failure::failed(format!("`{name}` refuses the ledger: {reference}: {reason}"))
                .hint("`squad sync` without --own-ref falls back to a branch"))
        }
    }
}

fn own_reference(env: &Env, remote: &Remote<'_>) -> Result<String, Failure> {
    Ok(remote.reference(Destination::Own, || env.ids.entry(env.clock.now()).to_string())?)
}

/// A push with retries and fallbacks.
///
/// A single refused push means little: a hook or server may have had a temporary failure. So we retry, and each time
/// also push to this clone's own ref: a host that accepts it accepts custom refs. Only if both were declined every
/// time, or the host says that it hides them, the ledger goes to a branch. Every sync reads all refs and tries the
/// ledger's regular ref first, so clones need not make the same decision.
struct Exchange<'a> {
    activity: &'a Activity,
    remote: Remote<'a>,
    /// The remote ref that only this clone writes.
    own: String,
    /// The ledger went to the branch last time.
    fell_back: bool,
    difference: Difference,
    synced: Synced,
    refused: Vec<Refused>,
    /// The number of refusals so far.
    rounds: usize,
    /// How often the remote reported a moved ref that had not moved.
    stalls: usize,
}

struct Refused {
    to: Destination,
    reference: String,
    reason: String,
    refusal: Refusal,
}

/// The result of a push.
enum PushOutcome {
    Done,
    Raced,
    Refused(Refusal),
}

enum Step {
    Delivered(Destination),
    Retry,
    Failed,
}

impl Exchange<'_> {
    fn run(mut self) -> Result<Synced, Failure> {
        for attempt in 0..ATTEMPTS {
            self.activity.begin(format!("sending the ledger to {}", self.synced.remote));
            self.synced.taken += merge_fetched(&self.remote, self.difference)?;
            match self.attempt()? {
                Step::Delivered(to) => return self.delivered(to),
                Step::Failed => return self.failed(),
                Step::Retry => {}
            }
            // Spreads out clones that started together.
            let pause = u64::from(std::process::id()) * 7 % 50 * (attempt + 1).min(8);
            thread::sleep(Duration::from_millis(pause + 100 * self.refused.len() as u64));
            let before = self.remote.tips()?;
            self.difference = self.remote.fetch()?;
            self.stalls += usize::from(self.remote.tips()? == before);
        }
        Err(Failure::failed(format!("`{}` kept changing while we pushed", self.synced.remote)).hint("try again later"))
    }

    fn attempt(&mut self) -> Result<Step, Failure> {
        let is_refused_as_such = match self.push(Destination::Log)? {
            PushOutcome::Done => return Ok(Step::Delivered(Destination::Log)),
            PushOutcome::Raced => return Ok(Step::Retry),
            PushOutcome::Refused(Refusal::HiddenRef) => true,
            // If the host refused custom refs before, one more refusal is enough.
            PushOutcome::Refused(Refusal::Declined) => self.fell_back,
            PushOutcome::Refused(Refusal::Failed) => false,
        };
        self.rounds += 1;
        if !is_refused_as_such && self.difference.to_send > 0 {
            self.push(Destination::Own)?;
        }
        if is_refused_as_such || self.are_custom_refs_declined() {
            match self.push(Destination::Branch)? {
                PushOutcome::Done => return Ok(Step::Delivered(Destination::Branch)),
                PushOutcome::Raced => return Ok(Step::Retry),
                PushOutcome::Refused(_) => {}
            }
        }
        Ok(if self.rounds < ROUNDS { Step::Retry } else { Step::Failed })
    }

    /// Whether the host declined both refs in every round.
    fn are_custom_refs_declined(&self) -> bool {
        let declined = |to: Destination| {
            let refusals =
                self.refused.iter().filter(|refused| refused.to == to && refused.refusal == Refusal::Declined);
            refusals.count()
        };
        declined(Destination::Log) >= ROUNDS && declined(Destination::Own) >= ROUNDS
    }

    fn push(&mut self, to: Destination) -> Result<PushOutcome, Failure> {
        let reference = match to {
            Destination::Own => self.own.clone(),
            _ => self.remote.reference(to, String::new)?,
        };
        let (reason, refusal) = match self.remote.push(&reference, &writer())? {
            PushResult::Done => {
                self.synced.sent += std::mem::take(&mut self.difference.to_send);
                return Ok(PushOutcome::Done);
            }
            PushResult::Raced(_) if self.stalls < STALLS => return Ok(PushOutcome::Raced),
            PushResult::Raced(reason) => (reason, Refusal::Failed),
            PushResult::Refused { reason, refusal } => (reason, refusal),
            PushResult::Unscrubbed { theirs, ours } => {
                let name = &self.synced.remote;
                return Err(Failure::failed(format!(
                    "`{name}` still has the ledger from before `squad scrub`; its new entries were merged here, and nothing \
                     was pushed"
                ))
                .hint(format!(
                    "replace it there: git push --force-with-lease={reference}:{theirs} {name} {ours}:{reference}"
                )));
            }
        };
        self.refused.push(Refused { to, reference, reason, refusal });
        Ok(PushOutcome::Refused(refusal))
    }

    fn delivered(mut self, to: Destination) -> Result<Synced, Failure> {
        let reference = self.remote.reference(to, String::new)?;
        if self.synced.reference.as_ref() != Some(&reference) {
            self.synced.reference = Some(self.remote.record_reference(to)?);
            self.synced.refused = self.reason();
        }
        self.remote.tidy()?;
        Ok(self.synced)
    }

    /// The ledger's regular ref was refused, and the branch too if it was tried.
    fn failed(mut self) -> Result<Synced, Failure> {
        if self.remote.difference()?.to_send == 0 {
            // The remote has all entries under other refs, which every sync reads.
            self.synced.refused = self.reason();
            if self.synced.sent > 0 {
                self.synced.reference = Some(self.own);
            }
            return Ok(self.synced);
        }
        let mut tried: Vec<String> = Vec::new();
        for Refused { reference, reason, .. } in self.refused {
            let line = format!("{reference}: {reason}");
            if !tried.contains(&line) {
                tried.push(line);
            }
        }
        let (name, tried) = (&self.synced.remote, tried.join("; "));
        let entries = plural(self.difference.to_send, "entry");
        Err(Failure::failed(format!("`{name}` refuses the ledger; {entries} not pushed: {tried}"))
            .hint("try again; if it keeps failing, ask the host to accept refs/squad/log or the branch squad/state"))
    }

    /// Why the ledger's regular ref was refused, if it was.
    fn reason(&self) -> Option<String> {
        let refused = self.refused.iter().rev().find(|refused| refused.to == Destination::Log);
        refused.map(|refused| refused.reason.clone())
    }
}

/// The remote of a name, or the one that is used without one.
pub(in crate::ops) fn choose(repository: &Repository, wanted: Option<&str>) -> Result<String, Failure> {
    let names = repository.remotes()?;
    match wanted {
        Some(wanted) => names.iter().find(|name| *name == wanted).cloned().ok_or_else(|| {
            let known = if names.is_empty() { "none".to_owned() } else { list(&names) };
            Failure::usage(format!("there is no remote `{wanted}`")).hint(format!("remotes: {known}"))
        }),
        None => names
            .into_iter()
            .next()
            .ok_or_else(|| Failure::usage("there is no remote to sync with").hint("git remote add origin URL")),
    }
}
