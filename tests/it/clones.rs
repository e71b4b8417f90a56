//! Agents in clones of their own: what they see, what becomes of their work, and that the user's is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

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

/// squad's own folder is beside the repository.
pub(crate) fn with_state() -> TestRepo {
    let mut repo = TestRepo::with_small_team();
    let state = repo.home().join("state");
    repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
    repo
}

fn repo() -> TestRepo {
    let repo = with_state();
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

pub(crate) fn played(repo: &TestRepo, script: &str, message: &str) -> String {
    let output = repo.rehearse(script, &["--permissions", "allow", "--isolation", "clone", "--json", message]);
    TestRepo::events(&output).last().expect("an end")["run"].as_str().expect("an id").to_owned()
}

#[test]
fn a_merge_commits_each_agents_work_and_leaves_uncommitted_changes_alone() {
    let repo = repo();
    // What the agents change is committed; what else the user has changed is not.
    repo.git(&["checkout", "-q", "notes.txt"]);
    let run = played(&repo, SIDE_BY_SIDE, MESSAGE);
    let before = users(&repo);
    let planned = repo.squad(&["merge", &run, "--dry-run"]);
    assert_eq!(planned.out, "api.txt\nnotes.txt\ntests.txt\n", "{planned}");
    assert_eq!(repo.squad(&["merge", &run]).code, 2, "nobody can be asked");
    assert_eq!(users(&repo), before);
    let merged = repo.squad(&["merge", &run, "--yes"]);
    assert_eq!(merged.code, 0, "{merged}");
    assert_eq!(repo.read("notes.txt"), "one\ntwo\nADA\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? draft.txt\n");
    let log = repo.git(&["log", "--format=%s", "--topo-order"]);
    assert_eq!(log, "@ada and @bob build it, then @ada polishes it\nbob: Done.\nada: Polished.\nnotes\nteam\n");
    assert_eq!(repo.git(&["log", "--format=%s", "--first-parent", "-2"]).lines().last(), Some("notes"));
    assert!(!repo.git(&["log", "-p", "main"]).contains("draft"));
    let again = repo.squad(&["merge", &run, "--yes"]);
    assert!(again.code == 2 && again.err.contains("is merged already"), "{again}");
    let undo = repo.squad(&["undo", &run, "--yes"]);
    assert!(undo.code == 2 && undo.err.contains("git revert"), "{undo}");
    let log = repo.squad(&["log", &run, "--json"]);
    assert!(log.out.contains("run.merged"), "{log}");
    repo.assert_sound();
}

/// Uncommitted changes where the agents' are × whether the commit is plain.
#[test]
fn where_the_work_tree_cannot_follow_the_work_is_a_branch() {
    for squash in [false, true] {
        let repo = repo();
        let run = played(&repo, SIDE_BY_SIDE, MESSAGE);
        let before = (repo.read("notes.txt"), repo.git(&["rev-parse", "main"]));
        let mut arguments = vec!["merge", run.as_str(), "--yes", "--json"];
        arguments.extend(squash.then_some("--squash"));
        let merged = repo.squad(&arguments);
        let report: serde_json::Value = serde_json::from_str(&merged.out).expect("JSON");
        assert_eq!(report["branch"], format!("squad/{run}"), "{merged}");
        assert!(report["aside"].as_str().expect("a reason").contains("notes.txt"), "{merged}");
        assert_eq!((repo.read("notes.txt"), repo.git(&["rev-parse", "main"])), before);
        let parents = repo.git(&["log", "-1", "--format=%P", &format!("squad/{run}")]);
        assert_eq!(parents.split_whitespace().count(), if squash { 1 } else { 2 });
        // The user's own change is not in it, and a three-way merge finds none of it to take out.
        assert_eq!(repo.git(&["show", &format!("squad/{run}:notes.txt")]), "one\ntwo\nADA\n");
        assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 2);
        repo.assert_sound();
    }
}

/// What takes the other's place × what the user has there beside it.
#[cfg(unix)]
#[test]
fn a_file_takes_a_folders_place_unless_something_of_the_users_is_there() {
    let to_file = ("rm -r docs; echo all >docs", &["docs"][..], &["docs/a/one.md", "docs/two.md"][..]);
    let to_folder = ("rm docs; mkdir -p docs/a; echo all >docs/a/one.md", &["docs/a/one.md"][..], &["docs"][..]);
    for ((command, new, old), users, is_followed) in [
        (to_file, "true", true),
        (to_file, "mkdir other", true),
        (to_file, "echo mine >docs/a/mine.md", false),
        (to_file, "echo '*.log' >.git/info/exclude; echo mine >docs/a/mine.log", false),
        (to_file, "mkdir docs/empty", false),
        (to_file, "echo mine >>docs/two.md", false),
        (to_file, "git rm -q --cached docs/two.md", false),
        (to_file, "echo x >docs/b.md; git add docs/b.md; rm docs/b.md", false),
        (to_file, "rm docs/two.md", false),
        (to_file, "rm -r docs; ln -s .squad/team.md docs", false),
        (to_folder, "true", true),
        (to_folder, "echo mine >>docs", false),
        (to_folder, "rm docs", false),
        (to_folder, "rm docs; ln -s .squad/team.md docs", false),
        (to_folder, "rm docs; mkdir docs; echo mine >docs/mine.md", false),
        (to_folder, "rm docs; git rm -q --cached docs; mkdir docs", false),
    ] {
        let repo = with_state();
        old.iter().for_each(|path| repo.write(path, "text\n"));
        repo.git(&["add", "docs"]);
        repo.git(&["commit", "-qm", "docs"]);
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{command}\" }}, {{ say = \"Done.\" }}]\n");
        let run = played(&repo, &script, "@ada changes docs");
        let mut shell = std::process::Command::new("sh");
        assert!(shell.args(["-c", users]).current_dir(repo.root()).status().expect("it runs").success());
        let facts = |repo: &TestRepo| (repo.git(&["status", "--porcelain", "--ignored"]), users_files(repo));
        let before = facts(&repo);
        let merged = repo.squad(&["merge", &run, "--yes", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&merged.out).expect("JSON");
        assert_eq!(report["aside"].is_null(), is_followed, "{command}; {users}: {merged}");
        if is_followed {
            assert!(new.iter().all(|path| repo.read(path) == "all\n"), "{command}; {users}: {merged}");
            assert!(old.iter().all(|path| !repo.root().join(path).is_file() || new.contains(path)), "{command}");
            let status = repo.git(&["status", "--porcelain", "docs"]);
            assert_eq!(status, "", "{command}; {users}");
        } else {
            assert_eq!(facts(&repo), before, "{command}; {users}: {merged}");
            let tip = repo.git(&["show", &format!("squad/{run}:{}", new[0])]);
            assert_eq!(tip, "all\n");
        }
        repo.assert_sound();
    }
}

