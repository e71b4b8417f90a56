//! Every way to save a charter, counted against a real watch: whose compiled text has changed is made anew once, and
//! nobody else is.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::support::TestRepo;
use crate::watch::{SCRIPT, Watch};

/// Longer than the watch waits for a save to end: it has looked meanwhile. Only what is tried hangs on it, not what is
/// asserted.
const A_LOOK: Duration = Duration::from_millis(150);

/// A watch with a third session, whose charter is saved after everything else: what comes before its answer is all that
/// the saves have led to.
struct Counted {
    watch: Watch,
    marks: usize,
}

/// How often each thing was said of whom, such as `session.created ada`.
type Counts = BTreeMap<String, usize>;

impl Counted {
    fn new() -> Self {
        let watch = Watch::of(SCRIPT);
        let mut counted = Self { watch, marks: 0 };
        let core = "[sessions]\ncore = [\"ada\", \"bob\", \"rex\"]\n";
        counted.repo().write("../home/config/squad/config.toml", core);
        counted.repo().write(".squad/config.toml", "");
        counted.repo().write(".squad/agents/rex/charter.md", &charter("Rex", "I am Rex."));
        while counted.watch.hear("session.created")["agent"] != "rex" {}
        counted.repo().git(&["add", "-A"]);
        counted.repo().git(&["commit", "--quiet", "--message=three"]);
        counted.count();
        counted
    }

    fn repo(&self) -> &TestRepo {
        &self.watch.repo
    }

    fn path(&self, path: &str) -> PathBuf {
        self.repo().root().join(path)
    }

    /// What has happened since this was asked last.
    fn count(&mut self) -> Counts {
        sleep(A_LOOK);
        self.marks += 1;
        // From a folder that nobody watches, in one step.
        self.repo().write("../mark.md", &charter("Rex", &format!("This is mark {}.", self.marks)));
        fs::rename(self.path("../mark.md"), self.path(".squad/agents/rex/charter.md")).expect("ours");
        let mut counts = Counts::new();
        loop {
            let event = self.watch.next();
            let kind = event["type"].as_str().expect("a type").to_owned();
            for agent in agents_of(&event) {
                *counts.entry(format!("{kind} {agent}")).or_default() += 1;
            }
            if kind == "session.created" && event["agent"] == "rex" {
                break;
            }
        }
        for kind in ["team.changed", "session.destroyed", "session.created"] {
            assert_eq!(counts.remove(&format!("{kind} rex")), Some(1), "{counts:?}");
        }
        counts
    }
}

