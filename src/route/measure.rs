//! How much each agent's files have to do with what a message says.

use super::fields::Field;
use super::index::Index;
use super::lexicon::{AreaKind, TermId};
use super::said::{Said, Word};
use super::terms::Place;
use super::text::OWN;
use super::weights::{FEATURES, WEIGHTS};

pub(super) const KIND: usize = Field::COUNT;
pub(super) const TOPIC: usize = Field::COUNT + 1;
/// The kind of work by the words that a request begins with.
pub(super) const REQUEST: usize = Field::COUNT + 2;
/// A row's own words, all of them.
pub(super) const ROW: usize = Field::COUNT + 3;

/// The kind and the topic that are most the agent's, by how much is said of them, whatever else is said.
pub(super) const MOST_KIND: usize = Field::COUNT + 4;
pub(super) const MOST_TOPIC: usize = Field::COUNT + 5;
/// Being the only agent whose role is a kind of work: the one a sentence begins by asking for, the one that is said
/// most, and planning where something is to be decided.
pub(super) const ASKED: usize = Field::COUNT + 6;
pub(super) const MOST_SAID: usize = Field::COUNT + 7;
pub(super) const DECISION: usize = Field::COUNT + 8;
/// How much is the agent's whatever is said, kinds and topics: who has a hand in everything is meant less often than
/// its words are met.
pub(super) const KINDS: usize = Field::COUNT + 9;
pub(super) const TOPICS: usize = Field::COUNT + 10;

/// A word of the message that was found in an agent's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) field: Field,
    /// Its place in [`Said::words`].
    pub(super) word: usize,
    pub(super) amount: f64,
    pub(super) line: usize,
}

/// What was measured.
pub(super) struct Measured {
    pub(super) features: Vec<[f64; FEATURES]>,
    /// The places of the words that were looked for in [`Said::words`], and what finding one is worth.
    looked_for: Vec<(usize, f64)>,
    /// How much the message says that could be found.
    pub(super) said: f64,
    /// Whether any word says something of an area, or of some agents rather than of all.
    pub(super) has_substance: bool,
    /// Whether it asks how something is.
    pub(super) is_inquiry: bool,
    /// By agent: how much of what was said its past work has.
    pub(super) done: Vec<f64>,
    pub(super) specialties: Vec<Specialty>,
}

impl Measured {
    /// Whether anything that was said speaks for an agent.
    pub(super) fn speaks_for(&self, agent: usize) -> bool {
        self.features.get(agent).is_some_and(|of| of[..KINDS].iter().any(|feature| *feature > 0.0))
    }
}

/// A kind of work that is only one agent's role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Specialty {
    /// How it was found: [`ASKED`], [`MOST_SAID`] or [`DECISION`].
    pub(super) slot: usize,
    pub(super) agent: usize,
    pub(super) area: usize,
    /// The line that gives the role.
    pub(super) line: usize,
}

/// What a word must say to be more than chance: how much it says at all, times how much it tells agents apart.
const LEAST_SAID: f64 = 0.3;
/// More said of an area than this says no more, and what is said less surely than this is not said.
const ENOUGH: f64 = 2.0;
const SPOKEN_OF: f64 = 0.9;

/// A set of terms.
struct Terms(Vec<u64>);

impl Terms {
    fn none(vocabulary: usize) -> Self {
        Self(vec![0; vocabulary / 64 + 1])
    }

    fn has(&self, term: TermId) -> bool {
        self.0[term as usize / 64] & (1 << (term % 64)) != 0
    }

    /// Whether it was not there yet.
    fn insert(&mut self, term: TermId) -> bool {
        let is_new = !self.has(term);
        self.0[term as usize / 64] |= 1 << (term % 64);
        is_new
    }
}

/// What a word says of the message's own; what is quoted or a template's makes nothing surer.
fn own(word: &Word) -> f64 {
    if word.weight < OWN { 0.0 } else { word.weight }
}

