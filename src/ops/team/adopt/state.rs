//! Imports what the other tool keeps outside of the working branches: a state branch, and notes on commits. Decisions
//! are recorded as decisions in the ledger, histories and notes as learnings. The refs stay unchanged.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::env::Env;
use crate::error::Failure;
use crate::git::Repository;
use crate::model::{Actor, Decision, EventKind, IntoSet, Slug};
use crate::ops::Workspace;
use crate::ops::ledger::journal::append;
use crate::ops::ledger::{contents as ledger, lost};
use crate::ops::team::commit::files_at;
use crate::ops::team::secrets;
use crate::parse::{self, Files, learned, text_of};
use crate::record::Entry;
use crate::store;

const BRANCH: &str = "squad-state";
/// A ref with one note that holds all state, or the prefix of one ref per agent with a note per commit.
const NOTES: &str = "refs/notes/squad";

/// What goes to the ledger.
#[derive(Serialize)]
pub(crate) struct ImportedState {
    pub(crate) refs: Vec<String>,
    pub(crate) decisions: usize,
    pub(crate) learnings: usize,
}

impl ImportedState {
    pub(crate) fn is_empty(&self) -> bool {
        self.decisions + self.learnings == 0
    }
}

/// What the refs hold.
#[derive(Default)]
struct State {
    refs: Vec<String>,
    /// Files by path relative to the team folder.
    texts: BTreeMap<String, String>,
    /// Notes, each with the agent's name.
    notes: Vec<(String, String)>,
}

/// Finds what is new to both the ledger and the branch, and writes it to the ledger unless this is a dry run. `None`: there
/// are no such refs.
pub(super) fn import(env: &Env, workspace: &Workspace, dry_run: bool) -> Result<Option<ImportedState>, Failure> {
    let state = State::read(&workspace.repository)?;
    if state.refs.is_empty() {
        return Ok(None);
    }
    let repository = &workspace.repository;
    let head = repository.head()?;
    let on_branch = head.commit.as_ref().map(|commit| files_at(workspace, commit)).transpose()?.unwrap_or_default();
    let (refs, learnings) = (state.refs.clone(), state.learnings(&on_branch));
    let files = Files { folder: store::FOLDERS[0].to_owned(), texts: state.texts };
    let decisions = new_decisions(workspace, &files, &on_branch)?;
    let redactor = secrets::redactor(env, &workspace.folder.root);
    let at = env.clock.now();
    let known: BTreeSet<(String, String)> = ledger::known_lessons(repository, &workspace.ledger_prefix())?;
    let branch = head.work().map(str::to_owned);
    let decided = decisions.into_iter().map(|decision| {
        let kind = EventKind::DecisionLogged { decision, branch: branch.clone() };
        Entry::new(env.ids.entry(at), at, Actor::User, &kind, &redactor)
    });
    let learned = learnings.into_iter().map(|(agent, text)| Entry {
        agent: Some(agent),
        ..Entry::new(env.ids.entry(at), at, Actor::User, &EventKind::MemoryLogged { text, share: None }, &redactor)
    });
    let is_new = |entry: &Entry| {
        entry.agent.as_ref().is_none_or(|agent| !known.contains(&(agent.to_string(), entry.text.clone())))
    };
    let entries: Vec<Entry> = decided.chain(learned).filter(is_new).collect();
    let learnings = entries.iter().filter(|entry| entry.agent.is_some()).count();
    let imported = ImportedState { refs, decisions: entries.len() - learnings, learnings };
    if !dry_run && !entries.is_empty() {
        lost::settle(env, repository);
        append(repository, &workspace.ledger_prefix(), &entries, at)?;
    }
    Ok(Some(imported))
}

/// The decisions that neither the branch nor the ledger has.
fn new_decisions(workspace: &Workspace, state: &Files, on_branch: &Files) -> Result<Vec<Decision>, Failure> {
    let logged = ledger::decisions(&workspace.repository, &workspace.ledger_prefix())?;
    let mut known: BTreeSet<String> = logged.iter().map(|logged| logged.decision.id.to_string()).into_set();
    known.extend(parse::decisions(on_branch).iter().map(|decision| decision.id.to_string()));
    let mut decisions = parse::decisions(state);
    decisions.retain(|decision| known.insert(decision.id.to_string()));
    Ok(decisions)
}

