//! What the client is told: facts are kept in a file before they are sent, and sent again after a break.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::grant::Grant;
use super::purse::Purse;
use crate::engine::Fact;
use crate::engine::connection::{CallError, Connection};
use crate::engine::remote::frames::{BudgetLease, NumberedFact, method};

/// How long the client may take to answer: a person may be asked.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How often to look whether anything is left to be used.
const LOOK: Duration = Duration::from_millis(200);
/// A closed connection is noticed here a moment before the client comes again.
const SETTLING: Duration = Duration::from_millis(20);

pub(super) struct Outbox {
    kept: Mutex<Kept>,
    connection: watch::Sender<Option<Arc<Connection>>>,
    /// Sessions are being closed: nobody waits for a client that is not there.
    is_closing: watch::Sender<bool>,
    purse: Mutex<Purse>,
    /// What nobody is told.
    secrets: OnceLock<Arc<Grant>>,
}

struct Kept {
    file: File,
    last: u64,
    /// The file may end in half a line: of a process that was killed, or that found the disk full.
    is_torn: bool,
}

impl Outbox {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let last = lines(&file)?.filter_map(|fact| fact["number"].as_u64()).max().unwrap_or(0);
        let is_torn = file.metadata()?.len() > 0;
        Ok(Self {
            kept: Mutex::new(Kept { file, last, is_torn }),
            connection: watch::Sender::new(None),
            is_closing: watch::Sender::new(false),
            purse: Mutex::new(Purse::of(None)),
            secrets: OnceLock::new(),
        })
    }

    /// Says what may be used from now on without the client, which has counted what the facts up to this number tell.
    pub(super) fn renew(&self, lease: Option<BudgetLease>, after: u64) -> std::io::Result<()> {
        let mut kept = self.kept.lock();
        // A host may have lost what it kept, and its client would take new facts for those that it had.
        kept.last = kept.last.max(after);
        let told = || Ok(lines(&kept.file)?.filter_map(|line| serde_json::from_value(line).ok()).collect());
        self.purse.lock().renew(lease, after, told)
    }

    /// Returns when nobody is there to ask and nothing may be used any more.
    pub(super) async fn is_used_up(&self) {
        let mut connection = self.connection.subscribe();
        loop {
            let _ = connection.wait_for(Option::is_none).await;
            let used_up = async {
                while !self.purse.lock().is_empty() {
                    sleep(LOOK).await;
                }
            };
            tokio::select! {
                () = used_up => return,
                _ = connection.wait_for(Option::is_some) => {}
            }
        }
    }

    /// The names of the model that a session works on, for its price.
    pub(super) fn opened(&self, session: u64, models: [Option<String>; 2]) {
        self.purse.lock().opened(session, models);
    }

    /// From here on, the values of these variables are in nothing that is told.
    pub(super) fn hide(&self, secrets: &Arc<Grant>) {
        // They come with the order, which stays the same.
        let _ = self.secrets.set(Arc::clone(secrets));
    }

    pub(super) fn tell(&self, session: u64, fact: Fact) {
        let secrets = self.secrets.get().filter(|secrets| !secrets.is_empty());
        let fact = match fact {
            // A value may be in several pieces.
            Fact::MessageDelta(_) if secrets.is_some() => Fact::Alive,
            fact => fact,
        };
        let is_passing = matches!(fact, Fact::Alive | Fact::MessageDelta(_));
        let mut kept = self.kept.lock();
        let number = if is_passing { 0 } else { kept.last.saturating_add(1) };
        let priced = if is_passing { None } else { self.purse.lock().count(number, session, &fact) };
        let mut fact = serde_json::to_value(NumberedFact { number, session, fact, priced }).unwrap_or_default();
        if let Some(secrets) = secrets {
            secrets.hide(&mut fact);
        }
        if !is_passing {
            kept.last = number;
            let line = format!("{}{fact}\n", if kept.is_torn { "\n" } else { "" });
            // A full disk must not stop the work, as long as the client hears of it.
            let written = kept.file.write_all(line.as_bytes()).and_then(|()| kept.file.sync_data());
            kept.is_torn = written.is_err();
            if let Err(error) = written {
                tracing::warn!("a fact could not be kept: {error}");
            }
        }
        if let Some(connection) = &*self.connection.borrow() {
            send(connection, &fact);
        }
    }

    /// Tells this client everything from here on, and first what came after the fact of this number.
    pub(super) fn attach(&self, connection: Arc<Connection>, after: u64) -> std::io::Result<()> {
        let kept = self.kept.lock();
        for fact in lines(&kept.file)?.filter(|fact| fact["number"].as_u64().is_some_and(|number| number > after)) {
            send(&connection, &fact);
        }
        let before = self.connection.send_replace(Some(Arc::clone(&connection)));
        // Its launcher may have ended without anybody here noticing: what was asked over it is asked again.
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, &connection)) {
            before.fail("another launch took over");
        }
        Ok(())
    }

    pub(super) fn detach(&self, connection: &Arc<Connection>) {
        self.connection.send_if_modified(|current| {
            let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection));
            current.take_if(|_| is_current);
            is_current
        });
    }

    /// Forgets what an earlier client was told, and what that had counted.
    pub(super) fn forget(&self) -> std::io::Result<()> {
        let mut kept = self.kept.lock();
        (kept.last, *self.purse.lock()) = (0, Purse::of(None));
        kept.file.set_len(0)
    }

    /// Returns when no client has been there for so long. The lease may change meanwhile: it comes with the order, and a
    /// client that brings a large repository is there only once all is ready.
    pub(super) async fn is_abandoned(&self, lease: impl Fn() -> Duration) {
        let mut connection = self.connection.subscribe();
        loop {
            let _ = connection.wait_for(Option::is_none).await;
            let since = Instant::now();
            loop {
                let left = lease().saturating_sub(since.elapsed());
                if left.is_zero() {
                    return;
                }
                if timeout(left, connection.wait_for(Option::is_some)).await.is_ok() {
                    break;
                }
            }
        }
    }

    /// While sessions are closed, nobody waits for a client that is not there: what they ask has no answer.
    pub(super) fn set_closing(&self, is_closing: bool) {
        self.is_closing.send_replace(is_closing);
    }

    /// Asks the client, over whichever connection there is. `None`: it refused, or it is gone and the session is closed.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let (mut current, mut closing) = (self.connection.subscribe(), self.is_closing.subscribe());
        loop {
            let connection = tokio::select! {
                biased;
                connection = current.wait_for(Option::is_some) => connection.ok()?.clone()?,
                _ = closing.wait_for(|is_closing| *is_closing) => return None,
            };
            match connection.request(method, params, PATIENCE).await {
                Ok(answer) => return Some(answer),
                Err(CallError::Closed(_)) => sleep(SETTLING).await,
                Err(error) => {
                    tracing::warn!("the client refused `{method}`: {error}");
                    return None;
                }
            }
        }
    }
}

