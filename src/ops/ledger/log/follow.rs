use std::ops::ControlFlow;
use std::time::Duration;

use super::Choice;
use super::timeline::shown;
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::git::{Error, File, Repository, Snapshot};
use crate::model::{RunId, Sort};
use crate::ops::ledger::index::{Place, name_of};
use crate::ops::run::signals::Signals;
use crate::ops::runtime;
use crate::record::Read;

/// Pause between two checks of the ledger's tip: short enough to seem instant, and a check only reads a small file.
const PAUSE: Duration = Duration::from_millis(200);

/// Waits for entries added since a state of the ledger.
pub(crate) struct Follower<'a> {
    repository: &'a Repository,
    prefix: String,
    run: Option<RunId>,
    choice: Choice,
    /// The last state that was shown, with its commit.
    seen: Option<(String, Snapshot)>,
}

impl<'a> Follower<'a> {
    /// Starts after a commit of the ledger, or at its beginning.
    pub(crate) fn new(
        repository: &'a Repository,
        prefix: &str,
        run: Option<RunId>,
        choice: Choice,
        tip: Option<&str>,
    ) -> Result<Self, Error> {
        let seen = tip.map(|tip| Ok((tip.to_owned(), repository.ledger().snapshot_at(tip)?))).transpose()?;
        Ok(Self { repository, prefix: prefix.to_owned(), run, choice, seen })
    }

    /// Shows new entries in order of time, until `show` breaks.
    fn poll(&mut self, show: &mut impl FnMut(&str, Read) -> ControlFlow<()>) -> Result<ControlFlow<()>, Error> {
        let Some(tip) = self.repository.ledger().tip()? else { return Ok(ControlFlow::Continue(())) };
        if self.seen.as_ref().is_some_and(|(seen, _)| *seen == tip) {
            return Ok(ControlFlow::Continue(()));
        }
        let snapshot = self.repository.ledger().snapshot_at(&tip)?;
        let mut added: Vec<File> = Vec::new();
        for place in Place::ALL.map(|place| place.path(&self.prefix)) {
            added.extend(match &self.seen {
                Some((_, old)) => snapshot.added_since(old, &place)?,
                None => snapshot.listing(&place)?.value,
            });
        }
        added.stable_sort_by(|one, other| name_of(&one.path).cmp(name_of(&other.path)));
        for file in added {
            let bytes = snapshot.read(&file.path, &file.key())?;
            let read = shown(bytes.as_deref());
            if self.matches(&read, &bytes.unwrap_or_default()) && show(&file.path, read).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.seen = Some((tip, snapshot));
        Ok(ControlFlow::Continue(()))
    }

    fn matches(&self, read: &Read, bytes: &[u8]) -> bool {
        match (read, &self.run) {
            (Read::Entry(entry), run) => {
                (run.is_none() || entry.run == *run) && self.choice.matches(entry.at, entry.agent.as_ref())
            }
            (Read::Newer { .. } | Read::Damaged { .. }, Some(run)) => {
                String::from_utf8_lossy(bytes).contains(run.as_str())
            }
            (Read::Newer { .. } | Read::Damaged { .. }, None) => true,
        }
    }
}

/// Shows entries as any process records them, until `is_over`, a signal, or `show` breaks. Entries recorded before then
/// are still shown. Returns the exit code.
pub(crate) fn follow(
    env: &Env,
    mut follower: Follower<'_>,
    is_over: impl Fn() -> bool,
    mut show: impl FnMut(&str, Read) -> ControlFlow<()>,
) -> Result<u8, Failure> {
    runtime(env)?.block_on(async {
        let listen = || Signals::listen().map_err(|error| Failure::failed(format!("cannot wait for Ctrl-C: {error}")));
        let mut signals = if env.signals { Some(listen()?) } else { None };
        let signal = async {
            match &mut signals {
                Some(signals) => signals.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(signal);
        let mut is_interrupted = false;
        loop {
            let is_last = is_over();
            if follower.poll(&mut show)?.is_break() {
                return Ok(0);
            }
            if is_interrupted {
                return Ok(FailureKind::Interrupted.exit_code());
            }
            if is_last {
                return Ok(0);
            }
            tokio::select! {
                biased;
                () = &mut signal => is_interrupted = true,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    })
}