impl State {
    fn read(repository: &Repository) -> Result<Self, Failure> {
        let mut state = Self::default();
        let mut branches = vec![format!("refs/heads/{BRANCH}")];
        let of_remotes = repository.references_below("refs/remotes/")?;
        branches.extend(of_remotes.into_iter().filter(|name| name.ends_with(&format!("/{BRANCH}"))));
        for name in branches {
            // Read only the first branch: a remote's copy holds nothing that the local branch never had.
            if state.refs.is_empty()
                && let Some(commit) = repository.resolve(&name)?
            {
                let wanted = |path: &str| store::is_team_file(path).then(|| store::largest(path));
                let files = repository.files_at(&commit, "", wanted)?;
                state.texts.extend(files.into_iter().map(|(path, bytes)| (path, text_of(bytes).0)));
                state.refs.push(name);
            }
        }
        let notes = repository.references_below("refs/notes/")?;
        let is_tools =
            |name: &String| name.strip_prefix(NOTES).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        for name in notes.into_iter().filter(is_tools) {
            let Some(commit) = repository.resolve(&name)? else { continue };
            let agent = name.strip_prefix(NOTES).unwrap_or_default().trim_start_matches('/').to_owned();
            for (_, note) in repository.files_at(&commit, "", |_| Some(store::largest("decisions.md")))? {
                state.note(&agent, &note);
            }
            state.refs.push(name);
        }
        Ok(state)
    }

    /// A note holds one or more JSON values.
    fn note(&mut self, namespace: &str, bytes: &[u8]) {
        for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>().map_while(Result::ok) {
            let Value::Object(fields) = &value else { continue };
            if namespace.is_empty() {
                let texts = fields.iter().filter(|(path, _)| store::is_team_file(path));
                for (path, text) in texts.filter_map(|(path, text)| Some((path, text.as_str()?))) {
                    self.texts.entry(path.clone()).or_insert_with(|| text.to_owned());
                }
                continue;
            }
            let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            let agent = if field("agent").is_empty() { namespace } else { field("agent") };
            let day = field("timestamp").get(..10).unwrap_or_default();
            if field("decision").is_empty() {
                let parts = ["topic", "content", "findings"].map(|name| match fields.get(name) {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Null) | None => String::new(),
                    Some(Value::Object(object)) if object.is_empty() => String::new(),
                    Some(value) => value.to_string(),
                });
                self.notes.push((agent.to_owned(), parts.join("\n").trim().to_owned()));
            } else {
                let path = format!("decisions/inbox/{namespace}-note-{}.md", self.texts.len());
                let (title, why) = (field("decision").replace(['\n', '\r'], " "), field("reasoning"));
                self.texts.insert(path, format!("### {day}: {title}\n**By:** {agent}\n\n{why}\n"));
            }
        }
    }

    /// The learnings of each agent that its history on the branch does not contain.
    fn learnings(&self, on_branch: &Files) -> Vec<(Slug, String)> {
        let histories = self.texts.iter().filter_map(|(path, text)| {
            let agent = path.strip_prefix("agents/")?.strip_suffix("/history.md")?;
            let known = on_branch.text(path).unwrap_or_default();
            let new = learned::lessons(text).into_iter().filter(move |lesson| !known.contains(lesson.as_str()));
            Some(new.map(move |lesson| (agent.to_owned(), lesson)))
        });
        let all = histories.flatten().chain(self.notes.iter().cloned());
        let mut seen = BTreeSet::new();
        all.filter_map(|(agent, text)| Some((Slug::fold(&agent)?, text)))
            .filter(|(agent, text)| !text.is_empty() && seen.insert((agent.to_string(), text.clone())))
            .collect()
    }
}
