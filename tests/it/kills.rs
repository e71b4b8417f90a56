//! Commands that are killed while they change something: git finds nothing wrong, nothing is lost, and the same command,
//! given again, comes to its end without doing anything twice.
//!
//! `SQUAD_KILLS=200 cargo test --test it kills:: -- --nocapture` kills each of them more often.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::TestRepo;

mod calls;
mod random;
mod user;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

fn kills() -> u32 {
    std::env::var("SQUAD_KILLS").ok().and_then(|value| value.parse().ok()).unwrap_or(5)
}

fn start(repo: &TestRepo, arguments: &[&str], input: &str) -> Child {
    let mut command = repo.command(BINARY, &repo.root());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("squad runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child
}

/// How long a command takes that nobody kills, and what it leaves.
struct Story {
    make: fn() -> TestRepo,
    arguments: &'static [&'static str],
    input: &'static str,
    /// What must be the same in the end, killed or not.
    outcome: fn(&TestRepo) -> Vec<String>,
}

impl Story {
    fn run(&self) {
        let repo = (self.make)();
        let begun = Instant::now();
        assert!(start(&repo, self.arguments, self.input).wait().expect("it ends").success());
        let whole = begun.elapsed();
        let wanted = (self.outcome)(&repo);
        let mut cut_short = 0;
        for number in 0..kills() {
            let repo = (self.make)();
            let mut child = start(&repo, self.arguments, self.input);
            // Spread over all of it, and a little beyond.
            std::thread::sleep(whole * (number + 1) * 11 / (kills() * 10));
            let _ = child.kill();
            cut_short += u32::from(!child.wait().expect("it ends").success());
            settle(&repo);
            repo.assert_sound();
            let mut again = start(&repo, self.arguments, self.input);
            let code = again.wait().expect("it ends").code();
            assert_eq!(code, Some(0), "after {number}: {}", repo.git(&["status", "--porcelain"]));
            assert_eq!((self.outcome)(&repo), wanted, "after {number}");
            repo.assert_sound();
        }
        println!("{:?}: {whole:.0?}, {cut_short} of {} cut short", self.arguments, kills());
    }
}

/// git's own processes go on after squad's death, in a group of their own, and end by themselves.
fn settle(repo: &TestRepo) {
    let lock = repo.root().join(".git/index.lock");
    for _ in 0..500 {
        if !lock.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(30));
}

const DECISIONS: &str = "# Decisions\n\n### 2026-01-02: Tar the hull\n\nBlack.\n\n### 2026-01-03: Ropes\n\nLater.\n";

fn with_work() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/decisions.md", DECISIONS);
    repo.write(".squad/agents/ada/history.md", "# Ada\n\n## Learnings\n\n- One.\n");
    repo.write("work.txt", "before\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ tool = \"squad_remember\", args = { text = \"The code is Swordfish.\" } }, { say = \"Done.\" }]\n";
    assert_eq!(repo.rehearse(script, &["--agent", "ada", "learn"]).code, 0);
    repo.write("work.txt", "edited\n");
    repo.write("untracked.txt", "Swordfish\n");
    repo
}

/// Work tree, branch and index; what is beside them for a moment does not count.
fn tree(repo: &TestRepo) -> Vec<String> {
    let aside = |line: &&str| !line.contains(".squad-");
    let status = repo.git(&["status", "--porcelain"]);
    let status: Vec<&str> = status.lines().filter(aside).collect();
    vec![
        status.join("\n"),
        repo.git(&["ls-tree", "-r", "HEAD"]),
        repo.git(&["rev-list", "--count", "HEAD"]),
        repo.read("work.txt"),
        repo.read("untracked.txt"),
    ]
}

fn kinds(repo: &TestRepo) -> String {
    let listed = repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
    let mut kinds: Vec<&str> = listed.lines().filter_map(|path| path.get(path.rfind('/')? + 38..)).collect();
    kinds.sort_unstable();
    kinds.join(" ")
}

#[test]
fn decisions_import() {
    let outcome = |repo: &TestRepo| [tree(repo), vec![kinds(repo)]].concat();
    Story { make: with_work, arguments: &["decisions", "import"], input: "", outcome }.run();
}

#[test]
fn history_land() {
    let outcome = |repo: &TestRepo| [tree(repo), vec![repo.read(".squad/agents/ada/history.md"), kinds(repo)]].concat();
    Story { make: with_work, arguments: &["history", "land"], input: "", outcome }.run();
}

#[test]
fn scrub() {
    let make = || {
        let repo = with_work();
        let output = repo.squad(&["decisions", "import"]);
        assert_eq!(output.code, 0, "{output}");
        repo
    };
    let outcome = |repo: &TestRepo| {
        repo.write("untracked.txt", "");
        let everything = repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
        assert!(!everything.contains("Swordfish"));
        [tree(repo), vec![kinds(repo)]].concat()
    };
    Story { make, arguments: &["scrub", "--value-stdin", "--prune", "--yes"], input: "Swordfish", outcome }.run();
}

#[test]
fn rescue_restore() {
    let make = || {
        let repo = with_work();
        let output = repo.squad(&["decisions", "import"]);
        assert_eq!(output.code, 0, "{output}");
        repo.write("untracked.txt", "another\n");
        repo.write("work.txt", "another\n");
        repo
    };
    let outcome = |repo: &TestRepo| {
        // What was there before is in a rescue.
        let rescues = repo.git(&["for-each-ref", "--format=%(objectname)", "refs/squad/rescue"]);
        let texts: Vec<String> =
            rescues.lines().map(|commit| repo.git(&["show", &format!("{commit}:untracked.txt")])).collect();
        assert!(texts.iter().any(|text| text == "another\n"), "{texts:?}");
        [tree(repo), vec![repo.read(".squad/decisions.md")]].concat()
    };
    Story { make, arguments: &["rescue", "restore", "20260105"], input: "", outcome }.run();
}
