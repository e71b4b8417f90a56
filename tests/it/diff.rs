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
    assert!(shown.out.starts_with("diff --git a/app.txt b/app.txt\n"), "{shown}");
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

/// What is piped on is a patch and nothing else: from the files before to those after.
#[cfg(unix)]
#[test]
fn git_takes_what_is_no_terminal_gets() {
    use std::os::unix::fs::PermissionsExt;

    let repo = TestRepo::with_small_team();
    for (path, bytes) in [
        ("app.txt", &b"one\ntwo\n"[..]),
        ("gone.txt", b"gone"),
        ("crlf.txt", b"a\r\nb\r\n"),
        ("latin.txt", b"caf\xe9\n"),
        ("image.bin", &[0, 1, 2, 255]),
        ("old.bin", &[0, 9]),
        ("folder/a b.txt", b"a\n"),
        ("tool.sh", b"x\n"),
    ] {
        repo.write(path, "");
        fs::write(repo.root().join(path), bytes).expect("a file");
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let steps = "{ write = \"new.txt\", text = \"no end\" }, { write = \"app.txt\", text = \"ONE\\ntwo\\n\" }, \
                 { run = \"sed -i s/two/TWO/ app.txt; rm gone.txt old.bin; printf 'a\\\\r\\\\nc\\\\r\\\\n' > crlf.txt; \
                 chmod +x tool.sh; printf '\\\\0\\\\7\\\\377' > image.bin; printf '\\\\0new' > new.bin; ln -s app.txt link; \
                 printf 'th\\\\351\\\\n' >> latin.txt; rm -r folder; echo file > folder; : > empty; \
                 printf '\\\\033[31m' > red.txt\" }";
    run(&repo, &turn("ada", steps), &["--agent", "ada", "Do it"]);
    let output = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root()).arg("diff").output().expect("it runs");
    assert!(output.status.success() && output.stdout.starts_with(b"diff --git "));
    fs::write(repo.root().join("../run.patch"), &output.stdout).expect("a file");
    let fresh = repo.root().with_file_name("fresh");
    repo.git(&["worktree", "add", "-q", "--detach", &fresh.display().to_string()]);
    repo.git_in(&fresh, &["apply", "../run.patch"]);
    let files = |root: &std::path::Path| {
        let listed = repo.git_in(root, &["ls-files", "-z", "--cached", "--others"]);
        let read = |name: &str| {
            let (path, about) = (root.join(name), root.join(name).symlink_metadata().ok()?);
            let bytes = if about.is_symlink() { Vec::new() } else { fs::read(&path).ok()? };
            Some((name.to_owned(), about.permissions().mode() & 0o111, fs::read_link(&path).ok(), bytes))
        };
        let mut files: Vec<_> = listed.split('\0').filter_map(read).collect();
        files.sort();
        files.dedup();
        files
    };
    assert_eq!(files(&fresh), files(&repo.root()));
    let json = json(&repo, &[]);
    let image = json["files"].as_array().expect("files").iter().find(|file| file["path"] == "image.bin").expect("it");
    assert!(image["patch"].as_str().expect("a patch").contains("GIT binary patch") && image["added"].is_null());
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
        assert!(
            diff.code == 0 && diff.err.contains("goes on; this is what it had changed at its last snapshot"),
            "{diff}"
        );
        assert!(diff.out.contains("+first"), "{diff}");
        let run: Value = serde_json::from_str(&repo.squad(&["diff", "--json"]).out).expect("JSON");
        let undo = repo.squad(&["undo", "--yes", run["run"].as_str().expect("a run")]);
        assert!(undo.code == 2 && undo.err.contains("is live") && undo.err.contains("squad cancel"), "{undo}");
    });
    assert_eq!(code, Some(0));
    assert!(!repo.squad(&["diff"]).err.contains("goes on"));
}

/// The process dies before a snapshot has what an agent's tool wrote last.
#[test]
fn log_diff_and_undo_agree_on_a_killed_run() {
    let repo = TestRepo::with_small_team();
    let steps = "{ write = \"a.txt\", text = \"a\\n\" }, { wait = \"1h\" }";
    repo.write("../play.toml", &turn("ada", steps));
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(["orchestrate", "--script", "../play.toml", "--agent", "ada"]).args(ALLOWED).arg("Do it");
    let silent = std::process::Stdio::null;
    let mut child = command.stdin(silent()).stdout(silent()).stderr(silent()).spawn().expect("it runs");
    let events = |run: &str| {
        let log = repo.squad(&["log", run, "--json"]);
        log.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>()
    };
    let newest = || {
        let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).ok()?;
        runs["runs"][0]["run"].as_str().map(str::to_owned)
    };
    let has_written = || newest().is_some_and(|run| format!("{:?}", events(&run)).contains("tool.completed"));
    while !has_written() {
        assert!(child.try_wait().expect("a child").is_none(), "it waits");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    child.kill().expect("it lives");
    child.wait().expect("it ends");
    let run = newest().expect("a run");
    let diff = json(&repo, &[&run]);
    let logged = format!("{:?}", events(&run).last());
    let of = |list: &str| {
        let paths = diff[list].as_array().expect("a list").iter().map(|file| file["path"].as_str().expect("a path"));
        paths.collect::<Vec<_>>()
    };
    assert_eq!((of("files"), of("not_covered")), (Vec::new(), vec!["a.txt"]), "{diff}");
    assert!(logged.contains("a.txt"), "{logged}");
    let undone = repo.squad(&["undo", &run, "--yes"]);
    assert!(undone.err.contains("not covered: a.txt: no snapshot was taken after it was written"), "{undone}");
    assert!(undone.code == 0 && repo.exists("a.txt"), "{undone}");
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
