//! The terminal of a run: its lines, the rows of its agents, and one question at a time to the person.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use unicode_width::UnicodeWidthStr;

use super::Screen;
use super::dialog::{Dialog, Pressed};
use super::keys::{KeyInput, Keys, RawMode};
use super::progress::ticker;
use super::region::{self, screen_size};
use super::rows::Rows;
use super::standard_stream::{StandardStream, together};
use super::text::{Painter, Text};
use crate::model::{Event, Proposal, printable};
use crate::pool::{Ask, Question};

/// A withdrawn question is noticed within a tenth of a second.
const LONGEST_SETTLING: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(100);
/// A key pressed before a question has stood for so long was meant for something else.
const STANDS: Duration = Duration::from_millis(500);
/// Nobody presses two keys within this time.
const TOGETHER: Duration = Duration::from_millis(30);
/// How often rows are redrawn when nothing happens.
const TICK: Duration = Duration::from_millis(500);
/// Shortest time between redraws that change only the rows.
const FRAME: Duration = Duration::from_millis(100);

/// The terminal, shared by lines, rows and questions.
#[derive(Clone)]
pub(crate) struct Terminal {
    state: Arc<Mutex<State>>,
    /// Whether lines are redrawn in place.
    is_animated: bool,
    /// Whether a line says who works when nothing else is said.
    says_alive: bool,
    painter: Painter,
}

#[derive(Default)]
struct State {
    /// Output waiting until the person has typed a line.
    waiting: Vec<Output>,
    rows: Rows,
    /// When the last event happened, and when it was seen: the clock of those who work.
    seen: Option<(Timestamp, Instant)>,
    question: Vec<Text>,
    /// The line that the person types, which stays last.
    draft: Option<Text>,
    /// How many have the terminal for themselves: output waits, so that they do not mix. The run goes on.
    pauses: usize,
    drawn: Option<Instant>,
    /// When a line was last written.
    written: Option<Instant>,
}

impl State {
    fn now(&self) -> Timestamp {
        let now = self.seen.and_then(|(at, seen)| at.checked_add(seen.elapsed()).ok());
        now.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn draw(&mut self, painter: Painter) {
        if self.pauses == 0 {
            let size = screen_size();
            let rows = self.rows.lines(size, self.now());
            // What scrolls out of the screen could not be taken away again.
            // A question takes the draft's place.
            let draft = self.draft.iter().filter(|_| self.question.is_empty());
            let taken = region::height(self.question.iter().chain(draft.clone()).map(Text::width), size.columns);
            let rows = rows.into_iter().take(size.lines.saturating_sub(1 + taken));
            let lines: Vec<Text> = self.question.iter().cloned().chain(rows).chain(draft.cloned()).collect();
            region::draw(&lines, painter);
            self.drawn = Some(Instant::now());
        }
    }
}

impl Terminal {
    pub(super) fn new(screen: &impl Screen) -> Self {
        let state = Arc::<Mutex<State>>::default();
        let (is_animated, says_alive) = (screen.is_animated(), screen.says_alive());
        let terminal = Self { state, is_animated, says_alive, painter: screen.painter() };
        if is_animated || says_alive {
            let (state, painter) = (Arc::downgrade(&terminal.state), terminal.painter);
            // Without a thread, rows change with events only.
            ticker("rows", TICK, move || keep_shown(&state, is_animated, painter));
        }
        terminal
    }

    /// Stops output and animation until the result is dropped.
    pub(crate) fn pause(&self) -> Paused<'_> {
        let mut state = self.state.lock();
        state.pauses += 1;
        if self.is_animated {
            region::clear();
        }
        Paused(self)
    }

    pub(super) fn queue(&self, waiting: impl IntoIterator<Item = Output>) {
        self.state.lock().waiting.extend(waiting);
    }

    /// Shows the line that the person types, below all else: of a long one the end. Returns whether the terminal can.
    pub(crate) fn show_draft(&self, prompt: &str, text: &str) -> bool {
        if self.is_animated {
            let room = screen_size().columns.saturating_sub(prompt.len() + 1);
            let text = printable(text.rsplit('\n').next().unwrap_or(text));
            let mut shown = text.as_str();
            while shown.width() > room {
                let mut letters = shown.chars();
                letters.next();
                shown = letters.as_str();
            }
            let mut state = self.state.lock();
            state.draft = (!text.is_empty()).then(|| Text::default().plain(prompt).plain(shown));
            state.draw(self.painter);
        }
        self.is_animated
    }

    /// Lets the rows see an event.
    pub(super) fn see(&self, event: &Event) {
        if self.is_animated || self.says_alive {
            let mut state = self.state.lock();
            state.rows.see(event);
            state.seen = Some((event.at, Instant::now()));
        }
    }

