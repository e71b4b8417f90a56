//! Properties of every upgrade, whatever edits were made to the files before.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use crate::support::{Output, TestRepo, number_of};
use crate::upgrade::{first, to};

const PATHS: [&str; 9] = [
    "team.md",
    "routing.md",
    "agents/ann/charter.md",
    "agents/bob/charter.md",
    "old.md",
    "notes.md",
    "own.md",
    "../.claude/agents/ann.md",
    "../AGENTS.md",
];

/// An edit of one file of the team.
#[derive(Clone, Debug)]
enum Edit {
    Append(usize, u8),
    Prepend(usize, u8),
    /// A line number, modulo the number of lines.
    Replace(usize, usize),
    DeleteLine(usize, usize),
    Delete(usize),
    Windows(usize),
    Commit,
    Untracked(u8),
    Upgrade,
    Export,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let path = 0..PATHS.len();
    let edit = prop_oneof![
        3 => (path.clone(), any::<u8>()).prop_map(|(path, n)| Edit::Append(path, n)),
        2 => (path.clone(), any::<u8>()).prop_map(|(path, n)| Edit::Prepend(path, n)),
        3 => (path.clone(), 0..12_usize).prop_map(|(path, line)| Edit::Replace(path, line)),
        1 => (path.clone(), 0..12_usize).prop_map(|(path, line)| Edit::DeleteLine(path, line)),
        1 => path.clone().prop_map(Edit::Delete),
        1 => path.prop_map(Edit::Windows),
        4 => Just(Edit::Commit),
        1 => any::<u8>().prop_map(Edit::Untracked),
        2 => Just(Edit::Upgrade),
        1 => Just(Edit::Export),
    ];
    prop::collection::vec(edit, 0..8)
}

fn text(repo: &TestRepo, path: &str) -> Option<String> {
    std::fs::read_to_string(repo.root().join(path)).ok()
}

/// Edits a file's lines.
fn with_lines(repo: &TestRepo, path: usize, change: impl FnOnce(&mut Vec<String>)) {
    let path = format!(".squad/{}", PATHS[path]);
    let mut lines: Vec<String> =
        text(repo, &path).unwrap_or_default().split_inclusive('\n').map(str::to_owned).collect();
    change(&mut lines);
    repo.write(&path, &lines.concat());
}

fn apply(repo: &mut TestRepo, edit: &Edit) {
    match *edit {
        Edit::Append(path, n) => with_lines(repo, path, |lines| lines.push(format!("Mine, {n}.\n"))),
        Edit::Prepend(path, n) => with_lines(repo, path, |lines| lines.insert(0, format!("Mine, first {n}.\n"))),
        Edit::Replace(path, line) => with_lines(repo, path, |lines| {
            if let Some(at) = line.checked_rem(lines.len()) {
                lines[at] = format!("Mine instead, {line}.\n");
            }
        }),
        Edit::DeleteLine(path, line) => with_lines(repo, path, |lines| {
            if let Some(at) = line.checked_rem(lines.len()) {
                lines.remove(at);
            }
        }),
        // The team needs a roster.
        Edit::Delete(path) if PATHS[path] != "team.md" => {
            let _ = std::fs::remove_file(repo.root().join(".squad").join(PATHS[path]));
        }
        Edit::Delete(_) => {}
        Edit::Windows(path) => {
            let path = format!(".squad/{}", PATHS[path]);
            if let Some(text) = text(repo, &path) {
                repo.write(&path, &text.replace("\r\n", "\n").replace('\n', "\r\n"));
            }
        }
        Edit::Commit => {
            repo.git(&["add", "--update"]);
            repo.git(&["commit", "--quiet", "--allow-empty", "--message=mine"]);
        }
        Edit::Untracked(n) => repo.write(&format!(".squad/drafts/{n}.md"), "Draft.\n"),
        Edit::Upgrade => {
            let next = (repo.releases.len() + 1).min(3);
            to(repo, next);
            repo.squad(&["upgrade"]);
        }
        Edit::Export => {
            repo.squad(&["agents", "export", "--to", "claude,agents-md"]);
        }
    }
}

/// Everything that an upgrade must not change.
#[derive(Clone, Debug, PartialEq)]
struct State {
    head: String,
    status: String,
    tracked: BTreeSet<String>,
    untracked: BTreeSet<String>,
    team: Option<String>,
    own: Option<String>,
}

fn state(repo: &TestRepo) -> State {
    let list = |arguments: &[&str]| repo.git(arguments).lines().map(str::to_owned).collect();
    State {
        head: repo.git(&["rev-parse", "HEAD"]),
        status: repo.git(&["status", "--porcelain", "--untracked-files=all"]),
        tracked: list(&["ls-files"]),
        untracked: list(&["ls-files", "--others"]),
        team: text(repo, ".squad/team.md"),
        own: text(repo, ".squad/own.md"),
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect(&output.err)
}

fn paths(report: &Value, list: &str, key: &str) -> BTreeSet<String> {
    let all = report[list].as_array().expect("a list").iter();
    all.filter_map(|one| one[key].as_str()).map(str::to_owned).collect()
}

fn check(edits: &[Edit], release: usize) {
    let mut repo = first();
    for edit in edits {
        apply(&mut repo, edit);
    }
    let release = release.max(repo.releases.len());
    to(&mut repo, release);
    let before = state(&repo);
    let shown = repo.squad(&["upgrade", "--diff", "--json"]);
    assert_eq!(state(&repo), before, "a dry run changes nothing");
    let done = repo.squad(&["upgrade", "--json"]);
    let after = state(&repo);
    assert_eq!((&after.team, &after.own), (&before.team, &before.own), "team files are identical");
    assert_eq!(shown.code, done.code, "{shown}{done}");
    if done.code != 0 {
        assert_eq!(after, before, "{done}");
        return;
    }
    let (shown, done) = (json(&shown), json(&done));
    for part in ["from", "to", "files", "conflicts", "left", "kept", "unexported"] {
        assert_eq!(shown[part], done[part], "the dry run shows what the real one does");
    }
    let beside = paths(&done, "conflicts", "new");
    assert_eq!(&after.untracked | &beside, &before.untracked | &beside, "nothing untracked becomes tracked or reverse");
    let listed = paths(&done, "files", "path");
    assert!(after.tracked.symmetric_difference(&before.tracked).all(|path| listed.contains(path)), "{done}");
    if done["commit"].is_string() {
        // The patch that the dry run shows gives the same tree.
        let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
        std::fs::write(repo.root().join("../patch"), shown["diff"].as_str().expect("a patch")).expect("a file");
        let place = repo.root().join("../other");
        repo.git(&["worktree", "add", "--quiet", "--detach", &place.display().to_string(), before.head.trim()]);
        repo.git_in(&place, &["apply", "--index", "--whitespace=nowarn", "../patch"]);
        assert_eq!(repo.git_in(&place, &["write-tree"]), tree, "{shown}");
    }
    let again = repo.squad(&["upgrade", "--json"]);
    assert_eq!(json(&again)["files"], serde_json::json!([]), "upgrading twice is upgrading once");
    assert_eq!(state(&repo), after);
    repo.assert_sound();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: u32::try_from(number_of("SQUAD_UPGRADES", 24)).expect("it is small"), max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_upgrade_is_complete_and_changes_nothing_else(edits in edits(), release in 2..4_usize) {
        check(&edits, release);
    }
}
