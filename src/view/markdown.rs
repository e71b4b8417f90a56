//! Markdown as lines for a terminal: wrapped by word with a hanging indent, code as it is.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::LineStyle;
use super::text::Text;

/// Columns before all of it, and before code.
const INDENT: &str = "  ";
/// Columns between the columns of a table.
const GAP: &str = "  ";
/// Columns of a tab in code.
const TAB: &str = "    ";

/// The lines of a text, for a screen of this width.
pub(crate) fn markdown(text: &str, columns: usize) -> Vec<Text> {
    let mut page = Page { columns, containers: vec![Container::of(INDENT, INDENT)], ..Page::default() };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        page.see(event);
    }
    page.end_line();
    page.lines
}

#[derive(Default)]
struct Page {
    columns: usize,
    lines: Vec<Text>,
    line: Option<Text>,
    /// What stands before each line: of quotes and items of lists.
    containers: Vec<Container>,
    /// The next number of each open list; `None`: it has no numbers.
    lists: Vec<Option<u64>>,
    styles: Vec<LineStyle>,
    /// Where each open link leads, and what of its text there is.
    links: Vec<(String, String)>,
    /// A blank line comes before the next block.
    has_gap: bool,
    is_code: bool,
    table: Option<Vec<Vec<Text>>>,
}

/// What stands before the first line, and before the others.
struct Container {
    first: Option<String>,
    rest: String,
}

impl Container {
    fn of(first: &str, rest: &str) -> Self {
        Self { first: Some(first.to_owned()), rest: rest.to_owned() }
    }
}

