//! How a run ended, on one card.

#[cfg(unix)]
use std::process::Command;

use expect_test::expect;

use crate::support::{Output, TestRepo};
#[cfg(unix)]
use crate::terminal::Person;

const BOTH: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { tool = "squad_log_decision", args = { title = "Ports are shared", what = "One port.", why = "Less to open." } },
  { write = "src/ports.toml", text = "a\nb\n" }, { run = "true" }, { run = "false" }, { say = "Done." },
]
[[turn]]
agent = "bob"
steps = [{ write = "src/a.txt", text = "x\n" }, { write = "src/b.txt", text = "x\n" }, { say = "Both are there." }]
"#;

const ONE_BY_ONE: [&str; 9] =
    ["--max-concurrent", "1", "--permissions", "allow", "--agent", "ada", "--agent", "bob", "Share the ports"];

/// From the line with a mark on.
fn card(output: &Output) -> String {
    let is_head = |line: &&str| ["✓ ", "✗ ", "! ", "- "].iter().any(|mark| line.starts_with(mark));
    let text = output.without_durations();
    let lines: Vec<&str> = text.lines().skip_while(|line| !is_head(line)).collect();
    lines.join("\n") + "\n"
}

fn short(repo: &TestRepo) -> String {
    let runs: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = runs["runs"][0]["run"].as_str().expect("a run");
    run.rsplit('-').next().expect("a part").to_owned()
}

#[test]
fn a_completed_run_names_files_commands_decisions_and_what_to_type() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(BOTH, &ONE_BY_ONE);
    assert_eq!(output.code, 0, "{output}");
    expect![[r#"
        ✓ bob    write src/a.txt
        ✓ bob    write src/b.txt
          bob    Both are there.
        ◆ ada    decision 000000: Ports are shared
        ✓ ada    write src/ports.toml
        ✓ ada    $ true
        ✗ ada    $ false    exit 1
          ada    Done.
        ✓ completed in TIME; run 000001
          ada        completed   src/ports.toml +2 -0   1 command passed, 1 failed
          bob        completed   src/a.txt, src/b.txt +2 -0
          checked    unverified: no check ran after the last change
          decision   000000 landed on main: Ports are shared
          next       squad diff 000001   the files are yours to commit
                     squad undo 000001   take them back
    "#]]
    .assert_eq(&card(&output));
}

#[test]
fn a_bad_end_says_why_first() {
    let repo = TestRepo::with_small_team();
    let script = r#"
        [[turn]]
        agent = "ada"
        steps = [{ write = "cart.py", text = "x\n" }, { fail = "the model is overloaded (529), 3 tries" }]
    "#;
    let output =
        repo.rehearse(script, &["--permissions", "allow", "--agent", "ada", "Add the cart, then @bob tests it"]);
    assert_eq!(output.code, 1, "{output}");
    expect![[r#"
        ✓ ada    write cart.py
        ! ada    the model is overloaded (529), 3 tries; it is tried again
        ✗ ada    failed: the model is overloaded (529), 3 tries
        ✗ failed: ada: the model is overloaded (529), 3 tries; run 000001, TIME
          ada       failed   cart.py +1 -0   stays in your work tree
          checked   unverified: no check ran after the last change
          next      squad orchestrate --resume 000001   goes on with ada
                    squad diff 000001                   what it changed
                    squad undo 000001                   take it back
    "#]]
    .assert_eq(&card(&output));
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\" }, { say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--agent", "ada", "Add it"]);
    assert_eq!(output.code, 5, "{output}");
    expect![[r#"
        ! squad  nothing may be changed: writes and commands are refused; `--permissions allow` lets agents make them
        Plan  1 ada   tier standard, run 000010   command line
        ✗ ada    write a.txt    refused: changing files is not allowed in this run (permissions: deny)
          ada    Done.
        ! ada    stopped: 1 write or command was refused, and none was allowed
        ! stopped: ada: 1 write or command was refused, and none was allowed; run 000010, TIME
          ada    stopped   no change   1 refused
          next   squad orchestrate --resume 000010 --permissions allow   goes on with ada
                 squad log 000010                                        what happened
    "#]]
    .assert_eq(&card(&output));
}

/// Each command that the card offers, and each that takes a run, knows it by its short id.
#[test]
fn the_next_commands_work_as_typed() {
    let repo = TestRepo::with_small_team();
    repo.rehearse(BOTH, &["--permissions", "allow", "--agent", "bob", "Write both"]);
    let run = short(&repo);
    assert!(repo.squad(&["diff", &run, "--stat"]).out.contains("src/a.txt"));
    assert_eq!(repo.squad(&["log", &run]).code, 0);
    assert_eq!(repo.squad(&["undo", &run, "--yes"]).code, 0);
    assert!(!repo.exists("src/a.txt"));
    let output = repo.squad(&["cancel", &run]);
    assert!(output.err.contains("is over: completed"), "{output}");
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"x\" }, { say = \"Done.\" }]\n";
    let stopped = repo.rehearse(script, &["--agent", "ada", "Add it"]);
    let next = stopped.err.lines().find_map(|line| line.trim().strip_prefix("next ")).expect("a command");
    let next = next.split("   ").next().expect("a command").trim().strip_prefix("squad ").expect("squad's");
    let resumed = repo.squad(&next.split(' ').collect::<Vec<_>>());
    assert!(resumed.code == 0 && resumed.err.contains("✓ completed in "), "{next}: {resumed}");
    assert_eq!(repo.squad(&["log", "abcdef"]).code, 2);
}

/// A mark is never alone, so a terminal without Unicode loses nothing.
#[test]
fn without_unicode_marks_are_ascii() {
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("LC_ALL".to_owned(), "C".to_owned());
    let output = repo.rehearse(BOTH, &["--permissions", "allow", "--agent", "bob", "Write both"]);
    assert!(output.err.contains("\n+ completed in ") && !output.err.contains('✓'), "{output}");
    let log = repo.squad(&["log"]);
    assert!(log.out.contains(" + 000001 completed  "), "{log}");
}

/// A question that files answer needs no card beyond its first line.
#[test]
fn an_answer_has_one_line() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "hello"]);
    expect![[r#"
        ✓ completed in TIME; run 000001
    "#]]
    .assert_eq(&card(&output));
}

#[cfg(unix)]
#[test]
fn at_a_narrow_terminal_files_are_counted_and_lines_hang() {
    use rustix::termios::{Winsize, tcsetwinsize};

    let repo = TestRepo::with_small_team();
    repo.write("../script.toml", BOTH);
    let mut person = Person::sits_down();
    let size = Winsize { ws_row: 40, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person.terminal, size).expect("a size");
    let mut command: Command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(["orchestrate", "--engine", "rehearsal", "--script", "../script.toml"]).args(ONE_BY_ONE);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut child = person.starts(command);
    person.waits_for("take them back");
    child.wait().expect("it ends");
    let lines: Vec<&str> = person.screen.lines().map(str::trim_end).collect();
    let start = lines.iter().position(|line| line.starts_with("✓ completed")).expect("a card");
    // Ids and times are this machine's own.
    let shown = lines[start + 1..].iter().take_while(|line| !line.contains("decision"));
    let shown: String = shown.map(|line| format!("{line}\n")).collect();
    expect![[r#"
        ✓ completed
          ada       completed  1 file +2 -0  1 command passed, 1
                    failed
          bob       completed  2 files +2 -0
          checked   unverified: no check ran after the last change
    "#]]
    .assert_eq(&format!("✓ completed\n{shown}"));
    assert!(lines[start..].iter().all(|line| line.chars().count() <= 60), "{lines:?}");
}
