//! Work of several agents in one message: "add the endpoint with tests, and document it".

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::Draft;
use super::decide::Standing;
use super::evidence::Witness;
use super::form::{is_order, is_wish};
use super::index::Index;
use super::lexicon::AreaKind;
use super::message::Message;
use super::said::Said;
use super::text::Stretch;
use super::weights::SURE;
use crate::model::Evidence;

/// Longer messages tell a story: their clauses are no list of work.
const WORDS: usize = 70;
const PARTS: usize = 12;
/// Parts of different topics are few, or they are a list of one.
const TOPICS: usize = 3;

/// Whoever has an area to this share, and this many times more than the next, is the one for it.
const OWNED: f64 = 0.4;
const LEAD: f64 = 1.4;

/// By how much an agent must lead the next in a part. That there are several parts is no doubt where each of them is an
/// order, or where a kind of work stands beside the rest.
const IN_AN_ORDER: f64 = 0.3;
const IN_A_TOPIC: f64 = 1.3;

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
    let split = split(message);
    if message.length() > WORDS || split.len() < 2 || split.len() > PARTS {
        return None;
    }
    let begins: Vec<bool> = split
        .iter()
        .map(|part| part.first().is_some_and(|first| is_order(&message.text[first.range.clone()])))
        .collect();
    let is_beside = kinds_beside(index, &whole.said).next().is_some();
    let orders = begins.iter().filter(|begins| **begins).count();
    if whole.sure().is_some() && !is_beside && !begins.iter().skip(1).any(|begins| *begins) {
        return None;
    }
    let parts: Vec<Part> = split.into_iter().map(|stretches| part(index, message, stretches)).collect();
    let is_asked = begins.first().copied().unwrap_or(false);
    of_orders(index, message, &parts, &begins, whole)
        .or_else(|| of_kinds(index, message, &parts, whole, is_asked || is_wish(message.text)))
        // What is told before the only order is what the order is about.
        .or_else(|| (is_asked || orders == 0).then(|| of_topics(index, message, &parts, whole))?)
}

/// Orders one after the other: "add the endpoint with tests and write the page".
fn of_orders(
    index: &Index<'_>,
    message: &Message<'_>,
    parts: &[Part],
    begins: &[bool],
    whole: &Standing,
) -> Option<Draft> {
    if begins.iter().filter(|begins| **begins).count() < 2 {
        return None;
    }
    let mut orders: Vec<Vec<&Part>> = Vec::new();
    // What stands before the first order is told, not asked for.
    for (part, begins) in parts.iter().zip(begins).skip_while(|(_, begins)| !**begins) {
        match orders.last_mut() {
            Some(order) if !begins => order.push(part),
            _ => orders.push(vec![part]),
        }
    }
    let mut chosen = Chosen { index, message, agents: Vec::new(), evidence: Vec::new(), least: 1.0 };
    for order in orders {
        let owned = |part: &&Part| part.kind.filter(|(_, asks)| *asks).and_then(|(area, _)| owner(index, area));
        let core = order.iter().take(1).chain(order.iter().skip(1).filter(|part| owned(part).is_none()));
        let core: Vec<Stretch> = core.flat_map(|part| part.stretches.iter().cloned()).collect();
        let standing = Standing::of(index, index.said(message, &core));
        if let Some((agent, _)) = standing.best.filter(|_| standing.lead >= IN_AN_ORDER) {
            chosen.take(agent, &standing);
        }
        for part in order.iter().skip(1) {
            if let Some(agent) = owned(part) {
                chosen.take(agent, &Standing::of(index, part.said.clone()));
            }
        }
    }
    chosen.draft(whole)
}

/// The agents of several parts, in their order.
struct Chosen<'c, 't> {
    index: &'c Index<'t>,
    message: &'c Message<'c>,
    agents: Vec<usize>,
    evidence: Vec<Evidence>,
    /// How sure the least sure of them is.
    least: f64,
}

impl Chosen<'_, '_> {
    fn take(&mut self, agent: usize, standing: &Standing) {
        if !self.agents.contains(&agent) {
            self.agents.push(agent);
            self.least = self.least.min(standing.best.map_or(0.0, |(_, sure)| sure));
            let witness = Witness { index: self.index, message: self.message.text, standing };
            self.evidence.extend(witness.of(agent, OF_A_PART));
        }
    }

    /// `None` when they are not several. That they are is no doubt, so they are no less sure than is enough to answer.
    fn draft(self, whole: &Standing) -> Option<Draft> {
        (self.agents.len() > 1).then(|| Draft {
            reviewer: self.agents.iter().find_map(|agent| whole.reviewer(self.index, *agent)),
            agents: self.agents.iter().map(|agent| self.index.agents[*agent].slug.clone()).collect(),
            confidence: self.least.max(SURE),
            evidence: self.evidence,
        })
    }
}

/// Work on something, and beside it tests, documentation and the like.
fn of_kinds(
    index: &Index<'_>,
    message: &Message<'_>,
    parts: &[Part],
    whole: &Standing,
    is_asked: bool,
) -> Option<Draft> {
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
    let worker = core.best.filter(|_| !first_asks && is_asked && core.lead >= IN_AN_ORDER);
    let mut chosen = Chosen { index, message, agents: Vec::new(), evidence: Vec::new(), least: 1.0 };
    if let Some((agent, _)) = worker {
        chosen.take(agent, &core);
    }
    for (agent, part) in owners {
        chosen.take(agent, &Standing::of(index, part.said.clone()));
    }
    chosen.draft(whole)
}

/// Parts that are surely different agents' work, where the whole is surely nobody's.
fn of_topics(index: &Index<'_>, message: &Message<'_>, parts: &[Part], whole: &Standing) -> Option<Draft> {
    if whole.sure().is_some() || parts.len() > TOPICS {
        return None;
    }
    let mut chosen = Chosen { index, message, agents: Vec::new(), evidence: Vec::new(), least: 1.0 };
    for part in parts {
        let standing = Standing::of(index, part.said.clone());
        let (agent, _) = standing.best.filter(|_| standing.lead >= IN_A_TOPIC)?;
        chosen.take(agent, &standing);
    }
    chosen.draft(whole)
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
