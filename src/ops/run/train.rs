//! A merge train: works in order, each checked on top of those before it, with few checks.

use crate::error::Failure;
use crate::model::ProjectCheck;

/// What becomes of a train of works, which are named by their indices.
#[derive(Debug, Default)]
pub(super) struct Train {
    pub(super) kept: Vec<usize>,
    /// Each with the check that is red with it and green without.
    pub(super) red: Vec<(usize, ProjectCheck)>,
    /// The check of all that is kept; `None`: nothing is.
    pub(super) check: Option<ProjectCheck>,
    /// It is red without any of the works: nothing can be said of them.
    pub(super) base: Option<ProjectCheck>,
}

/// Checks all works at once, and only if that is red looks for the first that makes it so, by halving; and then all others
/// again. What is kept was checked as it is.
pub(super) fn checked(
    count: usize,
    check: &mut dyn FnMut(&[usize]) -> Result<ProjectCheck, Failure>,
) -> Result<Train, Failure> {
    let mut train = Train::default();
    let mut rest: Vec<usize> = (0..count).collect();
    let mut is_base_green = false;
    while !rest.is_empty() {
        let found = check(&[&train.kept[..], &rest].concat())?;
        if found.passed {
            train.kept.append(&mut rest);
            train.check = Some(found);
            break;
        }
        if !is_base_green && train.kept.is_empty() {
            let base = check(&[])?;
            if !base.passed {
                return Ok(Train { base: Some(base), ..Train::default() });
            }
            is_base_green = true;
        }
        // Green with the first `good` of the rest, red with the first `bad`.
        let (mut good, mut bad, mut evidence) = (0, rest.len(), found);
        while bad - good > 1 {
            let middle = usize::midpoint(good, bad);
            let found = check(&[&train.kept[..], &rest[..middle]].concat())?;
            match found.passed {
                true => (good, train.check) = (middle, Some(found)),
                false => (bad, evidence) = (middle, found),
            }
        }
        train.kept.extend(&rest[..good]);
        train.red.push((rest[good], evidence));
        rest.drain(..bad);
    }
    Ok(train)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Plays a train with a check that is red for these works. Returns also the number of checks.
    fn play(count: usize, is_red: &dyn Fn(&[usize]) -> bool) -> (Train, usize) {
        let mut known = BTreeSet::new();
        let mut check = |works: &[usize]| {
            assert!(known.insert(works.to_vec()), "{works:?} is checked twice");
            Ok(ProjectCheck { passed: !is_red(works), command: format!("{works:?}"), ..ProjectCheck::default() })
        };
        let train = checked(count, &mut check).expect("it ends");
        (train, known.len())
    }

    #[test]
    fn five_breakers_among_fifty_are_found_in_few_checks() {
        let mut most = 0;
        for seed in 0..200_usize {
            let breakers: BTreeSet<usize> =
                (0..5).map(|nth| (seed * 31 + nth * (7 + seed % 11) + nth * nth) % 50).collect();
            let (train, checks) = play(50, &|works| works.iter().any(|work| breakers.contains(work)));
            let red: BTreeSet<usize> = train.red.iter().map(|(work, _)| *work).collect();
            assert_eq!(red, breakers, "{seed}");
            assert_eq!(train.kept, (0..50).filter(|work| !breakers.contains(work)).collect::<Vec<_>>());
            assert_eq!(train.check.expect("a check").command, format!("{:?}", train.kept), "what is kept was checked");
            most = most.max(checks);
        }
        assert!(most <= 36, "{most} checks");
        assert_eq!(play(50, &|_| false).1, 1, "one check if all is green");
    }

    /// Works that are red only together, that mend what others break, and a project that is red by itself.
    #[test]
    fn what_is_kept_is_green_as_a_whole() {
        let (train, _) = play(8, &|works| works.contains(&2) && works.contains(&5));
        assert_eq!(train.red.iter().map(|(work, _)| *work).collect::<Vec<_>>(), [5]);
        // 3 mends what 1 breaks: together they are green.
        let (train, checks) = play(4, &|works| works.contains(&1) && !works.contains(&3));
        assert_eq!((train.kept.len(), checks), (4, 1));
        let (train, checks) = play(4, &|_| true);
        assert!(train.base.is_some_and(|base| !base.passed) && train.kept.is_empty() && checks == 2);
        let (train, _) = play(3, &|works| !works.is_empty());
        assert_eq!((train.kept.len(), train.red.len(), train.check.is_none()), (0, 3, true));
        // Any check at all: what is kept was green when it was checked.
        for seed in 0..500_usize {
            let is_red =
                |works: &[usize]| works.iter().fold(seed, |sum, work| sum * 33 + work * 7 + 1).is_multiple_of(3);
            let (train, _) = play(9, &|works| !works.is_empty() && is_red(works));
            assert!(train.kept.is_empty() || !is_red(&train.kept), "{seed}");
        }
    }
}
