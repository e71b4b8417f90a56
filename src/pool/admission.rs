//! Whether work may start: not on an account whose quota is used up.

use super::quotas::{Admission, UsedUp};
use super::workers::Work;
use super::{Cancel, Workers};
use crate::engine::{Account, Reset};
use crate::model::{EventKind, Outcome, first_line, printable};

/// Characters of what an engine said that are kept.
const SAID: usize = 200;

impl Workers {
    /// Lets work start on its engine or, where that one's quota is used up, on a fallback, which is returned. The error is
    /// why it may not start.
    pub(super) async fn admit(&self, engine: Option<&str>, work: &mut Work) -> Result<Option<String>, String> {
        let engines = &self.pool.engines;
        let candidates = engines.candidates(engine);
        let accounts: Vec<Account> = candidates.iter().map(|name| engines.account(name)).collect();
        loop {
            let mut refused: Option<UsedUp> = None;
            for (candidate, account) in candidates.iter().zip(&accounts) {
                let admission = engines.quotas().enter(account)?;
                if let Admission::UsedUp(known) = admission {
                    self.report_used_up(candidate, account, &known);
                    refused.get_or_insert(known);
                    continue;
                }
                self.entered(account, admission == Admission::Trial, work);
                let Some(known) = refused else { return Ok(None) };
                if let (Some(from), reason) = (candidates.first(), known.sentence()) {
                    let (from, to) = ((*from).to_owned(), (*candidate).to_owned());
                    self.reports.tell(Some(&work.agent), EventKind::EngineFallback { from, to, reason });
                }
                return Ok(Some((*candidate).to_owned()));
            }
            let Some(known) = refused else { return Ok(None) };
            self.wait_for_quota(&known, &accounts, work).await?;
        }
    }

    /// Waits until a message may be sent in a session; how the work ends if it may not.
    pub(super) async fn may_send(&self, work: &mut Work, cancel: &mut Cancel) -> Result<(), (Outcome, String)> {
        let Some(account) = work.account.clone().filter(|_| !work.is_trial) else { return Ok(()) };
        let stopped = |reason| (Outcome::Stopped, reason);
        loop {
            let admission = self.pool.engines.quotas().enter(&account).map_err(stopped)?;
            let Admission::UsedUp(known) = admission else {
                self.entered(&account, admission == Admission::Trial, work);
                return Ok(());
            };
            let engine = work.engine.clone();
            self.report_used_up(&engine, &account, &known);
            tokio::select! {
                biased;
                () = cancel.wait() => return Err((Outcome::Cancelled, cancel.reason().to_owned())),
                waited = self.wait_for_quota(&known, std::slice::from_ref(&account), work) => waited.map_err(stopped)?,
            }
        }
    }

    /// The engine says that the account's quota is used up. Waits, as [`Self::may_send`] does.
    pub(super) async fn quota_used_up(
        &self,
        (reason, reset): (&str, Option<Reset>),
        work: &mut Work,
        cancel: &mut Cancel,
    ) -> Result<(), (Outcome, String)> {
        let reason = first_line(&printable(reason), SAID);
        work.is_trial = false;
        // Without an account there is nothing to share.
        let Some(account) = work.account.clone() else { return Err((Outcome::Stopped, reason)) };
        let known = self.pool.engines.quotas().report(&account, &reason, reset);
        let known = known.map_err(|error| (Outcome::Stopped, format!("{reason}; {error}")))?;
        let engine = work.engine.clone();
        self.report_used_up(&engine, &account, &known);
        if self.quota.waits { self.may_send(work, cancel).await } else { Err((Outcome::Stopped, known.sentence())) }
    }

    /// The model has answered: whoever tried the account has found that its quota is there again.
    pub(super) fn model_answered(&self, work: &mut Work) {
        if let (true, Some(account)) = (std::mem::take(&mut work.is_trial), &work.account) {
            // What cannot be written is tried again later.
            let _ = self.pool.engines.quotas().close(account);
            self.report_there_again(account);
        }
    }

