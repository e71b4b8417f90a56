//! Rules as lines: `` - `type` → agents ``, `- Work: Name`, `- Name — work`.
//!
//! The roster is the witness. A line is a rule when what stands on one side of its mark names members and nothing else;
//! the other side is the work. What keeps prose out: an arrow sends somewhere wherever it stands, but a colon, a dash, a
//! bar, and a name in front are also how people write notes, so these only count in a file in which no table routes, and
//! behind a name not where a sentence follows. A paragraph counts only when each of its lines is a rule with an arrow.

use std::collections::BTreeSet;

use super::super::Files;
use super::super::markdown::{Block, BlockKind, Document};
use super::super::words::{is_blank, is_placeholder};
use super::columns::{self, TableKind};
use super::names::Named;
use super::{Cells, Reader, Roll};
use crate::model::Member;

const ARROWS: [&str; 12] = ["→", "⇒", "->", "=>", "⟶", "➜", "➡", "➔", "⟹", "⇨", " >> ", "»"];
const MARKS: [&str; 5] = [": ", " — ", " – ", " - ", " | "];

/// A line's two sides.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) subject: &'a str,
    pub(super) who: &'a str,
}

/// Gives the offsets of the lines that are rules.
pub(super) fn read(files: &Files, document: &Document<'_>, reader: &mut Reader<'_>) -> BTreeSet<usize> {
    let mut taken = BTreeSet::new();
    let routes_by_table = !reader.routing.rules.is_empty();
    let mut heading = "";
    for block in &document.blocks {
        if let BlockKind::Heading { text, .. } = &block.kind {
            heading = text;
        }
        let line = document.line(block.range.start);
        for (offset, sent) in rules(block, routes_by_table, reader.roll).into_iter().enumerate() {
            taken.insert(block.range.start);
            let Sent { subject, who } = sent;
            let kind = kind(heading, subject);
            let cells = Cells { subject, first: who, second: "", review: "", action: "", examples: Vec::new() };
            reader.cells(kind, &cells, files.at("routing.md", line + offset));
        }
    }
    taken
}

fn rules<'d>(block: &'d Block, routes_by_table: bool, roll: &Roll<'_>) -> Vec<Sent<'d>> {
    match &block.kind {
        BlockKind::Item(text) => {
            let line = text.lines().next().unwrap_or_default();
            let loose = || if routes_by_table { None } else { by_mark(line, roll).or_else(|| from_name(line, roll)) };
            by_arrow(line, roll).or_else(loose).into_iter().collect()
        }
        BlockKind::Paragraph(text) => {
            let rule = |line| by_arrow(line, roll).filter(|sent| Named::exactly(sent.who, roll));
            text.lines().map(rule).collect::<Option<_>>().unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// What a line under a heading sends. Labels and paths are such only where the heading says so.
fn kind(heading: &str, subject: &str) -> TableKind {
    let heading = heading.to_lowercase();
    let says = |words: &[&str]| heading.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word));
    if says(&["label", "labels"]) && subject.split_whitespace().count() <= 3 {
        TableKind::Labels
    } else if says(&["owner", "owners", "ownership", "module", "modules", "path", "paths", "files", "folders"])
        && subject.split(',').all(columns::is_path)
    {
        TableKind::Modules
    } else {
        TableKind::Work
    }
}

/// `work → members`. Whatever else stands behind an arrow is advice for people.
fn by_arrow<'a>(line: &'a str, roll: &Roll<'_>) -> Option<Sent<'a>> {
    let (subject, who) = at_arrow(line)?;
    let subject = subject.trim().trim_end_matches(':');
    // A sentence after another may have an arrow too, and tells of an order of things.
    let is_prose = subject.rsplit_once(". ").is_some_and(|(_, last)| last.split_whitespace().count() > SHORT_SENTENCE);
    let is_rule = !is_blank(subject) && !is_prose && !is_placeholder(line) && Named::all(who, roll);
    is_rule.then_some(Sent { subject, who })
}

pub(crate) fn at_arrow(line: &str) -> Option<(&str, &str)> {
    let arrow = |arrow: &&str| line.find(arrow).map(|at| (at, arrow.len()));
    let (at, length) = ARROWS.iter().filter_map(arrow).min_by_key(|(at, _)| *at)?;
    Some((line.get(..at)?, line.get(at + length..)?))
}

/// `work: members`, `work — members`. A colon goes with all that may stand in a cell, the other marks with names only.
fn by_mark<'a>(line: &'a str, roll: &Roll<'_>) -> Option<Sent<'a>> {
    if is_placeholder(line) {
        return None;
    }
    let (subject, who) = line
        .split_once(": ")
        .filter(|(_, who)| Named::all(who, roll))
        .or_else(|| cuts(line).find(|(_, who)| Named::exactly(who, roll)))?;
    let subject = subject.trim().trim_end_matches(':');
    // `Role: Name` says who somebody is, and `Owner: Name` what for.
    let is_rule = !is_blank(subject) && !Named::all(subject, roll) && !columns::is_of_agents(subject);
    is_rule.then_some(Sent { subject, who })
}

/// `Name: work, work`, and the same with an arrow.
fn from_name<'a>(line: &'a str, roll: &Roll<'_>) -> Option<Sent<'a>> {
    let (who, subject) = named_in_front(line, roll)?;
    let subject = subject.trim();
    let is_rule = is_of_topics(subject) && !is_placeholder(line) && begins_with_name(subject, roll).is_none();
    (is_rule && !Named::all(subject, roll)).then_some(Sent { subject, who })
}

pub(super) fn named_in_front<'a>(line: &'a str, roll: &Roll<'_>) -> Option<(&'a str, &'a str)> {
    at_arrow(line).into_iter().chain(cuts(line)).find(|(who, _)| Named::exactly(who, roll))
}

/// The line parted at each mark.
pub(super) fn cuts(line: &str) -> impl Iterator<Item = (&str, &str)> {
    MARKS.iter().filter_map(|mark| line.split_once(mark))
}

pub(super) fn begins_with_name<'m>(text: &str, roll: &Roll<'m>) -> Option<&'m Member> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = word.trim_end_matches([',', ':', ';']);
    roll.named(["'s", "’s"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word))
}

/// Whether a text lists work rather than saying something of somebody.
fn is_of_topics(text: &str) -> bool {
    const SAYING: [&str; 24] = [
        "is", "was", "has", "had", "never", "always", "not", "no", "does", "do", "should", "must", "may", "can",
        "will", "only", "on", "off", "if", "when", "unless", "until", "see", "please",
    ];
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let is_sentence = text.ends_with(['.', '!', '?']) || text.contains(". ");
    !is_blank(text) && !is_sentence && !SAYING.contains(&first.as_str()) && text.split_whitespace().count() <= LONGEST
}

/// Words of work behind an abbreviation or a title: `Bugs. Whatever is broken`.
const SHORT_SENTENCE: usize = 6;

/// Words of a list of work.
const LONGEST: usize = 16;
