//! A line of text in styles, which wraps by word.

use std::borrow::Cow;
use std::fmt;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::LineStyle;
use crate::model::printable_line;

/// The space before a word, and its pieces.
type Word<'t> = (String, Vec<(LineStyle, &'t str)>);

/// A line for people. Nothing in it can be a terminal's command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text {
    spans: Vec<(LineStyle, String)>,
    /// Where further lines begin if it is wrapped.
    hang: usize,
    /// It is never wrapped.
    is_verbatim: bool,
}

impl Text {
    /// A mark, with the space behind it.
    pub(crate) fn marked(style: LineStyle, mark: Mark) -> Self {
        Self {
            spans: vec![(style, mark.as_str().to_owned()), (LineStyle::Plain, " ".to_owned())],
            hang: 2,
            is_verbatim: false,
        }
    }

    /// A sentence.
    pub(crate) fn prose(text: &str) -> Self {
        Self { hang: 2, ..Self::default() }.plain(text)
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

    /// Never to be wrapped, such as code.
    pub(crate) fn verbatim(self) -> Self {
        Self { is_verbatim: true, ..self }
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

    /// The column from which it differs from another line, and what stands there.
    pub(super) fn changed_from(&self, other: &Self) -> (usize, Self) {
        let is_same = |((style, text), (other_style, other)): (&(LineStyle, String), &(LineStyle, String))| {
            // Terminals do not agree on the width of other characters.
            let is_known = |text: &str| text.is_ascii() || Mark::ALL.iter().any(|mark| mark.as_str() == text);
            style == other_style && text == other && is_known(text)
        };
        let same = self.spans.iter().zip(&other.spans).take_while(|pair| is_same(*pair)).count();
        let column = self.spans[..same].iter().map(|(_, text)| text.width()).sum();
        (column, Self { spans: self.spans[same..].to_vec(), ..Self::default() })
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| text.width()).sum()
    }

    /// The beginning that fits, with a sign if it is not all.
    pub(crate) fn cut(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let mut cut = Self { spans: Vec::new(), ..self.clone() };
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

    /// Lines of at most `columns`. A word that is longer, such as a path, stays whole, and so does a command that a line
    /// has room for: it is there to be copied.
    pub(crate) fn wrapped(&self, columns: usize) -> Vec<Self> {
        if self.is_verbatim {
            return vec![self.clone()];
        }
        let hang = self.hang.min(columns / 2);
        let mut lines = vec![Self::default()];
        let mut column = 0;
        let (words, rest) = self.words(columns - hang);
        for (number, (gap, pieces)) in words.iter().enumerate() {
            let width: usize = pieces.iter().map(|(_, piece)| piece.width()).sum();
            let is_break = number > 0 && column + gap.len() + width > columns;
            if is_break {
                lines.push(Self::default().plain(&" ".repeat(hang)));
                column = hang;
            }
            let Some(line) = lines.last_mut() else { break };
            if !is_break {
                let first = pieces.first().map(|(style, _)| *style);
                let style = line.spans.last().map(|(last, _)| *last).filter(|last| Some(*last) == first);
                line.push(style.unwrap_or(LineStyle::Plain), gap);
                column += gap.len();
            }
            pieces.iter().for_each(|(style, piece)| line.push(*style, piece));
            column += width;
        }
        if let Some(line) = lines.last_mut() {
            line.push(LineStyle::Plain, &rest);
        }
        lines
    }

    /// The words, each with the space before it, and the space behind them. A word may change its style. A command of at
    /// most so many columns is a word: what is strong, or stands between backticks.
    fn words(&self, columns: usize) -> (Vec<Word<'_>>, String) {
        let mut words: Vec<Word<'_>> = Vec::new();
        let mut gap = String::new();
        for (style, text) in &self.spans {
            let is_command = *style == LineStyle::Strong && !text.starts_with(' ') && is_short(text, columns);
            let mut rest = text.as_str();
            loop {
                let (piece, is_last) = next_piece(&mut rest, is_command, columns);
                match words.last_mut().filter(|_| gap.is_empty()) {
                    _ if piece.is_empty() => {}
                    Some((_, pieces)) => pieces.push((*style, piece)),
                    None => words.push((std::mem::take(&mut gap), vec![(*style, piece)])),
                }
                if is_last {
                    break;
                }
                gap.push(' ');
            }
        }
        (words, gap)
    }

    fn push(&mut self, style: LineStyle, text: &str) {
        match self.spans.last_mut().filter(|(last, _)| *last == style) {
            _ if text.is_empty() => {}
            Some((_, before)) => before.push_str(text),
            None => self.spans.push((style, text.to_owned())),
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spans.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}

/// The width of a very long text would take its time.
fn is_short(text: &str, columns: usize) -> bool {
    text.len() <= 4 * columns && text.width() <= columns
}

/// Takes what stands before the next space that may be broken, and says whether nothing is behind it.
fn next_piece<'t>(rest: &mut &'t str, is_command: bool, columns: usize) -> (&'t str, bool) {
    let text = *rest;
    let space = text.find(' ').unwrap_or(text.len());
    let quoted = text[..space].find('`').and_then(|open| Some(open + 2 + text[open + 1..].find('`')?));
    let end = match quoted {
        _ if is_command => text.len(),
        Some(close) if is_short(&text[..close], columns) => {
            close + text[close..].find(' ').unwrap_or(text.len() - close)
        }
        _ => space,
    };
    *rest = text.get(end + 1..).unwrap_or_default();
    (&text[..end], end == text.len())
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
            let text = match self.is_ascii {
                true => without_signs(&Mark::to_ascii(text)),
                false => text.clone(),
            };
            let is_plain = *style == LineStyle::Plain || text.trim().is_empty();
            if is_plain || !self.has_colors {
                return text;
            }
            let style = style_of(*style);
            format!("{style}{text}{style:#}")
        });
        spans.collect::<String>().trim_end().to_owned()
    }
}

