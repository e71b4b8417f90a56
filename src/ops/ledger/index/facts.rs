//! The data the index extracts from entries, without text that nobody needs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::Derived;
use crate::engine::rehearsal;
use crate::model::{
    Change, ChangeEvidence, Decision, DecisionId, EntryId, EventKind, Evidence, JudgedFiles, NoteKind, Outcome, Plan,
    PlanKind, RunEnd, RunId, Slug, Undone, Usage, Verdict, WorkModel,
};
use crate::record::Entry;
use crate::route::choice;
use crate::view::lines_changed;

/// Bytes of a message that describe the task; the rest is usually a log or listing.
const TELLING: usize = 4096;

/// The fields that every entry has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct EntryHeader {
    #[serde(rename = "a", with = "jiff::fmt::serde::timestamp::microsecond::required")]
    pub(in crate::ops) at: Timestamp,
    #[serde(rename = "r")]
    pub(in crate::ops) run: Option<RunId>,
    #[serde(rename = "s")]
    pub(in crate::ops) seq: Option<u64>,
    #[serde(rename = "g")]
    pub(in crate::ops) agent: Option<Slug>,
}

/// The data of an entry that lists and prompts use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct EntryFacts {
    pub(in crate::ops) id: EntryId,
    pub(in crate::ops) at: Timestamp,
    pub(in crate::ops) run: Option<RunId>,
    pub(in crate::ops) agent: Option<Slug>,
    pub(in crate::ops) fact: Fact,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) enum Fact {
    Started {
        /// The start of the message.
        message: String,
        is_whole: bool,
        /// `None`: the main one.
        work_tree: Option<String>,
    },
    /// A run that had ended early continues.
    Resumed,
    Planned {
        kind: PlanKind,
        agents: Vec<Slug>,
        chooser: Chooser,
    },
    /// The outcome of one agent.
    #[serde(rename = "Came")]
    AgentEnded {
        outcome: Outcome,
        usage: Usage,
        model: Option<WorkModel>,
    },
    Ended {
        status: Outcome,
        agents: BTreeMap<Slug, Outcome>,
        usage: Usage,
        /// Lines that its agents added and removed.
        lines: (u64, u64),
        /// Whether the project's check passed, if it was run.
        verified: Option<bool>,
        /// See [`RunEnd::has_failed_check`].
        check_failed: bool,
        /// How often work was rejected.
        rejections: u64,
    },
    /// Its changes were undone, or brought back.
    Undone(Undone),
    Decided {
        decision: Box<Decision>,
        branch: Option<String>,
    },
    Landed {
        decisions: Vec<DecisionId>,
        branch: String,
        commit: String,
    },
    Learned {
        text: String,
        share: Option<NoteKind>,
    },
    /// Learnings that were proposed as notes of knowledge will not become any.
    Declined {
        learnings: Vec<EntryId>,
    },
    /// Learnings have landed in histories.
    Taught {
        learnings: Vec<EntryId>,
        branch: String,
        commit: String,
    },
}

/// Who chose the agents of a plan, in increasing order of authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::ops) enum Chooser {
    /// The rehearsal engine, which picks arbitrary agents.
    Nobody,
    Router,
    Coordinator,
    Person,
}

/// How an agent's work in a run ended. It has its own table, which is small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct WorkEnd {
    pub(in crate::ops) at: Timestamp,
    pub(in crate::ops) run: Option<RunId>,
    pub(in crate::ops) agent: Option<Slug>,
    pub(in crate::ops) outcome: Outcome,
}

/// The files an agent wrote to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct FileWrites {
    /// Named by a tool call, relative to the project's root.
    pub(in crate::ops) named: Vec<String>,
    /// Changed by its commands, relative to the repository's root.
    pub(in crate::ops) changed: Vec<String>,
}

/// The result of a review that later runs need. It has its own table: such entries are few, and every run reads them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct ReviewFact {
    pub(in crate::ops) at: Timestamp,
    pub(in crate::ops) run: Option<RunId>,
    pub(in crate::ops) agent: Option<Slug>,
    pub(in crate::ops) ruling: Ruling,
}

/// File paths are relative to the repository's root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) enum Ruling {
    Judged {
        verdict: Verdict,
        judged: JudgedFiles,
    },
    LockedOut {
        reviewer: Slug,
        files: Vec<String>,
    },
    /// The lockouts of the run have ended.
    Lifted,
}

impl Derived for ReviewFact {
    const TABLE: &'static str = "reviewed";

    fn may_be_in(kind: &str) -> bool {
        kind.starts_with("review.")
    }

    fn of(mut entry: Entry) -> Result<Option<Self>, String> {
        let ruling = match entry.take_understood()? {
            Some(EventKind::ReviewVerdict { verdict, judged, .. }) => Ruling::Judged { verdict, judged },
            Some(EventKind::Lockout { reviewer, files }) => Ruling::LockedOut { reviewer, files },
            Some(EventKind::LockoutLifted { .. }) => Ruling::Lifted,
            _ => return Ok(None),
        };
        Ok(Some(Self { at: entry.at, run: entry.run, agent: entry.agent, ruling }))
    }
}

impl Derived for EntryHeader {
    const TABLE: &'static str = "about";

    fn may_be_in(_kind: &str) -> bool {
        true
    }

    fn of(entry: Entry) -> Result<Option<Self>, String> {
        // Round to the precision that is stored.
        let at = Timestamp::from_microsecond(entry.at.as_microsecond()).unwrap_or(entry.at);
        Ok(Some(Self { at, run: entry.run, seq: entry.seq, agent: entry.agent }))
    }
}

