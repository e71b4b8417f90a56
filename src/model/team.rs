//! The team, as its Markdown says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Charter, Decision, Member, Slug, Source, Status};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Team {
    pub(crate) name: Option<String>,
    /// In the order of the roster.
    pub(crate) members: Vec<Member>,
    pub(crate) rules: Vec<Rule>,
    /// Which part of the code is whose.
    pub(crate) modules: Vec<Module>,
    /// What becomes of issues with a label.
    pub(crate) labels: Vec<LabelRule>,
    pub(crate) charters: BTreeMap<Slug, Charter>,
    /// Role files beside the agents' folders, of those who are on no roster.
    pub(crate) roles: BTreeMap<Slug, Charter>,
    pub(crate) histories: BTreeMap<Slug, String>,
    /// Those on the branch, newest first where they are dated.
    pub(crate) decisions: Vec<Decision>,
    /// Those in archives: no longer offered to agents, and still there to be found.
    pub(crate) archived: Vec<Decision>,
    pub(crate) skills: Vec<Skill>,
    /// What all of the team should know, in the order of the files.
    pub(crate) notes: Vec<TeamNote>,
    /// What the roster's file says beside the roster, in its order.
    pub(crate) context: Vec<ContextSection>,
    /// What the routing file says beside its rows, in its order.
    pub(crate) routing: Vec<ContextSection>,
    /// What the team tells whoever coordinates it, where it wrote that down.
    pub(crate) coordinator: Option<ContextSection>,
    pub(crate) ceremonies: Vec<Ceremony>,
    pub(crate) casts: Vec<Cast>,
}

/// A skill that agents may open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Skill {
    pub(crate) name: String,
    /// One line; empty when nothing says what it is for.
    pub(crate) description: String,
    pub(crate) domain: String,
    /// From the project's root with `/`.
    pub(crate) path: String,
}

/// A file of `identity/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TeamNote {
    /// From the project's root with `/`.
    pub(crate) path: String,
    /// Whether it is about what the team works on now.
    pub(crate) is_current: bool,
    /// With empty lines for those that say nothing.
    pub(crate) text: String,
}

/// Prose of the roster's or the routing file, or the coordinator's charter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContextSection {
    /// The headings it stands under; empty for what stands above all of them.
    pub(crate) heading: String,
    /// Whether it is about the project, or says how work is routed, as far as its headings tell.
    pub(crate) matters: bool,
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// A meeting of the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ceremony {
    pub(crate) name: String,
    /// `None`: nobody on the roster.
    pub(crate) facilitator: Option<Slug>,
    /// `auto` or `manual`, as it is written.
    pub(crate) trigger: String,
    /// `before` or `after` work, as it is written.
    pub(crate) when: String,
    pub(crate) condition: String,
    /// The items of its lists.
    pub(crate) agenda: Vec<String>,
    pub(crate) enabled: bool,
    pub(crate) source: Source,
}

/// An entry of the casting registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cast {
    pub(crate) name: String,
    pub(crate) slug: Slug,
    /// `None` where it says nothing squad knows.
    pub(crate) status: Option<Status>,
    pub(crate) source: Source,
}

/// A row of the routing table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// What the work is called or is about.
    pub(crate) signal: String,
    /// Who does it, the first first.
    pub(crate) agents: Vec<Slug>,
    /// Who reviews it, where the row says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reviewer: Option<Slug>,
    pub(crate) examples: Vec<String>,
    pub(crate) source: Source,
}

/// A row of a module-ownership table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Module {
    /// From the project's root with `/`; a folder stands for all below it.
    pub(crate) path: String,
    pub(crate) primary: Slug,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secondary: Option<Slug>,
    pub(crate) source: Source,
}

/// A row of an issue-label table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LabelRule {
    pub(crate) label: String,
    pub(crate) action: String,
    pub(crate) agents: Vec<Slug>,
    pub(crate) source: Source,
}

impl Team {
    pub(crate) fn member(&self, slug: &Slug) -> Option<&Member> {
        self.members.iter().find(|member| member.slug == *slug)
    }

    /// The slugs that a member had before it was renamed, as its charter says.
    pub(crate) fn formerly(&self, member: &Member) -> impl Iterator<Item = Slug> {
        let charter = self.charters.get(&member.slug);
        charter.into_iter().flat_map(|charter| &charter.formerly).filter_map(|name| Slug::spelled(name))
    }

    /// Who records under this slug are about: the member that has it, else the one that had it.
    pub(crate) fn member_once(&self, slug: &Slug) -> Option<&Member> {
        let had_it = |member: &&Member| self.formerly(member).any(|old| old == *slug);
        self.member(slug).or_else(|| self.members.iter().find(had_it))
    }

    /// The members that work can be given to, in the order of the roster.
    pub(crate) fn startable(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_startable())
    }
}
