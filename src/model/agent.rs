//! A member of the team, as the roster lists it, and the charter that tells it who it is.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Source, Tier};

/// The name by which commands, files and sessions know an agent: its folder's name, or its name folded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub(crate) struct Slug(String);

/// Folders are named by slugs, and entries of the ledger carry them, whoever wrote those.
impl<'de> Deserialize<'de> for Slug {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_slug = text.contains(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
        is_slug.then(|| Self(text.clone())).ok_or_else(|| D::Error::custom(format!("{text:?} is no agent's slug")))
    }
}

impl Slug {
    /// The coordinator's own slug. No member can have it: [`Slug::fold`] is only given members' names, and the
    /// roster reader leaves the coordinator's row out.
    pub(crate) const COORDINATOR: &'static str = "coordinator";

    /// Lower case, everything but `a-z0-9` folded to single hyphens; `None` when nothing is left.
    pub(crate) fn fold(name: &str) -> Option<Self> {
        Self::fold_but(name, |_| false)
    }

    /// The same for names in any script: what cannot be folded is spelled in Latin letters first. `Иван` is `ivan`.
    pub(crate) fn spelled(name: &str) -> Option<Self> {
        Self::fold(name).or_else(|| Self::fold(&deunicode::deunicode(name)))
    }

    /// This slug with a number behind it, for one of several that fold alike.
    pub(crate) fn numbered(&self, number: usize) -> Self {
        Self(format!("{}-{number}", self.0))
    }

    /// A folder's name is a slug already, but for its case and for what no file name should hold.
    pub(crate) fn of_folder(folder: &str) -> Option<Self> {
        Self::fold_but(folder, |c| c == '_').or_else(|| Self::spelled(folder))
    }

    fn fold_but(name: &str, keeps: impl Fn(char) -> bool) -> Option<Self> {
        let mut folded = String::with_capacity(name.len());
        for c in name.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() || keeps(c) {
                folded.push(c);
            } else if !folded.is_empty() && !folded.ends_with('-') {
                folded.push('-');
            }
        }
        let folded = folded.trim_end_matches('-');
        folded.contains(|c: char| c.is_ascii_alphanumeric()).then(|| Self(folded.to_owned()))
    }

    pub(crate) fn coordinator() -> Self {
        Self(Self::COORDINATOR.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What stands behind a roster row. Only agents are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Agent,
    /// A built-in of the tool that made the team (Scribe, Ralph, Rai): its work is squad's own.
    Helper,
    Human,
    /// A coding agent that works elsewhere, such as `@copilot`.
    Bot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Active,
    Silent,
    Monitor,
    Inactive,
    Retired,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) slug: Slug,
    pub(crate) role: String,
    pub(crate) kind: Kind,
    pub(crate) status: Status,
    /// Where its charter is, from the project's root with `/`; `None` when there is no such file.
    pub(crate) charter: Option<String>,
    /// What the roster says it is for, beside its role: a scope, a specialization. Routing matches it.
    pub(crate) scope: String,
    pub(crate) source: Source,
}

impl Member {
    /// What settings may call it, in small letters.
    pub(crate) fn names(&self) -> [String; 3] {
        [self.slug.to_string(), self.name.to_lowercase(), self.role.to_lowercase()]
    }

    /// Whether a setting means this member: by its slug, its name or its role, in small letters.
    pub(crate) fn goes_by(&self, name: &str) -> bool {
        self.slug.as_str() == name || self.name.to_lowercase() == name || self.role.to_lowercase() == name
    }

    /// Whether work may be given to this member.
    pub(crate) fn is_startable(&self) -> bool {
        self.kind == Kind::Agent && !matches!(self.status, Status::Inactive | Status::Retired)
    }
}

/// What a charter says, beside its whole text, which becomes the agent's prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charter {
    pub(crate) name: Option<String>,
    pub(crate) role: Option<String>,
    /// What it was called before; what the ledger has under these names is its own.
    #[serde(default)]
    pub(crate) formerly: Vec<String>,
    pub(crate) expertise: Vec<String>,
    /// The text of *What I Own* and its like: what routing may match.
    pub(crate) owns: String,
    /// The text of *Boundaries*.
    pub(crate) boundaries: String,
    pub(crate) model: Option<String>,
    /// The models to try after that one, where the charter names any.
    pub(crate) fallback: Vec<String>,
    pub(crate) reasoning_effort: Option<String>,
    /// The engine that its sessions run on.
    #[serde(default)]
    pub(crate) engine: Option<String>,
    /// The tier that its work has where the user names none.
    #[serde(default)]
    pub(crate) tier: Option<Tier>,
    /// `None`: no Tools section, so every tool; an empty list: no tool at all.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that it must not have, where the charter names such.
    #[serde(default)]
    pub(crate) denied_tools: Vec<String>,
    /// The file as it is, with LF line ends and without a byte order mark.
    pub(crate) text: String,
}
