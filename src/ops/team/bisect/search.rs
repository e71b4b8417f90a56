//! Which release changed an answer, by halves. Knows releases by their positions only.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::IntoSet;

/// The answers of releases, as they become known. `K`: what is asked; `V`: an answer.
pub(super) struct Search<K, V> {
    /// How many releases there are.
    count: usize,
    /// `None`: it cannot be tried.
    tried: BTreeMap<usize, Option<BTreeMap<K, V>>>,
}

/// An answer that the last release gives otherwise than the first, as far as it has been narrowed.
#[derive(Debug, PartialEq)]
pub(super) struct Change<K, V> {
    pub(super) what: K,
    /// The last release that is known to answer as the first of all, and the first after it that is known not to.
    pub(super) last: (usize, V),
    pub(super) first: (usize, V),
}

impl<K: Copy + Ord, V: Copy + PartialEq> Search<K, V> {
    pub(super) fn over(count: usize) -> Self {
        Self { count, tried: BTreeMap::new() }
    }

    pub(super) fn record(&mut self, release: usize, answers: Option<BTreeMap<K, V>>) {
        self.tried.insert(release, answers);
    }

    /// The release to try next: both ends, then the middle of what is left for an answer that differs between them. One
    /// that cannot be tried leaves its neighbours. `None`: all is known that can be.
    pub(super) fn next(&self) -> Option<usize> {
        let end = [0, self.count.saturating_sub(1)].into_iter().find(|end| !self.tried.contains_key(end));
        end.or_else(|| {
            let left = |change: &Change<K, V>| self.untried(change);
            self.changes().iter().map(left).find(|left| !left.is_empty()).map(|left| left[left.len() / 2])
        })
    }

    /// How many releases may still have to be tried.
    pub(super) fn left(&self) -> usize {
        let untried: BTreeSet<usize> = self.changes().iter().flat_map(|change| self.untried(change)).into_set();
        untried.len()
    }

    pub(super) fn changes(&self) -> Vec<Change<K, V>> {
        let last = self.count.saturating_sub(1);
        let (Some(Some(before)), Some(Some(after))) = (self.tried.get(&0), self.tried.get(&last)) else {
            return Vec::new();
        };
        let differs = |(what, held): (&K, &V)| {
            let other = after.get(what).filter(|other| *other != held)?;
            Some(self.narrowed(Change { what: *what, last: (0, *held), first: (last, *other) }))
        };
        before.iter().filter_map(differs).collect()
    }

    /// Halves what is known, so that an answer which comes and goes ends at one of its changes, too.
    fn narrowed(&self, mut change: Change<K, V>) -> Change<K, V> {
        loop {
            let between = self.tried.range(change.last.0 + 1..change.first.0);
            let known: Vec<(usize, V)> = between
                .filter_map(|(release, answers)| Some((*release, *answers.as_ref()?.get(&change.what)?)))
                .collect();
            let Some(middle) = known.get(known.len() / 2) else { return change };
            match middle.1 == change.last.1 {
                true => change.last = *middle,
                false => change.first = *middle,
            }
        }
    }

    fn untried(&self, change: &Change<K, V>) -> Vec<usize> {
        (change.last.0 + 1..change.first.0).filter(|release| !self.tried.contains_key(release)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The answers of a release to three questions; `None`: it cannot be tried.
    type Release = Option<[u8; 3]>;

    /// What was tried, in order, and what was found.
    fn searched(releases: &[Release]) -> (Vec<usize>, Vec<Change<usize, u8>>) {
        let (mut search, mut tried) = (Search::over(releases.len()), Vec::new());
        while let Some(next) = search.next() {
            tried.push(next);
            search.record(next, releases[next].map(|answers| answers.into_iter().enumerate().collect()));
        }
        assert_eq!(search.left(), 0, "{releases:?}");
        (tried, search.changes())
    }

    /// Each change of an answer from one release that can be tried to the next one.
    fn scanned(releases: &[Release], what: usize) -> Vec<[(usize, u8); 2]> {
        let known = releases.iter().enumerate().filter_map(|(at, release)| Some((at, release.as_ref()?[what])));
        let known: Vec<(usize, u8)> = known.collect();
        known.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| [pair[0], pair[1]]).collect()
    }

    fn releases() -> impl Strategy<Value = Vec<Release>> {
        let answers = || [0_u8..3, 0..3, 0..3];
        let release = prop_oneof![3 => answers().prop_map(Some), 1 => Just(None)];
        (answers(), prop::collection::vec(release, 0..40), answers())
            .prop_map(|(a, inner, b)| std::iter::once(Some(a)).chain(inner).chain([Some(b)]).collect())
    }

    /// Three answers that change once, somewhere, or never.
    fn steady() -> impl Strategy<Value = Vec<Release>> {
        (2_usize..200, any::<[(prop::sample::Index, bool); 3]>()).prop_map(|(count, changes)| {
            let answer = |at: usize| changes.map(|(from, held)| u8::from(held ^ (at >= from.index(count))));
            (0..count).map(|at| Some(answer(at))).collect()
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_a_change_that_a_scan_finds(releases in releases()) {
            let (tried, found) = searched(&releases);
            prop_assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), tried.len(), "each once");
            let (first, last) = (releases[0].unwrap(), releases[releases.len() - 1].unwrap());
            let differing: Vec<usize> = (0..3).filter(|what| first[*what] != last[*what]).collect();
            prop_assert_eq!(found.iter().map(|change| change.what).collect::<Vec<_>>(), differing);
            for change in found {
                prop_assert_eq!(change.last.1, first[change.what]);
                prop_assert!(scanned(&releases, change.what).contains(&[change.last, change.first]), "{:?}", change);
            }
        }

        #[test]
        fn an_answer_that_changes_once_is_found_by_halves(releases in steady()) {
            let (tried, found) = searched(&releases);
            for change in &found {
                prop_assert_eq!(scanned(&releases, change.what), [[change.last, change.first]]);
            }
            let halvings = releases.len().ilog2() as usize + 1;
            prop_assert!(tried.len() <= 2 + found.len() * halvings, "{:?}", tried);
        }
    }
}
