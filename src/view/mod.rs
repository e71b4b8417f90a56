//! Events to whoever watches: lines for people, NDJSON for programs.
//!
//! A view writes to a [`Screen`], which `ui` is: so the view knows nothing of streams, colours or flags.

mod ask;
mod cautious;
#[cfg(test)]
mod every_kind_tests;
mod json;
pub(crate) mod keys;
mod lines;
mod live;
mod progress;
mod shown;
mod watched;

pub(crate) use ask::{Terminal, asker};
pub(crate) use cautious::Cautious;
pub(crate) use json::json_line;
pub(crate) use lines::Lines;
pub(crate) use live::{Board, Live};
pub(crate) use progress::Progress;
pub(crate) use shown::{Follow, Showing, Shown, Shows, Wish};
pub(crate) use watched::Watched;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::Event;
use crate::pool::Show;

/// What a view needs of the place it writes to.
pub(crate) trait Screen {
    /// Data: the answer.
    fn answer(&mut self, text: &str);

    /// One event as one line of JSON.
    fn event(&mut self, event: &Event);

    /// Conversation. `who` begins the line; `mood` may colour it.
    fn line(&mut self, who: &str, mood: Mood, text: &str);

    /// Whether something may move on it.
    fn is_lively(&self) -> bool;
}

/// One screen for several who write to it.
impl<S: Screen> Screen for Arc<Mutex<S>> {
    fn answer(&mut self, text: &str) {
        shared(self).answer(text);
    }

    fn event(&mut self, event: &Event) {
        shared(self).event(event);
    }

    fn line(&mut self, who: &str, mood: Mood, text: &str) {
        shared(self).line(who, mood, text);
    }

    fn is_lively(&self) -> bool {
        shared(self).is_lively()
    }
}

pub(crate) fn shared<S>(screen: &Mutex<S>) -> MutexGuard<'_, S> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What kind of thing a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Plain,
    Faint,
    Good,
    Bad,
    Warning,
}

/// Either of the two views.
pub(crate) enum View<S> {
    Json(S),
    Lines(Lines<S>),
}

impl<S: Screen> View<S> {
    /// Conversation beside the events; programs are told none.
    pub(crate) fn say(&mut self, text: &str) {
        if let Self::Lines(lines) = self {
            lines.say(text);
        }
    }

    pub(crate) fn into_screen(self) -> S {
        match self {
            Self::Json(screen) => screen,
            Self::Lines(lines) => lines.into_screen(),
        }
    }
}

impl<S: Screen> Show for View<S> {
    fn show(&mut self, event: &Event) {
        match self {
            Self::Json(screen) => screen.event(event),
            Self::Lines(lines) => lines.show(event),
        }
    }
}
