//! Work of several agents in one message: "add the endpoint with tests, and document it".

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::Draft;
use super::decide::Standing;
use super::evidence::Witness;
use super::index::Index;
use super::lexicon::AreaKind;
use super::text::Stretch;
use super::weights::SURE;

/// Longer messages tell a story: their clauses are no list of work.
const WORDS: usize = 70;
const PARTS: usize = 12;
/// Parts of different topics are few, or they are a list of one.
const TOPICS: usize = 3;

/// Whoever has an area to this share, and this many times more than the next, is the one for it.
const OWNED: f64 = 0.4;
const LEAD: f64 = 1.4;

/// The core of a message need not be as sure as a whole message: that there is more to do is no doubt.
const CORE: f64 = 0.4;

const OF_A_PART: usize = 3;

/// Kinds of work that stand beside others in one message; the rest are ways of doing any work.
const BESIDE: [&str; 6] = ["testing", "documentation", "samples", "delivery", "narrative", "localization"];

struct Part {
    stretches: Vec<Stretch>,
    standing: Standing,
    /// A kind of work the part surely speaks of, and whether it begins by asking for it.
    kind: Option<(usize, bool)>,
}

/// The agents of the message's parts when they are several.
pub(super) fn read(index: &Index<'_>, message: &str, stretches: &[Stretch], whole: &Standing) -> Option<Draft> {
    let beside = |area: usize| BESIDE.contains(&index.lexicon.areas[area].name) && whole.said.areas[area] >= 0.99;
    let is_beside = (0..whole.said.areas.len()).any(beside);
    if whole.sure().is_some() && !is_beside {
        return None;
    }
    let words: usize = stretches.iter().map(|stretch| message[stretch.range.clone()].split_whitespace().count()).sum();
    let split = split(message, stretches);
    let most = if is_beside { PARTS } else { TOPICS };
    if words > WORDS || split.len() < 2 || split.len() > most {
        return None;
    }
    let parts: Vec<Part> = split.into_iter().map(|stretches| part(index, message, stretches)).collect();
    of_kinds(index, message, &parts, whole).or_else(|| of_topics(index, message, &parts, whole))
}

/// Work on something, and beside it tests, documentation and the like.
fn of_kinds(index: &Index<'_>, message: &str, parts: &[Part], whole: &Standing) -> Option<Draft> {
    let first_asks = parts.first()?.kind.is_some_and(|(_, asks)| asks);
    let mut owners: Vec<(usize, &Part)> = Vec::new();
    let mut core: Vec<Stretch> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let owner =
            part.kind.filter(|(_, asks)| *asks || !first_asks || place == 0).and_then(|(area, _)| owner(index, area));
        match owner {
            Some(owner) if !owners.iter().any(|(known, _)| *known == owner) => owners.push((owner, part)),
            Some(_) => {}
            None if part.kind.is_none() => core.extend(part.stretches.iter().cloned()),
            None => {}
        }
    }
    if owners.is_empty() {
        return None;
    }
    let core = Standing::of(index, message, &core);
    // When the message begins with one kind, the rest is what that kind is about.
    let worker = core.best.filter(|(_, confidence)| !first_asks && *confidence >= CORE);
    let mut agents: Vec<usize> = worker.map(|(agent, _)| agent).into_iter().collect();
    agents
        .extend(owners.iter().map(|(owner, _)| *owner).filter(|owner| worker.is_none_or(|(agent, _)| agent != *owner)));
    if agents.len() < 2 {
        return None;
    }
    let mut evidence = Vec::new();
    for agent in &agents {
        let standing = owners.iter().find(|(owner, _)| owner == agent).map_or(&core, |(_, part)| &part.standing);
        evidence.extend(Witness { index, message, standing }.of(*agent, OF_A_PART));
    }
    let confidence = worker.map_or(SURE, |(_, confidence)| confidence.max(SURE));
    Some(draft(index, &agents, evidence, confidence, whole))
}

