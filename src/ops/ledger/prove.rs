//! Recomputes derived data and compares it, and checks the ledger's invariants.

use std::fmt;

use serde::Serialize;

use crate::git::{Error, Repository};
use crate::model::{Problem, Severity, Source, plural};
use crate::ops::ledger::examine::examine;
use crate::ops::ledger::index::Index;

/// The number of things that were checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Proof {
    pub(crate) entries: usize,
    /// Written by a later squad.
    pub(crate) newer: usize,
    pub(crate) runs: usize,
    pub(crate) folders: usize,
    pub(crate) commits: usize,
}

impl fmt::Display for Proof {
    /// What was checked; the problems say what did not hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entries, folders) = (plural(self.entries, "entry"), plural(self.folders, "folder"));
        write!(
            f,
            "Checked: every object of git; that {entries} in {folders} can be read, stand where they belong and agree \
             with the index; and that none of {} changed or removed one.",
            plural(self.commits, "commit")
        )
    }
}

/// How many problems of one kind are reported.
const MAX_SHOWN: usize = 5;

pub(crate) fn prove(repository: &Repository) -> Result<(Proof, Vec<Problem>), Error> {
    let mut findings = Findings::default();
    let activity = repository.damage().activity();
    activity.begin("git checks every object");
    for error in repository.fsck_errors()? {
        findings.add("fsck", "git fsck", error, "see git's documentation of fsck");
    }
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok((Proof::default(), findings.0)) };
    let examined = examine(repository, &snapshot)?;
    for (path, message) in examined.misplaced {
        findings.add("entry-misplaced", &path, message, "it was not written by squad; it is kept and shown");
    }
    let (entries, newer) = (examined.entries, examined.newer);
    let (runs, folders) = (examined.runs.len(), examined.folders.len());
    let mut proof = Proof { entries, newer, runs, folders, commits: 0 };
    for team in examined.teams {
        activity.begin("comparing the index with the ledger");
        let Some(index) = Index::open(repository, &team)? else { continue };
        for place in index.stale_spans(&team)? {
            let message = "the index does not match the ledger".to_owned();
            findings.add("index-wrong", &place, message, "delete .git/squad/index; squad will recreate it");
        }
    }
    activity.begin("comparing the ledger's commits");
    let (commits, changes) = repository.ledger().history()?;
    proof.commits = commits;
    for change in changes {
        let message = "was changed or removed after it was written".to_owned();
        findings.add("ledger-rewritten", &change, message, "its old bytes are in an earlier commit of refs/squad/log");
    }
    Ok((proof, findings.0))
}

#[derive(Default)]
struct Findings(Vec<Problem>);

impl Findings {
    fn add(&mut self, code: &'static str, place: &str, message: String, hint: &str) {
        match self.0.iter().filter(|problem| problem.code == code).count() {
            count if count < MAX_SHOWN => {
                let problem = Problem::new(Severity::Error, Source::new(place, 0), code, message);
                self.0.push(problem.hint(hint));
            }
            MAX_SHOWN => {
                let place = Source::new("ledger", 0);
                self.0.push(Problem::new(Severity::Error, place, code, "and more of this kind".to_owned()));
            }
            _ => {}
        }
    }
}
