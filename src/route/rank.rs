//! How much each agent's files have to do with a message.

use super::fields::Field;
use super::form::Form;
use super::index::{Found, Index};
use super::lexicon::{AreaKind, Hint, Of, TermId};
use super::message::Message;
use super::terms::Place;
use super::text::Stretch;
use super::weights::WEIGHTS;

/// What is measured of a message and an agent: its fields, and how well their areas agree.
pub(super) const FEATURES: usize = Field::COUNT + 4;
pub(super) const KIND: usize = Field::COUNT;
pub(super) const TOPIC: usize = Field::COUNT + 1;
/// The kind of work by the words that a request begins with.
pub(super) const REQUEST: usize = Field::COUNT + 2;
/// A row's own words, all of them.
pub(super) const ROW: usize = Field::COUNT + 3;

/// A word of the message that was found in an agent's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) field: Field,
    /// Its place in [`Said::words`].
    pub(super) word: usize,
    pub(super) amount: f64,
    pub(super) line: usize,
}

/// A message as its index sees it.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) words: Vec<Word>,
    /// By area, 0..: how much the message speaks of it.
    pub(super) areas: Vec<f64>,
    /// The same of the beginnings of its sentences.
    pub(super) requests: Vec<f64>,
    /// What of the areas is pasted text.
    pasted: Vec<f64>,
    /// What of the areas is the message's form and no word of it.
    pub(super) form: Option<(usize, f64)>,
    /// Whether any word surely speaks of an area.
    pub(super) speaks: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) found: Found,
    pub(super) weight: f64,
}

/// What was measured.
pub(super) struct Measured {
    pub(super) features: Vec<[f64; FEATURES]>,
    /// The places of the words that were looked for in [`Said::words`], and what finding one is worth.
    looked_for: Vec<(usize, f64)>,
    /// How much the message says that could be found, and how much of it was.
    pub(super) said: f64,
    /// Whether any word says something of an area, or of some agents rather than of all.
    pub(super) has_substance: bool,
    /// By agent: how much of what was said its files have.
    pub(super) covered: Vec<f64>,
}

/// What the form of a message is worth, in strong words.
const DECISION: f64 = 1.5;
const INQUIRY: f64 = 0.5;
const ORDER: f64 = 0.7;

/// What a word must say to be more than chance: how much it says at all, times how much it tells agents apart.
const LEAST_SAID: f64 = 0.3;
/// Stretches of code below this weight are pasted; all of them together say this much of an area.
const PASTED: f64 = 0.3;
const PASTED_AREA: f64 = 0.35;
/// A hint that is worth this much is no chance.
const SURELY: f64 = 0.75;

/// How many words at the beginning of a sentence tell what is asked for.
const BEGINNING: usize = 5;
/// And where among them the verb stands.
const VERB: usize = 3;

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