    /// Lets another one try the account, unless this work has found out.
    pub(super) fn end_trial(&self, work: &mut Work) {
        if let (true, Some(account)) = (std::mem::take(&mut work.is_trial), &work.account) {
            let _ = self.pool.engines.quotas().give_back(account);
        }
    }

    fn entered(&self, account: &Account, is_trial: bool, work: &mut Work) {
        work.account = Some(account.clone());
        work.is_trial = is_trial;
        if !is_trial {
            self.report_there_again(account);
        }
    }

    async fn wait_for_quota(&self, known: &UsedUp, accounts: &[Account], work: &Work) -> Result<(), String> {
        // What another one finds out is known soon.
        if !known.is_tried && !self.quota.waits {
            return Err(known.sentence());
        }
        work.permit.begin_wait();
        self.reports.tell(Some(&work.agent), EventKind::QuotaWaiting { engine: known.account.clone() });
        self.pool.engines.quotas().wait(accounts).await;
        self.reports.tell(Some(&work.agent), EventKind::QuotaWaited {});
        work.permit.end_wait().await;
        Ok(())
    }

    fn report_used_up(&self, engine: &str, account: &Account, known: &UsedUp) {
        let is_new = || self.quota.reported.lock().insert(account.key.clone(), engine.to_owned()).is_none();
        if !known.is_tried && is_new() {
            let (engine, reason) = (engine.to_owned(), known.reason.clone());
            let until = known.is_known.then_some(known.until);
            self.reports.tell(None, EventKind::QuotaOpened { engine, reason, until });
        }
    }

