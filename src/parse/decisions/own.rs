//! Files of single decisions, as `record` writes them and people edit them.

use std::collections::HashMap;

use serde::Deserialize;

use super::super::front_matter::Several;
use super::super::{Files, front_matter, line_feeds, without_mark};
use super::date::date_in;
use super::found;
use super::places::{FileKind, KNOWLEDGE, file_kind, main_file};
use super::status;
use crate::model::{Decision, DecisionId, Note, NoteEvidence, NoteKind, Problem, RunId, Source, first_line, list};

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
                    let message = format!("`{}` is also the id of {other}; both count", decision.id);
                    problems.push(
                        Problem::warning(source, "decision-id-twice", message)
                            .hint("delete one of them, or change its `id:`"),
                    );
                }
                decisions.push(decision);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    decisions
}

/// The front matter as `record` writes it.
#[derive(Deserialize)]
struct Matter {
    id: String,
    date: Option<String>,
    by: Option<Several>,
    run: Option<String>,
    #[serde(skip)]
    supersedes: Vec<String>,
    /// From the entry that the file was imported from.
    status: Option<String>,
    scope: Option<Several>,
    tags: Option<Several>,
    /// Of a note.
    kind: Option<String>,
    project: Option<String>,
    from: Option<String>,
    languages: Option<Several>,
    frameworks: Option<Several>,
    evidence: Option<Several>,
}

#[derive(Deserialize)]
struct Superseded<T> {
    supersedes: Option<T>,
}

/// The superseded ids, each as a text: an id may consist of digits, and begin with zeros.
fn superseded(front: &str) -> Vec<String> {
    let one = front_matter::read::<Superseded<String>>(front).map(|one| one.supersedes.into_iter().collect());
    let all = |_| front_matter::read::<Superseded<Vec<String>>>(front).map(|all| all.supersedes.unwrap_or_default());
    one.or_else(all).unwrap_or_default()
}

/// The front matter and the body.
fn split<'t>(text: &'t str, source: &Source) -> Result<(Matter, &'t str), Box<Problem>> {
    let (Some(front), body_at) = front_matter::split(text) else {
        return Err(Box::new(
            Problem::warning(source.clone(), "decision-front-matter", "a decision file starts with front matter")
                .hint("`---`, then at least `id:`, then `---`"),
        ));
    };
    let mut matter: Matter = front_matter::read(front).map_err(|error| {
        let at = Source::new(&source.file, 1 + error.line);
        let message = format!("the front matter cannot be read: {}", error.message);
        Box::new(Problem::warning(at, "decision-front-matter", message))
    })?;
    if front.contains("supersedes") {
        matter.supersedes = superseded(front);
    }
    Ok((matter, text.get(body_at..).unwrap_or_default().trim_start()))
}

/// A decision, and the problems of its front matter.
pub(crate) fn read(text: &str, source: Source) -> Result<(Decision, Vec<Problem>), Box<Problem>> {
    let text = line_feeds(without_mark(text));
    let (matter, body) = split(&text, &source)?;
    let (title, text) = match body.strip_prefix("# ") {
        Some(rest) => rest.split_once('\n').unwrap_or((rest, "")),
        None => body.split_once('\n').unwrap_or((body, "")),
    };
    let mut doubts = Vec::new();
    let id = DecisionId::parse(&matter.id).unwrap_or_else(|| {
        let id = found::id(&[&matter.id]);
        let message = format!("`id: {}` is not a valid id; squad uses `{id}` instead", first_line(&matter.id, 40));
        doubts.push(
            Problem::warning(source.clone(), "decision-id", message)
                .hint("an id is letters, digits, hyphens and dots, such as `4f1c09`"),
        );
        id
    });
    // Equal invalid ids give equal hashes. A decision cannot supersede itself.
    let replaced = |text: String| DecisionId::parse(&text).unwrap_or_else(|| found::id(&[&text]));
    let mut old = matter.supersedes.into_iter().map(replaced);
    let supersedes = old.find(|old| *old != id);
    let others: Vec<DecisionId> = old.collect();
    if let Some(first) = supersedes.as_ref().filter(|_| !others.is_empty()) {
        let others = list(others.iter().map(|id| format!("`{id}`")));
        let message = format!("supersedes only `{first}`, not {others}");
        doubts.push(
            Problem::warning(source.clone(), "decision-supersedes-many", message)
                .hint("a decision can supersede only one; delete the files of the others"),
        );
    }
    let (date, no_date): (Option<String>, _) = match matter.date {
        Some(text) if date_in(&text).is_none() => (None, Some(text)),
        date => (date, None),
    };
    doubts.extend(no_date.map(|text| {
        let message = format!("`date: {}` is not a date, so the decision is undated", first_line(&text, 40));
        Problem::warning(source.clone(), "decision-date", message).hint("write the date as `2026-01-31`")
    }));
    let is_note = source.file.split('/').any(|folder| folder == KNOWLEDGE);
    let note = is_note.then(|| {
        let kind = matter.kind.as_deref().and_then(NoteKind::parse).unwrap_or_else(|| {
            let kinds = list(NoteKind::ALL.map(NoteKind::word));
            let message = format!("has no `kind:` that squad knows, and counts as a {}", NoteKind::default().word());
            let problem = Problem::warning(source.clone(), "knowledge-kind", message);
            doubts.push(problem.hint(format!("the kinds are {kinds}")));
            NoteKind::default()
        });
        let texts = |several: Option<Several>| several.and_then(Several::list).unwrap_or_default();
        let evidence = texts(matter.evidence);
        for wrong in evidence.iter().filter(|text| NoteEvidence::parse(text).is_none()) {
            let message = format!("its evidence `{}` is none that squad knows", first_line(wrong, 80));
            let problem = Problem::warning(source.clone(), "knowledge-evidence", message);
            doubts.push(problem.hint("agents are not told the note; `squad knowledge add --supersedes` replaces it"));
        }
        Note {
            kind,
            languages: texts(matter.languages),
            frameworks: texts(matter.frameworks),
            project: matter.project,
            from: matter.from.as_deref().and_then(DecisionId::parse),
            evidence,
        }
    });
    let decision = Decision {
        note,
        title: title.trim().to_owned(),
        date,
        by: matter.by.map(Several::text),
        run: matter.run.as_deref().and_then(RunId::parse),
        supersedes,
        scope: matter.scope.and_then(Several::list).unwrap_or_default(),
        tags: matter.tags.and_then(Several::list).unwrap_or_default(),
        text: text.trim().to_owned(),
        status: matter.status.as_deref().and_then(status::parse),
        source: Some(source),
        id,
    };
    Ok((decision, doubts))
}
