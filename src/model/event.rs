//! The events of a run, as used by screen, NDJSON, ledger and log.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{
    Access, Claim, ConnectionState, Damage, Decision, DecisionId, End, EntryId, GivenMember, HookAnswered, JudgedFiles,
    NoteKind, Outcome, Plan, ProjectCheck, Proposal, RunEnd, RunId, SandboxLevel, Slug, TakenSnapshot, Tier, Undone,
    Usage, Verdict,
};

/// A fact with its number and time in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Counts from 1 within a run, without gaps.
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) run: RunId,
    /// The agent that caused it; `None` for the run as a whole.
    pub(crate) agent: Option<Slug>,
    #[serde(flatten)]
    pub(crate) kind: EventKind,
    /// The id of its ledger entry, if it has one. It is serialized as `entry`, because a decision has an `id` of its
    /// own.
    #[serde(rename = "entry")]
    pub(crate) id: EntryId,
    #[serde(flatten)]
    pub(crate) position: Position,
    /// The entries without which it would not exist.
    pub(crate) causes: Vec<EntryId>,
}

/// The step and attempt an entry belongs to; neither for the run as a whole.
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
    /// That of a run's beginning.
    pub(crate) const FIRST: Self = Self { step: Some(1), attempt: Some(1) };
}

impl Position {
    pub(crate) fn new(step: u32, attempt: u32) -> Self {
        Self { step: Some(step), attempt: Some(attempt) }
    }
}

/// Stands for the engine in runs that squad answered itself.
pub(crate) const NO_ENGINE: &str = "squad";

/// Whether an event is recorded, and whether it is shown only after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Flushed before it is shown: decisions, learnings, verdicts, outcomes.
    AtOnce,
    /// Progress of a run: shown at once, written in batches.
    Batched,
    /// Only shown: another, recorded entry has its content.
    Never,
}

