//! Automatic meetings of the team. Those that are due become steps of the plan; people hold the others.
//!
//! A meeting becomes a step only if code can check its condition: `multi-agent task involving 2+ agents`, but not
//! `… modifying shared systems`. Conditions that arise during the work, such as a rejection or a failed build, are not
//! known in advance and are left to people too.

use super::message::Names;
use super::{Reading, note};
use crate::model::{
    Ceremony, CeremonyTiming, Evidence, Plan, PlanKind, PlannedCeremony, Slug, Team, Tier, first_words, without_hidden,
};

/// Meetings that one plan speaks of, and those among them that it holds.
const MOST: usize = 20;
const HELD: usize = 4;
/// Characters of a name and of a condition.
const NAME: usize = 60;
const CONDITION: usize = 120;

/// Adds the team's meetings to a plan whose agents are decided.
pub(crate) fn add(team: &Team, plan: &mut Plan, message: &str) {
    if plan.kind != PlanKind::Agents {
        return;
    }
    let work = plan.clone();
    let (mut held, mut held_before) = (0, 0);
    for (ceremony, when) in automatic(team, &work).into_iter().take(MOST) {
        let (name, word) = (shown(&ceremony.name, NAME), when.word());
        let (source, condition) = (ceremony.source.to_string(), shown(&ceremony.condition, CONDITION));
        let facilitator = if held < HELD {
            facilitator(team, &work, message, ceremony)
        } else {
            Err(format!("{HELD} others are held"))
        };
        let edge = if when == CeremonyTiming::Before { work.steps.first() } else { work.steps.last() };
        let step = match facilitator {
            // The agent's prompt contains the meeting already.
            Ok(agent) if edge.is_some_and(|step| step[..] == [agent.clone()]) => {
                let why = format!("facilitates {name}, and works {word} the others anyway");
                plan.evidence.push(Evidence::new(&agent, why, source, 0.0));
                continue;
            }
            Ok(agent) => {
                let why = format!("facilitates {name} {word} the work: {condition}");
                plan.evidence.push(Evidence::new(&agent, why, source.as_str(), 0.0));
                if !plan.agents.contains(&agent) {
                    plan.agents.push(agent.clone());
                }
                let place = if when == CeremonyTiming::Before { held_before } else { plan.steps.len() };
                plan.steps.insert(place, vec![agent]);
                (held, held_before) = (held + 1, held_before + usize::from(when == CeremonyTiming::Before));
                u32::try_from(place + 1).ok()
            }
            Err(reason) => {
                let why = format!("{name} ({word} the work: {condition}) is left to people: {reason}");
                plan.evidence.push(note(why, &source));
                None
            }
        };
        plan.ceremonies.push(PlannedCeremony { name, when, source, step });
    }
}

fn shown(text: &str, limit: usize) -> String {
    first_words(&without_hidden(text.to_owned()), limit)
}

/// The meetings that may be due, without duplicates; those before the work come first.
fn automatic<'t>(team: &'t Team, plan: &Plan) -> Vec<(&'t Ceremony, CeremonyTiming)> {
    let mut found: Vec<(&Ceremony, CeremonyTiming)> = Vec::new();
    let is_automatic = |ceremony: &&Ceremony| {
        let trigger = ceremony.trigger.to_lowercase();
        ceremony.enabled && trigger.split(|c: char| !c.is_alphanumeric()).any(|word| word.starts_with("auto"))
    };
    for when in [CeremonyTiming::Before, CeremonyTiming::After] {
        for ceremony in team.ceremonies.iter().filter(is_automatic) {
            let is_known = found.iter().any(|(other, at)| *at == when && other.name == ceremony.name);
            if ceremony.when.trim().eq_ignore_ascii_case(when.word()) && !is_known && due(ceremony, plan) != Some(false)
            {
                found.push((ceremony, when));
            }
        }
    }
    found
}

/// The agent that holds a meeting, or the reason why people have to.
fn facilitator(team: &Team, plan: &Plan, message: &str, ceremony: &Ceremony) -> Result<Slug, String> {
    if due(ceremony, plan).is_none() {
        return Err("squad cannot tell whether it is due".to_owned());
    }
    let Some(member) = ceremony.facilitator.as_ref().and_then(|slug| team.startable_member(slug)) else {
        return Err("nobody who can be started facilitates it".to_owned());
    };
    let slug = &member.slug;
    if plan.is_reviewer(slug) {
        return Err(format!("{slug} reviews the work"));
    }
    if plan.tier == Tier::Lightweight {
        return Err(format!("tier {}", plan.tier));
    }
    if Reading::of(team, &Names::of(team), message).called.ruled_out.contains(slug) {
        return Err(format!("the message rules {slug} out"));
    }
    Ok(slug.clone())
}

