//! What a terminal of 100 and of 60 columns shows in the moments of a run: its questions and its ends, and what a person
//! types then.
//!
//! `UPDATE_EXPECT=1 cargo test --test it moments` writes the files in `fixtures/goldens` anew.

use std::fmt::Write;
use std::path::Path;
use std::process::Child;
use std::time::Instant;

use expect_test::expect_file;
use serde_json::Value;

use crate::emulator::Emulator;
use crate::process::signal;
use crate::screens::{self, acted};
use crate::support::TestRepo;
use crate::terminal::{PATIENCE, Person};

pub(crate) const WIDTHS: [u16; 2] = [100, 60];

/// What one terminal after another shows.
pub(crate) struct Album {
    pub(crate) columns: u16,
    text: String,
}

impl Album {
    pub(crate) fn of(columns: u16) -> Self {
        Self { columns, text: String::new() }
    }

    fn squad(&mut self, repo: &TestRepo, arguments: &[&str]) {
        self.acted(repo, arguments, |_, _| ());
    }

    fn acted(&mut self, repo: &TestRepo, arguments: &[&str], act: impl FnOnce(&mut Person, &mut Child)) {
        let shown = acted(repo, self.columns, arguments, act);
        self.add(repo, arguments, &shown);
    }

    /// What is shown once it is so while squad goes on, which is then ended.
    fn caught(&mut self, repo: &TestRepo, arguments: &[&str], is_so: impl Fn(&str) -> bool) {
        let mut shown = String::new();
        acted(repo, self.columns, arguments, |person, child| {
            while !is_so(&shown) {
                let count = person.screen.len();
                person.reads();
                assert!(person.screen.len() > count, "not shown: {shown}");
                shown = Emulator::shows(&person.screen, self.columns.into());
            }
            child.kill().expect("it is ours");
        });
        self.add(repo, arguments, &shown);
    }

    fn add(&mut self, repo: &TestRepo, arguments: &[&str], shown: &str) {
        let known = Known::of(repo);
        let quoted = arguments.iter().map(|argument| match argument.contains([' ', '"']) {
            true => format!(" {argument:?}"),
            false => format!(" {argument}"),
        });
        let line = known.masked(&quoted.collect::<String>());
        self.moment(&known, &format!("$ squad{line}"), shown);
    }

    pub(crate) fn moment(&mut self, known: &Known, title: &str, shown: &str) {
        let shown: String = screens::masked(shown).lines().map(|line| known.masked(line) + "\n").collect();
        writeln!(self.text, "{title}\n{shown}").expect("a text");
    }

    pub(crate) fn check(&self, name: &str) {
        let file = format!("fixtures/goldens/moments-{name}-{}.txt", self.columns);
        expect_file![Path::new(env!("CARGO_MANIFEST_DIR")).join(file)].assert_eq(&self.text);
    }
}

/// What is another in each repository: ids, the day and the time.
pub(crate) struct Known {
    root: String,
    pub(crate) ids: Vec<String>,
}

