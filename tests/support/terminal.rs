//! A person at a terminal: a real one, for what is typed before a question stands waits in its queue.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd, read, retry_on_intr};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Nothing that is waited for takes as long; a machine under load may.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const LONG: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

pub(crate) struct Person {
    pub(crate) terminal: File,
    /// Until squad is started: from then on only it holds this end, so that its exit ends what there is to read.
    end: Option<File>,
    pub(crate) screen: String,
    unread: Vec<u8>,
}

impl Person {
    pub(crate) fn sits_down() -> Self {
        let controller: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        // Held by squad too, it would never be closed.
        fcntl_setfd(&controller, FdFlags::CLOEXEC).expect("kept from children");
        grantpt(&controller).expect("granted");
        unlockpt(&controller).expect("unlocked");
        let name = ptsname(&controller, Vec::new()).expect("a name");
        let path = name.to_str().expect("UTF-8");
        let end = File::options().read(true).write(true).open(path).expect("its other end");
        Self { terminal: controller.into(), end: Some(end), screen: String::new(), unread: Vec::new() }
    }

    pub(crate) fn starts(&mut self, mut command: Command) -> Child {
        let end = self.end.take().expect("one squad for each terminal");
        let twin = || end.try_clone().expect("a copy");
        command.stdin(twin()).stdout(twin()).stderr(twin()).spawn().expect("squad runs")
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).expect("typed");
    }

    pub(crate) fn waits_for(&mut self, text: &str) {
        self.waits_for_times(text, 1);
    }

    /// Until it has been shown so often.
    pub(crate) fn waits_for_times(&mut self, text: &str, times: usize) {
        let since = Instant::now();
        while self.screen.matches(text).count() < times {
            let count = self.screen.len();
            self.reads();
            let has_come = self.screen.len() > count && since.elapsed() < PATIENCE;
            assert!(has_come, "not shown: {text:?} in {}", self.screen);
        }
    }

    /// Adds what is shown next, if anything is.
    pub(crate) fn reads(&mut self) {
        let mut bytes = [0; 4096];
        let mut shown = [PollFd::new(&self.terminal, PollFlags::IN)];
        // Another test of this process may have set up a handler of signals, which interrupts this.
        let ready = retry_on_intr(|| poll(&mut shown, Some(&LONG))).expect("a terminal");
        let count = if ready > 0 { retry_on_intr(|| read(&self.terminal, &mut bytes)).unwrap_or(0) } else { 0 };
        self.unread.extend(&bytes[..count]);
        // A character may come in two pieces.
        let end = match std::str::from_utf8(&self.unread) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to() + error.error_len().unwrap_or_default(),
        };
        let piece: Vec<u8> = self.unread.drain(..end).collect();
        self.screen.push_str(&String::from_utf8_lossy(&piece));
    }
}
