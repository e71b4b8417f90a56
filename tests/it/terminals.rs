//! Terminals that are small, dumb or do not read, pipes that are closed, full disks, and texts that are long, wide or
//! hostile.

use std::fmt::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::process::signal;
use crate::support::TestRepo;
use crate::terminal::Person;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// `RUN` stands for the run.
const LISTINGS: [&[&str]; 27] = [
    &["status"],
    &["log"],
    &["log", "RUN"],
    &["log", "RUN", "--events"],
    &["log", "--usage"],
    &["diff", "RUN"],
    &["agents"],
    &["agents", "show", "ada"],
    &["route", "make it nicer"],
    &["decisions"],
    &["decisions", "radar"],
    &["decisions", "review", "HEAD~1"],
    &["why", "a.txt"],
    &["policy"],
    &["rescue"],
    &["trust"],
    &["config"],
    &["knowledge"],
    &["squads"],
    &["doctor"],
    &["engines"],
    &["hosts"],
    &["mcp", "--check"],
    &["gc", "--dry-run"],
    &["remove", "--dry-run"],
    &["adopt", "--dry-run"],
    &["undo", "RUN", "--dry-run"],
];

/// Wide, combining, from right to left, hidden, and what a terminal would obey.
const ODD: &str = "日本語 e\u{301}\u{301}\u{301} \u{202e}abc\u{202c} עברית \u{200b}\u{feff} \u{1b}[2J\u{1b}]0;x\u{7} 👩\u{200d}👩\u{200d}👧";

/// A team, a decision and a run that are all of that, with a line of a million characters.
fn odd() -> (TestRepo, String) {
    let repo = TestRepo::with_small_team();
    let roster = repo.read(".squad/team.md").replace("Backend Dev", &ODD.replace(['\u{1b}', '\u{7}'], " "));
    repo.write(".squad/team.md", &roster);
    repo.git(&["commit", "--quiet", "--all", "--message=odd"]);
    assert_eq!(repo.squad(&["decisions", "add", &format!("{ODD}\n{}", "long ".repeat(10_000))]).code, 0);
    let toml = |text: &str| serde_json::to_string(text).expect("a text");
    let long = "x".repeat(1_000_000);
    let script = format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ say = {} }}, {{ write = \"a.txt\", text = {} }}, {{ say = {} }}]\n",
        toml(&long),
        toml(&format!("{ODD}\n{long}\n")),
        toml(ODD),
    );
    let output = repo.rehearse(&script, &["--permissions", "allow", "--agent", "ada", ODD]);
    assert_eq!(output.code, 0, "{}", output.err);
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = log["runs"][0]["run"].as_str().expect("a run").to_owned();
    (repo, run)
}

fn of_run<'a>(arguments: &[&'a str], run: &'a str) -> Vec<&'a str> {
    arguments.iter().map(|argument| if *argument == "RUN" { run } else { argument }).collect()
}

