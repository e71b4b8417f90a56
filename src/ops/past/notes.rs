//! What the ledger says of the newest runs, entry by entry.
//!
//! Opening an entry costs some 30 µs while git has not packed it, so what the last look found is kept in the local
//! cache. Entries never change: what is known of one stays right.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{Chooser, TELLING, beginning, chooser};
use crate::env::Env;
use crate::model::{Outcome, PlanKind, RunId, Slug, What};
use crate::ops::Workspace;
use crate::ops::cache::{Cache, key_of};
use crate::ops::ledger::kind_of;
use crate::record::{Entry, Read};

const KIND: &str = "past";

/// The part of an entry that matters here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Note {
    Started {
        run: RunId,
        message: String,
    },
    Planned {
        run: RunId,
        kind: PlanKind,
        agents: Vec<Slug>,
        chooser: Chooser,
    },
    /// Whether the run did what was asked, and which agents did.
    Ended {
        run: RunId,
        completed: bool,
        agents: Vec<Slug>,
    },
    /// Damaged, of a newer squad, or of no run.
    Nothing,
}

impl Note {
    fn of(bytes: &[u8]) -> Self {
        let Read::Entry(entry) = Entry::parse(bytes) else { return Self::Nothing };
        let (Some(what), Some(run)) = (entry.what(), entry.run) else { return Self::Nothing };
        match what {
            What::RunStarted { text, .. } => Self::Started { run, message: text },
            What::RoutePlanned(plan) => {
                Self::Planned { run, kind: plan.kind, chooser: chooser(&plan), agents: plan.agents }
            }
            What::RunCompleted { status, agents, .. } => {
                let done = agents.into_iter().filter(|(_, outcome)| *outcome == Outcome::Completed);
                let agents = done.map(|(agent, _)| agent).collect();
                Self::Ended { run, completed: status == Outcome::Completed, agents }
            }
            _ => Self::Nothing,
        }
    }

    fn shortened(self) -> Self {
        match self {
            Self::Started { run, message } if message.len() > TELLING => {
                Self::Started { run, message: beginning(&message).to_owned() }
            }
            note => note,
        }
    }

    fn is_telling(path: &str) -> bool {
        matches!(kind_of(path), "run.started" | "route.planned" | "run.completed")
    }
}

/// All there are, the newest first.
pub(super) fn all(workspace: &Workspace) -> Result<Vec<Note>, crate::git::Error> {
    let mut notes = Vec::new();
    read(workspace, usize::MAX, |_| None, |_, note| notes.push(note))?;
    Ok(notes)
}

/// Those of the newest `runs`, the newest first. Of long messages only the beginning.
pub(super) fn newest(env: &Env, workspace: &Workspace, runs: usize) -> Result<Vec<Note>, crate::git::Error> {
    let cache = Cache::new(env, &workspace.local());
    let key = key_of(&[&workspace.ledger_prefix()]);
    let mut cached: BTreeMap<String, Note> = cache.kept(KIND, &key).unwrap_or_default();
    let mut found: Vec<(String, Note)> = Vec::new();
    let known = |path: &str| cached.remove(path);
    let opened = read(workspace, runs, known, |path, note| found.push((path.to_owned(), note.shortened())))?;
    if opened > 0 {
        let kept: BTreeMap<&str, &Note> = found.iter().map(|(path, note)| (path.as_str(), note)).collect();
        cache.keep(KIND, &key, &kept);
    }
    Ok(found.into_iter().map(|(_, note)| note).collect())
}

/// Gives each entry of the newest `runs`, the newest first, and returns how many had to be opened.
fn read(
    workspace: &Workspace,
    runs: usize,
    mut known: impl FnMut(&str) -> Option<Note>,
    mut give: impl FnMut(&str, Note),
) -> Result<usize, crate::git::Error> {
    let Some(snapshot) = workspace.repository.ledger().snapshot()? else { return Ok(0) };
    let (mut opened, mut seen) = (0, 0);
    for day in snapshot.days(&format!("{}log", workspace.ledger_prefix()))? {
        snapshot.each_from_last(&day.path, Note::is_telling, |path, bytes| {
            let note = match known(path) {
                Some(note) => note,
                None => {
                    opened += 1;
                    Note::of(&bytes()?)
                }
            };
            seen += usize::from(matches!(note, Note::Started { .. }));
            give(path, note);
            Ok(if seen < runs { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if seen >= runs {
            break;
        }
    }
    Ok(opened)
}
