//! Reads single key presses, without waiting for Enter and without echo.
//!
//! ```text
//! let (mut keys, waker) = Keys::new()?;   // the waker ends a wait from another thread
//! let raw = RawMode::begin()?;            // restores the terminal when dropped
//! match keys.next() { Heard::Key(key) => …, Heard::Woken => …, Heard::End => … }
//! ```
//!
//! Ctrl-C and similar keys remain signals. Code that exits without running destructors must call [`restore`] first.

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
    /// Ctrl with this lower-case letter.
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

/// The result of waiting for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyInput {
    Key(Key),
    /// The waker was used.
    Woken,
    /// The terminal is closed.
    End,
}
