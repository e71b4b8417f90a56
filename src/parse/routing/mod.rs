//! `routing.md`: which member does which work, in tables, lists, or a linked JSON table.

mod columns;
mod json;
mod lists;
mod names;
mod unread;

use std::collections::BTreeSet;

use super::markdown::{Document, Row};
use super::roster::{HELPERS, HELPERS_WORK, MemberIndex};
use super::words::{comma_list, has_word, is_blank, is_placeholder, without_struck};
use super::{Files, context, line_feeds, report_stray_rows};
use crate::model::{
    ContextSection, Kind, LabelRule, Member, Module, Problem, Rule, Severity, Slug, Source, list, plural,
};
use columns::Columns;
pub(crate) use columns::{TableKind, tables};
pub(crate) use json::linked as linked_tables;
pub(crate) use lists::at_arrow;
use names::Named;

/// The contents of a routing file.
#[derive(Default)]
pub(super) struct Routing {
    pub(super) rules: Vec<Rule>,
    pub(super) modules: Vec<Module>,
    pub(super) labels: Vec<LabelRule>,
    /// Its other sections.
    pub(super) prose: Vec<ContextSection>,
}

pub(super) fn read(files: &Files, text: &str, members: &[Member], problems: &mut Vec<Problem>) -> Routing {
    let document = Document::new(text);
    let roll = MemberIndex::new(members);
    report_stray_rows(files, "routing.md", &document, problems);
    let mut reader = RoutingReader { roll: &roll, problems, routing: Routing::default() };
    let mut taken = BTreeSet::new();
    for (table, _) in document.tables() {
        let Some(columns) = columns::of(table, &roll) else { continue };
        taken.extend(table.rows.iter().map(|row| row.offset));
        for row in &table.rows {
            let source = files.at("routing.md", document.line(row.offset));
            reader.row(row, &columns, source);
        }
    }
    for path in json::linked(text) {
        if let Some(text) = files.text(&path) {
            json::read(files, &path, &line_feeds(text), &mut reader);
        }
    }
    // In a file with tables, the lines with rules stay in the prose: they contain more than the rule.
    let lines = lists::read(files, &document, &mut reader);
    if taken.is_empty() {
        taken = lines;
    }
    reader.routing.prose = context::of_routing(files, &document, &taken);
    json::report_missing(files, text, &mut reader);
    let Routing { rules, modules, labels, .. } = &reader.routing;
    if rules.is_empty() && modules.is_empty() && labels.is_empty() {
        reader.problems.push(
            Problem::warning(files.at("routing.md", 1), "routing-empty", "squad found no routing rule in it")
                .hint("rules are rows of a table such as `| Work Type | Route To | Examples |`"),
        );
    } else {
        unread::report(files, &document, &mut reader);
    }
    reader.routing
}

/// The most names in a hint.
const SHOWN: usize = 20;

struct RoutingReader<'a> {
    roll: &'a MemberIndex<'a>,
    problems: &'a mut Vec<Problem>,
    routing: Routing,
}

/// The cells of a row or a JSON entry, by meaning.
#[derive(Clone)]
struct Cells<'a> {
    subject: &'a str,
    first: &'a str,
    second: &'a str,
    review: &'a str,
    action: &'a str,
    examples: Vec<String>,
}