    /// Redraws the rows, unless that was done just now.
    pub(super) fn refresh(&self) {
        let mut state = self.state.lock();
        if self.is_animated && state.drawn.is_none_or(|drawn| drawn.elapsed() > FRAME) {
            state.draw(self.painter);
        }
    }

    /// The rows as they are shown.
    #[cfg(test)]
    pub(super) fn rows(&self) -> Vec<String> {
        let size = region::Size { lines: 60, columns: 200 };
        let state = self.state.lock();
        state.rows.lines(size, state.now()).iter().map(Text::to_string).collect()
    }

    /// Writes the waiting output, unless a person types.
    pub(crate) fn release(&self, screen: &mut impl Screen) {
        let mut state = self.state.lock();
        if state.pauses > 0 || state.waiting.is_empty() {
            return;
        }
        state.written = Some(Instant::now());
        // The rows make room for the lines and come back: the terminal gets all of it at once.
        together(|| {
            for waiting in std::mem::take(&mut state.waiting) {
                match waiting {
                    Output::Text(line) => screen.text(&line),
                    Output::Answer(text) => screen.answer(&text),
                    Output::Card(lines) => screen.card(&lines),
                }
            }
            if self.is_animated {
                state.draw(self.painter);
            }
        });
    }

    /// Removes what is left of the rows.
    pub(super) fn end(&self) {
        if self.is_animated {
            let mut state = self.state.lock();
            (state.rows, state.draft) = (Rows::default(), None);
            region::clear();
        }
    }

    /// Waits for a withdrawn question to leave the screen, since the output behind it would be lost. Windows cannot wake
    /// its reader: there the output follows the question after a moment.
    pub(crate) fn settle(&self) {
        let start = Instant::now();
        let is_asking = || {
            let state = self.state.lock();
            state.pauses > 0 || !state.question.is_empty()
        };
        while is_asking() && start.elapsed() < LONGEST_SETTLING {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.state.lock().pauses = 0;
    }

    /// `None`: the end of input. An empty answer: the question has been withdrawn. `behind` says who asks next.
    pub(crate) fn ask(
        &self,
        question: &Question,
        behind: &dyn Fn() -> Vec<String>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<String> {
        match &question.proposal {
            Some(proposal) => self.ask_permission(proposal, behind, is_wanted),
            None => self.ask_line(&format!("\n{}", question.text), is_wanted),
        }
    }

    fn ask_line(&self, question: &str, is_wanted: &dyn Fn() -> bool) -> Option<String> {
        let _paused = self.pause();
        // Keys typed before the question appeared are not an answer. Input that std has buffered from a terminal is at
        // most one line, and has been read.
        discard_input();
        let mut screen = StandardStream::Err;
        // A closed terminal is noticed when reading.
        let _ = write!(screen, "{}", printable(question)).and_then(|()| screen.flush());
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

    /// One key answers.
    fn ask_permission(
        &self,
        proposal: &Proposal,
        behind: &dyn Fn() -> Vec<String>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<String> {
        // Without a region, lines of the run would hide the question.
        let _paused = (!self.is_animated).then(|| self.pause());
        let _question = Shown(self);
        let (mut dialog, since) = (Dialog::new(proposal.clone()), Instant::now());
        let (mut keys, _waker) = Keys::new().ok()?;
        let mut raw = RawMode::begin().ok();
        self.show(&mut dialog, behind());
        while is_wanted() {
            if raw.is_none() {
                // Another program has the terminal.
                std::thread::sleep(LOOK);
                raw = RawMode::begin().ok();
                continue;
            }
            if !dialog.is_ready && since.elapsed() >= STANDS {
                discard_input();
                dialog.is_ready = true;
                self.show(&mut dialog, behind());
            }
            let pressed = match keys.next_within(LOOK) {
                Some(KeyInput::End) => return None,
                // Several at once are pasted text, or the end of a key that squad does not know.
                Some(KeyInput::Key(key)) if dialog.is_ready => match more_keys(&mut keys) {
                    None => dialog.press(key),
                    Some(KeyInput::End) => return None,
                    Some(_) => continue,
                },
                Some(_) => continue,
                None => {
                    self.show(&mut dialog, behind());
                    continue;
                }
            };
            match pressed {
                Pressed::Answer(answer) => return Some(answer.to_owned()),
                Pressed::Nothing => {}
                Pressed::ShowAll => self.print(std::iter::once(dialog.title()).chain(dialog.body())),
                Pressed::Say => {
                    drop(raw.take());
                    let why = self.ask_line(&format!("Why not? {} reads it: ", proposal.agent), is_wanted);
                    match why {
                        Some(why) if !why.trim().is_empty() => return Some(format!("s {}", why.trim())),
                        // Ctrl-D is a change of mind, and a closed terminal is not.
                        None if !std::io::stdin().is_terminal() => return None,
                        _ => {}
                    }
                    raw = RawMode::begin().ok();
                }
            }
            self.show(&mut dialog, behind());
        }
        Some(String::new())
    }

    /// Shows a question as it stands now.
    fn show(&self, dialog: &mut Dialog, behind: Vec<String>) {
        dialog.behind = behind;
        let lines = dialog.lines(screen_size());
        let mut state = self.state.lock();
        if self.is_animated {
            state.question = lines;
            state.draw(self.painter);
        } else if state.question != lines {
            // What was printed stays, so only what is new follows.
            let new = lines.iter().filter(|line| !state.question.contains(line)).cloned().collect::<Vec<_>>();
            state.question = lines;
            drop(state);
            self.print(new.into_iter());
        }
    }

    /// Prints lines above the question.
    fn print(&self, lines: impl Iterator<Item = Text>) {
        let mut screen = region::Above::new(StandardStream::Err);
        for line in lines {
            // A closed terminal is noticed when reading.
            let _ = writeln!(screen, "{}", self.painter.paint(&line));
        }
    }
}

/// What follows a key at once, to its end.
fn more_keys(keys: &mut Keys) -> Option<KeyInput> {
    let mut last = None;
    while let Some(input) = keys.next_within(TOGETHER) {
        let is_end = matches!(input, KeyInput::End);
        last = Some(input);
        if is_end {
            break;
        }
    }
    last
}

/// Removes the question when it is dropped.
struct Shown<'t>(&'t Terminal);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.question.clear();
        if self.0.is_animated {
            state.draw(self.0.painter);
        }
    }
}

/// Redraws the rows, whose times go on when nothing happens, or says who works. `false`: the run is over.
fn keep_shown(state: &Weak<Mutex<State>>, is_animated: bool, painter: Painter) -> bool {
    let Some(state) = state.upgrade() else { return false };
    let mut state = state.lock();
    if state.rows.is_empty() || state.pauses > 0 {
        return true;
    }
    if is_animated {
        state.draw(painter);
    } else if state.written.is_some_and(|written| written.elapsed() >= state.rows.silence()) {
        state.written = Some(Instant::now());
        let line = painter.paint(&state.rows.alive(state.now()));
        // Nobody reads a closed stream.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    true
}

/// Output of a run, except rows.
pub(super) enum Output {
    Text(Text),
    Answer(String),
    Card(Vec<Text>),
}

/// Stops output and animation while it lives. The run goes on.
pub(crate) struct Paused<'t>(&'t Terminal);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.pauses = state.pauses.saturating_sub(1);
        if self.0.is_animated {
            // The person has typed the end of the line.
            region::line_was_ended();
            state.draw(self.0.painter);
        }
    }
}

