//! YAML between `---` lines at the top of a file. It is read as data and never evaluated.

use std::fmt::{self, Formatter};

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::UserMessageFormatter;

use super::Files;
use super::words::comma_list;
use crate::model::Problem;

pub(super) struct Error {
    /// The line in the front matter, from 1.
    pub(super) line: usize,
    pub(super) message: String,
}

/// A list, or one text with commas.
pub(super) enum Several {
    List(Vec<String>),
    Text(String),
}

/// Not an untagged enum: that would take the text `y` in a list for a truth value.
impl<'de> Deserialize<'de> for Several {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeveralVisitor)
    }
}

struct SeveralVisitor;

impl<'de> Visitor<'de> for SeveralVisitor {
    type Value = Several;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Several, E> {
        Ok(Several::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Several, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(Several::List(texts))
    }
}

impl Several {
    /// An empty text means unset; an empty list means none.
    pub(super) fn list(self) -> Option<Vec<String>> {
        match self {
            Self::List(list) => Some(list),
            Self::Text(text) if text.trim().trim_matches(['\'', '"']) == "*" => Some(vec!["*".to_owned()]),
            Self::Text(text) => Some(comma_list(&text)).filter(|list| !list.is_empty()),
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::List(list) => list.join(", "),
            Self::Text(text) => text,
        }
    }
}

/// The front matter, if any, and the offset of the text after it. Needs LF line ends.
pub(super) fn split(text: &str) -> (Option<&str>, usize) {
    let Some(rest) = text.strip_prefix("---\n") else { return (None, 0) };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(&rest[..at]), 4 + at + line.len());
        }
        at += line.len();
    }
    (None, 0)
}

/// A text without its front matter. Needs LF line ends.
pub(crate) fn body(text: &str) -> &str {
    text.get(split(text).1..).unwrap_or_default().trim_start_matches('\n')
}

pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(1, |location| usize::try_from(location.line()).unwrap_or(1));
        let message = match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("the key `{key}` appears twice")
            }
            error => error.render_with_formatter(&UserMessageFormatter),
        };
        Error { line, message: message.lines().next().unwrap_or_default().to_owned() }
    })
}

/// The front matter of a file, and the offset of the text after it. If it cannot be read, that is reported.
pub(super) fn of_file<T>(files: &Files, path: &str, text: &str, problems: &mut Vec<Problem>) -> (T, usize)
where
    T: DeserializeOwned + Default,
{
    let (matter, body_at) = split(text);
    let matter = matter.map_or_else(|| Ok(T::default()), read);
    let matter = matter.unwrap_or_else(|error: Error| {
        let message = format!("the front matter is not YAML squad can read: {}", error.message);
        let problem = Problem::warning(files.at(path, 1 + error.line), "front-matter", message);
        problems
            .push(problem.hint("quote values that contain a colon; until then squad uses only the rest of the file"));
        T::default()
    });
    (matter, body_at)
}
