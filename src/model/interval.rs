//! What is known of the time between two snapshots.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Slug;

/// A snapshot of the work tree. All but its commit and the files that it lacks describes the time since the previous one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TakenSnapshot {
    pub(crate) commit: String,
    pub(crate) left_out: Vec<SkippedFile>,
    pub(crate) seconds: f64,
    /// The agents whose commands were running at some time.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) commands: BTreeSet<Slug>,
    /// The agents whose commands ran while it was taken, or run from now on.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) running: BTreeSet<Slug>,
    /// The tool calls, by agent, that were writing while it was taken: it may lack what they wrote.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) writing: BTreeMap<Slug, BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "OtherRuns::is_empty")]
    pub(crate) others: OtherRuns,
    #[serde(default, skip_serializing_if = "GitChanges::is_empty")]
    pub(crate) git: GitChanges,
    /// The name of the linked work tree in which the run works; `None`: it is the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) work_tree: Option<String>,
    /// The run was interrupted meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) down: bool,
}

/// A file that squad leaves out or leaves as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SkippedFile {
    pub(crate) path: String,
    pub(crate) why: String,
}

/// What other runs in the same work tree, and squad's other commands, did during some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OtherRuns {
    /// Agents whose commands were running.
    pub(crate) commands: BTreeSet<Slug>,
    /// Files that their tool calls named, relative to the repository's root; those that they landed have no agent.
    pub(crate) named: BTreeMap<String, BTreeSet<Slug>>,
    /// Files that the person had squad write.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) squad: BTreeSet<String>,
    /// Files that the run's own process landed: nobody's.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) landed: BTreeSet<String>,
}

impl OtherRuns {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.commands.extend(other.commands.iter().cloned());
        for (path, agents) in &other.named {
            self.named.entry(path.clone()).or_default().extend(agents.iter().cloned());
        }
        self.squad.extend(other.squad.iter().cloned());
        self.landed.extend(other.landed.iter().cloned());
    }
}

/// Changes of the repository itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GitChanges {
    /// Ids of new commits, newest first.
    pub(crate) commits: Vec<String>,
    /// There were too many to name all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_more_commits: bool,
    /// `HEAD`, branches, tags, the stash and other refs.
    pub(crate) refs: Vec<RefChange>,
    /// Configuration keys, without their values.
    pub(crate) config: Vec<String>,
    /// Names of hooks.
    pub(crate) hooks: Vec<String>,
    /// Paths that were staged or unstaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) index: Vec<String>,
}

/// What an agent's commands changed in the repository itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentGitChanges {
    #[serde(flatten)]
    pub(crate) own: GitChanges,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) together: Vec<SharedGitChanges>,
    /// Its command ended with the run, and anybody may have made these since.
    #[serde(skip_serializing_if = "GitChanges::is_empty")]
    pub(crate) unknown: GitChanges,
}

/// Changes that any of several agents may have made. A single agent shares them with another run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SharedGitChanges {
    pub(crate) by: Vec<Slug>,
    #[serde(flatten)]
    pub(crate) changes: GitChanges,
}

impl AgentGitChanges {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn all(&self) -> impl Iterator<Item = &GitChanges> {
        self.together.iter().map(|shared| &shared.changes).chain([&self.own, &self.unknown])
    }

    pub(crate) fn has_more_commits(&self) -> bool {
        self.all().any(|changes| changes.has_more_commits)
    }

    /// The names of all refs that moved.
    pub(crate) fn refs(&self) -> impl Iterator<Item = &String> {
        self.all().flat_map(|changes| &changes.refs).map(|moved| &moved.name)
    }

    /// Adds later changes that these agents may have made.
    pub(crate) fn share(&mut self, by: Vec<Slug>, later: &GitChanges) {
        match self.together.iter_mut().find(|shared| shared.by == by) {
            Some(shared) => shared.changes.extend(later),
            None => self.together.push(SharedGitChanges { by, changes: later.clone() }),
        }
    }
}

/// A ref that moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RefChange {
    pub(crate) name: String,
    /// Commit ids, or the name of a branch for `HEAD`. `None`: it did not exist.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

impl RefChange {
    /// Where it led before these commits, which are given with those that they were made on.
    pub(crate) fn before(&self, commits: &BTreeMap<String, Option<String>>) -> Option<String> {
        let mut before = &self.to;
        // What others have written there may lead in a circle.
        for _ in 0..=commits.len() {
            match before.as_ref().and_then(|commit| commits.get(commit)) {
                Some(base) if *before != self.from => before = base,
                _ => break,
            }
        }
        before.clone()
    }
}

