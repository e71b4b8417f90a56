//! Finds routing tables, and what their columns mean.

use super::super::abroad;
use super::super::markdown::{Document, PlacedTable, Table, header_words};
use super::super::roster::MemberIndex;
use super::super::words::listed;
use super::names::Named;
use crate::model::Member;

/// What a table routes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TableKind {
    Work,
    Modules,
    Labels,
}

pub(crate) struct Columns {
    pub(crate) kind: TableKind,
    pub(crate) subject: usize,
    pub(crate) first: usize,
    pub(crate) second: Option<usize>,
    pub(crate) review: Option<usize>,
    pub(crate) action: Option<usize>,
    pub(crate) examples: Option<usize>,
}

impl Columns {
    fn new(table: &Table, kind: TableKind, subject: usize, first: usize) -> Self {
        Self {
            kind,
            subject,
            first,
            second: second(table, first),
            review: table.column(REVIEW),
            action: table.column(ACTION),
            examples: table.column(EXAMPLES).or_else(|| table.column(abroad::EXAMPLES)),
        }
    }
}

const SIGNAL: &str = "\
    work type, type of work, work, signal, signals, domain, domains, domain / keywords, keywords, keyword, type, \
    task, task type, tasks, request, request type, topic, topics, area, areas, work area, category, trigger, \
    triggers, pattern, responsibility, kind of work, work item, intent, scenario, concern, change type, issue type, \
    subject, activity, feature, feature area, specialty, handles, when to use, when to call, use when, use for, \
    call for";

/// A header that contains one of these is a signal column.
const SIGNAL_PARTS: [&str; 5] = ["work type", "domain", "keyword", "signal", "task type"];

/// A table with one of these routes, whatever its first column is called.
const ROUTES: &str = "\
    route to, routes to, routed to, routing, route, primary agent, primary, primary owner, assigned to, assign to, \
    goes to, send to, delegate to, default agent, assign, assigned agent, hand to, hand off to";

/// The same, if the column lists members.
const ASKS: &str = "→, ask, then ask, call, then call, then, use, contact";

const AGENT: &str = "\
    agent, agents, agent / owner, owner / agent, agent(s), owner, owners, who, member, members, squad member, \
    team member, assignee, lead, lead agent, handler, handled by, handled by agent, specialist, responsible, \
    responsible agent, owned by, name";

/// First words of headers over helpers and substitutes.
const SECOND: &str = "secondary, backup, backups, fallback, support, supporting, supported";

const REVIEW: &str = "reviewer, review, review by, reviewed by, reviewers, review gate";

const EXAMPLES: &str = "\
    examples, example tasks, example, example requests, example work, example signals, typical work, typical tasks, \
    includes, keywords, description, details, notes";

const ACTION: &str = "action, what happens, meaning, description";

/// Headers over parts of the code consist of these words, and perhaps of [`BESIDE_MODULE`].
const MODULE: &str = "\
    module, modules, path, paths, file, files, directory, directories, folder, folders, package, packages, project, \
    projects, glob, globs";
const BESIDE_MODULE: &str = "/, or, and, pattern, patterns, code, component, source, name";

const LABEL: &str = "label, labels";

/// Other words in headers over labels: `GitHub issue label`.
const BESIDE_LABEL: &str = "/, issue, issues, github, gh, squad, name, pr";

/// `Issue Domain`, `Pattern / Trigger`
fn is_signal(header: &str) -> bool {
    SIGNAL_PARTS.iter().any(|part| header.contains(part)) || header.split(" / ").all(|part| listed(SIGNAL, part))
}

/// Whether a header consists of both kinds of words, and has one of the first.
fn is_made_of(header: &str, words: &str, beside: &str) -> bool {
    let mut all = header.split(' ');
    header.split(' ').any(|word| listed(words, word)) && all.all(|word| listed(words, word) || listed(beside, word))
}

/// The routing tables in file order.
pub(crate) fn tables(text: &str, members: &[Member]) -> Vec<PlacedTable<Columns>> {
    let document = Document::new(text);
    let roll = MemberIndex::new(members);
    let found = document.tables().filter_map(|(table, _)| Some(document.placed(table, of(table, &roll)?, &[])));
    found.collect()
}

