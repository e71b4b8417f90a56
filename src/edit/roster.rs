//! Edits rows and lines of the roster.

use std::collections::BTreeMap;

use super::cells::{add_line, cell, line, lines, remove_line, row_like, set_cell, set_line};
use super::naming::{Naming, with_paths};
use super::{Draft, NewMember};
use crate::model::{Member, Problem, Slug, Status};
use crate::parse::{PlacedTable, RosterColumns, is_of_the_retired, remark, roster_tables, without_pictographs};

const ROSTER: &str = "team.md";

/// The model for a new row: the last active member in the table with the most active members.
pub(super) fn neighbour(draft: &Draft<'_>) -> Option<Member> {
    let tables = roster_tables(&draft.readable(ROSTER), &draft.folders);
    let working = || draft.team.startable().filter(|member| member.source.file.ends_with(ROSTER));
    let count = |table: &PlacedTable<RosterColumns>| {
        working().filter(|member| table.lines.contains(&member.source.line)).count()
    };
    // In a tie, the first table.
    let table = tables.iter().rev().max_by_key(|table| count(table)).filter(|table| count(table) > 0);
    let is_there = |member: &&Member| table.is_none_or(|table| table.lines.contains(&member.source.line));
    working().filter(is_there).last().cloned()
}

/// The table with a row at this line.
fn table_at(draft: &Draft<'_>, line: usize) -> Option<PlacedTable<RosterColumns>> {
    roster_tables(&draft.readable(ROSTER), &draft.folders).into_iter().find(|table| table.lines.contains(&line))
}

pub(super) fn add(
    draft: &mut Draft<'_>,
    new: &NewMember,
    slug: &Slug,
    like: &Member,
    charter: &str,
) -> Result<(), Problem> {
    let at = like.source.line;
    let text = draft.text(ROSTER);
    let added = match table_at(draft, at) {
        Some(table) => {
            let values = values(draft, &table, new, slug, like, charter);
            row_like(text, at, &values).and_then(|row| add_line(text, at, &row))
        }
        None => {
            let item = item_like(text, at, like, new);
            item.and_then(|item| add_line(text, last_line_of_item(text, at), &item))
        }
    };
    draft.put_at(&like.source, added)
}

/// The cells of a new row.
fn values(
    draft: &Draft<'_>,
    table: &PlacedTable<RosterColumns>,
    new: &NewMember,
    slug: &Slug,
    like: &Member,
    charter: &str,
) -> Vec<String> {
    let (columns, text) = (&table.columns, draft.text(ROSTER));
    let old = |column: usize| cell(text, like.source.line, column).unwrap_or_default();
    let blank = blank(text, table);
    let value = |column: usize| {
        let is = |place: Option<usize>| place == Some(column);
        if column == columns.name {
            styled(old(column), remark(&like.name).0, &new.name)
        } else if is(columns.role) {
            new.role.clone()
        } else if is(columns.charter) {
            let own = draft.charter(like).unwrap_or_default();
            Some(with_paths(old(column), &own, charter)).filter(|moved| moved != old(column)).unwrap_or(blank.clone())
        } else if is(columns.status) {
            status_of_most(draft, table)
        } else if is(columns.model) {
            new.model.clone().unwrap_or_else(|| blank.clone())
        } else if is(columns.folder) && old(column).contains(like.slug.as_str()) {
            old(column).replace(like.slug.as_str(), slug.as_str())
        } else {
            blank.clone()
        }
    };
    (0..table.width).map(value).collect()
}

/// The team's way to write an empty cell.
fn blank(text: &str, table: &PlacedTable<RosterColumns>) -> String {
    let cells = table.lines.iter().flat_map(|line| (0..table.width).filter_map(|column| cell(text, *line, column)));
    let mut marks = cells.filter(|cell| matches!(*cell, "—" | "–" | "-"));
    marks.next_back().unwrap_or_default().to_owned()
}

/// The most common status cell of active members.
fn status_of_most(draft: &Draft<'_>, table: &PlacedTable<RosterColumns>) -> String {
    let text = draft.text(ROSTER);
    let working = draft.team.startable().filter(|member| table.lines.contains(&member.source.line));
    let cells: Vec<&str> = working.filter_map(|member| cell(text, member.source.line, table.columns.status?)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|cell| *counts.entry(cell).or_default() += 1);
    let most = cells.iter().rev().max_by_key(|cell| counts.get(**cell)).copied().unwrap_or_default();
    match counts.get(most) {
        // Each cell has its own emoji.
        Some(1) => without_pictographs(most),
        _ => most.to_owned(),
    }
}

/// A name with the markup of another one, but without its emoji.
fn styled(cell: &str, old: &str, new: &str) -> String {
    const MARKS: &[char] = &['*', '_', '`', '@', ' '];
    let around = cell.split_once(old).filter(|(before, after)| {
        before.chars().all(|c| MARKS.contains(&c)) && after.chars().all(|c| MARKS.contains(&c))
    });
    around.map_or_else(|| new.to_owned(), |(before, after)| format!("{before}{new}{after}"))
}

/// A list item like another member's.
fn item_like(text: &str, at: usize, like: &Member, new: &NewMember) -> Option<String> {
    let line = line(text, at)?;
    let (before, rest) = line.split_once(remark(&like.name).0)?;
    let (between, _) = rest.split_once(like.role.as_str()).filter(|_| !like.role.is_empty())?;
    let is_own = |c: &char| !c.is_whitespace() && without_pictographs(&c.to_string()).is_empty();
    let before: String = before.chars().filter(|c| !is_own(c)).collect();
    let item = format!("{}{}{between}{}", before.replace("  ", " "), new.name, new.role);
    (!line.starts_with('#')).then_some(item)
}

