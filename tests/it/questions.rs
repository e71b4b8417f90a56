//! Questions for permissions at a real pseudo-terminal: one key answers, and "always" covers what it names.

use std::process::{Child, Command};

use expect_test::expect;
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::emulator::Emulator;
use crate::support::TestRepo;
use crate::terminal::Person;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

impl Person {
    /// Waits until a question with this title can be answered.
    pub(crate) fn is_asked(&mut self, title: &str) {
        while !self.screen.rfind(title).is_some_and(|at| self.screen[at..].contains("? help")) {
            let count = self.screen.len();
            self.reads();
            assert!(self.screen.len() > count, "not asked: {title:?} in {}", self.screen);
        }
    }
}

struct Scene {
    repo: TestRepo,
    person: Person,
    child: Child,
}

impl Scene {
    fn begins(script: &str, columns: u16, arguments: &[&str]) -> Self {
        let repo = TestRepo::with_small_team();
        repo.write("a.txt", "one\ntwo\nthree\n");
        repo.write("../script.toml", script);
        let person = Person::sits_down();
        Self::runs(repo, person, columns, arguments)
    }

    fn runs(repo: TestRepo, mut person: Person, columns: u16, arguments: &[&str]) -> Self {
        let size = Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person.terminal, size).expect("a size");
        let mut command: Command = repo.command(BINARY, &repo.root());
        command.args(["orchestrate", "--script", "../script.toml", "--permissions", "ask"]).args(arguments);
        let child = person.starts(command);
        Self { repo, person, child }
    }

    fn ends(&mut self) -> Option<i32> {
        self.person.waits_for("; run ");
        self.child.wait().expect("it ends").code()
    }

    /// The newest run.
    fn run(&self) -> String {
        let runs: Value = serde_json::from_str(&self.repo.squad(&["log", "--json"]).out).expect("JSON");
        runs["runs"][0]["run"].as_str().expect("an id").to_owned()
    }

    /// The payloads of its entries of a kind.
    fn entries(&self, kind: &str) -> Vec<Value> {
        let log = self.repo.squad(&["log", "--json", &self.run()]).out;
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        entries.filter(|entry| entry["type"] == kind).map(|entry| entry["payload"].clone()).collect()
    }

    /// The question as the terminal shows it, with what follows.
    fn question(&self, columns: usize) -> String {
        let screen = Emulator::shows(&self.person.screen, columns);
        let start = screen.find("! ada wants").expect(&screen);
        // Times are this machine's own.
        screen[start..]
            .lines()
            .take_while(|line| !line.starts_with("! ada  "))
            .map(|line| format!("{line}\n"))
            .collect()
    }
}

const EDITS: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { write = "a.txt", text = "one\n2\nthree\nfour\n" },
  { write = "docs/b.txt", text = "b\n" },
  { run = "true first" },
  { run = "true --second && rm a.txt" },
  { say = "Done." },
]
[[turn]]
agent = "bob"
steps = [{ write = "c.txt", text = "c\n" }, { say = "Tested." }]
"#;

#[test]
fn a_change_is_shown_and_always_covers_the_agents_next_ones() {
    let mut scene = Scene::begins(EDITS, 100, &["--agent", "ada", "--agent", "bob", "Work"]);
    let person = &mut scene.person;
    // Both ask, in either order; ada's is answered for her, bob's only for this once.
    for _ in 0..2 {
        person.waits_for("? help");
        let is_adas = person.screen.rfind("ada wants to change a.txt") > person.screen.rfind("bob wants to write");
        let (title, key) =
            if is_adas { ("ada wants to change a.txt, +2 -1", "a") } else { ("bob wants to write c.txt", "y") };
        person.is_asked(title);
        person.types(key);
        person.waits_for(if is_adas { "docs/b.txt" } else { "c.txt" });
        person.screen.clear();
    }
    person.is_asked("  $ true first");
    person.types("r");
    person.is_asked("  $ true --second && rm a.txt");
    person.types("n");
    assert_eq!(scene.ends(), Some(0), "{}", scene.person.screen);
    assert_eq!(scene.repo.read("a.txt"), "one\n2\nthree\nfour\n");
    assert!(scene.repo.exists("docs/b.txt") && scene.repo.exists("c.txt"));
    let answers: Vec<(String, bool, Value)> = scene
        .entries("permission.answered")
        .iter()
        .map(|it| (it["detail"].to_string(), it["allowed"] == true, it["rule"].clone()))
        .collect();
    let has = |detail: &str, allowed: bool, rule: Value| {
        assert!(answers.contains(&(format!("{detail:?}"), allowed, rule)), "{detail}: {answers:?}");
    };
    has("a.txt", true, "always for ada: writes in this project".into());
    has("docs/b.txt", true, "always for ada: writes in this project".into());
    has("c.txt", true, Value::Null);
    has("true first", true, "always in this run: true first".into());
    has("true --second && rm a.txt", false, Value::Null);
    assert_eq!(scene.entries("permission.asked").len(), 4, "what is covered is not asked");
    let story = scene.repo.squad(&["log", &scene.run()]).out;
    assert!(story.contains("write docs/b.txt    allowed by \"always for ada: writes in this project\""), "{story}");
    // Another run begins with nothing.
    let Scene { repo, .. } = scene;
    repo.write("../script.toml", EDITS);
    let mut scene = Scene::runs(repo, Person::sits_down(), 100, &["--agent", "ada", "Again"]);
    scene.person.is_asked("ada wants to write a.txt, as it is");
    scene.person.types("n");
    scene.person.is_asked("ada wants to write docs/b.txt");
    scene.child.kill().expect("it is ours");
    scene.child.wait().expect("it ends");
}

