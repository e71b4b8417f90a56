//! Finds members by what people call them.

use std::collections::HashMap;

use super::super::words::{remark, without_pictographs};
use super::{BOT, HELPERS};
use crate::model::{Member, Slug};

/// The roster by slug, by name, by name without its remark, by the name's first word, and by role; the first of these
/// that knows a text answers, and in each the first member.
pub(crate) struct Roll<'m> {
    pub(crate) members: &'m [Member],
    names: [HashMap<Slug, usize>; 4],
    roles: HashMap<Slug, usize>,
}

impl<'m> Roll<'m> {
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
        Self { members, names, roles: by(&|member| Slug::fold(&member.role)) }
    }

    /// The member a cell means.
    pub(crate) fn find(&self, text: &str) -> Option<&'m Member> {
        let by_role = || self.members.get(*self.roles.get(&wanted(text)?)?);
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

    /// A member, or a helper or the bot that every team has, whether or not its roster lists it.
    pub(crate) fn built_in(&self, name: &str) -> Option<Slug> {
        wanted(name).filter(|slug| HELPERS.contains(&slug.as_str()) || slug.as_str() == BOT)
    }
}

fn wanted(text: &str) -> Option<Slug> {
    let text = without_pictographs(text);
    Slug::fold(remark(&text).0.trim_start_matches('@'))
}