impl Known {
    pub(crate) fn of(repo: &TestRepo) -> Self {
        let list = |arguments: &[&str], name: &str, id: &str| {
            let listed: Value = serde_json::from_str(&repo.squad(arguments).out).unwrap_or_default();
            let all = listed[name].as_array().cloned().unwrap_or_default();
            all.iter().filter_map(|it| it[id].as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        let mut ids = list(&["log", "--all", "--json"], "runs", "run");
        ids.extend(list(&["status", "--json"], "runs_live", "run"));
        let short = ids.iter().filter_map(|run| run.rsplit('-').next().map(str::to_owned)).collect::<Vec<_>>();
        ids.extend(short);
        ids.extend(list(&["decisions", "list", "--json"], "decisions", "id"));
        if repo.exists(".git") {
            ids.extend(repo.git(&["rev-list", "--all"]).lines().map(str::to_owned));
        }
        Self { root: repo.root().display().to_string(), ids }
    }

    fn masked(&self, line: &str) -> String {
        let line = line.replace(&self.root, "REPO");
        let line = match line.split_once(" ledger") {
            // What is written in batches may not be there yet.
            Some((head, rest)) if head.ends_with(|c: char| c.is_ascii_digit()) => {
                format!("{}N ledger{rest}", head.trim_end_matches(|c: char| c.is_ascii_digit()))
            }
            _ => line,
        };
        // The day, above a log.
        if line.ends_with(" (UTC)") {
            return "DAY (UTC)".to_owned();
        }
        let line = match line.split_once(" (UTC), ") {
            Some((day, rest)) if day.starts_with(|c: char| c.is_ascii_uppercase()) => format!("DAY (UTC), {rest}"),
            _ => line,
        };
        line.split(' ').map(|word| self.word(word)).collect::<Vec<_>>().join(" ")
    }

    fn word(&self, word: &str) -> String {
        let name = word.trim_end_matches([',', ':', '.', ';', ')', '?']);
        let (start, end) = (name.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or_default(), &word[name.len()..]);
        let (start, name) = name.split_at(start);
        let is_time = name.contains(':') && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        let is_seconds = name.split_once('.').is_some_and(|(whole, rest)| {
            !whole.is_empty()
                && [1, 2].contains(&rest.len())
                && (whole.to_owned() + rest).bytes().all(|byte| byte.is_ascii_digit())
        });
        let is_rescue = name.len() == 22 && name.bytes().filter(|byte| *byte == b'-').count() == 2;
        let is_day =
            name.len() == 10 && name.starts_with("20") && name.bytes().filter(|byte| *byte == b'-').count() == 2;
        let is_id = is_rescue || name.len() >= 6 && self.ids.iter().any(|id| id.starts_with(name));
        let shown = match () {
            () if is_time => "0:00".to_owned(),
            () if is_seconds => "0.0".to_owned(),
            () if is_day => "2026-00-00".to_owned(),
            () if is_id => "0".repeat(name.len()),
            () => name.to_owned(),
        };
        format!("{start}{shown}{end}")
    }
}

pub(crate) fn repo(script: &str) -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    for name in ["ada", "bob", "rex"] {
        repo.write(&format!(".squad/agents/{name}/charter.md"), &format!("# {name}\n\nYou are careful.\n"));
    }
    repo.write("a.txt", "one\ntwo\nthree\n");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=begin"]);
    repo.write("../script.toml", script);
    repo.variables.insert("NO_COLOR".to_owned(), "1".to_owned());
    repo
}

fn run<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["orchestrate", "--script", "../script.toml"], options].concat()
}

const ALLOWED: [&str; 2] = ["--permissions", "allow"];

/// The newest run, as people type it.
fn newest(repo: &TestRepo) -> String {
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = log["runs"][0]["run"].as_str().expect("a run");
    run.rsplit('-').next().expect("an id").to_owned()
}

const REVIEWED: &str = r##"
[[turn]]
agent = "ada"
steps = [
  { say = "I settle what the endpoint answers first, so that both can work from the same words, and nobody has to guess. 日本語の文字は二列を取り、結合文字 e\u0301 は取らない。" },
  { tool = "squad_log_decision", args = { title = "GET /health answers 200 or 503 with one JSON shape", what = "One shape.", why = "One reader." } },
  { write = "app/health.py", text = "class Health:\n    ok = True\n" },
  { run = "echo 'FAIL: test_health_down: 500 != 503'; false" },
  { run = "true" },
  { say = "`/health` is in.\n\nNot done: a time limit for a check that hangs.\nThat would be next.\nAnd a page about it." },
]
[[turn]]
agent = "rex"
steps = [
  { tool = "squad_verdict", args = { approved = false, reasons = "A failing check answers 500 (app/health.py:1)." } },
  { say = "Rejected." },
]
[[turn]]
agent = "bob"
steps = [{ write = "app/health.py", text = "class Health:\n    ok = False\n" }, { say = "It answers 503." }]
[[turn]]
agent = "rex"
steps = [
  { tool = "squad_verdict", args = { approved = true, reasons = "The code does what the decision says." } },
  { say = "Approved." },
]
"##;

#[test]
fn a_run_its_story_and_the_way_back() {
    for columns in WIDTHS {
        let (repo, mut album) = (repo(REVIEWED), Album::of(columns));
        album.squad(&repo, &run(&[&ALLOWED[..], &["First @ada adds GET /health, then @rex reviews it"]].concat()));
        let short = newest(&repo);
        album.squad(&repo, &["log"]);
        album.squad(&repo, &["log", &short]);
        album.squad(&repo, &["diff", &short]);
        album.squad(&repo, &["log", "--usage"]);
        album.squad(&repo, &["why", "app/health.py"]);
        album.acted(&repo, &["undo", &short], |person, _| {
            person.waits_for("[y/N]");
            person.types("y\r");
        });
        album.squad(&repo, &["status"]);
        album.check("run");
    }
}

