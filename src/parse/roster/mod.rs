//! `team.md`: the members of a team.

mod columns;
mod empty;
mod folders;
mod lists;
mod member_index;
mod names;
mod standing;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::markdown::Document;
use super::words::{is_blank, remark, without_pictographs};
use super::{Files, context, report_stray_rows};
use crate::model::{ContextSection, Kind, Member, Problem, Severity, Slug, Sort, Source, Status};
pub(crate) use columns::Columns;
pub(crate) use columns::tables;
use columns::{Candidate, Certainty};
pub(crate) use folders::{Folders, linked as linked_charters};
use lists::ListedMember;
pub(super) use member_index::MemberIndex;
use names::{clean_name, is_everyone, is_same_name, is_unfilled, letters, without_kind, without_quotes};
pub(crate) use names::{is_everyone as names_everyone, is_unfilled as names_nobody};
pub(crate) use standing::is_of_the_retired;
pub(super) use standing::status_of;
use standing::{are_people, is_silent, kind, status};

pub(super) struct Roster {
    pub(super) name: Option<String>,
    pub(super) members: Vec<Member>,
    /// Members whose row has no status.
    pub(super) silent: BTreeSet<Slug>,
    /// Model cells as written.
    pub(super) models: BTreeMap<Slug, String>,
    /// Sections that are not about members.
    pub(super) context: Vec<ContextSection>,
    /// The coordinator's charter, from the team folder.
    pub(super) coordinator: Option<String>,
}

/// Members that other tools add to every team. Squad does their work itself.
pub(crate) const HELPERS: [&str; 3] = ["scribe", "ralph", "rai"];

/// Words for what the helpers do in other tools.
pub(super) const HELPERS_WORK: &str = "\
    session, sessions, log, logs, logging, memory, history, decision, decisions, orchestration, backlog, queue, board, \
    monitor, monitoring, triage, heartbeat, rai, responsible";

/// The coding agent `@copilot`, which runs elsewhere.
pub(crate) const BOT: &str = "copilot";

pub(super) fn read(files: &Files, folders: &Folders, text: &str, problems: &mut Vec<Problem>) -> Roster {
    let document = Document::new(text);
    report_stray_rows(files, "team.md", &document, problems);
    let mut reader = RosterReader {
        files,
        folders,
        document: &document,
        problems,
        members: Vec::new(),
        taken: HashMap::new(),
        silent: BTreeSet::new(),
        models: BTreeMap::new(),
        missing: BTreeMap::new(),
        read: BTreeSet::new(),
        coordinator: None,
    };
    reader.tables();
    reader.lists();
    reader.members.stable_sort_by_key(|member| member.source.line);
    reader.report_charters();
    let RosterReader { members, silent, models, read, coordinator, .. } = reader;
    if members.is_empty() {
        problems.push(empty::problem(files, &document, text));
    }
    let context = context::of_roster(files, &document, &read);
    let is_taken = |path: &String| members.iter().any(|member| member.charter.as_ref() == Some(&files.shown(path)));
    let coordinator = coordinator.or_else(|| folders.coordinator()).filter(|path| !is_taken(path));
    Roster { name: document.title().map(without_pictographs), members, silent, models, context, coordinator }
}

/// The cells of a member's row, or the parts of its list item.
#[derive(Default)]
struct Entry<'a> {
    name: &'a str,
    role: &'a str,
    status: &'a str,
    badge: &'a str,
    charter: &'a str,
    scope: &'a str,
    /// May be the name of the member's folder.
    folder: &'a str,
    model: &'a str,
    links: &'a [String],
    headings: &'a [&'a str],
}

struct RosterReader<'a> {
    files: &'a Files,
    folders: &'a Folders,
    document: &'a Document<'a>,
    problems: &'a mut Vec<Problem>,
    members: Vec<Member>,
    /// Index in `members` by slug.
    taken: HashMap<Slug, usize>,
    silent: BTreeSet<Slug>,
    models: BTreeMap<Slug, String>,
    /// Charter paths in rows that lead to no file.
    missing: BTreeMap<Slug, String>,
    /// Offsets of rows, items and headings about members.
    read: BTreeSet<usize>,
    /// The charter in the coordinator's row.
    coordinator: Option<String>,
}

/// The scope cell, and the charter cell if it has prose instead of a path.
fn scope(entry: &Entry<'_>) -> String {
    /// Prose has at least so many words. A path and `on file` have fewer.
    const PROSE: usize = 3;
    let is_prose = |text: &&str| text.split_whitespace().count() >= PROSE && !text.ends_with(".md");
    let texts = [entry.scope].into_iter().filter(|text| !is_blank(text)).chain(Some(entry.charter).filter(is_prose));
    without_pictographs(&texts.collect::<Vec<_>>().join("; "))
}

