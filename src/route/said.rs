//! What a message says: the words that can be looked for, and the areas of work it speaks of.

use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::form::Form;
use super::index::{Found, Index};
use super::lexicon::{AreaKind, Hints, Of, TermId, each_hint};
use super::message::Message;
use super::orders::is_order;
use super::terms::Place;
use super::text::{OWN, Stretch};

/// A message as its index sees it.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) words: Vec<Word>,
    /// By area, 0..: how much the message speaks of it.
    pub(super) areas: Vec<f64>,
    /// The same of the beginnings of its sentences.
    pub(super) requests: Vec<f64>,
    /// What speaks of areas and has been heard: saying it again says no more.
    heard: HashSet<(*const [u8; 2], Manner), FixedState>,
    /// What of the areas is the message's form and no word of it.
    pub(super) form: Option<(usize, f64)>,
    /// Whether any word surely speaks of an area.
    pub(super) speaks: bool,
    /// Whether its form is that of a question how something is.
    pub(super) is_inquiry: bool,
    /// The kinds of work that the beginnings of its sentences surely speak of, in their order.
    pub(super) asked: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) found: Found,
    pub(super) weight: f64,
}

/// How something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Manner {
    Own,
    /// Quoted, pasted, or in a template.
    Beside,
    /// As what is not meant.
    Denied,
}

impl Manner {
    fn of(weight: f64) -> Self {
        match weight {
            ..0.0 => Self::Denied,
            ..OWN => Self::Beside,
            _ => Self::Own,
        }
    }
}

/// What the form of a message is worth, in strong words.
const OF_A_DECISION: f64 = 1.5;
const OF_AN_INQUIRY: f64 = 0.5;
const OF_AN_ORDER: f64 = 0.7;

/// A hint that is worth this much is no chance.
const SURELY: f64 = 0.75;

/// How many words at the beginning of a sentence tell what is asked for.
const BEGINNING: usize = 5;
/// And until where among them a clause with the verb may begin, and the verb stand.
const VERB: usize = 3;
const LATEST_VERB: usize = 8;

impl Index<'_> {
    /// Reads the stretches of a message.
    pub(super) fn said(&self, message: &Message<'_>, stretches: &[Stretch]) -> Said {
        let areas = self.lexicon.areas.len();
        let mut said = Said {
            words: Vec::with_capacity(message.words.len()),
            areas: vec![0.0; areas],
            requests: vec![0.0; areas],
            heard: HashSet::default(),
            form: None,
            speaks: false,
            is_inquiry: message.form == Form::Inquiry,
            asked: Vec::new(),
        };
        self.add_form(message.form, &mut said);
        let (mut sentence, mut clause) = (usize::MAX, usize::MAX);
        let mut begun = 0;
        for stretch in stretches {
            if stretch.sentence != sentence {
                sentence = stretch.sentence;
                begun = 0;
            } else if stretch.clause != clause && !stretch.is_code && is_order(&message.text[stretch.range.clone()]) {
                // What is told first is no request: `the queue grows, find out why`.
                begun = 0;
            }
            clause = stretch.clause;
            let words = message.words(stretch);
            self.add_areas_of(message.text, words.clone(), stretch, &mut begun, &mut said);
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
        text: &str,
        words: impl Iterator<Item = &'f Found>,
        stretch: &Stretch,
        begun: &mut usize,
        said: &mut Said,
    ) {
        let mut spoken: Vec<Option<TermId>> = Vec::with_capacity(words.size_hint().1.unwrap_or(0));
        let (mut wholes, mut implied) = (Vec::new(), Vec::new());
        let mut ranges = Vec::new();
        for word in words {
            match word.place {
                Place::Word if word.says => {
                    spoken.push(word.term);
                    ranges.push(word.range.clone());
                }
                Place::Word => {}
                Place::Whole => wholes.extend(word.term),
                Place::Implied => implied.push(word.term),
            }
        }
        // The verb is the first word that says anything: a legal tag is no order to tag.
        let verb = match *begun {
            begun if begun < VERB => {
                let is_stop = |term: &&Option<TermId>| term.is_some_and(|term| self.lexicon.is_stop(term));
                begun + spoken.iter().take_while(is_stop).count()
            }
            _ => 0,
        };
        let mut at = 0;
        let manner = Manner::of(stretch.weight);
        let mut take = |hints: Hints, terms: usize, counts: bool| {
            at += terms;
            let is_new = hints.is_empty() || said.heard.insert((hints.as_ptr(), manner));
            let is_modifier = counts && !hints.is_empty() && modifies(self, text, &spoken, &ranges, at - 1);
            let begins = *begun < BEGINNING && !stretch.is_code;
            let asks = *begun <= verb && *begun < LATEST_VERB && !stretch.is_code && counts;
            let hints = each_hint(hints).filter(|_| is_new);
            for hint in hints.filter(|hint| hint.of == Of::All || (asks && hint.of == Of::Requests)) {
                // What shall not be done is surely not what is asked for.
                let weight = if stretch.weight < 0.0 { -hint.weight } else { hint.weight * stretch.weight };
                let is_kind = self.lexicon.areas[hint.area].kind == AreaKind::Kind;
                let weight = if is_modifier && is_kind { weight * MODIFIES } else { weight };
                said.areas[hint.area] += weight;
                said.speaks |= hint.of == Of::All && weight >= SURELY;
                if begins {
                    said.requests[hint.area] += weight;
                    let area = hint.area;
                    if weight >= SURELY && self.lexicon.areas[area].kind == AreaKind::Kind {
                        said.asked.push(area);
                    }
                }
            }
            if counts {
                *begun += terms;
            }
        };
        self.each_hints(&spoken, &mut |hints, terms| take(hints, terms, true));
        for whole in wholes {
            take(self.lexicon.hints(whole), 0, false);
        }
        self.each_hints(&implied, &mut |hints, terms| take(hints, terms, false));
    }
}

/// What a kind of work is worth that only says which thing is meant: `the document preview`.
const MODIFIES: f64 = 0.35;

/// Whether a word stands between an article and the noun that it only describes: another word follows at once that says
/// something, and nothing of the same work.
fn modifies(index: &Index<'_>, text: &str, terms: &[Option<TermId>], ranges: &[Range<usize>], at: usize) -> bool {
    const ARTICLES: [&str; 5] = ["the", "a", "an", "our", "their"];
    let (Some(word), Some(next)) = (ranges.get(at), ranges.get(at + 1)) else { return false };
    let before = text.get(..word.start).unwrap_or_default().split_whitespace().next_back().unwrap_or_default();
    let has_article = ARTICLES.iter().any(|article| article.eq_ignore_ascii_case(before));
    // `the tests fail`: what is many stands for itself, and so does `a CODEOWNERS file`.
    let is_many = text.get(word.clone()).is_some_and(|word| word.ends_with('s'));
    let is_itself = text.get(next.clone()).is_some_and(|next| ["file", "folder"].contains(&next));
    let follows = text.get(word.end..next.start) == Some(" ");
    if !has_article || is_many || is_itself || !follows || terms[at + 1].is_some_and(|term| index.lexicon.is_stop(term))
    {
        return false;
    }
    let hints = |at: usize| each_hint(terms[at].map_or(&[], |term| index.lexicon.hints(term)));
    !hints(at + 1).any(|hint| hints(at).any(|own| own.area == hint.area))
}
