//! `.squad/exports.toml` records the hosts that a team was exported to, and git's ids of the texts that squad wrote for
//! them. `squad upgrade` and `squad doctor` use it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::target::Target;
use crate::error::Failure;
use crate::ops::team::own_file::OwnFile;

pub(crate) const FILE: &str = "exports.toml";

/// The format that this squad writes, and the newest that it reads.
const FORMAT: u32 = 1;

const OWN: OwnFile = OwnFile {
    what: "list of exported files",
    folder: "the project",
    loss: "updates none of these files",
    format: FORMAT,
};

const HEADER: &str =
    "# Written by squad, for `squad upgrade`: files that `squad agents export` made, and git's ids of their texts.\n";

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Record {
    pub(super) format: u32,
    pub(super) targets: BTreeSet<Target>,
    /// By path from the project's root.
    #[serde(default)]
    pub(super) files: BTreeMap<String, RecordedFile>,
    /// The file as it was read.
    #[serde(skip)]
    pub(super) bytes: Vec<u8>,
}

/// Compares the content, not the bytes.
impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        (self.format, &self.targets, &self.files) == (other.format, &other.targets, &other.files)
    }
}

/// A text that squad wrote.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct RecordedFile {
    /// The git id of the text with LF line endings.
    pub(super) base: String,
    /// The git id of the whole file, if the text is a section of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
}

impl RecordedFile {
    pub(super) fn is_section(&self) -> bool {
        self.file.is_some()
    }
}

impl Record {
    pub(super) fn new() -> Self {
        Self { format: FORMAT, targets: BTreeSet::new(), files: BTreeMap::new(), bytes: Vec::new() }
    }

    /// Fails if it is not a valid record, or if a newer squad wrote it.
    pub(super) fn read(bytes: &[u8], at: &str) -> Result<Self, Failure> {
        let record = OWN.read(&String::from_utf8_lossy(bytes), at, |record: &Self| record.files.keys().collect())?;
        Ok(Self { bytes: bytes.to_owned(), ..record })
    }

    pub(super) fn text(&self) -> String {
        format!("{HEADER}{}", toml::to_string(self).unwrap_or_default())
    }
}
