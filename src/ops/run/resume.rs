//! What an interrupted run has done already, as its entries say it: what is done stays done.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;

use crate::compile::PastCall;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{
    Attachment, Decision, End, EntryId, Event, Outcome, Plan, PlanKind, Position, RunId, Slug, Verdict, What, list,
};
use crate::ops::Project;
use crate::ops::ledger::log::{self, Choice, timeline};
use crate::ops::ledger::lost;
use crate::ops::run::lease;
use crate::policy::Permissions;
use crate::record::{Entry, Read};
use crate::route::Wishes;

/// A run that was interrupted.
pub(crate) struct Interrupted {
    pub(crate) run: RunId,
    pub(crate) message: String,
    /// As it was begun.
    pub(crate) wishes: Wishes,
    pub(crate) no_commit: bool,
    pub(crate) permissions: Option<Permissions>,
    /// Settings that the calls before named, by their flags without dashes.
    pub(crate) flags: BTreeMap<String, String>,
    /// As they were when it was last at work.
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) past: Past,
}

/// What a run has done so far; nothing, where it begins.
#[derive(Clone, Default)]
pub(crate) struct Past {
    /// In their order.
    pub(crate) events: Vec<Event>,
}

/// A review that has its verdict.
pub(super) struct Judged<'p> {
    pub(super) verdict: Verdict,
    pub(super) authors: &'p [Slug],
    pub(super) text: &'p str,
}

/// Work that an agent handed to a colleague.
pub(super) struct HandedOn<'p> {
    pub(super) request: &'p Event,
    pub(super) from: &'p Slug,
    pub(super) to: &'p Slug,
    pub(super) task: &'p str,
    /// What was done of it, where it has begun.
    pub(super) begun: Option<Vec<PastCall>>,
    /// How it was completed.
    pub(super) end: Option<&'p End>,
}

/// Finds the run that `id` begins, and checks that it can go on here.
pub(crate) fn find(env: &Env, project: &Project, id: &str) -> Result<Interrupted, Failure> {
    let repository = &project.repository;
    // Whoever died has an end from here on.
    lost::settle(env, repository);
    let prefix = project.ledger_prefix();
    let run = log::one_run(repository, &prefix, id)?;
    if let Some(live) = lease::look(&project.local()).live.into_iter().find(|live| live.run == run) {
        return Err(Failure::usage(format!("run {run} is still at work, in process {}", live.pid))
            .hint(format!("`squad log {run} --follow` shows it; `squad cancel {run}` ends it")));
    }
    let mut past = Past::default();
    for entry in timeline(repository, &prefix, Some(&run), &Choice::default())?.entries() {
        match entry? {
            (_, Read::Entry(entry)) => past.events.extend(event_of(&run, *entry)),
            // What cannot be read may be that something is done.
            (path, _) => {
                return Err(Failure::failed(format!("run {run} cannot go on: its entry {path} cannot be read"))
                    .hint("`squad doctor` says what is wrong"));
            }
        }
    }
    match past.status() {
        None => {
            return Err(Failure::usage(format!(
                "run {run} has no end here: it was begun in another clone, or .git/squad was deleted since"
            ))
            .hint("resume it where it was begun, where its sessions are, or give the task anew"));
        }
        Some(Outcome::Completed) => {
            return Err(Failure::usage(format!("run {run} is completed: there is nothing to resume"))
                .hint(format!("`squad log {run}` shows it")));
        }
        Some(_) => {}
    }
    let Some(What::RunStarted { text: message, permissions, branch, agents, tier, no_commit, members, .. }) =
        past.opening().cloned()
    else {
        return Err(Failure::failed(format!("run {run} cannot go on: its beginning is not in the ledger")));
    };
    if !members.is_empty() {
        return Err(Failure::usage(format!("run {run} was started by an MCP client, for members that it named"))
            .hint("have the client start them again"));
    }
    let here = repository.head()?.branch;
    if branch != here {
        let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "no branch".to_owned());
        let failure = Failure::team(format!("run {run} began on {}, and this is {}", name(&branch), name(&here)));
        return Err(match branch {
            Some(branch) => failure.hint(format!("go to the work tree of {branch}, or `git switch {branch}`")),
            None => failure.hint("check out the commit that it began on, with `git switch --detach`"),
        });
    }
    let permissions = permissions.and_then(|name| Permissions::from_str(&name, true).ok());
    let planned = past.plan().into_iter().flat_map(|plan| plan.agents.iter().chain(&plan.reviewer));
    let is_gone = |agent: &&Slug| !project.team.startable().any(|member| member.slug == **agent);
    let gone: Vec<&Slug> = planned.filter(is_gone).collect();
    if !gone.is_empty() {
        return Err(Failure::team(format!("run {run} needs {}, who cannot be started any more", list(gone)))
            .hint("put them back on the team, or give the task anew"));
    }
    let wishes = Wishes { agents, tier, ..Wishes::default() };
    let (flags, attachments) = (past.flags(), past.attachments().to_vec());
    Ok(Interrupted { run, message, wishes, no_commit, permissions, flags, attachments, past })
}

