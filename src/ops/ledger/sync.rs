//! Brings the ledgers of this clone and of a remote together.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::git::{Delivery, Destination, Refusal, Remote, Repository, Standing};
use crate::model::{list, plural};
use crate::ops::ledger::journal::writer;
use crate::ops::ledger::lost;
use crate::ops::repository;
use crate::ops::team::turn;
use crate::record::{scrubbed_paths, settle};

/// How often others may be faster. Each time somebody else has got their entries through.
const ATTEMPTS: u64 = 50;

/// How often it is tried before a refusal is taken for more than a passing trouble.
const ROUNDS: usize = 3;

/// How often a ref may be said to move or to be locked while it stays as it is.
const STALLS: usize = 6;

/// What the command line says.
pub(crate) struct Wish {
    pub(crate) remote: Option<String>,
    pub(crate) is_rehearsal: bool,
    pub(crate) is_agreed: bool,
    /// To a ref that nobody else writes.
    pub(crate) to_own: bool,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Synced {
    pub(crate) remote: String,
    /// Where the ledger is kept there; `None`: not agreed on yet.
    pub(crate) reference: Option<String>,
    pub(crate) dry_run: bool,
    /// Entries that came from there, or would.
    pub(crate) taken: usize,
    /// Entries that went there, or would.
    pub(crate) sent: usize,
    /// Why the remote does not take the ref that the ledger belongs in, if it said so now.
    pub(crate) refused: Option<String>,
}

/// Fetches, unites and pushes. `ask` is asked once for each remote, before anything goes there.
pub(crate) fn sync(
    env: &Env,
    directory: &Path,
    wish: &Wish,
    ask: impl FnOnce(&Synced) -> bool,
) -> Result<Synced, Failure> {
    let (repository, _) = repository(env, directory)?;
    if !wish.is_rehearsal {
        lost::settle(env, &repository);
    }
    let name = choose(&repository, wish.remote.as_deref())?;
    let remote = repository.remote(&name);
    let agreed = remote.agreed()?;
    let mut synced = Synced {
        remote: name.clone(),
        reference: agreed.clone(),
        dry_run: wish.is_rehearsal,
        taken: 0,
        sent: 0,
        refused: None,
    };
    let _turn = turn::take(&repository.common_dir().join("squad").join("sync.lock"), "syncing", None)?;
    if !(wish.is_rehearsal || wish.to_own) {
        // What was fetched before is forgotten where the remote has something else by now.
        synced.taken = take_in(&remote, remote.standing()?)?;
    }
    let standing = if wish.to_own { remote.standing()? } else { remote.fetch()? };
    if wish.is_rehearsal || agreed.is_none() {
        let would = Synced { taken: standing.to_take, sent: standing.to_send, ..synced };
        if wish.is_rehearsal {
            return Ok(would);
        }
        if !wish.is_agreed && !ask(&would) {
            let entries = plural(would.sent, "entry");
            return Err(Failure::usage(format!(
                "the ledger has not gone to `{name}` before; {entries} would, for everyone who reads it"
            ))
            .hint("use `squad sync --yes` to agree, or `squad sync --dry-run` to look first"));
        }
        synced = Synced { reference: Some(remote.agree(Destination::Log)?), taken: 0, sent: 0, ..would };
    }
    if wish.to_own {
        return send_own(env, &remote, Synced { sent: standing.to_send, ..synced });
    }
    let own = own(env, &remote)?;
    let fell_back = agreed.is_some_and(|reference| reference.starts_with("refs/heads/"));
    Exchange { remote, own, fell_back, standing, synced, refused: Vec::new(), rounds: 0, stalls: 0 }.run()
}

/// Brings what was fetched into the ledger here. Returns how many entries that were.
fn take_in(remote: &Remote<'_>, standing: Standing) -> Result<usize, Failure> {
    remote.unite(&scrubbed_paths, &settle, &writer())?;
    Ok(standing.to_take)
}

/// Pushes to a ref of this clone's own. Nothing is taken: that is for whoever syncs next without `--own-ref`.
fn send_own(env: &Env, remote: &Remote<'_>, synced: Synced) -> Result<Synced, Failure> {
    let name = &synced.remote;
    let reference = own(env, remote)?;
    match remote.push(&reference, &writer())? {
        Delivery::Done => Ok(Synced { reference: Some(reference), ..synced }),
        Delivery::Outrun(_) | Delivery::Unscrubbed { .. } => {
            Err(Failure::failed(format!("`{name}` has something else under {reference}"))
                .hint("this clone may be a copy of another one: `git config --unset squad.clone`, then try again"))
        }
        Delivery::Refused { reason, .. } => {
            Err(Failure::failed(format!("`{name}` refuses the ledger: {reference}: {reason}"))
                .hint("`squad sync` without --own-ref falls back to a branch"))
        }
    }
}

fn own(env: &Env, remote: &Remote<'_>) -> Result<String, Failure> {
    Ok(remote.reference(Destination::Own, || env.ids.entry(env.clock.now()).to_string())?)
}

/// Entries on their way to a remote.
///
/// One refused push says little: a hook may have had a bad moment, a server may be short of something. So it is tried
/// again, and each time with a ref of this clone's own beside it: a host that takes that one takes custom refs. Only
/// where both were declined each time, or the host says that it hides them, the ledger goes to a branch. Every sync
/// looks everywhere and tries the ref of its own first, so nothing depends on all clones deciding alike.
struct Exchange<'a> {
    remote: Remote<'a>,
    /// The ref there that only this clone writes.
    own: String,
    /// The ledger went to the branch the last time.
    fell_back: bool,
    standing: Standing,
    synced: Synced,
    refused: Vec<Refused>,
    /// Of refusals.
    rounds: usize,
    /// How often a ref there was said to move and had not.
    stalls: usize,
}

