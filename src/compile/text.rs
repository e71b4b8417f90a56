//! Formats text of the team's records within squad's own lines.

use crate::model::{Decision, LegacyStatus, Source, first_line};

/// Untrusted text as one short line.
pub(super) fn one_line(text: &str) -> String {
    line(text, 160)
}

pub(super) fn line(text: &str, length: usize) -> String {
    let ends_a_line = |c: char| c != '\n' && c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    first_line(&text.replace(|c| ends_a_line(c) || c == '`', " "), length)
}

/// The id, author, date and location of a decision.
pub(super) fn cite(decision: &Decision) -> String {
    let mut text = format!("`{}`", one_line(decision.id.as_str()));
    if let Some(date) = &decision.date {
        text.push_str(&format!(" {}", one_line(date.get(..10).unwrap_or(date))));
    }
    if let Some(by) = &decision.by {
        text.push_str(&format!(", by {}", one_line(by)));
    }
    if decision.status == Some(LegacyStatus::Proposed) {
        text.push_str(", proposed");
    }
    if let Some(source) = &decision.source {
        text.push_str(&format!(", {}", cite_source(source)));
    }
    text
}

pub(super) fn cite_source(source: &Source) -> String {
    format!("`{}`", one_line(&source.to_string()))
}

/// Adds a heading and the first lines that fit, and says how many did not. Returns the number of added lines.
pub(super) fn push_within(
    text: &mut String,
    heading: &str,
    lines: impl Iterator<Item = String>,
    limit: usize,
) -> usize {
    const RESERVED: usize = 40;
    let mut lines = lines.peekable();
    if lines.peek().is_none() || text.len() + heading.len() + RESERVED > limit {
        return 0;
    }
    text.push_str(heading);
    let (mut put_in, mut left_out) = (0, 0);
    for line in lines {
        if left_out > 0 || text.len() + line.len() + RESERVED > limit {
            left_out += 1;
        } else {
            text.push_str(&line);
            put_in += 1;
        }
    }
    if left_out > 0 {
        text.push_str(&format!("- and {left_out} more\n"));
    }
    put_in
}

/// The first characters of a text, marked if it was cut.
pub(super) fn head(text: &str, limit: usize) -> String {
    // A text has at most as many characters as bytes, and most are short.
    let cut = if text.len() > limit { text.char_indices().nth(limit) } else { None };
    match cut {
        Some((at, _)) => format!("{} […]", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
