//! Lexical ranking over routing rows and charters.

use std::collections::BTreeMap;

use super::{Draft, PastWork};

use crate::model::{Evidence, Member, Rule, Slug, Team, stems};

/// What a word found in a field is worth, before its rarity.
const SIGNAL: f64 = 3.0;
const EXAMPLE: f64 = 2.0;
const ROLE: f64 = 2.0;
const CHARTER: f64 = 0.75;

/// Below this score nothing was really found.
const LEAST_SCORE: f64 = 1.0;
/// The best agent has this many times the score of the next, or the router abstains.
const LEAST_LEAD: f64 = 1.35;

/// A clause at a time, since one message may be several agents' work: "add an endpoint with tests, and document it".
pub(super) fn rank(index: &Index<'_>, message: &str) -> Draft {
    let whole = index.score(&stems(message));
    let mut draft = index.draft(&whole);
    let clauses: Vec<Vec<String>> = clauses(message).map(stems).filter(|stems| !stems.is_empty()).collect();
    if clauses.len() > 1 {
        let parts: Vec<Draft> = clauses.iter().map(|stems| index.draft(&index.score(stems))).collect();
        let sure: Vec<&Draft> = parts.iter().filter(|part| !part.agents.is_empty()).collect();
        if sure.len() > 1 && sure.iter().any(|part| part.agents != sure[0].agents) {
            draft = join(&sure);
        }
    }
    draft
}

fn join(parts: &[&Draft]) -> Draft {
    let mut draft = Draft { confidence: 1.0, ..Draft::default() };
    for part in parts {
        draft.confidence = draft.confidence.min(part.confidence);
        draft.reviewer = draft.reviewer.or_else(|| part.reviewer.clone());
        for agent in &part.agents {
            if !draft.agents.contains(agent) {
                draft.agents.push(agent.clone());
                draft.evidence.extend(part.evidence.iter().filter(|evidence| evidence.agent == *agent).cloned());
            }
        }
    }
    draft
}

fn clauses(message: &str) -> impl Iterator<Item = &str> {
    message
        .split([',', ';', '\n'])
        .flat_map(|part| part.split(". "))
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" with "))
        .flat_map(|part| part.split(" then "))
}

/// Everything a message may match, each with what it speaks for.
pub(super) struct Index<'t> {
    team: &'t Team,
    fields: Vec<Field<'t>>,
    /// In how many fields a stem occurs: the rarer, the more it says.
    frequency: BTreeMap<String, usize>,
}

struct Field<'t> {
    agent: &'t Slug,
    rule: Option<&'t Rule>,
    weight: f64,
    what: &'static str,
    source: String,
    stems: Vec<String>,
}

/// What one agent gathered.
#[derive(Default)]
struct Score<'t> {
    total: f64,
    evidence: Vec<Evidence>,
    best_rule: Option<(f64, &'t Rule)>,
}

impl<'t> Index<'t> {
    pub(super) fn new(team: &'t Team, past: &[PastWork]) -> Self {
        let mut fields = Vec::new();
        for rule in &team.rules {
            // The first agent of a row does the work; the others help.
            let Some(agent) = rule.agents.iter().find(|slug| team.member(slug).is_some_and(Member::is_startable))
            else {
                continue;
            };
            for (text, weight, what) in
                [(rule.signal.clone(), SIGNAL, "row"), (rule.examples.join(", "), EXAMPLE, "row's examples")]
            {
                let source = rule.source.to_string();
                fields.push(Field { agent, rule: Some(rule), weight, what, source, stems: stems(&text) });
            }
        }
        for member in team.startable() {
            let source = member.source.to_string();
            fields.push(Field {
                agent: &member.slug,
                rule: None,
                weight: ROLE,
                what: "role",
                source,
                stems: stems(&member.role),
            });
            if let Some(charter) = team.charters.get(&member.slug) {
                let text = format!("{} {}", charter.expertise.join(" "), charter.owns);
                let source = member.charter.clone().unwrap_or_default();
                fields.push(Field {
                    agent: &member.slug,
                    rule: None,
                    weight: CHARTER,
                    what: "charter",
                    source,
                    stems: stems(&text),
                });
            }
        }
        for work in past {
            for agent in &work.agents {
                if let Some(member) = team.startable().find(|member| member.slug == *agent) {
                    let (agent, source) = (&member.slug, work.source.clone());
                    let stems = stems(&work.message);
                    fields.push(Field { agent, rule: None, weight: CHARTER, what: "past work", source, stems });
                }
            }
        }
        let mut frequency = BTreeMap::new();
        for stem in fields.iter().flat_map(|field| &field.stems) {
            *frequency.entry(stem.clone()).or_insert(0) += 1;
        }
        Self { team, fields, frequency }
    }

    fn score(&self, message: &[String]) -> BTreeMap<&'t Slug, Score<'t>> {
        let mut scores: BTreeMap<&Slug, Score<'t>> = BTreeMap::new();
        for field in &self.fields {
            let found: Vec<&String> = message.iter().filter(|stem| field.stems.contains(stem)).collect();
            if found.is_empty() {
                continue;
            }
            // Half of the weight is the words', half is how much of the field they are: a short row that is wholly
            // meant beats a long one that has the word somewhere.
            let rarity: f64 = found.iter().map(|stem| self.rarity(stem)).sum();
            let share = (found.len() as f64 / field.stems.len() as f64).sqrt();
            let weight = field.weight * rarity * (0.5 + 0.5 * share);
            let words: Vec<&str> = found.iter().map(|stem| stem.as_str()).collect();
            let score = scores.entry(field.agent).or_default();
            score.total += weight;
            score.evidence.push(Evidence {
                agent: field.agent.clone(),
                why: format!("{} matches {}", field.what, words.join(", ")),
                source: field.source.clone(),
                weight: (weight * 100.0).round() / 100.0,
            });
            if let Some(rule) = field.rule.filter(|_| score.best_rule.is_none_or(|(best, _)| weight > best)) {
                score.best_rule = Some((weight, rule));
            }
        }
        scores
    }

    fn rarity(&self, stem: &str) -> f64 {
        let count = self.frequency.get(stem).copied().unwrap_or(0) as f64;
        (1.0 + (self.fields.len() as f64 - count + 0.5) / (count + 0.5)).ln() / (1.0 + self.fields.len() as f64).ln()
    }

    /// The best agent when it is clearly the best; otherwise no agent, and everybody's evidence.
    fn draft(&self, scores: &BTreeMap<&Slug, Score<'t>>) -> Draft {
        let mut ranked: Vec<(&&Slug, &Score<'t>)> = scores.iter().collect();
        ranked.sort_by(|a, b| b.1.total.total_cmp(&a.1.total).then_with(|| a.0.cmp(b.0)));
        let Some((agent, best)) = ranked.first() else { return Draft::default() };
        let next = ranked.get(1).map_or(0.0, |(_, score)| score.total);
        let confidence = best.total / (best.total + next);
        if best.total < LEAST_SCORE || best.total < next * LEAST_LEAD {
            let mut evidence: Vec<Evidence> = ranked.iter().flat_map(|(_, score)| score.evidence.clone()).collect();
            evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            return Draft { confidence: confidence.min(0.5), evidence, ..Draft::default() };
        }
        let reviewer = best.best_rule.and_then(|(_, rule)| rule.reviewer.clone());
        let reviewer = reviewer.filter(|slug| self.team.member(slug).is_some_and(Member::is_startable));
        let mut evidence = best.evidence.clone();
        evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        Draft { agents: vec![(**agent).clone()], reviewer, confidence: (confidence * 100.0).round() / 100.0, evidence }
    }
}
