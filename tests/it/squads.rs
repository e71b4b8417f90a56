//! `squad squads` and `-C @NAME`: the user's projects, wherever they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::process::{SLOW, signal, start, wait_for};
use crate::support::TestRepo;

/// Makes a project with a team in the user's home.
fn project(repo: &TestRepo, place: &str) -> PathBuf {
    let folder = repo.home().join(place);
    fs::create_dir_all(&folder).expect("a folder");
    repo.git_in(&folder, &["init", "--quiet", "--initial-branch=main"]);
    repo.git_in(&folder, &["config", "user.name", "Ann"]);
    repo.git_in(&folder, &["config", "user.email", "ann@example.com"]);
    let output = repo.squad_in(&folder, &["init"]);
    assert_eq!(output.code, 0, "{output}");
    folder
}

fn list(repo: &TestRepo) -> Vec<Value> {
    let output = repo.squad_in(&repo.home(), &["squads", "--json"]);
    assert_eq!(output.code, 0, "{output}");
    let value: Value = serde_json::from_str(&output.out).expect("JSON");
    value["squads"].as_array().expect("a list").clone()
}

#[test]
fn a_project_is_known_by_its_name_once_it_was_used() {
    let repo = TestRepo::with_small_team();
    let none = repo.squad_in(&repo.home(), &["squads"]);
    assert!(none.out.is_empty() && none.err.contains("no project with a team"), "{none}");
    let nobody = repo.squad(&["status", "-C", "@shop"]);
    assert_eq!((nobody.code, nobody.err.contains("you have no project called `shop`")), (2, true), "{nobody}");
    assert_eq!(repo.squad(&["decisions", "add", "Money is cents"]).code, 0);
    project(&repo, "work/shop");
    project(&repo, "blog");

    let all = list(&repo);
    let names: Vec<&Value> = all.iter().map(|squad| &squad["name"]).collect();
    assert_eq!(names, ["blog", "shop", "repo"]);
    let team = &all[2];
    assert_eq!(team["path"], "REPO");
    for (field, value) in [
        ("slug", json!("repo")),
        ("state", json!("idle")),
        ("decisions", json!(1)),
        ("unlanded", json!(0)),
        ("lockouts", json!(0)),
        ("sessions", json!(0)),
        ("unfinished_runs", json!(0)),
    ] {
        assert_eq!(team[field], value, "{field}");
    }
    assert!(team["created"].as_str() <= team["last_activity"].as_str() && team["created"].is_string(), "{team}");

    // From anywhere.
    let decided = repo.squad_in(&repo.home(), &["-C", "@repo", "decisions", "list"]);
    assert!(decided.out.contains("Money is cents"), "{decided}");
    let shown = repo.squad_in(&repo.home(), &["squads", "shop"]);
    assert!(shown.out.contains("shop, idle; ~/work/shop"), "{shown}");
    let nobody = repo.squad(&["squads", "nobody"]);
    assert_eq!((nobody.code, nobody.err.contains("blog, shop and repo")), (2, true), "{nobody}");
    // As an MCP resource, too.
    let mut client = McpClient::greeted(&repo, "2025-06-18", &[]);
    let listed = client.request("resources/list", json!({})).to_string();
    assert!(listed.contains("squad://squads/shop") && listed.contains("squad://squads/blog"), "{listed}");
    let read = client.request("resources/read", json!({"uri": "squad://squads/repo"})).to_string();
    assert!(read.contains(r#"\"decisions\":1"#), "{read}");
    let missing = client.request("resources/read", json!({"uri": "squad://squads/nobody"}));
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
}

#[test]
fn two_projects_of_one_name_are_told_apart_and_what_moves_is_found() {
    let mut repo = TestRepo::empty();
    project(&repo, "work/shop");
    project(&repo, "play/shop");
    let two = repo.squad(&["status", "-C", "@shop"]);
    let all = "`shop` is ambiguous: `play/shop` and `work/shop`";
    assert_eq!((two.code, two.err.contains(all)), (2, true), "{two}");
    let one = repo.squad(&["-C", "@work/shop", "status", "--json"]);
    assert_eq!((one.code, one.out.contains("HOME/work/shop")), (0, true), "{one}");

    // One moves, and nothing knows where to until it is used there.
    let (old, new) = (repo.home().join("work"), repo.home().join("code"));
    fs::rename(&old, &new).expect("it moves");
    let gone = repo.squad(&["-C", "@work/shop", "status"]);
    assert_eq!((gone.code, gone.err.contains("where there is no team any more")), (2, true), "{gone}");
    assert_eq!(repo.squad(&["status", "-C", "@shop"]).code, 2, "its disk may be away for now");
    assert_eq!(repo.squad_in(&new.join("shop"), &["agents"]).code, 0);
    let listed = repo.squad(&["squads"]);
    assert!(listed.out.contains("moved to ~/code/shop"), "{listed}");
    let moved = repo.squad(&["-C", "@work/shop", "status"]);
    assert!(moved.err.contains("is now ~/code/shop") && moved.err.contains("use `code/shop`"), "{moved}");
    // A copy is a project of its own, and no move.
    let copied = repo.command("cp", &new).args(["-r", "shop", "copy"]).status().expect("cp runs");
    assert!(copied.success());
    assert_eq!(repo.squad_in(&new.join("copy"), &["agents"]).code, 0);
    assert_eq!(list(&repo).iter().filter(|squad| squad["state"] == "idle").count(), 3);

    // The whole home moves, with the index in it.
    let home = repo.home().with_file_name("elsewhere");
    fs::rename(repo.home(), &home).expect("it moves");
    repo.variables.insert("HOME".to_owned(), home.display().to_string());
    let there = repo.squad(&["-C", "@play/shop", "status"]);
    assert_eq!(there.code, 0, "{there}");
    fs::remove_dir_all(home.join("play")).expect("it is deleted");
    let listed = repo.squad(&["squads", "--json"]);
    assert!(listed.out.contains("there is no team any more"), "{listed}");

    // The index is made anew from the repositories: without it, and with what is gone in it.
    fs::create_dir_all(home.join("code/node_modules/x/.squad")).expect("a folder");
    // A folder of another tool's is no team, and a team may be of a part of its repository.
    fs::create_dir_all(home.join(".squad")).expect("a folder");
    fs::create_dir_all(home.join("mono/packages/a/.squad")).expect("a folder");
    fs::write(home.join("mono/packages/a/.squad/team.md"), "# A\n").expect("a file");
    repo.git_in(&home.join("mono"), &["init", "--quiet"]);
    let scanned = repo.squad(&["squads", "--scan", &home.display().to_string()]);
    assert!(scanned.err.contains("forgot ~/play/shop"), "{scanned}");
    let listed = repo.squad(&["squads"]).out;
    fs::remove_dir_all(home.join(".local/share")).expect("it is deleted");
    assert!(repo.squad(&["squads"]).out.is_empty());
    let scanned = repo.squad(&["squads", "--scan", &home.display().to_string()]);
    assert!(scanned.err.contains("found 3 new projects") && !scanned.err.contains("forgot"), "{scanned}");
    assert!(listed.contains("~/mono/packages/a") && !listed.contains("node_modules"), "{listed}");
    assert_eq!(scanned.out, listed);
    assert_eq!(repo.squad(&["squads", "--scan", "nowhere"]).code, 2);
}

#[test]
fn an_index_that_cannot_be_written_or_is_damaged_fails_no_command() {
    let repo = TestRepo::with_small_team();
    let folder = repo.home().join(".local/share/squad");
    fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
    fs::write(&folder, "in the way").expect("a file");
    let blocked = repo.squad(&["agents"]);
    fs::remove_file(&folder).expect("a file");
    let noted = repo.squad(&["agents"]);
    assert_eq!((blocked.code, blocked.to_string()), (0, noted.to_string()));
    let path = "../../../../../../etc";
    for (name, text) in [
        ("a.json", "{".to_owned()),
        ("b.json", json!({"path": path, "id": null}).to_string()),
        ("c.json", json!({"path": "/tmp/\u{1b}[31mred", "id": "x"}).to_string()),
    ] {
        fs::write(folder.join("projects").join(name), text).expect("a file");
    }
    let listed = repo.squad(&["squads"]);
    assert_eq!((listed.code, listed.out.lines().count(), listed.out.contains('\u{1b}')), (0, 2, false), "{listed}");
    // An engine of the machine must not read it; the sandbox hides the folder. A demo leaves nothing in it.
    let demo = repo.squad(&["demo"]);
    assert_eq!(demo.code, 0, "{demo}");
    assert_eq!(list(&repo).len(), 2);
}

#[test]
fn a_live_run_is_work_and_a_killed_one_waits_to_be_resumed() {
    let repo = TestRepo::with_small_team();
    let mut child = start(&repo, SLOW, &["x"]);
    wait_for(&mut child, "Begun.");
    let live = &list(&repo)[0];
    assert_eq!(
        (&live["state"], &live["sessions"], &live["unfinished_runs"]),
        (&json!("working"), &json!(1), &json!(0))
    );
    signal(&child, "KILL");
    child.wait().expect("it ends");
    let after = &list(&repo)[0];
    assert_eq!((&after["state"], &after["unfinished_runs"]), (&json!("idle"), &json!(1)), "{after}");
    let shown = repo.squad(&["squads", "repo"]);
    assert!(shown.out.contains("squad orchestrate --resume") && shown.out.contains("-C @repo"), "{shown}");
    // A team that cannot be used is an error, and the others are answered.
    repo.write(".squad/team.md", "<<<<<<< a\n=======\n>>>>>>> b\n");
    let broken = &list(&repo)[0];
    assert_eq!(broken["state"], "error", "{broken}");
    assert!(broken["problem"].as_str().is_some_and(|why| why.contains("team.md")), "{broken}");
}

/// A project whose disk is away keeps its name, and one that takes another's place is no other's.
#[test]
fn a_name_never_leads_to_a_project_that_was_not_meant() {
    let repo = TestRepo::empty();
    let at = |arguments: &[&str]| repo.squad_in(&repo.home(), arguments);
    project(&repo, "work/shop");
    project(&repo, "play/shop");
    let moved = |from: &str, to: &str| fs::rename(repo.home().join(from), repo.home().join(to)).expect("it moves");
    moved("work", "work.off");
    for call in [&["status", "-C", "@shop"][..], &["squads", "shop"]] {
        let output = at(call);
        assert_eq!((output.code, output.err.contains("ambiguous")), (2, true), "{output}");
    }
    assert_eq!(at(&["status", "-C", "@play/shop"]).code, 0);
    moved("work.off", "work");
    assert_eq!(at(&["status", "-C", "@work/shop"]).code, 0);

    project(&repo, "alpha");
    moved("alpha", "first");
    assert_eq!(at(&["agents", "-C", "first"]).code, 0);
    project(&repo, "alpha");
    moved("alpha", "second");
    assert_eq!(at(&["agents", "-C", "second"]).code, 0);
    let output = at(&["status", "-C", "@alpha"]);
    assert!(output.code == 2 && output.err.contains("~/second"), "{output}");
    // What a name holds is no sequence for the terminal.
    fs::remove_dir_all(project(&repo, "e\u{1b}]0;x\u{7}")).expect("it goes");
    let output = at(&["squads", "--scan", "."]);
    assert!(!output.err.contains('\u{1b}') && output.err.contains("forgot ~/e"), "{output}");
}

/// What a scan finds is only looked at, whatever state squad's own files are in there; agents' clones are no projects.
#[test]
fn a_scan_writes_nothing_to_what_it_finds_and_passes_over_clones() {
    fn looks(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut looks = BTreeMap::new();
        let mut waiting = vec![folder.to_owned()];
        while let Some(place) = waiting.pop() {
            for entry in fs::read_dir(&place).expect("a folder").flatten() {
                let path = entry.path();
                let is_folder = entry.file_type().expect("a type").is_dir();
                looks.insert(path.clone(), (!is_folder).then(|| fs::read(&path).unwrap_or_default()));
                waiting.extend(is_folder.then_some(path));
            }
        }
        looks
    }
    let mut repo = TestRepo::empty();
    let code = repo.home().join("code");
    let used = project(&repo, "code/used");
    assert_eq!(repo.squad_in(&used, &["decisions", "add", "Money is cents"]).code, 0);
    // Never used here: a clone with the team and the ledger; one whose caches are gone; and an agent's clone.
    for name in ["fresh", "bare-of-caches", "state/squad/clones/agent"] {
        let to = code.join(name);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        repo.git_in(&code, &["clone", "--quiet", "used", &to.display().to_string()]);
        repo.git_in(&to, &["fetch", "--quiet", "origin", "refs/squad/log:refs/squad/log"]);
    }
    assert_eq!(repo.squad_in(&code.join("bare-of-caches"), &["status"]).code, 0);
    fs::remove_dir_all(code.join("bare-of-caches/.git/squad")).expect("a folder");
    repo.variables.insert("XDG_STATE_HOME".to_owned(), code.join("state").display().to_string());
    let data = repo.home().join("fresh-data");
    repo.variables.insert("XDG_DATA_HOME".to_owned(), data.display().to_string());
    let before = looks(&code);
    let scanned = repo.squad_in(&repo.home(), &["squads", "--scan", "code"]);
    assert!(scanned.code == 0 && scanned.err.contains("found 3 new projects"), "{scanned}");
    assert!(!scanned.out.contains("agent"), "{scanned}");
    let inside = repo.squad_in(&repo.home(), &["squads", "--scan", "code/state/squad/clones"]);
    assert!(inside.err.contains("found 0 new projects"), "{inside}");
    let listed = repo.squad_in(&repo.home(), &["squads"]);
    assert_eq!(listed.out.matches("1 decision").count(), 3, "{listed}");
    let after = looks(&code);
    let changed: Vec<&PathBuf> =
        after.iter().filter(|(path, look)| before.get(*path) != Some(look)).map(|(path, _)| path).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{changed:?}");
    // Once one is used it has an id, and moving it is noticed as ever.
    assert_eq!(repo.squad_in(&code.join("fresh"), &["agents"]).code, 0);
    assert!(code.join("fresh/.git/squad/project").is_file());
}
