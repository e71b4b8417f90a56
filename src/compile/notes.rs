//! Splits a history into notes that can be understood alone.

/// The deepest level of headings.
const DEEPEST: usize = 6;
/// Most bytes of a section that is kept whole.
const MAX_SECTION: usize = 400;

/// A short section, or a bullet or paragraph of a long one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Note<'a> {
    /// The headings above it, without the document's title: `Learnings › 2026-01-05: Caching`.
    pub(super) heading: String,
    pub(super) line: usize,
    /// Its own date, or the last date before it; empty if there is none.
    pub(super) date: &'a str,
    /// Whether it is below *Project Context* or a similar heading.
    pub(super) is_project_context: bool,
    pub(super) text: &'a str,
}

/// The notes of a history, in order.
pub(super) fn notes(history: &str) -> Vec<Note<'_>> {
    let mut parser = NoteParser::default();
    let lines = lines(history);
    sections(&lines, DEEPEST).into_iter().for_each(|section| parser.section(history, section));
    parser.notes
}

/// A text's sections, with those in them, each with its title.
pub(super) fn sections_of(text: &str) -> Vec<(&str, &str)> {
    /// A document's title, and its sections.
    const LEVEL: usize = 2;
    let lines = lines(text);
    let section = |section: &[Line<'_>]| {
        let (first, last) = section.first().zip(section.last())?;
        let end = lines.get(last.number).map_or(text.len(), |next| next.start);
        let title = text[first.start..].lines().next().and_then(heading).map_or("", |(_, title)| title);
        Some((title, &text[first.start..end]))
    };
    sections(&lines, LEVEL).into_iter().filter_map(section).collect()
}

/// Splits lines at the headings outside of fences, down to a level.
fn sections<'l, 'a>(lines: &'l [Line<'a>], deepest: usize) -> Vec<&'l [Line<'a>]> {
    let (mut found, mut start) = (Vec::new(), 0);
    let mut fence: Option<&str> = None;
    for (index, line) in lines.iter().enumerate() {
        match fence {
            Some(mark) if line.text.trim_start().starts_with(mark) => fence = None,
            Some(_) => {}
            None => {
                fence = fence_mark(line.text);
                if index > start && heading(line.text).is_some_and(|(level, _)| level <= deepest) {
                    found.push(&lines[start..index]);
                    start = index;
                }
            }
        }
    }
    found.push(&lines[start..]);
    found
}

#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    /// Byte offset in the history.
    start: usize,
    text: &'a str,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').enumerate().map(|(index, line)| {
        let this = Line { number: index + 1, start, text: line.trim_end() };
        start += line.len();
        this
    });
    lines.collect()
}

#[derive(Default)]
struct NoteParser<'a> {
    /// The current headings with their levels.
    open: Vec<(usize, &'a str)>,
    date: &'a str,
    notes: Vec<Note<'a>>,
}

impl<'a> NoteParser<'a> {
    /// Adds a section: an optional heading and the text below it.
    fn section(&mut self, history: &'a str, lines: &[Line<'a>]) {
        let mut body = lines;
        if let Some((level, title)) = lines.first().and_then(|line| heading(line.text)) {
            self.open.retain(|(open, _)| *open < level);
            self.open.push((level, title));
            self.date = date(title).unwrap_or(self.date);
            body = &lines[1..];
        }
        let text = span(history, body);
        if text.len() <= MAX_SECTION {
            self.note(text, body);
            return;
        }
        for block in blocks(body) {
            self.note(span(history, block), block);
        }
    }

    fn note(&mut self, text: &'a str, lines: &[Line<'a>]) {
        if text.trim().is_empty() {
            return;
        }
        let first_line = lines.iter().find(|line| !line.text.trim().is_empty());
        self.date = first_line.and_then(|line| date(line.text)).unwrap_or(self.date);
        // `# Project Context` is often the title of the whole file, whose sections are then not all context.
        let is_project_context = self.open.last().is_some_and(|(_, title)| is_context(title))
            || self.open.iter().any(|(level, title)| *level > 1 && is_context(title));
        let named = self.open.iter().filter(|(level, title)| *level > 1 || is_context(title));
        self.notes.push(Note {
            heading: named.map(|(_, title)| *title).collect::<Vec<_>>().join(" › "),
            line: first_line.map_or(0, |line| line.number),
            date: self.date,
            is_project_context,
            text: text.trim_matches('\n'),
        });
    }
}

