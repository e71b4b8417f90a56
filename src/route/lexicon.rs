//! What squad knows of the trade: areas of work with their words, words that say little, and kinds of files.
//!
//! The tables beside this file are general knowledge and speak of no team.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

#[cfg(test)]
mod tables;

/// `areas.txt` and `common.txt` as they are looked up: reading them anew at each start would take five milliseconds.
const COMPILED: &str = include_str!("tables/compiled.txt");
const FILES: &str = include_str!("tables/files.txt");

/// A term of the tables. Terms of a team that are in no table are numbered after these.
pub(super) type TermId = u32;

/// An area of work, by its place in the table.
pub(super) type AreaId = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AreaKind {
    /// What is done: testing, documentation.
    Kind,
    /// What it is done to: a part of a product, a technology.
    Topic,
}

pub(super) struct Area {
    pub(super) name: &'static str,
    pub(super) kind: AreaKind,
}

/// How much a term speaks of an area, 0..1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    pub(super) area: AreaId,
    pub(super) weight: f64,
    pub(super) of: Of,
}

/// What a hint is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Messages and what the team says.
    All,
    /// Only what the team says of a member or a row.
    Roles,
    /// Only the beginning of a request.
    Requests,
}

/// How much a term says of the work in general, 0..1.
const STOP: f64 = 0.0;
const SAYS_LITTLE: f64 = 0.35;
const SAYS_SOMETHING: f64 = 1.0;

const STRONG: f64 = 1.0;
const WEAK: f64 = 0.35;

/// What is known of a term, by places in the [`Lexicon`]'s lists.
struct Entry {
    says: f64,
    hints: Range<usize>,
    /// Terms of several words that begin with this one.
    phrases: Range<usize>,
}

struct Phrase {
    /// The terms after the first.
    rest: Range<usize>,
    hints: Range<usize>,
}

#[derive(Default)]
pub(super) struct Lexicon {
    pub(super) areas: Vec<Area>,
    ids: HashMap<&'static str, TermId, FixedState>,
    entries: Vec<Entry>,
    hints: Vec<Hint>,
    phrases: Vec<Phrase>,
    rests: Vec<TermId>,
    files: HashMap<&'static str, FileKind, FixedState>,
}

/// What files with a name, an ending, or in a folder are for.
#[derive(Clone, Copy)]
struct FileKind {
    /// In the table.
    place: usize,
    words: &'static str,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::read);

impl Lexicon {
    pub(super) fn get() -> &'static Self {
        &LEXICON
    }

    pub(super) fn area(&self, name: &str) -> Option<usize> {
        self.areas.iter().position(|area| area.name == name)
    }

    pub(super) fn id(&self, term: &str) -> Option<TermId> {
        self.ids.get(term).copied()
    }

    /// How many terms the tables have.
    pub(super) fn size(&self) -> TermId {
        TermId::try_from(self.entries.len()).unwrap_or(TermId::MAX)
    }

    pub(super) fn says(&self, term: TermId) -> f64 {
        self.entry(term).map_or(SAYS_SOMETHING, |entry| entry.says)
    }

    pub(super) fn is_stop(&self, term: TermId) -> bool {
        self.says(term) == STOP
    }

    pub(super) fn hints(&self, term: TermId) -> &[Hint] {
        self.entry(term).map_or(&[], |entry| &self.hints[entry.hints.clone()])
    }

    /// Terms of several words that begin with a term: those after it, and what they speak of together.
    pub(super) fn phrases(&self, term: TermId) -> impl Iterator<Item = (&[TermId], &[Hint])> {
        let phrases = self.entry(term).map_or(&[][..], |entry| &self.phrases[entry.phrases.clone()]);
        phrases.iter().map(|phrase| (&self.rests[phrase.rest.clone()], &self.hints[phrase.hints.clone()]))
    }

    fn entry(&self, term: TermId) -> Option<&Entry> {
        self.entries.get(term as usize)
    }

