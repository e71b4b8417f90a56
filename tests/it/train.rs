//! `squad merge` with a check: what breaks the project is found and set aside, and the rest is merged. With real processes,
//! as a check takes the time that it takes.
//!
//! `SQUAD_TRAIN=50,5 cargo test --test it train::` merges the work of that many agents, with that many breakers.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Dice, Output, TestRepo};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");
const USER: &str = "../home/config/squad/config.toml";
/// Red where a file has the word. It leaves a mess, and is not misled by that of an earlier one.
const NO_BREAKER: &str =
    r#"["sh", "-c", "test ! -e mess.txt || exit 9; echo x > mess.txt; echo x >> team.txt; ! grep -l BREAKER *.txt"]"#;

/// A run in clones of this many agents, some of which break the project.
fn repo(agents: usize, breakers: &[usize]) -> (TestRepo, String) {
    let mut repo = TestRepo::empty();
    let state = repo.home().join("state");
    repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
    let names: Vec<String> = (0..agents).map(|number| format!("dev{number:02}x")).collect();
    let row = |name: &String| format!("| {name} | Developer | Active |\n");
    let rows: String = names.iter().map(row).collect();
    repo.write(".squad/team.md", &format!("# Big\n\n| Name | Role | Status |\n|---|---|---|\n{rows}"));
    repo.write("team.txt", "team\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "team"]);
    let turn = |(number, name): (usize, &String)| {
        let text = if breakers.contains(&number) { "BREAKER" } else { "fine" };
        format!(
            "[[turn]]\nagent = \"{name}\"\nsteps = [{{ write = \"{name}.txt\", text = \"{text}\\n\" }}, {{ say = \"Done.\" }}]\n"
        )
    };
    let script: String = names.iter().enumerate().map(turn).collect();
    let script = script + "[[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All is done.\" }]\n";
    let agents = names.join(",");
    let output = repo.rehearse(
        &script,
        &["--permissions", "allow", "--isolation", "clone", "--json", "--agent", &agents, "Write it"],
    );
    assert_eq!(output.code, 0, "{output}");
    let run = TestRepo::events(&output).last().expect("an end")["run"].as_str().expect("an id").to_owned();
    (repo, run)
}

/// Fifty agents that change lines of the same files, add some and delete some: what git makes of the same branches, merged in
/// the same order, and those that git finds in conflict are left.
#[test]
fn fifty_branches_are_merged_as_git_merges_them_in_order() {
    const FILES: usize = 12;
    for seed in 1..=2 {
        let mut dice = Dice(seed);
        let mut repo = TestRepo::empty();
        let state = repo.home().join("state");
        repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
        let names: Vec<String> = (0..50).map(|number| format!("dev{number:02}x")).collect();
        let rows: String = names.iter().map(|name| format!("| {name} | Developer | Active |\n")).collect();
        repo.write(".squad/team.md", &format!("# Big\n\n| Name | Role | Status |\n|---|---|---|\n{rows}"));
        let file = |number: usize| format!("d{}/f{number}.txt", number % 3);
        let lines = |number: usize| (0..30).map(|line| format!("file {number}, line {line}\n")).collect::<Vec<_>>();
        (0..FILES).for_each(|number| repo.write(&file(number), &lines(number).concat()));
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "files"]);
        let mut script = String::new();
        for name in &names {
            let mut steps = String::new();
            for _ in 0..=dice.below(2) {
                let number = dice.below(FILES);
                let step = match dice.below(8) {
                    0 => format!("{{ write = \"new/{name}.txt\", text = \"of {name}\\n\" }}, "),
                    1 if dice.below(4) == 0 => format!("{{ run = \"rm -f {}\" }}, ", file(number)),
                    _ => {
                        let mut text = lines(number);
                        text[dice.below(30)] = format!("{name} {}\n", dice.below(100));
                        format!("{{ write = \"{}\", text = {:?} }}, ", file(number), text.concat())
                    }
                };
                steps += &step;
            }
            script += &format!("[[turn]]\nagent = \"{name}\"\nsteps = [{steps}{{ say = \"Done.\" }}]\n");
            // Conflicts stay as they are.
            script += &format!("[[turn]]\nagent = \"{name}\"\nsteps = [{{ say = \"No.\" }}]\n").repeat(4);
        }
        let flags =
            ["--permissions", "allow", "--isolation", "clone", "--json", "--agent", &names.join(","), "Write it"];
        let output = repo.rehearse(&script, &flags);
        let run = TestRepo::events(&output).last().expect("an end")["run"].as_str().expect("an id").to_owned();

        let model = repo.root().with_file_name("model");
        repo.git(&["clone", "-q", "--shared", ".", model.to_str().expect("UTF-8")]);
        let mut conflicting = Vec::new();
        for name in &names {
            let work = format!("refs/squad/runs/{run}/{name}");
            repo.git_in(&model, &["fetch", "-q", "origin", &work]);
            let mut merge = repo.command("git", &model);
            merge.args(["-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "--no-edit", "FETCH_HEAD"]);
            if !merge.output().expect("git runs").status.success() {
                repo.git_in(&model, &["merge", "--abort"]);
                conflicting.push(name.clone());
            }
        }
        assert!((1..30).contains(&conflicting.len()), "{conflicting:?}");
        let merged = squad(&repo, &["merge", &run, "--yes", "--json"]);
        let left = json(&merged)["left"].as_array().expect("a list").clone();
        let left: Vec<&str> = left.iter().map(|left| left["agent"].as_str().expect("a name")).collect();
        assert_eq!((left, merged.code), (conflicting.iter().map(String::as_str).collect(), 1), "{seed}: {merged}");
        let tree = |place: &std::path::Path| repo.git_in(place, &["rev-parse", "HEAD^{tree}"]);
        assert_eq!(tree(&repo.root()), tree(&model), "{seed}: {merged}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{seed}");
        repo.assert_sound();
    }
}

fn command(repo: &TestRepo, arguments: &[&str]) -> Command {
    let mut command = repo.command(BINARY, &repo.root());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn squad(repo: &TestRepo, arguments: &[&str]) -> Output {
    let output = command(repo, arguments).output().expect("squad runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().and_then(|code| code.try_into().ok()).expect("a code");
    Output { out: text(&output.stdout), err: text(&output.stderr), code }
}

fn check(run: &str) -> String {
    format!("[check]\nrun = {run}\n")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect("JSON")
}

#[test]
fn breakers_are_found_by_halving_and_the_rest_is_merged() {
    let asked = std::env::var("SQUAD_TRAIN").unwrap_or_default();
    let asked = asked.split_once(',').and_then(|(all, red)| Some((all.parse().ok()?, red.parse().ok()?)));
    let (count, red): (usize, usize) = asked.unwrap_or((12, 2));
    let breakers: Vec<usize> = (0..red).map(|nth| (nth * count / red + nth * 3 + 1) % count).collect();
    let (repo, run) = repo(count, &breakers);
    repo.write(USER, &check(NO_BREAKER));
    repo.write("mine.txt", "BREAKER, but it is mine\n");
    // A dry run starts nothing unless it is told to.
    let dry = squad(&repo, &["merge", &run, "--dry-run", "--json"]);
    assert_eq!((dry.code, json(&dry)["checks"].as_u64()), (0, Some(0)), "{dry}");
    let dry = json(&squad(&repo, &["merge", &run, "--dry-run", "--check", "--json"]));
    // Nothing is set aside before somebody agrees.
    let unasked = squad(&repo, &["merge", &run]);
    assert!(unasked.code == 2 && unasked.err.contains("needs --yes"), "{unasked}");
    assert!(!repo.squad(&["log", &run, "--json"]).out.contains("\"work.set_aside\""));
    let merged = squad(&repo, &["merge", &run, "--yes", "--json"]);
    let report = json(&merged);
    assert_eq!(merged.code, 1, "{merged}");
    assert_eq!((&dry["merged"], &dry["left"][0]["agent"]), (&report["merged"], &report["left"][0]["agent"]));
    let name = |number: &usize| format!("dev{number:02}x");
    let left = report["left"].as_array().expect("a list");
    let mut found: Vec<String> = left.iter().map(|left| left["agent"].as_str().expect("a name").to_owned()).collect();
    found.sort();
    let mut planted: Vec<String> = breakers.iter().map(name).collect();
    planted.sort();
    assert_eq!(found, planted, "{merged}");
    for left in left {
        let (agent, check) = (left["agent"].as_str().expect("a name"), &left["check"]);
        assert_eq!((&check["exit_code"], check["passed"].as_bool()), (&1.into(), Some(false)), "{left}");
        assert_eq!(check["output"].as_str().expect("a text").trim(), format!("{agent}.txt"), "{left}");
    }
    let checks = report["checks"].as_u64().expect("a number");
    let most = 2 + red * (2 + count.ilog2() as usize);
    assert!(checks as usize <= most, "{checks} checks for {count} works, {most} at most");
    println!("{count} works, {red} breakers: {checks} checks");
    assert_eq!(report["check"]["passed"], true);
    for number in 0..count {
        assert_eq!(repo.exists(&format!("{}.txt", name(&number))), !breakers.contains(&number), "{number}");
    }
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? mine.txt\n");
    assert_eq!(repo.read("team.txt"), "team\n", "what the check writes is not in the project");
    // The ledger has the evidence.
    let log = repo.squad(&["log", &run, "--json"]);
    assert_eq!(log.out.matches("\"work.set_aside\"").count(), red, "{log}");
    assert!(repo.squad(&["log", &run]).out.contains("its work is not merged: `sh -c"));
    // What is mended can be merged later; here somebody takes it as it is.
    let rest = squad(&repo, &["merge", &run, "--yes", "--no-check"]);
    assert!(rest.code == 0 && repo.exists(&format!("{}.txt", planted[0])), "{rest}");
    assert!(squad(&repo, &["gc"]).out.contains("clones of ended runs removed"));
    repo.assert_sound();
}

/// The ports of the check's clone are its own as long as its commands run, after its set-up too.
#[cfg(target_os = "linux")]
#[test]
fn a_check_has_its_ports_to_itself() {
    let (repo, run) = repo(1, &[]);
    let is_taken = "test -n \"$SQUAD_PORT\" && ! flock -n ../home/state/squad/ports/$SQUAD_PORT true";
    let is_taken = is_taken.replace("../home", &repo.home().display().to_string());
    repo.write(USER, &check(&format!("[\"sh\", \"-c\", {is_taken:?}]")));
    let merged = squad(&repo, &["merge", &run, "--yes"]);
    assert_eq!(merged.code, 0, "{merged}");
}

/// Checks that can say nothing of anybody's work: nothing is merged, and nothing is lost.
#[test]
fn a_check_that_is_red_by_itself_merges_nothing() {
    let (repo, run) = repo(2, &[]);
    let before = repo.git(&["rev-parse", "HEAD"]);
    for (configuration, says) in [
        (
            check("[\"sh\", \"-c\", \"echo broken before; exit 3\"]"),
            "failed, exit 3 without any of the work: broken before",
        ),
        (check("[\"no-such-program\"]"), "no-such-program"),
        (check("[\"sh\", \"-c\", \"yes flood | head -c 30000000; exit 4\"]"), "exit 4 without any of the work: flood"),
        (check("[\"sleep\", \"600\"]") + "[sessions]\ntool_limit = \"1s\"\n", "without any of the work"),
    ] {
        repo.write(USER, &configuration);
        let begun = Instant::now();
        let output = squad(&repo, &["merge", &run, "--yes"]);
        assert!(output.code == 1 && output.err.contains(says), "{says}: {output}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{says}");
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), before);
    }
    repo.write(USER, "[check]\nrun = \"\"\n");
    assert_eq!(squad(&repo, &["merge", &run, "--yes"]).code, 3, "a check that cannot be read");
    // A repository's own is run only with approval.
    repo.write(USER, "");
    assert_eq!(squad(&repo, &["merge", &run, "--yes", "--check"]).code, 3);
    repo.write(".squad/config.toml", &check("[\"false\"]"));
    let refused = squad(&repo, &["merge", &run, "--yes", "--check"]);
    assert!(refused.code == 3 && refused.err.contains("is not approved"), "{refused}");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), before);
    std::fs::remove_file(repo.root().join(".squad/config.toml")).expect("a file");
    let merged = squad(&repo, &["merge", &run, "--yes", "--json"]);
    assert_eq!((merged.code, json(&merged)["check"].is_null()), (0, true), "{merged}");
    repo.assert_sound();
}

