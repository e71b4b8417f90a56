//! Finds roster tables, and what their columns mean.

use super::super::abroad;
use super::super::markdown::{Document, PlacedTable, Table, header_words};
use super::super::words::{has_word, remark};
use super::folders::Folders;
use super::lists::speaks_of_members;

pub(super) const NAME: &str = "\
    name, member, agent, agent name, team member, squad member, member name, agent / name, teammate, codename, \
    code name, callsign, persona";
/// Also found in other tables: columns of names only if something else shows that the table lists members.
const HANDLE: &str = "\
    names, members, agents, full name, display name, character, character name, cast name, cast, nickname, alias, \
    handle, slug, agent slug, agent id, id, bot, bot name, who, person, human, assigned to, assignee, filled by, \
    held by, owner";
const ROLE: &str = "role, role / title, job title, roles, primary role, main role, team role, squad role, agent role";
/// Also found in other tables: columns of roles only if something else shows that the table lists members.
const FUNCTION: &str = "title, position, job, function";
/// Used as role if no table has a role column.
const EXPERTISE: &str =
    "specialization, specialisation, specialty, speciality, focus, expertise, domain, responsibility";
/// Used as role in tables that certainly list members.
const CALLING: &str = "\
    responsibilities, discipline, area of ownership, areas of ownership, area of responsibility, ownership, owns, \
    specialties, specialities, focus area, focus areas, area, areas, scope, persona, purpose, mission, skills, what, \
    description";
pub(super) const STATUS: &str = "status, state";
const BADGE: &str = "badge, type, kind, emoji";
const CHARTER: &str = "charter, file, path, folder";
/// May name the member's folder: `squad:ada`, `ada`.
const FOLDER: &str = "label, github label, issue label, slot, agent slot, slug, agent slug, id, agent id, handle";
const MODEL: &str = "model, preferred model, ai model, llm";
/// A table with such a column lists contacts.
const CONTACT: &str = "email, e-mail, contact, phone, organization";
/// A table with such a column lists things.
const OF_THINGS: &str = "port, url, host, endpoint, schema, region, version, access, environment, image";
/// Headings over things with names and roles that are not members.
const THINGS: &str = "\
    service, services, account, accounts, table, tables, database, databases, environment, environments, \
    dependencies, library, libraries, endpoint, endpoints, infrastructure, component, components, module, modules, \
    package, packages, system, systems, integrations, server, servers, stack, tools, skills, ceremonies, \
    repositories, permissions, users";

/// The columns of a roster, by index.
pub(crate) struct Columns {
    pub(crate) name: usize,
    pub(crate) role: Option<usize>,
    pub(crate) status: Option<usize>,
    pub(crate) badge: Option<usize>,
    pub(crate) charter: Option<usize>,
    /// Details beyond the role.
    pub(crate) scope: Option<usize>,
    pub(crate) folder: Option<usize>,
    pub(crate) model: Option<usize>,
}

/// The tables that may list members, in file order.
pub(crate) fn tables(text: &str, folders: &Folders) -> Vec<PlacedTable<Columns>> {
    let document = Document::new(text);
    let found = document.tables_in_sections().filter_map(|(table, headings)| {
        let candidate = Candidate { table, headings, title: None };
        let certainties = [Certainty::Headers, Certainty::Context, Certainty::Looks];
        let columns = certainties.into_iter().find_map(|certainty| candidate.columns(certainty, folders))?;
        Some(document.placed(table, columns, &candidate.headings))
    });
    found.collect()
}

/// How certain it is that a table lists members, most certain first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Certainty {
    /// By its headers.
    Headers,
    /// By possible headers, and by the heading above, a charter column or agents' folders.
    Context,
    /// It looks like a roster, and the file has no better one.
    Looks,
}

/// A table with its headings.
pub(super) struct Candidate<'d> {
    pub(super) table: &'d Table,
    pub(super) headings: Vec<&'d str>,
    /// The file's title.
    pub(super) title: Option<&'d str>,
}

