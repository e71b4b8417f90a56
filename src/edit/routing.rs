//! Edits rows and lines of the routing table.

use std::collections::BTreeSet;

use super::cells::{add_line, cell, line, remove_line, row_like, set_cell, set_line};
use super::naming::Naming;
use super::{Draft, NewMember, refusal};
use crate::model::{IntoSet, Member, Problem, Rule, Slug, Sort, Source, Team, list, printable, stems};
use crate::parse::{TableKind, at_arrow, line_feeds, rule_tables};

const ROUTING: &str = "routing.md";

const NEW: &str = "# Routing\n\n| Work Type | Route To | Examples |\n|-----------|----------|----------|\n";

/// Adds a row for a new member below the last row that routes work to an agent.
pub(super) fn add(draft: &mut Draft<'_>, signal: &str, new: &NewMember) -> Result<(), Problem> {
    if draft.text(ROUTING).trim().is_empty() {
        draft.put(ROUTING, format!("{NEW}| {signal} | {} |  |\n", new.name));
        return Ok(());
    }
    let readable = draft.readable(ROUTING);
    let tables = rule_tables(&readable, &draft.team.members);
    let is_work = |rule: &&Rule| {
        let starts = |slug: &Slug| draft.team.startable_member(slug).is_some();
        rule.source.file == draft.files.shown(ROUTING) && rule.agents.iter().any(starts)
    };
    let table_at =
        |at: usize| tables.iter().find(|table| table.columns.kind == TableKind::Work && table.lines.contains(&at));
    let rules = draft.team.rules.iter().filter(is_work);
    let last = rules.filter(|rule| table_at(rule.source.line).is_some()).map(|rule| rule.source.line).max();
    let Some((at, table)) = last.and_then(|at| Some((at, table_at(at)?))) else {
        let is_elsewhere = |rule: &&Rule| rule.source.file != draft.files.shown(ROUTING);
        if let Some(rule) = draft.team.rules.iter().find(is_elsewhere) {
            let hint = format!("omit --routes, and add the entry there: {signal} → {}", new.name);
            return Err(refusal(
                rule.source.clone(),
                "the rules are in this file, and squad adds rows to tables only",
                hint,
            ));
        }
        let source = Source::new(draft.files.shown(ROUTING), 0);
        let hint = format!("omit --routes, and write the rule like the others: {signal} → {}", new.name);
        return Err(refusal(source, "it has no table of rules that squad could add a row to", hint));
    };
    let columns = &table.columns;
    let text = draft.text(ROUTING);
    let value = |column: usize| match column {
        column if column == columns.subject => signal.to_owned(),
        column if column == columns.first => new.name.clone(),
        column => {
            let is_dash = |row: &&usize| cell(text, **row, column) == Some("—");
            table.lines.iter().find(is_dash).map(|_| "—".to_owned()).unwrap_or_default()
        }
    };
    let values: Vec<String> = (0..table.width).map(value).collect();
    let added = row_like(text, at, &values).and_then(|row| add_line(text, below(draft, at), &row));
    draft.put_at(&Source::new(draft.files.shown(ROUTING), at), added)
}

/// Takes the words of a new member's rows out of those of others, which would compete for the same messages: out of their
/// examples, and out of what they are about if something is left of it. Tells what it took.
pub(super) fn take_words(draft: &mut Draft<'_>, new: &NewMember) -> Result<Vec<String>, Problem> {
    let wanted: Vec<Vec<String>> = new.signals.iter().flat_map(|signal| signal.split(',')).map(stems).collect();
    let is_taken = |item: &String| {
        let words = stems(item);
        !words.is_empty() && wanted.contains(&words)
    };
    let tables = rule_tables(&draft.readable(ROUTING), &draft.team.members);
    let mut notes = Vec::new();
    for place in 0..draft.team.rules.len() {
        let rule = draft.team.rules[place].clone();
        let at = rule.source.line;
        let table = tables.iter().find(|table| table.columns.kind == TableKind::Work && table.lines.contains(&at));
        let Some(table) = table.filter(|_| rule.source.file == draft.files.shown(ROUTING)) else { continue };
        let mut all_taken = Vec::new();
        for column in table.columns.examples.into_iter().chain([table.columns.subject]) {
            let is_subject = column == table.columns.subject;
            let Some(text) = cell(draft.text(ROUTING), at, column) else { continue };
            let items: Vec<String> = text.split(',').map(|item| item.trim().to_owned()).collect();
            let is_plain = if is_subject { text == rule.signal } else { items == rule.examples };
            let (taken, kept): (Vec<String>, Vec<String>) = items.into_iter().partition(is_taken);
            // A cell that is more than a plain list is the team's to change.
            if taken.is_empty() || !is_plain || (is_subject && kept.is_empty()) {
                continue;
            }
            let changed = set_cell(draft.text(ROUTING), at, column, &kept.join(", "));
            draft.put_at(&rule.source, changed)?;
            match &mut draft.team.rules[place] {
                rule if is_subject => rule.signal = kept.join(", "),
                rule => rule.examples = kept,
            }
            all_taken.extend(taken);
        }
        if !all_taken.is_empty() {
            let taken = list(all_taken.iter().map(|word| format!("`{}`", printable(word))));
            notes.push(format!("{taken} taken out of the row `{}`", printable(&rule.signal)));
        }
    }
    Ok(notes)
}

