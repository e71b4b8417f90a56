//! What a run's entries tell of the work tree: the snapshots of its unfinished step, and who was at what between them.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::WorkTreeSnapshot;
use crate::model::{Access, Event, EventKind, Slug, TakenSnapshot, change_by};
use crate::pool::{Before, Interval, in_project};

/// From where on a run's snapshots are wanted.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::ops) enum Since {
    Start,
    UnfinishedStep,
}

/// `None`: the snapshots no longer exist. `root` and `prefix`: the project's path, and the same in the repository, ending
/// in `/`, or empty.
/// `first`: the commit of the run's first snapshot, which may have been taken just before the run was killed.
pub(in crate::ops) fn before(
    since: Since,
    events: &[Event],
    (root, prefix): (&str, &str),
    first: Option<&str>,
    read: impl Fn(&str) -> Option<WorkTreeSnapshot>,
) -> Option<Before> {
    let commits = events.iter().enumerate().filter_map(|(place, event)| match &event.kind {
        EventKind::SnapshotTaken(taken) => Some((place, taken.commit.as_str())),
        _ => None,
    });
    let commits: Vec<(usize, &str)> = commits.collect();
    let begins = events.iter().rposition(|event| matches!(event.kind, EventKind::StepStarted { .. }));
    let begins = begins.filter(|_| since == Since::UnfinishedStep);
    let is_before = |(place, _): &&(usize, &str)| begins.is_some_and(|begins| *place < begins);
    let first = commits.first().copied().or(first.map(|commit| (0, commit)))?;
    let base = commits.iter().rev().find(is_before).copied().unwrap_or(first);
    let mut reader = Reader::new((root, prefix), read(base.1)?);
    let (earlier, since) = events.split_at(begins.unwrap_or_default());
    reader.in_clones.extend(earlier.iter().filter_map(gets_clone));
    // An agent's session may be there before the first snapshot is.
    for (place, event) in (earlier.len()..).zip(since) {
        if place > base.0 || !matches!(event.kind, EventKind::SnapshotTaken(_)) {
            reader.read(event, &read);
        }
    }
    Some(reader.before(read(first.1)?))
}

pub(super) fn opens_session(event: &Event) -> bool {
    matches!(event.kind, EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. })
}

/// The agent that works in a clone from here on.
fn gets_clone(event: &Event) -> Option<Slug> {
    event.agent.clone().filter(|_| matches!(event.kind, EventKind::CloneCreated { .. }))
}

/// Follows the entries from one snapshot to the next.
struct Reader<'a> {
    root: &'a str,
    prefix: &'a str,
    snapshots: Vec<(WorkTreeSnapshot, Interval)>,
    open: Interval,
    /// Agents whose commands ran on after the last snapshot. The next one knows better: one in between that found no
    /// change, such as at their end, is not among the entries.
    running: BTreeSet<Slug>,
    /// Calls without an end.
    calls: BTreeMap<(Slug, String), Begun>,
    /// Agents whose work has begun and not completed, with the index of the snapshot it began at.
    begun: BTreeMap<Slug, usize>,
    /// Agents whose calls change nothing in the work tree.
    in_clones: BTreeSet<Slug>,
}

/// A call that has begun.
struct Begun {
    /// How many snapshots there were.
    snapshots: usize,
    /// The file that it writes, if known.
    path: Option<String>,
    is_command: bool,
}

impl<'a> Reader<'a> {
    fn new((root, prefix): (&'a str, &'a str), base: WorkTreeSnapshot) -> Self {
        let snapshots = vec![(base, Interval::default())];
        let (calls, begun, in_clones) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (open, running) = (Interval::default(), BTreeSet::new());
        Self { root, prefix, snapshots, open, running, calls, begun, in_clones }
    }

