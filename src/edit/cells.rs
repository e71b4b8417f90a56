//! Changes single lines and table cells. All other bytes stay: byte order mark, line ends and spacing.
//!
//! Line numbers are those of [`Source`](crate::model::Source).

use std::ops::Range;

use crate::parse::line_end;

/// The lines, without line ends.
pub(super) fn lines(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let is_pair = *byte == b'\r' && bytes.get(at + 1) == Some(&b'\n');
        if *byte == b'\n' || (*byte == b'\r' && !is_pair) {
            let end = if *byte == b'\n' && at > start && bytes.get(at - 1) == Some(&b'\r') { at - 1 } else { at };
            lines.push(start..end);
            start = at + 1;
        }
    }
    lines.push(start..text.len());
    lines
}

pub(super) fn line(text: &str, number: usize) -> Option<&str> {
    text.get(span(text, number)?)
}

fn span(text: &str, number: usize) -> Option<Range<usize>> {
    lines(text).get(number.checked_sub(1)?).cloned()
}

/// Replaces a line.
pub(super) fn set_line(text: &str, number: usize, new: &str) -> Option<String> {
    let span = span(text, number)?;
    Some(format!("{}{new}{}", text.get(..span.start)?, text.get(span.end..)?))
}

/// Inserts a line below another, with the same line end.
pub(super) fn add_line(text: &str, number: usize, new: &str) -> Option<String> {
    let span = span(text, number)?;
    let (before, rest) = (text.get(..span.end)?, text.get(span.end..)?);
    let own_end = ["\r\n", "\n", "\r"].into_iter().find(|end| rest.starts_with(end));
    Some(format!("{before}{}{new}{rest}", own_end.unwrap_or_else(|| line_end(text))))
}

/// Removes a line.
pub(super) fn remove_line(text: &str, number: usize) -> Option<String> {
    let lines = lines(text);
    let span = lines.get(number.checked_sub(1)?)?;
    let (start, end) = match lines.get(number) {
        Some(next) => (span.start, next.start),
        None => (number.checked_sub(2).and_then(|at| lines.get(at)).map_or(0, |before| before.end), span.end),
    };
    Some(format!("{}{}", text.get(..start)?, text.get(end..)?))
}

/// A cell as written, trimmed.
pub(super) fn cell(text: &str, row: usize, column: usize) -> Option<&str> {
    let line = line(text, row)?;
    Some(line.get(cells(line).get(column)?.clone())?.trim())
}

/// Replaces a cell. Aligned columns stay aligned if the value fits.
pub(super) fn set_cell(text: &str, row: usize, column: usize, value: &str) -> Option<String> {
    let whole = line(text, row)?;
    let range = cells(whole).get(column)?.clone();
    let filled = filled(whole.get(range.clone())?, width(text, row, column), value);
    set_line(text, row, &format!("{}{filled}{}", whole.get(..range.start)?, whole.get(range.end..)?))
}

/// A row of values, formatted like another row.
pub(super) fn row_like(text: &str, row: usize, values: &[String]) -> Option<String> {
    let whole = line(text, row)?;
    let ranges = cells(whole);
    let (first, last) = (ranges.first()?, ranges.last()?);
    let sample = whole.get(first.clone())?;
    let cells = values.iter().enumerate().map(|(column, value)| {
        let model = ranges.get(column).and_then(|range| whole.get(range.clone())).filter(|raw| !raw.trim().is_empty());
        filled(model.unwrap_or(if sample.starts_with(' ') { "  " } else { "" }), width(text, row, column), value)
    });
    let cells = cells.collect::<Vec<_>>().join("|");
    Some(format!("{}{cells}{}", whole.get(..first.start)?, whole.get(last.end..)?.trim_end()))
}

/// A cell with a new value and the spaces of the old one.
fn filled(old: &str, width: Option<usize>, value: &str) -> String {
    let value = escaped(value);
    let is_blank = old.trim().is_empty();
    let before =
        if is_blank { &old[..usize::from(old.starts_with(' '))] } else { &old[..old.len() - old.trim_start().len()] };
    let after = if is_blank { before } else { &old[old.trim_end().len()..] };
    let least = after.get(..1).unwrap_or_default();
    // A last backslash would escape the bar that ends the cell.
    let least = if escapes(&value) { " " } else { least };
    let after = if width.is_some() || after.chars().count() > 1 { least } else { after };
    let mut filled = format!("{before}{value}{}", if after.is_empty() { least } else { after });
    let count = filled.chars().count();
    filled.extend(std::iter::repeat_n(' ', width.unwrap_or(0).saturating_sub(count)));
    filled
}

