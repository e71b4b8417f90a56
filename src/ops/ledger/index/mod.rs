//! The index of the ledger. All counts, lists and searches use it.
//!
//! It is stored in `.git/squad/index`, and derived from the ledger's trees:
//!
//! ```text
//! TEAM.head        the ledger's tip, and the team's folders in it with their ids and counts
//! TEAM.unlanded    the decisions that have landed nowhere
//! SPAN.about       a row for each entry of a span: its time, run and agent
//! SPAN.told        the entries' data for lists and prompts
//! SPAN.reviewed    verdicts and lockouts
//! SPAN.wrote       the files that changed in runs
//! SPAN.ended       how agents' work ended
//! TEAM.damage      known damage, so that commands report it without reading it again
//! SPAN.runs        the runs with entries in the span, so that other spans can be skipped, and where those begin
//! ```
//!
//! A span is a folder of the ledger with at most [`head::MAX_SPAN`] entries, or with entries directly in it. While the
//! tip stays, the ledger is not opened. When it has moved, folders with known ids are skipped, and only new entries of
//! the others are read: an entry never changes. An index file that is missing, damaged, of another format or of another
//! ledger state is rebuilt; only time is lost. Files are written to a temporary name and renamed, so concurrent readers
//! and writers are safe.

mod facts;
mod head;
mod unlanded;

use std::borrow::Borrow;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(in crate::ops) use self::facts::{
    Chooser, EntryFacts, EntryHeader, Fact, FileWrites, ReviewFact, Ruling, WorkEnd, beginning,
};
use self::head::Head;
pub(in crate::ops) use self::head::{Place, Span};
pub(in crate::ops) use self::unlanded::{Unlanded, unlanded};
use crate::git::{Error, Repository, Snapshot};
use crate::model::{Damage, DamageKind, RunId};
use crate::ops::team::cache::{CacheFolder, look};
use crate::record::{Entry, Read};

/// Increase the number when the stored data changes.
const FORMAT: &str = "squad ledger index 19";
const HEAD: &str = "head";
const DAMAGE: &str = "damage";
const RUNS: &str = "runs";

/// The index of one team's entries, up to date with the ledger's tip.
pub(in crate::ops) struct Index<'a> {
    repository: &'a Repository,
    name: String,
    cache_folder: CacheFolder,
    /// The ledger's commit.
    tip: String,
    head: Head,
    /// The damage as last stored.
    known_damage: RefCell<Vec<Damage>>,
    /// Opened on demand.
    snapshot: OnceCell<Snapshot>,
}

/// The indexed data of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct Row<T> {
    /// The path of the entry's file from the ledger's root; it contains id and kind.
    #[serde(rename = "p")]
    pub(in crate::ops) path: String,
    /// The content hash of the file.
    #[serde(rename = "k")]
    pub(in crate::ops) key: String,
    /// `None`: the entry has no such data, cannot be read, or is from a later squad.
    #[serde(rename = "v")]
    pub(in crate::ops) value: Option<T>,
    /// Why the entry cannot be read.
    #[serde(rename = "w")]
    damage: Option<(DamageKind, String)>,
}

impl<T> Row<T> {
    /// A damage report for this entry.
    pub(in crate::ops) fn damage(&self, kind: DamageKind, reason: String) -> Damage {
        Damage { path: self.path.clone(), object: Some(self.key.clone()), kind, reason }
    }
}

/// Data derived from single entries.
pub(in crate::ops) trait Derived: Clone + PartialEq + Serialize + DeserializeOwned {
    /// The extension of its files.
    const TABLE: &'static str;

    /// Whether entries of this kind may have such data.
    fn may_be_in(kind: &str) -> bool;

    /// `None`: the entry has no such data. Fails if the entry is malformed.
    fn of(entry: Entry) -> Result<Option<Self>, String>;
}

#[derive(Serialize, Deserialize)]
struct CachedRows<T> {
    /// The span's key.
    span: String,
    rows: Vec<Row<T>>,
}

/// What comes first in a span.
#[derive(Clone, Debug, Default)]
pub(in crate::ops) struct Bound {
    /// No file has a lesser name.
    pub(in crate::ops) name: String,
    /// No entry of the run has a lesser number; `None`: none has a number.
    pub(in crate::ops) seq: Option<u64>,
}

/// The runs that have entries in a span.
#[derive(PartialEq, Serialize, Deserialize)]
struct Runs {
    span: String,
    /// The least name of a file.
    name: String,
    /// With the least number of an entry.
    runs: BTreeMap<RunId, Option<u64>>,
    /// False if an entry is not understood: it may belong to any run.
    is_whole: bool,
}

