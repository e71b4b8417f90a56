//! What speaks for each agent of a team: worked out once for every term of its files and of the table.
//!
//! A term supports an agent by one reason only, the strongest: a row's item that it is all of, a word of a row, of the
//! charter or of past work, or an area of work that is the agent's. How much depends on the agent's share of the term
//! among all agents: a word in everybody's files tells nobody apart.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::PastWork;
use super::areas::{Area, Areas, Hint, How, TermId};
use super::lines::{Field, Line, lines};
use super::units::each_stem;
use crate::model::{Member, Team};

/// What a row's item that is one word counts, in hundredths.
const ITEM: u32 = 220;
/// A word that nearly always means a kind of work, or a topic; and one that often means an area.
const KIND: f64 = 1.9;
const TOPIC: f64 = 1.4;
const WEAK: f64 = 1.2;

/// What a word that often means an area counts where a team describes an agent.
const OFTEN: f64 = 0.3;
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

/// The terms of a line's items: `API, server and (web) sockets` has three items.
type Items = Vec<Vec<TermId>>;

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
        let areas = Areas::get();
        let roles = vec![Vec::new(); areas.list.len()];
        let (shares, own, supports) = Default::default();
        let mut index = Self { team, agents, areas, lines: Vec::new(), shares, roles, own, supports };
        let items: Vec<Items> = lines.iter().map(|line| index.items(&line.text)).collect();
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

    /// The agent whose role alone names a kind of work that not all work includes.
    pub(super) fn specialist(&self, area: usize) -> Option<usize> {
        let Area { name, is_kind } = self.areas.list[area];
        match &self.roles[area][..] {
            [agent] if is_kind && !["implementation", "planning", "research"].contains(&name) => Some(*agent),
            _ => None,
        }
    }

    /// Whether an agent implements, and does not lead.
    pub(super) fn is_coder(&self, agent: usize) -> bool {
        let has = |name: &str| self.area(name).is_some_and(|area| self.roles[area].contains(&agent));
        has("implementation") && !has("planning")
    }

    /// The line behind a reason for an agent.
    pub(super) fn line(&self, agent: usize, reason: Reason) -> Option<&Line> {
        let place = match reason {
            Reason::Line(line) => line,
            Reason::Area(area) => self.shares[area].iter().find(|share| share.agent == agent)?.line,
        };
        self.lines.get(place)
    }

    /// What the team's lines say of a term.
    pub(super) fn of_lines(&self, term: TermId) -> &[Support] {
        self.supports.get(&term).map_or(&[], Vec::as_slice)
    }

    /// What the hints of a word or phrase say for each agent.
    pub(super) fn of_hints(&self, hints: &[Hint]) -> impl Iterator<Item = Support> {
        let meant = hints.iter().filter(|hint| matches!(hint.how, How::Strong | How::Weak));
        meant.flat_map(|hint| {
            let weight = match hint.how {
                How::Strong if self.areas.list[hint.area].is_kind => KIND,
                How::Strong => TOPIC,
                _ => WEAK,
            };
            let reason = Reason::Area(hint.area);
            let shares = self.shares[hint.area].iter();
            shares.map(move |share| Support { agent: share.agent, weight: weight * share.amount, reason })
        })
    }

    /// Of identifiers the pieces, unless the table knows the whole.
    fn items(&mut self, text: &str) -> Items {
        let is_mark = |c: char| matches!(c, ',' | ';' | '&' | '(' | ')');
        let items = text.split(is_mark).flat_map(|item| item.split(" and ")).flat_map(|item| item.split(" / "));
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

    /// By area, how much a line claims it.
    fn claims(&self, line: &Line, items: &Items) -> BTreeMap<usize, f64> {
        let weight = line.field.area_weight() * line.share;
        let mut claims = BTreeMap::new();
        for mut terms in items.iter().map(Vec::as_slice).filter(|_| weight > 0.0) {
            while let (length @ 1.., hints) = self.areas.longest(terms) {
                terms = &terms[length..];
                for hint in hints {
                    let weight = match hint.how {
                        How::Strong => weight,
                        How::Role if matches!(line.field, Field::Role | Field::Signal) => weight,
                        How::Weak if line.field != Field::Role => weight * OFTEN,
                        _ => continue,
                    };
                    *claims.entry(hint.area).or_default() += weight;
                }
            }
        }
        claims
    }

    fn claim_areas(&mut self, items: &[Items]) {
        // By area and agent: the sum of the claims, the line of the largest, and that.
        let mut claims = vec![vec![(0.0, usize::MAX, 0.0); self.agents.len()]; self.areas.list.len()];
        for (place, items) in items.iter().enumerate() {
            let line = &self.lines[place];
            for (area, weight) in self.claims(line, items) {
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
            let mut of_role = self.areas.list.iter().zip(&self.roles).filter(|(_, roles)| roles.contains(&agent));
            if of_role.clone().next().is_some() && of_role.all(|(area, _)| !area.is_kind) {
                let role = self.lines.iter().position(|line| line.agent == agent && line.field == Field::Role);
                *claim = (Field::Role.area_weight(), role.unwrap_or(usize::MAX), 0.0);
                self.roles[implementation].push(agent);
            }
        }
    }

    fn claim_words(&mut self, items: &[Items]) {
        let agents = self.agents.len();
        let mut counts = vec![0_usize; agents];
        let of_rows = self.lines.iter().zip(items).filter(|(line, _)| line.rule.is_some());
        of_rows.for_each(|(line, items)| counts[line.agent] += items.len());
        let with_rows = counts.iter().filter(|count| **count > 0).count().max(1);
        let mean = counts.iter().sum::<usize>() as f64 / with_rows as f64;
        // The fewer items an agent's rows have, the more each of them says.
        let says_more = |agent: usize| (mean / counts[agent].max(1) as f64).powf(0.4).clamp(0.85, 3.0);
        // By term and weight: each agent's part, and its line.
        let mut claims: HashMap<(TermId, u32), Vec<(f64, usize)>, FixedState> = HashMap::default();
        for (place, (line, items)) in self.lines.iter().zip(items).enumerate() {
            let part = line.share * if line.rule.is_some() { says_more(line.agent) } else { 1.0 };
            for item in items {
                let terms: Vec<TermId> = item.iter().copied().filter(|term| self.areas.tells(*term)).collect();
                let alone = if let [only] = terms[..] { Some(only) } else { None };
                let alone = alone.filter(|_| line.rule.is_some()).map(|term| (term, ITEM));
                for key in terms.into_iter().map(|term| (term, line.field.word_weight())).chain(alone) {
                    let of_term = claims.entry(key).or_insert_with(|| vec![(0.0, usize::MAX); agents]);
                    if of_term[line.agent].0 < part {
                        of_term[line.agent] = (part, place);
                    }
                }
            }
        }
        for ((term, weight), claims) in claims {
            let sum: f64 = claims.iter().map(|(part, _)| part).sum();
            for (agent, (part, line)) in claims.into_iter().enumerate().filter(|(_, (part, _))| *part > 0.0) {
                let more = if self.lines[line].rule.is_some() { says_more(agent) } else { 1.0 };
                let weight = f64::from(weight) / 100.0 * more * part / sum;
                let support = Support { agent, weight, reason: Reason::Line(line) };
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
