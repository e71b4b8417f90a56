//! Finds members of the team by name.

use crate::error::Failure;
use crate::model::{Member, Slug, Team, list};

/// The slugs of agents named on the command line.
pub(crate) fn named_agents(team: &Team, names: &[String]) -> Result<Vec<Slug>, Failure> {
    names.iter().map(|name| Ok(startable(team, named_member(team, name)?)?.slug.clone())).collect()
}

/// The member with this slug or name.
pub(crate) fn named_member<'a>(team: &'a Team, name: &str) -> Result<&'a Member, Failure> {
    let wanted = Slug::fold(name.trim_start_matches('@'));
    let member = team
        .members
        .iter()
        .find(|member| wanted.as_ref() == Some(&member.slug) || wanted.is_some() && Slug::fold(&member.name) == wanted);
    member.ok_or_else(|| {
        let near = team.nearest(&name.to_lowercase());
        let near = near.map(|slug| format!("did you mean `{slug}`? ")).unwrap_or_default();
        Failure::usage(format!("the team has no agent `{name}`")).hint(format!("{near}{}", agents(team)))
    })
}

/// The member. Fails if squad cannot start it.
pub(crate) fn startable<'a>(team: &Team, member: &'a Member) -> Result<&'a Member, Failure> {
    if member.is_startable() {
        return Ok(member);
    }
    Err(Failure::usage(format!("{} is not an agent that can be started", member.name))
        .at(&member.source)
        .hint(agents(team)))
}

fn agents(team: &Team) -> String {
    format!("the team's agents: {}", list(team.startable().map(|member| &member.slug)))
}
