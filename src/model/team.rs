//! A team as described by its Markdown files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Charter, Decision, Member, Slug, Source, Status};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Team {
    pub(crate) name: Option<String>,
    /// In the order of the roster.
    pub(crate) members: Vec<Member>,
    pub(crate) rules: Vec<Rule>,
    /// Owners of parts of the code.
    pub(crate) modules: Vec<Module>,
    /// How issues with certain labels are handled.
    pub(crate) labels: Vec<LabelRule>,
    pub(crate) charters: BTreeMap<Slug, Charter>,
    /// Role files next to the agents' folders for agents that are not in the roster.
    pub(crate) roles: BTreeMap<Slug, Charter>,
    pub(crate) histories: BTreeMap<Slug, String>,
    /// Decisions on the branch, newest first if dated.
    pub(crate) decisions: Vec<Decision>,
    /// Archived decisions: no longer given to agents, but searchable.
    pub(crate) archived: Vec<Decision>,
    pub(crate) skills: Vec<Skill>,
    /// Notes for the whole team, in the order of the files.
    pub(crate) notes: Vec<TeamNote>,
    /// Other sections of the roster's file, in order.
    pub(crate) context: Vec<ContextSection>,
    /// Sections of the routing file without its rows, in order.
    pub(crate) routing: Vec<ContextSection>,
    /// The team's instructions for the coordinator, if any.
    pub(crate) coordinator: Option<ContextSection>,
    pub(crate) ceremonies: Vec<Ceremony>,
    pub(crate) casts: Vec<Cast>,
}

/// A skill that agents may open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Skill {
    pub(crate) name: String,
    /// One line; empty if there is none.
    pub(crate) description: String,
    pub(crate) domain: String,
    /// Relative to the project's root with `/`.
    pub(crate) path: String,
}

/// A file of `identity/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TeamNote {
    /// Relative to the project's root with `/`.
    pub(crate) path: String,
    /// Whether it is about the current work.
    pub(crate) is_current: bool,
    /// Lines without information are left empty.
    pub(crate) text: String,
}

/// Prose from the roster's or the routing file, or the coordinator's charter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContextSection {
    /// The headings above it; empty for text above all headings.
    pub(crate) heading: String,
    /// Whether its headings show that it is about the project or about routing.
    pub(crate) matters: bool,
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// A meeting of the team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ceremony {
    pub(crate) name: String,
    /// `None`: no member of the roster.
    pub(crate) facilitator: Option<Slug>,
    /// `auto` or `manual`, as written.
    pub(crate) trigger: String,
    /// `before` or `after` the work, as written.
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
    /// `None` if missing or unknown.
    pub(crate) status: Option<Status>,
    pub(crate) source: Source,
}

/// A row of the routing table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// The name or subject of the work.
    pub(crate) signal: String,
    /// The agents that do it, in order of preference.
    pub(crate) agents: Vec<Slug>,
    /// The reviewer named in the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reviewer: Option<Slug>,
    pub(crate) examples: Vec<String>,
    pub(crate) source: Source,
}

/// A row of a module-ownership table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Module {
    /// Relative to the project's root with `/`; a folder includes everything below it.
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
    /// The paths that each member owns.
    pub(crate) fn owned(&self) -> BTreeMap<Slug, Vec<String>> {
        let mut owned: BTreeMap<Slug, Vec<String>> = BTreeMap::new();
        for module in &self.modules {
            for owner in std::iter::once(&module.primary).chain(&module.secondary) {
                owned.entry(owner.clone()).or_default().push(module.path.clone());
            }
        }
        owned
    }

    pub(crate) fn member(&self, slug: &Slug) -> Option<&Member> {
        self.members.iter().find(|member| member.slug == *slug)
    }

    /// The slugs that a member had before it was renamed, according to its charter.
    pub(crate) fn formerly(&self, member: &Member) -> impl Iterator<Item = Slug> {
        let charter = self.charters.get(&member.slug);
        charter.into_iter().flat_map(|charter| &charter.formerly).filter_map(|name| Slug::spelled(name))
    }

    /// The member that has this slug, or else the one that had it before.
    pub(crate) fn member_once(&self, slug: &Slug) -> Option<&Member> {
        let had_it = |member: &&Member| self.formerly(member).any(|old| old == *slug);
        self.member(slug).or_else(|| self.members.iter().find(had_it))
    }

    /// The members that can be given work, in the order of the roster.
    pub(crate) fn startable(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_startable())
    }

    /// The agent whose slug is most like a mistyped name.
    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        super::nearest(name, 0.6, self.startable().map(|member| member.slug.as_str()))
    }

    /// The member with this slug, if it can be given work.
    pub(crate) fn startable_member(&self, slug: &Slug) -> Option<&Member> {
        self.member(slug).filter(|member| member.is_startable())
    }
}
