//! `squad diff`: what a run changed, and who did.

use std::fs;

use expect_test::expect;
use serde_json::Value;

use crate::outcome::{WAITING, meanwhile};
use crate::support::{Output, TestRepo};

const ALLOWED: [&str; 3] = ["--permissions", "allow", "--no-commit"];

/// A run of these agents' turns, which must end well.
fn run(repo: &TestRepo, script: &str, arguments: &[&str]) -> Output {
    let output = repo.rehearse(script, &[&ALLOWED[..], arguments].concat());
    assert_eq!(output.code, 0, "{output}");
    output
}

fn turn(agent: &str, steps: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}, {{ say = \"Done.\" }}]\n")
}

fn json(repo: &TestRepo, arguments: &[&str]) -> Value {
    let output = repo.squad(&[&["diff", "--json"], arguments].concat());
    assert_eq!(output.code, 0, "{output}");
    serde_json::from_str(&output.out).expect("JSON")
}

/// A repository with files of every kind, and a run that changes them.
fn changed() -> TestRepo {
    let repo = TestRepo::with_small_team();
    repo.write("app.txt", "one\ntwo\nthree\n");
    repo.write("gone.txt", "gone\n");
    repo.write("crlf.txt", "a\r\nb\r\n");
    repo.write("tool.sh", "#!/bin/sh\n");
    fs::write(repo.root().join("image.bin"), [0, 1, 2]).expect("a file");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    repo.write("app.txt", "one\nmine\nthree\n");
    let steps = "{ write = \"new.txt\", text = \"new\\n\" }, \
                 { run = \"sed -i s/one/ONE/ app.txt; rm gone.txt; printf 'a\\\\r\\\\nc\\\\r\\\\n' > crlf.txt; \
                 chmod +x tool.sh; printf '\\\\0\\\\7' > image.bin; ln -s app.txt link\" }";
    run(&repo, &turn("ada", steps), &["--agent", "ada", "Do it"]);
    repo
}

