//! What `squad gc` clears of the engine's stored sessions.
#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::process::{SLOW, rest, signal, start, wait_for};
use crate::support::TestRepo;

const HOME: &str = ".git/squad/homes/0123456789ab/copilot";

struct Stored {
    repo: TestRepo,
    /// The test clock's beginning.
    now: SystemTime,
}

impl Stored {
    fn new() -> Self {
        let now: jiff::Timestamp = "2026-01-05T09:00:00Z".parse().expect("a time stamp");
        Self { repo: TestRepo::with_small_team(), now: now.into() }
    }

    fn path(&self, session: &str) -> PathBuf {
        self.repo.root().join(HOME).join("session-state").join(session)
    }

    /// A session whose store was written to so many days ago.
    fn add(&self, session: &str, bytes: u64, days: u64) {
        let folder = self.path(session);
        fs::create_dir_all(folder.join("files")).expect("a folder");
        let file = File::create(folder.join("events.jsonl")).expect("a file");
        file.set_len(bytes).expect("it is ours");
        let at = self.now - Duration::from_secs(days * 24 * 60 * 60);
        file.set_modified(at).expect("it is ours");
        for folder in [folder.join("files"), folder] {
            File::open(folder).and_then(|folder| folder.set_modified(at)).expect("it is ours");
        }
        self.repo.write(&format!("{HOME}/session-state/.session-operation-locks/{session}.lock"), "");
    }

    /// Clears, and returns how many went and how many bytes they had: as many as a dry run says, which clears none.
    fn gc(&self) -> (u64, u64) {
        let cleared = |options: &[&str]| {
            let output = self.repo.squad(&[&["gc", "--json"], options].concat());
            let value: Value = serde_json::from_str(&output.out).expect("JSON");
            let number = |name: &str| value[name].as_u64().expect("a number");
            (number("sessions"), number("session_bytes"))
        };
        let (before, would) = (self.left(), cleared(&["--dry-run"]));
        assert_eq!(self.left(), before);
        assert_eq!(cleared(&[]), would);
        would
    }

    fn left(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("")).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// The id of the newest run.
    fn run(&self) -> String {
        let log: Value = serde_json::from_str(&self.repo.squad(&["log", "--json"]).out).expect("JSON");
        log["runs"][0]["run"].as_str().expect("a run").to_owned()
    }
}

#[test]
fn sessions_of_runs_that_are_over_go_by_age_and_by_size() {
    let stored = Stored::new();
    for _ in 0..2 {
        assert_eq!(stored.repo.squad(&["orchestrate", "--engine", "rehearsal", "-a", "ada", "x"]).code, 0);
    }
    let run = stored.run();
    let mib = 1024 * 1024;
    for (agent, bytes, days) in [("old", 7, 4), ("new", 100 * mib, 1), ("mid", 150 * mib, 2), ("big", 10 * mib, 3)] {
        stored.add(&format!("squad-{agent}-{run}"), bytes, days);
    }
    stored.add("squad-ada-20250101-000000-000001", 9 * mib, 13);
    stored.add("squad-bob-20250101-000000-000001", 3, 15);
    // A standing session is no run's.
    stored.add("squad-ada", 300 * mib, 13);
    assert_eq!(stored.gc(), (3, 7 + 3 + 10 * mib));
    let kept = ["squad-ada", "squad-ada-20250101-000000-000001", "squad-mid-RUN", "squad-new-RUN"];
    assert_eq!(stored.left(), kept.map(|name| name.replace("RUN", &run)));
    let locks = fs::read_dir(stored.path(".session-operation-locks")).expect("a folder").count();
    assert_eq!((locks, stored.gc()), (4, (0, 0)));
    stored.add(&format!("squad-old-{run}"), 2_500_000, 4);
    let output = stored.repo.squad(&["gc"]);
    assert!(output.out.starts_with("✓ 1 stored session removed (2.5 MB)\n"), "{output}");
}

