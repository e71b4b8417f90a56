use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Stable sorts. Those of `slice` are compiled for every type with every order, 4 KB each time; these share one, of
/// positions.
pub(crate) trait Sort<T> {
    fn stable_sort_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    fn stable_sort_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.stable_sort_by(|one, other| key(one).cmp(&key(other)));
    }
}

impl<T> Sort<T> for [T] {
    fn stable_sort_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut places = places(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        for at in 0..places.len() {
            while places[at] != at {
                let place = places[at];
                self.swap(at, place);
                places.swap(at, place);
            }
        }
    }
}

/// Where each of `count` values belongs.
fn places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    let mut places = vec![0; count];
    order.into_iter().enumerate().for_each(|(place, from)| places[from] = place);
    places
}

/// Collects a map, the last value of a key. `collect` sorts first, and that sort is compiled for every iterator, 4 KB
/// each time.
pub(crate) trait IntoMap<K, V>: IntoIterator<Item = (K, V)> + Sized {
    fn into_map(self) -> BTreeMap<K, V>
    where
        K: Ord,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }
}

impl<K, V, I: IntoIterator<Item = (K, V)>> IntoMap<K, V> for I {}

/// Collects a set, for the same reason.
pub(crate) trait IntoSet<T>: IntoIterator<Item = T> + Sized {
    fn into_set(self) -> BTreeSet<T>
    where
        T: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }
}

impl<T, I: IntoIterator<Item = T>> IntoSet<T> for I {}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(values in proptest::collection::vec((0..9_u8, ".{0,2}"), 0..40)) {
            let (mut ours, mut theirs) = (values.clone(), values.clone());
            ours.stable_sort_by_key(|(number, _)| *number);
            theirs.sort_by_key(|(number, _)| *number);
            proptest::prop_assert_eq!(ours, theirs);
            let expected: BTreeMap<u8, String> = values.iter().cloned().collect();
            proptest::prop_assert_eq!(values.into_map(), expected);
        }
    }
}
