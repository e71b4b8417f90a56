//! `team.md`: who is on the team.

mod folders;
mod lists;
mod roll;
mod standing;

use std::collections::{BTreeSet, HashMap};

use super::Files;
use super::abroad;
use super::markdown::{BlockKind, Document, Table};
use super::words::{is_blank, is_placeholder, remark, without_pictographs};
use crate::model::{Member, Problem, Severity, Slug, Source};
pub(super) use folders::Folders;
use lists::Found;
pub(super) use roll::Roll;
pub(super) use standing::status_of;
use standing::{is_silent, kind, status};

pub(super) struct Roster {
    pub(super) name: Option<String>,
    pub(super) members: Vec<Member>,
    /// Those of whom it does not say whether they work.
    pub(super) silent: BTreeSet<Slug>,
}

/// Members that other tools build into every team; their work is done by squad itself.
pub(super) const HELPERS: [&str; 3] = ["scribe", "ralph", "rai"];

/// The coding agent that works elsewhere, `@copilot`.
const BOT: &str = "copilot";

const NAME: [&str; 13] = [
    "name",
    "member",
    "agent",
    "agent name",
    "team member",
    "squad member",
    "member name",
    "agent / name",
    "teammate",
    "codename",
    "code name",
    "callsign",
    "persona",
];
const ROLE: [&str; 3] = ["role", "role / title", "job title"];
/// Other tables have such columns too: these say a role where something else says that the table lists members.
const FUNCTION: [&str; 4] = ["title", "position", "job", "function"];
/// What stands for a role where no table has one.
const EXPERTISE: [&str; 12] = [
    "title",
    "position",
    "job",
    "function",
    "specialization",
    "specialisation",
    "specialty",
    "speciality",
    "focus",
    "expertise",
    "domain",
    "responsibility",
];
const STATUS: [&str; 2] = ["status", "state"];
const BADGE: [&str; 4] = ["badge", "type", "kind", "emoji"];
const CHARTER: [&str; 4] = ["charter", "file", "path", "folder"];
/// A table with such a column lists people to write to.
const CONTACT: [&str; 5] = ["email", "e-mail", "contact", "phone", "organization"];

pub(super) fn read(files: &Files, folders: &Folders, text: &str, problems: &mut Vec<Problem>) -> Roster {
    let document = Document::new(text);
    let mut reader = Reader {
        files,
        folders,
        document: &document,
        problems,
        members: Vec::new(),
        taken: HashMap::new(),
        silent: BTreeSet::new(),
    };
    reader.tables(&ROLE);
    if reader.members.is_empty() {
        reader.tables(&EXPERTISE);
    }
    if reader.members.is_empty() {
        for found in lists::read(&document) {
            let source = files.at("team.md", document.line(found.offset));
            let Found { name, role, status, .. } = found;
            reader.add(&Entry { name, role, status, ..Entry::default() }, source);
        }
    }
    let (members, silent) = (reader.members, reader.silent);
    if members.is_empty() {
        problems.push(
            Problem::new(Severity::Error, files.at("team.md", 1), "roster-empty", "no table in it lists a member")
                .hint("a roster is a table with a Name and a Role column"),
        );
    }
    Roster { name: name_of(&document), members, silent }
}

/// What the team is called.
fn name_of(document: &Document<'_>) -> Option<String> {
    document.blocks.iter().find_map(|block| match &block.kind {
        BlockKind::Heading { level: 1, text } => Some(without_pictographs(text)),
        _ => None,
    })
}

/// What a row or a list item says about a member.
#[derive(Default)]
struct Entry<'a> {
    name: &'a str,
    role: &'a str,
    status: &'a str,
    badge: &'a str,
    charter: &'a str,
    links: &'a [String],
    headings: &'a [&'a str],
}

struct Reader<'a> {
    files: &'a Files,
    folders: &'a Folders,
    document: &'a Document<'a>,
    problems: &'a mut Vec<Problem>,
    members: Vec<Member>,
    /// Where in `members` each slug is.
    taken: HashMap<Slug, usize>,
    silent: BTreeSet<Slug>,
}