/// What an agent does to a file × what the user has done to it since, in content, mode and index.
#[cfg(unix)]
#[test]
fn a_merge_follows_only_where_files_modes_and_index_are_as_committed() {
    let (edits, makes) = ("echo more >>docs/a.md", "mkdir x; echo new >x/new.md");
    for (command, users, is_followed) in [
        (edits, "touch docs/a.md", true),
        (edits, "chmod +x docs/a.md", false),
        (edits, "chmod +x docs/a.md; git add docs/a.md", false),
        (edits, "git update-index --chmod=+x docs/a.md", false),
        (edits, "git config core.fileMode false; chmod +x docs/a.md", true),
        (edits, "git update-index --assume-unchanged docs/a.md; echo mine >>docs/a.md", false),
        (edits, "git update-index --skip-worktree docs/a.md; rm docs/a.md", false),
        (edits, "git sparse-checkout set .squad", false),
        (edits, "git update-index --skip-worktree other.md", true),
        ("rm docs/a.md", "chmod +x docs/a.md", false),
        ("rm docs/a.md", "git update-index --assume-unchanged docs/a.md; rm docs/a.md", false),
        ("chmod +x docs/a.md", "echo mine >>docs/a.md", false),
        ("chmod +x docs/a.md", "true", true),
        (makes, "echo x >x; git add x; rm x", false),
        (makes, "git branch squad", true),
        ("echo new >x", "mkdir x; echo x >x/in; git add x; rm -r x", false),
    ] {
        let repo = with_state();
        ["docs/a.md", "other.md"].iter().for_each(|path| repo.write(path, "text\n"));
        repo.git(&["add", "docs", "other.md"]);
        repo.git(&["commit", "-qm", "docs"]);
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{command}\" }}, {{ say = \"Done.\" }}]\n");
        let run = played(&repo, &script, "@ada changes docs");
        let mut shell = std::process::Command::new("sh");
        assert!(shell.args(["-c", users]).current_dir(repo.root()).status().expect("it runs").success());
        let facts = |repo: &TestRepo| {
            let modes = repo.git(&["ls-files", "-v", "--stage"]);
            let is_program = repo.root().join("docs/a.md").metadata().is_ok_and(|facts| is_program(&facts));
            (repo.git(&["status", "--porcelain"]), modes, is_program, users_files(repo))
        };
        let before = facts(&repo);
        let value =
            |output: &crate::support::Output| -> serde_json::Value { serde_json::from_str(&output.out).expect("JSON") };
        let planned = value(&repo.squad(&["merge", &run, "--dry-run", "--json"]));
        let merged = repo.squad(&["merge", &run, "--yes", "--json"]);
        let report = value(&merged);
        assert_eq!(report["aside"].is_null(), is_followed, "{command}; {users}: {merged}");
        assert_eq!(planned["aside"], report["aside"], "{command}; {users}: {merged}");
        if is_followed {
            let status = repo.git(&["status", "--porcelain"]);
            assert_eq!(status, "", "{command}; {users}");
        } else {
            assert_eq!(facts(&repo), before, "{command}; {users}: {merged}");
        }
        repo.assert_sound();
    }
}

/// What an agent does with links and folders × what the user has there since.
#[cfg(unix)]
#[test]
fn links_are_merged_as_files_are_and_emptied_folders_go() {
    let (turned, made) = ("ln -sfn other.md sign", "ln -s sign made");
    let (to_link, to_file) = ("rm -r docs; ln -s lib docs", "rm sign; echo text >sign");
    let (to_folder, emptied) = ("rm sign; mkdir sign; echo in >sign/in.md", "rm -r docs lib/a.md");
    for (command, users, is_followed) in [
        (turned, "true", true),
        (turned, "touch -h sign", true),
        (turned, "ln -sfn elsewhere sign", false),
        (turned, "rm sign; printf lib >sign", false),
        (turned, "git config core.symlinks false", false),
        (turned, "git update-index --skip-worktree sign; rm sign", false),
        (made, "true", true),
        (made, "ln -s sign made", false),
        (made, "mkdir made", false),
        (to_link, "true", true),
        (to_link, "echo mine >docs/mine.md", false),
        (to_file, "true", true),
        (to_file, "git config core.fileMode false", true),
        (to_file, "ln -sfn elsewhere sign", false),
        (to_folder, "true", true),
        (to_folder, "ln -sfn elsewhere sign; git add sign", false),
        ("rm sign; mkdir sign; cp lib/a.md sign/a.md", "true", true),
        (emptied, "true", true),
        (emptied, "echo mine >docs/a/mine.md; git add docs", true),
        (emptied, "echo '*.log' >.git/info/exclude; echo mine >docs/a/mine.log", true),
        ("rm lib/a.md; printf lib >lib/b.md; ln -sf b.md lib/c.md", "printf lib >lib/c.md", false),
    ] {
        let repo = with_state();
        ["docs/a/one.md", "lib/a.md", "lib/c.md"].iter().for_each(|path| repo.write(path, "text\n"));
        std::os::unix::fs::symlink("lib", repo.root().join("sign")).expect("a link");
        repo.git(&["add", "docs", "lib", "sign"]);
        repo.git(&["commit", "-qm", "docs"]);
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{command}\" }}, {{ say = \"Done.\" }}]\n");
        let run = played(&repo, &script, "@ada changes them");
        let shell = |command: &str| {
            let mut shell = std::process::Command::new("sh");
            assert!(shell.args(["-c", command]).current_dir(repo.root()).status().expect("it runs").success());
        };
        shell(users);
        let facts = || {
            let link = |path: &str| fs::read_link(repo.root().join(path)).ok();
            let staged = repo.git(&["ls-files", "--stage"]);
            (repo.git(&["status", "--porcelain"]), staged, ["sign", "made", "docs"].map(link))
        };
        let before = facts();
        let planned = repo.squad(&["merge", &run, "--dry-run", "--json"]);
        let merged = repo.squad(&["merge", &run, "--yes", "--json"]);
        let value = |text: &str| -> serde_json::Value { serde_json::from_str(text).expect("JSON") };
        let (planned, report) = (value(&planned.out), value(&merged.out));
        assert_eq!(report["aside"].is_null(), is_followed, "{command}; {users}: {merged}");
        assert_eq!(planned["aside"], report["aside"], "{command}; {users}: {merged}");
        if is_followed {
            assert_eq!(repo.git(&["status", "--porcelain"]), before.0, "{command}; {users}");
            // A fresh checkout of the commit is the same.
            let fresh = repo.home().join("fresh").display().to_string();
            repo.git(&["worktree", "add", "-q", "--detach", &fresh]);
            for path in ["sign", "made", "docs"] {
                let there = |root: &Path| fs::symlink_metadata(root.join(path)).ok().map(|facts| facts.file_type());
                let is_users = users.contains("mine");
                assert!(is_users || there(&repo.root()) == there(Path::new(&fresh)), "{command}; {users}: {path}");
            }
        } else {
            assert_eq!(facts(), before, "{command}; {users}: {merged}");
        }
        repo.assert_sound();
    }
}

#[cfg(unix)]
fn is_program(facts: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    facts.permissions().mode() & 0o100 != 0
}

/// What the user prefers to search by changes nothing, and a branch in the way is named.
#[test]
fn a_merge_is_recognized_whatever_the_user_has_set() {
    for settings in [&["grep.patternType", "fixed"], &["trailer.separators", "="], &["log.showSignature", "true"]] {
        let repo = repo();
        repo.git(&["checkout", "-q", "notes.txt"]);
        repo.git(&[&["config"], &settings[..]].concat());
        let run = played(&repo, SIDE_BY_SIDE, MESSAGE);
        assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0);
        let again = repo.squad(&["merge", &run, "--yes"]);
        assert!(again.code == 2 && again.err.contains("is merged already"), "{settings:?}: {again}");
        assert!(!repo.squad(&["status"]).out.contains("not merged"), "{settings:?}");
    }
    let repo = repo();
    let run = played(&repo, SIDE_BY_SIDE, MESSAGE);
    repo.git(&["branch", "squad"]);
    for how in ["--yes", "--dry-run"] {
        let refused = repo.squad(&["merge", &run, how]);
        assert!(refused.code == 2 && refused.err.contains("`git branch -m squad NAME`"), "{refused}");
    }
    repo.git(&["branch", "-qm", "squad", "mine"]);
    assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0);
}

/// A merge that cannot move the branch leaves a file's mode as it was, too.
#[cfg(unix)]
#[test]
fn a_merge_that_fails_takes_a_mode_back() {
    let repo = repo();
    repo.git(&["checkout", "-q", "notes.txt"]);
    let script =
        "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"chmod +x notes.txt; echo n >new.txt\" }, { say = \"Done.\" }]\n";
    let run = played(&repo, script, "@ada does it");
    let before = (repo.git(&["status", "--porcelain"]), repo.git(&["ls-files", "--stage"]));
    repo.write(".git/refs/heads/main.lock", "");
    let failed = repo.squad(&["merge", &run, "--yes"]);
    fs::remove_file(repo.root().join(".git/refs/heads/main.lock")).expect("it is there");
    assert_ne!(failed.code, 0, "{failed}");
    assert_eq!((repo.git(&["status", "--porcelain"]), repo.git(&["ls-files", "--stage"])), before, "{failed}");
    assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0);
    assert!(is_program(&repo.root().join("notes.txt").metadata().expect("a file")) && repo.exists("new.txt"));
    repo.assert_sound();
}

