//! The parsers as `tests/fuzz` reaches them. No part of what squad offers to others.

use crate::model::Problem;
use crate::parse::{Files, team};

/// What there is to feed.
pub const PARSERS: [&str; 10] = [
    "team",
    "routing",
    "routing-json",
    "charter",
    "decisions",
    "decision",
    "skill",
    "ceremonies",
    "registry",
    "identity",
];

/// A roster for texts that name members.
const TEAM: &str = include_str!("../fixtures/forms/team.md");

/// A routing file that points to `work.json`.
const ROUTING: &str = include_str!("../fixtures/forms/routing.md");

/// The text that mutations of a parser's input begin with.
pub fn seed(parser: &str) -> &'static str {
    match parser {
        "team" => TEAM,
        "routing" => ROUTING,
        "routing-json" => include_str!("../fixtures/forms/work.json"),
        "charter" => include_str!("../fixtures/forms/charter.md"),
        "decisions" => include_str!("../fixtures/forms/decisions.md"),
        "skill" => include_str!("../fixtures/forms/skill.md"),
        "ceremonies" => include_str!("../fixtures/forms/ceremonies.md"),
        "registry" => include_str!("../fixtures/forms/registry.json"),
        "identity" => include_str!("../fixtures/forms/now.md"),
        _ => include_str!("../fixtures/forms/decision.md"),
    }
}

/// Feeds a text to a parser; an error says which promise was broken.
pub fn feed(parser: &str, text: &str) -> Result<(), String> {
    let files = files(parser, text);
    let (read, problems) = team(&files);
    for problem in &problems {
        inside(&files, problem)?;
    }
    if team(&files) != (read, problems) {
        return Err("read differently the second time".to_owned());
    }
    Ok(())
}

fn files(parser: &str, text: &str) -> Files {
    let paths: &[&str] = match parser {
        "team" => &["team.md"],
        "routing" => &["routing.md"],
        "routing-json" => &["work.json"],
        "charter" => &["agents/ilse/charter.md", "roles/diver.md"],
        "decisions" => &["decisions.md", "decisions-archive.md", "decisions/inbox/note.md"],
        "skill" => &["skills/tunnels/SKILL.md"],
        "ceremonies" => &["ceremonies.md"],
        "registry" => &["casting/registry.json"],
        "identity" => &["identity/now.md", "identity/wisdom.md"],
        _ => &["decisions/2026/03/01-paint-0a1b2c3d4e5f.md"],
    };
    let mut files = Files { folder: ".squad".to_owned(), ..Files::default() };
    for (path, text) in [("team.md", TEAM), ("routing.md", ROUTING)] {
        files.texts.insert(path.to_owned(), text.to_owned());
    }
    for path in paths {
        files.texts.insert((*path).to_owned(), text.to_owned());
    }
    files
}

fn inside(files: &Files, problem: &Problem) -> Result<(), String> {
    let path = problem.file.strip_prefix(".squad/").unwrap_or(&problem.file);
    let text = files.text(path).unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
    let lines = text.lines().count().max(1);
    let known = files.texts.contains_key(path);
    if known && (1..=lines).contains(&problem.line) { Ok(()) } else { Err(format!("outside the file: {problem:?}")) }
}
