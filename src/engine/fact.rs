//! What an engine reports while it works.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use super::quota::{Reset, login_error, quota_error};
use super::task::spawn;
use crate::model::{Access, Exited, IntoSet, ReachedHosts, Usage};
use crate::sandbox::HostQuestion;

/// One thing that happened in one session. Facts have an order but no number and no time: the dispatcher gives them
/// those.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fact {
    /// A sign of life, with nothing to tell: the model thinks, a tool goes on.
    Alive,
    /// A piece of a message that is being written.
    MessageDelta(String),
    /// A whole message of the agent.
    Message(String),
    ToolStarted {
        call: String,
        tool: String,
        /// What it is about: the whole command, the path.
        detail: String,
        /// The file it writes and the lines it adds there, when its arguments say so. The path as the engine has it.
        writes: Option<(String, String)>,
    },
    ToolCompleted {
        call: String,
        tool: String,
        ok: bool,
        /// Of a command, where the engine says it.
        exit_code: Option<i64>,
        /// The result or the error, whole.
        detail: String,
    },
    /// The engine waits for an answer.
    #[serde(skip)]
    Request(Request),
    /// The engine refused a call by rules of its own.
    Denied {
        /// What the call would have done, if its refusal keeps the agent from its work; `None`: the agent's role does not
        /// include the tool.
        access: Option<Access>,
        tool: String,
        detail: String,
        reason: String,
    },
    /// What governs an engine that does not ask before it acts.
    Governed {
        engine: String,
        by: String,
        /// It cannot call squad's own tools.
        lacks_tools: bool,
        /// Its mode refuses changes, and its output does not tell which.
        hides_refusals: bool,
    },
    /// The process that worked on the turn has ended. The turn's last fact follows.
    Exited(Exited),
    /// Adds to the usage of the turn; fields an engine does not know stay zero.
    Usage(Usage),
    /// The engine recovers from an error by itself, such as a model's 429, and says so. No sign of life.
    Warning(String),
    /// The session's earlier turns were summed up, or dropped: how many tokens it had, and has.
    Shortened {
        session: String,
        is_summed_up: bool,
        tokens_before: u64,
        tokens_after: Option<u64>,
    },
    /// The command that makes the session's clone on another machine ready has ended: the command, its exit code, or why it
    /// has none, its seconds and the end of its output.
    Prepared {
        command: String,
        exit_code: Option<i64>,
        reason: String,
        seconds: f64,
        output: String,
    },
    /// The hosts that the programs of a turn reached on another machine, and that they were refused.
    Reached(ReachedHosts),
    ConnectionLost(String),
    ConnectionRestored {
        attempts: u32,
    },
    /// The turn is over and succeeded.
    Idle,
    /// The turn was cut short with the engine's process. The session is there again and can go on.
    Interrupted(String),
    /// The turn is over and did not succeed. The session may still be usable.
    Failed(String),
    /// The turn is over, because the quota of the engine's account is used up. The session is still usable.
    NoQuota {
        reason: String,
        reset: Option<Reset>,
    },
    /// The turn is over, because nobody is logged in, or not any more.
    NoLogin {
        reason: String,
        /// How to log in.
        hint: String,
    },
    /// The session's engine is gone for good.
    Lost(String),
    /// The machine that it works on is gone, or its worker there with the session: what it did since is not known here.
    Gone(String),
}

impl Fact {
    /// Whether it is the last one of a turn.
    pub(crate) fn is_last(&self) -> bool {
        let has_failed = matches!(self, Self::Failed(_) | Self::NoQuota { .. } | Self::NoLogin { .. });
        let is_lost = matches!(self, Self::Lost(_) | Self::Gone(_));
        has_failed || is_lost || matches!(self, Self::Idle | Self::Interrupted(_))
    }

    /// The last fact of a turn that failed for this reason.
    pub(super) fn of_failure(reason: String) -> Self {
        match quota_error(&reason) {
            Some(reset) => Self::NoQuota { reason, reset },
            None if login_error(&reason) => Self::NoLogin { reason, hint: String::new() },
            None => Self::Failed(reason),
        }
    }

    /// A question of squad's proxy.
    pub(super) fn of_host(question: HostQuestion) -> Self {
        let (reply, answer) = Reply::channel();
        let place = question.place.to_string();
        spawn(async move {
            match answer.await {
                Ok(Approval::Allow) => question.answer(Ok(())),
                Ok(Approval::Deny(reason)) => question.answer(Err(reason)),
                // Nobody has answered.
                Err(_) => drop(question),
            }
        });
        Self::Request(Request::Host(place, reply))
    }

