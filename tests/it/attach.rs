//! Files that go with a message, and what a resumed run still knows of its first call.

use serde_json::{Value, json};

use crate::support::{Output, TestRepo};

/// Of the shape that a service gives out, and nobody's.
const TOKEN: &str = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");
const FAILS_TWICE: &str = r#"
models = ["m-1"]
[[turn]]
agent = "ada"
steps = [{ fail = "the model is gone" }]
[[turn]]
agent = "ada"
steps = [{ fail = "it is gone again" }]
"#;

fn orchestrate(repo: &TestRepo, arguments: &[&str]) -> Output {
    repo.squad(&[&["orchestrate", "--engine", "rehearsal", "--agent", "ada"], arguments].concat())
}

fn of(output: &Output, kind: &str) -> Value {
    let found = TestRepo::events(output).into_iter().find(|event| event["type"] == kind);
    assert!(found.is_some(), "no {kind}: {output}");
    found.unwrap_or_default()
}

#[test]
fn agents_are_given_the_files_and_the_record_names_them() {
    let repo = TestRepo::with_small_team();
    repo.write("docs/brief.md", "Be brief.\n");
    repo.write("../notes.txt", "Outside.\n");
    let notes = repo.root().join("../notes.txt").canonicalize().expect("a file").display().to_string();
    // From where the user stands; named twice, it is passed once.
    let files = ["--attach", "brief.md", "--attach", &notes, "--attach", "../docs/brief.md", "--json", "Fix it"];
    let command = [&["orchestrate", "--engine", "rehearsal", "--agent", "ada"], &files[..]].concat();
    let output = repo.squad_in(&repo.root().join("docs"), &command);
    assert_eq!(output.code, 0, "{output}");
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_string();
    assert_eq!(
        of(&output, "run.started")["attachments"],
        json!([
            { "path": "docs/brief.md", "hash": hash("Be brief.\n"), "bytes": 10 },
            { "path": notes, "hash": hash("Outside.\n"), "bytes": 9 },
        ])
    );
    let said = of(&output, "agent.message")["text"].to_string();
    assert!(said.contains(&format!("(with docs/brief.md and {notes})")), "{said}");

    let output = orchestrate(&repo, &["--attach", "docs/brief.md", "Fix it"]);
    assert!(output.err.contains("attached: docs/brief.md"), "{output}");
    let output = orchestrate(&repo, &["--attach", "docs/brief.md", "--dry-run", "Fix it"]);
    assert!(output.out.contains("Attached: docs/brief.md"), "{output}");
}

#[test]
fn what_cannot_be_attached_is_said_before_anything_starts() {
    let repo = TestRepo::with_small_team();
    repo.write("token.txt", &format!("token: {TOKEN}\n"));
    repo.write(".env", "API_KEY=kf83jd02mfk3kd9s\n");
    repo.write("odd\nname.txt", "x\n");
    std::fs::File::create(repo.root().join("big.bin")).and_then(|file| file.set_len(10 << 20 | 1)).expect("a file");
    for (path, says) in [
        ("missing.txt", "cannot attach missing.txt: No such file"),
        (".squad", "cannot attach .squad: it is not a file"),
        ("big.bin", "cannot attach big.bin: it is larger than 10 MiB"),
        ("token.txt", "cannot attach token.txt: it holds what looks like a secret: github-token"),
        (".env", "cannot attach .env: it holds what looks like a secret"),
        ("odd\nname.txt", "its path has invisible characters"),
    ] {
        for more in [&[][..], &["--dry-run"]] {
            let output = orchestrate(&repo, &[more, &["--attach", path, "Fix it"]].concat());
            assert_eq!(output.code, 2, "{output}");
            assert!(output.err.contains(says), "{says}: {output}");
        }
    }
    let many = ["--attach", "x"].repeat(21);
    let output = orchestrate(&repo, &[&many[..], &["Fix it"]].concat());
    assert!(output.code == 2 && output.err.contains("21 files are attached; the limit is 20"), "{output}");
    assert!(repo.squad(&["log"]).err.contains("no runs yet"));
}

