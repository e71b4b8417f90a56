//! Accounts whose quota is used up. Every squad of the user's on this machine reads and writes the same file.
//!
//! ```text
//! (none) ─ an engine reports it ─→ closed until … ─ the time has come ─→ tried by one ─ the model answers ─→ (none)
//!                                       ↑                                     │
//!                                       └──────────── it is reported again ───┘
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::engine::{Account, Reset};
use crate::env::{Clock, SharedFile};

/// How long an account is left alone whose engine does not say when its quota is there again. It doubles each time.
const UNKNOWN: Duration = Duration::from_secs(60);
const LONGEST_UNKNOWN: Duration = Duration::from_secs(3_600);
/// The longest that an engine is believed.
const LONGEST: Duration = Duration::from_secs(31 * 86_400);
/// How long the others wait for the first sign of one that tries. It may have died.
const TRIAL: Duration = Duration::from_secs(60);
/// How often to look whether another squad has changed something.
const LOOK: Duration = Duration::from_secs(2);

pub(crate) struct Quotas {
    /// `None`: there is no place for it, so only this process knows.
    file: Option<SharedFile<Accounts>>,
    clock: Clock,
    /// Without a file, or what could not be written to it: it holds in this process.
    here: Mutex<Accounts>,
}

type Accounts = BTreeMap<String, UsedUp>;

/// An account whose quota is used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct UsedUp {
    /// The engine, and its endpoint if the user named one.
    pub(crate) account: String,
    /// What the engine said.
    pub(crate) reason: String,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    /// The engine said until when.
    pub(crate) is_known: bool,
    /// One is trying whether it is there again; `until` is how long the others wait for that.
    #[serde(default)]
    pub(crate) is_tried: bool,
    /// How often in a row it was reported without a time.
    #[serde(default)]
    unknown: u32,
}

/// Whether work may start on an account.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Admission {
    Free,
    /// As the first after its time: the others wait for what becomes of it.
    Trial,
    UsedUp(UsedUp),
}

/// What a run does about accounts whose quota is used up.
#[derive(Default)]
pub(crate) struct QuotaPolicy {
    /// Sleep until they may be used again, instead of ending the work.
    pub(crate) waits: bool,
    /// The accounts that the run has reported, by their keys, with their engines.
    pub(super) reported: Mutex<BTreeMap<String, String>>,
}

impl QuotaPolicy {
    pub(crate) fn new(waits: bool) -> Self {
        Self { waits, ..Self::default() }
    }
}

impl Quotas {
    pub(crate) fn new(file: Option<PathBuf>, clock: Clock) -> Self {
        Self { file: file.map(SharedFile::new), clock, here: Mutex::default() }
    }

    /// The accounts whose quota is used up, by their keys. The error names the file.
    pub(crate) fn all(&self) -> Result<BTreeMap<String, UsedUp>, String> {
        let mut all = match &self.file {
            Some(file) => file.read().map(Option::unwrap_or_default).map_err(|reason| unusable(&reason))?,
            None => Accounts::new(),
        };
        all.extend(self.here.lock().clone());
        Ok(all)
    }

    /// Lets work start on an account, or says why not. Whoever is let in for a trial has to end it.
    pub(super) fn enter(&self, account: &Account) -> Result<Admission, String> {
        let Some(known) = self.all()?.remove(&account.key) else { return Ok(Admission::Free) };
        let now = self.clock.now();
        if !known.is_due(now) && now >= known.since {
            return Ok(Admission::UsedUp(known));
        }
        self.change(|accounts| {
            let Some(known) = accounts.get_mut(&account.key) else { return Admission::Free };
            if now < known.since {
                // The clock was set back, so its times mean nothing. How long it was to take still does.
                let left = known.until.duration_since(known.since);
                (known.since, known.until) = (now, now.checked_add(left).unwrap_or(Timestamp::MAX));
            }
            if !known.is_due(now) {
                return Admission::UsedUp(known.clone());
            }
            (known.is_tried, known.since, known.until) = (true, now, after(now, TRIAL));
            Admission::Trial
        })
    }

    /// Whether nothing may start on an account now.
    pub(super) fn used_up(&self, account: &Account) -> Result<Option<UsedUp>, String> {
        let Some(known) = self.all()?.remove(&account.key) else { return Ok(None) };
        let now = self.clock.now();
        // If the clock was set back, whoever enters finds out what is left.
        Ok(Some(known).filter(|known| !known.is_due(now) && now >= known.since))
    }

