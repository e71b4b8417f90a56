//! What happens in a run. Screen, NDJSON, ledger and log all speak these events.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Decision, Plan, RunId, Slug};

/// A fact that the dispatcher has given its place in the order of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Event {
    /// Counts from 1 within a run, without gaps.
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) run: RunId,
    /// Whose doing it was; `None` for the run as a whole.
    pub(crate) agent: Option<Slug>,
    #[serde(flatten)]
    pub(crate) what: What,
}

/// What stands for the engine of a run that squad answered by itself.
pub(crate) const NO_ENGINE: &str = "squad";

/// The kinds of event. The names are a contract: NDJSON and ledger entries carry them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum What {
    #[serde(rename = "run.started")]
    RunStarted { text: String, engine: String, version: String, branch: Option<String>, commit: Option<String> },
    #[serde(rename = "route.planned")]
    RoutePlanned(Plan),
    /// The engine asked for could not start, and another takes its place.
    #[serde(rename = "engine.fallback")]
    EngineFallback { from: String, to: String, reason: String },
    /// An agent's session does not get the model that was chosen for it.
    #[serde(rename = "model.fallback")]
    ModelFallback { from: String, to: String, reason: String },
    #[serde(rename = "connection.lost")]
    ConnectionLost { reason: String },
    #[serde(rename = "connection.restored")]
    ConnectionRestored { attempts: u32 },
    #[serde(rename = "session.created")]
    SessionCreated { session: String, model: String, compiled_hash: String },
    #[serde(rename = "session.resumed")]
    SessionResumed { session: String },
    #[serde(rename = "session.idle")]
    SessionIdle { session: String },
    #[serde(rename = "session.destroyed")]
    SessionDestroyed { session: String },
    #[serde(rename = "session.error")]
    SessionError { session: String, reason: String },
    #[serde(rename = "agent.message_delta")]
    MessageDelta { text: String },
    #[serde(rename = "agent.message")]
    Message { text: String },
    #[serde(rename = "tool.started")]
    ToolStarted { call: String, tool: String, detail: String },
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        call: String,
        tool: String,
        ok: bool,
        /// What the call was about: the command, the path.
        detail: String,
        /// The first line of what it gave, or why it failed.
        result: String,
        /// What it wrote, where the engine says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrote: Option<Written>,
    },
    #[serde(rename = "tool.denied")]
    ToolDenied { tool: String, detail: String, reason: String },
    #[serde(rename = "decision.logged")]
    DecisionLogged {
        /// What the decision says. `text` is its body.
        #[serde(flatten)]
        decision: Decision,
        /// The branch it was made for: the one it lands on.
        branch: Option<String>,
    },
    #[serde(rename = "decision.landed")]
    DecisionLanded { decisions: Vec<super::DecisionId>, branch: String, commit: String },
    #[serde(rename = "memory.logged")]
    MemoryLogged { text: String },
    /// Learnings have become part of an agent's history on that branch.
    #[serde(rename = "memory.landed")]
    MemoryLanded { learnings: Vec<super::EntryId>, branch: String, commit: String },
    /// Secrets were taken out of the ledger. `entries` are the paths of the files that changed.
    #[serde(rename = "scrub.completed")]
    ScrubCompleted { entries: Vec<String>, kinds: Vec<String> },
    #[serde(rename = "usage")]
    Usage(Usage),
    #[serde(rename = "agent.completed")]
    Completed { text: String, usage: Usage },
    #[serde(rename = "agent.failed")]
    Failed { reason: String, text: String, usage: Usage },
    #[serde(rename = "agent.timed_out")]
    TimedOut { reason: String, text: String, usage: Usage },
    #[serde(rename = "agent.cancelled")]
    Cancelled { reason: String, text: String, usage: Usage },
    #[serde(rename = "review.verdict")]
    ReviewVerdict { verdict: Verdict, authors: Vec<Slug>, text: String },
    /// A reviewer rejected the agent's work of this run: revising it is for somebody else.
    #[serde(rename = "review.lockout")]
    Lockout { reviewer: Slug },
    #[serde(rename = "run.answer")]
    Answer { text: String },
    #[serde(rename = "run.completed")]
    RunCompleted { status: Outcome, agents: BTreeMap<Slug, Outcome>, commits: Vec<String>, usage: Usage },
}

/// Text that a tool call put into a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// From the project's root, with `/`.
    pub(crate) path: String,
    /// Not kept: what stays in the project needs no copy.
    #[serde(skip)]
    pub(crate) text: String,
    /// Marks of its lines, in order, by which they are known again; see `record::marks`. Only in the ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<String>,
}

/// How an agent's work, or a run, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Completed,
    Failed,
    TimedOut,
    Cancelled,
    /// Ended by policy or budget.
    Stopped,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Approved,
    Rejected,
    /// The reviewer did not say in the form it was asked for. Never taken for an approval.
    Unclear,
}

impl Verdict {
    /// The last line, which must be `VERDICT: approved` or `VERDICT: rejected`; emphasis and case do not matter.
    pub(crate) fn read(text: &str) -> Self {
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let plain: String = last.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '.')).collect();
        match plain.trim().to_lowercase().split_whitespace().collect::<Vec<_>>()[..] {
            ["verdict:", "approved"] => Self::Approved,
            ["verdict:", "rejected"] => Self::Rejected,
            _ => Self::Unclear,
        }
    }
}

/// Who wrote a ledger entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Actor {
    Agent,
    Coordinator,
    User,
    Squad,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// US dollars; `None` where the engine does not say.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) turns: u64,
    pub(crate) tool_calls: u64,
    /// Wall time.
    pub(crate) seconds: f64,
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.seconds += other.seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_verdict_approves() {
        assert_eq!(Verdict::read("Good.\n\n**VERDICT: approved**\n"), Verdict::Approved);
        assert_eq!(Verdict::read("verdict: Rejected."), Verdict::Rejected);
        for unclear in ["VERDICT: not approved", "NOT APPROVED", "VERDICT: approved\nor not", "", "approved"] {
            assert_eq!(Verdict::read(unclear), Verdict::Unclear, "{unclear}");
        }
    }
}
