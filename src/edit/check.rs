//! Verifies a change: the team has to be as expected.

use std::collections::BTreeMap;

use serde::Serialize;

use super::naming::Naming;
use super::{NewMember, refusal};
use crate::model::{Kind, Member, Problem, Severity, Slug, Source, Status, Team, list, to_json};
use crate::parse::{Files, is_blank, remark};

/// The code of rules that lead to nobody.
pub(super) const IDLE: &str = "routing-idle-agent";

/// A team without prose and positions, one line per item.
pub(super) fn snapshot(team: &Team) -> Vec<String> {
    let charters = team.charters.iter().map(|(slug, charter)| {
        let [model, tools, tier] = [json(&charter.model), json(&charter.tools), json(&charter.tier)];
        format!("charter {slug}: model {model}, tools {tools}, tier {tier}")
    });
    let members = team.members.iter().map(|member| {
        let Member { name, slug, role, kind, status, scope, charter: path, .. } = member;
        let path = path.as_deref().unwrap_or("nowhere");
        format!("member {name} ({slug}): {role}, {}, {}, `{scope}`, {path}", json(kind), json(status))
    });
    let rules = team.rules.iter().map(|rule| {
        let [reviewer, examples] = [json(&rule.reviewer), json(&rule.examples)];
        format!("rule `{}` to {}, reviewer {reviewer}, examples {examples}", rule.signal, list(&rule.agents))
    });
    let modules = team
        .modules
        .iter()
        .map(|module| format!("{} is {}'s, then {}", module.path, module.primary, json(&module.secondary)));
    let labels =
        team.labels.iter().map(|label| format!("label {} to {}: {}", label.label, list(&label.agents), label.action));
    let ceremonies =
        team.ceremonies.iter().map(|ceremony| format!("{} by {}", ceremony.name, json(&ceremony.facilitator)));
    let histories = team.histories.keys().map(|slug| format!("history {slug}:"));
    let others = team.roles.keys().map(|slug| format!("role {slug}:"));
    members
        .chain(charters)
        .chain(rules)
        .chain(modules)
        .chain(labels)
        .chain(ceremonies)
        .chain(histories)
        .chain(others)
        .collect()
}

/// As in `squad agents --json`.
fn json(value: &impl Serialize) -> String {
    to_json(value).unwrap_or_default()
}

/// The lines for a new member.
pub(super) fn joined(new: &NewMember, slug: &Slug, charter: &str) -> Vec<String> {
    let model = new.model.as_deref().filter(|model| *model != "auto");
    let (name, role) = (&new.name, &new.role);
    let (kind, status) = (json(&Kind::Agent), json(&Status::Active));
    let member = format!("member {name} ({slug}): {role}, {kind}, {status}, ``, {charter}");
    let charter = format!("charter {slug}: model {}, tools null, tier null", json(&model));
    let rules = new.signals.iter().map(|signal| format!("rule `{signal}` to {slug}, reviewer null, examples []"));
    [member, charter].into_iter().chain(rules).collect()
}

/// Removes lines from files that a new member had before it joined.
pub(super) fn without_own(lines: Vec<String>, slug: &Slug) -> Vec<String> {
    let is_own =
        |line: &String| ["charter", "history", "role"].iter().any(|what| line.starts_with(&format!("{what} {slug}:")));
    lines.into_iter().filter(|line| !is_own(line)).collect()
}

pub(super) fn retire(team: &mut Team, slug: &Slug) {
    if let Some(member) = team.members.iter_mut().find(|member| member.slug == *slug) {
        member.status = Status::Retired;
    }
}

pub(super) fn move_charter(team: &mut Team, slug: &Slug, (old, new): (&str, &str)) {
    let moved = team.members.iter_mut().filter(|member| member.slug == *slug);
    for charter in moved.filter_map(|member| member.charter.as_mut()) {
        if let Some(rest) = charter.strip_prefix(old) {
            *charter = format!("{new}{rest}");
        }
    }
}

pub(super) fn rename(team: &mut Team, member: &Member, naming: &Naming<'_>) {
    let (old, Some(new)) = (&member.slug, Slug::fold(naming.new_slug)) else { return };
    let put = |slug: &mut Slug| {
        if slug == old {
            *slug = new.clone();
        }
    };
    for member in &mut team.members {
        if member.slug == *old {
            let kept = remark(&member.name).1;
            let name = if is_blank(kept) { naming.new.to_owned() } else { format!("{} ({kept})", naming.new) };
            member.name = name;
        }
        put(&mut member.slug);
    }
    for rule in &mut team.rules {
        rule.agents.iter_mut().chain(&mut rule.reviewer).for_each(put);
    }
    for module in &mut team.modules {
        std::iter::once(&mut module.primary).chain(&mut module.secondary).for_each(put);
    }
    team.labels.iter_mut().flat_map(|label| &mut label.agents).for_each(put);
    team.ceremonies.iter_mut().filter_map(|ceremony| ceremony.facilitator.as_mut()).for_each(put);
    if let Some(charter) = team.charters.remove(old) {
        team.charters.insert(new.clone(), charter);
    }
    if let Some(history) = team.histories.remove(old) {
        team.histories.insert(new, history);
    }
}

/// Fails on the first difference, or on a new kind of warning.
pub(super) fn verify(
    files: &Files,
    expected: &[String],
    found: &[String],
    (before, after): (&[Problem], &[Problem]),
) -> Result<(), Problem> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    expected.iter().for_each(|line| *counts.entry(line).or_default() += 1);
    found.iter().for_each(|line| *counts.entry(line).or_default() -= 1);
    let source = || Source::new(files.shown("team.md"), 0);
    if let Some((line, count)) = counts.into_iter().find(|(_, count)| *count != 0) {
        let (would, message) = if count > 0 { ("lose", line) } else { ("get", line) };
        let message = format!("squad cannot make this change without another: the team would {would} {message}");
        return Err(refusal(source(), message, "make it by hand; `squad agents` shows how squad reads it"));
    }
    let is_grave = |problem: &&Problem| problem.severity >= Severity::Warning && problem.code != IDLE;
    let count = |problems: &[Problem], code: &str| {
        problems.iter().filter(is_grave).filter(|problem| problem.code == code).count()
    };
    let news = after.iter().filter(is_grave).find(|problem| count(after, &problem.code) > count(before, &problem.code));
    match news {
        Some(problem) => {
            let message = format!("after this change squad would not understand the team: {}", problem.message);
            Err(refusal(Source::new(problem.file.clone(), problem.line), message, "make it by hand"))
        }
        None => Ok(()),
    }
}
