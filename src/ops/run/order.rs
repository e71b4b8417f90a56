//! A run's order (what the user asked for) and its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::engine::command::Profile;
use crate::engine::rehearsal;
use crate::error::Failure;
use crate::model::{Attachment, GivenMember, Outcome, RunId, Slug};
use crate::ops::decisions::landing::{Landed, Pending};
use crate::ops::run::resume::Interrupted;
use crate::policy::Permissions;
use crate::pool::Ask;
use crate::route::RouteOptions;
use crate::settings::{self, Layer};

/// A run as the user asked for it.
#[derive(Default)]
pub(crate) struct Order {
    pub(crate) message: String,
    pub(crate) route_options: RouteOptions,
    /// Settings given as flags, by flag name without dashes.
    pub(crate) flags: BTreeMap<String, String>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) permissions: Permissions,
    /// Read before the run starts, so that a mistake in it costs nothing.
    pub(crate) script: Option<rehearsal::Script>,
    /// Land the run's decisions on the branch.
    pub(crate) commit: bool,
    pub(crate) ask: Option<Ask>,
    /// Lands the decisions in another process, if this one may not.
    pub(crate) land: Option<Land>,
    /// The conversation that the message belongs to, if any.
    pub(crate) conversation: Option<Conversation>,
    /// Agents work in sessions of the run, without what they did before.
    pub(crate) fresh: bool,
    /// The interrupted run that this one resumes.
    pub(crate) resumed: Option<Interrupted>,
    /// Members that an MCP client named, with their tasks. If there are any, routing is skipped.
    pub(crate) members: Vec<NamedMember>,
    /// The run's engine, if environment variables describe one.
    pub(crate) described: Option<Profile>,
}

impl Order {
    /// Whether `check.run` is run on what agents change.
    pub(crate) fn is_checked(&self) -> bool {
        !self.flags.contains_key(NO_CHECK)
    }
}

/// A member that an MCP client named, with its role at this moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NamedMember {
    pub(crate) given: GivenMember,
    /// The role's display name.
    pub(crate) name: String,
    /// The role's own prompt.
    pub(crate) body: String,
    /// The team's agent, if the role is one.
    pub(crate) agent: Option<Slug>,
}

/// A conversation: its sessions remember earlier messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Conversation {
    pub(crate) id: RunId,
    /// Message and answer, the oldest first.
    pub(crate) earlier: Vec<(String, String)>,
}

/// Asks another process to land the run's decisions.
pub(crate) type Land = Arc<dyn Fn(oneshot::Sender<Result<Landed, Failure>>) + Send + Sync>;

/// Flags that are recorded with the run, and the settings they stand for.
pub(crate) const FLAGS: [(&str, &str); 7] = [
    ("model", "models.override.all"),
    ("engine", "engine.name"),
    ("timeout", "sessions.timeout"),
    ("limit", "sessions.limit"),
    ("max-concurrent", "sessions.max_concurrent"),
    ("isolation", "isolation.mode"),
    ("on", "isolation.host"),
];

/// Flags that are recorded with the run too, and have no value.
pub(crate) const CHECK: &str = "check";
pub(crate) const NO_CHECK: &str = "no-check";
pub(crate) const WAIT: &str = "wait";

/// The settings layer of such flags.
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
    /// The number of refused requests.
    pub(crate) refused: u64,
    /// Whether anything landed.
    pub(crate) has_committed: bool,
    pub(crate) unlanded: Option<Pending>,
    /// Why the end of the run is not in the ledger.
    pub(crate) unrecorded: Option<String>,
    /// Why no agent started; also in the run's last event.
    pub(crate) error: Option<Failure>,
}

impl Ended {
    /// The end of a run in which no agent worked, as far as this process knows.
    pub(in crate::ops::run) fn without_work(run: RunId, status: Outcome, error: Option<Failure>) -> Self {
        Self { run, status, answer: None, refused: 0, has_committed: false, unlanded: None, unrecorded: None, error }
    }
}