impl RoutingReader<'_> {
    fn row(&mut self, row: &Row, columns: &Columns, source: Source) {
        let cells = Cells {
            subject: row.cell(Some(columns.subject)),
            first: row.cell(Some(columns.first)),
            second: row.cell(columns.second),
            review: row.cell(columns.review),
            action: row.cell(columns.action),
            examples: comma_list(row.cell(columns.examples)),
        };
        self.cells(columns.kind, &cells, source);
    }

    fn cells(&mut self, kind: TableKind, cells: &Cells<'_>, source: Source) {
        // Struck-out rows are void. The lines of a cell are a list.
        let subject = without_struck(cells.subject);
        let lines: Vec<&str> = subject.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let cells = &Cells { subject: &lines.join(", "), ..cells.clone() };
        if is_blank(cells.subject) {
            return;
        }
        // A label such as `squad:{name}` explains a scheme and is no placeholder.
        if kind == TableKind::Labels && is_placeholder(cells.subject) {
            return;
        }
        if is_placeholder(cells.first) || is_unfilled(cells.subject) {
            let message = format!("`{}` is a template's placeholder row", cells.subject);
            let problem = Problem::warning(source, "routing-placeholder", message);
            return self.problems.push(problem.hint("fill it in or delete the row"));
        }
        let mut named = Named::default();
        named.take(cells.first, self.roll, false);
        named.take(cells.second, self.roll, false);
        named.take(cells.review, self.roll, true);
        self.unknown(cells.subject, &named, &source);
        if kind != TableKind::Labels {
            self.idle(cells.subject, &named, &source);
        }
        match kind {
            TableKind::Work => self.routing.rules.push(Rule {
                signal: cells.subject.to_owned(),
                agents: named.agents,
                reviewer: named.reviewer,
                examples: cells.examples.clone(),
                source,
            }),
            TableKind::Modules => {
                let mut agents = named.agents.into_iter();
                let Some(primary) = agents.next() else { return };
                let secondary = agents.next();
                let module = |path: String| Module {
                    path: module_path(&path),
                    primary: primary.clone(),
                    secondary: secondary.clone(),
                    source: source.clone(),
                };
                self.routing.modules.extend(comma_list(cells.subject).into_iter().map(module));
            }
            TableKind::Labels => self.routing.labels.push(LabelRule {
                label: cells.subject.to_owned(),
                action: cells.action.to_owned(),
                agents: named.agents,
                source,
            }),
        }
    }

    /// Reports rules that lead to former members, people or bots, whom squad does not start.
    fn idle(&mut self, subject: &str, named: &Named, source: &Source) {
        let member = |slug: &Slug| self.roll.members.iter().find(|member| member.slug == *slug);
        let is_helper = |slug: &Slug| match member(slug) {
            Some(member) => member.kind == Kind::Helper,
            None => HELPERS.contains(&slug.as_str()),
        };
        if !named.agents.is_empty() && named.agents.iter().all(is_helper) {
            let helpers = list(named.agents.iter().map(|slug| format!("`{slug}`")));
            let message = format!("`{subject}` routes only to {helpers}, a built-in helper that squad never starts");
            let hint = "squad does a helper's work itself; delete the rule, or route it to an agent";
            // Templates have a row for what squad does anyway.
            let is_done = has_word(&subject.to_lowercase(), HELPERS_WORK);
            let severity = if is_done { Severity::Note } else { Severity::Warning };
            return self.problems.push(Problem::new(severity, source.clone(), "routing-helper", message).hint(hint));
        }
        let is_stranger = |slug: &&Slug| member(slug).is_none() && !is_helper(slug);
        let strangers: Vec<String> = named.agents.iter().filter(is_stranger).map(|slug| format!("`{slug}`")).collect();
        self.strangers(subject, &strangers, strangers.len() == named.agents.len(), source);
        let members: Vec<&Member> = named.agents.iter().filter_map(member).collect();
        // Squad does the built-in helpers' work itself.
        let (idle, others): (Vec<&Member>, Vec<&Member>) =
            members.iter().partition(|member| !member.is_startable() && member.kind != Kind::Helper);
        let has_left = |member: &&Member| member.kind == Kind::Agent;
        // People and bots are fine in a rule with an agent that squad can start.
        let idle: Vec<&Member> = if others.is_empty() { idle } else { idle.into_iter().filter(has_left).collect() };
        if idle.is_empty() {
            return;
        }
        let (why, hint) = match idle.iter().find(|member| !has_left(member)).map(|member| member.kind) {
            Some(Kind::Human) => ("human", "squad does not start people; the coordinator decides who works"),
            Some(_) => ("it works elsewhere", "squad does not start it; the coordinator decides who works"),
            None => ("not active", "route it to an active agent, or delete the rule"),
        };
        let names = list(idle.iter().map(|member| format!("`{}`", member.name)));
        let (severity, message) = match others.is_empty() {
            true => (Severity::Warning, format!("`{subject}` routes only to {names}: {why}")),
            false => (Severity::Note, format!("`{subject}` also routes to {names}: {why}")),
        };
        self.problems.push(Problem::new(severity, source.clone(), "routing-idle-agent", message).hint(hint));
    }

    fn unknown(&mut self, subject: &str, named: &Named, source: &Source) {
        self.strangers(subject, &named.unknown, named.agents.is_empty(), source);
    }

    /// Reports those that a rule names, and perhaps no others, who are not on the roster.
    fn strangers(&mut self, subject: &str, names: &[String], are_all: bool, source: &Source) {
        if names.is_empty() {
            return;
        }
        let severity = if are_all { Severity::Warning } else { Severity::Note };
        let message = format!("`{subject}` routes to {}, who is not on the roster", list(names));
        let members = self.roll.members;
        let mut roster: Vec<String> = members.iter().take(SHOWN).map(|member| member.name.clone()).collect();
        if members.len() > SHOWN {
            roster.push(plural(members.len() - SHOWN, "other"));
        }
        let hint = match members {
            [] => "squad found nobody on the roster; fix team.md first".to_owned(),
            _ => format!("the roster has {}", list(roster)),
        };
        self.problems.push(Problem::new(severity, source.clone(), "routing-unknown-agent", message).hint(hint));
    }
}

/// Whether a cell is only a template's `{placeholder}`. Other braces are file patterns.
fn is_unfilled(cell: &str) -> bool {
    is_placeholder(cell) && cell.trim().starts_with('{') && cell.trim().ends_with('}')
}

/// Normalizes a path: `/` as separator, without leading `./` and trailing `/**`.
fn module_path(path: &str) -> String {
    let path = path.replace('\\', "/");
    let path = path.trim_start_matches("./").trim_start_matches('/');
    let path = path.strip_suffix("/**").or_else(|| path.strip_suffix("/*")).unwrap_or(path);
    path.trim_end_matches('/').to_owned()
}
