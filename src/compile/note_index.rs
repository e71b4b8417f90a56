//! An index of the words of notes: those about a task are found without reading the others.
//!
//! The cache keeps it as two texts. The first:
//!
//! ```text
//! {"about":"…","parts":[…],"tags":[…]}   what it was made from, the bytes of each part, and tags
//! +4f1c09…                                ids of the notes, one a line; `-`: it is not in force
//! 0000000002a7<16 digits>0000000004c1…   where each note ends in the second text, and a hash of the note
//! 00000000000f00000000003c…              where each word ends in the next part
//! hash TAB 0 4t 17                        words, sorted, with the notes in force that have them; `t`: in their titles
//! ```
//!
//! The second has the notes as JSON, one a line. Of ten thousand notes, a search reads few, and parses no others:
//! everything but the tags is found where it stands.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Task;
use super::decisions::in_force;
use super::knowledge::{NoteRank, labels, subject};
use super::topic::{Hits, Topic};
use crate::model::Decision;

/// Digits of a place in a text, and of a note's hash.
const PLACE: usize = 12;
const HASH: usize = 16;

impl Task {
    /// The notes that are about the task, the most relevant first: of `notes`, an index and a place in it each, which must
    /// be in force. See [`Task::rank`].
    pub(crate) fn rank_indexed(&self, indexes: &[&NoteIndex], notes: &[(usize, usize)]) -> Vec<NoteRank> {
        let hits: Vec<Vec<(Hits, Hits)>> = indexes.iter().map(|index| index.hits(&self.topic)).collect();
        let of = |(index, place): &(usize, usize)| hits.get(*index).and_then(|hits| hits.get(*place)).copied();
        self.rank(notes.iter().map(|note| of(note).unwrap_or_default()).collect())
    }
}

/// Notes and their words.
#[derive(Debug)]
pub(crate) struct NoteIndex {
    bytes: Vec<u8>,
    head: Head,
    ids: Range<usize>,
    notes: Places<{ PLACE + HASH }>,
    texts: Box<dyn NoteTexts>,
    words: Places<PLACE>,
    word_texts: Range<usize>,
}

/// The second text of an index, wherever it is.
pub(crate) trait NoteTexts: std::fmt::Debug + Send + Sync {
    /// `None`: it cannot be read.
    fn read(&self, range: Range<usize>) -> Option<Vec<u8>>;

    /// It is damaged, so that the index has to be made again.
    fn discard(&self);
}

impl NoteTexts for Vec<u8> {
    fn read(&self, range: Range<usize>) -> Option<Vec<u8>> {
        self.get(range).map(<[u8]>::to_vec)
    }

    fn discard(&self) {}
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    about: String,
    /// The bytes of the ids, of where notes and words end, and of the words.
    parts: [usize; 4],
    /// Tags, languages and frameworks, with the notes in force that have them.
    tags: Vec<(String, Vec<usize>)>,
}

/// Where lines are in another text, by their number: rows of so many digits.
#[derive(Debug, Default)]
struct Places<const ROW: usize>(Range<usize>);

impl<const ROW: usize> Places<ROW> {
    fn count(&self) -> usize {
        self.0.len() / ROW
    }

    fn row<'b>(&self, bytes: &'b [u8], index: usize) -> Option<&'b str> {
        let row = bytes.get(self.0.clone())?.get(index.checked_mul(ROW)?..)?.get(..ROW)?;
        std::str::from_utf8(row).ok()
    }

    /// Where a line is, with its end.
    fn get(&self, bytes: &[u8], index: usize) -> Option<Range<usize>> {
        let end = |index| usize::from_str_radix(self.row(bytes, index)?.get(..PLACE)?, 16).ok();
        let start = if index == 0 { 0 } else { end(index - 1)? };
        Some(start..end(index)?)
    }
}

/// The hash that goes with a note's place.
fn hash(note: &[u8]) -> String {
    blake3::hash(note).to_hex()[..HASH].to_owned()
}