impl GitChanges {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Leaves out these commits, given with those that the refs `made_on` led to before.
    pub(crate) fn without(
        mut self,
        commits: &BTreeMap<String, Option<String>>,
        made_on: impl Fn(&str) -> bool,
    ) -> Self {
        self.commits.retain(|commit| !commits.contains_key(commit));
        for change in self.refs.iter_mut().filter(|change| made_on(&change.name)) {
            let before = change.before(commits);
            // It may lead back to such a commit.
            if before == change.from || before.as_ref().is_some_and(|commit| self.commits.contains(commit)) {
                change.to = before;
            }
        }
        self.refs.retain(|change| change.from != change.to);
        self
    }

    /// Adds later changes.
    pub(crate) fn extend(&mut self, later: &Self) {
        let commits = later.commits.iter().filter(|commit| !self.commits.contains(commit));
        self.commits = commits.chain(&self.commits).cloned().collect();
        self.has_more_commits |= later.has_more_commits;
        for change in &later.refs {
            match self.refs.iter_mut().find(|known| known.name == change.name) {
                Some(known) => known.to.clone_from(&change.to),
                None => self.refs.push(change.clone()),
            }
        }
        self.refs.retain(|change| change.from != change.to);
        let lists =
            [(&mut self.config, &later.config), (&mut self.hooks, &later.hooks), (&mut self.index, &later.index)];
        for (all, later) in lists {
            all.extend(later.iter().cloned());
            all.sort();
            all.dedup();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and later: what a ref was and what it became.
    #[test]
    fn a_ref_has_moved_from_its_first_place_to_its_last() {
        let moved = |from: Option<&str>, to: Option<&str>| GitChanges {
            refs: vec![RefChange { name: "r".to_owned(), from: from.map(str::to_owned), to: to.map(str::to_owned) }],
            ..GitChanges::default()
        };
        let (a, b, c) = (Some("a"), Some("b"), Some("c"));
        for ((from, via, to), is_change) in [
            ((a, b, c), true),
            ((a, b, a), false),
            ((None, a, b), true),
            ((None, a, None), false),
            ((a, None, a), false),
            ((a, None, b), true),
            ((a, b, None), true),
        ] {
            let mut all = moved(from, via);
            all.extend(&moved(via, to));
            assert_eq!(all, if is_change { moved(from, to) } else { GitChanges::default() });
        }
    }

    /// `S` and `T` are squad's commits: on `a`, and on an agent's `c`.
    #[test]
    fn squads_commits_are_left_out() {
        let squads = BTreeMap::from([("S".to_owned(), Some("a".to_owned())), ("T".to_owned(), Some("c".to_owned()))]);
        for (commits, (from, to), left, moved) in [
            (&["S"][..], ("a", "S"), &[][..], None),
            (&["T", "c", "S"], ("a", "T"), &["c"], Some("c")),
            (&["T", "c"], ("S", "T"), &["c"], Some("c")),
            (&["d"], ("S", "d"), &["d"], Some("d")),
            // Back to a commit of squad's.
            (&[], ("d", "S"), &[], Some("S")),
        ] {
            let text = |text: &&str| (*text).to_owned();
            let moves = RefChange { name: "refs/heads/main".to_owned(), from: Some(text(&from)), to: Some(text(&to)) };
            let changes =
                GitChanges { commits: commits.iter().map(text).collect(), refs: vec![moves], ..GitChanges::default() };
            let GitChanges { commits, refs, .. } = changes.without(&squads, |name| name != "refs/squad/log");
            let to = refs.first().and_then(|moved| moved.to.as_deref());
            assert_eq!((&commits[..], to), (&left.iter().map(text).collect::<Vec<_>>()[..], moved), "{from} {to:?}");
        }
    }

    /// What others have written beside squad may lead in a circle.
    #[test]
    fn what_leads_in_a_circle_has_an_end() {
        let name = |text: &str| Some(text.to_owned());
        let squads = BTreeMap::from([("a".to_owned(), name("b")), ("b".to_owned(), name("a"))]);
        for (from, is_found) in [("a", true), ("c", false)] {
            let moved = RefChange { name: "refs/squad/log".to_owned(), from: name(from), to: name("b") };
            assert_eq!(moved.before(&squads) == moved.from, is_found, "{from}");
        }
    }
}
