//! What git ignores lies over a clone: its programs have it, may change it, and the user's stays as it is. On a system
//! without the level `full`, these stories end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::clones::with_state;
use crate::sandbox::{World, results};
use crate::support::TestRepo;

/// A library of which agents change a part, two megabytes that they do not, and a file that the sandbox hides.
fn repo() -> Option<TestRepo> {
    World::at("full")?;
    let mut repo = TestRepo::empty_on_disk();
    let small = TestRepo::with_small_team();
    for path in [".squad/team.md", ".squad/routing.md"] {
        repo.write(path, &small.read(path));
    }
    repo.write(".gitignore", "deps/\nlink\n.env*\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "team"]);
    repo.write("deps/lib.txt", "library\n");
    repo.write("deps/sub/one.txt", "one\n");
    repo.write("deps/large.bin", &"x".repeat(2 << 20));
    repo.write("deps/.env.local", "SECRET\n");
    std::os::unix::fs::symlink("sub/one.txt", repo.root().join("deps/link")).expect("a link");
    let state = repo.home().join("state");
    repo.variables.insert("XDG_STATE_HOME".into(), state.display().to_string());
    repo.variables.insert("SQUAD_SANDBOX_LEVEL".into(), "full".into());
    Some(repo)
}

/// What is in a folder: kind, content or target, and the time of the last change of each.
fn content(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let facts = path.symlink_metadata().expect("facts");
        let bytes = match () {
            () if facts.is_symlink() => fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes(),
            () if facts.is_dir() => {
                open.extend(fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
                Vec::new()
            }
            () => fs::read(&path).expect("a file"),
        };
        found.insert(path, (facts.mode(), bytes, facts.modified().expect("a time")));
    }
    found
}

const USER: &str = "../home/config/squad/config.toml";
const FLAGS: [&str; 5] = ["--permissions", "allow", "--json", "--isolation", "clone"];

fn rehearse(repo: &TestRepo, turns: &[(&str, &[&str], bool)], more: &[&str]) -> crate::support::Output {
    let turn = |(agent, commands, ends): &(&str, &[&str], bool)| {
        let steps: String = commands.iter().map(|command| format!("{{ run = {command:?} }}, ")).collect();
        let end = if *ends { "{ say = \"Done.\" }" } else { "{ fail = \"enough\" }" };
        format!("[[turn]]\nagent = \"{agent}\"\nsteps = [{steps}{end}]\n")
    };
    repo.rehearse(&turns.iter().map(turn).collect::<String>(), &[&FLAGS[..], more].concat())
}

#[test]
fn ignored_folders_lie_over_a_clone_and_the_users_stay_as_they_are() {
    let Some(repo) = repo() else { return };
    repo.write(USER, "[isolation]\nbring = [\"deps\"]\nsetup = [\"sh\", \"-c\", \"echo set up > deps/made.txt\"]\n");
    let deps = repo.root().join("deps");
    let before = content(&deps);
    let ada: &[&str] = &[
        "cat deps/made.txt deps/link; cat deps/.env.local 2>/dev/null || echo hidden",
        "echo ADA >> deps/lib.txt; rm -r deps/sub; mkdir deps/sub; echo two > deps/sub/two.txt; ln -sf /etc deps/link",
        "cat deps/lib.txt; ls deps/sub; git status --short; readlink deps/link",
    ];
    let bob: &[&str] = &["cat deps/lib.txt deps/sub/one.txt", "echo bob > bob.txt"];
    let again: &[&str] = &["cat deps/lib.txt; ls deps/sub; ls -A deps"];
    let turns = [("ada", ada, false), ("bob", bob, true), ("ada", again, true)];
    let output = rehearse(&repo, &turns, &["@ada and @bob look"]);
    assert_eq!(output.code, 1, "{output}");
    let ran = results(&output);
    for expected in ["set up\\none\\nhidden", "library\\nADA\\ntwo.txt\\n/etc", "library\\none\\n"] {
        assert!(ran.contains(expected), "{expected}: {ran}");
    }
    assert!(!output.out.contains("SECRET"), "{output}");
    assert!(output.out.contains("not in the clone, because the sandbox hides it: deps/.env.local"), "{output}");
    assert!(!output.out.contains("is copied into the clone"), "{output}");
    assert_eq!(content(&deps), before);

    // Neither is it anybody's work, nor does it count for what a clone takes.
    let run = TestRepo::events(&output)[0]["run"].as_str().expect("an id").to_owned();
    assert_eq!(repo.git(&["show", "--name-only", "--format=", &format!("refs/squad/runs/{run}/bob")]), "bob.txt\n");
    let status: serde_json::Value = serde_json::from_str(&repo.squad(&["status", "--json"]).out).expect("JSON");
    let clones = status["clones"].as_array().expect("clones");
    assert_eq!(clones.len(), 2, "{status}");
    assert!(clones.iter().all(|clone| clone["bytes"].as_u64().expect("a size") < 1 << 20), "{status}");

    // The clone goes on as its agent left it.
    let resumed = rehearse(&repo, &turns, &["--resume", &run]);
    assert_eq!(resumed.code, 0, "{resumed}");
    let ran = results(&resumed);
    assert!(ran.contains("library\\nADA\\ntwo.txt\\nlarge.bin\\nlib.txt\\nlink\\nmade.txt\\nsub"), "{ran}");
    assert!(!resumed.out.contains("clone.prepared"), "{resumed}");
    assert_eq!(content(&deps), before);

    let tidied = repo.squad(&["gc"]);
    assert!(tidied.out.contains("2 clones of ended runs removed"), "{tidied}");
    assert_eq!(content(&deps), before);
    let left = fs::read_dir(repo.home().join("state/squad/clones")).expect("a folder").flatten();
    assert!(
        left.flat_map(|entry| fs::read_dir(entry.path()).expect("a folder").flatten())
            .all(|entry| entry.path().is_file())
    );
}

/// A run goes on with a sandbox that has no layers: the clone is made ready again, by copies.
#[test]
fn a_clone_whose_layers_cannot_be_had_again_is_made_ready_again() {
    for level in ["files", "rules"] {
        let Some(mut repo) = repo() else { return };
        repo.write(
            USER,
            "[isolation]\nbring = [\"deps\"]\nsetup = [\"sh\", \"-c\", \"echo set up > deps/made.txt\"]\n",
        );
        let before = content(&repo.root().join("deps"));
        let first: &[&str] = &["echo ADA >> deps/lib.txt"];
        let again: &[&str] = &["cat deps/lib.txt deps/made.txt"];
        let turns = [("ada", first, false), ("ada", again, true)];
        let output = rehearse(&repo, &turns, &["@ada looks"]);
        let run = TestRepo::events(&output)[0]["run"].as_str().expect("an id").to_owned();
        repo.variables.insert("SQUAD_SANDBOX_LEVEL".into(), level.into());
        let resumed = rehearse(&repo, &turns, &["--resume", &run]);
        assert!(resumed.code == 0 && resumed.out.contains("clone.prepared"), "{level}: {resumed}");
        assert!(results(&resumed).contains("library\\nset up"), "{level}: {resumed}");
        assert_eq!(content(&repo.root().join("deps")), before);
    }
}

/// What cannot be a layer is copied as before: a file, a link, a folder with tracked files; and what lies in a layer is in it.
#[test]
fn what_cannot_be_a_layer_is_copied() {
    let Some(repo) = repo() else { return };
    repo.write(".gitignore", "deps/\nmixed/\nlink\none.txt\n.env*\n");
    repo.write("mixed/tracked.txt", "tracked\n");
    repo.git(&["add", "-f", "mixed/tracked.txt", ".gitignore"]);
    repo.git(&["commit", "-qm", "mixed"]);
    repo.write("mixed/other.txt", "other\n");
    repo.write("one.txt", "file\n");
    std::os::unix::fs::symlink("deps", repo.root().join("link")).expect("a link");
    repo.write(
        USER,
        "[isolation]\nbring = [\"deps/sub\", \"deps\", \"mixed\", \"link\", \"one.txt\", \"not-there\"]\n",
    );
    let ada: &[&str] = &[
        "cat mixed/* one.txt link/sub/one.txt deps/sub/one.txt",
        "echo changed > mixed/tracked.txt; echo changed > deps/sub/one.txt; cat link/sub/one.txt",
    ];
    let output = rehearse(&repo, &[("ada", ada, true)], &["@ada looks"]);
    assert_eq!(output.code, 0, "{output}");
    let ran = results(&output);
    assert!(ran.contains("other\\ntracked\\nfile\\none\\none") && ran.contains("\"changed"), "{ran}");
    let run = TestRepo::events(&output)[0]["run"].as_str().expect("an id").to_owned();
    assert_eq!(repo.git(&["show", &format!("refs/squad/runs/{run}/ada:mixed/tracked.txt")]), "changed\n");
    assert_eq!(repo.read("deps/sub/one.txt") + &repo.read("mixed/tracked.txt"), "one\ntracked\n");
}

/// Patterns × what of the user's files a clone gets, with and without approval.
#[test]
fn files_that_worktreeinclude_names_are_copied_once_that_is_approved() {
    let files: [(&str, &str); 6] = [
        ("local.toml", "local"),
        ("conf/a.key", "a"),
        ("conf/deep/b.key", "b"),
        ("conf/.env", "SECRET"),
        ("plain.txt", "plain"),
        ("other.log", "log"),
    ];
    for (patterns, expected) in [
        ("local.toml\n", "local.toml"),
        ("# a comment\n\n*.key\n!b.key\n", "conf/a.key"),
        ("/conf/\n", "conf/a.key conf/deep/b.key"),
        ("*.log\nplain.txt\ntracked.txt\nlink\n", "other.log"),
        ("../*\n/etc/passwd\n", ""),
    ] {
        let mut repo = with_state();
        repo.write(".gitignore", "local.toml\nconf/\n*.log\nlink\n");
        repo.write(".worktreeinclude", patterns);
        repo.write("tracked.txt", "tracked\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "start"]);
        files.iter().for_each(|(path, text)| repo.write(path, text));
        std::os::unix::fs::symlink("/etc/hostname", repo.root().join("link")).expect("a link");
        repo.variables.insert("SQUAD_SANDBOX_LEVEL".into(), "files".into());
        let look: &[&str] = &["git ls-files -o -i --exclude-standard"];
        let refused = rehearse(&repo, &[("ada", look, true)], &["@ada looks"]);
        assert_eq!(refused.code, 0, "{refused}");
        if refused.out.contains("sandbox.weaker") {
            return;
        }
        let said = "clones get nothing of what `.worktreeinclude` names";
        assert_eq!(refused.out.matches(said).count(), 1, "{patterns}: {refused}");
        assert!(results(&refused).lines().all(|result| result == "\"\""), "{patterns}: {refused}");

        assert_eq!(repo.squad(&["trust", "approve", ".worktreeinclude", "--yes"]).code, 0);
        let output = rehearse(&repo, &[("ada", look, true)], &["@ada looks"]);
        let ran = results(&output);
        let got: Vec<&str> = ran.trim().trim_matches('"').split("\\n").filter(|path| !path.is_empty()).collect();
        assert_eq!(got.join(" "), expected, "{patterns}: {output}");
        assert!(!output.out.contains(said), "{output}");
        let names_hidden = output.out.contains("because the sandbox hides it: conf/.env");
        assert_eq!(names_hidden, patterns.starts_with("/conf"), "{patterns}: {output}");

        // Another text is not what was approved; and what the user brings stands in its place.
        repo.write(".worktreeinclude", &format!("{patterns}*.new\n"));
        let changed = rehearse(&repo, &[("ada", look, true)], &["@ada looks"]);
        assert_eq!(changed.out.matches(said).count(), 1, "{patterns}: {changed}");
        repo.write(USER, "[isolation]\nbring = [\"other.log\"]\n");
        let own = rehearse(&repo, &[("ada", look, true)], &["@ada looks"]);
        assert!(results(&own).contains("other.log") && !own.out.contains(said), "{patterns}: {own}");
    }
}

/// More files, larger ones and deeper ones than a clone gets by patterns.
#[test]
fn worktreeinclude_has_bounds() {
    let repo = with_state();
    repo.write(".gitignore", "many/\ndeep/\n");
    repo.write(".worktreeinclude", "many/\ndeep/\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "start"]);
    (0..2_100).for_each(|number| repo.write(&format!("many/{number}"), "x"));
    repo.write(&format!("deep/{}file", "d/".repeat(40)), "x");
    assert_eq!(repo.squad(&["trust", "approve", ".worktreeinclude", "--yes"]).code, 0);
    let look: &[&str] = &["find many -type f | wc -l; ls deep 2>/dev/null; true"];
    let output = rehearse(&repo, &[("ada", look, true)], &["@ada looks"]);
    // The deep one comes first.
    assert!(results(&output).contains("1999\\n\""), "{output}");
    assert!(
        output.out.contains("102 files that `.worktreeinclude` names are not in the clone, such as deep/"),
        "{output}"
    );
}