impl RosterReader<'_> {
    fn tables(&mut self) {
        let title = self.document.title();
        let mut candidates: Vec<Candidate<'_>> =
            self.document.tables_in_sections().map(|(table, headings)| Candidate { table, headings, title }).collect();
        for certainty in [Certainty::Headers, Certainty::Context, Certainty::Looks] {
            if certainty == Certainty::Looks && !self.members.is_empty() {
                break;
            }
            let folders = self.folders;
            candidates.retain(|candidate| match candidate.columns(certainty, folders) {
                None => true,
                Some(columns) => {
                    self.rows(candidate, &columns, certainty);
                    false
                }
            });
        }
    }

    fn rows(&mut self, candidate: &Candidate<'_>, columns: &Columns, certainty: Certainty) {
        let is_of_people = candidate.headings.last().is_some_and(|heading| are_people(heading));
        let is_proof = self.members.is_empty() || is_of_people || candidate.is_of_members();
        for row in &candidate.table.rows {
            let source = self.files.at("team.md", self.document.line(row.offset));
            let entry = Entry {
                name: row.cell(Some(columns.name)),
                role: row.cell(columns.role),
                status: row.cell(columns.status),
                badge: row.cell(columns.badge),
                charter: row.cell(columns.charter),
                scope: row.cell(columns.scope),
                folder: row.cell(columns.folder),
                model: row.cell(columns.model),
                links: &row.links,
                headings: &candidate.headings,
            };
            // Further tables add members only with proof: a members heading, a status or a charter. Those whose headers do not
            // say it add only new ones.
            let has_proof = || {
                Slug::fold(&clean_name(entry.name)).is_some_and(|slug| slug.as_str() == BOT)
                    || self.folders.has_charter(entry.name)
            };
            let is_proven = is_proof || columns.status.is_some() || has_proof();
            if is_proven && (certainty == Certainty::Headers || !self.is_known(entry.name)) {
                self.read.insert(row.offset);
                self.add(&entry, source);
            }
        }
    }

    /// After tables, lists only add members with a charter: those who left, or wait.
    fn lists(&mut self) {
        let has_table = !self.members.is_empty();
        let found = lists::read(self.document);
        for ListedMember { name, role, heading, offset } in found.members {
            if has_table && (self.is_known(name) || !self.folders.has_charter(name)) {
                continue;
            }
            let source = self.files.at("team.md", self.document.line(offset));
            self.read.insert(offset);
            self.add(&Entry { name, role, headings: &[heading], ..Entry::default() }, source);
        }
        for (text, offset) in found.unread.into_iter().filter(|_| !has_table) {
            let source = self.files.at("team.md", self.document.line(offset));
            let message = format!("`{text}` is listed among the members, but is not one squad can read");
            self.warn(&source, "roster-line", message, "a member is `- **Name** — Role` or `### Name — Role`");
        }
    }

    fn is_known(&self, name: &str) -> bool {
        let name = clean_name(name);
        let by = |slug: Option<Slug>| slug.is_some_and(|slug| self.taken.contains_key(&slug));
        by(Slug::spelled(&name)) || by(self.folders.files_of(&name, "", &[]).slug)
    }

    fn add(&mut self, entry: &Entry<'_>, source: Source) {
        if is_unfilled(entry.name) {
            let message = format!("`{}` is a placeholder, not a member", entry.name);
            return self.warn(&source, "roster-placeholder", message, "fill it in or delete the row");
        }
        if self.is_coordinator(entry) {
            let found = self.folders.files_of(&clean_name(entry.name), entry.charter, entry.links);
            self.coordinator = self.coordinator.take().or(found.charter);
            return;
        }
        if is_everyone(entry.name) || (is_blank(entry.name) && is_blank(entry.role)) {
            return;
        }
        let Some((mut member, missing)) = self.member(entry, source.clone()) else {
            let message = match without_pictographs(entry.name) {
                name if name.is_empty() => "a row of the roster has no name".to_owned(),
                name => format!("`{name}` is not a name squad can use"),
            };
            let hint = "a name needs a letter or a digit, or a folder in agents/ with one";
            return self.warn(&source, "roster-name", message, hint);
        };
        if let Some(slug) = Slug::fold("coordinator-agent").filter(|_| member.slug == Slug::coordinator()) {
            let message =
                format!("`{}` is the name of squad's own coordinator; this member becomes `{slug}`", member.slug);
            self.warn(&source, "roster-reserved", message, "choose another name");
            member.slug = slug;
        }
        let Some(member) = self.with_free_slug(member) else { return };
        if is_silent(entry) {
            self.silent.insert(member.slug.clone());
        }
        if !is_blank(entry.model) {
            self.models.insert(member.slug.clone(), entry.model.to_owned());
        }
        if let Some(path) = missing {
            self.missing.insert(member.slug.clone(), path);
        }
        self.taken.insert(member.slug.clone(), self.members.len());
        self.members.push(member);
    }

    /// Gives a member another slug if its own is taken. `None`: the member is listed a second time.
    fn with_free_slug(&mut self, member: Member) -> Option<Member> {
        // `Mira (Lead)` further down is the same as `Mira` above.
        let plain = Slug::fold(remark(&member.name).0).filter(|plain| self.taken.contains_key(plain));
        let known = if member.charter.is_none() { plain.as_ref().unwrap_or(&member.slug) } else { &member.slug };
        let Some(earlier) = self.taken.get(known).and_then(|index| self.members.get(*index)) else {
            return Some(member);
        };
        let twin = self.members.iter().find(|it| letters(&it.name) == letters(&member.name));
        if let Some(earlier) = twin.or(Some(earlier)).filter(|it| is_same_name(&member.name, &it.name)) {
            let message = format!("{} is listed twice; line {} counts", member.name, earlier.source.line);
            self.problems.push(Problem::new(Severity::Note, member.source, "roster-duplicate", message));
            return None;
        }
        // Both names lead to one folder or fold alike. The first one keeps the slug.
        let other = earlier.name.clone();
        let slug = self.free_slug(&member);
        if Slug::fold(&member.name).as_ref() != Some(&slug) {
            let message = format!("{} and {other} would have the same slug; this one becomes `{slug}`", member.name);
            let hint = format!("give it a folder of its own, such as {}/agents/{slug}", self.files.folder);
            self.warn(&member.source, "roster-slug", message, hint);
        }
        Some(Member { slug, charter: None, ..member })
    }

    fn warn(&mut self, source: &Source, code: &'static str, message: String, hint: impl Into<String>) {
        self.problems.push(Problem::warning(source.clone(), code, message).hint(hint));
    }

    /// The slug of the member's name, with a number if that is taken too.
    fn free_slug(&self, member: &Member) -> Slug {
        let own = Slug::spelled(&member.name).unwrap_or_else(|| member.slug.clone());
        let numbered = (2..).map(|number| own.numbered(number));
        let mut free = std::iter::once(own.clone()).chain(numbered).filter(|slug| !self.taken.contains_key(slug));
        free.next().unwrap_or_else(|| member.slug.clone())
    }

    /// The member, and the charter path in its row if there is no such file.
    fn member(&self, entry: &Entry<'_>, source: Source) -> Option<(Member, Option<String>)> {
        let name = clean_name(entry.name);
        let found = self.folders.files_of(&name, entry.charter, entry.links).or_in(self.folders, entry.folder);
        let slug = found.slug.or_else(|| Slug::spelled(without_kind(&name)))?;
        let role = without_pictographs(entry.role).replace("~~", "");
        let role = if is_blank(&role) { String::new() } else { without_quotes(&role).to_owned() };
        let member = Member {
            kind: kind(&slug, entry, &role, found.charter.is_some()),
            status: status(entry),
            charter: found.charter.map(|path| self.files.shown(&path)),
            role,
            name,
            slug,
            scope: scope(entry),
            source,
        };
        Some((member, found.missing))
    }

    /// Reports agents without a charter.
    fn report_charters(&mut self) {
        let has_left = |member: &&Member| matches!(member.status, Status::Retired | Status::Inactive);
        for member in self.members.iter().filter(|member| member.kind == Kind::Agent && !has_left(member)) {
            if member.charter.is_some() {
                continue;
            }
            let expected = self.files.shown(&format!("agents/{}/charter.md", member.slug));
            let (severity, message) = match self.missing.get(&member.slug).map(|path| self.files.shown(path)) {
                Some(path) if path != expected => {
                    (Severity::Warning, format!("{}'s charter is not at {path} nor at {expected}", member.name))
                }
                Some(path) => (Severity::Warning, format!("{}'s charter is not at {path}", member.name)),
                None => (Severity::Note, format!("{} has no charter at {expected}", member.name)),
            };
            let problem = Problem::new(severity, member.source.clone(), "charter-missing", message);
            self.problems.push(problem.hint("write one; until then the agent only knows its name and role"));
        }
    }

    /// Whether an entry is the coordinator, which is squad itself. A member with a charter may be a coordinator of its
    /// own.
    fn is_coordinator(&self, entry: &Entry<'_>) -> bool {
        let coordinates = |text: &str| without_pictographs(text).to_lowercase().starts_with("coordinator");
        let name = clean_name(entry.name).to_lowercase();
        let named = matches!(name.as_str(), "squad" | "coordinator" | "squad coordinator" | "team coordinator");
        let below = entry.headings.last().is_some_and(|heading| coordinates(heading));
        let has_charter =
            || self.folders.files_of(&clean_name(entry.name), entry.charter, entry.links).charter.is_some();
        (coordinates(entry.role) && (named || below || !has_charter())) || (named && (below || !has_charter()))
    }
}
