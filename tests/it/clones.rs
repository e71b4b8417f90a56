//! Agents in clones of their own: what they see, what becomes of their work, and that the user's is left alone.

use std::fs;
use std::path::PathBuf;

use crate::support::TestRepo;

/// Each of two agents writes a file of its own and both change one; a third step reads what they made.
const SIDE_BY_SIDE: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "api.txt", text = "endpoint\n" }, { write = "notes.txt", text = "one\ntwo\nADA\n" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ run = "ls" }, { write = "tests.txt", text = "tests\n" }, { say = "Done." }]
[[turn]]
agent = "ada"
steps = [{ run = "cat api.txt tests.txt draft.txt notes.txt" }, { say = "Polished." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;

const MESSAGE: &str = "@ada and @bob build it, then @ada polishes it";

fn repo() -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    let state = repo.home().join("state");
    repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
    repo.write("notes.txt", "one\ntwo\nthree\n");
    repo.git(&["add", "notes.txt"]);
    repo.git(&["commit", "-qm", "notes"]);
    // Neither is committed: clones have both.
    repo.write("draft.txt", "draft\n");
    repo.write("notes.txt", "zero\none\ntwo\nthree\n");
    repo
}

/// Everything of the user's that agents must leave alone: all of `.git` but squad's, and the files.
fn users(repo: &TestRepo) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![repo.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let inner = path.strip_prefix(repo.root()).expect("inside").to_owned();
            let is_squads = [".git/squad", ".git/refs/squad", ".git/objects", ".git/logs/refs/squad"];
            if is_squads.iter().any(|folder| inner.starts_with(folder)) {
                continue;
            }
            match entry.file_type().expect("a type").is_dir() {
                true => folders.push(path),
                false => found.push((inner, fs::read(&path).expect("a file"))),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn agents_work_in_clones_and_leave_the_users_files_alone() {
    let repo = repo();
    let before = users(&repo);
    let output = repo.rehearse(SIDE_BY_SIDE, &["--permissions", "allow", "--isolation", "clone", "--json", MESSAGE]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(users(&repo), before);
    let events = TestRepo::events(&output);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    assert_eq!(of("clone.created").len(), 2, "{output}");
    // bob did not see what ada had done beside it; after the step, ada saw both, and what was not committed.
    let ran: Vec<String> =
        of("tool.completed").iter().filter_map(|event| Some(event["result"].as_str()?.to_owned())).collect();
    assert!(ran.iter().any(|result| result.contains("draft.txt") && !result.contains("api.txt")), "{ran:?}");
    assert!(ran.iter().any(|result| result.contains("endpoint\ntests\ndraft\none\ntwo\nADA")), "{ran:?}");
    let end = events.last().expect("an end");
    let changed = |place: usize| end["work"][place]["changed"].to_string();
    assert!(changed(0).contains("api.txt") && !changed(0).contains("tests.txt"), "{end}");
    assert!(changed(1).contains("tests.txt") && !changed(1).contains("api.txt"), "{end}");
    let run = end["run"].as_str().expect("an id");
    let listed = repo.git(&["for-each-ref", "--format=%(refname)", &format!("refs/squad/runs/{run}")]);
    assert!(listed.contains(&format!("refs/squad/runs/{run}/ada\n")), "{listed}");
    assert!(listed.contains(&format!("refs/squad/runs/{run}/bob")), "{listed}");
    repo.assert_sound();
}
