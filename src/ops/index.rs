//! What the entries of each day are about, so that a question opens only the entries that it is about.
//!
//! Kept in `.git/squad/index`, a file for each day of the ledger: derived from that day's folder, whose id it holds. A
//! file that is missing, damaged, of another form or of another state of the folder is made again, from what it still
//! knows; nothing but time is lost. Entries never change, so only new ones are read.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cache::Shelf;
use crate::git::{Day, Error, Repository, Snapshot};
use crate::model::{RunId, Slug};
use crate::record::{Entry, Read};

/// Raised when what is kept changes.
const FORM: &str = "squad ledger index 1";
const KIND: &str = "day";

pub(crate) struct Index {
    pub(crate) snapshot: Snapshot,
    shelf: Shelf,
}

/// What one entry is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The file's, with id and kind in it.
    pub(crate) name: String,
    /// Of the file's bytes.
    key: String,
    /// `None`: it cannot be read, or a later squad wrote it.
    pub(crate) entry: Option<About>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) at: Timestamp,
    pub(crate) run: Option<RunId>,
    pub(crate) agent: Option<Slug>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The day's key.
    day: String,
    rows: Vec<Row>,
}

impl Index {
    /// `None`: nothing was ever recorded.
    pub(crate) fn open(repository: &Repository) -> Result<Option<Self>, Error> {
        let folder = repository.common_dir().join("squad").join("index");
        let shelf = Shelf::of_form(folder, FORM);
        Ok(repository.ledger().snapshot()?.map(|snapshot| Self { snapshot, shelf }))
    }

    /// A row for each entry of a day, in the order in which they were made.
    pub(crate) fn rows(&self, day: &Day) -> Result<Vec<Row>, Error> {
        let name = shelf_name(day);
        let kept: Option<Kept> = self.shelf.read(&name, KIND);
        let (known, is_new) = match kept {
            Some(kept) if kept.day == day.key() => return Ok(kept.rows),
            Some(kept) => (kept.rows, false),
            None => (Vec::new(), true),
        };
        let rows = self.derive(day, known)?;
        // Nothing is worth keeping of a day that is read faster than kept.
        if !is_new || rows.len() >= FEW {
            let kept = Kept { day: day.key(), rows };
            if self.shelf.prepare().is_some() {
                self.shelf.write(&name, KIND, &kept);
            }
            return Ok(kept.rows);
        }
        Ok(rows)
    }

    /// Reads what is not known yet.
    fn derive(&self, day: &Day, known: Vec<Row>) -> Result<Vec<Row>, Error> {
        let mut known: HashMap<String, Row> = known.into_iter().map(|row| (row.name.clone(), row)).collect();
        let files = self.snapshot.listing(day)?.into_iter();
        files
            .map(|file| match known.remove(&file.name).filter(|row| row.key == file.key()) {
                Some(row) => Ok(row),
                None => {
                    let key = file.key();
                    let entry = match Entry::parse(&self.snapshot.read(&file)?) {
                        Read::Entry(entry) => Some(About { at: entry.at, run: entry.run, agent: entry.agent }),
                        Read::Newer { .. } | Read::Damaged { .. } => None,
                    };
                    Ok(Row { name: file.name, key, entry })
                }
            })
            .collect()
    }

    /// The entries of a day whose rows are wanted, with their paths.
    pub(crate) fn entries(&self, day: &Day, wanted: impl Fn(&Row) -> bool) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let wanted: Vec<Row> = self.rows(day)?.into_iter().filter(|row| wanted(row)).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let files: HashMap<_, _> =
            self.snapshot.listing(day)?.into_iter().map(|file| (file.name.clone(), file)).collect();
        let found = wanted.iter().filter_map(|row| files.get(&row.name));
        found.map(|file| Ok((format!("{}/{}", day.path, file.name), self.snapshot.read(file)?))).collect()
    }

    /// Whether what is kept of a day, if anything is, says what the ledger says.
    pub(crate) fn is_true(&self, day: &Day) -> Result<bool, Error> {
        match self.shelf.read::<Kept>(&shelf_name(day), KIND) {
            Some(kept) if kept.day == day.key() => Ok(kept.rows == self.derive(day, Vec::new())?),
            Some(_) | None => Ok(true),
        }
    }
}

/// From this many entries on a file is worth its while.
const FEW: usize = 8;

/// Any path, as a name.
fn shelf_name(day: &Day) -> String {
    blake3::hash(day.path.as_bytes()).to_hex().as_str()[..32].to_owned()
}
