//! Lists decisions with their states, and adds new ones. `landing` puts them on the branch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::{
    Actor, Decision, DecisionId, DecisionState, EventKind, IntoMap, IntoSet, Note, RunId, Source, list, printable,
};
use crate::ops::change::lock;
use crate::ops::decisions::landing::{files_since, is_file_of};
use crate::ops::ledger::contents::{
    self as ledger, BranchLanding, LoggedDecision, as_recorded, newest_first, order_of,
};
use crate::ops::ledger::journal::{append, logged_decision};
use crate::ops::ledger::lost;
use crate::ops::team::commit::refuse_conflict_markers;
use crate::ops::team::{projects, secrets};
use crate::ops::{Project, Workspace, only};
use crate::parse::{self, Files, KNOWLEDGE};
use crate::record::{Entry, title_in_path};
use crate::store;

/// A decision and its state, as `squad decisions` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ListedDecision {
    pub(crate) id: DecisionId,
    pub(crate) title: String,
    pub(crate) date: Option<String>,
    pub(crate) by: Option<String>,
    pub(crate) state: DecisionState,
    pub(crate) source: Option<Source>,
    pub(crate) scope: Vec<String>,
    #[serde(skip)]
    pub(crate) tags: Vec<String>,
    #[serde(skip)]
    pub(crate) run: Option<RunId>,
    #[serde(skip)]
    pub(crate) note: Option<Note>,
    pub(crate) supersedes: Option<DecisionId>,
    /// The decisions on the branch that replace it; after a merge of branches there can be several.
    pub(crate) superseded_by: Vec<DecisionId>,
    /// Of one that is only elsewhere, the branches it has landed on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) branches: Vec<String>,
    pub(crate) text: String,
}

/// All decisions in all states, newest first.
pub(crate) fn all(project: &Project) -> Result<Vec<ListedDecision>, Failure> {
    let mut all = records(project)?;
    all.retain(|listed| listed.note.is_none());
    Ok(all)
}

/// All decisions and notes of knowledge in all states, newest first.
///
/// The checked-out commit decides what is in force; the work tree may be ahead of it.
pub(crate) fn records(project: &Project) -> Result<Vec<ListedDecision>, Failure> {
    let head = project.repository.head()?;
    let branch = as_recorded(head.branch.as_deref());
    let here = committed(project, head.commit.as_deref())?;
    let superseders = superseders(&here.decisions);
    let on_branch = |decision: &Decision| {
        let superseded_by = superseders.get(&decision.id).cloned().unwrap_or_default();
        let ended = if superseded_by.is_empty() { decision.ended() } else { Some(DecisionState::Superseded) };
        let state = ended.unwrap_or(DecisionState::InForce);
        ListedDecision { superseded_by, ..with_state(decision, state) }
    };
    let mut known: BTreeSet<DecisionId> = here.decisions.iter().map(|decision| decision.id.clone()).into_set();
    let mut all: Vec<ListedDecision> = here.decisions.iter().map(&on_branch).collect();
    let mut logged = ledger::decisions(&project.repository, &project.ledger_prefix())?;
    let order = order_of(&logged);
    logged.retain(|logged| known.insert(logged.decision.id.clone()));
    // An unreadable file still means that the decision is on the branch.
    let has_file = |id: &DecisionId| here.paths.iter().any(|path| is_file_of(path, id));
    let earlier_files = match &head.commit {
        Some(commit) => {
            let landed = logged.iter().filter(|logged| !logged.landed.is_empty() && !has_file(&logged.decision.id));
            let landed = landed.map(|logged| &logged.decision);
            files_since(&project.repository, &project.folder_in_repository(), commit, landed)?
        }
        None => BTreeSet::new(),
    };
    // Another clone's branch of the same name is a different branch, until its commits have arrived here.
    let mut is_ours: BTreeMap<String, bool> = BTreeMap::new();
    let mut was_here = |BranchLanding { commit, .. }: &BranchLanding| {
        let check = || commit.is_empty() || project.repository.is_of_this_clone(commit);
        *is_ours.entry(commit.clone()).or_insert_with(check)
    };
    for logged in &logged {
        let decision = &logged.decision;
        let state = if has_file(&decision.id) {
            all.push(on_branch(decision));
            continue;
        } else if logged.landed.is_empty() {
            DecisionState::Unlanded
        } else if earlier_files.iter().any(|path| is_file_of(path, &decision.id))
            || logged.landed.iter().filter(|landing| Some(&landing.branch) == branch.as_ref()).any(&mut was_here)
        {
            DecisionState::Withdrawn
        } else {
            DecisionState::Elsewhere
        };
        let landed = logged.landed.iter().filter(|_| state == DecisionState::Elsewhere);
        let branches: BTreeSet<String> =
            landed.map(|landing| landing.branch.clone()).filter(|branch| !branch.is_empty()).into_set();
        all.push(ListedDecision { branches: Vec::from_iter(branches), ..with_state(decision, state) });
    }
    // Decisions written by hand and not committed yet.
    for decision in project.decisions().iter().chain(project.knowledge()?) {
        if known.insert(decision.id.clone()) {
            all.push(with_state(decision, DecisionState::Unlanded));
        }
    }
    newest_first(&mut all, |listed| (&listed.id, listed.date.as_deref()), &order);
    Ok(all)
}

