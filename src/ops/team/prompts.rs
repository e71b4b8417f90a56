//! How a range of commits changes what agents are told.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::compile::{Compiler, Learnings, Sources, Task, tokens};
use crate::model::{Problem, SessionSpec, Slug, Team, Tier};
use crate::ops::team::layers::{shared_problems, shared_settings};
use crate::parse::{self, Files};
use crate::review;

/// What cannot be understood of a team's files, the decisions and the configuration among them. Where no team is,
/// nothing has to be.
pub(in crate::ops) fn problems(files: &Files) -> Vec<Problem> {
    if files.texts.is_empty() {
        return Vec::new();
    }
    let mut problems = parse::team(files).1;
    // What of them cannot be read on is known by now.
    problems.extend(shared_problems(files).into_iter().filter(|problem| problem.code != parse::CONFLICT));
    problems
}

/// What becomes of one agent's prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PromptChange {
    pub(crate) agent: Slug,
    pub(crate) name: String,
    /// Under which name it was before, where that has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<Slug>,
    /// `None`: the agent is new, or cannot be started before.
    pub(crate) before: Option<Prompt>,
    /// `None`: the agent is gone, or can no longer be started.
    pub(crate) after: Option<Prompt>,
    /// Of all that the agent is told; empty where only the model changes.
    pub(crate) diff: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Prompt {
    pub(crate) tokens: usize,
    pub(crate) model: String,
    #[serde(skip)]
    text: String,
}

/// The team of some files, compiled as anybody would who has nothing but them: at the standard tier, without a task,
/// without a configuration of one's own and without the ledger's learnings.
struct Compiled {
    team: Team,
    files: Files,
}

impl Compiled {
    fn new(files: &Files) -> Self {
        Self { team: parse::team(files).0, files: files.clone() }
    }

    fn sessions(&self) -> Vec<SessionSpec> {
        let (settings, learnings, task) = (shared_settings(&self.files), Learnings::new(), Task::none());
        let sources = Sources { team: &self.team, learnings: &learnings, settings: &settings };
        let compiler = Compiler::new(sources, &task);
        let mut sessions: Vec<SessionSpec> =
            self.team.startable().map(|member| compiler.agent(member, Tier::Standard).spec).collect();
        // Who routes what the table does not; without a team there is nobody to route to.
        if !sessions.is_empty() {
            sessions.push(compiler.coordinator().spec);
        }
        sessions
    }
}

/// The agents who are told something else, or by another model, in the order of the roster, the coordinator behind
/// them; those who go come last.
pub(in crate::ops) fn changes(before: &Files, after: &Files) -> Vec<PromptChange> {
    let (before, after) = (Compiled::new(before).sessions(), Compiled::new(after).sessions());
    let has = |specs: &[SessionSpec], slug: &Slug| specs.iter().any(|spec| spec.agent == *slug);
    let (mut changes, mut followed) = (Vec::new(), BTreeSet::new());
    for new in &after {
        // Whose folder has moved is another to us, and the same to people.
        let is_moved =
            |old: &&SessionSpec| old.name == new.name && !has(&after, &old.agent) && !has(&before, &new.agent);
        let old = before.iter().find(|old| old.agent == new.agent).or_else(|| before.iter().find(is_moved));
        followed.extend(old.map(|old| &old.agent));
        changes.extend(change(old, Some(new)));
    }
    changes
        .extend(before.iter().filter(|old| !followed.contains(&old.agent)).filter_map(|old| change(Some(old), None)));
    changes
}

fn change(old: Option<&SessionSpec>, new: Option<&SessionSpec>) -> Option<PromptChange> {
    let spec = new.or(old)?;
    let (before, after) = (old.map(prompt_of), new.map(prompt_of));
    let was = old.map(|old| &old.agent).filter(|agent| **agent != spec.agent).cloned();
    let text = |prompt: &Option<Prompt>| prompt.as_ref().map_or(String::new(), |prompt| prompt.text.clone());
    (before != after || was.is_some()).then(|| PromptChange {
        agent: spec.agent.clone(),
        name: spec.name.clone(),
        was,
        diff: review::diff(&text(&before), &text(&after)),
        before,
        after,
    })
}

fn prompt_of(spec: &SessionSpec) -> Prompt {
    Prompt {
        tokens: tokens(&spec.prompt) + tokens(&spec.told()),
        model: spec.model.id.clone(),
        text: format!("{}\n\n{}", spec.prompt, spec.told()),
    }
}
