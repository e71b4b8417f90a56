//! Reads the coordinator's choice strictly and checks it against the roster.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::{Evidence, Plan, PlanKind, Slug, Team, Tier, first_line, list};

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
    let choice: Choice = serde_json::from_str(json_object(answer))
        .map_err(|_| in_its_words("the coordinator did not answer in the form it was asked for", answer))?;
    let (steps, unknown) = read_steps(team, &choice);
    if !unknown.is_empty() {
        return Err(format!("the coordinator chose {}, who cannot be started", list(unknown)));
    }
    let agents = distinct(steps.iter().flatten().cloned());
    if agents.is_empty() && choice.answer.trim().is_empty() {
        return Err(in_its_words("the coordinator cannot tell whose work it is", &choice.reason));
    }
    if agents.is_empty() {
        let answers = Evidence::new(&Slug::coordinator(), "the coordinator answers it", Slug::COORDINATOR, 1.0);
        let evidence = std::iter::once(answers).chain(plan.evidence.iter().cloned()).collect();
        let plan = Plan {
            kind: PlanKind::Direct,
            agents: Vec::new(),
            steps: Vec::new(),
            tier: Tier::Direct,
            reviewer: None,
            other_reviewers: Vec::new(),
            evidence,
            ..plan.clone()
        };
        return Ok(Chosen::Nobody(plan, choice.answer));
    }
    let why = if choice.reason.is_empty() { "chosen" } else { choice.reason.as_str() };
    let chosen = agents.iter().map(|agent| Evidence::new(agent, why, Slug::COORDINATOR, 1.0));
    let mut evidence: Vec<Evidence> = chosen.collect();
    evidence.extend(plan.evidence.iter().cloned());
    Ok(Chosen::Agents(Plan { kind: PlanKind::Agents, agents, steps, evidence, ..plan.clone() }))
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
    let mut found = distinct(speaks_for.filter(|slug| team.startable_member(slug).is_some()).cloned());
    if found.is_empty() {
        found = team.startable().map(|member| member.slug.clone()).collect();
    }
    found.truncate(MOST);
    found
}

fn distinct(slugs: impl Iterator<Item = Slug>) -> Vec<Slug> {
    let mut distinct: Vec<Slug> = Vec::new();
    slugs.for_each(|slug| {
        if !distinct.contains(&slug) {
            distinct.push(slug)
        }
    });
    distinct
}

/// The agent with a slug as people and models write it.
fn startable(team: &Team, name: &str) -> Option<Slug> {
    let slug = name.trim().trim_start_matches('@').to_lowercase();
    team.startable().find(|member| member.slug.as_str() == slug).map(|member| member.slug.clone())
}

/// Applies a person's choice to the plan. `None`: it names nobody who can be started.
pub(crate) fn by_person(team: &Team, plan: &Plan, answer: &str) -> Option<Plan> {
    let agent = startable(team, answer)?;
    let chosen = Evidence::new(&agent, "chosen by the user", PERSON, 1.0);
    let evidence = std::iter::once(chosen).chain(plan.evidence.iter().cloned()).collect();
    Some(Plan {
        kind: PlanKind::Agents,
        agents: vec![agent.clone()],
        steps: vec![vec![agent]],
        evidence,
        ..plan.clone()
    })
}

/// The source of a choice at the terminal.
pub(crate) const PERSON: &str = "terminal";

/// The steps of a choice, and its names that cannot be started.
fn read_steps(team: &Team, choice: &Choice) -> (Vec<Vec<Slug>>, Vec<String>) {
    let mut unknown = Vec::new();
    let mut read = |names: &Vec<String>| {
        distinct(names.iter().filter_map(|name| {
            let slug = startable(team, name);
            unknown.extend(slug.is_none().then(|| format!("`{name}`")));
            slug
        }))
    };
    let steps = if choice.steps.is_empty() { std::slice::from_ref(&choice.agents) } else { &choice.steps };
    let steps = steps.iter().map(&mut read).filter(|step| !step.is_empty()).collect();
    (steps, unknown)
}

/// Models like to wrap JSON in a fence or a sentence.
fn json_object(text: &str) -> &str {
    match (text.find('{'), text.rfind('}')) {
        (Some(start), Some(end)) if start < end => &text[start..=end],
        _ => text,
    }
}
