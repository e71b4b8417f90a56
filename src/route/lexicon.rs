//! What squad knows of the trade: areas of work with their words, words that say little, and kinds of files.
//!
//! The tables beside this file are general knowledge and speak of no team.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::terms::{Place, each_term};

const AREAS: &str = include_str!("tables/areas.txt");
const COMMON: &str = include_str!("tables/common.txt");
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

#[derive(Clone, Debug, Default)]
struct Entry {
    says: Option<f64>,
    hints: Vec<Hint>,
    /// Terms of several words that begin with this one.
    phrases: Vec<Phrase>,
}

#[derive(Clone, Debug)]
pub(super) struct Phrase {
    /// The terms after the first.
    pub(super) rest: Vec<TermId>,
    pub(super) hints: Vec<Hint>,
}

#[derive(Default)]
pub(super) struct Lexicon {
    pub(super) areas: Vec<Area>,
    ids: HashMap<Box<str>, TermId, FixedState>,
    entries: Vec<Entry>,
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
        self.entry(term).and_then(|entry| entry.says).unwrap_or(SAYS_SOMETHING)
    }

    pub(super) fn is_stop(&self, term: TermId) -> bool {
        self.says(term) == STOP
    }

    pub(super) fn hints(&self, term: TermId) -> &[Hint] {
        self.entry(term).map_or(&[], |entry| &entry.hints)
    }

    pub(super) fn phrases(&self, term: TermId) -> &[Phrase] {
        self.entry(term).map_or(&[], |entry| &entry.phrases)
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
        // Some more than there are.
        lexicon.ids.reserve(AREAS.len() / 10);
        lexicon.entries.reserve(AREAS.len() / 10);
        lexicon.read_common();
        lexicon.read_areas();
        for (place, line) in FILES.lines().filter(|line| !line.starts_with('#')).enumerate() {
            if let Some((pattern, words)) = line.split_once('\t') {
                lexicon.files.insert(pattern, FileKind { place, words });
            }
        }
        lexicon
    }

    fn read_common(&mut self) {
        let mut says = STOP;
        for line in COMMON.lines().filter(|line| !line.starts_with('#')) {
            match line {
                "[stop]" => says = STOP,
                "[common]" => says = SAYS_LITTLE,
                words => {
                    for (term, _) in self.take_terms(words) {
                        self.entries[term as usize].says.get_or_insert(says);
                    }
                }
            }
        }
    }

    fn read_areas(&mut self) {
        let mut area = 0;
        for line in AREAS.lines().filter(|line| !line.starts_with('#')) {
            if let Some(header) = line.strip_prefix("= ") {
                let (name, kind) = header.split_once(' ').unwrap_or((header, ""));
                area = AreaId::try_from(self.areas.len()).unwrap_or(AreaId::MAX);
                let kind = if kind == "kind" { AreaKind::Kind } else { AreaKind::Topic };
                self.areas.push(Area { name, kind });
            } else if let Some((strength, words)) = line.split_once(": ") {
                let build = self.areas.last().is_some_and(|area| area.name == "implementation");
                let weight = if strength == "weak" || (strength == "asks" && build) { WEAK } else { STRONG };
                let of = match strength {
                    "role" => Of::Roles,
                    "asks" => Of::Requests,
                    _ => Of::All,
                };
                let hint = Hint { area, weight, of };
                // A comma parts two terms of the table; each may be several words.
                let mut words_left = &self.take_terms(words)[..];
                let mut end = 0;
                for part in words.split(',') {
                    end += part.len() + 1;
                    let count = words_left.iter().take_while(|(_, at)| *at < end).count();
                    let (term, rest) = words_left.split_at(count);
                    self.hint(term, hint);
                    words_left = rest;
                }
            }
        }
    }

    /// A term of the tables speaks of an area.
    fn hint(&mut self, terms: &[(TermId, usize)], hint: Hint) {
        let Some(((first, _), rest)) = terms.split_first() else { return };
        let is_rest = |phrase: &Phrase| phrase.rest.iter().eq(rest.iter().map(|(term, _)| term));
        let entry = &mut self.entries[*first as usize];
        let hints = if rest.is_empty() {
            &mut entry.hints
        } else {
            let place = entry.phrases.iter().position(is_rest).unwrap_or(entry.phrases.len());
            if place == entry.phrases.len() {
                let rest = rest.iter().map(|(term, _)| *term).collect();
                entry.phrases.push(Phrase { rest, hints: Vec::new() });
            }
            &mut entry.phrases[place].hints
        };
        // The first that is said of a term and an area stands: strong before weak.
        if !hints.iter().any(|known| known.area == hint.area && known.of == hint.of) {
            hints.push(hint);
        }
    }

    /// The terms of a line, with where they begin.
    fn take_terms(&mut self, text: &str) -> Vec<(TermId, usize)> {
        let mut terms = Vec::with_capacity(text.len() / 6);
        // No table of files yet: what the tables say of files is not said of them.
        each_term(&Self::default(), text, &mut |term, range, place| {
            if place == Place::Word && !term.is_empty() {
                let known = self.ids.get(term).copied();
                let id = known.unwrap_or_else(|| {
                    let next = self.size();
                    self.ids.insert(term.into(), next);
                    self.entries.push(Entry::default());
                    next
                });
                terms.push((id, range.start));
            }
        });
        terms
    }
}

/// The folders of a path in lower case, one by one and each with the next: `/docs/`, `/.github/workflows/`.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let slashes = || path.match_indices('/').map(|(at, _)| at);
    let to_next = |many: usize| slashes().zip(slashes().skip(many)).map(|(start, end)| &path[start..=end]);
    to_next(1).chain(to_next(2))
}
