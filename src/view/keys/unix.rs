use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write, stdin};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

use super::decode::decode;
use super::{Key, KeyInput};

/// How long the remaining bytes of a key may take.
const KEY_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How often to check whether this process is in the foreground again.
const BACKGROUND_POLL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Global, because the modes must be restored even without destructors, or after other programs used the terminal.
static MODES: Mutex<Option<Modes>> = Mutex::new(None);

struct Modes {
    /// The original modes.
    before: Termios,
    /// The modes for reading single keys.
    raw: Option<Termios>,
}

fn modes() -> MutexGuard<'static, Option<Modes>> {
    MODES.lock()
}

/// Enables single key presses while it lives.
pub(crate) struct RawMode(());

impl RawMode {
    /// Fails if standard input is not a terminal, or if another program is in the foreground: changing it would then
    /// stop this process.
    pub(crate) fn begin() -> io::Result<Self> {
        if !is_ours() {
            return Err(io::Error::other("the terminal belongs to another program"));
        }
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        // Modes set by another program must not become the original ones.
        modes().get_or_insert(Modes { before, raw: None }).raw = Some(raw);
        Ok(Self(()))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the original modes, if they were changed.
pub(crate) fn restore() {
    if let Some(modes) = modes().take().filter(|_| is_ours()) {
        // There is nowhere to report that the terminal is closed.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &modes.before);
    }
}

/// Sets the modes again after this process was stopped and continued.
pub(crate) fn resume() {
    if let Some(raw) = modes().as_ref().and_then(|modes| modes.raw.as_ref()).filter(|_| is_ours()) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, raw);
    }
}

/// Takes the current modes as those that [`restore`] sets.
pub(crate) fn remember() {
    if let Ok(before) = tcgetattr(stdin()) {
        modes().get_or_insert(Modes { before, raw: None });
    }
}

/// Whether standard input is a terminal, with this program in the foreground if it is the controlling one.
pub(crate) fn is_ours() -> bool {
    match tcgetpgrp(stdin()) {
        Ok(group) => group == rustix::process::getpgrp(),
        // A terminal that does not control this process cannot stop it either.
        Err(_) => stdin().is_terminal(),
    }
}

pub(crate) struct Keys {
    woken: PipeReader,
    bytes: Vec<u8>,
}

/// Ends the current wait for a key, or the next one.
#[derive(Clone)]
pub(crate) struct Waker(Arc<PipeWriter>);

impl Waker {
    pub(crate) fn wake(&self) {
        // A failure means that nobody waits any more.
        let _ = (&*self.0).write(&[0]);
    }
}

impl Keys {
    pub(crate) fn new() -> io::Result<(Self, Waker)> {
        let (woken, waker) = io::pipe()?;
        Ok((Self { woken, bytes: Vec::new() }, Waker(Arc::new(waker))))
    }

    /// Waits for the next key.
    pub(crate) fn next(&mut self) -> KeyInput {
        self.wait(None).unwrap_or(KeyInput::End)
    }

    /// `None`: there was none within this time.
    pub(crate) fn next_within(&mut self, limit: Duration) -> Option<KeyInput> {
        let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
        self.wait(Some(&Timespec { tv_sec: seconds, tv_nsec: limit.subsec_nanos().into() }))
    }

    fn wait(&mut self, limit: Option<&Timespec>) -> Option<KeyInput> {
        loop {
            if let Some(key) = self.take(false) {
                return Some(KeyInput::Key(key));
            }
            let is_partial = !self.bytes.is_empty();
            let input = stdin();
            let mut sources = [PollFd::new(&input, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
            let polled = poll(&mut sources, if is_partial { Some(&KEY_TIMEOUT) } else { limit });
            let [has_input, is_woken] = sources.map(|source| !source.revents().is_empty());
            match polled {
                Err(rustix::io::Errno::INTR) if limit.is_some() => return None,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Some(KeyInput::End),
                // Nothing follows, so the bytes are a complete key.
                Ok(0) if is_partial => {
                    if let Some(key) = self.take(true) {
                        return Some(KeyInput::Key(key));
                    }
                }
                Ok(0) => return None,
                Ok(_) if is_woken => {
                    let _ = self.woken.read(&mut [0; 64]);
                    return Some(KeyInput::Woken);
                }
                // Reading in the background would stop this process, so wait until it is in the foreground.
                Ok(_) if has_input && !is_ours() && tcgetpgrp(&input).is_ok() => {
                    let _ = poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], Some(&BACKGROUND_POLL));
                }
                Ok(_) if has_input => {
                    let mut bytes = [0; 256];
                    match rustix::io::read(&input, &mut bytes) {
                        Ok(count) if count > 0 => self.bytes.extend(bytes.iter().take(count)),
                        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                        _ => return Some(KeyInput::End),
                    }
                }
                Ok(_) => {}
            }
        }
    }

    /// The next key that has already been typed.
    pub(crate) fn buffered(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.take(false) {
                return Some(key);
            }
            // The remaining bytes of a key arrive soon after its first.
            let timeout = if self.bytes.is_empty() { Timespec::default() } else { KEY_TIMEOUT };
            let input = stdin();
            if !poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0) {
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
