//! What charters of other tools have agents write into `decisions/inbox/` becomes their decisions.

use expect_test::expect;
use serde_json::Value;

use crate::support::TestRepo;

const ADA: [&str; 3] = ["--agent", "ada", "Add an endpoint"];

fn script(path: &str, text: &str) -> String {
    format!(
        "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = '''{path}''', text = '''{text}''' }}, {{ say = \"Done.\" }}]\n"
    )
}

fn decisions(repo: &TestRepo) -> Vec<Value> {
    let output = repo.squad(&["decisions", "list", "--json"]);
    let value: Value = serde_json::from_str(&output.out).expect("JSON");
    value["decisions"].as_array().expect("a list").clone()
}

const NOTE: &str = "### 2026-01-02: Use tar\n**By:** Somebody\n**What:** Black tar.\n";

#[test]
fn a_note_in_the_inbox_is_logged_and_not_written() {
    for path in [
        ".squad/decisions/inbox/ada-tar.md",
        ".ai-team/decisions/inbox/ada-tar.md",
        "./src/../.squad/decisions/./inbox/ada-tar.md",
    ] {
        let repo = TestRepo::with_small_team();
        // Off a terminal every write is refused: this is none.
        let output = repo.rehearse(&script(path, NOTE), &[&["--json", "--permissions", "deny"], &ADA[..]].concat());
        assert_eq!(output.code, 0, "{output}");
        let events = TestRepo::events(&output);
        let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
        assert!(of("tool.denied").is_empty() && of("permission.asked").is_empty(), "{output}");
        let all = decisions(&repo);
        let [decision] = &all[..] else { panic!("{all:?}") };
        let id = decision["id"].as_str().expect("an id");
        assert_eq!(of("decision.logged").len(), 1, "{output}");
        let completed = of("tool.completed");
        assert!(completed[0]["ok"] == true && completed[0]["wrote"].is_null(), "{output}");
        assert!(completed[0]["result"].as_str().is_some_and(|text| text.contains(id)), "{output}");
        assert!(!repo.exists(".squad/decisions/inbox") && !repo.exists(".ai-team"), "{path}");
        assert_eq!((&decision["title"], &decision["by"]), (&Value::from("Use tar"), &Value::from("ada")));
        assert_eq!(decision["text"], "**By:** Somebody\n**What:** Black tar.");
        assert_eq!(decision["state"], "in_force");
        repo.assert_sound();
    }
}

#[test]
fn a_link_leads_there_too() {
    #[cfg(unix)]
    {
        let repo = TestRepo::with_small_team();
        repo.write(".squad/decisions/inbox/.gitkeep", "");
        std::os::unix::fs::symlink(".squad/decisions/inbox", repo.root().join("notes")).expect("linked");
        let output = repo.rehearse(&script("notes/tar.md", NOTE), &[&["--permissions", "allow"], &ADA[..]].concat());
        assert!(output.code == 0 && !repo.exists("notes/tar.md"), "{output}");
        assert_eq!(decisions(&repo).len(), 1);
    }
}

#[test]
fn other_files_are_written_as_ever() {
    let repo = TestRepo::with_small_team();
    let output = repo.rehearse(&script("docs/inbox.md", NOTE), &[&["--permissions", "allow"], &ADA[..]].concat());
    assert!(output.code == 0 && repo.read("docs/inbox.md").contains("Black tar"), "{output}");
    assert!(decisions(&repo).is_empty());
    let output =
        repo.rehearse(&script(".squad/decisions/inbox/a.md", " "), &[&["--permissions", "allow"], &ADA[..]].concat());
    assert!(output.out.contains("Done.") && !repo.exists(".squad/decisions/inbox/a.md"), "{output}");
    assert!(decisions(&repo).is_empty());
}

#[test]
fn decisions_of_one_second_keep_their_order() {
    let repo = TestRepo::with_small_team();
    let tool =
        |title: &str| format!("{{ tool = \"squad_log_decision\", args = {{ title = \"{title}\", what = \"x\" }} }}");
    let steps: Vec<String> = ["Zinc", "Amber", "Mica"].map(tool).to_vec();
    let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{}, {{ say = \"Done.\" }}]\n", steps.join(", "));
    let output = repo.rehearse(&script, &ADA);
    assert_eq!(output.code, 0, "{output}");
    let titles = |repo: &TestRepo| -> Vec<String> {
        decisions(repo).iter().map(|decision| decision["title"].as_str().expect("a title").to_owned()).collect()
    };
    assert_eq!(titles(&repo), ["Mica", "Amber", "Zinc"]);
    let date = decisions(&repo)[0]["date"].as_str().expect("a date").to_owned();
    assert!(date.len() == 24 && date.ends_with(".000Z"), "{date}");
    // As if they had been made at one instant: the ledger knows.
    let files = repo.git(&["ls-files", ".squad/decisions"]);
    for file in files.lines() {
        let text = repo.read(file);
        let at = text.find("T09:").expect("a time");
        repo.write(file, &format!("{}T09:00:00Z{}", &text[..at], &text[at + 14..]));
    }
    repo.git(&["commit", "-qam", "one instant"]);
    assert_eq!(titles(&repo), ["Mica", "Amber", "Zinc"]);
    let prompt = repo.squad(&["agents", "show", "ada", "--prompt"]).out;
    let at = |title: &str| prompt.find(title).expect(title);
    assert!(at("Zinc") < at("Amber") && at("Amber") < at("Mica"), "{prompt}");
}

#[test]
fn an_import_of_mostly_undated_entries_says_so_first() {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/decisions.md", "# Decisions\n\n## Tar\n\nBlack.\n\n## Wax\n\nWhite.\n\n## Ropes\n\nLong.\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "decisions"]);
    let output = repo.squad(&["decisions", "import", "--dry-run"]);
    expect![[r#"
        warning: 3 of 3 entries have no date: some may be parts of other entries
        hint: check with --dry-run, and give each decision a heading such as `### 2026-01-31: Title`
        3 decisions would be imported.
    "#]]
    .assert_eq(&output.err);
    repo.write(".squad/decisions.md", "# Decisions\n\n## 2026-01-05: Tar\n\nBlack.\n\n## Wax\n\n**By:** Uwe\n");
    repo.git(&["commit", "-qam", "half of them"]);
    let output = repo.squad(&["decisions", "import"]);
    assert!(output.code == 0 && !output.err.contains("warning"), "{output}");
}
