//! Asking the person at the terminal, one question at a time.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use indicatif::{MultiProgress, ProgressDrawTarget};
use tokio::sync::oneshot;

use super::{Mood, Screen, shared};
use crate::model::printable;
use crate::pool::{Ask, Question};

/// What lines, progress and questions share: the one terminal.
#[derive(Clone)]
pub(crate) struct Terminal {
    /// What waits until nobody writes to it any more.
    held: Arc<Mutex<Vec<Held>>>,
    pub(super) progress: MultiProgress,
    is_lively: bool,
    /// A question is open: lines wait, so that they do not run into it, and nothing moves. The work goes on.
    asking: Arc<AtomicBool>,
}

impl Terminal {
    pub(super) fn new(lively: bool) -> Self {
        let progress = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let terminal = Self { held: Arc::default(), progress, is_lively: lively, asking: Arc::default() };
        terminal.go_on();
        terminal
    }

    /// Keeps the terminal still, for whoever writes to it.
    pub(crate) fn pause(&self) -> Paused<'_> {
        // It cannot fail in a way that matters: at worst a moving line stays on the screen.
        let _ = self.progress.clear();
        self.asking.store(true, Ordering::Release);
        self.progress.set_draw_target(ProgressDrawTarget::hidden());
        Paused(self)
    }

    fn go_on(&self) {
        if self.is_lively {
            self.progress.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.asking.store(false, Ordering::Release);
    }

    pub(super) fn hold(&self, held: impl IntoIterator<Item = Held>) {
        shared(&self.held).extend(held);
    }

    /// Shows what has waited, unless somebody writes to the terminal still.
    pub(crate) fn release(&self, screen: &mut impl Screen) {
        if self.is_asking() {
            return;
        }
        let mut show = || {
            for held in shared(&self.held).drain(..) {
                match held {
                    Held::Line(who, mood, line) => screen.line(&who, mood, &line),
                    Held::Answer(text) => screen.answer(&text),
                }
            }
        };
        // On a terminal that is gone nothing moves, and suspending what moves would panic.
        match self.progress.clear() {
            Ok(()) => self.progress.suspend(show),
            Err(_) => {
                self.progress.set_draw_target(ProgressDrawTarget::hidden());
                show();
            }
        }
    }

    fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Acquire)
    }

    /// `None`: there is no more input. An empty answer: nobody waits for one any more.
    pub(crate) fn ask(&self, question: &str, is_wanted: impl Fn() -> bool) -> Option<String> {
        let _paused = self.pause();
        // A key typed before the question stood is no answer to it. What std has buffered of a terminal is a line at
        // most, and read.
        discard_input();
        let mut screen = std::io::stderr();
        // A terminal that is gone is found out by who reads from it.
        let _ = write!(screen, "\n{}", printable(question)).and_then(|()| screen.flush());
        let mut line = String::new();
        let read = match wait_for_input(is_wanted) {
            true => std::io::stdin().lock().read_line(&mut line).ok().filter(|read| *read > 0),
            // The next line belongs to whoever reads next.
            false => {
                let _ = writeln!(screen, "(no answer is needed any more)");
                Some(0)
            }
        };
        read.map(|_| line)
    }
}

/// What is shown of a run, but for what moves.
pub(super) enum Held {
    Line(String, Mood, String),
    Answer(String),
}

/// While it lives, lines wait and nothing moves. The work goes on.
pub(crate) struct Paused<'t>(&'t Terminal);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.go_on();
    }
}

/// Waits for a line, as long as somebody wants it. A terminal is ready when the line has its end.
#[cfg(unix)]
fn wait_for_input(is_wanted: impl Fn() -> bool) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while is_wanted() {
        let input = std::io::stdin();
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&LOOK)) {
            // A signal may be why nobody wants it any more.
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // What cannot be waited for is read at once.
            Ok(_) | Err(_) => return true,
        }
    }
    false
}

#[cfg(windows)]
fn wait_for_input(_: impl Fn() -> bool) -> bool {
    true
}

/// Forgets what was typed and not read yet. Where that fails there is no terminal to forget anything of.
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

/// Reads answers from standard input on a thread of its own, since reading cannot be interrupted. At the end of input
/// every question goes unanswered.
pub(crate) fn asker(terminal: Terminal) -> Ask {
    let (sender, questions) = mpsc::channel::<(Question, oneshot::Sender<String>)>();
    let spawned = std::thread::Builder::new().name("questions".to_owned()).spawn(move || {
        for (question, answer) in questions {
            match terminal.ask(&question.text, || !answer.is_closed()) {
                // Whoever asked may have been stopped meanwhile.
                Some(line) => drop(answer.send(line)),
                None => break,
            }
        }
    });
    // Without the thread the receiver is gone, and whoever asks is told that there is nobody.
    drop(spawned);
    Arc::new(move |question, answer| drop(sender.send((question, answer))))
}
