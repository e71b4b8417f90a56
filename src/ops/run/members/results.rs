//! The results of a run and its members, from the ledger and the output files. Any squad process can read them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::output::OutputFile;
use crate::error::Failure;
use crate::model::{
    AgentState, DecisionId, End, EventKind, Exited, GivenMember, Outcome, RunActivity, RunEnd, RunId, Slug,
};
use crate::ops::Project;
use crate::ops::ledger::log::{Choice, added_since, timeline};
use crate::ops::run::host::activity;
use crate::ops::run::lease;
use crate::pool::session_id;
use crate::record::{Entry, Read};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Queued,
    Running,
    Completed,
    Error,
    Timeout,
}

/// A run, however it was started.
pub(crate) struct RunResult {
    pub(crate) run: RunId,
    /// When it began, and when its last entry was made.
    pub(crate) started: Timestamp,
    pub(crate) changed: Timestamp,
    /// Its status, as in `squad log`.
    pub(crate) status: String,
    /// Its message, if it had one.
    pub(crate) message: String,
    pub(crate) answer: Option<String>,
    /// Why it ended before any member could begin.
    pub(crate) reason: Option<String>,
    /// How to fix that.
    pub(crate) hint: Option<String>,
    pub(crate) members: Vec<MemberResult>,
    /// Its decisions.
    pub(crate) decisions: Vec<DecisionId>,
    /// The outcomes of agents that squad chose.
    pub(crate) agents: BTreeMap<Slug, Outcome>,
    /// Why those of them that did not complete ended.
    pub(crate) reasons: BTreeMap<Slug, String>,
}

pub(crate) struct MemberResult {
    pub(crate) given: GivenMember,
    pub(crate) status: Status,
    /// The time of its first entry.
    started: Option<Timestamp>,
    pub(crate) end: Option<(Outcome, End)>,
    pub(crate) exited: Option<Exited>,
    /// What restricts its engine, if that does not ask.
    pub(crate) governed: Option<String>,
    /// The id of its session in this run.
    pub(crate) session: String,
    /// The model it was asked for, or the engine chose. `None`: unknown.
    pub(crate) model: Option<String>,
}

/// The state of a run's process. Read before its entries, so that a run that ends in between counts as ended.
struct State {
    status: &'static str,
    activity: RunActivity,
}

impl State {
    fn of(project: &Project, run: &RunId) -> Self {
        let leases = project.leases();
        let activity = leases.live(run).and_then(activity).unwrap_or_default();
        Self { status: leases.status(run), activity }
    }
}

impl RunResult {
    /// `None`: this clone has no such run.
    pub(crate) fn read(project: &Project, run: &RunId) -> Result<Option<Self>, Failure> {
        let state = State::of(project, run);
        let timeline = timeline(&project.repository, &project.ledger_prefix(), Some(run), &Choice::default())?;
        let mut entries = Vec::new();
        for entry in timeline.entries() {
            if let (_, Read::Entry(entry)) = entry? {
                entries.push(*entry);
            }
        }
        Ok(Self::of(run, &state, entries))
    }

    /// Like [`Self::read`], for a run that began after the ledger's tip was `tip`; reads no older entries.
    pub(crate) fn read_since(project: &Project, run: &RunId, tip: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(tip) = tip else { return Self::read(project, run) };
        let state = State::of(project, run);
        let mut entries = added_since(&project.repository, &project.ledger_prefix(), tip)?;
        entries.retain(|entry| entry.run.as_ref() == Some(run));
        match Self::of(run, &state, entries) {
            // Reading everything reports what could not be read since that tip.
            None => Self::read(project, run),
            found => Ok(found),
        }
    }