/// A folder that nobody may write to, though the merge changes a file there: the branch is made, as elsewhere.
#[cfg(unix)]
#[test]
fn where_a_folder_may_not_be_written_the_work_is_a_branch() {
    use std::os::unix::fs::PermissionsExt;
    let repo = repo();
    repo.git(&["checkout", "-q", "notes.txt"]);
    repo.write("locked/in.txt", "in\n");
    repo.git(&["add", "locked"]);
    repo.git(&["commit", "-qm", "locked"]);
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"echo a >a.txt; echo out >locked/in.txt; rm notes.txt\" }, \
                  { say = \"Done.\" }]\n";
    let run = played(&repo, script, "@ada does it");
    let folder = repo.root().join("locked");
    let lock = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("it is ours");
    lock(0o555);
    // Root may write everywhere.
    let is_root = fs::write(folder.join("try"), "").is_ok_and(|()| fs::remove_file(folder.join("try")).is_ok());
    let before = (users_files(&repo), repo.git(&["status", "--porcelain"]), repo.git(&["rev-parse", "main"]));
    let merged = repo.squad(&["merge", &run, "--yes", "--json"]);
    lock(0o755);
    let report: serde_json::Value = serde_json::from_str(&merged.out).expect("JSON");
    assert_eq!(report["aside"].is_null(), is_root, "{merged}");
    if !is_root {
        let after = (users_files(&repo), repo.git(&["status", "--porcelain"]), repo.git(&["rev-parse", "main"]));
        assert!(before == after && report["aside"].as_str().is_some_and(|why| why.contains("locked")), "{merged}");
        assert_eq!(repo.git(&["show", &format!("squad/{run}:locked/in.txt")]), "out\n");
    }
    repo.assert_sound();
}

/// What is in the work tree is the user's, and work that no clone holds any more is still named.
#[test]
fn status_counts_no_file_of_a_clone_and_names_work_without_one() {
    let repo = repo();
    let run = played(&repo, SIDE_BY_SIDE, MESSAGE);
    let status =
        || -> serde_json::Value { serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON") };
    // notes.txt, which ada changed in its clone, has the user's own edit.
    let first = status();
    assert!(first["uncommitted"].is_null() && first["not_merged"].is_null(), "{first}");
    assert!(repo.squad(&["gc", "--force"]).out.contains("2 clones of ended runs removed"));
    let without = status();
    assert!(without["clones"].is_null(), "{without}");
    assert_eq!(without["not_merged"], serde_json::json!([{ "run": run, "agents": ["ada", "bob"] }]));
    let page = repo.squad(&["status"]);
    assert!(page.out.contains("gone; the work is not merged") && page.out.contains("squad merge"), "{page}");
    repo.git(&["checkout", "-q", "notes.txt"]);
    assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0);
    assert!(status()["not_merged"].is_null());
    // An agent of the project beside it still counts.
    let script =
        "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"here.txt\", text = \"here\\n\" }, { say = \"Done.\" }]\n";
    let here = repo.rehearse(script, &["--permissions", "allow", "@ada does it"]);
    assert_eq!((here.code, status()["uncommitted"].clone()), (0, serde_json::json!(1)), "{here}");
}

fn users_files(repo: &TestRepo) -> Vec<(PathBuf, Vec<u8>)> {
    users(repo).into_iter().filter(|(path, _)| !path.starts_with(".git")).collect()
}

const SAME_LINES: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "notes.txt", text = "one\ntwo\nADA\n" }, { write = ".envrc", text = "x\n" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ write = "notes.txt", text = "one\ntwo\nBOB\n" }, { write = "bob.txt", text = "bob\n" }, { say = "Done." }]
[[turn]]
agent = "coordinator"
steps = [{ say = "All is done." }]
"#;

#[test]
fn work_that_conflicts_is_set_aside_and_named() {
    let repo = repo();
    repo.git(&["checkout", "-q", "notes.txt"]);
    let output = repo.rehearse(SAME_LINES, &["--permissions", "allow", "--isolation", "clone", "@ada and @bob do it"]);
    assert!(output.err.contains("its work is set aside: it conflicts in notes.txt"), "{output}");
    let run = repo.squad(&["log", "--json"]);
    let run: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let run = run["runs"][0]["run"].as_str().expect("an id").to_owned();
    let merged = repo.squad(&["merge", &run, "--yes"]);
    assert_eq!(merged.code, 1, "{merged}");
    assert!(merged.err.contains(".envrc: runs by itself"), "{merged}");
    assert!(merged.err.contains("the work of bob is not merged: it conflicts in notes.txt"), "{merged}");
    assert!(repo.read("notes.txt").contains("ADA") && !repo.exists("bob.txt"));
    let status: serde_json::Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
    let clones = status["clones"].as_array().expect("a list").iter();
    let unmerged: Vec<_> = clones.map(|clone| (clone["agent"].as_str(), clone["unmerged"] == true)).collect();
    assert_eq!(unmerged, [(Some("ada"), false), (Some("bob"), true)]);
    let bobs = repo.git(&["show", &format!("refs/squad/runs/{run}/bob:notes.txt")]);
    assert!(bobs.contains("BOB"), "{bobs}");
    let diff = repo.squad(&["diff", &run, "bob"]);
    assert!(diff.out.contains("+BOB") && !diff.out.contains("+ADA"), "{diff}");
    repo.assert_sound();
}

/// A branch that could not have all of the work says so when it is asked for again, and lets the rest follow.
#[test]
fn what_a_branch_of_its_own_lacks_is_named_and_can_follow() {
    let repo = repo();
    let run = played(&repo, SAME_LINES, "@ada and @bob do it");
    let merge = || repo.squad(&["merge", &run, "--yes"]);
    let first = merge();
    assert!(first.code == 1 && first.out.contains(&format!("merged ada into squad/{run}")), "{first}");
    let again = merge();
    let says = format!("is merged already, on the branch squad/{run}, without the work of bob");
    assert!(again.code == 2 && again.err.contains(&says), "{again}");
    assert!(repo.squad(&["status"]).out.contains("not merged"));
    let (gc, short) = (repo.squad(&["gc"]), run.rsplit('-').next().expect("an id"));
    assert!(
        gc.out.contains(&format!("some work of run {short} is on no branch: `squad merge {short}` brings it")),
        "{gc}"
    );
    repo.git(&["checkout", "-q", "notes.txt"]);
    repo.git(&["merge", "-q", &format!("squad/{run}")]);
    let rest = merge();
    assert!(rest.code == 1 && rest.err.contains("the work of bob is not merged: it conflicts in notes.txt"), "{rest}");
    repo.git(&["rm", "-q", "notes.txt"]);
    repo.git(&["commit", "-qm", "none"]);
    repo.assert_sound();
}

/// What an agent commits in its clone is not signed, whatever the user has of all commits: nobody is there to be asked.
#[test]
fn an_agents_own_commits_ask_for_no_passphrase() {
    const SCRIPT: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"echo a >a.txt; git add a.txt; git commit -qm own; git tag -m own own\" }, { say = \"Done.\" }]\n";
    let mut repo = repo();
    let user = "[user]\nname = Ann\nemail = ann@example.com\n[commit]\ngpgSign = true\n[tag]\ngpgSign = true\n[gpg]\nprogram = false\n";
    repo.write("../gitconfig", user);
    repo.variables.insert("GIT_CONFIG_GLOBAL".into(), repo.root().join("../gitconfig").display().to_string());
    let output = repo.rehearse(SCRIPT, &["--permissions", "allow", "--isolation", "clone", "@ada builds it"]);
    assert!(output.code == 0 && output.err.contains("1 command passed"), "{output}");
}

/// An agent that has begun in a clone goes on there, wherever a resumed run would have its agents work.
#[test]
fn a_failed_attempt_in_a_clone_is_gone_on_with_there() {
    const SCRIPT: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"half\" }, { fail = \"no\" }]\n\
        [[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"whole\" }, { say = \"Done.\" }]\n";
    let repo = repo();
    let flags = ["--permissions", "allow", "--json"];
    let failed = repo.rehearse(SCRIPT, &[&flags[..], &["--isolation", "clone", "@ada builds it"]].concat());
    assert_eq!(failed.code, 1, "{failed}");
    let run = TestRepo::events(&failed)[0]["run"].as_str().expect("an id").to_owned();
    let resumed = repo.rehearse(SCRIPT, &[&flags[..], &["--isolation", "project", "--resume", &run]].concat());
    assert!(resumed.code == 0 && !repo.exists("a.txt"), "{resumed}");
    let merged = repo.squad(&["merge", &run, "--yes"]);
    assert_eq!((merged.code, repo.read("a.txt").as_str()), (0, "whole"), "{merged}");
}

