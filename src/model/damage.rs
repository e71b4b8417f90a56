//! Parts of the ledger that cannot be read and are skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Activity, Problem, Source};

/// A file or folder of the ledger that cannot be read, while everything else can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Damage {
    /// Relative to the ledger's root; empty for the root itself.
    pub(crate) path: String,
    /// The object found there.
    pub(crate) object: Option<String>,
    pub(crate) kind: DamageKind,
    pub(crate) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DamageKind {
    /// The object is missing or corrupt. Another clone may have it.
    Unreadable,
    /// The object is intact, but not an entry written by squad.
    Malformed,
    /// The folder can be read, but is not in its right location.
    Displaced,
    /// The entry was written by a newer version of squad.
    Newer,
}

impl Damage {
    fn message(&self) -> String {
        match self.kind {
            DamageKind::Displaced => self.reason.clone(),
            _ => format!("{}; it is skipped", self.reason),
        }
    }

    /// The problem as shown by `squad doctor` and in warnings.
    pub(crate) fn problem(&self) -> Problem {
        let (code, hint) = match self.kind {
            DamageKind::Unreadable => {
                ("ledger-unreadable", "`squad doctor --repair` fetches it from a remote, or sets it aside")
            }
            DamageKind::Malformed => ("ledger-malformed", "`squad doctor --repair` sets it aside"),
            DamageKind::Displaced => ("ledger-displaced", "`squad doctor --repair` puts it back"),
            DamageKind::Newer => ("ledger-newer", "a newer squad wrote it: update squad to read it"),
        };
        let location = match self.path.as_str() {
            "" => "refs/squad/log".to_owned(),
            path => format!("refs/squad/log:{path}"),
        };
        Problem::warning(Source::new(location, 0), code, self.message()).hint(hint)
    }
}

/// Collects damage found while reading the ledger, and what of a commit is too large to be read; the command reports it
/// at its end. Clones share one log.
#[derive(Clone, Default)]
pub struct DamageLog {
    damage: Arc<Mutex<BTreeMap<String, Damage>>>,
    passed_over: Arc<Mutex<BTreeMap<String, Problem>>>,
    /// Says something at once.
    voice: Arc<Mutex<Option<Voice>>>,
    activity: Activity,
}

type Voice = Box<dyn FnMut(&str) + Send>;

impl fmt::Debug for DamageLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DamageLog").field("damage", &self.damage).finish_non_exhaustive()
    }
}

impl DamageLog {
    /// Only the first report for each path counts.
    pub(crate) fn add(&self, damage: Damage) {
        self.damage.lock().entry(damage.path.clone()).or_insert(damage);
    }

    /// `place`: a path in a commit, which is not read.
    pub(crate) fn add_passed_over(&self, place: &str, why: &str) {
        let problem = Problem::warning(Source::new(place.to_owned(), 0), "too-large", format!("{why}; it is skipped"));
        self.passed_over.lock().insert(place.to_owned(), problem);
    }

    /// What is going on while the ledger and the repository are read or written.
    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }

    pub(crate) fn speak_with(&self, voice: impl FnMut(&str) + Send + 'static) {
        *self.voice.lock() = Some(Box::new(voice));
    }

    /// Says at once what keeps the command waiting.
    pub(crate) fn say(&self, text: &str) {
        if let Some(voice) = self.voice.lock().as_mut() {
            voice(text);
        }
    }

    /// The damage of the ledger.
    pub(crate) fn all(&self) -> Vec<Damage> {
        self.damage.lock().values().cloned().collect()
    }

    /// Whether these are all reports, ordered by path.
    pub(crate) fn is(&self, reports: &[Damage]) -> bool {
        self.damage.lock().values().eq(reports)
    }

    /// What of a commit is too large to be read.
    pub(crate) fn passed_over(&self) -> Vec<Problem> {
        self.passed_over.lock().values().cloned().collect()
    }

    /// Empties the log, for callers that report it themselves.
    pub(crate) fn take(&self) -> Vec<Damage> {
        std::mem::take(&mut *self.damage.lock()).into_values().collect()
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        let damage: Vec<Problem> = self.damage.lock().values().map(Damage::problem).collect();
        damage.into_iter().chain(self.passed_over()).collect()
    }
}