    /// The result, from the run's entries in order.
    fn of(run: &RunId, state: &State, entries: Vec<Entry>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for entry in entries {
            match (entry.known_kind(), &mut found) {
                (Some(EventKind::RunStarted { text, members, .. }), None) => {
                    let members = members.into_iter().map(|given| MemberResult::new(given, run)).collect();
                    let (answer, reason, hint) = (None, None, None);
                    let (status, agents, reasons) = (state.status.to_owned(), BTreeMap::new(), BTreeMap::new());
                    let (run, started, changed, message) = (run.clone(), entry.at, entry.at, text);
                    let decisions = Vec::new();
                    found = Some(Self {
                        run,
                        started,
                        changed,
                        status,
                        message,
                        answer,
                        reason,
                        hint,
                        members,
                        decisions,
                        agents,
                        reasons,
                    });
                }
                (Some(kind), Some(found)) => {
                    found.changed = entry.at;
                    found.take(kind, entry.agent.as_ref(), entry.at);
                }
                _ => {}
            }
        }
        if let Some(found) = &mut found
            && state.status == "running"
        {
            found.update(&state.activity);
        }
        found
    }

    fn take(&mut self, kind: EventKind, agent: Option<&Slug>, at: Timestamp) {
        if let EventKind::RunCompleted(RunEnd { status, error, agents, .. }) = &kind {
            self.agents.clone_from(agents);
            self.status = status.to_string().replace(' ', "_");
            self.reason = error.as_ref().map(|error| error.message.clone());
            self.hint = error.as_ref().and_then(|error| error.hint.clone());
        }
        if let EventKind::DecisionLogged { decision, .. } = &kind {
            self.decisions.push(decision.id.clone());
        }
        if let EventKind::Answer { text } = &kind {
            self.answer = Some(text.clone());
        }
        if let (Some(agent), Some((outcome, end))) = (agent, kind.end()) {
            match outcome {
                // An agent may work several times; the last time counts.
                Outcome::Completed => drop(self.reasons.remove(agent)),
                _ => drop(self.reasons.insert(agent.clone(), end.reason.clone())),
            }
        }
        let member = self.members.iter_mut().find(|member| Some(&member.given.id) == agent);
        if let Some(member) = member {
            member.started.get_or_insert(at);
            member.take(kind);
        }
    }

    /// Updates the members that have not ended.
    fn update(&mut self, activity: &RunActivity) {
        for member in self.members.iter_mut().filter(|member| member.end.is_none()) {
            // A member with entries is working until its end is recorded, even if the activity does not show it.
            let state = activity.agents.get(&member.given.id);
            let has_begun =
                matches!(state, Some(AgentState::Working | AgentState::WaitingAnswer | AgentState::WaitingConnection));
            let is_at_work = has_begun || member.started.is_some();
            member.status = if is_at_work { Status::Running } else { Status::Queued };
        }
    }

    /// The run's status for MCP clients, which know of no claims.
    pub(crate) fn shown_status(&self) -> &str {
        if self.claim().is_some() { "error" } else { &self.status }
    }

    /// Who only claimed to have worked, if that is the run's status.
    pub(crate) fn claim(&self) -> Option<String> {
        if self.status != Outcome::Claimed.to_string() {
            return None;
        }
        let claimed = self.agents.iter().filter(|(_, outcome)| **outcome == Outcome::Claimed);
        let reasons = claimed.filter_map(|(agent, _)| Some(format!("{agent}: {}", self.reasons.get(agent)?)));
        Some(reasons.collect::<Vec<_>>().join("; "))
    }

    /// How many members have ended, and how many there are.
    pub(crate) fn done(&self) -> (usize, usize) {
        (self.members.iter().filter(|member| member.end.is_some()).count(), self.members.len())
    }
}

impl MemberResult {
    fn new(given: GivenMember, run: &RunId) -> Self {
        let session = given.chat.clone().unwrap_or_else(|| session_id(&given.id, run));
        Self {
            given,
            status: Status::Error,
            started: None,
            end: None,
            exited: None,
            governed: None,
            session,
            model: None,
        }
    }

    fn take(&mut self, kind: EventKind) {
        if let Some((outcome, end)) = kind.end() {
            self.status = match outcome {
                Outcome::Completed | Outcome::Skipped => Status::Completed,
                Outcome::TimedOut => Status::Timeout,
                _ => Status::Error,
            };
            self.end = Some((outcome, end.clone()));
            return;
        }
        match kind {
            EventKind::EngineExited(exited) => self.exited = Some(exited),
            EventKind::EngineGoverned { by, .. } => self.governed = Some(by),
            EventKind::SessionCreated { model, .. } => self.model = Some(model).filter(|model| !model.is_empty()),
            _ => {}
        }
    }