/// The decisions in a commit.
#[derive(Default)]
struct CommittedDecisions {
    decisions: Vec<Decision>,
    /// The paths of all files that may hold decisions.
    paths: Vec<String>,
}

fn committed(project: &Project, head: Option<&str>) -> Result<CommittedDecisions, Failure> {
    match head {
        // A borrowed team's decisions are those of the work tree it is borrowed from.
        _ if project.folder.is_borrowed() => {
            let decisions = project.decisions().iter().chain(project.knowledge()?).cloned().collect();
            Ok(CommittedDecisions { decisions, paths: Vec::new() })
        }
        Some(commit) => at_commit(project, commit),
        None => Ok(CommittedDecisions::default()),
    }
}

/// The decisions that supersede others, by the id of the old one.
fn superseders(decisions: &[Decision]) -> BTreeMap<&DecisionId, Vec<DecisionId>> {
    let mut superseders: BTreeMap<&DecisionId, Vec<DecisionId>> = BTreeMap::new();
    for decision in decisions {
        if let Some(old) = &decision.supersedes {
            superseders.entry(old).or_default().push(decision.id.clone());
        }
    }
    superseders
}

fn at_commit(project: &Project, commit: &str) -> Result<CommittedDecisions, Failure> {
    let folder = project.folder_in_repository();
    let mut files = team_files(project, commit)?;
    // Follows links within the project, as reading the work tree does. An import does not follow them.
    let inner = |path: &str| path.strip_prefix(&folder).map(|path| path.trim_start_matches('/').to_owned());
    let wanted = |path: &str| inner(path).filter(|path| parse::holds_decisions(path)).map(|path| store::largest(&path));
    let links = project.repository.links_at(commit, &folder, wanted)?;
    files.extend(links.into_iter().filter_map(|(path, bytes)| Some((inner(&path)?, bytes))));
    let paths = files.keys().map(|path| format!("{folder}/{path}")).collect();
    // Decoded as in the work tree, so that an entry gets the same id.
    let texts = files.into_iter().map(|(path, bytes)| (path, parse::text_of(bytes).0));
    let files = Files { folder: project.folder.name.to_owned(), texts: texts.into_map() };
    refuse_conflict_markers(&files, "HEAD")?;
    Ok(CommittedDecisions { decisions: parse::decisions(&files), paths })
}