impl NoteIndex {
    /// `note` is the note in a value; the value can be read again.
    pub(crate) fn new<T: Serialize>(about: String, values: &[T], note: impl Fn(&T) -> &Decision) -> Self {
        let (mut ids, mut places, mut texts) = (String::new(), String::new(), Vec::new());
        let mut notes_with: BTreeMap<String, String> = BTreeMap::new();
        let mut tags: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut all_in_force = in_force(values.iter().map(&note)).into_iter().peekable();
        for (index, value) in values.iter().enumerate() {
            // An empty line is no note, which is said when it is read.
            let mut text = serde_json::to_vec(value).unwrap_or_default();
            text.push(b'\n');
            texts.extend(&text);
            places.push_str(&format!("{:0PLACE$x}{}", texts.len(), hash(&text)));
            let note = note(value);
            let is_in_force = all_in_force.next_if(|next| std::ptr::eq(*next, note)).is_some();
            ids.push_str(&format!("{}{}\n", if is_in_force { '+' } else { '-' }, note.id));
            if !is_in_force {
                continue;
            }
            for tag in labels(note) {
                let tagged = tags.entry(tag.clone()).or_default();
                if tagged.last() != Some(&index) {
                    tagged.push(index);
                }
            }
            for (word, is_in_title) in Topic::words_of(&subject(note), &note.text) {
                let mark = if is_in_title { "t" } else { "" };
                notes_with.entry(word).or_default().push_str(&format!(" {index}{mark}"));
            }
        }
        let (mut word_places, mut words) = (String::new(), String::new());
        for (word, notes) in notes_with {
            words.push_str(&format!("{word}\t{}\n", notes.trim_start()));
            word_places.push_str(&format!("{:0PLACE$x}", words.len()));
        }
        let parts = [ids, places, word_places, words];
        let head = Head { about, parts: parts.each_ref().map(String::len), tags: tags.into_iter().collect() };
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        let start = bytes.len();
        bytes.extend(parts.concat().into_bytes());
        Self::of(bytes, start, head, Box::new(texts))
    }

    /// An index as it was written. `None`: it is none, or its second text is cut off.
    pub(crate) fn read(bytes: Vec<u8>, texts: Box<dyn NoteTexts>) -> Option<Self> {
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(bytes.get(..line)?).ok()?;
        let length = head.parts.iter().try_fold(line + 1, |sum: usize, part| sum.checked_add(*part));
        (length == Some(bytes.len())).then_some(())?;
        let index = Self::of(bytes, line + 1, head, texts);
        let last = index.len().checked_sub(1);
        last.is_none_or(|last| index.line(last).is_some()).then_some(index)
    }

    /// The parts begin at `start`, one after the other.
    fn of(bytes: Vec<u8>, start: usize, head: Head, texts: Box<dyn NoteTexts>) -> Self {
        let mut end = start;
        let [ids, notes, words, word_texts] = head.parts.map(|length| {
            end += length;
            end - length..end
        });
        Self { bytes, head, ids, notes: Places(notes), texts, words: Places(words), word_texts }
    }

    /// The first text, and the second if it can be read.
    pub(crate) fn written(&self) -> Option<(&[u8], Vec<u8>)> {
        Some((&self.bytes, self.texts.read(0..self.end_of_texts()?)?))
    }

    fn end_of_texts(&self) -> Option<usize> {
        match self.len().checked_sub(1) {
            Some(last) => Some(self.notes.get(&self.bytes, last)?.end),
            None => Some(0),
        }
    }

    /// What it was made from.
    pub(crate) fn about(&self) -> &str {
        &self.head.about
    }

    pub(crate) fn len(&self) -> usize {
        self.notes.count()
    }

