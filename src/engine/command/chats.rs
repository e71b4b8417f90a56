//! Maps sessions to the chats of their engines. Callers know only the session, so that an engine's own id never comes
//! from outside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::env::files::replace;
use crate::model::{Usage, from_json, to_json};

/// A folder with a file for each session that can be continued.
#[derive(Clone, Debug)]
pub(crate) struct Chats(PathBuf);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chat {
    pub(crate) engine: String,
    /// The engine's own id.
    pub(in crate::engine) chat: String,
    /// The chat's total usage, if the engine reports totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) counted: Option<Usage>,
    /// A hash of the instructions that its model has been given, if it is given new ones only in so many words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) instructed: Option<String>,
}

impl Chats {
    /// `place`: empty, or what tells a linked work tree or an inner team from the others, which have agents of these names too.
    pub(crate) fn new(local: &Path, place: &str) -> Self {
        Self(local.join("chats").join(place))
    }

    /// The chat of a session; `None`: there is no usable one.
    pub(crate) fn find(&self, session: &str) -> Option<Chat> {
        let text = fs::read_to_string(self.file(session)?).ok()?;
        let chat: Chat = from_json(&text).ok()?;
        is_chat_id(&chat.chat).then_some(chat)
    }

    pub(in crate::engine) fn store(&self, session: &str, chat: &Chat) -> io::Result<()> {
        let file = self.file(session).ok_or(io::ErrorKind::InvalidInput)?;
        replace(&file, to_json(chat)?.as_bytes())
    }

    pub(in crate::engine) fn remove(&self, session: &str) {
        // This fails if there is none.
        let _ = self.file(session).map(fs::remove_file);
    }

    fn file(&self, session: &str) -> Option<PathBuf> {
        is_session_id(session).then(|| self.0.join(format!("{session}.json")))
    }
}

/// Whether a text can be a session's id, and so is safe as a file name.
pub(in crate::engine) fn is_session_id(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_plain && (1..=200).contains(&text.len())
}

/// Whether a text can be a chat's id, and so is safe as an argument.
pub(super) fn is_chat_id(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    is_plain && (1..=200).contains(&text.len()) && !text.starts_with('-')
}

/// Finds the id in a command's output: its only UUID, or else its last line.
pub(super) fn printed_id(output: &str) -> Option<String> {
    let mut uuids = output.split_whitespace().filter(|word| word.len() == 36 && uuid::Uuid::try_parse(word).is_ok());
    if let (Some(id), None) = (uuids.next(), uuids.next()) {
        return Some(id.to_owned());
    }
    let last = output.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    is_chat_id(last).then(|| last.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_among_other_output() {
        let id = "7fda4967-f6ae-4e4f-97b5-47d8fbde6340";
        for output in [id.to_owned(), format!("Welcome!\nchat: {id} made\nBye.\n"), format!("\n{id}\r\n")] {
            assert_eq!(printed_id(&output).as_deref(), Some(id), "{output}");
        }
        assert_eq!(printed_id("Update available\nses_12.a\n").as_deref(), Some("ses_12.a"));
        // Of two, either may be of something else: only the last line can tell.
        let other = "11111111-f6ae-4e4f-97b5-47d8fbde6340";
        for (last, found) in [(other, Some(other)), ("resume it with `--resume ID`", None)] {
            assert_eq!(printed_id(&format!("user {other}\nchat {id}\n{last}\n")).as_deref(), found, "{last}");
        }
        for output in ["", "\n", "Not logged in. Run `login`.", "--resume", "a;b", "$(id)"] {
            assert_eq!(printed_id(output), None, "{output}");
        }
    }

    #[test]
    fn only_valid_ids_are_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let chats = Chats::new(folder.path(), "");
        let chat = Chat { engine: "claude".to_owned(), chat: "abc".to_owned(), counted: None, instructed: None };
        chats.store("squad-backend", &chat).expect("it is stored");
        assert_eq!(chats.find("squad-backend"), Some(chat));
        for other in ["abc", "", "../chats/squad-backend", "a/b", "squad-backend.json"] {
            assert_eq!(chats.find(other), None, "{other}");
        }
        fs::write(folder.path().join("chats/odd.json"), r#"{"engine":"claude","chat":"--yolo"}"#).expect("a file");
        assert_eq!(chats.find("odd"), None);
    }
}
