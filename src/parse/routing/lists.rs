//! Rules as lines: `` - `type` → agents ``.
//!
//! A line is a rule if the text after its arrow names only members of the roster. The text before it is the work.
//!
//! A paragraph counts only if each of its lines is a rule.

use std::collections::BTreeSet;

use super::super::Files;
use super::super::markdown::{Block, BlockKind, Document};
use super::super::words::{has_word, is_blank, is_placeholder};
use super::columns::{self, TableKind};
use super::names::Named;
use super::{Cells, MemberIndex, RoutingReader};
use crate::model::Member;

const ARROWS: [&str; 12] = ["→", "⇒", "->", "=>", "⟶", "➜", "➡", "➔", "⟹", "⇨", " >> ", "»"];
const MARKS: [&str; 5] = [": ", " — ", " – ", " - ", " | "];

/// Reads rules, and returns their offsets.
pub(super) fn read(files: &Files, document: &Document<'_>, reader: &mut RoutingReader<'_>) -> BTreeSet<usize> {
    let mut taken = BTreeSet::new();
    let mut heading = "";
    for block in &document.blocks {
        if let BlockKind::Heading { text, .. } = &block.kind {
            heading = text;
        }
        let line = document.line(block.range.start);
        for (offset, (subject, who)) in rules(block, reader.roll).into_iter().enumerate() {
            taken.insert(block.range.start);
            let kind = kind(heading, subject);
            let cells = Cells { subject, first: who, second: "", review: "", action: "", examples: Vec::new() };
            reader.cells(kind, &cells, files.at("routing.md", line + offset));
        }
    }
    taken
}

/// The rules of a block: the work and the members.
fn rules<'d>(block: &'d Block, roll: &MemberIndex<'_>) -> Vec<(&'d str, &'d str)> {
    match &block.kind {
        BlockKind::Item(text) => {
            let line = text.lines().next().unwrap_or_default();
            by_arrow(line, roll).into_iter().collect()
        }
        BlockKind::Paragraph(text) => {
            let rule = |line| by_arrow(line, roll).filter(|(_, who)| Named::exactly(who, roll));
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
fn by_arrow<'a>(line: &'a str, roll: &MemberIndex<'_>) -> Option<(&'a str, &'a str)> {
    let (subject, who) = at_arrow(line)?;
    let subject = subject.trim().trim_end_matches(':');
    // An arrow in prose describes a sequence.
    let is_prose = subject.rsplit_once(". ").is_some_and(|(_, last)| last.split_whitespace().count() > SHORT_SENTENCE);
    let is_rule = !is_blank(subject) && !is_prose && !is_placeholder(line) && Named::all(who, roll);
    is_rule.then_some((subject, who))
}

pub(crate) fn at_arrow(line: &str) -> Option<(&str, &str)> {
    let arrow = |arrow: &&str| line.find(arrow).map(|at| (at, arrow.len()));
    let (at, length) = ARROWS.iter().filter_map(arrow).min_by_key(|(at, _)| *at)?;
    Some((line.get(..at)?, line.get(at + length..)?))
}

pub(super) fn named_in_front<'a>(line: &'a str, roll: &MemberIndex<'_>) -> Option<(&'a str, &'a str)> {
    at_arrow(line).into_iter().chain(cuts(line)).find(|(who, _)| Named::exactly(who, roll))
}

/// The line split at each separator.
pub(super) fn cuts(line: &str) -> impl Iterator<Item = (&str, &str)> {
    MARKS.iter().filter_map(|mark| line.split_once(mark))
}

pub(super) fn begins_with_name<'m>(text: &str, roll: &MemberIndex<'m>) -> Option<&'m Member> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = word.trim_end_matches([',', ':', ';']);
    roll.named(["'s", "’s"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word))
}

/// The most words after a period: `Bugs. Whatever is broken`.
const SHORT_SENTENCE: usize = 6;
