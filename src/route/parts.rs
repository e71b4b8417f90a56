//! Work of several agents in one message: "add the endpoint with tests, and document it".

use super::Draft;
use super::clauses::{Asks, Clause, clauses};
use super::decide::Ranking;
use super::evidence::Explainer;
use super::index::Index;
use super::lexicon::AreaKind;
use super::message::Message;
use super::said::Said;
use super::steps::Place;
use crate::model::{Evidence, List};

/// Longer messages tell a story: their clauses are no list of work.
const WORDS: usize = 70;
const PARTS: usize = 12;

/// By how much an agent must lead the next in a part to be chosen for it. That there are several parts is surer of
/// orders than of things that are named.
const IN_AN_ORDER: f64 = 0.1;
const IN_A_LIST: f64 = 0.3;
const IN_A_THING: f64 = 0.6;
const IN_A_KIND: f64 = 1.0;
const WHERE_JOINED: f64 = 1.5;
/// In a part of what is surely one agent's work as a whole.
const IN_ONES_WORK: f64 = 0.5;

/// A part in which somebody leads by so much is surely that one's.
const SURELY_ONES: f64 = 1.0;

const OF_A_PART: usize = 3;

/// Kinds of work that stand beside others in one message; the rest are ways of doing any work.
const BESIDE: [&str; 6] = ["testing", "documentation", "samples", "delivery", "narrative", "localization"];

/// The agents of the message's parts when they are several, as sure as the least sure of the parts.
pub(super) fn read(index: &Index<'_>, message: &Message<'_>, whole: &Ranking) -> Option<Draft> {
    if message.length() > WORDS {
        return None;
    }
    let clauses = clauses(message);
    if clauses.len() < 2 || clauses.len() > PARTS {
        return None;
    }
    let begins = clauses.iter().position(|clause| matches!(clause.asks, Asks::Order | Asks::Listed))?;
    let parts: Vec<Part<'_>> = clauses[begins..].iter().map(|clause| part(index, message, clause)).collect();
    let has_kinds = parts.iter().any(|part| part.kind.is_some());
    // What is listed of work that is surely one agent's are its details, unless kinds of work are among it.
    let is_ones = whole.sure().is_some() && !has_kinds;
    if is_ones && parts.iter().any(|part| part.clause.asks == Asks::Listed) {
        return None;
    }
    // Where a message begins by asking for such a kind, what is named besides is what it is about.
    let is_about = parts.first().is_some_and(|part| part.kind.is_some());
    let asking: Vec<(Part<'_>, f64)> =
        parts.into_iter().filter_map(|part| part.least_lead(is_about).map(|least| (part, least))).collect();
    if asking.len() < 2 {
        return None;
    }
    let mut chosen = Chosen { index, message, standings: Vec::new(), places: Vec::new(), is_led: false };
    for (Part { clause, said, .. }, least) in asking {
        let least = if is_ones { IN_ONES_WORK.max(least) } else { least };
        let ranking = Ranking::of(index, said);
        // What says nothing of any work is no part of it.
        let speaks = ranking.best.filter(|(_, confidence)| *confidence > 0.0);
        if let Some((agent, _)) = speaks.filter(|_| ranking.lead >= least) {
            chosen.is_led |= chosen.standings.is_empty() && clause.asks == Asks::Order && ranking.lead >= SURELY_ONES;
            if let Some(stretch) = clause.stretches.first() {
                let at = stretch.range.start + before_verb(&message.text[stretch.range.clone()]);
                chosen.places.push(Place { agent: index.agents[agent].slug.clone(), range: at..at });
            }
            chosen.take(agent, ranking);
        }
    }
    if chosen.standings.len() < 2 {
        return None;
    }
    Some(chosen.draft(whole))
}

struct Part<'c> {
    clause: &'c Clause,
    said: Said,
    /// A kind of work that it surely asks for beside others.
    kind: Option<usize>,
}

