//! The tiers as command line values.

use crate::model::Tier;

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum TierName {
    /// No agent starts; the coordinator answers
    Direct,
    /// A small model and read-only tools
    Lightweight,
    /// The charter's own model and tools
    Standard,
    /// The premium model
    Full,
}

impl From<TierName> for Tier {
    fn from(name: TierName) -> Self {
        match name {
            TierName::Direct => Self::Direct,
            TierName::Lightweight => Self::Lightweight,
            TierName::Standard => Self::Standard,
            TierName::Full => Self::Full,
        }
    }
}
