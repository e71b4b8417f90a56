//! `squad undo`: what a run changed is taken back, and nothing else.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;

use crate::support::{Dice, Output, TestRepo, number_of};

const ALLOWED: [&str; 3] = ["--permissions", "allow", "--no-commit"];

fn turn(agent: &str, steps: &str) -> String {
    format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}, {{ say = \"Done.\" }}]\n")
}

/// A run of ada's, which runs this in a shell. Returns its id.
fn run(repo: &TestRepo, command: &str) -> String {
    run_in(repo, &repo.root(), command)
}

fn run_in(repo: &TestRepo, folder: &Path, command: &str) -> String {
    repo.write("../agent.sh", command);
    let script = repo.root().join("../agent.sh").display().to_string();
    run_script(repo, folder, &turn("ada", &format!("{{ run = \"sh {script}\" }}")), &["ada"])
}

fn run_script(repo: &TestRepo, folder: &Path, script: &str, agents: &[&str]) -> String {
    repo.write("../script.toml", script);
    let script = repo.root().join("../script.toml").display().to_string();
    let mut arguments = vec!["orchestrate", "--script", &script];
    agents.iter().for_each(|agent| arguments.extend(["--agent", agent]));
    arguments.extend(ALLOWED);
    arguments.push("Do it");
    let output = repo.squad_in(folder, &arguments);
    assert_eq!(output.code, 0, "{output}");
    repo.pass(1);
    newest(repo)
}

pub(crate) fn newest(repo: &TestRepo) -> String {
    let runs: Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    runs["runs"][0]["run"].as_str().expect("a run").to_owned()
}

fn undo(repo: &TestRepo, arguments: &[&str]) -> Output {
    let output = repo.squad(&[&["undo", "--yes"], arguments].concat());
    assert_eq!(output.code, 0, "{output}");
    output
}

/// Every file of a work tree with its mode and bytes, but not git's.
fn picture(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = entry.strip_prefix(root).expect("below").to_string_lossy().into_owned();
            let metadata = entry.symlink_metadata().expect("it is there");
            if metadata.is_symlink() {
                let target = fs::read_link(&entry).expect("a link");
                files.insert(name, (0o120_000, target.into_os_string().into_encoded_bytes()));
            } else if metadata.is_dir() && name != ".git" {
                files.insert(format!("{name}/"), (0, Vec::new()));
                folders.push(entry);
            } else if metadata.is_file() && name != ".git" {
                files.insert(name, (metadata.permissions().mode() & 0o100, fs::read(&entry).expect("a file")));
            }
        }
    }
    files
}

/// What git knows, and undo leaves alone.
fn git_state(repo: &TestRepo, folder: &Path) -> [String; 4] {
    [&["ls-files", "--stage"][..], &["stash", "list"], &["rev-parse", "--verify", "-q", "HEAD"], &["diff", "--cached"]]
        .map(|arguments| {
            let done = repo.command("git", folder).args(arguments).output().expect("git runs");
            String::from_utf8_lossy(&done.stdout).into_owned()
        })
}

/// Files of every kind, committed, staged, edited and new.
fn files(repo: &TestRepo) {
    repo.write("app.txt", "one\ntwo\nthree\n");
    repo.write("crlf.txt", "a\r\nb\r\n");
    repo.write("gone.txt", "gone\n");
    repo.write("dir/a.txt", "a\n");
    repo.write("dir/deep/b.txt", "b\n");
    repo.write("tool.sh", "#!/bin/sh\n");
    repo.write("plain", "a file\n");
    fs::write(repo.root().join("image.bin"), [0, 1, 2, 255]).expect("a file");
    symlink("app.txt", repo.root().join("link")).expect("a link");
}

fn edits(repo: &TestRepo) {
    repo.write("app.txt", "one\ntwo, staged\nthree\n");
    repo.git(&["add", "app.txt"]);
    repo.write("app.txt", "one\ntwo, edited\nthree\n");
    repo.write("new folder/mine ä.txt", "untracked\n");
}

