//! The prose of the roster and the routing file, without their tables: the project, and rules of routing.

use std::collections::BTreeSet;
use std::ops::Range;

use super::identity::without_comments;
use super::markdown::{Block, BlockKind, Document};
use super::words::is_blank;
use super::{Files, abroad, line_feeds};
use crate::model::{ContextSection, Sort};

/// Words in headings of sections about the project. Other sections may be about how the team works.
const TOPICS: &str = "\
    project, context, about, stack, overview, architecture, goal, purpose, mission, vision, product, domain, \
    background, tech, convention, principle, constraint, requirement, build, pattern, repository, codebase, summary, \
    description";

/// The text right below a heading.
struct Part<'d> {
    headings: Vec<&'d str>,
    /// The heading is the file's title, or there is none.
    is_lead: bool,
    /// The text, without the heading.
    body: Range<usize>,
}

/// The sections of the roster, without members. `taken` are the offsets of the members' rows and lines.
pub(super) fn of_roster(files: &Files, document: &Document<'_>, taken: &BTreeSet<usize>) -> Vec<ContextSection> {
    let is_project = |part: &Part<'_>| part.is_lead || part.headings.iter().any(|heading| is_topic(heading));
    read(files, "team.md", document, taken, is_project)
}

/// The sections of the routing file, without rules. `taken` are the offsets of the rules. Sections about issue labels
/// matter least for routing.
pub(super) fn of_routing(files: &Files, document: &Document<'_>, taken: &BTreeSet<usize>) -> Vec<ContextSection> {
    let is_about_labels = |heading: &str| {
        let heading = heading.to_lowercase();
        heading.contains("issue") || heading.contains("label")
    };
    let is_rule = |part: &Part<'_>| !part.headings.last().is_some_and(|heading| is_about_labels(heading));
    read(files, "routing.md", document, taken, is_rule)
}

/// The coordinator's charter, unless it is blank.
pub(super) fn of_coordinator(files: &Files, path: &str) -> Option<ContextSection> {
    let text = line_feeds(files.text(path)?).trim().to_owned();
    let source = files.at(path, 1);
    (!is_blank(&text)).then_some(ContextSection { heading: String::new(), matters: true, text, source })
}

fn read(
    files: &Files,
    file: &str,
    document: &Document<'_>,
    taken: &BTreeSet<usize>,
    matters: impl Fn(&Part<'_>) -> bool,
) -> Vec<ContextSection> {
    let dropped = dropped(document, taken);
    let mut in_comment = false;
    let section = |part: Part<'_>| {
        let mut kept: Vec<(usize, String)> = Vec::new();
        let mut at = part.body.start;
        for line in document.text(&part.body).split_inclusive('\n') {
            let start = at;
            at += line.len();
            let line = without_comments(line.trim_end(), &mut in_comment);
            let before = dropped.partition_point(|range| range.start <= start).checked_sub(1);
            let is_dropped = before.and_then(|at| dropped.get(at)).is_some_and(|range| range.contains(&start));
            let is_rule = line.len() > 2
                && ["-", "*", "_"].iter().any(|mark| line.trim_matches(' ').replace(mark, "").is_empty());
            let follows_blank = kept.last().is_none_or(|(_, last)| last.is_empty());
            let is_second_blank = line.is_empty() && follows_blank;
            if !(is_dropped || is_rule || is_second_blank) {
                kept.push((start, line));
            }
        }
        while kept.pop_if(|(_, last)| last.is_empty()).is_some() {}
        let (first, _) = kept.iter().find(|(_, line)| !line.is_empty())?;
        let source = files.at(file, document.line(*first));
        let text = kept.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
        let matters = matters(&part);
        (!is_blank(&text)).then(|| ContextSection { heading: part.headings.join(" › "), matters, text, source })
    };
    parts(document).into_iter().filter_map(section).collect()
}

fn is_topic(heading: &str) -> bool {
    let heading = heading.to_lowercase();
    TOPICS.split(", ").chain(abroad::PROJECT.split(", ")).any(|word| heading.contains(word))
}

fn parts<'d>(document: &'d Document<'_>) -> Vec<Part<'d>> {
    let end = document.source.len();
    let mut parts = vec![Part { headings: Vec::new(), is_lead: true, body: 0..end }];
    let mut open: Vec<(u8, &str)> = Vec::new();
    for block in document.blocks.iter().filter(|block| is_at_margin(document, block)) {
        let BlockKind::Heading { level, text: title } = &block.kind else { continue };
        while open.pop_if(|(outer, _)| *outer >= *level).is_some() {}
        open.push((*level, title));
        if let Some(last) = parts.last_mut() {
            last.body.end = document.line_start(block.range.start);
        }
        let is_lead = parts.len() == 1 && *level == 1;
        // The file's title is no section heading, unless it names a topic.
        let named = open.iter().filter(|(level, title)| *level > 1 || is_topic(title));
        let headings = named.map(|(_, title)| *title).collect();
        parts.push(Part { headings, is_lead, body: document.line_end(block.range.end)..end });
    }
    parts
}

/// Whether a heading is outside lists and quotations.
fn is_at_margin(document: &Document<'_>, block: &Block) -> bool {
    document.text(&(document.line_start(block.range.start)..block.range.start)).trim().is_empty()
}

/// The byte ranges about members, sorted and merged.
fn dropped(document: &Document<'_>, taken: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let is_taken = |range: &Range<usize>| taken.range(range.clone()).next().is_some();
    let mut dropped: Vec<Range<usize>> =
        taken.iter().map(|offset| document.line_start(*offset)..document.line_end(*offset + 1)).collect();
    for (at, block) in document.blocks.iter().enumerate() {
        let range = match &block.kind {
            BlockKind::Table(_) => Some(block.range.clone()).filter(is_taken),
            BlockKind::Item(_) => Some(block.range.clone()).filter(|range| taken.contains(&range.start)),
            // `### Ada — Backend Dev`, with the text below it.
            BlockKind::Heading { .. } if taken.contains(&block.range.start) => {
                let mut below = document.blocks.iter().skip(at + 1);
                let next = below.find(|other| matches!(other.kind, BlockKind::Heading { .. }));
                Some(block.range.start..next.map_or(usize::MAX, |next| next.range.start))
            }
            _ => None,
        };
        dropped.extend(range.map(|range| document.line_start(range.start)..range.end));
    }
    dropped.stable_sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in dropped {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}
