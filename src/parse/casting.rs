//! `casting/registry.json`: names of members, and who has left. The roster takes precedence: the registry fills in
//! missing statuses, and a contradiction is reported.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Files;
use super::json::{self, Lines};
use super::roster::{HELPERS, MemberIndex, status_of};
use crate::model::{Cast, Member, Problem, Severity, Slug, Status};

const PATH: &str = "casting/registry.json";

pub(super) fn read(files: &Files, problems: &mut Vec<Problem>) -> Vec<Cast> {
    let Some(text) = files.text(PATH).filter(|text| !text.trim().is_empty()) else { return Vec::new() };
    let report = ("casting-json", "fix it or delete the file; the roster decides who is on the team");
    let Some(value) = json::read(files, PATH, text, report, problems) else { return Vec::new() };
    let mut lines = Lines::new(text);
    entries(&value)
        .into_iter()
        .filter_map(|(key, entry)| {
            let name = ["persistent_name", "name", "display_name"].iter().find_map(|key| entry.get(*key)?.as_str());
            let name = name.or(key)?;
            let line = lines.next(key.unwrap_or(name));
            let status = entry.get("status").and_then(Value::as_str).and_then(word);
            Some(Cast {
                name: name.to_owned(),
                slug: key.and_then(Slug::fold).or_else(|| Slug::fold(name))?,
                status,
                source: files.at(PATH, line),
            })
        })
        .collect()
}

/// Fills in statuses that the roster lacks (`silent`), and reports contradictions.
pub(super) fn compare(casts: &[Cast], members: &mut [Member], silent: &BTreeSet<Slug>, problems: &mut Vec<Problem>) {
    let mut corrected = Vec::new();
    let roll = MemberIndex::new(members);
    for cast in casts {
        let Some(status) = cast.status else { continue };
        let Some(member) = roll.named(cast.slug.as_str()).or_else(|| roll.named(&cast.name)) else {
            if !has_left(status) && !HELPERS.contains(&cast.slug.as_str()) {
                let message = format!("`{}` is active here but not on the roster", cast.name);
                let problem = Problem::new(Severity::Note, cast.source.clone(), "cast-not-on-roster", message);
                problems.push(problem.hint("add a row for it to team.md, or set its status to retired"));
            }
            continue;
        };
        if has_left(status) == has_left(member.status) {
            continue;
        }
        if silent.contains(&member.slug) {
            corrected.push((member.slug.clone(), status));
        } else {
            let (here, there) = if has_left(status) { ("has left", "works") } else { ("works", "has left") };
            let message = format!(
                "{} {here} by this registry but {there} by line {} of the roster, which wins",
                member.name, member.source.line
            );
            let problem = Problem::new(Severity::Note, cast.source.clone(), "casting-contradicts", message);
            problems.push(problem.hint("make `status` match team.md"));
        }
    }
    for (slug, status) in corrected {
        if let Some(member) = members.iter_mut().find(|member| member.slug == slug) {
            member.status = status;
        }
    }
}

fn word(status: &str) -> Option<Status> {
    status_of(&status.to_lowercase())
}

fn has_left(status: Status) -> bool {
    matches!(status, Status::Retired | Status::Inactive)
}

/// The entries of `agents`, an object by slug or a list, or of the document itself.
fn entries(value: &Value) -> Vec<(Option<&str>, &Map<String, Value>)> {
    let agents = ["agents", "members", "cast"].iter().find_map(|key| value.get(*key)).unwrap_or(value);
    match agents {
        Value::Array(list) => list.iter().filter_map(Value::as_object).map(|entry| (None, entry)).collect(),
        Value::Object(map) => {
            map.iter().filter_map(|(key, entry)| Some((Some(key.as_str()), entry.as_object()?))).collect()
        }
        _ => Vec::new(),
    }
}