    /// What a file of this name is for, in words.
    pub(super) fn file_kind(&self, chunk: &str) -> Option<&'static str> {
        if self.files.is_empty() || !chunk.contains(['.', '/']) && !chunk.ends_with("ile") {
            return None;
        }
        let path = format!("/{}", chunk.to_lowercase().replace('\\', "/").trim_start_matches("./"));
        let (_, name) = path.rsplit_once('/')?;
        if let Some(kind) = self.files.get(name).filter(|_| !name.starts_with('.')) {
            return Some(kind.words);
        }
        // `.ts` alone is a kind of file too; `e.g.` is not. `queue_test.go` ends with `_test.go`.
        let endings = name.match_indices(['.', '_']).map(|(at, _)| &name[at..]);
        let found =
            endings.chain(folders(&path)).filter_map(|pattern| Some((pattern.len(), *self.files.get(pattern)?)));
        // The longest pattern says most.
        found.max_by_key(|(length, kind)| (*length, kind.place)).map(|(_, kind)| kind.words)
    }

    fn read() -> Self {
        let mut lexicon = Self::default();
        let count = COMPILED.lines().count();
        lexicon.ids.reserve(count);
        lexicon.entries.reserve(count);
        for line in COMPILED.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix("= ").and_then(|area| area.split_once(' ')) {
                Some((name, kind)) => lexicon.areas.push(Area { name, kind: AreaKind::of(kind) }),
                None => lexicon.add(line),
            }
        }
        for (place, line) in FILES.lines().filter(|line| !line.starts_with('#')).enumerate() {
            if let Some((pattern, words)) = line.split_once('\t') {
                lexicon.files.insert(pattern, FileKind { place, words });
            }
        }
        lexicon
    }

    /// A line of the compiled table; see `lexicon/tables.rs`.
    fn add(&mut self, line: &'static str) {
        let mut cells = line.split('\t');
        let (Some(term), Some(own)) = (cells.next(), cells.next()) else { return };
        self.ids.insert(term, self.size());
        let says = match own.as_bytes().first() {
            Some(b'0') => STOP,
            Some(b'1') => SAYS_LITTLE,
            _ => SAYS_SOMETHING,
        };
        let hints = self.add_hints(own.get(1..).unwrap_or_default());
        let start = self.phrases.len();
        for (rest, hints) in cells.filter_map(|phrase| phrase.split_once(':')) {
            let start = self.rests.len();
            self.rests.extend(rest.split(' ').map(number));
            let hints = self.add_hints(hints);
            self.phrases.push(Phrase { rest: start..self.rests.len(), hints });
        }
        self.entries.push(Entry { says, hints, phrases: start..self.phrases.len() });
    }

    fn add_hints(&mut self, codes: &str) -> Range<usize> {
        let start = self.hints.len();
        self.hints.extend(codes.as_bytes().chunks_exact(2).map(|code| Hint::decode(code[0], code[1])));
        start..self.hints.len()
    }
}

fn number(digits: &str) -> TermId {
    digits.bytes().fold(0, |number, digit| number * 10 + TermId::from(digit.wrapping_sub(b'0')))
}

impl AreaKind {
    fn of(word: &str) -> Self {
        if word == "kind" { Self::Kind } else { Self::Topic }
    }
}

impl Hint {
    /// How areas are counted in the compiled table.
    const FIRST_AREA: u8 = b'!';

    /// A letter for whom a hint is taken from, a capital where it is strong.
    const LETTERS: [(Of, u8); 3] = [(Of::All, b'a'), (Of::Roles, b'r'), (Of::Requests, b'q')];

    fn decode(area: u8, letter: u8) -> Self {
        let known = Self::LETTERS.iter().find(|(_, known)| *known == letter.to_ascii_lowercase());
        let weight = if letter.is_ascii_uppercase() { STRONG } else { WEAK };
        Self { area: area.wrapping_sub(Self::FIRST_AREA), weight, of: known.map_or(Of::All, |(of, _)| *of) }
    }
}

/// The folders of a path in lower case, one by one and each with the next: `/docs/`, `/.github/workflows/`.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let slashes = || path.match_indices('/').map(|(at, _)| at);
    let to_next = |many: usize| slashes().zip(slashes().skip(many)).map(|(start, end)| &path[start..=end]);
    to_next(1).chain(to_next(2))
}