#[test]
fn each_end() {
    let turn = |steps: &str| format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}]\n");
    let write = "{ write = \"app/cart.py\", text = \"price = 1.5\\n\" }";
    let reject = "[[turn]]\nagent = \"rex\"\nsteps = [{ tool = \"squad_verdict\", args = { approved = false, reasons = \"The price is a float (app/cart.py:1).\" } }, { say = \"No.\" }]\n";
    let again = "[[turn]]\nagent = \"bob\"\nsteps = [{ write = \"app/cart.py\", text = \"price = 2.5\\n\" }, { say = \"Changed.\" }]\n";
    let fails = "{ fail = \"the model is overloaded (529), 3 tries\" }";
    let then = "First @ada adds the cart, then @rex reviews it";
    let ends: [(&str, String, &[&str]); 5] = [
        ("failed", turn(&format!("{write}, {fails}")), &["--permissions", "allow", then]),
        ("claimed", turn("{ say = \"Done.\" }"), &["--permissions", "allow", "--agent", "ada", "Add the cart"]),
        (
            "stopped",
            turn(&format!("{write}, {{ say = \"Done.\" }}")),
            &["--permissions", "deny", "--agent", "ada", "Add the cart"],
        ),
        (
            "rejected",
            turn(&format!("{write}, {{ say = \"It is in.\" }}")) + reject + again + reject,
            &["--permissions", "allow", then],
        ),
        (
            "timed out",
            turn(&format!("{write}, {{ hang = true }}")),
            &["--permissions", "allow", "--timeout", "2s", "--agent", "ada", "Add the cart"],
        ),
    ];
    for columns in WIDTHS {
        let mut album = Album::of(columns);
        for (name, script, options) in &ends {
            album.text += &format!("# {name}\n\n");
            album.squad(&repo(script), &run(options));
        }
        let script = turn(&format!("{write}, {{ say = \"Written.\" }}, {{ hang = true }}"));
        let work = [&ALLOWED[..], &["--agent", "ada", "Add the cart"]].concat();
        album.text += "# Ctrl-C\n\n";
        album.acted(&repo(&script), &run(&work), |person, child| {
            person.waits_for("Written.");
            signal(child, "INT");
        });
        album.text += "# killed\n\n";
        let repo = repo(&turn(&format!("{write}, {{ hang = true }}")));
        acted(&repo, columns, &run(&work), |person, child| {
            person.waits_for("write app/cart.py");
            // It is shown before it is on the disk.
            let short = newest(&repo);
            let since = Instant::now();
            while !repo.squad(&["log", &short, "--json"]).out.contains("tool.completed") {
                assert!(since.elapsed() < PATIENCE, "not recorded");
            }
            child.kill().expect("it is ours");
        });
        album.squad(&repo, &["status"]);
        album.squad(&repo, &["log", &newest(&repo)]);
        album.check("ends");
    }
}

#[test]
fn each_question() {
    let turn = |steps: &str| format!("[[turn]]\nagent = \"ada\"\nsteps = [{steps}, {{ say = \"Done.\" }}]\n");
    let questions = [
        ("an edit", "{ write = \"a.txt\", text = \"one\\n2\\nthree\\nfour\\n\" }"),
        (
            "a long and wide line",
            "{ write = \"b.txt\", text = \"日本語の文字は二列を取る。日本語の文字は二列を取る。日本語の文字は二列を取る。日本語の文字は二列を取る。e\\u0301 \\u202Eabc\\n\" }",
        ),
        ("a command", "{ run = \"python3 -m unittest discover -s tests\" }"),
        ("several commands", "{ run = \"python3 -m unittest -v && rm -rf .cache\" }"),
        ("an outside path", "{ write = \"../notes.md\", text = \"x\\n\" }"),
        ("the agent's own", "{ ask = \"Which port?\" }"),
    ];
    for columns in WIDTHS {
        let mut album = Album::of(columns);
        for (name, steps) in questions {
            let repo = repo(&turn(steps));
            album.text += &format!("# {name}\n\n");
            album.caught(&repo, &run(&["--permissions", "ask", "--agent", "ada", "Work"]), |shown| match name {
                "the agent's own" => shown.trim_end().ends_with("\n>"),
                _ => shown.contains("  ? help\n") && shown.trim_end().ends_with("Ctrl-C stops"),
            });
        }
        // What another terminal shows meanwhile, and what is left of it afterwards.
        let repo = repo(&turn("{ run = \"true 1\" }"));
        album.text += "# answered\n\n";
        let mut status = String::new();
        album.acted(&repo, &run(&["--permissions", "ask", "--agent", "ada", "Work"]), |person, _| {
            person.is_asked("  $ true 1");
            status = acted(&repo, columns, &["status"], |_, _| ());
            person.types("n");
        });
        album.add(&repo, &["status"], &status);
        album.check("questions");
    }
}

