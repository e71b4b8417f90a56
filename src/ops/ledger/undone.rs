//! What the ledger tells of undone runs.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::env::Env;
use crate::git::{Error, Repository};
use crate::model::{Actor, Event, EventKind, Position, RunId, Sort, UndoRecord, Undone};
use crate::ops::ledger::index::{EntryFacts, Fact, Index, Place};
use crate::ops::ledger::journal::append;
use crate::ops::ledger::log::{Choice, timeline};
use crate::ops::team::secrets;
use crate::record::{Entry, Read, entry_of};

/// Records an undo, unless it is recorded: a killed one is finished by the next command.
pub(in crate::ops) fn record(env: &Env, repository: &Repository, record: &UndoRecord) -> Result<(), Error> {
    let UndoRecord { run, team, entry, seq, at, causes, undone } = record.clone();
    for known in timeline(repository, &team, Some(&run), &Choice::default())?.entries() {
        if matches!(known?, (_, Read::Entry(known)) if known.id == entry) {
            return Ok(());
        }
    }
    let kind = EventKind::RunUndone(undone);
    record_event(
        env,
        repository,
        &team,
        Event { seq, at, run, agent: None, kind, id: entry, position: Position::default(), causes },
    )
}

/// Records what a person did with an ended run.
pub(in crate::ops) fn record_event(env: &Env, repository: &Repository, team: &str, event: Event) -> Result<(), Error> {
    let at = event.at;
    let redactor = secrets::redactor(env, repository.work_dir().unwrap_or(repository.git_dir()));
    let entry = Entry { actor: Actor::User, ..entry_of(&event, &redactor) };
    append(repository, team, &[entry], at)
}

/// The undos of each run, oldest first.
pub(in crate::ops) fn undone(
    repository: &Repository,
    prefix: &str,
) -> Result<BTreeMap<RunId, Vec<(Timestamp, Undone)>>, Error> {
    let mut all: BTreeMap<RunId, Vec<(Timestamp, Undone)>> = BTreeMap::new();
    let Some(index) = Index::open(repository, prefix)? else { return Ok(all) };
    for span in index.spans(Place::Log) {
        for EntryFacts { at, run, fact, .. } in index.values::<EntryFacts>(&span)? {
            if let (Some(run), Fact::Undone(undone)) = (run, fact) {
                all.entry(run).or_default().push((at, undone));
            }
        }
    }
    all.values_mut().for_each(|undos| undos.stable_sort_by_key(|(at, _)| *at));
    Ok(all)
}