    fn read(&mut self, event: &Event, read: &impl Fn(&str) -> Option<WorkTreeSnapshot>) {
        self.in_clones.extend(gets_clone(event));
        let is_call = matches!(event.kind, EventKind::ToolStarted { .. } | EventKind::ToolCompleted { .. });
        if is_call && event.agent.as_ref().is_some_and(|agent| self.in_clones.contains(agent)) {
            return;
        }
        match (&event.kind, &event.agent) {
            (EventKind::SnapshotTaken(taken), _) => {
                let TakenSnapshot { commit, commands, running, writing, others, git, down, .. } = taken;
                // Without it, its interval is a part of the next one.
                self.open.commands.extend(commands.iter().cloned());
                self.open.others.extend(others);
                self.open.git.extend(git);
                self.open.is_down |= down;
                self.running.clone_from(running);
                if let Some(snapshot) = read(commit) {
                    let ended = std::mem::take(&mut self.open);
                    for (path, calls) in &ended.named {
                        let is_writing = |(agent, call): &&(Slug, String)| {
                            writing.get(agent).is_some_and(|calls| calls.contains(call))
                        };
                        calls.iter().filter(is_writing).for_each(|(agent, call)| self.open.name(agent, call, path));
                    }
                    self.snapshots.push((snapshot, ended));
                }
            }
            (EventKind::ToolStarted { call, tool, detail }, Some(agent)) => {
                let access = change_by(tool);
                let path = in_project(self.root, detail).filter(|_| access == Some(Access::Write));
                let path = path.map(|path| format!("{}{path}", self.prefix));
                let begun = Begun { snapshots: self.snapshots.len(), path, is_command: access == Some(Access::Shell) };
                self.calls.insert((agent.clone(), call.clone()), begun);
            }
            (EventKind::ToolCompleted { call, wrote, .. }, Some(agent)) => {
                let begun = self.calls.remove(&(agent.clone(), call.clone())).map(|begun| begun.snapshots);
                if let Some(wrote) = wrote {
                    let path = format!("{}{}", self.prefix, wrote.path);
                    self.name(agent, call, &path, begun.unwrap_or(self.snapshots.len()));
                }
            }
            // Later calls are another process's, also those with the same ids.
            (EventKind::RunResumed { .. }, _) => self.cut_calls(),
            (EventKind::Completed(_), Some(agent)) => drop(self.begun.remove(agent)),
            (_, Some(agent)) if opens_session(event) => {
                self.begun.entry(agent.clone()).or_insert(self.snapshots.len() - 1);
            }
            _ => {}
        }
    }

    /// Names a file that a call wrote between this snapshot and now.
    fn name(&mut self, agent: &Slug, call: &str, path: &str, since: usize) {
        let ended = self.snapshots.iter_mut().skip(since).map(|(_, interval)| interval);
        ended.chain([&mut self.open]).for_each(|interval| interval.name(agent, call, path));
    }

    /// The run's process has died. Nobody knows whether its last calls have done anything.
    fn cut_calls(&mut self) {
        for ((agent, call), Begun { snapshots, path, is_command }) in std::mem::take(&mut self.calls) {
            path.iter().for_each(|path| self.name(&agent, &call, path, snapshots));
            self.open.commands.extend(is_command.then_some(agent));
        }
    }

    fn before(mut self, first: WorkTreeSnapshot) -> Before {
        self.cut_calls();
        let Self { snapshots, mut open, running, begun, .. } = self;
        open.commands.extend(running);
        Before { first, snapshots, open, begun }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: Value) -> Event {
        let mut event = json!({
            "seq": 1, "at": "2026-03-01T09:00:00Z", "run": "20260301-090000-abcdef", "agent": "ada",
            "entry": "019ca8c2-8000-7000-8000-000000000000", "step": 1, "attempt": 1, "causes": [],
        });
        event.as_object_mut().expect("an object").append(&mut kind.as_object().expect("an object").clone());
        serde_json::from_value(event).expect("an event")
    }

