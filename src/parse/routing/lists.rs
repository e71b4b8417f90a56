//! Rules as lines: `` - `type` → agents ``.
//!
//! A line is a rule if the text after its arrow names only members of the roster. The text before it is the work. Without an
//! arrow, `- type: agents` and `- agent: types` are rules where most items of a section are, and more than one.
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
    let is_heading = |block: &Block| matches!(block.kind, BlockKind::Heading { .. });
    for section in document.blocks.chunk_by(|_, next| !is_heading(next)) {
        let heading = section.first().map_or("", |block| match &block.kind {
            BlockKind::Heading { text, .. } => text,
            _ => "",
        });
        let lists_members = lists_members(section, reader.roll);
        for block in section {
            let line = document.line(block.range.start);
            for (offset, (subject, who)) in rules(block, lists_members, reader.roll).into_iter().enumerate() {
                taken.insert(block.range.start);
                let kind = kind(heading, subject);
                let cells = Cells { subject, first: who, second: "", review: "", action: "", examples: Vec::new() };
                reader.cells(kind, &cells, files.at("routing.md", line + offset));
            }
        }
    }
    taken
}

fn item(block: &Block) -> Option<&str> {
    match &block.kind {
        BlockKind::Item(text) => text.lines().next(),
        _ => None,
    }
}

/// Whether most items of a section put work and members beside each other, and more than one does.
fn lists_members(section: &[Block], roll: &MemberIndex<'_>) -> bool {
    let items = || section.iter().filter_map(item);
    let found = items().filter(|line| beside(line, roll).is_some()).count();
    found > 1 && found * 2 > items().count()
}

/// The rules of a block: the work and the members.
fn rules<'d>(block: &'d Block, lists_members: bool, roll: &MemberIndex<'_>) -> Vec<(&'d str, &'d str)> {
    if let BlockKind::Paragraph(text) = &block.kind {
        let rule = |line| by_arrow(line, roll).filter(|(_, who)| Named::exactly(who, roll));
        return text.lines().map(rule).collect::<Option<_>>().unwrap_or_default();
    }
    let line = item(block).unwrap_or_default();
    by_arrow(line, roll).or_else(|| beside(line, roll).filter(|_| lists_members)).into_iter().collect()
}

/// `work: members`, `member — work`, `member owns work`: the work and the members.
pub(super) fn beside<'a>(line: &'a str, roll: &MemberIndex<'_>) -> Option<(&'a str, &'a str)> {
    let is_member = |text: &str| Named::exactly(text, roll);
    let pair = |(left, right): (&'a str, &'a str)| {
        let owner = OWNS.iter().find_map(|owns| left.strip_suffix(owns.trim_end())).unwrap_or(left);
        // A sentence about a member says how it works.
        let is_work = owner != left || !right.ends_with('.');
        let by_owner = (is_work && is_member(owner)).then_some((right, owner));
        by_owner.or_else(|| is_member(right).then_some((left, right))).filter(|(work, _)| !is_blank(work))
    };
    cuts(line).find_map(pair).or_else(|| {
        let (owner, work) = OWNS.iter().find_map(|owns| line.split_once(owns))?;
        is_member(owner).then_some((work, owner))
    })
}

const OWNS: [&str; 2] = [" owns ", " handles "];

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
    // `@ada, @bob — why`
    let who = cuts(who).map(|(names, _)| names).find(|names| Named::exactly(names, roll)).unwrap_or(who);
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

/// The line split at each separator.
fn cuts(line: &str) -> impl Iterator<Item = (&str, &str)> {
    MARKS.iter().filter_map(|mark| line.split_once(mark))
}

pub(super) fn begins_with_name<'m>(text: &str, roll: &MemberIndex<'m>) -> Option<&'m Member> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = word.trim_end_matches([',', ':', ';']);
    roll.named(["'s", "’s"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word))
}

/// The most words after a period: `Bugs. Whatever is broken`.
const SHORT_SENTENCE: usize = 6;
