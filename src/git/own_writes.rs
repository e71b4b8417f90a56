//! What squad's own processes write, as they tell the live runs of the repository: it is no agent's work.

use std::{collections::BTreeMap, fs::File, io::Write, path::Path};

use serde::{Deserialize, Serialize};

use crate::model::{ChangeKind, to_json};

/// Among the files in which runs announce what they do.
const FILE: &str = "squad/runs/squad.writes";

/// What a command of squad's own writes to a work tree.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct OwnWrite {
    /// The work tree's.
    pub(crate) git_dir: String,
    pub(crate) process: u32,
    #[serde(rename = "command")]
    pub(crate) kind: ChangeKind,
    /// The commit it makes, and the one before.
    pub(crate) commit: Option<(String, Option<String>)>,
    /// From the root of the work tree, with `/`.
    pub(crate) files: Vec<String>,
    /// Whether it is done. Each write is announced before it begins, too.
    pub(crate) is_done: bool,
}

/// A ref in one of squad's folders, and what squad has it lead to; `None`: squad deletes it.
pub(crate) type RefWrite = (String, Option<String>);

/// Appends a line, with one call, so that no reader sees lines of two writers mixed.
pub(super) fn announce(common_dir: &Path, kind: &str, write: &impl Serialize) {
    let Ok(line) = to_json(&BTreeMap::from([(kind, write)])) else { return };
    // Fails if there has been no run.
    let file = File::options().create(true).append(true).open(common_dir.join(FILE));
    let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}