fn is_context(title: &str) -> bool {
    matches!(
        title.to_lowercase().as_str(),
        "project context" | "core context" | "context" | "project" | "core knowledge"
    )
}

/// Unindented bullets and paragraphs, each with the indented lines below it; fences are not split.
fn blocks<'l, 'a>(lines: &'l [Line<'a>]) -> Vec<&'l [Line<'a>]> {
    let mut blocks = Vec::new();
    let mut start = 0;
    let mut fence: Option<&str> = None;
    let mut after_blank = false;
    for (index, line) in lines.iter().enumerate() {
        let text = line.text;
        let begins =
            fence.is_none() && !text.is_empty() && !text.starts_with([' ', '\t']) && (after_blank || is_bullet(text));
        if begins {
            blocks.push(&lines[start..index]);
            start = index;
        }
        match fence {
            Some(mark) if text.trim_start().starts_with(mark) => fence = None,
            Some(_) => {}
            None => fence = fence_mark(text),
        }
        after_blank = text.is_empty();
    }
    blocks.push(&lines[start..]);
    blocks
}

fn span<'a>(history: &'a str, lines: &[Line<'a>]) -> &'a str {
    match lines {
        [] => "",
        [first, .., last] => &history[first.start..last.start + last.text.len()],
        [only] => only.text,
    }
}

fn fence_mark(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark))
}

/// The level and title of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=DEEPEST).contains(&level) && title.starts_with([' ', '\t']))
        .then(|| (level, title.trim().trim_end_matches('#').trim()))
}

fn is_bullet(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || line.starts_with("+ ")
        || (number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") ")))
}

/// The first `dddd-dd-dd` in a text.
fn date(text: &str) -> Option<&str> {
    let is_date = |window: &[u8]| {
        window.iter().enumerate().all(|(at, b)| if at == 4 || at == 7 { *b == b'-' } else { b.is_ascii_digit() })
    };
    text.as_bytes().windows(10).position(is_date).map(|at| &text[at..at + 10])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(history: &str) -> Vec<(String, usize, &str, &str)> {
        notes(history).into_iter().map(|note| (note.heading, note.line, note.date, note.text)).collect()
    }

    #[test]
    fn short_sections_stay_whole_and_inherit_their_date() {
        let history =
            "# Ada — History\n\nHired.\n\n## Learnings\n\n### 2026-01-05: Caching\n- one\n- two\n\n#### Tests\nfine\n";
        assert_eq!(
            read(history),
            [
                (String::new(), 3, "", "Hired."),
                ("Learnings › 2026-01-05: Caching".to_owned(), 8, "2026-01-05", "- one\n- two"),
                ("Learnings › 2026-01-05: Caching › Tests".to_owned(), 12, "2026-01-05", "fine"),
            ]
        );
    }

    #[test]
    fn long_sections_come_apart_at_bullets_and_paragraphs() {
        let filler = "x".repeat(900);
        let history = format!(
            "## Learnings\n- 2026-02-03 {filler}\n  more\n- second\n\nA paragraph\nof two lines\n```\n\n# no heading\n- no bullet\n```\n"
        );
        let notes = notes(&history);
        assert_eq!(notes.iter().map(|note| note.line).collect::<Vec<_>>(), [2, 4, 6]);
        assert!(notes[0].text.ends_with("  more") && notes[2].text.ends_with("- no bullet\n```"), "{notes:?}");
        assert!(notes.iter().all(|note| note.date == "2026-02-03"));
    }

    #[test]
    fn project_context_is_recognized() {
        let notes = notes(
            "# Project Context\n\n- Owner: Ann\n\n## Learnings\n\n- x\n\n# History\n\n## Core Context\ny\n## Other\nz\n",
        );
        let fixed_parts: Vec<_> = notes.iter().map(|note| (note.text, note.is_project_context)).collect();
        assert_eq!(fixed_parts, [("- Owner: Ann", true), ("- x", false), ("y", true), ("z", false)]);
    }
}
