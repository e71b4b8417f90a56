//! Finds members by name or role.

use std::collections::HashMap;

use super::super::words::{remark, without_pictographs};
use super::{BOT, HELPERS};
use crate::model::{Member, Slug};

/// Indexes of the roster, tried in this order: slug, name, name without its remark, the name's first word, role, unique
/// word of a role. In each, the first member wins.
pub(crate) struct MemberIndex<'m> {
    pub(crate) members: &'m [Member],
    names: [HashMap<Slug, usize>; 4],
    roles: HashMap<Slug, usize>,
    /// By a word of the role. `None`: ambiguous.
    role_words: HashMap<Slug, Option<usize>>,
}

impl<'m> MemberIndex<'m> {
    pub(crate) fn new(members: &'m [Member]) -> Self {
        let by = |key: &dyn Fn(&Member) -> Option<Slug>| {
            let mut map = HashMap::new();
            for (index, member) in members.iter().enumerate() {
                if let Some(slug) = key(member) {
                    map.entry(slug).or_insert(index);
                }
            }
            map
        };
        let names = [
            by(&|member| Slug::fold(member.slug.as_str())),
            by(&|member| Slug::fold(&member.name)),
            by(&|member| Slug::fold(remark(&member.name).0)),
            by(&|member| member.name.split_whitespace().next().and_then(Slug::fold)),
        ];
        let mut role_words: HashMap<Slug, Option<usize>> = HashMap::new();
        for (index, member) in members.iter().enumerate() {
            for word in member.role.split(|c: char| !c.is_alphanumeric()).filter_map(Slug::fold) {
                let only = role_words.entry(word).or_insert(Some(index));
                *only = only.filter(|first| *first == index);
            }
        }
        Self { members, names, roles: by(&|member| Slug::fold(&member.role)), role_words }
    }

    /// The member a cell means.
    pub(crate) fn find(&self, text: &str) -> Option<&'m Member> {
        let by_role = || {
            let wanted = wanted(text)?;
            let index = self.roles.get(&wanted).copied().or_else(|| *self.role_words.get(&wanted)?)?;
            self.members.get(index)
        };
        self.named(text).or_else(by_role)
    }

    /// The member a text names.
    pub(crate) fn named(&self, text: &str) -> Option<&'m Member> {
        let whole = Slug::fold(&without_pictographs(text));
        let wanted = [whole, wanted(text)];
        self.names.iter().find_map(|map| {
            let index = wanted.iter().flatten().find_map(|slug| map.get(slug))?;
            self.members.get(*index)
        })
    }

    /// The slug of a helper or the bot, which every team has even if the roster does not list them.
    pub(crate) fn built_in(&self, name: &str) -> Option<Slug> {
        wanted(name).filter(|slug| HELPERS.contains(&slug.as_str()) || slug.as_str() == BOT)
    }
}

fn wanted(text: &str) -> Option<Slug> {
    let text = without_pictographs(text);
    Slug::fold(remark(&text).0.trim_start_matches('@'))
}
