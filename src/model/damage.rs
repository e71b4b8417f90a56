//! What of the ledger cannot be read, and is passed over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Problem, Source};

/// A file or folder of the ledger that cannot be read. Everything else can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Damage {
    /// From the ledger's root; empty for the root itself.
    pub(crate) path: String,
    /// The object that stands there.
    pub(crate) object: Option<String>,
    pub(crate) kind: DamageKind,
    pub(crate) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DamageKind {
    /// The object is not here, or its bytes are not what they were. Another clone may have it.
    Unreadable,
    /// The object is as it was written, and is no entry that squad wrote.
    Malformed,
    /// The folder can be read, and is not where it was.
    Displaced,
    /// The entry was written by a later squad.
    Newer,
}

impl Damage {
    fn message(&self) -> String {
        match self.kind {
            DamageKind::Displaced => self.reason.clone(),
            _ => format!("{}; it is passed over", self.reason),
        }
    }

    /// As `squad doctor` and warnings show it.
    pub(crate) fn problem(&self) -> Problem {
        let (code, hint) = match self.kind {
            DamageKind::Unreadable => {
                ("ledger-unreadable", "`squad doctor --repair` fetches it from a remote, or sets it aside")
            }
            DamageKind::Malformed => ("ledger-malformed", "`squad doctor --repair` sets it aside"),
            DamageKind::Displaced => ("ledger-displaced", "`squad doctor --repair` puts it back"),
            DamageKind::Newer => ("ledger-newer", "a later squad wrote it: update squad to read it"),
        };
        let place = match self.path.as_str() {
            "" => "refs/squad/log".to_owned(),
            path => format!("refs/squad/log:{path}"),
        };
        Problem::warning(Source::new(place, 0), code, self.message()).hint(hint)
    }
}

/// Where readers of the ledger report what they passed over. A command says it when it ends. Clones share one log.
#[derive(Clone, Debug, Default)]
pub struct DamageLog(Arc<Mutex<BTreeMap<String, Damage>>>);

impl DamageLog {
    /// Of one path only the first report counts.
    pub(crate) fn add(&self, damage: Damage) {
        self.lock().entry(damage.path.clone()).or_insert(damage);
    }

    pub(crate) fn all(&self) -> Vec<Damage> {
        self.lock().values().cloned().collect()
    }

    /// The same, for whoever says it in its own way.
    pub(crate) fn take(&self) -> Vec<Damage> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.lock().values().map(Damage::problem).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Damage>> {
        // A report is added or not; whoever panicked left nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