impl Runs {
    fn of(span: &Span, rows: &[Row<EntryHeader>]) -> Self {
        let mut runs: BTreeMap<RunId, Option<u64>> = BTreeMap::new();
        for EntryHeader { run, seq, .. } in rows.iter().filter_map(|row| row.value.as_ref()) {
            let Some(run) = run else { continue };
            let least = runs.entry(run.clone()).or_default();
            *least = least.iter().chain(seq).min().copied();
        }
        let name = rows.iter().map(|row| name_of(&row.path)).min().unwrap_or_default().to_owned();
        Self { span: span.key.clone(), name, runs, is_whole: rows.iter().all(|row| row.value.is_some()) }
    }
}

impl<'a> Index<'a> {
    /// `None`: the ledger is empty.
    pub(in crate::ops) fn open(repository: &'a Repository, prefix: &str) -> Result<Option<Self>, Error> {
        let Some(tip) = repository.ledger().tip()? else { return Ok(None) };
        let cache_folder = cache_folder(repository);
        let name = file_name(prefix);
        let (known_damage, snapshot) = (RefCell::default(), OnceCell::new());
        let index = match cache_folder.read::<Head>(&name, HEAD) {
            Some(head) if head.tip == tip => Self { repository, name, cache_folder, tip, head, known_damage, snapshot },
            cached => {
                let now = repository.ledger().snapshot_at(&tip)?.require_readable()?;
                let (head, divided) = Head::derive(&now, prefix, tip.clone(), cached, repository.damage().activity())?;
                for path in divided.iter().map(|path| file_name(path)) {
                    [EntryHeader::TABLE, EntryFacts::TABLE, FileWrites::TABLE, WorkEnd::TABLE, RUNS]
                        .iter()
                        .for_each(|table| cache_folder.remove(&path, table));
                }
                let snapshot = OnceCell::from(now);
                let index = Self { repository, name, cache_folder, tip, head, known_damage, snapshot };
                index.store(&index.name, HEAD, &index.head);
                index
            }
        };
        index.report_known_damage()?;
        Ok(Some(index))
    }

    /// The ledger commit that this index describes.
    pub(in crate::ops) fn tip(&self) -> &str {
        &self.tip
    }

    /// Reports known damage that still exists.
    fn report_known_damage(&self) -> Result<(), Error> {
        let known: Vec<Damage> = self.cache_folder.read(&self.name, DAMAGE).unwrap_or_default();
        if !known.is_empty() {
            self.snapshot()?.still_damaged(&known).for_each(|one| self.report(one.clone()));
        }
        self.known_damage.replace(known);
        Ok(())
    }

    fn store_damage(&self) {
        let log = self.repository.damage();
        if log.is(&self.known_damage.borrow()) {
            return;
        }
        match log.all() {
            found if found.is_empty() => self.cache_folder.remove(&self.name, DAMAGE),
            found => self.store(&self.name, DAMAGE, &found),
        }
    }

    pub(in crate::ops) fn report(&self, damage: Damage) {
        self.repository.damage().add(damage);
    }

    pub(in crate::ops) fn snapshot(&self) -> Result<&Snapshot, Error> {
        if let Some(snapshot) = self.snapshot.get() {
            return Ok(snapshot);
        }
        let snapshot = self.repository.ledger().snapshot_at(&self.tip)?;
        Ok(self.snapshot.get_or_init(|| snapshot))
    }

    /// The number of entries.
    pub(in crate::ops) fn count(&self) -> usize {
        self.head.count()
    }

    /// The number of entries that no remote had as of the last fetch; `None`: there was no fetch. Caches the result.
    pub(in crate::ops) fn unsynced(&mut self, prefix: &str) -> Result<Option<usize>, Error> {
        let remotes = self.repository.remote_tips()?;
        if remotes.is_empty() {
            return Ok(None);
        }
        if let Some((known, count)) = &self.head.unsynced
            && *known == remotes
        {
            return Ok(Some(*count));
        }
        let count = self.repository.unsynced(&Place::ALL.map(|place| place.path(prefix)))?;
        // The count is for the current tip, which may have moved on.
        if let Some(count) =
            count.filter(|_| self.repository.ledger().tip().is_ok_and(|tip| tip.as_ref() == Some(&self.tip)))
        {
            self.head.unsynced = Some((remotes, count));
            self.store(&file_name(prefix), HEAD, &self.head);
        }
        Ok(count)
    }

    /// The spans of a place, newest first.
    pub(in crate::ops) fn spans(&self, place: Place) -> Vec<Span> {
        self.head.spans(place)
    }

