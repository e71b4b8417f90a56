//! Markdown for team files: headings, tables with named columns, list items, and their line numbers.
//!
//! `pulldown-cmark` does the parsing, so fences, escapes, links and nested lists follow the standard.

mod tables;

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::words::without_pictographs;
use crate::model::Sort;

/// A document as a flat list of the blocks that matter in team files, in their order.
pub(super) struct Document<'a> {
    pub(super) source: &'a str,
    line_starts: Vec<usize>,
    pub(super) blocks: Vec<Block>,
}

pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// Byte range in the source.
    pub(super) range: Range<usize>,
}

pub(super) enum BlockKind {
    Heading {
        level: u8,
        text: String,
    },
    Table(Table),
    /// A list item's own text, without nested lists.
    Item(String),
    Paragraph(String),
}

/// Cells are plain text, without the markup of emphasis, links and code spans.
pub(super) struct Table {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// A table and its place in the file.
pub(crate) struct PlacedTable<C> {
    pub(crate) columns: C,
    /// The number of columns.
    pub(crate) width: usize,
    /// The lines of its rows.
    pub(crate) lines: Vec<usize>,
    /// The heading above it.
    pub(crate) heading: String,
}

pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// The targets of its links.
    pub(super) links: Vec<String>,
    pub(super) offset: usize,
}

/// A heading with everything up to the next heading of the same or a higher level.
pub(super) struct Section<'d> {
    pub(super) title: &'d str,
    /// Without the heading itself.
    pub(super) body: Range<usize>,
}

impl<'a> Document<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let line_starts =
            std::iter::once(0).chain(source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1));
        Self { source, line_starts: line_starts.collect(), blocks: blocks(source) }
    }

    /// The line number of a byte, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).max(1)
    }

    /// The start of the line that contains a byte.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        self.line_starts.get(self.line(offset) - 1).copied().unwrap_or(0)
    }

    /// The start of the first line that does not start before a byte.
    pub(super) fn line_end(&self, offset: usize) -> usize {
        let next = self.line_starts.partition_point(|start| *start < offset);
        self.line_starts.get(next).copied().unwrap_or(self.source.len())
    }

    pub(super) fn text(&self, range: &Range<usize>) -> &'a str {
        self.source.get(range.clone()).unwrap_or_default()
    }

    /// The first heading of level 1.
    pub(super) fn title(&self) -> Option<&str> {
        self.blocks.iter().find_map(|block| match &block.kind {
            BlockKind::Heading { level: 1, text } => Some(text.as_str()),
            _ => None,
        })
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = (&Table, usize)> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Table(table) => Some((table, block.range.start)),
            _ => None,
        })
    }

    /// The lines of table rows that belong to no table: there is a blank line above them, or no line of dashes below.
    pub(super) fn stray_rows(&self) -> impl Iterator<Item = usize> {
        let rows = self.blocks.iter().filter(|block| tables::lines_of_rows(self.source, block).is_some());
        rows.map(|block| self.line(block.range.start))
    }

    /// A table for edits, with what its columns mean.
    pub(super) fn placed<C>(&self, table: &Table, columns: C, headings: &[&str]) -> PlacedTable<C> {
        let heading = headings.last().copied().unwrap_or_default().to_owned();
        let lines = table.rows.iter().map(|row| self.line(row.offset)).collect();
        PlacedTable { columns, width: table.header.len(), lines, heading }
    }

    /// The tables, each with the headings above it, outermost first.
    pub(super) fn tables_in_sections(&self) -> impl Iterator<Item = (&Table, Vec<&str>)> {
        let mut open: Vec<(u8, &str)> = Vec::new();
        self.blocks.iter().filter_map(move |block| match &block.kind {
            BlockKind::Heading { level, text } => {
                while open.pop_if(|(outer, _)| *outer >= *level).is_some() {}
                open.push((*level, text));
                None
            }
            BlockKind::Table(table) => Some((table, open.iter().map(|(_, title)| *title).collect())),
            _ => None,
        })
    }

    pub(super) fn sections(&self) -> Vec<Section<'_>> {
        let headings: Vec<_> = self
            .blocks
            .iter()
            .filter_map(|block| match &block.kind {
                BlockKind::Heading { level, text } => Some((*level, text.as_str(), &block.range)),
                _ => None,
            })
            .collect();
        // Each section ends at the next heading that is not deeper. A stack of open sections finds all ends in one
        // pass.
        let mut ends = vec![self.source.len(); headings.len()];
        let mut open: Vec<usize> = Vec::new();
        for (index, (level, _, range)) in headings.iter().enumerate() {
            while let Some(last) = open.pop_if(|last| headings[*last].0 >= *level) {
                ends[last] = range.start;
            }
            open.push(index);
        }
        headings
            .iter()
            .zip(ends)
            .map(|((_, title, range), end)| Section { title, body: range.end..end.max(range.end) })
            .collect()
    }

    pub(super) fn blocks_in(&self, range: &Range<usize>) -> impl Iterator<Item = &Block> {
        let first = self.blocks.partition_point(|block| block.range.start < range.start);
        let end = range.end;
        self.blocks.iter().skip(first).take_while(move |block| block.range.start < end)
    }

    /// The list items and paragraphs in a range, each with its offset.
    pub(super) fn lines_in(&self, range: &Range<usize>) -> impl Iterator<Item = (&str, usize)> {
        self.blocks_in(range).filter_map(|block| match &block.kind {
            BlockKind::Item(text) | BlockKind::Paragraph(text) => Some((text.as_str(), block.range.start)),
            _ => None,
        })
    }

    /// The `key: value` pairs in a range: list items, lines of a paragraph, or table rows of two cells. Keys are in
    /// lower case.
    pub(super) fn fields_in(&self, range: &Range<usize>) -> Vec<(String, String)> {
        self.blocks_in(range).flat_map(|block| fields_of(&block.kind)).collect()
    }
}

