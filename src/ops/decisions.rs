//! Decisions: how they stand, and adding one. `landing` brings them to the branch.

use std::collections::BTreeSet;

use serde::Serialize;

use super::journal::{append, logged_decision};
use super::landing::as_recorded;
use super::{Project, ledger, secrets};
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Actor, Decision, DecisionId, DecisionState, Source, What, list, printable};
use crate::parse::{self, Files};
use crate::record::Entry;

/// A decision and how it stands, as `squad decisions` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Standing {
    pub(crate) id: DecisionId,
    pub(crate) title: String,
    pub(crate) date: Option<String>,
    pub(crate) by: Option<String>,
    pub(crate) state: DecisionState,
    pub(crate) source: Option<Source>,
    pub(crate) scope: Vec<String>,
    pub(crate) text: String,
}

/// Every decision there is, in every state, the newest first.
///
/// In force is what the checked-out commit holds; the work tree may be ahead of it.
pub(crate) fn standing(project: &Project) -> Result<Vec<Standing>, Failure> {
    let head = project.repository.head()?;
    let branch = as_recorded(head.branch.as_deref());
    let on_branch = match &head.commit {
        // A borrowed team's decisions are those of the work tree it is borrowed from.
        _ if project.folder.is_borrowed() => project.decisions().to_vec(),
        Some(commit) => at_commit(project, commit)?,
        None => Vec::new(),
    };
    let superseded: BTreeSet<&DecisionId> = on_branch.iter().filter_map(|other| other.supersedes.as_ref()).collect();
    let mut known: BTreeSet<DecisionId> = on_branch.iter().map(|decision| decision.id.clone()).collect();
    let mut all: Vec<Standing> = on_branch
        .iter()
        .map(|decision| {
            let is_superseded = superseded.contains(&decision.id);
            let state = if is_superseded { Some(DecisionState::Superseded) } else { decision.ended() };
            stand(decision, state.unwrap_or(DecisionState::InForce))
        })
        .collect();
    for logged in ledger::decisions(&project.repository, &project.ledger_prefix())? {
        if !known.insert(logged.decision.id.clone()) {
            continue;
        }
        let state = if logged.landed.is_empty() {
            DecisionState::Unlanded
        } else if logged.landed.iter().any(|landed| Some(landed) == branch.as_ref()) {
            DecisionState::Withdrawn
        } else {
            DecisionState::Elsewhere
        };
        all.push(stand(&logged.decision, state));
    }
    // Written by hand and not committed yet.
    for decision in project.decisions() {
        if known.insert(decision.id.clone()) {
            all.push(stand(decision, DecisionState::Unlanded));
        }
    }
    all.sort_by(|a, b| b.date.cmp(&a.date));
    Ok(all)
}

/// The decisions in the team's files as a commit has them.
fn at_commit(project: &Project, commit: &str) -> Result<Vec<Decision>, Failure> {
    let folder = project.folder_in_repository();
    let inner = |path: &str| path.strip_prefix(&folder).map(|path| path.trim_start_matches('/').to_owned());
    let wanted = |path: &str| inner(path).is_some_and(|path| path.starts_with("decisions") && path.ends_with(".md"));
    let files = project.repository.files_at(commit, &folder, wanted)?;
    let texts = files.into_iter().filter_map(|(path, bytes)| {
        // As in the work tree, so that an entry is the same one here and there.
        Some((inner(&path)?, parse::text_of(bytes).0))
    });
    Ok(parse::decisions(&Files { folder: project.folder.name.to_owned(), texts: texts.collect() }))
}

fn stand(decision: &Decision, state: DecisionState) -> Standing {
    Standing {
        id: decision.id.clone(),
        title: decision.title.clone(),
        date: decision.date.clone(),
        by: decision.by.clone(),
        state,
        source: decision.source.clone(),
        scope: decision.scope.clone(),
        text: decision.text.clone(),
    }
}

/// What a person decides.
pub(crate) struct Addition {
    pub(crate) text: String,
    pub(crate) scope: Vec<String>,
    pub(crate) tags: Vec<String>,
}

/// Writes a decision to the ledger. It is durable when this returns; landing it is another matter.
pub(crate) fn add(env: &Env, project: &Project, addition: Addition) -> Result<Decision, Failure> {
    let text = addition.text.trim();
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    let title = printable(title.trim_start_matches('#').trim());
    if title.is_empty() {
        return Err(
            Failure::usage("a decision needs a text").hint("squad decisions add \"Money is stored as integer cents\"")
        );
    }
    let at = env.clock.now();
    let id = env.ids.entry(at);
    let decision = Decision {
        id: id.decision(),
        title,
        date: Some(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        by: project.repository.identity().map(|identity| identity.name),
        run: None,
        supersedes: None,
        scope: addition.scope,
        tags: addition.tags,
        text: printable(body.trim()),
        status: None,
        source: None,
    };
    let what = What::DecisionLogged { decision, branch: project.repository.head()?.branch };
    let mut entry = Entry::new(id, at, Actor::User, &what);
    entry.redact(&secrets::redactor(env, &project.folder.root));
    append(&project.repository, &project.ledger_prefix(), std::slice::from_ref(&entry), at)?;
    logged_decision(&entry).ok_or_else(|| Failure::failed("the decision was written and cannot be read back"))
}

/// The decision an id or the beginning of one means.
pub(crate) fn find(all: Vec<Standing>, id: &str) -> Result<Standing, Failure> {
    let mut found: Vec<Standing> = all.into_iter().filter(|decision| decision.id.as_str().starts_with(id)).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::usage(format!("there is no decision `{id}`")).hint("`squad decisions list` shows them all")),
        _ => {
            let ids = list(found.iter().map(|decision| format!("`{}`", decision.id)));
            Err(Failure::usage(format!("`{id}` may be {ids}")).hint("write more of the id"))
        }
    }
}
