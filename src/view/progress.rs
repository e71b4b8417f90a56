//! An animated line that shows the progress of a long operation.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::model::plural;

/// Shorter operations show no line.
const QUICK: Duration = Duration::from_millis(400);

/// Interval for redrawing an unchanged line, to show that the program is alive.
const TICK: Duration = Duration::from_millis(120);

/// Shows nothing if stderr is not a terminal. The line disappears on drop.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    since: Instant,
}

impl Progress {
    pub(crate) fn new(is_shown: bool) -> Self {
        Self { bar: is_shown.then(ProgressBar::hidden), since: Instant::now() }
    }

    /// Begins an operation whose steps cannot be counted.
    pub(crate) fn begin(&self, what: &str) {
        let Some(bar) = &self.bar else { return };
        bar.set_message(what.to_owned());
        self.show(bar);
    }

    /// Shows how many items have been processed.
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
