//! Reads the coordinator's choice strictly and checks it against the roster.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::{Evidence, Plan, PlanKind, Slug, Team, Tier, first_line, from_json};

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    agents: Vec<String>,
    /// Instead of `agents`, if some start after others.
    #[serde(default)]
    steps: Vec<Vec<String>>,
    #[serde(default)]
    reason: String,
    /// The answer to the user if nobody is chosen.
    #[serde(default)]
    answer: String,
}

/// The JSON schema of the answer, for models with structured output. Strict modes want every property required.
pub(crate) fn schema(team: &Team) -> Value {
    let slugs: Vec<&str> = team.startable().map(|member| member.slug.as_str()).collect();
    let agents = json!({ "type": "array", "items": { "type": "string", "enum": slugs } });
    json!({
        "type": "object",
        "properties": {
            "agents": agents,
            "steps": { "type": "array", "items": agents, "description": "Only where some begin when others are done." },
            "reason": { "type": "string" },
            "answer": { "type": "string", "description": "Markdown for the user where nobody works on it, else empty." },
        },
        "required": ["agents", "steps", "reason", "answer"],
        "additionalProperties": false,
    })
}

/// The coordinator's choice.
#[derive(Debug)]
pub(crate) enum Chosen {
    Agents(Plan),
    /// No agent is needed: the plan, and the answer.
    Nobody(Plan, String),
}

/// Applies the coordinator's choice to the plan, or tells what is wrong with the answer.
pub(crate) fn apply(team: &Team, plan: &Plan, answer: &str) -> Result<Chosen, String> {
    let choice: Choice = from_json(json_object(answer))
        .map_err(|_| in_its_words("the coordinator did not answer in the form it was asked for", answer))?;
    let steps = if choice.steps.is_empty() { std::slice::from_ref(&choice.agents) } else { &choice.steps };
    let slugs = |names: &[String]| names.iter().map(|name| startable(team, name).ok_or(name.clone())).collect();
    let steps: Result<Vec<Vec<Slug>>, String> = steps.iter().map(|names| slugs(names)).collect();
    let steps = steps.map_err(|name| format!("the coordinator chose `{name}`, who cannot be started"))?;
    let steps: Vec<Vec<Slug>> = steps.into_iter().filter(|step| !step.is_empty()).map(distinct).collect();
    if !steps.is_empty() {
        let why = if choice.reason.is_empty() { "chosen" } else { &choice.reason };
        return Ok(Chosen::Agents(planned(plan, steps, why, Slug::COORDINATOR)));
    }
    if choice.answer.trim().is_empty() {
        return Err(in_its_words("the coordinator cannot tell whose work it is", &choice.reason));
    }
    let answers = Evidence::new(&Slug::coordinator(), "the coordinator answers it", Slug::COORDINATOR, 1.0);
    let evidence = std::iter::once(answers).chain(plan.evidence.iter().cloned()).collect();
    let (kind, tier, confidence) = (PlanKind::Direct, Tier::Direct, plan.confidence);
    Ok(Chosen::Nobody(Plan { kind, tier, confidence, evidence, ..Plan::default() }, choice.answer))
}

/// A plan with other agents, for a reason.
fn planned(plan: &Plan, steps: Vec<Vec<Slug>>, why: &str, source: &str) -> Plan {
    let agents = distinct(steps.iter().flatten().cloned().collect());
    let chosen = agents.iter().map(|agent| Evidence::new(agent, why, source, 1.0));
    let evidence = chosen.chain(plan.evidence.iter().cloned()).collect();
    Plan { kind: PlanKind::Agents, agents, steps, evidence, ..plan.clone() }
}

fn in_its_words(problem: &str, words: &str) -> String {
    match first_line(words.trim(), 200).trim_end_matches('.') {
        "" => problem.to_owned(),
        words => format!("{problem}: {words}"),
    }
}

/// The agents offered to a person: the router's candidates, or all if it has none.
pub(crate) fn candidates(team: &Team, plan: &Plan) -> Vec<Slug> {
    const MOST: usize = 8;
    let speaks_for = plan.evidence.iter().filter(|evidence| evidence.weight > 0.0).map(|evidence| &evidence.agent);
    let mut found = distinct(speaks_for.filter(|slug| team.startable_member(slug).is_some()).cloned().collect());
    if found.is_empty() {
        found = team.startable().map(|member| member.slug.clone()).collect();
    }
    found.truncate(MOST);
    found
}

pub(super) fn distinct(mut slugs: Vec<Slug>) -> Vec<Slug> {
    let mut seen = HashSet::new();
    slugs.retain(|slug| seen.insert(slug.clone()));
    slugs
}

/// The agent with a slug as people and models write it.
fn startable(team: &Team, name: &str) -> Option<Slug> {
    let slug = name.trim().trim_start_matches('@').to_lowercase();
    team.startable().find(|member| member.slug.as_str() == slug).map(|member| member.slug.clone())
}

/// Applies a person's choice to the plan. `None`: it names nobody who can be started.
pub(crate) fn by_person(team: &Team, plan: &Plan, answer: &str) -> Option<Plan> {
    Some(planned(plan, vec![vec![startable(team, answer)?]], "chosen by the user", PERSON))
}

/// The source of a choice at the terminal.
pub(crate) const PERSON: &str = "terminal";

/// Models like to wrap JSON in a fence or a sentence.
fn json_object(text: &str) -> &str {
    match (text.find('{'), text.rfind('}')) {
        (Some(start), Some(end)) if start < end => &text[start..=end],
        _ => text,
    }
}
