//! A screen with a block at the bottom; lines scroll above it.

use std::collections::VecDeque;

use crate::model::Event;
use crate::view::region::{self, Size};
use crate::view::{LineStyle, Painter, Screen, Text};

/// Lines that may wait while one agent's lines are shown. Beyond that, the oldest are dropped.
const MAX_DEFERRED: usize = 1_000;

pub(crate) struct Board<S> {
    screen: S,
    /// The block is visible.
    is_drawn: bool,
    deferred: Option<Deferred>,
}

/// Lines that wait.
#[derive(Default)]
struct Deferred {
    lines: VecDeque<Text>,
    /// How many were dropped.
    left_out: usize,
}

impl<S: Screen> Board<S> {
    pub(crate) fn new(screen: S) -> Self {
        Self { screen, is_drawn: false, deferred: None }
    }

    pub(crate) fn into_screen(mut self) -> S {
        self.clear();
        self.release();
        self.screen
    }

    pub(super) fn size(&self) -> Size {
        region::screen_size()
    }

    pub(super) fn is_drawn(&self) -> bool {
        self.is_drawn
    }

    pub(super) fn clear(&mut self) {
        self.draw(&[]);
    }

    pub(super) fn draw(&mut self, block: &[Text]) {
        region::draw(block, self.screen.painter());
        self.is_drawn = !block.is_empty();
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
        for line in lines {
            self.text(&line);
        }
    }

    /// Writes a line even while lines wait.
    pub(super) fn write_now(&mut self, line: &Text) {
        self.clear();
        self.screen.text(line);
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

    fn text(&mut self, line: &Text) {
        let Some(deferred) = &mut self.deferred else {
            self.clear();
            return self.screen.text(line);
        };
        deferred.lines.push_back(line.clone());
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

    fn painter(&self) -> Painter {
        self.screen.painter()
    }

    fn is_animated(&self) -> bool {
        false
    }

    fn is_verbose(&self) -> bool {
        self.screen.is_verbose()
    }
}
