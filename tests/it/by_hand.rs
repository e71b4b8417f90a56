//! Work of clones that the user has brought to a branch by other means than `squad merge`, and work of older runs.

use serde_json::{Value, json};

use crate::clones::{played, with_state};
use crate::support::TestRepo;

/// ada changes a file and adds one.
const SCRIPT: &str = r#"
[[turn]]
agent = "ada"
steps = [{ write = "notes.txt", text = "one\ntwo\nADA\n" }, { write = "api.txt", text = "api\n" }, { say = "Done." }]
"#;

fn status(repo: &TestRepo) -> Value {
    serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON")
}

fn with_notes() -> TestRepo {
    let repo = with_state();
    repo.write("notes.txt", "one\ntwo\nthree\n");
    repo.git(&["add", "notes.txt"]);
    repo.git(&["commit", "-qm", "notes"]);
    repo
}

fn commit(repo: &TestRepo, path: &str, text: &str) {
    repo.write(path, text);
    repo.git(&["add", path]);
    repo.git(&["commit", "-qm", "mine"]);
}

/// How the user brings the work × what is committed before and after. Neither `status`, `merge` nor `gc` names it then.
#[test]
fn work_that_was_brought_by_hand_is_merged() {
    type Step = fn(&TestRepo, &str);
    let merged: Step = |repo, work| drop(repo.git(&["merge", "-q", "--no-ff", "-m", "by hand", work]));
    let squashed: Step = |repo, work| {
        repo.git(&["merge", "-q", "--squash", work]);
        repo.git(&["commit", "-qm", "by hand"]);
    };
    let picked: Step = |repo, work| drop(repo.git(&["cherry-pick", work]));
    let resolved: Step = |repo, work| {
        let pick = repo.command("git", &repo.root()).args(["cherry-pick", work]).output().expect("it runs");
        assert!(!pick.status.success(), "it conflicts");
        repo.write("notes.txt", "one\ntwo\nBOTH\n");
        repo.git(&["add", "notes.txt"]);
        repo.git(&["-c", "core.editor=true", "cherry-pick", "--continue"]);
    };
    let rebased: Step = |repo, work| {
        let run = work.split('/').nth(3).expect("a run");
        commit(repo, "notes.txt", "ONE\ntwo\nthree\n");
        repo.write("notes.txt", "ONE\ntwo\nuncommitted\n");
        assert_eq!(repo.squad(&["merge", run, "--yes"]).code, 0);
        repo.git(&["checkout", "-q", "notes.txt"]);
        let aside = format!("squad/{run}");
        repo.git(&["rebase", "-q", "main", &aside]);
        repo.git(&["checkout", "-q", "main"]);
        repo.git(&["merge", "-q", "--ff-only", &aside]);
        repo.git(&["branch", "-q", "-D", &aside]);
    };
    let retyped: Step = |repo, _| {
        commit(repo, "api.txt", "api\n");
        commit(repo, "notes.txt", "one\ntwo\nADA\n");
    };
    let half: Step = |repo, _| commit(repo, "api.txt", "api\n");
    let other: Step = |repo, _| commit(repo, "notes.txt", "one\ntwo\nMINE\n");
    let nothing: Step = |_, _| {};
    let before: Step = |repo, _| commit(repo, "notes.txt", "one\ntwo\nMINE\n");
    let above: Step = |repo, _| {
        let text = repo.read("notes.txt");
        commit(repo, "notes.txt", &format!("zero\n{text}"));
    };
    let over: Step = |repo, _| commit(repo, "notes.txt", "something else\n");
    for (name, first, how, after, is_merged) in [
        ("merged", nothing, merged, nothing, true),
        ("merged, changed since", nothing, merged, over, true),
        ("squashed", nothing, squashed, nothing, true),
        ("squashed, changed elsewhere", nothing, squashed, above, true),
        ("picked", nothing, picked, nothing, true),
        ("picked, changed since", nothing, picked, over, true),
        ("picked and resolved", before, resolved, nothing, true),
        ("rebased", nothing, rebased, nothing, true),
        ("rebased, changed since", nothing, rebased, over, true),
        ("retyped", nothing, retyped, nothing, true),
        ("half of it", nothing, half, nothing, false),
        ("another change", nothing, other, nothing, false),
        ("nothing", nothing, nothing, nothing, false),
    ] {
        let repo = with_notes();
        let run = played(&repo, SCRIPT, "@ada changes it");
        let work = format!("refs/squad/runs/{run}/ada");
        for step in [first, how, after] {
            step(&repo, &work);
        }
        let clone = &status(&repo)["clones"][0];
        assert_eq!(clone["unmerged"] == true, !is_merged, "{name}: {clone}");
        let tidied = repo.squad(&["gc"]);
        assert_eq!(tidied.out.contains("is on no branch"), !is_merged, "{name}: {tidied}");
        assert_eq!(status(&repo)["not_merged"].is_null(), is_merged, "{name}");
        let tip = repo.git(&["rev-parse", "main"]);
        let merged = repo.squad(&["merge", &run, "--yes"]);
        if is_merged {
            let says = merged.err.contains("is merged already") || merged.err.contains("has all of it already");
            assert!(says, "{name}: {merged}");
            assert_eq!(repo.git(&["rev-parse", "main"]), tip, "{name}");
        } else {
            assert!(!merged.err.contains("already"), "{name}: {merged}");
        }
        repo.assert_sound();
    }
}