/// What a merge has to leave goes with the next one, once nothing is in its way. What no commit can have is said.
#[test]
fn a_second_merge_takes_what_the_first_had_to_leave() {
    const SCRIPT: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"sed -i.old s/mine/MINE/ notes.txt; rm notes.txt.old\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"bob\"\nsteps = [{ write = \"bob.txt\", text = \"bob\" }, { run = \"git init -q sub; echo x > sub/x\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"coordinator\"\nsteps = [{ say = \"All is done.\" }]\n";
    let repo = repo();
    repo.write("notes.txt", "one mine\ntwo\nthree\n");
    let output = repo.rehearse(SCRIPT, &["--permissions", "allow", "--isolation", "clone", "@ada and @bob do it"]);
    assert!(output.err.contains("sub/ stays in the clone of bob and is in no commit"), "{output}");
    let log: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = log["runs"][0]["run"].as_str().expect("an id");
    let merge = |more: &[&str]| repo.squad(&[&["merge", run], more].concat());
    let unmerged = || repo.squad(&["status"]).out.contains("not merged");
    let dry = merge(&["--dry-run"]);
    assert!(dry.code == 1 && dry.err.contains("1 file of bob would be merged."), "{dry}");
    let first = merge(&["--yes"]);
    assert!(first.code == 1 && first.err.contains("ada is not merged: it conflicts in notes.txt"), "{first}");
    assert!(repo.exists("bob.txt") && unmerged());
    // Whoever looks on another branch is told where it would go.
    repo.git(&["commit", "-qam", "mine"]);
    repo.git(&["checkout", "-q", "--detach"]);
    let dry = merge(&["--dry-run"]);
    let aside = format!("1 file of ada would be merged, to the branch squad/{run} because HEAD is detached.");
    assert!(dry.code == 0 && dry.err.contains(&aside), "{dry}");
    repo.git(&["checkout", "-q", "main"]);
    let second = merge(&["--yes"]);
    assert!(second.code == 0 && second.out.contains("merged ada into main"), "{second}");
    assert!(repo.read("notes.txt").contains("one MINE") && !unmerged());
    let third = merge(&["--yes"]);
    assert!(third.code == 2 && third.err.contains("is merged already"), "{third}");
    let merges = repo.squad(&["log", run, "--json"]).out.matches("\"run.merged\"").count();
    assert_eq!(merges, 2);
    // The clone of ada, who changed something, holds nothing that no commit has.
    assert!(repo.squad(&["gc", "--dry-run"]).out.contains("1 clone of ended runs would be removed"));
    assert!(repo.squad(&["gc"]).out.contains("1 clone of ended runs removed"));
    repo.assert_sound();
}

/// What the reviewer says of ada's work, whether bob's revision is approved, and what keeps that from being merged.
#[test]
fn rejected_work_is_merged_only_with_its_approved_revision() {
    let turn = |agent: &str, steps: &str| format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}]\n");
    let judges = |approved: bool| {
        let arguments = format!("{{ approved = {approved}, reasons = \"Because.\" }}");
        turn("rex", &format!("{{ tool = \"squad_verdict\", args = {arguments} }}, {{ say = \"So.\" }}"))
    };
    let writes = |agent: &str, path: &str, text: &str| {
        turn(agent, &format!("{{ write = \"{path}\", text = \"{text}\\n\" }}, {{ say = \"Done.\" }}"))
    };
    let ada = [writes("ada", "a.txt", "plain"), judges(false)].concat();
    let chosen = turn("coordinator", "{ say = '{\"agents\": [\"bob\"], \"reason\": \"knows it\"}' }");
    let end = turn("coordinator", "{ say = \"That is all.\" }");
    let script = |text: &str, approved| {
        let bob = turn(
            "bob",
            &format!(
                "{{ run = \"echo hashed > a.txt\" }}, {{ write = \"bob.txt\", text = \"{text}\\n\" }}, {{ say = \"Done.\" }}"
            ),
        );
        [&ada, &chosen, &bob, &judges(approved), &end, &end].map(String::as_str).concat()
    };
    let nobody = [&ada, &end, &end].map(String::as_str).concat();
    for (script, is_beside, merged, said) in [
        (&nobody, false, false, "the work of ada is not merged: rex rejected it"),
        (&script("fine", true), false, true, ""),
        (
            &script("fine", true),
            true,
            false,
            "the work of ada is not merged: it was rejected, and its revision is not merged",
        ),
        (
            &script("BREAKER", true),
            false,
            false,
            "the work of ada is not merged: it was rejected, and its revision is not merged",
        ),
        (&script("fine", false), false, false, "the work of bob is not merged: rex rejected it"),
    ] {
        let repo = repo();
        let run = played(&repo, script, "@ada adds the endpoint, then @rex reviews it");
        if is_beside {
            repo.write("bob.txt", "mine\n");
            repo.git(&["add", "bob.txt"]);
            repo.git(&["commit", "-qm", "mine"]);
        }
        let check = "[check]\nrun = [\"sh\", \"-c\", \"! grep -l BREAKER *.txt\"]\n";
        // It would go back to bob, whom nobody plays here.
        let check = format!("{check}[sessions]\nretry = 0\n[engine.rehearsal]\nscript = 'none.toml'\n");
        repo.write("../home/config/squad/config.toml", &check);
        let output = repo.squad(&["merge", &run, "--yes"]);
        assert_eq!((output.code, repo.exists("a.txt")), (u8::from(!merged), merged), "{output}");
        assert!(output.err.contains(said), "{said}: {output}");
        let log = repo.squad(&["log", &run]);
        let by = "by Ann: ada and bob";
        assert_eq!(log.out.matches(by).count(), if merged { 2 } else { 0 }, "in the story and on the card: {log}");
        if merged {
            assert_eq!(repo.read("a.txt"), "hashed\n");
        }
    }
}

/// A commit that fails: the run has failed, and commits the work when it is resumed.
#[test]
fn what_could_not_be_committed_has_failed_until_it_is() {
    let repo = repo();
    let in_the_way = "refs/squad/runs/20260105-090000-000001_merged";
    repo.git(&["update-ref", in_the_way, "HEAD"]);
    let arguments = ["--permissions", "allow", "--isolation", "clone"];
    let output = repo.rehearse(SIDE_BY_SIDE, &[&arguments[..], &["@ada builds it"]].concat());
    assert!(output.code == 1 && output.err.contains("failed: ada: what ada left in its clone could not"), "{output}");
    repo.git(&["update-ref", "-d", in_the_way]);
    let resumed = repo.rehearse(SIDE_BY_SIDE, &[&arguments[..], &["--resume", "20260105"]].concat());
    assert!(resumed.code == 0, "{resumed}");
    let merged = repo.squad(&["merge", "20260105", "--dry-run"]);
    assert!(merged.out.contains("api.txt"), "{merged}");
}

/// Runs that there is nothing of to merge: each says why, and what can be had.
#[test]
fn what_cannot_be_merged_says_why() {
    let repo = repo();
    let in_project = repo.rehearse(SIDE_BY_SIDE, &["--permissions", "allow", "--json", "@ada builds it"]);
    let in_project = TestRepo::events(&in_project)[0]["run"].as_str().expect("an id").to_owned();
    let idle = played(&repo, "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Nothing to do.\" }]", "@ada look at it");
    for (run, why) in [("2020", "no run"), (&*in_project, "worked in your work tree"), (&*idle, "nothing to merge")] {
        let output = repo.squad(&["merge", run, "--yes"]);
        assert!(output.code == 2 && output.err.contains(why), "{why}: {output}");
    }
}

