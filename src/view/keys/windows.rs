use std::io::{self, IsTerminal, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};

use super::{Key, KeyInput};

/// How often to check whether the wait has been ended: a console can wait for keys only.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A console delivers single key presses in any mode.
pub(crate) struct RawMode(());

impl RawMode {
    pub(crate) fn begin() -> io::Result<Self> {
        match is_ours() {
            true => Ok(Self(())),
            false => Err(io::Error::other("standard input is not a console")),
        }
    }
}

pub(crate) fn restore() {}

pub(crate) fn remember() {}

pub(crate) fn is_ours() -> bool {
    stdin().is_terminal()
}

pub(crate) struct Keys {
    woken: Arc<AtomicBool>,
}

/// Ends the current wait for a key, or the next one.
#[derive(Clone)]
pub(crate) struct Waker(Arc<AtomicBool>);

impl Waker {
    pub(crate) fn wake(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Keys {
    pub(crate) fn new() -> io::Result<(Self, Waker)> {
        let woken = Arc::<AtomicBool>::default();
        Ok((Self { woken: Arc::clone(&woken) }, Waker(woken)))
    }

    /// The next key that has already been typed.
    pub(crate) fn buffered(&mut self) -> Option<Key> {
        while poll(Duration::ZERO).is_ok_and(|is_ready| is_ready) {
            if let Event::Key(event) = read().ok()?
                && event.kind != KeyEventKind::Release
                && let Some(key) = translate(event)
            {
                return Some(key);
            }
        }
        None
    }

    /// `None`: there was none within this time.
    pub(crate) fn next_within(&mut self, limit: Duration) -> Option<KeyInput> {
        if !poll(limit).is_ok_and(|is_ready| is_ready) {
            return None;
        }
        self.buffered().map(KeyInput::Key)
    }

    /// Waits for the next key.
    pub(crate) fn next(&mut self) -> KeyInput {
        loop {
            if self.woken.swap(false, Ordering::AcqRel) {
                return KeyInput::Woken;
            }
            match poll(POLL_INTERVAL).and_then(|is_ready| if is_ready { read().map(Some) } else { Ok(None) }) {
                Ok(Some(Event::Key(event))) if event.kind != KeyEventKind::Release => {
                    if let Some(key) = translate(event) {
                        return KeyInput::Key(key);
                    }
                }
                Ok(_) => {}
                Err(_) => return KeyInput::End,
            }
        }
    }
}

fn translate(KeyEvent { code, modifiers, .. }: KeyEvent) -> Option<Key> {
    Some(match code {
        // AltGr produces characters.
        KeyCode::Char(letter) if modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT) == KeyModifiers::CONTROL => {
            Key::Control(letter.to_ascii_lowercase())
        }
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}
