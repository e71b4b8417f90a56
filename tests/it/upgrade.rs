//! Upgrades over several releases of the templates, with edits by the team in between.

use expect_test::expect;
use serde_json::Value;
use squad::Release;

use crate::support::{Output, TestRepo};

const TEAM: &str = "# Team\n\n| Name | Role | Charter |\n|---|---|---|\n| Ann | Dev | .squad/agents/ann/charter.md |\n| Bob | Tester | .squad/agents/bob/charter.md |\n";
const ROUTING: &str = "# Routing\n\n| Work Type | Route To | Examples |\n|---|---|---|\n| Code | Ann | parser |\n\nRules.\n\n| Work Type | Route To | Examples |\n|---|---|---|\n| Tests | Bob | coverage |\n";

fn release(number: u32, files: &[(&str, &str)]) -> Release {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    Release { number, files: files.collect() }
}

/// Three releases: the second changes rules, adds a file and removes one; the third changes a charter.
pub(crate) fn releases() -> [Release; 3] {
    let routing = ROUTING.replace("parser", "parser, lexer");
    [
        release(
            1,
            &[
                ("team.md", TEAM),
                ("routing.md", ROUTING),
                ("agents/ann/charter.md", "# Ann — Dev\n\nFast.\n\nCareful.\n\nKind.\n"),
                ("agents/bob/charter.md", "# Bob — Tester\n\nExact.\n"),
                ("old.md", "Old.\n"),
                ("notes.md", "Notes.\n"),
            ],
        ),
        release(
            2,
            &[
                ("team.md", &TEAM.replace("# Team", "# Squad Team")),
                ("routing.md", &routing),
                ("agents/ann/charter.md", "# Ann — Dev\n\nFaster.\n\nCareful.\n\nKind.\n"),
                ("agents/bob/charter.md", "# Bob — Tester\n\nExact.\n"),
                ("agents/kim/charter.md", "# Kim — Docs\n"),
                ("new.md", "New.\n"),
                ("notes.md", "Notes, more of them.\n"),
            ],
        ),
        release(
            3,
            &[
                ("team.md", TEAM),
                ("routing.md", &routing.replace("coverage", "coverage, fuzzing")),
                ("agents/ann/charter.md", "# Ann — Dev\n\nFastest.\n\nCareful.\n\nKind.\n"),
                ("agents/bob/charter.md", "# Bob — Tester\n\nExact and patient.\n"),
                ("new.md", "Newer.\n"),
                ("notes.md", "Notes, more of them.\n"),
            ],
        ),
    ]
}

/// A team of the first release.
pub(crate) fn first() -> TestRepo {
    let mut repo = TestRepo::empty();
    to(&mut repo, 1);
    assert_eq!(repo.squad(&["init"]).code, 0);
    repo
}

/// From now on squad installs this release.
pub(crate) fn to(repo: &mut TestRepo, release: usize) {
    repo.releases = releases()[..release].to_vec();
}

fn edit(repo: &TestRepo, path: &str, old: &str, new: &str) {
    let text = repo.read(path);
    assert!(text.contains(old), "{text}");
    repo.write(path, &text.replace(old, new));
    repo.git(&["commit", "--quiet", "--all", "--message=edit"]);
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect(&output.err)
}

fn tree(repo: &TestRepo) -> String {
    repo.git(&["rev-parse", "HEAD^{tree}"])
}

