//! `.squad/exports.toml`: which hosts a team was exported to, and which texts squad wrote for them. `squad upgrade` and
//! `squad doctor` go by it. The texts themselves are in git, under the ids that are recorded here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::target::Target;
use crate::error::Failure;

pub(crate) const FILE: &str = "exports.toml";

/// What this squad writes, and the newest that it reads.
const FORMAT: u32 = 1;

const HEAD: &str =
    "# Written by squad, for `squad upgrade`: files that `squad agents export` made, and git's ids of their texts.\n";

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Record {
    pub(super) format: u32,
    pub(super) targets: BTreeSet<Target>,
    /// By path from the project's root.
    #[serde(default)]
    pub(super) files: BTreeMap<String, Exported>,
    /// As it was read.
    #[serde(skip)]
    pub(super) bytes: Vec<u8>,
}

/// What they say counts.
impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        (self.format, &self.targets, &self.files) == (other.format, &other.targets, &other.files)
    }
}

/// A text that squad wrote.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Exported {
    /// git's id of it, with LF line ends.
    pub(super) base: String,
    /// git's id of the file it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
}

impl Exported {
    pub(super) fn is_section(&self) -> bool {
        self.file.is_some()
    }
}

impl Record {
    pub(super) fn new() -> Self {
        Self { format: FORMAT, targets: BTreeSet::new(), files: BTreeMap::new(), bytes: Vec::new() }
    }

    /// Fails where it is no record, or one of a newer squad.
    pub(super) fn read(bytes: &[u8], at: &str) -> Result<Self, Failure> {
        let text = &String::from_utf8_lossy(bytes);
        let value: toml::Table = toml::from_str(text).map_err(|error| unread(at, text, &error))?;
        if value.get("format").and_then(toml::Value::as_integer).is_some_and(|format| format > i64::from(FORMAT)) {
            return Err(Failure::team("a newer squad wrote this list of exported files")
                .at(at)
                .hint("upgrade squad itself; until then it leaves these files alone"));
        }
        let record: Self = toml::from_str(text).map_err(|error| unread(at, text, &error))?;
        let is_inside = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        match record.files.keys().find(|path| !is_inside(path)) {
            Some(path) => Err(Failure::team(format!("`{path}` is no file of the project")).at(at)),
            None => Ok(Self { bytes: bytes.to_owned(), ..record }),
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{HEAD}{}", toml::to_string(self).unwrap_or_default())
    }
}

fn unread(at: &str, text: &str, error: &toml::de::Error) -> Failure {
    let offset = error.span().map_or(0, |span| span.start);
    let line = 1 + text.get(..offset).map_or(0, |before| before.matches('\n').count());
    Failure::team(format!("is no list of exported files: {}", error.message()))
        .at(format!("{at}:{line}"))
        .hint("bring it back from an earlier commit; without it, squad looks after none of these files")
}