    fn report_there_again(&self, account: &Account) {
        if let Some(engine) = self.quota.reported.lock().remove(&account.key) {
            self.reports.tell(None, EventKind::QuotaClosed { engine });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use tokio::sync::mpsc;

    use super::*;
    use crate::engine::Engine;
    use crate::engine::rehearsal::{Rehearsal, Script};
    use crate::env::Clock;
    use crate::pool::dispatcher::Message;
    use crate::pool::workers_tests::{MINUTES, job, workers};
    use crate::pool::{Engines, Permits, QuotaPolicy, Quotas, SessionPool};

    const AGENTS: usize = 50;
    const PERMITS: usize = 4;

    fn name(number: usize) -> String {
        format!("agent-{number}")
    }

    /// A squad of fifty, of which one is told, as it begins, that the quota is used up.
    struct Squad {
        workers: Workers,
        messages: mpsc::UnboundedReceiver<Message>,
    }

    impl Squad {
        fn new(folder: &Path, looks: &Arc<AtomicU64>, (waits, refused): (bool, Option<usize>)) -> Self {
            let turn = |number: usize| {
                let quota = if refused == Some(number) { "{ quota = \"10m\" }, " } else { "" };
                let name = name(number);
                format!("[[turn]]\nagent = \"{name}\"\nsteps = [{quota}{{ wait = \"1s\" }}, {{ say = \"Done.\" }}]\n")
            };
            let script: String = (0..AGENTS).map(turn).collect();
            let (workers, messages) = workers(&script, PERMITS, MINUTES);
            let start = "2026-01-05T09:00:00Z".parse().expect("a time");
            let clock = Clock::Stepping { start, looks: Arc::clone(looks) };
            let engine = Engine::Rehearsal(Rehearsal::start(Some(Script::parse(&script).expect("a script"))));
            let engines = Engines::from(engine).with_quotas(Quotas::new(Some(folder.join("quota.json")), clock));
            let pool = Arc::new(SessionPool::of_one_run(engines, Permits::new(PERMITS)));
            Self { workers: Workers { pool, quota: Arc::new(QuotaPolicy::new(waits)), ..workers }, messages }
        }

        async fn work(&self) -> Vec<Work> {
            self.workers.fan_out((0..AGENTS).map(|number| job(&name(number))).collect()).await
        }

        fn told(&mut self, kind: &str) -> usize {
            let mut count = 0;
            while let Ok(message) = self.messages.try_recv() {
                count += usize::from(matches!(message, Message::Report(report) if report.kind.name() == kind));
            }
            count
        }
    }

    fn count(work: &[Work], outcome: Outcome) -> usize {
        work.iter().filter(|work| work.outcome == outcome).count()
    }

    /// Only those in a call end it; nobody else is sent a message, nor is anything tried again.
    #[tokio::test(start_paused = true)]
    async fn fifty_agents_of_which_the_third_is_refused() {
        let (folder, looks) = (tempfile::tempdir().expect("a folder"), Arc::default());
        let mut squad = Squad::new(folder.path(), &looks, (false, Some(2)));
        let work = squad.work().await;
        let completed: Vec<usize> = (0..AGENTS).filter(|number| work[*number].outcome == Outcome::Completed).collect();
        assert_eq!(completed, [0, 1, 3], "those that were in a call");
        assert_eq!(count(&work, Outcome::Stopped), AGENTS - 3);
        assert_eq!(work.iter().map(|work| work.usage.turns).sum::<u64>(), PERMITS as u64);
        assert!(
            work[40].reason.starts_with("the quota of rehearsal is used up until 2026-01-05 09:1"),
            "{}",
            work[40].reason
        );
        assert_eq!(squad.told("quota.opened"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn fifty_agents_that_wait_complete_after_one_trial() {
        let (folder, looks) = (tempfile::tempdir().expect("a folder"), Arc::default());
        let mut squad = Squad::new(folder.path(), &looks, (true, Some(2)));
        let work = squad.work().await;
        assert_eq!(count(&work, Outcome::Completed), AGENTS);
        assert_eq!(work.iter().map(|work| work.usage.turns).sum::<u64>(), AGENTS as u64 + 1);
        assert_eq!(squad.told("quota.closed"), 1);
        assert!(squad.workers.pool.engines.quotas().all().is_ok_and(|all| all.is_empty()));
    }

    /// The account of one squad is that of the other.
    #[tokio::test(start_paused = true)]
    async fn two_squads_at_once() {
        for (waits, in_one, in_other) in [(false, 3, 4), (true, AGENTS, AGENTS)] {
            let (folder, looks) = (tempfile::tempdir().expect("a folder"), Arc::default());
            let one = Squad::new(folder.path(), &looks, (waits, Some(2)));
            let mut other = Squad::new(folder.path(), &looks, (waits, None));
            let (work, of_other) = tokio::join!(one.work(), other.work());
            assert_eq!((count(&work, Outcome::Completed), count(&of_other, Outcome::Completed)), (in_one, in_other));
            assert_eq!(count(&of_other, Outcome::Stopped), AGENTS - in_other);
            assert_eq!(other.told("quota.opened"), 1, "its own record says why");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_starts_beside_a_file_of_rubbish() {
        for waits in [false, true] {
            let (folder, looks) = (tempfile::tempdir().expect("a folder"), Arc::default());
            std::fs::write(folder.path().join("quota.json"), "rubbish").expect("a file");
            let work = Squad::new(folder.path(), &looks, (waits, None)).work().await;
            assert_eq!(count(&work, Outcome::Stopped), AGENTS);
            assert!(work.iter().all(|work| work.usage.turns == 0 && work.reason.contains("quota.json")));
        }
    }

    /// The one that tries is cancelled: the next one does.
    #[tokio::test(start_paused = true)]
    async fn a_trial_that_finds_out_nothing_is_another_ones() {
        let (folder, looks) = (tempfile::tempdir().expect("a folder"), Arc::default());
        let squad = Squad::new(folder.path(), &looks, (false, Some(0)));
        assert_eq!(squad.workers.work(job(&name(0))).await.outcome, Outcome::Stopped);
        looks.fetch_add(600, std::sync::atomic::Ordering::Relaxed);
        let (canceller, cancel) = Cancel::channel();
        let cancelled = Workers { cancel, ..squad.workers.clone() };
        let (work, ()) = tokio::join!(cancelled.work(job(&name(1))), async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            canceller.run();
        });
        // It has said something by then, or not: it waits for a second first.
        assert_eq!(work.outcome, Outcome::Cancelled);
        let begun = tokio::time::Instant::now();
        assert_eq!(squad.workers.work(job(&name(2))).await.outcome, Outcome::Completed);
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }
}
