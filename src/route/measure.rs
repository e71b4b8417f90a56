//! Measures how well each agent's files match a message.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::fields::Field;
use super::index::Index;
use super::lexicon::{AreaKind, TermId};
use super::signals::{Signals, Word};
use super::terms::TermKind;
use super::text::OWN;
use super::weights::{FEATURES, WEIGHTS};

pub(super) const KIND: usize = Field::COUNT;
pub(super) const TOPIC: usize = Field::COUNT + 1;
/// The kind of work in the first words of the request.
pub(super) const REQUEST: usize = Field::COUNT + 2;
/// All words of one entry of a row.
pub(super) const ROW: usize = Field::COUNT + 3;

/// The best single match of a kind and of a topic, whatever else the message mentions.
pub(super) const MOST_KIND: usize = Field::COUNT + 4;
pub(super) const MOST_TOPIC: usize = Field::COUNT + 5;
/// The agent is the only one whose role is this kind of work: the kind that a sentence asks for first, and the kind
/// that is mentioned most.
pub(super) const ASKED: usize = Field::COUNT + 6;
pub(super) const MOST_SAID: usize = Field::COUNT + 7;
/// How broad the agent's work is, in kinds and in topics. A generalist's words match often, but it is meant less often.
pub(super) const KINDS: usize = Field::COUNT + 8;
pub(super) const TOPICS: usize = Field::COUNT + 9;

/// A word of the message that was found in an agent's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) field: Field,
    /// Its place in [`Signals::words`].
    pub(super) word: usize,
    pub(super) amount: f64,
    pub(super) line: usize,
}

/// What was measured.
pub(super) struct Measured {
    pub(super) features: Vec<[f64; FEATURES]>,
    /// Indexes into [`Signals::words`] that have postings, each with its weight.
    looked_for: Vec<(usize, f64)>,
    /// How much content the message has, in weighted words.
    pub(super) content: f64,
    /// Whether any word names an area, or tells some agents apart.
    pub(super) has_substance: bool,
    /// By agent: how much of the content occurs in its past work.
    pub(super) done: Vec<f64>,
    pub(super) specialties: Vec<Specialty>,
}

impl Measured {
    /// Whether anything in the message matches the agent.
    pub(super) fn speaks_for(&self, agent: usize) -> bool {
        self.features.get(agent).is_some_and(|of| of[..KINDS].iter().any(|feature| *feature > 0.0))
    }
}

/// A kind of work that is only one agent's role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Specialty {
    /// How it was found: [`ASKED`] or [`MOST_SAID`].
    pub(super) slot: usize,
    pub(super) agent: usize,
    pub(super) area: usize,
    /// The line that gives the role.
    pub(super) line: usize,
}

/// The least content times rarity at which a word is more than chance.
const LEAST_SAID: f64 = 0.3;
/// The amounts at which an area saturates, and from which it counts as mentioned.
const ENOUGH: f64 = 2.0;
const SPOKEN_OF: f64 = 0.9;

/// The weight of a word that the user wrote; quoted text and templates add no certainty.
fn own(word: &Word) -> f64 {
    if word.weight < OWN { 0.0 } else { word.weight }
}

impl Index<'_> {
    pub(super) fn measure(&self, signals: &Signals) -> Measured {
        let mut measured = Measured {
            features: vec![[0.0; FEATURES]; self.agents.len()],
            looked_for: Vec::with_capacity(signals.words.len()),
            content: 0.0,
            has_substance: signals.speaks,
            done: vec![0.0; self.agents.len()],
            specialties: Vec::new(),
        };
        let mut seen: HashSet<TermId, FixedState> = HashSet::default();
        let mut of_entries = vec![0_u32; self.entries.len()];
        for (place, word) in signals.words.iter().enumerate() {
            let Some(term) = word.token.term else {
                measured.content += if word.token.says { own(word) } else { 0.0 };
                continue;
            };
            let says = self.lexicon.says(term);
            if says == 0.0 || !seen.insert(term) {
                continue;
            }
            measured.content += says * own(word);
            let how = match word.token.kind {
                TermKind::Word => 1.0,
                TermKind::Whole => 1.5,
                TermKind::Implied => 0.6,
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
            for entry in self.in_entries.get(&term).into_iter().flatten() {
                of_entries[*entry] += 1;
            }
        }
        self.measure_rows(&of_entries, &mut measured);
        self.measure_areas(signals, &mut measured);
        self.measure_specialties(signals, &mut measured);
        for (features, [kinds, topics]) in measured.features.iter_mut().zip(&self.breadths) {
            features[KINDS] = *kinds;
            features[TOPICS] = *topics;
        }
        measured
    }

    /// What was found in an agent's files.
    pub(super) fn hits(&self, signals: &Signals, measured: &Measured, agent: usize) -> Vec<Hit> {
        let mut hits = Vec::new();
        for &(word, worth) in &measured.looked_for {
            let postings = signals.words[word].token.term.map_or(&[][..], |term| self.postings(term));
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
    fn measure_rows(&self, found_in: &[u32], measured: &mut Measured) {
        for (entry, found) in self.entries.iter().zip(found_in).filter(|(_, found)| **found > 0) {
            let share = f64::from(*found) / entry.terms.len() as f64;
            let slot = &mut measured.features[entry.agent][ROW];
            *slot = slot.max(share * share * entry.worth);
        }
    }

    /// Compares the areas of the message with those of the agents. Amounts are squared, so the dominant area decides.
    fn measure_areas(&self, signals: &Signals, measured: &mut Measured) {
        let mut totals = [0.0; 3];
        for (place, area) in self.lexicon.areas.iter().enumerate() {
            let (amount, of_requests) = (signals.areas[place], signals.requests[place]);
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
            let shares = self.areas.iter().map(|of| of[place]);
            for (features, share) in measured.features.iter_mut().zip(shares).filter(|(_, share)| *share > 0.0) {
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
                // Close to 1 when the message concentrates on few areas.
                features[slot] = if total > 0.0 { features[slot] / (total + 0.7) } else { 0.0 };
            }
        }
    }

    fn measure_specialties(&self, signals: &Signals, measured: &mut Measured) {
        let is_kind = |area: &usize| {
            self.lexicon.areas[*area].kind == AreaKind::Kind && self.lexicon.areas[*area].name != "implementation"
        };
        let most = (0..signals.areas.len())
            .filter(is_kind)
            .max_by(|a, b| signals.areas[*a].total_cmp(&signals.areas[*b]).then(b.cmp(a)))
            .filter(|area| signals.areas[*area] >= SPOKEN_OF);
        let asked = signals.asked.iter().copied().find(|area| !self.is_general(*area));
        for (slot, area, amount) in
            [(ASKED, asked, 1.0), (MOST_SAID, most, most.map_or(0.0, |area| signals.areas[area].min(ENOUGH)))]
        {
            if let Some(area) = area
                && let [(agent, line)] = self.roles[area][..]
            {
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
