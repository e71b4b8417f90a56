//! Two agents, a second run, a person, a formatter and squad's own commands change files and commit in any order, and
//! squad may be killed: nobody gets what somebody else did, and nothing is missing.
//!
//! `SQUAD_OUTCOMES=2000 cargo test --test it outcome_chance` plays more of them.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Dice, TestRepo, number_of};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// The name of each file tells who writes it: `AGENT-named-…`, `AGENT-commanded-…` or `person-…`.
struct Play {
    dice: Dice,
    repo: TestRepo,
    /// Whether any agent runs commands.
    has_commands: bool,
    was_killed: bool,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let has_commands = dice.below(2) == 0;
        Self { dice, repo: TestRepo::with_small_team(), has_commands, was_killed: false }
    }

    fn turn(&mut self, agent: &str) -> String {
        let mut steps = Vec::new();
        for number in 0..2 + self.dice.below(3) {
            let wait = self.dice.below(40);
            steps.push(match self.dice.below(if self.has_commands { 4 } else { 2 }) {
                0 => format!("{{ wait = \"{wait}ms\" }}"),
                1 => format!("{{ write = \"{agent}-named-{number}.txt\", text = \"{agent} {number}\\n\" }}"),
                2 => format!("{{ run = \"git commit -q --allow-empty -m {agent} || true\" }}"),
                _ => {
                    let path = format!("{agent}-commanded-{number}.txt");
                    format!("{{ run = \"echo {number} >> {path}; sleep 0.0{wait:02}; echo b >> {path}\" }}")
                }
            });
        }
        steps.push("{ say = \"Done.\" }".to_owned());
        format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{}]\n", steps.join(", "))
    }

    fn squad(&self, arguments: &[&str]) -> Command {
        let mut command = self.repo.command(BINARY, &self.repo.root());
        command.args(["orchestrate", "--json", "--permissions", "allow", "--no-commit"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Edits files while others work.
    fn edit(&mut self, count: usize) {
        for number in 0..count {
            thread::sleep(Duration::from_millis(self.dice.below(60) as u64));
            let path = self.repo.root().join(format!("person-{}.txt", self.dice.below(3)));
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            // A formatter sorts the lines, the person adds one.
            let mut lines: Vec<&str> = text.lines().collect();
            let new = format!("line {} {number}", 9 - number);
            lines.push(&new);
            if self.dice.below(3) == 0 {
                lines.sort_unstable();
            }
            std::fs::write(path, lines.join("\n") + "\n").expect("a file");
            if self.dice.below(3) == 0 {
                self.repo.squad(&["decisions", "add", "Money is stored as integer cents"]);
            }
        }
    }

    /// The last event of a run that has ended by itself, resumed as often as it is killed.
    fn end(&mut self, mut child: Child, script: &str) -> Value {
        if self.dice.below(3) == 0 {
            thread::sleep(Duration::from_millis(self.dice.below(400) as u64));
            let _ = child.kill();
        }
        let output = child.wait_with_output().expect("it ends");
        let last =
            |out: &[u8]| -> Option<Value> { serde_json::from_str(String::from_utf8_lossy(out).lines().last()?).ok() };
        match last(&output.stdout).filter(|last| output.status.success() && last["type"] == "run.completed") {
            Some(last) => last,
            None => {
                self.was_killed = true;
                self.edit(1);
                let log: Value = serde_json::from_str(&self.repo.squad(&["log", "--json"]).out).expect("JSON");
                let Some(run) = log["runs"].as_array().into_iter().flatten().find(|run| run["status"] == "lost") else {
                    return Value::Null;
                };
                let run = run["run"].as_str().expect("an id").to_owned();
                let output = self.squad(&["--script", script, "--resume", &run]).output().expect("squad runs");
                last(&output.stdout).expect("an event")
            }
        }
    }
}

fn check(play: &Play, end: &Value, agents: &[&str], others: &[&str], context: &str) {
    let mut seen = BTreeSet::new();
    for work in end["work"].as_array().expect("work") {
        for change in work["changed"].as_array().into_iter().flatten() {
            let text = |key: &str| change[key].as_str().unwrap_or_default();
            let (path, class, how) = (text("path"), text("class"), text("how"));
            let by: Vec<&str> = change["by"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
            let context = format!("{context}: {change}");
            seen.insert(path.to_owned());
            if path.starts_with(".squad/") {
                assert!(class == "other_run" || class == "unknown" && play.was_killed, "{context}");
                continue;
            }
            let is_of_agents = class == "own" || class == "together";
            assert_eq!(is_of_agents, !by.is_empty() && !how.is_empty(), "{context}");
            let author = path.split('-').next().expect("an author");
            let is_named = path.contains("-named-");
            if how == "named" {
                assert!(is_named && by == [author] && agents.contains(&author), "{context}");
            } else if is_of_agents {
                assert!(play.has_commands, "{context}");
            } else if class == "yours" {
                assert_eq!(author, "person", "{context}");
            } else if class == "other_run" {
                assert!(!others.is_empty() && (others.contains(&author) || play.has_commands), "{context}");
            } else {
                assert!(class == "unknown" && play.was_killed, "{context}");
            }
            let is_certain = agents.contains(&author) && !play.was_killed;
            assert!(!is_certain || (is_of_agents && by.contains(&author)), "{context}");
        }
    }
    for work in end["work"].as_array().expect("work") {
        let own = work["git"]["commits"].as_array().into_iter().flatten().map(|commit| (commit, true));
        let shared = work["git"]["together"].as_array().into_iter().flatten();
        let shared = shared.flat_map(|shared| shared["commits"].as_array().into_iter().flatten());
        let unknown = work["git"]["unknown"]["commits"].as_array().into_iter().flatten();
        for (commit, is_own) in own.chain(shared.chain(unknown).map(|commit| (commit, false))) {
            let commit = commit.as_str().expect("a commit");
            let by = play.repo.git(&["log", "-1", "--format=%s", commit]).trim().to_owned();
            let is_its =
                if is_own { work["agent"] == by.as_str() } else { agents.contains(&&*by) || others.contains(&&*by) };
            assert!(is_its, "{context}: {work}: commit of {by}");
        }
    }
    for path in play.repo.git(&["status", "--porcelain", "--untracked-files=all"]).lines().map(|line| &line[3..]) {
        let author = path.split('-').next().expect("an author");
        // What others change before the first snapshot or after the last is not this run's concern.
        let log = || play.repo.squad(&["log", end["run"].as_str().unwrap_or_default(), "--json"]).out;
        assert!(
            !agents.contains(&author) || seen.contains(path),
            "{context}: {path} is missing of {seen:?}\n{}",
            log()
        );
    }
}

fn play(seed: u64) {
    let mut play = Play::new(seed);
    let (one, two) = (play.turn("ada") + &play.turn("bob"), play.turn("rex"));
    play.repo.write("../one.toml", &one);
    play.repo.write("../two.toml", &two);
    let first = ["--script", "../one.toml", "--agent", "ada", "--agent", "bob", "Explain it"];
    let first = play.squad(&first).spawn().expect("squad runs");
    let second = (play.dice.below(2) == 0)
        .then(|| play.squad(&["--script", "../two.toml", "--agent", "rex", "Explain it"]).spawn().expect("squad runs"));
    let edits = play.dice.below(4);
    play.edit(edits);
    let others: &[&str] = if second.is_some() { &["rex"] } else { &[] };
    let context = format!("seed {seed}");
    let end = play.end(first, "../one.toml");
    if !end.is_null() {
        check(&play, &end, &["ada", "bob"], others, &format!("{context}, first"));
    }
    if let Some(second) = second {
        let end = second.wait_with_output().expect("it ends");
        let end =
            String::from_utf8_lossy(&end.stdout).lines().last().map(|line| serde_json::from_str(line).expect("JSON"));
        check(&play, &end.expect("an end"), &["rex"], &["ada", "bob"], &format!("{context}, second"));
    }
    play.repo.assert_sound();
}

#[test]
fn nobody_gets_what_somebody_else_did_and_nothing_is_missing() {
    let count = number_of("SQUAD_OUTCOMES", 12) as u64;
    let first = number_of("SQUAD_OUTCOMES_FROM", 1) as u64;
    for seed in first..first + count {
        play(seed);
    }
}
