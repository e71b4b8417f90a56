//! Tiers of work.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much effort a message gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tier {
    /// No agent is started; the coordinator answers.
    Direct,
    /// A small model, read-only tools, no history and no decisions.
    Lightweight,
    /// The charter's model and tools, full context.
    #[default]
    Standard,
    /// Several agents in parallel on the premium model.
    Full,
}

impl Tier {
    /// Parses the name of a tier in which agents work.
    pub(crate) fn of_work(name: &str) -> Option<Self> {
        [Self::Lightweight, Self::Standard, Self::Full].into_iter().find(|tier| tier.to_string() == name)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Lightweight => "lightweight",
            Self::Standard => "standard",
            Self::Full => "full",
        })
    }
}
