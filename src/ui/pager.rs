//! Long output, which a person reads in a pager.

use std::io::{self, Write};
use std::process::{Child, ChildStdin};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Ui;

/// The pager that has stdout, and what is kept for when it ends.
pub(super) struct Pager {
    program: Program,
    /// The streams of the terminal.
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    /// All data, in case the pager fails, and the messages, which would be lost behind it.
    data: Kept,
    messages: Kept,
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone)]
struct Program(Arc<Mutex<Child>>);

impl Program {
    /// Waits for its end. A person who leaves a pager, by a signal too, has seen enough.
    fn has_failed(&self) -> bool {
        self.0.lock().wait().is_ok_and(|status| status.code().is_some_and(|code| code != 0))
    }
}

/// Writes to the pager, and keeps what is written.
struct ToPager {
    input: ChildStdin,
    program: Program,
    data: Kept,
}

impl Write for ToPager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.data.write(bytes)?;
        match self.input.write_all(bytes) {
            Err(_) if self.program.has_failed() => Ok(count),
            written => written.map(|()| count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.flush()
    }
}

impl Ui {
    /// Whether a person reads stdout and can turn pages.
    pub(crate) fn can_page(&self) -> bool {
        let Self { streams, options, .. } = self;
        streams.out_is_terminal && streams.in_is_terminal && !options.json && !options.plain && options.pages
    }

    /// Gives stdout to a pager, whose standard input is a pipe.
    pub(crate) fn page_through(&mut self, mut child: Child) {
        let Some(input) = child.stdin.take() else { return };
        let (data, messages, program) = (Kept::default(), Kept::default(), Program(Arc::new(Mutex::new(child))));
        let to_pager = ToPager { input, program: program.clone(), data: data.clone() };
        let out = std::mem::replace(&mut self.streams.out, Box::new(to_pager));
        let err = std::mem::replace(&mut self.streams.err, Box::new(messages.clone()));
        self.pager = Some(Pager { program, out, err, data, messages });
    }

    /// Waits until the person has read it. What a failing pager did not show is printed.
    pub(crate) fn end_paging(&mut self) {
        let Some(Pager { program, out, err, data, messages }) = self.pager.take() else { return };
        // Closes the pipe, at whose end the pager waits for the person only.
        self.streams.out = out;
        self.streams.err = err;
        self.out_closed = false;
        if program.has_failed() {
            let data = std::mem::take(&mut *data.0.lock());
            self.write_out(&data);
        }
        let messages = std::mem::take(&mut *messages.0.lock());
        // A stderr that nobody reads is no reason to stop.
        let _ = self.streams.err.write_all(&messages);
    }
}