impl Reader<'_> {
    fn tables(&mut self, roles: &[&str]) {
        for (table, headings) in self.document.tables_in_sections() {
            let name = table.column(&NAME).or_else(|| table.column(&abroad::NAME));
            let lists_members = headings.last().is_some_and(|heading| lists::speaks_of_members(heading))
                || table.column(&STATUS).or_else(|| table.column(&CHARTER)).is_some();
            let function = || table.column(&FUNCTION).filter(|_| lists_members);
            let role = table.column(roles).or_else(|| table.column(&abroad::ROLE)).or_else(function);
            let (Some(name), Some(role)) = (name, role) else { continue };
            if is_elsewhere(table, &headings) {
                continue;
            }
            let [status, badge, charter] = [&STATUS[..], &BADGE, &CHARTER].map(|names| table.column(names));
            let status = status.or_else(|| table.column(&abroad::STATUS));
            for row in &table.rows {
                let source = self.files.at("team.md", self.document.line(row.offset));
                let entry = Entry {
                    name: row.cell(Some(name)),
                    role: row.cell(Some(role)),
                    status: row.cell(status),
                    badge: row.cell(badge),
                    charter: row.cell(charter),
                    links: &row.links,
                    headings: &headings,
                };
                self.add(&entry, source);
            }
        }
    }

    fn add(&mut self, entry: &Entry<'_>, source: Source) {
        if is_placeholder(entry.name) || is_vacant(entry.name) {
            let message = format!("`{}` is a placeholder, not a member", entry.name);
            self.problems
                .push(Problem::warning(source, "roster-placeholder", message).hint("fill it in or delete the row"));
            return;
        }
        if self.is_coordinator(entry) || (is_blank(entry.name) && is_blank(entry.role)) {
            return;
        }
        let Some(mut member) = self.member(entry, source.clone()) else {
            let message = format!("`{}` is not a name squad can use", entry.name);
            self.problems.push(
                Problem::warning(source, "roster-name", message)
                    .hint("a name needs a letter from a to z or a digit, or a folder of agents/ that has one"),
            );
            return;
        };
        if let Some(slug) = Slug::fold("coordinator-agent").filter(|_| member.slug == Slug::coordinator()) {
            let message = format!("`{}` is what squad calls its own coordinator; this member is `{slug}`", member.slug);
            self.problems
                .push(Problem::warning(source.clone(), "roster-reserved", message).hint("give it another name"));
            member.slug = slug;
        }
        // `Mira (Lead)` further down is the Mira above.
        let plain = Slug::fold(remark(&member.name).0).filter(|plain| self.taken.contains_key(plain));
        let known = if member.charter.is_none() { plain.as_ref().unwrap_or(&member.slug) } else { &member.slug };
        let earlier = self.taken.get(known).and_then(|index| self.members.get(*index));
        if let Some(earlier) = earlier {
            let own = Slug::fold(&member.name).filter(|own| !self.taken.contains_key(own));
            if let Some(own) = own.filter(|_| !is_same_name(&member.name, &earlier.name)) {
                // Both names led to one folder, and the first has it.
                member = Member { slug: own, charter: None, ..member };
            } else {
                let message = format!("{} is listed a second time; line {} counts", member.name, earlier.source.line);
                self.problems.push(Problem::new(Severity::Note, source, "roster-duplicate", message));
                return;
            }
        }
        if is_silent(entry) {
            self.silent.insert(member.slug.clone());
        }
        self.taken.insert(member.slug.clone(), self.members.len());
        self.members.push(member);
    }

    fn member(&self, entry: &Entry<'_>, source: Source) -> Option<Member> {
        let name = clean_name(entry.name);
        let place = self.folders.place(&name, entry.charter, entry.links);
        let slug = place.slug.or_else(|| Slug::fold(without_kind(&name)))?;
        let role = without_pictographs(entry.role).replace("~~", "");
        Some(Member {
            kind: kind(&slug, entry, &role, place.charter.is_some()),
            status: status(entry),
            charter: place.charter.map(|path| self.files.shown(&path)),
            role,
            name,
            slug,
            source,
        })
    }

    /// The coordinator is squad itself. A member with a charter may still coordinate in its own way.
    fn is_coordinator(&self, entry: &Entry<'_>) -> bool {
        let coordinates = |text: &str| without_pictographs(text).to_lowercase().starts_with("coordinator");
        let name = clean_name(entry.name).to_lowercase();
        let named = matches!(name.as_str(), "squad" | "coordinator" | "squad coordinator" | "team coordinator");
        let below = entry.headings.last().is_some_and(|heading| coordinates(heading));
        let has_charter = || self.folders.place(&clean_name(entry.name), entry.charter, entry.links).charter.is_some();
        (coordinates(entry.role) && (named || below || !has_charter()))
            || (below && named)
            || (name.ends_with(" coordinator") && named && !has_charter())
    }
}

/// Tables of people to write to, and examples of what a row looks like.
fn is_elsewhere(table: &Table, headings: &[&str]) -> bool {
    let says = |words: &[&str]| {
        headings.iter().any(|heading| {
            let heading = heading.to_lowercase();
            words.iter().any(|word| heading.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word))
        })
    };
    let has_standing = table.column(&STATUS).or_else(|| table.column(&["charter"])).is_some();
    says(&["example", "examples", "template"])
        || (!has_standing && (table.column(&CONTACT).is_some() || says(&["stakeholders", "contacts", "personas"])))
}

/// Whether one name is the other, or its beginning: `Mira` and `Mira (Lead)`.
fn is_same_name(one: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (Slug::fold(one), Slug::fold(other)) else { return true };
    let begins = |long: &Slug, short: &Slug| {
        long.as_str().strip_prefix(short.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    begins(&one, &other) || begins(&other, &one)
}

/// A row that waits for somebody.
fn is_vacant(name: &str) -> bool {
    let name = without_pictographs(name).to_lowercase();
    matches!(
        name.trim_matches(['_', '*', '(', ')', ' ']),
        "tbd" | "tba" | "vacant" | "open" | "unassigned" | "unfilled"
    )
}

fn clean_name(cell: &str) -> String {
    let marks: &[char] = &['`', '~', '*', ' '];
    let quotes: &[char] = &['"', '“', '”', '\'', '`', '~', '*', ' '];
    let name = without_pictographs(cell);
    let name = name.trim_matches(marks);
    // `"Bo" Smith` keeps its quotes.
    let inner = name.trim_matches(quotes);
    let name = if inner.contains(['"', '“', '”']) { name } else { inner };
    name.trim_start_matches('@').trim().to_owned()
}

/// A remark that only says what stands behind a name is not part of it: `Ann (human)`.
fn without_kind(name: &str) -> &str {
    let (before, remark) = remark(name);
    if matches!(remark.to_lowercase().as_str(), "human" | "bot" | "ai") { before } else { name }
}
