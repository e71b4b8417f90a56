//! A moving line that says how far something long has come.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::model::plural;

/// What is done sooner is not worth a line.
const QUICK: Duration = Duration::from_millis(400);

/// How often a line that stands still is drawn again, so that it is seen to live.
const TICK: Duration = Duration::from_millis(120);

/// Nothing where stderr is no terminal. Dropped, the line is gone.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    since: Instant,
}

impl Progress {
    pub(crate) fn new(is_shown: bool) -> Self {
        Self { bar: is_shown.then(ProgressBar::hidden), since: Instant::now() }
    }

    /// Something begins that may be long and cannot be counted.
    pub(crate) fn begin(&self, what: &str) {
        let Some(bar) = &self.bar else { return };
        bar.set_message(what.to_owned());
        self.show(bar);
    }

    /// So many things were looked at.
    pub(crate) fn at(&self, what: &str, count: usize, noun: &str) {
        let Some(bar) = self.bar.as_ref().filter(|_| self.since.elapsed() > QUICK) else { return };
        bar.set_message(format!("{what}: {}", plural(count, noun)));
        self.show(bar);
    }

    fn show(&self, bar: &ProgressBar) {
        if bar.is_hidden() {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
