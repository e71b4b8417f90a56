//! Asking the person at the terminal, one question at a time.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use indicatif::{MultiProgress, ProgressDrawTarget};
use tokio::sync::oneshot;

use crate::model::printable;
use crate::pool::{Ask, Question};

/// What lines, progress and questions share: the one terminal.
#[derive(Clone)]
pub(crate) struct Terminal {
    pub(super) progress: MultiProgress,
    /// A question is open: lines wait, so that they do not run into it, and nothing moves. The work goes on.
    pub(super) asking: Arc<AtomicBool>,
}

impl Terminal {
    pub(super) fn new(lively: bool) -> Self {
        let target = if lively { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { progress: MultiProgress::with_draw_target(target), asking: Arc::default() }
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Acquire)
    }

    /// `None`: there is no more input. An empty answer: nobody waits for one any more.
    fn ask(&self, question: &str, is_wanted: impl Fn() -> bool) -> Option<String> {
        // It cannot fail in a way that matters: at worst a moving line stays on the screen.
        let _ = self.progress.clear();
        self.asking.store(true, Ordering::Release);
        self.progress.set_draw_target(ProgressDrawTarget::hidden());
        // A key typed before the question stood is no answer to it. What std has buffered of a terminal is a line at
        // most, and read.
        discard_input();
        eprint!("\n{}", printable(question));
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        let read = match wait_for_input(is_wanted) {
            true => std::io::stdin().lock().read_line(&mut line).ok().filter(|read| *read > 0),
            // The next line belongs to whoever reads next.
            false => {
                eprintln!("(no answer is needed any more)");
                Some(0)
            }
        };
        self.progress.set_draw_target(ProgressDrawTarget::stderr());
        self.asking.store(false, Ordering::Release);
        read.map(|_| line)
    }
}

/// Waits for a line, as long as somebody wants it. A terminal is ready when the line has its end.
#[cfg(unix)]
fn wait_for_input(is_wanted: impl Fn() -> bool) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while is_wanted() {
        let input = std::io::stdin();
        // What cannot be waited for is read at once.
        if poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&LOOK)).map_or(true, |ready| ready > 0) {
            return true;
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
