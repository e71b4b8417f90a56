//! Explains how a prompt was made.

use serde::Serialize;

use super::budget::{Budget, tokens};
use crate::model::{ModelChoice, Slug, Tier, ToolChoice};

/// All inputs of a prompt, and everything that was left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Receipt {
    pub(crate) agent: Slug,
    pub(crate) tier: Tier,
    pub(crate) model: ModelChoice,
    pub(crate) tools: ToolChoice,
    /// See `SessionSpec::compiled_hash`.
    pub(crate) compiled_hash: String,
    /// Hashes of the selected skills, team notes and knowledge, of the quoted decisions and of the quoted history. Changes of
    /// these, and of the task, reach a live session with its next turn.
    pub(crate) knowledge_hash: String,
    pub(crate) decisions_hash: String,
    pub(crate) history_hash: String,
    pub(crate) task_hash: Option<String>,
    pub(crate) budget: Budget,
    pub(crate) tokens: Totals,
    /// In the order of the prompt. Within a kind, included inputs come first.
    pub(crate) inputs: Vec<Input>,
}

/// Approximate numbers of tokens. The last three are part of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) total: usize,
    pub(crate) prompt: usize,
    pub(crate) context: usize,
    /// Skills, notes for the whole team, and knowledge.
    pub(crate) knowledge: usize,
    pub(crate) decisions: usize,
    pub(crate) history: usize,
}

/// A candidate for a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Input {
    /// `FILE:LINE`, `ledger:ENTRY`, `link:NAME:NOTE`, or `squad` for squad's own text.
    pub(crate) source: String,
    pub(crate) kind: InputKind,
    /// Its name, if it has one.
    pub(crate) title: String,
    /// Of its whole content, even if only part of it is included.
    pub(crate) hash: String,
    /// Its tokens in the prompt, included or not.
    pub(crate) tokens: usize,
    #[serde(rename = "in")]
    pub(crate) included: bool,
    pub(crate) why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InputKind {
    Charter,
    /// Squad's instructions for every agent.
    Instructions,
    /// Prose about the project.
    Project,
    Roster,
    Rules,
    /// An owner of part of the code.
    Module,
    Ceremony,
    Skill,
    /// Notes for the whole team.
    Note,
    /// A note that holds beyond the project.
    Knowledge,
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
            Self::Knowledge => "knowledge",
            Self::Decision => "decision",
            Self::History => "history",
            Self::Learning => "learning",
        }
    }
}

/// BLAKE3 of several parts as 16 hex digits. Lengths are included, so that different lists of parts never hash alike.
pub(super) fn hash(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// An input that does not depend on the task.
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
