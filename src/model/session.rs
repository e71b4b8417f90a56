//! The configuration of a session, compiled from a team for one agent, and its status.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{DecisionId, Outcome, Proposal, RunId, Slug, Tier};

/// Everything an engine needs to open a session for one agent. Depends only on team, settings, tier and task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionSpec {
    pub(crate) agent: Slug,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) tier: Tier,
    /// The agent's own prompt: its charter.
    pub(crate) prompt: String,
    /// Context shared by all sessions of the team: how to work here, the project, the other members. Markdown, may be
    /// empty.
    pub(crate) team: String,
    /// Context for this session, mostly for its task: skills, decisions, learnings. Markdown, may be empty.
    pub(crate) context: String,
    /// The parts of that context that a session is told once.
    #[serde(skip)]
    pub(crate) items: Vec<ContextItem>,
    pub(crate) model: ModelChoice,
    /// The engine named for the agent; `None`: the run's engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    pub(crate) tools: ToolChoice,
    /// The engine's own tools that rules deny, whatever `tools` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) denied_tools: Vec<String>,
    /// Fraction of the context window at which an infinite session compacts itself, between 0 and 1; `None`: not
    /// infinite.
    pub(crate) compaction_threshold: Option<f64>,
    /// The model's reasoning effort, in the engine's own term; `None`: its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<String>,
    /// BLAKE3 hash of the session's configuration, in hex. The session is reopened when it changes.
    pub(crate) compiled_hash: String,
}

impl SessionSpec {
    /// All context in addition to the session's own prompt.
    pub(crate) fn full_context(&self) -> String {
        [self.team.as_str(), &self.context].concat()
    }

    /// The same session on an engine that stands in for its own: the model was chosen for that one.
    pub(crate) fn on_fallback(&mut self, engine: String) {
        self.engine = Some(engine);
        self.model.layer = ModelLayer::Default;
    }
}

/// A part of a session's context, such as a decision or a note.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ContextItem {
    /// The heading above it, which it shares with others.
    pub(crate) heading: &'static str,
    pub(crate) text: String,
    /// Its id and title, if it is a decision or a note of knowledge.
    pub(crate) decision: Option<(DecisionId, String)>,
}

impl ContextItem {
    pub(crate) fn new(heading: &'static str, text: String) -> Self {
        Self { heading, text, decision: None }
    }
}

/// A model, and the configuration layer that chose it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelChoice {
    /// Empty: the engine's default.
    pub(crate) id: String,
    pub(crate) layer: ModelLayer,
    /// The model that was chosen, if the engine does not offer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instead_of: Option<UnavailableModel>,
}

impl ModelChoice {
    /// The one that was chosen, whatever the engine offers; `None`: the engine's default.
    pub(crate) fn asked(&self) -> Option<&str> {
        let asked = self.instead_of.as_ref().map_or(&self.id, |instead_of| &instead_of.model);
        Some(&**asked).filter(|id| !id.is_empty())
    }
}

/// A chosen model that the engine does not offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct UnavailableModel {
    pub(crate) model: String,
    pub(crate) engine: String,
}

/// The models an engine offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AvailableModels {
    /// The engine's name.
    pub(crate) engine: String,
    /// `None`: unknown, so any model may be requested.
    pub(crate) models: Option<Vec<String>>,
    /// The engine's default model, if known.
    pub(crate) default: Option<String>,
    /// The effort levels of each model; a model that is missing has none. `None`: unknown.
    pub(crate) efforts: Option<BTreeMap<String, Vec<String>>>,
    /// The user has named the only model, so using it in place of another needs no report.
    pub(crate) is_users: bool,
}

impl ModelChoice {
    pub(crate) fn new(id: impl Into<String>, layer: ModelLayer) -> Self {
        Self { id: id.into(), layer, instead_of: None }
    }

    /// The model as shown to people.
    pub(crate) fn shown(&self) -> &str {
        if self.id.is_empty() { "the engine's default" } else { &self.id }
    }

    /// A message if the model differs from the chosen one.
    pub(crate) fn why_another(&self) -> Option<String> {
        let UnavailableModel { model, engine } = self.instead_of.as_ref()?;
        Some(format!("model {model} is not offered by {engine}; {} instead", self.shown()))
    }
}

impl AvailableModels {
    /// Whether a model supports an effort level. If the engine does not say, only a charter that names both is trusted.
    pub(crate) fn takes_effort(&self, model: &ModelChoice, effort: &str) -> bool {
        match &self.efforts {
            Some(efforts) => efforts.get(&model.id).is_some_and(|known| known.iter().any(|it| it == effort)),
            None => model.layer == ModelLayer::Charter,
        }
    }

    /// The engine's spelling of a model; `None` if it does not offer it. An engine that does not say is assumed to
    /// offer every model.
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
    /// `--model`, `SQUAD_MODEL`, or `[models.override]` in the user's own file.
    User,
    /// The charter's Model section.
    Charter,
    /// `[models.roles]`.
    Role,
    /// `models.default`, or the tier's model.
    Default,
    /// None of the chosen models is offered, so the engine's default is used.
    Engine,
}

/// Which of the engine's tools a session may use. Squad's own tools are also available, except with `Nothing`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolChoice {
    All,
    /// No tools, not even squad's: for an agent that only decides on what it is told.
    Nothing,
    /// Only tools that cannot change anything.
    ReadOnly,
    Only(Vec<String>),
}

