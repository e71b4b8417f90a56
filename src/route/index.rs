//! A team as the router looks things up in it: who has which term in which field, and whose which area is.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::PastWork;
use super::fields::{self, Field, Line};
use super::lexicon::{AreaKind, Hint, Lexicon, Of, TermId};
use super::terms::{Place, each_term};
use crate::model::{Member, Slug, Team};

/// A term in an agent's field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) agent: usize,
    pub(super) field: Field,
    /// About 1; more where it is said often, less where much is said.
    pub(super) amount: f64,
    /// The first line that says it.
    pub(super) line: usize,
}

/// A term as it stands in a text.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// `None`: neither a table nor the team knows the term.
    pub(super) term: Option<TermId>,
    pub(super) range: Range<usize>,
    pub(super) place: Place,
    /// Not a number nor a letter.
    pub(super) says: bool,
}

/// One thing that a routing row names: of `API, server` there are two.
pub(super) struct Entry {
    pub(super) agent: usize,
    pub(super) terms: Vec<TermId>,
    /// How much its words say and tell the agents apart.
    pub(super) worth: f64,
}

pub(super) struct Index<'t> {
    pub(super) team: &'t Team,
    pub(super) entries: Vec<Entry>,
    pub(super) agents: Vec<&'t Member>,
    pub(super) lexicon: &'static Lexicon,
    /// Terms of the team that are in no table.
    own_terms: HashMap<Box<str>, TermId, FixedState>,
    postings: Vec<Vec<Posting>>,
    rarities: Vec<f64>,
    /// By agent, then by area: how much of it is the agent's, 0..1.
    pub(super) areas: Vec<Vec<f64>>,
    /// By agent: how much of all kinds and of all topics is the agent's.
    pub(super) breadths: Vec<[f64; 2]>,
    /// By agent, then by area: the line that makes it the agent's more than any other.
    pub(super) area_lines: Vec<Vec<Option<usize>>>,
    pub(super) lines: Vec<Line>,
    /// By area: the agents whose role it surely is, with the line that says so.
    pub(super) roles: Vec<Vec<(usize, usize)>>,
}

/// What the fields say of an agent's areas, by their weight.
const AREA_WEIGHTS: [(Field, f64); 8] = [
    (Field::Signal, 1.3),
    (Field::Example, 0.5),
    (Field::Role, 1.6),
    (Field::Expertise, 0.6),
    (Field::Owned, 0.35),
    (Field::NotOwned, -0.5),
    (Field::Charter, 0.0),
    (Field::Past, 0.1),
];

/// Kinds of work that are part of most work.
const GENERAL: [&str; 3] = ["implementation", "planning", "research"];
/// A role that says an area in one of its sure words.
const SURE_ROLE: f64 = 1.6;

/// Histories are long; their ends are what was done last.
const HISTORY: usize = 16 * 1024;

impl<'t> Index<'t> {
    pub(super) fn new(team: &'t Team, past: &[PastWork]) -> Self {
        let agents: Vec<&Member> = team.startable().collect();
        let mut lines = fields::lines(team, &agents);
        lines.extend(past_lines(team, &agents, past));
        let mut index = Self {
            team,
            area_lines: Vec::new(),
            breadths: Vec::new(),
            entries: Vec::new(),
            areas: Vec::new(),
            agents,
            lexicon: Lexicon::get(),
            own_terms: HashMap::default(),
            postings: Vec::new(),
            rarities: Vec::new(),
            lines: Vec::new(),
            roles: Vec::new(),
        };
        index.fill(lines);
        index
    }

    pub(super) fn postings(&self, term: TermId) -> &[Posting] {
        self.postings.get(term as usize).map_or(&[], Vec::as_slice)
    }

    /// How much a term tells the agents apart, 0..1: a word that everybody's files have tells nothing.
    pub(super) fn rarity(&self, term: TermId) -> f64 {
        self.rarities.get(term as usize).copied().unwrap_or(1.0)
    }

    fn rarity_of(&self, postings: &[Posting]) -> f64 {
        let count = self.agents.len() as f64;
        let mut having = 0.0_f64;
        let mut last = usize::MAX;
        // Postings of an agent stand together.
        for posting in postings {
            let counts = !matches!(posting.field, Field::Charter | Field::Past | Field::NotOwned);
            if counts && posting.agent != last {
                last = posting.agent;
                having += 1.0;
            }
        }
        if count <= 1.0 { 1.0 } else { ((count + 0.5) / having.max(1.0)).ln() / (count + 0.5).ln() }
    }

    /// How many terms are known, here and in the tables.
    pub(super) fn vocabulary(&self) -> usize {
        self.lexicon.size() as usize + self.own_terms.len()
    }

    pub(super) fn lookup(&self, term: &str) -> Option<TermId> {
        self.lexicon.id(term).or_else(|| self.own_terms.get(term).copied())
    }

    /// Calls `each` with every term in a part of a text.
    pub(super) fn each_found(&self, text: &str, part: Range<usize>, each: &mut impl FnMut(Found)) {
        let start = part.start;
        each_term(self.lexicon, &text[part], &mut |term, range, place| {
            let range = start + range.start..start + range.end;
            each(Found { term: self.lookup(term), range, place, says: !term.is_empty() });
        });
    }