#[test]
fn the_first_minutes_and_the_first_mistakes() {
    for columns in WIDTHS {
        let mut album = Album::of(columns);
        let empty = TestRepo::empty();
        empty.git(&["commit", "--quiet", "--allow-empty", "--message=first"]);
        album.squad(&empty, &[]);
        album.squad(&empty, &["status"]);
        let mut repo = repo("");
        // Whatever is installed on the machine.
        repo.write("../bin/keep", "");
        for program in ["git", "sh"] {
            let found = std::env::split_paths(&repo.variables["PATH"]).map(|folder| folder.join(program));
            let found = found.into_iter().find(|file| file.is_file()).expect(program);
            std::os::unix::fs::symlink(found, repo.root().join("../bin").join(program)).expect("a link");
        }
        repo.variables.insert("PATH".to_owned(), repo.root().with_file_name("bin").display().to_string());
        for arguments in [
            &["orchestrate", "Add GET /health"][..],
            &["engines"],
            &["doctor"],
            &["log"],
            &["decisions"],
            &["agents", "list"],
            &["orchestrate", "-a", "bobb", "x"],
            &["orchestrate", "--timeout", "5", "x"],
            &["cancel"],
            &["log", "--agent", "bakend"],
            &["decisions", "add", "One shape", "--why", "one reader"],
            &["agents", "diff", "nosuch"],
            &["why", "nosuch.py"],
            &["scrub"],
            &["gc", "-n"],
            &["hosts"],
            &["policy"],
            &["policy", "test", "git push --force"],
            &["remove", "-n"],
            &["adopt"],
            &["undo"],
        ] {
            album.squad(&repo, arguments);
        }
        album.check("first");
    }
}

/// Two branches that decide otherwise.
#[test]
fn decisions_of_branches() {
    for columns in WIDTHS {
        let (mut repo, mut album) = (repo(""), Album::of(columns));
        repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
        repo.squad(&["decisions", "add", "Prices are integer cents", "--scope", "app/**"]);
        repo.git(&["checkout", "--quiet", "-b", "x", "HEAD~1"]);
        repo.squad(&["decisions", "add", "Prices are floats", "--scope", "app/**"]);
        for arguments in [&["decisions"][..], &["decisions", "review", "main"], &["decisions", "radar"], &["status"]] {
            album.squad(&repo, arguments);
        }
        album.check("branches");
    }
}

/// The second one does not wait for what the first one began.
#[test]
fn two_interrupts_leave_nothing_on_the_screen() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"trap '' INT TERM; echo deaf; sleep 20\" }]\n";
    let repo = repo(script);
    let shown = acted(&repo, 80, &run(&[&ALLOWED[..], &["--agent", "ada", "Work"]].concat()), |person, child| {
        person.waits_for("sleep 20");
        signal(child, "INT");
        person.waits_for("Ctrl-C again: at once");
        signal(child, "INT");
    });
    assert!(!shown.contains('●') && !shown.contains("Ctrl-C stops\n"), "{shown}");
    let log: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let status = log["runs"][0]["status"].as_str().unwrap_or_default();
    assert!(["cancelled", "lost"].contains(&status), "{log}");
}

/// A row shows no more than fits, also after the terminal has been made narrower under it.
#[test]
fn nothing_stale_is_left_by_a_narrower_terminal() {
    use rustix::termios::{Winsize, tcsetwinsize};

    let script = "[[turn]]\nagent = \"ada\"\nsteps = [\n  { say = \"I settle what the endpoint answers first, so that both \
        can work from the same words, 日本語.\" },\n  { wait = \"4s\" }, { say = \"Done.\" },\n]\n";
    let repo = repo(script);
    let (mut before, mut screen) = (0, String::new());
    acted(&repo, 100, &run(&[&ALLOWED[..], &["--agent", "ada", "What is there?"]].concat()), |person, child| {
        person.waits_for("Ctrl-C stops");
        person.waits_for("0:01");
        before = person.screen.len();
        let size = Winsize { ws_row: 40, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person.terminal, size).expect("a size");
        while child.try_wait().expect("a child").is_none() {
            person.reads();
        }
        screen.clone_from(&person.screen);
    });
    let left = Emulator::shows_resized((&screen[..before], 100), (&screen[before..], 60));
    assert!(!left.contains('●') && !left.contains("Ctrl-C stops"), "{left}");
    assert!(left.contains("✓ completed in "), "{left}");
}
