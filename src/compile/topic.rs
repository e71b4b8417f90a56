//! The subject of a task, and the relevance of texts to it.
//!
//! Uses integers only: floating-point logarithms differ between machines, but the same input must give the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{IntoMap, stem, words};

/// Most words of a task that count, one bit each.
const MAX_WORDS: usize = 64;

/// The distinct words of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Topic {
    /// In their first form in the task, in lower case.
    words: Vec<String>,
    stems: Vec<String>,
    /// The first bytes of the stems. Few words of a long text begin like one, and only those need stemming.
    prefixes: BTreeSet<[u8; 2]>,
}

/// Which words of the task are in a text: in its title, and anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Hits {
    title: u64,
    anywhere: u64,
}

/// The weight of each word of the task for some texts: rare words weigh more.
pub(super) struct Weights(Vec<u32>);

impl Hits {
    fn has(self, index: usize) -> bool {
        self.anywhere >> index & 1 == 1
    }

    /// Of one word of the task.
    pub(super) fn of_word(index: usize, is_in_title: bool) -> Self {
        let anywhere = 1 << index;
        Self { title: if is_in_title { anywhere } else { 0 }, anywhere }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.title |= more.title;
        self.anywhere |= more.anywhere;
    }

    /// Whether both have one of the words.
    pub(super) fn meets(self, other: &Self) -> bool {
        self.anywhere & other.anywhere != 0
    }
}

impl Topic {
    pub(super) fn new(task: &str) -> Self {
        let mut topic = Self::default();
        // The end of `user's` is no word; `GraphQL` is one, and its parts are, too.
        let whole = task.split(|c: char| !c.is_alphanumeric()).filter(|word| words(word).nth(1).is_some());
        let words = words(task).filter(|word| *word != "s").chain(whole);
        for (word, stem) in words.filter_map(|word| Some((word, stem(word)?))) {
            if topic.stems.len() < MAX_WORDS && !topic.stems.contains(&stem) {
                topic.prefixes.insert(prefix(&stem));
                topic.words.push(word.to_lowercase());
                topic.stems.push(stem);
            }
        }
        topic
    }

    /// The words of a text as tasks are compared with it, and whether they are in its title.
    pub(super) fn words_of(title: &str, text: &str) -> BTreeMap<String, bool> {
        let mut all = words(text).filter_map(|word| Some((stem(word)?, false))).into_map();
        all.extend(words(title).filter_map(|word| Some((stem(word)?, true))));
        all
    }

    /// The words of the task, in the order of the bits of [`Hits`].
    pub(super) fn stems(&self) -> impl Iterator<Item = &str> {
        self.stems.iter().map(String::as_str)
    }

    pub(super) fn hits(&self, title: &str, text: &str) -> Hits {
        let title = self.found(title);
        Hits { title, anywhere: title | self.found(text) }
    }

    fn found(&self, text: &str) -> u64 {
        if self.stems.is_empty() {
            return 0;
        }
        words(text)
            .filter(|word| self.prefixes.contains(&prefix(word)))
            .filter_map(stem)
            .filter_map(|stem| self.stems.iter().position(|other| *other == stem))
            .fold(0, |found, index| found | 1 << index)
    }

    pub(super) fn weights(&self, texts: &[Hits]) -> Weights {
        let weight = |index: usize| {
            let count = texts.iter().filter(|hits| hits.has(index)).count();
            1 + (texts.len() / count.max(1)).max(1).ilog2()
        };
        Weights((0..self.stems.len()).map(weight).collect())
    }

    /// Whether a text is about the task, not just sharing a word by chance.
    pub(super) fn is_about(&self, hits: Hits) -> bool {
        hits.title != 0 || hits.anywhere.count_ones() >= 2 || (self.stems.len() == 1 && hits.anywhere != 0)
    }

    /// Whether all words of a name are in the task.
    pub(super) fn names(&self, name: &str) -> bool {
        let mut stems = words(name).filter_map(stem).peekable();
        stems.peek().is_some() && stems.all(|stem| self.stems.contains(&stem))
    }

    /// The words of the task that are in some of these texts, and in no more than `most`.
    pub(super) fn rare(&self, texts: impl Iterator<Item = Hits> + Clone, most: usize) -> Hits {
        let is_rare = |index: &usize| (1..=most).contains(&texts.clone().filter(|hits| hits.has(*index)).count());
        let anywhere = (0..self.stems.len()).filter(is_rare).fold(0, |found, index| found | 1 << index);
        Hits { title: anywhere, anywhere }
    }

    /// Whether the task is what a text is for: more than [`Self::is_about`], which is for texts on one project.
    pub(super) fn is_subject(&self, hits: Hits) -> bool {
        match self.stems.len() {
            0 => false,
            1 => hits.anywhere != 0,
            _ => hits.title != 0 && hits.anywhere.count_ones() >= 2,
        }
    }

    /// The relevance of a text to the task; 0 if it is not about it.
    pub(super) fn relevance(&self, hits: Hits, weights: &Weights) -> u32 {
        if !self.is_about(hits) {
            return 0;
        }
        let weight_of = |found: u64| -> u32 {
            weights.0.iter().enumerate().filter(|(index, _)| found >> index & 1 == 1).map(|(_, weight)| weight).sum()
        };
        weight_of(hits.anywhere) + weight_of(hits.title)
    }

    /// The words of the task that occur in a text.
    pub(super) fn shared(&self, hits: Hits) -> Vec<&str> {
        let found = |index: &usize| hits.has(*index);
        (0..self.stems.len()).filter(found).map(|index| self.words[index].as_str()).collect()
    }
}

/// The first two bytes of a word in lower case. All words that do not begin in ASCII count as equal, because their
/// first lower-case bytes are unknown without converting them.
fn prefix(word: &str) -> [u8; 2] {
    match word.as_bytes() {
        [first, second, ..] if first.is_ascii() && second.is_ascii() => {
            [first.to_ascii_lowercase(), second.to_ascii_lowercase()]
        }
        [only] => [only.to_ascii_lowercase(), 0],
        _ => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_and_titles_weigh_more() {
        let topic = Topic::new("Rotate the signing keys of the login endpoint");
        let texts = [
            topic.hits("Endpoints are versioned", "Each endpoint has a version."),
            topic.hits("Keys", "Signing keys are rotated every month"),
            topic.hits("Logins", "An endpoint for logging in"),
            topic.hits("Unrelated", "The login page is blue."),
        ];
        let weights = topic.weights(&texts);
        let relevance: Vec<u32> = texts.iter().map(|hits| topic.relevance(*hits, &weights)).collect();
        assert!(relevance[1] > relevance[0] && relevance[1] > relevance[2], "{relevance:?}");
        assert_eq!(relevance[3], 0, "one word in passing is not a topic");
        assert_eq!(topic.shared(texts[1]), ["rotate", "signing", "keys"]);
    }

    #[test]
    fn any_script_can_be_searched() {
        let topic = Topic::new("Über die Größe");
        let hits = topic.hits("ÜBER", "größe");
        assert_eq!(topic.shared(hits), ["über", "größe"]);
        let short = Topic::new("x");
        assert!(short.is_about(short.hits("", "a b X c")));
    }

    #[test]
    fn no_task_has_no_topic() {
        let topic = Topic::new("");
        let hits = topic.hits("anything", "at all");
        assert_eq!((topic.relevance(hits, &topic.weights(&[hits])), topic.is_about(hits)), (0, false));
    }
}
