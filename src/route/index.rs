//! What speaks for each agent of a team: worked out once for every term of its files and of the table.
//!
//! A term supports an agent by one reason only, the strongest: a row's item that it is all of, a word of a row, of the
//! charter or of past work, or an area of work that is the agent's. How much depends on the agent's share of the term
//! among all agents: a word in everybody's files tells nobody apart.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use foldhash::fast::FixedState;

use super::PastWork;
use super::areas::{Area, Areas, Hint, How, TermId};
use super::lines::{Field, Line, lines};
use super::stems::each_stem;
use crate::model::{Member, Team, words};

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

/// How much a term speaks for an agent, and why: the line that it is in, or that claims the area that it is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Support {
    pub(super) agent: usize,
    pub(super) weight: f64,
    pub(super) line: usize,
    pub(super) why: Why,
}

/// The reason why something speaks for an agent. Of equal ones, a line says more than an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// Its words stand in the line.
    Words,
    /// Both are about an area.
    Area(usize),
    /// The message begins by asking for an area, and whether only this agent's role names it.
    Asked(usize, bool),
    /// The message speaks of an area most, which only this agent's role names.
    Said(usize),
}

/// How much of an area an agent claims, and the line that claims most, with that.
#[derive(Clone, Copy)]
struct Claim {
    sum: f64,
    line: usize,
    most: f64,
}

/// The agents that have a term, with each one's part and line.
type Holders = Vec<(usize, f64, usize)>;

pub(super) struct Index<'t> {
    pub(super) team: &'t Team,
    pub(super) agents: Vec<&'t Member>,
    pub(super) lead: Option<&'t Member>,
    pub(super) areas: &'static Areas,
    pub(super) lines: Vec<Line<'t>>,
    /// By area: what part of it is whose, 0..1, by the line that claims it most; and the agents whose role names it.
    pub(super) shares: Vec<Vec<Support>>,
    roles: Vec<Vec<usize>>,
    /// Terms of the team that the table lacks.
    own: HashMap<Box<str>, TermId, FixedState>,
    /// What the lines say, by term; and with what its hints say, when a message has it.
    of_lines: Vec<Vec<Support>>,
    supports: Vec<OnceLock<Vec<Support>>>,
    /// By agent: the line of its role, and whether it implements and does not lead.
    role_lines: Vec<usize>,
    pub(super) is_coder: Vec<bool>,
}

impl<'t> Index<'t> {
    pub(super) fn new(team: &'t Team, past: &'t [PastWork]) -> Self {
        let agents: Vec<&Member> = team.startable().collect();
        let lines = lines(team, &agents, past);
        let areas = Areas::get();
        let roles = vec![Vec::new(); areas.list.len()];
        let (role_lines, is_coder) = (vec![usize::MAX; agents.len()], vec![false; agents.len()]);
        let (lead, (shares, own, of_lines, supports)) = (lead(team), Default::default());
        let mut index = Self {
            team,
            agents,
            lead,
            areas,
            lines: Vec::new(),
            shares,
            roles,
            own,
            of_lines,
            supports,
            role_lines,
            is_coder,
        };
        let items: Vec<Vec<Vec<TermId>>> = lines.iter().map(|line| index.items(line.text)).collect();
        index.lines = lines;
        index.claim_areas(&items);
        index.claim_words(&items);
        index
    }

    /// A stem's number. A stem that nobody knows says nothing of anybody.
    pub(super) fn term(&self, stem: &str) -> TermId {
        self.areas.id(stem).or_else(|| self.own.get(stem).copied()).unwrap_or(TermId::MAX)
    }

    /// The agent whose role alone names a kind of work that not all work includes, and the line that says the role.
    pub(super) fn specialist(&self, area: usize) -> Option<(usize, usize)> {
        let Area { name, is_kind } = self.areas.list[area];
        match &self.roles[area][..] {
            [agent] if is_kind && !["implementation", "planning", "research"].contains(&name) => {
                Some((*agent, self.role_lines[*agent]))
            }
            _ => None,
        }
    }

