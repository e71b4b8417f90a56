//! A problem with its location.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Serialize};

/// A location in a team file: its path relative to the project's root, with `/`, and a line counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) line: usize,
}

impl Source {
    pub(crate) fn new(file: impl Into<String>, line: usize) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Serialize for Source {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = text.rsplit_once(':').and_then(|(file, line)| Some(Self::new(file, line.parse().ok()?)));
        read.ok_or_else(|| D::Error::custom("a source is FILE:LINE"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Note,
    Warning,
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A problem in a team file or in the configuration that a person should look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) severity: Severity,
    /// A stable identifier in kebab case, for programs.
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(severity: Severity, source: Source, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            file: source.file,
            line: source.line,
            severity,
            code: Cow::Borrowed(code),
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn warning(source: Source, code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, source, code, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        self
    }
}

impl fmt::Display for Problem {
    /// The location, if known, and the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}
