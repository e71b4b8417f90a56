//! Decisions: how they stand, adding one, landing them on the branch.

use std::fs::{self, File};
use std::io;

use serde::Serialize;

use super::journal::{append, logged_decision};
use super::{Project, ledger, secrets};
use crate::env::Env;
use crate::error::Failure;
use crate::git::{Change, Landing};
use crate::model::{Actor, Decision, DecisionId, DecisionState, RunId, Slug, Source, What, first_line, list, plural};
use crate::record::{Entry, decision_path, render_decision};

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
pub(crate) fn standing(project: &Project) -> Result<Vec<Standing>, Failure> {
    let branch = project.repository.head()?.branch;
    let here = project.decisions();
    let mut all: Vec<Standing> = here
        .iter()
        .map(|decision| {
            let superseded = here.iter().any(|other| other.supersedes.as_ref() == Some(&decision.id));
            stand(decision, if superseded { DecisionState::Superseded } else { DecisionState::InForce })
        })
        .collect();
    for logged in ledger::decisions(&project.repository, &project.ledger_prefix())? {
        if here.iter().any(|decision| decision.id == logged.decision.id) {
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
    all.sort_by(|a, b| b.date.cmp(&a.date));
    Ok(all)
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
    let title = title.trim_start_matches('#').trim();
    if title.is_empty() {
        return Err(
            Failure::usage("a decision needs a text").hint("squad decisions add \"Money is stored as integer cents\"")
        );
    }
    let at = env.clock.now();
    let id = env.ids.entry(at);
    let decision = Decision {
        id: id.decision(),
        title: title.to_owned(),
        date: Some(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        by: project.repository.identity().map(|identity| identity.name),
        run: None,
        supersedes: None,
        scope: addition.scope,
        tags: addition.tags,
        text: body.trim().to_owned(),
        source: None,
    };
    let what = What::DecisionLogged { decision, branch: project.repository.head()?.branch };
    let mut entry = Entry::new(id, at, Actor::User, &what);
    entry.redact(&secrets::redactor(&project.folder.root));
    append(&project.repository, &project.ledger_prefix(), std::slice::from_ref(&entry), at)?;
    logged_decision(&entry).ok_or_else(|| Failure::failed("the decision was written and cannot be read back"))
}

/// What became of an attempt to land.
#[derive(Debug, Default)]
pub(crate) struct Landed {
    pub(crate) decisions: Vec<DecisionId>,
    pub(crate) commit: Option<String>,
    pub(crate) branch: String,
    /// What stays unlanded, and why.
    pub(crate) left: Option<Left>,
    /// Landings wait for each other until what landed is recorded, so that nothing lands twice. The kernel frees the
    /// lock of a process that dies.
    _turn: Option<File>,
}

#[derive(Debug)]
pub(crate) struct Left {
    /// `None`: it is not known how many.
    pub(crate) count: Option<usize>,
    pub(crate) reason: String,
    pub(crate) hint: String,
}

/// Lands every decision that was made for the checked-out branch and has not landed anywhere, in one commit. Whoever
/// calls this records the landing.
pub(crate) fn land(env: &Env, project: &Project) -> Result<Landed, Failure> {
    let repository = &project.repository;
    let turn = turn(project)?;
    let branch = repository.head()?.branch;
    let mut waiting: Vec<ledger::LoggedDecision> = ledger::decisions(repository, &project.ledger_prefix())?
        .into_iter()
        .filter(|logged| logged.landed.is_empty())
        .collect();
    let elsewhere = waiting.iter().filter(|logged| logged.branch != branch).count();
    waiting.retain(|logged| logged.branch == branch);
    let Some(branch) = branch else {
        return Ok(left(waiting.len(), "HEAD is detached", "check out the branch the work is on"));
    };
    if waiting.is_empty() {
        if elsewhere > 0 {
            let hint = "check out the branch they were made for";
            return Ok(left(elsewhere, "they were made for other branches", hint));
        }
        return Ok(Landed { branch, ..Landed::default() });
    }
    let decisions: Vec<&Decision> = waiting.iter().map(|logged| &logged.decision).collect();
    let folder = project.folder_in_repository();
    let is_here = |decision: &Decision| project.decisions().iter().any(|here| here.id == decision.id);
    let files: Vec<(String, Vec<u8>)> = decisions
        .iter()
        // A file that is here has landed; only the entry that says so is missing.
        .filter(|decision| !is_here(decision))
        .filter_map(|decision| Some((decision_path(&folder, decision)?, render_decision(decision).into_bytes())))
        .collect();
    let at = env.clock.now();
    let commit = if files.is_empty() {
        None
    } else {
        let change = Change { branch: branch.clone(), allow_unborn: false, files, message: message(&decisions) };
        match repository.land(&change, repository.identity().as_ref(), at)? {
            Landing::Landed { commit } => Some(commit),
            Landing::NotLanded { reason, hint } => return Ok(left(decisions.len(), &reason, &hint)),
        }
    };
    let decisions = decisions.iter().map(|decision| decision.id.clone()).collect();
    Ok(Landed { decisions, commit, branch, left: None, _turn: Some(turn) })
}

fn turn(project: &Project) -> Result<File, Failure> {
    let path = project.local().join("landing.lock");
    let open = || {
        fs::create_dir_all(project.local())?;
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|error: io::Error| Failure::failed(format!("cannot lock {}: {error}", path.display())))
}

/// Records a landing, so that nothing lands twice. Were squad killed before this, the file on the branch tells.
pub(crate) fn record_landing(env: &Env, project: &Project, landed: &Landed) -> Result<(), Failure> {
    let Some(what) = landed.event() else { return Ok(()) };
    let at = env.clock.now();
    let entry = Entry::new(env.ids.entry(at), at, Actor::Squad, &what);
    append(&project.repository, &project.ledger_prefix(), &[entry], at)?;
    Ok(())
}

impl Landed {
    /// What is recorded of it, when anything landed.
    pub(crate) fn event(&self) -> Option<What> {
        (!self.decisions.is_empty()).then(|| What::DecisionLanded {
            decisions: self.decisions.clone(),
            branch: self.branch.clone(),
            commit: self.commit.clone().unwrap_or_default(),
        })
    }
}

impl Left {
    pub(crate) fn because(failure: Failure) -> Self {
        let hint = failure.hint.unwrap_or_else(|| "mend that".to_owned());
        Self { count: None, reason: failure.message, hint }
    }

    /// `2 decisions`, as far as that is known.
    pub(crate) fn what(&self) -> String {
        self.count.map_or_else(|| "decisions".to_owned(), |count| plural(count, "decision"))
    }
}

fn left(count: usize, reason: &str, hint: &str) -> Landed {
    let left = (count > 0).then(|| Left { count: Some(count), reason: reason.to_owned(), hint: hint.to_owned() });
    Landed { left, ..Landed::default() }
}

/// The commit's message: a subject, the titles, and a trailer for each run, agent and decision.
fn message(decisions: &[&Decision]) -> String {
    let mut message = match decisions {
        [decision] => format!("squad: decide: {}\n", first_line(&decision.title, 60)),
        decisions => {
            let titles: Vec<String> = decisions.iter().map(|decision| format!("- {}", decision.title)).collect();
            format!("squad: record {}\n\n{}\n", plural(decisions.len(), "decision"), titles.join("\n"))
        }
    };
    let mut trailers: Vec<String> = Vec::new();
    let runs = decisions.iter().filter_map(|decision| decision.run.as_ref()).map(RunId::as_str).map(|run| ("Run", run));
    let agents = decisions.iter().filter(|decision| decision.run.is_some());
    let agents =
        agents.filter_map(|decision| decision.by.as_deref()).filter_map(Slug::fold).map(|slug| slug.to_string());
    let agents: Vec<String> = agents.collect();
    let ids = decisions.iter().map(|decision| ("Decision", decision.id.as_str()));
    for (name, value) in runs.chain(agents.iter().map(|agent| ("Agent", agent.as_str()))).chain(ids) {
        let trailer = format!("Squad-{name}: {value}");
        if !trailers.contains(&trailer) {
            trailers.push(trailer);
        }
    }
    message.push('\n');
    message.push_str(&trailers.join("\n"));
    message.push('\n');
    message
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
