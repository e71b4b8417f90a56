//! What a run is asked to do, and how it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::engine::command::Profile;
use crate::engine::rehearsal;
use crate::error::Failure;
use crate::model::{Attachment, GivenMember, Outcome, RunId, Slug};
use crate::ops::decisions::landing::{Landed, Left};
use crate::ops::run::resume::Interrupted;
use crate::policy::Permissions;
use crate::pool::Ask;
use crate::route::Wishes;
use crate::settings::{self, Layer};

/// What the user asked for.
pub(crate) struct Order {
    pub(crate) message: String,
    pub(crate) wishes: Wishes,
    /// Settings that the call named, by their flags without dashes.
    pub(crate) flags: BTreeMap<String, String>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) permissions: Permissions,
    /// Read before the run begins, so that a mistake in it costs nothing.
    pub(crate) script: Option<rehearsal::Script>,
    /// Land the run's decisions on the branch.
    pub(crate) commit: bool,
    pub(crate) ask: Option<Ask>,
    /// Who lands, where this process may not.
    pub(crate) land: Option<Land>,
    /// What the message belongs to. `None`: it stands alone.
    pub(crate) conversation: Option<Conversation>,
    /// The run that goes on, where this is none of its own.
    pub(crate) resumed: Option<Interrupted>,
    /// Those that a caller has named with their tasks: nobody is chosen then.
    pub(crate) members: Vec<NamedMember>,
    /// An engine that the user's environment describes, as the one of the run.
    pub(crate) described: Option<Profile>,
}

/// A member that a caller has named, with the role that it has at this moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NamedMember {
    pub(crate) given: GivenMember,
    /// As people call the role.
    pub(crate) name: String,
    /// The role's own prompt.
    pub(crate) body: String,
    /// The agent of the team that it is.
    pub(crate) agent: Option<Slug>,
}

/// Messages that follow upon each other: sessions keep what was said in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Conversation {
    pub(crate) id: RunId,
    /// Message and answer, the oldest first.
    pub(crate) earlier: Vec<(String, String)>,
}

/// Asks somebody else to land what the run decided.
pub(crate) type Land = Arc<dyn Fn(oneshot::Sender<Result<Landed, Failure>>) + Send + Sync>;

/// Flags whose values a run remembers, and the settings they stand for.
pub(crate) const FLAGS: [(&str, &str); 5] = [
    ("model", "models.override.all"),
    ("engine", "engine.name"),
    ("timeout", "sessions.timeout"),
    ("limit", "sessions.limit"),
    ("max-concurrent", "sessions.max_concurrent"),
];

/// The settings of such flags.
pub(crate) fn flag_settings(flags: &BTreeMap<String, String>) -> Layer {
    let setting = |(name, key): &(&'static str, &'static str)| (*key, flags.get(*name).cloned(), format!("--{name}"));
    settings::from_command_line(FLAGS.iter().map(setting))
}

/// How a run ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) run: RunId,
    pub(crate) status: Outcome,
    pub(crate) answer: Option<String>,
    /// What agents asked for and were not allowed.
    pub(crate) refused: u64,
    /// Whether anything landed.
    pub(crate) has_committed: bool,
    pub(crate) unlanded: Option<Left>,
    /// It was rejected, and nobody is left who may revise it: resuming it ends the same.
    pub(crate) is_stuck: bool,
    /// Why the end of the run is not in the ledger.
    pub(crate) unrecorded: Option<String>,
    /// Why no agent could begin: the run's last event says it too.
    pub(crate) error: Option<Failure>,
}
