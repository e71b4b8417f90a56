//! What a team's own hooks brought about.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a hook's answer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HookEffect {
    /// The session did not start, or the agent went back to work.
    Denied,
    /// The arguments of a call, or what the model reads of its result.
    Changed,
    /// More for the model to read.
    Added,
    /// It gave no answer that can be used, so what it was asked about did not happen.
    Failed,
}

/// An answer of a hook that had an effect. A call that it denied is a `tool.denied`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookAnswered {
    pub(crate) hook: String,
    /// When it was asked, as `[hooks.NAME] on` names it.
    pub(crate) on: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    pub(crate) effect: HookEffect,
    /// What it said, or what was wrong with it.
    pub(crate) detail: String,
}

impl fmt::Display for HookAnswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hook, on, tool, effect, detail } = self;
        let tool = tool.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        let did = match effect {
            HookEffect::Denied if on == "session_start" => "lets no session start".to_owned(),
            HookEffect::Denied => "sends the agent back to work".to_owned(),
            HookEffect::Changed if on == "pre_tool_use" => format!("changed the arguments{tool}"),
            HookEffect::Changed => format!("changed the result{tool}"),
            HookEffect::Added => "added".to_owned(),
            HookEffect::Failed => "failed".to_owned(),
        };
        write!(f, "the hook `{hook}` {did}: {detail}")
    }
}