#[test]
fn gc_removes_clones_of_ended_runs_and_keeps_what_no_commit_has() {
    let repo = repo();
    let run = played(&repo, SIDE_BY_SIDE, MESSAGE);
    let listed = |repo: &TestRepo| {
        let status: serde_json::Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
        let clones = status["clones"].as_array().cloned().unwrap_or_default();
        let home = |path: &str| path.replacen("HOME", &repo.home().display().to_string(), 1);
        let facts = |clone: &serde_json::Value| (clone["agent"].to_string(), clone["unmerged"] == true);
        clones.iter().map(|clone| (facts(clone), home(clone["directory"].as_str().expect("a path")))).collect()
    };
    let clones: Vec<_> = listed(&repo);
    let facts: Vec<_> = clones.iter().map(|(facts, _)| facts.clone()).collect();
    assert!(clones.iter().all(|(_, directory)| PathBuf::from(directory).is_dir()), "{clones:?}");
    assert_eq!(facts, [("\"ada\"".to_owned(), true), ("\"bob\"".to_owned(), true)]);
    let page = repo.squad(&["status"]);
    assert!(page.out.contains("not merged") && page.out.contains("squad merge"), "{page}");
    // Somebody has changed a file there since.
    fs::write(PathBuf::from(&clones[1].1).join("late.txt"), "late\n").expect("a file");
    let tidied = repo.squad(&["gc"]);
    assert!(tidied.out.contains("1 clone of ended runs removed"), "{tidied}");
    assert!(tidied.err.contains("stays: it holds changes that are not committed"), "{tidied}");
    assert!(!PathBuf::from(&clones[0].1).exists() && PathBuf::from(&clones[1].1).exists());
    // The work does not need the clones.
    repo.git(&["checkout", "-q", "notes.txt"]);
    assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0);
    assert!(repo.squad(&["gc", "--force"]).out.contains("1 clone of ended runs removed"));
    assert_eq!(listed(&repo), []);
    repo.assert_sound();
}

/// Kinds of repositories: in each, agents work in clones and their work is merged, or squad says why not.
#[test]
fn clones_of_every_kind_of_repository_work_or_are_refused() {
    const SCRIPT: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"ls; cat deep/file.txt; git log --oneline; git status --short; \
                          if git rev-parse -q --verify HEAD~1 >/dev/null; then git show HEAD~1:deep/file.txt; fi\" }, \
                          { write = \"new.txt\", text = \"new\\n\" }, { say = \"Done.\" }]\n";
    let knows_reftable = {
        let repo = TestRepo::folder();
        let done = repo.command("git", &repo.root()).args(["init", "-q", "--ref-format=reftable"]).status();
        done.expect("git runs").success()
    };
    for kind in
        ["plain", "shallow", "partial", "sparse", "submodule", "filter", "reftable", "sha256", "worktree", "detached"]
    {
        if kind == "reftable" && !knows_reftable {
            continue;
        }
        let init = match kind {
            "reftable" => "--ref-format=reftable",
            "sha256" => "--object-format=sha256",
            _ => "-q",
        };
        let repo = TestRepo::folder();
        let root = repo.root();
        repo.git(&["init", "--quiet", "--initial-branch=main", init]);
        for (key, value) in
            [("user.name", "Ann"), ("user.email", "ann@example.com"), ("uploadpack.allowFilter", "true")]
        {
            repo.git(&["config", key, value]);
        }
        repo.write(".squad/team.md", "| Name | Role | Status |\n|---|---|---|\n| Ada | Backend Dev | Active |\n");
        repo.write("deep/file.txt", "deep\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "first"]);
        repo.write("deep/file.txt", "deeper\n");
        repo.git(&["commit", "-qam", "second"]);
        let other = root.with_file_name("other");
        let clone = |options: &[&str]| {
            let url = format!("file://{}", root.display());
            repo.git(&[&["clone", "-q"], options, &[&url, other.to_str().expect("UTF-8")]].concat());
            for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.com")] {
                repo.git_in(&other, &["config", key, value]);
            }
            other.clone()
        };
        let place = match kind {
            "shallow" => clone(&["--depth=1"]),
            "partial" => clone(&["--filter=blob:none"]),
            "sparse" => {
                let place = clone(&["--sparse"]);
                repo.git_in(&place, &["sparse-checkout", "add", ".squad"]);
                place
            }
            "submodule" => {
                let inner = root.with_file_name("inner");
                repo.git(&["clone", "-q", ".", inner.to_str().expect("UTF-8")]);
                repo.git(&[
                    "-c",
                    "protocol.file.allow=always",
                    "submodule",
                    "--quiet",
                    "add",
                    inner.to_str().expect("UTF-8"),
                    "inner",
                ]);
                repo.git(&["commit", "-qm", "inner"]);
                root.clone()
            }
            "filter" => {
                repo.git(&["config", "filter.big.smudge", "no-such-program"]);
                repo.git(&["config", "filter.big.required", "true"]);
                repo.write(".gitattributes", "*.bin filter=big\n");
                repo.write("a.bin", "big\n");
                repo.git(&["-c", "filter.big.required=false", "add", "-A"]);
                repo.git(&["-c", "filter.big.required=false", "commit", "-qm", "filtered"]);
                root.clone()
            }
            "worktree" => {
                repo.git(&["worktree", "add", "-q", "-b", "side", other.to_str().expect("UTF-8")]);
                other.clone()
            }
            "detached" => {
                repo.git(&["checkout", "-q", "--detach"]);
                root.clone()
            }
            _ => root.clone(),
        };
        let script = root.with_file_name("script.toml");
        fs::write(&script, SCRIPT).expect("a script");
        let script = script.to_str().expect("UTF-8");
        let arguments =
            ["--script", script, "--permissions", "allow", "--isolation", "clone", "--json", "--agent", "ada", "do it"];
        let output = repo.squad_in(&place, &[&["orchestrate"], &arguments[..]].concat());
        if kind == "filter" {
            // Whichever of both git says first.
            let says = ["clean filter 'big' failed", "cannot run no-such-program"];
            assert!(output.code == 1 && says.iter().any(|text| output.out.contains(text)), "{kind}: {output}");
            let run = TestRepo::events(&output)[0]["run"].as_str().expect("an id").to_owned();
            let nothing = repo.squad_in(&place, &["merge", &run, "--yes"]);
            assert!(nothing.code == 2 && nothing.err.contains("no agent of run"), "{nothing}");
            continue;
        }
        if kind == "reftable" {
            assert!(output.code == 3 && output.out.contains("reftable"), "{kind}: {output}");
            assert_eq!(repo.git(&["for-each-ref", "refs/squad"]), "", "nothing began");
            continue;
        }
        assert_eq!(output.code, 0, "{kind}: {output}");
        let events = TestRepo::events(&output);
        let ran = events.iter().find(|event| event["type"] == "tool.completed").expect("a command");
        let ran = ran["result"].as_str().expect("text");
        assert!(ran.contains("deeper") && ran.contains("second"), "{kind}: {ran}");
        assert!(!ran.contains("fatal"), "{kind}: {ran}");
        let run = events[0]["run"].as_str().expect("an id");
        let merged = repo.squad_in(&place, &["merge", run, "--yes"]);
        assert_eq!(merged.code, 0, "{kind}: {merged}");
        let branch = if kind == "detached" { format!("squad/{run}") } else { "HEAD".to_owned() };
        assert_eq!(repo.git_in(&place, &["show", &format!("{branch}:new.txt")]), "new\n", "{kind}");
        assert_eq!(repo.git_in(&place, &["status", "--porcelain", "--ignore-submodules=all"]), "", "{kind}");
        repo.git_in(&place, &["fsck", "--connectivity-only"]);
    }
}

#[cfg(unix)]
const USER: &str = "../home/config/squad/config.toml";

/// Both look at what their clones were given.
#[cfg(unix)]
const LOOKING: &str = r#"
[[turn]]
agent = "ada"
steps = [{ run = "cat deps/lib.txt built.txt; echo $SQUAD_CLONE $SQUAD_PORT $COMPOSE_PROJECT_NAME" }, { write = "a.txt", text = "a\n" }, { say = "Done." }]
[[turn]]
agent = "bob"
steps = [{ run = "cat deps/lib.txt built.txt; echo $SQUAD_CLONE $SQUAD_PORT $COMPOSE_PROJECT_NAME" }, { write = "b.txt", text = "b\n" }, { say = "Done." }]
"#;