    /// An engine says that a quota is used up.
    pub(super) fn report(&self, account: &Account, reason: &str, reset: Option<Reset>) -> Result<UsedUp, String> {
        let now = self.clock.now();
        let known = match reset {
            Some(Reset::In(time)) => Some(after(now, time.clamp(Duration::from_secs(1), LONGEST))),
            Some(Reset::At(at)) => Some(at.min(after(now, LONGEST))).filter(|at| *at > now),
            None => None,
        };
        let written = self.change(|accounts| {
            let before = accounts.get(&account.key);
            let unknown = before.map_or(0, |before| before.unknown) + u32::from(known.is_none());
            let wait = UNKNOWN.saturating_mul(1 << unknown.saturating_sub(1).min(8)).min(LONGEST_UNKNOWN);
            let until = known.unwrap_or_else(|| after(now, wait));
            let (account_name, reason) = (account.name.clone(), reason.to_owned());
            let new = UsedUp {
                account: account_name,
                reason,
                since: now,
                until,
                is_known: known.is_some(),
                is_tried: false,
                unknown,
            };
            match before {
                // Others were in a call, too, and this one knows no better.
                Some(before) if !before.is_tried && before.until > now && before.until >= new.until => before.clone(),
                Some(before) if !before.is_tried && before.until > now && !new.is_known => before.clone(),
                _ => {
                    accounts.insert(account.key.clone(), new.clone());
                    new
                }
            }
        });
        if written.is_err() {
            let (name, reason) = (account.name.clone(), reason.to_owned());
            let until = known.unwrap_or_else(|| after(now, UNKNOWN));
            let is_known = known.is_some();
            let new = UsedUp { account: name, reason, since: now, until, is_known, is_tried: false, unknown: 0 };
            self.here.lock().insert(account.key.clone(), new);
        }
        written
    }

    /// The model has answered.
    pub(super) fn close(&self, account: &Account) -> Result<(), String> {
        self.change(|accounts| drop(accounts.remove(&account.key)))
    }

    /// A trial has ended without an answer of the model: another one may try.
    pub(super) fn give_back(&self, account: &Account) -> Result<(), String> {
        let now = self.clock.now();
        self.change(|accounts| {
            if let Some(known) = accounts.get_mut(&account.key).filter(|known| known.is_tried) {
                (known.since, known.until) = (now, now);
            }
        })
    }

    /// Waits until something may start on one of these accounts, or the file cannot be read.
    pub(super) async fn wait(&self, accounts: &[Account]) {
        loop {
            let used_up: Result<Vec<_>, _> = accounts.iter().map(|account| self.used_up(account)).collect();
            let Ok(used_up) = used_up else { return };
            let Some(next) = used_up.into_iter().collect::<Option<Vec<UsedUp>>>() else { return };
            let now = self.clock.now();
            let left = next.iter().map(|known| known.until.duration_since(now)).min().unwrap_or_default();
            // The clock may be set, and another squad may find out first.
            sleep(Duration::try_from(left).unwrap_or_default().clamp(Duration::from_millis(100), LOOK)).await;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Accounts) -> T) -> Result<T, String> {
        match &self.file {
            Some(file) => {
                file.change(|accounts| change(accounts.get_or_insert_default())).map_err(|why| unusable(&why))
            }
            None => Ok(change(&mut self.here.lock())),
        }
    }
}

impl UsedUp {
    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.until
    }

    /// As a clause: `the quota of claude is used up until 14:05 UTC (rate limit)`.
    pub(crate) fn sentence(&self) -> String {
        let Self { account, reason, until, is_known, is_tried, .. } = self;
        let until = until.strftime("%Y-%m-%d %H:%M UTC");
        match (is_tried, is_known) {
            (true, _) => format!("another agent tries whether the quota of {account} is there again"),
            (false, true) => format!("the quota of {account} is used up until {until}: {reason}"),
            (false, false) => format!("the quota of {account} is used up, to be tried again at {until}: {reason}"),
        }
    }
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok()).unwrap_or(Timestamp::MAX)
}

