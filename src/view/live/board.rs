//! A screen with a block at its bottom: lines scroll above it.

use std::collections::VecDeque;

use console::{Term, measure_text_width};

use super::block::Size;
use crate::model::Event;
use crate::view::{Mood, Screen};

/// Lines that may wait while only one agent's are shown; the oldest go.
const HELD: usize = 1_000;

pub(crate) struct Board<S> {
    screen: S,
    terminal: Term,
    /// The block as it stands.
    block: Vec<String>,
    held: Option<Held>,
}

/// Lines that wait.
#[derive(Default)]
struct Held {
    lines: VecDeque<(String, Mood, String)>,
    /// How many there was no room for.
    left_out: usize,
}

impl<S: Screen> Board<S> {
    pub(crate) fn new(screen: S) -> Self {
        Self { screen, terminal: Term::buffered_stderr(), block: Vec::new(), held: None }
    }

    pub(crate) fn into_screen(mut self) -> S {
        self.clear();
        self.release();
        self.screen
    }

    pub(super) fn size(&self) -> Size {
        let (lines, columns) = self.terminal.size();
        Size { lines: usize::from(lines), columns: usize::from(columns).max(1) }
    }

    /// Whether the block stands.
    pub(super) fn is_drawn(&self) -> bool {
        !self.block.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.draw(Vec::new());
    }

    /// Where this fails the terminal is gone, and with it whoever reads it.
    pub(super) fn draw(&mut self, block: Vec<String>) {
        if block == self.block {
            return;
        }
        let Size { columns, lines } = self.size();
        // Made narrower, a terminal breaks what is too long now.
        let height = |line: &String| measure_text_width(line).div_ceil(columns).max(1);
        let height: usize = self.block.iter().map(height).sum();
        if height > 0 {
            let _ = self.terminal.move_cursor_up(height.min(lines));
            let _ = self.terminal.clear_to_end_of_screen();
        }
        for line in &block {
            let _ = self.terminal.write_line(line);
        }
        let _ = self.terminal.flush();
        self.block = block;
    }

    /// From here on only what is shown at once is shown.
    pub(super) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Shows what has waited.
    pub(super) fn release(&mut self) {
        let Some(Held { lines, left_out }) = self.held.take() else { return };
        if left_out > 0 {
            self.line("squad", Mood::Faint, &format!("{left_out} lines are left out; `squad log` has them"));
        }
        for (who, mood, text) in lines {
            self.line(&who, mood, &text);
        }
    }

    /// A line that does not wait.
    pub(super) fn at_once(&mut self, who: &str, mood: Mood, text: &str) {
        self.clear();
        self.screen.line(who, mood, text);
    }
}

impl<S: Screen> Screen for Board<S> {
    fn answer(&mut self, text: &str) {
        self.clear();
        self.screen.answer(text);
    }

    fn event(&mut self, event: &Event) {
        self.screen.event(event);
    }

    fn line(&mut self, who: &str, mood: Mood, text: &str) {
        let Some(held) = &mut self.held else { return self.at_once(who, mood, text) };
        held.lines.push_back((who.to_owned(), mood, text.to_owned()));
        if held.lines.len() > HELD {
            held.lines.pop_front();
            held.left_out += 1;
        }
    }

    fn is_lively(&self) -> bool {
        false
    }
}
