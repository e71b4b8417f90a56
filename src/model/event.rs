//! What happens in a run. Screen, NDJSON, ledger and log all speak these events.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Access, ConnectionState, Damage, Decision, DecisionId, End, EntryId, GivenMember, LeftOut, Outcome, Plan, RunId,
    Slug, Tier, Usage, Verdict, WorkReport,
};

/// A fact that the dispatcher has given its place in the order of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Counts from 1 within a run, without gaps.
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) run: RunId,
    /// Whose doing it was; `None` for the run as a whole.
    pub(crate) agent: Option<Slug>,
    #[serde(flatten)]
    pub(crate) what: What,
    /// Its ledger entry's id, where it has one; a decision's event has an `id` of its own.
    #[serde(rename = "entry")]
    pub(crate) id: EntryId,
    #[serde(flatten)]
    pub(crate) position: Position,
    /// The entries without which it would not be.
    pub(crate) causes: Vec<EntryId>,
}

/// Where in its run an entry belongs; nowhere, for what concerns the run as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Counts from 1 within a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u32>,
    /// Counts from 1 within a step: a revision is the next attempt at it. A review belongs to the attempt it judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<u32>,
}

impl Position {
    pub(crate) fn new(step: u32, attempt: u32) -> Self {
        Self { step: Some(step), attempt: Some(attempt) }
    }
}

/// What stands for the engine of a run that squad answered by itself.
pub(crate) const NO_ENGINE: &str = "squad";

/// How long an event lasts, and whether it waits for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Flushed before it is shown: decisions, learnings, verdicts, outcomes.
    AtOnce,
    /// The running commentary of a run: shown at once, written in batches.
    Batched,
    /// Shown only: an entry that is kept says all of it.
    Never,
}

/// Defines [`What`], and with it all that depends on the kind of an event: its name, which NDJSON and ledger entries
/// carry, and how it is kept. Every text of every kind is redacted, so there is nothing to say of that.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $name:literal $keeping:ident $kind:ident
            $({ $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? })?
            $(($inner:ty))?;
    )*) => {
        /// The kinds of event. The names are a contract.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        pub(crate) enum What {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $kind $({ $($(#[$attribute])* $field: $type),* })? $(($inner))?
            ),*
        }

        impl What {
            /// The names of all kinds.
            #[cfg(test)]
            pub(crate) const NAMES: &[&str] = &[$($name),*];

            #[cfg(test)]
            pub(crate) fn name(&self) -> &'static str {
                match self { $(Self::$kind { .. } => $name),* }
            }

            pub(crate) fn keeping(&self) -> Keeping {
                match self { $(Self::$kind { .. } => Keeping::$keeping),* }
            }
        }
    };
}

