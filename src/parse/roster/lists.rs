//! Members as headings or list items, for rosters without a table.

use super::super::markdown::{BlockKind, Document, field};
use super::super::words::{is_blank, remark};

pub(super) struct Found<'d> {
    pub(super) name: &'d str,
    pub(super) role: &'d str,
    pub(super) offset: usize,
}

/// Under a heading that speaks of members: `### Name — Role`, `### Name` with a line `Role: …`, else `- Name — Role`.
pub(super) fn read<'d>(document: &'d Document<'_>) -> Vec<Found<'d>> {
    let mut headings: Vec<Found<'d>> = Vec::new();
    let mut items = Vec::new();
    let mut members_level: Option<u8> = None;
    let mut waiting: Option<(&str, usize)> = None;
    for block in &document.blocks {
        let offset = block.range.start;
        match &block.kind {
            BlockKind::Heading { level, text } => {
                waiting = None;
                if members_level.is_none_or(|outer| *level <= outer) {
                    members_level = speaks_of_members(text).then_some(*level);
                } else if let Some((name, role)) = name_and_role(text) {
                    headings.push(Found { name, role, offset });
                } else if is_name(text) {
                    waiting = Some((text, offset));
                }
            }
            BlockKind::Item(text) | BlockKind::Paragraph(text) if members_level.is_some() => {
                let role = text.lines().find_map(|line| field(line).filter(|(key, _)| key == "role"));
                if let (Some((name, offset)), Some((_, role))) = (waiting, role) {
                    headings.push(Found { name, role, offset });
                    waiting = None;
                } else if matches!(block.kind, BlockKind::Item(_))
                    && let Some((name, role)) = text.lines().next().and_then(name_and_role)
                {
                    items.push(Found { name, role, offset });
                }
            }
            _ => {}
        }
    }
    if headings.is_empty() { items } else { headings }
}

fn speaks_of_members(title: &str) -> bool {
    let title = title.to_lowercase();
    let words: Vec<&str> = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let last = words.last().copied().unwrap_or_default();
    matches!(last, "members" | "roster" | "agents" | "team" | "squad" | "humans")
}

fn name_and_role(text: &str) -> Option<(&str, &str)> {
    let parted = [" — ", " – ", " - ", ": "].iter().find_map(|mark| text.split_once(mark));
    let (name, role) = parted.unwrap_or_else(|| remark(text));
    (is_name(name) && !is_blank(role)).then(|| (name.trim().trim_end_matches(':'), role.trim()))
}

/// A name is short, begins with a capital letter, and is none of the words that begin a line about a member.
fn is_name(text: &str) -> bool {
    const KEYS: [&str; 20] = [
        "role",
        "charter",
        "status",
        "model",
        "expertise",
        "owns",
        "scope",
        "name",
        "style",
        "skills",
        "tools",
        "focus",
        "responsibilities",
        "badge",
        "emoji",
        "notes",
        "project",
        "owner",
        "created",
        "stack",
    ];
    let text = text.trim().trim_start_matches('@');
    let first = text.chars().find(|c| c.is_alphanumeric());
    first.is_some_and(|c| c.is_uppercase() || c.is_numeric())
        && text.split_whitespace().count() <= 4
        && !KEYS.contains(&text.trim_end_matches(':').to_lowercase().as_str())
}