fn resize(person: &Person, lines: u16, columns: u16) {
    tcsetwinsize(&person.terminal, Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
        .expect("a size");
}

#[test]
fn every_listing_is_shown_on_any_terminal() {
    let (repo, run) = odd();
    for (size, term, locale) in
        [((5, 20), "xterm", "C.UTF-8"), ((40, 100), "dumb", "C.UTF-8"), ((24, 80), "xterm", "C")]
    {
        for arguments in LISTINGS {
            let mut person = Person::sits_down();
            resize(&person, size.0, size.1);
            let mut command = repo.command(BINARY, &repo.root());
            command.args(of_run(arguments, &run)).env("TERM", term).env("LC_ALL", locale).env("PAGER", "cat");
            let mut child = person.starts(command);
            while child.try_wait().expect("a child").is_none() {
                person.reads();
            }
            person.reads();
            let (code, screen) = (child.wait().expect("it ends").code(), &person.screen);
            let when = format!("{arguments:?} {size:?} {term} {locale}");
            assert!(code.is_some_and(|code| code <= 4) && !screen.is_empty(), "{when}: {code:?} {screen}");
            for bad in ["\u{202e}", "\u{feff}", "\u{1b}]", "\u{1b}[2J", "\u{7}", "panicked"] {
                assert!(!screen.contains(bad), "{when}: {bad:?} in {screen:?}");
            }
            assert!(term != "dumb" || !screen.contains('\u{1b}'), "{when}: {screen:?}");
            assert!(locale != "C" || !screen.contains(['✓', '✗', '●', '○', '◆', '…', '·', '“']), "{when}: {screen:?}");
        }
    }
}

/// As by `| head -1`, when the first line is enough.
#[test]
fn every_listing_ends_quietly_when_nobody_reads_on() {
    let (repo, run) = odd();
    for arguments in LISTINGS.iter().chain(&[&["help"][..], &["help", "rehearsal"], &["man"], &["completions", "bash"]])
    {
        let mut command = repo.command(BINARY, &repo.root());
        command.args(of_run(arguments, &run)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("squad runs");
        drop(child.stdout.take());
        let done = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code().is_some_and(|code| code <= 4), "{arguments:?}: {} {said}", done.status);
        assert!(!said.contains("panicked") && !said.to_lowercase().contains("broken pipe"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_what_was_there() {
    let (repo, run) = odd();
    let full = std::fs::File::options().write(true).open("/dev/full");
    if let Ok(full) = full {
        let done = repo.command(BINARY, &repo.root()).arg("log").stdout(full).output().expect("squad runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && said.contains("cannot write the output"), "{said}");
    }
    // No file may grow beyond a few blocks.
    repo.write("mine.html", "mine");
    for (file, options, left) in [("run.html", "", None), ("mine.html", "--force", Some("mine"))] {
        let script = format!("trap '' XFSZ; ulimit -f 8; exec '{BINARY}' log {run} --html {file} {options}");
        let done = repo.command("sh", &repo.root()).args(["-c", &script]).output().expect("a shell");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && said.contains(file), "{}: {said}", done.status);
        let now = std::fs::read_to_string(repo.root().join(file)).ok();
        assert_eq!(now.as_deref(), left, "{said}");
    }
    let names = std::fs::read_dir(repo.root()).expect("a folder").flatten().map(|entry| entry.file_name());
    let names: Vec<_> = names.filter(|name| name.to_string_lossy().contains("html")).collect();
    assert_eq!(names, ["mine.html"], "nothing half written is left");
}

#[test]
fn two_hundred_agents_have_room() {
    const COUNT: usize = 200;
    let repo = TestRepo::empty();
    let names: Vec<String> = (1..=COUNT).map(|number| format!("a{number}")).collect();
    let mut roster = "| Name | Role |\n|---|---|\n".to_owned();
    let mut script = String::new();
    for name in &names {
        writeln!(roster, "| {name} | Dev |").expect("a text");
        writeln!(script, "[[turn]]\nagent = \"{name}\"\nsteps = [{{ wait = \"200ms\" }}, {{ say = \"Done.\" }}]")
            .expect("a text");
    }
    repo.write(".squad/team.md", &roster);
    repo.write("../script.toml", &script);
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=team"]);
    let mut person = Person::sits_down();
    resize(&person, 24, 80);
    let mut command = repo.command(BINARY, &repo.root());
    command.args(["orchestrate", "--script", "../script.toml", "--agent", &names.join(","), "What is there?"]);
    command.env("TERM", "xterm");
    let mut child = person.starts(command);
    person.waits_for("and 193 more: ");
    while child.try_wait().expect("a child").is_none() {
        person.reads();
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--all", "--json"]).out).expect("JSON");
    // And the coordinator, who sums up.
    assert_eq!(log["runs"][0]["agents"].as_object().map(serde_json::Map::len), Some(COUNT + 1), "{log}");
}

/// A run at a terminal that nobody reads, such as that of a connection that is gone.
fn unread(last: &str) -> (TestRepo, Person, Child) {
    let repo = TestRepo::with_small_team();
    let says = format!("{{ say = \"{}\" }}, ", "word ".repeat(400)).repeat(200);
    repo.write("../script.toml", &format!("[[turn]]\nagent = \"ada\"\nsteps = [{says}{last}]\n"));
    let mut person = Person::sits_down();
    resize(&person, 30, 100);
    let mut command = repo.command(BINARY, &repo.root());
    command.args([
        "orchestrate",
        "-v",
        "--script",
        "../script.toml",
        "--permissions",
        "allow",
        "--agent",
        "ada",
        "Talk",
    ]);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let child = person.starts(command);
    (repo, person, child)
}

fn ends(child: &mut Child) -> Option<i32> {
    let since = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        assert!(since.elapsed() < Duration::from_secs(60), "it waits for its terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait().expect("it ends").code()
}

fn status(repo: &TestRepo) -> String {
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    log["runs"][0]["status"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_run_ends_though_its_terminal_reads_nothing() {
    let (repo, _person, mut child) = unread("{ write = \"a.txt\", text = \"a\\n\" }, { say = \"Done.\" }");
    assert_eq!(ends(&mut child), Some(0));
    assert_eq!((status(&repo).as_str(), &*repo.read("a.txt")), ("completed", "a\n"));
}

#[test]
fn an_interrupt_ends_a_run_whose_terminal_reads_nothing() {
    let (repo, _person, mut child) = unread("{ write = \"a.txt\", text = \"a\\n\" }, { hang = true }");
    let since = Instant::now();
    while !repo.exists("a.txt") {
        assert!(since.elapsed() < Duration::from_secs(60), "its agent waits for the terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "INT");
    assert_eq!(ends(&mut child), Some(130));
    assert_eq!(status(&repo), "cancelled");
}

/// What was not read in time is not lost: it is shown when the terminal reads again.
#[test]
fn a_terminal_that_pauses_misses_nothing() {
    let (_repo, mut person, mut child) = unread("{ wait = \"8s\" }, { say = \"The last words.\" }");
    std::thread::sleep(Duration::from_secs(4));
    person.waits_for("The last words.");
    person.waits_for("✓ completed in ");
    assert_eq!(ends(&mut child), Some(0));
    assert!(person.screen.matches("word").count() >= 200 * 400, "{}", person.screen.len());
}