kinds! {
    /// Durable before any engine is started. `engine` is the one that was asked for.
    "run.started" AtOnce RunStarted {
        text: String,
        engine: String,
        /// Squad's, where it answers by itself. Entries of earlier squads have the engine's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// What becomes of a request that no rule decides: `ask`, `allow` or `deny`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<String>,
        branch: Option<String>,
        commit: Option<String>,
        /// The agents that the user named, and the tier.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<Slug>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
        /// Nothing of it lands on the branch.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_commit: bool,
        /// Settings that the call named, by their flags without dashes.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        flags: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Those that a caller has named with their tasks; nobody else works then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        members: Vec<GivenMember>,
    };
    /// A run that was interrupted goes on, in another process.
    "run.resumed" AtOnce RunResumed {
        permissions: String,
        branch: Option<String>,
        commit: Option<String>,
        /// Those whose work is done and stays as it is.
        done: Vec<Slug>,
        /// How many steps of the plan's are done, and how many it has.
        #[serde(default)]
        steps_done: usize,
        #[serde(default)]
        steps: usize,
        /// Those that hold from here on.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        flags: BTreeMap<String, String>,
        /// As they are now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    };
    "engine.started" Batched EngineStarted {
        engine: String,
        version: String,
        seconds: f64,
        /// It was running already, under `squad watch`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        warm: bool,
    };
    /// What governs an engine that does not ask before it acts, in words.
    "engine.governed" Batched EngineGoverned { engine: String, by: String };
    /// A process that an engine started for one message to an agent has ended.
    "engine.exited" AtOnce EngineExited(Exited);
    /// The engine asked for could not start, and another takes its place.
    "engine.fallback" AtOnce EngineFallback { from: String, to: String, reason: String };
    "route.planned" AtOnce RoutePlanned(Plan);
    /// An agent hands work to a colleague. `text` is the task.
    "route.requested" AtOnce RouteRequested { to: Slug, text: String, wait: bool };
    "step.started" AtOnce StepStarted { agents: Vec<Slug> };
    "step.completed" AtOnce StepCompleted { status: Outcome };
    /// An agent's session does not get the model that was chosen for it.
    "model.fallback" Batched ModelFallback { from: String, to: String, reason: String };
    /// No engine could be started.
    "connection.failed" AtOnce ConnectionFailed { engine: String, reason: String };
    "connection.lost" Batched ConnectionLost { reason: String };
    "connection.restored" Batched ConnectionRestored { attempts: u32 };
    /// Of a watch and its engine.
    "connection.changed" Never ConnectionChanged { engine: String, state: ConnectionState };
    /// A session that is kept is about to be opened, or opened again.
    "session.spawning" Never SessionSpawning { session: String };
    /// Durable at once: whoever resumes the run knows that there is a session.
    "session.created" AtOnce SessionCreated {
        session: String,
        model: String,
        compiled_hash: String,
        /// How long opening it took.
        #[serde(default)]
        seconds: f64,
        /// It was open already.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        warm: bool,
    };
    "session.resumed" AtOnce SessionResumed {
        session: String,
        #[serde(default)]
        seconds: f64,
    };
    "session.idle" Batched SessionIdle { session: String };
    "session.suspended" Batched SessionSuspended { session: String };
    "session.destroyed" Batched SessionDestroyed { session: String };
    "session.error" Batched SessionError { session: String, reason: String };
    /// The engine has summed up a session's earlier turns, so that it has room for more.
    "session.compacted" Batched SessionCompacted { session: String, tokens_before: u64, tokens_after: Option<u64> };
    /// The engine has dropped a session's earlier turns.
    "session.truncated" Batched SessionTruncated { session: String, tokens_before: u64, tokens_after: Option<u64> };
    "pool.empty" Batched PoolEmpty { waiting: u64 };
    /// A watched team has changed, and with it the sessions of these agents.
    "team.changed" Never TeamChanged {
        changed: Vec<Slug>,
        joined: Vec<Slug>,
        left: Vec<Slug>,
        /// Why what is there now is not used.
        problem: Option<String>,
    };
    /// A watched agent's charter, as a unified diff.
    "charter.changed" Never CharterChanged { diff: String };
    "agent.message_delta" Never MessageDelta { text: String };
    "agent.message" Batched Message { text: String };
    "tool.started" Never ToolStarted { call: String, tool: String, detail: String };
    "tool.completed" Batched ToolCompleted {
        call: String,
        tool: String,
        ok: bool,
        /// Of a command, where the engine says it.
        #[serde(default)]
        exit_code: Option<i64>,
        #[serde(default)]
        seconds: f64,
        /// What the call was about: the whole command, the path.
        detail: String,
        /// The end of what it gave, or why it failed.
        result: String,
        /// What it wrote, where the engine says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrote: Option<Written>,
    };
    "tool.denied" Batched ToolDenied { tool: String, detail: String, reason: String };
    "permission.asked" Batched PermissionAsked { tool: String, access: Access, detail: String };
    "permission.answered" Batched PermissionAnswered { tool: String, detail: String, allowed: bool };
    /// A person is asked: for a permission, or for whatever an agent wants to know. `question` counts from 1 within a run.
    "question.asked" Never QuestionAsked { question: u64, text: String };
    /// It has its answer, or needs none any more.
    "question.answered" Never QuestionAnswered { question: u64 };
    /// The work tree as it is at this moment is kept.
    "snapshot.taken" Batched SnapshotTaken { commit: String, left_out: Vec<LeftOut>, seconds: f64 };
    "decision.logged" AtOnce DecisionLogged {
        /// What the decision says. `text` is its body.
        #[serde(flatten)]
        decision: Decision,
        /// The branch it was made for: the one it lands on.
        branch: Option<String>,
    };
    "decision.landed" AtOnce DecisionLanded { decisions: Vec<DecisionId>, branch: String, commit: String };
    /// A colleague's live session was told of decisions.
    "decision.delivered" Batched DecisionDelivered { decisions: Vec<DecisionId>, session: String };
    "memory.logged" AtOnce MemoryLogged { text: String };
    /// Learnings have become part of an agent's history on that branch.
    "memory.landed" AtOnce MemoryLanded { learnings: Vec<EntryId>, branch: String, commit: String };
    /// Secrets, or what is damaged, were taken out of the ledger. `entries` are the paths of the files that changed or went.
    "scrub.completed" AtOnce ScrubCompleted {
        entries: Vec<String>,
        kinds: Vec<String>,
        /// What went because it is damaged.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        set_aside: Vec<Damage>,
    };
    "usage" Batched Usage(Usage);
    /// Work waits from here on until the engine's account may be used again.
    "quota.opened" AtOnce QuotaOpened { engine: String, reason: String, until: Option<Timestamp> };
    "quota.closed" AtOnce QuotaClosed { engine: String };
    "budget.reached" AtOnce BudgetReached { budget: String, limit: f64, spent: f64 };
    /// The user says something to an agent that is at work, or about to be.
    "user.message" AtOnce UserMessage { text: String };
    "cancel.requested" AtOnce CancelRequested { reason: String };
    "agent.completed" AtOnce Completed(End);
    "agent.failed" AtOnce Failed(End);
    "agent.timed_out" AtOnce TimedOut(End);
    "agent.cancelled" AtOnce Cancelled(End);
    /// Ended by policy or budget: everything it tried was refused.
    "agent.stopped" AtOnce Stopped(End);
    /// What it was to follow upon did not complete.
    "agent.skipped" AtOnce Skipped(End);
    /// The process of its run died.
    "agent.lost" AtOnce Lost(End);
    "review.verdict" AtOnce ReviewVerdict {
        verdict: Verdict,
        authors: Vec<Slug>,
        /// What they had changed, from the repository's root.
        #[serde(default)]
        files: Vec<String>,
        text: String,
    };
    /// A reviewer rejected the agent's work of this run: revising it is for somebody else.
    "review.lockout" AtOnce Lockout {
        reviewer: Slug,
        /// What the agent had changed, from the repository's root; a later run is bound where its work meets these.
        #[serde(default)]
        files: Vec<String>,
    };
    /// A person lets those work again whom reviews of the run had locked out.
    "review.lifted" AtOnce LockoutLifted { agents: Vec<Slug> };
    "run.answer" AtOnce Answer { text: String };
    "run.completed" AtOnce RunCompleted {
        status: Outcome,
        /// What became of each agent's last work.
        agents: BTreeMap<Slug, Outcome>,
        #[serde(default)]
        work: Vec<WorkReport>,
        commits: Vec<String>,
        usage: Usage,
        /// Why no agent could begin. With `--json` the run's last line says it, and no other line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<RunError>,
    };
}

impl What {
    /// The end of an agent's work.
    pub(crate) fn of_end(outcome: Outcome, end: End) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed(end),
            Outcome::Failed => Self::Failed(end),
            Outcome::TimedOut => Self::TimedOut(end),
            Outcome::Cancelled => Self::Cancelled(end),
            Outcome::Stopped => Self::Stopped(end),
            Outcome::Skipped => Self::Skipped(end),
            Outcome::Lost => Self::Lost(end),
        }
    }

    /// How an agent's work ended, where this says so.
    pub(crate) fn end(&self) -> Option<(Outcome, &End)> {
        Some(match self {
            Self::Completed(end) => (Outcome::Completed, end),
            Self::Failed(end) => (Outcome::Failed, end),
            Self::TimedOut(end) => (Outcome::TimedOut, end),
            Self::Cancelled(end) => (Outcome::Cancelled, end),
            Self::Stopped(end) => (Outcome::Stopped, end),
            Self::Skipped(end) => (Outcome::Skipped, end),
            Self::Lost(end) => (Outcome::Lost, end),
            _ => return None,
        })
    }
}

/// What ended a run before any agent could begin, with the fields of every command's `{"error": …}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunError {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) source: Option<String>,
}

/// How a process ended that answered one message, and where its output is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exited {
    pub(crate) engine: String,
    pub(crate) session: String,
    /// Counts from 1 within a session, over processes.
    pub(crate) turn: u32,
    /// `None`: a signal ended it.
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) seconds: f64,
    /// Its output byte for byte: files from squad's local folder, with `/`.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr_bytes: u64,
    /// The session can be gone on with.
    pub(crate) chat: bool,
}

/// A file that the user passes along with the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attachment {
    /// From the project's root with `/`; absolute where it lies outside.
    pub(crate) path: String,
    /// BLAKE3 of its content, in hex.
    pub(crate) hash: String,
    pub(crate) bytes: u64,
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

/// Who wrote a ledger entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Actor {
    Agent,
    Coordinator,
    User,
    Squad,
}
