//! Finds dates in headings and metadata.

use super::super::abroad;
use super::super::words::{is_blank, listed, trim_pictographs};

/// A heading, split into its date and the rest.
pub(super) struct Dated {
    /// `yyyy-mm-dd`
    pub(super) date: Option<String>,
    pub(super) title: String,
    /// Only punctuation precedes the date.
    pub(super) leads: bool,
    /// The date is all there is.
    pub(super) bare: bool,
}

const MARKS: &[char] = &[' ', ':', '-', '—', '–', '|', '(', ')', '[', ']', '/', '·', ',', '•'];

/// Whether a text begins like a date, with a year, and is not read as one: `05.01.2026`, `2026-02-31`.
pub(super) fn begins_with_unread_day(text: &str) -> bool {
    let text = trim_pictographs(text).trim_start_matches(MARKS);
    let (word, _) = split_run(text, |c| c.is_ascii_digit() || matches!(c, '/' | '-' | '.'));
    let parts: Vec<&str> = word.split(['/', '-', '.']).filter(|part| !part.is_empty()).collect();
    parts.len() == 3 && parts.iter().any(|part| part.len() == 4) && find(text).is_none()
}

/// `2026-01-05: Title`, `2026-01-05T10:00:00Z — Title`, `Title (2026-01-05)`, `📌 2026-01-05 Title`.
pub(super) fn dated(heading: &str) -> Dated {
    let text = trim_pictographs(heading);
    let Some(found) = find(text) else {
        // `2026: …` and `2026-07: …`
        let is_month = |head: &str| head.starts_with("20") && matches!(head.len(), 4 | 7) && !head.contains(' ');
        let leads = begins_with_unread_day(text) || text.split_once(": ").is_some_and(|(head, _)| is_month(head));
        return Dated { date: None, title: text.to_owned(), leads, bare: false };
    };
    let (before, after) = (&text[..found.start], skip_range(skip_time(&text[found.end..])));
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

/// Splits a text after its leading characters of a kind.
fn split_run(text: &str, is_inside: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_inside(c)).unwrap_or(text.len()))
}

/// Balances parentheses after the date was removed.
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

struct DateMatch {
    date: String,
    start: usize,
    end: usize,
}

fn find(text: &str) -> Option<DateMatch> {
    // A date has at least five digits. This rules out most texts.
    text.bytes().filter(u8::is_ascii_digit).nth(4)?;
    find_numeric(text).or_else(|| find_worded(text))
}

/// `2026-01-05`, `2026/01/05`, `2026.01.05` or `2026-1-5`, but not inside a longer number. `2026.1.5` is a version.
fn find_numeric(text: &str) -> Option<DateMatch> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(7)).find_map(|at| {
        if at.checked_sub(1).and_then(|before| bytes.get(before)).is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        let mark = bytes.get(at + 4).copied().filter(|mark| matches!(mark, b'-' | b'/' | b'.'))?;
        let (year, month_at) = (digits(text, at, 4)?, at + 5);
        let month = text.get(month_at..)?.split(char::from(mark)).next()?;
        let day_at = month_at + month.len() + 1;
        let day_end = text.get(day_at..)?.find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| day_at + end);
        let (month, day) = (digits(text, month_at, month.len())?, digits(text, day_at, day_end - day_at)?);
        let is_short = day_end - at < 10;
        let is_longer = is_short && bytes.get(day_end).is_some_and(|next| *next == mark);
        if (mark == b'.' && is_short) || is_longer || day_end - at > 10 {
            return None;
        }
        Some(DateMatch { date: iso(year, month, day)?, start: at, end: day_end })
    })
}

/// A number with `count` digits.
fn digits(text: &str, at: usize, count: usize) -> Option<u32> {
    let number = text.get(at..at + count).filter(|number| (1..=4).contains(&number.len()))?;
    number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok()).flatten()
}

