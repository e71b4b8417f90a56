//! Files of single decisions, as `record` writes them and people edit them.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::{Files, front_matter, line_feeds, without_mark};
use super::date::date_in;
use super::found;
use super::matter;
use super::places::{FileKind, file_kind, main_file};
use super::status;
use crate::model::{Decision, DecisionId, Problem, RunId, Source, first_line, list};

/// All such decisions of a team folder.
pub(super) fn all(files: &Files, problems: &mut Vec<Problem>) -> Vec<Decision> {
    let main = main_file(files);
    let mut decisions: Vec<Decision> = Vec::new();
    let mut known: HashMap<DecisionId, String> = HashMap::new();
    for (path, text) in files.texts.iter().filter(|(path, _)| matches!(file_kind(path, main), Some(FileKind::Own))) {
        let source = files.at(path, 1);
        match read(text, source.clone()) {
            Ok((decision, doubts)) => {
                problems.extend(doubts);
                if let Some(other) = known.insert(decision.id.clone(), source.file.clone()) {
                    let message = format!("`{}` is the id of {other} too, and both count", decision.id);
                    problems.push(
                        Problem::warning(source, "decision-id-twice", message)
                            .hint("delete one of them, or give one another `id:`"),
                    );
                }
                decisions.push(decision);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    decisions
}

/// One decision, from the text of its file.
#[cfg(test)]
pub(crate) fn decision_file(text: &str, source: Source) -> Result<Decision, Box<Problem>> {
    read(text, source).map(|(decision, _)| decision)
}

/// The front matter as `record` writes it.
#[derive(Deserialize)]
struct Matter {
    id: String,
    date: Option<String>,
    by: Option<String>,
    run: Option<String>,
    supersedes: Option<String>,
    /// From the entry that the file was imported from.
    status: Option<String>,
    #[serde(default)]
    scope: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
}

impl Matter {
    /// Reads front matter with lists instead of texts or the reverse. Also gives all superseded ids after the first.
    fn loose(text: &str) -> Option<(Self, Vec<String>)> {
        front_matter::read::<BTreeMap<String, IgnoredAny>>(text).ok()?;
        let fields = matter::pairs(&text.lines().collect::<Vec<_>>())?;
        let find =
            |name: &str| fields.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value);
        let quotes: &[char] = &['"', '\''];
        let all = |name: &str| {
            let values = find(name).into_iter().flat_map(|value| value.split(','));
            values.map(|value| value.trim().trim_matches(quotes).to_owned()).filter(|value| !value.is_empty())
        };
        let by: Vec<String> = all("by").collect();
        let id = find("id")?.clone();
        let mut old = all("supersedes").filter(|old| *old != id);
        let matter = Self {
            date: find("date").cloned(),
            by: Some(by.join(", ")).filter(|by| !by.is_empty()),
            run: find("run").cloned(),
            supersedes: old.next(),
            status: find("status").cloned(),
            scope: all("scope").collect(),
            tags: all("tags").collect(),
            id: id.clone(),
        };
        Some((matter, old.collect()))
    }
}

/// The front matter, the superseded ids after the first, and the body.
fn split<'t>(text: &'t str, source: &Source) -> Result<(Matter, Vec<String>, &'t str), Box<Problem>> {
    let (Some(front), body_at) = front_matter::split(text) else {
        return Err(Box::new(
            Problem::warning(source.clone(), "decision-front-matter", "a decision's file begins with front matter")
                .hint("`---`, then at least `id:`, then `---`"),
        ));
    };
    let (matter, others) = match front_matter::read::<Matter>(front) {
        Ok(matter) => (matter, Vec::new()),
        Err(error) => Matter::loose(front).ok_or_else(|| {
            let at = Source::new(&source.file, 1 + error.line);
            let message = format!("the front matter cannot be read: {}", error.message);
            Box::new(Problem::warning(at, "decision-front-matter", message))
        })?,
    };
    Ok((matter, others, text.get(body_at..).unwrap_or_default().trim_start()))
}

/// A decision, and the problems of its front matter.
fn read(text: &str, source: Source) -> Result<(Decision, Vec<Problem>), Box<Problem>> {
    let text = line_feeds(without_mark(text));
    let (matter, others, body) = split(&text, &source)?;
    let (title, text) = match body.strip_prefix("# ") {
        Some(rest) => rest.split_once('\n').unwrap_or((rest, "")),
        None => body.split_once('\n').unwrap_or((body, "")),
    };
    let mut doubts = Vec::new();
    let id = DecisionId::parse(&matter.id).unwrap_or_else(|| {
        let id = found::id(&[&matter.id]);
        let message = format!("`id: {}` cannot be an id, and `{id}` stands for it", first_line(&matter.id, 40));
        doubts.push(
            Problem::warning(source.clone(), "decision-id", message)
                .hint("an id is letters, digits, hyphens and dots, such as `4f1c09`"),
        );
        id
    });
    // Equal invalid ids give equal hashes. A decision cannot supersede itself.
    let superseded = |text: String| DecisionId::parse(&text).unwrap_or_else(|| found::id(&[&text]));
    let supersedes = matter.supersedes.map(superseded).filter(|old| *old != id);
    if let Some(first) = supersedes.as_ref().filter(|_| !others.is_empty()) {
        let others = list(others.iter().map(|id| format!("`{id}`")));
        let message = format!("supersedes only `{first}`, and not {others}");
        doubts.push(
            Problem::warning(source.clone(), "decision-supersedes-many", message)
                .hint("a decision replaces only one; delete the files of the others"),
        );
    }
    let (date, no_date): (Option<String>, _) = match matter.date {
        Some(text) if date_in(&text).is_none() => (None, Some(text)),
        date => (date, None),
    };
    doubts.extend(no_date.map(|text| {
        let message = format!("`date: {}` is no day, and the decision counts as undated", first_line(&text, 40));
        Problem::warning(source.clone(), "decision-date", message).hint("write the day as `2026-01-31`")
    }));
    let decision = Decision {
        title: title.trim().to_owned(),
        date,
        by: matter.by,
        run: matter.run.as_deref().and_then(RunId::parse),
        supersedes,
        scope: matter.scope,
        tags: matter.tags,
        text: text.trim().to_owned(),
        status: matter.status.as_deref().and_then(status::parse),
        source: Some(source),
        id,
    };
    Ok((decision, doubts))
}