struct Refused {
    to: Destination,
    reference: String,
    reason: String,
    refusal: Refusal,
}

/// What a push came to.
enum Pushed {
    Done,
    Outrun,
    Refused(Refusal),
}

enum Step {
    Delivered(Destination),
    Again,
    Undelivered,
}

impl Exchange<'_> {
    fn run(mut self) -> Result<Synced, Failure> {
        for attempt in 0..ATTEMPTS {
            self.synced.taken += take_in(&self.remote, self.standing)?;
            match self.attempt()? {
                Step::Delivered(to) => return self.delivered(to),
                Step::Undelivered => return self.undelivered(),
                Step::Again => {}
            }
            // So that clones that started together do not meet again.
            let pause = u64::from(std::process::id()) * 7 % 50 * (attempt + 1).min(8);
            thread::sleep(Duration::from_millis(pause + 100 * self.refused.len() as u64));
            let before = self.remote.tips()?;
            self.standing = self.remote.fetch()?;
            self.stalls += usize::from(self.remote.tips()? == before);
        }
        Err(Failure::failed(format!("`{}` kept changing while we pushed", self.synced.remote)).hint("try again later"))
    }

    fn attempt(&mut self) -> Result<Step, Failure> {
        let is_refused_as_such = match self.push(Destination::Log)? {
            Pushed::Done => return Ok(Step::Delivered(Destination::Log)),
            Pushed::Outrun => return Ok(Step::Again),
            Pushed::Refused(Refusal::OfSuchRefs) => true,
            // A host that refused custom refs before has to say so only once more.
            Pushed::Refused(Refusal::Declined) => self.fell_back,
            Pushed::Refused(Refusal::Failed) => false,
        };
        self.rounds += 1;
        if !is_refused_as_such && self.standing.to_send > 0 {
            self.push(Destination::Own)?;
        }
        if is_refused_as_such || self.are_custom_refs_declined() {
            match self.push(Destination::Branch)? {
                Pushed::Done => return Ok(Step::Delivered(Destination::Branch)),
                Pushed::Outrun => return Ok(Step::Again),
                Pushed::Refused(_) => {}
            }
        }
        Ok(if self.rounds < ROUNDS { Step::Again } else { Step::Undelivered })
    }

    /// Whether neither ref was ever taken, by the host's own decision.
    fn are_custom_refs_declined(&self) -> bool {
        let declined = |to: Destination| {
            let refusals =
                self.refused.iter().filter(|refused| refused.to == to && refused.refusal == Refusal::Declined);
            refusals.count()
        };
        declined(Destination::Log) >= ROUNDS && declined(Destination::Own) >= ROUNDS
    }

    fn push(&mut self, to: Destination) -> Result<Pushed, Failure> {
        let reference = match to {
            Destination::Own => self.own.clone(),
            _ => self.remote.reference(to, String::new)?,
        };
        let (reason, refusal) = match self.remote.push(&reference, &writer())? {
            Delivery::Done => {
                self.synced.sent += std::mem::take(&mut self.standing.to_send);
                return Ok(Pushed::Done);
            }
            Delivery::Outrun(_) if self.stalls < STALLS => return Ok(Pushed::Outrun),
            Delivery::Outrun(reason) => (reason, Refusal::Failed),
            Delivery::Refused { reason, refusal } => (reason, refusal),
            Delivery::Unscrubbed { theirs, ours } => {
                let name = &self.synced.remote;
                return Err(Failure::failed(format!(
                    "`{name}` still has the ledger as it was before `squad scrub`; what it had more is here now, and nothing \
                     was sent"
                ))
                .hint(format!(
                    "replace it there: git push --force-with-lease={reference}:{theirs} {name} {ours}:{reference}"
                )));
            }
        };
        self.refused.push(Refused { to, reference, reason, refusal });
        Ok(Pushed::Refused(refusal))
    }

    fn delivered(mut self, to: Destination) -> Result<Synced, Failure> {
        let reference = self.remote.reference(to, String::new)?;
        if self.synced.reference.as_ref() != Some(&reference) {
            self.synced.reference = Some(self.remote.agree(to)?);
            self.synced.refused = self.reason();
        }
        self.remote.tidy()?;
        Ok(self.synced)
    }

    /// The ledger's own ref was refused, and so was the branch where that was tried.
    fn undelivered(mut self) -> Result<Synced, Failure> {
        if self.remote.standing()?.to_send == 0 {
            // The remote has all of it elsewhere, where every sync looks too.
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
        let entries = plural(self.standing.to_send, "entry");
        Err(Failure::failed(format!("`{name}` refuses the ledger; {entries} not pushed: {tried}"))
            .hint("try again; if it keeps failing, ask the host to accept refs/squad/log or the branch squad/state"))
    }

    /// Why the ledger's own ref was refused, if it was.
    fn reason(&self) -> Option<String> {
        let refused = self.refused.iter().rev().find(|refused| refused.to == Destination::Log);
        refused.map(|refused| refused.reason.clone())
    }
}

fn choose(repository: &Repository, wanted: Option<&str>) -> Result<String, Failure> {
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