/// A limit that is no size is said where it would hold, and the built-in one does.
#[test]
fn a_limit_that_is_no_size_is_said() {
    let stored = Stored::new();
    for (limit, is_said) in [("\"much\"", true), ("12", true), ("\"1 MiB\"", false)] {
        stored.repo.write(".squad/config.toml", &format!("[sessions]\nworkspace_limit = {limit}\n"));
        for command in [&["gc"][..], &["gc", "--json"], &["orchestrate", "--engine", "rehearsal", "-a", "ada", "x"]] {
            let output = stored.repo.squad(command);
            let said = output.err.matches(".squad/config.toml:2: `sessions.workspace_limit`").count();
            assert_eq!((output.code, said), (0, usize::from(is_said)), "{limit} {command:?}: {output}");
        }
    }
}

/// At the end of a run, and no more often than it must: what can be resumed, is live or standing stays, however large.
#[test]
fn what_is_over_keeps_to_a_limit_by_itself() {
    let stored = Stored::new();
    let runs = |more: &[&str]| {
        let output = stored.repo.squad(&[&["orchestrate", "--engine", "rehearsal", "-a", "ada", "x"], more].concat());
        assert_eq!(output.code, 0, "{output}");
    };
    runs(&[]);
    let run = stored.run();
    stored.add(&format!("squad-new-{run}"), 600_000, 1);
    stored.add(&format!("squad-old-{run}"), 600_000, 2);
    runs(&[]);
    assert_eq!(stored.left().len(), 2);
    stored.repo.write(".squad/config.toml", "[sessions]\nworkspace_limit = \"1 MB\"\n");
    runs(&[]);
    assert_eq!(stored.left(), [format!("squad-new-{run}")]);
    stored.add("squad-ada", 5_000_000, 1);
    runs(&[]);
    assert_eq!(stored.left(), ["squad-ada".to_owned(), format!("squad-new-{run}")]);
    stored.repo.write(".squad/config.toml", "[sessions]\nworkspace_limit = \"much\"\n");
    let listed = stored.repo.squad(&["config", "list"]);
    assert!(listed.err.contains("config.toml:2: `sessions.workspace_limit` `much` is not a size"), "{listed}");
}

/// What the caches of sandboxes hold × how long ago somebody worked with them; `status` counts them before.
#[test]
fn caches_go_by_age_and_by_size() {
    let stored = Stored::new();
    let state = Path::new(&stored.repo.variables["HOME"]).join(".local/state/squad");
    let mib = 1024 * 1024;
    let caches = [
        ("caches/today", 3 * 1024, 0, "stays"),
        ("caches/large", 100, 2, "goes"),
        ("tmp/20251101-000000-000001-1-x", 1, 20, "stays"),
        ("tmp/20251101-000000-000002-4194305-x", 1, 20, "goes"),
        ("caches/old", 1, 15, "goes"),
    ];
    for (name, size, days, _) in &caches {
        let folder = state.join(name);
        fs::create_dir_all(folder.join("below")).expect("a folder");
        let file = File::create(folder.join("below/file")).expect("a file");
        file.set_len(size * mib).expect("it is ours");
        let at = stored.now - Duration::from_secs(days * 24 * 60 * 60);
        File::open(&folder).and_then(|folder| folder.set_modified(at)).expect("it is ours");
    }
    symlink("/etc", state.join("caches/today/below/link")).expect("a link");
    let status: Value = serde_json::from_str(&stored.repo.squad(&["status", "--json"]).out).expect("JSON");
    assert_eq!(status["left_by_runs"]["complete"], true, "{status}");
    let bytes = status["left_by_runs"]["bytes"].as_u64().expect("a number");
    assert_eq!(bytes / mib, 3 * 1024 + 103, "{status}");
    let shown = stored.repo.squad(&["status"]);
    assert!(shown.out.contains("leftovers  3329.2 MB of sessions, output and caches"), "{shown}");
    let would = stored.repo.squad(&["gc", "--dry-run"]);
    assert!(would.out.contains("3 old folders of sandboxes would be removed (107.0 MB)\n"), "{would}");
    let output = stored.repo.squad(&["gc"]);
    assert!(output.out.contains("3 old folders of sandboxes removed (107.0 MB)\n"), "{output}");
    for (name, .., what) in caches {
        assert_eq!(state.join(name).exists(), what == "stays", "{name}");
    }
    fs::remove_dir_all(&state).expect("a folder");
    // Less than is worth a line.
    let shown = stored.repo.squad(&["status"]);
    assert!(!shown.out.contains("leftovers"), "{shown}");
}

