//! An index of the words of notes: those about a task are found without reading the others.
//!
//! The cache keeps it as one text:
//!
//! ```text
//! {"about":"…","parts":[…],"tags":[…]}   what it was made from, the bytes of each part, and tags
//! +4f1c09…                                ids of the notes, one a line; `-`: it is not in force
//! 0000000002a70000000004c1…              where each note ends in the next part
//! {"id":"4f1c09…",…}                     the notes, one a line
//! 00000000000f00000000003c…              where each word ends in the next part
//! hash TAB 0 4t 17                        words, sorted, with the notes in force that have them; `t`: in their titles
//! ```
//!
//! Of ten thousand notes, a search parses few: everything but the tags is found where it stands.

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

/// Digits of a place in a text.
const PLACE: usize = 12;

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
    notes: Lines,
    words: Lines,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    about: String,
    /// The bytes of the ids, of the notes and of the words; of both, first where they end.
    parts: [usize; 5],
    /// Tags, languages and frameworks, with the notes in force that have them.
    tags: Vec<(String, Vec<usize>)>,
}

/// Where lines are that are found by their number.
#[derive(Debug, Default)]
struct Lines {
    ends: Range<usize>,
    text: Range<usize>,
}

impl Lines {
    fn count(&self) -> usize {
        self.ends.len() / PLACE
    }

    /// A line, with its end.
    fn get<'b>(&self, bytes: &'b [u8], index: usize) -> Option<&'b [u8]> {
        let end = |index: usize| {
            let digits = bytes.get(self.ends.clone())?.get(index * PLACE..(index + 1) * PLACE)?;
            usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let start = if index == 0 { 0 } else { end(index - 1)? };
        bytes.get(self.text.clone())?.get(start..end(index)?)
    }
}

/// Lines as they are written.
#[derive(Default)]
struct NewLines {
    ends: String,
    text: Vec<u8>,
}

impl NewLines {
    fn push(&mut self, line: &[u8]) {
        self.text.extend(line);
        self.text.push(b'\n');
        self.ends.push_str(&format!("{:0PLACE$x}", self.text.len()));
    }
}

impl NoteIndex {
    /// `note` is the note in a value; the value can be read again.
    pub(crate) fn new<T: Serialize>(about: String, values: &[T], note: impl Fn(&T) -> &Decision) -> Self {
        let (mut ids, mut notes, mut words) = (String::new(), NewLines::default(), NewLines::default());
        let mut notes_with: BTreeMap<String, String> = BTreeMap::new();
        let mut tags: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut all_in_force = in_force(values.iter().map(&note)).into_iter().peekable();
        for (index, value) in values.iter().enumerate() {
            // An empty line is no note, which is said when it is read.
            notes.push(&serde_json::to_vec(value).unwrap_or_default());
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
        for (word, notes) in notes_with {
            words.push(format!("{word}\t{}", notes.trim_start()).as_bytes());
        }
        let texts = [ids.as_bytes(), notes.ends.as_bytes(), &notes.text, words.ends.as_bytes(), &words.text];
        let head = Head { about, parts: texts.map(<[u8]>::len), tags: tags.into_iter().collect() };
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        let (ids, notes, words) = parts(bytes.len(), head.parts).unwrap_or_default();
        bytes.extend(texts.concat());
        Self { bytes, head, ids, notes, words }
    }

    /// An index as it was written. `None`: it is none.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Self> {
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(bytes.get(..line)?).ok()?;
        let (ids, notes, words) = parts(line + 1, head.parts)?;
        let is_whole = words.text.end == bytes.len();
        is_whole.then_some(Self { bytes, head, ids, notes, words })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
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

    /// A note as it was written.
    pub(crate) fn line(&self, index: usize) -> Option<&[u8]> {
        self.notes.get(&self.bytes, index)
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, index: usize) -> Option<T> {
        serde_json::from_slice(self.line(index)?).ok()
    }

    /// All notes. `None`: the text is damaged.
    pub(crate) fn all<T: DeserializeOwned>(&self) -> Option<Vec<T>> {
        (0..self.len()).map(|index| self.get(index)).collect()
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
        while first < end {
            let middle = first.midpoint(end);
            let line = self.words.get(&self.bytes, middle).unwrap_or_default();
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

/// Where parts of these lengths are, one after the other: the ids, the notes and the words.
fn parts(mut start: usize, lengths: [usize; 5]) -> Option<(Range<usize>, Lines, Lines)> {
    let mut ranges = [const { 0..0 }; 5];
    for (range, length) in ranges.iter_mut().zip(lengths) {
        *range = start..start.checked_add(length)?;
        start = range.end;
    }
    let [ids, note_ends, notes, word_ends, words] = ranges;
    Some((ids, Lines { ends: note_ends, text: notes }, Lines { ends: word_ends, text: words }))
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
            let index = NoteIndex::read(index.as_bytes().to_vec()).expect("the same");
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

        #[test]
        fn no_bytes_make_an_index_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>()) {
            let _ = NoteIndex::read(bytes.clone());
            let notes = [note(1, None, ["token", "text", "tag", "Rust"].map(str::to_owned))];
            let mut whole = NoteIndex::new(String::new(), &notes, |note| note).as_bytes().to_vec();
            let at = cut.index(whole.len());
            whole[at] = bytes.first().copied().unwrap_or(0);
            if let Some(index) = NoteIndex::read(whole) {
                let _ = (index.all::<Decision>(), index.hits(&Topic::new("token text tag")), index.ids().count());
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
