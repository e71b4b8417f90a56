//! Rules for paths. [`crate::env::ProjectPath`] finds out where a path really leads; these say what is there.

use std::path::{Component, Path};

/// Where a resolved path lies, as seen from a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathScope {
    /// A path from the project's root with `/`; empty for the root.
    Project(String),
    /// Part of a git directory, or of that of a repository in the project.
    Git,
    Outside,
    /// In the project, but no text can name it.
    NotUnicode,
}

impl PathScope {
    /// Judges both paths by their names alone. A path with `..` is never in the project.
    pub(crate) fn of(path: &Path, project: &Path) -> Self {
        let Ok(inner) = path.strip_prefix(project) else { return Self::Outside };
        let mut names = Vec::new();
        for part in inner.components() {
            match part {
                Component::Normal(name) if is_git(&name.to_string_lossy()) => return Self::Git,
                Component::Normal(name) => names.push(name.to_str()),
                Component::CurDir => {}
                _ => return Self::Outside,
            }
        }
        let names: Option<Vec<&str>> = names.into_iter().collect();
        names.map_or(Self::NotUnicode, |names| Self::Project(names.join("/")))
    }

    /// The path in the project, or why it is none, to follow the path in a sentence.
    pub(crate) fn in_project(self) -> Result<String, &'static str> {
        match self {
            Self::Project(inner) => Ok(inner),
            Self::Git => Err("is git's, which `git` alone changes"),
            Self::Outside => Err("is outside of the project"),
            Self::NotUnicode => Err("is not Unicode"),
        }
    }
}

/// Whether a path from a file or a program, relative and with `/`, names the same file of a project on every system:
/// it does not leave the project, enters no git directory, and no file system reads it differently.
pub(crate) fn is_portable(path: &str) -> bool {
    let is_odd = |c: char| c.is_control() || matches!(c, '\\' | ':') || is_ignored(c);
    let is_bad = |name: &str| name.is_empty() || name.ends_with([' ', '.']) || is_git(name);
    !path.chars().any(is_odd) && !path.split('/').any(is_bad)
}

/// The same on this system: a name may have a colon where it is like any other character.
pub(crate) fn is_portable_here(path: &str) -> bool {
    if cfg!(windows) { is_portable(path) } else { is_portable(&path.replace(':', "_")) && !names_git(path) }
}

/// Whether a part of a path, or of a request's JSON, names git's own folder or file.
pub(crate) fn names_git(path: &str) -> bool {
    path.split(['/', '\\', '"']).any(is_git)
}

/// Also as file systems fold it: case, characters that macOS ignores, and what Windows drops at the end or calls it in
/// short.
pub(crate) fn is_git(name: &str) -> bool {
    let name: String = name.split(':').next().unwrap_or(name).chars().filter(|c| !is_ignored(*c)).collect();
    let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    name == ".git" || name == "git~1"
}

/// The characters that HFS+ ignores in names, as git's `next_hfs_char` lists them.
fn is_ignored(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Whether a path, relative to the project's root with `/`, is a file in the folder where other tools collect decisions.
/// Ignores case, as some file systems do.
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn git_has_many_names() {
        for name in [".git", ".GIT", ".git.", ".git ", "git~1", "GIT~1", ".git::$INDEX", ".g\u{200c}it", ".git\u{feff}"]
        {
            assert!(names_git(&format!("a/{name}/config")) && !is_portable(&format!("a/{name}")), "{name:?}");
            assert_eq!(
                PathScope::of(Path::new("/p/a").join(name).as_path(), Path::new("/p")),
                PathScope::Git,
                "{name:?}"
            );
        }
        assert!(names_git(r#"{"path":".git"}"#));
        for name in [".gitignore", ".github", "git", "a.git", "git~2", "", ".", ".gıt"] {
            assert!(!names_git(name), "{name:?}");
        }
    }

    #[test]
    fn portable_paths_are_relative_and_plain() {
        for path in [".github/agents/a.md", ".gitignore", "a/b c/ä.md", "-a"] {
            assert!(is_portable(path), "{path:?}");
        }
        for path in
            ["", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "./a", "a\\b", "C:a", "a\0", "a\n", "a.", "a /b"]
        {
            assert!(!is_portable(path), "{path:?}");
            assert!(!is_portable_here(path) || (cfg!(unix) && path.contains(':')), "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_in_the_project_is_reached_by_its_path(path in "(/|a|b|\\.|\\.\\.|\\.git|\\.GIT|ä| |~|-){0,8}") {
            let project = Path::new("/p");
            match PathScope::of(&project.join(&path), project) {
                PathScope::Project(inner) => {
                    let names: Vec<&str> = inner.split('/').collect();
                    prop_assert!(inner.is_empty() || !names.iter().any(|name| matches!(*name, "" | "." | "..")));
                    prop_assert!(!names_git(&inner));
                    prop_assert_eq!(PathScope::of(&project.join(&inner), project), PathScope::Project(inner));
                }
                scope => prop_assert!(!is_portable(&path), "{:?}", scope),
            }
        }
    }

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