/// Runs whose clones are gone, each merged or not, and on which branch.
#[test]
fn every_run_with_work_on_no_branch_is_named() {
    let repo = with_notes();
    let writes = |name: &str| {
        format!(
            "[[turn]]\nagent = \"ada\"\nsteps = [{{ write = \"{name}\", text = \"x\\n\" }}, {{ say = \"Done.\" }}]\n"
        )
    };
    let runs: Vec<String> = (0..9)
        .map(|number| {
            repo.pass(60);
            let run = played(&repo, &writes(&format!("{number}.txt")), "@ada does it");
            match number {
                2 => assert_eq!(repo.squad(&["merge", &run, "--yes"]).code, 0),
                // On a branch that is not checked out.
                4 => drop(repo.git(&["branch", "later", &format!("refs/squad/runs/{run}/ada")])),
                _ => {}
            }
            run
        })
        .collect();
    let named = |numbers: &[usize]| -> Vec<Value> {
        numbers.iter().map(|number| json!({ "run": runs[*number], "agents": ["ada"] })).collect()
    };
    assert!(status(&repo)["not_merged"].is_null(), "their clones say it");
    let tidied = repo.squad(&["gc", "--force"]);
    assert_eq!(tidied.out.matches("is on no branch").count(), 7, "{tidied}");
    assert_eq!(status(&repo)["not_merged"], json!(named(&[8, 7, 6, 5, 3, 1, 0])));
    let page = repo.squad(&["status"]);
    assert_eq!(page.out.matches("gone; the work is not merged").count(), 5, "{page}");
    assert!(page.out.contains("2 runs more with work that is not merged"), "{page}");
    for number in [0, 1, 3, 5, 6, 7] {
        assert_eq!(repo.squad(&["merge", &runs[number], "--yes"]).code, 0);
    }
    assert_eq!(status(&repo)["not_merged"], json!(named(&[8])));
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(status(&repo)["not_merged"], json!(named(&[8, 7])));
}

/// Names with a newline, a tab, quotes and a leading dash, in what an agent adds, changes, removes and conflicts in.
#[cfg(unix)]
#[test]
fn odd_names_are_cloned_merged_and_returned_as_others_are() {
    let repo = with_notes();
    repo.git(&["config", "core.quotePath", "true"]);
    let old = ["a\nb.txt", "tab\there.txt", "\"quoted\".txt", "-dash.txt", "gone\nfile.txt", "deep\nfolder/in.txt"];
    old.iter().for_each(|path| repo.write(path, "one\ntwo\nthree\n"));
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "odd"]);
    let step = r#"for f in *b.txt tab*; do printf 'one\\ntwo\\nADA\\n' >\"$f\"; done; rm gone*; echo new >\"$(printf 'new\\nname.txt')\"; \
                 printf 'deep\\n' >\"$(ls -d deep*)/more.txt\""#;
    let step = step.replace("\\\n                 ", "");
    let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{step}\" }}, {{ say = \"Done.\" }}]\n");
    let run = played(&repo, &script, "@ada changes them");
    // One of them conflicts at first.
    commit(&repo, "a\nb.txt", "one\ntwo\nMINE\n");
    let planned = repo.squad(&["merge", &run, "--dry-run", "--json"]);
    let report: Value = serde_json::from_str(&planned.out).expect("JSON");
    assert_eq!(report["left"][0]["conflicts"], json!(["a\nb.txt"]), "{planned}");
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let merged = repo.squad(&["merge", &run, "--yes", "--json"]);
    let report: Value = serde_json::from_str(&merged.out).expect("JSON");
    assert!(report["aside"].is_null() && report["left"] == json!([]), "{merged}");
    assert_eq!(repo.read("a\nb.txt"), "one\ntwo\nADA\n");
    assert_eq!(repo.read("new\nname.txt"), "new\n");
    assert_eq!(repo.read("deep\nfolder/more.txt"), "deep\n");
    assert!(!repo.exists("gone\nfile.txt"));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert!(status(&repo)["not_merged"].is_null());
    assert!(repo.squad(&["gc"]).out.contains("1 clone of ended runs removed"));
    repo.assert_sound();
}

