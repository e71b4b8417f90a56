use super::{Choice, day_of};
use crate::git::{Error, Repository};
use crate::model::RunId;
use crate::ops::ledger::index::{EntryHeader, Index, Place, Row};
use crate::record::{Entry, Read};

/// Entries in order. They are read one at a time.
pub(crate) struct Timeline<'a> {
    index: Option<Index<'a>>,
    lines: Vec<Line>,
}

/// An entry's position in the timeline.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    /// Its number in the run; entries without one come last.
    seq: u64,
    /// The file name, which starts with the entry's time.
    name: String,
    path: String,
    key: String,
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
        for span in index.spans(place).iter().take_while(|span| !span.is_before(&first_day)) {
            if let Some(run) = run
                && !index.may_hold(span, run)?
            {
                continue;
            }
            for row in index.rows::<EntryHeader>(span)? {
                let (matches, seq) = match &row.value {
                    Some(about) => {
                        let is_of_run = run.is_none() || about.run.as_ref() == run;
                        let seq = run.and(about.seq).unwrap_or(if run.is_some() { u64::MAX } else { 0 });
                        (is_of_run && choice.matches(about.at, about.agent.as_ref()), seq)
                    }
                    None => (may_belong(&index, &row, run)?, if run.is_some() { u64::MAX } else { 0 }),
                };
                if matches {
                    let name = name_of(&row.path).to_owned();
                    lines.push(Line { seq, name, path: row.path, key: row.key });
                }
            }
        }
    }
    lines.sort();
    Ok(Timeline { index: Some(index), lines })
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
                entries.push((entry.seq.unwrap_or(u64::MAX), name_of(&file.path).to_owned(), *entry));
            }
        }
    }
    entries.sort_by(|(seq, name, _), (other_seq, other_name, _)| (seq, name).cmp(&(other_seq, other_name)));
    Ok(entries.into_iter().map(|(.., entry)| entry).collect())
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
