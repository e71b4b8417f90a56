//! Why an engine could not do what it was asked.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `Display` is one sentence for people; [`EngineError::hint`] is the way out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EngineError {
    /// The engine's program is not installed, or not where it was said to be.
    Missing { what: String, hint: String },
    /// It is there and does not start or does not answer.
    Unusable { reason: String, hint: Option<String> },
    /// Its process died before it was ready.
    Died { reason: String, hint: Option<String> },
    /// The machine that it is on cannot be reached, or not any more.
    Unreachable { reason: String },
    /// It speaks another protocol version than squad does.
    Protocol { found: Option<u64>, supported: String, hint: String },
    /// It needs a login or a key.
    Unauthenticated { reason: String, hint: String },
    /// A session of this id cannot be continued.
    NotResumable { session: String, reason: String },
    /// It refused a request, or did not answer in time.
    Request { what: String, reason: String },
}

impl EngineError {
    /// The error with its way out, for a place that has no hints.
    pub(crate) fn with_hint(&self) -> String {
        with_hint(&self.to_string(), self.hint())
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Missing { hint, .. } | Self::Protocol { hint, .. } | Self::Unauthenticated { hint, .. } => Some(hint),
            Self::Unusable { hint, .. } | Self::Died { hint, .. } => hint.as_deref(),
            Self::Unreachable { .. } | Self::NotResumable { .. } | Self::Request { .. } => None,
        }
    }
}

pub(crate) fn with_hint(message: &str, hint: Option<&str>) -> String {
    match hint.filter(|hint| !hint.is_empty()) {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { what, .. } => write!(f, "{what}"),
            Self::Unusable { reason, .. }
            | Self::Died { reason, .. }
            | Self::Unreachable { reason }
            | Self::Unauthenticated { reason, .. } => write!(f, "{reason}"),
            Self::Protocol { found: Some(found), supported, .. } => {
                write!(f, "the engine speaks protocol version {found}; this squad speaks {supported}")
            }
            Self::Protocol { found: None, supported, .. } => {
                write!(f, "the engine does not say which protocol it speaks; this squad speaks {supported}")
            }
            Self::NotResumable { session, reason } => write!(f, "session `{session}` cannot be resumed: {reason}"),
            Self::Request { what, reason } => write!(f, "{what}: {reason}"),
        }
    }
}

impl std::error::Error for EngineError {}
