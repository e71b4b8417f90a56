//! Commands that a reviewer may run.

/// Whether a command only shows changes: a single `git diff`, `git log` or `git show`, without shell syntax and without
/// options that write a file, start a program or leave the repository.
pub(crate) fn only_shows_changes(command: &str) -> bool {
    const OPTIONS: [&str; 4] = ["--output", "--ext-diff", "--textconv", "--no-index"];
    // Also braces and wildcards: `{--output=a,}` expands to an option, and a file's name may do the same.
    const SHELLS: [char; 16] = ['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '\n', '\r', '{', '*', '?', '['];
    if command.contains(SHELLS) {
        return false;
    }
    // For the shell, quotes only group words.
    let plain = command.replace(['"', '\''], "");
    let mut words = plain.split_whitespace().filter(|word| *word != "--no-pager");
    if words.next() != Some("git") || !matches!(words.next(), Some("diff" | "log" | "show")) {
        return false;
    }
    // git accepts an unambiguous prefix of an option.
    let is_refused = |word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        name.len() > "--o".len() && OPTIONS.iter().any(|option| option.starts_with(name))
    };
    !words.any(is_refused)
}

#[cfg(test)]
mod tests {
    use super::only_shows_changes;

    #[test]
    fn a_reviewer_may_only_show_changes() {
        for allowed in [
            "git diff",
            "git --no-pager diff HEAD~1 -- src/a.rs",
            "git log --oneline -5",
            "git show --stat HEAD",
            "git log --format=\"%h %s\" main..HEAD",
        ] {
            assert!(only_shows_changes(allowed), "{allowed}");
        }
        for refused in [
            "",
            "git",
            "git commit -m x",
            "git diff --output=a",
            "git diff --outp=a",
            "git diff \"--output\"=a",
            "git diff --out\"put\"=a",
            "git diff {--output=a,}",
            "git diff --outp{ut,}=a",
            "git diff --outp*",
            "git diff --outpu?=a",
            "git diff [-]-output=a",
            "git diff --ext-diff",
            "git log -p --textconv",
            "git diff --no-index /etc/passwd a",
            "git -c core.pager=rm diff",
            "git -C .. diff",
            "git diff | sh",
            "git diff; rm -rf .",
            "git diff && rm a",
            "git diff > a",
            "git show $(rm a)",
            "git show `rm a`",
            "git diff\nrm a",
            "cargo test",
            "GIT_EXTERNAL_DIFF=rm git diff",
        ] {
            assert!(!only_shows_changes(refused), "{refused}");
        }
    }
}
