//! The one reader of the ledger: what is counted, listed or searched is answered from here.
//!
//! Kept in `.git/squad/index`, and derived from the ledger's trees:
//!
//! ```text
//! TEAM.head        the ledger's tip, and the team's folders in it with their ids and counts
//! TEAM.unlanded    the decisions that have landed nowhere
//! SPAN.about       a row for each entry of a span: when it was, of which run and agent
//! SPAN.told        what the entries say that lists and prompts are made of
//! SPAN.reviewed    verdicts and lockouts
//! SPAN.wrote       which files the tool calls wrote to
//! TEAM.damage      what cannot be read, so that it is said by those too who did not want to read it
//! SPAN.runs        which runs there are entries of, so that a run is not looked for where it is not
//! ```
//!
//! A span is a folder of the ledger that holds no more than [`head::MOST`] entries, or that holds entries itself. While
//! the tip stays, nothing of the ledger is opened. When it has moved, folders whose ids are known are passed over, and
//! of the others only what is new is read: an entry never changes. A file that is missing, damaged, of
//! another form or of another state of the ledger is made again; nothing but time is lost. Files are written beside
//! their names and renamed, so any number of readers and writers may come at once.

mod facts;
mod head;
mod unlanded;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(in crate::ops) use self::facts::{
    Chooser, EntryFacts, EntryHeader, Fact, FileWrite, ReviewFact, Ruling, beginning,
};
use self::head::Head;
pub(in crate::ops) use self::head::{Place, Span};
pub(in crate::ops) use self::unlanded::{Unlanded, unlanded};
use crate::git::{Error, Repository, Snapshot};
use crate::model::{Damage, DamageKind, RunId};
use crate::ops::team::cache::CacheFolder;
use crate::record::{Entry, Read};

/// Raised when what is kept changes.
const FORM: &str = "squad ledger index 10";
const HEAD: &str = "head";
const DAMAGE: &str = "damage";
const RUNS: &str = "runs";

/// The index of one team's entries, brought up to the ledger's tip.
pub(in crate::ops) struct Index<'a> {
    repository: &'a Repository,
    name: String,
    cache_folder: CacheFolder,
    /// The ledger's commit.
    tip: String,
    head: Head,
    /// As it was last written down.
    known_damage: RefCell<Vec<Damage>>,
    /// Opened when something has to be read.
    snapshot: OnceCell<Snapshot>,
}

/// What is known of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct Row<T> {
    /// Of the entry's file, from the ledger's root; id and kind are in it.
    #[serde(rename = "p")]
    pub(in crate::ops) path: String,
    /// Of the file's bytes.
    #[serde(rename = "k")]
    pub(in crate::ops) key: String,
    /// `None`: it says nothing of this, cannot be read, or a later squad wrote it.
    #[serde(rename = "v")]
    pub(in crate::ops) value: Option<T>,
    /// Why it cannot be read.
    #[serde(rename = "w")]
    damage: Option<(DamageKind, String)>,
}

impl<T> Row<T> {
    /// What is wrong with an entry that could be read, and with others.
    pub(in crate::ops) fn damage(&self, kind: DamageKind, reason: String) -> Damage {
        Damage { path: self.path.clone(), object: Some(self.key.clone()), kind, reason }
    }
}

/// Something that is derived from single entries.
pub(in crate::ops) trait Derived: Clone + PartialEq + Serialize + DeserializeOwned {
    /// What its files are called.
    const TABLE: &'static str;

    /// Whether entries of this kind have something to say.
    fn is_said_by(kind: &str) -> bool;

    /// `None`: it says nothing of this. Fails where it should, and cannot be understood.
    fn of(entry: Entry) -> Result<Option<Self>, String>;
}

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    /// The span's key.
    span: String,
    rows: Vec<Row<T>>,
}

/// Which runs a span has entries of.
#[derive(PartialEq, Serialize, Deserialize)]
struct Runs {
    span: String,
    runs: BTreeSet<RunId>,
    /// An entry that cannot be understood may be of any.
    is_whole: bool,
}

impl Runs {
    fn of(span: &Span, rows: &[Row<EntryHeader>]) -> Self {
        let runs = rows.iter().filter_map(|row| row.value.as_ref()?.run.clone()).collect();
        Self { span: span.key.clone(), runs, is_whole: rows.iter().all(|row| row.value.is_some()) }
    }
}

