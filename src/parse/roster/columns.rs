//! Which tables are rosters, and which of their columns say what.

use super::super::abroad;
use super::super::markdown::{Table, header_words};
use super::super::words::remark;
use super::folders::Folders;
use super::lists::speaks_of_members;

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
/// Other tables have such columns too: they name members where something else says that the table lists members.
const HANDLE: [&str; 26] = [
    "names",
    "members",
    "agents",
    "full name",
    "display name",
    "character",
    "character name",
    "cast name",
    "cast",
    "nickname",
    "alias",
    "handle",
    "slug",
    "agent slug",
    "agent id",
    "id",
    "bot",
    "bot name",
    "who",
    "person",
    "human",
    "assigned to",
    "assignee",
    "filled by",
    "held by",
    "owner",
];
const ROLE: [&str; 9] = [
    "role",
    "role / title",
    "job title",
    "roles",
    "primary role",
    "main role",
    "team role",
    "squad role",
    "agent role",
];
/// Other tables have such columns too: these say a role where something else says that the table lists members.
const FUNCTION: [&str; 4] = ["title", "position", "job", "function"];
/// What stands for a role where no table has one.
const EXPERTISE: [&str; 8] =
    ["specialization", "specialisation", "specialty", "speciality", "focus", "expertise", "domain", "responsibility"];
/// The same, in tables that are known to list members.
const CALLING: [&str; 20] = [
    "responsibilities",
    "discipline",
    "area of ownership",
    "areas of ownership",
    "area of responsibility",
    "ownership",
    "owns",
    "specialties",
    "specialities",
    "focus area",
    "focus areas",
    "area",
    "areas",
    "scope",
    "persona",
    "purpose",
    "mission",
    "skills",
    "what",
    "description",
];
pub(super) const STATUS: [&str; 2] = ["status", "state"];
const BADGE: [&str; 4] = ["badge", "type", "kind", "emoji"];
const CHARTER: [&str; 4] = ["charter", "file", "path", "folder"];
/// Where a row may say which folder is the member's: `squad:ada`, `ada`.
const FOLDER: [&str; 10] =
    ["label", "github label", "issue label", "slot", "agent slot", "slug", "agent slug", "id", "agent id", "handle"];
const MODEL: [&str; 4] = ["model", "preferred model", "ai model", "llm"];
/// A table with such a column lists people to write to.
const CONTACT: [&str; 5] = ["email", "e-mail", "contact", "phone", "organization"];
/// A table with such a column lists things.
const OF_THINGS: [&str; 10] =
    ["port", "url", "host", "endpoint", "schema", "region", "version", "access", "environment", "image"];
/// Headings over things that have names and roles, and are no members.
const THINGS: [&str; 34] = [
    "service",
    "services",
    "account",
    "accounts",
    "table",
    "tables",
    "database",
    "databases",
    "environment",
    "environments",
    "dependencies",
    "library",
    "libraries",
    "endpoint",
    "endpoints",
    "infrastructure",
    "component",
    "components",
    "module",
    "modules",
    "package",
    "packages",
    "system",
    "systems",
    "integrations",
    "server",
    "servers",
    "stack",
    "tools",
    "skills",
    "ceremonies",
    "repositories",
    "permissions",
    "users",
];

/// Where a roster's columns are.
pub(crate) struct Columns {
    pub(crate) name: usize,
    pub(crate) role: Option<usize>,
    pub(crate) status: Option<usize>,
    pub(crate) badge: Option<usize>,
    pub(crate) charter: Option<usize>,
    /// What says more of a member than its role does.
    pub(crate) scope: Option<usize>,
    pub(crate) folder: Option<usize>,
    pub(crate) model: Option<usize>,
}

/// How surely a table lists members, the surest first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// Its headers say so.
    Plain,
    /// Its headers may say so, and the heading above it, a charter column or the folders of agents do.
    Witnessed,
    /// Nothing else in the file does, and it looks like a roster.
    Last,
}

/// A table with what stands above it.
pub(super) struct Candidate<'d> {
    pub(super) table: &'d Table,
    pub(super) headings: Vec<&'d str>,
    /// The heading of the whole file.
    pub(super) title: Option<&'d str>,
}

