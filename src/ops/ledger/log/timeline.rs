use std::vec;

use super::{Choice, day_of};
use crate::git::{Error, Repository};
use crate::model::{RunId, Sort};
use crate::ops::ledger::index::{Bound, EntryHeader, Index, Place, Row, Span, name_of};
use crate::record::{Entry, Read};

/// Entries in order. They are read one at a time, and where they are no sooner than needed.
pub(crate) struct Timeline<'a> {
    index: Option<Index<'a>>,
    run: Option<RunId>,
    choice: Choice,
    /// Entries before those of the spans.
    lines: Vec<Line>,
    /// By the names of their first entries.
    spans: Vec<(Span, Bound)>,
}

/// The most spans whose rows are read at the same time.
const TOGETHER: usize = 1_000;

/// Where an entry is.
#[derive(Clone)]
struct Line {
    path: String,
    key: String,
}

/// Sorts entries by their number in the run. One without a number, which another process wrote, comes behind those that
/// are older by the time their file names start with.
struct Sorter<T> {
    /// Number, file name and entry.
    added: Vec<(Option<u64>, String, T)>,
    /// Entries with their number, or that of the one before them, and whether it is that.
    placed: Vec<((u64, bool), T)>,
    last: u64,
}

impl<T> Sorter<T> {
    fn new(added: Vec<(Option<u64>, String, T)>) -> Self {
        Self { added, placed: Vec::new(), last: 0 }
    }

    /// Takes out the entries that come before all that will be added: those have at least this name and this number.
    fn take_before(&mut self, name: Option<&str>, seq: Option<u64>) -> Vec<T> {
        self.added.stable_sort_by(|(_, name, _), (_, other, _)| name.cmp(other));
        let older = self.added.partition_point(|(_, added, _)| name.is_none_or(|name| added.as_str() < name));
        for (seq, _, entry) in self.added.drain(..older) {
            self.last = seq.unwrap_or_default().max(self.last);
            self.placed.push(((seq.unwrap_or(self.last), seq.is_none()), entry));
        }
        self.placed.stable_sort_by_key(|(place, _)| *place);
        let next = self.added.iter().filter_map(|(seq, ..)| *seq).chain(seq).min();
        let before = self.placed.partition_point(|(place, _)| next.is_none_or(|next| *place <= (next, false)));
        self.placed.drain(..before).map(|(_, entry)| entry).collect()
    }
}

fn in_order<T>(entries: Vec<(Option<u64>, String, T)>) -> Vec<T> {
    Sorter::new(entries).take_before(None, None)
}

/// The matching entries of one run or all runs. Includes entries that are not understood.
pub(crate) fn timeline<'a>(
    repository: &'a Repository,
    prefix: &str,
    run: Option<&RunId>,
    choice: &Choice,
) -> Result<Timeline<'a>, Error> {
    let index = Index::open(repository, prefix)?;
    // No entry of a run is older than the run's id.
    let first_day = run.map(|run| day_of(run.as_str())).max(choice.first_day()).unwrap_or_default();
    let mut spans = Vec::new();
    for (index, place) in index.iter().flat_map(|index| Place::ALL.map(|place| (index, place))) {
        let recent = index.spans(place).into_iter().take_while(|span| !span.is_before(&first_day));
        spans.extend(index.holding(recent.collect(), run)?);
    }
    spans.stable_sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    Ok(Timeline { index, run: run.cloned(), choice: choice.clone(), lines: Vec::new(), spans })
}

/// The entries that the ledger did not have when this commit was its tip, in the order of [`timeline`]. The index is not
/// brought up to date for them.
pub(crate) fn added_since(repository: &Repository, prefix: &str, tip: &str) -> Result<Vec<Entry>, Error> {
    let ledger = repository.ledger();
    let Some(now) = ledger.snapshot()? else { return Ok(Vec::new()) };
    let before = ledger.snapshot_at(tip)?;
    let mut entries = Vec::new();
    for place in Place::ALL {
        for file in now.added_since(&before, &place.path(prefix))? {
            if let Read::Entry(entry) = shown(now.read(&file.path, &file.key())?.as_deref()) {
                entries.push((entry.seq, name_of(&file.path).to_owned(), *entry));
            }
        }
    }
    Ok(in_order(entries))
}

/// Whether an entry that is not understood may belong to a run.
fn may_belong(index: &Index<'_>, row: &Row<EntryHeader>, run: Option<&RunId>) -> Result<bool, Error> {
    let Some(run) = run else { return Ok(true) };
    let bytes = index.read(&row.path, &row.key)?;
    Ok(bytes.is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains(run.as_str())))
}

/// Parses an entry for display.
pub(super) fn shown(bytes: Option<&[u8]>) -> Read {
    let Some(bytes) = bytes else { return Read::Damaged { reason: "its object cannot be read".to_owned() } };
    match Entry::parse(bytes) {
        Read::Entry(entry) => match entry.understood() {
            Ok(_) => Read::Entry(entry),
            Err(reason) => Read::Damaged { reason },
        },
        read => read,
    }
}

