//! The folder where other tools collect decisions.

/// Whether a path, relative to the project's root with `/`, is a file in the inbox. Ignores case, as some file systems
/// do.
pub(crate) fn is_in_inbox(path: &str) -> bool {
    let mut parts = path.split('/');
    let mut next_is =
        |names: &[&str]| parts.next().is_some_and(|part| names.iter().any(|name| part.eq_ignore_ascii_case(name)));
    next_is(&[".squad", ".ai-team"])
        && next_is(&["decisions"])
        && next_is(&["inbox"])
        && parts.next().is_some_and(|file| !file.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_in_the_inbox_match() {
        for inside in [
            ".squad/decisions/inbox/ada-tar.md",
            ".ai-team/decisions/inbox/x",
            ".squad/decisions/inbox/ada/tar.md",
            ".Squad/Decisions/Inbox/x.md",
        ] {
            assert!(is_in_inbox(inside), "{inside}");
        }
        for outside in [
            "",
            ".squad/decisions/inbox",
            ".squad/decisions/inbox/",
            ".squad/decisions/2026/01/05-tar-0a.md",
            ".squad/decisions.md",
            "docs/.squad/decisions/inbox/x.md",
            ".squad/inbox/x.md",
            "squad/decisions/inbox/x.md",
        ] {
            assert!(!is_in_inbox(outside), "{outside}");
        }
    }
}
