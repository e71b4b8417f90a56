//! What a person is asked to allow.

use serde::{Deserialize, Serialize};

use super::Slug;

/// A question for a permission. Its texts are printable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proposal {
    pub(crate) agent: Slug,
    /// `ada wants to write docs/health.md, a new file of 38 lines`
    pub(crate) title: String,
    /// The change, or the command.
    pub(crate) body: Vec<String>,
    /// It may only be allowed by someone who has seen all of it.
    pub(crate) is_command: bool,
    /// What "always" would cover; `None`: it is asked each time.
    pub(crate) always: Option<String>,
}

impl Proposal {
    /// The question as one text, for a line as answer.
    pub(crate) fn text(&self) -> String {
        let always = match &self.always {
            Some(rule) => format!(", a always for {}: {rule}, r always in this run, k in later runs too", self.agent),
            None => String::new(),
        };
        let body: String = self.body.iter().map(|line| format!("{line}\n")).collect();
        format!("{}\n{body}y yes, once{always}, n no, or say why not: ", self.title)
    }
}