    /// A row for each entry of a span whose kind may have this data, in order of creation.
    pub(in crate::ops) fn rows<T: Derived>(&self, span: &Span) -> Result<Vec<Row<T>>, Error> {
        self.up_to_date(span, self.cache_folder.read(&file_name(&span.path), T::TABLE))
    }

    /// The same of several spans. What is cached of them is read side by side.
    pub(in crate::ops) fn rows_of<'s, T: Derived + Send>(
        &self,
        spans: impl IntoIterator<Item = &'s Span>,
    ) -> Result<Vec<Row<T>>, Error> {
        let spans: Vec<&Span> = spans.into_iter().collect();
        let cached = self.cached::<CachedRows<T>>(&spans, T::TABLE);
        let rows = spans.into_iter().zip(cached).map(|(span, cached)| self.up_to_date(span, cached));
        Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn cached<T: DeserializeOwned + Send>(&self, spans: &[impl Borrow<Span> + Sync], table: &str) -> Vec<Option<T>> {
        let folder = &self.cache_folder;
        let read = look(spans, |span| Some(folder.read::<T>(&file_name(&span.borrow().path), table)));
        // What could not be read is derived.
        read.unwrap_or_else(|| spans.iter().map(|_| None).collect())
    }

    /// A span's rows, from what is cached of them.
    fn up_to_date<T: Derived>(&self, span: &Span, cached: Option<CachedRows<T>>) -> Result<Vec<Row<T>>, Error> {
        let name = file_name(&span.path);
        let rows = match cached {
            Some(cached) if cached.span == span.key && !span.key.is_empty() => cached.rows,
            cached => {
                let rows = self.derive(span, cached)?;
                // Unreadable entries are not cached, so that they are read again next time.
                let is_readable =
                    |row: &Row<T>| row.damage.as_ref().is_none_or(|(kind, _)| *kind != DamageKind::Unreadable);
                let (rows, lost): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_readable);
                let key = if lost.is_empty() { span.key.clone() } else { String::new() };
                let cached = CachedRows { span: key, rows };
                self.store(&name, T::TABLE, &cached);
                let mut rows = cached.rows;
                rows.extend(lost);
                span.sort(&mut rows);
                rows
            }
        };
        for row in &rows {
            if let Some((kind, reason)) = &row.damage {
                self.report(row.damage(*kind, reason.clone()));
            }
        }
        Ok(rows)
    }

    /// Those of some spans that may have entries of a run, or all of them, with what comes first there.
    pub(in crate::ops) fn holding(&self, spans: Vec<Span>, run: Option<&RunId>) -> Result<Vec<(Span, Bound)>, Error> {
        let Some(run) = run else { return Ok(spans.into_iter().map(|span| (span, Bound::default())).collect()) };
        let mut holding = Vec::new();
        let cached = self.cached::<Runs>(&spans, RUNS);
        for (span, cached) in spans.into_iter().zip(cached) {
            let runs = match cached {
                Some(runs) if runs.span == span.key && !span.key.is_empty() => runs,
                _ => {
                    let runs = Runs::of(&span, &self.rows(&span)?);
                    self.store(&file_name(&span.path), RUNS, &runs);
                    runs
                }
            };
            if !runs.is_whole || runs.runs.contains_key(run) {
                let seq = runs.runs.get(run).copied().flatten();
                holding.push((span, Bound { name: runs.name, seq }));
            }
        }
        Ok(holding)
    }

    /// The data of a span's entries, in order.
    pub(in crate::ops) fn values<T: Derived>(&self, span: &Span) -> Result<impl DoubleEndedIterator<Item = T>, Error> {
        Ok(self.rows(span)?.into_iter().filter_map(|row| row.value))
    }

    /// Computes a span's rows, reading only entries that are not cached.
    fn derive<T: Derived>(&self, span: &Span, cached: Option<CachedRows<T>>) -> Result<Vec<Row<T>>, Error> {
        let snapshot = self.snapshot()?;
        let added = cached.as_ref().and_then(|cached| {
            let folder = snapshot.folder(&span.path).ok()??;
            snapshot.additions(&folder, &cached.span)
        });
        let known = cached.map(|cached| cached.rows).unwrap_or_default();
        let (mut rows, new, mut known) = match added {
            Some(added) => (known, added, HashMap::new()),
            // The ledger was changed otherwise than by appends. Unchanged entries are still valid.
            None => {
                let known = known.into_iter().map(|row| (row.path.clone(), row));
                (Vec::new(), snapshot.listing(&span.path)?.value, known.collect())
            }
        };
        for file in new.into_iter().filter(|file| T::may_be_in(kind_of(&file.path))) {
            let key = file.key();
            rows.push(match known.remove(&file.path).filter(|row: &Row<T>| row.key == key) {
                Some(row) => row,
                None => self.row(file.path, key)?,
            });
        }
        span.sort(&mut rows);
        Ok(rows)
    }

    fn row<T: Derived>(&self, path: String, key: String) -> Result<Row<T>, Error> {
        let Some(bytes) = self.read(&path, &key)? else {
            let damage = Some((DamageKind::Unreadable, "its object cannot be read".to_owned()));
            return Ok(Row { path, key, value: None, damage });
        };
        let (value, damage) = match Entry::parse(&bytes) {
            Read::Entry(entry) => match T::of(*entry) {
                Ok(value) => (value, None),
                Err(reason) => (None, Some((DamageKind::Malformed, reason))),
            },
            Read::Newer { version } => (None, Some((DamageKind::Newer, newer(version)))),
            Read::Damaged { reason } => (None, Some((DamageKind::Malformed, reason))),
        };
        Ok(Row { path, key, value, damage })
    }

    fn store<T: Serialize>(&self, name: &str, kind: &str, value: &T) {
        if self.cache_folder.prepare().is_some() {
            self.cache_folder.write(name, kind, value);
        }
    }

    /// The bytes of an entry. `None`: it cannot be read, and is reported.
    pub(in crate::ops) fn read(&self, path: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.snapshot()?.read(path, key)
    }

    /// The entry of a row, if it can be read.
    pub(in crate::ops) fn entry<T>(&self, row: &Row<T>) -> Result<Option<Entry>, Error> {
        Ok(match self.read(&row.path, &row.key)?.map(|bytes| Entry::parse(&bytes)) {
            Some(Read::Entry(entry)) => Some(*entry),
            Some(Read::Newer { .. } | Read::Damaged { .. }) | None => None,
        })
    }

    /// The paths of folders whose index does not match the ledger.
    pub(in crate::ops) fn stale_spans(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let (head, _) =
            Head::derive(self.snapshot()?, prefix, self.tip.clone(), None, self.repository.damage().activity())?;
        let mut stale = Vec::new();
        for place in Place::ALL {
            if !head.is_like(&self.head, place) {
                stale.push(place.path(prefix));
            }
            for span in head.spans(place) {
                let is_current = self.is_current::<EntryHeader>(&span)? && self.is_current::<EntryFacts>(&span)?;
                let is_current =
                    is_current && self.is_current::<ReviewFact>(&span)? && self.is_current::<WorkEnd>(&span)?;
                if !(is_current && self.is_current::<FileWrites>(&span)? && self.are_runs_current(&span)?) {
                    stale.push(span.path);
                }
            }
        }
        if !unlanded::is_current(self.snapshot()?, &self.cache_folder, prefix)? {
            stale.push(Place::Decisions.path(prefix));
        }
        stale.dedup();
        Ok(stale)
    }

    /// Whether a span's cached rows match the ledger. True without reading if nothing is cached.
    fn is_current<T: Derived>(&self, span: &Span) -> Result<bool, Error> {
        let cached = self
            .cache_folder
            .read::<CachedRows<T>>(&file_name(&span.path), T::TABLE)
            .filter(|cached| cached.span == span.key);
        cached.map_or(Ok(true), |cached| Ok(cached.rows == self.derive(span, None)?))
    }

    fn are_runs_current(&self, span: &Span) -> Result<bool, Error> {
        let cached = self.cache_folder.read::<Runs>(&file_name(&span.path), RUNS).filter(|runs| runs.span == span.key);
        cached.map_or(Ok(true), |runs| Ok(runs == Runs::of(span, &self.derive(span, None)?)))
    }
}

/// Once, and not after each span: damage may be in every one of them.
impl Drop for Index<'_> {
    fn drop(&mut self) {
        self.store_damage();
    }
}

fn cache_folder(repository: &Repository) -> CacheFolder {
    let folder = CacheFolder::with_format(repository.own_folder().join("index"), FORMAT);
    if repository.is_looked_at() { folder.read_only() } else { folder }
}

/// The file name of a path.
pub(in crate::ops) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The kind of an entry, from its path.
pub(in crate::ops) fn kind_of(path: &str) -> &str {
    const ID: usize = 36;
    name_of(path).get(ID + 1..).and_then(|rest| rest.strip_suffix(".md")).unwrap_or("")
}

/// The damage reason for an entry of a later squad.
pub(in crate::ops) fn newer(version: u64) -> String {
    format!("its version is {version}")
}

/// A file name for any path.
fn file_name(path: &str) -> String {
    blake3::hash(path.as_bytes()).to_hex().as_str()[..32].to_owned()
}
