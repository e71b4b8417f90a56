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
use crate::model::{Evidence, List};

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
    let asking: Vec<Part<'_>> = clauses[begins..].iter().filter_map(|clause| part(index, message, clause)).collect();
    if asking.len() < 2 {
        return None;
    }
    let mut chosen = Chosen { index, message, standings: Vec::new(), places: Vec::new(), is_led: false };
    for Part { clause, signals, least } in asking {
        let ranking = Ranking::of(index, signals);
        // A part without any content is no work.
        let speaks = ranking.best.filter(|(_, confidence)| *confidence > 0.0);
        if let Some((agent, _)) = speaks.filter(|_| ranking.lead >= least) {
            chosen.is_led |= chosen.standings.is_empty() && clause.asks == Asks::Order && ranking.lead >= SURELY_ONES;
            if let Some(span) = clause.spans.first() {
                let at = span.range.start + before_verb(&message.text[span.range.clone()]);
                chosen.places.push(Assignment { agent: index.agents[agent].slug.clone(), range: at..at });
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
    signals: Signals,
    /// The lead that an agent needs to get it.
    least: f64,
}

/// `None`: the clause asks for nothing.
fn part<'c>(index: &Index<'_>, message: &Message<'_>, clause: &'c Clause) -> Option<Part<'c>> {
    let signals = index.signals(message, &clause.spans);
    let least = match clause.asks {
        Asks::Order => IN_AN_ORDER,
        Asks::Joined if names_kind_beside(index, &signals) => IN_A_KIND,
        Asks::Joined | Asks::Nothing => return None,
    };
    Some(Part { clause, signals, least })
}

/// The agents chosen for the parts so far.
struct Chosen<'c, 't> {
    index: &'c Index<'t>,
    message: &'c Message<'c>,
    /// Each agent with the ranking of its part; of its most certain part if it has several.
    standings: Vec<(usize, Ranking)>,
    /// Where the parts of each agent begin.
    places: Vec<Assignment>,
    /// Whether the first agent clearly does what the message orders first.
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

    /// The lowest confidence among the parts.
    fn least(&self) -> f64 {
        self.standings.iter().map(|(agent, ranking)| confidence(ranking, *agent)).fold(1.0, f64::min)
    }

    fn evidence(&self) -> Vec<Evidence> {
        let of_part = |(agent, ranking): &(usize, Ranking)| {
            Explainer { index: self.index, message: self.message.text, ranking }.of(*agent, OF_A_PART)
        };
        self.standings.iter().flat_map(of_part).collect()
    }

    /// The agent of the first order leads if that order is clear, otherwise the best agent for the whole message. The
    /// others follow in the order of the message.
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

/// The length of the words before an order's verb: `then`, `and also`.
fn before_verb(part: &str) -> usize {
    let is_before = |word: &&str| List::BeforeVerb.has(&word.trim().to_lowercase());
    part.split_inclusive(' ').take_while(is_before).map(str::len).sum()
}

/// The confidence that a part belongs to its agent.
fn confidence(ranking: &Ranking, agent: usize) -> f64 {
    ranking.best.filter(|(best, _)| *best == agent).map_or(0.0, |(_, confidence)| confidence)
}

/// Whether a part clearly requests a kind from [`BESIDE`], and names no other kind more.
fn names_kind_beside(index: &Index<'_>, signals: &Signals) -> bool {
    let kinds = index.lexicon.areas.iter().enumerate().filter(|(_, area)| area.kind == AreaKind::Kind);
    let named = kinds.filter(|(_, area)| area.name != "implementation").map(|(at, area)| (signals.areas[at], at, area));
    let most = named.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    most.is_some_and(|(amount, at, area)| amount >= 0.99 && signals.requests[at] >= 0.99 && BESIDE.contains(&area.name))
}
