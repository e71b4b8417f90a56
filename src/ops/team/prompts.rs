//! Compares the agents' prompts of two states of a team.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::compile::{Compiler, Learnings, Sources, Task, tokens};
use crate::model::{Decision, Problem, SessionSpec, Slug, Team, Tier};
use crate::ops::team::layers::{shared_problems, shared_settings};
use crate::parse::{self, Files};
use crate::review;

/// A team from its files alone, read once however many questions are asked about it.
pub(in crate::ops) struct TeamOfFiles {
    pub(in crate::ops) files: Files,
    team: Team,
    notes: Vec<Decision>,
    /// Including those in decisions and configuration. None if there is no team.
    pub(in crate::ops) problems: Vec<Problem>,
}

/// A change of one agent's prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PromptChange {
    pub(crate) agent: Slug,
    pub(crate) name: String,
    /// The agent's old slug, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<Slug>,
    /// `None`: the agent is new, or could not be started before.
    pub(crate) before: Option<Prompt>,
    /// `None`: the agent was removed, or can no longer be started.
    pub(crate) after: Option<Prompt>,
    /// The diff of prompt and context; empty if only the model changes.
    pub(crate) diff: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Prompt {
    pub(crate) tokens: usize,
    pub(crate) model: String,
    #[serde(skip)]
    text: String,
}

impl TeamOfFiles {
    pub(in crate::ops) fn new(files: Files) -> Self {
        let (team, notes, mut problems) = parse::team_and_notes(&files);
        // Conflict markers in the configuration were already reported by `parse::team`.
        problems.extend(shared_problems(&files).into_iter().filter(|problem| problem.code != parse::CONFLICT));
        if files.texts.is_empty() {
            problems.clear();
        }
        Self { files, team, notes, problems }
    }

    /// As [`parse::decisions`] reads them.
    pub(in crate::ops) fn decisions(&self) -> Vec<Decision> {
        self.team.decisions.iter().chain(&self.team.archived).chain(&self.notes).cloned().collect()
    }

    /// Compiled at the standard tier, without a task, the user's configuration or learnings from the ledger.
    fn sessions(&self) -> Vec<SessionSpec> {
        let (settings, learnings, task) = (shared_settings(&self.files), Learnings::new(), Task::none());
        let sources = Sources { team: &self.team, learnings: &learnings, settings: &settings, knowledge: &[] };
        let compiler = Compiler::new(sources, &task);
        let mut sessions: Vec<SessionSpec> =
            self.team.startable().map(|member| compiler.agent(member, Tier::Standard).spec).collect();
        // Without agents, the coordinator has nobody to route to.
        if !sessions.is_empty() {
            sessions.push(compiler.coordinator().spec);
        }
        sessions
    }
}

/// The agents whose prompt or model changes: in the order of the roster, then the coordinator, then removed agents.
pub(in crate::ops) fn changes(before: &TeamOfFiles, after: &TeamOfFiles) -> Vec<PromptChange> {
    let (before, after) = (before.sessions(), after.sessions());
    let has = |specs: &[SessionSpec], slug: &Slug| specs.iter().any(|spec| spec.agent == *slug);
    let (mut changes, mut matched) = (Vec::new(), BTreeSet::new());
    for new in &after {
        // If an agent's folder moved, its slug changed, but its name tells that it is the same agent.
        let is_moved =
            |old: &&SessionSpec| old.name == new.name && !has(&after, &old.agent) && !has(&before, &new.agent);
        let old = before.iter().find(|old| old.agent == new.agent).or_else(|| before.iter().find(is_moved));
        matched.extend(old.map(|old| &old.agent));
        changes.extend(change(old, Some(new)));
    }
    changes.extend(before.iter().filter(|old| !matched.contains(&old.agent)).filter_map(|old| change(Some(old), None)));
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
        tokens: tokens(&spec.prompt) + tokens(&spec.full_context()),
        model: spec.model.id.clone(),
        text: format!("{}\n\n{}", spec.prompt, spec.full_context()),
    }
}