    /// How long it has been working, or had worked.
    pub(crate) fn seconds_at(&self, now: Timestamp) -> f64 {
        let started = self.started.filter(|_| self.status == Status::Running);
        started.map_or(0.0, |started| now.duration_since(started).as_secs_f64().max(0.0))
    }

    /// Why it did not complete.
    pub(crate) fn reason(&self) -> Option<String> {
        match &self.end {
            Some((Outcome::Completed, _)) => None,
            Some((outcome, end)) if end.reason.is_empty() => Some(outcome.to_string()),
            Some((_, end)) => Some(end.reason.clone()),
            None if self.status == Status::Error => Some("the process of its run is gone".to_owned()),
            None => None,
        }
    }

    /// What it said, for when its output is gone.
    pub(crate) fn said(&self) -> Option<String> {
        let printed_nothing = self.exited.as_ref().is_some_and(|exited| exited.stdout_bytes == 0);
        self.end.as_ref().map(|(_, end)| if printed_nothing { String::new() } else { end.text.clone() })
    }

    /// Its output of one kind: `stdout`, `stderr` or `prompt`.
    pub(crate) fn output(&self, project: &Project, run: &RunId, kind: &str) -> Option<OutputFile> {
        let local = project.local();
        let own = OutputFile::of_session(&local, &session_id(&self.given.id, run), &format!("result.{kind}"));
        match (&self.exited, kind) {
            (Some(exited), "stdout") => OutputFile::named(&local, &exited.stdout),
            (Some(exited), "stderr") => OutputFile::named(&local, &exited.stderr),
            (Some(exited), _) => OutputFile::named(&local, &exited.stdout.replace(".stdout", ".prompt")),
            // It had written nothing when its status was read. What is there now is newer, or from its chat's last run.
            (None, "stdout" | "stderr") if self.status == Status::Queued => None,
            (None, _) if own.size().is_some() => Some(own),
            // It is still working, or did not end properly. In a chat, the newest output may belong to another run.
            (None, _) if self.end.is_none() || self.given.chat.is_none() => {
                OutputFile::newest(&local, &self.session, kind)
            }
            (None, _) => None,
        }
    }
}

/// Whether the process of a run of this clone still exists.
pub(crate) fn is_live(project: &Project, run: &RunId) -> bool {
    lease::look(&project.local()).status(run) == "running"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of an agent that works several times: the last one counts, and is its own.
    #[test]
    fn the_reason_of_an_end_is_gone_with_the_next_one() {
        let [ada, bob] = ["ada", "bob"].map(|name| Slug::fold(name).expect("a slug"));
        for (ends, reason) in [
            (&[Outcome::Failed][..], Some("0")),
            (&[Outcome::Failed, Outcome::Completed], None),
            (&[Outcome::Completed, Outcome::Failed], Some("1")),
            (&[Outcome::Failed, Outcome::Stopped], Some("1")),
            (&[Outcome::Completed], None),
        ] {
            let mut result = RunResult {
                run: RunId::new("20260105-090000-000001"),
                started: Timestamp::UNIX_EPOCH,
                changed: Timestamp::UNIX_EPOCH,
                status: "running".to_owned(),
                message: String::new(),
                answer: None,
                reason: None,
                hint: None,
                members: Vec::new(),
                decisions: Vec::new(),
                agents: BTreeMap::new(),
                reasons: BTreeMap::new(),
            };
            let end = |reason: &str| End { reason: reason.to_owned(), ..End::default() };
            result.take(EventKind::of_end(Outcome::Failed, end("bob's")), Some(&bob), Timestamp::UNIX_EPOCH);
            for (number, outcome) in ends.iter().enumerate() {
                let kind = EventKind::of_end(*outcome, end(&number.to_string()));
                result.take(kind, Some(&ada), Timestamp::UNIX_EPOCH);
            }
            assert_eq!(result.reasons.get(&ada).map(String::as_str), reason, "{ends:?}");
            assert_eq!(result.reasons[&bob], "bob's");
        }
    }
}
