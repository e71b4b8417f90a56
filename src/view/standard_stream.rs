//! Writes to the terminal. A run does not wait for one that has stopped reading, such as that of a dead connection.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// How long a terminal may read nothing before nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// A terminal that reads slowly takes this much at a time.
const PIECE: usize = 1024;

/// Standard output or standard error, where that is a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StandardStream {
    Out,
    Err,
}

/// Whether something goes on that must not end with the terminal.
static OUTLIVES: AtomicBool = AtomicBool::new(false);
static QUEUE: Queue = Queue { state: Mutex::new(State::new()), changed: Condvar::new() };

/// Bytes for a terminal.
type Output = (StandardStream, Vec<u8>);

/// What is held back to be written at once; `None`: nothing is.
static HELD: Mutex<Option<Vec<Output>>> = Mutex::new(None);

/// Writes to the terminal at once what is written to it meanwhile.
pub(super) fn together<R>(write: impl FnOnce() -> R) -> R {
    let is_first = {
        let mut held = HELD.lock();
        let is_first = held.is_none();
        held.get_or_insert_default();
        is_first
    };
    let _held = is_first.then(|| Held);
    write()
}

/// Ends also with a panic.
struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        // Locked until it is written: others write behind it.
        let mut held = HELD.lock();
        // A terminal that is gone shows nothing; the hang-up ends the program.
        held.take().into_iter().flatten().for_each(|(terminal, bytes)| drop(terminal.write_now(&bytes)));
    }
}

/// What waits to be written, by a thread that may be stuck for ever.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: VecDeque<Output>,
    is_writing: bool,
    has_writer: bool,
    /// Counts what was read.
    pieces: u64,
    is_stuck: bool,
}

/// From now on, what is written to a terminal that reads nothing is kept for it, and nobody waits.
pub(crate) fn outlive() {
    OUTLIVES.store(true, Ordering::Relaxed);
}

/// Whether nothing has been read for a while. What is only true for a moment need not be written then.
pub(super) fn is_stuck() -> bool {
    OUTLIVES.load(Ordering::Relaxed) && QUEUE.state.lock().is_stuck
}

/// Lets the terminal read what is left, as long as it does.
pub(crate) fn drain() {
    let mut state = QUEUE.state.lock();
    QUEUE.wait(&mut state);
}

impl Queue {
    fn push(&'static self, terminal: StandardStream, bytes: &[u8]) {
        let mut state = self.state.lock();
        if !state.has_writer {
            let writer = thread::Builder::new().name("terminal".to_owned());
            state.has_writer = writer.spawn(move || self.write()).is_ok();
        }
        if !state.has_writer {
            // Without another thread, this one waits.
            return drop(terminal.put(bytes));
        }
        state.waiting.push_back((terminal, bytes.to_vec()));
        self.changed.notify_all();
        if !state.is_stuck {
            self.wait(&mut state);
        }
    }

    /// Until all is written, or nothing has been for a while.
    fn wait(&self, state: &mut MutexGuard<'_, State>) {
        while state.is_writing || !state.waiting.is_empty() {
            let before = state.pieces;
            if self.changed.wait_for(state, PATIENCE).timed_out() && state.pieces == before {
                state.is_stuck = true;
                return;
            }
        }
    }

    fn write(&self) {
        let mut state = self.state.lock();
        loop {
            let Some((terminal, bytes)) = state.waiting.pop_front() else {
                state.is_stuck = false;
                self.changed.wait(&mut state);
                continue;
            };
            state.is_writing = true;
            for piece in bytes.chunks(PIECE) {
                // A terminal that is gone shows nothing; the hang-up ends the program.
                MutexGuard::unlocked(&mut state, || drop(terminal.put(piece)));
                state.pieces += 1;
                self.changed.notify_all();
            }
            state.is_writing = false;
            self.changed.notify_all();
        }
    }
}

impl State {
    const fn new() -> Self {
        Self { waiting: VecDeque::new(), is_writing: false, has_writer: false, pieces: 0, is_stuck: false }
    }
}

impl StandardStream {
    fn write_now(self, bytes: &[u8]) -> io::Result<()> {
        match OUTLIVES.load(Ordering::Relaxed) {
            true => QUEUE.push(self, bytes),
            false => self.put(bytes)?,
        }
        Ok(())
    }

    fn put(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Out => {
                let mut out = io::stdout();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Self::Err => io::stderr().write_all(bytes),
        }
    }
}

impl Write for StandardStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(held) = &mut *HELD.lock() {
            match held.last_mut().filter(|(last, _)| *last == *self) {
                Some((_, before)) => before.extend(bytes),
                None => held.push((*self, bytes.to_vec())),
            }
            return Ok(bytes.len());
        }
        self.write_now(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