#[test]
fn a_resumed_run_is_given_the_files_and_the_flags_of_its_first_call() {
    let repo = TestRepo::with_small_team();
    repo.write("brief.md", "Be brief.\n");
    repo.write("../play.toml", FAILS_TWICE);
    let script = repo.root().join("../play.toml").display().to_string();
    let flags = ["--script", &script, "--model", "m-9", "--tier", "full", "--limit", "7m", "--max-concurrent", "2"];
    let first = orchestrate(&repo, &[&flags[..], &["--attach", "brief.md", "--json", "Fix it"]].concat());
    assert_eq!(first.code, 1, "{first}");
    let started = of(&first, "run.started");
    let run = started["run"].as_str().expect("an id");
    assert_eq!(
        started["flags"],
        json!({ "engine": "rehearsal", "limit": "7m", "max-concurrent": "2", "model": "m-9" })
    );

    repo.write("brief.md", "Be brief, please.\n");
    let resume = |more: &[&str]| repo.squad(&[&["orchestrate", "--json", "--resume", run], more].concat());
    let refused = resume(&["--attach", "brief.md"]);
    assert!(refused.code == 2 && refused.out.contains("cannot be used with"), "{refused}");
    let failed = resume(&["--script", &script, "--limit", "8m"]);
    assert!(failed.err.contains("changed since the run began: brief.md"), "{failed}");
    let resumed = of(&failed, "run.resumed");
    assert_eq!(resumed["flags"]["limit"], "8m");
    assert_eq!(resumed["attachments"][0]["bytes"], 18);
    // The model that was asked for, which this script does not offer.
    assert_eq!((failed.code, of(&failed, "model.fallback")["from"].as_str()), (1, Some("m-9")), "{failed}");
    let done = resume(&[]);
    assert!(done.code == 0 && !done.err.contains("changed since"), "{done}");
    assert_eq!(of(&done, "run.resumed")["flags"]["limit"], "8m");
    assert_eq!(of(&done, "engine.started")["engine"], "rehearsal");
    assert!(of(&done, "agent.message")["text"].to_string().contains("(with brief.md)"), "{done}");

    let first = orchestrate(&repo, &["--script", &script, "--attach", "brief.md", "--json", "Fix it"]);
    let run = of(&first, "run.started")["run"].as_str().expect("an id").to_owned();
    std::fs::remove_file(repo.root().join("brief.md")).expect("it is there");
    let output = repo.squad(&["orchestrate", "--resume", &run]);
    assert!(output.code == 2 && output.err.contains("cannot attach brief.md"), "{output}");
    assert!(output.err.contains("put it back"), "{output}");
}

/// An entry of another clone may name any file of this machine; only who made it knows what the file held.
#[test]
fn on_resume_a_file_outside_the_project_must_be_as_it_was() {
    let repo = TestRepo::with_small_team();
    repo.write("../play.toml", FAILS_TWICE);
    repo.write("../notes.md", "Outside.\n");
    let (script, notes) = (repo.root().join("../play.toml"), repo.root().join("../notes.md").display().to_string());
    let script = script.display().to_string();
    let first = orchestrate(&repo, &["--script", &script, "--attach", &notes, "--json", "Fix it"]);
    let run = of(&first, "run.started")["run"].as_str().expect("an id").to_owned();

    repo.write("../notes.md", "Another text.\n");
    let refused = repo.squad(&["orchestrate", "--json", "--resume", &run]);
    assert!(refused.code == 2 && refused.out.contains("is not the file that the run started with"), "{refused}");
    repo.write("../notes.md", "Outside.\n");
    let resumed = repo.squad(&["orchestrate", "--json", "--resume", &run]);
    assert!(of(&resumed, "run.resumed")["attachments"][0]["path"].to_string().contains("notes.md"), "{resumed}");
}
