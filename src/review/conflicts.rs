//! Finds conflicts between decisions.
//!
//! Explicit conflicts follow from the metadata: two decisions supersede the same one, or have the same scope. Likely
//! conflicts follow from the wording; a person has to check them, and they fail no build.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Serialize;

use super::scope;
use super::wording::{Statement, WordFrequencies};
use crate::model::{Decision, DecisionId, IntoSet, Sort, Source, list};

/// How many pairs of decisions are compared. Anybody can open a pull request with any number of them; a real one adds a
/// few to some thousands.
const MAX_PAIRS: usize = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Certainty {
    Explicit,
    Likely,
}

/// Decisions that cannot, or probably cannot, all be in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Conflict {
    pub(crate) certainty: Certainty,
    /// A stable identifier in kebab case, for programs.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) decisions: Vec<DecisionId>,
    /// Parallel to `decisions`, because some are in no checked-out commit.
    pub(crate) titles: Vec<String>,
    /// The sources of the decisions, where known.
    pub(crate) sources: Vec<Source>,
}

/// Conflicts of new decisions with each other and with other decisions. `others` may include the new ones.
pub(crate) fn within(new: &[Decision], others: &[Decision]) -> Vec<Conflict> {
    let mut all: Vec<&Decision> = new.iter().collect();
    let ids: BTreeSet<&DecisionId> = new.iter().map(|decision| &decision.id).into_set();
    all.extend(others.iter().filter(|decision| !ids.contains(&decision.id)));
    find(&all, MAX_PAIRS, &Pairs { first: 0..new.len(), second: 0..all.len() }, None)
}

/// What many comparisons share: read once, since each of any number of sides is compared with each.
pub(crate) struct Background<'d> {
    statements: BTreeMap<StatementKey<'d>, Statement>,
    frequencies: WordFrequencies,
    /// Superseded by decisions that all sides share.
    replaced: BTreeSet<&'d DecisionId>,
}

type StatementKey<'d> = (&'d DecisionId, &'d str, &'d str);

fn key(decision: &Decision) -> StatementKey<'_> {
    (&decision.id, &decision.title, &decision.text)
}

impl<'d> Background<'d> {
    /// `common` are the decisions that all sides share, `others` those of the sides.
    pub(crate) fn new(common: &'d [Decision], others: impl Iterator<Item = &'d Decision>) -> Self {
        let mut statements = BTreeMap::new();
        for decision in common.iter().chain(others) {
            statements.entry(key(decision)).or_insert_with(|| Statement::new(decision));
        }
        let frequencies = WordFrequencies::new(statements.values());
        let replaced = common.iter().filter_map(|decision| decision.supersedes.as_ref()).collect();
        Self { statements, frequencies, replaced }
    }
}

/// Conflicts between the decisions of two sides, without conflicts inside one side.
pub(crate) fn between(ours: &[Decision], theirs: &[Decision], background: &Background<'_>) -> Vec<Conflict> {
    let both: BTreeSet<&DecisionId> = ours.iter().map(|decision| &decision.id).into_set();
    let theirs: Vec<&Decision> = theirs.iter().filter(|decision| !both.contains(&decision.id)).collect();
    let count = ours.len();
    let all: Vec<&Decision> = ours.iter().chain(theirs).collect();
    find(&all, MAX_PAIRS, &Pairs { first: 0..count, second: count..all.len() }, Some(background))
}

/// New decisions that supersede an unknown one.
pub(crate) fn dangling(new: &[Decision], known: &BTreeSet<&DecisionId>) -> Vec<Conflict> {
    let unknown = |decision: &&Decision| decision.supersedes.as_ref().is_some_and(|old| !known.contains(old));
    let found = new.iter().filter(unknown).map(|decision| {
        let old = decision.supersedes.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = format!("supersedes {old}, which exists on neither side");
        conflict(Certainty::Explicit, "supersedes-unknown", message, &[decision])
    });
    found.collect()
}

/// Which pairs of indices are compared: those whose smaller one is in `first`, and the other in `second`.
pub(super) struct Pairs {
    pub(super) first: Range<usize>,
    pub(super) second: Range<usize>,
}

/// Checks pairs, at most `most` of them. Without a background, `all` are it.
pub(super) fn find(
    all: &[&Decision],
    most: usize,
    pairs: &Pairs,
    background: Option<&Background<'_>>,
) -> Vec<Conflict> {
    let replaced: BTreeSet<&DecisionId> = all.iter().filter_map(|decision| decision.supersedes.as_ref()).into_set();
    let is_replaced = |id: &DecisionId| {
        replaced.contains(id) || background.is_some_and(|background| background.replaced.contains(id))
    };
    let stands = |decision: &Decision| !is_replaced(&decision.id) && decision.ended().is_none();
    let mut conflicts = races(all, |at| stands(all[at]), pairs);
    let standing: Vec<(usize, &Decision)> =
        all.iter().enumerate().filter(|(_, decision)| stands(decision)).map(|(at, d)| (at, *d)).collect();
    let own = background.is_none().then(|| Background::new(&[], standing.iter().map(|(_, decision)| *decision)));
    let mut likely = Vec::new();
    let is_complete = match background.or(own.as_ref()) {
        Some(background) => compare(&standing, most, pairs, background, &mut likely),
        None => true,
    };
    conflicts.extend(without_series(likely));
    if !is_complete {
        let message =
            format!("{} decisions in force are too many to compare in pairs: conflicts may be missed", standing.len());
        conflicts.push(conflict(Certainty::Likely, "not-all-compared", message, &[]));
    }
    conflicts.stable_sort_by(|a, b| (a.certainty, a.code, &a.decisions).cmp(&(b.certainty, b.code, &b.decisions)));
    conflicts
}

