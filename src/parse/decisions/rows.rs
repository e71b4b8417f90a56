//! Decisions as table rows, list items, or paragraphs that begin with a date.

use std::ops::Range;

use super::super::Files;
use super::super::markdown::{Block, BlockKind, Document, Row, field};
use super::super::words::{is_blank, is_placeholder, remark, without_box, without_pictographs};
use super::date::{self, Order, date_in, dated};
use super::found::{LocatedDecision, id};
use super::metadata;
use super::status;
use crate::model::{Decision, DecisionId, Problem, Severity, Source, plural};

const TITLE: &str = "decision, title, what, summary, description";
const BY: &str = "by, author, who, decided by, owner, agent";

/// Decisions in rows, items and paragraphs of a file.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) found: Vec<LocatedDecision>,
    /// The number of them in paragraphs.
    pub(super) paragraphs: usize,
    pub(super) problem: Option<Problem>,
}

pub(super) fn read(files: &Files, path: &str, text: &str, document: &Document<'_>, order: Order) -> Rows {
    let mut rows = Rows::default();
    let mut undated = UndatedItems::default();
    for (index, block) in document.blocks.iter().enumerate() {
        let at = block.range.start;
        let source = || files.at(path, document.line(at));
        match &block.kind {
            BlockKind::Table(table) => {
                let (Some(when), Some(title)) = (table.column("date, when"), table.column(TITLE)) else {
                    continue;
                };
                let (by, status) = (table.column(BY), table.column("status, state"));
                for row in &table.rows {
                    let source = files.at(path, document.line(row.offset));
                    let status = status::parse(row.cell(status));
                    let decision =
                        of_row(row, (when, title, by), order, source).map(|decision| Decision { status, ..decision });
                    rows.found
                        .extend(decision.map(|decision| located(document, decision, &(row.offset..row.offset + 1))));
                }
            }
            BlockKind::Item(item) => {
                let decision = item_at(document, block, item, order, source());
                undated.take(at - document.line_start(at), decision.is_some(), document.line(at));
                rows.found.extend(decision);
            }
            BlockKind::Paragraph(paragraph) if is_entry(document, block, paragraph, order) => {
                rows.paragraphs += 1;
                rows.found.push(of_paragraph(document, index, text, order, source()));
            }
            _ => {}
        }
    }
    part_nested(&mut rows.found);
    rows.problem = undated.problem(files, path);
    rows
}

fn item_at(
    document: &Document<'_>,
    block: &Block,
    item: &str,
    order: Order,
    source: Source,
) -> Option<LocatedDecision> {
    let decision = of_item(item, document.text(&block.range), order, source)?;
    Some(located(document, decision, &block.range))
}

fn located(document: &Document<'_>, decision: Decision, range: &Range<usize>) -> LocatedDecision {
    let start = document.line_start(range.start);
    LocatedDecision { decision, start, body: start, end: document.line_end(range.end) }
}

/// Items of a list below a heading over decisions, in a file that also has entries with headings.
pub(super) fn items(
    files: &Files,
    path: &str,
    document: &Document<'_>,
    span: &Range<usize>,
    order: Order,
) -> Vec<LocatedDecision> {
    const A_LIST: usize = 2;
    let own = document.blocks_in(span).filter(|block| block.range.start >= span.start);
    let found = own.filter_map(|block| {
        let BlockKind::Item(item) = &block.kind else { return None };
        item_at(document, block, item, order, files.at(path, document.line(block.range.start)))
    });
    let found: Vec<LocatedDecision> = found.collect();
    if found.len() < A_LIST { Vec::new() } else { found }
}

/// Ends each decision where the next begins: items may contain items and headings with further decisions.
pub(super) fn part_nested(found: &mut [LocatedDecision]) {
    for index in 1..found.len() {
        let next = found[index].start;
        found[index - 1].end = found[index - 1].end.min(next);
    }
}

/// Items without a date in a list of decisions.
#[derive(Default)]
struct UndatedItems {
    /// The indent of the decisions.
    column: Option<usize>,
    /// Indents and lines.
    undated: Vec<(usize, usize)>,
}

impl UndatedItems {
    fn take(&mut self, column: usize, is_decision: bool, line: usize) {
        if is_decision {
            self.column.get_or_insert(column);
        } else {
            self.undated.push((column, line));
        }
    }

    fn problem(self, files: &Files, path: &str) -> Option<Problem> {
        let column = self.column?;
        let lines: Vec<usize> = self.undated.iter().filter(|(own, _)| *own == column).map(|(_, line)| *line).collect();
        let verbs = if lines.len() == 1 { "does not say when and is" } else { "do not say when and are" };
        let message = format!("{} beside the decisions {verbs} not counted", plural(lines.len(), "item"));
        let problem = Problem::new(Severity::Note, files.at(path, *lines.first()?), "decision-undated", message);
        Some(problem.hint("begin it with its day: `- 2026-01-31: …`"))
    }
}

/// Whether a paragraph begins a decision: with a date that is bold or set apart, or with a bold decision field next to
/// a date or an author.
fn is_entry(document: &Document<'_>, block: &Block, paragraph: &str, order: Order) -> bool {
    let Some(line) = paragraph.lines().next() else { return false };
    let is_bold = document.text(&block.range).trim_start().starts_with("**");
    let dated = dated(line, order);
    let is_apart = || date::around(line, order).is_some_and(|(_, _, after)| after.trim_start().starts_with(APART));
    if dated.leads && dated.date.is_some() && !dated.bare {
        return is_bold || is_apart();
    }
    is_bold && decided(line).is_some() && {
        let metadata = metadata::read(&[block], order);
        metadata.has_date || metadata.has_author
    }
}