/// Defines [`EventKind`] and everything that depends on the kind of an event: its name in NDJSON and ledger entries, and how
/// it is kept. All texts of all kinds are redacted, so kinds need not say so.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $name:literal $keeping:ident $kind:ident
            $({ $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? })?
            $(($inner:ty))?;
    )*) => {
        /// The kinds of event. Their names are a stable interface.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(remote = "Self")]
        pub(crate) enum EventKind {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $kind $({ $($(#[$attribute])* $field: $type),* })? $(($inner))?
            ),*
        }

        impl EventKind {
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
    /// Durable before any engine starts. `engine` is the requested one.
    "run.started" AtOnce RunStarted {
        text: String,
        engine: String,
        /// The version of squad if it answers itself. Entries of older versions have the engine's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// How requests that no rule decides are answered: `ask`, `allow` or `deny`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<String>,
        branch: Option<String>,
        commit: Option<String>,
        /// The name of the work tree, if it is a linked one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work_tree: Option<String>,
        /// The agents and the tier that the user named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<Slug>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
        /// Nothing lands on the branch.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_commit: bool,
        /// Settings given on the command line, by flag name without dashes.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        flags: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Members and tasks given by the caller; only they work then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        members: Vec<GivenMember>,
    };
    /// An interrupted run is continued by another process.
    "run.resumed" AtOnce RunResumed {
        permissions: String,
        branch: Option<String>,
        commit: Option<String>,
        /// Agents whose work is complete and will not be repeated.
        done: Vec<Slug>,
        /// The number of completed steps, and of all steps in the plan.
        #[serde(default)]
        steps_done: usize,
        #[serde(default)]
        steps: usize,
        /// Settings for the rest of the run.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        flags: BTreeMap<String, String>,
        /// The current attachments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    };
    "engine.started" Batched EngineStarted {
        engine: String,
        version: String,
        seconds: f64,
        /// It was already running under `squad watch`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        warm: bool,
    };
    /// The run's agents are bounded less than the settings ask for.
    "engine.disobeys" Batched EngineDisobeys { engine: String, claims: Vec<Claim> };
    "sandbox.weaker" Batched SandboxWeaker { level: SandboxLevel, reason: String };
    /// Describes the rules of an engine that does not ask before acting.
    "engine.governed" Batched EngineGoverned {
        engine: String,
        by: String,
        /// It cannot call squad's own tools.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lacks_tools: bool,
    };
    /// A process that an engine started for one message has ended.
    "engine.exited" Batched EngineExited(Exited);
    /// The requested engine could not start; another is used.
    "engine.fallback" AtOnce EngineFallback { from: String, to: String, reason: String };
    "route.planned" AtOnce RoutePlanned(Plan);
    /// An agent hands work to a colleague. `text` is the task.
    "route.requested" AtOnce RouteRequested { to: Slug, text: String, wait: bool };
    "step.started" AtOnce StepStarted { agents: Vec<Slug> };
    "step.completed" AtOnce StepCompleted { status: Outcome };
    /// An agent's session cannot have its chosen model.
    "model.fallback" Batched ModelFallback { from: String, to: String, reason: String };
    /// No engine could be started.
    "connection.failed" AtOnce ConnectionFailed { engine: String, reason: String };
    "connection.lost" Batched ConnectionLost { reason: String };
    "connection.restored" Batched ConnectionRestored { attempts: u32 };
    /// The connection of a watch to its engine.
    "connection.changed" Never ConnectionChanged { engine: String, state: ConnectionState };
    /// A kept session is about to be opened or reopened.
    "session.spawning" Never SessionSpawning { session: String };
    /// Durable at once, so that a resumed run knows of the session.
    "session.created" AtOnce SessionCreated {
        session: String,
        model: String,
        compiled_hash: String,
        /// Time to open it.
        #[serde(default)]
        seconds: f64,
        /// It was already open.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        warm: bool,
    };
    "session.resumed" AtOnce SessionResumed {
        session: String,
        #[serde(default)]
        seconds: f64,
        /// Its charter, model, tools or policy are others than when it last worked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
    };
    "session.idle" Batched SessionIdle { session: String };
    "session.suspended" Batched SessionSuspended { session: String };
    "session.destroyed" Batched SessionDestroyed { session: String };
    "session.error" Batched SessionError { session: String, reason: String };
    /// The engine has summarized a session's earlier turns to save context.
    "session.compacted" Batched SessionCompacted { session: String, tokens_before: u64, tokens_after: Option<u64> };
    /// The engine has dropped earlier turns of a session.
    "session.truncated" Batched SessionTruncated { session: String, tokens_before: u64, tokens_after: Option<u64> };
    "pool.empty" Batched PoolEmpty { waiting: u64 };
    /// A watched team has changed, so these agents' sessions change too.
    "team.changed" Never TeamChanged {
        changed: Vec<Slug>,
        joined: Vec<Slug>,
        left: Vec<Slug>,
        /// Why the new files are not used.
        problem: Option<String>,
    };
    /// A watched agent's charter, as a unified diff.
    "charter.changed" Never CharterChanged { diff: String };
    "agent.message_delta" Never MessageDelta { text: String };
    "agent.message" Batched Message { text: String };
    /// Durable before the call may change anything, where squad is asked: a run that dies then knows that it began.
    "tool.started" Batched ToolStarted { call: String, tool: String, detail: String };
    "tool.completed" Batched ToolCompleted {
        call: String,
        tool: String,
        ok: bool,
        /// Exit code of a command, if the engine reports it.
        #[serde(default)]
        exit_code: Option<i64>,
        #[serde(default)]
        seconds: f64,
        /// The subject of the call: the whole command, or the path.
        detail: String,
        /// The end of its output, or the reason of its failure.
        result: String,
        /// The file it wrote, if the engine reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrote: Option<Written>,
    };
    "tool.denied" Batched ToolDenied { tool: String, detail: String, reason: String };
    "permission.asked" Batched PermissionAsked { tool: String, access: Access, detail: String };
    "permission.answered" Batched PermissionAnswered {
        tool: String,
        detail: String,
        allowed: bool,
        /// What the person allowed with "always", here or before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Why the person refused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    };
    "hook.answered" Batched HookAnswered(HookAnswered);
    /// A person is asked for a permission or for information. `question` counts from 1 within a run.
    "question.asked" Never QuestionAsked {
        question: u64,
        text: String,
        /// What is to be permitted, if it is a question for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposal: Option<Box<Proposal>>,
    };
    /// The question is answered or withdrawn.
    "question.answered" Never QuestionAnswered { question: u64 };
    /// A snapshot of the work tree has been stored.
    "snapshot.taken" Batched SnapshotTaken(TakenSnapshot);
    /// An agent's clone is being made ready by this command; without one, it is being made.
    "clone.preparing" Never ClonePreparing { command: String };
    /// The command that makes a clone ready has ended.
    "clone.prepared" Batched ClonePrepared {
        command: String,
        exit_code: Option<i64>,
        reason: String,
        seconds: f64,
        output: String,
        output_file: String,
    };
    /// An agent has got a clone of its own, at that commit.
    "clone.created" Batched CloneCreated { directory: String, commit: String, seconds: f64 };
    /// An agent works on another machine, from here on.
    "host.assigned" Batched HostAssigned { host: String };
    /// What an agent left in its clone was committed, as `reference`.
    "clone.committed" AtOnce CloneCommitted {
        reference: String,
        commit: String,
        /// Files that conflict with what agents before it did; the work stays on its branch until `squad merge`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<String>,
    };
    "decision.logged" AtOnce DecisionLogged {
        /// The decision; `text` is its body.
        #[serde(flatten)]
        decision: Decision,
        /// The branch it was made for and lands on.
        branch: Option<String>,
    };
    "decision.landed" AtOnce DecisionLanded { decisions: Vec<DecisionId>, branch: String, commit: String };
    /// A colleague's session was told of decisions while working.
    "decision.delivered" Batched DecisionDelivered { decisions: Vec<DecisionId>, session: String };
    /// `share`: the agent proposes it as a note of knowledge of this kind.
    "memory.logged" AtOnce MemoryLogged {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<NoteKind>,
    };
    /// Learnings that agents propose as notes of knowledge will not become any.
    "memory.declined" AtOnce MemoryDeclined { learnings: Vec<EntryId> };
    /// Learnings were added to an agent's history on that branch.
    "memory.landed" AtOnce MemoryLanded { learnings: Vec<EntryId>, branch: String, commit: String };
    /// Secrets or damaged files were removed from the ledger. `entries` are the paths of changed and removed files.
    "scrub.completed" AtOnce ScrubCompleted {
        entries: Vec<String>,
        kinds: Vec<String>,
        /// Files removed because they are damaged.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        set_aside: Vec<Damage>,
    };
    "usage" Batched Usage(Usage);
    /// Work is paused until the engine's account may be used again.
    "quota.opened" AtOnce QuotaOpened { engine: String, reason: String, until: Option<Timestamp> };
    "quota.closed" AtOnce QuotaClosed { engine: String };
    /// The agent waits for the quota of its engine's account.
    "quota.waiting" Never QuotaWaiting { engine: String };
    "quota.waited" Never QuotaWaited {};
    "budget.reached" AtOnce BudgetReached { budget: String, limit: f64, spent: f64 };
    /// A message from the user to an agent that is working or about to.
    "user.message" AtOnce UserMessage { text: String };
    "cancel.requested" AtOnce CancelRequested { reason: String };
    "agent.completed" AtOnce Completed(End);
    /// It was asked for work, reports success, and neither used a tool nor changed anything.
    "agent.claimed" AtOnce Claimed(End);
    "agent.failed" AtOnce Failed(End);
    "agent.timed_out" AtOnce TimedOut(End);
    "agent.cancelled" AtOnce Cancelled(End);
    /// Ended by policy or budget: all its attempts to change something were refused.
    "agent.stopped" AtOnce Stopped(End);
    /// Work it depends on did not complete.
    "agent.skipped" AtOnce Skipped(End);
    /// The run's process died.
    "agent.lost" AtOnce Lost(End);
    /// squad begins to run `check.run`.
    "check.started" Batched CheckStarted { command: String };
    "check.completed" AtOnce CheckCompleted(ProjectCheck);
    "review.verdict" AtOnce ReviewVerdict {
        verdict: Verdict,
        authors: Vec<Slug>,
        #[serde(flatten)]
        judged: JudgedFiles,
        text: String,
    };
    /// A reviewer rejected the agent's work in this run, so another agent has to revise it.
    "review.lockout" AtOnce Lockout {
        reviewer: Slug,
        /// The files the agent changed, relative to the repository's root. The lockout also holds in later runs that
        /// work on these files.
        #[serde(default)]
        files: Vec<String>,
    };
    /// A person lifted lockouts of this run.
    "review.lifted" AtOnce LockoutLifted { agents: Vec<Slug> };
    "run.answer" AtOnce Answer { text: String };
    "run.completed" AtOnce RunCompleted(RunEnd);
    /// A person took the run's changes out of the work tree, or brought them back.
    "run.undone" AtOnce RunUndone(Undone);
    /// `squad merge` left out work of an agent: it conflicts, or a check of the project is red with it and green without.
    "work.set_aside" AtOnce WorkSetAside {
        commit: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<Box<ProjectCheck>>,
    };
    /// A commit of an agent's own git, which works on a copy of `.git`, was fetched. The agent calls it `name`: a ref.
    "git.fetched" AtOnce GitFetched { reference: String, commit: String, name: String };
    /// What its agents did in their clones was merged.
    "run.merged" AtOnce RunMerged {
        branch: String,
        commit: String,
        merged: Vec<Slug>,
        /// The person's name, as git knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Agents whose work is not in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<Slug>,
        /// Of all that is in it, before it was merged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<Box<ProjectCheck>>,
    };
}

// serde has tags beside the fields too, for seven times the code: `remote` keeps its implementations for these.
impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_map().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of_map(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

const TYPE: &str = "type";

impl EventKind {
    /// Its fields, after its type.
    pub(crate) fn to_map(&self) -> serde_json::Result<Map<String, Value>> {
        let mut map = Map::new();
        // Every kind is a map with its name as the only key.
        if let Value::Object(named) = Self::serialize(self, serde_json::value::Serializer)? {
            for (name, fields) in named {
                map.insert(TYPE.to_owned(), name.into());
                if let Value::Object(fields) = fields {
                    map.extend(fields);
                }
            }
        }
        Ok(map)
    }

    /// From its fields and its type. There may be hundreds of thousands of values, so none is copied.
    pub(crate) fn of_map(mut map: Map<String, Value>) -> serde_json::Result<Self> {
        match map.shift_remove(TYPE) {
            Some(Value::String(name)) => Self::deserialize(Value::Object(Map::from_iter([(name, Value::Object(map))]))),
            _ => Err(serde_json::Error::missing_field(TYPE)),
        }
    }

    /// The names of the events for the ends of agents' work.
    pub(crate) const END_NAMES: [&str; 8] = [
        "agent.completed",
        "agent.claimed",
        "agent.failed",
        "agent.timed_out",
        "agent.cancelled",
        "agent.stopped",
        "agent.skipped",
        "agent.lost",
    ];

    /// The event for the end of an agent's work.
    pub(crate) fn of_end(outcome: Outcome, end: End) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed(end),
            Outcome::Claimed => Self::Claimed(end),
            Outcome::Failed => Self::Failed(end),
            Outcome::TimedOut => Self::TimedOut(end),
            Outcome::Cancelled => Self::Cancelled(end),
            Outcome::Stopped => Self::Stopped(end),
            Outcome::Skipped => Self::Skipped(end),
            Outcome::Lost => Self::Lost(end),
        }
    }

    /// The outcome, if this is the end of an agent's work.
    pub(crate) fn end(&self) -> Option<(Outcome, &End)> {
        Some(match self {
            Self::Completed(end) => (Outcome::Completed, end),
            Self::Claimed(end) => (Outcome::Claimed, end),
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

/// How the process for one message ended, and where its output is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exited {
    pub(crate) engine: String,
    pub(crate) session: String,
    /// Counts from 1 within a session, across processes.
    pub(crate) turn: u32,
    /// `None`: ended by a signal.
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) seconds: f64,
    /// Paths of its unmodified output, relative to squad's local folder, with `/`.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr_bytes: u64,
    /// The session can be continued.
    pub(crate) chat: bool,
}

/// A file that the user attached to the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attachment {
    /// Relative to the project's root with `/`; absolute if outside.
    pub(crate) path: String,
    /// BLAKE3 hash of its content, in hex.
    pub(crate) hash: String,
    pub(crate) bytes: u64,
}

/// Text that a tool call wrote to a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// Relative to the project's root, with `/`.
    pub(crate) path: String,
    /// Not recorded, because the project has the text.
    #[serde(skip)]
    pub(crate) text: String,
    /// Fingerprints of its lines, in order, to recognize them later; see `record::marks`. Only in the ledger.
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
