//! What speaks for each agent of a team: worked out once for every term of its files and of the table.
//!
//! A term supports an agent by one reason only, the strongest: an entry of a routing row that it is all of, a word of a
//! row, a word of the charter or of past work, or an area of work that is the agent's. How much depends on the agent's
//! share of the term among all agents: a word in everybody's files tells nobody apart.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::PastWork;
use super::areas::{Area, Areas, Hint, How, Says, TermId};
use super::lines::{Field, Line, lines};
use super::units::{Part, each_stem};
use crate::model::{Member, Team};

const ENTRY: f64 = 2.2;
const ROW: f64 = 1.4;
const OWN: f64 = 1.3;
const REST: f64 = 0.4;
const DID: f64 = 1.0;
const MENTION: f64 = 0.15;
/// A word that nearly always means a kind of work, or a topic; and one that often means an area.
const KIND: f64 = 1.9;
const TOPIC: f64 = 1.4;
const WEAK: f64 = 1.2;

/// How strongly a line makes an area the agent's.
fn area_weight(field: Field) -> f64 {
    match field {
        Field::Role => 4.0,
        Field::Signal => 3.0,
        Field::Example | Field::Own => 0.5,
        // Having done something once does not make it one's area.
        Field::Charter | Field::Did | Field::Mention => 0.0,
    }
}

/// Added to the sum of an area's weights, so that a weak claim stays weak if it is the only one.
const UNCLAIMED: f64 = 1.2;

/// Why a term supports an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reason {
    /// It is in this line.
    Line(usize),
    /// It is about this area.
    Area(usize),
}

/// How much a term speaks for an agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Support {
    pub(super) agent: usize,
    pub(super) weight: f64,
    pub(super) reason: Reason,
}

pub(super) struct Index<'t> {
    pub(super) team: &'t Team,
    pub(super) agents: Vec<&'t Member>,
    pub(super) areas: &'static Areas,
    pub(super) lines: Vec<Line>,
    /// By area, then by agent: the agent's share, 0..1, and the line that claims it most.
    pub(super) shares: Vec<Vec<(f64, usize)>>,
    /// By area: the agents whose role names it.
    pub(super) roles: Vec<Vec<usize>>,
    /// Terms of the team that the table lacks.
    own: HashMap<Box<str>, TermId, FixedState>,
    /// What its lines say, by term.
    supports: HashMap<TermId, Vec<Support>, FixedState>,
    /// Entries of several words, by their first term.
    phrases: HashMap<TermId, Vec<Phrase>, FixedState>,
}

/// The terms of an entry, and what it is to the agents.
type Phrase = (Vec<TermId>, Vec<Support>);

/// What a term is to the agents: the weight of each, and its line. By agent.
type Claims = Vec<(f64, usize)>;

impl<'t> Index<'t> {
    pub(super) fn new(team: &'t Team, past: &[PastWork]) -> Self {
        let agents: Vec<&Member> = team.startable().collect();
        let lines = lines(team, &agents, past);
        let mut index = Self {
            team,
            agents,
            areas: Areas::get(),
            lines,
            shares: Vec::new(),
            roles: Vec::new(),
            own: HashMap::default(),
            supports: HashMap::default(),
            phrases: HashMap::default(),
        };
        index.claim_areas();
        index.claim_words();
        index
    }

    pub(super) fn lookup(&self, stem: &str) -> Option<TermId> {
        self.areas.id(stem).or_else(|| self.own.get(stem).copied())
    }

    pub(super) fn area(&self, name: &str) -> Option<usize> {
        self.areas.list.iter().position(|area| area.name == name)
    }

    /// Whether an area is a kind of work that not all work includes.
    pub(super) fn is_special(&self, area: usize) -> bool {
        let Area { name, is_kind } = self.areas.list[area];
        is_kind && !["planning", "research"].contains(&name)
    }

    /// Whether an agent implements, and does not lead.
    pub(super) fn is_coder(&self, agent: usize) -> bool {
        let has = |name: &str| self.area(name).is_some_and(|area| self.roles[area].contains(&agent));
        has("implementation") && !has("planning")
    }

    /// What a term says for each agent, by the team's lines and by its areas of work.
    pub(super) fn supports(&self, term: TermId) -> Vec<Support> {
        let mut supports = self.supports.get(&term).cloned().unwrap_or_default();
        self.of_hints(self.areas.hints(term), &mut supports);
        supports
    }

    /// The longest entry of several words that a text without stop words begins with.
    pub(super) fn entry(&self, mut terms: impl Iterator<Item = Option<TermId>> + Clone) -> Option<(usize, &[Support])> {
        let known = self.phrases.get(&terms.next()??)?;
        let begins = |(rest, _): &&(Vec<TermId>, Vec<Support>)| {
            let mut after = terms.clone();
            rest.iter().all(|term| after.next().flatten() == Some(*term))
        };
        known.iter().find(begins).map(|(rest, supports)| (1 + rest.len(), &supports[..]))
    }