/// What a tool is about to do, in terms common to all engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Access {
    Read,
    Write,
    Shell,
    Network,
    Mcp,
    /// One of squad's own tools.
    Own,
    Other,
}

/// The current status of a live run's agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunActivity {
    /// The latest step in which an agent has begun.
    pub(crate) step: Option<u32>,
    pub(crate) agents: BTreeMap<Slug, AgentState>,
    /// The open sessions.
    pub(crate) sessions: Vec<SessionStatus>,
    /// The beginning of each agent's task.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tasks: BTreeMap<Slug, String>,
    /// Questions waiting for a person's answer.
    #[serde(default)]
    pub(crate) questions: Vec<OpenQuestion>,
    /// squad's own check of the project, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<LiveCheck>,
    #[serde(default)]
    pub(crate) person: PersonWait,
}

/// How long a run has waited for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PersonWait {
    /// In milliseconds, until `since`.
    pub(super) counted: i64,
    /// Since when it waits again.
    pub(super) since: Option<Timestamp>,
}

impl PersonWait {
    /// Seconds until `now`.
    pub(crate) fn seconds(self, now: Timestamp) -> f64 {
        (self.counted + self.since.map_or(0, |since| milliseconds(since, now))) as f64 / 1000.0
    }
}

/// Never negative, even if the clock was set back.
pub(super) fn milliseconds(since: Timestamp, until: Timestamp) -> i64 {
    until.as_millisecond().saturating_sub(since.as_millisecond()).max(0)
}

impl RunActivity {
    /// What all agents do, as text for an agent's model.
    pub(crate) fn summary_for(&self, asking: &Slug) -> String {
        let line = |(agent, state): (&Slug, &AgentState)| {
            let you = if agent == asking { " (you)" } else { "" };
            let session = self.sessions.iter().find(|session| session.agent == *agent);
            let doing = match (state, session) {
                (AgentState::Waiting, _) => "has not begun".to_owned(),
                (AgentState::WaitingQuota, _) => "waits for its engine's quota".to_owned(),
                (AgentState::WaitingAnswer, _) => "waits for a person's answer".to_owned(),
                (AgentState::WaitingConnection, _) => "waits for its connection".to_owned(),
                (AgentState::Ended(outcome), _) => outcome.to_string(),
                (AgentState::Working, None) => "works".to_owned(),
                (AgentState::Working, Some(session)) => {
                    let task = self.tasks.get(agent).map(String::as_str).unwrap_or_default();
                    let since = session.created.strftime("%H:%M:%S UTC");
                    format!("working since {since}, {} tokens, on: {task}", session.tokens)
                }
            };
            format!("- `{agent}`{you}: {doing}\n")
        };
        self.agents.iter().map(line).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveCheck {
    pub(crate) command: String,
    pub(crate) since: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenQuestion {
    pub(crate) question: u64,
    /// `None`: asked by the run as a whole.
    pub(crate) agent: Option<Slug>,
    pub(crate) since: Timestamp,
    pub(crate) text: String,
    #[serde(skip)]
    pub(crate) proposal: Option<Box<Proposal>>,
}

impl OpenQuestion {
    /// The question on one line, without the agent's name: of one for a permission its title, and the command.
    pub(crate) fn short(&self) -> String {
        let asked = self.agent.as_ref().and_then(|agent| self.text.strip_prefix(agent.as_str()));
        if let Some(asked) = asked.filter(|asked| asked.starts_with(" wants to ")) {
            let mut lines = asked.lines();
            let title = lines.next().unwrap_or_default().trim();
            return match lines.next().and_then(|line| line.strip_prefix("  $ ")) {
                Some(command) => format!("wants to run: {command}"),
                None => title.to_owned(),
            };
        }
        let lines = self.text.lines().map(|line| line.trim().trim_start_matches("| ").trim_end_matches(['>', ' ']));
        let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let by = self.agent.as_ref().and_then(|agent| text.strip_prefix(agent.as_str()));
        let text = by.map_or(text.as_str(), str::trim_start);
        text.strip_prefix("asks: ").unwrap_or(text).to_owned()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentState {
    /// Planned but not begun.
    Waiting,
    /// For the quota of its engine's account.
    WaitingQuota,
    /// For a person's answer.
    WaitingAnswer,
    /// For the connection to its model.
    WaitingConnection,
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
    /// The run it works for; `None`: it waits for work in `squad watch`.
    pub(crate) run: Option<RunId>,
    pub(crate) state: SessionState,
    pub(crate) created: Timestamp,
    pub(crate) last_activity: Timestamp,
    /// Messages sent and received.
    pub(crate) messages: u64,
    /// Input and output.
    pub(crate) tokens: u64,
    pub(crate) model: String,
    /// Its working directory.
    pub(crate) directory: String,
    /// The engine's folder for the session; `None`: unknown.
    pub(crate) workspace: Option<String>,
}

/// The connection between squad and an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConnectionState {
    /// No engine has been started, or it has been stopped.
    Disconnected,
    /// The engine is being started or restarted.
    Connecting,
    Connected,
    /// The connection was lost and may be restored within seconds.
    Reconnecting,
    /// The engine is gone; the next work restarts it.
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