const APART: [char; 5] = [':', '—', '–', '-', '|'];

/// `Decision: …`
fn decided(line: &str) -> Option<&str> {
    let (key, value) = field(line)?;
    (["decision", "title"].contains(&key.as_str()) && !is_blank(value)).then_some(value)
}

fn of_paragraph(document: &Document<'_>, index: usize, text: &str, order: Order, source: Source) -> LocatedDecision {
    let start = document.blocks[index].range.start;
    let begins_other = |block: &&Block| match &block.kind {
        BlockKind::Heading { .. } | BlockKind::Table(_) => true,
        BlockKind::Paragraph(paragraph) => is_entry(document, block, paragraph, order),
        BlockKind::Item(item) => of_item(item, document.text(&block.range), order, source.clone()).is_some(),
    };
    let next = document.blocks[index + 1..].iter().position(|block| begins_other(&block)).map(|more| index + 1 + more);
    let end = next.map_or(text.len(), |next| document.line_start(document.blocks[next].range.start));
    let own: Vec<&Block> =
        document.blocks[index..next.unwrap_or(document.blocks.len())].iter().take(metadata::HEAD).collect();
    let line = match &document.blocks[index].kind {
        BlockKind::Paragraph(text) => text.lines().next().unwrap_or_default(),
        _ => "",
    };
    let found = metadata::read(&own, order);
    let dated = dated(line, order);
    let title = decided(line).map_or(dated.title, str::to_owned);
    let date = dated.date.or(found.date);
    let by = found.by.or(dated.by).or_else(|| below_first(&document.blocks[index], order));
    let body = document.line_end(start + 1).min(end);
    let below = text.get(body..end).unwrap_or_default().trim();
    let id = id(&[date.as_deref().unwrap_or(""), &title, below]);
    let decision = Decision { by, status: found.status, ..plain(id, title, date, below.to_owned(), source) };
    LocatedDecision { decision, start: document.line_start(start), body, end }
}

/// The signature in the second or third line.
fn below_first(block: &Block, order: Order) -> Option<String> {
    let BlockKind::Paragraph(text) = &block.kind else { return None };
    text.lines().skip(1).take(2).find_map(|line| metadata::signed(line.trim(), order))
}

fn of_row(
    row: &Row,
    (when, title, by): (usize, usize, Option<usize>),
    order: Order,
    source: Source,
) -> Option<Decision> {
    let title = row.cell(Some(title));
    if is_blank(title) || is_placeholder(title) {
        return None;
    }
    let by = Some(without_pictographs(row.cell(by))).filter(|by| !is_blank(by));
    let text = row.cells.join(" | ");
    let date = date_in(row.cell(Some(when)), order);
    let id = id(&[date.as_deref().unwrap_or(""), title, &text]);
    Some(Decision { by, ..plain(id, title.to_owned(), date, text, source) })
}

/// `- 2026-01-05: Title`, `- **Title** (2026-01-05): …`. An item that does not begin with a date is no decision.
fn of_item(text: &str, written: &str, order: Order, source: Source) -> Option<Decision> {
    let line = text.lines().next()?;
    if let Some((title, date)) = bold_and_dated(written, order) {
        let id = id(&[&date, &title, text]);
        return Some(plain(id, title, Some(date), text.to_owned(), source));
    }
    let found = dated(without_box(line), order);
    let id = id(&[found.date.as_deref().unwrap_or(""), &found.title, text]);
    let by = found.by.or_else(|| author_at_end(&found.title));
    let status = status::of_title(&found.title);
    let is_decision = found.leads && !found.bare;
    is_decision.then(|| Decision { by, status, ..plain(id, found.title, found.date, text.to_owned(), source) })
}

/// `- **Title** (2026-01-05)`
fn bold_and_dated(written: &str, order: Order) -> Option<(String, String)> {
    let line = written.lines().next()?.trim_start();
    let line = line.strip_prefix(['-', '*', '+']).map_or(line, str::trim_start);
    let (title, rest) = line.strip_prefix("**")?.split_once("**")?;
    let (inside, _) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
    let date = date_in(inside, order).filter(|_| dated(inside, order).leads)?;
    let title = without_pictographs(title.trim().trim_end_matches(':'));
    (!is_blank(&title)).then_some((title, date))
}

/// `Use tar. By Kane.`, `Use tar (by Kane)`, `Use tar (@kane)`. `(Kane)` alone may be a thing.
fn author_at_end(title: &str) -> Option<String> {
    let title = title.trim_end().trim_end_matches('.');
    let (_, remark) = remark(title);
    let in_brackets = remark.strip_prefix("by ").or_else(|| Some(remark).filter(|name| name.starts_with('@')));
    let last =
        || [". By ", ", by ", " — by ", " - by "].iter().find_map(|mark| title.rsplit_once(mark)).map(|two| two.1);
    in_brackets.or_else(last).map(str::trim).filter(|name| date::is_name(name)).map(str::to_owned)
}

/// A decision with only these fields.
pub(super) fn plain(id: DecisionId, title: String, date: Option<String>, text: String, source: Source) -> Decision {
    Decision {
        id,
        title,
        date,
        by: None,
        run: None,
        supersedes: None,
        scope: Vec::new(),
        tags: Vec::new(),
        text,
        status: None,
        source: Some(source),
    }
}
