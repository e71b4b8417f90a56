//! Compares two states of a team's decisions.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::diff;
use crate::model::{Decision, DecisionId, IntoMap, IntoSet};

/// The changes between two states.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Changes {
    pub(crate) new: Vec<Decision>,
    pub(crate) changed: Vec<Changed>,
    /// Decisions in force before and superseded now.
    pub(crate) superseded: Vec<Superseded>,
    /// Decisions that no longer exist.
    pub(crate) withdrawn: Vec<Decision>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Changed {
    pub(crate) before: Decision,
    pub(crate) after: Decision,
    /// Of title and text.
    pub(crate) diff: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Superseded {
    pub(crate) decision: Decision,
    pub(crate) by: DecisionId,
}

/// Compares two states. Decisions are matched by id. An entry in a file of several has an id derived from its text, so
/// it is also matched by title and date; a corrected entry then counts as changed.
pub(crate) fn changes(before: &[Decision], after: &[Decision]) -> Changes {
    let mut changes = Changes::default();
    let old: BTreeMap<&DecisionId, &Decision> = before.iter().map(|decision| (&decision.id, decision)).into_map();
    let now: BTreeSet<&DecisionId> = after.iter().map(|decision| &decision.id).into_set();
    let mut gone: Vec<&Decision> = before.iter().filter(|decision| !now.contains(&decision.id)).collect();
    for decision in after {
        match old.get(&decision.id) {
            Some(before) if has_same_content(before, decision) => {}
            Some(before) => changes.changed.push(changed(before, decision)),
            None => match gone.iter().position(|other| is_corrected(other, decision)) {
                Some(at) => changes.changed.push(changed(gone.swap_remove(at), decision)),
                None => changes.new.push(decision.clone()),
            },
        }
    }
    // In their old order: `swap_remove` has changed it.
    let gone: BTreeSet<&DecisionId> = gone.iter().map(|decision| &decision.id).into_set();
    changes.withdrawn = before.iter().filter(|decision| gone.contains(&decision.id)).cloned().collect();
    let replaced = superseders(before);
    for (id, by) in superseders(after) {
        if let Some(decision) = old.get(id).filter(|_| !replaced.contains_key(id)) {
            changes.superseded.push(Superseded { decision: (*decision).clone(), by: by.clone() });
        }
    }
    changes
}

/// Maps each superseded decision to its successor.
fn superseders(decisions: &[Decision]) -> BTreeMap<&DecisionId, &DecisionId> {
    decisions.iter().filter_map(|decision| Some((decision.supersedes.as_ref()?, &decision.id))).into_map()
}

fn has_same_content(before: &Decision, after: &Decision) -> bool {
    // Its location is not part of its content.
    Decision { source: None, ..before.clone() } == Decision { source: None, ..after.clone() }
}

fn is_corrected(before: &Decision, after: &Decision) -> bool {
    before.title == after.title && before.date == after.date && before.date.is_some()
}

fn changed(before: &Decision, after: &Decision) -> Changed {
    Changed { before: before.clone(), after: after.clone(), diff: diff(&rendered(before), &rendered(after)) }
}

/// A decision as text, for comparison.
fn rendered(decision: &Decision) -> String {
    let mut text = format!("# {}\n", decision.title);
    for (name, value) in [
        ("by", decision.by.clone()),
        ("supersedes", decision.supersedes.as_ref().map(ToString::to_string)),
        ("scope", Some(decision.scope.join(", ")).filter(|scope| !scope.is_empty())),
        ("tags", Some(decision.tags.join(", ")).filter(|tags| !tags.is_empty())),
    ] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    format!("{text}\n{}\n", decision.text.trim())
}