/// Removes the rows that lead to a retiring member only. Tells of them, and who has its other rows.
pub(super) fn retire(draft: &mut Draft<'_>, member: &Member, expected: &mut Team) -> Result<Vec<String>, Problem> {
    let tables = rule_tables(&draft.readable(ROUTING), &draft.team.members);
    let mut notes = Vec::new();
    let mut rules: Vec<Rule> = draft.team.rules.clone();
    rules.retain(|rule| rule.agents.contains(&member.slug) && rule.source.file == draft.files.shown(ROUTING));
    rules.stable_sort_by_key(|rule| std::cmp::Reverse(rule.source.line));
    for rule in rules {
        let at = rule.source.line;
        let signal = printable(&rule.signal);
        let others = rule.agents.iter().filter(|slug| **slug != member.slug);
        if let Some(next) = others.filter_map(|slug| draft.team.startable_member(slug)).next() {
            notes.push(format!("the row `{signal}` goes to {}", next.name));
            continue;
        }
        let table = tables.iter().find(|table| table.columns.kind == TableKind::Work && table.lines.contains(&at));
        let left = |lines: &[usize]| expected.rules.iter().filter(|rule| lines.contains(&rule.source.line)).count();
        // The last row of a table stays, so that the table is still one.
        if table.is_none_or(|table| left(&table.lines) < 2) {
            continue;
        }
        let removed = remove_line(draft.text(ROUTING), at);
        draft.put_at(&rule.source, removed)?;
        expected.rules.retain(|other| other.source != rule.source);
        notes.push(format!("the row `{signal}` is removed: nobody else works on it"));
    }
    notes.reverse();
    Ok(notes)
}

/// The line after which the next row goes: below rows that were added before, so that they keep their order.
fn below(draft: &Draft<'_>, at: usize) -> usize {
    let rows = |text: &str| text.lines().count();
    let before = draft.before.text(ROUTING).map_or(0, |text| rows(&line_feeds(text)));
    at + rows(&draft.readable(ROUTING)).saturating_sub(before)
}

/// Renames a member in the cells and after the arrows that name it.
pub(super) fn rename(draft: &mut Draft<'_>, member: &Member, naming: &Naming<'_>) -> Result<(), Problem> {
    let team = &draft.team;
    let is_own = |slug: &Slug| *slug == member.slug;
    let rules = team.rules.iter().filter(|rule| rule.agents.iter().chain(&rule.reviewer).any(is_own));
    let modules = team
        .modules
        .iter()
        .filter(|module| [Some(&module.primary), module.secondary.as_ref()].into_iter().flatten().any(is_own));
    let labels = team.labels.iter().filter(|label| label.agents.iter().any(is_own));
    let sources: BTreeSet<Source> = (rules.map(|rule| rule.source.clone()))
        .chain(modules.map(|module| module.source.clone()))
        .chain(labels.map(|label| label.source.clone()))
        .into_set();
    let tables = rule_tables(&draft.readable(ROUTING), &team.members);
    for source in sources {
        let path = source.file.rsplit_once('/').map_or(source.file.as_str(), |(_, name)| name);
        if path != ROUTING {
            rename_in_json(draft, &source, naming)?;
            continue;
        }
        let text = draft.text(ROUTING);
        let table = tables.iter().find(|table| table.lines.contains(&source.line));
        let renamed = match table {
            Some(table) => {
                let columns = [Some(table.columns.first), table.columns.second, table.columns.review];
                let mut cells = columns.into_iter().flatten();
                cells.try_fold(text.to_owned(), |text, column| in_cell(text, source.line, column, naming))
            }
            None => in_line(text, source.line, naming),
        };
        draft.put_at(&source, renamed)?;
    }
    Ok(())
}

/// Renames in a cell. Slashes may separate names.
fn in_cell(text: String, row: usize, column: usize, naming: &Naming<'_>) -> Option<String> {
    let Some(old) = cell(&text, row, column) else { return Some(text) };
    let is_path = old.contains(['.', '`', '(']);
    let new = match is_path {
        true => naming.in_names(old),
        false => old.split('/').map(|part| naming.in_names(part)).collect::<Vec<_>>().join("/"),
    };
    if new == old { Some(text) } else { set_cell(&text, row, column, &new) }
}

fn in_line(text: &str, at: usize, naming: &Naming<'_>) -> Option<String> {
    let whole = line(text, at)?;
    let who = at_arrow(whole).map(|(_, who)| who).filter(|who| naming.in_names(who) != *who);
    let renamed = match who {
        Some(who) => format!("{}{}", whole.strip_suffix(who)?, naming.in_names(who)),
        None => naming.in_names(whole),
    };
    set_line(text, at, &renamed)
}

/// Renames in a JSON table: all string values that equal the name.
fn rename_in_json(draft: &mut Draft<'_>, source: &Source, naming: &Naming<'_>) -> Result<(), Problem> {
    let Some(path) = draft.path(&source.file) else { return Ok(()) };
    let quoted = |name: &str| serde_json::to_string(name).unwrap_or_default();
    let text = draft.text(path);
    let values = [(naming.old, naming.new), (naming.old_slug, naming.new_slug)];
    let renamed = values.into_iter().fold(text.to_owned(), |text, (old, new)| {
        let (old, new) = (quoted(old), quoted(new));
        let mut parts = text.split(&old);
        let first = parts.next().unwrap_or_default().to_owned();
        // A key is no value.
        parts.fold(first, |text, part| {
            let is_key = part.trim_start().starts_with(':');
            format!("{text}{}{part}", if is_key { &old } else { &new })
        })
    });
    draft.put_at(source, Some(renamed))
}
