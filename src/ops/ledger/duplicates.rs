//! Duplicate entries for one decision id.
//!
//! A decision's id is made from its entry, so of two entries with one id, squad did not write both; except for
//! decisions that two clones imported from the same file, which are equal. One entry counts, and every clone chooses
//! the same: the one the id was made from, or else the oldest.

use std::collections::HashMap;

use crate::model::{Damage, DamageKind, Decision, DecisionId, EntryId};

/// An entry that records a decision.
#[derive(Clone)]
pub(in crate::ops) struct DecisionEntry {
    pub(in crate::ops) path: String,
    pub(in crate::ops) key: String,
    pub(in crate::ops) entry: EntryId,
    pub(in crate::ops) decision: Decision,
}

/// The indexes of the entries that count, in order, and damage reports for the others.
pub(in crate::ops) fn resolve_duplicates<'r>(
    all: impl Iterator<Item = &'r DecisionEntry>,
) -> (Vec<usize>, Vec<Damage>) {
    let all: Vec<&DecisionEntry> = all.collect();
    let mut first: HashMap<&DecisionId, usize> = HashMap::new();
    let has_own_id = |one: &DecisionEntry| one.entry.decision() == one.decision.id;
    let rank = |at: usize| (!has_own_id(all[at]), &all[at].entry, &all[at].path);
    for (at, one) in all.iter().enumerate() {
        let known = first.entry(&one.decision.id).or_insert(at);
        if rank(at) < rank(*known) {
            *known = at;
        }
    }
    let (mut counting, mut damage) = (Vec::new(), Vec::new());
    for (at, one) in all.iter().enumerate() {
        let Some(winner) = first.get(&one.decision.id).map(|winner| all[*winner]) else { continue };
        if std::ptr::eq(winner, *one) {
            counting.push(at);
        } else if winner.entry != one.entry && (has_own_id(winner) || winner.decision != one.decision) {
            damage.push(Damage {
                path: one.path.clone(),
                object: Some(one.key.clone()),
                kind: DamageKind::Malformed,
                reason: format!("`{}` is the decision of entry {} already", one.decision.id, winner.entry),
            });
        }
    }
    (counting, damage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(entry: &str, id: &str, text: &str) -> DecisionEntry {
        let decision = Decision::new(DecisionId::new(id), text.to_owned(), String::new());
        let path = format!("decisions/{entry}-{text}.md");
        DecisionEntry { path, key: "k".to_owned(), entry: EntryId::new(entry), decision }
    }

    #[test]
    fn one_entry_per_id_counts_in_any_order() {
        let cases: [(&str, [DecisionEntry; 2], &str, usize); 5] = [
            ("the entry that the id is of", [recorded("1-x", "b", "a"), recorded("2-b", "b", "b")], "2-b", 1),
            ("though both say the same", [recorded("2-b", "b", "a"), recorded("1-x", "b", "a")], "2-b", 1),
            ("or else the oldest", [recorded("2-x", "b", "a"), recorded("1-y", "b", "b")], "1-y", 1),
            ("imported twice", [recorded("2-x", "b", "a"), recorded("1-y", "b", "a")], "1-y", 0),
            ("one entry in two places", [recorded("2-b", "b", "a"), recorded("2-b", "b", "b")], "2-b", 0),
        ];
        for (case, mut pair, winner, damaged) in cases {
            for _ in 0..2 {
                pair.reverse();
                let (counting, damage) = resolve_duplicates(pair.iter());
                let entries: Vec<String> = counting.iter().map(|at| pair[*at].entry.to_string()).collect();
                assert_eq!((entries, damage.len()), (vec![winner.to_owned()], damaged), "{case}");
                assert!(damage.iter().all(|damage| !damage.path.contains(winner)), "{case}");
            }
        }
    }
}
