//! Reports invisible characters in team files.

use super::Files;
use crate::model::{Problem, hidden, hidden_summary};

/// Adds one warning per file. Carriage returns count as line ends.
pub(super) fn say_hidden(files: &Files, problems: &mut Vec<Problem>) {
    for (path, text) in &files.texts {
        let found = || hidden(text).filter(|(_, c)| *c != '\r');
        let (Some((first, _)), Some(summary)) = (found().next(), hidden_summary(found().map(|(_, c)| c))) else {
            continue;
        };
        let line = text[..first].matches('\n').count() + 1;
        problems.push(
            Problem::warning(files.at(path, line), "hidden-characters", format!("has {summary}"))
                .hint("agents do not see them; delete them unless they are intentional"),
        );
    }
}
