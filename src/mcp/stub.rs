//! A service for tests.

use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};

use super::call::Call;
use super::fault::Fault;
use super::result::ToolResult;
use super::service::{Object, Service};

/// A service whose one tool answers when the test says so.
pub(super) struct Stub(Mutex<mpsc::Receiver<()>>);

impl Stub {
    /// Each message lets one call answer.
    pub(super) fn new() -> (Self, mpsc::Sender<()>) {
        let (finish, wait) = mpsc::channel();
        (Self(Mutex::new(wait)), finish)
    }
}

impl Service for Stub {
    fn instructions(&self) -> String {
        String::new()
    }

    fn tools(&self) -> Vec<Value> {
        vec![json!({"name": "wait", "inputSchema": {"type": "object"}})]
    }

    fn call(&self, _tool: &str, _arguments: Object, _call: &Call) -> Result<ToolResult, Fault> {
        let _ = self.0.lock().expect("no call panics").recv();
        Ok(ToolResult::text("finished"))
    }
}
