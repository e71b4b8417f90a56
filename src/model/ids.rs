//! The formats of ids. `env::Ids` generates them.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Most bytes of an id. File names consist of an id and a title, and are limited to 255 bytes.
const MAX_BYTES: usize = 100;

/// Whether a text is safe in a file name, a line and a commit trailer. Ids come from entries and files that anyone may
/// have written, so this is checked whenever one is parsed.
fn is_safe(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '#' | ' ');
    text.len() <= MAX_BYTES
        && text.starts_with(char::is_alphanumeric)
        && !text.ends_with(' ')
        && text.chars().all(is_plain)
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(String);

        impl $name {
            /// `None` for a text that is not safe as an id, and so in a path.
            pub(crate) fn parse(text: &str) -> Option<Self> {
                is_safe(text).then(|| Self(text.to_owned()))
            }

            #[cfg(test)]
            pub(crate) fn new(text: impl AsRef<str>) -> Self {
                Self::parse(text.as_ref()).expect("tests make ids that can be")
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} cannot be an id")))
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
    /// A decision's permanent id: the last twelve hex digits of the ledger entry that first recorded it.
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

    /// When it began, to the second. `None`: its id does not say.
    pub(crate) fn began(&self) -> Option<jiff::Timestamp> {
        let date = self.0.get(..15)?;
        let date = jiff::civil::DateTime::strptime("%Y%m%d-%H%M%S", date).ok()?;
        Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    }

    /// Whether a person may mean it: by the beginning of its id, or by its short form.
    pub(crate) fn is_meant_by(&self, typed: &str) -> bool {
        self.0.starts_with(typed) || self.short() == typed
    }

    /// Its last part, which distinguishes runs of the same day.
    pub(crate) fn short(&self) -> &str {
        self.0.rsplit('-').next().unwrap_or(&self.0)
    }
}

impl DecisionId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As much of it as people read; commands take it.
    pub(crate) fn short(&self) -> &str {
        self.0.get(..6).unwrap_or(&self.0)
    }

    /// A placeholder until the decision is recorded and gets its id.
    pub(crate) fn unrecorded() -> Self {
        Self("unrecorded".to_owned())
    }
}

impl EntryId {
    /// For an entry that is never written.
    pub(crate) fn unrecorded() -> Self {
        Self("unrecorded".to_owned())
    }

    /// The id of the decision that this entry records.
    pub(crate) fn decision(&self) -> DecisionId {
        // If no part is safe by itself, the whole id is.
        DecisionId(self.0.rsplit('-').find(|part| is_safe(part)).unwrap_or(&self.0).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_unsafe_in_a_path() {
        for good in ["0a1b2c3d4e5f", "20260105-090000-000001", "ADR 12", "Überlegung_3.1+b#2", "a..b"] {
            assert_eq!(DecisionId::parse(good).map(|id| id.to_string()), Some(good.to_owned()));
        }
        let long = "a".repeat(MAX_BYTES + 1);
        let bad =
            ["", " ", "..", "../../x", "a/b", "a\\b", "a:b", "-rf", ".git", "a\nb", "a\0b", "a\u{202e}b", "a ", &long];
        for bad in bad {
            assert_eq!(DecisionId::parse(bad), None, "{bad:?}");
            let json = serde_json::to_string(bad).expect("JSON");
            assert!(serde_json::from_str::<EntryId>(&json).is_err(), "{bad:?}");
            assert!(serde_json::from_str::<RunId>(&json).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_entry_id_gives_a_decision_id() {
        for (entry, decision) in [("019b8d1f-6c00-7000-8000-00000000000a", "00000000000a"), ("a-", "a"), ("x", "x")] {
            assert_eq!(EntryId::new(entry).decision(), DecisionId::new(decision));
        }
        assert!(DecisionId::parse(EntryId::new("a-.-_").decision().as_str()).is_some());
    }
}
