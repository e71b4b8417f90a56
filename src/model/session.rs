//! What a session is made of: the result of compiling a team for one agent.

use serde::{Deserialize, Serialize};

use super::{Slug, Tier};

/// Everything an engine needs to open a session for one agent. A pure function of team, settings, tier and task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SessionSpec {
    pub(crate) agent: Slug,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) tier: Tier,
    /// The agent's own prompt: its charter.
    pub(crate) prompt: String,
    /// Appended to the engine's system message: the team, its rules and its decisions. Markdown; empty for none.
    pub(crate) context: String,
    pub(crate) model: ModelChoice,
    pub(crate) tools: ToolChoice,
    /// Fraction of the context window at which an endless session compacts itself, 0..1; `None`: not endless.
    pub(crate) compaction_threshold: Option<f64>,
    /// BLAKE3 of what the session is made of, in hex. A session is made anew when this changes.
    pub(crate) compiled_hash: String,
}

/// A model and the layer of the configuration that chose it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ModelChoice {
    pub(crate) id: String,
    pub(crate) layer: ModelLayer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModelLayer {
    /// `--model`, `SQUAD_MODEL`, `[models.override]` of the user's own file.
    User,
    /// The charter's Model section.
    Charter,
    /// `[models.roles]`.
    Role,
    /// `models.default`, or the tier's model.
    Default,
}

/// Which of the engine's tools a session may use. Squad's own tools are always there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolChoice {
    All,
    /// Only tools that cannot change anything.
    ReadOnly,
    Only(Vec<String>),
}

/// What a tool is about to do, in terms every engine shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Access {
    Read,
    Write,
    Shell,
    Network,
    Mcp,
    /// A tool of squad's own.
    Own,
    Other,
}