    /// What a term says for each agent.
    pub(super) fn supports(&self, term: TermId) -> &[Support] {
        let all = || {
            let mut all = self.of_lines[term].clone();
            self.of_hints(self.areas.hints(term)).for_each(|support| keep_stronger(&mut all, support));
            all
        };
        self.supports.get(term).map_or(&[], |supports| supports.get_or_init(all))
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
            self.shares[hint.area].iter().map(move |share| Support { weight: weight * share.weight, ..*share })
        })
    }

    /// The terms of a line's items: `API, server and (web) sockets` has four. Of identifiers the pieces, unless the table
    /// knows the whole.
    fn items(&mut self, text: &str) -> Vec<Vec<TermId>> {
        let items = text.split([',', ';', '&', '(', ')']).flat_map(|item| item.split(" and "));
        let terms = items.flat_map(|item| item.split(" / ")).map(|item| {
            let (mut terms, mut known_until) = (Vec::new(), 0);
            each_stem(item, &mut |stem, range, is_whole| {
                let known = self.areas.id(stem);
                if is_whole && known.is_some_and(|term| !self.areas.hints(term).is_empty()) {
                    known_until = range.end;
                } else if is_whole || range.end <= known_until {
                    return;
                }
                terms.push(known.unwrap_or_else(|| {
                    let next = self.areas.size() + self.own.len();
                    *self.own.entry(stem.into()).or_insert(next)
                }));
            });
            terms
        });
        terms.filter(|terms| !terms.is_empty()).collect()
    }

    /// By area, how much a line claims it.
    fn claims(&self, line: &Line<'_>, items: &[Vec<TermId>]) -> BTreeMap<usize, f64> {
        let weight = line.field.weights().1 * line.share;
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

    fn claim_areas(&mut self, items: &[Vec<Vec<TermId>>]) {
        let nothing = Claim { sum: 0.0, line: usize::MAX, most: 0.0 };
        let mut claims = vec![vec![nothing; self.agents.len()]; self.areas.list.len()];
        for (place, items) in items.iter().enumerate() {
            let line = &self.lines[place];
            if line.field == Field::Role {
                self.role_lines[line.agent] = self.role_lines[line.agent].min(place);
            }
            for (area, weight) in self.claims(line, items) {
                if line.field == Field::Role && self.roles[area].contains(&line.agent) {
                    // The charter repeats the roster.
                    continue;
                } else if line.field == Field::Role {
                    self.roles[area].push(line.agent);
                }
                let claim = &mut claims[area][line.agent];
                claim.sum += weight;
                // People look at the rows first.
                let shown = if line.rule.is_some() { 2.0 * weight } else { weight };
                if shown > claim.most {
                    (claim.line, claim.most) = (place, shown);
                }
            }
        }
        let (implementation, planning) = (self.areas.area("implementation"), self.areas.area("planning"));
        for (agent, line) in self.role_lines.clone().into_iter().enumerate() {
            // Whose role names a topic and no kind of work implements it: a `Frontend` is a frontend developer.
            let mut of_role = self.areas.list.iter().zip(&self.roles).filter(|(_, roles)| roles.contains(&agent));
            if of_role.clone().next().is_some() && of_role.all(|(area, _)| !area.is_kind) {
                claims[implementation][agent] = Claim { sum: Field::Role.weights().1, line, most: 0.0 };
                self.roles[implementation].push(agent);
            }
            let has = |area: usize| self.roles[area].contains(&agent);
            self.is_coder[agent] = has(implementation) && !has(planning);
        }
        let shares = claims.into_iter().enumerate().map(|(area, claims)| {
            let all: f64 = claims.iter().map(|claim| claim.sum).sum::<f64>() + UNCLAIMED;
            let claims = claims.into_iter().enumerate().filter(|(_, claim)| claim.sum > 0.0);
            let share =
                |(agent, Claim { sum, line, .. })| Support { agent, weight: sum / all, line, why: Why::Area(area) };
            claims.map(share).collect()
        });
        self.shares = shares.collect();
    }

    fn claim_words(&mut self, items: &[Vec<Vec<TermId>>]) {
        let mut counts = vec![0_usize; self.agents.len()];
        let of_rows = self.lines.iter().zip(items).filter(|(line, _)| line.rule.is_some());
        of_rows.for_each(|(line, items)| counts[line.agent] += items.len());
        let with_rows = counts.iter().filter(|count| **count > 0).count().max(1);
        let mean = counts.iter().sum::<usize>() as f64 / with_rows as f64;
        // The fewer items an agent's rows have, the more each of them says.
        let says_more = |agent: usize| (mean / counts[agent].max(1) as f64).powf(0.4).clamp(0.85, 3.0);
        let says_more: Vec<f64> = (0..counts.len()).map(says_more).collect();
        let more = |line: &Line<'_>| if line.rule.is_some() { says_more[line.agent] } else { 1.0 };
        // By term and weight.
        let mut claims: HashMap<(TermId, u32), Holders, FixedState> = HashMap::default();
        for (place, (line, items)) in self.lines.iter().zip(items).enumerate() {
            let part = line.share * more(line);
            for item in items {
                let mut terms = item.iter().filter(|term| self.areas.tells(**term));
                let alone = terms.next().filter(|_| line.rule.is_some() && terms.next().is_none());
                let words = item.iter().filter(|term| self.areas.tells(**term));
                let keys = words.map(|term| (*term, line.field.weights().2));
                for key in keys.chain(alone.map(|term| (*term, ITEM))) {
                    let of_term = claims.entry(key).or_default();
                    match of_term.iter_mut().find(|(agent, ..)| *agent == line.agent) {
                        Some(known) if known.1 < part => *known = (line.agent, part, place),
                        Some(_) => {}
                        None => of_term.push((line.agent, part, place)),
                    }
                }
            }
        }
        self.of_lines = vec![Vec::new(); self.areas.size() + self.own.len()];
        self.supports.resize_with(self.of_lines.len(), OnceLock::new);
        for ((term, weight), claims) in claims {
            let sum: f64 = claims.iter().map(|(_, part, _)| part).sum();
            for (agent, part, line) in claims {
                let weight = f64::from(weight) / 100.0 * more(&self.lines[line]) * part / sum;
                keep_stronger(&mut self.of_lines[term], Support { agent, weight, line, why: Why::Words });
            }
        }
    }
}

/// Adds a support, unless the agent has a stronger one. Of equal lines, the first says most.
pub(super) fn keep_stronger(supports: &mut Vec<Support>, one: Support) {
    match supports.iter_mut().find(|known| known.agent == one.agent) {
        Some(known) => {
            let is_first = (one.why, one.line) < (known.why, known.line);
            if one.weight > known.weight || (one.weight == known.weight && is_first) {
                *known = one;
            }
        }
        None => supports.push(one),
    }
}

/// The lead is the member with the shortest role that says so: a QA lead does not lead the team.
fn lead(team: &Team) -> Option<&Member> {
    const ROLES: [&str; 8] = ["lead", "leader", "architect", "manager", "head", "chief", "principal", "director"];
    ROLES.iter().find_map(|word| {
        let is_called = |member: &&Member| words(&member.role).any(|it| it.eq_ignore_ascii_case(word));
        team.startable().filter(is_called).min_by_key(|member| words(&member.role).count())
    })
}
