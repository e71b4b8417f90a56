//! Reports invisible characters in team files.

use super::Files;
use crate::model::{Problem, Severity, hidden, hidden_summary};

/// Reports each such file once. Carriage returns count as line ends.
pub(super) fn say_hidden(files: &Files, problems: &mut Vec<Problem>) {
    for (path, text) in &files.texts {
        let found = || hidden(text).filter(|(_, c)| *c != '\r');
        let (Some((first, _)), Some(summary)) = (found().next(), hidden_summary(found().map(|(_, c)| c))) else {
            continue;
        };
        let line = text[..first].matches('\n').count() + 1;
        // Nobody edits these by hand.
        let is_record = path.ends_with("history.md") || path.contains("archive");
        let severity = if is_record { Severity::Note } else { Severity::Warning };
        problems.push(
            Problem::new(severity, files.at(path, line), "hidden-characters", format!("has {summary}"))
                .hint("agents do not see them; delete them unless they are intentional"),
        );
    }
}