/// Where names differ only in case, as git is told or as the file system has it.
#[cfg(unix)]
#[test]
fn a_file_whose_case_changed_is_merged() {
    for (ignores, command, users) in [
        ("true", "git mv README.md readme.md", "true"),
        ("true", "mv README.md readme.md", "true"),
        ("true", "mv README.md readme.md; echo more >>readme.md", "true"),
        ("true", "mv Docs docs", "true"),
        ("false", "mv README.md readme.md", "true"),
        ("false", "mv Docs docs; echo more >>docs/a.md", "true"),
    ] {
        let repo = with_notes();
        repo.write("README.md", "readme\n");
        repo.write("Docs/a.md", "a\n");
        repo.git(&["add", "."]);
        repo.git(&["commit", "-qm", "files"]);
        repo.git(&["config", "core.ignoreCase", ignores]);
        let script = format!("[[turn]]\nagent = \"ada\"\nsteps = [{{ run = \"{command}\" }}, {{ say = \"Done.\" }}]\n");
        let run = played(&repo, &script, "@ada renames it");
        let mut shell = std::process::Command::new("sh");
        assert!(shell.args(["-c", users]).current_dir(repo.root()).status().expect("it runs").success());
        let merged = repo.squad(&["merge", &run, "--yes", "--json"]);
        let report: Value = serde_json::from_str(&merged.out).expect("JSON");
        assert!(report["aside"].is_null(), "{ignores} {command}: {merged}");
        let tracked = repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        let (old, new) = if command.contains("ocs") { ("Docs/a.md", "docs/a.md") } else { ("README.md", "readme.md") };
        assert!(tracked.contains(new) && !tracked.contains(old), "{ignores} {command}: {tracked}");
        let names: Vec<_> =
            std::fs::read_dir(repo.root()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        let (new, old) = (new.split('/').next().expect("a name"), old.split('/').next().expect("a name"));
        assert!(
            names.iter().any(|name| name == new) && !names.iter().any(|name| name == old),
            "{ignores} {command}: {names:?}"
        );
        assert_eq!(repo.git(&["-c", "core.ignoreCase=false", "status", "--porcelain"]), "", "{ignores} {command}");
        repo.assert_sound();
    }
}

/// Names of the repository's folder, and of squad's own.
#[cfg(unix)]
#[test]
fn clones_are_made_whatever_folders_are_called() {
    for (name, state) in
        [("a\nb", "state"), ("\"quoted\"", "state"), ("#hash", "#state"), ("a b", "a\nb"), ("ä", "s t")]
    {
        let mut repo = with_notes();
        let state = repo.home().join(state);
        repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
        let place = repo.root().with_file_name(name);
        std::fs::rename(repo.root(), &place).expect("it is ours");
        let script = place.with_file_name("script.toml");
        let looks = "{ run = \"cat notes.txt; git log --format=%s; git status --short\" }, ";
        std::fs::write(&script, SCRIPT.replace("steps = [", &format!("steps = [{looks}"))).expect("a script");
        let script = script.to_str().expect("UTF-8");
        let flags = ["orchestrate", "--script", script, "--permissions", "allow", "--isolation", "clone", "--json"];
        let output = repo.squad_in(&place, &[&flags[..], &["@ada does it"]].concat());
        assert_eq!(output.code, 0, "{name:?}: {output}");
        let events = TestRepo::events(&output);
        let ran = events.iter().find(|event| event["type"] == "tool.completed").expect("a command");
        let result = ran["result"].as_str().expect("text");
        assert_eq!(result.trim_end(), "one\ntwo\nthree\nnotes\nteam", "{name:?}");
        let merged = repo.squad_in(&place, &["merge", events[0]["run"].as_str().expect("an id"), "--yes"]);
        assert_eq!(merged.code, 0, "{name:?}: {merged}");
        assert!(std::fs::read_to_string(place.join("notes.txt")).expect("a file").contains("ADA"), "{name:?}");
    }
}
