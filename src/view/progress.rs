//! A line that shows the progress of a long operation.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::region;
use super::text::{Painter, Text};
use crate::model::{clock, plural};

/// Shorter operations show no line.
const QUICK: Duration = Duration::from_millis(400);

/// Interval for redrawing an unchanged line, to show that the program is alive.
const TICK: Duration = Duration::from_millis(120);
const FRAMES: [&str; 4] = ["|", "/", "-", "\\"];
/// Times are shown from this on.
const LONG: u64 = 3;

/// Shows nothing if stderr is not a terminal. The line disappears on drop.
pub(crate) struct Progress {
    /// What is done; `None`: nothing is shown.
    doing: Option<Arc<Mutex<String>>>,
    since: Instant,
}

impl Progress {
    pub(crate) fn new(is_shown: bool) -> Self {
        let since = Instant::now();
        let doing = is_shown.then(|| {
            let doing = Arc::<Mutex<String>>::default();
            let shown = Arc::downgrade(&doing);
            // Without a thread, nothing is shown.
            drop(thread::Builder::new().name("progress".to_owned()).spawn(move || show(&shown, since)));
            doing
        });
        Self { doing, since }
    }

    /// Begins an operation whose steps cannot be counted.
    pub(crate) fn begin(&self, what: &str) {
        if let Some(doing) = &self.doing {
            what.clone_into(&mut doing.lock());
        }
    }

    /// Shows how many items have been processed.
    pub(crate) fn at(&self, what: &str, count: usize, noun: &str) {
        if self.since.elapsed() > QUICK {
            self.begin(&format!("{what}: {}", plural(count, noun)));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(doing) = self.doing.take() {
            // The thread draws only while it holds this.
            let _doing = doing.lock();
            region::clear();
        }
    }
}

fn show(doing: &Weak<Mutex<String>>, since: Instant) {
    for frame in FRAMES.iter().cycle() {
        thread::sleep(TICK);
        let Some(doing) = doing.upgrade() else { return };
        let doing = doing.lock();
        if doing.is_empty() {
            continue;
        }
        let seconds = since.elapsed().as_secs();
        let time = if seconds < LONG { String::new() } else { format!("  {}", clock(seconds)) };
        let line = Text::default().plain(&format!("{frame} {doing}{time}"));
        let columns = region::screen_size().columns.saturating_sub(1);
        region::draw(&[line.cut(columns)], Painter::default());
    }
}
