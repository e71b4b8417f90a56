//! A line of text in styles, which wraps by word.

use std::fmt;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::LineStyle;
use crate::model::printable_line;

/// A line for people. Nothing in it can be a terminal's command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text {
    spans: Vec<(LineStyle, String)>,
    /// Where further lines begin if it is wrapped.
    hang: usize,
}

impl Text {
    /// A mark, with the space behind it.
    pub(crate) fn marked(style: LineStyle, mark: Mark) -> Self {
        Self { spans: vec![(style, mark.as_str().to_owned()), (LineStyle::Plain, " ".to_owned())], hang: 2 }
    }

    /// Two spaces, in the place of a mark.
    pub(crate) fn unmarked() -> Self {
        Self { hang: 2, ..Self::default() }.plain("  ")
    }

    pub(crate) fn with(mut self, style: LineStyle, text: &str) -> Self {
        self.spans.push((style, printable_line(text)));
        self
    }

    pub(crate) fn plain(self, text: &str) -> Self {
        self.with(LineStyle::Plain, text)
    }

    pub(crate) fn extend(mut self, other: &Self) -> Self {
        self.spans.extend(other.spans.iter().cloned());
        self
    }

    /// Fills a column up to `width`, counted from the start of the line.
    pub(crate) fn filled(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.plain(&" ".repeat(missing))
    }

    /// Further lines begin here if it is wrapped.
    pub(crate) fn hanging(mut self) -> Self {
        self.hang = self.width();
        self
    }

    /// Where further lines begin.
    pub(super) fn hang(&self) -> usize {
        self.hang
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = (LineStyle, &str)> {
        self.spans.iter().map(|(style, text)| (*style, text.as_str()))
    }

    /// Whether it begins with a gap: it belongs to the line above.
    pub(super) fn is_continued(&self) -> bool {
        self.spans.first().is_some_and(|(_, text)| text.trim().is_empty())
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| text.width()).sum()
    }

    /// The beginning that fits, with a sign if it is not all.
    pub(crate) fn cut(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let mut cut = Self { spans: Vec::new(), hang: self.hang };
        let mut room = columns.saturating_sub(1);
        for (style, text) in &self.spans {
            let piece = beginning_of(text, room);
            room = room.saturating_sub(piece.width());
            cut.spans.push((*style, piece.to_owned()));
            if piece.len() < text.len() {
                break;
            }
        }
        if columns > 0 { cut.plain(CUT) } else { cut }
    }

    /// Lines of at most `columns`. A word that is longer, such as a path, stays whole.
    pub(crate) fn wrapped(&self, columns: usize) -> Vec<Self> {
        let hang = self.hang.min(columns / 2);
        let mut lines = vec![Self::default()];
        let (mut column, mut is_begun) = (0, false);
        for (style, text) in &self.spans {
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let word_at = rest.find(|c| c != ' ').unwrap_or(rest.len());
                let (gap, from_word) = rest.split_at(word_at);
                let (word, after) = from_word.split_at(from_word.find(' ').unwrap_or(from_word.len()));
                let width = word.width();
                let is_break = is_begun && !gap.is_empty() && !word.is_empty() && column + gap.len() + width > columns;
                if is_break {
                    lines.push(Self::default().plain(&" ".repeat(hang)));
                    column = hang;
                }
                let piece = if is_break { word.to_owned() } else { format!("{gap}{word}") };
                column += piece.width();
                is_begun |= !word.is_empty();
                if let Some(line) = lines.last_mut() {
                    match line.spans.last_mut().filter(|(last, _)| last == style) {
                        Some((_, text)) => text.push_str(&piece),
                        None => line.spans.push((*style, piece)),
                    }
                }
                rest = after;
            }
        }
        lines
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spans.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}

/// Stands for what is cut off.
const CUT: &str = "…";

/// The beginning of a text of so many columns at most.
fn beginning_of(text: &str, columns: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or_default();
        width > columns
    });
    let mut piece = end.map_or(text, |(at, _)| &text[..at]);
    // Some characters are wider together, such as a sign and the selector that makes it an emoji.
    while piece.width() > columns
        && let Some((at, _)) = piece.char_indices().next_back()
    {
        piece = &piece[..at];
    }
    piece
}

/// The end of a text of so many columns at most, with a sign if it is not all.
pub(super) fn end_of(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut width = CUT.width();
    let from = text.char_indices().rev().take_while(|(_, c)| {
        width += c.width().unwrap_or_default();
        width <= columns
    });
    let mut end = from.last().map_or("", |(at, _)| &text[at..]);
    while end.width() + CUT.width() > columns
        && let Some(first) = end.chars().next()
    {
        end = &end[first.len_utf8()..];
    }
    // Words stay whole where there are several.
    let end = end.split_once(' ').map_or(end, |(_, words)| words);
    if columns == 0 { String::new() } else { format!("{CUT}{end}") }
}