/// Waits for a line while the answer is wanted. A terminal is ready once a line is complete.
#[cfg(unix)]
fn wait_for_input(is_wanted: &dyn Fn() -> bool) -> bool {
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
fn wait_for_input(_: &dyn Fn() -> bool) -> bool {
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

type Asked = (Question, oneshot::Sender<String>);

/// Reads answers from standard input on its own thread, because reading cannot be interrupted. After the end of input,
/// no question gets an answer.
pub(crate) fn asker(terminal: Terminal) -> Ask {
    let (sender, questions) = mpsc::channel::<Asked>();
    let spawned = std::thread::Builder::new().name("questions".to_owned()).spawn(move || {
        let queue = RefCell::new(VecDeque::<Asked>::new());
        loop {
            let first = queue.borrow_mut().pop_front();
            let Some((question, answer)) = first.or_else(|| questions.recv().ok()) else { return };
            let behind = || {
                let mut queue = queue.borrow_mut();
                queue.extend(questions.try_iter());
                queue.retain(|(_, answer)| !answer.is_closed());
                queue.iter().map(|(question, _)| question.asker()).collect()
            };
            if answer.is_closed() {
                continue;
            }
            match terminal.ask(&question, &behind, &|| !answer.is_closed()) {
                // The question may have been withdrawn.
                Some(line) => drop(answer.send(line)),
                // Ctrl-D leaves this question without an answer; a terminal stays open for the next.
                None if std::io::stdin().is_terminal() => {}
                None => return,
            }
        }
    });
    // If the thread could not start, the receiver is dropped and every question goes unanswered.
    drop(spawned);
    Arc::new(move |question, answer| drop(sender.send((question, answer))))
}
