//! Work of several agents in one message: "add the endpoint with tests, and document it".

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::Draft;
use super::decide::Standing;
use super::evidence::Witness;
use super::index::Index;
use super::lexicon::AreaKind;
use super::message::Message;
use super::rank::Said;
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
    said: Said,
    /// A kind of work the part surely speaks of, and whether it begins by asking for it.
    kind: Option<(usize, bool)>,
}

/// The agents of the message's parts when they are several.
pub(super) fn read(index: &Index<'_>, message: &Message<'_>, whole: &Standing) -> Option<Draft> {
    let is_beside = kinds_beside(index, &whole.said).next().is_some();
    if whole.sure().is_some() && !is_beside {
        return None;
    }
    let split = split(message);
    let most = if is_beside { PARTS } else { TOPICS };
    if message.length() > WORDS || split.len() < 2 || split.len() > most {
        return None;
    }
    let parts: Vec<Part> = split.into_iter().map(|stretches| part(index, message, stretches)).collect();
    of_kinds(index, message, &parts, whole).or_else(|| of_topics(index, message, parts, whole))
}

/// Work on something, and beside it tests, documentation and the like.
fn of_kinds(index: &Index<'_>, message: &Message<'_>, parts: &[Part], whole: &Standing) -> Option<Draft> {
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
    let core = Standing::of(index, index.said(message, &core));
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
        let of_part = owners.iter().find(|(owner, _)| owner == agent);
        let of_part = of_part.map(|(_, part)| Standing::of(index, part.said.clone()));
        let standing = of_part.as_ref().unwrap_or(&core);
        evidence.extend(Witness { index, message: message.text, standing }.of(*agent, OF_A_PART));
    }
    let confidence = worker.map_or(SURE, |(_, confidence)| confidence.max(SURE));
    Some(draft(index, &agents, evidence, confidence, whole))
}

/// Parts that are surely different agents' work, where the whole is surely nobody's.
fn of_topics(index: &Index<'_>, message: &Message<'_>, parts: Vec<Part>, whole: &Standing) -> Option<Draft> {
    if whole.sure().is_some() || parts.len() > TOPICS {
        return None;
    }
    let mut agents: Vec<usize> = Vec::new();
    let (mut confidence, mut evidence) = (1.0_f64, Vec::new());
    for part in parts {
        let standing = Standing::of(index, part.said);
        let (agent, sure) = standing.best.filter(|_| standing.sure().is_some())?;
        if !agents.contains(&agent) {
            agents.push(agent);
        }
        confidence = confidence.min(sure);
        evidence.extend(Witness { index, message: message.text, standing: &standing }.of(agent, OF_A_PART));
    }
    if agents.len() < 2 {
        return None;
    }
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

fn part(index: &Index<'_>, message: &Message<'_>, stretches: Vec<Stretch>) -> Part {
    let said = index.said(message, &stretches);
    let kind = kinds_beside(index, &said)
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
    Part { stretches, said, kind }
}

/// The kinds of work that are surely spoken of and stand beside others.
fn kinds_beside(index: &Index<'_>, said: &Said) -> impl Iterator<Item = usize> {
    let surely = (0..said.areas.len()).filter(|area| said.areas[*area] >= 0.99);
    surely.filter(|area| BESIDE.contains(&index.lexicon.areas[*area].name))
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
fn split(message: &Message<'_>) -> Vec<Vec<Stretch>> {
    let mut parts: Vec<Vec<Stretch>> = Vec::new();
    let mut clause = usize::MAX;
    for stretch in message.stretches.iter().filter(|stretch| stretch.weight > 0.3) {
        for (place, range) in pieces(&message.text[stretch.range.clone()], stretch.range.start).into_iter().enumerate()
        {
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
static JOINT: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words =
        [" and ", " plus ", " with ", " then ", " as well as ", " und ", " y ", " et ", " e ", "和", "并", "、"];
    AhoCorasick::new(words).expect("the words are few")
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