/// The `key: value` pairs of a block.
pub(super) fn fields_of(kind: &BlockKind) -> Vec<(String, String)> {
    match kind {
        // A paragraph of bold fields is one block with a field on each line.
        BlockKind::Item(text) | BlockKind::Paragraph(text) => {
            text.lines().flat_map(fields_in_line).map(|(key, value)| (key, value.to_owned())).collect()
        }
        BlockKind::Table(table) => {
            let rows = std::iter::once(&table.header).chain(table.rows.iter().map(|row| &row.cells));
            let pair = |cells: &Vec<String>| match cells.as_slice() {
                [key, value] => Some((key.trim_end_matches(':').to_lowercase(), value.clone())),
                _ => None,
            };
            rows.filter_map(pair).collect()
        }
        BlockKind::Heading { .. } => Vec::new(),
    }
}

/// Several fields may share a line: `Date: 2026-01-05 | By: Kane`.
fn fields_in_line(line: &str) -> impl Iterator<Item = (String, &str)> {
    // Searching for separators is slow, and most lines have no field.
    let line = Some(line).filter(|line| line.contains(':')).into_iter();
    let parts = line.flat_map(|line| {
        let is_between = |mark: &&str| line.split(mark).skip(1).any(|part| part.contains(':'));
        line.split([" | ", " · ", " • "].into_iter().find(is_between).unwrap_or("\n"))
    });
    parts.filter_map(field)
}

impl Table {
    /// The first column whose header is in a list of names, by the order of the list. Names are in lower case, with
    /// spaces around `/`.
    pub(super) fn column(&self, names: &str) -> Option<usize> {
        let headers: Vec<String> = self.header.iter().map(|header| header_words(header)).collect();
        names.split(", ").find_map(|name| headers.iter().position(|header| header == name))
    }

    /// The first column whose normalized header matches.
    pub(super) fn column_where(&self, wanted: impl Fn(&str) -> bool) -> Option<usize> {
        self.header.iter().position(|header| wanted(&header_words(header)))
    }
}

/// Normalizes a header: lower case, no emoji, single spaces. `agent(s)` becomes `agents`.
pub(super) fn header_words(header: &str) -> String {
    let spaced = without_pictographs(header).replace('/', " / ").replace("(s)", "s").to_lowercase();
    spaced.trim_end_matches([':', '*']).split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Row {
    pub(super) fn cell(&self, column: Option<usize>) -> &str {
        column.and_then(|column| self.cells.get(column)).map_or("", String::as_str)
    }
}

/// `<br>`, `<br/>`
fn is_break(html: &str) -> bool {
    html.trim_matches(['<', '>', '/', ' ']).eq_ignore_ascii_case("br")
}

/// Reads `Key: value`. The key is in lower case.
pub(super) fn field(text: &str) -> Option<(String, &str)> {
    let (key, value) = text.split_once(':')?;
    let key = key.trim().trim_matches('*').trim();
    (!key.is_empty() && key.chars().count() <= 40 && !key.contains("://"))
        .then(|| (key.to_lowercase(), value.trim().trim_start_matches('*').trim()))
}

fn blocks(source: &str) -> Vec<Block> {
    tables::join(source, parsed(source))
}

fn parsed(source: &str) -> Vec<Block> {
    let mut collector = Collector { source, ..Collector::default() };
    for (event, range) in Parser::new_ext(source, Options::ENABLE_TABLES).into_offset_iter() {
        collector.take(event, range);
    }
    // An item closes after its nested lists, so sort by start.
    collector.blocks.stable_sort_by_key(|block| block.range.start);
    collector.blocks
}

#[derive(Default)]
struct Collector<'a> {
    source: &'a str,
    blocks: Vec<Block>,
    text: String,
    table: Option<Table>,
    cells: Vec<String>,
    links: Vec<String>,
    /// Open list items, each with the text before its first inner block.
    items: Vec<(Range<usize>, Option<String>)>,
    in_code_block: bool,
    row_offset: usize,
    /// Where the last bold text begins in `text`.
    strong: usize,
}