impl<'a> Index<'a> {
    /// `None`: nothing was ever recorded.
    pub(in crate::ops) fn open(repository: &'a Repository, prefix: &str) -> Result<Option<Self>, Error> {
        Self::open_telling(repository, prefix, &|_| {})
    }

    /// Tells how many entries were counted so far: the first time there may be many.
    pub(in crate::ops) fn open_telling(
        repository: &'a Repository,
        prefix: &str,
        tell: &dyn Fn(usize),
    ) -> Result<Option<Self>, Error> {
        let Some(tip) = repository.ledger().tip()? else { return Ok(None) };
        let cache_folder = cache_folder(repository);
        let name = file_name(prefix);
        let (known_damage, snapshot) = (RefCell::default(), OnceCell::new());
        let index = match cache_folder.read::<Head>(&name, HEAD) {
            Some(head) if head.tip == tip => Self { repository, name, cache_folder, tip, head, known_damage, snapshot },
            kept => {
                let now = repository.ledger().snapshot_at(&tip)?.insist()?;
                let (head, divided) = Head::derive(&now, prefix, tip.clone(), kept, tell)?;
                for path in divided.iter().map(|path| file_name(path)) {
                    [EntryHeader::TABLE, EntryFacts::TABLE, FileWrite::TABLE, RUNS]
                        .iter()
                        .for_each(|table| cache_folder.remove(&path, table));
                }
                let snapshot = OnceCell::from(now);
                let index = Self { repository, name, cache_folder, tip, head, known_damage, snapshot };
                index.keep(&index.name, HEAD, &index.head);
                index
            }
        };
        index.recall_damage()?;
        Ok(Some(index))
    }

    /// The ledger's commit that all answers are of.
    pub(in crate::ops) fn tip(&self) -> &str {
        &self.tip
    }

    /// Reports what was found before and still holds.
    fn recall_damage(&self) -> Result<(), Error> {
        let known: Vec<Damage> = self.cache_folder.read(&self.name, DAMAGE).unwrap_or_default();
        if !known.is_empty() {
            let snapshot = self.snapshot()?;
            known.iter().filter(|damage| snapshot.still_has(damage)).for_each(|one| self.report(one.clone()));
        }
        self.known_damage.replace(known);
        self.remember_damage();
        Ok(())
    }

    fn remember_damage(&self) {
        let found = self.repository.damage().all();
        if found == *self.known_damage.borrow() {
            return;
        }
        match found.is_empty() {
            true => self.cache_folder.remove(&self.name, DAMAGE),
            false => self.keep(&self.name, DAMAGE, &found),
        }
        self.known_damage.replace(found);
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

    /// How many entries there are.
    pub(in crate::ops) fn count(&self) -> usize {
        self.head.count()
    }

    /// How many of them no remote had when it was asked last; `None` where none ever was. Remembers it.
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
        // Counted at the tip, which may be a later one by now.
        if let Some(count) =
            count.filter(|_| self.repository.ledger().tip().is_ok_and(|tip| tip.as_ref() == Some(&self.tip)))
        {
            self.head.unsynced = Some((remotes, count));
            self.keep(&file_name(prefix), HEAD, &self.head);
        }
        Ok(count)
    }

    /// The spans of a place, the newest first.
    pub(in crate::ops) fn spans(&self, place: Place) -> Vec<Span> {
        self.head.spans(place)
    }

