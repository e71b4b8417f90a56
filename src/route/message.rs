//! A parsed message: its spans, its terms and its form.

use std::ops::Range;

use super::form::Form;
use super::index::{Index, Token};
use super::text::{OWN, Span, sentences};

pub(super) struct Message<'m> {
    pub(super) text: &'m str,
    pub(super) form: Form,
    pub(super) spans: Vec<Span>,
    /// In the order of the spans.
    pub(super) words: Vec<Token>,
}

impl<'m> Message<'m> {
    pub(super) fn read(index: &Index<'_>, text: &'m str, mut spans: Vec<Span>) -> Self {
        let mut words = Vec::with_capacity(spans.iter().map(|span| span.range.len() / 4).sum());
        for span in &mut spans {
            let start = words.len();
            index.each_token(text, span.range.clone(), &mut |found| words.push(found));
            span.words = start..words.len();
        }
        let form = Form::of(sentences(text, &spans));
        Self { text, form, spans, words }
    }

    /// The terms of a span, or of a piece of one.
    pub(super) fn words(&self, span: &Span) -> impl Iterator<Item = &Token> + Clone {
        let Range { start, end } = span.range;
        let is_inside = move |found: &&Token| start <= found.range.start && found.range.end <= end;
        self.words[span.words.clone()].iter().filter(is_inside)
    }

    /// The number of words that the user wrote.
    pub(super) fn length(&self) -> usize {
        let own = self.spans.iter().filter(|span| span.weight >= OWN);
        own.map(|span| self.text[span.range.clone()].split_whitespace().count()).sum()
    }
}