#[cfg(unix)]
fn in_clones(repo: &TestRepo, configuration: &str, agents: &[&str]) -> (Option<i32>, Vec<serde_json::Value>) {
    repo.write(USER, configuration);
    let flags = ["--permissions", "allow", "--isolation", "clone", "--agent", "bob", "Look"];
    let done = crate::process::start(repo, LOOKING, &flags[..if agents.contains(&"bob") { 7 } else { 4 }]);
    let done = done.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&done.stdout);
    (done.status.code(), out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

#[cfg(unix)]
#[test]
fn a_clone_gets_what_git_ignores_and_is_made_ready_before_its_agent_begins() {
    let repo = repo();
    repo.write(".gitignore", "deps/\nbuilt.txt\n");
    repo.write("deps/lib.txt", "library\n");
    std::os::unix::fs::symlink("/etc", repo.root().join("deps/link")).expect("a link");
    let ready = "[isolation]\nbring = [\"deps\", \"not-there\"]\n\
                 setup = [\"sh\", \"-c\", \"echo for $SQUAD_CLONE > built.txt; echo x >> ../../times\"]\n";
    let (code, events) = in_clones(&repo, ready, &["ada", "bob"]);
    assert_eq!(code, Some(0), "{events:#?}");
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("clone.prepared").len(), 2);
    let preparing = of("clone.preparing");
    let commands = |agent: &str| {
        let own = preparing.iter().filter(|event| event["agent"] == agent);
        own.map(|event| event["command"].as_str().expect("a text").split(' ').next().expect("a word"))
            .collect::<Vec<_>>()
    };
    assert_eq!([commands("ada"), commands("bob")], [["", "sh"], ["", "sh"]]);
    assert!(of("clone.prepared").iter().all(|event| event["exit_code"] == 0 && event["agent"].is_string()));
    let mut ports = Vec::new();
    for agent in ["ada", "bob"] {
        let ran = of("tool.completed").into_iter().find(|event| event["agent"] == agent && event["tool"] != "write");
        let result = ran.expect("it ran")["result"].as_str().expect("a text").to_owned();
        assert!(result.contains(&format!("library\nfor {agent}\n{agent} ")), "{result}");
        assert!(result.contains("squad-") && result.contains(&format!("-{agent}")), "{result}");
        let words: Vec<&str> = result.lines().nth(2).expect(&result).split(' ').collect();
        ports.push(words[1].parse::<u16>().expect(&result));
    }
    assert!(ports[0].abs_diff(ports[1]) >= 20, "{ports:?}");
    let locks = fs::read_dir(repo.home().join("state/squad/ports")).expect("a folder").flatten();
    assert!(locks.count() >= 2, "each block is kept");
    // Neither is anybody's work, and the project has only its own.
    let work = events.last().expect("an end")["work"].to_string();
    assert!(!work.contains("built.txt") && !work.contains("deps"), "{work}");
    assert!(!repo.exists("built.txt") && repo.exists("deps/link"));
}

#[cfg(unix)]
#[test]
fn an_agent_whose_clone_is_not_ready_does_not_begin() {
    for (line, reason) in [
        ("setup = [\"sh\", \"-c\", \"echo broken; exit 3\"]", "exited with 3"),
        ("setup = [\"no-such-program\"]", "no-such-program"),
        ("setup = [\"sh\", \"-c\", \"echo x > made.txt\"]", "changed files that git does not ignore"),
        ("bring = [\"notes.txt\"]", "git does not ignore it"),
        ("bring = [\"../home\"]", "no path below"),
        ("bring = [\"/etc\"]", "no path below"),
    ] {
        let (code, events) = in_clones(&repo(), &format!("[isolation]\n{line}\n"), &["ada", "bob"]);
        assert_eq!(code, Some(1), "{line}: {events:#?}");
        for agent in ["ada", "bob"] {
            let failed = events.iter().find(|event| event["type"] == "agent.failed" && event["agent"] == agent);
            let failed = failed.expect("it fails").to_string();
            assert!(failed.contains("not ready") && failed.contains(reason), "{line}: {failed}");
        }
        assert!(!events.iter().any(|event| event["type"] == "tool.started"), "{line}");
        let prepared = |agent: &str| {
            let of_agent = events.iter().filter(|event| event["agent"] == agent);
            of_agent.filter(|event| event["type"] == "clone.prepared").count()
        };
        assert!(prepared("ada") < 2 && prepared("bob") < 2, "{line}: once each: {events:#?}");
    }
}

/// A submodule is empty in a clone: what an agent puts there is named, and no `gc` takes it away.
#[cfg(unix)]
#[test]
fn what_is_put_into_a_submodules_folder_is_named_and_stays() {
    let repo = repo();
    repo.git(&["checkout", "-q", "notes.txt"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},inner", "1".repeat(40))]);
    repo.git(&["commit", "-qm", "a submodule"]);
    fs::create_dir(repo.root().join("inner")).expect("a folder");
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"mkdir -p inner; echo fix >inner/fix.c\" }, { say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--permissions", "allow", "--isolation", "clone", "@ada fixes inner"]);
    assert!(
        output.err.contains("inner stays in the clone of ada and is in no commit: it is a submodule's"),
        "{output}"
    );
    let tidied = repo.squad(&["gc"]);
    assert!(tidied.err.contains("stays: it holds changes that are not committed"), "{tidied}");
}

/// A set-up that failed may have left a link where squad copies to, on the way that goes on.
#[cfg(unix)]
/// While its clone is set up, an agent waits for that, and the clone is not one to remove.
#[cfg(unix)]
#[test]
fn who_waits_for_a_clone_is_shown_so() {
    let repo = repo();
    let setup = "[isolation]\nsetup = [\"sh\", \"-c\", \"for n in $(seq 600); do [ -e go ] && break; sleep 0.05; done; rm go\"]\n";
    repo.write("../home/config/squad/config.toml", setup);
    repo.write("../script.toml", SIDE_BY_SIDE);
    let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
    command.args([
        "orchestrate",
        "--script",
        "../script.toml",
        "--isolation",
        "clone",
        "--permissions",
        "allow",
        MESSAGE,
    ]);
    let errors = fs::File::create(repo.root().join("../errors.txt")).expect("a file");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().expect("it runs");
    while repo.read("../errors.txt").matches("makes its clone ready").count() < 2 {
        assert!(child.try_wait().expect("it is known").is_none());
    }
    let shown = repo.squad(&["status"]);
    assert_eq!(shown.out.matches("waits for its clone\n").count(), 2, "{shown}");
    assert!(!shown.out.contains("squad gc"), "{shown}");
    let status: serde_json::Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
    for clone in status["clones"].as_array().expect("a list") {
        assert_eq!(clone["ready"], false, "{status}");
        let folder =
            clone["directory"].as_str().expect("a path").replacen("HOME", &repo.home().display().to_string(), 1);
        fs::write(Path::new(&folder).join("go"), "").expect("it is there");
    }
    let code = child.wait().expect("it ends");
    let errors = repo.read("../errors.txt");
    assert!(code.success() && errors.matches("the rehearsal engine").count() == 1, "{errors}");
    let shown = repo.squad(&["status"]);
    assert!(!shown.out.contains("waits for its clone"), "{shown}");
}

#[test]
fn nothing_is_brought_through_a_link_that_a_failed_set_up_left() {
    let repo = repo();
    repo.write(".gitignore", "deps/\n");
    repo.write("deps/sub/key", "brought\n");
    let victim = repo.home().join("victim");
    fs::create_dir(&victim).expect("a folder");
    let leave = format!("rm -rf deps; ln -s '{}' deps; exit 1", victim.display());
    let configuration = format!("[isolation]\nbring = [\"deps\"]\nsetup = [\"sh\", \"-c\", \"{leave}\"]\n");
    let (code, events) = in_clones(&repo, &configuration, &["ada", "bob"]);
    assert_eq!(code, Some(1), "{events:#?}");
    let run = events.last().expect("an end")["run"].as_str().expect("an id").to_owned();
    let resumed = repo.squad(&["orchestrate", "--resume", &run, "--permissions", "allow"]);
    assert_eq!(resumed.code, 1, "{resumed}");
    assert_eq!(fs::read_dir(&victim).expect("a folder").count(), 0);
}

