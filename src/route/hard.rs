//! Fixed assignments in the team's files: labels, and owners of paths.

use std::ops::Range;

use super::message::Message;
use super::stems::is_outside;
use super::{Draft, Request};
use crate::model::{Evidence, Module, Slug, Team};

/// The agent that the labels of an issue assign, else the owner of its files. `None` if nobody or several.
pub(super) fn read(team: &Team, request: &Request<'_>) -> Option<Draft> {
    let labelled = request.labels.iter().filter_map(|label| of_label(team, label)).collect();
    let owned = || request.paths.iter().filter_map(|path| of_path(team, path)).collect();
    only(labelled).or_else(|| only(owned()))
}

/// The labels and paths of a request that no row of the team's files matches.
pub(super) fn unknown<'r>(team: &Team, request: &Request<'r>) -> Vec<(&'static str, &'r str)> {
    let is_label = |label: &&String| {
        of_label(team, label).is_none() && !team.labels.iter().any(|rule| rule.label.eq_ignore_ascii_case(label))
    };
    let is_path = |path: &&String| row(team, path).is_none();
    let labels = request.labels.iter().filter(is_label).map(|label| ("label", label.as_str()));
    labels.chain(request.paths.iter().filter(is_path).map(|path| ("path", path.as_str()))).collect()
}

/// The owner of all files that the message names, and where it names them. Pasted and excluded text is ignored.
pub(super) fn in_text(team: &Team, message: &Message<'_>) -> Option<(Draft, Vec<Range<usize>>)> {
    if team.modules.is_empty() {
        return None;
    }
    let (mut found, mut places) = (Vec::new(), Vec::new());
    let words = message.text.split_whitespace().filter(|word| word.contains('/') && !word.contains("://"));
    for word in words.take(MOST) {
        let start = word.as_ptr() as usize - message.text.as_ptr() as usize;
        let end = start + word.len();
        if !message
            .tokens
            .iter()
            .any(|it| !it.is_denied && !it.is_mark() && it.place.start < end && start < it.place.end)
        {
            continue;
        }
        let path = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '_'));
        // `main.rs:12:5`
        let path = path.split(':').next().unwrap_or(path).trim_end_matches('.');
        if let Some(evidence) = of_path(team, path).filter(|_| !is_outside(path)) {
            places.push(start..end);
            found.push(evidence);
        }
    }
    Some((only(found)?, places))
}

/// Only pasted text names more files.
const MOST: usize = 40;

fn only(found: Vec<Evidence>) -> Option<Draft> {
    let first = found.first()?.agent.clone();
    found.iter().all(|evidence| evidence.agent == first).then(|| Draft::sure(vec![first], found))
}

/// `squad:NAME` is the label that gives an issue to a member.
fn of_label(team: &Team, label: &str) -> Option<Evidence> {
    let given = label.strip_prefix("squad:").and_then(Slug::fold).filter(|slug| team.startable_member(slug).is_some());
    if let Some(agent) = given {
        return Some(Evidence::new(&agent, format!("the label `{label}`"), "label", 1.0));
    }
    let rule = team.labels.iter().find(|rule| rule.label.eq_ignore_ascii_case(label))?;
    let agent = rule.agents.iter().find_map(|slug| team.startable_member(slug))?;
    Some(Evidence::new(&agent.slug, format!("the label `{label}`"), rule.source.to_string(), 1.0))
}

fn of_path(team: &Team, path: &str) -> Option<Evidence> {
    let module = row(team, path)?;
    let mut owners = Some(&module.primary).into_iter().chain(&module.secondary);
    let agent = owners.find_map(|slug| team.startable_member(slug))?;
    Some(Evidence::new(&agent.slug, format!("{path} is in {}", module.path), module.source.to_string(), 1.0))
}

/// The row with the longest path that contains this one. If none matches from the project's root, the only row whose
/// path occurs inside it: `packages/x/src/cli/a.ts` is in `src/cli`.
fn row<'t>(team: &'t Team, path: &str) -> Option<&'t Module> {
    let path = path.trim_start_matches("./").trim_matches('/');
    let from_root = team.modules.iter().filter(|module| holds(plain(module), path));
    from_root.max_by_key(|module| plain(module).len()).or_else(|| {
        let tail = |at: usize| path.get(at + 1..).unwrap_or_default();
        let is_inside = |module: &&Module| {
            plain(module).contains('/') && path.match_indices('/').any(|(at, _)| holds(plain(module), tail(at)))
        };
        let mut inside = team.modules.iter().filter(is_inside);
        inside.next().filter(|_| inside.next().is_none())
    })
}

fn plain(module: &Module) -> &str {
    module.path.trim_start_matches("./").trim_end_matches('*').trim_end_matches('/')
}

fn holds(module: &str, path: &str) -> bool {
    let rest = path.strip_prefix(module);
    !module.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