/// How texts are written on a terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Painter {
    pub(crate) has_colors: bool,
    /// The terminal has no Unicode.
    pub(crate) is_ascii: bool,
}

impl Painter {
    /// One line, without spaces at its end.
    pub(crate) fn paint(self, line: &Text) -> String {
        let spans = line.spans.iter().map(|(style, text)| {
            let text = if self.is_ascii { Mark::to_ascii(text) } else { text };
            let is_plain = *style == LineStyle::Plain || text.trim().is_empty();
            if is_plain || !self.has_colors {
                return text.to_owned();
            }
            let style = style_of(*style);
            format!("{style}{text}{style:#}")
        });
        spans.collect::<String>().trim_end().to_owned()
    }
}

/// The words next to a colour carry the meaning.
fn style_of(style: LineStyle) -> Style {
    match style {
        LineStyle::Plain => Style::new(),
        LineStyle::Strong => Style::new().bold(),
        LineStyle::Faint => Style::new().dimmed(),
        LineStyle::Good => AnsiColor::Green.on_default(),
        LineStyle::Bad => AnsiColor::Red.on_default().bold(),
        LineStyle::Warning => AnsiColor::Yellow.on_default().bold(),
    }
}

/// A mark never stands without its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Working,
    Waiting,
    Attention,
    Good,
    Bad,
    Neutral,
    Decision,
}

impl Mark {
    const ALL: [Self; 7] =
        [Self::Working, Self::Waiting, Self::Attention, Self::Good, Self::Bad, Self::Neutral, Self::Decision];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Working => "●",
            Self::Waiting => "○",
            Self::Attention => "!",
            Self::Good => "✓",
            Self::Bad => "✗",
            Self::Neutral => "-",
            Self::Decision => "◆",
        }
    }

    fn ascii(self) -> &'static str {
        match self {
            Self::Working => "*",
            Self::Waiting => ".",
            Self::Good => "+",
            Self::Bad => "x",
            Self::Decision => "=",
            other => other.as_str(),
        }
    }

    /// The form of a span for terminals without Unicode, if it is a mark.
    pub(crate) fn to_ascii(span: &str) -> &str {
        if span == CUT {
            return "~";
        }
        Self::ALL.iter().find(|mark| mark.as_str() == span).map_or(span, |mark| mark.ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[Text]) -> Vec<String> {
        lines.iter().map(Text::to_string).collect()
    }

    /// Signs that are wider together than each by itself.
    #[test]
    fn what_is_cut_fits_whatever_it_is_made_of() {
        let signs = ["⚠️", "✔️ ⚠️ ", "1️⃣", "👩\u{200d}👩\u{200d}👧", "🇩🇪", "文", "e\u{301}", "لا", "a"];
        for (sign, columns) in signs.into_iter().flat_map(|sign| (0..40).map(move |columns| (sign, columns))) {
            let text = sign.repeat(60);
            let cut = Text::unmarked().plain(&text).cut(columns);
            assert!(cut.width() <= columns, "{sign} {columns}: {cut}");
            assert!(end_of(&text, columns).width() <= columns, "{sign} {columns}");
        }
    }

    #[test]
    fn a_line_wraps_between_words_and_hangs() {
        let line = Text::marked(LineStyle::Good, Mark::Good).plain("ada   ").hanging().plain("wrote src/a.rs and more");
        assert_eq!(shown(&line.wrapped(100)), ["✓ ada   wrote src/a.rs and more"]);
        assert_eq!(shown(&line.wrapped(20)), ["✓ ada   wrote", "        src/a.rs and", "        more"]);
        // A style changes within a word.
        let line = Text::default().plain("one tw").with(LineStyle::Good, "o three");
        assert_eq!(shown(&line.wrapped(8)), ["one two", "three"]);
    }

    #[test]
    fn what_does_not_fit_is_cut_by_columns() {
        let line = Text::marked(LineStyle::Good, Mark::Good).plain("日本語 e\u{301}t more");
        for columns in 0..20 {
            let cut = line.cut(columns);
            assert!(cut.width() <= columns, "{columns}: {cut}");
            assert_eq!(cut.to_string().ends_with('…'), (1..16).contains(&columns), "{columns}: {cut}");
            let end = end_of("日本語 e\u{301}t more", columns);
            assert!(end.width() <= columns && (columns < 1 || end.ends_with('e') || end == "…"), "{columns}: {end}");
        }
        assert_eq!(end_of("one two three", 10), "…three");
    }

    #[test]
    fn a_long_word_and_a_narrow_screen_end() {
        let line = Text::unmarked().plain("a ").hanging().plain(&"x".repeat(30)).plain(" b");
        for columns in 0..40 {
            let words: Vec<String> = shown(&line.wrapped(columns)).iter().map(|line| line.trim().to_owned()).collect();
            assert_eq!(words.join(" ").replace("  ", " "), format!("a {} b", "x".repeat(30)));
        }
    }
}
