//! Work of several agents in one message: "add the endpoint with tests, and document it".

use super::Draft;
use super::clauses::{Asks, Clause, clauses};
use super::decide::Ranking;
use super::evidence::Explainer;
use super::index::Index;
use super::lexicon::AreaKind;
use super::message::Message;
use super::signals::Signals;
use super::steps::Assignment;
use crate::model::List;

/// Longer messages tell a story; their clauses do not list work.
const WORDS: usize = 70;
const PARTS: usize = 12;

/// The lead over the next agent that a part needs. Orders form separate parts more reliably than joined nouns do.
const IN_AN_ORDER: f64 = 0.1;
const IN_A_KIND: f64 = 1.0;

/// With this lead, a part clearly belongs to its agent.
const SURELY_ONES: f64 = 1.0;

const OF_A_PART: usize = 3;

/// Kinds of work that people request along with other work. The remaining kinds are ways of doing any work.
const BESIDE: [&str; 6] = ["testing", "documentation", "samples", "delivery", "narrative", "localization"];

/// A part of the message, and its agent.
struct Part {
    agent: usize,
    confidence: f64,
    ranking: Ranking,
}

/// Splits the message among several agents. The confidence is that of the least certain part.
pub(super) fn read(index: &Index<'_>, message: &Message<'_>, whole: &Ranking) -> Option<Draft> {
    if message.length() > WORDS {
        return None;
    }
    let clauses = clauses(message);
    if clauses.len() < 2 || clauses.len() > PARTS {
        return None;
    }
    let begins = clauses.iter().position(|clause| clause.asks == Asks::Order)?;
    let (mut parts, mut places): (Vec<Part>, Vec<Assignment>) = Default::default();
    // Whether the first agent clearly does what the message orders first.
    let mut is_led = false;
    for Clause { spans, asks } in clauses.iter().skip(begins) {
        let signals = index.signals(message, spans);
        let least = match asks {
            Asks::Order => IN_AN_ORDER,
            Asks::Joined if names_kind_beside(index, &signals) => IN_A_KIND,
            Asks::Joined | Asks::Nothing => continue,
        };
        let ranking = Ranking::of(index, signals);
        // A part without any content is no work.
        let speaks = ranking.best.filter(|(_, confidence)| *confidence > 0.0 && ranking.lead >= least);
        let Some((agent, confidence)) = speaks else { continue };
        is_led |= parts.is_empty() && *asks == Asks::Order && ranking.lead >= SURELY_ONES;
        if let Some(span) = spans.first() {
            let at = span.range.start + before_verb(&message.text[span.range.clone()]);
            places.push(Assignment { agent: index.agents[agent].slug.clone(), range: at..at });
        }
        let part = Part { agent, confidence, ranking };
        match parts.iter_mut().find(|known| known.agent == agent) {
            // The most certain part of an agent counts.
            Some(known) if known.confidence < confidence => *known = part,
            Some(_) => {}
            None => parts.push(part),
        }
    }
    if parts.len() < 2 {
        return None;
    }
    // The agent of the first order leads if that order is clear, otherwise the best agent for the whole message. The
    // others follow in the order of the message.
    if let Some((best, _)) = whole.best.filter(|_| !is_led) {
        parts.sort_by_key(|part| part.agent != best);
    }
    let explain =
        |Part { agent, ranking, .. }: &Part| Explainer { index, message: message.text, ranking }.of(*agent, OF_A_PART);
    Some(Draft {
        reviewer: parts.iter().find_map(|part| whole.reviewer(index, part.agent)),
        agents: parts.iter().map(|part| index.agents[part.agent].slug.clone()).collect(),
        confidence: parts.iter().map(|part| part.confidence).fold(1.0, f64::min),
        evidence: parts.iter().flat_map(explain).collect(),
        places,
        ..Draft::default()
    })
}

/// The length of the words before an order's verb: `then`, `and also`.
fn before_verb(part: &str) -> usize {
    let is_before = |word: &&str| List::BeforeVerb.has(&word.trim().to_lowercase());
    part.split_inclusive(' ').take_while(is_before).map(str::len).sum()
}

/// Whether a part clearly requests a kind from [`BESIDE`], and names no other kind more.
fn names_kind_beside(index: &Index<'_>, signals: &Signals) -> bool {
    let kinds = index.lexicon.areas.iter().enumerate().filter(|(_, area)| area.kind == AreaKind::Kind);
    let named = kinds.filter(|(_, area)| area.name != "implementation").map(|(at, area)| (signals.areas[at], at, area));
    let most = named.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    most.is_some_and(|(amount, at, area)| amount >= 0.99 && signals.requests[at] >= 0.99 && BESIDE.contains(&area.name))
}
