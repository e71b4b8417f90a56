//! The live view of a watch: lines scroll above a block that shows the state of each agent.
//!
//! ```text
//! events ─┬→ Watched ─→ lines ──→ Board ─→ terminal
//!         ├→ Agents ──┐             ↑
//!         └→ Recent   ├→ block ─────┘
//! keys ───→ Controls ─┘
//! ```
//!
//! `Agents`, `Recent` and `Controls` fold over the input, and `block` renders them as text; all are tested without a
//! terminal. The view redraws only after input, or once a second while an agent works.

mod agents;
mod block;
mod board;
mod controls;
mod recent;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) use board::Board;
use parking_lot::{Mutex, MutexGuard};

use super::keys::{KeyInput, Keys, RawMode, Waker, restore};
use super::text::Text;
use super::{LineStyle, Screen, ViewInput, ViewReceiver, ViewSender, WatchView, Watched};
use crate::env::Clock;
use crate::model::{Event, RunId, Slug, plural};
use crate::pool::Show;
use agents::Agents;
use controls::{Action, Controls, Viewed};
use recent::Recent;

/// Minimum time between redraws that change only the block.
const FRAME: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// Input that has arrived is shown together, up to this many items.
const BATCH: usize = 500;

/// Looks up what an agent changed in a run, or why there is nothing to show.
pub(crate) type Changes = Arc<dyn Fn(&RunId, &Slug) -> Result<Vec<Text>, String> + Send + Sync>;

pub(crate) struct Live<'s, S: Screen> {
    board: &'s Mutex<Board<S>>,
    changes: Changes,
    team: String,
    lines: Watched<'s, Board<S>>,
    clock: Clock,
    agents: Agents,
    recent: Recent,
    controls: Controls,
    /// `None`: another program has the terminal.
    raw: Option<RawMode>,
    is_stopped: bool,
    /// The block may have changed since it was drawn.
    needs_redraw: bool,
    drawn: Instant,
}

impl<'s, S: Screen> Live<'s, S> {
    pub(crate) fn new(board: &'s Mutex<Board<S>>, team: String, clock: Clock, changes: Changes) -> Self {
        let (agents, recent, controls) = Default::default();
        let lines = Watched::new(board, false);
        Self {
            board,
            changes,
            team,
            lines,
            clock,
            agents,
            recent,
            controls,
            raw: None,
            is_stopped: false,
            needs_redraw: true,
            drawn: Instant::now(),
        }
    }

