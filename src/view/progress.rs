//! What a command is doing, on a line that is redrawn, or without a terminal on a line now and then.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::region;
use super::text::{Painter, Text};
use crate::model::{Activity, clock};

/// Interval for redrawing an unchanged line, to show that the program is alive.
const TICK: Duration = Duration::from_millis(120);
const FRAMES: [&str; 4] = ["|", "/", "-", "\\"];
/// Times are shown from this on.
const LONG: u64 = 3;
/// Without a terminal, a line is written after so long without another.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Shows an activity while it lives.
pub(crate) struct Progress {
    /// Held while something is shown. `None`: nothing is.
    shown: Option<Arc<Mutex<()>>>,
    is_animated: bool,
}

impl Progress {
    /// `is_animated`: `None`: nothing is shown.
    pub(crate) fn of(activity: &Activity, is_animated: Option<bool>) -> Self {
        let Some(is_animated) = is_animated else { return Self { shown: None, is_animated: false } };
        let shown = Arc::<Mutex<()>>::default();
        let (alive, activity, since) = (Arc::downgrade(&shown), activity.clone(), Instant::now());
        let (mut frames, mut written) = (FRAMES.iter().cycle(), since);
        ticker("progress", TICK, move || {
            let Some(alive) = alive.upgrade() else { return false };
            let (_shown, doing) = (alive.lock(), activity.now());
            let seconds = since.elapsed().as_secs();
            if doing.is_nothing() {
                return true;
            }
            if is_animated {
                let frame = frames.next().copied().unwrap_or_default();
                let time = if seconds < LONG { String::new() } else { format!("  {}", clock(seconds)) };
                let line = Text::default().plain(&format!("{frame} {doing}{time}"));
                let columns = region::screen_size().columns.saturating_sub(1);
                region::draw(&[line.cut(columns)], Painter::default());
            } else if written.elapsed() >= SILENCE {
                written = Instant::now();
                let line = Text::default().plain(&format!("{doing}, {}", clock(seconds)));
                // Nobody reads a closed stream.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            true
        });
        Self { shown: Some(shown), is_animated }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(shown) = self.shown.take().filter(|_| self.is_animated) {
            // The thread draws only while it holds this.
            let _shown = shown.lock();
            region::clear();
        }
    }
}

/// Calls `tick` on a thread of its own again and again, as long as it returns `true`. Without a thread, never.
pub(super) fn ticker(name: &str, pause: Duration, mut tick: impl FnMut() -> bool + Send + 'static) {
    let again = move || loop {
        thread::sleep(pause);
        if !tick() {
            return;
        }
    };
    drop(thread::Builder::new().name(name.to_owned()).spawn(again));
}
