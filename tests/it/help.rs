//! `squad help`: every command and topic, and each command that a topic shows.

use std::path::Path;

use crate::readme::{commands, words};
use crate::support::TestRepo;

const TOPICS: [&str; 8] = ["charters", "routing", "decisions", "ci", "engines", "ledger", "migrate", "rehearsal"];

#[test]
fn every_command_of_a_topic_is_understood() {
    let mut repo = TestRepo::with_team();
    repo.variables.insert("SQUAD_ENGINE".to_owned(), "rehearsal".to_owned());
    // So that there is a commit before the last.
    assert_eq!(repo.squad(&["decisions", "add", "Ports are shared"]).code, 0);
    repo.squad(&["orchestrate", "Add a health endpoint with tests"]);
    let mut count = 0;
    for topic in TOPICS {
        let output = repo.squad(&["help", topic]);
        assert!(output.code == 0 && output.out.starts_with("# "), "{output}");
        assert!(output.out.lines().all(|line| line.chars().count() <= 130), "{output}");
        for command in commands(&output.out) {
            let words = words(command.strip_prefix("squad ").expect(command));
            let output = repo.squad(&words.iter().map(String::as_str).collect::<Vec<_>>());
            // `doctor` and an unsure `route` may find something; nothing shown here is a mistake.
            assert!(![2, 101].contains(&output.code), "{command}: {output}");
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/help");
    assert_eq!(std::fs::read_dir(folder).expect("topics").count(), TOPICS.len());
}

#[test]
fn each_shell_gets_a_script_that_knows_commands_and_options() {
    let repo = TestRepo::folder();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = repo.squad(&["completions", shell]);
        assert_eq!(output.code, 0, "{shell}");
        for word in ["orchestrate", "max-concurrent", "supersede"] {
            assert!(output.out.contains(word), "{shell}: {word}");
        }
        let is_there = std::process::Command::new(shell).arg("--version").output().is_ok();
        if is_there && shell == "bash" {
            let script = repo.root().join("squad.bash");
            std::fs::write(&script, &output.out).expect("a file");
            let asks = format!(
                "source '{}' && COMP_WORDS=(squad orch) COMP_CWORD=1 && _squad squad orch squad && echo \"${{COMPREPLY[@]}}\"",
                script.display()
            );
            let done = std::process::Command::new(shell).args(["-c", &asks]).output().expect("bash runs");
            assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "orchestrate", "{done:?}");
        }
    }
    assert_eq!(repo.squad(&["completions", "tcsh"]).code, 2);
}

#[test]
fn help_of_a_command_is_that_of_its_flag() {
    let repo = TestRepo::folder();
    for command in [&["status"][..], &["decisions", "add"], &["orchestrate"], &["agents"]] {
        let output = repo.squad(&[&["help"], command].concat());
        assert_eq!(output.out, repo.squad(&[command, &["--help"]].concat()).out, "{output}");
    }
    let whole = repo.squad(&["help"]);
    assert!(whole.code == 0 && whole.out.contains("  rehearsal ") && whole.out.contains("  doctor "), "{whole}");
    for wrong in [&["nothing"][..], &["decisions", "nothing"], &["ledger", "nothing"]] {
        let output = repo.squad(&[&["help"], wrong].concat());
        assert!(output.code == 2 && output.err.contains("there is no command or topic"), "{output}");
    }
    let json = repo.squad(&["help", "ci", "--json"]);
    assert!(json.code == 0 && json.out.starts_with("{\"help\":\"# squad in CI"), "{json}");
}