/// For terminals without Unicode.
pub(crate) fn without_signs(text: &str) -> String {
    text.replace('…', "~").replace(['·', '–', '—'], "-").replace(['“', '”'], "\"").replace('›', ">").replace("↑↓", "jk")
}

/// The words next to a colour carry the meaning.
fn style_of(style: LineStyle) -> Style {
    match style {
        LineStyle::Plain => Style::new(),
        LineStyle::Strong => Style::new().bold(),
        LineStyle::Faint => Style::new().dimmed(),
        LineStyle::Emphasis => Style::new().italic(),
        LineStyle::Code => AnsiColor::Cyan.on_default(),
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

    /// The form of a span for terminals without Unicode, if it is a mark or begins with one: where a line wraps, words
    /// of one style are one span.
    pub(crate) fn to_ascii(span: &str) -> Cow<'_, str> {
        let rest =
            |mark: &Self| span.strip_prefix(mark.as_str()).filter(|rest| rest.is_empty() || rest.starts_with(' '));
        let marked = Self::ALL.iter().find_map(|mark| Some((mark, rest(mark)?)));
        marked.map_or(Cow::Borrowed(span), |(mark, rest)| Cow::Owned(format!("{}{rest}", mark.ascii())))
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
        let line = Text::default().plain("one two").with(LineStyle::Good, ", three");
        assert_eq!(shown(&line.wrapped(7)), ["one", "two,", "three"]);
        // A space is before the change or behind it.
        for (first, second) in [("one two ", "three"), ("one two", " three")] {
            let line = Text::default().plain(first).with(LineStyle::Good, second);
            assert_eq!(shown(&line.wrapped(8)), ["one two", "three"]);
        }
    }

    #[test]
    fn a_command_moves_whole_where_there_is_room() {
        let strong = Text::default().plain("type ").with(LineStyle::Strong, "squad log 602796");
        for (line, columns, expected) in [
            (Text::prose("run `git add -A`, then go on"), 12, &["run `git add", "  -A`, then", "  go on"][..]),
            (Text::prose("run `git add -A`, then go on"), 16, &["run", "  `git add -A`,", "  then go on"]),
            (Text::prose("run `git add -A`, then go on"), 24, &["run `git add -A`, then", "  go on"]),
            (Text::prose("right now I run `git add -A` and go"), 24, &["right now I run", "  `git add -A` and go"]),
            (Text::prose("an open ` is one and no more"), 16, &["an open ` is one", "  and no more"]),
            (strong.clone(), 14, &["type squad log", "602796"]),
            (strong, 20, &["type", "squad log 602796"]),
            (
                Text::default().plain("please type ").with(LineStyle::Strong, "squad log"),
                20,
                &["please type", "squad log"],
            ),
        ] {
            assert_eq!(shown(&line.wrapped(columns)), expected, "{line}");
        }
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
    fn without_unicode_nothing_of_squads_own_is_unicode() {
        let painter = Painter { is_ascii: true, ..Painter::default() };
        let line = Text::marked(LineStyle::Good, Mark::Good).plain("0:42 · 12k tokens").plain("…the end");
        assert_eq!(painter.paint(&line.cut(26)), "+ 0:42 - 12k tokens~the e~");
        let line = Text::marked(LineStyle::Good, Mark::Good).with(LineStyle::Good, "completed");
        assert_eq!(painter.paint(&line.wrapped(40)[0]), "+ completed");
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