    /// Whether the file that a call wrote is named in the interval after the snapshot.
    fn names_after(place: usize, writing: &Value) -> bool {
        let mut events = vec![
            json!({"type": "tool.started", "call": "1", "tool": "write", "detail": "a.txt"}),
            json!({"type": "tool.completed", "call": "1", "tool": "write", "ok": true, "exit_code": null,
                   "seconds": 0.1, "detail": "a.txt", "result": "", "wrote": {"path": "a.txt"}}),
        ];
        events.insert(
            place,
            json!({"type": "snapshot.taken", "commit": "b", "left_out": [], "seconds": 0.1,
                                    "writing": writing}),
        );
        let mut reader = Reader::new(("", ""), WorkTreeSnapshot::sample(1));
        for kind in events {
            reader.read(&event(kind), &|_| Some(WorkTreeSnapshot::sample(2)));
        }
        let open = reader.before(WorkTreeSnapshot::sample(1)).open;
        open.named.contains_key("a.txt")
    }

    /// A snapshot says what its interval knew, also if it no longer exists.
    #[test]
    fn what_an_interval_knew_is_kept() {
        let taken = json!({
            "type": "snapshot.taken", "commit": "b", "left_out": [], "seconds": 0.1, "commands": ["ada"],
            "others": {"commands": ["eve"], "named": {"a.txt": ["eve"]}}, "git": {"hooks": ["pre-commit"]}, "down": true,
        });
        for is_there in [true, false] {
            let mut reader = Reader::new(("", ""), WorkTreeSnapshot::sample(1));
            reader.read(&event(taken.clone()), &|_| is_there.then(|| WorkTreeSnapshot::sample(2)));
            let before = reader.before(WorkTreeSnapshot::sample(1));
            let interval = before.snapshots.get(1).map_or(&before.open, |(_, interval)| interval);
            assert_eq!(before.snapshots.len(), if is_there { 2 } else { 1 });
            assert!(interval.commands.len() == 1 && interval.is_down && interval.git.hooks == ["pre-commit"]);
            assert!(interval.others.commands.len() == 1 && interval.others.named.contains_key("a.txt"));
            assert!(!is_there || (before.open.others.is_empty() && !before.open.is_down));
        }
    }

    /// A call without an end × a resumption after it, before or after the next snapshots: it wrote until its process died.
    #[test]
    fn a_call_that_was_cut_short_is_over_when_the_run_goes_on() {
        let call = json!({"type": "tool.started", "call": "1", "tool": "write", "detail": "a.txt"});
        let resumed =
            json!({"type": "run.resumed", "permissions": "allow", "branch": null, "commit": null, "done": []});
        let taken = json!({"type": "snapshot.taken", "commit": "b", "left_out": [], "seconds": 0.1});
        let same = json!({"type": "tool.completed", "call": "1", "tool": "write", "ok": true, "exit_code": null,
                          "seconds": 0.1, "detail": "b.txt", "result": "", "wrote": {"path": "b.txt"}});
        for (events, expected) in [
            (vec![&call], &["a.txt"][..]),
            (vec![&call, &taken], &["a.txt", "a.txt"]),
            (vec![&call, &taken, &resumed, &taken], &["a.txt", "a.txt", ""]),
            (vec![&call, &resumed, &taken, &taken], &["a.txt", "", ""]),
            // Another process uses the same ids again.
            (vec![&call, &resumed, &taken, &same], &["a.txt", "b.txt"]),
            (vec![&call, &resumed, &taken, &call, &resumed, &taken], &["a.txt", "a.txt", ""]),
        ] {
            let mut reader = Reader::new(("", ""), WorkTreeSnapshot::sample(1));
            events.iter().for_each(|kind| reader.read(&event((*kind).clone()), &|_| Some(WorkTreeSnapshot::sample(2))));
            let Before { snapshots, open, .. } = reader.before(WorkTreeSnapshot::sample(1));
            let intervals = snapshots.iter().skip(1).map(|(_, interval)| interval).chain([&open]);
            let named: Vec<String> =
                intervals.map(|interval| interval.named.keys().cloned().collect::<Vec<_>>().join(" ")).collect();
            assert_eq!(named, expected, "{events:?}");
        }
    }

