//! The rows of a run at a real pseudo-terminal, as a terminal shows them.

use std::process::Child;

use expect_test::expect;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::emulator::Emulator;
use crate::process::signal;
use crate::support::TestRepo;
use crate::terminal::Person;

const SCRIPT: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { say = "I settle what the endpoint answers first, so that both can work from the same words." },
  { wait = "3s" }, { write = "a.txt", text = "a\n" }, { run = "false" }, { say = "日本語 is in, e\u0301t cetera." },
]
[[turn]]
agent = "bob"
steps = [{ wait = "3s" }, { say = "One.\nTwo.\nThree.\nFour.\nFive." }, { run = "true" }, { say = "Tested." }]
[[turn]]
agent = "rex"
steps = [{ say = "VERDICT: approved" }]
"#;

fn begins(size: (u16, u16), term: &str) -> (TestRepo, Person, Child) {
    let repo = TestRepo::with_small_team();
    repo.write("../script.toml", SCRIPT);
    let mut person = Person::sits_down();
    let size = Winsize { ws_row: size.0, ws_col: size.1, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person.terminal, size).expect("a size");
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(["orchestrate", "--script", "../script.toml", "--permissions", "allow"]);
    command.args(["@ada @bob begin, reviewed by @rex"]).env("TERM", term).env("NO_COLOR", "1");
    let child = person.starts(command);
    (repo, person, child)
}

/// Without what differs from run to run.
fn masked(screen: &str) -> String {
    let mask = |word: &str| match word.contains(':') && word.chars().all(|c| c.is_ascii_digit() || c == ':') {
        true => "0:00".to_owned(),
        false => word.to_owned(),
    };
    let lines = screen.lines().filter(|line| !line.starts_with("Plan"));
    lines.map(|line| format!("{}\n", line.split(' ').map(mask).collect::<Vec<_>>().join(" "))).collect()
}

#[test]
fn each_agent_has_a_row_and_nothing_is_left_behind() {
    for columns in [100, 60] {
        let (_repo, mut person, mut child) = begins((30, columns), "xterm");
        person.waits_for("same words.");
        person.waits_for("● bob");
        // Both have begun, and nothing happens for a while.
        while !person.screen.rfind("0:02").is_some_and(|at| person.screen[at..].contains("Ctrl-C stops")) {
            person.reads();
        }
        let shown = masked(&Emulator::shows(&person.screen, columns.into()));
        match columns {
            100 => expect![[r#"
                  squad  the rehearsal engine: a script plays, no model is asked
                Step 1 of 2
                ● ada  I settle what the endpoint answers first, so that both can work from the same words.    0:00
                ● bob  thinks                                                                                  0:00
                ○ rex  waits for ada and bob
                  0:00 · Ctrl-C stops
            "#]]
            .assert_eq(&shown),
            _ => expect![[r#"
                  squad  the rehearsal engine: a script plays, no model is
                         asked
                      message
                Step 1 of 2
                ● ada  …so that both can work from the same words.     0:00
                ● bob  thinks                                          0:00
                ○ rex  waits for ada and bob
                  0:00 · Ctrl-C stops
            "#]]
            .assert_eq(&shown),
        }
        person.waits_for("take them back");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", person.screen);
        let left = Emulator::shows(&person.screen, columns.into());
        assert!(!left.contains("Ctrl-C stops") && !left.contains('●') && !left.contains('○'), "{left}");
        for line in ["✓ ada    write a.txt", "✗ ada    $ false    exit 1", "  bob    One.", "… 2 more lines"] {
            assert!(left.contains(line), "{line}: {left}");
        }
        assert!(left.find("Four.").is_none(), "{left}");
        assert_eq!(left.matches("I settle what").count(), 1, "each thing once: {left}");
    }
}

#[test]
fn an_interrupt_leaves_no_row_and_any_terminal_will_do() {
    let (_repo, mut person, mut child) = begins((30, 80), "xterm");
    person.waits_for("● bob");
    signal(&child, "INT");
    person.waits_for("; run ");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{}", person.screen);
    let left = Emulator::shows(&person.screen, 80);
    assert!(!left.contains('●') && !left.contains("Ctrl-C stops"), "{left}");
    for (size, term) in [((5, 20), "xterm"), ((1, 1), "xterm"), ((30, 80), "dumb")] {
        let (_repo, mut person, mut child) = begins(size, term);
        person.waits_for("squad");
        if size.1 == 20 {
            person.waits_for("Ctrl-C st");
            let size = Winsize { ws_row: 40, ws_col: 20, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&person.terminal, size).expect("a size");
        }
        while child.try_wait().expect("a child").is_none() {
            person.reads();
        }
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{size:?} {}", person.screen);
        assert!(term != "dumb" || !person.screen.contains('\u{1b}'), "{}", person.screen);
    }
}
