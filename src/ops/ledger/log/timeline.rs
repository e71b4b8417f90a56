use super::{Choice, day_of};
use crate::git::{Error, Repository};
use crate::model::{RunId, Sort};
use crate::ops::ledger::index::{EntryHeader, Index, Place, Row};
use crate::record::{Entry, Read};

/// Entries in order. They are read one at a time.
pub(crate) struct Timeline<'a> {
    index: Option<Index<'a>>,
    lines: Vec<Line>,
}

/// Spans whose rows are held at the same time.
const TOGETHER: usize = 1_000;

/// Where an entry is.
struct Line {
    path: String,
    key: String,
}

/// Sorts entries by their number in the run. One without a number, which another process wrote, comes behind those that
/// are older by the time their file names start with.
fn in_order<T>(mut entries: Vec<(Option<u64>, String, T)>) -> Vec<T> {
    entries.stable_sort_by(|(_, name, _), (_, other, _)| name.cmp(other));
    let mut last = 0;
    let placed = entries.into_iter().map(|(seq, _, entry)| {
        last = seq.unwrap_or_default().max(last);
        ((seq.unwrap_or(last), seq.is_none()), entry)
    });
    let mut placed: Vec<_> = placed.collect();
    placed.stable_sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, entry)| entry).collect()
}

/// The matching entries of one run or all runs. Includes entries that are not understood.
pub(crate) fn timeline<'a>(
    repository: &'a Repository,
    prefix: &str,
    run: Option<&RunId>,
    choice: &Choice,
) -> Result<Timeline<'a>, Error> {
    let Some(index) = Index::open(repository, prefix)? else {
        return Ok(Timeline { index: None, lines: Vec::new() });
    };
    // No entry of a run is older than the run's id.
    let first_day = run.map(|run| day_of(run.as_str())).max(choice.first_day()).unwrap_or_default();
    let mut lines = Vec::new();
    for place in Place::ALL {
        let mut spans: Vec<_> = index.spans(place).into_iter().take_while(|span| !span.is_before(&first_day)).collect();
        if let Some(run) = run {
            spans = index.holding(&spans, run)?;
        }
        for spans in spans.chunks(TOGETHER) {
            for row in index.rows_of::<EntryHeader>(spans)? {
                let (matches, seq) = match &row.value {
                    Some(about) => {
                        let is_of_run = run.is_none() || about.run.as_ref() == run;
                        let seq = run.and(about.seq);
                        (is_of_run && choice.matches(about.at, about.agent.as_ref()), seq)
                    }
                    None => (may_belong(&index, &row, run)?, None),
                };
                if matches {
                    let name = name_of(&row.path).to_owned();
                    lines.push((seq, name, Line { path: row.path, key: row.key }));
                }
            }
        }
    }
    Ok(Timeline { index: Some(index), lines: in_order(lines) })
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

/// The file name of a path.
pub(super) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Timeline<'_> {
    /// Drops all but the last `count` entries.
    pub(crate) fn keep_last(&mut self, count: usize) {
        self.lines.drain(..self.lines.len().saturating_sub(count));
    }

    /// The ledger commit this describes.
    pub(crate) fn tip(&self) -> Option<&str> {
        self.index.as_ref().map(Index::tip)
    }

    /// Each entry with its path.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<(&str, Read), Error>> {
        self.index.iter().flat_map(|index| {
            let read = |line: &Line| Ok(shown(index.read(&line.path, &line.key)?.as_deref()));
            self.lines.iter().map(move |line| read(line).map(|read| (line.path.as_str(), read)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::in_order;

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
}
