//! `@name` and `team, …`.

use super::Draft;
use crate::model::{Evidence, Slug, Team};

/// The agents a message calls by name, in the order it does; `None` when it calls nobody that can be started.
pub(super) fn read(team: &Team, message: &str) -> Option<Draft> {
    let mut draft = Draft { confidence: 1.0, ..Draft::default() };
    for name in mentions(message) {
        let wanted = name.to_lowercase();
        let called = team.startable().find(|member| {
            member.slug.as_str() == wanted || Slug::fold(&member.name).is_some_and(|slug| slug.as_str() == wanted)
        });
        if let Some(member) = called.filter(|member| !draft.agents.contains(&member.slug)) {
            draft.agents.push(member.slug.clone());
            draft.evidence.push(evidence(&member.slug, &format!("the message says @{name}")));
        }
    }
    if draft.agents.is_empty() && calls_the_team(message) {
        for member in team.startable() {
            draft.agents.push(member.slug.clone());
            draft.evidence.push(evidence(&member.slug, "the message calls the whole team"));
        }
    }
    (!draft.agents.is_empty()).then_some(draft)
}

fn evidence(agent: &Slug, why: &str) -> Evidence {
    Evidence { agent: agent.clone(), why: why.to_owned(), source: "message".to_owned(), weight: 1.0 }
}

/// What follows an `@` that begins a word, outside of code spans: not the `@` of an e-mail address.
fn mentions(message: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut in_code = false;
    let mut before = ' ';
    for (at, c) in message.char_indices() {
        if c == '`' {
            in_code = !in_code;
        } else if c == '@' && !in_code && !(before.is_alphanumeric() || matches!(before, '.' | '_' | '-' | '/' | '@')) {
            let rest = &message[at + 1..];
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('-');
            // `@scope/package` is not a colleague.
            if !name.is_empty() && !rest[end..].starts_with('/') {
                names.push(name);
            }
        }
        before = c;
    }
    names
}

fn calls_the_team(message: &str) -> bool {
    let start = message.trim_start().to_lowercase();
    ["team,", "team:", "everyone,", "everybody,", "@team "].iter().any(|call| start.starts_with(call))
}
