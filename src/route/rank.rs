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
pub(super) const FEATURES: usize = Field::COUNT + 11;
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
    pub(super) is_vague: bool,
    /// The kinds of work that the beginnings of its sentences surely speak of, in their order.
    pub(super) asked: Vec<usize>,
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
    /// How much the message says that could be found.
    pub(super) said: f64,
    /// Whether any word says something of an area, or of some agents rather than of all.
    pub(super) has_substance: bool,
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

/// What the form of a message is worth, in strong words.
const OF_A_DECISION: f64 = 1.5;
const OF_AN_INQUIRY: f64 = 0.5;
const OF_AN_ORDER: f64 = 0.7;

/// What a word must say to be more than chance: how much it says at all, times how much it tells agents apart.
const LEAST_SAID: f64 = 0.3;
/// Stretches of code below this weight are pasted; all of them together say this much of an area.
const PASTED: f64 = 0.3;
const PASTED_AREA: f64 = 0.35;
/// A hint that is worth this much is no chance.
const SURELY: f64 = 0.75;

/// More said of an area than this says no more, and what is said less surely than this is not said.
const ENOUGH: f64 = 2.0;
const SPOKEN_OF: f64 = 0.9;

/// How many words at the beginning of a sentence tell what is asked for.
const BEGINNING: usize = 5;
/// And until where among them a clause with the verb may begin, and the verb stand.
const VERB: usize = 3;
const LATEST_VERB: usize = 8;

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
            is_vague: message.is_vague,
            asked: Vec::new(),
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
            Form::Decision => ("planning", OF_A_DECISION),
            Form::Inquiry => ("research", OF_AN_INQUIRY),
            Form::Order => ("implementation", OF_AN_ORDER),
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
        let spoken = words.clone().filter(|word| word.place == Place::Word && word.says).map(|word| word.term);
        // The verb is the first word that says anything: a legal tag is no order to tag.
        let verb = match *begun {
            begun if begun < VERB => {
                let is_stop = |term: &Option<TermId>| term.is_some_and(|term| self.lexicon.is_stop(term));
                begun + spoken.clone().take_while(is_stop).count()
            }
            _ => 0,
        };
        let mut take = |hints: &[Hint], terms: usize, counts: bool| {
            let begins = *begun < BEGINNING && !stretch.is_code;
            let asks = *begun <= verb && *begun < LATEST_VERB && !stretch.is_code && counts;
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
                    let area = usize::from(hint.area);
                    if weight >= SURELY && self.lexicon.areas[area].kind == AreaKind::Kind {
                        said.asked.push(area);
                    }
                }
            }
            if counts {
                *begun += terms;
            }
        };
        self.each_hints(spoken, &mut |hints, terms| take(hints, terms, true));
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
            done: vec![0.0; self.agents.len()],
            specialties: Vec::new(),
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
            for posting in postings {
                if posting.field == Field::Past {
                    measured.done[posting.agent] += says * word.weight.max(0.0);
                }
                measured.features[posting.agent][posting.field as usize] += worth * posting.amount;
            }
        }
        self.measure_rows(&seen, &mut measured);
        self.measure_areas(said, &mut measured);
        self.measure_most(said, &mut measured);
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

    fn measure_most(&self, said: &Said, measured: &mut Measured) {
        for (area, said) in said.areas.iter().enumerate().filter(|(_, said)| **said > 0.0) {
            let slot = match self.lexicon.areas[area].kind {
                AreaKind::Topic => MOST_TOPIC,
                AreaKind::Kind if self.lexicon.areas[area].name == "implementation" => continue,
                AreaKind::Kind => MOST_KIND,
            };
            for (features, of) in measured.features.iter_mut().zip(&self.areas) {
                features[slot] = features[slot].max(said.min(ENOUGH) * of[area]);
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