fn send(connection: &Connection, fact: &Value) {
    connection.send(&json!({ "method": method::FACT, "params": fact }));
}

/// The facts in the file. Half a line at its end is of a process that was killed.
fn lines(file: &File) -> std::io::Result<impl Iterator<Item = Value>> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(BufReader::new(file).lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// What this host still has × what the client had: no new fact has the number of an old one.
    #[tokio::test]
    async fn facts_are_numbered_after_those_that_the_client_had() {
        let folder = tempfile::tempdir().expect("a folder");
        for (kept, had) in [(0, 0), (3, 2), (3, 3), (0, 7), (2, 7)] {
            let file = folder.path().join(format!("{kept}-{had}"));
            let outbox = Outbox::open(&file).expect("a file");
            (0..kept).for_each(|_| outbox.tell(1, Fact::Idle));
            let again = Outbox::open(&file).expect("a file");
            again.renew(None, had).expect("it can be read");
            again.tell(1, Fact::Idle);
            let last = lines(&again.kept.lock().file).expect("lines").last().expect("a fact");
            assert_eq!(last["number"], kept.max(had) + 1, "{kept} kept, {had} had");
        }
    }

    /// Whether somebody is there × whether sessions are closed: only then, a question has no answer at once.
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_client_that_is_gone_while_sessions_are_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let outbox = Outbox::open(&folder.path().join("facts")).expect("a file");
        for is_closing in [false, true, false] {
            outbox.set_closing(is_closing);
            let asked = timeout(Duration::from_secs(60), outbox.ask(method::WORK, &Value::Null)).await;
            assert_eq!(asked.ok(), is_closing.then_some(None));
        }
        let asked = timeout(Duration::from_secs(60), outbox.ask(method::WORK, &Value::Null));
        let closed = async {
            sleep(Duration::from_secs(5)).await;
            outbox.set_closing(true);
        };
        let begun = Instant::now();
        assert_eq!(tokio::join!(asked, closed).0, Ok(None));
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    /// Where a process was killed while it wrote: what comes after is whole.
    #[tokio::test]
    async fn half_a_line_costs_no_later_fact() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("facts");
        let outbox = Outbox::open(&file).expect("a file");
        outbox.tell(1, Fact::Message("whole".to_owned()));
        let whole = std::fs::read_to_string(&file).expect("a file");
        let half = whole.replace("\"number\":1", "\"number\":2");
        for bytes in 0..=half.len() {
            std::fs::write(&file, whole.clone() + &half[..bytes]).expect("a file");
            let again = Outbox::open(&file).expect("a file");
            (0..2).for_each(|_| again.tell(1, Fact::Idle));
            let kept = again.kept.lock();
            let told = lines(&kept.file).expect("lines").map(|fact| fact["number"].as_u64());
            let expected = if bytes + 1 < half.len() { 3 } else { 4 };
            assert_eq!(told.collect::<Vec<_>>(), (1..=expected).map(Some).collect::<Vec<_>>(), "{bytes} bytes");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_comes_late_counts_from_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let outbox = Outbox::open(&folder.path().join("facts")).expect("a file");
        for (order_after, lease, ends_after) in [(60, 3600, 3600), (60, 30, 120), (500, 3600, 120)] {
            let seconds = AtomicU64::new(120);
            let begun = Instant::now();
            let ordered = async {
                sleep(Duration::from_secs(order_after)).await;
                seconds.store(lease, Ordering::Relaxed);
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = outbox.is_abandoned(|| Duration::from_secs(seconds.load(Ordering::Relaxed))) => {}
                () = ordered => {}
            }
            assert_eq!(begun.elapsed().as_secs(), ends_after, "an order after {order_after} s with {lease} s");
        }
    }
}
