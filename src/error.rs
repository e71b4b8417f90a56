//! A command's failure: kind, message and hint, decided at the edge.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::engine::EngineError;
use crate::model::{Problem, RunError};

/// Why a command stops. Each kind has an exit code; README and `--help` list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FailureKind {
    /// The work itself failed.
    Failed,
    Usage,
    /// The repository, the team or the configuration cannot be used.
    Team,
    Engine,
    /// A rule of the user's or the project's forbids it.
    Policy,
    Interrupted,
}

impl FailureKind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Team => 3,
            Self::Engine => 4,
            Self::Policy => 5,
            Self::Interrupted => 130,
        }
    }
}

/// Its name in JSON.
impl From<FailureKind> for &'static str {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Failed => "failed",
            FailureKind::Usage => "usage",
            FailureKind::Team => "team",
            FailureKind::Engine => "engine",
            FailureKind::Policy => "policy",
            FailureKind::Interrupted => "interrupted",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

    /// A problem that makes the team or its configuration unusable.
    pub(crate) fn of_problem(problem: &Problem) -> Self {
        let failure = Self::team(problem.message.clone());
        let failure = match problem.line {
            0 => failure.at(&problem.file),
            line => failure.at(format!("{}:{line}", problem.file)),
        };
        match &problem.hint {
            Some(hint) => failure.hint(hint.clone()),
            None => failure,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Another way out.
    pub(crate) fn hint_too(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(self.hint.into_iter().chain([hint.into()]).collect::<Vec<_>>().join("\n"));
        self
    }

    /// The error in the last event of a run that it ended.
    pub(crate) fn of_run(&self) -> RunError {
        let (message, hint, source) = (self.message.clone(), self.hint.clone(), self.source.clone());
        RunError { kind: <&str>::from(self.kind).to_owned(), message, hint, source }
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