    fn board(&self) -> MutexGuard<'s, Board<S>> {
        self.board.lock()
    }

    /// How long to wait for input. `None`: without limit.
    fn wait_time(&self) -> Option<Duration> {
        if self.raw.is_none() {
            // Check whether the terminal is free again.
            return Some(SECOND);
        }
        if self.needs_redraw {
            return Some(FRAME.saturating_sub(self.drawn.elapsed()));
        }
        self.agents.is_anyone_at_work().then_some(SECOND)
    }

    /// Returns `false` at the end.
    fn handle(&mut self, shown: ViewInput, inputs: &ViewReceiver) -> bool {
        match shown {
            ViewInput::Event(event) => self.event(&event),
            ViewInput::Key(key) => match self.controls.press(key, &self.agents) {
                Action::Nothing => {}
                // The watch receives it unless it is ending.
                Action::UserCommand(command) => drop(inputs.commands.send(command)),
                Action::Inspect(agent) => self.inspect(&agent),
                Action::ShowChanges { run, agent } => self.look_up_changes(run, agent, &inputs.sender),
                Action::Find(text) => self.find(&text),
                Action::Back => self.back(),
                Action::ShowQuestion(question) => self.show_question(&question),
                Action::End => inputs.end.notify_one(),
            },
            ViewInput::Changes { run, agent, found } => self.show_changes(run, agent, found),
            ViewInput::Resized => self.board().clear(),
            ViewInput::Stop => self.stop(),
            ViewInput::Resumed => {
                self.board().clear();
                self.is_stopped = false;
            }
            ViewInput::Ending => {
                self.controls.is_ending = true;
                self.back();
            }
            ViewInput::End => return false,
        }
        true
    }

    fn event(&mut self, event: &Event) {
        self.lines.show(event);
        self.agents.note(event);
        let lines = self.recent.note(event);
        match (&self.controls.viewed, &event.agent) {
            (Some(Viewed::LinesOf(viewed)), Some(agent)) if viewed == agent => self.write_now(&lines),
            _ => {}
        }
        self.controls.settle(&self.agents);
    }

    fn write_now(&self, lines: &[Text]) {
        lines.iter().for_each(|line| self.board().write_now(line));
    }

    fn inspect(&mut self, agent: &Slug) {
        self.board().defer();
        let title = Text::default().with(LineStyle::Faint, &format!("looking into {agent}; Esc goes back"));
        self.write_now(&[title]);
        let lines = self.recent.lines(agent);
        self.write_now(&lines);
    }

    /// On a thread of its own: the rows go on meanwhile.
    fn look_up_changes(&mut self, run: RunId, agent: Slug, sender: &ViewSender) {
        let coming = Some(Viewed::ComingChanges { run: run.clone(), agent: agent.clone() });
        if self.controls.viewed == coming {
            return;
        }
        self.controls.viewed = coming;
        let (changes, sender) = (Arc::clone(&self.changes), sender.clone());
        let look_up = move || {
            let found = changes(&run, &agent);
            sender.send(ViewInput::Changes { run, agent, found });
        };
        if let Err(error) = thread::Builder::new().name("changes".to_owned()).spawn(look_up) {
            self.back();
            self.controls.notice = Some(format!("cannot look up changes: {error}"));
        }
    }

    /// Above the block and not in a pager, which would hide the rows and what is asked.
    fn show_changes(&mut self, run: RunId, agent: Slug, found: Result<Vec<Text>, String>) {
        // Whoever has looked at something else since does not want them any more.
        if self.controls.viewed != Some(Viewed::ComingChanges { run, agent: agent.clone() }) {
            return;
        }
        match found {
            Ok(lines) => {
                self.board().defer();
                self.write_now(&lines);
                self.controls.viewed = Some(Viewed::ChangesOf(agent));
            }
            Err(why) => {
                self.back();
                self.controls.notice = Some(why);
            }
        }
    }

    fn find(&mut self, text: &str) {
        let rows = self.controls.behind_chosen(&self.agents).into_iter();
        let mut found = rows.filter_map(|row| Some((self.recent.find(&row.agent, text)?, row)));
        let Some((lines, row)) = found.next() else {
            self.controls.notice = Some(format!("no agent's name or last lines have “{text}”"));
            return;
        };
        let more = found.count();
        if more > 0 {
            let more = plural(more, "more agent");
            self.controls.notice = Some(format!("{}; {more} with “{text}”: / and Enter", row.agent));
        }
        self.write_now(&lines);
        self.controls.go_to(row);
    }

    /// Shows a question above the dialog if that has no room for all of its lines.
    fn show_question(&self, question: &str) {
        let lines: Vec<Text> = question.lines().map(|line| Text::default().plain(line)).collect();
        let size = self.board().size();
        if lines.len() > block::question_lines(size.lines) || lines.iter().any(|line| line.width() >= size.columns) {
            self.write_now(&lines);
        }
    }

    fn back(&mut self) {
        self.controls.viewed = None;
        self.board().release();
    }

    fn draw(&mut self) {
        let mut board = self.board();
        let size = board.size();
        if self.raw.is_none() || size.lines < 2 {
            return board.clear();
        }
        let block = block::block(&self.team, &self.agents, &self.controls, self.clock.now(), size);
        board.draw(&block);
    }

    /// Suspends the program, as for Ctrl-Z.
    fn stop(&mut self) {
        self.board().clear();
        self.raw = None;
        // This thread may run on for a moment.
        self.is_stopped = true;
        #[cfg(unix)]
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    }

    fn show_all(&mut self, inputs: &ViewReceiver) {
        loop {
            let mut next = inputs.next(self.wait_time());
            let mut count = 0;
            while let Some(shown) = next {
                if !self.handle(shown, inputs) {
                    return;
                }
                count += 1;
                next = if count < BATCH { inputs.next(Some(Duration::ZERO)) } else { None };
            }
            if self.raw.is_none() && !self.is_stopped {
                self.raw = RawMode::begin().ok();
            }
            self.needs_redraw = true;
            // Lines have replaced the block, or it has been visible long enough.
            if !self.board().is_drawn() || self.drawn.elapsed() >= FRAME {
                self.draw();
                self.needs_redraw = false;
                self.drawn = Instant::now();
            }
        }
    }
}

impl<S: Screen> WatchView for Live<'_, S> {
    fn answers(&self) -> bool {
        true
    }

    fn follow(&mut self, inputs: ViewReceiver) {
        let _restore = RestoreTerminal;
        self.raw = RawMode::begin().ok();
        let listening = listen(&inputs);
        self.show_all(&inputs);
        self.board().clear();
        self.back();
        self.raw = None;
        if let Some((waker, thread)) = listening {
            waker.wake();
            // The thread's result does not matter.
            let _ = thread.join();
        }
    }
}

/// Restores the terminal even after a panic in the view.
struct RestoreTerminal;

impl Drop for RestoreTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Reads keys on a thread. `None`: the view works without keys.
fn listen(inputs: &ViewReceiver) -> Option<(Waker, JoinHandle<()>)> {
    let (mut keys, waker) = Keys::new().ok()?;
    let sender = inputs.sender.clone();
    let listen = move || {
        while let KeyInput::Key(key) = keys.next() {
            sender.send(ViewInput::Key(key));
        }
    };
    let thread = thread::Builder::new().name("keys".to_owned()).spawn(listen).ok()?;
    Some((waker, thread))
}
