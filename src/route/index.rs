//! What speaks for each agent of a team: worked out once for every term of its files and of the table.
//!
//! A term supports an agent by one reason only, the strongest: a row's item that it is all of, a word of a row, of the
//! charter or of past work, or an area of work that is the agent's. How much depends on the agent's share of the term
//! among all agents: a word in everybody's files tells nobody apart.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::PastWork;
use super::areas::{Area, Areas, Hint, How, Says, TermId};
use super::lines::{Field, Line, lines};
use super::units::each_stem;
use crate::model::{Member, Team};

/// A row's item that is one word, and a word among others.
const ITEM: f64 = 2.2;
const ROW: f64 = 1.4;
const OWN: f64 = 1.3;
const DID: f64 = 1.0;
const MENTION: f64 = 0.15;
/// A word that nearly always means a kind of work, or a topic; and one that often means an area.
const KIND: f64 = 1.9;
const TOPIC: f64 = 1.4;
const WEAK: f64 = 1.2;

/// How strongly a line makes an area the agent's. Having done something once does not make it one's area.
fn area_weight(field: Field) -> f64 {
    match field {
        Field::Role => 4.0,
        Field::Signal => 3.0,
        Field::Example | Field::Own => 0.5,
        Field::Did | Field::Mention => 0.0,
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

/// An agent's share of an area, 0..1, and the line that claims it most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) agent: usize,
    pub(super) amount: f64,
    pub(super) line: usize,
}

pub(super) struct Index<'t> {
    pub(super) team: &'t Team,
    pub(super) agents: Vec<&'t Member>,
    pub(super) areas: &'static Areas,
    pub(super) lines: Vec<Line>,
    /// By area: those who have a share of it.
    pub(super) shares: Vec<Vec<Share>>,
    /// By area: the agents whose role names it.
    pub(super) roles: Vec<Vec<usize>>,
    /// Terms of the team that the table lacks.
    own: HashMap<Box<str>, TermId, FixedState>,
    /// What its lines say, by term.
    supports: HashMap<TermId, Vec<Support>, FixedState>,
}

impl<'t> Index<'t> {
    pub(super) fn new(team: &'t Team, past: &[PastWork]) -> Self {
        let agents: Vec<&Member> = team.startable().collect();
        let lines = lines(team, &agents, past);
        let mut index = Self {
            team,
            agents,
            areas: Areas::get(),
            lines: Vec::new(),
            shares: Vec::new(),
            roles: Vec::new(),
            own: HashMap::default(),
            supports: HashMap::default(),
        };
        let items: Vec<Vec<Vec<TermId>>> = lines.iter().map(|line| index.items(line)).collect();
        index.lines = lines;
        index.claim_areas(&items);
        index.claim_words(&items);
        index
    }

    /// A stem's number. A stem that nobody knows says nothing of anybody.
    pub(super) fn term(&self, stem: &str) -> TermId {
        self.areas.id(stem).or_else(|| self.own.get(stem).copied()).unwrap_or(TermId::MAX)
    }

    pub(super) fn area(&self, name: &str) -> Option<usize> {
        self.areas.list.iter().position(|area| area.name == name)
    }

    /// Whether an area is a kind of work that not all work includes.
    pub(super) fn is_special(&self, area: usize) -> bool {
        let Area { name, is_kind } = self.areas.list[area];
        is_kind && !["implementation", "planning", "research"].contains(&name)
    }

    /// Whether an agent implements, and does not lead.
    pub(super) fn is_coder(&self, agent: usize) -> bool {
        let has = |name: &str| self.area(name).is_some_and(|area| self.roles[area].contains(&agent));
        has("implementation") && !has("planning")
    }

    pub(super) fn share(&self, area: usize, agent: usize) -> Option<&Share> {
        self.shares[area].iter().find(|share| share.agent == agent)
    }

    /// What the team's lines say of a term.
    pub(super) fn of_lines(&self, term: TermId) -> &[Support] {
        self.supports.get(&term).map_or(&[], Vec::as_slice)
    }

    /// What the hints of a word or phrase say for each agent.
    pub(super) fn of_hints(&self, hints: &[Hint]) -> impl Iterator<Item = Support> {
        hints.iter().flat_map(|hint| {
            let weight = match hint.how {
                How::Strong if self.areas.list[hint.area].is_kind => KIND,
                How::Strong => TOPIC,
                How::Weak => WEAK,
                How::Role | How::Asks => 0.0,
            };
            let shares = if weight > 0.0 { &self.shares[hint.area][..] } else { &[] };
            let reason = Reason::Area(hint.area);
            shares.iter().map(move |share| Support { agent: share.agent, weight: weight * share.amount, reason })
        })
    }

    /// The terms of each item of a line: `API, server and (web) sockets` has three. Of identifiers the pieces, unless
    /// the table knows the whole.
    fn items(&mut self, line: &Line) -> Vec<Vec<TermId>> {
        let is_mark = |c: char| matches!(c, ',' | ';' | '&' | '(' | ')');
        let items = line.text.split(is_mark).flat_map(|item| item.split(" and ")).flat_map(|item| item.split(" / "));
        let terms = items.map(|item| {
            let (mut terms, mut known_until) = (Vec::new(), 0);
            each_stem(item, &mut |stem, range, is_whole| {
                let known = self.areas.id(stem);
                if is_whole && known.is_some_and(|term| !self.areas.hints(term).is_empty()) {
                    known_until = range.end;
                } else if is_whole || range.end <= known_until {
                    return;
                }
                terms.push(known.unwrap_or_else(|| {
                    let next = self.areas.size() + TermId::try_from(self.own.len()).unwrap_or(TermId::MAX);
                    *self.own.entry(stem.into()).or_insert(next)
                }));
            });
            terms
        });
        terms.filter(|terms| !terms.is_empty()).collect()
    }

