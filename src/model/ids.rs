//! Ids. Who makes them is `env::Ids`; here is only what they look like.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(String);

        impl $name {
            pub(crate) fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

text_id! {
    /// A run of `squad orchestrate`: `yyyymmdd-hhmmss-xxxxxx`, UTC and six random hex digits.
    ///
    /// The date leads, so ids sort by time and name the day folder in which the run's ledger entries begin.
    RunId
}

text_id! {
    /// A decision, for ever: the last twelve hex digits of the ledger entry that first recorded it.
    ///
    /// Decisions read from a `decisions.md` have no such entry; theirs is a hash of their text.
    DecisionId
}

text_id! {
    /// A ledger entry: a version 7 UUID, so that ids sort by the time they were made.
    EntryId
}

impl RunId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl DecisionId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl EntryId {
    /// The id of the decision that this entry records.
    pub(crate) fn decision(&self) -> DecisionId {
        DecisionId::new(self.0.rsplit('-').next().unwrap_or(&self.0))
    }
}
