//! What the team has laid down: whose label this is, whose part of the code.

use super::text::Stretch;
use super::{Draft, Request};
use crate::model::{Evidence, Member, Module, Slug, Team};

/// Those whom the labels of the issue, then the files it is about, belong to; `None` when they belong to nobody or to
/// several.
pub(super) fn read(team: &Team, request: &Request<'_>) -> Option<Draft> {
    let labelled = request.labels.iter().filter_map(|label| of_label(team, label)).collect();
    let owned = || request.paths.iter().filter_map(|path| of_path(team, path)).collect();
    only(labelled).or_else(|| only(owned()))
}

/// Which of the labels and paths of a request nothing in the team's files is about.
pub(super) fn unknown<'r>(team: &Team, request: &Request<'r>) -> Vec<(&'static str, &'r str)> {
    let is_label = |label: &&String| {
        of_label(team, label).is_none() && !team.labels.iter().any(|rule| rule.label.eq_ignore_ascii_case(label))
    };
    let is_path = |path: &&String| !team.modules.iter().any(|module| holds(&module.path, path));
    let labels = request.labels.iter().filter(is_label).map(|label| ("label", label.as_str()));
    labels.chain(request.paths.iter().filter(is_path).map(|path| ("path", path.as_str()))).collect()
}

/// The one whom all files belong to that the message names. What is pasted or shall not be touched names none.
pub(super) fn in_text(team: &Team, message: &str, stretches: &[Stretch]) -> Option<Draft> {
    if team.modules.is_empty() {
        return None;
    }
    let asked = stretches.iter().filter(|stretch| stretch.weight >= NAMED);
    let words = asked.flat_map(|stretch| message[stretch.range.clone()].split_whitespace());
    let paths = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '_')));
    let paths = paths.filter(|path| path.contains('/') && !path.contains("://"));
    only(paths.take(MOST).filter_map(|path| of_path(team, path.trim_end_matches('.'))).collect())
}

/// From this weight on, a stretch's words are the user's own.
const NAMED: f64 = 0.5;
/// Nobody names more files by hand.
const MOST: usize = 40;

fn only(found: Vec<Evidence>) -> Option<Draft> {
    let first = found.first()?.agent.clone();
    found.iter().all(|evidence| evidence.agent == first).then(|| Draft {
        agents: vec![first],
        confidence: 1.0,
        evidence: found,
        ..Draft::default()
    })
}

/// `squad:NAME` is the label that gives an issue to a member.
fn of_label(team: &Team, label: &str) -> Option<Evidence> {
    let given = label.strip_prefix("squad:").and_then(Slug::fold).filter(|slug| startable(team, slug));
    if let Some(agent) = given {
        return Some(evidence(agent, format!("the label `{label}`"), "label".to_owned()));
    }
    let rule = team.labels.iter().find(|rule| rule.label.eq_ignore_ascii_case(label))?;
    let agent = rule.agents.iter().find(|slug| startable(team, slug))?;
    Some(evidence(agent.clone(), format!("the label `{label}`"), rule.source.to_string()))
}

/// The longest path that holds this one decides.
fn of_path(team: &Team, path: &str) -> Option<Evidence> {
    let holds = |module: &&Module| holds(&module.path, path);
    let module = team.modules.iter().filter(holds).max_by_key(|module| module.path.len())?;
    let agent = Some(&module.primary).into_iter().chain(&module.secondary).find(|slug| startable(team, slug))?;
    Some(evidence(agent.clone(), format!("{path} is in {}", module.path), module.source.to_string()))
}

fn holds(module: &str, path: &str) -> bool {
    let module = module.trim_start_matches("./").trim_end_matches('*').trim_end_matches('/');
    let rest = path.trim_start_matches("./").strip_prefix(module);
    !module.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn startable(team: &Team, slug: &Slug) -> bool {
    team.member(slug).is_some_and(Member::is_startable)
}

fn evidence(agent: Slug, why: String, source: String) -> Evidence {
    Evidence { agent, why, source, weight: 1.0 }
}
