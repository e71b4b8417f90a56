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

/// The lead over the next agent that a part needs, by kind of clause. Orders form separate parts more reliably than
/// nouns do.
const IN_AN_ORDER: f64 = 0.1;
const IN_A_LIST: f64 = 0.3;
const IN_A_THING: f64 = 0.6;
const IN_A_KIND: f64 = 1.0;
const WHERE_JOINED: f64 = 1.5;
/// For parts of a message that as a whole clearly belongs to one agent.
const IN_ONES_WORK: f64 = 0.5;

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
    let begins = clauses.iter().position(|clause| matches!(clause.asks, Asks::Order | Asks::Listed))?;
    let parts: Vec<Part<'_>> = clauses[begins..].iter().map(|clause| part(index, message, clause)).collect();
    let has_kinds = parts.iter().any(|part| part.kind.is_some());
    // A list within work that clearly belongs to one agent gives its details, unless the list names kinds of work.
    let is_ones = whole.sure().is_some() && !has_kinds;
    if is_ones && parts.iter().any(|part| part.clause.asks == Asks::Listed) {
        return None;
    }
    // In `test the parser and the lexer`, the nouns are what the tests are about.
    let is_about = parts.first().is_some_and(|part| part.kind.is_some());
    let asking: Vec<(Part<'_>, f64)> =
        parts.into_iter().filter_map(|part| part.least_lead(is_about).map(|least| (part, least))).collect();
    if asking.len() < 2 {
        return None;
    }
    let mut chosen = Chosen { index, message, standings: Vec::new(), places: Vec::new(), is_led: false };
    for (Part { clause, signals, .. }, least) in asking {
        let least = if is_ones { IN_ONES_WORK.max(least) } else { least };
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
    /// A kind of work that the part clearly requests along with others.
    kind: Option<usize>,
}

impl Part<'_> {
    /// The lead that an agent needs to get this part. `None`: the part asks for nothing.
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
    let signals = index.signals(message, &clause.spans);
    let kind = kind_beside(index, &signals).filter(|area| signals.requests[*area] >= 0.99);
    Part { clause, signals, kind }
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

/// The kind from [`BESIDE`] that a part clearly names, if no other kind is named more.
fn kind_beside(index: &Index<'_>, signals: &Signals) -> Option<usize> {
    let surely = (0..signals.areas.len()).filter(|area| signals.areas[*area] >= 0.99);
    let beside = surely.filter(|area| BESIDE.contains(&index.lexicon.areas[*area].name));
    let most = beside.max_by(|a, b| signals.areas[*a].total_cmp(&signals.areas[*b]).then(b.cmp(a)))?;
    let others = index
        .lexicon
        .areas
        .iter()
        .enumerate()
        .filter(|(other, area)| *other != most && area.kind == AreaKind::Kind && area.name != "implementation");
    (others.map(|(other, _)| signals.areas[other]).fold(0.0, f64::max) <= signals.areas[most]).then_some(most)
}
