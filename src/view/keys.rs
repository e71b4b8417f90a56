//! Keys as they are pressed, one at a time: no line has to be ended, and none is echoed.
//!
//! ```text
//! let (mut keys, waker) = Keys::new()?;   // the waker ends a wait from anywhere
//! let raw = RawMode::begin()?;            // dropped, the terminal is as it was
//! match keys.next() { Heard::Key(key) => …, Heard::Woken => …, Heard::End => … }
//! ```
//!
//! Ctrl-C and its like stay the signals that they are. Whoever ends the program without dropping anything calls
//! [`restore`] first.

#[cfg(unix)]
mod decode;
#[cfg(unix)]
#[path = "keys/unix.rs"]
mod platform;
#[cfg(windows)]
#[path = "keys/windows.rs"]
mod platform;

#[cfg(unix)]
pub(crate) use platform::resume;
pub(crate) use platform::{Keys, RawMode, Waker, is_ours, remember, restore};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// With the control key, as its small letter.
    Control(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Key(Key),
    /// Nobody has to wait any more, or there is something else to do.
    Woken,
    /// The terminal is gone.
    End,
}
