//! Builds a team's index from its files.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::PastWork;
use super::fields::{self, Field, Line};
use super::index::{Entry, Index, Occurrence, Posting};
use super::lexicon::{AreaKind, Hints, Lexicon, Of, TermId, each_hint};
use super::terms::{TermKind, each_term};
use crate::model::{Member, Team};

/// The weight of each field for an agent's areas. Past work is absent: doing something once does not make it one's area.
const AREA_WEIGHTS: [(Field, f64); 6] = [
    (Field::Signal, 1.3),
    (Field::Example, 0.5),
    (Field::Role, 1.6),
    (Field::Expertise, 0.6),
    (Field::Owned, 0.35),
    (Field::NotOwned, -0.5),
];

/// From this weight on, a role clearly names an area.
const SURE_ROLE: f64 = 1.6;

impl<'t> Index<'t> {
    pub(super) fn new(team: &'t Team, past: &[PastWork]) -> Self {
        let agents: Vec<&Member> = team.startable().collect();
        let lines = fields::lines(team, &agents, past);
        let mut index = Self {
            team,
            area_lines: Vec::new(),
            breadths: Vec::new(),
            entries: Vec::new(),
            areas: Vec::new(),
            agents,
            lexicon: Lexicon::get(),
            own_terms: HashMap::default(),
            terms: Vec::new(),
            postings: Vec::new(),
            in_entries: HashMap::default(),
            lines: Vec::new(),
            roles: Vec::new(),
        };
        index.fill(lines);
        index
    }

    fn fill(&mut self, lines: Vec<Line>) {
        let areas = self.lexicon.areas.len();
        let mut weights = vec![vec![0.0; areas]; self.agents.len()];
        let mut telling = vec![vec![Vec::new(); areas]; self.agents.len()];
        self.roles = vec![Vec::new(); areas];
        let mut lengths = vec![[0.0_f64; Field::COUNT]; self.agents.len()];
        let mut counts: HashMap<(TermId, usize, Field), (f64, usize), FixedState> = HashMap::default();
        for (place, line) in lines.iter().enumerate() {
            let terms = self.take_terms(&line.text);
            for (area, weight) in self.areas_of(line, &terms).into_iter().enumerate() {
                weights[line.agent][area] += weight;
                let of_role = line.field == Field::Role && weight >= SURE_ROLE;
                if of_role && !self.roles[area].iter().any(|(agent, _)| *agent == line.agent) {
                    self.roles[area].push((line.agent, place));
                }
                if weight > 0.0 {
                    // People look at routing rows first.
                    telling[line.agent][area].push((place, if line.rule.is_some() { 2.0 * weight } else { weight }));
                }
            }
            let mut once: Vec<TermId> = terms.iter().map(|(term, _)| *term).collect();
            once.sort_unstable();
            once.dedup();
            for term in once.into_iter().filter(|term| !self.lexicon.is_stop(*term)) {
                lengths[line.agent][line.field as usize] += 1.0;
                counts.entry((term, line.agent, line.field)).or_insert((0.0, place)).0 += 1.0;
            }
        }
        let mut means = [0.0_f64; Field::COUNT];
        for field in 0..Field::COUNT {
            means[field] = lengths.iter().map(|of| of[field]).sum::<f64>() / (self.agents.len().max(1) as f64);
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|((term, agent, field), _)| (*term, *agent, *field as usize));
        self.terms = vec![Occurrence { postings: 0..0, rarity: 1.0 }; self.vocabulary()];
        for of_term in counts.chunk_by(|a, b| a.0.0 == b.0.0) {
            let start = self.postings.len();
            self.postings.extend(of_term.iter().map(|((_, agent, field), (count, line))| {
                let length = lengths[*agent][*field as usize] / means[*field as usize].max(1.0);
                let amount = (1.0 + 0.4 * count.ln()) / (0.5 + 0.5 * length).sqrt();
                Posting { agent: *agent, field: *field, amount, line: *line }
            }));
            let postings = start..self.postings.len();
            let rarity = self.rarity_of(&self.postings[postings.clone()]);
            let term = of_term[0].0.0;
            self.terms[term as usize] = Occurrence { postings, rarity };
        }
        self.areas = shares(&weights);
        self.breadths = self.areas.iter().map(|of| self.breadth_of(of)).collect();
        self.area_lines = telling;
        self.entries = lines.iter().filter(|line| line.rule.is_some()).flat_map(|line| self.entries_of(line)).collect();
        self.lines = lines;
        for (place, entry) in self.entries.iter().enumerate() {
            entry.terms.iter().for_each(|term| self.in_entries.entry(*term).or_default().push(place));
        }
    }

