//! Dates as people write them in headings and metadata.

use super::super::abroad;
use super::super::words::{is_blank, trim_pictographs};

/// A heading, told apart into its date and the rest.
pub(super) struct Dated {
    /// `yyyy-mm-dd`
    pub(super) date: Option<String>,
    pub(super) title: String,
    /// Nothing but marks stands before the date.
    pub(super) leads: bool,
    /// Nothing but the date is there.
    pub(super) bare: bool,
}

const MARKS: &[char] = &[' ', ':', '-', '—', '–', '|', '(', ')', '[', ']', '/', '·', ',', '•'];

/// `2026-01-05: Title`, `2026-01-05T10:00:00Z — Title`, `Title (2026-01-05)`, `📌 2026-01-05 Title`.
pub(super) fn dated(heading: &str) -> Dated {
    let text = trim_pictographs(heading);
    let Some(found) = find(text) else {
        return Dated { date: None, title: text.to_owned(), leads: begins_with_year(text), bare: false };
    };
    let (before, after) = (&text[..found.start], skip_time(&text[found.end..]));
    let (head, tail) = (before.trim_end_matches(MARKS), trim_pictographs(after.trim_start_matches(MARKS)));
    let tail = if is_blank(tail) { "" } else { tail.trim_end_matches([' ', ':', '-', '—', '–']) };
    let rest = if head.is_empty() || tail.is_empty() { format!("{head}{tail}") } else { format!("{head} — {tail}") };
    let rest = even_parentheses(trim_pictographs(rest.trim_start_matches(MARKS)));
    Dated {
        leads: !before.chars().any(char::is_alphanumeric),
        bare: !rest.chars().any(char::is_alphanumeric),
        title: if rest.is_empty() { text.to_owned() } else { rest },
        date: Some(found.date),
    }
}

/// `2026: …` and `2026-07: …`: when, but not on which day.
fn begins_with_year(text: &str) -> bool {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(text.len());
    let number = &text[..end];
    let is_month = number.len() == 7 && number.as_bytes()[4] == b'-';
    (number.len() == 4 || is_month) && iso_month(number).is_some() && text[end..].starts_with(": ")
}

fn iso_month(text: &str) -> Option<()> {
    let (year, month) = text.split_once('-').unwrap_or((text, "1"));
    iso(year.parse().ok()?, month.parse().ok()?, 1).map(drop)
}

/// Taking the date out may have left half of a pair, and trimming may have taken the other half of another.
fn even_parentheses(text: &str) -> String {
    let (open, closed) = (text.matches('(').count(), text.matches(')').count());
    match text.strip_suffix(')') {
        Some(rest) if closed == open + 1 => rest.to_owned(),
        _ if open == closed + 1 => format!("{text})"),
        _ => text.to_owned(),
    }
}

/// The first date in a text, as `yyyy-mm-dd`.
pub(super) fn date_in(text: &str) -> Option<String> {
    find(text).map(|found| found.date)
}

struct Found {
    date: String,
    start: usize,
    end: usize,
}

fn find(text: &str) -> Option<Found> {
    find_numeric(text).or_else(|| find_worded(text)).or_else(|| find_compact(text))
}

/// `05.01.2026`, as much of Europe writes it, or `20260105`. A day and a month parted by slashes may be either.
fn find_compact(text: &str) -> Option<Found> {
    let ends: &[char] = &['.', ',', ':', ';', '(', ')', '[', ']', '*'];
    text.split_whitespace().find_map(|word| {
        let word = word.trim_matches(ends);
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
        let parts: Vec<&str> = word.split('.').collect();
        let date = match parts[..] {
            [day, month, year] if year.len() == 4 => iso(number(year)?, number(month)?, number(day)?)?,
            [whole] if whole.len() == 8 => {
                let whole = number(whole)?;
                iso(whole / 10_000, whole / 100 % 100, whole % 100)?
            }
            _ => return None,
        };
        Some(Found { date, start, end: start + word.len() })
    })
}

/// `2026-01-05`, `2026/01/05` or `2026.01.05`, not within a longer number.
fn find_numeric(text: &str) -> Option<Found> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(9)).find_map(|at| {
        let part = &bytes[at..at + 10];
        let mark = part[4];
        let shaped = matches!(mark, b'-' | b'/' | b'.')
            && part.iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == mark } else { b.is_ascii_digit() });
        let free = (at == 0 || !bytes[at - 1].is_ascii_alphanumeric())
            && bytes.get(at + 10).is_none_or(|next| !next.is_ascii_digit());
        if !(shaped && free) {
            return None;
        }
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
        let (year, month, day) = (number(at..at + 4)?, number(at + 5..at + 7)?, number(at + 8..at + 10)?);
        Some(Found { date: iso(year, month, day)?, start: at, end: at + 10 })
    })
}