/// Nothing starts as long as it is unknown whose quota is used up.
fn unusable(why: &str) -> String {
    format!("{why}; it says whose quotas are used up: delete it to try them again")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Squads that share a file and a clock, which moves on by a second with every look at it.
    struct World {
        folder: tempfile::TempDir,
        clock: Arc<AtomicU64>,
    }

    impl World {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().expect("a folder"), clock: Arc::new(AtomicU64::new(1_000_000)) }
        }

        fn squad(&self) -> Quotas {
            let start = "2026-01-05T09:00:00Z".parse().expect("a time");
            Quotas::new(Some(self.file()), Clock::Stepping { start, looks: Arc::clone(&self.clock) })
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("squad/quota.json")
        }

        fn set(&self, seconds: i64) {
            let now = self.clock.load(Ordering::Relaxed);
            self.clock.store(now.saturating_add_signed(seconds), Ordering::Relaxed);
        }
    }

    fn account(name: &str) -> Account {
        Account::new(name, None, [])
    }

    fn within(seconds: u64) -> Option<Reset> {
        Some(Reset::In(Duration::from_secs(seconds)))
    }

    fn is_used_up(admission: &Result<Admission, String>) -> bool {
        matches!(admission, Ok(Admission::UsedUp(_)))
    }

    #[test]
    fn two_squads_share_an_account_and_one_of_them_tries_it_again() {
        let world = World::new();
        let (one, other, ada, bob) = (world.squad(), world.squad(), account("a"), account("b"));
        assert_eq!(one.enter(&ada), Ok(Admission::Free));
        one.report(&ada, "429", within(600)).expect("it is written");
        assert!(is_used_up(&one.enter(&ada)) && is_used_up(&other.enter(&ada)));
        assert_eq!(other.enter(&bob), Ok(Admission::Free), "another account");
        world.set(700);
        assert_eq!(other.enter(&ada), Ok(Admission::Trial));
        assert!(is_used_up(&one.enter(&ada)), "one tries");
        other.report(&ada, "429 again", within(600)).expect("it is written");
        assert!(is_used_up(&one.enter(&ada)));
        world.set(700);
        assert_eq!(one.enter(&ada), Ok(Admission::Trial));
        one.give_back(&ada).expect("it is written");
        assert_eq!(other.enter(&ada), Ok(Admission::Trial), "another one may try");
        // The process that tries may be killed.
        world.set(TRIAL.as_secs() as i64 + 5);
        assert_eq!(one.enter(&ada), Ok(Admission::Trial));
        one.close(&ada).expect("it is written");
        assert_eq!((one.enter(&ada), other.enter(&ada)), (Ok(Admission::Free), Ok(Admission::Free)));
    }

    /// Set forward, the clock lets one try too early; set back, nobody waits longer than it was to take.
    #[test]
    fn a_clock_that_jumps_costs_no_more_than_one_call_or_one_wait() {
        let world = World::new();
        let (squad, ada) = (world.squad(), account("a"));
        squad.report(&ada, "429", within(600)).expect("it is written");
        world.set(86_400 * 365);
        assert_eq!(squad.enter(&ada), Ok(Admission::Trial));
        assert!(is_used_up(&squad.enter(&ada)));
        squad.report(&ada, "429", within(600)).expect("it is written");
        world.set(-86_400 * 365 + 100);
        assert!(is_used_up(&squad.enter(&ada)));
        world.set(500);
        assert!(is_used_up(&squad.enter(&ada)));
        world.set(200);
        assert_eq!(squad.enter(&ada), Ok(Admission::Trial));
    }

    /// What engines say of the time, and how long the account is left alone: rubbish for no longer than silence.
    #[test]
    fn an_engine_that_says_no_time_is_left_alone_for_longer_each_time() {
        let world = World::new();
        let (squad, ada) = (world.squad(), account("a"));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let known = squad.report(&ada, "429", None).expect("it is written");
            assert_eq!((known.until.duration_since(known.since).as_mins(), known.is_known), (minutes, false));
            world.set(minutes * 60 + 5);
            assert_eq!(squad.enter(&ada), Ok(Admission::Trial));
        }
        squad.close(&ada).expect("it is written");
        let past = Some(Reset::At(Timestamp::UNIX_EPOCH));
        for (reset, seconds) in [
            (past, 60),
            (within(0), 1),
            (within(u64::MAX), 31 * 86_400),
            (Some(Reset::At(Timestamp::MAX)), 31 * 86_400),
        ] {
            let known = squad.report(&ada, "429", reset).expect("it is written");
            assert_eq!(known.until.duration_since(known.since).as_secs(), seconds, "{reset:?}");
            squad.close(&ada).expect("it is written");
        }
    }

    #[test]
    fn others_that_were_in_a_call_do_not_shorten_the_wait() {
        let world = World::new();
        let (squad, ada) = (world.squad(), account("a"));
        let first = squad.report(&ada, "one", within(600)).expect("it is written");
        for reset in [None, within(5)] {
            assert_eq!(squad.report(&ada, "two", reset).expect("it is written"), first);
        }
        assert!(squad.report(&ada, "three", within(1_200)).expect("it is written").until > first.until);
    }

    #[test]
    fn a_file_that_cannot_be_read_lets_nobody_start() {
        for content in ["", "{", "[]", "{\"version\":9,\"content\":{}}", "{\"version\":1,\"content\":{\"a\":{}}}"] {
            let world = World::new();
            std::fs::create_dir_all(world.file().parent().expect("a folder")).expect("a folder");
            std::fs::write(world.file(), content).expect("a file");
            let squad = world.squad();
            for error in [squad.enter(&account("a")).err(), squad.report(&account("a"), "429", None).err()] {
                let error = error.expect("an error");
                assert!(error.contains("quota.json") && error.contains("delete it"), "{error}");
            }
        }
        let world = World::new();
        std::fs::create_dir_all(world.file()).expect("a folder");
        assert!(world.squad().enter(&account("a")).is_err(), "a folder in its place");
        // What cannot be written holds here.
        let world = World::new();
        std::fs::write(world.folder.path().join("squad"), "no folder").expect("a file");
        let squad = world.squad();
        assert_eq!(squad.enter(&account("a")), Ok(Admission::Free));
        assert!(squad.report(&account("a"), "429", within(600)).is_err());
        assert!(is_used_up(&squad.enter(&account("a"))));
        assert_eq!(squad.enter(&account("b")), Ok(Admission::Free));
    }
}
