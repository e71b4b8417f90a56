use std::io::{self, IsTerminal, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};

use super::{Heard, Key};

/// How often to look whether anybody still waits: a console has nothing else to wait for beside its keys.
const LOOK: Duration = Duration::from_millis(100);

/// The console gives keys as they are pressed, whatever its modes are.
pub(crate) struct RawMode(());

impl RawMode {
    pub(crate) fn begin() -> io::Result<Self> {
        match is_ours() {
            true => Ok(Self(())),
            false => Err(io::Error::other("standard input is no console")),
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

/// Ends a wait for a key: the one that goes on, or the next.
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

    /// The next of those that have come already.
    pub(crate) fn buffered(&mut self) -> Option<Key> {
        while poll(Duration::ZERO).is_ok_and(|has_come| has_come) {
            if let Event::Key(event) = read().ok()?
                && event.kind != KeyEventKind::Release
                && let Some(key) = known(event)
            {
                return Some(key);
            }
        }
        None
    }

    /// Waits for the next key.
    pub(crate) fn next(&mut self) -> Heard {
        loop {
            if self.woken.swap(false, Ordering::AcqRel) {
                return Heard::Woken;
            }
            match poll(LOOK).and_then(|has_come| if has_come { read().map(Some) } else { Ok(None) }) {
                Ok(Some(Event::Key(event))) if event.kind != KeyEventKind::Release => {
                    if let Some(key) = known(event) {
                        return Heard::Key(key);
                    }
                }
                Ok(_) => {}
                Err(_) => return Heard::End,
            }
        }
    }
}

fn known(KeyEvent { code, modifiers, .. }: KeyEvent) -> Option<Key> {
    Some(match code {
        // What AltGr types is a character.
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