/// git starts filters in the work tree: in a clone, a script there is its agent's, and runs nowhere but in its sandbox.
#[cfg(unix)]
#[test]
fn a_users_filter_runs_no_code_of_an_agent() {
    let mark = |repo: &TestRepo| repo.home().join("mark");
    for (clean, name) in [("./clean.sh", "clean.sh"), ("sh clean.sh", "clean.sh"), ("python3 -m cleaner", "cleaner.py")]
    {
        let repo = repo();
        repo.git(&["checkout", "-q", "notes.txt"]);
        let place = mark(&repo).display().to_string();
        let code = if name == "clean.sh" {
            format!("#!/bin/sh\\ntouch {place}\\ncat\\n")
        } else {
            format!("import sys\\nopen('{place}', 'w')\\nsys.stdout.write(sys.stdin.read())\\n")
        };
        repo.write(".gitattributes", "*.up filter=up\n");
        repo.write(
            name,
            if name == "clean.sh" { "#!/bin/sh\ncat\n" } else { "import sys\nsys.stdout.write(sys.stdin.read())\n" },
        );
        let make = std::process::Command::new("chmod").args(["+x", name]).current_dir(repo.root()).status();
        assert!(make.expect("it runs").success());
        repo.git(&["config", "filter.up.clean", clean]);
        repo.git(&["add", ".gitattributes", name]);
        repo.git(&["commit", "-qm", "filter"]);
        let script = format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"{name}\", text = \"{code}\" }}, {{ write = \"a.up\", text = \"a\\n\" }}, \
             {{ run = \"echo b >b.up; chmod +x {name}\" }}, {{ say = \"Done.\" }}]\n"
        );
        let run = played(&repo, &script, "@ada does it");
        assert!(!mark(&repo).exists(), "{clean}");
        let commit = format!("refs/squad/runs/{run}/ada");
        assert_eq!(repo.git(&["show", &format!("{commit}:a.up")]), "a\n");
        assert!(repo.git(&["show", &format!("{commit}:{name}")]).contains("mark"), "{clean}");
        repo.assert_sound();
    }
}

/// Which files of an ignored folder are tracked, and what an earlier step did to them.
#[test]
fn what_is_brought_takes_back_no_others_work() {
    let repo = repo();
    repo.git(&["checkout", "-q", "notes.txt"]);
    repo.write(".gitignore", "deps/\n");
    repo.write("deps/kept.txt", "old\n");
    repo.write("deps/lib.txt", "library\n");
    repo.git(&["add", "-f", ".gitignore", "deps/kept.txt"]);
    repo.git(&["commit", "-qm", "deps"]);
    repo.write("../home/config/squad/config.toml", "[isolation]\nbring = [\"deps\"]\n");
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"deps/kept.txt\", text = \"new\\n\" }, { say = \"Done.\" }]\n\
                  [[turn]]\nagent = \"bob\"\nsteps = [{ run = \"cat deps/kept.txt deps/lib.txt; echo b >b.txt\" }, { say = \"Done.\" }]\n";
    let run = played(&repo, script, "@ada changes it, then @bob goes on");
    let log = repo.squad(&["log", &run, "--json"]);
    assert!(log.out.contains("new\\nlibrary"), "{log}");
    assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0);
    assert_eq!(repo.read("deps/kept.txt"), "new\n");
}

/// Each clone would have the others' files in its snapshot.
#[test]
fn clones_do_not_lie_in_the_project() {
    for folder in ["state", ".git/state"] {
        let mut repo = repo();
        let place = repo.root().join(folder).display().to_string();
        repo.variables.insert("XDG_STATE_HOME".into(), place);
        let output = repo.rehearse(SIDE_BY_SIDE, &["--permissions", "allow", "--isolation", "clone", "@ada builds it"]);
        assert!(output.code == 3 && output.err.contains("set XDG_STATE_HOME"), "{output}");
    }
}

/// A resumed run does not count work as done whose clone has gone before it was committed.
#[test]
fn work_whose_clone_is_gone_is_not_complete() {
    let repo = repo();
    let in_the_way = "refs/squad/runs/20260105-090000-000001_merged";
    repo.git(&["update-ref", in_the_way, "HEAD"]);
    let arguments = ["--permissions", "allow", "--isolation", "clone"];
    let output = repo.rehearse(SIDE_BY_SIDE, &[&arguments[..], &["@ada builds it"]].concat());
    assert_eq!(output.code, 1, "{output}");
    repo.git(&["update-ref", "-d", in_the_way]);
    fs::remove_dir_all(repo.home().join("state/squad/clones")).expect("they are there");
    let resumed = repo.rehearse(SIDE_BY_SIDE, &[&arguments[..], &["--resume", "20260105"]].concat());
    assert!(resumed.code == 1 && resumed.err.contains("its clone is gone; `git show"), "{resumed}");
    repo.assert_sound();
}

/// A partial clone whose remote agents cannot be told of: that is said before one begins.
#[test]
fn history_that_a_partial_clone_lacks_is_named_where_it_cannot_be_fetched() {
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"git config --get-regexp remote || true\" }, { say = \"Done.\" }]\n";
    for (url, is_named) in
        [("https://ann:secret@example.invalid/a.git", true), ("https://example.invalid/a.git", false)]
    {
        let repo = repo();
        repo.git(&["config", "remote.origin.url", url]);
        repo.git(&["config", "remote.origin.promisor", "true"]);
        let output = repo.rehearse(script, &["--permissions", "allow", "--isolation", "clone", "--json", "@ada looks"]);
        assert_eq!(output.code, 0, "{output}");
        assert_eq!(output.out.contains("git cannot read all of the history in the clone of ada"), is_named, "{output}");
        assert!(!output.out.contains("secret"), "{output}");
        let ran =
            TestRepo::events(&output).into_iter().find(|event| event["type"] == "tool.completed").expect("a command");
        assert_eq!(ran["result"].as_str().expect("text").contains("example.invalid"), !is_named, "{ran}");
    }
}

/// What an agent's own git makes of files that the repository's configuration has filters for.
#[cfg(unix)]
#[test]
fn an_agents_git_has_the_repositorys_filters() {
    let repo = repo();
    repo.git(&["checkout", "-q", "notes.txt"]);
    repo.git(&["clean", "-qf", "draft.txt"]);
    repo.write(".gitattributes", "*.up filter=up\n");
    repo.git(&["config", "filter.up.clean", "tr 'a-y\"' 'A-Y\"'"]);
    repo.git(&["config", "filter.up.smudge", "tr 'A-Y\"' 'a-y\"'"]);
    repo.write("a.up", "word\n");
    repo.git(&["add", ".gitattributes", "a.up"]);
    repo.git(&["commit", "-qm", "filter"]);
    let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ run = \"cat a.up; touch a.up; git status --short -uno; \
                  echo new >b.up; git add b.up; git show :b.up\" }, { say = \"Done.\" }]\n";
    let output = repo.rehearse(script, &["--permissions", "allow", "--isolation", "clone", "--json", "@ada does it"]);
    let events = TestRepo::events(&output);
    let ran = events.iter().find(|event| event["type"] == "tool.completed").expect("a command");
    assert_eq!(ran["result"].as_str().expect("text").trim_end(), "word\nNEW", "{output}");
    let run = events[0]["run"].as_str().expect("an id");
    assert_eq!(repo.git(&["show", &format!("refs/squad/runs/{run}/ada:b.up")]), "NEW\n");
}