impl Index<'_> {
    /// Reads the stretches of a message.
    pub(super) fn said(&self, message: &Message<'_>, stretches: &[Stretch]) -> Said {
        let areas = self.lexicon.areas.len();
        let mut said = Said {
            words: Vec::with_capacity(message.words.len()),
            areas: vec![0.0; areas],
            requests: vec![0.0; areas],
            pasted: vec![0.0; areas],
            form: None,
            speaks: false,
        };
        self.add_form(message.form, &mut said);
        let mut sentence = usize::MAX;
        let mut begun = 0;
        for stretch in stretches {
            if stretch.sentence != sentence {
                sentence = stretch.sentence;
                begun = 0;
            }
            let words = message.words(stretch);
            self.add_areas_of(words.clone(), stretch, &mut begun, &mut said);
            said.words.extend(words.map(|found| Word { found: found.clone(), weight: stretch.weight }));
        }
        said
    }

    /// What the form of a message says, whatever its words: a question whether something should be is one of
    /// planning, and what is no question is asked to be built.
    fn add_form(&self, form: Form, said: &mut Said) {
        let (area, weight) = match form {
            Form::Decision => ("planning", DECISION),
            Form::Inquiry => ("research", INQUIRY),
            Form::Order => ("implementation", ORDER),
        };
        if let Some(area) = self.lexicon.area(area) {
            said.areas[area] += weight;
            said.requests[area] += weight;
            said.form = Some((area, weight));
        }
    }

    fn add_areas_of<'f>(
        &self,
        words: impl Iterator<Item = &'f Found> + Clone,
        stretch: &Stretch,
        begun: &mut usize,
        said: &mut Said,
    ) {
        let mut take = |hints: &[Hint], terms: usize, counts: bool| {
            let begins = *begun < BEGINNING && !stretch.is_code;
            let asks = *begun < VERB && !stretch.is_code && counts;
            for hint in hints.iter().filter(|hint| hint.of == Of::All || (asks && hint.of == Of::Requests)) {
                // What shall not be done is surely not what is asked for.
                let weight = if stretch.weight < 0.0 { -hint.weight } else { hint.weight * stretch.weight };
                // A log says the same a hundred times.
                let pasted = stretch.is_code && stretch.weight.abs() < PASTED;
                let room = PASTED_AREA - said.pasted[hint.area as usize];
                let weight = if pasted { weight.min(room) } else { weight };
                if pasted {
                    said.pasted[hint.area as usize] += weight;
                }
                said.areas[hint.area as usize] += weight;
                said.speaks |= hint.of == Of::All && !pasted && weight >= SURELY;
                if begins {
                    said.requests[hint.area as usize] += weight;
                }
            }
            if counts {
                *begun += terms;
            }
        };
        let sequence = words.clone().filter(|word| word.place == Place::Word && word.says).map(|word| word.term);
        self.each_hints(sequence, &mut |hints, terms| take(hints, terms, true));
        for word in words.clone().filter(|word| word.place != Place::Word) {
            let weight = if word.place == Place::Implied {
                &[]
            } else {
                word.term.map_or(&[][..], |term| self.lexicon.hints(term))
            };
            take(weight, 0, false);
        }
        let implied = words.filter(|word| word.place == Place::Implied).map(|word| word.term);
        self.each_hints(implied, &mut |hints, terms| take(hints, terms, false));
    }

    pub(super) fn measure(&self, said: &Said) -> Measured {
        let mut measured = Measured {
            features: vec![[0.0; FEATURES]; self.agents.len()],
            looked_for: Vec::with_capacity(said.words.len()),
            said: 0.0,
            has_substance: said.speaks,
            covered: vec![0.0; self.agents.len()],
        };
        let mut seen = Terms::none(self.vocabulary());
        for (place, word) in said.words.iter().enumerate() {
            let Some(term) = word.found.term else {
                if !word.found.says {
                    continue;
                }
                measured.said += word.weight.max(0.0);
                continue;
            };
            let says = self.lexicon.says(term);
            if says == 0.0 || !seen.insert(term) {
                continue;
            }
            measured.said += says * word.weight.max(0.0);
            let how = match word.found.place {
                Place::Word => 1.0,
                Place::Whole => 1.5,
                Place::Implied => 0.6,
            };
            let worth = says * how * word.weight * self.rarity(term);
            let postings = self.postings(term);
            measured.has_substance |= says * self.rarity(term) > LEAST_SAID && !postings.is_empty();
            measured.looked_for.push((place, worth));
            let mut last = usize::MAX;
            for posting in postings {
                if posting.agent != last && posting.field != Field::NotOwned {
                    last = posting.agent;
                    measured.covered[last] += says * word.weight.max(0.0);
                }
                measured.features[posting.agent][posting.field as usize] += worth * posting.amount;
            }
        }
        self.measure_rows(&seen, &mut measured);
        self.measure_areas(said, &mut measured);
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
    fn measure_rows(&self, said: &Terms, measured: &mut Measured) {
        for entry in &self.entries {
            let found = entry.terms.iter().filter(|term| said.has(**term)).count();
            if found > 0 {
                let share = found as f64 / entry.terms.len() as f64;
                let slot = &mut measured.features[entry.agent][ROW];
                *slot = slot.max(share * share * entry.worth);
            }
        }
    }

    fn measure_areas(&self, said: &Said, measured: &mut Measured) {
        for kind in [AreaKind::Kind, AreaKind::Topic] {
            let of_kind = |area: &usize| self.lexicon.areas[*area].kind == kind;
            let slot = if kind == AreaKind::Kind { KIND } else { TOPIC };
            self.agree(&said.areas, of_kind, slot, measured);
            if kind == AreaKind::Kind {
                self.agree(&said.requests, of_kind, REQUEST, measured);
            }
        }
    }

    /// What is said most is meant: half as much said counts a quarter.
    fn agree(&self, areas: &[f64], of_kind: impl Fn(&usize) -> bool, slot: usize, measured: &mut Measured) {
        let spoken = areas.iter().enumerate().filter(|(area, said)| **said != 0.0 && of_kind(area));
        let spoken: Vec<(usize, f64)> = spoken.map(|(area, said)| (area, said * said.abs())).collect();
        let total: f64 = spoken.iter().map(|(_, said)| said.max(0.0)).sum();
        if total <= 0.0 {
            return;
        }
        for (features, of) in measured.features.iter_mut().zip(&self.areas) {
            let agreed: f64 = spoken.iter().map(|(area, said)| said * of[*area]).sum();
            // Sure of itself when much was said of few areas.
            features[slot] = agreed / (total + 0.7);
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
