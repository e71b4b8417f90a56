//! What an engine can do: squad offers, says and falls back to other ways by it.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::model::IntoSet;
use crate::settings::SessionProtocol;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capability {
    /// Its messages arrive while they are written.
    Streaming,
    /// Its agents may ask a person, and squad before they act.
    Questions,
    /// Its agents have squad's own tools.
    Tools,
    /// A message reaches a turn that goes on.
    Steering,
    /// squad decides on its calls before they are made.
    Hooks,
    /// A session goes on after its process has ended.
    Resume,
    /// It reports tokens.
    Usage,
    /// Its models see attached images.
    Images,
    /// The model is chosen for each agent.
    Models,
    /// The effort of the model is chosen for each agent.
    Effort,
    /// squad's sandbox bounds its programs.
    Sandbox,
}

impl Capability {
    const ALL: [(Self, &str); 11] = [
        (Self::Streaming, "streaming"),
        (Self::Questions, "questions"),
        (Self::Tools, "tools"),
        (Self::Steering, "steering"),
        (Self::Hooks, "hooks"),
        (Self::Resume, "resume"),
        (Self::Usage, "usage"),
        (Self::Images, "images"),
        (Self::Models, "models"),
        (Self::Effort, "effort"),
        (Self::Sandbox, "sandbox"),
    ];
}

/// As JSON: each capability by its name, and whether the engine has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    pub(crate) fn all() -> Self {
        Capability::ALL.into_iter().map(|(capability, _)| capability).collect()
    }

    pub(super) fn of(protocol: SessionProtocol) -> Self {
        match protocol {
            SessionProtocol::Claude | SessionProtocol::Codex => Self::all(),
        }
    }

    pub(crate) fn without(mut self, missing: &[Capability]) -> Self {
        self.0.retain(|capability| !missing.contains(capability));
        self
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// The names of those it has.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        Capability::ALL.iter().filter(|(capability, _)| self.has(*capability)).map(|(_, name)| *name).collect()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<T: IntoIterator<Item = Capability>>(capabilities: T) -> Self {
        Self(capabilities.into_set())
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Capability::ALL.iter().map(|(capability, name)| (name, self.has(*capability))))
    }
}