    fn breadth_of(&self, shares: &[f64]) -> [f64; 2] {
        [AreaKind::Kind, AreaKind::Topic].map(|kind| {
            let of_kind = shares.iter().zip(&self.lexicon.areas).filter(|(_, area)| area.kind == kind);
            of_kind.map(|(share, _)| share).sum()
        })
    }

    fn rarity_of(&self, postings: &[Posting]) -> f64 {
        let count = self.agents.len() as f64;
        let mut having = 0.0_f64;
        let mut last = usize::MAX;
        // Postings are grouped by agent.
        for posting in postings {
            let counts = !matches!(posting.field, Field::Charter | Field::Past | Field::NotOwned);
            if counts && posting.agent != last {
                last = posting.agent;
                having += 1.0;
            }
        }
        if count <= 1.0 { 1.0 } else { ((count + 0.5) / having.max(1.0)).ln() / (count + 0.5).ln() }
    }

    fn entries_of(&self, line: &Line) -> Vec<Entry> {
        let parts = line.text.split([',', ';', '/', '&', '+', '(', ')']).flat_map(|part| part.split(" and "));
        let terms = |part: &str| {
            let mut terms: Vec<TermId> = Vec::new();
            self.each_token(part, 0..part.len(), &mut |found| terms.extend(found.term));
            terms.retain(|term| !self.lexicon.is_stop(*term));
            terms.dedup();
            terms
        };
        parts
            .map(terms)
            .filter(|terms| !terms.is_empty())
            .map(|terms| {
                let worth: f64 = terms.iter().map(|term| self.lexicon.says(*term) * self.rarity(*term)).sum();
                let weight = if line.field == Field::Signal { 1.0 } else { 0.7 };
                Entry { agent: line.agent, terms, worth: weight * worth.sqrt() }
            })
            .collect()
    }

    fn take_terms(&mut self, text: &str) -> Vec<(TermId, TermKind)> {
        let mut terms = Vec::new();
        let (lexicon, own) = (self.lexicon, &mut self.own_terms);
        each_term(lexicon, text, &mut |term, _, place| {
            if term.is_empty() {
                return;
            }
            let next = lexicon.size() + TermId::try_from(own.len()).unwrap_or(0);
            let id = lexicon.id(term).or_else(|| own.get(term).copied()).unwrap_or_else(|| {
                own.insert(term.into(), next);
                next
            });
            terms.push((id, place));
        });
        terms
    }

    /// How much a line adds to each area of its agent.
    fn areas_of(&self, line: &Line, terms: &[(TermId, TermKind)]) -> Vec<f64> {
        let weight = AREA_WEIGHTS.iter().find(|(field, _)| *field == line.field).map_or(0.0, |(_, weight)| *weight);
        let of_roles = matches!(line.field, Field::Role | Field::Signal);
        let mut best = vec![0.0_f64; self.lexicon.areas.len()];
        let mut take = |hints: Hints| {
            for hint in each_hint(hints).filter(|hint| hint.of == Of::All || (of_roles && hint.of == Of::Roles)) {
                let slot = &mut best[hint.area];
                // Several words of an area count more than one.
                *slot = (*slot + hint.weight).min(2.0);
            }
        };
        let single = terms.iter().filter(|(_, place)| *place != TermKind::Whole);
        let single: Vec<Option<TermId>> = single.map(|(term, _)| Some(*term)).collect();
        self.each_hints(&single, &mut |hints, _| take(hints));
        for (term, _) in terms.iter().filter(|(_, place)| *place == TermKind::Whole) {
            take(self.lexicon.hints(*term));
        }
        best.iter().map(|found| weight * found).collect()
    }
}

/// Each agent's share of each area: its own amount, reduced where others have the area too.
fn shares(weights: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let areas = weights.first().map_or(0, Vec::len);
    let mut shares: Vec<Vec<f64>> =
        weights.iter().map(|of| of.iter().map(|weight| 1.0 - (-weight.max(0.0) / 1.5).exp()).collect()).collect();
    for area in 0..areas {
        let total: f64 = shares.iter().map(|of| of[area]).sum();
        for of in &mut shares {
            if of[area] > 0.0 {
                of[area] *= (of[area] / total).sqrt();
            }
        }
    }
    shares
}
