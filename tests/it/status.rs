//! `squad status` and `squad` alone: what waits for a person, until it is done.

#![cfg(unix)]

use crate::support::TestRepo;
use crate::undo::newest;

const WRITES: &str =
    "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"src/a.txt\", text = \"a\" }, { say = \"Done.\" }]\n";

#[test]
fn files_of_a_run_wait_until_they_are_committed_or_taken_back() {
    for (folder, ends) in [("", "commit"), ("", "undo"), ("packages/a", "commit"), ("", "remove")] {
        let repo = TestRepo::with_small_team();
        let root = repo.root().join(folder);
        if !folder.is_empty() {
            repo.write("packages/a/.squad/team.md", "| Name | Role |\n|---|---|\n| Ada | Dev |\n");
            repo.git(&["add", "-A"]);
            repo.git(&["commit", "--quiet", "--message", "A second team"]);
        }
        // A file of the user's is nothing that the run has left.
        repo.write("mine.txt", "mine");
        repo.write("../script.toml", WRITES);
        let script = repo.root().join("../script.toml").display().to_string();
        let run =
            ["orchestrate", "--script", &script, "--agent", "ada", "--permissions", "allow", "--no-commit", "Do it"];
        let output = repo.squad_in(&root, &run);
        assert_eq!(output.code, 0, "{output}");
        let waits = || repo.squad_in(&root, &["status"]).out.contains("1 file of it is not committed   squad diff ");
        assert!(waits(), "{folder} {ends}");
        match ends {
            "commit" => {
                repo.git(&["add", "-A"]);
                assert!(waits(), "added is not committed");
                repo.git(&["commit", "--quiet", "--message", "What ada made"]);
            }
            "undo" => assert_eq!(repo.squad(&["undo", "--yes", &newest(&repo)]).code, 0),
            _ => std::fs::remove_file(root.join("src/a.txt")).expect("a file"),
        }
        assert!(!waits(), "{folder} {ends}");
    }
}

/// Not those of a person who writes while the agent works.
#[test]
fn of_a_runs_files_only_the_agents_wait() {
    let repo = TestRepo::with_small_team();
    let script = WRITES.replace("{ say", "{ wait = \"2s\" }, { say");
    let (agents, persons) = (repo.root().join("src/a.txt"), repo.root().join("late.txt"));
    let person = std::thread::spawn(move || {
        while !agents.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::fs::write(persons, "mine").expect("written");
    });
    let output =
        repo.rehearse(&script, &["--permissions", "allow", "--no-commit", "--agent", "ada", "--json", "Do it"]);
    person.join().expect("it wrote");
    assert!(output.code == 0 && output.out.contains("late.txt"), "the run saw it: {output}");
    let status = repo.squad(&["status"]).out;
    assert!(status.contains("1 file of it is not committed   squad diff "), "{status}");
}

#[test]
fn decisions_wait_until_they_land() {
    let repo = TestRepo::with_small_team();
    let row = |text: &str| repo.squad(&["status"]).out.contains(text);
    repo.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(repo.squad(&["decisions", "add", "One"]).code, 0);
    assert!(row("has not landed"), "{}", repo.squad(&["status"]));
    assert_eq!(repo.squad(&["decisions", "add", "Two"]).code, 0);
    assert!(row("2 decisions have not landed   squad decisions land"));
    repo.git(&["checkout", "--quiet", "main"]);
    assert_eq!(repo.squad(&["decisions", "land"]).code, 0);
    assert!(!row("landed"), "{}", repo.squad(&["status"]));
}

#[test]
fn squad_alone_shows_the_status_or_how_to_begin() {
    let repo = TestRepo::with_small_team();
    assert_eq!(repo.squad(&[]).to_string(), repo.squad(&["status"]).to_string());
    assert_eq!(repo.squad(&["--json"]).to_string(), repo.squad(&["status", "--json"]).to_string());
    let outside = repo.root().join("..");
    for (repo, folder, place) in [
        (&TestRepo::empty(), None, "install a team in repo"),
        (&repo, Some(&outside), "install a team in a git repository"),
    ] {
        let output = folder.map_or_else(|| repo.squad(&[]), |folder| repo.squad_in(folder, &[]));
        assert!(output.code == 0 && output.out.contains(place) && output.out.contains("squad demo"), "{output}");
    }
    // An unknown word is still a mistake.
    assert_eq!(repo.squad(&["stauts"]).code, 2);
}
