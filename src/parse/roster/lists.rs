//! Rosters without a table: members as headings or list items.

use super::super::abroad;
use super::super::markdown::{BlockKind, Document, field};
use super::super::words::{is_blank, listed, remark, trim_pictographs, without_box, words};
use super::folders::Folders;
use super::names::{is_role, without_number};
use super::standing::status_of;

/// A member in a list or a heading.
pub(super) struct ListedMember<'d> {
    pub(super) name: &'d str,
    pub(super) role: &'d str,
    pub(super) status: &'d str,
    /// The heading above it.
    pub(super) heading: &'d str,
    pub(super) offset: usize,
}

/// The contents of sections about members.
#[derive(Default)]
pub(super) struct Lists<'d> {
    pub(super) members: Vec<ListedMember<'d>>,
    /// Items that look like members but have no role.
    pub(super) unread: Vec<(&'d str, usize)>,
}

/// Below a heading about members: `### Name — Role`, or `### Name` with a line `Role: …`; else `- Name — Role`, or
/// `- Name` with a nested `Role: …`.
pub(super) fn read<'d>(document: &'d Document<'_>, folders: &Folders) -> Lists<'d> {
    let mut reader = ListReader::new(folders);
    for block in &document.blocks {
        let source = document.text(&block.range);
        match &block.kind {
            BlockKind::Heading { level, text } => reader.heading(*level, text, block.range.start),
            BlockKind::Item(text) if reader.members.is_some() => reader.item(text, &block.range, source),
            BlockKind::Paragraph(text) if reader.members.is_some() => reader.paragraph(text, &block.range, source),
            _ => {}
        }
    }
    reader.settle();
    let is_headed = !reader.headings.is_empty();
    let mut members = if is_headed { reader.headings } else { reader.items };
    let is_new = |found: &ListedMember<'_>| members.iter().all(|member| member.name != found.name);
    let more: Vec<ListedMember<'_>> = reader.named_folders.into_iter().filter(is_new).collect();
    members.extend(more);
    if members.is_empty() {
        members = numbered(document);
    }
    turn_role_first(&mut members, folders);
    Lists { members, unread: if is_headed { Vec::new() } else { reader.unread } }
}

