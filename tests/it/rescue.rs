//! What is not committed is kept before squad changes a work tree, and given back.

use std::fs;

use expect_test::expect;

use crate::support::TestRepo;

const DECISIONS: &str =
    "# Decisions\n\n### 2026-01-02: Tar the hull\n\nBlack tar.\n\n### 2026-01-03: Ropes\n\nLater.\n";

/// A team with a decisions.md, and work of every kind in progress. `decisions import` has run over it.
fn imported() -> (TestRepo, Vec<String>) {
    let repo = TestRepo::with_small_team();
    repo.write(".squad/decisions.md", DECISIONS);
    repo.write(".gitignore", "ignored\n");
    for name in ["edited", "staged", "both", "removed"] {
        repo.write(&format!("src/{name}.txt"), "before\n");
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    repo.write("src/edited.txt", "edited\r\nin both ways\n");
    repo.write("src/staged.txt", "staged\n");
    repo.write("src/both.txt", "staged\n");
    repo.git(&["add", "src"]);
    repo.git(&["reset", "-q", "src/edited.txt"]);
    repo.write("src/both.txt", "edited\n");
    fs::remove_file(repo.root().join("src/removed.txt")).expect("it is there");
    repo.write("new folder/ä.txt", "untracked\n");
    repo.write("ignored", "not kept\n");
    let before = picture(&repo);
    let output = repo.squad(&["decisions", "import"]);
    assert_eq!(output.code, 0, "{output}");
    (repo, before)
}

fn picture(repo: &TestRepo) -> Vec<String> {
    [&["status", "--porcelain"][..], &["diff"], &["diff", "--cached"], &["stash", "list"]]
        .iter()
        .map(|arguments| repo.git(arguments))
        .collect()
}

fn id(repo: &TestRepo) -> String {
    let listed: serde_json::Value = serde_json::from_str(&repo.squad(&["rescue", "list", "--json"]).out).expect("JSON");
    listed["rescues"][0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_import_keeps_what_no_commit_holds() {
    let (repo, before) = imported();
    assert_eq!(picture(&repo), before, "and changes nothing of it");
    let id = id(&repo);
    let listed = repo.squad(&["rescue", "list"]).out.replace(&id, "ID");
    expect![[r#"
        ID  2026-01-05 09:00    5 files  before decisions import   `squad decisions import` changes .squad/decisions.md
    "#]]
    .assert_eq(&listed);
    let shown = repo.squad(&["rescue", "show", &id]).out;
    let contents: Vec<&str> = shown.lines().skip(6).collect();
    assert_eq!(
        contents,
        [
            "untracked  new folder/ä.txt",
            "changed    src/both.txt  (the staged content differs)",
            "changed    src/edited.txt",
            "removed    src/removed.txt",
            "changed    src/staged.txt",
        ]
    );
    assert!(shown.contains("branch   main\n"), "{shown}");
    repo.assert_sound();
    // It is a stash, as far as git is concerned.
    let commit = repo.git(&["rev-parse", &format!("refs/squad/rescue/{id}")]);
    assert!(repo.git(&["stash", "show", commit.trim()]).contains("src/edited.txt"));
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)", "refs/squad/rescue"]).lines().count(), 1);
}

#[test]
fn what_was_lost_comes_back_to_the_byte_and_what_is_there_is_kept_first() {
    let (repo, _) = imported();
    let id = id(&repo);
    repo.git(&["reset", "-q", "--hard"]);
    repo.git(&["clean", "-qfd"]);
    repo.write("src/staged.txt", "another\n");
    let before = picture(&repo);
    let rehearsal = repo.squad(&["rescue", "restore", &id, "-n"]);
    assert!(rehearsal.err.contains("src/staged.txt would be saved to a new rescue, then overwritten"), "{rehearsal}");
    assert_eq!(picture(&repo), before);
    let output = repo.squad(&["rescue", "restore", &id]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.err.contains("5 files restored"), "{output}");
    assert_eq!(repo.read("src/edited.txt"), "edited\r\nin both ways\n");
    assert_eq!(repo.read("src/both.txt"), "edited\n");
    assert_eq!(repo.read("src/staged.txt"), "staged\n");
    assert_eq!(repo.read("new folder/ä.txt"), "untracked\n");
    assert_eq!(repo.read(".squad/decisions.md"), DECISIONS, "what the command changed, too");
    assert!(repo.exists("src/removed.txt"), "nothing is removed");
    assert_eq!(repo.git(&["diff", "--cached"]), "", "the index stays");
    // The other text is in a rescue of its own.
    let saved: serde_json::Value = serde_json::from_str(&repo.squad(&["rescue", "list", "--json"]).out).expect("JSON");
    let rescues = saved["rescues"].as_array().expect("a list");
    let saved = rescues.iter().find(|rescue| rescue["command"] == "rescue restore").expect("it is kept");
    let other = saved["id"].as_str().expect("an id");
    let output = repo.squad(&["rescue", "restore", other, "src/staged.txt", "--to", "../other"]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(repo.read("../other/src/staged.txt"), "another\n");
    // Again there is nothing to do, and nothing more to keep.
    let again = repo.squad(&["rescue", "restore", &id]);
    assert!(again.err.starts_with("0 files restored;"), "{again}");
    assert_eq!(rescues.len(), 2);
    repo.assert_sound();
}

#[test]
fn the_index_and_the_whole_tree_are_read_back() {
    let (repo, _) = imported();
    let id = id(&repo);
    let restore = |arguments: &[&str]| {
        let output = repo.squad(&[&["rescue", "restore", &id], arguments].concat());
        assert_eq!(output.code, 0, "{output}");
    };
    restore(&["--staged", "--to", "../index"]);
    assert_eq!(repo.read("../index/src/both.txt"), "staged\n");
    restore(&[".", "--to", "../then"]);
    for (path, text) in [("src/both.txt", "edited\n"), (".squad/decisions.md", DECISIONS), (".gitignore", "ignored\n")]
    {
        assert_eq!(repo.read(&format!("../then/{path}")), text);
    }
    assert!(!repo.exists("../then/src/removed.txt") && !repo.exists("../then/ignored"));
    // Paths are those of the folder that one is in.
    let output = repo.squad_in(&repo.root().join("src"), &["rescue", "restore", &id, "both.txt", "--to", "../../one"]);
    assert_eq!((output.code, repo.read("../one/src/both.txt").as_str()), (0, "edited\n"), "{output}");
    let again = repo.squad(&["rescue", "restore", &id, "src/edited.txt", "--to", "../one"]);
    assert_eq!(again.code, 0, "{again}");
    repo.write("../one/src/edited.txt", "mine\n");
    let refused = repo.squad(&["rescue", "restore", &id, "src", "--to", "../one"]);
    assert!(refused.code == 1 && refused.err.contains("1 file there would be overwritten"), "{refused}");
    assert_eq!(repo.read("../one/src/edited.txt"), "mine\n");
    // The beginning of a name is no folder, and a file has nothing in it.
    for path in ["nothing", "new", "src/edited", "src/edited.txt/x"] {
        let unknown = repo.squad(&["rescue", "restore", &id, path]);
        assert!(unknown.code == 2 && unknown.err.contains(&format!("does not contain {path}\n")), "{unknown}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_programs_come_back_as_such_and_nothing_is_written_through_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let repo = TestRepo::with_small_team();
    repo.write(".squad/decisions.md", DECISIONS);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    repo.write("tool/run", "#!/bin/sh\n");
    fs::set_permissions(repo.root().join("tool/run"), fs::Permissions::from_mode(0o755)).expect("ours");
    symlink("run", repo.root().join("tool/link")).expect("a link");
    assert_eq!(repo.squad(&["decisions", "import"]).code, 0);
    let id = id(&repo);
    fs::remove_dir_all(repo.root().join("tool")).expect("it is there");
    fs::create_dir(repo.root().join("../elsewhere")).expect("a folder");
    symlink("../elsewhere", repo.root().join("tool")).expect("a link");
    let refused = repo.squad(&["rescue", "restore", &id, "tool"]);
    assert!(refused.code == 1 && refused.err.contains("is a symbolic link"), "{refused}");
    assert_eq!(fs::read_dir(repo.root().join("../elsewhere")).expect("a folder").count(), 0);
    fs::remove_file(repo.root().join("tool")).expect("a link");
    let output = repo.squad(&["rescue", "restore", &id, "tool"]);
    assert_eq!(output.code, 0, "{output}");
    let mode = fs::metadata(repo.root().join("tool/run")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    assert_eq!(fs::read_link(repo.root().join("tool/link")).expect("a link").to_str(), Some("run"));
}

/// Text with a secret never reaches the object database, so it is left out; and then it is not overwritten either.
#[test]
fn secrets_are_left_out_and_not_overwritten() {
    let repo = TestRepo::with_small_team();
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    repo.write(".squad/decisions.md", DECISIONS);
    repo.write("notes.txt", "plain\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "files"]);
    repo.write("notes.txt", "draft\n");
    assert_eq!(repo.squad(&["decisions", "import"]).code, 0);
    let id = id(&repo);
    repo.write("notes.txt", &format!("token {secret}\n"));
    repo.write(".env", &format!("GITHUB_TOKEN={secret}\n"));
    let refused = repo.squad(&["rescue", "restore", &id]);
    assert!(refused.code == 1 && refused.err.contains("it holds what looks like a secret"), "{refused}");
    assert!(repo.read("notes.txt").contains(&secret));
    let all = repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
    assert!(!all.contains(&secret));
    assert!(!repo.squad(&["rescue", "list"]).out.contains(&secret));
}

#[test]
fn rescues_are_given_up_only_when_asked() {
    let (repo, _) = imported();
    let id = id(&repo);
    assert_eq!(repo.squad(&["gc"]).code, 0);
    assert_eq!(repo.squad(&["rescue", "drop"]).code, 2);
    assert!(repo.squad(&["rescue", "drop", "--before", "2026-01-05"]).err.starts_with("0 rescues"));
    assert_eq!(repo.squad(&["rescue", "list"]).out.lines().count(), 1);
    let output = repo.squad(&["rescue", "drop", &id[..8]]);
    assert_eq!(output.to_string(), format!("{id}\n--- stderr\n1 rescue deleted.\n--- exit 0\n"));
    expect![[r#"
        --- stderr
        There are no rescues: squad has not changed any of your files here.
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["rescue", "list"]).to_string());
    assert_eq!(repo.squad(&["rescue", "show", &id]).code, 2);
}
