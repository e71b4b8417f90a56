//! The live view of `squad watch`, at a real terminal.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::emulator::Emulator;
use crate::process::{is_stopped, rest, signal, wait_for};
use crate::support::TestRepo;
use crate::terminal::{PATIENCE, Person};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

const LONG: &str =
    "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Begun.\" }, { wait = \"600s\" }, { say = \"Done.\" }]\n";
const ASKS: &str = "[[turn]]\nagent = \"ada\"\nsteps = [\n  { say = \"Begun.\" }, { write = \"a.txt\", text = \"x\" },\n  \
    { say = \"Done.\" },\n]\n";

/// A watch at a terminal, and whoever sits there.
struct Scene {
    repo: TestRepo,
    person: Person,
    /// Before squad has touched it.
    modes: LocalModes,
    watch: Child,
}

impl Scene {
    fn of(script: &str) -> Self {
        let mut repo = TestRepo::with_small_team();
        repo.write("../script.toml", script);
        repo.write(".squad/config.toml", "[sessions]\ncore = [\"ada\", \"bob\"]\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "--quiet", "--message=configuration"]);
        for (name, value) in [("SQUAD_ENGINE", "rehearsal"), ("SQUAD_REHEARSAL", "../script.toml"), ("TERM", "xterm")] {
            repo.variables.insert(name.to_owned(), value.to_owned());
        }
        let mut person = Person::sits_down();
        resize(&person, 30, 120);
        let modes = modes(&person);
        let mut command = repo.command(BINARY, &repo.root());
        command.arg("watch").env("NO_COLOR", "1");
        let watch = person.starts(command);
        person.waits_for("bob  idle");
        Self { repo, person, modes, watch }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.repo.command(BINARY, &self.repo.root());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn begin(&self, permissions: &str, message: &str) -> Child {
        let mut command = self.command(&["orchestrate", "--json", "--permissions", permissions, message]);
        let mut child = command.spawn().expect("squad runs");
        wait_for(&mut child, "Begun.");
        child
    }

    fn status(&self) -> String {
        let output = self.command(&["status"]).output().expect("squad runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// It ends by itself, and leaves the terminal as it was.
    fn ends(mut self, code: i32) -> String {
        reads_to_the_end(&mut self.person);
        assert_eq!(self.watch.wait().expect("it ends").code(), Some(code), "{}", self.person.screen);
        assert_eq!(modes(&self.person), self.modes);
        std::mem::take(&mut self.person.screen)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.watch.kill();
        let _ = self.watch.wait();
    }
}

/// How the terminal treats what is typed.
pub(crate) fn modes(person: &Person) -> LocalModes {
    tcgetattr(&person.terminal).expect("a terminal").local_modes
}

pub(crate) fn waits_for_modes(person: &Person, expected: LocalModes) {
    let since = Instant::now();
    while modes(person) != expected {
        assert!(since.elapsed() < PATIENCE, "{:?}", modes(person));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What squad shows until it has ended.
fn reads_to_the_end(person: &mut Person) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = person.terminal.read(&mut bytes) {
        person.screen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}

fn resize(person: &Person, lines: u16, columns: u16) {
    let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person.terminal, size).expect("a size");
}

#[test]
fn who_is_at_work_is_seen_looked_into_and_cancelled() {
    let mut scene = Scene::of(LONG);
    assert_ne!(modes(&scene.person), scene.modes, "keys come as they are pressed");
    let client = scene.begin("allow", "@ada take your time");
    scene.person.waits_for("● ada");
    scene.person.types("\n");
    scene.person.waits_for("looking into ada; Esc goes back");
    scene.person.waits_for("ada    Begun.");
    scene.person.types("\u{1b}");
    scene.person.types("mmind the cache\n");
    scene.person.waits_for("is told by you: mind the cache");
    scene.person.types("c");
    scene.person.waits_for("cancel the work of ada in run");
    scene.person.types("y");
    let (out, code) = rest(client);
    let last = out.lines().last().expect("a line");
    assert!(code == Some(130) && last.contains(r#""agents":{"ada":"cancelled"}"#), "{code:?} {out}");
    scene.person.waits_for("cancelled: ");
    scene.person.types("?");
    scene.person.waits_for("choose an agent");
    scene.person.types("xq");
    let screen = scene.ends(0);
    assert!(screen.contains(" 1 run"), "{screen}");
}

const WRITES: &str = "[[turn]]\nagent = \"ada\"\nsteps = [\n  { say = \"Begun.\" }, { run = \"while [ ! -e ../write ]; do sleep 0.1; done\" },\n  \
    { write = \"a.txt\", text = \"first\\n\" }, { say = \"The first is there.\" },\n  \
    { run = \"while [ ! -e ../end ]; do sleep 0.1; done\" }, { say = \"Done.\" },\n]\n";

/// Before anything is changed, while the run goes on, and when it ends while they are looked at.
#[test]
fn what_an_agent_changes_is_seen_in_the_middle_of_its_run() {
    let mut scene = Scene::of(WRITES);
    scene.person.types("D");
    scene.person.waits_for("ada has not worked here yet");
    let client = scene.begin("allow", "@ada write it");
    scene.person.waits_for("● ada");
    scene.person.types("D");
    scene.person.waits_for("ada had changed nothing in run");
    scene.repo.write("../write", "");
    scene.person.waits_for("write a.txt");
    // Until the snapshot behind it is taken.
    let since = Instant::now();
    while !scene.person.screen.contains("what ada had changed in run") {
        scene.person.types("D");
        scene.person.reads();
        assert!(since.elapsed() < PATIENCE, "{}", scene.person.screen);
    }
    scene.person.waits_for("at its last snapshot; Esc goes back");
    scene.person.waits_for("+first");
    scene.repo.write("../end", "");
    let (out, code) = rest(client);
    assert_eq!(code, Some(0), "{out}");
    scene.person.waits_for("ada  idle, completed");
    assert!(!scene.person.screen.contains("✓ completed in "), "lines wait");
    scene.person.types("\u{1b}");
    scene.person.waits_for("✓ completed in ");
    scene.person.types("/NOBODY SAYS THIS\r");
    scene.person.waits_for("no agent's name or last lines have");
    scene.person.types("/the first\r");
    scene.person.waits_for_times("The first is there.", 2);
    scene.person.types("q");
    scene.ends(0);
}

/// Whoever asked for the work has gone, so somebody at the watch answers.
#[test]
fn a_question_nobody_else_answers_waits_for_whoever_is_at_the_watch() {
    let mut scene = Scene::of(ASKS);
    let mut other = Person::sits_down();
    let mut command = scene.command(&["orchestrate", "--permissions", "ask", "@ada write it"]);
    command.env("TERM", "xterm");
    let mut client = other.starts(command);
    other.is_asked("ada wants to write a.txt");
    client.kill().expect("it is ours");
    client.wait().expect("it ends");
    scene.person.waits_for("asks: write a.txt");
    // What others are told is a moment old.
    let since = Instant::now();
    while !scene.status().contains("wants to write a.txt, a new file of 1 line") {
        assert!(since.elapsed() < PATIENCE, "{}", scene.status());
    }
    assert!(scene.status().contains("waits for your answer, "));
    scene.person.types("a");
    scene.person.waits_for("y yes, once");
    assert!(!scene.repo.exists("a.txt"));
    scene.person.types("y");
    scene.person.waits_for("✓ completed in ");
    assert!(scene.repo.exists("a.txt"));
    scene.person.types("\u{4}");
    scene.ends(0);
}

#[test]
fn a_question_that_is_answered_at_the_watch_is_no_question_elsewhere_and_the_other_way_round() {
    for is_here in [true, false] {
        let mut scene = Scene::of(ASKS);
        let mut other = Person::sits_down();
        let mut command = scene.command(&["orchestrate", "--permissions", "ask", "@ada write it"]);
        command.env("TERM", "xterm");
        let mut client = other.starts(command);
        other.is_asked("ada wants to write a.txt");
        scene.person.waits_for("asks: write a.txt");
        scene.person.types("a");
        scene.person.waits_for("y yes, once");
        match is_here {
            true => scene.person.types("y"),
            false => other.types("y"),
        }
        other.waits_for("; run ");
        reads_to_the_end(&mut other);
        assert_eq!(client.wait().expect("it ends").code(), Some(0), "{}", other.screen);
        assert!(!Emulator::shows(&other.screen, 80).contains("? help"), "{}", other.screen);
        if !is_here {
            scene.person.waits_for("the question was answered");
        }
        assert!(scene.repo.exists("a.txt"));
        scene.person.types("q");
        scene.ends(0);
    }
}

#[test]
fn the_terminal_is_given_back_however_the_watch_ends() {
    for (name, code) in [("INT", 0), ("TERM", 0), ("HUP", 0)] {
        let scene = Scene::of(LONG);
        signal(&scene.watch, name);
        scene.ends(code);
    }
    // In the middle of its end.
    let mut scene = Scene::of(LONG);
    let client = scene.begin("allow", "@ada take your time");
    scene.person.waits_for("● ada");
    signal(&scene.watch, "INT");
    assert_eq!(rest(client).1, Some(130));
    scene.ends(0);
}

#[test]
fn a_stopped_watch_gives_the_terminal_back_and_goes_on() {
    let mut scene = Scene::of(LONG);
    let raw = modes(&scene.person);
    signal(&scene.watch, "TSTP");
    waits_for_modes(&scene.person, scene.modes);
    is_stopped(&scene.watch);
    signal(&scene.watch, "CONT");
    waits_for_modes(&scene.person, raw);
    scene.person.screen.clear();
    scene.person.types("j");
    scene.person.waits_for(">  bob  idle");
    scene.person.screen.clear();
    resize(&scene.person, 30, 40);
    signal(&scene.watch, "WINCH");
    scene.person.waits_for("c cancel   a answer   ? keys   q quit");
    scene.person.types("q");
    let screen = scene.ends(0);
    assert!(screen.lines().all(|line| line.chars().filter(|letter| !letter.is_control()).count() < 60), "{screen}");
}