/// The last line of the item that begins at a line.
fn last_line_of_item(text: &str, at: usize) -> usize {
    let is_inner = |line: &str| line.starts_with([' ', '\t']) && !line.trim().is_empty();
    let inner = lines(text).into_iter().skip(at).take_while(|line| text.get(line.clone()).is_some_and(is_inner));
    at + inner.count()
}

pub(super) fn retire(draft: &mut Draft<'_>, member: &Member) -> Result<(), Problem> {
    if let Some((old, new)) = draft.moved.clone() {
        let text = draft.text(ROSTER);
        let moved = line(text, member.source.line).map(|row| with_paths(row, &old, &new));
        let changed = moved.and_then(|row| set_line(text, member.source.line, &row));
        draft.put_at(&member.source, changed)?;
    }
    let (at, text) = (member.source.line, draft.text(ROSTER));
    let all = roster_tables(&draft.readable(ROSTER), &draft.folders);
    let own = all.iter().find(|table| table.lines.contains(&at));
    let alumni = all.iter().find(|table| is_of_the_retired(&table.heading) && !table.lines.is_empty());
    let changed = match (own, alumni) {
        (Some(own), Some(alumni)) => move_row(draft, at, own, alumni),
        (Some(own), None) => match own.columns.status {
            Some(status) => set_cell(text, at, status, &retired_as(draft, &all, at, status)),
            None => cell(text, at, own.columns.name)
                .and_then(|name| set_cell(text, at, own.columns.name, &format!("~~{name}~~"))),
        },
        (None, _) => line(text, at).and_then(|line| strike(line, member)).and_then(|line| set_line(text, at, &line)),
    };
    draft.put_at(&member.source, changed)
}

/// The team's way to write a retired status.
fn retired_as(draft: &Draft<'_>, tables: &[PlacedTable<RosterColumns>], at: usize, status: usize) -> String {
    let text = draft.text(ROSTER);
    let left = draft.team.members.iter().filter(|member| member.status == Status::Retired);
    let mut cells = left.filter_map(|member| {
        let line = member.source.line;
        let table = tables.iter().find(|table| table.lines.contains(&line))?;
        cell(text, line, table.columns.status?)
    });
    let is_decorated = |cell: &str| without_pictographs(cell) != cell;
    match cells.next_back() {
        Some(cell) => cell.to_owned(),
        None if cell(text, at, status).is_some_and(is_decorated) => "🔒 Retired".to_owned(),
        None => "Retired".to_owned(),
    }
}

/// Moves a row to the end of the table of former members, matching columns by meaning.
fn move_row(
    draft: &Draft<'_>,
    at: usize,
    own: &PlacedTable<RosterColumns>,
    alumni: &PlacedTable<RosterColumns>,
) -> Option<String> {
    let text = draft.text(ROSTER);
    let (from, to) = (&own.columns, &alumni.columns);
    let last = *alumni.lines.last()?;
    let pairs = [
        (Some(from.name), Some(to.name)),
        (from.role, to.role),
        (from.charter, to.charter),
        (from.scope, to.scope),
        (from.badge, to.badge),
        (from.folder, to.folder),
        (from.model, to.model),
    ];
    let blank = blank(text, alumni);
    let value = |column: usize| {
        let source = pairs.iter().find(|(_, to)| *to == Some(column)).and_then(|(from, _)| *from);
        match source.and_then(|source| cell(text, at, source)) {
            Some(value) => value.to_owned(),
            None if to.status == Some(column) => cell(text, last, column).unwrap_or("Retired").to_owned(),
            None => blank.clone(),
        }
    };
    let values: Vec<String> = (0..alumni.width).map(value).collect();
    let row = row_like(text, last, &values)?;
    // Change the lower line first, so that the other line number stays valid.
    if last > at {
        remove_line(&add_line(text, last, &row)?, at)
    } else {
        add_line(&remove_line(text, at)?, last, &row)
    }
}

/// Strikes out the name in a list line.
fn strike(line: &str, member: &Member) -> Option<String> {
    let (before, after) = line.split_once(remark(&member.name).0)?;
    Some(format!("{before}~~{}~~{after}", remark(&member.name).0))
}

pub(super) fn rename(
    draft: &mut Draft<'_>,
    member: &Member,
    naming: &Naming<'_>,
    moved: Option<&(String, String)>,
) -> Result<(), Problem> {
    let (at, text) = (member.source.line, draft.text(ROSTER));
    let renamed = match table_at(draft, at) {
        Some(table) => {
            let columns = [Some(table.columns.name), table.columns.folder];
            let mut named = Some(text.to_owned());
            for column in columns.into_iter().flatten() {
                named = named.and_then(|text| {
                    let new = naming.in_words(cell(&text, at, column)?);
                    set_cell(&text, at, column, &new)
                });
            }
            named
        }
        None => line(text, at).and_then(|line| set_line(text, at, &naming.in_words(line))),
    };
    let renamed = renamed.filter(|new| new != text);
    let renamed = renamed.and_then(|text| match moved {
        Some((new, old)) => set_line(&text, at, &with_paths(line(&text, at)?, old, new)),
        None => Some(text),
    });
    draft.put_at(&member.source, renamed)
}
