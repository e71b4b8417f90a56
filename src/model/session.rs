//! What a session is made of: the result of compiling a team for one agent.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Outcome, RunId, Slug, Tier};

/// Everything an engine needs to open a session for one agent. A pure function of team, settings, tier and task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SessionSpec {
    pub(crate) agent: Slug,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) tier: Tier,
    /// The agent's own prompt: its charter.
    pub(crate) prompt: String,
    /// What every session of the team is told alike: how to work here, the project, who else there is. Markdown; empty
    /// for none.
    pub(crate) team: String,
    /// What this one is told beside it, for the most part for its task: skills, decisions, what it has learned. Markdown;
    /// empty for none.
    pub(crate) context: String,
    pub(crate) model: ModelChoice,
    /// The engine that was named for it; `None`: the one of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    pub(crate) tools: ToolChoice,
    /// Fraction of the context window at which an endless session compacts itself, 0..1; `None`: not endless.
    pub(crate) compaction_threshold: Option<f64>,
    /// How much the model thinks, in its own word; `None`: as much as it does by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<String>,
    /// BLAKE3 of what the session is made of, in hex. A session is made anew when this changes.
    pub(crate) compiled_hash: String,
}

impl SessionSpec {
    /// What the session is told beside its own prompt.
    pub(crate) fn told(&self) -> String {
        [self.team.as_str(), &self.context].concat()
    }
}

/// A model and the layer of the configuration that chose it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ModelChoice {
    /// Empty: whatever the engine takes when it is told none.
    pub(crate) id: String,
    pub(crate) layer: ModelLayer,
    /// What was to be had instead, where the engine does not offer that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instead_of: Option<Unoffered>,
}

/// A model that was chosen and that the engine does not offer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Unoffered {
    pub(crate) model: String,
    pub(crate) engine: String,
}

/// The models an engine offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Offer {
    /// The engine's name.
    pub(crate) engine: String,
    /// `None`: it does not say, and every model may be asked for.
    pub(crate) models: Option<Vec<String>>,
    /// What it takes when no model is named, where that is known.
    pub(crate) default: Option<String>,
    /// How much each of the models can be told to think; a model that is not here takes no such word. `None`: it does
    /// not say.
    pub(crate) efforts: Option<BTreeMap<String, Vec<String>>>,
    /// The user has named the one model there is: that another one would have been chosen is no news.
    pub(crate) is_users: bool,
}

impl ModelChoice {
    pub(crate) fn new(id: impl Into<String>, layer: ModelLayer) -> Self {
        Self { id: id.into(), layer, instead_of: None }
    }

    /// The model, as people read it.
    pub(crate) fn shown(&self) -> &str {
        if self.id.is_empty() { "the engine's default" } else { &self.id }
    }

    /// That it is not the model that was chosen, and why.
    pub(crate) fn why_another(&self) -> Option<String> {
        let Unoffered { model, engine } = self.instead_of.as_ref()?;
        Some(format!("model {model} is not offered by {engine}; {} instead", self.shown()))
    }
}

impl Offer {
    /// Whether a model may be told to think so much. Where the engine does not say, whoever named both knows it.
    pub(crate) fn takes_effort(&self, model: &ModelChoice, effort: &str) -> bool {
        match &self.efforts {
            Some(efforts) => efforts.get(&model.id).is_some_and(|known| known.iter().any(|it| it == effort)),
            None => model.layer == ModelLayer::Charter,
        }
    }

    /// The engine's own spelling of a model; `None` when it offers no such model. Where the engine does not say what
    /// it offers, it is taken to offer everything.
    pub(crate) fn spelling<'a>(&'a self, model: &'a str) -> Option<&'a str> {
        match &self.models {
            None => Some(model),
            Some(models) => models.iter().map(String::as_str).find(|offered| offered.eq_ignore_ascii_case(model)),
        }
    }
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
    /// None of these is offered: what the engine takes by itself.
    Engine,
}

/// Which of the engine's tools a session may use. Squad's own tools are there too, but for one that only decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolChoice {
    All,
    /// None at all, and none of squad's: it decides by what it is told.
    Nothing,
    /// Only tools that cannot change anything.
    ReadOnly,
    Only(Vec<String>),
}

/// What a tool is about to do, in terms every engine shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// What the agents of a live run are at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunActivity {
    /// The newest step in which somebody has begun.
    pub(crate) step: Option<u32>,
    pub(crate) agents: BTreeMap<Slug, AgentState>,
    /// Those that are open.
    pub(crate) sessions: Vec<SessionStatus>,
    /// What waits for a person's answer.
    #[serde(default)]
    pub(crate) questions: Vec<OpenQuestion>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenQuestion {
    pub(crate) question: u64,
    /// `None`: the run as a whole asks.
    pub(crate) agent: Option<Slug>,
    pub(crate) since: Timestamp,
    pub(crate) text: String,
}

impl OpenQuestion {
    /// On one line, without the agent's name.
    pub(crate) fn short(&self) -> String {
        let lines = self.text.lines().map(|line| line.trim().trim_start_matches("| ").trim_end_matches(['>', ' ']));
        let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let by = self.agent.as_ref().and_then(|agent| text.strip_prefix(agent.as_str()));
        let text = by.map_or(text.as_str(), str::trim_start);
        text.strip_prefix("asks: ").unwrap_or(text).to_owned()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentState {
    /// Planned, and not begun.
    Waiting,
    Working,
    /// How its last work ended.
    #[serde(untagged)]
    Ended(Outcome),
}

/// An open session of a live run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionStatus {
    pub(crate) id: String,
    pub(crate) agent: Slug,
    /// Whose work it does; `None`: `squad watch` keeps it for the next.
    pub(crate) run: Option<RunId>,
    pub(crate) state: SessionState,
    pub(crate) created: Timestamp,
    pub(crate) last_activity: Timestamp,
    /// Those that the agent was sent, and its own.
    pub(crate) messages: u64,
    /// In and out.
    pub(crate) tokens: u64,
    pub(crate) model: String,
    /// Where it works.
    pub(crate) directory: String,
    /// Where the engine keeps what belongs to the session; `None`: it does not say.
    pub(crate) workspace: Option<String>,
}

/// Of squad and an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConnectionState {
    /// No engine has been started, or it has been ended.
    Disconnected,
    /// It is started, or started again.
    Connecting,
    Connected,
    /// It was lost, and is restored within seconds or not at all.
    Reconnecting,
    /// The engine is gone; the next work starts it again.
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionState {
    Spawning,
    Active,
    Idle,
    Suspended,
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spawning => "spawning",
            Self::Active => "active",
            Self::Idle => "idle",
            Self::Suspended => "suspended",
        })
    }
}

impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnected => "disconnected",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Reconnecting => "reconnecting",
            Self::Error => "error",
        })
    }
}
