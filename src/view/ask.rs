//! Asks the person at the terminal, one question at a time.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressDrawTarget};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{LineStyle, Screen, Text};
use crate::model::printable;
use crate::pool::{Ask, Question};

/// A withdrawn question is noticed within a tenth of a second.
const LONGEST_SETTLING: Duration = Duration::from_secs(1);

/// The terminal, shared by lines, progress and questions.
#[derive(Clone)]
pub(crate) struct Terminal {
    /// Output waiting for a question to be answered.
    waiting: Arc<Mutex<Vec<Output>>>,
    pub(super) progress: MultiProgress,
    is_animated: bool,
    /// A question is open: output waits and nothing is animated, so that they do not mix. The run goes on.
    asking: Arc<AtomicBool>,
}

impl Terminal {
    pub(super) fn new(is_animated: bool) -> Self {
        let progress = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let terminal = Self { waiting: Arc::default(), progress, is_animated, asking: Arc::default() };
        terminal.resume();
        terminal
    }

    /// Stops output and animation until the result is dropped.
    pub(crate) fn pause(&self) -> Paused<'_> {
        // A failure is harmless: at worst an animated line stays on the screen.
        let _ = self.progress.clear();
        self.asking.store(true, Ordering::Release);
        self.progress.set_draw_target(ProgressDrawTarget::hidden());
        Paused(self)
    }

    fn resume(&self) {
        if self.is_animated {
            self.progress.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.asking.store(false, Ordering::Release);
    }

    pub(super) fn queue(&self, waiting: impl IntoIterator<Item = Output>) {
        self.waiting.lock().extend(waiting);
    }

    /// Writes the waiting output, unless a question is open.
    pub(crate) fn release(&self, screen: &mut impl Screen) {
        if self.is_asking() {
            return;
        }
        let mut show = || {
            for waiting in self.waiting.lock().drain(..) {
                match waiting {
                    Output::Line(who, style, line) => screen.line(&who, style, &line),
                    Output::Answer(text) => screen.answer(&text),
                    Output::Card(lines) => screen.card(&lines),
                }
            }
        };
        // On a closed terminal nothing is animated, and suspending would panic.
        match self.progress.clear() {
            Ok(()) => self.progress.suspend(show),
            Err(_) => {
                self.progress.set_draw_target(ProgressDrawTarget::hidden());
                show();
            }
        }
    }

    /// Waits for a withdrawn question to leave the screen, since the output behind it would be lost. Windows cannot wake
    /// its reader: there the output follows the question after a moment.
    pub(crate) fn settle(&self) {
        let start = Instant::now();
        while self.is_asking() && start.elapsed() < LONGEST_SETTLING {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.resume();
    }

    fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Acquire)
    }

    /// `None`: the end of input. An empty answer: the question has been withdrawn.
    pub(crate) fn ask(&self, question: &str, is_wanted: impl Fn() -> bool) -> Option<String> {
        let _paused = self.pause();
        // Keys typed before the question appeared are not an answer. Input that std has buffered from a terminal is at
        // most one line, and has been read.
        discard_input();
        let mut screen = std::io::stderr();
        // A closed terminal is noticed when reading.
        let _ = write!(screen, "\n{}", printable(question)).and_then(|()| screen.flush());
        let mut line = String::new();
        let read = match wait_for_input(is_wanted) {
            true => std::io::stdin().lock().read_line(&mut line).ok().filter(|read| *read > 0),
            // The next line belongs to another reader.
            false => {
                let _ = writeln!(screen, "(no longer needed)");
                Some(0)
            }
        };
        read.map(|_| line)
    }
}

/// Output of a run, except animation.
pub(super) enum Output {
    Line(String, LineStyle, String),
    Answer(String),
    Card(Vec<Text>),
}

/// Stops output and animation while it lives. The run goes on.
pub(crate) struct Paused<'t>(&'t Terminal);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.resume();
    }
}

/// Waits for a line while the answer is wanted. A terminal is ready once a line is complete.
#[cfg(unix)]
fn wait_for_input(is_wanted: impl Fn() -> bool) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while is_wanted() {
        let input = std::io::stdin();
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&POLL_INTERVAL)) {
            // The signal may have withdrawn the question.
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // Input that cannot be polled is read at once.
            Ok(_) | Err(_) => return true,
        }
    }
    false
}

#[cfg(windows)]
fn wait_for_input(_: impl Fn() -> bool) -> bool {
    true
}

/// Discards unread input. A failure means that there is no terminal.
#[cfg(unix)]
fn discard_input() {
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(windows)]
#[expect(unsafe_code, reason = "std has no call for it")]
fn discard_input() {
    use std::os::windows::io::AsRawHandle;
    // SAFETY: the handle is standard input's, which stays open, and the call touches no memory of ours.
    unsafe { windows_sys::Win32::System::Console::FlushConsoleInputBuffer(std::io::stdin().as_raw_handle()) };
}

/// Reads answers from standard input on its own thread, because reading cannot be interrupted. After the end of input,
/// no question gets an answer.
pub(crate) fn asker(terminal: Terminal) -> Ask {
    let (sender, questions) = mpsc::channel::<(Question, oneshot::Sender<String>)>();
    let spawned = std::thread::Builder::new().name("questions".to_owned()).spawn(move || {
        for (question, answer) in questions {
            match terminal.ask(&question.text, || !answer.is_closed()) {
                // The question may have been withdrawn.
                Some(line) => drop(answer.send(line)),
                None => break,
            }
        }
    });
    // If the thread could not start, the receiver is dropped and every question goes unanswered.
    drop(spawned);
    Arc::new(move |question, answer| drop(sender.send((question, answer))))
}
