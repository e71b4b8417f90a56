//! General knowledge about software work: areas with their words, words with little content, kinds of files.
//!
//! The tables next to this file mention no team. The table of terms is compiled at build time and used in place.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

const TERMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/terms"));
const AREAS: &str = include_str!("tables/areas.txt");
const FILES: &str = include_str!("tables/files.txt");

/// The number of a term. Terms that only a team uses follow those of the tables.
pub(super) type TermId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AreaKind {
    /// An activity: testing, documentation.
    Kind,
    /// A part of a product, or a technology.
    Topic,
}

pub(super) struct Area {
    pub(super) name: &'static str,
    pub(super) kind: AreaKind,
}

/// A term points to an area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    pub(super) area: usize,
    /// 0..1
    pub(super) weight: f64,
    pub(super) of: Of,
}

/// Where a hint applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// In messages and in the team's files.
    All,
    /// Only in roles and routing rows.
    Roles,
    /// Only at the beginning of a request.
    Requests,
}

/// The hints of a term in their stored form.
pub(super) type Hints = &'static [[u8; 2]];

const WEAK: f64 = 0.35;

/// How much content a term has, by class.
const SAYS: [f64; 3] = [0.0, 0.35, 1.0];

pub(super) struct Lexicon {
    pub(super) areas: Vec<Area>,
    /// The purpose of files with a name, an ending, or in a folder.
    files: HashMap<&'static str, &'static str, FixedState>,
    ids: HashMap<&'static str, TermId, FixedState>,
    terms: Vec<Term>,
}

/// What the tables know of a term.
struct Term {
    says: f64,
    hints: Hints,
    /// The terms after this one, and what they mean together.
    phrases: Vec<(Vec<TermId>, Hints)>,
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
        for line in FILES.lines().filter(|line| !line.starts_with('#')) {
            if let Some((words, patterns)) = line.split_once(": ") {
                files.extend(patterns.split(' ').map(|pattern| (pattern, words)));
            }
        }
        let mut records = Record(TERMS);
        let (names, terms): (Vec<_>, Vec<_>) = std::iter::from_fn(|| records.term()).unzip();
        let ids = names.into_iter().zip(0..).collect();
        Self { areas: AREAS.lines().filter_map(area).collect(), files, ids, terms }
    }

    pub(super) fn id(&self, term: &str) -> Option<TermId> {
        self.ids.get(term).copied()
    }

    /// Whether a term points to any area.
    pub(super) fn speaks(&self, term: &str) -> bool {
        self.id(term).is_some_and(|term| !self.hints(term).is_empty())
    }

    /// The number of terms in the tables.
    pub(super) fn size(&self) -> TermId {
        TermId::try_from(self.terms.len()).unwrap_or(TermId::MAX)
    }

    pub(super) fn says(&self, term: TermId) -> f64 {
        self.terms.get(term as usize).map_or(1.0, |term| term.says)
    }

    pub(super) fn is_stop(&self, term: TermId) -> bool {
        self.says(term) == 0.0
    }

    pub(super) fn hints(&self, term: TermId) -> Hints {
        self.terms.get(term as usize).map_or(&[], |term| term.hints)
    }

    /// The longest phrase that begins with a term and continues with the terms after it: the number of further terms,
    /// and the hints of the phrase.
    pub(super) fn phrase(&self, term: TermId, after: &[Option<TermId>]) -> Option<(usize, Hints)> {
        let stands = |(rest, _): &&(Vec<TermId>, Hints)| {
            rest.len() <= after.len() && rest.iter().zip(after).all(|(term, there)| *there == Some(*term))
        };
        let phrases = self.terms.get(term as usize)?.phrases.iter().filter(stands);
        phrases.max_by_key(|(rest, _)| rest.len()).map(|(rest, hints)| (rest.len(), *hints))
    }

    /// Words for the purpose of a file with this name.
    pub(super) fn file_kind(&self, chunk: &str) -> Option<&'static str> {
        if !chunk.contains(['.', '/']) && !chunk.ends_with("ile") {
            return None;
        }
        let path = format!("/{}", chunk.to_lowercase().replace('\\', "/").trim_start_matches("./"));
        let (_, name) = path.rsplit_once('/')?;
        if let Some(words) = self.files.get(name).filter(|_| !name.starts_with('.')) {
            return Some(words);
        }
        // `.ts` alone is a kind of file too; `e.g.` is not. `queue_test.go` ends with `_test.go`.
        let endings = name.match_indices(['.', '_']).map(|(at, _)| &name[at..]);
        let found =
            endings.chain(folders(&path)).filter_map(|pattern| Some((pattern.len(), *self.files.get(pattern)?)));
        // The longest pattern is the most specific.
        found.max_by_key(|(length, _)| *length).map(|(_, words)| words)
    }
}

/// Decodes stored hints.
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

/// A cursor in the records of the terms.
struct Record(&'static [u8]);

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

    fn term(&mut self) -> Option<(&'static str, Term)> {
        let length = self.byte()?;
        let text = str::from_utf8(self.take(length)).ok()?;
        let says = SAYS.get(self.byte()?).copied().unwrap_or(1.0);
        let hints = self.hints();
        let count = self.byte()?;
        let phrases = (0..count).map(|_| (self.terms(), self.hints())).collect();
        Some((text, Term { says, hints, phrases }))
    }

    fn terms(&mut self) -> Vec<TermId> {
        let count = self.byte().unwrap_or(0);
        let terms = self.take(2 * count).as_chunks::<2>().0;
        terms.iter().map(|term| TermId::from(u16::from_le_bytes(*term))).collect()
    }

    fn hints(&mut self) -> Hints {
        let count = self.byte().unwrap_or(0);
        self.take(2 * count).as_chunks::<2>().0
    }
}

/// The folders of a lower-case path, alone and in pairs: `/docs/`, `/.github/workflows/`.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let slashes = || path.match_indices('/').map(|(at, _)| at);
    let to_next = |many: usize| slashes().zip(slashes().skip(many)).map(|(start, end)| &path[start..=end]);
    to_next(1).chain(to_next(2))
}
