//! `routing.md`: tables that send kinds of work to members.

use super::Files;
use super::markdown::{Document, Row, Table};
use super::roster::resolve;
use super::words::{comma_list, is_blank, is_placeholder, remark, without_pictographs};
use crate::model::{Member, Problem, Rule, Severity, Slug, Source, list};

const SIGNAL: [&str; 7] = ["work type", "signal", "domain", "domain / keywords", "domain/keywords", "type", "task"];
const FIRST: [&str; 8] = ["route to", "agent", "agent/owner", "owner", "primary agent", "primary", "agents", "who"];
const SECOND: [&str; 3] = ["secondary", "secondary agent", "backup"];
const REVIEW: [&str; 3] = ["reviewer", "review", "review by"];
const EXAMPLES: [&str; 4] = ["examples", "example tasks", "example", "keywords"];

pub(super) fn read(files: &Files, text: &str, members: &[Member], problems: &mut Vec<Problem>) -> Vec<Rule> {
    let document = Document::new(text);
    let mut rules = Vec::new();
    for (table, _) in document.tables() {
        let (Some(signal), Some(first)) = (table.column(&SIGNAL), table.column(&FIRST)) else { continue };
        for row in &table.rows {
            let source = files.at("routing.md", document.line(row.offset));
            if row.cells.iter().any(|cell| is_placeholder(cell)) && row.cell(Some(first)).contains('{') {
                let message = format!("`{}` is a template's placeholder row", row.cell(Some(signal)));
                problems.push(
                    Problem::warning(source, "routing-placeholder", message).hint("fill it in or delete the row"),
                );
            } else if let Some(rule) = rule(table, row, (signal, first), members, source, problems) {
                rules.push(rule);
            }
        }
    }
    if rules.is_empty() {
        problems.push(
            Problem::warning(files.at("routing.md", 1), "routing-empty", "squad found no routing rule in it")
                .hint("rules are rows of a table such as `| Work Type | Route To | Examples |`"),
        );
    }
    rules
}

fn rule(
    table: &Table,
    row: &Row,
    (signal, first): (usize, usize),
    members: &[Member],
    source: Source,
    problems: &mut Vec<Problem>,
) -> Option<Rule> {
    let signal = row.cell(Some(signal)).to_owned();
    if is_blank(&signal) {
        return None;
    }
    let mut named = Named::default();
    named.take(row.cell(Some(first)), members, false);
    named.take(row.cell(table.column(&SECOND)), members, false);
    named.take(row.cell(table.column(&REVIEW)), members, true);
    if !named.unknown.is_empty() {
        let message = format!("`{signal}` routes to {}, who is not on the roster", list(&named.unknown));
        let problem = Problem::new(
            if named.agents.is_empty() { Severity::Warning } else { Severity::Note },
            source.clone(),
            "routing-unknown-agent",
            message,
        );
        problems.push(problem.hint(format!("the roster has {}", list(members.iter().map(|member| &member.name)))));
    }
    Some(Rule {
        signal,
        agents: named.agents,
        reviewer: named.reviewer,
        examples: comma_list(row.cell(table.column(&EXAMPLES))),
        source,
    })
}

/// Who the cells of a row name.
#[derive(Default)]
struct Named {
    agents: Vec<Slug>,
    reviewer: Option<Slug>,
    unknown: Vec<String>,
}

impl Named {
    fn take(&mut self, cell: &str, members: &[Member], reviews: bool) {
        if is_blank(cell) {
            return;
        }
        // A whole cell may be one name that contains what otherwise separates names.
        let parts = if resolve(members, cell).is_some() { vec![cell.to_owned()] } else { split(cell) };
        for part in parts {
            let (name, remark) = remark(&part);
            let Some(member) = resolve(members, name) else {
                self.unknown.push(format!("`{}`", without_pictographs(name)));
                continue;
            };
            let slug = member.slug.clone();
            if reviews || remark.to_lowercase().contains("review") {
                self.reviewer.get_or_insert(slug);
            } else if !self.agents.contains(&slug) {
                self.agents.push(slug);
            }
        }
    }
}

fn split(cell: &str) -> Vec<String> {
    cell.replace(" and ", ",")
        .replace('→', ",")
        .split([',', '+', '&', '/', '\n'])
        .map(|part| part.trim().to_owned())
        .filter(|part| !is_blank(part))
        .collect()
}