    /// How much the hints of a word or phrase speak for each agent.
    pub(super) fn of_hints(&self, hints: &[Hint], to: &mut Vec<Support>) {
        for hint in hints {
            let weight = match hint.how {
                How::Strong if self.areas.list[hint.area].is_kind => KIND,
                How::Strong => TOPIC,
                How::Weak => WEAK,
                How::Role | How::Asks => continue,
            };
            for (agent, (share, _)) in self.shares[hint.area].iter().enumerate().filter(|(_, (share, _))| *share > 0.0)
            {
                keep_stronger(to, Support { agent, weight: weight * share, reason: Reason::Area(hint.area) });
            }
        }
    }

    /// The terms of a text in order; of identifiers the pieces, unless the table knows the whole.
    fn terms(&mut self, text: &str) -> Vec<TermId> {
        let mut terms = Vec::new();
        let mut known_until = 0;
        each_stem(text, &mut |stem, range, part| {
            let known = self.areas.id(stem);
            if part == Part::Whole && known.is_none_or(|term| self.areas.hints(term).is_empty()) {
                return;
            }
            if part == Part::Whole {
                known_until = range.end;
            } else if range.end <= known_until {
                return;
            }
            terms.push(known.unwrap_or_else(|| {
                let next = self.areas.size() + TermId::try_from(self.own.len()).unwrap_or(TermId::MAX);
                *self.own.entry(stem.into()).or_insert(next)
            }));
        });
        terms
    }

    fn claim_areas(&mut self) {
        let (areas, agents) = (self.areas.list.len(), self.agents.len());
        let mut claims = vec![vec![(0.0, usize::MAX, 0.0); agents]; areas];
        self.roles = vec![Vec::new(); areas];
        for place in 0..self.lines.len() {
            let text = std::mem::take(&mut self.lines[place].text);
            let terms = self.terms(&text);
            self.lines[place].text = text;
            let Line { agent, field, rule, .. } = self.lines[place];
            let weight = area_weight(field) * rule.map_or(1.0, |(_, share)| share);
            let mut of_line: Vec<(usize, f64)> = Vec::new();
            self.areas.each_hint(&terms, &mut |hint| {
                let weight = match hint.how {
                    How::Strong => weight,
                    How::Role if matches!(field, Field::Role | Field::Signal) => weight,
                    How::Weak if !matches!(field, Field::Role) => weight * 0.3,
                    _ => return,
                };
                match of_line.iter_mut().find(|(area, _)| *area == hint.area) {
                    Some((_, known)) if field == Field::Role || field == Field::Signal => *known = weight.max(*known),
                    Some((_, known)) => *known += weight,
                    None => of_line.push((hint.area, weight)),
                }
            });
            for (area, weight) in of_line.into_iter().filter(|(_, weight)| *weight > 0.0) {
                if field == Field::Role && !self.roles[area].contains(&agent) {
                    self.roles[area].push(agent);
                } else if field == Field::Role {
                    // The charter repeats the roster.
                    continue;
                }
                let (sum, line, most) = &mut claims[area][agent];
                *sum += weight;
                // People look at the rows first.
                let shown = if rule.is_some() { 2.0 * weight } else { weight };
                if shown > *most {
                    (*line, *most) = (place, shown);
                }
            }
        }
        self.claim_implementation(&mut claims);
        self.shares = claims
            .into_iter()
            .map(|of| {
                let sum: f64 = of.iter().map(|(weight, ..)| weight).sum();
                of.into_iter().map(|(weight, line, _)| (weight / (sum + UNCLAIMED), line)).collect()
            })
            .collect();
    }

    /// Whose role names a topic and no kind of work implements it: a `Frontend` is a frontend developer.
    fn claim_implementation(&mut self, claims: &mut [Vec<(f64, usize, f64)>]) {
        let Some(implementation) = self.area("implementation") else { return };
        for (agent, claim) in claims[implementation].iter_mut().enumerate() {
            let has = |is_kind: bool| {
                let mut areas = self.areas.list.iter().zip(&self.roles);
                areas.any(|(area, roles)| area.is_kind == is_kind && roles.contains(&agent))
            };
            if has(false) && !has(true) {
                let role = self.lines.iter().position(|line| line.agent == agent && line.field == Field::Role);
                *claim = (area_weight(Field::Role), role.unwrap_or(usize::MAX), 0.0);
                self.roles[implementation].push(agent);
            }
        }
    }