/// What is up to date for `make` in the project is so in a clone, and what the user has changed since is not.
#[cfg(unix)]
#[test]
fn what_is_brought_is_as_old_as_it_was() {
    let repo = repo();
    repo.write(".gitignore", "out/\n");
    repo.write("a.c", "a\n");
    repo.write("b.c", "b\n");
    repo.write("sub/c.c", "c\n");
    repo.git(&["add", ".gitignore", "a.c", "b.c", "sub"]);
    repo.git(&["commit", "-qm", "sources"]);
    ["a.o", "b.o", "c.o"].iter().for_each(|name| repo.write(&format!("out/{name}"), "built\n"));
    let at = |path: &str, age: u64| {
        let file = fs::File::options().append(true).open(repo.root().join(path)).expect("a file");
        let at = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        file.set_modified(at).expect("it is ours");
    };
    ["a.c", "b.c", "sub/c.c"].iter().for_each(|path| at(path, 3000));
    ["out/a.o", "out/b.o", "out/c.o"].iter().for_each(|path| at(path, 1000));
    repo.git(&["status"]);
    // What is built of this one is not up to date.
    repo.write("b.c", "changed\n");
    let (code, events) = in_clones_with(
        &repo,
        "[isolation]\nbring = [\"out\"]\n",
        "for n in a b; do [ out/$n.o -nt $n.c ] && echo $n; done; [ out/c.o -nt sub/c.c ] && echo c; git status --short; ls -l out",
    );
    assert_eq!(code, 0, "{events:#?}");
    let ran = events.iter().find(|event| event["type"] == "tool.completed").expect("a command");
    let result = ran["result"].as_str().expect("text");
    assert!(result.starts_with("a\nc\n"), "{result}");
}

#[cfg(unix)]
fn in_clones_with(repo: &TestRepo, configuration: &str, command: &str) -> (u8, Vec<serde_json::Value>) {
    repo.write(USER, configuration);
    let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{command}\" }}, {{ say = \"Done.\" }}]\n");
    let output = repo.rehearse(&script, &["--permissions", "allow", "--isolation", "clone", "--json", "@ada looks"]);
    (output.code, TestRepo::events(&output))
}

/// Without a sandbox, an agent can put a link in its clone's place × which folder it takes.
#[cfg(unix)]
#[test]
fn no_link_in_a_clones_place_is_followed() {
    for place in [".", "..", "../.."] {
        let repo = repo();
        repo.git(&["checkout", "-q", "notes.txt"]);
        let victim = repo.home().join("victim");
        let inner = victim.join("work/project");
        for folder in [&victim, &victim.join("project"), &inner] {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(folder.join("mine.txt"), "mine\n").expect("a file");
        }
        let swap = format!("cd {place}; here=$(pwd -P); cd /; mv $here $here.away; ln -s {} $here", victim.display());
        let turn = |agent: &str, steps: &str| {
            format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}{{ say = \"Done.\" }}]\n")
        };
        let script = [
            turn("ada", &format!("{{ run = \"{swap}\" }}, ")),
            turn("bob", "{ write = \"bob.txt\", text = \"bob\\n\" }, "),
            turn("ada", "{ run = \"true\" }, "),
        ]
        .concat();
        let output = repo.rehearse(
            &script,
            &[
                "--permissions",
                "allow",
                "--isolation",
                "clone",
                "--json",
                "@ada begins, then @bob goes on, then @ada ends",
            ],
        );
        assert!(output.out.contains("a link stands in the place of a clone"), "{place}: {output}");
        for folder in [&victim, &victim.join("project"), &inner] {
            let mut names: Vec<_> =
                fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
            names.retain(|name| name != "project" && name != "work");
            assert_eq!(names, ["mine.txt"], "{place}: {output}");
        }
        assert!(!repo.git(&["log", "--all", "--name-only", "--format="]).contains("mine.txt"), "{place}");
        repo.assert_sound();
    }
}

/// Clones of a repository that was moved, and of a copy.
#[test]
fn clones_of_a_moved_repository_are_found_and_a_copy_has_its_own() {
    const SCRIPT: &str = "[[turn]]\nagent = \"ada\"\nsteps = [{ write = \"a.txt\", text = \"half\" }, { fail = \"no\" }]\n\
        [[turn]]\nagent = \"bob\"\nsteps = [{ write = \"b.txt\", text = \"b\" }, { say = \"Done.\" }]\n\
        [[turn]]\nagent = \"ada\"\nsteps = [{ run = \"cat a.txt; git log --oneline; git status --short\" }, { say = \"Done.\" }]\n";
    let repo = repo();
    repo.git(&["checkout", "-q", "notes.txt"]);
    let flags = ["--permissions", "allow", "--json", "--isolation", "clone"];
    let failed = repo.rehearse(SCRIPT, &[&flags[..], &["@ada and @bob build it"]].concat());
    assert_eq!(failed.code, 1, "{failed}");
    let run = TestRepo::events(&failed)[0]["run"].as_str().expect("an id").to_owned();
    let [copy, moved] = ["copy", "moved"].map(|name| repo.root().with_file_name(name));
    let done = std::process::Command::new("cp").args(["-r"]).args([&repo.root(), &copy]).status();
    assert!(done.expect("it runs").success());
    let listed = |place: &Path| -> Vec<String> {
        let status: serde_json::Value =
            serde_json::from_str(&repo.squad_in(place, &["status", "--json"]).out).expect("JSON");
        let clones = status["clones"].as_array().cloned().unwrap_or_default();
        clones.iter().map(|clone| clone["agent"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(listed(&copy), Vec::<String>::new());
    assert_eq!(listed(&repo.root()), ["ada", "bob"]);
    fs::rename(repo.root(), &moved).expect("it is ours");
    assert_eq!(listed(&moved), ["ada", "bob"]);
    let script = repo.home().with_file_name("script.toml");
    let resume = [
        "orchestrate",
        "--script",
        script.to_str().expect("UTF-8"),
        "--permissions",
        "allow",
        "--json",
        "--resume",
        &run,
    ];
    let resumed = repo.squad_in(&moved, &resume);
    assert_eq!(resumed.code, 0, "{resumed}");
    let events = TestRepo::events(&resumed);
    let ran = events
        .iter()
        .find(|event| event["type"] == "tool.completed" && event["agent"] == "ada" && event["tool"] == "shell");
    let ran = ran.expect("a command")["result"].to_string();
    assert!(ran.contains("half") && ran.contains("notes") && !ran.contains("fatal"), "{ran}");
    let merged = repo.squad_in(&moved, &["merge", &run, "--yes"]);
    assert_eq!(merged.code, 0, "{merged}");
    assert_eq!(fs::read_to_string(moved.join("a.txt")).expect("a file"), "half");
    let tidied = repo.squad_in(&moved, &["gc"]);
    assert!(tidied.out.contains("2 clones of ended runs removed"), "{tidied}");
    assert_eq!(listed(&moved), Vec::<String>::new());
}

/// Whether squad's sandbox bounds an engine × whether its own lets it write where clones are.
#[cfg(unix)]
#[test]
fn engines_that_may_write_all_clones_are_named_before_agents_start() {
    for (engine, level, is_named) in
        [("codex", "rules", true), ("claude", "rules", false), ("codex", "files", false), ("rehearsal", "rules", false)]
    {
        let mut repo = repo();
        let program = repo.write_script("../other", "#!/bin/sh\nexit 1\n");
        repo.write(USER, &format!("[engines.codex]\nprogram = {program:?}\n[engines.claude]\nprogram = {program:?}\n[agents.bob]\nengine = \"{engine}\"\n"));
        repo.variables.insert("TMPDIR".into(), repo.home().display().to_string());
        repo.variables.insert("SQUAD_SANDBOX_LEVEL".into(), level.into());
        let script = "[[turn]]\nagent = \"ada\"\nsteps = [{ say = \"Done.\" }]\n";
        let output = repo.rehearse(script, &["--permissions", "allow", "--isolation", "clone", "--json", "@ada looks"]);
        assert_eq!(output.code, 0, "{output}");
        let events = TestRepo::events(&output);
        let place = |of: &dyn Fn(&serde_json::Value) -> bool| events.iter().position(of);
        let named = place(&|event| event["reason"].as_str().is_some_and(|reason| reason.contains("XDG_STATE_HOME")));
        let is_weaker = output.out.contains("sandbox.weaker");
        assert_eq!(named.is_some(), is_named || is_weaker && engine == "codex", "{engine} {level}: {output}");
        assert!(named.is_none_or(|named| Some(named) < place(&|event| event["type"] == "session.created")), "{output}");
    }
}
