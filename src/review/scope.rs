//! Whether two decisions are about the same places.

use crate::model::Decision;

/// Both name the same places, in whatever order.
pub(super) fn is_same(a: &Decision, b: &Decision) -> bool {
    let names = |decision: &Decision, glob: &str| decision.scope.iter().any(|other| tidy(other) == tidy(glob));
    !a.scope.is_empty() && a.scope.iter().all(|glob| names(b, glob)) && b.scope.iter().all(|glob| names(a, glob))
}

/// Both name places, and none of the one can be one of the other.
pub(super) fn is_apart(a: &Decision, b: &Decision) -> bool {
    !a.scope.is_empty() && !b.scope.is_empty() && !overlaps(a, b)
}

/// A decision that names places names some that may be one of these.
pub(crate) fn concerns(decision: &Decision, places: &[&str]) -> bool {
    decision.scope.iter().any(|glob| places.iter().any(|place| may_meet(tidy(glob), tidy(place))))
}

/// Both name places, and some of them may be the same. Errs on the side of yes.
pub(super) fn overlaps(a: &Decision, b: &Decision) -> bool {
    a.scope.iter().any(|one| b.scope.iter().any(|other| may_meet(tidy(one), tidy(other))))
}

fn tidy(glob: &str) -> &str {
    glob.trim().trim_start_matches("./").trim_end_matches('/')
}

/// Compares part by part: a part with a wild card may be any part, `**` any number of them.
fn may_meet(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('/'), other.split('/'));
    loop {
        match (one.next(), other.next()) {
            // A folder stands for all below it.
            (None, _) | (_, None) | (Some("**"), _) | (_, Some("**")) => return true,
            (Some(one), Some(other)) if !part_may_meet(one, other) => return false,
            _ => {}
        }
    }
}

fn part_may_meet(one: &str, other: &str) -> bool {
    let is_wild = |c| matches!(c, '*' | '?' | '[' | '{');
    match (one.find(is_wild), other.find(is_wild)) {
        (None, None) => one == other,
        (Some(at), None) => other.starts_with(&one[..at]),
        (None, Some(at)) => one.starts_with(&other[..at]),
        (Some(at), Some(to)) => one[..at].starts_with(&other[..to]) || other[..to].starts_with(&one[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_meet_where_a_path_could_be_both() {
        for (one, other) in [
            ("src/**", "src/api/x.rs"),
            ("src", "src/api"),
            ("src/*.rs", "src/api*"),
            ("**/*.md", "docs/a.md"),
            ("./docs/", "docs/**"),
        ] {
            assert!(may_meet(tidy(one), tidy(other)), "{one} {other}");
        }
        for (one, other) in [("src/**", "docs/**"), ("src/api", "src/ui/**"), ("a*.rs", "b*.rs"), ("x/a.md", "x/b.md")]
        {
            assert!(!may_meet(tidy(one), tidy(other)), "{one} {other}");
        }
    }
}