/// A commit's files that may hold decisions, by path relative to the team folder.
pub(in crate::ops) fn team_files(project: &Project, commit: &str) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let folder = project.folder_in_repository();
    let inner = |path: &str| path.strip_prefix(&folder).map(|path| path.trim_start_matches('/').to_owned());
    let wanted = |path: &str| inner(path).filter(|path| parse::holds_decisions(path)).map(|path| store::largest(&path));
    let files = project.repository.files_at(commit, &folder, wanted)?;
    // Titles name members, of whom nothing else is asked here.
    let charters = project.team.members.iter().map(|member| (format!("agents/{}/charter.md", member.slug), Vec::new()));
    Ok(charters.chain(files.into_iter().filter_map(|(path, bytes)| Some((inner(&path)?, bytes)))).into_map())
}

pub(super) fn with_state(decision: &Decision, state: DecisionState) -> ListedDecision {
    ListedDecision {
        id: decision.id.clone(),
        title: decision.title.clone(),
        date: decision.date.clone(),
        by: decision.by.clone(),
        state,
        source: decision.source.clone(),
        scope: decision.scope.clone(),
        tags: decision.tags.clone(),
        run: decision.run.clone(),
        note: decision.note.clone(),
        supersedes: decision.supersedes.clone(),
        superseded_by: Vec::new(),
        branches: Vec::new(),
        text: decision.text.clone(),
    }
}

/// A new decision or note of the user's.
#[derive(Default)]
pub(crate) struct Addition {
    pub(crate) text: String,
    pub(crate) scope: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) supersedes: Option<DecisionId>,
    pub(crate) note: Option<Note>,
    /// Whose words these are, if not the user's, and the run they are from.
    pub(crate) author: Option<(String, Option<RunId>)>,
}

/// Records a decision that replaces another one. Keeps its scope and tags unless new ones are given.
///
/// Of two attempts to replace the same decision on the same branch at the same time, the second fails and names the
/// first. Two branches cannot know of each other; their merge has both decisions, and every command says so.
pub(crate) fn supersede(env: &Env, project: &Project, id: &str, addition: Addition) -> Result<Decision, Failure> {
    let _lock = lock(&project.repository, None)?;
    let is_note = addition.note.is_some();
    let old = records(project)?.into_iter().filter(|listed| listed.note.is_some() == is_note);
    let old = find(old.collect(), id)?;
    let branch = as_recorded(project.repository.head()?.work());
    let words = title_and_body(&addition.text);
    let waiting = ledger::decisions(&project.repository, &project.ledger_prefix())?.into_iter().filter(|logged| {
        let new = &logged.decision;
        // What was made for no branch lands on this one. The same words are the same attempt, made again elsewhere.
        let is_rival =
            logged.branch == branch || logged.branch.is_none() || (&new.title, &new.text) == (&words.0, &words.1);
        logged.landed.is_empty() && new.supersedes.as_ref() == Some(&old.id) && is_rival
    });
    let waiting: Vec<LoggedDecision> = waiting.collect();
    let by: Vec<&DecisionId> = old.superseded_by.iter().chain(waiting.iter().map(|new| &new.decision.id)).collect();
    if let Some(newest) = by.last() {
        let ids = list(by.iter().map(|id| format!("`{id}`")));
        let message = format!("`{}` is already superseded by {ids}", old.id);
        return Err(match waiting.last() {
            None if is_note => Failure::usage(message).hint(format!("squad knowledge add --supersedes {newest} \"…\"")),
            None => Failure::usage(message).hint(format!("squad decisions supersede {newest} \"…\"")),
            // An earlier attempt was killed between recording and landing, or could not land.
            Some(new) => Failure::usage(format!("{message}, not landed yet")).hint(match &new.branch {
                Some(made_for) if new.branch != branch => {
                    format!("check out `{made_for}`; there `squad decisions land` lands it")
                }
                _ => "`squad decisions land` lands it".to_owned(),
            }),
        });
    }
    if old.state == DecisionState::Withdrawn {
        return Err(Failure::usage(format!("`{}` was withdrawn, so there is nothing to supersede", old.id))
            .hint("squad decisions add \"…\""));
    }
    let or = |new: Vec<String>, old: Vec<String>| if new.is_empty() { old } else { new };
    let (scope, tags) = (or(addition.scope, old.scope), or(addition.tags, old.tags));
    let note = addition.note.map(|new| {
        let Note { languages, frameworks, .. } = old.note.unwrap_or_default();
        Note { languages: or(new.languages, languages), frameworks: or(new.frameworks, frameworks), ..new }
    });
    add(env, project, Addition { scope, tags, supersedes: Some(old.id), note, ..addition })
}

