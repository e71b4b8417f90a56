//! Compares the scopes of decisions.

use crate::model::Decision;

/// Whether both have the same paths, in any order.
pub(super) fn is_same(a: &Decision, b: &Decision) -> bool {
    let names = |decision: &Decision, glob: &str| decision.scope.iter().any(|other| tidy(other) == tidy(glob));
    !a.scope.is_empty() && a.scope.iter().all(|glob| names(b, glob)) && b.scope.iter().all(|glob| names(a, glob))
}

/// Whether both have paths, and none of them can overlap.
pub(super) fn is_apart(a: &Decision, b: &Decision) -> bool {
    !a.scope.is_empty() && !b.scope.is_empty() && !overlaps(a, b)
}

/// Whether a decision's scope may include one of these paths.
pub(crate) fn concerns(scope: &[String], paths: &[&str]) -> bool {
    scope.iter().any(|glob| paths.iter().any(|path| may_meet(tidy(glob), tidy(path))))
}

/// Whether a path is in the scope of these globs; a folder includes everything below it. A glob that cannot be read has no
/// paths.
pub(crate) fn matcher(scope: &[String]) -> impl Fn(&str) -> bool {
    let mut globs = globset::GlobSetBuilder::new();
    for glob in scope {
        let folder = format!("{}/**", tidy(glob));
        for glob in [tidy(glob), &folder] {
            globs.add(match globset::GlobBuilder::new(glob).literal_separator(true).build() {
                Ok(glob) => glob,
                Err(_) => continue,
            });
        }
    }
    let globs = globs.build().unwrap_or_else(|_| globset::GlobSet::empty());
    move |path| globs.is_match(path)
}

/// Whether both have paths and some may overlap. When unsure, yes.
pub(super) fn overlaps(a: &Decision, b: &Decision) -> bool {
    a.scope.iter().any(|one| b.scope.iter().any(|other| may_meet(tidy(one), tidy(other))))
}

fn tidy(glob: &str) -> &str {
    glob.trim().trim_start_matches("./").trim_end_matches('/')
}

/// Compares path components: one with a wildcard may match any, `**` any number of them.
fn may_meet(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('/'), other.split('/'));
    loop {
        match (one.next(), other.next()) {
            // A folder includes everything below it.
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
    fn globs_overlap_if_a_path_can_match_both() {
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