/// The columns of a routing table. `None`: it routes nothing.
pub(super) fn of(table: &Table, roll: &MemberIndex<'_>) -> Option<Columns> {
    let asks = || table.column(ASKS).filter(|column| *column > 0 && is_of_members(table, *column, roll));
    let routes = table.column(ROUTES).or_else(asks);
    let agent = routes.or_else(|| table.column(AGENT));
    let signal = table.column(SIGNAL).or_else(|| table.column_where(is_signal)).filter(|signal| Some(*signal) != agent);
    let agent_beside = |subject: usize| agent.or_else(|| column_of_members(table, subject, roll));
    if let Some(subject) = signal {
        let first = agent_beside(subject)?;
        let kind = if is_of_paths(table, subject) { TableKind::Modules } else { TableKind::Work };
        return Some(Columns::new(table, kind, subject, first));
    }
    let label = table.column_where(|header| is_made_of(header, LABEL, BESIDE_LABEL));
    let module = table.column_where(|header| is_made_of(header, MODULE, BESIDE_MODULE));
    for (kind, subject) in [(TableKind::Labels, label), (TableKind::Modules, module)] {
        if let Some((subject, first)) = subject.and_then(|subject| Some((subject, agent_beside(subject)?)))
            && subject != first
        {
            return Some(Columns::new(table, kind, subject, first));
        }
    }
    if let Some(first) = routes.or_else(|| table.column(abroad::AGENT)).filter(|first| *first > 0) {
        return Some(Columns::new(table, TableKind::Work, 0, first));
    }
    // Whatever its headers are: work beside members.
    let first = members_beside(table, roll)?;
    let subject = (0..table.header.len()).find(|column| *column != first && !is_of_members(table, *column, roll))?;
    Some(Columns::new(table, TableKind::Work, subject, first))
}

fn second(table: &Table, first: usize) -> Option<usize> {
    let is_second = |header: &str| header.split(' ').next().is_some_and(|word| listed(SECOND, word));
    table.column_where(is_second).filter(|second| *second != first)
}

/// Whether all cells of a column are paths. `CI/CD` is no path.
fn is_of_paths(table: &Table, column: usize) -> bool {
    let is_of_paths = |cell: &str| !cell.trim().is_empty() && cell.split(',').all(is_path);
    !table.rows.is_empty() && table.rows.iter().all(|row| is_of_paths(row.cell(Some(column))))
}

pub(super) fn is_path(text: &str) -> bool {
    let text = text.trim();
    let has_end = text.ends_with('/') || text.rsplit('/').next().is_some_and(|end| end.contains('.'));
    !text.contains(' ') && (text.contains('*') || text.contains('/') && has_end)
}

/// The first column of members, by its cells.
fn column_of_members(table: &Table, subject: usize, roll: &MemberIndex<'_>) -> Option<usize> {
    let others = table.header.iter().enumerate().filter(|(column, header)| *column != subject && !is_aside(header));
    others.map(|(column, _)| column).find(|column| is_of_members(table, *column, roll))
}

/// Whether most cells of a column are members.
fn is_of_members(table: &Table, column: usize, roll: &MemberIndex<'_>) -> bool {
    let cells = || table.rows.iter().map(|row| row.cell(Some(column))).filter(|cell| !cell.is_empty());
    let named = cells().filter(|cell| Named::all(cell, roll)).count();
    named * 2 > cells().count()
}

/// The column of members in a table that looks like a routing table. Tables with further columns about members do not.
fn members_beside(table: &Table, roll: &MemberIndex<'_>) -> Option<usize> {
    const ABOUT: &str =
        "by, date, author, role, model, charter, status, emoji, when, facilitator, backup of, participants";
    let about = table.column_where(|header| listed(ABOUT, header) || is_aside(header));
    column_of_members(table, usize::MAX, roll).filter(|_| about.is_none())
}

/// Whether members in this column do not do the work.
fn is_aside(header: &str) -> bool {
    let header = header_words(header);
    ["review", "second", "backup", "label", "model", "example", "escalat", "fallback", "consult", "approv", "facilitat"]
        .iter()
        .any(|part| header.contains(part))
}
