//! What a terminal of 100 and of 60 columns shows, whole.
//!
//! `UPDATE_EXPECT=1 cargo test --test it screens` writes the files in `fixtures/goldens` anew.

use std::path::Path;
use std::process::Child;

use expect_test::expect_file;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::emulator::Emulator;
use crate::support::TestRepo;
use crate::terminal::Person;

const SCRIPT: &str = r##"
[[turn]]
agent = "ada"
steps = [
  { say = "I settle what the endpoint answers first, so that both can work from the same words, and nobody has to guess." },
  { tool = "squad_log_decision", args = { title = "GET /health answers 200 or 503 with one JSON shape", what = "One shape.", why = "One reader." } },
  { write = "app/health.py", text = "class Health:\n    ok = True\n" },
  { run = "false" },
  { say = """
## Done

The service has a *health* endpoint. `GET /health` answers **200** while every check passes, and 503 when one fails. See [the page](docs/health.md).

- A good next step is a time limit for each check, because one that hangs would keep the load balancer waiting.
- 文字 take two columns.

```python
def health_of_everything_that_there_is_in_the_service(checks, time_limit_in_seconds=1.0): return all(checks)
```

| status | when |
|--------|------|
| 200 | every check passes |
| 503 | one fails |""" },
]
"##;

fn terminal(repo: &TestRepo, columns: u16, arguments: &[&str]) -> String {
    acted(repo, columns, arguments, |_, _| ())
}

/// What a terminal shows in the end, when a person has done something there.
pub(crate) fn acted(
    repo: &TestRepo,
    columns: u16,
    arguments: &[&str],
    act: impl FnOnce(&mut Person, &mut Child),
) -> String {
    let mut person = Person::sits_down();
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person.terminal, size).expect("a size");
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(arguments).env("TERM", "xterm").env("PAGER", "cat").env("TZ", "UTC");
    let mut child = person.starts(command);
    act(&mut person, &mut child);
    while child.try_wait().expect("a child").is_none() {
        person.reads();
    }
    // What is left in the terminal's queue.
    loop {
        let count = person.screen.len();
        person.reads();
        if person.screen.len() == count {
            break;
        }
    }
    Emulator::shows(&person.screen, columns.into())
}

/// The test clock counts how often it was asked, and what squad does side by side asks in any order: times have no
/// seconds, and ids of what holds a time no digits.
fn timeless(line: &str) -> String {
    let is_id = |word: &str| {
        [7, 10, 12].contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            && word.contains(|c: char| c.is_ascii_digit())
    };
    let bare = |word: &str| {
        let end = word.trim_end_matches([',', ':', '.']).len();
        let (name, rest) = word.split_at(end);
        match name.rsplit_once(':') {
            Some((time, _)) if name.len() == 8 && name.starts_with("09:00:") => format!("{time}:00{rest}"),
            _ if is_id(name) => "0".repeat(name.len()) + rest,
            _ => word.to_owned(),
        }
    };
    line.split(' ').map(bare).collect::<Vec<_>>().join(" ")
}

/// Without what depends on the day: how long ago something was, and the year where it is not this one.
pub(crate) fn masked(screen: &str) -> String {
    let mut shown = String::new();
    for line in screen.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let ago = words.iter().position(|word| word.trim_end_matches([',', ':']) == "ago");
        let word = |(at, word): (usize, &&str)| match ago {
            Some(ago) if at + 2 == ago => "N".to_owned(),
            Some(ago) if at + 1 == ago => "units".to_owned(),
            _ => (*word).to_owned(),
        };
        let line = words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ");
        let line = line.replace(" 2026 ", " ").replace(" 2026,", ",");
        let dated = line.strip_suffix(" 2026").filter(|line| line.contains(", last "));
        shown += &timeless(dated.unwrap_or(&line));
        shown.push('\n');
    }
    shown
}

#[test]
fn each_screen_fits_its_terminal() {
    let mut repo = TestRepo::with_small_team();
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    let output = repo.rehearse(SCRIPT, &["--permissions", "allow", "@ada Add GET /health with tests, and document it"]);
    assert_eq!(output.code, 0, "{output}");
    let run = repo.squad(&["log", "--json"]).out;
    let run: serde_json::Value = serde_json::from_str(&run).expect("JSON");
    let run = run["runs"][0]["run"].as_str().expect("a run").to_owned();
    let short = &run[run.len() - 6..];
    let screens: [&[&str]; 13] = [
        &["status"],
        &["log"],
        &["log", short],
        &["log", short, "--events"],
        &["diff", short, "--stat"],
        &["agents"],
        &["agents", "show", "ada"],
        &["route", "@bob Fix the login form"],
        &["route", "make it nicer"],
        &["decisions", "list"],
        &["why", "app/health.py:1"],
        &["policy"],
        &["rescue"],
    ];
    for columns in [100, 60] {
        let mut text = String::new();
        for arguments in screens {
            let shown = masked(&terminal(&repo, columns, arguments));
            text += &format!("$ squad {}\n{shown}\n", arguments.join(" "));
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/goldens/screens-{columns}.txt"));
        expect_file![path].assert_eq(&text);
    }
}

/// A run as it ends, with its answer as a person reads it; in a pipe the answer is what the model wrote.
#[test]
fn an_answer_is_rendered_on_a_terminal_only() {
    let repo = TestRepo::with_small_team();
    repo.write("../script.toml", SCRIPT);
    let arguments = ["orchestrate", "--script", "../script.toml", "--permissions", "allow", "@ada Add GET /health"];
    let wide = terminal(&repo, 100, &arguments);
    for line in [
        "  Done",
        "  The service has a health endpoint. `GET /health` answers 200 while every check passes, and 503",
        "  when one fails. See the page (docs/health.md).",
        "    def health_of_everything_that_there_is_in_the_service(checks, time_limit_in_seconds=1.0): return",
        "  status  when",
        "  200     every check passes",
    ] {
        assert!(wide.lines().any(|shown| shown.starts_with(line)), "{line}: {wide}");
    }
    assert!(!wide.contains("**") && !wide.contains("```"), "{wide}");
    let piped = repo.rehearse(SCRIPT, &["--permissions", "allow", "@ada Add GET /health"]);
    assert!(piped.out.contains("## Done\n") && piped.out.contains("**200**"), "{piped}");
}