    /// The notes' ids in order, and whether they are in force.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (&str, bool)> {
        let ids = self.bytes.get(self.ids.clone()).unwrap_or_default();
        std::str::from_utf8(ids).unwrap_or_default().lines().map(|line| match line.strip_prefix('+') {
            Some(id) => (id, true),
            None => (line.strip_prefix('-').unwrap_or(line), false),
        })
    }

    /// A note as it was written. `None`: it cannot be read, or is damaged.
    pub(crate) fn line(&self, index: usize) -> Option<Vec<u8>> {
        let place = self.notes.get(&self.bytes, index)?;
        let text = self.texts.read(place).filter(|text| self.is_whole(index, text));
        text.or_else(|| {
            self.texts.discard();
            None
        })
    }

    fn is_whole(&self, index: usize, text: &[u8]) -> bool {
        self.notes.row(&self.bytes, index).is_some_and(|row| row.get(PLACE..) == Some(&*hash(text)))
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, index: usize) -> Option<T> {
        serde_json::from_slice(&self.line(index)?).ok()
    }

    /// All notes. `None`: one cannot be read, or is damaged.
    pub(crate) fn all<T: DeserializeOwned>(&self) -> Option<Vec<T>> {
        let texts = self.texts.read(0..self.end_of_texts()?)?;
        let note = |index| {
            let text = texts.get(self.notes.get(&self.bytes, index)?)?;
            if self.is_whole(index, text) { serde_json::from_slice(text).ok() } else { None }
        };
        let all = (0..self.len()).map(note).collect::<Option<_>>();
        if all.is_none() {
            self.texts.discard();
        }
        all
    }

    /// Which words of the task each note has: in tags that the task names as a whole, and anywhere. Nothing of notes that
    /// are not in force.
    pub(super) fn hits(&self, topic: &Topic) -> Vec<(Hits, Hits)> {
        let mut hits = vec![(Hits::default(), Hits::default()); self.len()];
        for (tag, notes) in self.head.tags.iter().filter(|(tag, _)| topic.names(tag)) {
            let found = topic.hits(tag, "");
            for index in notes {
                if let Some((tags, _)) = hits.get_mut(*index) {
                    tags.add(found);
                }
            }
        }
        for (word, stem) in topic.stems().enumerate() {
            for found in self.notes_with(stem).split(|byte| *byte == b' ').filter(|found| !found.is_empty()) {
                let digits = found.strip_suffix(b"t").unwrap_or(found);
                let add = |number: usize, digit: &u8| {
                    number.saturating_mul(10).saturating_add(usize::from(digit.wrapping_sub(b'0')))
                };
                if let Some((_, all)) = hits.get_mut(digits.iter().fold(0, add)) {
                    all.add(Hits::of_word(word, digits.len() < found.len()));
                }
            }
        }
        hits
    }

    /// The notes that have a word, as they are written.
    fn notes_with(&self, stem: &str) -> &[u8] {
        let (mut first, mut end) = (0, self.words.count());
        let words = self.bytes.get(self.word_texts.clone()).unwrap_or_default();
        while first < end {
            let middle = first.midpoint(end);
            let line = self.words.get(&self.bytes, middle).and_then(|line| words.get(line)).unwrap_or_default();
            let tab = line.iter().position(|byte| *byte == b'\t').unwrap_or(line.len());
            let (word, notes) = line.split_at(tab);
            match stem.as_bytes().cmp(word) {
                Ordering::Equal => return notes.trim_ascii(),
                Ordering::Less => end = middle,
                Ordering::Greater => first = middle + 1,
            }
        }
        &[]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::knowledge::hits_of;
    use super::*;
    use crate::model::{DecisionId, Note};

    fn note(number: usize, supersedes: Option<usize>, [title, text, tag, language]: [String; 4]) -> Decision {
        let id = |number: usize| DecisionId::parse(&format!("{number:012x}")).expect("an id");
        Decision {
            note: Some(Note { languages: vec![language], ..Note::default() }),
            tags: vec![tag.clone(), tag],
            scope: vec!["src/*.rs".to_owned()],
            supersedes: supersedes.map(id),
            ..Decision::new(id(number), title, text)
        }
    }

    fn phrase() -> impl Strategy<Value = String> {
        let word = prop::sample::select(vec![
            "token",
            "Tokens",
            "rotate",
            "rotating",
            "rotateKeys",
            "the",
            "of",
            "x",
            "Größe",
            "ÜBER",
            "日本",
            "r",
            "C++",
            "src",
            "sql's",
            "2026",
            "\n",
            "\t",
        ]);
        prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
    }

    proptest! {
        /// An index finds what reading every note finds.
        #[test]
        fn an_index_has_the_hits_of_its_notes(
            texts in prop::collection::vec((phrase(), phrase(), phrase(), phrase()), 0..12),
            old in prop::collection::vec(prop::option::of(0_usize..12), 12),
            task in phrase(),
        ) {
            let notes: Vec<Decision> = texts
                .into_iter()
                .enumerate()
                .map(|(number, (title, text, tag, language))| note(number, old[number], [title, text, tag, language]))
                .collect();
            let topic = Topic::new(&task);
            let index = NoteIndex::new("all".to_owned(), &notes, |note| note);
            let (bytes, texts) = index.written().expect("texts");
            let index = NoteIndex::read(bytes.to_vec(), Box::new(texts)).expect("the same");
            let in_force = in_force(&notes);
            let expected: Vec<(Hits, Hits)> = notes
                .iter()
                .map(|note| match in_force.iter().any(|other| std::ptr::eq(*other, note)) {
                    true => hits_of(note, &topic),
                    false => Default::default(),
                })
                .collect();
            prop_assert_eq!(index.hits(&topic), expected);
            let is_in_force = |note: &&Decision| in_force.iter().any(|other| std::ptr::eq(*other, *note));
            let ids = notes.iter().map(|note| (note.id.as_str(), is_in_force(&note))).collect::<Vec<_>>();
            prop_assert_eq!(index.ids().collect::<Vec<_>>(), ids);
            prop_assert_eq!(index.all::<Decision>().expect("notes"), notes);
        }

        /// A byte of either text is another one: nothing panics, and no note is another than it was.
        #[test]
        fn no_bytes_make_an_index_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
            let _ = NoteIndex::read(bytes.clone(), Box::new(bytes.clone()));
            let notes = [1, 2].map(|number| note(number, None, ["token", "text", "tag", "Rust"].map(str::to_owned)));
            let index = NoteIndex::new(String::new(), &notes, |note| note);
            let (first, second) = index.written().expect("texts");
            let (mut whole, length) = ([first, &second].concat(), first.len());
            let at = at.index(whole.len());
            whole[at] = bytes.first().copied().unwrap_or(0);
            let texts = whole.split_off(length);
            if let Some(index) = NoteIndex::read(whole, Box::new(texts)) {
                let _ = (index.hits(&Topic::new("token text tag")), index.ids().count());
                let each = (0..index.len()).map(|place| index.get::<Decision>(place)).collect::<Option<Vec<_>>>();
                prop_assert_eq!(&index.all::<Decision>(), &each);
                prop_assert!(at < length || each.is_none_or(|each| each == notes));
            }
        }
    }

    #[test]
    fn notes_of_several_indexes_are_ranked_together() {
        let texts = |at: usize| match at {
            0 => ["Rotate signing keys", "Each month.", "keys", "Rust"],
            1 => ["Rotate logs", "A log grows.", "logs", "Rust"],
            _ => ["Paint the shed", "In blue.", "paint", "Rust"],
        };
        let notes: Vec<Decision> = (0..12).map(|at| note(at, None, texts(at % 5).map(str::to_owned))).collect();
        let task = Task::new("Rotate the signing keys");
        let all = task.rank(notes.iter().map(|note| hits_of(note, &task.topic)).collect());
        let (first, second) = notes.split_at(7);
        let parts = [first, second].map(|notes| NoteIndex::new(String::new(), notes, |note| note));
        let places =
            parts.iter().enumerate().flat_map(|(part, notes)| (0..notes.len()).map(move |place| (part, place)));
        let ranks = task.rank_indexed(&[&parts[0], &parts[1]], &places.collect::<Vec<_>>());
        let ranked = |ranks: Vec<NoteRank>| {
            ranks.into_iter().map(|rank| (rank.index, rank.relevance, rank.shared)).collect::<Vec<_>>()
        };
        let all = ranked(all);
        assert!(!all.is_empty() && all == ranked(ranks), "{all:?}");
    }
}
