//! Text for sentences, and safe forms of untrusted text.

use std::fmt::{Display, Write};

/// `1 agent`, `2 agents`, `1 entry`, `2 entries`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if noun.ends_with('s') => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// `12.3 MB`.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut items = items.into_iter().peekable();
    let mut text = items.next().map(|item| item.to_string()).unwrap_or_default();
    while let Some(item) = items.next() {
        text.push_str(if items.peek().is_some() { ", " } else { " and " });
        // Writing to a string cannot fail.
        let _ = write!(text, "{item}");
    }
    text
}

/// `950`, `1.2k`, `34k`, `1.2M`.
pub(crate) fn abbreviated(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..10_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        10_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// `0:07`, `1:02:03`.
pub(crate) fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// `12 min ago`
pub(crate) fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} ago", plural((seconds / 86_400) as usize, "day")),
    }
}

/// The first line that is not empty, cut to `limit` characters.
pub(crate) fn first_line(text: &str, limit: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= limit {
        return line.to_owned();
    }
    let mut cut: String = line.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// A command for people: further lines stand indented below the first.
pub(crate) fn indented(command: &str) -> String {
    let mut lines = command.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| format!("{text}\n  {}", line.trim_end()))
}

/// The first line cut between words, for text that is recorded: a secret cut in two could no longer be recognized. A
/// single word that is too long is left out.
pub(crate) fn first_words(text: &str, limit: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let Some((end, _)) = line.char_indices().nth(limit) else { return line.to_owned() };
    let whole = line[..end].rsplit_once(char::is_whitespace).map_or("", |(words, _)| words);
    format!("{whole} …").trim_start().to_owned()
}

/// Untrusted text as a Markdown block quote, so that no line of it can act as a heading or fence.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + text.len() / 20 + 2);
    // Some readers treat U+2028 and U+2029 as line ends too.
    for line in text.trim().split(|c| matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')) {
        quoted.push_str(if line.is_empty() { ">" } else { "> " });
        quoted.push_str(line);
        quoted.push('\n');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_words() {
        assert_eq!(plural(1, "entry"), "1 entry");
        assert_eq!(plural(2, "entry"), "2 entries");
        assert_eq!(plural(0, "day"), "0 days");
    }

    #[test]
    fn lists_are_sentences() {
        assert_eq!(list(["a"]), "a");
        assert_eq!(list(["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn recorded_text_is_cut_between_words() {
        assert_eq!(first_words("one two three", 9), "one two …");
        assert_eq!(first_words("unbroken", 4), "…");
        assert_eq!(first_words("\nshort\nnext", 9), "short");
    }

    #[test]
    fn no_line_of_a_quote_starts_a_heading() {
        assert_eq!(quote("a\n# b\r## c\u{2028}# d\n\ne"), "> a\n> # b\n> ## c\n> # d\n>\n> e\n");
    }
}