    fn claim_words(&mut self) {
        let agents = self.agents.len();
        let mut words: HashMap<(TermId, Class), Claims, FixedState> = HashMap::default();
        let mut entries: HashMap<Vec<TermId>, Claims, FixedState> = HashMap::default();
        let mut counts = vec![0_usize; agents];
        for place in 0..self.lines.len() {
            let text = std::mem::take(&mut self.lines[place].text);
            let Line { agent, field, rule, .. } = self.lines[place];
            let class = Class::of(field);
            let share = rule.map_or(1.0, |(_, share)| share);
            let items = if class == Class::Row { items(&text) } else { vec![&text[..]] };
            for item in items {
                let mut terms = self.terms(item);
                terms.retain(|term| self.areas.says(*term) > Says::Nothing);
                for term in &terms {
                    claim(words.entry((*term, class)).or_default(), agents, agent, share, place);
                }
                if class == Class::Row && !terms.is_empty() {
                    counts[agent] += 1;
                    claim(entries.entry(terms).or_default(), agents, agent, share, place);
                }
            }
            self.lines[place].text = text;
        }
        let mean =
            counts.iter().sum::<usize>() as f64 / counts.iter().filter(|count| **count > 0).count().max(1) as f64;
        // A word of a short row says more.
        let norm = |agent: usize| (mean / counts[agent].max(1) as f64).powf(0.4).clamp(0.85, 2.0);
        for ((term, class), claims) in words {
            for (agent, amount, line) in shares(&claims) {
                let weight = amount * class.weight() * if class == Class::Row { norm(agent) } else { 1.0 };
                keep_stronger(
                    self.supports.entry(term).or_default(),
                    Support { agent, weight, reason: Reason::Line(line) },
                );
            }
        }
        for (terms, claims) in entries {
            let of_entry = shares(&claims).map(|(agent, amount, line)| Support {
                agent,
                weight: ENTRY * amount * norm(agent),
                reason: Reason::Line(line),
            });
            match &terms[..] {
                [only] => {
                    let known = self.supports.entry(*only).or_default();
                    of_entry.for_each(|support| keep_stronger(known, support));
                }
                [first, rest @ ..] => {
                    let longer = 1.0 + 0.25 * rest.len().min(3) as f64;
                    let supports = of_entry.map(|it| Support { weight: it.weight * longer, ..it }).collect();
                    self.phrases.entry(*first).or_default().push((rest.to_vec(), supports));
                }
                [] => {}
            }
        }
        self.phrases.values_mut().for_each(|known| known.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.0.cmp(&b.0))));
    }
}

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Class {
    Row,
    Own,
    Rest,
    Did,
    Mention,
}

impl Class {
    fn of(field: Field) -> Self {
        match field {
            Field::Signal | Field::Example => Self::Row,
            Field::Role | Field::Own => Self::Own,
            Field::Charter => Self::Rest,
            Field::Did => Self::Did,
            Field::Mention => Self::Mention,
        }
    }

    fn weight(self) -> f64 {
        match self {
            Self::Row => ROW,
            Self::Own => OWN,
            Self::Rest => REST,
            Self::Did => DID,
            Self::Mention => MENTION,
        }
    }
}

fn claim(claims: &mut Claims, agents: usize, agent: usize, share: f64, line: usize) {
    claims.resize(agents, (0.0, usize::MAX));
    if let Some(claim) = claims.get_mut(agent).filter(|(weight, _)| *weight < share) {
        *claim = (share, line);
    }
}

/// Each agent's share of a term.
fn shares(claims: &Claims) -> impl Iterator<Item = (usize, f64, usize)> {
    let sum: f64 = claims.iter().map(|(weight, _)| weight).sum();
    let claims = claims.iter().enumerate().filter(|(_, (weight, _))| *weight > 0.0);
    claims.map(move |(agent, (weight, line))| (agent, weight / sum, *line))
}

pub(super) fn keep_stronger(supports: &mut Vec<Support>, support: Support) {
    match supports.iter_mut().find(|known| known.agent == support.agent) {
        Some(known) if is_stronger(&support, known) => *known = support,
        Some(_) => {}
        None => supports.push(support),
    }
}

/// Of equal ones, a line says more than an area, and the first line more than a later one.
fn is_stronger(one: &Support, other: &Support) -> bool {
    let rank = |support: &Support| match support.reason {
        Reason::Line(line) => line,
        Reason::Area(area) => usize::MAX - area,
    };
    one.weight > other.weight || (one.weight == other.weight && rank(one) < rank(other))
}

/// The items of a cell: `API, server and (web) sockets` has three.
fn items(cell: &str) -> Vec<&str> {
    let is_mark = |c: char| matches!(c, ',' | ';' | '&' | '(' | ')');
    cell.split(is_mark).flat_map(|item| item.split(" and ")).flat_map(|item| item.split(" / ")).collect()
}
