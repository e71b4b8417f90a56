//! The live view of a watch: lines scroll by as ever, and below them stands what each agent is at.
//!
//! ```text
//! events ─┬→ Watched ─→ lines ──→ Board ─→ terminal
//!         ├→ Agents ──┐             ↑
//!         └→ Recent   ├→ block ─────┘
//! keys ───→ Controls ─┘
//! ```
//!
//! `Agents`, `Recent` and `Controls` are folds over what comes, and `block` is text made of them: all of it is tested
//! without a terminal. Nothing is drawn unless something has come or, while somebody works, a second has passed.

mod agents;
mod block;
mod board;
mod controls;
mod recent;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) use board::Board;

use super::keys::{Heard, Keys, RawMode, Waker, restore};
use super::{Follow, Mood, Screen, Shown, Shows, Watched};
use crate::env::Clock;
use crate::model::{Event, Slug, printable};
use crate::pool::Show;
use agents::Agents;
use controls::{Act, Controls};
use recent::Recent;

/// The least time between two pictures of which only the block is another.
const FRAME: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// What comes together is shown together, up to this much.
const BATCH: usize = 500;

pub(crate) struct Live<'s, S: Screen> {
    board: &'s Mutex<Board<S>>,
    lines: Watched<'s, Board<S>>,
    clock: Clock,
    agents: Agents,
    recent: Recent,
    controls: Controls,
    /// `None`: the terminal is another program's.
    raw: Option<RawMode>,
    is_stopped: bool,
    /// The block may be another one since it was drawn.
    is_due: bool,
    drawn: Instant,
}

impl<'s, S: Screen> Live<'s, S> {
    pub(crate) fn new(board: &'s Mutex<Board<S>>, clock: Clock) -> Self {
        let (agents, recent, controls) = Default::default();
        let lines = Watched::new(board, false);
        Self {
            board,
            lines,
            clock,
            agents,
            recent,
            controls,
            raw: None,
            is_stopped: false,
            is_due: true,
            drawn: Instant::now(),
        }
    }

    fn board(&self) -> MutexGuard<'s, Board<S>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait for what comes next. `None`: as long as it takes.
    fn patience(&self) -> Option<Duration> {
        if self.raw.is_none() {
            // It may be ours again.
            return Some(SECOND);
        }
        if self.is_due {
            return Some(FRAME.saturating_sub(self.drawn.elapsed()));
        }
        self.agents.is_anyone_at_work().then_some(SECOND)
    }

    /// Returns whether it goes on.
    fn take(&mut self, shown: Shown, shows: &Shows) -> bool {
        match shown {
            Shown::Event(event) => self.event(&event),
            Shown::Key(key) => match self.controls.press(key, &self.agents) {
                Act::Nothing => {}
                // The watch hears it, or is about to end.
                Act::Wish(wish) => drop(shows.wishes.send(wish)),
                Act::Look(agent) => self.look(&agent),
                Act::Back => self.back(),
                Act::End => shows.end.notify_one(),
            },
            Shown::Resized => self.board().clear(),
            Shown::Stop => self.stop(),
            Shown::GoesOn => {
                self.board().clear();
                self.is_stopped = false;
            }
            Shown::Ending => {
                self.controls.is_ending = true;
                self.back();
            }
            Shown::End => return false,
        }
        true
    }

    fn event(&mut self, event: &Event) {
        self.lines.show(event);
        self.agents.note(event);
        let lines = self.recent.note(event);
        if self.controls.looking.is_some() && self.controls.looking == event.agent {
            self.at_once(event.agent.as_ref(), &lines);
        }
        self.controls.settle(&self.agents);
    }

    fn at_once(&self, agent: Option<&Slug>, lines: &[(Mood, String)]) {
        let who = agent.map_or("squad", Slug::as_str);
        for (mood, line) in lines {
            self.board().at_once(who, *mood, line);
        }
    }

    fn look(&mut self, agent: &Slug) {
        self.board().hold();
        self.board().at_once("squad", Mood::Faint, &format!("looking into {agent}; Esc goes back"));
        let lines: Vec<(Mood, String)> = self.recent.lines(agent).cloned().collect();
        self.at_once(Some(agent), &lines);
    }

    fn back(&mut self) {
        self.controls.looking = None;
        self.board().release();
    }

    fn draw(&mut self) {
        let mut board = self.board();
        let size = board.size();
        if self.raw.is_none() || size.lines < 2 {
            return board.clear();
        }
        let mut block = block::block(&self.agents, &self.controls, self.clock.now(), size);
        if let Some(agent) = &self.controls.looking {
            let saying = block::saying(&printable(self.recent.saying(agent)), size);
            if !saying.is_empty() && block.len() + 1 < size.lines {
                block.insert(0, saying);
            }
        }
        board.draw(block);
    }

    /// Stops the program, as whoever pressed Ctrl-Z wants.
    fn stop(&mut self) {
        self.board().clear();
        self.raw = None;
        // This thread may run on for a moment.
        self.is_stopped = true;
        #[cfg(unix)]
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    }

    fn show_all(&mut self, shows: &Shows) {
        loop {
            let mut next = shows.next(self.patience());
            let mut count = 0;
            while let Some(shown) = next {
                if !self.take(shown, shows) {
                    return;
                }
                count += 1;
                next = if count < BATCH { shows.next(Some(Duration::ZERO)) } else { None };
            }
            if self.raw.is_none() && !self.is_stopped {
                self.raw = RawMode::begin().ok();
            }
            self.is_due = true;
            // Lines have taken its place, or it has stood for long enough.
            if !self.board().is_drawn() || self.drawn.elapsed() >= FRAME {
                self.draw();
                self.is_due = false;
                self.drawn = Instant::now();
            }
        }
    }
}

impl<S: Screen> Follow for Live<'_, S> {
    fn answers(&self) -> bool {
        true
    }

    fn follow(&mut self, shows: Shows) {
        let _given_back = GivesBack;
        self.raw = RawMode::begin().ok();
        let listening = listen(&shows);
        self.show_all(&shows);
        self.board().clear();
        self.back();
        self.raw = None;
        if let Some((waker, thread)) = listening {
            waker.wake();
            // It has nothing left to do.
            let _ = thread.join();
        }
    }
}

/// A defect of the view does not keep the terminal.
struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        restore();
    }
}

/// Waits for keys on a thread of its own. `None`: the view does without.
fn listen(shows: &Shows) -> Option<(Waker, JoinHandle<()>)> {
    let (mut keys, waker) = Keys::new().ok()?;
    let showing = shows.showing.clone();
    let listen = move || {
        while let Heard::Key(key) = keys.next() {
            showing.send(Shown::Key(key));
        }
    };
    let thread = thread::Builder::new().name("keys".to_owned()).spawn(listen).ok()?;
    Some((waker, thread))
}
