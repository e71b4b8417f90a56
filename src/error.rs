//! How a command ends when it does not end well: kind, message and the way out, decided at the edge.

use std::fmt;

use serde::Serialize;

use crate::engine::EngineError;

/// Why a command stops. Each kind has an exit code; README and `--help` list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureKind {
    /// The work itself failed.
    Failed,
    Usage,
    /// The repository, the team or the configuration cannot be used.
    Team,
    Engine,
    Interrupted,
}

impl FailureKind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Team => 3,
            Self::Engine => 4,
            Self::Interrupted => 130,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The file and line it is about.
    pub(crate) source: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    pub(crate) fn team(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Team, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(mut self, source: impl fmt::Display) -> Self {
        self.source = Some(source.to_string());
        self
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { kind: FailureKind::Engine, message: error.to_string(), hint, source: None }
    }
}
