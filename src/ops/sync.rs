//! Brings the ledgers of this clone and of a remote together.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::journal::writer;
use super::repository;
use crate::env::Env;
use crate::error::Failure;
use crate::git::{Delivery, Remote, Repository, Standing};
use crate::model::{list, plural};
use crate::record::{scrubbed_paths, settle};

/// How often others may be faster. Each time somebody else has got their entries through.
const ATTEMPTS: u64 = 50;

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
    /// Why the remote takes no ref of its own for the ledger, if it said so now.
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
    let name = choose(&repository, wish.remote.as_deref())?;
    let remote = repository.remote(&name);
    let agreed = remote.agreed()?;
    let mut standing = if wish.to_own { remote.standing()? } else { remote.fetch(agreed.as_deref())? };
    let mut synced = Synced {
        remote: name.clone(),
        reference: agreed,
        dry_run: wish.is_rehearsal,
        taken: standing.to_take,
        sent: standing.to_send,
        refused: None,
    };
    if wish.is_rehearsal {
        return Ok(synced);
    }
    if synced.reference.is_none() {
        if !wish.is_agreed && !ask(&synced) {
            let entries = plural(synced.sent, "entry");
            return Err(Failure::usage(format!(
                "the ledger has not gone to `{name}` before; {entries} would, for everyone who reads it"
            ))
            .hint("`squad sync --yes` agrees to it, `squad sync --dry-run` only looks"));
        }
        synced.reference = Some(remote.agree(false)?);
    }
    synced.sent = 0;
    synced.taken = 0;
    if wish.to_own {
        return send_own(env, &remote, &name, Synced { sent: standing.to_send, ..synced });
    }
    for attempt in 0..ATTEMPTS {
        synced.taken += standing.to_take;
        remote.unite(&scrubbed_paths, &settle, &writer())?;
        match deliver(&remote, &mut synced)? {
            Delivery::Done => {
                synced.sent = standing.to_send;
                remote.tidy()?;
                return Ok(synced);
            }
            Delivery::Outrun => {
                // So that clones that started together do not meet again.
                thread::sleep(Duration::from_millis(u64::from(std::process::id()) * 7 % 50 * (attempt + 1).min(8)));
                standing = remote.fetch(synced.reference.as_deref())?;
            }
            Delivery::Unscrubbed { theirs, ours } => {
                let reference = synced.reference.as_deref().unwrap_or_default();
                return Err(Failure::failed(format!(
                    "`{name}` still has the ledger as it was before `squad scrub`; what it had more is here now, and nothing \
                     was sent"
                ))
                .hint(format!(
                    "replace it there: git push --force-with-lease={reference}:{theirs} {name} {ours}:{reference}"
                )));
            }
            Delivery::Refused(reason) => {
                return Err(Failure::failed(format!("`{name}` does not take the ledger: {reason}"))
                    .hint("ask whoever runs it to accept refs/squad/log, or the branch squad/state"));
            }
        }
    }
    Err(Failure::failed(format!("others push to `{name}` all the time")).hint("try again later"))
}

/// Pushes to a ref of this clone's own. Nothing is taken: that is for whoever syncs next without `--own-ref`.
fn send_own(env: &Env, remote: &Remote<'_>, name: &str, synced: Synced) -> Result<Synced, Failure> {
    match remote.push_own(|| env.ids.entry(env.clock.now()).to_string())? {
        (reference, Delivery::Done) => Ok(Synced { reference: Some(reference), ..synced }),
        (reference, Delivery::Outrun | Delivery::Unscrubbed { .. }) => {
            Err(Failure::failed(format!("`{name}` has something else under {reference}"))
                .hint("this clone may be a copy of another one: `git config --unset squad.clone`, then try again"))
        }
        (_, Delivery::Refused(reason)) => Err(Failure::failed(format!("`{name}` does not take the ledger: {reason}"))
            .hint("`squad sync` without --own-ref falls back to a branch")),
    }
}

/// Pushes, to a branch where the remote refuses what is no branch.
fn deliver(remote: &Remote<'_>, synced: &mut Synced) -> Result<Delivery, Failure> {
    let Some(reference) = synced.reference.clone() else { return Ok(Delivery::Done) };
    match remote.push(&reference)? {
        Delivery::Refused(reason) if !reference.starts_with("refs/heads/") => {
            let branch = remote.agree(true)?;
            synced.refused = Some(reason);
            synced.reference = Some(branch.clone());
            // It may be there already, from another clone.
            if remote.fetch(Some(&branch))? != Standing::default() {
                remote.unite(&scrubbed_paths, &settle, &writer())?;
            }
            Ok(remote.push(&branch)?)
        }
        delivery => Ok(delivery),
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
