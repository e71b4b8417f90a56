//! A member of the team as listed in the roster, and its charter.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Source, Tier};

/// Identifies an agent in commands, files and sessions: the name of its folder, or its name folded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub(crate) struct Slug(String);

/// Slugs become names of folders, so they are checked when read from ledger entries.
impl<'de> Deserialize<'de> for Slug {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_slug = text.contains(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
        is_slug.then(|| Self(text.clone())).ok_or_else(|| D::Error::custom(format!("{text:?} is not an agent slug")))
    }
}

impl Slug {
    /// The coordinator's slug. No member can have it: [`Slug::fold`] is only given members' names, and the roster
    /// parser leaves out the coordinator's row.
    pub(crate) const COORDINATOR: &'static str = "coordinator";

    /// In lower case, with everything else than `a-z0-9` folded to single hyphens; `None` if nothing is left.
    pub(crate) fn fold(name: &str) -> Option<Self> {
        Self::fold_but(name, |_| false)
    }

    /// Like [`Slug::fold`], but keeps letters with marks, without these, and transliterates other scripts: `Über` becomes
    /// `uber`, `Иван` `ivan`.
    pub(crate) fn spelled(name: &str) -> Option<Self> {
        let plain = |c: char| match c {
            '\u{c0}'..='\u{24f}' if c.is_alphabetic() => deunicode::deunicode_char(c).unwrap_or_default().to_owned(),
            _ => c.to_string(),
        };
        let latin: String = name.chars().map(plain).collect();
        Self::fold(&latin).or_else(|| Self::fold(&deunicode::deunicode(name)))
    }

    /// This slug with a number appended, to distinguish names that fold alike.
    pub(crate) fn numbered(&self, number: usize) -> Self {
        Self(format!("{}-{number}", self.0))
    }

    /// A folder's name is already a slug, except for case and characters unsuitable in file names.
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

/// The kind of a roster row. Only agents are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Agent,
    /// A built-in role of the tool that made the team (Scribe, Ralph, Rai), whose work squad does itself.
    Helper,
    Human,
    /// A coding agent that runs elsewhere, such as `@copilot`.
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
    /// The path of its charter, relative to the project's root with `/`; `None` if there is no such file.
    pub(crate) charter: Option<String>,
    /// What the roster says about its work in addition to its role: a scope, a specialization. Used for routing.
    pub(crate) scope: String,
    pub(crate) source: Source,
}

impl Member {
    /// The names it may have in settings, in lower case.
    pub(crate) fn names(&self) -> [String; 3] {
        [self.slug.to_string(), self.name.to_lowercase(), self.role.to_lowercase()]
    }

    /// Whether a setting refers to this member, by slug, name or role in lower case.
    pub(crate) fn goes_by(&self, name: &str) -> bool {
        self.slug.as_str() == name || self.name.to_lowercase() == name || self.role.to_lowercase() == name
    }

    /// Whether this member can be given work.
    pub(crate) fn is_startable(&self) -> bool {
        self.kind == Kind::Agent && !matches!(self.status, Status::Inactive | Status::Retired)
    }
}

/// The parsed parts of a charter. Its whole text becomes the agent's prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charter {
    pub(crate) name: Option<String>,
    pub(crate) role: Option<String>,
    /// Earlier names; ledger entries under these names belong to it.
    #[serde(default)]
    pub(crate) formerly: Vec<String>,
    pub(crate) expertise: Vec<String>,
    /// The text of *What I Own* and similar sections, for routing.
    pub(crate) owns: String,
    /// The text of *Boundaries*.
    pub(crate) boundaries: String,
    pub(crate) model: Option<String>,
    /// Models to try after that one.
    pub(crate) fallback: Vec<String>,
    pub(crate) reasoning_effort: Option<String>,
    /// The engine for its sessions.
    #[serde(default)]
    pub(crate) engine: Option<String>,
    /// The tier of its work if the user names none.
    #[serde(default)]
    pub(crate) tier: Option<Tier>,
    /// `None`: no Tools section, so all tools; an empty list: no tools.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that it must not have.
    #[serde(default)]
    pub(crate) denied_tools: Vec<String>,
    /// The file's text with LF line ends and without a byte order mark.
    pub(crate) text: String,
}