impl Part<'_> {
    /// By how much an agent must lead the next to be chosen for it; `None`: it asks for nothing.
    fn least_lead(&self, is_about: bool) -> Option<f64> {
        match self.clause.asks {
            Asks::Order => Some(IN_AN_ORDER),
            _ if is_about && self.kind.is_none() => None,
            Asks::Listed => Some(IN_A_LIST),
            Asks::Thing => Some(IN_A_THING),
            Asks::Joined | Asks::Nothing if self.kind.is_some() => Some(IN_A_KIND),
            Asks::Joined => Some(WHERE_JOINED),
            Asks::Nothing => None,
        }
    }
}

fn part<'c>(index: &Index<'_>, message: &Message<'_>, clause: &'c Clause) -> Part<'c> {
    let said = index.said(message, &clause.stretches);
    let kind = kind_beside(index, &said).filter(|area| said.requests[*area] >= 0.99);
    Part { clause, said, kind }
}

/// The agents of several parts.
struct Chosen<'c, 't> {
    index: &'c Index<'t>,
    message: &'c Message<'c>,
    /// How the agents stand to each one's part: to the surest where one has several.
    standings: Vec<(usize, Ranking)>,
    /// Where each one's parts begin.
    places: Vec<Place>,
    /// Whether the first of them surely does what is ordered first.
    is_led: bool,
}

impl Chosen<'_, '_> {
    fn take(&mut self, agent: usize, ranking: Ranking) {
        match self.standings.iter_mut().find(|(other, _)| *other == agent) {
            Some((_, known)) if confidence(known, agent) < confidence(&ranking, agent) => *known = ranking,
            Some(_) => {}
            None => self.standings.push((agent, ranking)),
        }
    }

    /// How sure the least sure of them is.
    fn least(&self) -> f64 {
        self.standings.iter().map(|(agent, ranking)| confidence(ranking, *agent)).fold(1.0, f64::min)
    }

    fn evidence(&self) -> Vec<Evidence> {
        let of_part = |(agent, ranking): &(usize, Ranking)| {
            Explainer { index: self.index, message: self.message.text, ranking }.of(*agent, OF_A_PART)
        };
        self.standings.iter().flat_map(of_part).collect()
    }

    /// Who surely does what is ordered first comes first, or else whom the message as a whole is for; the others in its
    /// order.
    fn draft(mut self, whole: &Ranking) -> Draft {
        if let Some((best, _)) = whole.best.filter(|_| !self.is_led) {
            self.standings.sort_by_key(|(agent, _)| *agent != best);
        }
        Draft {
            reviewer: self.standings.iter().find_map(|(agent, _)| whole.reviewer(self.index, *agent)),
            agents: self.standings.iter().map(|(agent, _)| self.index.agents[*agent].slug.clone()).collect(),
            confidence: self.least(),
            evidence: self.evidence(),
            places: self.places,
            ..Draft::default()
        }
    }
}

/// How long what stands before an order's verb is: `then`, `and also`.
fn before_verb(part: &str) -> usize {
    let is_before = |word: &&str| List::BeforeVerb.has(&word.trim().to_lowercase());
    part.split_inclusive(' ').take_while(is_before).map(str::len).sum()
}

/// How sure a part is its agent's.
fn confidence(ranking: &Ranking, agent: usize) -> f64 {
    ranking.best.filter(|(best, _)| *best == agent).map_or(0.0, |(_, confidence)| confidence)
}

/// The kind of work beside others that a part surely speaks of, and of no other as much.
fn kind_beside(index: &Index<'_>, said: &Said) -> Option<usize> {
    let surely = (0..said.areas.len()).filter(|area| said.areas[*area] >= 0.99);
    let beside = surely.filter(|area| BESIDE.contains(&index.lexicon.areas[*area].name));
    let most = beside.max_by(|a, b| said.areas[*a].total_cmp(&said.areas[*b]).then(b.cmp(a)))?;
    let others = index
        .lexicon
        .areas
        .iter()
        .enumerate()
        .filter(|(other, area)| *other != most && area.kind == AreaKind::Kind && area.name != "implementation");
    (others.map(|(other, _)| said.areas[other]).fold(0.0, f64::max) <= said.areas[most]).then_some(most)
}
