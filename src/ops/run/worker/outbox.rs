//! What the client is told: facts are kept in a file before they are sent, and sent again after a break.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::engine::Fact;
use crate::engine::connection::{CallError, Connection};
use crate::engine::remote::frames::{NumberedFact, method};

/// How long the client may take to answer: a person may be asked.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A closed connection is noticed here a moment before the client comes again.
const SETTLING: Duration = Duration::from_millis(20);

pub(super) struct Outbox {
    kept: Mutex<Kept>,
    connection: watch::Sender<Option<Arc<Connection>>>,
}

struct Kept {
    file: File,
    last: u64,
}

impl Outbox {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let last = lines(&file)?.filter_map(|fact| fact["number"].as_u64()).max().unwrap_or(0);
        Ok(Self { kept: Mutex::new(Kept { file, last }), connection: watch::Sender::new(None) })
    }

    pub(super) fn tell(&self, session: u64, fact: Fact) {
        let is_passing = matches!(fact, Fact::Alive | Fact::MessageDelta(_));
        let mut kept = self.kept.lock();
        let number = if is_passing { 0 } else { kept.last + 1 };
        let fact = serde_json::to_value(NumberedFact { number, session, fact }).unwrap_or_default();
        if !is_passing {
            kept.last = number;
            let line = format!("{fact}\n");
            // A full disk must not stop the work, as long as the client hears of it.
            let written = kept.file.write_all(line.as_bytes()).and_then(|()| kept.file.sync_data());
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

    /// Forgets what an earlier client was told.
    pub(super) fn forget(&self) -> std::io::Result<()> {
        self.kept.lock().file.set_len(0)
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

    /// Asks the client, over whichever connection there is. `None`: it refused.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let mut current = self.connection.subscribe();
        loop {
            let connection = current.wait_for(Option::is_some).await.ok()?.clone()?;
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