/// Work that makes the check hang, and a merge that is killed while it checks, with another beside it.
#[test]
fn a_hanging_check_and_a_killed_merge_lose_nothing() {
    let (repo, run) = repo(3, &[1]);
    let hangs = r#"["sh", "-c", "sleep 1; ! grep -q BREAKER *.txt || sleep 600"]"#;
    repo.write(USER, &(check(hangs) + "[sessions]\ntool_limit = \"3s\"\n"));
    let before = repo.git(&["rev-parse", "HEAD"]);
    let mut child = command(&repo, &["merge", &run, "--yes"]).spawn().expect("squad runs");
    let train = format!("refs/squad/runs/{run}_train/1");
    let begun = Instant::now();
    while repo.git(&["for-each-ref", &train]).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it checks");
        sleep(Duration::from_millis(20));
    }
    let beside = squad(&repo, &["merge", &run, "--yes"]);
    assert!(beside.code == 1 && beside.err.contains("another process merges run"), "{beside}");
    child.kill().expect("it lives");
    child.wait().expect("it ends");
    // The run itself has ended.
    let status = squad(&repo, &["status"]);
    assert!(status.code == 0 && !status.out.contains("--resume"), "{status}");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), before);
    repo.assert_sound();
    let merged = squad(&repo, &["merge", &run, "--yes", "--json"]);
    let report = json(&merged);
    assert_eq!((merged.code, &report["left"][0]["agent"]), (1, &"dev01x".into()), "{merged}");
    assert!(report["left"][0]["check"]["exit_code"].is_null(), "{merged}");
    assert_eq!(report["merged"].as_array().map(Vec::len), Some(2), "{merged}");
    assert!(repo.exists("dev00x.txt") && repo.exists("dev02x.txt") && !repo.exists("dev01x.txt"));
    repo.assert_sound();
}

