//! Rules as lines: `` - `type` → agents ``, `- Work: Name`, `- Name — work`.
//!
//! A line is a rule if one side of its separator names only members of the roster. The other side is the work.
//!
//! To keep prose out: an arrow counts everywhere, but a colon, a dash, a bar or a leading name are common in notes too.
//! They count only in files without a routing table, and a leading name only if no sentence follows. A paragraph
//! counts only if each of its lines is a rule with an arrow.

use std::collections::BTreeSet;

use super::super::Files;
use super::super::markdown::{Block, BlockKind, Document};
use super::super::words::{has_word, is_blank, is_placeholder};
use super::columns::{self, TableKind};
use super::names::Named;
use super::{Cells, Roll, RoutingReader};
use crate::model::Member;

const ARROWS: [&str; 12] = ["→", "⇒", "->", "=>", "⟶", "➜", "➡", "➔", "⟹", "⇨", " >> ", "»"];
const MARKS: [&str; 5] = [": ", " — ", " – ", " - ", " | "];

/// The two sides of a line.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) subject: &'a str,
    pub(super) who: &'a str,
}

/// Reads rules, and returns their offsets.
pub(super) fn read(files: &Files, document: &Document<'_>, reader: &mut RoutingReader<'_>) -> BTreeSet<usize> {
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
            let Sides { subject, who } = sent;
            let kind = kind(heading, subject);
            let cells = Cells { subject, first: who, second: "", review: "", action: "", examples: Vec::new() };
            reader.cells(kind, &cells, files.at("routing.md", line + offset));
        }
    }
    taken
}

fn rules<'d>(block: &'d Block, routes_by_table: bool, roll: &Roll<'_>) -> Vec<Sides<'d>> {
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

/// What a line routes. Labels and paths count only below a heading about them.
fn kind(heading: &str, subject: &str) -> TableKind {
    let heading = heading.to_lowercase();
    if has_word(&heading, "label, labels") && subject.split_whitespace().count() <= 3 {
        TableKind::Labels
    } else if has_word(&heading, "owner, owners, ownership, module, modules, path, paths, files, folders")
        && subject.split(',').all(columns::is_path)
    {
        TableKind::Modules
    } else {
        TableKind::Work
    }
}

/// `work → members`. Other text after an arrow is advice for people.
fn by_arrow<'a>(line: &'a str, roll: &Roll<'_>) -> Option<Sides<'a>> {
    let (subject, who) = at_arrow(line)?;
    let subject = subject.trim().trim_end_matches(':');
    // An arrow in prose describes a sequence.
    let is_prose = subject.rsplit_once(". ").is_some_and(|(_, last)| last.split_whitespace().count() > SHORT_SENTENCE);
    let is_rule = !is_blank(subject) && !is_prose && !is_placeholder(line) && Named::all(who, roll);
    is_rule.then_some(Sides { subject, who })
}

pub(crate) fn at_arrow(line: &str) -> Option<(&str, &str)> {
    let arrow = |arrow: &&str| line.find(arrow).map(|at| (at, arrow.len()));
    let (at, length) = ARROWS.iter().filter_map(arrow).min_by_key(|(at, _)| *at)?;
    Some((line.get(..at)?, line.get(at + length..)?))
}

/// `work: members`, `work — members`. After a colon, all that a cell may contain is allowed; otherwise only names.
fn by_mark<'a>(line: &'a str, roll: &Roll<'_>) -> Option<Sides<'a>> {
    if is_placeholder(line) {
        return None;
    }
    let (subject, who) = line
        .split_once(": ")
        .filter(|(_, who)| Named::all(who, roll))
        .or_else(|| cuts(line).find(|(_, who)| Named::exactly(who, roll)))?;
    let subject = subject.trim().trim_end_matches(':');
    // `Role: Name` and `Owner: Name` describe members.
    let is_rule = !is_blank(subject) && !Named::all(subject, roll) && !columns::is_of_agents(subject);
    is_rule.then_some(Sides { subject, who })
}

/// `Name: work, work`, and the same with an arrow.
fn from_name<'a>(line: &'a str, roll: &Roll<'_>) -> Option<Sides<'a>> {
    let (who, subject) = named_in_front(line, roll)?;
    let subject = subject.trim();
    let is_rule = is_of_topics(subject) && !is_placeholder(line) && begins_with_name(subject, roll).is_none();
    (is_rule && !Named::all(subject, roll)).then_some(Sides { subject, who })
}

pub(super) fn named_in_front<'a>(line: &'a str, roll: &Roll<'_>) -> Option<(&'a str, &'a str)> {
    at_arrow(line).into_iter().chain(cuts(line)).find(|(who, _)| Named::exactly(who, roll))
}

/// The line split at each separator.
pub(super) fn cuts(line: &str) -> impl Iterator<Item = (&str, &str)> {
    MARKS.iter().filter_map(|mark| line.split_once(mark))
}

pub(super) fn begins_with_name<'m>(text: &str, roll: &Roll<'m>) -> Option<&'m Member> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = word.trim_end_matches([',', ':', ';']);
    roll.named(["'s", "’s"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word))
}

/// Whether a text lists work, and is no statement about a member.
fn is_of_topics(text: &str) -> bool {
    const SAYING: [&str; 24] = [
        "is", "was", "has", "had", "never", "always", "not", "no", "does", "do", "should", "must", "may", "can",
        "will", "only", "on", "off", "if", "when", "unless", "until", "see", "please",
    ];
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let is_sentence = text.ends_with(['.', '!', '?']) || text.contains(". ");
    !is_blank(text) && !is_sentence && !SAYING.contains(&first.as_str()) && text.split_whitespace().count() <= LONGEST
}

/// The most words after a period: `Bugs. Whatever is broken`.
const SHORT_SENTENCE: usize = 6;

/// The most words in a list of work.
const LONGEST: usize = 16;