fn event_of(run: &RunId, entry: Entry) -> Option<Event> {
    let what = entry.what()?;
    let Entry { id, at, seq, agent, position, causes, .. } = entry;
    Some(Event { seq: seq?, at, run: run.clone(), agent, what, id, position, causes })
}

fn opens_session(event: &Event) -> bool {
    matches!(event.what, What::SessionCreated { .. } | What::SessionResumed { .. })
}

fn calls<'e>(events: impl Iterator<Item = &'e Event>) -> Vec<PastCall> {
    let calls = events.filter_map(|event| match &event.what {
        What::ToolCompleted { call, tool, detail, ok, .. } => Some(PastCall::new(call, tool, detail, *ok)),
        _ => None,
    });
    calls.collect()
}

impl Past {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn opening(&self) -> Option<&What> {
        self.events.iter().map(|event| &event.what).find(|what| matches!(what, What::RunStarted { .. }))
    }

    /// What was named last counts.
    fn flags(&self) -> BTreeMap<String, String> {
        let named = self.events.iter().filter_map(|event| match &event.what {
            What::RunStarted { flags, .. } | What::RunResumed { flags, .. } => Some(flags.clone()),
            _ => None,
        });
        named.flatten().collect()
    }

    fn attachments(&self) -> &[Attachment] {
        let passed = self.events.iter().rev().find_map(|event| match &event.what {
            What::RunStarted { attachments, .. } | What::RunResumed { attachments, .. } => Some(attachments.as_slice()),
            _ => None,
        });
        passed.unwrap_or_default()
    }

    fn status(&self) -> Option<Outcome> {
        self.events.iter().rev().find_map(|event| match &event.what {
            What::RunCompleted { status, .. } => Some(*status),
            _ => None,
        })
    }

    /// The plan that holds, where who works is decided.
    pub(super) fn plan(&self) -> Option<&Plan> {
        let planned = self.events.iter().rev().find_map(|event| match &event.what {
            What::RoutePlanned(plan) => Some(plan),
            _ => None,
        });
        planned.filter(|plan| plan.kind != PlanKind::Abstain && (plan.steps.is_empty() == plan.agents.is_empty()))
    }

    /// How an agent completed its work there.
    pub(super) fn completed(&self, agent: &Slug, position: Position) -> Option<&End> {
        self.at(agent, position).find_map(|event| match &event.what {
            What::Completed(end) => Some(end),
            _ => None,
        })
    }

    /// Whether an agent has a session of this run, which can be resumed.
    pub(super) fn has_session(&self, agent: &Slug) -> bool {
        // One that `squad watch` lent to the run has been made anew since.
        let is_own = |event: &Event| match &event.what {
            What::SessionCreated { session, .. } | What::SessionResumed { session, .. } => {
                *session == crate::pool::session_id(agent, &event.run)
            }
            _ => false,
        };
        self.events.iter().any(|event| event.agent.as_ref() == Some(agent) && is_own(event))
    }