impl Derived for EntryFacts {
    const TABLE: &'static str = "told";

    fn may_be_in(kind: &str) -> bool {
        let others = [
            "run.started",
            "run.resumed",
            "route.planned",
            "run.completed",
            "run.undone",
            "decision.logged",
            "decision.landed",
            "memory.logged",
            "memory.declined",
            "memory.landed",
        ];
        others.contains(&kind) || EventKind::END_NAMES.contains(&kind)
    }

    fn of(mut entry: Entry) -> Result<Option<Self>, String> {
        let Some(kind) = entry.take_understood()? else { return Ok(None) };
        let fact = match kind {
            EventKind::RunStarted { text, work_tree, .. } => {
                Fact::Started { message: beginning(&text).to_owned(), is_whole: text.len() <= TELLING, work_tree }
            }
            EventKind::RunResumed { .. } => Fact::Resumed,
            EventKind::RoutePlanned(plan) => {
                Fact::Planned { kind: plan.kind, chooser: chooser(&plan), agents: plan.at_work() }
            }
            EventKind::RunCompleted(end) => {
                let check_failed = end.has_failed_check();
                let RunEnd { status, agents, work, check, usage, rejections, .. } = end;
                let verified = check.map(|check| check.passed);
                Fact::Ended { status, agents, usage, lines: lines_changed(&work), verified, check_failed, rejections }
            }
            EventKind::RunUndone(undone) => Fact::Undone(undone),
            EventKind::DecisionLogged { decision, branch } => {
                Fact::Decided { decision: Box::new(decision.recorded_in(entry.run.as_ref())), branch }
            }
            EventKind::DecisionLanded { decisions, branch, commit } => Fact::Landed { decisions, branch, commit },
            EventKind::MemoryLogged { text, share } => Fact::Learned { text, share },
            EventKind::MemoryDeclined { learnings } => Fact::Declined { learnings },
            EventKind::MemoryLanded { learnings, branch, commit } => Fact::Taught { learnings, branch, commit },
            kind => {
                let Some((outcome, end)) = kind.end() else { return Ok(None) };
                Fact::AgentEnded { outcome, usage: end.usage.clone(), model: end.model.clone() }
            }
        };
        Ok(Some(Self { id: entry.id, at: entry.at, run: entry.run, agent: entry.agent, fact }))
    }
}

impl Derived for WorkEnd {
    const TABLE: &'static str = "ended";

    fn may_be_in(kind: &str) -> bool {
        EventKind::END_NAMES.contains(&kind)
    }

    fn of(mut entry: Entry) -> Result<Option<Self>, String> {
        let outcome = entry.take_understood()?.and_then(|kind| Some(kind.end()?.0));
        Ok(outcome.map(|outcome| Self { at: entry.at, run: entry.run, agent: entry.agent, outcome }))
    }
}

impl Derived for FileWrites {
    const TABLE: &'static str = "wrote";

    fn may_be_in(kind: &str) -> bool {
        kind == "tool.completed" || EventKind::END_NAMES.contains(&kind)
    }

    fn of(mut entry: Entry) -> Result<Option<Self>, String> {
        let (mut named, mut changed) = (Vec::new(), Vec::new());
        match entry.take_understood()? {
            Some(EventKind::ToolCompleted { wrote: Some(wrote), .. }) => named.push(wrote.path),
            Some(kind) => {
                let ended = kind.end().and_then(|(_, end)| end.changed.as_ref()).into_iter().flatten();
                let is_named = |change: &&Change| change.how == Some(ChangeEvidence::Named);
                changed.extend(ended.filter(|change| !is_named(change)).map(|change| change.path.clone()));
            }
            None => {}
        }
        Ok((!named.is_empty() || !changed.is_empty()).then_some(Self { named, changed }))
    }
}

fn chooser(plan: &Plan) -> Chooser {
    let of = |evidence: &Evidence| match evidence.source.as_str() {
        "command line" | "message" | choice::PERSON => Chooser::Person,
        Slug::COORDINATOR if evidence.why == rehearsal::IMPROVISED => Chooser::Nobody,
        Slug::COORDINATOR => Chooser::Coordinator,
        _ => Chooser::Router,
    };
    let chosen = plan.evidence.iter().filter(|evidence| plan.agents.contains(&evidence.agent));
    let choosers: Vec<Chooser> = chosen.map(of).collect();
    match choosers.contains(&Chooser::Nobody) {
        true => Chooser::Nobody,
        false => choosers.into_iter().max().unwrap_or(Chooser::Router),
    }
}

pub(in crate::ops) fn beginning(message: &str) -> &str {
    let end = message.floor_char_boundary(TELLING);
    message.get(..end).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Actor;
    use crate::model::samples::every_kind;
    use crate::policy::Redactor;

    fn agrees<T: Derived>() {
        let at = Timestamp::UNIX_EPOCH;
        for kind in every_kind() {
            let entry = Entry::new(EntryId::new("i"), at, Actor::Squad, &kind, &Redactor::default());
            // An entry of a matching kind may still have no value.
            let says = T::of(entry).is_ok_and(|said| said.is_some());
            assert!(!says || T::may_be_in(kind.name()), "{} of {}", T::TABLE, kind.name());
            assert!(
                says || T::TABLE == FileWrites::TABLE || !T::may_be_in(kind.name()),
                "{} of {}",
                T::TABLE,
                kind.name()
            );
        }
    }

    #[test]
    fn every_kind_with_a_value_is_indexed() {
        agrees::<EntryHeader>();
        agrees::<EntryFacts>();
        agrees::<FileWrites>();
        agrees::<WorkEnd>();
        agrees::<ReviewFact>();
    }
}