/// The width of a column, if it is the same in all lines of its table.
fn width(text: &str, row: usize, column: usize) -> Option<usize> {
    let lines = lines(text);
    let at = row.checked_sub(1)?;
    let is_row = |line: &&Range<usize>| text.get((*line).clone()).is_some_and(|line| line.contains('|'));
    let above = lines.get(..at)?.iter().rev().take_while(is_row);
    let below = lines.get(at..)?.iter().take_while(is_row);
    let width_of = |line: &Range<usize>| {
        let line = text.get(line.clone())?;
        Some(line.get(cells(line).get(column)?.clone())?.chars().count())
    };
    let widths = above.chain(below).map(width_of).collect::<Option<Vec<_>>>()?;
    let first = *widths.first()?;
    (widths.len() > 2 && widths.iter().all(|width| *width == first)).then_some(first)
}

/// Escapes a value for a cell: one line, with escaped bars.
fn escaped(value: &str) -> String {
    let line = value.split(['\r', '\n']).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let mut escaped = String::with_capacity(line.len());
    for c in line.chars() {
        if c == '|' && !escapes(&escaped) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Whether a text ends in a backslash that is not itself escaped.
fn escapes(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The cells of a table's line, with their spaces.
pub(super) fn cells(line: &str) -> Vec<Range<usize>> {
    let body_start = line.len() - line.trim_start_matches([' ', '\t', '\u{feff}']).len();
    let body_end = line.trim_end().len().max(body_start);
    let is_bar = |at: &usize| line.as_bytes().get(*at) == Some(&b'|') && !line.get(..*at).is_some_and(escapes);
    let bars: Vec<usize> = (body_start..body_end).filter(is_bar).collect();
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else { return Vec::new() };
    // A row may leave out its first and its last bar.
    let starts = (*first > body_start).then_some(body_start).into_iter().chain(bars.iter().map(|bar| bar + 1));
    let ends = bars.iter().copied().skip(usize::from(*first == body_start));
    let ends = ends.chain((last + 1 < body_end).then_some(body_end));
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEAM: &str = "\u{feff}# Crew\r\n\r\n| **Name** | Role | Status |\r\n|---|---|---|\r\n| Ilse |  Pilot  | ✅ Active |\r\n| a \\| b | Cook ||\n";

    #[test]
    fn one_cell_changes_and_nothing_else() {
        assert_eq!((cell(TEAM, 5, 1), cell(TEAM, 6, 0), cell(TEAM, 6, 2)), (Some("Pilot"), Some("a \\| b"), Some("")));
        assert_eq!(set_cell(TEAM, 5, 2, "🔒 Retired"), Some(TEAM.replace("✅ Active", "🔒 Retired")));
        assert_eq!(set_cell(TEAM, 6, 2, "x|y\nz"), Some(TEAM.replace("Cook ||", "Cook |x\\|y z|")));
        assert_eq!(
            (set_cell(TEAM, 5, 3, "x"), set_cell(TEAM, 1, 0, "x"), set_cell(TEAM, 99, 0, "x")),
            (None, None, None)
        );
    }

    #[test]
    fn columns_stay_as_wide_as_the_team_keeps_them() {
        let wide = "| Name  | Role |\n|-------|------|\n| Ilse  | Cook |\n| Bo    | Mate |\n";
        assert_eq!(set_cell(wide, 4, 0, "Anna"), Some(wide.replace("Bo    |", "Anna  |")));
        assert_eq!(set_cell(wide, 4, 0, "Annabella"), Some(wide.replace("Bo    |", "Annabella |")));
        assert_eq!(row_like(wide, 4, &["Al".into(), "Smut".into()]).as_deref(), Some("| Al    | Smut |"));
        assert_eq!(row_like(TEAM, 5, &["Uwe".into(), "Lead".into()]).as_deref(), Some("| Uwe |  Lead |"));
        assert_eq!(row_like("a|b\n-|-\nc|d\n", 3, &["e".into(), "f".into()]).as_deref(), Some("e|f"));
    }

    #[test]
    fn lines_come_and_go_with_the_ends_of_their_neighbours() {
        assert_eq!(add_line(TEAM, 5, "x"), Some(TEAM.replace("Active |\r\n", "Active |\r\nx\r\n")));
        assert_eq!(add_line("a\r\nb", 2, "c").as_deref(), Some("a\r\nb\r\nc"));
        for (number, rest) in [(1, "b\nc"), (2, "a\r\nc"), (3, "a\r\nb")] {
            assert_eq!(remove_line("a\r\nb\nc", number).as_deref(), Some(rest));
        }
        assert_eq!((remove_line("a", 1).as_deref(), remove_line("a", 2)), (Some(""), None));
    }

    proptest! {
        #[test]
        fn only_the_cell_changes(
            text in "[|a \\\\\r\n\u{feff}é:-]{0,60}", row in 0usize..8, column in 0usize..6, value in "[|b \\\\\n]{0,8}"
        ) {
            let Some(changed) = set_cell(&text, row, column, &value) else { return Ok(()) };
            let whole = line(&text, row).expect("the cell is there");
            let range = cells(whole)[column].clone();
            let start = span(&text, row).expect("the line is there").start;
            prop_assert!(changed.starts_with(&text[..start + range.start]));
            prop_assert!(changed.ends_with(&text[start + range.end..]));
            prop_assert_eq!(lines(&changed).len(), lines(&text).len());
        }
    }
}
