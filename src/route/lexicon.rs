//! What squad knows of the trade: areas of work with their words, words that say little, and kinds of files.
//!
//! The tables beside this file are general knowledge and speak of no team. That of terms is compiled when squad is built
//! and used as it is.

mod slots;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use slots::{SLOTS, hash};

const TERMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/terms"));
const AREAS: &str = include_str!("tables/areas.txt");
const FILES: &str = include_str!("tables/files.txt");

/// A term of the tables. Terms of a team that are in no table are numbered after these.
pub(super) type TermId = u32;

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

/// That a term speaks of an area, by its place in the table of areas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    pub(super) area: usize,
    /// 0..1
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

/// The hints of a term, as they are written.
pub(super) type Hints = &'static [[u8; 2]];

const WEAK: f64 = 0.35;

/// How much a term says of the work in general.
const SAYS: [f64; 3] = [0.0, 0.35, 1.0];

#[derive(Default)]
pub(super) struct Lexicon {
    pub(super) areas: Vec<Area>,
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

    fn read() -> Self {
        let area = |line: &'static str| {
            let (name, kind) = line.strip_prefix("= ")?.split_once(' ')?;
            Some(Area { name, kind: if kind == "kind" { AreaKind::Kind } else { AreaKind::Topic } })
        };
        let mut files = HashMap::default();
        for (place, line) in FILES.lines().filter(|line| !line.starts_with('#')).enumerate() {
            if let Some((words, patterns)) = line.split_once(": ") {
                files.extend(patterns.split(' ').map(|pattern| (pattern, FileKind { place, words })));
            }
        }
        Self { areas: AREAS.lines().filter_map(area).collect(), files }
    }

    pub(super) fn area(&self, name: &str) -> Option<usize> {
        self.areas.iter().position(|area| area.name == name)
    }

    pub(super) fn id(&self, term: &str) -> Option<TermId> {
        let slots = (hash(term)..SLOTS).chain(0..SLOTS);
        let numbers = slots.map(|slot| number(2 * slot)).take_while(|number| *number != 0);
        numbers
            .map(|number| number - 1)
            .find(|id| record(*id).is_some_and(|mut record| record.text() == term.as_bytes()))
    }

    /// Whether a term speaks of any area.
    pub(super) fn speaks(&self, term: &str) -> bool {
        self.id(term).is_some_and(|term| !self.hints(term).is_empty())
    }

    /// How many terms the tables have.
    pub(super) fn size(&self) -> TermId {
        let first = place(0).unwrap_or(2 * SLOTS);
        TermId::try_from((first - 2 * SLOTS) / 4).unwrap_or(0)
    }

    pub(super) fn says(&self, term: TermId) -> f64 {
        let says = record(term).and_then(|mut record| {
            record.text();
            record.byte()
        });
        says.and_then(|says| SAYS.get(says)).copied().unwrap_or(1.0)
    }

    pub(super) fn is_stop(&self, term: TermId) -> bool {
        self.says(term) == 0.0
    }

    pub(super) fn hints(&self, term: TermId) -> Hints {
        record(term).map_or(&[], |mut record| {
            record.text();
            record.byte();
            record.hints()
        })
    }

    /// Of the terms of several words that begin with a term the longest whose other terms stand in a text after it: how
    /// many they are, and what they speak of together.
    pub(super) fn phrase(&self, term: TermId, after: &[Option<TermId>]) -> Option<(usize, Hints)> {
        let mut record = record(term)?;
        record.text();
        record.byte();
        record.hints();
        let mut longest = None;
        for _ in 0..record.byte()? {
            let count = record.byte()?;
            let rest = record.take(2 * count);
            let hints = record.hints();
            let stands = count <= after.len()
                && rest
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .zip(after)
                    .all(|(term, there)| *there == Some(TermId::from(u16::from_le_bytes(*term))));
            if stands && longest.is_none_or(|(most, _)| count >= most) {
                longest = Some((count, hints));
            }
        }
        longest
    }

    /// What a file of this name is for, in words.
    pub(super) fn file_kind(&self, chunk: &str) -> Option<&'static str> {
        if !chunk.contains(['.', '/']) && !chunk.ends_with("ile") {
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
}

/// The hints that are written, one by one.
pub(super) fn each_hint(hints: Hints) -> impl Iterator<Item = Hint> {
    hints.iter().map(|[area, code]| {
        let of = match code >> 1 {
            0 => Of::All,
            1 => Of::Roles,
            _ => Of::Requests,
        };
        Hint { area: usize::from(*area), weight: if code & 1 == 1 { 1.0 } else { WEAK }, of }
    })
}

/// What is left to read of a term's record.
struct Record(&'static [u8]);

fn number(at: usize) -> TermId {
    TERMS.get(at..at + 2).map_or(0, |bytes| TermId::from(bytes[0]) | TermId::from(bytes[1]) << 8)
}

fn place(term: TermId) -> Option<usize> {
    let at = 2 * SLOTS + 4 * term as usize;
    let bytes = TERMS.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
}

fn record(term: TermId) -> Option<Record> {
    // The places end where the first record begins.
    let is_known = 2 * SLOTS + 4 * (term as usize) < place(0)?;
    TERMS.get(place(term).filter(|_| is_known)?..).map(Record)
}

impl Record {
    fn byte(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(usize::from(*first))
    }

    fn take(&mut self, count: usize) -> &'static [u8] {
        let (taken, rest) = self.0.split_at_checked(count).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }

    fn text(&mut self) -> &'static [u8] {
        let length = self.byte().unwrap_or(0);
        self.take(length)
    }

    fn hints(&mut self) -> Hints {
        let count = self.byte().unwrap_or(0);
        self.take(2 * count).as_chunks::<2>().0
    }
}

/// The folders of a path in lower case, one by one and each with the next: `/docs/`, `/.github/workflows/`.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let slashes = || path.match_indices('/').map(|(at, _)| at);
    let to_next = |many: usize| slashes().zip(slashes().skip(many)).map(|(start, end)| &path[start..=end]);
    to_next(1).chain(to_next(2))
}
