//! `team.md`: the tables that have a name and a role column.

use super::Files;
use super::markdown::{BlockKind, Document, Row, Table};
use super::words::{is_blank, is_placeholder, remark, without_pictographs};
use crate::model::{Kind, Member, Problem, Severity, Slug, Status};

pub(super) struct Roster {
    pub(super) name: Option<String>,
    pub(super) members: Vec<Member>,
}

/// Members that other tools build into every team; their work is done by squad itself.
const HELPERS: [&str; 3] = ["scribe", "ralph", "rai"];

/// The coding agent that works elsewhere, `@copilot`.
const BOT: &str = "copilot";

const NAME: [&str; 3] = ["name", "member", "agent"];
const STATUS: [&str; 2] = ["status", "state"];
const BADGE: [&str; 2] = ["badge", "type"];

pub(super) fn read(files: &Files, text: &str, problems: &mut Vec<Problem>) -> Roster {
    let document = Document::new(text);
    let mut members: Vec<Member> = Vec::new();
    for (table, _) in document.tables() {
        let (Some(name), Some(role)) = (table.column(&NAME), table.column(&["role"])) else { continue };
        for row in &table.rows {
            let source = files.at("team.md", document.line(row.offset));
            if is_placeholder(row.cell(Some(name))) {
                let message = format!("`{}` is a template's placeholder, not a member", row.cell(Some(name)));
                problems
                    .push(Problem::warning(source, "roster-placeholder", message).hint("fill it in or delete the row"));
                continue;
            }
            let Some(member) = member(files, table, row, (name, role), source.clone()) else {
                if !is_coordinator(row.cell(Some(role))) {
                    let message = format!("`{}` is not a name squad can use", row.cell(Some(name)));
                    problems.push(
                        Problem::warning(source, "roster-name", message).hint("a name needs a letter or a digit"),
                    );
                }
                continue;
            };
            match members.iter().find(|earlier| earlier.slug == member.slug) {
                None => members.push(member),
                Some(earlier) => {
                    let message =
                        format!("{} is listed a second time; line {} counts", member.name, earlier.source.line);
                    problems.push(Problem::new(Severity::Note, source, "roster-duplicate", message));
                }
            }
        }
    }
    if members.is_empty() {
        problems.push(
            Problem::new(Severity::Error, files.at("team.md", 1), "roster-empty", "no table in it lists a member")
                .hint("a roster is a table with a Name and a Role column"),
        );
    }
    Roster { name: name_of(&document), members }
}

/// The block quote or first heading after generic words: what the team is called.
fn name_of(document: &Document<'_>) -> Option<String> {
    document.blocks.iter().find_map(|block| match &block.kind {
        BlockKind::Heading { level: 1, text } => Some(without_pictographs(text)),
        _ => None,
    })
}

fn is_coordinator(role: &str) -> bool {
    without_pictographs(role).to_lowercase().starts_with("coordinator")
}

fn member(
    files: &Files,
    table: &Table,
    row: &Row,
    (name, role): (usize, usize),
    source: crate::model::Source,
) -> Option<Member> {
    let raw_name = row.cell(Some(name));
    let role_text = without_pictographs(row.cell(Some(role)));
    if is_coordinator(&role_text) {
        return None;
    }
    let shown = without_pictographs(raw_name);
    let name = shown.trim_start_matches('@').trim_matches('"').trim().to_owned();
    let marks = [STATUS, BADGE].map(|names| row.cell(table.column(&names)).to_lowercase());
    let charter_cell = row.cell(table.column(&["charter", "file"]));
    let folder = folder_in(charter_cell).or_else(|| folder_named(files, &name));
    let slug = Slug::fold(folder.as_deref().unwrap_or(remark(&name).0))?;
    let charter = format!("agents/{slug}/charter.md");
    Some(Member {
        kind: kind(&slug, &shown, &role_text, &marks),
        status: status(&marks[0]),
        charter: files.texts.contains_key(&charter).then(|| files.shown(&charter)),
        role: role_text,
        name,
        slug,
        source,
    })
}

/// `agents/<folder>/charter.md` anywhere in the cell.
fn folder_in(cell: &str) -> Option<String> {
    let path = cell.replace('\\', "/");
    let (_, rest) = path.split_once("agents/")?;
    let folder = rest.split('/').next()?.trim();
    (!is_blank(folder)).then(|| folder.to_owned())
}

/// The agent's folder by its name, whichever way the name is folded.
fn folder_named(files: &Files, name: &str) -> Option<String> {
    [name, remark(name).0, name.split_whitespace().next()?].into_iter().filter_map(Slug::fold).find_map(|slug| {
        files.texts.contains_key(&format!("agents/{slug}/charter.md")).then(|| slug.as_str().to_owned())
    })
}

fn kind(slug: &Slug, name: &str, role: &str, marks: &[String; 2]) -> Kind {
    let role = role.to_lowercase();
    let says = |word: &str| {
        marks.iter().chain([&role]).any(|text| text.split(|c: char| !c.is_alphanumeric()).any(|part| part == word))
    };
    if name.starts_with("@copilot") || role.contains("coding agent") || marks.iter().any(|m| m.contains("coding agent"))
    {
        Kind::Bot
    } else if says("human") || marks.iter().any(|mark| mark.contains('👤')) {
        Kind::Human
    } else if HELPERS.contains(&slug.as_str()) {
        Kind::Helper
    } else {
        Kind::Agent
    }
}

fn status(cell: &str) -> Status {
    let words: Vec<&str> = cell.split(|c: char| !c.is_alphanumeric()).collect();
    let says = |word: &str| words.contains(&word);
    if says("retired") || says("archived") {
        Status::Retired
    } else if says("inactive") || says("dormant") || says("paused") {
        Status::Inactive
    } else if says("silent") {
        Status::Silent
    } else if says("monitor") {
        Status::Monitor
    } else {
        Status::Active
    }
}

/// The member a cell or a mention means: by slug, by name, by the name's first word, or by role.
pub(super) fn resolve<'m>(members: &'m [Member], text: &str) -> Option<&'m Member> {
    let by_role = || {
        let wanted = wanted(text)?;
        members.iter().find(|member| Slug::fold(&member.role).as_ref() == Some(&wanted))
    };
    resolve_name(members, text).or_else(by_role)
}

/// The member a text names: by slug, by name, or by the name's first word.
pub(super) fn resolve_name<'m>(members: &'m [Member], text: &str) -> Option<&'m Member> {
    let wanted = wanted(text)?;
    let by = |matches: &dyn Fn(&Member) -> bool| members.iter().find(|member| matches(member));
    by(&|member| member.slug == wanted)
        .or_else(|| by(&|member| Slug::fold(&member.name).as_ref() == Some(&wanted)))
        .or_else(|| by(&|member| Slug::fold(remark(&member.name).0).as_ref() == Some(&wanted)))
        .or_else(|| by(&|member| member.name.split_whitespace().next().and_then(Slug::fold).as_ref() == Some(&wanted)))
}

/// A helper or the bot that every team has, whether or not its roster lists it.
pub(super) fn built_in(name: &str) -> Option<Slug> {
    wanted(name).filter(|slug| HELPERS.contains(&slug.as_str()) || slug.as_str() == BOT)
}

fn wanted(text: &str) -> Option<Slug> {
    let text = without_pictographs(text);
    Slug::fold(remark(&text).0.trim_start_matches('@'))
}