impl Collector<'_> {
    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::Strong) => self.strong = self.text.len(),
            Event::End(TagEnd::Strong) => self.break_before_key(),
            Event::Start(tag) => self.open(&tag, range),
            Event::End(tag) => self.close(tag, range),
            Event::Text(text) if !self.in_code_block => self.text.push_str(&text),
            Event::Code(text) => self.text.push_str(&text),
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            // Cells use `<br>` for several lines.
            Event::InlineHtml(html) if is_break(&html) => self.text.push('\n'),
            _ => {}
        }
    }

    fn open(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Heading { .. } | Tag::TableCell => self.text.clear(),
            Tag::Paragraph if self.items.is_empty() => self.text.clear(),
            Tag::CodeBlock(_) => self.in_code_block = true,
            Tag::Table(_) => self.table = Some(Table { header: Vec::new(), rows: Vec::new() }),
            Tag::Link { dest_url, .. } if self.table.is_some() => self.links.push(dest_url.to_string()),
            Tag::TableRow => {
                self.cells.clear();
                self.links.clear();
                self.row_offset = range.start;
            }
            Tag::TableHead => self.cells.clear(),
            Tag::List(_) => self.settle_item(),
            Tag::Item => {
                self.text.clear();
                self.items.push((range, None));
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Heading(level) => {
                let text = self.plain();
                let kind = if self.is_ruled_paragraph(&range) {
                    BlockKind::Paragraph(text)
                } else {
                    BlockKind::Heading { level: level as u8, text: text.replace('\n', " ") }
                };
                self.blocks.push(Block { kind, range });
            }
            TagEnd::Paragraph if self.items.is_empty() => {
                let text = self.plain();
                self.blocks.push(Block { kind: BlockKind::Paragraph(text), range });
            }
            TagEnd::Paragraph => self.settle_item(),
            TagEnd::CodeBlock => self.in_code_block = false,
            TagEnd::TableCell => {
                let text = self.plain();
                self.cells.push(text);
            }
            TagEnd::TableHead => {
                let cells = std::mem::take(&mut self.cells);
                if let Some(table) = &mut self.table {
                    table.header = cells;
                }
            }
            TagEnd::TableRow => {
                let (cells, links) = (std::mem::take(&mut self.cells), std::mem::take(&mut self.links));
                let row = Row { cells, links, offset: self.row_offset };
                if let Some(table) = &mut self.table {
                    table.rows.push(row);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.blocks.push(Block { kind: BlockKind::Table(table), range });
                }
            }
            TagEnd::Item => {
                self.settle_item();
                if let Some((range, text)) = self.items.pop() {
                    self.blocks.push(Block { kind: BlockKind::Item(text.unwrap_or_default()), range });
                }
            }
            _ => {}
        }
    }

    /// `**By:** Ada **Date:** 2026-01-05` is two lines with one key each.
    fn break_before_key(&mut self) {
        let (Some(before), Some(key)) = (self.text.get(..self.strong), self.text.get(self.strong..)) else { return };
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_after_key = line.trim_end().ends_with([',', ';', '.']) || line.ends_with(' ');
        if key.ends_with(':') && is_after_key && field(line).is_some_and(|(_, value)| !value.is_empty()) {
            let end = before.trim_end_matches([' ', ',', ';', '|', '·', '•']).len();
            self.text.replace_range(end..self.strong, "\n");
        }
    }

    /// A paragraph with `---` right below it. In Markdown that is a heading; authors of team files mean a rule.
    fn is_ruled_paragraph(&self, range: &Range<usize>) -> bool {
        let source = self.source.get(range.clone()).unwrap_or_default();
        !source.trim_start().starts_with('#') && source.lines().last().is_some_and(|line| line.trim() == "---")
    }

    /// Only the first block of an item is its text.
    fn settle_item(&mut self) {
        let text = self.plain();
        if let Some((_, settled @ None)) = self.items.last_mut() {
            *settled = Some(text);
        }
    }

    fn plain(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        text.trim().to_owned()
    }
}