const LONG: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "long.txt", text = "LINES" }, { run = "rm long.txt" }, { say = "Done." }]
"#;

#[test]
fn a_question_on_a_screen_is_seen_whole_and_refused_with_a_reason() {
    let lines: String = (1..=40).map(|line| format!("line {line}\\n")).collect();
    for columns in [100, 60] {
        let mut scene = Scene::begins(&LONG.replace("LINES", &lines), columns, &["--agent", "ada", "Work"]);
        // What was typed before the question stood is no answer, and other keys show help.
        scene.person.types("yyy");
        scene.person.is_asked("ada wants to write long.txt");
        let before = scene.question(columns.into());
        match columns {
            100 => expect![[r#"
                ! ada wants to write long.txt, a new file of 40 lines
                     1 + line 1
                     2 + line 2
                     3 + line 3
                     4 + line 4
                     5 + line 5
                     6 + line 6
                     7 + line 7
                     8 + line 8
                     9 + line 9
                    10 + line 10
                    11 + line 11
                    12 + line 12
                    13 + line 13
                    14 + line 14
                    15 + line 15
                       … 25 more lines
                  y yes, once    a always for ada: writes in this project    r always in this run, for any agent
                  k in later runs too    n no    s no, and say why (ada reads it)    d show all    ? help
            "#]]
            .assert_eq(&before),
            _ => expect![[r#"
                ! ada wants to write long.txt, a new file of 40 lines
                     1 + line 1
                     2 + line 2
                     3 + line 3
                     4 + line 4
                     5 + line 5
                     6 + line 6
                     7 + line 7
                     8 + line 8
                     9 + line 9
                    10 + line 10
                    11 + line 11
                    12 + line 12
                    13 + line 13
                    14 + line 14
                    15 + line 15
                       … 25 more lines
                  y yes, once
                  a always for ada: writes in this project
                  r always in this run, for any agent
                  k in later runs too
                  n no
                  s no, and say why (ada reads it)
                  d show all
                  ? help
            "#]]
            .assert_eq(&before),
        }
        scene.person.types("x");
        scene.person.waits_for("One key answers");
        scene.person.types("d");
        scene.person.waits_for("    40 + line 40");
        scene.person.types("s");
        scene.person.waits_for("Why not? ada reads it: ");
        scene.person.types("\r");
        scene.person.is_asked("ada wants to write long.txt");
        scene.person.types("s");
        scene.person.waits_for_times("Why not? ada reads it: ", 2);
        scene.person.types("it is too long\r");
        scene.person.is_asked("  $ rm long.txt");
        // There is no `always` for it.
        scene.person.types("a");
        scene.person.waits_for("There is no `always`");
        scene.person.types("n");
        assert_eq!(scene.ends(), Some(5), "{}", scene.person.screen);
        assert!(!scene.repo.exists("long.txt"));
        let denied = scene.entries("tool.denied");
        assert_eq!(denied[0]["reason"], "the user refused it: it is too long");
        assert_eq!(scene.entries("permission.answered")[0]["reason"], "it is too long");
        let left = Emulator::shows(&scene.person.screen, columns.into());
        assert!(!left.contains("y yes, once") && !left.contains("Ctrl-C stops"), "nothing stale: {left}");
    }
}

#[test]
fn who_asks_next_is_seen_and_another_terminal_shows_the_question() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"true 1\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"bob\"\nsteps = [{ wait = \"200ms\" }, { run = \"true 1\" }, { say = \"Done.\" }]\n";
    let mut scene = Scene::begins(script, 100, &["--agent", "ada", "--agent", "bob", "Work"]);
    scene.person.waits_for("(question 1 of 2; bob asks next)");
    scene.person.is_asked("  $ true 1");
    let status = scene.repo.command(BINARY, &scene.repo.root()).arg("status").output().expect("squad runs");
    let status = String::from_utf8(status.stdout).expect("UTF-8");
    assert!(status.contains("waits for your answer, ") && status.contains("wants to run: true 1"), "{status}");
    // It answers bob's question too.
    scene.person.types("r");
    assert_eq!(scene.ends(), Some(0), "{}", scene.person.screen);
    assert!(scene.entries("permission.answered").iter().all(|it| it["rule"] == "always in this run: true 1"));
    assert_eq!(scene.entries("permission.asked").len(), 2);
}

#[test]
fn an_interrupt_ends_a_question_and_a_dumb_terminal_shows_it() {
    for (term, typed) in [("xterm", None), ("dumb", Some("y")), ("", Some("y"))] {
        let repo = TestRepo::with_small_team();
        repo.write(
            "../script.toml",
            "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"I note it.\" }, { write = \"n.txt\", text = \"x\" }, { say = \"Done.\" }]\n",
        );
        let mut person = Person::sits_down();
        let mut command = repo.command(BINARY, &repo.root());
        command
            .args(["orchestrate", "--script", "../script.toml", "--permissions", "ask", "@ada write"])
            .env("TERM", term);
        let mut child = person.starts(command);
        person.is_asked("ada wants to write n.txt");
        match typed {
            Some(key) => person.types(key),
            // Ctrl-C reaches only a terminal that controls the process.
            None => crate::process::signal(&child, "INT"),
        }
        person.waits_for("; run ");
        assert_eq!(
            child.wait().expect("it ends").code(),
            Some(if typed.is_some() { 0 } else { 130 }),
            "{}",
            person.screen
        );
        assert_eq!(repo.exists("n.txt"), typed.is_some());
        assert!(term == "xterm" || !person.screen.contains('\u{1b}'), "{}", person.screen);
        // What leads to the question stands before it, and nobody has refused what an interrupt ended.
        let screen = Emulator::shows(&person.screen, 80);
        let (words, asked) = (screen.find("I note it."), screen.find("wants to write n.txt"));
        assert!(words.is_some_and(|words| asked.is_none_or(|asked| words < asked)), "{screen}");
        let log = repo.squad(&["log", "--json", "--limit", "1"]).out;
        let run: Value = serde_json::from_str(&log).expect("JSON");
        let usage = &run["runs"][0]["usage"];
        assert_eq!(usage["refused"], 0, "{log}");
        // The question stood for half a second at least.
        assert!(usage["waited"].as_f64().is_some_and(|waited| waited >= 0.5), "{log}");
        assert!(usage["waited"].as_f64() <= usage["seconds"].as_f64(), "{log}");
        let log = repo.squad(&["log", "--json", run["runs"][0]["run"].as_str().expect("a run")]).out;
        assert!(!log.contains("tool.denied") && !log.contains("\"allowed\":false"), "{log}");
    }
}

/// It holds in this project's later runs, for what it named, until it is removed.
#[test]
fn what_is_kept_is_not_asked_again() {
    let script = |command: &str| {
        format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{command}\" }}, {{ say = \"Done.\" }}]\n")
    };
    let mut scene = Scene::begins(&script("true 1 && find a.txt"), 100, &["--agent", "ada", "Work"]);
    scene.person.is_asked("  $ true 1 && find a.txt");
    scene.person.types("k");
    assert_eq!(scene.ends(), Some(0), "{}", scene.person.screen);
    let repo = &scene.repo;
    let listed = repo.squad(&["policy"]).out;
    assert!(listed.contains("true 1") && listed.contains("find"), "{listed}");
    let own = repo.read("../home/config/squad/config.toml");
    let judged = |what: &str| repo.squad(&["policy", "test", what]).out;
    assert!(judged("find b.txt").starts_with("✓ allow") && judged("true 2").starts_with("! ask"), "{own}");
    for (command, asks) in [("find b.txt", false), ("true 2", true)] {
        repo.write("../script.toml", &script(command));
        let mut person = Person::sits_down();
        let mut run = repo.command(BINARY, &repo.root());
        run.args(["orchestrate", "--script", "../script.toml", "--permissions", "ask", "--agent", "ada", "Work"]);
        let mut child = person.starts(run);
        if asks {
            person.is_asked("  $ true 2");
            person.types("n");
        }
        person.waits_for("; run ");
        assert_eq!(child.wait().expect("it ends").code(), Some(if asks { 5 } else { 0 }), "{}", person.screen);
        assert_eq!(person.screen.contains("y yes, once"), asks, "{}", person.screen);
    }
    // Another repository at this place has another id.
    let id = repo.read(".git/squad/project");
    repo.write(".git/squad/project", &"0".repeat(id.len()));
    assert!(judged("find b.txt").starts_with("! ask"), "{own}");
    repo.write(".git/squad/project", &id);
    assert_eq!(repo.squad(&["policy", "remove", "find"]).code, 0);
    assert!(judged("find b.txt").starts_with("! ask"));
    assert_eq!(repo.squad(&["policy", "remove", "find"]).code, 2);
    assert_eq!(repo.squad(&["policy", "remove", "true 1"]).code, 0);
    assert_eq!(repo.read("../home/config/squad/config.toml").trim(), "[policy.kept]");
}
