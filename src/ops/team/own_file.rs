//! TOML files that squad itself keeps in a team's folder.

use std::path::{Component, Path};

use serde::de::DeserializeOwned;

use crate::error::Failure;

/// Parses a file at `at`. `what` names such a file; `loss` says what squad cannot do without it.
pub(super) fn parse<T: DeserializeOwned>(text: &str, at: &str, what: &str, loss: &str) -> Result<T, Failure> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Failure::team(format!("is not a valid {what}: {}", error.message()))
            .at(format!("{at}:{}", 1 + before.matches('\n').count()))
            .hint(format!("restore it from an earlier commit; without it, squad {loss}"))
    })
}

/// The first of these paths that leads out of the folder it is relative to.
pub(super) fn outside<'p>(paths: impl IntoIterator<Item = &'p String>) -> Option<&'p String> {
    let is_inside = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    paths.into_iter().find(|path| !is_inside(path))
}