#[test]
fn each_file_is_shown_with_who_changed_it() {
    let repo = changed();
    expect![[r#"
          ada   app.txt     +1 -1   by a command
          ada   crlf.txt    +1 -1   by a command
          ada   gone.txt    +0 -1   by a command
          ada   image.bin   no lines   by a command
          ada   link        +1 -0   by a command
          ada   new.txt     +1 -0
          ada   tool.sh     +0 -0   by a command
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["diff", "--stat"]).to_string());
    let shown = repo.squad(&["diff"]);
    expect![[r#"
          ada   app.txt     +1 -1   by a command
        diff --git a/app.txt b/app.txt
    "#]]
    .assert_eq(&shown.out.lines().take(2).map(|line| format!("{line}\n")).collect::<String>());
    assert!(shown.out.contains("-one\n+ONE\n mine\n"), "the user's edit is none of the run's: {shown}");
    let diff = json(&repo, &[]);
    let of = |path: &str| {
        let file = diff["files"].as_array().expect("files").iter().find(|file| file["path"] == path).expect(path);
        (file["class"].clone(), file["by"].clone(), file["how"].clone(), file["added"].clone())
    };
    assert_eq!(of("new.txt"), ("own".into(), vec!["ada"].into(), "named".into(), 1.into()));
    assert_eq!(of("image.bin"), ("own".into(), vec!["ada"].into(), "command".into(), Value::Null));
    repo.assert_sound();
}

#[test]
fn git_takes_the_diff_back() {
    let repo = changed();
    for path in ["image.bin", "crlf.txt"] {
        repo.git(&["checkout", "-q", "--", path]);
    }
    let diff = json(&repo, &[]);
    let texts = diff["files"].as_array().expect("files").iter();
    let texts = texts.filter(|file| file["path"] != "image.bin" && file["path"] != "crlf.txt");
    let patch: String = texts.map(|file| format!("  a head\n{}", file["patch"].as_str().expect("a patch"))).collect();
    repo.write("../back.patch", &patch);
    repo.git(&["apply", "-R", "../back.patch"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), " M app.txt\n");
    assert_eq!(repo.read("app.txt"), "one\nmine\nthree\n");
}

#[test]
fn one_run_and_one_agent_are_chosen_and_others_are_named() {
    let repo = TestRepo::with_small_team();
    let script =
        turn("ada", "{ write = \"a.txt\", text = \"a\\n\" }") + &turn("bob", "{ write = \"b.txt\", text = \"b\\n\" }");
    run(&repo, &script, &["--agent", "ada", "--agent", "bob", "Do it"]);
    run(&repo, &turn("ada", "{ write = \"a.txt\", text = \"again\\n\" }"), &["--agent", "ada", "Again"]);
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let first = runs["runs"][1]["run"].as_str().expect("a run");
    let paths = |arguments: &[&str]| {
        let diff = json(&repo, arguments);
        let paths = diff["files"].as_array().expect("files").iter().map(|file| file["path"].to_string());
        paths.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(paths(&[]), "\"a.txt\"");
    assert_eq!(paths(&[first]), "\"a.txt\" \"b.txt\"");
    assert_eq!(paths(&[first, "bob"]), "\"b.txt\"");
    assert_eq!(paths(&[first, "Ada"]), "\"a.txt\"");
    for (arguments, said) in [
        (&["diff", "x"][..], "there is no run `x`"),
        (&["diff", "2026"], "`2026` is ambiguous"),
        (&["diff", first, "rex"], "`rex` is not in run"),
        (&["diff", first, "!"], "`!` is not an agent's name"),
    ] {
        let output = repo.squad(arguments);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.err.contains(said), "{output}");
    }
}

#[test]
fn a_run_without_snapshots_is_said_with_what_is_known() {
    let repo = changed();
    let snapshots = repo.git(&["for-each-ref", "--format=delete %(refname)", "refs/squad/runs"]);
    repo.write("../refs", &snapshots);
    for reference in snapshots.lines() {
        repo.git(&["update-ref", "-d", reference.trim_start_matches("delete ")]);
    }
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    let output = repo.squad(&["diff"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.err.contains("are not here: another clone has them, or `squad gc` has deleted them"), "{output}");
    assert!(output.err.contains("it changed app.txt, crlf.txt"), "{output}");
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["diff"]);
    assert!(output.code == 2 && output.err.contains("there has been no run"), "{output}");
}

#[test]
fn a_live_run_is_shown_so_far_and_not_undone() {
    let repo = TestRepo::with_small_team();
    let script = turn("ada", &format!("{{ run = \"echo first > a.txt\" }}, {{ run = \"{WAITING}\" }}"));
    let arguments = ["--permissions", "allow", "--agent", "ada", "--no-commit", "Do it"];
    let (_, code) = meanwhile(&repo, &script, &arguments, || {
        let diff = repo.squad(&["diff"]);
        assert!(diff.code == 0 && diff.err.contains("goes on; these are its changes so far"), "{diff}");
        assert!(diff.out.contains("+first"), "{diff}");
        let run: Value = serde_json::from_str(&repo.squad(&["diff", "--json"]).out).expect("JSON");
        let undo = repo.squad(&["undo", "--yes", run["run"].as_str().expect("a run")]);
        assert!(undo.code == 2 && undo.err.contains("is live") && undo.err.contains("squad cancel"), "{undo}");
    });
    assert_eq!(code, Some(0));
    assert!(!repo.squad(&["diff"]).err.contains("goes on"));
}

/// A snapshot that leaves a file out has another content of it, or none: no diff may say so.
#[test]
fn a_file_that_no_snapshot_has_is_named_without_its_text() {
    let repo = TestRepo::with_small_team();
    repo.write("keys.txt", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz\n");
    run(&repo, &turn("ada", "{ run = \"echo nothing > keys.txt\" }"), &["--agent", "ada", "Do it"]);
    let output = repo.squad(&["diff"]);
    assert_eq!((output.code, output.out.as_str()), (0, ""), "{output}");
    assert!(output.err.contains("not covered: keys.txt: it holds what looks like a secret"), "{output}");
}

/// What an agent names a file or writes into it does nothing to the terminal.
#[test]
fn a_diff_is_safe_to_print() {
    let repo = TestRepo::with_small_team();
    let steps = "{ run = \"printf '\\\\033[31mred\\\\033]0;x\\\\007' > a.txt; echo x > $(printf 'b\\\\033c.txt')\" }";
    run(&repo, &turn("ada", steps), &["--agent", "ada", "Do it"]);
    let output = repo.squad(&["diff"]);
    assert!(!output.out.contains('\u{1b}') && output.out.contains("b") && output.out.contains("red"), "{output}");
}

/// A greeting is answered without agents, so it has no snapshot.
#[test]
fn the_newest_run_is_the_newest_with_a_snapshot() {
    let repo = changed();
    assert_eq!(repo.squad(&["orchestrate", "Hello"]).code, 0);
    assert!(repo.squad(&["diff", "--stat"]).out.contains("app.txt"));
    let greeting = TestRepo::with_small_team();
    greeting.squad(&["orchestrate", "Hello"]);
    let output = greeting.squad(&["diff"]);
    assert!(output.code == 2 && output.err.contains("took no snapshot"), "{output}");
}