    fn claim_areas(&mut self, items: &[Vec<Vec<TermId>>]) {
        let mut claims = vec![vec![(0.0, usize::MAX, 0.0); self.agents.len()]; self.areas.list.len()];
        self.roles = vec![Vec::new(); self.areas.list.len()];
        for (place, (line, items)) in self.lines.iter().zip(items).enumerate() {
            let weight = area_weight(line.field) * line.rule.map_or(1.0, |(_, share)| share);
            let names_work = matches!(line.field, Field::Role | Field::Signal);
            let mut of_line: Vec<(usize, f64)> = Vec::new();
            for mut terms in items.iter().map(Vec::as_slice) {
                while let (length @ 1.., hints) = self.areas.longest(terms) {
                    terms = &terms[length..];
                    for hint in hints {
                        let weight = match hint.how {
                            How::Strong => weight,
                            How::Role if names_work => weight,
                            How::Weak if line.field != Field::Role => weight * 0.3,
                            _ => continue,
                        };
                        match of_line.iter_mut().find(|(area, _)| *area == hint.area) {
                            Some((_, known)) if names_work => *known = weight.max(*known),
                            Some((_, known)) => *known += weight,
                            None => of_line.push((hint.area, weight)),
                        }
                    }
                }
            }
            for (area, weight) in of_line.into_iter().filter(|(_, weight)| *weight > 0.0) {
                if line.field == Field::Role && self.roles[area].contains(&line.agent) {
                    // The charter repeats the roster.
                    continue;
                } else if line.field == Field::Role {
                    self.roles[area].push(line.agent);
                }
                let (sum, of, most) = &mut claims[area][line.agent];
                *sum += weight;
                // People look at the rows first.
                let shown = if line.rule.is_some() { 2.0 * weight } else { weight };
                if shown > *most {
                    (*of, *most) = (place, shown);
                }
            }
        }
        self.claim_implementation(&mut claims);
        let share = |claims: Vec<(f64, usize, f64)>| {
            let sum: f64 = claims.iter().map(|(weight, ..)| weight).sum::<f64>() + UNCLAIMED;
            let claims = claims.into_iter().enumerate().filter(|(_, (weight, ..))| *weight > 0.0);
            claims.map(|(agent, (weight, line, _))| Share { agent, amount: weight / sum, line }).collect()
        };
        self.shares = claims.into_iter().map(share).collect();
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

    fn claim_words(&mut self, items: &[Vec<Vec<TermId>>]) {
        let agents = self.agents.len();
        let mut counts = vec![0_usize; agents];
        let of_rows = self.lines.iter().zip(items).filter(|(line, _)| line.rule.is_some());
        of_rows.for_each(|(line, items)| counts[line.agent] += items.len());
        let with_rows = counts.iter().filter(|count| **count > 0).count().max(1);
        let mean = counts.iter().sum::<usize>() as f64 / with_rows as f64;
        // The fewer items an agent's rows have, the more each of them says.
        let says_more = |agent: usize| (mean / counts[agent].max(1) as f64).powf(0.4).clamp(0.85, 3.0);
        let mut claims: HashMap<(TermId, u64), Vec<(f64, usize)>, FixedState> = HashMap::default();
        for (place, (line, items)) in self.lines.iter().zip(items).enumerate() {
            let share = line.rule.map_or(1.0, |(_, share)| share * says_more(line.agent));
            for item in items {
                let telling = || item.iter().copied().filter(|term| self.areas.says(*term) > Says::Nothing);
                let weight = match line.field {
                    Field::Signal | Field::Example => ROW,
                    Field::Role | Field::Own => OWN,
                    Field::Did => DID,
                    Field::Mention => MENTION,
                };
                let alone = telling().next().filter(|_| weight == ROW && telling().count() == 1);
                for (term, weight) in telling().map(|term| (term, weight)).chain(alone.map(|term| (term, ITEM))) {
                    let of_term = claims.entry((term, weight.to_bits())).or_default();
                    of_term.resize(agents, (0.0, usize::MAX));
                    if of_term[line.agent].0 < share {
                        of_term[line.agent] = (share, place);
                    }
                }
            }
        }
        for ((term, weight), claims) in claims {
            let is_of_row = [ITEM, ROW].map(f64::to_bits).contains(&weight);
            let sum: f64 = claims.iter().map(|(share, _)| share).sum();
            for (agent, (share, line)) in claims.into_iter().enumerate().filter(|(_, (share, _))| *share > 0.0) {
                let more = if is_of_row { says_more(agent) } else { 1.0 };
                let support =
                    Support { agent, weight: f64::from_bits(weight) * more * share / sum, reason: Reason::Line(line) };
                keep_stronger(self.supports.entry(term).or_default(), support);
            }
        }
    }
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
