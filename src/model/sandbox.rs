use std::fmt;

use serde::{Deserialize, Serialize};

/// What bounds the programs that an engine starts, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxLevel {
    /// [`Self::Files`], and a mount namespace: keys and sockets of daemons are hidden, git's own folder is read-only.
    Full,
    /// The kernel lets them write in the project and in a few folders of their own.
    Files,
    /// Rules on commands, which are advice.
    Rules,
}

impl SandboxLevel {
    pub(crate) const ALL: [Self; 3] = [Self::Full, Self::Files, Self::Rules];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Files => "files",
            Self::Rules => "rules",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// What an agent's git may do with the project's `.git` at level `full`, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GitAccess {
    ReadOnly,
    /// It works on a copy, whose commits are fetched.
    Overlay,
    Open,
}

impl GitAccess {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "read-only" => Some(Self::ReadOnly),
            "overlay" => Some(Self::Overlay),
            "open" => Some(Self::Open),
            _ => None,
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
