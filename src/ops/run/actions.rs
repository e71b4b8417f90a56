//! What runs in one work tree know of each other: each appends the actions of its agents to a file of its own, next to
//! its lease, and reads those of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::git::{LEDGER, OwnWrite, RefWrite, Repository};
use crate::model::{ChangeKind, GitChanges, OtherRuns, RefChange, Slug, from_json, to_json};
use crate::ops::run::lease::{self, RunFiles};
use crate::pool::Action;

/// One line of such a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line: the work tree.
    In(String),
    Begin(Slug),
    End(Slug),
    /// Agent, path and call.
    Write(Slug, String, String),
    /// By any squad, in any work tree.
    Squad(OwnWrite),
    /// In squad's folders of refs, by any squad.
    Refs(Vec<RefWrite>),
    /// A commit of the ledger, and the one before, by any squad.
    Ledger(String, Option<String>),
}

/// The actions of this run, and of the others in its work tree.
pub(super) struct Actions {
    local: PathBuf,
    own: PathBuf,
    work_tree: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None`: nothing is announced yet, or the file cannot be written.
    file: Option<File>,
    others: BTreeMap<PathBuf, Other>,
    /// What others have done since it was last asked for.
    since: OtherRuns,
    /// All commits that squad has made, with those that their branches led to before, and files and refs that it has
    /// written.
    squads: Squads,
}

#[derive(Default)]
struct Squads {
    commits: BTreeMap<String, Option<String>>,
    files: BTreeSet<String>,
    refs: BTreeSet<RefWrite>,
    /// The ledger's commits, each with the one before.
    ledger: BTreeMap<String, Option<String>>,
}

/// Another run's file, as far as it is read.
struct Other {
    reader: BufReader<File>,
    /// The start of a line whose end is not written yet.
    partial: String,
    is_here: bool,
    running: BTreeSet<Slug>,
    /// What squad's own processes are writing.
    writing: BTreeMap<u32, OwnWrite>,
    /// When the run was first seen dead.
    died: Option<Instant>,
}

/// How long after its death a run's commands may still write: its guardian ends them.
const LAST_WRITES: Duration = Duration::from_secs(1);

impl Actions {
    pub(super) fn new(repository: &Repository, local: &Path, files: &RunFiles) -> Self {
        let (local, own) = (local.to_owned(), files.actions.clone());
        let work_tree = repository.git_dir().display().to_string();
        let actions = Self { local, own, work_tree, state: Mutex::default() };
        if files.actions.exists() || files.written.exists() {
            // What the run's killed process did is not this one's.
            actions.open(&mut actions.state.lock());
        }
        // What others did before is not of interest.
        actions.others();
        actions
    }

    /// A run that cannot announce its actions works all the same.
    pub(super) fn announce(&self, action: Action<'_>) {
        let line = match action {
            Action::Begin(agent) => Line::Begin(agent.clone()),
            Action::End(agent) => Line::End(agent.clone()),
            Action::Write { agent, call, path } => Line::Write(agent.clone(), path.to_owned(), call.to_owned()),
        };
        let mut state = self.state.lock();
        if state.file.is_none() {
            self.open(&mut state);
        }
        append(&state.file, &line);
    }

    fn open(&self, state: &mut State) {
        state.file = OpenOptions::new().create(true).append(true).open(&self.own).ok();
        append(&state.file, &Line::In(self.work_tree.clone()));
    }

    /// What the other runs have done since the last call, and what they are at now.
    pub(super) fn others(&self) -> (OtherRuns, OtherRuns) {
        let mut state = self.state.lock();
        let now = self.read(&mut state);
        (std::mem::take(&mut state.since), now)
    }

    /// Whether squad itself has made a ref of its own lead there.
    pub(super) fn is_squads(&self, moved: &RefChange) -> bool {
        let mut state = self.state.lock();
        self.read(&mut state);
        let is_written = state.squads.refs.contains(&(moved.name.clone(), moved.to.clone()));
        is_written || moved.name == LEDGER && moved.before(&state.squads.ledger) == moved.from
    }

    /// Leaves out what squad itself did.
    pub(super) fn without_squads(&self, changes: GitChanges) -> GitChanges {
        let mut state = self.state.lock();
        self.read(&mut state);
        let changes = changes.without(&state.squads.commits, |name| name != LEDGER);
        let mut changes = changes.without(&state.squads.ledger, |name| name == LEDGER);
        changes.index.retain(|path| !state.squads.files.contains(path));
        changes
    }

    /// Reads what is new. Returns what the others are at now.
    fn read(&self, state: &mut State) -> OtherRuns {
        for path in lease::action_files(&self.local).filter(|path| *path != self.own) {
            if !state.others.contains_key(&path)
                && let Ok(file) = File::open(&path)
            {
                state.others.insert(path, Other::new(file));
            }
        }
        let mut now = OtherRuns::default();
        let mut is_live = None;
        let State { others, since, squads, .. } = state;
        for (path, other) in others {
            let mut done = other.going_on();
            done.extend(&other.read(&self.work_tree, squads));
            if !other.is_here {
                continue;
            }
            since.extend(&done);
            if !other.running.is_empty() {
                let live = is_live.get_or_insert_with(|| lease::look(&self.local).live);
                let name = path.file_stem().and_then(|name| name.to_str());
                other.end_commands(live.iter().any(|live| Some(live.run.as_str()) == name), Instant::now());
            }
            now.extend(&other.going_on());
        }
        now
    }
}

/// The calls of a run's last process that wrote files, each with its agent and a path: the ledger may lack those of the
/// moment before it was killed.
pub(in crate::ops) fn writes(files: &RunFiles) -> Vec<(Slug, String, String)> {
    let mut writes = Vec::new();
    for line in [&files.written, &files.actions].into_iter().flat_map(fs::read_to_string).collect::<String>().lines() {
        match from_json(line) {
            Ok(Line::In(_)) => writes.clear(),
            Ok(Line::Write(agent, path, call)) => writes.push((agent, call, path)),
            _ => {}
        }
    }
    writes
}

/// Appends a line with one call, so that no reader sees lines of two writers mixed.
fn append(file: &Option<File>, line: &Line) {
    if let (Some(mut file), Ok(mut line)) = (file.as_ref(), to_json(line)) {
        line.push('\n');
        let _ = file.write_all(line.as_bytes());
    }
}

impl Other {
    fn new(file: File) -> Self {
        Self {
            reader: BufReader::new(file),
            partial: String::new(),
            is_here: false,
            running: BTreeSet::new(),
            writing: BTreeMap::new(),
            died: None,
        }
    }

    /// The commands of a run that died have ended after a while.
    fn end_commands(&mut self, is_live: bool, now: Instant) {
        if is_live {
            self.died = None;
        } else if now.duration_since(*self.died.get_or_insert(now)) > LAST_WRITES {
            self.running.clear();
        }
    }

    fn going_on(&self) -> OtherRuns {
        let mut going_on = OtherRuns { commands: self.running.clone(), ..OtherRuns::default() };
        self.writing.values().for_each(|write| note(write, &mut going_on));
        going_on
    }

    /// Reads what has been appended.
    fn read(&mut self, work_tree: &str, squads: &mut Squads) -> OtherRuns {
        let mut done = OtherRuns::default();
        while self.reader.read_line(&mut self.partial).is_ok_and(|bytes| bytes > 0) && self.partial.ends_with('\n') {
            let line = std::mem::take(&mut self.partial);
            match from_json(&line) {
                Ok(Line::In(place)) => self.is_here = place == work_tree,
                Ok(Line::Begin(agent)) => {
                    done.commands.insert(agent.clone());
                    self.running.insert(agent);
                }
                Ok(Line::End(agent)) => drop(self.running.remove(&agent)),
                Ok(Line::Write(agent, path, _)) => drop(done.named.entry(path).or_default().insert(agent)),
                Ok(Line::Squad(write)) => {
                    squads.commits.extend(write.commit.clone());
                    if write.git_dir == work_tree {
                        self.is_here = true;
                        squads.files.extend(write.files.iter().cloned());
                        note(&write, &mut done);
                        match write.is_done {
                            true => drop(self.writing.remove(&write.process)),
                            false => drop(self.writing.insert(write.process, write)),
                        }
                    }
                }
                Ok(Line::Refs(writes)) => squads.refs.extend(writes),
                Ok(Line::Ledger(commit, before)) => drop(squads.ledger.insert(commit, before)),
                // Written by a later squad.
                Err(_) => {}
            }
        }
        done
    }
}

fn note(write: &OwnWrite, noted: &mut OtherRuns) {
    let files = write.files.iter().cloned();
    match write.kind == ChangeKind::LandDecisions {
        true if write.process == std::process::id() => noted.landed.extend(files),
        true => noted.named.extend(files.map(|path| (path, BTreeSet::new()))),
        false => noted.squad.extend(files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slug(name: &str) -> Slug {
        Slug::fold(name).expect("a slug")
    }

    #[test]
    fn another_runs_actions_are_read_as_they_are_appended() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.actions");
        let file = Some(OpenOptions::new().create(true).append(true).open(&path).expect("a file"));
        let mut other = Other::new(File::open(&path).expect("a file"));
        append(&file, &Line::In("here".to_owned()));
        append(&file, &Line::Begin(slug("ada")));
        assert_eq!(other.read("here", &mut Squads::default()).commands, BTreeSet::from([slug("ada")]));
        assert!(other.is_here && other.read("here", &mut Squads::default()).is_empty());
        append(&file, &Line::Write(slug("bob"), "a.txt".to_owned(), "1".to_owned()));
        append(&file, &Line::End(slug("ada")));
        let done = other.read("here", &mut Squads::default());
        assert_eq!(done.named, BTreeMap::from([("a.txt".to_owned(), BTreeSet::from([slug("bob")]))]));
        assert!(done.commands.is_empty() && other.running.is_empty());
        file.as_ref().expect("a file").write_all(b"{\"begin\":").expect("it is written");
        assert!(other.read("here", &mut Squads::default()).is_empty());
        file.as_ref().expect("a file").write_all(b"\"eve\"}\n").expect("it is written");
        assert_eq!(other.read("here", &mut Squads::default()).commands, BTreeSet::from([slug("eve")]));
    }

    /// In this work tree and in another × what begins and ends before, between and after two looks.
    #[test]
    fn commands_of_another_run_count_in_every_interval_they_ran_in() {
        for (place, is_here) in [("here", true), ("elsewhere", false)] {
            let folder = tempfile::tempdir().expect("a folder");
            let local = folder.path().to_owned();
            fs::create_dir(local.join("runs")).expect("a folder");
            let actions = |run: &str, place: &str| Actions {
                local: local.clone(),
                own: local.join("runs").join(format!("{run}.actions")),
                work_tree: place.to_owned(),
                state: Mutex::default(),
            };
            let (ours, theirs) = (actions("a", "here"), actions("b", place));
            let (ada, bob) = (&slug("ada"), &slug("bob"));
            for (done, since, now) in [
                (&[Action::Begin(ada)][..], &["ada"][..], &["ada"][..]),
                (&[], &["ada"], &["ada"]),
                (&[Action::End(ada)], &["ada"], &[]),
                (&[Action::Begin(bob), Action::End(bob)], &["bob"], &[]),
                (&[], &[], &[]),
            ] {
                done.iter().for_each(|action| theirs.announce(*action));
                let shown = |others: &OtherRuns| others.commands.iter().map(Slug::to_string).collect::<Vec<_>>();
                let (found, at_work) = ours.others();
                let expected = if is_here { [since, now] } else { [&[][..]; 2] };
                assert_eq!([shown(&found), shown(&at_work)], expected, "{place} {done:?}");
            }
        }
    }

    /// By a landing and by another command of squad's, of this process and of another × before, during and after.
    #[test]
    fn what_squad_writes_counts_until_it_is_done() {
        use ChangeKind::{Init, LandDecisions};
        for (kind, process) in [(LandDecisions, 1), (LandDecisions, std::process::id()), (Init, 1)] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("squad.writes");
            let file = Some(OpenOptions::new().create(true).append(true).open(&path).expect("a file"));
            let mut other = Other::new(File::open(&path).expect("a file"));
            let line = |is_done| {
                let (git_dir, kind, files) = ("here".to_owned(), kind.clone(), vec!["a.md".to_owned()]);
                Line::Squad(OwnWrite { git_dir, process, kind, commit: None, files, is_done })
            };
            let shown = |noted: &OtherRuns| (noted.named.len(), noted.landed.len(), noted.squad.len());
            let expected = match (&kind, process) {
                (LandDecisions, 1) => (1, 0, 0),
                (LandDecisions, _) => (0, 1, 0),
                _ => (0, 0, 1),
            };
            let nothing = (0, 0, 0);
            for (written, read, goes_on) in [
                (Some(false), expected, expected),
                (None, nothing, expected),
                (Some(true), expected, nothing),
                (None, nothing, nothing),
            ] {
                if let Some(is_done) = written {
                    append(&file, &line(is_done));
                }
                let done = other.read("here", &mut Squads::default());
                assert_eq!((shown(&done), shown(&other.going_on())), (read, goes_on), "{kind} {process} {written:?}");
            }
        }
    }

    /// In this work tree and in another: files are of one work tree, commits of all.
    #[test]
    fn what_squad_writes_in_another_work_tree_is_not_written_here() {
        for (git_dir, is_here) in [("here", true), ("elsewhere", false)] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("squad.writes");
            let file = Some(OpenOptions::new().create(true).append(true).open(&path).expect("a file"));
            let mut other = Other::new(File::open(&path).expect("a file"));
            for is_done in [false, true] {
                let (git_dir, files) = (git_dir.to_owned(), vec!["a.md".to_owned()]);
                let commit = Some(("c".repeat(40), None));
                let (process, kind) = (1, ChangeKind::Init);
                append(&file, &Line::Squad(OwnWrite { git_dir, process, kind, commit, files, is_done }));
                let mut squads = Squads::default();
                let done = other.read("here", &mut squads);
                assert_eq!((!done.squad.is_empty(), other.is_here), (is_here, is_here), "{is_here}");
                assert_eq!(other.going_on().squad.contains("a.md"), is_here && !is_done);
                assert_eq!((squads.files.contains("a.md"), squads.commits.len()), (is_here, 1));
            }
        }
    }

    /// Its guardian needs a moment to end them; and it may have been resumed.
    #[test]
    fn commands_of_a_run_that_died_count_a_little_longer() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.actions");
        fs::write(&path, "").expect("a file");
        let start = Instant::now();
        let after = |looks: &[(u64, bool)]| {
            let mut other = Other::new(File::open(&path).expect("a file"));
            other.running.insert(slug("ada"));
            looks.iter().for_each(|(ms, is_live)| other.end_commands(*is_live, start + Duration::from_millis(*ms)));
            !other.running.is_empty()
        };
        for (looks, is_running) in [
            (&[(5000, true)][..], true),
            (&[(5000, false)], true),
            (&[(0, false), (900, false)], true),
            (&[(0, false), (1100, false)], false),
            (&[(0, false), (500, true), (1100, false)], true),
            (&[(0, false), (500, true), (1100, false), (2200, false)], false),
        ] {
            assert_eq!(after(looks), is_running, "{looks:?}");
        }
    }
}