/// Does something to files of every kind.
const MESS: &str = "
    sed -i s/one/ONE/ app.txt
    printf 'a\\r\\nc\\r\\n' > crlf.txt
    rm gone.txt
    rm -r dir; ln -s . dir
    chmod +x tool.sh
    rm plain; mkdir -p plain/deep; echo new > plain/deep/new.txt
    printf '\\0\\7' > image.bin
    ln -sf tool.sh link
    mkdir -p made/deep; echo made > made/deep/file.txt
    echo theirs >> 'new folder/mine ä.txt'
    rm -r 'new folder'
    mkdir 'new folder'; echo other > 'new folder/other.txt'
";

/// The user's file keeps a folder in the way of one file, and with it a file in the way of another folder.
#[test]
fn what_something_stands_in_the_way_of_is_tried_again() {
    let repo = TestRepo::with_small_team();
    repo.write("d/x", "x\n");
    repo.write("f", "f\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message", "both"]);
    let id = run(&repo, "rm f; mkdir f; echo in > f/in; rm -r d; echo now-file > d");
    repo.write("f/mine", "user\n");
    undo(&repo, &[&id]);
    assert_eq!(repo.read("f/mine"), "user\n");
    fs::remove_dir_all(repo.root().join("f")).expect("a folder");
    // What is left is named until nothing is.
    for _ in 0..4 {
        repo.squad(&["undo", "--yes", &id]);
    }
    assert_eq!((repo.read("d/x"), repo.read("f")), ("x\n".to_owned(), "f\n".to_owned()));
}

#[test]
fn with_nothing_done_since_the_tree_is_exactly_as_it_was() {
    for head in ["branch", "detached", "unborn", "linked"] {
        let repo = match head {
            "unborn" => TestRepo::empty(),
            _ => TestRepo::with_small_team(),
        };
        files(&repo);
        let mut folder = repo.root();
        if head == "unborn" {
            repo.write(".squad/team.md", "| Name | Role | Status |\n|---|---|---|\n| Ada | Backend Dev | Active |\n");
        } else {
            repo.git(&["add", "-A"]);
            repo.git(&["commit", "-qm", "files"]);
            repo.write("stashed.txt", "stashed\n");
            repo.git(&["add", "stashed.txt"]);
            repo.git(&["stash", "-q"]);
        }
        match head {
            "detached" => drop(repo.git(&["switch", "-q", "--detach"])),
            "linked" => {
                folder = repo.root().with_file_name("linked");
                repo.git(&["worktree", "add", "-q", &folder.display().to_string()]);
                fs::create_dir(folder.join("new folder")).expect("a folder");
                fs::write(folder.join("new folder/mine ä.txt"), "untracked\n").expect("a file");
            }
            _ => edits(&repo),
        }
        let (before, state) = (picture(&folder), git_state(&repo, &folder));
        let run = run_in(&repo, &folder, MESS);
        let after = picture(&folder);
        assert_ne!(after, before, "{head}");
        let asked = repo.squad_in(&folder, &["undo", &run]);
        assert!(asked.code == 2 && asked.err.contains("needs --yes"), "{asked}");
        let planned = repo.squad_in(&folder, &["undo", &run, "--dry-run"]);
        assert_eq!((planned.code, picture(&folder)), (0, after.clone()), "{planned}");
        let undone = repo.squad_in(&folder, &["undo", &run, "--yes"]);
        assert_eq!(undone.code, 0, "{undone}");
        assert_eq!(undone.out, planned.out);
        assert_eq!(picture(&folder), before, "{head}: {undone}");
        assert_eq!(git_state(&repo, &folder), state, "{head}");
        let again = repo.squad_in(&folder, &["undo", &run, "--yes"]);
        assert!(again.code == 2 && again.err.contains("is undone already"), "{again}");
        let redone = repo.squad_in(&folder, &["undo", &run, "--yes", "--redo"]);
        assert_eq!((redone.code, picture(&folder)), (0, after), "{head}: {redone}");
        assert_eq!(repo.squad_in(&folder, &["undo", &run, "--yes"]).code, 0);
        assert_eq!(picture(&folder), before, "{head}");
        if head != "unborn" {
            repo.assert_sound();
        }
    }
}