impl Index<'_> {
    pub(super) fn measure(&self, said: &Said) -> Measured {
        let mut measured = Measured {
            features: vec![[0.0; FEATURES]; self.agents.len()],
            looked_for: Vec::with_capacity(said.words.len()),
            said: 0.0,
            has_substance: said.speaks,
            is_inquiry: said.is_inquiry,
            done: vec![0.0; self.agents.len()],
            specialties: Vec::new(),
        };
        let mut seen = Terms::none(self.vocabulary());
        let mut of_entries = vec![0_u32; self.entries.len()];
        for (place, word) in said.words.iter().enumerate() {
            let Some(term) = word.found.term else {
                if !word.found.says {
                    continue;
                }
                measured.said += own(word);
                continue;
            };
            let says = self.lexicon.says(term);
            if says == 0.0 || !seen.insert(term) {
                continue;
            }
            measured.said += says * own(word);
            let how = match word.found.place {
                Place::Word => 1.0,
                Place::Whole => 1.5,
                Place::Implied => 0.6,
            };
            let rarity = self.rarity(term);
            let worth = says * how * word.weight * rarity;
            let postings = self.postings(term);
            measured.has_substance |= says * rarity > LEAST_SAID && !postings.is_empty();
            if !postings.is_empty() {
                measured.looked_for.push((place, worth));
            }
            for posting in postings {
                if posting.field == Field::Past {
                    measured.done[posting.agent] += says * own(word);
                }
                measured.features[posting.agent][posting.field as usize] += worth * posting.amount;
            }
            for entry in self.entries_with(term) {
                of_entries[*entry as usize] += 1;
            }
        }
        self.measure_rows(&of_entries, &mut measured);
        self.measure_areas(said, &mut measured);
        self.measure_specialties(said, &mut measured);
        for (features, [kinds, topics]) in measured.features.iter_mut().zip(&self.breadths) {
            features[KINDS] = *kinds;
            features[TOPICS] = *topics;
        }
        measured
    }

    /// What was found in an agent's files.
    pub(super) fn hits(&self, said: &Said, measured: &Measured, agent: usize) -> Vec<Hit> {
        let mut hits = Vec::new();
        for &(word, worth) in &measured.looked_for {
            let postings = said.words[word].found.term.map_or(&[][..], |term| self.postings(term));
            hits.extend(postings.iter().filter(|posting| posting.agent == agent).map(|posting| Hit {
                field: posting.field,
                word,
                amount: worth * posting.amount,
                line: posting.line,
            }));
        }
        hits
    }

    /// The best of an agent's row entries: how much of the entry the message says.
    fn measure_rows(&self, said: &[u32], measured: &mut Measured) {
        for (entry, found) in self.entries.iter().zip(said).filter(|(_, found)| **found > 0) {
            let share = f64::from(*found) / entry.terms.len() as f64;
            let slot = &mut measured.features[entry.agent][ROW];
            *slot = slot.max(share * share * entry.worth);
        }
    }

    /// How the areas that are said and those of the agents agree. What is said most is meant: half as much said counts
    /// a quarter.
    fn measure_areas(&self, said: &Said, measured: &mut Measured) {
        let mut totals = [0.0; 3];
        for (place, area) in self.lexicon.areas.iter().enumerate() {
            let (amount, of_requests) = (said.areas[place], said.requests[place]);
            if amount == 0.0 && of_requests == 0.0 {
                continue;
            }
            let (slot, most) = match area.kind {
                AreaKind::Kind => (KIND, MOST_KIND),
                AreaKind::Topic => (TOPIC, MOST_TOPIC),
            };
            let in_requests = area.kind == AreaKind::Kind;
            let counts_alone = area.kind == AreaKind::Topic || area.name != "implementation";
            let (square, of_requests) = (amount * amount.abs(), of_requests * of_requests.abs());
            totals[slot - KIND] += square.max(0.0);
            totals[REQUEST - KIND] += if in_requests { of_requests.max(0.0) } else { 0.0 };
            for (agent, share) in &self.shares[place] {
                let features = &mut measured.features[*agent];
                features[slot] += square * share;
                if in_requests {
                    features[REQUEST] += of_requests * share;
                }
                if counts_alone && amount > 0.0 {
                    features[most] = features[most].max(amount.min(ENOUGH) * share);
                }
            }
        }
        for features in &mut measured.features {
            for (slot, total) in (KIND..).zip(totals) {
                // Sure of itself when much was said of few areas.
                features[slot] = if total > 0.0 { features[slot] / (total + 0.7) } else { 0.0 };
            }
        }
    }

    fn measure_specialties(&self, said: &Said, measured: &mut Measured) {
        let is_kind = |area: &usize| {
            self.lexicon.areas[*area].kind == AreaKind::Kind && self.lexicon.areas[*area].name != "implementation"
        };
        let most = (0..said.areas.len())
            .filter(is_kind)
            .max_by(|a, b| said.areas[*a].total_cmp(&said.areas[*b]).then(b.cmp(a)))
            .filter(|area| said.areas[*area] >= SPOKEN_OF);
        let decision = said.form.map(|(area, _)| area).filter(|area| self.lexicon.areas[*area].name == "planning");
        for (slot, area, amount) in [
            (ASKED, self.special(&said.asked), 1.0),
            (MOST_SAID, most, most.map_or(0.0, |area| said.areas[area].min(ENOUGH))),
            (DECISION, decision, 1.0),
        ] {
            if let Some((area, (agent, line))) = area.and_then(|area| Some((area, self.only_one_for(area)?))) {
                measured.features[agent][slot] = amount;
                measured.specialties.push(Specialty { slot, agent, area, line });
            }
        }
    }

    /// How well each agent fits: the sum of what was measured, weighted.
    pub(super) fn fit(measured: &Measured) -> Vec<f64> {
        measured
            .features
            .iter()
            .map(|of| of.iter().zip(WEIGHTS).map(|(feature, weight)| feature * weight).sum())
            .collect()
    }
}
