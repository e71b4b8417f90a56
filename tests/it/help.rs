//! `squad help`: every command and topic, and each command that a topic shows.

use std::path::Path;

use crate::readme::{commands, words};
use crate::support::TestRepo;

const TOPICS: [&str; 9] =
    ["charters", "routing", "decisions", "ci", "engines", "hosts", "ledger", "migrate", "rehearsal"];

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

#[test]
fn each_command_has_a_page_for_man() {
    let repo = TestRepo::folder();
    let page = repo.squad(&["man", "decisions", "add"]);
    assert!(page.code == 0 && page.out.contains(".TH squad-decisions-add 1"), "{page}");
    assert!(page.out.contains(r"\-\-scope"), "{page}");
    let whole = repo.squad(&["man"]);
    assert!(whole.code == 0 && whole.out.contains("Exit codes: 0 done"), "{whole}");
    let wrong = repo.squad(&["man", "nothing"]);
    assert!(wrong.code == 2 && wrong.err.contains("there is no command `nothing`"), "{wrong}");
    let all = repo.squad(&["man", "--to", "pages"]);
    assert!(all.code == 0 && all.err == "Wrote the pages to REPO/pages.\n", "{all}");
    let pages: Vec<_> = std::fs::read_dir(repo.root().join("pages")).expect("a folder").flatten().collect();
    let names: Vec<String> = pages.iter().map(|page| page.file_name().to_string_lossy().into_owned()).collect();
    for name in ["squad.1", "squad-log.1", "squad-decisions-add.1"] {
        assert!(names.iter().any(|other| other == name), "{names:?}");
    }
    // Commands that nobody types have none.
    assert!(!names.iter().any(|name| name.contains("carry")), "{names:?}");
    repo.write("file", "");
    let refused = repo.squad(&["man", "--to", "file"]);
    assert!(refused.code == 1 && refused.err.contains("file"), "{refused}");
}

/// What `squad help ledger` shows at a terminal, as a person sees it.
#[cfg(unix)]
fn at_a_terminal(pager: Option<&str>, options: &[&str]) -> String {
    let mut repo = TestRepo::folder();
    for (name, value) in [("TERM", "xterm"), ("NO_COLOR", "1")] {
        repo.variables.insert(name.to_owned(), value.to_owned());
    }
    let script =
        repo.write_script("../pager", "#!/bin/sh\necho \"paged with $LESS and $1\"\ncat\necho 'end of pages'\n");
    let script = script.display().to_string();
    let mut person = crate::terminal::Person::sits_down();
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args(["help", "ledger"]).args(options);
    if let Some(pager) = pager {
        command.env("PAGER", pager.replace("SCRIPT", &script));
    }
    let mut child = person.starts(command);
    loop {
        let count = person.screen.len();
        person.reads();
        if person.screen.len() == count {
            break;
        }
    }
    assert!(child.wait().expect("it ends").success());
    person.screen
}

#[cfg(unix)]
#[test]
fn a_person_reads_long_output_in_a_pager() {
    let paged = at_a_terminal(Some("SCRIPT word"), &[]);
    assert!(paged.starts_with("paged with FRX and word\r\n# The ledger"), "{paged}");
    assert!(paged.ends_with("end of pages\r\n"), "{paged}");
    let quoted = at_a_terminal(Some("\"SCRIPT\" 'two words'"), &[]);
    assert!(quoted.starts_with("paged with FRX and two words\r\n# The ledger"), "{quoted}");
    let plain = at_a_terminal(Some("SCRIPT"), &["--no-pager"]);
    assert!(plain.starts_with("# The ledger"), "{plain}");
    // Without one, or with one that fails, nothing is lost.
    for pager in ["", "cat", "nothing-of-this-name", "./pager", "false", "sh -c false", "less \"-F"] {
        assert_eq!(at_a_terminal(Some(pager), &[]), plain, "{pager}");
    }
    assert!(!at_a_terminal(Some("SCRIPT"), &["--json"]).contains("paged"));
}