impl Candidate<'_> {
    pub(super) fn columns(&self, reading: Reading, folders: &Folders) -> Option<Columns> {
        let table = self.table;
        let status = called(table, &STATUS)
            .or_else(|| table.column(&abroad::STATUS))
            .or_else(|| table.column_where(|header| header.ends_with(" status")));
        let charter = called(table, &CHARTER)
            .or_else(|| table.column(&abroad::CHARTER))
            .or_else(|| table.column_where(|header| header.starts_with("charter ")));
        let is_of_members = self.is_of_members();
        let name = called(table, &NAME).or_else(|| table.column(&abroad::NAME));
        let role = self.role();
        let function = || called(table, &FUNCTION);
        let (name, role) = match reading {
            Reading::Plain => {
                let lists_members = is_of_members || status.or(charter).is_some();
                (name?, Some(role.or_else(|| function().filter(|_| lists_members))?))
            }
            Reading::Witnessed => {
                let by_role = || role.filter(|role| self.is_of_roles(*role, charter, folders));
                let name = name.or_else(|| self.handle(folders)).or_else(by_role)?;
                let role = role.filter(|role| *role != name);
                if !is_of_members && charter.is_none() && !self.names_folders(name, folders) {
                    return None;
                }
                let role = role.or_else(function).or_else(|| self.calling(name));
                if role.is_none() && !(is_of_members && status.or(charter).is_some()) {
                    return None;
                }
                (name, role)
            }
            Reading::Last => match name.zip(function().or_else(|| called(table, &EXPERTISE))) {
                Some((name, role)) => (name, Some(role)),
                None => {
                    let name = self.witnessed(folders)?;
                    let is_free = |column: &usize| *column != name && Some(*column) != status;
                    let stated = role.or_else(function).or_else(|| self.calling(name)).filter(is_free);
                    (name, stated.or_else(|| (name + 1..table.header.len()).find(is_free)))
                }
            },
        };
        if role == Some(name) || self.is_elsewhere(name, folders) {
            return None;
        }
        let [badge, model, folder] = [&BADGE[..], &MODEL, &FOLDER].map(|names| called(table, names));
        let scope = self.calling(name).filter(|column| Some(*column) != role);
        let folder = folder.filter(|folder| *folder != name);
        Some(Columns { name, role, status, badge, charter, scope, folder, model })
    }

    pub(super) fn is_of_members(&self) -> bool {
        self.headings.last().is_some_and(|heading| speaks_of_members(heading))
    }

    fn role(&self) -> Option<usize> {
        called(self.table, &ROLE).or_else(|| self.table.column(&abroad::ROLE))
    }

    /// Whether members are called by their roles: the table names nobody otherwise, and the folders are called so.
    fn is_of_roles(&self, role: usize, charter: Option<usize>, folders: &Folders) -> bool {
        (charter.is_some() || self.is_of_members()) && self.names_folders(role, folders)
    }

    /// What else may say what a member does.
    fn calling(&self, name: usize) -> Option<usize> {
        let stated = [&EXPERTISE[..], &CALLING].into_iter().find_map(|names| called(self.table, names));
        stated.filter(|column| *column != name)
    }

    /// Of the columns that may name members, the one whose cells name folders; else the first.
    fn handle(&self, folders: &Folders) -> Option<usize> {
        let of = |name: &&str| called(self.table, &[*name]);
        let columns: Vec<usize> = HANDLE.iter().filter_map(of).collect();
        columns.iter().copied().find(|column| self.names_folders(*column, folders)).or(columns.first().copied())
    }

    /// The column that names folders of agents, whatever it is called.
    fn witnessed(&self, folders: &Folders) -> Option<usize> {
        let role = self.role();
        (0..self.table.header.len()).find(|column| Some(*column) != role && self.names_folders(*column, folders))
    }

    /// Whether at least half of a column's cells are names of agents' folders.
    fn names_folders(&self, column: usize, folders: &Folders) -> bool {
        let rows = &self.table.rows;
        let named = rows.iter().filter(|row| folders.is_named(row.cell(Some(column)))).count();
        named > 0 && named * 2 >= rows.len()
    }

    /// Tables of things, of people to write to, and examples of what a row looks like.
    fn is_elsewhere(&self, name: usize, folders: &Folders) -> bool {
        let table = self.table;
        let any = |headings: &[&str], words: &[&str]| {
            headings.iter().any(|heading| {
                let heading = heading.to_lowercase();
                words.iter().any(|word| heading.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word))
            })
        };
        let says = |words: &[&str]| any(&self.headings, words);
        if says(&["example", "examples", "template"]) {
            return true;
        }
        let has_charter = table.column(&["charter"]).is_some();
        let has_standing = has_charter || table.column(&STATUS).is_some();
        if !has_standing && (table.column(&CONTACT).is_some() || says(&["stakeholders", "contacts", "personas"])) {
            return true;
        }
        let below_title: Vec<&str> =
            self.headings.iter().copied().filter(|heading| Some(*heading) != self.title).collect();
        let nearest = below_title.last().map_or(&[][..], std::slice::from_ref);
        let is_of_members = self.is_of_members() || below_title.iter().any(|heading| speaks_of_members(heading));
        let is_of_things = any(nearest, &THINGS) || table.column(&OF_THINGS).is_some();
        is_of_things && !has_charter && !is_of_members && !self.names_folders(name, folders)
    }
}

/// The first column of one of these names, a remark behind it or a second name left out: `Name (slug)`, `Name / Handle`.
fn called(table: &Table, names: &[&str]) -> Option<usize> {
    table.column(names).or_else(|| {
        let plain: Vec<String> = table.header.iter().map(|header| header_words(remark(header).0)).collect();
        let first = |header: &str| header.split(" / ").next().unwrap_or_default().trim().to_owned();
        names.iter().find_map(|name| plain.iter().position(|header| header == name || first(header) == *name))
    })
}
