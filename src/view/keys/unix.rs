use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write, stdin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

use super::decode::decode;
use super::{Heard, Key};

/// How long the rest of a key may take to come.
const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How often to look whether the terminal is ours again.
const SECOND: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Where nothing is dropped, or others use the terminal in between, this is known from here.
static MODES: Mutex<Option<Modes>> = Mutex::new(None);

struct Modes {
    /// How the terminal was.
    before: Termios,
    /// How it is while keys come as they are pressed.
    raw: Option<Termios>,
}

fn modes() -> MutexGuard<'static, Option<Modes>> {
    MODES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, keys come as they are pressed.
pub(crate) struct RawMode(());

impl RawMode {
    /// An error: standard input is no terminal, or somebody else's now; changing it would stop this process.
    pub(crate) fn begin() -> io::Result<Self> {
        if !is_ours() {
            return Err(io::Error::other("the terminal belongs to another program"));
        }
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        // Some other one's modes are not what to go back to.
        modes().get_or_insert(Modes { before, raw: None }).raw = Some(raw);
        Ok(Self(()))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Makes the terminal what it was, if it is anything else.
pub(crate) fn restore() {
    if let Some(modes) = modes().take().filter(|_| is_ours()) {
        // It cannot be said anywhere that it is gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &modes.before);
    }
}

/// After this process was stopped and goes on: keys come as they are pressed again, if they did.
pub(crate) fn resume() {
    if let Some(raw) = modes().as_ref().and_then(|modes| modes.raw.as_ref()).filter(|_| is_ours()) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, raw);
    }
}

/// From now on [`restore`] makes the terminal what it is at this moment, whoever changes it.
pub(crate) fn remember() {
    if let Ok(before) = tcgetattr(stdin()) {
        modes().get_or_insert(Modes { before, raw: None });
    }
}

/// Whether standard input is a terminal at which this program is in the foreground, or which has none.
pub(crate) fn is_ours() -> bool {
    match tcgetpgrp(stdin()) {
        Ok(group) => group == rustix::process::getpgrp(),
        // A terminal that does not control this process does not stop it either.
        Err(_) => stdin().is_terminal(),
    }
}

pub(crate) struct Keys {
    woken: PipeReader,
    bytes: Vec<u8>,
}

/// Ends a wait for a key: the one that goes on, or the next.
#[derive(Clone)]
pub(crate) struct Waker(Arc<PipeWriter>);

impl Waker {
    pub(crate) fn wake(&self) {
        // Nobody waits any more.
        let _ = (&*self.0).write(&[0]);
    }
}

impl Keys {
    pub(crate) fn new() -> io::Result<(Self, Waker)> {
        let (woken, waker) = io::pipe()?;
        Ok((Self { woken, bytes: Vec::new() }, Waker(Arc::new(waker))))
    }

    /// Waits for the next key.
    pub(crate) fn next(&mut self) -> Heard {
        loop {
            if let Some(key) = self.take(false) {
                return Heard::Key(key);
            }
            let is_begun = !self.bytes.is_empty();
            let input = stdin();
            let mut sources = [PollFd::new(&input, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
            let polled = poll(&mut sources, is_begun.then_some(&MOMENT));
            let [has_input, is_woken] = sources.map(|source| !source.revents().is_empty());
            match polled {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Heard::End,
                // Nothing more comes, so it is a key by itself.
                Ok(0) => {
                    if let Some(key) = self.take(true) {
                        return Heard::Key(key);
                    }
                }
                Ok(_) if is_woken => {
                    let _ = self.woken.read(&mut [0; 64]);
                    return Heard::Woken;
                }
                // In the background, reading would stop this process: until it is in front again, others' keys wait.
                Ok(_) if has_input && !is_ours() && tcgetpgrp(&input).is_ok() => {
                    let _ = poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], Some(&SECOND));
                }
                Ok(_) if has_input => {
                    let mut bytes = [0; 256];
                    match rustix::io::read(&input, &mut bytes) {
                        Ok(count) if count > 0 => self.bytes.extend(bytes.iter().take(count)),
                        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                        _ => return Heard::End,
                    }
                }
                Ok(_) => {}
            }
        }
    }

    /// The next of those that have come already.
    pub(crate) fn buffered(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.take(false) {
                return Some(key);
            }
            // Where one has begun, the rest of it is about to come.
            let patience = if self.bytes.is_empty() { Timespec::default() } else { MOMENT };
            let input = stdin();
            if !poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&patience)).is_ok_and(|ready| ready > 0) {
                return self.take(true);
            }
            let mut bytes = [0; 256];
            match rustix::io::read(&input, &mut bytes) {
                Ok(count) if count > 0 => self.bytes.extend(bytes.iter().take(count)),
                _ => return self.take(true),
            }
        }
    }

    fn take(&mut self, is_all: bool) -> Option<Key> {
        while let Some((key, length)) = decode(&self.bytes, is_all) {
            self.bytes.drain(..length.min(self.bytes.len()));
            if key.is_some() {
                return key;
            }
        }
        None
    }
}
