//! Shared data types: agents and teams, plans, decisions, events and their ids.
//!
//! Plain values: nothing here reads a file, a clock or the environment.

mod activity;
mod agent;
mod agent_waits;
mod change_kind;
mod claim;
mod damage;
mod decision;
mod event;
mod file_verdicts;
mod forecast;
mod hidden;
mod hook;
mod host_name;
mod ids;
mod interval;
mod json;
mod line_diff;
mod lists;
mod nearest;
mod network;
mod note;
mod outcome;
mod person_time;
mod plan;
mod problem;
mod project_check;
mod proposal;
mod run_end;
#[cfg(test)]
pub(crate) mod samples;
mod sandbox;
mod session;
mod sort;
mod summary;
mod team;
mod text;
mod tier;
mod tools;
mod undone;
mod words;

pub(crate) use activity::Activity;
pub(crate) use agent::{Charter, Kind, Member, Slug, Status};
pub(crate) use agent_waits::AgentWaits;
pub(crate) use change_kind::ChangeKind;
pub(crate) use claim::Claim;
pub use damage::DamageLog;
pub(crate) use damage::{Damage, DamageKind};
pub(crate) use decision::{Decision, DecisionState, LegacyStatus, moment};
pub(crate) use event::{Actor, Attachment, Event, EventKind, Exited, Keeping, NO_ENGINE, Position, Written};
pub(crate) use file_verdicts::{Content, FileVerdicts, JudgedFiles};
pub(crate) use forecast::Forecast;
pub(crate) use hidden::{hidden, hidden_summary, marked, printable, printable_line, without_hidden};
pub(crate) use hook::{HookAnswered, HookEffect};
pub(crate) use host_name::{host_name, numeric_hosts};
pub(crate) use ids::{DecisionId, EntryId, RunId};
pub(crate) use interval::{AgentGitChanges, GitChanges, OtherRuns, RefChange, SkippedFile, TakenSnapshot};
pub(crate) use json::{from_json, to_json};
pub(crate) use line_diff::LineDiff;
pub(crate) use lists::{List, Membership};
pub(crate) use nearest::nearest;
pub(crate) use network::{HostPattern, HostPort, NetworkAccess, ReachedHosts};
pub(crate) use note::{MAX_EVIDENCE_LINES, Note, NoteEvidence, NoteKind, NoteLink, has_lines, hash_of_lines, place_of};
pub(crate) use outcome::{
    Billed, Change, ChangeClass, ChangeEvidence, CheckRun, CommandCounts, ContextSize, End, Judgement, Outcome, Usage,
    Verdict, WorkModel, WorkReport, seconds,
};
pub(crate) use person_time::PersonTime;
pub(crate) use plan::{CeremonyTiming, Evidence, GivenMember, Overlap, Plan, PlanKind, PlannedCeremony};
pub(crate) use problem::{Problem, Severity, Source};
pub(crate) use project_check::{ProjectCheck, command_line};
pub(crate) use proposal::Proposal;
pub(crate) use run_end::{RunEnd, RunError};
pub(crate) use sandbox::{GitAccess, SandboxLevel};
pub(crate) use session::{
    Access, AgentState, AvailableModels, ConnectionState, ContextItem, LiveCheck, ModelChoice, ModelLayer,
    OpenQuestion, PersonWait, RunActivity, SessionSpec, SessionState, SessionStatus, ToolChoice, UnavailableModel,
};
pub(crate) use sort::{IntoMap, IntoSet, Sort};
pub(crate) use summary::{failure, together};
pub(crate) use team::{Cast, Ceremony, ContextSection, LabelRule, Module, Rule, Skill, Team, TeamNote};
pub(crate) use text::{abbreviated, ago, clock, first_line, first_words, indented, list, megabytes, plural, quote};
pub(crate) use tier::Tier;
pub(crate) use tools::{change_by, is_denied, may_be_tool, surely_is_tool, tools_but, tools_called};
pub(crate) use undone::{UndoRecord, UndoState, Undone, but};
pub(crate) use words::{stem, stem_of, stems, words};