/// Compares decisions in force, ordered by index. `false`: the pairs are too many, and some were not compared.
fn compare(
    standing: &[(usize, &Decision)],
    most: usize,
    pairs: &Pairs,
    background: &Background<'_>,
    conflicts: &mut Vec<Conflict>,
) -> bool {
    let statements: Vec<Option<&Statement>> =
        standing.iter().map(|(_, decision)| background.statements.get(&key(decision))).collect();
    let place = |index: usize| standing.partition_point(|(at, _)| *at < index);
    let (firsts, seconds) =
        (place(pairs.first.start)..place(pairs.first.end), place(pairs.second.start)..place(pairs.second.end));
    let mut compared = 0;
    for one in firsts {
        for other in seconds.start.max(one + 1)..seconds.end {
            if compared == most {
                return false;
            }
            compared += 1;
            let (first, second) = (standing[one].1, standing[other].1);
            if replaces_the_same(first, second) {
                continue;
            }
            if scope::is_same(first, second) {
                let message = format!("both decide {}, and neither supersedes the other", list(&first.scope));
                conflicts.push(conflict(Certainty::Explicit, "scope-decided-twice", message, &[first, second]));
            } else if !scope::is_apart(first, second)
                && let (Some(ours), Some(theirs)) = (statements[one], statements[other])
                && let Some(reason) = background.frequencies.opposition(ours, theirs)
            {
                conflicts.push(conflict(Certainty::Likely, reason.code, reason.message, &[first, second]));
            }
        }
    }
    true
}

/// Without what decisions of a series seem to contradict one another in: each day's log, each release, has its own number
/// under the same title.
fn without_series(conflicts: Vec<Conflict>) -> impl Iterator<Item = Conflict> {
    /// Decisions that both of two in a series are like, or that one of them is, at least.
    const BOTH: usize = 3;
    const ONE: usize = 6;
    let is_like = |conflict: &Conflict| ["different-numbers", "same-subject"].contains(&conflict.code);
    let mut likes: BTreeMap<DecisionId, usize> = BTreeMap::new();
    for id in conflicts.iter().filter(|conflict| is_like(conflict)).flat_map(|conflict| &conflict.decisions) {
        *likes.entry(id.clone()).or_default() += 1;
    }
    let of_series = move |conflict: &Conflict| {
        let counts = || conflict.decisions.iter().map(|id| likes.get(id).copied().unwrap_or_default());
        is_like(conflict) && (counts().all(|count| count >= BOTH) || counts().any(|count| count >= ONE))
    };
    conflicts.into_iter().filter(move |conflict| !of_series(conflict))
}

/// Decisions that supersede the same one. If all but one of them are superseded in turn, there is no conflict;
/// `is_open` says whether one is still in force.
fn races(all: &[&Decision], is_open: impl Fn(usize) -> bool, pairs: &Pairs) -> Vec<Conflict> {
    let mut by: BTreeMap<&DecisionId, Vec<usize>> = BTreeMap::new();
    for (at, decision) in all.iter().enumerate().filter(|(at, _)| is_open(*at)) {
        if let Some(old) = &decision.supersedes {
            by.entry(old).or_default().push(at);
        }
    }
    let race = |(old, indices): (&DecisionId, Vec<usize>)| {
        let counts = |a: usize, b: usize| pairs.first.contains(&a.min(b)) && pairs.second.contains(&a.max(b));
        let meets_another = |a: &&usize| indices.iter().any(|b| a != &b && counts(**a, *b));
        let decisions: Vec<&Decision> = indices.iter().filter(meets_another).map(|at| all[*at]).collect();
        (!decisions.is_empty()).then(|| {
            let message = format!("each of them supersedes {old}");
            conflict(Certainty::Explicit, "superseded-twice", message, &decisions)
        })
    };
    by.into_iter().filter_map(race).collect()
}

fn replaces_the_same(a: &Decision, b: &Decision) -> bool {
    a.supersedes.is_some() && a.supersedes == b.supersedes
}

fn conflict(certainty: Certainty, code: &'static str, message: String, decisions: &[&Decision]) -> Conflict {
    Conflict {
        certainty,
        code,
        message,
        decisions: decisions.iter().map(|decision| decision.id.clone()).collect(),
        titles: decisions.iter().map(|decision| decision.title.clone()).collect(),
        sources: decisions.iter().filter_map(|decision| decision.source.clone()).collect(),
    }
}
