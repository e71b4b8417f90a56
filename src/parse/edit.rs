//! Changes to a team file that leave every other byte as it is: byte order mark, line ends and spacing included.
//!
//! Lines are counted as in [`Source`](crate::model::Source), so what was read can be changed where it was found.

use std::ops::Range;

/// The column of a table, counted from 0, whose header has one of these names, which are in lower case. The table is
/// the one with a row on this line.
pub(crate) fn column(text: &str, row: usize, names: &[&str]) -> Option<usize> {
    let lines = lines(text);
    let rule =
        (0..row.checked_sub(1)?).rev().find(|at| lines.get(*at).is_some_and(|line| is_rule(&text[line.clone()])))?;
    let header = lines.get(rule.checked_sub(1)?)?;
    let is_whole = lines.get(rule + 1..row)?.iter().all(|line| text[line.clone()].contains('|'));
    if !is_whole {
        return None;
    }
    let headers: Vec<String> = cells(&text[header.clone()])
        .into_iter()
        .map(|cell| super::markdown::header_words(text[header.clone()][cell].trim_matches(['*', '`'])))
        .collect();
    names.iter().find_map(|name| headers.iter().position(|header| header == name))
}

/// The text of a cell as it is written.
pub(crate) fn cell(text: &str, row: usize, column: usize) -> Option<&str> {
    text.get(cell_range(text, row, column)?)
}

/// The text with another value in one cell. What surrounds the old value stays.
pub(crate) fn set_cell(text: &str, row: usize, column: usize, value: &str) -> Option<String> {
    let range = cell_range(text, row, column)?;
    let (before, value, after) = (&text[..range.start], written(value), &text[range.end..]);
    // A last backslash would escape the bar that ends the cell.
    let space = if escapes(&value) && after.starts_with('|') { " " } else { "" };
    Some(format!("{before}{value}{space}{after}"))
}

/// The text with one more row below this one, ended like it.
pub(crate) fn add_row(text: &str, row: usize, values: &[&str]) -> Option<String> {
    let line = lines(text).get(row.checked_sub(1)?)?.clone();
    let rest = &text[line.end..];
    let own_end = ["\r\n", "\n", "\r"].into_iter().find(|end| rest.starts_with(end));
    let end = own_end.unwrap_or_else(|| line_end(text));
    let values: Vec<String> = values.iter().map(|value| written(value)).collect();
    let added = format!("| {} |", values.join(" | "));
    Some(format!("{}{end}{added}{rest}", &text[..line.end]))
}

/// The line ends that a text uses first.
pub(super) fn line_end(text: &str) -> &'static str {
    match text.find(['\r', '\n']).map(|at| &text[at..]) {
        Some(rest) if rest.starts_with("\r\n") => "\r\n",
        Some(rest) if rest.starts_with('\r') => "\r",
        _ => "\n",
    }
}

/// A value as a cell can hold it: on one line, its bars escaped.
fn written(value: &str) -> String {
    let line = value.split(['\r', '\n']).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let mut written = String::with_capacity(line.len());
    for c in line.chars() {
        if c == '|' && !escapes(&written) {
            written.push('\\');
        }
        written.push(c);
    }
    written
}

/// Whether a text ends in a backslash that is not itself escaped.
fn escapes(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn cell_range(text: &str, row: usize, column: usize) -> Option<Range<usize>> {
    let line = lines(text).get(row.checked_sub(1)?)?.clone();
    let cell = cells(&text[line.clone()]).get(column)?.clone();
    Some(line.start + cell.start..line.start + cell.end)
}

/// The lines without their ends.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let ends = *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        if ends {
            let end = if *byte == b'\n' && at > start && bytes[at - 1] == b'\r' { at - 1 } else { at };
            lines.push(start..end);
            start = at + 1;
        }
    }
    lines.push(start..text.len());
    lines
}