impl Candidate<'_> {
    pub(super) fn columns(&self, certainty: Certainty, folders: &Folders) -> Option<Columns> {
        let table = self.table;
        let status = called(table, STATUS)
            .or_else(|| table.column(abroad::STATUS))
            .or_else(|| table.column_where(|header| header.ends_with(" status")));
        let charter = called(table, CHARTER)
            .or_else(|| table.column(abroad::CHARTER))
            .or_else(|| table.column_where(|header| header.starts_with("charter ")));
        let is_of_members = self.is_of_members();
        let name = called(table, NAME).or_else(|| table.column(abroad::NAME));
        let role = self.role();
        let function = || called(table, FUNCTION);
        let (name, role) = match certainty {
            Certainty::Headers => {
                let lists_members = is_of_members || status.or(charter).is_some();
                (name?, Some(role.or_else(|| function().filter(|_| lists_members))?))
            }
            Certainty::Context => {
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
            Certainty::Looks => (name?, Some(function().or_else(|| called(table, EXPERTISE))?)),
        };
        if role == Some(name) || self.is_elsewhere(name, folders) {
            return None;
        }
        let [badge, model, folder] = [BADGE, MODEL, FOLDER].map(|names| called(table, names));
        let scope = self.calling(name).filter(|column| Some(*column) != role);
        let folder = folder.filter(|folder| *folder != name);
        Some(Columns { name, role, status, badge, charter, scope, folder, model })
    }

    pub(super) fn is_of_members(&self) -> bool {
        self.headings.last().is_some_and(|heading| speaks_of_members(heading))
    }

    fn role(&self) -> Option<usize> {
        called(self.table, ROLE).or_else(|| self.table.column(abroad::ROLE))
    }

    /// Whether the role column names the members: it is a roster, and the folders have these names.
    fn is_of_roles(&self, role: usize, charter: Option<usize>, folders: &Folders) -> bool {
        (charter.is_some() || self.is_of_members()) && self.names_folders(role, folders)
    }

    /// Another column with a member's work.
    fn calling(&self, name: usize) -> Option<usize> {
        let stated = [EXPERTISE, CALLING].into_iter().find_map(|names| called(self.table, names));
        stated.filter(|column| *column != name)
    }

    /// Among the columns that may name members: the one that names folders, else the first.
    fn handle(&self, folders: &Folders) -> Option<usize> {
        let columns: Vec<usize> = HANDLE.split(", ").filter_map(|name| called(self.table, name)).collect();
        columns.iter().copied().find(|column| self.names_folders(*column, folders)).or(columns.first().copied())
    }

    /// Whether at least half of a column's cells are names of agents' folders.
    fn names_folders(&self, column: usize, folders: &Folders) -> bool {
        let rows = &self.table.rows;
        let named = rows.iter().filter(|row| folders.is_named(row.cell(Some(column)))).count();
        named > 0 && named * 2 >= rows.len()
    }

    /// Whether the table lists things or contacts, or is an example.
    fn is_elsewhere(&self, name: usize, folders: &Folders) -> bool {
        let table = self.table;
        let any = |headings: &[&str], words| headings.iter().any(|heading| has_word(&heading.to_lowercase(), words));
        let is_under = |words| any(&self.headings, words);
        if is_under("example, examples, template") {
            return true;
        }
        let has_charter = table.column("charter").is_some();
        let is_of_people = has_charter || table.column(STATUS).is_some();
        if !is_of_people && (table.column(CONTACT).is_some() || is_under("stakeholders, contacts, personas")) {
            return true;
        }
        let below_title: Vec<&str> =
            self.headings.iter().copied().filter(|heading| Some(*heading) != self.title).collect();
        let nearest = below_title.last().map_or(&[][..], std::slice::from_ref);
        let is_of_members = self.is_of_members() || below_title.iter().any(|heading| speaks_of_members(heading));
        let is_of_things = any(nearest, THINGS) || table.column(OF_THINGS).is_some();
        is_of_things && !has_charter && !is_of_members && !self.names_folders(name, folders)
    }
}

/// Like [`Table::column`], but ignores a remark or a second name in headers: `Name (slug)`, `Name / Handle`.
fn called(table: &Table, names: &str) -> Option<usize> {
    table.column(names).or_else(|| {
        let plain: Vec<String> = table.header.iter().map(|header| header_words(remark(header).0)).collect();
        let first = |header: &str| header.split(" / ").next().unwrap_or_default().trim().to_owned();
        names.split(", ").find_map(|name| plain.iter().position(|header| header == name || first(header) == name))
    })
}