    /// Commands that ran when a snapshot was taken × what the next one says, if there is one.
    #[test]
    fn what_ran_at_a_snapshot_ran_on_after_it_unless_the_next_one_says_otherwise() {
        for running in [&[][..], &["ada"], &["ada", "bob"]] {
            for next in [None, Some(&[][..]), Some(&["ada"][..]), Some(running)] {
                let taken = |running: &[&str], commands: &[&str]| {
                    event(json!({
                        "type": "snapshot.taken", "commit": "b", "left_out": [], "seconds": 0.1, "running": running,
                        "commands": commands,
                    }))
                };
                let mut reader = Reader::new(("", ""), WorkTreeSnapshot::sample(1));
                reader.read(&taken(running, &[]), &|_| Some(WorkTreeSnapshot::sample(2)));
                if let Some(commands) = next {
                    reader.read(&taken(&[], commands), &|_| Some(WorkTreeSnapshot::sample(3)));
                }
                let before = reader.before(WorkTreeSnapshot::sample(1));
                let after = before.snapshots.get(2).map_or(&before.open, |(_, interval)| interval);
                let expected = next.unwrap_or(running);
                assert_eq!(after.commands.iter().map(Slug::as_str).collect::<Vec<_>>(), expected, "{running:?}");
                assert!(next.is_none() || before.open.commands.is_empty());
            }
        }
    }

    /// A person may have the same file in the work tree.
    #[test]
    fn what_is_written_in_a_clone_names_no_file_of_the_work_tree() {
        let created = event(json!({"type": "clone.created", "directory": "/x", "commit": "b", "seconds": 0.1}));
        let mut reader = Reader::new(("", ""), WorkTreeSnapshot::sample(1));
        for number in [1, 2] {
            let call = json!({"type": "tool.completed", "call": "1", "tool": "write", "ok": true, "exit_code": null,
                              "seconds": 0.1, "detail": "a.txt", "result": "", "wrote": {"path": format!("{number}.txt")}});
            reader.read(&event(call), &|_| None);
            reader.read(&created, &|_| None);
        }
        assert_eq!(reader.open.named.keys().collect::<Vec<_>>(), ["1.txt"]);
    }

    /// A clone that an agent got in the step before, in this one × and none.
    #[test]
    fn a_clone_of_an_earlier_step_is_worked_in_still() {
        let snapshot = json!({"type": "snapshot.taken", "commit": "b", "left_out": [], "seconds": 0.1});
        let step = json!({"type": "step.started", "agents": ["ada"]});
        let created = json!({"type": "clone.created", "directory": "/x", "commit": "b", "seconds": 0.1});
        let call = json!({"type": "tool.completed", "call": "1", "tool": "write", "ok": true, "exit_code": null,
                          "seconds": 0.1, "detail": "a.txt", "result": "", "wrote": {"path": "a.txt"}});
        for place in [None, Some(2), Some(3)] {
            let mut kinds = vec![&snapshot, &step, &step, &call];
            place.into_iter().for_each(|place| kinds.insert(place, &created));
            let events: Vec<Event> = kinds.into_iter().cloned().map(event).collect();
            let read = |_: &str| Some(WorkTreeSnapshot::sample(1));
            let before = before(Since::UnfinishedStep, &events, ("", ""), None, read).expect("the snapshots are there");
            assert_eq!(before.open.named.contains_key("a.txt"), place.is_none(), "{place:?}");
        }
    }

    #[test]
    fn what_was_written_while_a_snapshot_was_taken_is_of_both_intervals() {
        let writing = json!({"ada": BTreeSet::from(["1"])});
        let others = json!({"bob": ["1"], "ada": ["2"]});
        for (place, writing, is_named) in [
            (0, &json!({}), true),
            (1, &json!({}), true),
            (2, &json!({}), false),
            (2, &others, false),
            (2, &writing, true),
        ] {
            assert_eq!(names_after(place, writing), is_named, "{place} {writing}");
        }
    }
}