/// Parts that are surely different agents' work, where the whole is surely nobody's.
fn of_topics(index: &Index<'_>, message: &str, parts: &[Part], whole: &Standing) -> Option<Draft> {
    if whole.sure().is_some() || parts.len() > TOPICS {
        return None;
    }
    let sure: Vec<(usize, &Part)> = parts.iter().filter_map(|part| Some((part.standing.sure()?, part))).collect();
    let mut agents: Vec<usize> = Vec::new();
    for (agent, _) in &sure {
        if !agents.contains(agent) {
            agents.push(*agent);
        }
    }
    if agents.len() < 2 || sure.len() < parts.len() {
        return None;
    }
    let mut evidence = Vec::new();
    for (agent, part) in &sure {
        evidence.extend(Witness { index, message, standing: &part.standing }.of(*agent, OF_A_PART));
    }
    let confidence = sure.iter().filter_map(|(_, part)| part.standing.best).map(|(_, sure)| sure).fold(1.0, f64::min);
    Some(draft(index, &agents, evidence, confidence, whole))
}

fn draft(
    index: &Index<'_>,
    agents: &[usize],
    evidence: Vec<crate::model::Evidence>,
    confidence: f64,
    whole: &Standing,
) -> Draft {
    let reviewer = agents.iter().find_map(|agent| whole.reviewer(index, *agent));
    Draft {
        agents: agents.iter().map(|agent| index.agents[*agent].slug.clone()).collect(),
        reviewer,
        confidence,
        evidence,
    }
}

fn part(index: &Index<'_>, message: &str, stretches: Vec<Stretch>) -> Part {
    let standing = Standing::of(index, message, &stretches);
    let said = &standing.said;
    let kind = (0..said.areas.len())
        .filter(|area| BESIDE.contains(&index.lexicon.areas[*area].name) && said.areas[*area] >= 0.99)
        .max_by(|a, b| said.areas[*a].total_cmp(&said.areas[*b]).then(b.cmp(a)))
        // Another kind that the part speaks of as much leaves it open.
        .filter(|area| {
            let others = (0..said.areas.len()).filter(|other| {
                other != area
                    && index.lexicon.areas[*other].kind == AreaKind::Kind
                    && index.lexicon.areas[*other].name != "implementation"
            });
            others.map(|other| said.areas[other]).fold(0.0, f64::max) <= said.areas[*area]
        })
        .map(|area| (area, said.requests[area] >= 0.99));
    Part { stretches, standing, kind }
}

fn owner(index: &Index<'_>, area: usize) -> Option<usize> {
    let share = |agent: &usize| index.areas[*agent][area];
    let mut agents: Vec<usize> = (0..index.agents.len()).collect();
    agents.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let best = *agents.first()?;
    let next = agents.get(1).map_or(0.0, share);
    (share(&best) >= OWNED && share(&best) >= LEAD * next).then_some(best)
}

/// A message's clauses, and what conjunctions part in them.
fn split(message: &str, stretches: &[Stretch]) -> Vec<Vec<Stretch>> {
    let mut parts: Vec<Vec<Stretch>> = Vec::new();
    let mut clause = usize::MAX;
    for stretch in stretches.iter().filter(|stretch| stretch.weight > 0.3) {
        for (place, range) in pieces(&message[stretch.range.clone()], stretch.range.start).into_iter().enumerate() {
            let piece = Stretch { range, ..stretch.clone() };
            match parts.last_mut() {
                Some(part) if place == 0 && stretch.clause == clause => part.push(piece),
                _ => parts.push(vec![piece]),
            }
        }
        clause = stretch.clause;
    }
    parts
}

/// Conjunctions, with the spaces around them where the script has any.
static JOINT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(" (?:and|plus|with|then|as well as|und|y|et|e) |和|并|、").expect("the words are an expression")
});

fn pieces(text: &str, start: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for joint in JOINT.find_iter(text) {
        pieces.push(start + from..start + joint.start());
        from = joint.end();
    }
    pieces.push(start + from..start + text.len());
    pieces
}
