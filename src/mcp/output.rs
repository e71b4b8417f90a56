//! Where messages go: whole lines, one at a time, whoever writes them.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

pub(super) struct Output(Mutex<Stream>);

struct Stream {
    out: Box<dyn Write + Send>,
    /// Nobody reads any more.
    is_closed: bool,
}

impl Output {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(Stream { out, is_closed: false }))
    }

    pub(super) fn send(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !stream.is_closed {
            stream.is_closed = stream.out.write_all(line.as_bytes()).and_then(|()| stream.out.flush()).is_err();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_closed
    }
}