#[test]
fn edits_are_kept_through_three_releases() {
    let mut repo = first();
    edit(&repo, ".squad/team.md", "| Bob | Tester |", "| Bob | Grand tester |");
    edit(&repo, ".squad/routing.md", "coverage", "coverage, our own words");
    edit(&repo, ".squad/agents/ann/charter.md", "Kind.", "Kinder.");
    let team = repo.read(".squad/team.md");
    to(&mut repo, 2);
    let status = repo.squad(&["status"]);
    assert!(status.out.contains("! waits      an upgrade from release 1 to 2 is due   squad upgrade"), "{status}");
    let output = repo.squad(&["upgrade"]);
    let commit = repo.git(&["rev-parse", "--short=10", "HEAD"]);
    expect![[r#"
        changed  .squad/agents/ann/charter.md
        added    .squad/new.md
        changed  .squad/notes.md
        removed  .squad/old.md
        changed  .squad/routing.md
        changed  .squad/manifest.toml
        --- stderr
        Upgraded 6 files from release 1 to 2, committed in COMMIT.
        --- exit 0
    "#]]
    .assert_eq(&output.to_string().replace(commit.trim(), "COMMIT"));
    assert_eq!(repo.read(".squad/agents/ann/charter.md"), "# Ann — Dev\n\nFaster.\n\nCareful.\n\nKinder.\n");
    assert!(
        repo.read(".squad/routing.md").contains("parser, lexer")
            && repo.read(".squad/routing.md").contains("our own words")
    );
    assert_eq!((repo.read(".squad/team.md"), repo.git(&["status", "--porcelain"])), (team.clone(), String::new()));

    edit(&repo, ".squad/routing.md", ", our own words", "");
    to(&mut repo, 3);
    assert_eq!(repo.squad(&["upgrade"]).code, 0);
    assert_eq!(repo.read(".squad/agents/ann/charter.md"), "# Ann — Dev\n\nFastest.\n\nCareful.\n\nKinder.\n");
    assert!(repo.read(".squad/routing.md").contains("coverage, fuzzing"));
    assert_eq!((repo.read(".squad/new.md"), repo.read(".squad/team.md")), ("Newer.\n".to_owned(), team));

    let head = repo.git(&["rev-parse", "HEAD"]);
    let again = repo.squad(&["upgrade"]);
    assert!(
        again.code == 0 && again.err.contains("nothing to upgrade: the team's files are up to release 3"),
        "{again}"
    );
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"])), (head, String::new()));
    let before = repo.git(&["rev-parse", "HEAD~1^{tree}"]);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(tree(&repo), before);
    repo.assert_sound();
}

#[test]
fn two_releases_at_once_are_one_upgrade() {
    let mut repo = first();
    to(&mut repo, 3);
    assert_eq!(repo.squad(&["upgrade"]).code, 0);
    for (path, text) in releases()[2].files.iter().filter(|(path, _)| path != "team.md") {
        assert_eq!(repo.read(&format!(".squad/{path}")).as_bytes(), text, "{path}");
    }
    assert_eq!((repo.read(".squad/team.md"), repo.exists(".squad/agents/kim")), (TEAM.to_owned(), false));
}

#[test]
fn a_conflict_keeps_the_users_file_and_writes_squads_version_next_to_it() {
    let mut repo = first();
    edit(&repo, ".squad/agents/ann/charter.md", "Fast.", "Slow.");
    let mine = repo.read(".squad/agents/ann/charter.md");
    to(&mut repo, 2);
    let shown = repo.squad(&["upgrade", "--dry-run"]);
    assert!(
        shown.err.contains("charter.md would stay as it is") && !repo.exists(".squad/agents/ann/charter.md.new"),
        "{shown}"
    );
    let output = repo.squad(&["upgrade"]);
    assert!(output.code == 0 && output.err.contains(".squad/agents/ann/charter.md stays as it is"), "{output}");
    assert_eq!(repo.read(".squad/agents/ann/charter.md"), mine);
    assert_eq!(repo.read(".squad/agents/ann/charter.md.new"), "# Ann — Dev\n\nFaster.\n\nCareful.\n\nKind.\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? .squad/agents/ann/charter.md.new\n");
    assert!(repo.squad(&["upgrade"]).err.contains("nothing to upgrade"));

    // The next version replaces the previous one, but never a file of the user's.
    to(&mut repo, 3);
    let dry = repo.squad(&["upgrade", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry}");
    repo.write(".squad/agents/ann/charter.md.new", "mine\n");
    let head = repo.git(&["rev-parse", "HEAD"]);
    let refused = repo.squad(&["upgrade"]);
    assert!(refused.code == 1 && refused.err.contains("charter.md.new"), "{refused}");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    std::fs::remove_file(repo.root().join(".squad/agents/ann/charter.md.new")).expect("it is there");
    assert_eq!(repo.squad(&["upgrade"]).code, 0);
    assert!(repo.read(".squad/agents/ann/charter.md.new").contains("Fastest."));
}

#[test]
fn the_dry_run_equals_the_real_run() {
    for number in [2, 3] {
        let (mut shown, mut real) = (first(), first());
        for repo in [&mut shown, &mut real] {
            edit(repo, ".squad/routing.md", "Rules.", "Our rules.");
            edit(repo, ".squad/notes.md", "Notes.", "Mine.");
            to(repo, number);
        }
        let before = shown.git(&["status", "--porcelain"]);
        let dry = json(&shown.squad(&["upgrade", "--dry-run", "--json"]));
        let patch = shown.squad(&["upgrade", "--diff"]);
        assert_eq!(shown.git(&["status", "--porcelain"]), before);
        let done = json(&real.squad(&["upgrade", "--json"]));
        for key in ["from", "to", "files", "conflicts", "left"] {
            assert_eq!(dry[key], done[key], "{key}");
        }
        assert_eq!(done["conflicts"][0]["path"], ".squad/notes.md", "{done}");
        shown.write("../change.patch", &patch.out);
        shown.git(&["apply", "--index", "../change.patch"]);
        assert_eq!(shown.git(&["write-tree"]), tree(&real));
    }
}

/// A base that is in no release this squad has: what the team made of the file decides.
#[test]
fn a_file_from_an_unknown_text_is_never_overwritten() {
    const PATH: &str = ".squad/agents/bob/charter.md";
    const OLD: &str = "# Bob — Tester\n\nExact.\n";
    const NEW: &str = "# Bob — Tester\n\nExact and patient.\n";
    const FOREIGN: &str = "# Bob — Tester\n\nOf a squad nobody has.\n";
    for (base, in_history, ours, expected, is_conflict) in [
        // Its text is nowhere.
        (FOREIGN, false, OLD, OLD, true),
        (FOREIGN, false, NEW, NEW, false),
        (FOREIGN, false, "ours\n", "ours\n", true),
        (FOREIGN, false, &NEW.replace('\n', "\r\n"), &NEW.replace('\n', "\r\n"), false),
        // It is the file itself, or stands in the branch's history.
        (FOREIGN, false, FOREIGN, NEW, false),
        (FOREIGN, true, "ours\n", "ours\n", true),
        (FOREIGN, true, &FOREIGN.replace("Tester", "Slow Tester"), &NEW.replace("Tester", "Slow Tester"), false),
        // Known, for comparison.
        (OLD, false, OLD, NEW, false),
        (OLD, false, "ours\n", "ours\n", true),
    ] {
        for writes in [&["upgrade"][..], &["upgrade", "--no-commit"]] {
            let mut repo = first();
            if in_history {
                repo.write(PATH, base);
                repo.git(&["commit", "--quiet", "--all", "--message=installed"]);
            }
            repo.write(PATH, ours);
            let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned();
            let manifest = repo.read(".squad/manifest.toml");
            assert!(manifest.contains(&hash(OLD)), "{manifest}");
            repo.write(".squad/manifest.toml", &manifest.replace(&hash(OLD), &hash(base)));
            repo.git(&["commit", "--quiet", "--all", "--allow-empty", "--message=ours"]);
            to(&mut repo, 3);
            let output = repo.squad(writes);
            assert_eq!(output.code, 0, "{output}");
            assert_eq!(repo.read(PATH), expected, "{base:?} {in_history} {ours:?} {writes:?}: {output}");
            assert_eq!(repo.exists(&format!("{PATH}.new")), is_conflict, "{base:?} {ours:?}: {output}");
            if is_conflict {
                assert_eq!(repo.read(&format!("{PATH}.new")), NEW);
            }
        }
    }
}

#[test]
fn deleted_moved_and_rewritten_files_stay_so() {
    let mut repo = first();
    repo.git(&["rm", "--quiet", ".squad/notes.md"]);
    repo.git(&["commit", "--quiet", "--message=gone"]);
    edit(&repo, ".squad/old.md", "Old.", "Old, and ours.");
    assert_eq!(repo.squad(&["agents", "rename", "Ann", "Zoe"]).code, 0);
    repo.write(".squad/new.md", "ours\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "--quiet", "--message=ours"]);
    to(&mut repo, 3);
    let output = repo.squad(&["upgrade"]);
    assert_eq!(output.code, 0, "{output}");
    for path in [".squad/notes.md", ".squad/old.md"] {
        assert!(output.err.contains(&format!("{path} is yours now")), "{output}");
    }
    assert_eq!((repo.exists(".squad/notes.md"), repo.read(".squad/new.md")), (false, "ours\n".to_owned()));
    assert_eq!(repo.read(".squad/old.md"), "Old, and ours.\n");
    let charter = repo.read(".squad/agents/zoe/charter.md");
    assert!(charter.starts_with("# Zoe — Dev") && charter.contains("Fastest."), "{charter}");
    assert!(repo.squad(&["upgrade"]).err.contains("nothing to upgrade"));
}

#[test]
fn the_teams_line_endings_are_kept() {
    let mut repo = first();
    let crlf = repo.read(".squad/agents/ann/charter.md").replace('\n', "\r\n").replace("Kind.", "Kinder.");
    repo.write(".squad/agents/ann/charter.md", &crlf);
    repo.write(".squad/routing.md", &repo.read(".squad/routing.md").replace('\n', "\r\n"));
    repo.git(&["commit", "--quiet", "--all", "--message=crlf"]);
    to(&mut repo, 2);
    assert_eq!(repo.squad(&["upgrade"]).code, 0);
    assert_eq!(repo.read(".squad/agents/ann/charter.md"), crlf.replace("Fast.", "Faster."));
    assert!(repo.read(".squad/routing.md").contains("| parser, lexer |\r\n"));
}

#[test]
fn a_team_of_a_newer_squad_is_read_but_not_changed() {
    let mut repo = first();
    to(&mut repo, 3);
    assert_eq!(repo.squad(&["upgrade"]).code, 0);
    to(&mut repo, 1);
    let output = repo.squad(&["upgrade"]);
    expect![[r#"
        --- stderr
        error: .squad/manifest.toml: a newer squad wrote these files: release 3; this one supports release 1
        hint: upgrade squad itself; until then it reads the team but does not change these files
        --- exit 3
    "#]]
    .assert_eq(&output.to_string());
    assert_eq!(repo.squad(&["agents"]).code, 0);
    assert!(repo.squad(&["status"]).out.contains("a newer squad wrote its files"));
    let manifest = repo.read(".squad/manifest.toml");
    for (bad, said) in [
        (manifest.replace("format = 1", "format = 2"), "format 2"),
        (manifest.replace("release = 3", "release = x"), ".squad/manifest.toml:3"),
        ("<<<<<<< ours\n".to_owned(), ".squad/manifest.toml:1"),
    ] {
        repo.write(".squad/manifest.toml", &bad);
        repo.git(&["commit", "--quiet", "--all", "--message=bad"]);
        let output = repo.squad(&["upgrade"]);
        assert!(output.code == 3 && output.err.contains(said), "{output}");
        let doctor = repo.squad(&["doctor"]);
        assert!(doctor.out.contains("manifest") || doctor.err.contains("manifest"), "{doctor}");
    }
}

#[test]
fn a_team_without_a_manifest_is_not_upgraded() {
    let repo = TestRepo::with_small_team();
    let output = repo.squad(&["upgrade"]);
    assert!(output.code == 0 && output.err.contains("has no manifest, so all its files are its own"), "{output}");
    let repo = TestRepo::with_team();
    assert!(repo.squad(&["upgrade"]).err.contains("nothing to upgrade: the team's files are up to release 1"));
}

#[test]
fn the_users_work_stays_unchanged() {
    let mut repo = first();
    repo.write("code.txt", "staged\n");
    repo.git(&["add", "code.txt"]);
    repo.write("code.txt", "unstaged\n");
    repo.write(".squad/agents/ann/history.md", "mine\n");
    let before = repo.git(&["status", "--porcelain"]);
    to(&mut repo, 2);
    assert_eq!(repo.squad(&["upgrade"]).code, 0);
    assert_eq!(repo.git(&["status", "--porcelain"]), before);
    repo.write(".squad/routing.md", "dirty\n");
    to(&mut repo, 3);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let output = repo.squad(&["upgrade"]);
    assert!(
        output.code == 1 && output.err.contains(".squad/routing.md has changes that are not committed"),
        "{output}"
    );
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.read(".squad/new.md")), (head, "New.\n".to_owned()));
    repo.git(&["checkout", "--quiet", ".squad/routing.md"]);
    let output = repo.squad(&["upgrade", "--no-commit"]);
    assert!(output.code == 0 && repo.read(".squad/new.md") == "Newer.\n", "{output}");
    assert!(repo.git(&["status", "--porcelain"]).contains(" M .squad/routing.md"));
}

/// A manifest comes with the repository, so it is untrusted input.
#[test]
fn a_manifest_with_a_path_outside_the_team_is_refused() {
    let mut repo = first();
    let manifest = repo.read(".squad/manifest.toml").replace("\"old.md\"", "\"../old.md\"");
    assert!(manifest.contains("../old.md"), "{manifest}");
    repo.write(".squad/manifest.toml", &manifest);
    repo.write("old.md", "Old.\n");
    repo.git(&["commit", "--quiet", "--all", "--message=manifest"]);
    to(&mut repo, 3);
    for arguments in [&["upgrade"][..], &["upgrade", "--no-commit"]] {
        let output = repo.squad(arguments);
        assert!(output.code == 3 && output.err.contains("`../old.md` is not in the team's folder"), "{output}");
    }
    assert_eq!(repo.read("old.md"), "Old.\n");
}

/// In a linked work tree, its branch is upgraded, and the main one's is not.
#[test]
fn a_linked_work_tree_upgrades_its_own_branch() {
    let mut repo = first();
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    to(&mut repo, 2);
    let main = repo.git(&["rev-parse", "HEAD"]);
    let side = repo.root().join("../side");
    let shown = repo.squad_in(&side, &["upgrade", "--diff"]);
    assert!(shown.code == 0 && shown.out.contains("+Notes, more of them."), "{shown}");
    let upgraded = repo.squad_in(&side, &["upgrade"]);
    assert_eq!(upgraded.code, 0, "{upgraded}");
    let notes = |folder: &std::path::Path| std::fs::read_to_string(folder.join(".squad/notes.md")).expect("a file");
    assert_eq!((notes(&side).as_str(), notes(&repo.root()).as_str()), ("Notes, more of them.\n", "Notes.\n"));
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.git(&["status", "--porcelain"])), (main, String::new()));
    assert_eq!(repo.git(&["rev-parse", "side~1"]), repo.git(&["rev-parse", "main"]));
    repo.assert_sound();
}
