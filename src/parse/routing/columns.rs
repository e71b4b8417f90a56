//! What the columns of a routing table mean, by their headers.

use super::super::abroad;
use super::super::markdown::{Table, header_words};
use super::super::roster::Roll;
use super::names::Named;

/// What a table sends to members.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TableKind {
    Work,
    Modules,
    Labels,
}

pub(super) struct Columns {
    pub(super) kind: TableKind,
    pub(super) subject: usize,
    pub(super) first: usize,
    pub(super) second: Option<usize>,
    pub(super) review: Option<usize>,
    pub(super) action: Option<usize>,
    pub(super) examples: Option<usize>,
}

impl Columns {
    fn new(table: &Table, kind: TableKind, subject: usize, first: usize) -> Self {
        Self {
            kind,
            subject,
            first,
            second: table.column(&SECOND),
            review: table.column(&REVIEW),
            action: table.column(&ACTION),
            examples: table.column(&EXAMPLES).or_else(|| table.column(&abroad::EXAMPLES)),
        }
    }
}

const SIGNAL: [&str; 39] = [
    "work type",
    "type of work",
    "work",
    "signal",
    "signals",
    "domain",
    "domains",
    "domain / keywords",
    "keywords",
    "keyword",
    "type",
    "task",
    "task type",
    "tasks",
    "request",
    "request type",
    "topic",
    "topics",
    "area",
    "areas",
    "work area",
    "category",
    "trigger",
    "triggers",
    "pattern",
    "responsibility",
    "kind of work",
    "work item",
    "intent",
    "scenario",
    "concern",
    "change type",
    "issue type",
    "subject",
    "activity",
    "feature",
    "feature area",
    "specialty",
    "handles",
];

/// Parts of a header that make it a signal's, whatever stands beside them.
const SIGNAL_PARTS: [&str; 5] = ["work type", "domain", "keyword", "signal", "task type"];

/// These say that a table routes, whatever its first column is called.
const ROUTES: [&str; 14] = [
    "route to",
    "routes to",
    "routed to",
    "routing",
    "route",
    "primary agent",
    "primary",
    "primary owner",
    "assigned to",
    "assign to",
    "goes to",
    "send to",
    "delegate to",
    "default agent",
];

const AGENT: [&str; 23] = [
    "agent",
    "agents",
    "agent / owner",
    "owner / agent",
    "agent(s)",
    "owner",
    "owners",
    "who",
    "member",
    "members",
    "squad member",
    "team member",
    "assignee",
    "lead",
    "lead agent",
    "handler",
    "handled by",
    "handled by agent",
    "specialist",
    "responsible",
    "responsible agent",
    "owned by",
    "name",
];

const SECOND: [&str; 10] = [
    "secondary",
    "secondary agent",
    "secondary owner",
    "secondary agents",
    "backup",
    "backup agent",
    "fallback",
    "support",
    "supporting",
    "supporting agents",
];

const REVIEW: [&str; 6] = ["reviewer", "review", "review by", "reviewed by", "reviewers", "review gate"];

const EXAMPLES: [&str; 13] = [
    "examples",
    "example tasks",
    "example",
    "example requests",
    "example work",
    "example signals",
    "typical work",
    "typical tasks",
    "includes",
    "keywords",
    "description",
    "details",
    "notes",
];

const ACTION: [&str; 4] = ["action", "what happens", "meaning", "description"];

const MODULE: [&str; 20] = [
    "module",
    "modules",
    "path",
    "paths",
    "module / path",
    "path / module",
    "module path",
    "file / path",
    "path / file",
    "directory",
    "directories",
    "folder",
    "folders",
    "package",
    "project",
    "file pattern",
    "files",
    "glob",
    "code path",
    "component path",
];

const LABEL: [&str; 4] = ["label", "labels", "issue label", "github label"];

/// `None` for a table that routes nothing.
pub(super) fn of(table: &Table, roll: &Roll<'_>) -> Option<Columns> {
    let routes = table.column(&ROUTES);
    let agent = routes.or_else(|| table.column(&AGENT));
    let signal = table
        .column(&SIGNAL)
        .or_else(|| table.column_where(|header| SIGNAL_PARTS.iter().any(|part| header.contains(part))))
        .filter(|signal| Some(*signal) != agent);
    if let Some(subject) = signal {
        let first = agent.or_else(|| column_of_members(table, subject, roll))?;
        let kind = if is_of_paths(table, subject) { TableKind::Modules } else { TableKind::Work };
        return Some(Columns::new(table, kind, subject, first));
    }
    if let (Some(subject), Some(first)) = (table.column(&LABEL), agent) {
        return Some(Columns::new(table, TableKind::Labels, subject, first));
    }
    if let (Some(subject), Some(first)) = (table.column(&MODULE), agent) {
        return Some(Columns::new(table, TableKind::Modules, subject, first));
    }
    let by_content = || column_of_members(table, 0, roll).filter(|first| is_members_only(table, *first, roll));
    let first = routes.filter(|first| *first > 0).or_else(by_content)?;
    Some(Columns::new(table, TableKind::Work, 0, first))
}

/// Whether a table with headers squad does not know sends its first column to its members: every row names some there
/// and none in front.
fn is_members_only(table: &Table, column: usize, roll: &Roll<'_>) -> bool {
    let whole = |column: usize| table.rows.iter().filter(move |row| Named::all(row.cell(Some(column)), roll)).count();
    let is_known = table.column(&AGENT) == Some(column) || table.column(&abroad::AGENT) == Some(column);
    let enough = if is_known { 1 } else { 2 };
    table.rows.len() >= enough && whole(column) == table.rows.len() && whole(0) < table.rows.len()
}

/// Whether a column holds paths and nothing else, whatever it is called. `CI/CD` is no path.
fn is_of_paths(table: &Table, column: usize) -> bool {
    let is_path = |cell: &str| {
        !cell.trim().is_empty()
            && cell.split(',').map(str::trim).all(|path| {
                let has_end = path.ends_with('/') || path.rsplit('/').next().is_some_and(|end| end.contains('.'));
                !path.contains(' ') && (path.contains('*') || path.contains('/') && has_end)
            })
    };
    !table.rows.is_empty() && table.rows.iter().all(|row| is_path(row.cell(Some(column))))
}

/// The column whose cells are members, where no header says so.
fn column_of_members(table: &Table, subject: usize, roll: &Roll<'_>) -> Option<usize> {
    (0..table.header.len()).filter(|column| *column != subject && !is_aside(&table.header[*column])).find(|column| {
        let cells: Vec<&str> = table.rows.iter().map(|row| row.cell(Some(*column))).collect();
        let filled = cells.iter().filter(|cell| !cell.is_empty()).count();
        let named = cells.iter().filter(|cell| Named::all(cell, roll)).count();
        filled > 0 && named * 2 > filled
    })
}

/// Members in these columns do not do the work.
fn is_aside(header: &str) -> bool {
    let header = header_words(header);
    ["review", "second", "backup", "label", "model", "example", "escalat", "fallback", "consult", "approv", "facilitat"]
        .iter()
        .any(|part| header.contains(part))
}