#[test]
fn sessions_of_live_and_of_interrupted_runs_stay() {
    let stored = Stored::new();
    let mut child = start(&stored.repo, SLOW, &["x"]);
    wait_for(&mut child, "Begun.");
    let live = stored.run();
    stored.add(&format!("squad-ada-{live}"), 5, 400);
    assert_eq!(stored.gc(), (0, 0));
    signal(&child, "INT");
    rest(child);
    stored.add(&format!("squad-ada-{live}"), 5, 13);
    assert_eq!(stored.gc(), (0, 0), "it may be resumed");
    stored.add(&format!("squad-ada-{live}"), 5, 15);
    assert_eq!(stored.gc(), (1, 5));
}

#[test]
fn no_link_leads_out_of_the_homes() {
    let stored = Stored::new();
    let outside = stored.repo.root().join("../outside");
    let store = outside.join("session-state/squad-far-20250101-000000-000001");
    fs::create_dir_all(&store).expect("a folder");
    for file in [store.join("kept.txt"), outside.join("squad-ada-20250101-000000-000001.lock")] {
        fs::write(file, "kept").expect("a file");
    }
    let old = |path: &Path| {
        File::open(path).and_then(|file| file.set_modified(stored.now - Duration::from_secs(1_000 * 86_400)))
    };
    for path in [&store, &store.join("kept.txt")] {
        old(path).expect("it is ours");
    }
    stored.add("squad-ada-20250101-000000-000001", 5, 400);
    let inner = stored.path("squad-ada-20250101-000000-000001/files");
    symlink(&store, inner.join("link")).expect("a link");
    let long_ago = ["-h", "-d", "2020-01-01"].iter().map(AsRef::as_ref);
    let touched = std::process::Command::new("touch").args(long_ago.chain([inner.join("link").as_os_str()])).status();
    assert!(touched.expect("touch runs").success());
    old(&inner).expect("it is ours");
    symlink(&store, stored.path("squad-bob-20250101-000000-000001")).expect("a link");
    fs::remove_dir_all(stored.path(".session-operation-locks")).expect("it is ours");
    symlink(&outside, stored.path(".session-operation-locks")).expect("a link");
    let homes = stored.repo.root().join(".git/squad/homes");
    symlink(&outside, homes.join("linked-home")).expect("a link");
    for (folder, link) in [("1", "copilot"), ("2/copilot", "session-state")] {
        fs::create_dir_all(homes.join(folder)).expect("a folder");
        let target = if link == "copilot" { outside.clone() } else { outside.join("session-state") };
        symlink(target, homes.join(folder).join(link)).expect("a link");
    }
    let (sessions, _) = stored.gc();
    assert_eq!((sessions, stored.left()), (1, vec!["squad-bob-20250101-000000-000001".to_owned()]));
    assert!(store.join("kept.txt").exists() && outside.join("squad-ada-20250101-000000-000001.lock").exists());
}

#[test]
fn what_command_engines_printed_goes_the_same_way_with_its_chat() {
    let stored = Stored::new();
    assert_eq!(stored.repo.squad(&["orchestrate", "--engine", "rehearsal", "-a", "ada", "x"]).code, 0);
    let run = stored.run();
    for (agent, days) in [("old", 4), ("new", 1)] {
        let (output, chat) = (format!("output/squad-{agent}-{run}"), format!("chats/squad-{agent}-{run}.json"));
        stored.repo.write(&format!(".git/squad/{output}/1.stdout"), "12345");
        stored.repo.write(&format!(".git/squad/{chat}"), "{}");
        let folder = stored.repo.root().join(".git/squad").join(output);
        let at = stored.now - Duration::from_secs(days * 24 * 60 * 60);
        for path in [folder.join("1.stdout"), folder] {
            File::open(path).and_then(|file| file.set_modified(at)).expect("it is ours");
        }
    }
    assert_eq!(stored.gc(), (1, 5));
    for folder in ["output", "chats"] {
        let left = fs::read_dir(stored.repo.root().join(".git/squad").join(folder)).expect("a folder").flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert!(matches!(&left[..], [one] if one.starts_with(&format!("squad-new-{run}"))), "{left:?}");
    }
}