impl Page {
    fn see(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    let line = self.beginning().plain(INDENT).plain(&line.replace('\t', TAB)).verbatim();
                    self.lines.push(line);
                }
            }
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.write(&text),
            Event::Html(text) => {
                for line in text.lines() {
                    self.write(line);
                    self.end_line();
                }
            }
            Event::InlineHtml(text) => self.write(&text),
            // The marks stay: without colours, nothing else says where a command ends.
            Event::Code(text) => self.styled(LineStyle::Code, &format!("`{text}`")),
            Event::SoftBreak => self.write(" "),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.write("---");
                self.end_block();
            }
            Event::TaskListMarker(is_done) => self.write(if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.write(&format!("[{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.styles.push(LineStyle::Strong),
            Tag::Strong => self.styles.push(LineStyle::Strong),
            Tag::Emphasis => self.styles.push(LineStyle::Emphasis),
            Tag::BlockQuote(_) => {
                self.end_line();
                self.containers.push(Container::of("| ", "| "));
            }
            Tag::CodeBlock(_) => {
                self.end_line();
                self.is_code = true;
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.containers.push(Container::of(&marker, &" ".repeat(marker.len())));
            }
            Tag::Table(_) => {
                self.end_line();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(|rows| rows.push(Vec::new())),
            Tag::TableCell => self.line = Some(Text::default()),
            Tag::Link { dest_url, .. } => self.links.push((dest_url.into_string(), String::new())),
            Tag::Image { dest_url, .. } => {
                self.write("image: ");
                self.links.push((dest_url.into_string(), String::new()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Strong | TagEnd::Emphasis => drop(self.styles.pop()),
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_line();
                // An item without a text has its mark.
                if self.containers.last().is_some_and(|container| container.first.is_some()) {
                    self.write("");
                    self.end_line();
                }
                self.containers.pop();
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.has_gap = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.has_gap |= self.lists.is_empty();
            }
            TagEnd::TableCell => {
                let cell = self.line.take().unwrap_or_default();
                self.table.iter_mut().filter_map(|rows| rows.last_mut()).for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Link | TagEnd::Image => {
                let Some((to, text)) = self.links.pop() else { return };
                if !to.starts_with('#') && to != text && to.strip_prefix("mailto:") != Some(&text) {
                    self.styled(LineStyle::Faint, &format!(" ({to})"));
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, text: &str) {
        if let Some((_, named)) = self.links.last_mut() {
            named.push_str(text);
        }
        self.styled(self.styles.last().copied().unwrap_or(LineStyle::Plain), text);
    }

    fn styled(&mut self, style: LineStyle, text: &str) {
        let line = self.line.take().unwrap_or_else(|| self.beginning());
        self.line = Some(line.with(style, text));
    }

    /// A new line, with what stands before it.
    fn beginning(&mut self) -> Text {
        if std::mem::take(&mut self.has_gap) && !self.lines.is_empty() {
            self.lines.push(Text::default());
        }
        let before = self.containers.iter_mut().map(|one| one.first.take().unwrap_or_else(|| one.rest.clone()));
        Text::default().plain(&before.collect::<String>()).hanging()
    }

    fn end_line(&mut self) {
        self.lines.extend(self.line.take());
    }

    fn end_block(&mut self) {
        self.end_line();
        self.has_gap = true;
    }

    /// In columns where they fit.
    fn end_table(&mut self) {
        let rows = self.table.take().unwrap_or_default();
        let count = rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(Text::width).max();
        let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or_default()).collect();
        let before: usize = self.containers.iter().map(|container| container.rest.len()).sum();
        let fits = before + widths.iter().sum::<usize>() + GAP.len() * count.saturating_sub(1) <= self.columns;
        for (number, row) in rows.iter().enumerate() {
            let mut line = self.beginning();
            for (column, cell) in row.iter().enumerate() {
                let start = line.width();
                line = line.extend(cell);
                if column + 1 < row.len() {
                    line = if fits { line.filled(start + widths[column]).plain(GAP) } else { line.plain(" | ") };
                }
            }
            self.lines.push(if fits { line.verbatim() } else { line });
            if number == 0 && fits {
                let rules = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join(GAP);
                let rule = self.beginning().with(LineStyle::Faint, &rules).verbatim();
                self.lines.push(rule);
            }
        }
        self.has_gap = true;
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn shows(text: &str, columns: usize, expected: &Expect) {
        let lines = markdown(text, columns).into_iter().flat_map(|line| line.wrapped(columns));
        // The margin stays where an expected text loses what all its lines begin with.
        let lines: Vec<String> = lines.map(|line| format!(":{}\n", line.to_string().trim_end())).collect();
        expected.assert_eq(&lines.concat());
    }

    const ANSWER: &str = "# The *health* endpoint\n\nGET `/health` answers **200** while every check passes, and 503 when one \
        fails. See [the page](docs/health.md), <https://x.example/a> and [this](#here).\n\n1. First, a point that is long enough to \
        be wrapped on a narrow screen.\n2. Second:\n   - [x] done\n   - [ ] open\n\n     with a second paragraph\n\n> Quoted \
        words that go on for longer than one line of sixty columns.\n\n```python\nfor a_very_long_line in code_that_is_never_wrapped_or_cut(because, it, is, copied):\n\treturn 1\n```\n\
        | file | lines |\n|---|---:|\n| `app/文.py` | 3 |\n| b | 12 |\n\n---\nhard  \nbreak <b>tag</b>\n";

    #[test]
    fn each_kind_of_block_has_its_form() {
        shows(
            ANSWER,
            100,
            &expect![[r#"
                :  The health endpoint
                :
                :  GET `/health` answers 200 while every check passes, and 503 when one fails. See the page
                :  (docs/health.md), https://x.example/a and this.
                :
                :  1. First, a point that is long enough to be wrapped on a narrow screen.
                :  2. Second:
                :     - [x] done
                :
                :     - [ ] open
                :
                :       with a second paragraph
                :
                :  | Quoted words that go on for longer than one line of sixty columns.
                :
                :    for a_very_long_line in code_that_is_never_wrapped_or_cut(because, it, is, copied):
                :        return 1
                :
                :  file         lines
                :  -----------  -----
                :  `app/文.py`  3
                :  b            12
                :
                :  ---
                :
                :  hard
                :  break <b>tag</b>
            "#]],
        );
        shows(
            ANSWER,
            60,
            &expect![[r#"
                :  The health endpoint
                :
                :  GET `/health` answers 200 while every check passes, and
                :  503 when one fails. See the page (docs/health.md),
                :  https://x.example/a and this.
                :
                :  1. First, a point that is long enough to be wrapped on a
                :     narrow screen.
                :  2. Second:
                :     - [x] done
                :
                :     - [ ] open
                :
                :       with a second paragraph
                :
                :  | Quoted words that go on for longer than one line of
                :    sixty columns.
                :
                :    for a_very_long_line in code_that_is_never_wrapped_or_cut(because, it, is, copied):
                :        return 1
                :
                :  file         lines
                :  -----------  -----
                :  `app/文.py`  3
                :  b            12
                :
                :  ---
                :
                :  hard
                :  break <b>tag</b>
            "#]],
        );
    }

    /// A narrow screen × words of all widths; code is never wrapped, and nothing becomes a terminal's command.
    #[test]
    fn lines_fit_whatever_they_are_made_of() {
        let words =
            ["word", "文字", "e\u{301}t", "שלום", "👩\u{200d}👩\u{200d}👧", "\u{1b}[31m\u{202e}x", "&#27;&#x202e;"];
        for (word, columns) in words.into_iter().flat_map(|word| [20, 37, 60, 100].map(|columns| (word, columns))) {
            let room = columns.max(40);
            let text =
                format!("- {0}\n  > {0}\n\n{0}\n\n| {1} | b |\n|---|---|\n| {1} | c |\n", [word; 50].join(" "), word);
            for line in markdown(&text, columns).into_iter().flat_map(|line| line.wrapped(columns)) {
                let line = line.to_string();
                assert!(line.trim_end().width() <= room, "{columns}: {line}");
                assert!(!line.contains(['\u{1b}', '\u{202e}']), "{line:?}");
            }
        }
        let code = "x".repeat(300) + " y";
        let lines = markdown(&format!("```\n{code}\n```"), 40).into_iter().flat_map(|line| line.wrapped(40));
        assert_eq!(lines.map(|line| line.to_string()).collect::<Vec<_>>(), [format!("    {code}")]);
    }
}
