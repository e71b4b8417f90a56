//! Which paths a file that we write may have.

use super::error::Error;

/// Rejects paths that are not relative and plain, or that git or a file system would read differently.
pub(super) fn check_path(path: &str) -> Result<(), Error> {
    let is_bad = |name: &str| {
        let lower = name.to_ascii_lowercase();
        matches!(name, "" | "." | "..") || lower == ".git" || lower == "git~1" || name.ends_with([' ', '.'])
    };
    let has_odd_character =
        path.chars().any(|character| character.is_control() || matches!(character, '\\' | ':' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'));
    if has_odd_character || path.split('/').any(is_bad) {
        Err(Error::BadPath { path: path.to_owned() })
    } else {
        Ok(())
    }
}
