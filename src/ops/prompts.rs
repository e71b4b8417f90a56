//! How a range of commits changes what agents are told.

use std::collections::BTreeSet;

use serde::Serialize;

use super::project::shared_settings;
use crate::compile::{Compiler, Learnings, Sources, Task, tokens};
use crate::model::{SessionSpec, Slug, Team, Tier};
use crate::parse::{self, Files};
use crate::review;

/// What becomes of one agent's prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PromptChange {
    pub(crate) agent: Slug,
    pub(crate) name: String,
    /// `None`: the agent is new, or cannot be started before.
    pub(crate) before: Option<Told>,
    /// `None`: the agent is gone, or can no longer be started.
    pub(crate) after: Option<Told>,
    /// Of all that the agent is told; empty where only the model changes.
    pub(crate) diff: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Told {
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
        self.team.startable().map(|member| compiler.agent(member, Tier::Standard).spec).collect()
    }
}

/// The agents who are told something else, or by another model, in the order of the roster; those who go come last.
pub(super) fn changes(before: &Files, after: &Files) -> Vec<PromptChange> {
    let (before, after) = (Compiled::new(before).sessions(), Compiled::new(after).sessions());
    let mut slugs: Vec<&Slug> = Vec::new();
    let mut seen = BTreeSet::new();
    for spec in after.iter().chain(&before) {
        if seen.insert(&spec.agent) {
            slugs.push(&spec.agent);
        }
    }
    let find = |specs: &[SessionSpec], slug: &Slug| specs.iter().find(|spec| spec.agent == *slug).map(told);
    slugs
        .into_iter()
        .filter_map(|slug| {
            let (old, new) = (find(&before, slug), find(&after, slug));
            let text = |told: &Option<Told>| told.as_ref().map_or(String::new(), |told| told.text.clone());
            let name = after.iter().chain(&before).find(|spec| spec.agent == *slug).map(|spec| spec.name.clone());
            (old != new).then(|| PromptChange {
                agent: slug.clone(),
                name: name.unwrap_or_default(),
                diff: review::diff(&text(&old), &text(&new)),
                before: old,
                after: new,
            })
        })
        .collect()
}

fn told(spec: &SessionSpec) -> Told {
    Told {
        tokens: tokens(&spec.prompt) + tokens(&spec.context),
        model: spec.model.id.clone(),
        text: format!("{}\n\n{}", spec.prompt, spec.context),
    }
}
