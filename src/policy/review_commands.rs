//! Commands that only read git, which those may run who may change nothing.

/// The commands, as people are told.
pub(crate) const READS_GIT: &str = "`git diff`, `log`, `show`, `status`, `blame` and `grep`";

/// Whether a command only reads git: a single one of [`READS_GIT`], without shell syntax and without options or paths
/// that write a file, start a program or leave the repository.
pub(crate) fn only_reads_git(command: &str) -> bool {
    const COMMANDS: [&str; 6] = ["diff", "log", "show", "status", "blame", "grep"];
    const OPTIONS: [&str; 8] = [
        "--output",
        "--ext-diff",
        "--textconv",
        "--no-index",
        "--open-files-in-pager",
        "--contents",
        // These start the pager for manuals, and the program that checks signatures.
        "--help",
        "--show-signature",
    ];
    // Also braces and wildcards: `{--output=a,}` expands to an option, and a file's name may do the same.
    const SHELLS: [char; 16] = ['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '\n', '\r', '{', '*', '?', '['];
    // Quotes of PowerShell. Its other shells' escape is `^`, which for git stands behind a commit.
    const TYPOGRAPHIC: [char; 6] = ['“', '”', '„', '‘', '’', '‚'];
    let is_escape = |pair: &[u8]| matches!(pair, [b'^', letter] if letter.is_ascii_alphabetic());
    if command.contains(SHELLS) || command.contains(TYPOGRAPHIC) || command.as_bytes().windows(2).any(is_escape) {
        return false;
    }
    // For the shell, quotes only group words.
    let plain = command.replace(['"', '\''], "");
    let mut words = plain.split_whitespace().filter(|word| *word != "--no-pager");
    let (program, name) = (words.next(), words.next().unwrap_or_default());
    if program != Some("git") || !COMMANDS.contains(&name) {
        return false;
    }
    // git accepts an unambiguous prefix of an option.
    let is_refused = |word: &str| {
        let option = word.split('=').next().unwrap_or(word);
        option.len() > "--o".len() && OPTIONS.iter().any(|known| known.starts_with(option))
    };
    // `git grep` starts a pager with `-O`, also among other letters, and reads patterns from a file with `-f`.
    let has_letter =
        |word: &str| name == "grep" && word.starts_with('-') && !word.starts_with("--") && word.contains(['O', 'f']);
    // With a path elsewhere, `git diff` compares files that are in no repository, and `git blame` shows lines of one that
    // it takes for a list. For zsh, `=cat` is a path.
    let is_outside = |path: &str| {
        path.starts_with(['/', '~', '=']) || path.split('/').any(|part| part == "..") || path.get(1..3) == Some(":/")
    };
    let leads_out = |word: &str| match word.strip_prefix('-') {
        Some(option) if !option.starts_with('-') => option.contains(['/', '~']) || option.contains(".."),
        Some(option) => option.split_once('=').is_some_and(|(_, value)| is_outside(value)),
        None => is_outside(word),
    };
    // Formats of a signature check it.
    !words.any(|word| word.contains("%G") || is_refused(word) || has_letter(word) || leads_out(word))
}

#[cfg(test)]
mod tests {
    use super::only_reads_git;

    #[test]
    fn what_reads_git_is_told_from_what_does_more() {
        for allowed in [
            "git diff",
            "git --no-pager diff HEAD~1 -- src/a.rs",
            "git log --oneline -5",
            "git show --stat HEAD",
            "git log --format=\"%h %s\" main..HEAD",
            "git status --porcelain -b",
            "git blame -L 3,9 HEAD~2 -- src/a.rs",
            "git grep -n --heading 'fn main' HEAD -- src",
            "git show HEAD:src/a.rs",
            "git log -S'x' --oneline",
            "git diff HEAD^ HEAD~2^2 --stat=80",
            "git log --since=2026-01-01 main..HEAD",
        ] {
            assert!(only_reads_git(allowed), "{allowed}");
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
            "git diff /etc/passwd /dev/null",
            "git diff a ../../x",
            "git diff ~/.ssh/id a",
            "git diff C:/x a",
            "git grep -O x",
            "git grep -nOless x",
            "git grep --open-files-in-pager=sh x",
            "git grep --ope x",
            "git grep --no-index x",
            "git grep -f /etc/passwd",
            "git grep -if patterns",
            "git blame --contents /etc/passwd a",
            "git blame --cont=x a",
            "git blame -S/etc/passwd a",
            "git blame -wS/etc/passwd a",
            "git blame -S /etc/passwd a",
            "git blame --ignore-revs-file=/etc/passwd a",
            "git blame --ignore-revs-file=../passwd a",
            "git blame --ignore-revs-file ~/passwd a",
            "git diff -O/etc/passwd",
            "git diff -O../order",
            "git diff -a =cat =ls",
            "git diff --out“put”=a",
            "git diff --out^put=a",
            "git log --help",
            "git log --show-sig",
            "git log --format=%GG",
            "git stash",
            "git branch -D x",
            "git status > a",
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
            assert!(!only_reads_git(refused), "{refused}");
        }
    }
}
