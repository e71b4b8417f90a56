//! Attributes changes to agents.
//!
//! Snapshots cut a run into intervals. What changed in an interval was changed by whoever's tool named the path, else by
//! the agents whose commands were running in it, else by nobody of the run.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{AgentGitChanges, Change, ChangeClass, ChangeEvidence, GitChanges, IntoSet, OtherRuns, Slug};

/// The time between two snapshots, including the time it took to take them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    /// Agents with a command, or another call that may change anything, running at some time.
    pub(crate) commands: BTreeSet<Slug>,
    /// Tool calls that named a path relative to the repository's root, by path: agent and call.
    pub(crate) named: BTreeMap<String, BTreeSet<(Slug, String)>>,
    pub(crate) others: OtherRuns,
    /// The run was interrupted in it.
    pub(crate) is_down: bool,
    /// What differs between its snapshots.
    pub(crate) changes: Vec<Change>,
    pub(crate) git: GitChanges,
}

/// Who made a change, and how it is known.
pub(crate) type Attribution = (ChangeClass, BTreeSet<Slug>, Option<ChangeEvidence>);

impl Interval {
    pub(crate) fn name(&mut self, agent: &Slug, call: &str, path: &str) {
        self.named.entry(path.to_owned()).or_default().insert((agent.clone(), call.to_owned()));
    }

    /// The tool calls that write in it, by agent.
    pub(super) fn writing(&self) -> BTreeMap<Slug, BTreeSet<String>> {
        let mut writing: BTreeMap<Slug, BTreeSet<String>> = BTreeMap::new();
        for (agent, call) in self.named.values().flatten() {
            writing.entry(agent.clone()).or_default().insert(call.clone());
        }
        writing
    }

    /// Forgets what a call named: it did not take place.
    pub(super) fn withdraw(&mut self, agent: &Slug, call: &str) {
        self.named.retain(|_, calls| {
            calls.retain(|(other, named)| (other, named.as_str()) != (agent, call));
            !calls.is_empty()
        });
    }

    /// Whether the run's own process landed this file: nobody's change.
    pub(crate) fn is_landed(&self, path: &str) -> bool {
        self.others.landed.contains(path) && !self.named.contains_key(path)
    }

    /// Whether another run may have changed this file, too.
    pub(crate) fn is_beside(&self, path: &str) -> bool {
        !self.others.commands.is_empty() || self.others.named.contains_key(path)
    }

    pub(crate) fn attribute(&self, path: &str) -> Attribution {
        let namers: BTreeSet<Slug> =
            self.named.get(path).into_iter().flatten().map(|(agent, _)| agent.clone()).into_set();
        let of_others = self.others.named.contains_key(path);
        let of_squad = self.others.squad.contains(path);
        let (ours, is_alone, how) = match namers.is_empty() && !of_others && !of_squad {
            true => (self.commands.clone(), self.others.commands.is_empty(), ChangeEvidence::Command),
            false => (namers, !of_others, ChangeEvidence::Named),
        };
        match (ours.len(), is_alone) {
            (0, false) => (ChangeClass::OtherRun, ours, None),
            (0, true) if self.is_down && !of_squad => (ChangeClass::Unknown, ours, None),
            // A command ended with the run, and anybody may have changed the file since.
            (1.., _) if self.is_down && how == ChangeEvidence::Command => (ChangeClass::Unknown, BTreeSet::new(), None),
            (0, true) => (ChangeClass::Yours, ours, None),
            (1, true) => (ChangeClass::Own, ours, Some(how)),
            // Agents of another run may have the same names.
            _ => (ChangeClass::Together, ours, Some(how)),
        }
    }
}

/// Which changes of a file belong together: the class, the evidence, and of an agent's own changes the agent.
type Kind = (ChangeClass, Option<ChangeEvidence>, Option<Slug>);

/// The changes of one kind in a file.
#[derive(Default)]
struct Share {
    by: BTreeSet<Slug>,
    /// The sum over all intervals; `None`: a file without lines.
    lines: Option<(u64, u64)>,
}

