//! What decisions have against each other.
//!
//! Explicit is what the files themselves say: that two replace the same one, or decide the same scope. Likely is what
//! their wording suggests; a person has to look, and no build fails over it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::scope;
use super::wording::{Statement, Subjects};
use crate::model::{Decision, DecisionId, Source, list};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Certainty {
    Explicit,
    Likely,
}

/// Decisions that cannot, or probably cannot, all stand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Conflict {
    pub(crate) certainty: Certainty,
    /// Stable and short, in kebab case: what programs match on.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) decisions: Vec<DecisionId>,
    /// Of the decisions, in their order: some stand on no commit that is checked out.
    pub(crate) titles: Vec<String>,
    /// Where they stand, as far as they stand anywhere.
    pub(crate) sources: Vec<Source>,
}

/// What new decisions have against each other and against those that stand without them. `others` may hold the new
/// ones too.
pub(crate) fn within(new: &[Decision], others: &[Decision]) -> Vec<Conflict> {
    let mut all: Vec<&Decision> = new.iter().collect();
    let ids: BTreeSet<&DecisionId> = new.iter().map(|decision| &decision.id).collect();
    all.extend(others.iter().filter(|decision| !ids.contains(&decision.id)));
    find(&all, |a, b| a < new.len() || b < new.len())
}

/// What the decisions of one side have against those of the other, and nothing of what each side has by itself.
/// `common` is what both stand on.
pub(crate) fn between(ours: &[Decision], theirs: &[Decision], common: &[Decision]) -> Vec<Conflict> {
    let both: BTreeSet<&DecisionId> = ours.iter().map(|decision| &decision.id).collect();
    let theirs: Vec<&Decision> = theirs.iter().filter(|decision| !both.contains(&decision.id)).collect();
    let count = ours.len();
    let end = count + theirs.len();
    let mut all: Vec<&Decision> = ours.iter().chain(theirs).collect();
    // What both stand on tells which words are usual.
    let known: BTreeSet<&DecisionId> = all.iter().map(|decision| &decision.id).collect();
    all.extend(common.iter().filter(|decision| !known.contains(&decision.id)));
    find(&all, |a, b| a < count && (count..end).contains(&b))
}

/// New decisions that supersede one that nobody knows.
pub(crate) fn dangling(new: &[Decision], known: &BTreeSet<&DecisionId>) -> Vec<Conflict> {
    let unknown = |decision: &&Decision| decision.supersedes.as_ref().is_some_and(|old| !known.contains(old));
    let found = new.iter().filter(unknown).map(|decision| {
        let old = decision.supersedes.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = format!("supersedes {old}, which stands on neither side");
        conflict(Certainty::Explicit, "supersedes-unknown", message, &[decision])
    });
    found.collect()
}

/// Looks at every pair that counts; `counts` is asked with the smaller place first.
fn find(all: &[&Decision], counts: impl Fn(usize, usize) -> bool) -> Vec<Conflict> {
    let replaced: BTreeSet<&DecisionId> = all.iter().filter_map(|decision| decision.supersedes.as_ref()).collect();
    let stands = |decision: &Decision| !replaced.contains(&decision.id) && decision.ended().is_none();
    let mut conflicts = races(all, |a, b| counts(a, b) && stands(all[a]) && stands(all[b]));
    let standing: Vec<(usize, &Decision)> =
        all.iter().enumerate().filter(|(_, decision)| stands(decision)).map(|(at, d)| (at, *d)).collect();
    let statements: Vec<Statement> = standing.iter().map(|(_, decision)| Statement::new(decision)).collect();
    let subjects = Subjects::new(&statements);
    for (one, (a, first)) in standing.iter().enumerate() {
        for (other, (b, second)) in standing.iter().enumerate().skip(one + 1) {
            if !counts(*a, *b) || replaces_the_same(first, second) {
                continue;
            }
            if scope::is_same(first, second) {
                let message = format!("both decide {}, and neither supersedes the other", list(&first.scope));
                conflicts.push(conflict(Certainty::Explicit, "scope-decided-twice", message, &[first, second]));
            } else if !scope::is_apart(first, second)
                && let Some(reason) = subjects.opposition(&statements[one], &statements[other])
            {
                conflicts.push(conflict(Certainty::Likely, reason.code, reason.message, &[first, second]));
            }
        }
    }
    conflicts.sort_by(|a, b| (a.certainty, a.code, &a.decisions).cmp(&(b.certainty, b.code, &b.decisions)));
    conflicts
}

/// Several that supersede the same one. Superseding all but one of them settles it, so only those that still stand are
/// in each other's way: `is_open` says so of a pair.
fn races(all: &[&Decision], is_open: impl Fn(usize, usize) -> bool) -> Vec<Conflict> {
    let mut by: BTreeMap<&DecisionId, Vec<usize>> = BTreeMap::new();
    for (at, decision) in all.iter().enumerate() {
        if let Some(old) = &decision.supersedes {
            by.entry(old).or_default().push(at);
        }
    }
    let race = |(old, places): (&DecisionId, Vec<usize>)| {
        let pairs = places.iter().enumerate().flat_map(|(at, a)| places[at + 1..].iter().map(move |b| (*a, *b)));
        let places: BTreeSet<usize> = pairs.filter(|(a, b)| is_open(*a, *b)).flat_map(|(a, b)| [a, b]).collect();
        let decisions: Vec<&Decision> = places.into_iter().map(|at| all[at]).collect();
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