    /// Whether an agent's session in this run was made of something else: its charter has changed since, or its model.
    pub(super) fn is_remade(&self, agent: &Slug, compiled_hash: &str) -> bool {
        let of_agent = self.events.iter().rev().filter(|event| event.agent.as_ref() == Some(agent));
        let mut hashes = of_agent.filter_map(|event| match &event.what {
            What::SessionCreated { compiled_hash, .. } => Some(compiled_hash),
            _ => None,
        });
        hashes.next().is_some_and(|hash| hash != compiled_hash)
    }

    /// The tool calls of work that an agent has begun there and not completed.
    pub(super) fn interrupted(&self, agent: &Slug, position: Position) -> Option<Vec<PastCall>> {
        let has_begun = self.at(agent, position).any(opens_session);
        let is_interrupted = has_begun && self.completed(agent, position).is_none();
        is_interrupted.then(|| calls(self.at(agent, position)))
    }

    /// What an agent did there of the plan's work, and not of what a colleague handed it.
    fn at(&self, agent: &Slug, position: Position) -> impl Iterator<Item = &Event> {
        let requests: BTreeSet<&EntryId> = self
            .events
            .iter()
            .filter(|event| matches!(event.what, What::RouteRequested { .. }))
            .map(|event| &event.id)
            .collect();
        let mut is_handed_on = false;
        self.events.iter().filter(move |event| event.agent.as_ref() == Some(agent)).filter(move |event| {
            if opens_session(event) {
                is_handed_on = event.causes.iter().any(|cause| requests.contains(cause));
            }
            event.position == position && !is_handed_on
        })
    }