    fn fill(&mut self, lines: Vec<Line>) {
        let areas = self.lexicon.areas.len();
        let mut weights = vec![vec![0.0; areas]; self.agents.len()];
        let mut best = vec![vec![(0.0, None); areas]; self.agents.len()];
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
                // A row is what a reader looks for first.
                let telling = if line.rule.is_some() { 2.0 * weight } else { weight };
                if telling > best[line.agent][area].0 {
                    best[line.agent][area] = (telling, Some(place));
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
        for ((term, agent, field), (count, line)) in counts {
            let length = lengths[agent][field as usize] / means[field as usize].max(1.0);
            let amount = (1.0 + 0.4 * count.ln()) / (0.5 + 0.5 * length).sqrt();
            let place = term as usize;
            if self.postings.len() <= place {
                self.postings.resize(place + 1, Vec::new());
            }
            self.postings[place].push(Posting { agent, field, amount, line });
        }
        self.rarities = self.postings.iter().map(|postings| self.rarity_of(postings)).collect();
        self.areas = shares(&weights);
        self.breadths = self.areas.iter().map(|of| self.breadth_of(of)).collect();
        self.area_lines = best.into_iter().map(|of| of.into_iter().map(|(_, line)| line).collect()).collect();
        self.entries = lines.iter().filter(|line| line.rule.is_some()).flat_map(|line| self.entries_of(line)).collect();
        self.lines = lines;
    }

    fn breadth_of(&self, shares: &[f64]) -> [f64; 2] {
        [AreaKind::Kind, AreaKind::Topic].map(|kind| {
            let of_kind = shares.iter().zip(&self.lexicon.areas).filter(|(_, area)| area.kind == kind);
            of_kind.map(|(share, _)| share).sum()
        })
    }

    /// The first of the kinds that is not part of most work.
    pub(super) fn special(&self, asked: &[usize]) -> Option<usize> {
        asked.iter().copied().find(|area| !GENERAL.contains(&self.lexicon.areas[*area].name))
    }

    /// The only agent whose role is an area, with the line that says so.
    pub(super) fn only_one_for(&self, area: usize) -> Option<(usize, usize)> {
        match self.roles.get(area)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    fn entries_of(&self, line: &Line) -> Vec<Entry> {
        let parts = line.text.split([',', ';', '/', '&', '+', '(', ')']).flat_map(|part| part.split(" and "));
        let terms = |part: &str| {
            let mut terms: Vec<TermId> = Vec::new();
            self.each_found(part, 0..part.len(), &mut |found| terms.extend(found.term));
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

    fn take_terms(&mut self, text: &str) -> Vec<(TermId, Place)> {
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

    /// How much a line makes each area its agent's.
    fn areas_of(&self, line: &Line, terms: &[(TermId, Place)]) -> Vec<f64> {
        let weight = AREA_WEIGHTS.iter().find(|(field, _)| *field == line.field).map_or(0.0, |(_, weight)| *weight);
        let of_roles = matches!(line.field, Field::Role | Field::Signal);
        let mut best = vec![0.0_f64; self.lexicon.areas.len()];
        let mut take = |hints: &[Hint]| {
            for hint in hints.iter().filter(|hint| hint.of == Of::All || (of_roles && hint.of == Of::Roles)) {
                let slot = &mut best[hint.area as usize];
                // Several words of an area say it more surely than one.
                *slot = (*slot + hint.weight).min(2.0);
            }
        };
        self.each_hints(
            terms.iter().filter(|(_, place)| *place != Place::Whole).map(|(term, _)| Some(*term)),
            &mut |hints, _| take(hints),
        );
        for (term, _) in terms.iter().filter(|(_, place)| *place == Place::Whole) {
            take(self.lexicon.hints(*term));
        }
        best.iter().map(|found| weight * found).collect()
    }

    /// What a sequence of terms speaks of: terms of several words where they are met, single ones elsewhere. `each` is
    /// given the hints and how many terms they are of.
    pub(super) fn each_hints(
        &self,
        terms: impl Iterator<Item = Option<TermId>>,
        each: &mut dyn FnMut(&'static [Hint], usize),
    ) {
        let terms: Vec<Option<TermId>> = terms.collect();
        let mut at = 0;
        while at < terms.len() {
            let Some(term) = terms[at] else {
                at += 1;
                each(&[], 1);
                continue;
            };
            let longest = self
                .lexicon
                .phrases(term)
                .iter()
                .filter(|phrase| {
                    let rest = terms.get(at + 1..at + 1 + phrase.rest.len());
                    rest.is_some_and(|rest| rest.iter().zip(&phrase.rest).all(|(a, b)| *a == Some(*b)))
                })
                .max_by_key(|phrase| phrase.rest.len());
            match longest {
                Some(phrase) => {
                    each(&phrase.hints, 1 + phrase.rest.len());
                    at += 1 + phrase.rest.len();
                }
                None => {
                    each(self.lexicon.hints(term), 1);
                    at += 1;
                }
            }
        }
    }
}

/// How much of each area is each agent's: how much it has of it, and how much more than the others.
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

fn past_lines(team: &Team, agents: &[&Member], past: &[PastWork]) -> Vec<Line> {
    let place = |slug: &Slug| agents.iter().position(|member| member.slug == *slug);
    let mut lines = Vec::new();
    for (slug, history) in &team.histories {
        let Some(agent) = place(slug) else { continue };
        let mut start = history.len().saturating_sub(HISTORY);
        while !history.is_char_boundary(start) {
            start += 1;
        }
        let source = format!("{slug}'s history");
        for text in history[start..].lines().filter(|line| !line.trim().is_empty()) {
            lines.push(Line { agent, field: Field::Past, text: text.to_owned(), source: source.clone(), rule: None });
        }
    }
    for work in past {
        for agent in work.agents.iter().filter_map(place) {
            let (text, source) = (work.message.clone(), work.source.clone());
            lines.push(Line { agent, field: Field::Past, text, source, rule: None });
        }
    }
    lines
}