#[test]
fn what_somebody_changed_since_stays() {
    let repo = TestRepo::with_small_team();
    let lines: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    for name in ["merges.txt", "overlaps.txt", "moved.txt", "removed.txt"] {
        repo.write(name, &lines);
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let command = "sed -i 's/line 3$/THREE/' *.txt; echo new > new.txt; echo mine > taken.txt";
    let run = run(&repo, command);
    let mine = |name: &str| repo.write(name, &repo.read(name).replace("line 17\n", "seventeen\n"));
    mine("merges.txt");
    repo.write("overlaps.txt", &repo.read("overlaps.txt").replace("THREE", "three"));
    mine("moved.txt");
    fs::rename(repo.root().join("moved.txt"), repo.root().join("elsewhere.txt")).expect("it is there");
    fs::remove_file(repo.root().join("removed.txt")).expect("it is there");
    repo.write("taken.txt", "theirs, edited\n");
    repo.write("mine.txt", "mine\n");
    let output = undo(&repo, &[&run]);
    let wanted = lines.replace("line 17\n", "seventeen\n");
    assert_eq!(repo.read("merges.txt"), wanted);
    assert_eq!(repo.read("elsewhere.txt"), wanted);
    assert!(output.out.contains("elsewhere.txt  (moved since)"), "{output}");
    assert!(!repo.exists("moved.txt") && !repo.exists("removed.txt") && !repo.exists("new.txt"), "{output}");
    assert_eq!(repo.read("overlaps.txt"), lines.replace("line 3\n", "three\n"));
    assert_eq!(repo.read("overlaps.txt.before"), lines);
    assert_eq!(repo.read("overlaps.txt.run"), lines.replace("line 3\n", "THREE\n"));
    assert!(output.out.contains("see overlaps.txt.before and overlaps.txt.run"), "{output}");
    assert_eq!(repo.read("taken.txt"), "theirs, edited\n");
    assert_eq!((repo.read("taken.txt.run"), repo.exists("taken.txt.before")), ("mine\n".to_owned(), false));
    assert_eq!(repo.read("mine.txt"), "mine\n");
    assert!(output.err.contains("is taken back but overlaps.txt, removed.txt and taken.txt."), "{output}");
    // What was left is tried again, by the whole run or by an agent, and nothing else is.
    repo.write("new.txt", "mine\n");
    let diff = repo.squad(&["diff", &run]);
    assert!(diff.err.contains("is undone but overlaps.txt, removed.txt and taken.txt;"), "{diff}");
    repo.write("overlaps.txt", &lines.replace("line 3\n", "THREE\n").replace("line 9\n", "nine\n"));
    undo(&repo, &[&run, "ada"]);
    assert_eq!(repo.read("overlaps.txt"), lines.replace("line 9\n", "nine\n"));
    repo.write("taken.txt", "mine\n");
    repo.write("removed.txt", &lines.replace("line 3\n", "THREE\n"));
    let output = undo(&repo, &[&run]);
    assert_eq!(output.out, "✓ restored   removed.txt\n✓ removed    taken.txt\n", "{output}");
    assert_eq!((repo.exists("taken.txt"), repo.read("removed.txt")), (false, lines));
    let again = repo.squad(&["undo", &run, "--yes"]);
    assert!(again.code == 2 && again.err.contains("is undone already"), "{again}");
    assert_eq!(repo.read("new.txt"), "mine\n");
    repo.assert_sound();
}

/// Where git stores line ends that are not the file's.
#[test]
fn line_ends_stay_as_they_are() {
    let repo = TestRepo::with_small_team();
    repo.write(".gitattributes", "*.txt text=auto\n");
    for name in ["full.txt", "plain.txt"] {
        repo.write(name, "a\r\nb\r\nc\r\n");
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    repo.write("plain.txt", "a\nb\nc\n");
    let run = run(&repo, "sed -i s/a/A/ full.txt plain.txt");
    assert_eq!(repo.read("full.txt"), "A\r\nb\r\nc\r\n");
    undo(&repo, &[&run]);
    assert_eq!(repo.read("full.txt"), "a\r\nb\r\nc\r\n");
    assert_eq!(repo.read("plain.txt"), "a\nb\nc\n");
}

#[test]
fn a_run_is_undone_in_the_work_tree_where_it_worked() {
    let repo = TestRepo::with_small_team();
    let linked = repo.root().with_file_name("linked");
    repo.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    let here = run(&repo, "echo here > a.txt");
    fs::write(linked.join("a.txt"), "here\n").expect("a file");
    let there = run_in(&repo, &linked, "echo there > b.txt");
    for (run, wrong, right) in [(&here, &linked, &repo.root()), (&there, &repo.root(), &linked)] {
        let refused = repo.squad_in(wrong, &["undo", run, "--yes"]);
        let name = if right == &linked { "linked" } else { "REPO" };
        let said = ["worked in another work tree, ", &format!("{name}\nhint: `squad -C ")];
        assert!(refused.code == 2 && said.iter().all(|said| refused.err.contains(said)), "{refused}");
        assert_eq!(repo.squad_in(wrong, &["diff", run]).code, 0);
        let undone = repo.squad_in(right, &["undo", run, "--yes"]);
        assert_eq!(undone.code, 0, "{undone}");
    }
    assert!(!repo.exists("a.txt") && linked.join("a.txt").exists() && !linked.join("b.txt").exists());
}

#[test]
fn the_part_of_one_agent_is_taken_back_where_it_can_be_told_apart() {
    let repo = TestRepo::with_small_team();
    let script =
        turn("ada", "{ write = \"a.txt\", text = \"a\\n\" }") + &turn("bob", "{ write = \"b.txt\", text = \"b\\n\" }");
    let first = run_script(&repo, &repo.root(), &script, &["ada", "bob"]);
    undo(&repo, &[&first, "ada"]);
    assert!(!repo.exists("a.txt") && repo.exists("b.txt"));
    let again = repo.squad(&["undo", &first, "ada", "--yes"]);
    assert!(again.code == 2 && again.err.contains("ada's part of run"), "{again}");
    undo(&repo, &[&first, "ada", "--redo"]);
    assert!(repo.exists("a.txt"));
    undo(&repo, &[&first]);
    assert!(!repo.exists("a.txt") && !repo.exists("b.txt"));
    let script = turn("ada", "{ write = \"c.txt\", text = \"a\\n\" }, { wait = \"2s\" }")
        + &turn("bob", "{ wait = \"1s\" }, { write = \"c.txt\", text = \"b\\n\" }");
    let second = run_script(&repo, &repo.root(), &script, &["ada", "bob"]);
    let refused = repo.squad(&["undo", &second, "ada", "--yes"]);
    assert!(refused.code == 2 && refused.err.contains("cannot be told apart: c.txt"), "{refused}");
    undo(&repo, &[&second]);
    assert!(!repo.exists("c.txt"));
}

/// What an agent adds in one step and removes in a later one, around another agent's edit of the same file.
#[test]
fn a_redo_goes_from_the_first_step_to_the_last() {
    let repo = TestRepo::with_small_team();
    let lines: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    repo.write("a.txt", &lines);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let script: String = [("ada", "3a added"), ("bob", "s/line 17$/seventeen/"), ("ada", "/added/d")]
        .map(|(agent, edit)| turn(agent, &format!("{{ run = \"sed -i '{edit}' a.txt\" }}")))
        .concat();
    let ordered = "First @ada adds the line, then @bob edits the file, then @ada removes the line";
    let output = repo.rehearse(&script, &[&ALLOWED[..], &[ordered]].concat());
    assert_eq!(output.code, 0, "{output}");
    repo.pass(1);
    let run = newest(&repo);
    let edited = lines.replace("line 17\n", "seventeen\n");
    assert_eq!(repo.read("a.txt"), edited);
    for arguments in [&[&*run, "ada"][..], &[&run, "ada", "--redo"]] {
        let output = undo(&repo, arguments);
        assert_eq!(repo.read("a.txt"), edited, "{arguments:?} {output}");
    }
}

#[test]
fn what_cannot_be_undone_is_said_with_what_can_be_had() {
    let repo = TestRepo::with_small_team();
    let first = run(&repo, "echo x > a.txt");
    run(&repo, "echo y > b.txt");
    for (arguments, said) in [
        (&["undo", "x", "--yes"][..], "there is no run `x`"),
        (&["undo", "2026", "--yes"], "is ambiguous"),
        (&["undo", &first, "rex", "--yes"], "`rex` is not in run"),
        (&["undo", &first, "--redo", "--yes"], "is not undone"),
    ] {
        let output = repo.squad(arguments);
        assert!(output.code == 2 && output.err.contains(said), "{output}");
    }
    for reference in repo.git(&["for-each-ref", "--format=%(refname)", "refs/squad/runs"]).lines() {
        repo.git(&["update-ref", "-d", reference]);
    }
    // A clone of a folder beside it has the objects all the same.
    for has_objects in [true, false] {
        if !has_objects {
            repo.git(&["gc", "-q", "--prune=now"]);
        }
        let output = repo.squad(&["undo", &first, "--yes"]);
        assert!(output.code == 2 && output.err.contains("are not here") && output.err.contains("a.txt"), "{output}");
    }
    assert!(repo.exists("a.txt") && repo.exists("b.txt"));
}

/// No snapshot has these files, so that a run that changes what git sees seems to have made them.
#[test]
fn a_file_that_a_snapshot_left_out_is_never_removed() {
    let repo = TestRepo::with_small_team();
    repo.write(".gitignore", "*.local\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    repo.write("notes.local", "only here\n");
    repo.write("keys.txt", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz\n");
    fs::create_dir_all(repo.root().join("nested")).expect("a folder");
    repo.git_in(&repo.root().join("nested"), &["init", "-q"]);
    repo.write("nested/mine.txt", "only here, too\n");
    let big = vec![b'x'; 33 << 20];
    fs::write(repo.root().join("big.txt"), big).expect("a file");
    let run = run(
        &repo,
        "echo > .gitignore; echo nothing > keys.txt; rm -rf nested/.git; echo small > big.txt; echo new > new.txt",
    );
    let output = undo(&repo, &[&run]);
    assert_eq!(repo.read(".gitignore"), "*.local\n");
    assert_eq!(repo.read("notes.local"), "only here\n", "{output}");
    assert_eq!(repo.read("nested/mine.txt"), "only here, too\n", "{output}");
    assert!(repo.exists("keys.txt") && repo.exists("big.txt") && !repo.exists("new.txt"), "{output}");
    for name in ["keys.txt", "big.txt", "nested/mine.txt"] {
        assert!(output.err.contains(&format!("not covered: {name}: ")), "{output}");
    }
    assert!(output.out.contains("notes.local: the run changed what git ignores"), "{output}");
}

/// What git ignored before is then known to nobody.
#[test]
fn where_rules_outside_the_work_tree_changed_no_file_is_removed() {
    let edits =
        [": > .git/info/exclude", "git config core.excludesFile /dev/null", "git config core.excludesfile none"];
    for edit in edits {
        let repo = TestRepo::with_small_team();
        repo.write("a.txt", "a\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "files"]);
        repo.write(".git/info/exclude", "*.data\n");
        repo.write("big.data", "hours of work\n");
        let run = run(&repo, &format!("{edit}; echo new > new.txt; echo b > a.txt"));
        let output = undo(&repo, &[&run]);
        assert_eq!((repo.read("a.txt"), repo.read("big.data")), ("a\n".into(), "hours of work\n".into()), "{output}");
        assert!(output.out.contains("new.txt: the run changed what git ignores"), "{output}");
    }
}

#[test]
fn what_was_committed_since_stays() {
    let repo = TestRepo::with_small_team();
    repo.write("a.txt", "a\n");
    repo.write("b.txt", "b\n");
    repo.write("edited.txt", "as committed\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    // What was never committed is no part of what was committed since.
    repo.write("edited.txt", "edited before\n");
    let run = run(&repo, "echo A > a.txt; echo B > b.txt; echo new > c.txt; echo agent > edited.txt");
    repo.git(&["commit", "-qm", "theirs", "a.txt"]);
    let output = undo(&repo, &[&run]);
    assert!(output.out.contains("a.txt: it was committed since"), "{output}");
    assert_eq!((repo.read("a.txt"), repo.read("b.txt"), repo.exists("c.txt")), ("A\n".into(), "b\n".into(), false));
    assert_eq!(repo.read("edited.txt"), "edited before\n", "{output}");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M edited.txt\n");
}

#[test]
fn what_was_committed_is_taken_back_in_a_commit_where_that_is_asked_for() {
    let repo = TestRepo::with_small_team();
    let lines: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    for name in ["a.txt", "b.txt", "c.txt"] {
        repo.write(name, &lines);
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let run = run(&repo, "sed -i 's/line 3$/THREE/' a.txt b.txt c.txt; echo new > new.txt");
    repo.write("a.txt", &repo.read("a.txt").replace("line 17\n", "seventeen\n"));
    repo.git(&["add", "a.txt", "new.txt"]);
    repo.git(&["commit", "-qm", "theirs"]);
    repo.write("b.txt", &repo.read("b.txt").replace("line 17\n", "seventeen\n"));
    let planned = repo.squad(&["undo", &run, "--commit", "-n"]);
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "theirs\n");
    let output = undo(&repo, &[&run, "--commit"]);
    assert_eq!(output.out, planned.out);
    let wanted = lines.replace("line 17\n", "seventeen\n");
    assert_eq!((repo.read("a.txt"), repo.read("b.txt"), repo.read("c.txt")), (wanted.clone(), wanted.clone(), lines));
    assert!(!repo.exists("new.txt"));
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), wanted);
    assert_eq!(repo.git(&["log", "-1", "--format=%B"]), format!("Undo run {run}\n\nDo it\n\n"));
    assert_eq!(repo.git(&["status", "--porcelain"]), " M b.txt\n");
    assert!(output.out.contains("✓ reverted   a.txt") && output.out.contains("✓ restored   b.txt"), "{output}");
    let again = repo.squad(&["undo", &run, "--yes"]);
    assert!(again.code == 2 && again.err.contains("is undone already"), "{again}");
    repo.assert_sound();
}

#[test]
fn a_decision_stands_until_it_is_withdrawn() {
    let repo = TestRepo::with_small_team();
    let steps = "{ tool = \"squad_log_decision\", args = { title = \"Two masts\", what = \"Not three.\" } }, \
                 { write = \"a.txt\", text = \"a\\n\" }";
    repo.write("../script.toml", &turn("ada", steps));
    let script = repo.root().join("../script.toml").display().to_string();
    let output =
        repo.squad(&["orchestrate", "--script", &script, "--agent", "ada", "--permissions", "allow", "Decide"]);
    assert_eq!(output.code, 0, "{output}");
    let run = newest(&repo);
    let state = || {
        let listed: Value = serde_json::from_str(&repo.squad(&["decisions", "list", "--json"]).out).expect("JSON");
        listed["decisions"][0]["state"].as_str().expect("a state").to_owned()
    };
    let output = undo(&repo, &[&run]);
    assert!(!repo.exists("a.txt") && output.out.contains("Two masts"), "{output}");
    assert!(output.out.contains("◆ stands     decision ") && output.err.contains("--decisions"), "{output}");
    assert_eq!(state(), "in_force");
    let output = undo(&repo, &[&run, "--decisions"]);
    assert!(output.out.contains("◆ withdrawn  decision "), "{output}");
    assert_eq!(state(), "withdrawn");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let again = repo.squad(&["undo", &run, "--yes"]);
    assert!(again.code == 2 && again.err.contains("is undone already"), "{again}");
}

/// Decisions of two agents × the undo of one of them and of the run.
#[test]
fn decisions_are_withdrawn_with_the_part_that_made_them() {
    for (whom, states) in [(Some("ada"), ["withdrawn", "in_force"]), (None, ["withdrawn", "withdrawn"])] {
        let repo = TestRepo::with_small_team();
        let decides = |agent: &str| {
            let call = format!("{{ tool = \"squad_log_decision\", args = {{ title = \"{agent} decides\" }} }}");
            turn(agent, &format!("{call}, {{ write = \"{agent}.txt\", text = \"x\\n\" }}"))
        };
        let script = decides("ada") + &decides("bob");
        let arguments = ["--permissions", "allow", "--agent", "ada", "--agent", "bob", "Decide"];
        let output = repo.rehearse(&script, &arguments);
        assert_eq!(output.code, 0, "{output}");
        let run = newest(&repo);
        let undone: Vec<&str> = [&*run].into_iter().chain(whom).chain(["--decisions"]).collect();
        let output = undo(&repo, &undone);
        assert_eq!((repo.exists("ada.txt"), repo.exists("bob.txt")), (false, whom.is_some()), "{output}");
        let listed: Value = serde_json::from_str(&repo.squad(&["decisions", "list", "--json"]).out).expect("JSON");
        for (agent, state) in ["ada", "bob"].into_iter().zip(states) {
            let title = format!("{agent} decides");
            let mut decisions = listed["decisions"].as_array().expect("a list").iter();
            let decision = decisions.find(|decision| decision["title"] == *title).expect("it is listed");
            assert_eq!(decision["state"], state, "{agent}, of {whom:?}: {output}");
        }
    }
}

/// What people lost who undid the work of other tools.
#[test]
fn what_others_users_lost_is_kept() {
    // Edits made after the agent's, and the undo itself.
    let repo = TestRepo::with_small_team();
    let first = run(&repo, "echo theirs > a.txt");
    repo.write("a.txt", "theirs\nand mine\n");
    undo(&repo, &[&first]);
    assert_eq!(repo.read("a.txt"), "theirs\nand mine\n");
    assert_eq!(repo.read("a.txt.run"), "theirs\n");
    fs::remove_file(repo.root().join("a.txt.run")).expect("it is there");
    // What another run changed, by the undo of one that changed nothing.
    let idle = run(&repo, "true");
    run(&repo, "echo other > other.txt; echo other >> a.txt");
    let before = picture(&repo.root());
    let nothing = undo(&repo, &[&idle]);
    assert!(nothing.err.contains("There is nothing to undo"), "{nothing}");
    assert!(!repo.squad(&["log", &idle, "--events"]).out.contains("run.undone"));
    assert_eq!(picture(&repo.root()), before);
    // A file that one run made and the next removed.
    let removes = run(&repo, "rm other.txt");
    undo(&repo, &[&removes]);
    assert_eq!(repo.read("other.txt"), "other\n");
    // What only an uncommitted `.gitignore` hid.
    repo.write(".gitignore", "*.data\n");
    repo.write("big.data", "hours of work\n");
    let writes = run(&repo, "echo '*.log' >> .gitignore; echo log > x.log; echo new > new.txt");
    undo(&repo, &[&writes]);
    assert_eq!((repo.read(".gitignore"), repo.read("big.data")), ("*.data\n".into(), "hours of work\n".into()));
    assert!(!repo.exists("new.txt"));
    // Commits made since.
    let last = run(&repo, "echo more > more.txt");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "mine"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    undo(&repo, &[&last]);
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.exists("more.txt")), (head, true));
}

#[test]
fn a_folder_that_cannot_be_written_changes_nothing_for_good() {
    let repo = TestRepo::with_small_team();
    repo.write("locked/a.txt", "a\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    let run = run(&repo, "echo A > locked/a.txt; echo new > new.txt");
    let mode = |mode| fs::set_permissions(repo.root().join("locked"), fs::Permissions::from_mode(mode)).expect("ours");
    mode(0o555);
    // Root may write everywhere.
    let is_root = fs::write(repo.root().join("locked/try"), "").is_ok();
    if !is_root {
        let refused = repo.squad(&["undo", &run, "--yes"]);
        assert!(refused.code != 0 && refused.err.contains("locked"), "{refused}");
    }
    mode(0o755);
    let _ = fs::remove_file(repo.root().join("locked/try"));
    undo(&repo, &[&run]);
    assert_eq!((repo.read("locked/a.txt"), repo.exists("new.txt")), ("a\n".to_owned(), false));
}

#[test]
fn log_why_and_diff_know_of_an_undo() {
    let repo = TestRepo::with_small_team();
    let run =
        run_script(&repo, &repo.root(), &turn("ada", "{ write = \"a.txt\", text = \"what ada wrote\\n\" }"), &["ada"]);
    repo.write("b.txt", "else\n");
    let of_line = || repo.squad(&["why", "a.txt:1"]);
    assert_eq!(of_line().code, 0);
    undo(&repo, &[&run]);
    // The same line, written by hand.
    repo.write("a.txt", "what ada wrote\n");
    let why = of_line();
    assert!(why.code == 1 && !why.out.contains("ada,"), "{why}");
    let runs = repo.squad(&["log"]);
    assert!(runs.out.contains("(undone) Do it"), "{runs}");
    let log = repo.squad(&["log", &run, "--events"]);
    assert!(log.out.contains("run.undone           1 file taken back; rescue "), "{log}");
    assert!(repo.squad(&["diff", &run]).err.contains("is undone; these were its changes"));
    fs::remove_file(repo.root().join("a.txt")).expect("it is there");
    undo(&repo, &[&run, "--redo"]);
    assert_eq!(of_line().code, 0);
    assert!(!repo.squad(&["log"]).out.contains("(undone)"));
}

/// Random runs, and random edits of a person after them.
#[test]
fn whatever_a_run_and_a_person_do_the_persons_lines_stay() {
    let rounds = number_of("SQUAD_TEST_ROUNDS", 6);
    let (mut exact, mut merged) = (0, 0);
    for seed in 0..rounds as u64 {
        let mut dice = Dice(seed);
        let repo = TestRepo::with_small_team();
        for file in 0..5 {
            let lines: String = (0..30).map(|line| format!("{file} line {line}\n")).collect();
            repo.write(&format!("src/{file}.txt"), &lines);
        }
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "files"]);
        let before = picture(&repo.root());
        let mut command = String::new();
        for number in 0..2 + dice.below(6) {
            let (file, line) = (dice.below(5), 1 + dice.below(30));
            command.push_str(&match dice.below(5) {
                0 => format!("echo 'agent {number}' > src/new-{number}.txt\n"),
                1 => format!("rm -f src/{file}.txt\n"),
                2 => format!("test -f src/{file}.txt && sed -i '{line}a agent {number}' src/{file}.txt\n"),
                3 => format!("test -f src/{file}.txt && sed -i '{line}s/$/ agent {number}/' src/{file}.txt\n"),
                _ => format!("test -f src/{file}.txt && sed -i '{line}d' src/{file}.txt\n"),
            });
        }
        let run = run(&repo, &(command + "true\n"));
        let after = picture(&repo.root());
        let mut mine = 0;
        for number in 0..dice.below(4) * usize::from(seed % 2 == 0) {
            let path = format!("src/{}.txt", dice.below(5));
            if repo.exists(&path) {
                let mut lines: Vec<String> = repo.read(&path).lines().map(str::to_owned).collect();
                lines.insert(dice.below(lines.len() + 1), format!("person {number}"));
                repo.write(&path, &(lines.join("\n") + "\n"));
                mine += 1;
            }
        }
        let persons = |repo: &TestRepo| {
            let files = picture(&repo.root()).into_iter().filter(|(name, _)| name.ends_with(".txt"));
            let text: String = files.map(|(_, (_, bytes))| String::from_utf8_lossy(&bytes).into_owned()).collect();
            let mut lines: Vec<String> =
                text.lines().filter(|line| line.starts_with("person")).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let (theirs, now) = (persons(&repo), picture(&repo.root()));
        let output = repo.squad(&["undo", "--yes", "--json", &run]);
        assert_eq!(output.code, 0, "{seed}: {output}");
        let report: Value = serde_json::from_str(&output.out).expect("JSON");
        assert_eq!(persons(&repo), theirs, "{seed}: {output}");
        if after == before {
            continue;
        }
        if mine == 0 {
            assert_eq!(picture(&repo.root()), before, "{seed}: {output}");
            exact += 1;
        }
        if report["left"].as_array().is_some_and(Vec::is_empty) {
            let texts = picture(&repo.root());
            let is_agents = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("agent");
            let kept: Vec<&String> = texts
                .iter()
                .filter(|(name, (_, bytes))| name.starts_with("src/") && is_agents(bytes))
                .map(|(name, _)| name)
                .collect();
            assert_eq!(kept, Vec::<&String>::new(), "{seed}: {output}");
            merged += 1;
            undo(&repo, &[&run, "--redo"]);
            assert_eq!(picture(&repo.root()), now, "{seed}");
        }
        repo.assert_sound();
    }
    println!("{exact} exact, {merged} without conflict, of {rounds}");
    assert!(exact > 0 && merged > 0);
}