/// Whom an event is about that tells of a session made anew, or of why.
fn agents_of(event: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match event["type"].as_str() {
        Some("team.changed") => {
            let lists = ["changed", "joined", "left"].map(|list| event[list].as_array().cloned().unwrap_or_default());
            let problem = event["problem"].is_string().then(|| "(problem)".to_owned());
            lists.concat().iter().filter_map(text).chain(problem).collect()
        }
        Some("session.destroyed" | "session.created" | "session.resumed") => {
            text(&event["agent"]).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn charter(name: &str, text: &str) -> String {
    format!("# {name}\n\n{text}\n")
}

/// What is to be counted where these agents are made anew.
fn anew(agents: &[&str]) -> Counts {
    let kinds = ["team.changed", "session.destroyed", "session.created"];
    kinds.iter().flat_map(|kind| agents.iter().map(move |agent| (format!("{kind} {agent}"), 1))).collect()
}

/// Of a text at a path.
type Save = fn(&Path, &str);

fn beside(path: &Path, name: &str) -> PathBuf {
    path.with_file_name(name)
}

/// With a swap file, and a backup in whose place the file is made again.
fn like_vim(path: &Path, text: &str) {
    let (swap, backup) = (beside(path, ".charter.md.swp"), beside(path, "charter.md~"));
    fs::write(&swap, [b'b'; 4096]).expect("ours");
    // Whether a file can be made here.
    fs::write(beside(path, "4913"), "").expect("ours");
    fs::remove_file(beside(path, "4913")).expect("ours");
    fs::rename(path, &backup).expect("ours");
    let mut file = File::create(path).expect("ours");
    file.write_all(text.as_bytes()).expect("ours");
    file.sync_all().expect("ours");
    fs::set_permissions(path, fs::metadata(&backup).expect("ours").permissions()).expect("ours");
    fs::remove_file(backup).expect("ours");
    fs::write(&swap, [b'c'; 8192]).expect("ours");
    fs::remove_file(swap).expect("ours");
}

/// With a lock that is a link to nowhere, a file of what is not saved yet, and a backup that stays.
fn like_emacs(path: &Path, text: &str) {
    let (lock, unsaved) = (beside(path, ".#charter.md"), beside(path, "#charter.md#"));
    symlink("ann@example.com.4711:1767603600", &lock).expect("ours");
    fs::write(&unsaved, text).expect("ours");
    sleep(A_LOOK);
    fs::rename(path, beside(path, "charter.md~")).expect("ours");
    fs::write(path, text).expect("ours");
    fs::remove_file(unsaved).expect("ours");
    fs::remove_file(lock).expect("ours");
}

fn by_rename(path: &Path, text: &str) {
    let new = beside(path, ".charter.md.tmp-1");
    fs::write(&new, text).expect("ours");
    fs::rename(new, path).expect("ours");
}

/// Emptied, and written in two pieces.
fn in_place(path: &Path, text: &str, pause: Duration) {
    let mut file = File::create(path).expect("ours");
    let (one, other) = text.split_at(text.len() / 2);
    for piece in [one, other] {
        sleep(pause);
        file.write_all(piece.as_bytes()).expect("ours");
    }
}

/// The real one.
fn by_sed(path: &Path, text: &str) {
    let last = text.lines().last().expect("a line");
    let done = Command::new("sed").args(["-i.old", "-e", &format!("$s/.*/{last}/")]).arg(path).status();
    assert!(done.expect("sed runs").success());
    assert_eq!(fs::read_to_string(path).expect("ours"), text);
}

#[test]
fn however_a_charter_is_saved_its_session_is_made_anew_once() {
    let mut counted = Counted::new();
    let path = counted.path(".squad/agents/ada/charter.md");
    let saves: [(&str, Save); 7] = [
        ("vim", like_vim),
        ("emacs", like_emacs),
        ("VS Code", |path, text| in_place(path, text, Duration::ZERO)),
        ("sed", by_sed),
        ("renamed", by_rename),
        ("in pieces", |path, text| in_place(path, text, Duration::from_millis(30))),
        ("removed first", |path, text| {
            fs::remove_file(path).expect("ours");
            fs::write(path, text).expect("ours");
        }),
    ];
    for (how, save) in saves {
        let text = charter("Ada", &format!("I am saved as by {how}."));
        save(&path, &text);
        assert_eq!(counted.count(), anew(&["ada"]), "{how}");
        // What it says already.
        save(&path, &text);
        assert_eq!(counted.count(), Counts::new(), "{how}, unchanged");
    }
}

/// It may be seen empty, half, or not at all.
#[test]
fn a_charter_that_is_saved_slowly_is_taken_when_it_is_whole() {
    let mut counted = Counted::new();
    let path = counted.path(".squad/agents/ada/charter.md");
    if cfg!(target_os = "linux") {
        // Elsewhere nothing tells that somebody still writes.
        in_place(&path, &charter("Ada", "I am written slowly, in pieces."), Duration::from_millis(200));
        assert_eq!(counted.count(), anew(&["ada"]), "in pieces");
    }
    fs::write(&path, "").expect("ours");
    sleep(A_LOOK);
    fs::write(&path, charter("Ada", "I was empty.")).expect("ours");
    assert_eq!(counted.count(), anew(&["ada"]), "emptied first");
    fs::remove_file(&path).expect("ours");
    sleep(A_LOOK);
    fs::write(&path, charter("Ada", "I was gone.")).expect("ours");
    assert_eq!(counted.count(), anew(&["ada"]), "removed first");
    // One that stays so is meant.
    fs::write(&path, "").expect("ours");
    while counted.watch.hear("session.created")["agent"] != "ada" {}
}

#[test]
fn a_switch_of_branches_makes_anew_whose_charter_differs() {
    let mut counted = Counted::new();
    let repo = counted.repo();
    repo.git(&["switch", "--quiet", "--create=other"]);
    let clone = repo.root().join("../beside");
    repo.git(&["switch", "--quiet", "main"]);
    // Made where nobody watches.
    repo.git(&["worktree", "add", "--quiet", "../beside", "other"]);
    for number in 0..400 {
        repo.write(&format!("../beside/src/{number}.txt"), "other\n");
        repo.write(&format!("../beside/.squad/notes/{number}.txt"), "other\n");
    }
    repo.write("../beside/.squad/agents/ada/charter.md", &charter("Ada", "I am on the other branch."));
    repo.git_in(&clone, &["add", "-A"]);
    repo.git_in(&clone, &["commit", "--quiet", "--message=other"]);
    repo.git(&["worktree", "remove", "../beside"]);
    counted.count();
    for branch in ["other", "main"] {
        // The mark of the count before.
        counted.repo().git(&["checkout", "--quiet", "--", ".squad/agents/rex/charter.md"]);
        counted.watch.hear("session.created");
        counted.repo().git(&["switch", "--quiet", branch]);
        assert_eq!(counted.count(), anew(&["ada"]), "{branch}");
    }
}

#[test]
fn a_charter_with_conflict_markers_keeps_its_session_until_they_are_gone() {
    let mut counted = Counted::new();
    let path = counted.path(".squad/agents/ada/charter.md");
    let ours = fs::read_to_string(&path).expect("ours");
    let theirs = charter("Ada", "I am theirs.");
    fs::write(&path, format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n")).expect("ours");
    let problem = counted.watch.hear("team.changed")["problem"].to_string();
    assert!(problem.contains("agents/ada/charter.md:1"), "{problem}");
    by_rename(&path, &theirs);
    assert_eq!(counted.count(), anew(&["ada"]));
    // Back to what was: the end of the problem is said, and that is all.
    fs::write(&path, format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n")).expect("ours");
    counted.watch.hear("team.changed");
    by_rename(&path, &theirs);
    assert_eq!(counted.count(), Counts::new());
}

#[test]
fn a_folder_that_goes_and_comes_changes_nobody() {
    let mut counted = Counted::new();
    let (folder, away) = (counted.path(".squad"), counted.path("../away"));
    fs::rename(&folder, &away).expect("ours");
    while !counted.watch.hear("team.changed")["problem"].is_string() {}
    fs::rename(&away, &folder).expect("ours");
    counted.watch.hear("team.changed");
    assert_eq!(counted.count(), Counts::new());
    // What is in it is watched as before.
    by_rename(&folder.join("agents/ada/charter.md"), &charter("Ada", "I am back."));
    assert_eq!(counted.count(), anew(&["ada"]));
    let team =
        counted.repo().read(".squad/team.md").replace("| Bob | Tester", "| Cy | Writer | Active |\n| Bob | Tester");
    counted.repo().write(".squad/agents/cy/deep/er/notes.md", "# Notes\n");
    counted.repo().write(".squad/agents/cy/charter.md", &charter("Cy", "I am new."));
    let core = "[sessions]\ncore = [\"ada\", \"bob\", \"cy\", \"rex\"]\n";
    counted.repo().write("../home/config/squad/config.toml", core);
    counted.repo().write(".squad/team.md", &team);
    while counted.watch.hear("session.created")["agent"] != "cy" {}
    counted.count();
    by_rename(&folder.join("agents/cy/charter.md"), &charter("Cy", "I am saved in a new folder."));
    assert_eq!(counted.count(), anew(&["cy"]));
}

#[test]
fn ten_thousand_other_files_hide_no_save_and_make_nobody_anew() {
    let mut counted = Counted::new();
    let path = counted.path(".squad/agents/ada/charter.md");
    for number in 0..10_000 {
        let folder = [".squad/scratch", "build", ".squad/agents/ada"][number % 3];
        counted.repo().write(&format!("{folder}/{}/{number}.tmp", number % 7), "x");
        if number == 5_000 {
            by_rename(&path, &charter("Ada", "I am saved in the middle."));
        }
    }
    assert_eq!(counted.count(), anew(&["ada"]), "made");
    fs::remove_dir_all(counted.path("build")).expect("ours");
    fs::remove_dir_all(counted.path(".squad/scratch")).expect("ours");
    assert_eq!(counted.count(), Counts::new(), "removed");
}
