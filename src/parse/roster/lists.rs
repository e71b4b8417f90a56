//! Rosters without a table: members as headings or list items.

use super::super::abroad;
use super::super::markdown::{BlockKind, Document, field};
use super::super::words::{is_blank, listed, remark, without_box, words};
use super::names::{is_role, without_number};

/// A member in a list or a heading.
pub(super) struct ListedMember<'d> {
    pub(super) name: &'d str,
    pub(super) role: &'d str,
    /// The heading above it.
    pub(super) heading: &'d str,
    pub(super) offset: usize,
}

/// The contents of sections about members.
pub(super) struct Lists<'d> {
    pub(super) members: Vec<ListedMember<'d>>,
    /// Headings and items that look like members but have no role.
    pub(super) unread: Vec<(&'d str, usize)>,
}

/// Below a heading about members: `### Name — Role`, else `- Name — Role`.
pub(super) fn read<'d>(document: &'d Document<'_>) -> Lists<'d> {
    let (mut headings, mut items) = (Vec::new(), Vec::new());
    let (mut unread, mut loose) = (Vec::new(), Vec::new());
    let mut section: Option<(u8, &str)> = None;
    // Whether the section has rows of a table that Markdown does not read as one: then members are not its list.
    let mut has_rows = false;
    // The end of the item of the last member: what is inside is about that member.
    let mut about = 0;
    for block in &document.blocks {
        let offset = block.range.start;
        match &block.kind {
            BlockKind::Heading { level, text } => {
                let text = without_number(text);
                has_rows = false;
                let below = section.filter(|(outer, _)| level > outer);
                match (below, parts(text)) {
                    (Some((_, heading)), Some((name, role))) => {
                        headings.push(ListedMember { name, role, heading, offset });
                    }
                    _ if speaks_of_members(text) => section = Some((*level, text)),
                    // Below a title such as `Crew`, a section may be about anything.
                    _ => {
                        section = below.filter(|(outer, _)| *outer > 1);
                        unread.extend(section.filter(|_| is_name(text)).map(|_| (text, offset)));
                    }
                }
            }
            BlockKind::Paragraph(text) => has_rows |= text.lines().any(|line| line.matches('|').count() > 1),
            BlockKind::Item(text) if offset >= about => {
                let Some((_, heading)) = section else { continue };
                let line = without_box(text.lines().next().unwrap_or_default());
                let is_field = has_rows && field(line).is_some();
                if let Some((name, role)) = parts(line).filter(|_| !is_field) {
                    items.push(ListedMember { name, role, heading, offset });
                    about = block.range.end;
                } else if document.text(&block.range).contains("**") && field(line).is_none() {
                    loose.push((line, offset));
                }
            }
            _ => {}
        }
    }
    // Below members as headings, items are about them.
    if headings.is_empty() {
        unread.append(&mut loose);
    }
    let mut members = if headings.is_empty() { items } else { headings };
    let is_turned = |found: &ListedMember<'_>| is_role(found.name) && !is_role(found.role) && is_name(found.role);
    // `Lead: Ada`
    if members.iter().all(is_turned) {
        members.iter_mut().for_each(|found| std::mem::swap(&mut found.name, &mut found.role));
    }
    Lists { members, unread }
}

/// Whether a heading is about members.
pub(super) fn speaks_of_members(title: &str) -> bool {
    const WORDS: &str = "members, roster, agents, team, squad, humans, bench, alumni, crew, specialists, bots";
    let title = remark(title).0.to_lowercase();
    words(&title).next_back().is_some_and(|last| listed(WORDS, last) || listed(abroad::MEMBERS, last))
}

/// `Name — Role`, `Name: Role` and `Name (Role)`.
fn parts(text: &str) -> Option<(&str, &str)> {
    let (name, role) =
        [" — ", " – ", " - ", ": "].iter().find_map(|mark| text.split_once(mark)).unwrap_or_else(|| remark(text));
    let name = name.trim().trim_end_matches(':');
    // `~~Hob — Data~~ (left)`
    let role = role.split("~~").next().unwrap_or(role);
    (is_name(name) && !is_blank(role)).then(|| (name, first_sentence(role.trim())))
}

/// The role is the first sentence; the rest describes the work. `Sr. Developer` is not cut.
fn first_sentence(role: &str) -> &str {
    match role.split_once(". ") {
        Some((first, _)) if first.chars().count() > 3 => first,
        _ => role,
    }
}

/// Whether a text can be a name: short, with a capital letter or `@` first, and no field key.
fn is_name(text: &str) -> bool {
    const KEYS: &str = "\
        role, charter, status, model, expertise, owns, scope, name, style, skills, tools, focus, responsibilities, \
        badge, emoji, note, notes, project, owner, created, updated, last updated, stack, tech stack, universe, \
        goal, mission, description, repository, important, warning, language";
    let text = text.trim();
    let first = text.chars().find(|c| c.is_alphanumeric());
    first.is_some_and(|c| !c.is_lowercase() || text.contains('@'))
        && text.split_whitespace().count() <= 4
        && !listed(KEYS, &text.trim_end_matches(':').to_lowercase())
}