    /// What agents handed on, in its order.
    pub(super) fn handed_on(&self) -> Vec<HandedOn<'_>> {
        let requests = self.events.iter().filter_map(|request| match &request.what {
            What::RouteRequested { to, text, .. } => Some((request, to, text.as_str())),
            _ => None,
        });
        requests
            .filter_map(|(request, to, task)| {
                let from = request.agent.as_ref()?;
                let is_its = |event: &&Event| event.agent.as_ref() == Some(to);
                let begun = self.events.iter().rposition(|event| is_its(&event) && event.causes.contains(&request.id));
                let since = self.events.get(begun.unwrap_or(self.events.len())..).unwrap_or_default();
                let end = since.iter().filter(is_its).find_map(|event| event.what.end());
                let end = end.filter(|(outcome, _)| *outcome == Outcome::Completed).map(|(_, end)| end);
                let begun = begun.map(|_| calls(since.iter().filter(is_its)));
                Some(HandedOn { request, from, to, task, begun, end })
            })
            .collect()
    }

    pub(super) fn has_step(&self, position: Position, has_ended: bool) -> bool {
        self.events.iter().filter(|event| event.position.step == position.step).any(|event| match event.what {
            What::StepStarted { .. } => !has_ended,
            What::StepCompleted { status } => has_ended && status == Outcome::Completed,
            _ => false,
        })
    }

    /// How many steps of the plan's are done, and how many it has.
    pub(super) fn steps(&self) -> (usize, usize) {
        let steps = self.plan().map_or(0, |plan| plan.steps.len());
        let done = (1..).take(steps).take_while(|number| self.has_step(Position::new(*number, 1), true)).count();
        (done, steps)
    }

    pub(super) fn judged(&self, position: Position) -> Option<Judged<'_>> {
        self.events.iter().filter(|event| event.position == position).find_map(|event| match &event.what {
            What::ReviewVerdict { verdict, authors, text, .. } => Some(Judged { verdict: *verdict, authors, text }),
            _ => None,
        })
    }

    /// Those whom the review there locked out.
    pub(super) fn locked_out(&self, position: Position) -> BTreeSet<&Slug> {
        let locked = |event: &&Event| matches!(event.what, What::Lockout { .. }) && event.position == position;
        self.events.iter().filter(locked).filter_map(|event| event.agent.as_ref()).collect()
    }

    /// Who has begun to revise there.
    pub(super) fn reviser(&self, position: Position, reviewer: &Slug) -> Option<&Slug> {
        let revises = |event: &&Event| {
            event.position == position && event.agent.as_ref() != Some(reviewer) && opens_session(event)
        };
        self.events.iter().find(revises).and_then(|event| event.agent.as_ref())
    }

    /// The run's last word, where nothing came after it but its process's death.
    pub(super) fn answer(&self) -> Option<&str> {
        for event in self.events.iter().rev() {
            match &event.what {
                What::Answer { text } => return Some(text),
                What::RunCompleted { status: Outcome::Lost, .. } => {}
                What::RunCompleted { .. } => return None,
                _ => {}
            }
        }
        None
    }

    /// What agents have recorded already: a call that is made again records nothing twice.
    pub(super) fn decisions(&self) -> Vec<Decision> {
        let logged = self.events.iter().filter_map(|event| match &event.what {
            What::DecisionLogged { decision, .. } => Some(decision.clone()),
            _ => None,
        });
        logged.collect()
    }

    pub(super) fn learned(&self) -> Vec<(Slug, String)> {
        let logged = self.events.iter().filter_map(|event| match &event.what {
            What::MemoryLogged { text } => Some((event.agent.clone()?, text.clone())),
            _ => None,
        });
        logged.collect()
    }

    /// The commits of two snapshots: the first, and the one that the unfinished step began with.
    pub(super) fn snapshots(&self) -> Option<(&str, &str)> {
        let begins = self.events.iter().rposition(|event| matches!(event.what, What::StepStarted { .. }));
        let (mut first, mut before) = (None, None);
        for (place, event) in self.events.iter().enumerate() {
            if let What::SnapshotTaken { commit, .. } = &event.what {
                first.get_or_insert(commit.as_str());
                if begins.is_some_and(|begins| place < begins) {
                    before = Some(commit.as_str());
                }
            }
        }
        first.map(|first| (first, before.unwrap_or(first)))
    }

    /// Files that were changed in the unfinished step by those who have completed it.
    pub(super) fn settled(&self) -> BTreeSet<String> {
        let last = self.events.iter().rev().find(|event| matches!(event.what, What::StepStarted { .. }));
        let of_last = |event: &&Event| Some(event.position.step) == last.map(|last| last.position.step);
        let changed = self.events.iter().filter(of_last).filter_map(|event| match &event.what {
            What::Completed(end) => end.changed.as_ref(),
            _ => None,
        });
        changed.flatten().map(|change| change.path.clone()).collect()
    }

    /// Whose tools have written which files, named from the project's root.
    pub(super) fn named(&self) -> Vec<(Slug, String)> {
        let named = self.events.iter().filter_map(|event| match &event.what {
            What::ToolCompleted { wrote: Some(wrote), .. } => Some((event.agent.clone()?, wrote.path.clone())),
            _ => None,
        });
        named.collect()
    }

    /// Those whose work is done, each once.
    pub(super) fn done(&self) -> Vec<Slug> {
        let done = self.events.iter().filter(|event| matches!(event.what, What::Completed(_)));
        let agents = done.filter_map(|event| event.agent.clone()).filter(|agent| agent.as_str() != Slug::COORDINATOR);
        agents.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The coordinator's completed work, in its order.
    pub(super) fn coordinators(&self) -> impl Iterator<Item = &End> {
        self.events
            .iter()
            .filter(|event| event.agent.as_ref().is_some_and(|agent| agent.as_str() == Slug::COORDINATOR))
            .filter_map(|event| match &event.what {
                What::Completed(end) => Some(end),
                _ => None,
            })
    }

    /// How many turns of a rehearsal's script each agent has played to their end.
    pub(crate) fn played(&self) -> BTreeMap<Slug, usize> {
        let mut played = BTreeMap::new();
        for event in &self.events {
            let cut_short = matches!(event.what, What::Lost(_) | What::Cancelled(_) | What::Skipped(_));
            if let Some(agent) = event.agent.as_ref().filter(|_| event.what.end().is_some() && !cut_short) {
                *played.entry(agent.clone()).or_default() += 1;
            }
        }
        played
    }
}