    /// With how to log in, where that is missing.
    pub(super) fn with_login(self, how: Option<&str>) -> Self {
        match self {
            Self::NoLogin { reason, .. } => Self::NoLogin { reason, hint: how.unwrap_or_default().to_owned() },
            fact => fact,
        }
    }
}

/// The lines of a text that an older one has not: what a write adds.
pub(crate) fn added(old: &str, new: &str) -> String {
    let old: BTreeSet<&str> = old.lines().map(str::trim).into_set();
    new.lines().filter(|line| !old.contains(line.trim())).map(|line| format!("{line}\n")).collect()
}

/// A question of the engine's. Dropping its reply answers it with a refusal.
#[derive(Debug)]
pub(crate) enum Request {
    /// A call of one of squad's own tools.
    Tool(ToolCall, Reply<ToolResult>),
    /// One of the engine's own tools is about to be called. The answer is the arguments to use instead, if any; an error
    /// is why it must not be called.
    BeforeTool(ToolCall, Reply<Result<Option<Value>, String>>),
    /// One of the engine's own tools is about to write files. An answer means that they are not written, and is what the
    /// tool says instead.
    Write(Vec<Writing>, Reply<Option<ToolResult>>),
    /// May the engine do this? Asked before it acts.
    Permission {
        /// The tool call that it belongs to, if the engine says so.
        call: Option<String>,
        access: Access,
        tool: String,
        /// The command, the path, the address: as the engine gave it, untrusted.
        detail: String,
        reply: Reply<Approval>,
    },
    /// May programs of the session reach this place, `HOST:PORT`, which no list names?
    Host(String, Reply<Approval>),
    /// May an engine that does not ask before it acts do as it likes in this turn? Otherwise it works in its own
    /// strictest mode.
    Unasked(Reply<bool>),
    /// A call of one of the engine's own tools has ended, was reported, and has to be durable before the model learns of
    /// it. The answer is what it reads in the place of the result, if anything.
    AfterTool(ToolCall, ToolResult, Reply<Option<String>>),
    /// A question to the person who started the run.
    Question { text: String, choices: Vec<String>, reply: Reply<Option<String>> },
}

/// What a tool is about to write into a file, as far as its arguments say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Writing {
    /// As the engine has it.
    pub(crate) path: String,
    /// What the text takes the place of; `None`: all there is.
    pub(crate) old: Option<String>,
    pub(crate) text: String,
    /// The text is all that the file will hold, and not only what is added.
    pub(crate) is_whole: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// Why a call is not made that nobody has answered.
pub(crate) const NO_ANSWER: &str = "the run does not answer";

impl ToolCall {
    /// The call as hooks let it be made; the error is why they do not. `tell` reports the request.
    pub(super) async fn allowed(self, tell: impl FnOnce(Fact)) -> Result<Self, String> {
        let (reply, answer) = Reply::channel();
        tell(Fact::Request(Request::BeforeTool(self.clone(), reply)));
        let changed = answer.await.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()))?;
        Ok(match changed {
            Some(arguments) => Self { arguments, ..self },
            None => self,
        })
    }
}

/// The subject of a tool call: the command, the path, or else its first argument.
pub(crate) fn subject(arguments: &Value) -> String {
    let preferred = ["command", "path", "file_path", "url", "pattern", "query", "question", "prompt"];
    let named = preferred.iter().find_map(|name| arguments.get(name)?.as_str());
    if let Some(text) = named {
        return text.to_owned();
    }
    let first = arguments.as_object().and_then(|fields| fields.values().next());
    match first.unwrap_or(arguments) {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        // An empty object has no subject.
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolResult {
    pub(crate) ok: bool,
    /// What the model reads.
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Approval {
    Allow,
    /// Refused, with the reason the model reads.
    Deny(String),
}

/// Where an answer goes. The engine may have given up waiting; that is nobody's error.
#[derive(Debug)]
pub(crate) struct Reply<T>(oneshot::Sender<T>);

impl<T> Reply<T> {
    pub(crate) fn channel() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    pub(crate) fn send(self, answer: T) {
        // The turn may have been aborted meanwhile.
        let _ = self.0.send(answer);
    }
}