impl Timeline<'_> {
    /// Drops all but the last `count` entries.
    pub(crate) fn keep_last(&mut self, count: usize) -> Result<(), Error> {
        let Some(index) = &self.index else { return Ok(()) };
        let mut lines = self.lines(index).collect::<Result<Vec<_>, _>>()?;
        lines.drain(..lines.len().saturating_sub(count));
        (self.lines, self.spans) = (lines, Vec::new());
        Ok(())
    }

    /// The ledger commit this describes.
    pub(crate) fn tip(&self) -> Option<&str> {
        self.index.as_ref().map(Index::tip)
    }

    /// Each entry with its path.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<(String, Read), Error>> {
        self.index.iter().flat_map(|index| {
            let read = |Line { path, key }| Ok((shown(index.read(&path, &key)?.as_deref()), path));
            self.lines(index).map(move |line| line.and_then(read).map(|(read, path)| (path, read)))
        })
    }

    fn lines<'t>(&'t self, index: &'t Index<'t>) -> Lines<'t> {
        let lines = self.lines.clone().into_iter();
        Lines { timeline: self, index, lines, from: 0, count: 1, sorter: Sorter::new(Vec::new()) }
    }
}

struct Lines<'t> {
    timeline: &'t Timeline<'t>,
    index: &'t Index<'t>,
    lines: vec::IntoIter<Line>,
    /// The next spans.
    from: usize,
    count: usize,
    sorter: Sorter<Line>,
}

impl Iterator for Lines<'_> {
    type Item = Result<Line, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(line) = self.lines.next() {
                return Some(Ok(line));
            }
            let rest = self.timeline.spans.get(self.from..).filter(|rest| !rest.is_empty())?;
            let (spans, rest) = rest.split_at(self.count.min(rest.len()));
            self.from += spans.len();
            // A few at first, so that the first lines are soon there.
            self.count = (2 * self.count).min(TOGETHER);
            if let Err(error) = self.add(spans) {
                self.from = usize::MAX;
                return Some(Err(error));
            }
            let name = rest.first().map(|(_, bound)| bound.name.as_str());
            let seq = rest.iter().filter_map(|(_, bound)| bound.seq).min();
            self.lines = self.sorter.take_before(name, seq).into_iter();
        }
    }
}

impl Lines<'_> {
    fn add(&mut self, spans: &[(Span, Bound)]) -> Result<(), Error> {
        let Timeline { run, choice, .. } = self.timeline;
        for row in self.index.rows_of::<EntryHeader>(spans.iter().map(|(span, _)| span))? {
            let (matches, seq) = match &row.value {
                Some(about) => {
                    let is_of_run = run.is_none() || about.run == *run;
                    let seq = run.as_ref().and(about.seq);
                    (is_of_run && choice.matches(about.at, about.agent.as_ref()), seq)
                }
                None => (may_belong(self.index, &row, run.as_ref())?, None),
            };
            if matches {
                let name = name_of(&row.path).to_owned();
                self.sorter.added.push((seq, name, Line { path: row.path, key: row.key }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_of_other_processes_stand_where_their_time_puts_them() {
        let sorted = |entries: &[(Option<u64>, &str)]| -> Vec<String> {
            in_order(entries.iter().map(|(seq, name)| (*seq, (*name).to_owned(), (*name).to_owned())).collect())
        };
        assert_eq!(sorted(&[(Some(2), "c"), (None, "b"), (Some(1), "a"), (None, "d")]), ["a", "b", "c", "d"]);
        // The numbers count where the clock was set back.
        assert_eq!(sorted(&[(Some(1), "c"), (Some(2), "a"), (None, "b"), (None, "d")]), ["c", "a", "b", "d"]);
        assert_eq!(sorted(&[(None, "b"), (None, "a")]), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn the_order_is_the_same_however_few_entries_are_known(
            entries in prop::collection::vec((prop::option::of(0..12_u64), 0..30_u8), 0..24),
            parts in 1..8_usize,
        ) {
            let mut entries: Vec<_> =
                (0..).zip(entries).map(|(id, (seq, time))| (seq, format!("{time:02}-{id:02}"), id)).collect();
            let all: Vec<usize> = in_order(entries.clone());
            // Parts that overlap in time, in the order of their first entries.
            let mut spans: Vec<Vec<_>> = vec![Vec::new(); parts];
            entries.stable_sort_by(|(_, name, _), (_, other, _)| name.cmp(other));
            for (place, entry) in entries.into_iter().enumerate() {
                spans[(place / 6 + place % 2).min(parts - 1)].push(entry);
            }
            spans.stable_sort_by_key(|span| span.first().map(|(_, name, _)| name.clone()).unwrap_or_default());
            let (mut sorter, mut found) = (Sorter::new(Vec::new()), Vec::new());
            while !spans.is_empty() {
                sorter.added.extend(spans.remove(0));
                let rest = || spans.iter().flatten();
                let name = rest().map(|(_, name, _)| name.as_str()).min();
                found.extend(sorter.take_before(name, rest().filter_map(|(seq, ..)| *seq).min()));
            }
            prop_assert_eq!(found, all);
        }
    }
}
