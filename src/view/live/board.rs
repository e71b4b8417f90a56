//! A screen with a block at the bottom; lines scroll above it.

use std::collections::VecDeque;

use console::{Term, measure_text_width};

use super::block::Size;
use crate::model::Event;
use crate::view::{LineStyle, Screen, Text};

/// Lines that may wait while one agent's lines are shown. Beyond that, the oldest are dropped.
const MAX_DEFERRED: usize = 1_000;

pub(crate) struct Board<S> {
    screen: S,
    terminal: Term,
    /// The block as it was drawn.
    block: Vec<String>,
    deferred: Option<Deferred>,
}

/// Lines that wait.
#[derive(Default)]
struct Deferred {
    lines: VecDeque<(String, LineStyle, String)>,
    /// How many were dropped.
    left_out: usize,
}

impl<S: Screen> Board<S> {
    pub(crate) fn new(screen: S) -> Self {
        Self { screen, terminal: Term::buffered_stderr(), block: Vec::new(), deferred: None }
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

    /// Whether the block is visible.
    pub(super) fn is_drawn(&self) -> bool {
        !self.block.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.draw(Vec::new());
    }

    /// Errors are ignored: they mean that the terminal is closed.
    pub(super) fn draw(&mut self, block: Vec<String>) {
        if block == self.block {
            return;
        }
        let Size { columns, lines } = self.size();
        // A terminal made narrower wraps lines that are now too long.
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

    /// From now on, lines wait unless written with [`Self::write_now`].
    pub(super) fn defer(&mut self) {
        self.deferred.get_or_insert_default();
    }

    /// Writes the waiting lines.
    pub(super) fn release(&mut self) {
        let Some(Deferred { lines, left_out }) = self.deferred.take() else { return };
        if left_out > 0 {
            self.line("squad", LineStyle::Faint, &format!("{left_out} lines are left out; `squad log` has them"));
        }
        for (who, style, text) in lines {
            self.line(&who, style, &text);
        }
    }

    /// Writes a line even while lines wait.
    pub(super) fn write_now(&mut self, who: &str, style: LineStyle, text: &str) {
        self.clear();
        self.screen.line(who, style, text);
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

    fn line(&mut self, who: &str, style: LineStyle, text: &str) {
        let Some(deferred) = &mut self.deferred else { return self.write_now(who, style, text) };
        deferred.lines.push_back((who.to_owned(), style, text.to_owned()));
        if deferred.lines.len() > MAX_DEFERRED {
            deferred.lines.pop_front();
            deferred.left_out += 1;
        }
    }

    fn card(&mut self, lines: &[Text]) {
        self.clear();
        self.screen.card(lines);
    }

    fn columns(&self) -> usize {
        self.screen.columns()
    }

    fn is_animated(&self) -> bool {
        false
    }

    fn is_verbose(&self) -> bool {
        self.screen.is_verbose()
    }
}