/// The date, if it exists.
fn iso(year: u32, month: u32, day: u32) -> Option<String> {
    let real = jiff::civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    (real.is_ok() && (1900..=2999).contains(&year)).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

const MONTHS: &str = "january, february, march, april, may, june, july, august, september, october, november, december";

/// `January 5, 2026`, `Jan 5th 2026` and `5 January 2026`.
fn find_worded(text: &str) -> Option<DateMatch> {
    let words = words(text);
    words.windows(3).find_map(|three| {
        let [first, second, third] = three else { return None };
        // Check the year first: that is cheap, and most texts have none.
        let year = third.1.parse::<u32>().ok()?;
        let (month, day) = match (month(first.1), month(second.1)) {
            (Some(month), _) => (month, day(second.1)?),
            (None, Some(month)) => (month, day(first.1)?),
            (None, None) => return None,
        };
        Some(DateMatch { date: iso(year, month, day)?, start: first.0, end: third.0 + third.1.len() })
    })
}

/// The words of a text with their offsets. `5 de enero de 2026` is read as `5 enero 2026`.
fn words(text: &str) -> Vec<(usize, &str)> {
    super::super::words::words(text)
        .filter(|word| *word != "de")
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .collect()
}

fn month(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let index = MONTHS.split(", ").position(|month| {
        month == word || (word.len() == 3 && month.starts_with(&word)) || (word == "sept" && month == "september")
    });
    let index = index.or_else(|| abroad::MONTHS.iter().position(|names| listed(names, &word)))?;
    u32::try_from(index + 1).ok()
}

fn day(word: &str) -> Option<u32> {
    ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).parse().ok()
}

/// Skips a time of day: `T09:30:00+01:00: Title`, `T12-39-55 Title`, ` 16:54 UTC — Title`.
fn skip_time(after: &str) -> &str {
    fn skip_clock(text: &str) -> &str {
        let (clock, _) = split_run(text, |c| c.is_ascii_digit() || matches!(c, 'Z' | ':' | '-' | '+' | '.'));
        text.split_at(clock.trim_end_matches([':', '-', '.']).len()).1
    }
    if let Some(rest) = after.strip_prefix('T').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return skip_clock(rest);
    }
    let spaced = after.trim_start();
    if !matches!(spaced.as_bytes(), [b'0'..=b'9', b':', _, _, _, ..] | [b'0'..=b'9', _, b':', _, _, ..]) {
        return after;
    }
    let rest = skip_clock(spaced);
    let trimmed = rest.trim_start();
    let zone = ["UTC", "GMT", "AM", "PM", "am", "pm"].iter().find_map(|zone| trimmed.strip_prefix(zone));
    zone.filter(|rest| !rest.starts_with(char::is_alphanumeric)).unwrap_or(rest)
}

/// Skips the end of a date range: `/21`, ` to 2026-01-07`.
fn skip_range(after: &str) -> &str {
    for mark in ["/", " / ", " to ", "–", " – ", "..", " - ", "—", " — "] {
        let Some(rest) = after.strip_prefix(mark) else { continue };
        if let Some(found) = find_numeric(rest).filter(|found| found.start == 0) {
            return &rest[found.end..];
        }
        let (day, rest) = split_run(rest, |c| c.is_ascii_digit());
        if mark == "/" && (1..=2).contains(&day.len()) && !rest.starts_with(char::is_alphanumeric) {
            return rest;
        }
    }
    after
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
            ("2026-1-5: Sigma", "Sigma"),
            ("2026-01-05/06: Tau", "Tau"),
            ("2026-01-05 to 2026-01-07: Upsilon", "Upsilon"),
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

    #[test]
    fn a_day_that_is_not_read_leads_and_is_said() {
        for (heading, is_unread) in [
            ("2026-02-30: A", true),
            ("2026-13-01: A", true),
            ("📌 45/45/2026 — A", true),
            ("1/9/2026 — A", true),
            ("09.01.2026 A", true),
            ("2028-02-29: A", false),
            ("3 retries", false),
            ("1.2.3 is out", false),
        ] {
            assert_eq!(begins_with_unread_day(heading), is_unread, "{heading}");
            assert!(!is_unread || dated(heading).leads, "{heading}");
        }
    }
}
