//! Appends beside a user's `git gc --prune=now`, which removes what nothing leads to, however new.

use std::{cell::Cell, thread, time::Duration};

thread_local! {
    static WINDOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Between the pack and the ref.
pub(in crate::git) fn linger() {
    thread::sleep(WINDOW.get());
}