/// The cells of a table's line, each without the spaces around it. An empty cell is the place behind its first space.
fn cells(line: &str) -> Vec<Range<usize>> {
    let body_start = line.len() - line.trim_start_matches([' ', '\t', '\u{feff}']).len();
    let body_end = line.trim_end().len().max(body_start);
    let mut bars = Vec::new();
    for (at, byte) in line.bytes().enumerate().take(body_end).skip(body_start) {
        if byte == b'|' && !escapes(&line[..at]) {
            bars.push(at);
        }
    }
    if bars.is_empty() {
        return Vec::new();
    }
    let mut starts: Vec<usize> = bars.iter().map(|bar| bar + 1).collect();
    let mut ends = bars.clone();
    // A row may leave out its first and its last bar.
    if bars[0] == body_start {
        ends.remove(0);
    } else {
        starts.insert(0, body_start);
    }
    if bars.last().is_some_and(|bar| bar + 1 == body_end) {
        starts.pop();
    } else {
        ends.push(body_end);
    }
    starts.into_iter().zip(ends).map(|(start, end)| trimmed(line, start..end)).collect()
}

fn trimmed(line: &str, range: Range<usize>) -> Range<usize> {
    let text = &line[range.clone()];
    let before = text.len() - text.trim_start().len();
    if before == text.len() {
        let at = range.start + usize::from(text.starts_with(' '));
        return at..at;
    }
    range.start + before..range.start + text.trim_end().len()
}

/// `|---|:--|`
fn is_rule(line: &str) -> bool {
    line.contains('-') && line.contains('|') && line.trim().chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEAM: &str = "\u{feff}# Crew\r\n\r\n| **Name** | Role | Status |\r\n|---|---|---|\r\n| Ilse |  Pilot  | ✅ Active |\r\n| a \\| b | Cook ||\n";

    #[test]
    fn one_cell_changes_and_nothing_else() {
        assert_eq!(column(TEAM, 5, &["state", "status"]), Some(2));
        assert_eq!(column(TEAM, 6, &["name"]), Some(0));
        assert_eq!(
            (column(TEAM, 2, &["name"]), column(TEAM, 7, &["name"]), column("", 9, &["name"])),
            (None, None, None)
        );
        assert_eq!((cell(TEAM, 5, 1), cell(TEAM, 6, 0), cell(TEAM, 6, 2)), (Some("Pilot"), Some("a \\| b"), Some("")));
        assert_eq!(set_cell(TEAM, 5, 2, "🔒 Retired"), Some(TEAM.replace("✅ Active", "🔒 Retired")));
        assert_eq!(set_cell(TEAM, 6, 2, "x|y\nz"), Some(TEAM.replace("Cook ||", "Cook |x\\|y z|")));
        assert_eq!(set_cell(TEAM, 5, 3, "x"), None);
        assert_eq!(set_cell(TEAM, 1, 0, "x"), None);
        assert_eq!(set_cell(TEAM, 99, 0, "x"), None);
    }

    #[test]
    fn a_row_is_added_with_the_line_end_of_its_neighbour() {
        let added = add_row(TEAM, 5, &["Uwe", "Lead", "Active"]).expect("the row is there");
        assert_eq!(added, TEAM.replace("Active |\r\n", "Active |\r\n| Uwe | Lead | Active |\r\n"));
        assert_eq!(add_row("a\r\n| x |", 2, &["y"]).as_deref(), Some("a\r\n| x |\r\n| y |"));
        assert_eq!(add_row("", 1, &["y"]).as_deref(), Some("\n| y |"));
    }

    proptest! {
        #[test]
        fn writing_what_was_read_changes_no_byte(text in "[|a \\\\\r\n\u{feff}é:-]{0,60}", row in 0usize..8, column in 0usize..6) {
            if let Some(value) = cell(&text, row, column) {
                prop_assert_eq!(set_cell(&text, row, column, value), Some(text.clone()));
            }
        }

        #[test]
        fn only_the_bytes_of_the_cell_change(
            text in "[|a \\\\\r\n\u{feff}é:-]{0,60}", row in 0usize..8, column in 0usize..6, value in "[|b \\\\\n]{0,8}"
        ) {
            let Some(range) = cell_range(&text, row, column) else { return Ok(()) };
            let changed = set_cell(&text, row, column, &value).expect("the cell is there");
            prop_assert!(changed.starts_with(&text[..range.start]) && changed.ends_with(&text[range.end..]));
            prop_assert_eq!(lines(&changed).len(), lines(&text).len());
        }
    }
}
