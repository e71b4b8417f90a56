//! The revisions of the protocol, and what differs between them here.

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Version {
    const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The newest first, as `server/discover` and refusals list them.
    pub(super) fn names() -> Vec<Value> {
        Self::ALL.iter().rev().map(|version| version.name().into()).collect()
    }

    /// What `initialize` is answered with: the version asked for, or else the newest that has that request.
    pub(super) fn agreed(asked: &str) -> Self {
        Self::parse(asked).filter(|version| !version.is_stateless()).unwrap_or(Self::V2025_11_25)
    }

    /// Every request stands alone, and lists say how long they hold.
    pub(crate) fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// A tool's result may link to resources.
    pub(crate) fn has_links(self) -> bool {
        self >= Self::V2025_06_18
    }
}