// How many agents a condition asks for, what else every plan meets, and what only code would misread.
pattern!(AGENTS, r"\b(multi(?:ple)?|several|two\+?|three\+?|(\d+)(?:\+| or more))[- ](?:agents?|members)\b");
pattern!(ALWAYS, r"\b(always|any|every|each|all)\b");
pattern!(
    PLAIN,
    r"^\W*((always|any|every|each|all|a|an|the|tasks?|work|run|involv(es|ing)|with|by|of|for|on|at least|when(ever)?)\W*)*$"
);
pattern!(DENIES, r"['’]|\b(not?|non|unless|except|without|fewer|less|than|single|never|until)\b");
pattern!(REJECTED, r"^\W*((a|an|the|by|of|on|when|reviewer|review)\W+)*reject(ion|ed|s)(\W+by (a|the) reviewer)?\W*$");

/// Whether a meeting is due according to its row and the plan. `None`: code cannot check the condition.
fn due(ceremony: &Ceremony, plan: &Plan) -> Option<bool> {
    let condition = ceremony.condition.to_lowercase().replace(" or more ", "+ ");
    let parts = condition.split([',', ';']).flat_map(|part| part.split(" or "));
    let due = parts.filter(|part| part.contains(char::is_alphanumeric)).map(|part| holds(part, plan));
    // Any of them is enough; where none is, all have to be clear.
    due.reduce(|one, other| if one == Some(true) || other == Some(true) { Some(true) } else { one.and(other) })
        .flatten()
}

/// Whether one alternative of a condition holds.
fn holds(condition: &str, plan: &Plan) -> Option<bool> {
    if DENIES.is_match(condition) {
        return None;
    }
    if REJECTED.is_match(condition) {
        return if plan.reviewer.is_some() { None } else { Some(false) };
    }
    let least = AGENTS.captures_iter(condition).map(|found| match found.get(2) {
        Some(count) => count.as_str().parse().ok(),
        None if found[1].starts_with("three") => Some(3),
        None => Some(2),
    });
    let least: usize = least.collect::<Option<Vec<_>>>()?.into_iter().max().unwrap_or(0);
    if plan.agents.len() < least {
        return Some(false);
    }
    let is_clear = PLAIN.is_match(&AGENTS.replace_all(condition, ""));
    (is_clear && (least > 0 || ALWAYS.is_match(condition))).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;

    fn slug(name: &str) -> Slug {
        Slug::fold(name).expect("a slug")
    }

    fn due_among(agents: usize, reviewer: Option<&str>, condition: &str) -> Option<bool> {
        let plan = Plan {
            kind: PlanKind::Agents,
            agents: (0..agents).map(|number| slug(&format!("agent-{number}"))).collect(),
            steps: Vec::new(),
            reviewer: reviewer.map(slug),
            other_reviewers: Vec::new(),
            tier: Tier::Standard,
            confidence: 1.0,
            evidence: Vec::new(),
            ceremonies: Vec::new(),
            overlaps: Vec::new(),
        };
        let ceremony = Ceremony {
            name: "Design Review".to_owned(),
            facilitator: None,
            trigger: "auto".to_owned(),
            when: "before".to_owned(),
            condition: condition.to_owned(),
            agenda: Vec::new(),
            enabled: true,
            source: Source::new(".squad/ceremonies.md", 5),
        };
        due(&ceremony, &plan)
    }

    #[test]
    fn a_condition_is_decided_only_where_all_of_it_is_understood() {
        for (condition, alone, two, three) in [
            ("multi-agent task involving 2+ agents", Some(false), Some(true), Some(true)),
            ("Multi-agent task", Some(false), Some(true), Some(true)),
            ("task with 3 or more agents", Some(false), Some(false), Some(true)),
            ("at least 3+ agents", Some(false), Some(false), Some(true)),
            ("always", Some(true), Some(true), Some(true)),
            ("every task", Some(true), Some(true), Some(true)),
            ("multi-agent task involving 2+ agents modifying shared systems", Some(false), None, None),
            ("several agents, or a schema change", None, Some(true), Some(true)),
            ("build failure, test failure, or reviewer rejection", None, None, None),
            ("reviewer rejection", Some(false), Some(false), Some(false)),
            ("unless it is a multi-agent task", None, None, None),
            ("no multi-agent task", None, None, None),
            ("fewer than 2+ agents", None, None, None),
            ("multiple files are touched", None, None, None),
            ("any agent closes an issue", None, None, None),
            ("task", None, None, None),
            ("", None, None, None),
            (", or ;", None, None, None),
            ("99999999999999999999999+ agents", None, None, None),
        ] {
            let found = [1, 2, 3].map(|agents| due_among(agents, None, condition));
            assert_eq!(found, [alone, two, three], "{condition}");
        }
        assert_eq!(due_among(1, Some("rex"), "reviewer rejection"), None);
    }
}
