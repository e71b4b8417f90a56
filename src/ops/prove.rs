//! Makes everything that is derived again and compares, and checks what must always hold of the ledger.

use std::collections::BTreeSet;

use serde::Serialize;

use super::index::Index;
use crate::git::{Error, Repository};
use crate::model::{Problem, Severity, Source};
use crate::record::{Entry, Read};

/// What was looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Proof {
    pub(crate) entries: usize,
    /// Written by a later squad.
    pub(crate) newer: usize,
    pub(crate) folders: usize,
    pub(crate) commits: usize,
}

/// More of one kind are only counted.
const SHOWN: usize = 5;

pub(crate) fn prove(repository: &Repository) -> Result<(Proof, Vec<Problem>), Error> {
    let mut findings = Findings::default();
    for complaint in repository.complaints()? {
        findings.add("fsck", "git fsck", complaint, "git's documentation of fsck says what can be done");
    }
    let Some(snapshot) = repository.ledger().snapshot()? else { return Ok((Proof::default(), findings.0)) };
    let mut proof = Proof::default();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    let mut teams: BTreeSet<String> = BTreeSet::new();
    snapshot.each(|path, bytes| {
        let (team, _) = split(path);
        if !teams.contains(team) {
            teams.insert(team.to_owned());
        }
        if let Some((folder, _)) = path.rsplit_once('/').filter(|(folder, _)| !folders.contains(*folder)) {
            folders.insert(folder.to_owned());
        }
        match Entry::parse(bytes) {
            Read::Entry(entry) if entry.lies_at(path, team) => proof.entries += 1,
            Read::Entry(entry) => {
                let message = format!("is not where entry {} belongs: {}", entry.id, entry.path(team));
                findings.add("entry-misplaced", path, message, "it was not written by squad; it is kept and shown");
            }
            Read::Newer { .. } => proof.newer += 1,
            Read::Damaged { reason } => {
                findings.add("entry-damaged", path, reason, "it was not written by squad; it is kept and left out");
            }
        }
    })?;
    proof.folders = folders.len();
    for team in teams {
        let Some(index) = Index::open(repository, &team)? else { continue };
        for place in index.lies(&team)? {
            let message = "the index does not say what the ledger says".to_owned();
            findings.add("index-wrong", &place, message, "remove .git/squad/index; it is made again");
        }
    }
    let (commits, changes) = repository.ledger().history()?;
    proof.commits = commits;
    for change in changes {
        let message = "was changed or removed after it was written".to_owned();
        findings.add("ledger-rewritten", &change, message, "its old bytes are in an earlier commit of refs/squad/log");
    }
    Ok((proof, findings.0))
}

/// What a path begins with before `log/`, `decisions/` or `memory/`: the team's place.
fn split(path: &str) -> (&str, &str) {
    let parts = path.strip_prefix("teams/").and_then(|rest| rest.split_once('/'));
    parts.map_or(("", path), |(_, rest)| path.split_at(path.len() - rest.len()))
}

#[derive(Default)]
struct Findings(Vec<Problem>);

impl Findings {
    fn add(&mut self, code: &'static str, place: &str, message: String, hint: &str) {
        match self.0.iter().filter(|problem| problem.code == code).count() {
            count if count < SHOWN => {
                let problem = Problem::new(Severity::Error, Source::new(place, 0), code, message);
                self.0.push(problem.hint(hint));
            }
            SHOWN => {
                let place = Source::new("ledger", 0);
                self.0.push(Problem::new(Severity::Error, place, code, "and more of this kind".to_owned()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_its_team() {
        assert_eq!(split("log/2026/01/05/a.md"), ("", "log/2026/01/05/a.md"));
        assert_eq!(split("teams/a%2Fb/memory/2026/x.md"), ("teams/a%2Fb/", "memory/2026/x.md"));
        assert_eq!(split("teams/x.md"), ("", "teams/x.md"));
    }
}