fn iso(year: u32, month: u32, day: u32) -> Option<String> {
    ((1..=12).contains(&month) && (1..=31).contains(&day) && (1900..=2999).contains(&year))
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// `January 5, 2026`, `Jan 5th 2026` and `5 January 2026`.
fn find_worded(text: &str) -> Option<Found> {
    let words = words(text);
    words.windows(3).find_map(|three| {
        let [first, second, third] = three else { return None };
        let (month, day) = match (month(first.1), month(second.1)) {
            (Some(month), _) => (month, day(second.1)?),
            (None, Some(month)) => (month, day(first.1)?),
            (None, None) => return None,
        };
        let year = third.1.parse::<u32>().ok()?;
        Some(Found { date: iso(year, month, day)?, start: first.0, end: third.0 + third.1.len() })
    })
}

/// The runs of letters and digits, with their offsets. `5 de enero de 2026` says no more than `5 enero 2026`.
fn words(text: &str) -> Vec<(usize, &str)> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && *word != "de")
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .collect()
}

fn month(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let index = MONTHS.iter().position(|month| {
        *month == word || (word.len() == 3 && month.starts_with(&word)) || (word == "sept" && *month == "september")
    });
    let index = index.or_else(|| abroad::MONTHS.iter().position(|names| names.contains(&word.as_str())))?;
    u32::try_from(index + 1).ok()
}

fn day(word: &str) -> Option<u32> {
    ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).parse().ok()
}

/// The text after a time of day: `T09:30:00+01:00: Title`, `T12-39-55 Title`, ` 16:54 UTC — Title`.
fn skip_time(after: &str) -> &str {
    let clock = |text: &str| {
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, 'Z' | ':' | '-' | '+' | '.')))
            .unwrap_or(text.len());
        text[..end].trim_end_matches([':', '-', '.']).len()
    };
    if let Some(rest) = after.strip_prefix('T').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return &rest[clock(rest)..];
    }
    let spaced = after.trim_start();
    let bytes = spaced.as_bytes();
    let is_clock = bytes.len() > 4 && bytes[0].is_ascii_digit() && (bytes[1] == b':' || bytes[2] == b':');
    if !is_clock {
        return after;
    }
    let rest = &spaced[clock(spaced)..];
    let trimmed = rest.trim_start();
    let zone = ["UTC", "GMT", "AM", "PM", "am", "pm"].iter().find_map(|zone| trimmed.strip_prefix(zone));
    zone.filter(|rest| !rest.starts_with(char::is_alphanumeric)).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(heading: &str) -> (Option<String>, String) {
        let dated = dated(heading);
        (dated.date, dated.title)
    }

    #[test]
    fn a_date_may_stand_anywhere_and_have_a_time() {
        for (heading, title) in [
            ("2026-01-05: Use mooring lines", "Use mooring lines"),
            ("2026-01-05T10:00:00Z — Tide tables", "Tide tables"),
            ("2026-01-05T09:30:00+01:00: Beta", "Beta"),
            ("2026-01-05T12-39-55: Gamma", "Gamma"),
            ("2026-01-05T17:13Z: Delta", "Delta"),
            ("2026-01-05 16:54 UTC — Epsilon", "Epsilon"),
            ("2026-01-05 — Zeta", "Zeta"),
            ("Eta (2026-01-05)", "Eta"),
            ("Theta (draft) (2026-01-05)", "Theta (draft)"),
            ("2026-01-05: Iota (second try)", "Iota (second try)"),
            ("📌 2026-01-05: Kappa", "Kappa"),
            ("[2026-01-05] Lambda", "Lambda"),
            ("2026/01/05 Mu", "Mu"),
            ("Nu — January 5, 2026", "Nu"),
            ("5 Jan 2026: Xi", "Xi"),
            ("D-01 — 2026-01-05 — Omicron", "D-01 — Omicron"),
            ("Pi (2026-01-05 — second look)", "Pi — second look"),
            ("2026-01-05: Rho (a) and (b)", "Rho (a) and (b)"),
            ("2026-01-05", "2026-01-05"),
        ] {
            assert_eq!(split(heading), (Some("2026-01-05".to_owned()), title.to_owned()), "{heading}");
        }
    }

    #[test]
    fn what_is_no_date_stays_in_the_title() {
        for heading in ["2026-07: month only", "Ticket 12026-01-055", "2026-13-41: no such day", "Mayday", "May 2026"] {
            assert_eq!(split(heading), (None, heading.to_owned()));
        }
    }
}
