//! Finds another program called `squad` in the `PATH`, such as that of the other tool's npm package.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::{Env, real};
use crate::model::{Problem, Severity, Source};

/// The first `squad` in the `PATH`, if it is not this program.
#[derive(Debug, Serialize)]
pub(crate) struct OtherSquad {
    pub(crate) path: PathBuf,
    /// Whether it belongs to the npm package.
    pub(crate) is_of_npm: bool,
}

/// The npm package's name in folders and start scripts.
const PACKAGE: &str = "squad-cli";

/// How many bytes of a script are searched; npm's start scripts have a few hundred.
const HEAD: u64 = 4096;

/// `None` if the first `squad` in the `PATH` is this program, or if there is none.
pub(crate) fn other_squad(env: &Env) -> Option<OtherSquad> {
    let names: &[&str] = if cfg!(windows) { &["squad.exe", "squad.cmd", "squad.ps1"] } else { &["squad"] };
    let folders = std::env::split_paths(env.variable("PATH")?);
    let path = folders
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|candidate| candidate.is_file())?;
    let target = real(&path);
    let own = env.program.as_ref()?;
    if real(own) == target {
        return None;
    }
    Some(OtherSquad { is_of_npm: is_of_npm(&target), path })
}

fn is_of_npm(target: &Path) -> bool {
    let is_named = target.components().any(|part| part.as_os_str() == PACKAGE);
    let mut head = Vec::new();
    let read = File::open(target).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let is_script = head.starts_with(b"#!") || target.extension().is_some_and(|end| end == "cmd" || end == "ps1");
    is_named || read.is_ok() && is_script && String::from_utf8_lossy(&head).contains(PACKAGE)
}

impl OtherSquad {
    pub(crate) fn problem(&self) -> Problem {
        let path = self.path.display();
        let (severity, what) = match self.is_of_npm {
            true => (Severity::Warning, "the npm package @bradygaster/squad-cli"),
            false => (Severity::Note, "another program or another build of this one"),
        };
        let message = format!("`squad` runs {path}, which is {what}");
        let hint = "put this program's folder first in the PATH, or uninstall the other program";
        Problem::new(severity, Source::new("PATH", 0), "other-squad", message).hint(hint)
    }
}