    /// A row for each entry of a span that may say something of this, in the order in which they were made.
    pub(in crate::ops) fn rows<T: Derived>(&self, span: &Span) -> Result<Vec<Row<T>>, Error> {
        let name = file_name(&span.path);
        let rows = match self.cache_folder.read::<Kept<T>>(&name, T::TABLE) {
            Some(kept) if kept.span == span.key && !span.key.is_empty() => kept.rows,
            kept => {
                let rows = self.derive(span, kept)?;
                // What cannot be read now is looked for again.
                let is_readable =
                    |row: &Row<T>| row.damage.as_ref().is_none_or(|(kind, _)| *kind != DamageKind::Unreadable);
                let (rows, lost): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_readable);
                let key = if lost.is_empty() { span.key.clone() } else { String::new() };
                let kept = Kept { span: key, rows };
                self.keep(&name, T::TABLE, &kept);
                let mut rows = kept.rows;
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
        self.remember_damage();
        Ok(rows)
    }

    /// Whether entries of a span may be of a run.
    pub(in crate::ops) fn may_hold(&self, span: &Span, run: &RunId) -> Result<bool, Error> {
        let name = file_name(&span.path);
        let runs = match self.cache_folder.read::<Runs>(&name, RUNS) {
            Some(runs) if runs.span == span.key => runs,
            _ => {
                let runs = Runs::of(span, &self.rows(span)?);
                self.keep(&name, RUNS, &runs);
                runs
            }
        };
        Ok(!runs.is_whole || runs.runs.contains(run))
    }

    /// What the entries of a span say, in their order.
    pub(in crate::ops) fn values<T: Derived>(&self, span: &Span) -> Result<impl DoubleEndedIterator<Item = T>, Error> {
        Ok(self.rows(span)?.into_iter().filter_map(|row| row.value))
    }

    /// Reads what is not known yet.
    fn derive<T: Derived>(&self, span: &Span, kept: Option<Kept<T>>) -> Result<Vec<Row<T>>, Error> {
        let snapshot = self.snapshot()?;
        let added = kept.as_ref().and_then(|kept| {
            let folder = snapshot.folder(&span.path).ok()??;
            snapshot.additions(&folder, &kept.span)
        });
        let known = kept.map(|kept| kept.rows).unwrap_or_default();
        let (mut rows, new, mut known) = match added {
            Some(added) => (known, added, HashMap::new()),
            // Something else was done to the ledger than adding to it. An entry that is as it was is still known.
            None => {
                let known = known.into_iter().map(|row| (row.path.clone(), row));
                (Vec::new(), snapshot.listing(&span.path)?.value, known.collect())
            }
        };
        for file in new.into_iter().filter(|file| T::is_said_by(kind_of(&file.path))) {
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

    fn keep<T: Serialize>(&self, name: &str, kind: &str, value: &T) {
        if self.cache_folder.prepare().is_some() {
            self.cache_folder.write(name, kind, value);
        }
    }

    /// The bytes of an entry. `None`: it cannot be read, which is reported.
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

    /// What of all that is kept does not say what the ledger says: the paths of folders.
    pub(in crate::ops) fn stale_spans(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let (head, _) = Head::derive(self.snapshot()?, prefix, self.tip.clone(), None, &|_| {})?;
        let mut stale = Vec::new();
        for place in Place::ALL {
            if !head.is_like(&self.head, place) {
                stale.push(place.path(prefix));
            }
            for span in head.spans(place) {
                let is_current = self.is_current::<EntryHeader>(&span)? && self.is_current::<EntryFacts>(&span)?;
                let is_current = is_current && self.is_current::<ReviewFact>(&span)?;
                if !(is_current && self.is_current::<FileWrite>(&span)? && self.are_runs_current(&span)?) {
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

    /// Whether what is kept of a span, if anything is, says what the ledger says. Reads nothing where nothing is kept.
    fn is_current<T: Derived>(&self, span: &Span) -> Result<bool, Error> {
        let kept =
            self.cache_folder.read::<Kept<T>>(&file_name(&span.path), T::TABLE).filter(|kept| kept.span == span.key);
        kept.map_or(Ok(true), |kept| Ok(kept.rows == self.derive(span, None)?))
    }

    fn are_runs_current(&self, span: &Span) -> Result<bool, Error> {
        let kept = self.cache_folder.read::<Runs>(&file_name(&span.path), RUNS).filter(|runs| runs.span == span.key);
        kept.map_or(Ok(true), |runs| Ok(runs == Runs::of(span, &self.derive(span, None)?)))
    }
}

fn cache_folder(repository: &Repository) -> CacheFolder {
    CacheFolder::of_form(repository.common_dir().join("squad").join("index"), FORM)
}

/// What a ledger file is called by its path.
pub(in crate::ops) fn kind_of(path: &str) -> &str {
    const ID: usize = 36;
    let name = path.rsplit('/').next().unwrap_or(path);
    name.get(ID + 1..).and_then(|rest| rest.strip_suffix(".md")).unwrap_or("")
}

/// What is said of an entry of a later squad.
pub(in crate::ops) fn newer(version: u64) -> String {
    format!("its version is {version}")
}

/// Any path, as a name.
fn file_name(path: &str) -> String {
    blake3::hash(path.as_bytes()).to_hex().as_str()[..32].to_owned()
}
