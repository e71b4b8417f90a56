//! A message that has been read once: its stretches, its terms, its form.

use std::ops::Range;

use super::form::Form;
use super::index::{Found, Index};
use super::text::{OWN, Stretch, sentences};

pub(super) struct Message<'m> {
    pub(super) text: &'m str,
    pub(super) form: Form,
    pub(super) stretches: Vec<Stretch>,
    /// Those of each stretch side by side.
    pub(super) words: Vec<Found>,
}

impl<'m> Message<'m> {
    pub(super) fn read(index: &Index<'_>, text: &'m str, mut stretches: Vec<Stretch>) -> Self {
        let mut words = Vec::with_capacity(stretches.iter().map(|stretch| stretch.range.len() / 4).sum());
        for stretch in &mut stretches {
            let start = words.len();
            index.each_found(text, stretch.range.clone(), &mut |found| words.push(found));
            stretch.words = start..words.len();
        }
        let form = Form::of(sentences(text, &stretches));
        Self { text, form, stretches, words }
    }

    /// The terms of a stretch, or of a piece of one.
    pub(super) fn words(&self, stretch: &Stretch) -> impl Iterator<Item = &Found> + Clone {
        let Range { start, end } = stretch.range;
        let is_inside = move |found: &&Found| start <= found.range.start && found.range.end <= end;
        self.words[stretch.words.clone()].iter().filter(is_inside)
    }

    /// How many words people would count.
    pub(super) fn length(&self) -> usize {
        let own = self.stretches.iter().filter(|stretch| stretch.weight >= OWN);
        own.map(|stretch| self.text[stretch.range.clone()].split_whitespace().count()).sum()
    }
}
