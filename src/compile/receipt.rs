//! Why a prompt is what it is.

use serde::Serialize;

use super::budget::{Budget, tokens};
use crate::model::{ModelChoice, Slug, Tier, ToolChoice};

/// Everything a prompt was made from, and everything that was left out of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Receipt {
    pub(crate) agent: Slug,
    pub(crate) tier: Tier,
    pub(crate) model: ModelChoice,
    pub(crate) tools: ToolChoice,
    /// Of what the session is made of; see `SessionSpec::compiled_hash`.
    pub(crate) compiled_hash: String,
    /// Of the list of skills with the team's notes, of the quoted decisions and of the quoted history, as the prompt
    /// has them. They reach a living session with its next turn, and so does the task.
    pub(crate) knowledge_hash: String,
    pub(crate) decisions_hash: String,
    pub(crate) history_hash: String,
    pub(crate) task_hash: Option<String>,
    pub(crate) budget: Budget,
    pub(crate) tokens: Totals,
    /// In the order in which they stand in the prompt; those that stayed out after those of their kind that went in.
    pub(crate) inputs: Vec<Input>,
}

/// Tokens, about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) total: usize,
    pub(crate) prompt: usize,
    pub(crate) context: usize,
    /// Of the context: the list of skills, and the notes for all of the team.
    pub(crate) knowledge: usize,
    /// Of the context.
    pub(crate) decisions: usize,
    /// Of the context.
    pub(crate) history: usize,
}

/// One thing that might be in a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Input {
    /// `FILE:LINE`, `ledger:ENTRY`, or `squad` for squad's own words.
    pub(crate) source: String,
    pub(crate) kind: InputKind,
    /// What it is called, where it has a name.
    pub(crate) title: String,
    /// Of its whole content, whatever part of that went in.
    pub(crate) hash: String,
    /// What it takes of the prompt, or would have taken.
    pub(crate) tokens: usize,
    #[serde(rename = "in")]
    pub(crate) included: bool,
    pub(crate) why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InputKind {
    Charter,
    /// What squad tells every agent.
    Instructions,
    /// Of what the team says of its project.
    Project,
    Roster,
    Rules,
    /// Who owns a part of the code.
    Module,
    Ceremony,
    Skill,
    /// Of those for all of the team.
    Note,
    Decision,
    History,
    Learning,
}

impl InputKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Charter => "charter",
            Self::Instructions => "instructions",
            Self::Project => "project",
            Self::Roster => "roster",
            Self::Rules => "rules",
            Self::Module => "module",
            Self::Ceremony => "ceremony",
            Self::Skill => "skill",
            Self::Note => "note",
            Self::Decision => "decision",
            Self::History => "history",
            Self::Learning => "learning",
        }
    }
}

/// BLAKE3 of some parts, each with its length, so that no two lists of parts are alike: 16 hex digits.
pub(super) fn hash(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// What is told whatever the task.
pub(super) fn always(source: String, kind: InputKind, text: &str, why: &str) -> Input {
    Input {
        source,
        kind,
        title: String::new(),
        hash: hash(&[text]),
        tokens: tokens(text),
        included: true,
        why: why.to_owned(),
    }
}
