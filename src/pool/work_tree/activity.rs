//! The snapshots of a run, and who is at what between them.

use std::collections::{BTreeMap, BTreeSet};

use super::before::Before;
use super::intervals::Interval;
use crate::git::WorkTreeSnapshot;
use crate::model::{OtherRuns, Slug};

/// The snapshots so far, and who is at what.
#[derive(Default)]
pub(super) struct Activity {
    /// The run's first snapshot, if it was taken before the run was resumed.
    pub(super) origin: Option<WorkTreeSnapshot>,
    pub(super) snapshots: Vec<WorkTreeSnapshot>,
    /// `intervals[i]` lies between the snapshots `i` and `i + 1`.
    pub(super) intervals: Vec<Interval>,
    /// Since the last snapshot.
    pub(super) open: Interval,
    /// The next interval, while a snapshot is taken: what happens meanwhile belongs to both.
    pub(super) next: Option<Interval>,
    /// The number of snapshots begun.
    pub(super) cuts: u64,
    /// The first snapshot failed, so nothing is known of agents that began before the second one.
    pub(super) lacks_first: bool,
    /// Each agent with the index of the snapshot its work began at.
    pub(super) at_work: BTreeMap<Slug, usize>,
    /// Agents whose work is over and that no snapshot has ended yet.
    pub(super) leaving: BTreeSet<Slug>,
    /// The first and last snapshot of agents that have not fetched them yet.
    pub(super) left: BTreeMap<Slug, (usize, usize)>,
    /// Agents with commands that run now.
    pub(super) running: BTreeMap<Slug, Running>,
    /// The paths that calls in progress name, by agent and call.
    pub(super) naming: BTreeMap<(Slug, String), Naming>,
    /// What each file held when the last call that wrote it had ended.
    pub(super) written: BTreeMap<String, Option<blake3::Hash>>,
    /// All files that agents' tools said they write.
    pub(super) named: BTreeMap<Slug, BTreeSet<String>>,
    /// Where interrupted agents began.
    pub(super) begun: BTreeMap<Slug, usize>,
    /// The snapshot before the interruption, for the first agent that begins after it.
    pub(super) interrupted_at: Option<usize>,
}

/// What a call in progress writes.
#[derive(Default)]
pub(super) struct Naming {
    pub(super) paths: BTreeSet<String>,
    /// It may have written, whatever its result.
    pub(super) is_allowed: bool,
}

/// The commands of an agent that run now.
#[derive(Default)]
pub(super) struct Running {
    pub(super) calls: BTreeSet<String>,
    /// An engine that does not ask may run a command at any time of its turn.
    pub(super) is_unasked: bool,
}

impl Activity {
    /// Continues a resumed run.
    pub(super) fn go_on(&mut self, before: Before) {
        let Before { first, snapshots, open, begun } = before;
        let (snapshots, intervals): (Vec<_>, Vec<_>) = snapshots.into_iter().unzip();
        self.intervals = intervals.into_iter().skip(1).collect();
        for (path, calls) in self.intervals.iter().chain([&open]).flat_map(|interval| &interval.named) {
            for (agent, _) in calls {
                self.named.entry(agent.clone()).or_default().insert(path.clone());
            }
        }
        self.origin = Some(first);
        self.interrupted_at = snapshots.len().checked_sub(1).filter(|_| begun.is_empty());
        (self.snapshots, self.begun) = (snapshots, begun);
        self.open = Interval { is_down: true, ..open };
    }

    /// Registers something that happens now.
    pub(super) fn at_once(&mut self, register: impl Fn(&mut Interval)) {
        register(&mut self.open);
        if let Some(next) = &mut self.next {
            register(next);
        }
    }

    /// An interval that begins now, with all that goes on.
    pub(super) fn beginning(&self, others: OtherRuns) -> Interval {
        let mut interval = Interval { commands: self.running.keys().cloned().collect(), others, ..Interval::default() };
        for ((agent, call), naming) in &self.naming {
            naming.paths.iter().for_each(|path| interval.name(agent, call, path));
        }
        interval
    }

    /// Registers that an agent's processes have run since its first command.
    pub(super) fn ran_on(&mut self, agent: &Slug) {
        let Some(begun) = self.at_work.get(agent) else { return };
        let since = self.intervals.get_mut(*begun..).unwrap_or_default();
        let first = since.iter().position(|interval| interval.commands.contains(agent)).unwrap_or(since.len());
        for interval in since.get_mut(first..).unwrap_or_default() {
            interval.commands.insert(agent.clone());
        }
        self.at_once(|interval| interval.commands.extend([agent.clone()]));
    }

    /// Registers the snapshot for the end of these agents.
    pub(super) fn end(&mut self, leaving: BTreeSet<Slug>, is_cut: bool) {
        let ended = self.snapshots.len().saturating_sub(1);
        for agent in leaving {
            if let Some(begun) = self.at_work.remove(&agent).filter(|_| is_cut) {
                self.left.insert(agent, (begun, ended));
            }
        }
    }
}