/// Cancelled by another process while it checks: the check ends with all that it started, and nothing is merged.
#[test]
fn a_merge_that_is_cancelled_ends_its_check_and_merges_nothing() {
    let (repo, run) = repo(1, &[]);
    repo.write(USER, &check(r#"["sh", "-c", "sleep 600 & echo $! > ../../sleeper; wait"]"#));
    let before = repo.git(&["rev-parse", "HEAD"]);
    let child = command(&repo, &["merge", &run, "--yes"]).spawn().expect("squad runs");
    let clones = repo.home().join("state/squad/clones");
    let begun = Instant::now();
    let sleeper = loop {
        let found = Command::new("find").arg(&clones).args(["-name", "sleeper"]).output();
        let path = String::from_utf8_lossy(&found.expect("find runs").stdout).trim().to_owned();
        match std::fs::read_to_string(&path) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => assert!(begun.elapsed() < Duration::from_secs(60), "it checks"),
        }
        sleep(Duration::from_millis(20));
    };
    let cancel = squad(&repo, &["cancel", &run]);
    assert_eq!(cancel.code, 0, "{cancel}");
    let ended = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{err}");
    assert!(err.contains("cancelled by the user while the work was checked; nothing is merged"), "{err}");
    assert!(crate::process::ends(&sleeper), "{sleeper} is still there");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), before);
    repo.assert_sound();
}

/// Without a check, too, only one of two merges of a run merges it, and none says what is not so.
#[test]
fn of_two_merges_at_once_one_merges() {
    for _ in 0..3 {
        let (repo, run) = repo(3, &[]);
        let both = [0, 1].map(|_| command(&repo, &["merge", &run, "--yes"]).spawn().expect("squad runs"));
        let ended = both.map(|child| child.wait_with_output().expect("it ends"));
        let texts = ended.map(|output| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (output.status.code(), text(&output.stdout) + &text(&output.stderr))
        });
        assert_eq!(texts.iter().filter(|(_, text)| text.contains("into main, in ")).count(), 1, "{texts:?}");
        for (_, text) in texts.iter().filter(|(_, text)| !text.contains("into main, in ")) {
            let is_true = ["another process merges", "is merged already"].iter().any(|why| text.contains(why));
            assert!(is_true, "{texts:?}");
        }
        assert_eq!(repo.git(&["for-each-ref", "refs/heads/squad"]), "");
        assert_eq!(repo.squad(&["log", &run, "--json"]).out.matches("\"run.merged\"").count(), 1);
    }
}