/// The changes during these intervals that are, or may be, an agent's, and those that no agent made. `net`: what differs
/// between their ends. Without an agent, only the latter.
pub(super) fn changes_of(agent: Option<&Slug>, intervals: &[Interval], net: Vec<Change>) -> Vec<Change> {
    let mut shares = shares(intervals);
    let mut changes = Vec::new();
    for change in net {
        // The difference of an omitted file that was read back is not known for each interval.
        let Some(shares) = shares.remove(change.path.as_str()) else { continue };
        let is_whole = shares.len() == 1;
        for ((class, how, _), Share { by, lines }) in shares {
            if class.is_of_agents() && !agent.is_some_and(|agent| by.contains(agent)) {
                continue;
            }
            let (added, removed) = if is_whole { (change.added, change.removed) } else { lines.unzip() };
            let (path, by) = (change.path.clone(), by.into_iter().collect());
            changes.push(Change { path, added, removed, class, by, how, ..Change::default() });
        }
    }
    changes
}

/// The changed files of which an agent's are part.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Committable {
    /// Those that only it has changed, by tools that named them.
    pub(crate) own: BTreeSet<String>,
    /// Those that changed while its commands ran, and nobody else's.
    pub(crate) by_command: BTreeSet<String>,
    /// The others, each with the reason why the agent cannot commit it.
    pub(crate) others: BTreeMap<String, String>,
}

impl Committable {
    pub(super) fn leave_out(&mut self, path: String, why: &str) {
        if self.own.remove(&path) || self.by_command.remove(&path) {
            self.others.insert(path, why.to_owned());
        }
    }
}

pub(super) fn committable(agent: &Slug, intervals: &[Interval], net: &[Change]) -> Committable {
    let mut shares = shares(intervals);
    let mut found = Committable::default();
    for Change { path, .. } in net {
        let shares = shares.remove(path.as_str()).unwrap_or_default();
        let is_own = |kind: &Kind| matches!(kind, (ChangeClass::Own, _, Some(other)) if other == agent);
        if shares.values().any(|share| share.by.contains(agent)) {
            let is_named = shares.keys().all(|(_, how, _)| *how == Some(ChangeEvidence::Named));
            if is_named { &mut found.own } else { &mut found.by_command }.insert(path.clone());
            if path.contains(char::REPLACEMENT_CHARACTER) {
                found.leave_out(path.clone(), "its name is not UTF-8");
            } else if !shares.keys().all(is_own) {
                found.leave_out(path.clone(), "somebody else has changed it too, or may have");
            }
        }
    }
    found
}

fn shares(intervals: &[Interval]) -> BTreeMap<&str, BTreeMap<Kind, Share>> {
    let mut shares: BTreeMap<&str, BTreeMap<Kind, Share>> = BTreeMap::new();
    for interval in intervals {
        for change in interval.changes.iter().filter(|change| !interval.is_landed(&change.path)) {
            let (class, by, how) = interval.attribute(&change.path);
            // One agent's own changes are not another's.
            let of = by.first().filter(|_| class == ChangeClass::Own).cloned();
            let lines = change.added.zip(change.removed);
            let first = || Share { by: BTreeSet::new(), lines: Some((0, 0)) };
            let share = shares.entry(&change.path).or_default().entry((class, how, of)).or_insert_with(first);
            let sum = |((added, removed), (more_added, more_removed))| (added + more_added, removed + more_removed);
            share.lines = share.lines.zip(lines).map(sum);
            share.by.extend(by);
        }
    }
    shares
}

/// What an agent's commands did to the repository itself, or may have.
pub(super) fn git_changes_of(agent: &Slug, intervals: &[Interval]) -> AgentGitChanges {
    let mut all = AgentGitChanges::default();
    for interval in intervals.iter().filter(|interval| interval.commands.contains(agent) && !interval.git.is_empty()) {
        let Interval { commands, others, git, .. } = interval;
        match commands.len() == 1 && others.commands.is_empty() {
            _ if interval.is_down => all.unknown.extend(git),
            true => all.own.extend(git),
            false => all.share(commands.iter().cloned().collect(), git),
        }
    }
    all
}
