//! Questions of ours to the client.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::output::Output;
use super::signal::{Signal, Wake};

/// Questions of ours to the client that have no answer yet.
#[derive(Default)]
pub(super) struct Questions {
    last: AtomicU64,
    open: Mutex<BTreeMap<String, mpsc::Sender<Option<Value>>>>,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, mpsc::Sender<Option<Value>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ask(&self, output: &Output, signal: &Signal, method: &str, params: Value) -> Option<Value> {
        let id = format!("squad-{}", self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, answered) = mpsc::channel();
        self.open().insert(id.clone(), sender);
        output.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            match answered.recv_timeout(Duration::from_millis(50)) {
                Ok(answer) => return answer,
                Err(mpsc::RecvTimeoutError::Timeout) if signal.wait(Duration::ZERO) == Wake::Elapsed => {}
                Err(_) => {
                    self.open().remove(&id);
                    return None;
                }
            }
        }
    }

    pub(super) fn answer(&self, id: &Value, result: Option<Value>) {
        let sender = id.as_str().and_then(|id| self.open().remove(id));
        // Who asked may have given up.
        sender.map(|sender| sender.send(result));
    }
}
