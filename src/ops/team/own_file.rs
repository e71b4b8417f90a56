//! TOML files that squad itself keeps in a team's folder.

use serde::de::DeserializeOwned;

use crate::error::Failure;
use crate::policy::is_portable;

/// Parses a file at `at`. `what` names such a file; `loss` says what squad cannot do without it.
pub(super) fn parse<T: DeserializeOwned>(text: &str, at: &str, what: &str, loss: &str) -> Result<T, Failure> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Failure::team(format!("is not a valid {what}: {}", error.message()))
            .at(format!("{at}:{}", 1 + before.matches('\n').count()))
            .hint(format!("restore it from an earlier commit; without it, squad {loss}"))
    })
}

/// The first of these paths that is none of the project, on whatever system.
pub(super) fn outside<'p>(paths: impl IntoIterator<Item = &'p String>) -> Option<&'p String> {
    paths.into_iter().find(|path| !is_portable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_path_is_of_the_project_on_every_system() {
        for path in
            ["../x", "/etc/x", "", "a/../../x", ".git/hooks/post-commit", "a/.GIT/config", "a\\..\\x", "C:x", "a\0b"]
        {
            assert!(outside([&path.to_owned()]).is_some(), "{path:?}");
        }
        assert_eq!(outside([&".github/agents/a.md".to_owned(), &".gitignore".to_owned()]), None);
    }
}