/// `## Agent 1: Ada — Pilot`, `## Agent 2: Researcher`: two or more are a team under any heading.
fn numbered<'d>(document: &'d Document<'_>) -> Vec<ListedMember<'d>> {
    let found = document.blocks.iter().filter_map(|block| {
        let BlockKind::Heading { text, .. } = &block.kind else { return None };
        let number = text.strip_prefix("Agent ")?;
        let behind = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = [":", " —", " –", " -"].iter().find_map(|mark| behind.strip_prefix(mark))?.trim();
        let (name, role, status) = parts(rest, false).unwrap_or((rest, rest, ""));
        let found = ListedMember { name, role, status, heading: "", offset: block.range.start };
        (behind.len() < number.len() && !is_blank(rest)).then_some(found)
    });
    Some(found.collect()).filter(|found: &Vec<ListedMember<'_>>| found.len() > 1).unwrap_or_default()
}

/// Swaps name and role if all are written `Lead: Ada`. Decides by the side that names folders, or else by the side that
/// consists of roles.
fn turn_role_first(members: &mut [ListedMember<'_>], folders: &Folders) {
    let named =
        |side: fn(&ListedMember<'_>) -> String| members.iter().filter(|found| folders.is_named(&side(found))).count();
    let (left, right) = (named(|found| found.name.to_owned()), named(|found| found.role.to_owned()));
    let is_turned = |found: &ListedMember<'_>| is_role(found.name) && !is_role(found.role) && is_name(found.role, true);
    // Folders may be named after roles.
    let is_of_roles = members.iter().all(|found| is_role(found.role));
    if (right > left && !is_of_roles) || (left == 0 && !members.is_empty() && members.iter().all(is_turned)) {
        members.iter_mut().for_each(|found| (found.name, found.role) = (found.role, found.name));
    }
}

struct ListReader<'d, 'f> {
    folders: &'f Folders,
    headings: Vec<ListedMember<'d>>,
    items: Vec<ListedMember<'d>>,
    /// Headings without a role that name agents' folders.
    named_folders: Vec<ListedMember<'d>>,
    unread: Vec<(&'d str, usize)>,
    /// The level of the heading about members.
    members: Option<u8>,
    /// The last heading.
    title: &'d str,
    /// A name without a role so far: text, offset, and whether it is an item.
    waiting: Option<(&'d str, usize, bool)>,
    /// The end of the text about the last member: `usize::MAX` up to the next heading, or the end of the item.
    about: usize,
    /// In a section about something else, below the file's title.
    aside: bool,
}

impl<'d, 'f> ListReader<'d, 'f> {
    fn new(folders: &'f Folders) -> Self {
        Self {
            folders,
            headings: Vec::new(),
            items: Vec::new(),
            named_folders: Vec::new(),
            unread: Vec::new(),
            members: None,
            title: "",
            waiting: None,
            about: 0,
            aside: false,
        }
    }

    fn found(&self, (name, role, status): Parts<'d>, offset: usize) -> ListedMember<'d> {
        ListedMember { name, role, status, heading: self.title, offset }
    }

    fn heading(&mut self, level: u8, text: &'d str, offset: usize) {
        self.settle();
        (self.about, self.aside) = (0, false);
        let text = without_number(text);
        let is_below = self.members.is_some_and(|outer| level > outer);
        if let Some(parts) = parts(text, false).filter(|_| is_below) {
            self.headings.push(self.found(parts, offset));
            self.about = usize::MAX;
        } else if speaks_of_members(text) {
            (self.members, self.title) = (Some(level), text);
        } else if !is_below {
            self.members = None;
        } else {
            self.waiting = is_name(text, false).then_some((text, offset, false));
            self.aside = self.members == Some(1);
        }
    }

    fn item(&mut self, text: &'d str, range: &std::ops::Range<usize>, source: &str) {
        let line = without_box(text.lines().next().unwrap_or_default());
        if self.waiting.is_some() || range.start < self.about {
            self.lines(text, range.start);
            if range.start < self.about {
                return;
            }
        }
        if self.aside {
            return;
        }
        let is_marked = is_marked(source);
        if let Some(parts) = parts(line, is_marked) {
            self.settle();
            self.items.push(self.found(parts, range.start));
            self.about = range.end;
        } else if is_name(line, is_marked) && self.waiting.is_none_or(|(_, _, is_item)| is_item) {
            self.settle();
            (self.waiting, self.about) = (Some((line, range.start, true)), range.end);
        } else if is_marked && self.waiting.is_none() && field(line).is_none() {
            self.unread.push((line, range.start));
        }
    }

    /// `**Name** — Role`, line by line, and further lines about the last member.
    fn paragraph(&mut self, text: &'d str, range: &std::ops::Range<usize>, source: &str) {
        let mut offset = range.start;
        let mut begins_one = false;
        let starts: Vec<&str> = source.split_inclusive('\n').collect();
        for (at, line) in text.lines().enumerate() {
            let start = starts.get(at).copied().unwrap_or_default();
            let is_bold = start.starts_with("**") && !self.aside && self.about < usize::MAX;
            // `**Status:** Active` is no name.
            let named = parts(line, false).filter(|_| is_bold && self.waiting.is_none() && !line.contains(':'));
            if let Some(parts) = named {
                self.items.push(self.found(parts, offset));
                begins_one = true;
            } else if !begins_one {
                self.lines(line, range.start);
            }
            offset += start.len();
        }
        if begins_one {
            self.about = range.end;
        }
    }

    /// Reads the role and the status of the last name.
    fn lines(&mut self, text: &'d str, at: usize) {
        for (key, value) in text.lines().filter_map(field) {
            match (key.as_str(), self.waiting) {
                ("role", Some((name, offset, is_item))) if !is_item || at < self.about => {
                    let found = self.found((name, value, ""), offset);
                    let list = if is_item { &mut self.items } else { &mut self.headings };
                    list.push(found);
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

    /// Ends a name without a role. If it has a folder, its charter has the role.
    fn settle(&mut self) {
        let Some((name, offset, is_item)) = self.waiting.take() else { return };
        if self.folders.is_named(name) {
            let found = self.found((name, "", ""), offset);
            let list = if is_item { &mut self.items } else { &mut self.named_folders };
            list.push(found);
        } else if is_item {
            self.unread.push((name, offset));
        }
    }
}

/// Whether an item begins with a marked name: bold, linked, struck out, with `@` or after an emoji.
fn is_marked(source: &str) -> bool {
    let text = source.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || "-+.)".contains(c));
    let text = text.strip_prefix("* ").unwrap_or(text).trim_start();
    let text = without_box(text);
    let plain = trim_pictographs(text);
    !text.starts_with(plain) || ["**", "__", "[", "@", "~~", "`"].iter().any(|mark| plain.starts_with(mark))
}

/// Whether a heading is about members.
pub(super) fn speaks_of_members(title: &str) -> bool {
    const WORDS: &str = "members, roster, agents, team, squad, humans, bench, alumni, crew, specialists, bots";
    let title = remark(title).0.to_lowercase();
    words(&title).next_back().is_some_and(|last| listed(WORDS, last) || listed(abroad::MEMBERS, last))
}

/// Name, role and status.
type Parts<'t> = (&'t str, &'t str, &'t str);

/// `Name — Role`. After a marked name, more separators count.
fn parts(text: &str, is_marked: bool) -> Option<Parts<'_>> {
    const PLAIN: [&str; 4] = [" — ", " – ", " - ", ": "];
    const MARKED: [&str; 11] = [" — ", " – ", " - ", ": ", " -- ", " | ", " → ", " -> ", " · ", ", ", "; "];
    let first = || {
        let found = MARKED.iter().filter_map(|mark| Some((text.find(mark)?, *mark)));
        let (at, mark) = found.min()?;
        let (name, role) = (&text[..at], &text[at + mark.len()..]);
        // `Small, focused changes` is a sentence.
        (mark != ", " || role.starts_with(char::is_uppercase)).then_some((name, role))
    };
    let parted = if is_marked { first() } else { PLAIN.iter().find_map(|mark| text.split_once(mark)) };
    let (name, role) = parted.unwrap_or_else(|| remark(text));
    let (role, status) = match role.split_once(" | ") {
        Some((role, status)) if is_marked && status_of(&status.to_lowercase()).is_some() => (role, status),
        _ => (role, ""),
    };
    // `~~Hob — Data~~ (left)`
    let role = role.split("~~").next().unwrap_or(role);
    let (name, role) = match remark(name) {
        (before, inner) if parted.is_some() && is_role(inner) => (before, inner),
        _ => (name, role),
    };
    let name = name.trim().trim_end_matches(':');
    (is_name(name, is_marked) && !is_blank(role)).then(|| (name, first_sentence(role.trim()), status))
}

/// The role is the first sentence; the rest describes the work. `Sr. Developer` is not cut.
fn first_sentence(role: &str) -> &str {
    match role.split_once(". ") {
        Some((first, _)) if first.chars().count() > 3 => first,
        _ => role,
    }
}

/// Whether a text can be a name: short, with a capital letter or `@` first, and no field key.
fn is_name(text: &str, is_marked: bool) -> bool {
    const KEYS: &str = "\
        role, charter, status, model, expertise, owns, scope, name, style, skills, tools, focus, responsibilities, \
        badge, emoji, note, notes, project, owner, created, updated, last updated, stack, tech stack, universe, \
        goal, mission, description, repository, important, warning, language";
    let text = text.trim();
    let first = text.chars().find(|c| c.is_alphanumeric());
    first.is_some_and(|c| !c.is_lowercase() || is_marked && text.contains('@'))
        && text.split_whitespace().count() <= 4
        && !listed(KEYS, &text.trim_end_matches(':').to_lowercase())
}
