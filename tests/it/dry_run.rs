//! What `squad merge --dry-run` foresees is what the merge then does.

#![cfg(unix)]

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::clones::{played, with_state};
use crate::support::TestRepo;

fn shell(repo: &TestRepo, command: &str) {
    let mut shell = Command::new("sh");
    assert!(shell.args(["-c", command]).current_dir(repo.root()).status().expect("it runs").success(), "{command}");
}

/// By the program itself, which has a working folder of its own.
fn merge(repo: &TestRepo, folder: &str, arguments: &[&str]) -> Value {
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root().join(folder));
    let done = command.args([&["merge", "--json"], arguments].concat()).stdin(Stdio::null()).output().expect("it runs");
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    let said = format!("{out}{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_str(&out).expect(&said)
}

/// What an agent does × what the user has done since × from where the merge is run: whether the work tree follows, or why
/// not.
#[test]
fn a_dry_run_foresees_what_is_in_the_way() {
    let (edits, adds) = ("echo more >>docs/a.md", "echo new >docs/new.md");
    let (to_file, to_link) = ("rm -r docs; echo file >docs", "rm -r docs; ln -s lib docs");
    let deep = "rm -r docs/deep; echo file >docs/deep";
    let moved = "mv docs elsewhere; ln -s elsewhere docs";
    for (command, users, folder, why) in [
        (edits, "true", ".", None),
        (edits, moved, ".", Some("docs is a symbolic link")),
        (edits, "mv docs ../docs; ln -s ../docs docs", ".", Some("docs is a symbolic link")),
        (adds, moved, ".", Some("docs is a symbolic link")),
        ("rm docs/a.md", moved, ".", Some("docs is a symbolic link")),
        (deep, "mv docs/deep x; ln -s ../x docs/deep", ".", Some("docs/deep is a symbolic link")),
        (adds, "git init -q docs", ".", Some("docs is a repository of its own")),
        (to_file, "true", "lib", None),
        (to_file, "true", "docs", Some("this command runs in docs")),
        (to_file, "true", "docs/deep", Some("this command runs in docs")),
        (to_link, "true", "docs", Some("this command runs in docs")),
        (deep, "true", "docs", None),
        (deep, "true", "docs/deep", Some("this command runs in docs/deep")),
        ("rm -r docs", "true", "docs", None),
        (edits, "git config commit.gpgSign true; git config gpg.program false", ".", Some("could not be signed")),
        (
            edits,
            "git config commit.gpgSign true; git config gpg.program no-such-program",
            ".",
            Some("could not be signed"),
        ),
        (edits, "git config commit.gpgSign false; git config gpg.program false", ".", None),
    ] {
        let repo = with_state();
        ["docs/a.md", "docs/deep/b.md", "lib/c.md"].iter().for_each(|path| repo.write(path, "text\n"));
        repo.git(&["add", "docs", "lib"]);
        repo.git(&["commit", "-qm", "docs"]);
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{command}\" }}, {{ say = \"Done.\" }}]\n");
        let run = played(&repo, &script, "@ada changes them");
        shell(&repo, users);
        let refs = repo.git(&["for-each-ref"]);
        let planned = merge(&repo, folder, &[&run, "--dry-run"]);
        assert_eq!(repo.git(&["for-each-ref"]), refs, "nothing is kept");
        let merged = merge(&repo, folder, &[&run, "--yes"]);
        assert_eq!(planned["aside"], merged["aside"], "{command}; {users}; {folder}");
        let aside = merged["aside"].as_str();
        let is_foreseen = why.map_or(aside.is_none(), |why| aside.is_some_and(|aside| aside.contains(why)));
        assert!(is_foreseen, "{command}; {users}; {folder}: {merged}");
        repo.assert_sound();
    }
}