/// The first line, and the rest.
fn title_and_body(text: &str) -> (String, String) {
    let (title, body) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    (printable(title.trim_start_matches('#').trim()), printable(body.trim()))
}

/// Records a decision in the ledger. It is durable when this returns, but has not landed yet.
pub(crate) fn add(env: &Env, workspace: &Workspace, addition: Addition) -> Result<Decision, Failure> {
    let (title, text) = title_and_body(&addition.text);
    if title.is_empty() {
        return Err(
            Failure::usage("the decision is empty").hint("squad decisions add \"Money is stored as integer cents\"")
        );
    }
    projects::remember(env, workspace);
    lost::settle(env, &workspace.repository);
    let at = env.clock.now();
    let id = env.ids.entry(at);
    let own_name = || (workspace.repository.identity().map(|identity| identity.name), None);
    let (by, run) = addition.author.map_or_else(own_name, |(by, run)| (Some(by), run));
    let decision = Decision {
        id: id.decision(),
        title,
        date: Some(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()),
        by,
        run,
        supersedes: addition.supersedes,
        scope: addition.scope,
        tags: addition.tags,
        text,
        note: addition.note,
        status: None,
        source: None,
    };
    let kind = EventKind::DecisionLogged { decision, branch: workspace.repository.head()?.work().map(str::to_owned) };
    let entry = Entry::new(id, at, Actor::User, &kind, &secrets::redactor(env, &workspace.folder.root));
    append(&workspace.repository, &workspace.ledger_prefix(), std::slice::from_ref(&entry), at)?;
    logged_decision(&entry).ok_or_else(|| Failure::failed("the decision was written but cannot be read back"))
}

/// The ids of decisions whose files in the work tree have the same title. Reads no file.
pub(crate) fn namesakes(workspace: &Workspace, decision: &Decision) -> Vec<DecisionId> {
    let title = format!("{}-", title_in_path(decision));
    let folders_in =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let kind = if decision.note.is_some() { KNOWLEDGE } else { "decisions" };
    let root = workspace.folder.path.join(kind);
    let years = folders_in(&root).collect::<Vec<_>>();
    let months = years.iter().flat_map(|year| folders_in(year));
    let files = years.iter().cloned().chain(months).flat_map(|folder| folders_in(&folder).collect::<Vec<_>>());
    let id_of = |file: PathBuf| {
        let name = file.file_stem()?.to_str()?;
        // Without the day.
        let name = name.split_once('-').filter(|(day, _)| day.parse::<u8>().is_ok()).map_or(name, |(_, rest)| rest);
        DecisionId::parse(name.strip_prefix(&title)?)
    };
    files.filter_map(id_of).filter(|id| *id != decision.id).collect()
}

/// Finds a decision by its id or a prefix of it.
pub(crate) fn find(all: Vec<ListedDecision>, id: &str) -> Result<ListedDecision, Failure> {
    let mut found: Vec<ListedDecision> =
        all.into_iter().filter(|decision| decision.id.as_str().starts_with(id)).collect();
    // A copied file has the same id.
    found.dedup_by(|a, b| a.id == b.id);
    only(found, id, |decision| decision.id.as_str())?.ok_or_else(|| {
        Failure::usage(format!("there is no decision `{id}`")).hint("`squad decisions list` shows them all")
    })
}
