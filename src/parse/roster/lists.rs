//! Members as headings or list items, for rosters without a table.

use super::super::abroad;
use super::super::markdown::{BlockKind, Document, field};
use super::super::words::{is_blank, remark};

pub(super) struct Found<'d> {
    pub(super) name: &'d str,
    pub(super) role: &'d str,
    pub(super) status: &'d str,
    pub(super) offset: usize,
}

/// Under a heading that speaks of members: `### Name — Role`, `### Name` with a line `Role: …`, else `- Name — Role`, or
/// `- Name` over a list with `Role: …`.
pub(super) fn read<'d>(document: &'d Document<'_>) -> Vec<Found<'d>> {
    let mut reader = Reader::default();
    for block in &document.blocks {
        match &block.kind {
            BlockKind::Heading { level, text } => reader.heading(*level, text, block.range.start),
            BlockKind::Item(text) if reader.members.is_some() => reader.item(text, &block.range),
            BlockKind::Paragraph(text) if reader.members.is_some() => {
                reader.paragraph(text, &block.range, document.text(&block.range).starts_with("**"));
            }
            _ => {}
        }
    }
    if reader.headings.is_empty() { reader.items } else { reader.headings }
}

#[derive(Default)]
struct Reader<'d> {
    headings: Vec<Found<'d>>,
    items: Vec<Found<'d>>,
    /// The level of the heading that speaks of members.
    members: Option<u8>,
    /// A name whose role has not come yet: whether it is an item's, and where what is about it ends.
    waiting: Option<(&'d str, usize, bool)>,
    /// Up to where lines are about the last one found: a heading's to the next heading, an item's within it.
    about: usize,
    /// Below the title of the whole file, a section about something else.
    aside: bool,
}

impl<'d> Reader<'d> {
    fn heading(&mut self, level: u8, text: &'d str, offset: usize) {
        (self.waiting, self.about, self.aside) = (None, 0, false);
        let text = without_number(text);
        let is_below = self.members.is_some_and(|outer| level > outer);
        if let Some((name, role)) = name_and_role(text).filter(|_| is_below) {
            self.headings.push(Found { name, role, status: "", offset });
            self.about = usize::MAX;
        } else if speaks_of_members(text) {
            self.members = Some(level);
        } else if !is_below {
            self.members = None;
        } else {
            self.waiting = is_name(text).then_some((text, offset, false));
            self.aside = self.members == Some(1);
        }
    }

    fn item(&mut self, text: &'d str, range: &std::ops::Range<usize>) {
        let line = text.lines().next().unwrap_or_default();
        if self.waiting.is_some() || range.start < self.about {
            self.lines(text, range.start);
            if range.start < self.about {
                return;
            }
        }
        if self.aside {
            return;
        }
        if let Some((name, role)) = name_and_role(line) {
            self.items.push(Found { name, role, status: "", offset: range.start });
            (self.waiting, self.about) = (None, range.end);
        } else if is_name(line) && self.waiting.is_none_or(|(_, _, is_item)| is_item) {
            (self.waiting, self.about) = (Some((line, range.start, true)), range.end);
        }
    }

    /// `**Name** — Role`, and what is said of it below.
    fn paragraph(&mut self, text: &'d str, range: &std::ops::Range<usize>, is_bold: bool) {
        let line = text.lines().next().unwrap_or_default();
        let named = name_and_role(line).filter(|_| is_bold && !self.aside && self.about < usize::MAX);
        // `**Status:** Active` is no name.
        let Some((name, role)) = named.filter(|_| self.waiting.is_none() && !line.contains(':')) else {
            return self.lines(text, range.start);
        };
        self.items.push(Found { name, role, status: "", offset: range.start });
        self.about = range.end;
    }

    /// The role and the status of whoever was named last.
    fn lines(&mut self, text: &'d str, at: usize) {
        for (key, value) in text.lines().filter_map(field) {
            match (key.as_str(), self.waiting) {
                ("role", Some((name, offset, is_item))) if !is_item || at < self.about => {
                    let list = if is_item { &mut self.items } else { &mut self.headings };
                    list.push(Found { name, role: value, status: "", offset });
                    self.waiting = None;
                    self.about = if is_item { self.about } else { usize::MAX };
                }
                ("status" | "state", None) if at < self.about => {
                    let list = if self.about == usize::MAX { &mut self.headings } else { &mut self.items };
                    if let Some(found) = list.last_mut() {
                        found.status = value;
                    }
                }
                _ => {}
            }
        }
    }
}

/// `1. Ada` is Ada.
fn without_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if rest.len() < text.len() { rest.strip_prefix(['.', ')']) } else { None };
    rest.filter(|rest| rest.starts_with(' ')).map_or(text, str::trim_start)
}

pub(super) fn speaks_of_members(title: &str) -> bool {
    let title = title.to_lowercase();
    let words: Vec<&str> = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let last = words.last().copied().unwrap_or_default();
    matches!(last, "members" | "roster" | "agents" | "team" | "squad" | "humans") || abroad::MEMBERS.contains(&last)
}

fn name_and_role(text: &str) -> Option<(&str, &str)> {
    let parted = [" — ", " – ", " - ", ": "].iter().find_map(|mark| text.split_once(mark));
    let (name, role) = parted.unwrap_or_else(|| remark(text));
    (is_name(name) && !is_blank(role)).then(|| (name.trim().trim_end_matches(':'), first_sentence(role.trim())))
}

/// A role is a few words; what follows describes the work. `Sr. Developer` has no sentence in it.
fn first_sentence(role: &str) -> &str {
    match role.split_once(". ") {
        Some((first, _)) if first.chars().count() > 3 => first,
        _ => role,
    }
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
