//! The signals in a message: its words, and the areas of work that they point to.

use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::form::Form;
use super::index::{Index, Token};
use super::lexicon::{AreaKind, Hints, Of, TermId, each_hint};
use super::message::Message;
use super::orders::is_order;
use super::terms::TermKind;
use super::text::{OWN, Span};

/// What one message, or a part of it, says.
#[derive(Clone)]
pub(super) struct Signals {
    pub(super) words: Vec<Word>,
    /// By area, 0..: how much the message points to it.
    pub(super) areas: Vec<f64>,
    /// The same for the beginnings of its sentences.
    pub(super) requests: Vec<f64>,
    /// Hints that have been counted, with whether they were denied and in the user's own text: repeating a word adds
    /// nothing.
    counted: HashSet<(*const [u8; 2], bool, bool), FixedState>,
    /// The area and amount that come from the message's form, not from its words.
    pub(super) form: Option<(usize, f64)>,
    /// Whether any word clearly names an area.
    pub(super) speaks: bool,
    /// Whether the message asks for information.
    pub(super) is_inquiry: bool,
    /// The kinds of work that the beginnings of its sentences clearly name, in order.
    pub(super) asked: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) token: Token,
    pub(super) weight: f64,
}

/// The amount that the form of a message adds to an area; a strong word adds 1.
const OF_A_DECISION: f64 = 1.5;
const OF_AN_INQUIRY: f64 = 0.5;
const OF_AN_ORDER: f64 = 0.7;

/// From this weight on, a hint is no coincidence.
const SURELY: f64 = 0.75;

/// The request is in this many words at the beginning of a sentence.
const BEGINNING: usize = 5;
impl Index<'_> {
    /// The signals in some spans of a message.
    pub(super) fn signals(&self, message: &Message<'_>, spans: &[Span]) -> Signals {
        let areas = self.lexicon.areas.len();
        let mut signals = Signals {
            words: Vec::with_capacity(message.words.len()),
            areas: vec![0.0; areas],
            requests: vec![0.0; areas],
            counted: HashSet::default(),
            form: None,
            speaks: false,
            is_inquiry: message.form == Form::Inquiry,
            asked: Vec::new(),
        };
        self.add_form(message.form, &mut signals);
        let (mut sentence, mut clause) = (usize::MAX, usize::MAX);
        let mut begun = 0;
        for span in spans {
            if span.sentence != sentence {
                sentence = span.sentence;
                begun = 0;
            } else if span.clause != clause && !span.is_code && is_order(&message.text[span.range.clone()]) {
                // The statement before an order is no request: `the queue grows, find out why`.
                begun = 0;
            }
            clause = span.clause;
            let words = message.words(span);
            self.add_areas_of(message.text, words.clone(), span, &mut begun, &mut signals);
            signals.words.extend(words.map(|token| Word { token: token.clone(), weight: span.weight }));
        }
        signals
    }

    /// Adds what the form of the message means, whatever its words: asking for a decision is planning, a question is
    /// research, anything else is implementation.
    fn add_form(&self, form: Form, signals: &mut Signals) {
        let (area, weight) = match form {
            Form::Decision => ("planning", OF_A_DECISION),
            Form::Inquiry => ("research", OF_AN_INQUIRY),
            Form::Order => ("implementation", OF_AN_ORDER),
        };
        if let Some(area) = self.lexicon.areas.iter().position(|it| it.name == area) {
            signals.areas[area] += weight;
            signals.requests[area] += weight;
            signals.form = Some((area, weight));
        }
    }

    fn add_areas_of<'f>(
        &self,
        text: &str,
        words: impl Iterator<Item = &'f Token>,
        span: &Span,
        begun: &mut usize,
        signals: &mut Signals,
    ) {
        let mut spoken: Vec<Option<TermId>> = Vec::with_capacity(words.size_hint().1.unwrap_or(0));
        let (mut wholes, mut implied) = (Vec::new(), Vec::new());
        let mut ranges = Vec::new();
        for word in words {
            match word.kind {
                TermKind::Word if word.says => {
                    spoken.push(word.term);
                    ranges.push(word.range.clone());
                }
                TermKind::Word => {}
                TermKind::Whole => wholes.extend(word.term),
                TermKind::Implied => implied.push(word.term),
            }
        }
        let mut at = 0;
        let (is_denied, is_own) = (span.weight < 0.0, span.weight >= OWN);
        let mut take = |hints: Hints, terms: usize, counts: bool| {
            at += terms;
            let is_new = hints.is_empty() || signals.counted.insert((hints.as_ptr(), is_denied, is_own));
            let is_modifier = counts && !hints.is_empty() && modifies(self, text, &spoken, &ranges, at - 1);
            let begins = *begun < BEGINNING && !span.is_code;
            let asks = *begun == 0 && !span.is_code && counts;
            let hints = each_hint(hints).filter(|_| is_new);
            for hint in hints.filter(|hint| hint.of == Of::All || (asks && hint.of == Of::Requests)) {
                // Excluded work counts in full against its area.
                let weight = if is_denied { -hint.weight } else { hint.weight * span.weight };
                let is_kind = self.lexicon.areas[hint.area].kind == AreaKind::Kind;
                let weight = if is_modifier && is_kind { weight * MODIFIES } else { weight };
                signals.areas[hint.area] += weight;
                signals.speaks |= hint.of == Of::All && weight >= SURELY;
                if begins {
                    signals.requests[hint.area] += weight;
                    let area = hint.area;
                    if weight >= SURELY && self.lexicon.areas[area].kind == AreaKind::Kind {
                        signals.asked.push(area);
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

/// The weight of a kind of work that only qualifies a noun: `the document preview`.
const MODIFIES: f64 = 0.35;

/// Whether a word stands between an article and a noun that it qualifies. The noun must have content of its own, and of
/// other areas.
fn modifies(index: &Index<'_>, text: &str, terms: &[Option<TermId>], ranges: &[Range<usize>], at: usize) -> bool {
    const ARTICLES: [&str; 5] = ["the", "a", "an", "our", "their"];
    let (Some(word), Some(next)) = (ranges.get(at), ranges.get(at + 1)) else { return false };
    let before = text.get(..word.start).unwrap_or_default().split_whitespace().next_back().unwrap_or_default();
    let has_article = ARTICLES.iter().any(|article| article.eq_ignore_ascii_case(before));
    // Not in `the tests fail`, where the plural is the noun, nor in `a CODEOWNERS file`.
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
