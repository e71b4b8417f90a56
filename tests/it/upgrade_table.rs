//! One upgrade, from texts of an earlier release to those of this one: what the team changed × what squad changed, for a
//! charter, the rules and the roster. The earlier texts are in `fixtures/older-team`.

use std::fs;
use std::path::Path;

use squad::Release;

use crate::support::TestRepo;

/// Old and new text.
type Edit = (&'static str, &'static str);

/// A file, an edit elsewhere than squad's, and one of the same lines.
const FILES: [(&str, Edit, Edit); 3] = [
    (
        "agents/tester/charter.md",
        ("# Tester — Test engineer", "# Tester — Our test engineer"),
        ("- Coverage shows where to look.", "- Coverage is the goal."),
    ),
    ("routing.md", ("# Routing", "# Our routing"), ("| Tests and quality |", "| Our tests |")),
    ("team.md", ("# Squad Team", "# Our team"), ("- **Purpose:**", "- **Our purpose:**")),
];

/// The team's files, by path; `older`: as an earlier release had them.
fn release(number: u32, older: bool) -> Release {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (newest, earlier) = (root.join("templates/team"), root.join("fixtures/older-team"));
    let mut files = Vec::new();
    let mut folders = vec![newest.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inner = path.strip_prefix(&newest).expect("below it");
            let text = older.then(|| fs::read(earlier.join(inner)).ok()).flatten();
            let text = text.unwrap_or_else(|| fs::read(&path).expect("a file"));
            files.push((inner.to_string_lossy().replace('\\', "/"), text));
        }
    }
    Release { number, files }
}

/// The whole team, or a part of it, whose rules and charters do not name the rest.
const TEAMS: [&[&str]; 2] = [&["init"], &["init", "--agents", "tester,docs"]];

fn installed(init: &[&str], releases: Vec<Release>) -> TestRepo {
    let mut repo = TestRepo::empty();
    repo.releases = releases;
    assert_eq!(repo.squad(init).code, 0);
    repo
}

#[test]
fn what_the_team_changed_and_what_squad_changed_come_together() {
    for init in TEAMS {
        let fresh = installed(init, vec![release(2, false)]);
        for (path, apart, same) in FILES {
            let edits = [None, Some((apart, true)), Some((same, false))];
            for (edit, squad_changes) in edits.into_iter().flat_map(|edit| [(edit, false), (edit, true)]) {
                check(init, &fresh, path, edit, squad_changes);
            }
        }
    }
}

/// `edit`: old and new text, and whether squad changes nothing near it.
fn check(init: &[&str], fresh: &TestRepo, path: &str, edit: Option<(Edit, bool)>, squad_changes: bool) {
    let path = format!(".squad/{path}");
    let mut repo = installed(init, vec![release(1, true)]);
    if let Some(((old, new), _)) = edit {
        let text = repo.read(&path);
        // What is not known of the project is left out of the roster.
        let old = if text.contains(old) { old } else { "- **Off limits:**" };
        assert!(text.contains(old), "{path}: {old}");
        repo.write(&path, &text.replacen(old, new, 1));
        repo.git(&["commit", "--quiet", "--all", "--message=edit"]);
    }
    let before = repo.read(&path);
    repo.releases.push(release(2, !squad_changes));
    let output = repo.squad(&["upgrade"]);
    let case = format!("{init:?} {path}, squad changes it: {squad_changes}, the team: {edit:?}: {output}");
    assert_eq!(output.code, 0, "{case}");
    // Who is on the team is up to the team.
    let is_upgraded = squad_changes && path != ".squad/team.md";
    let new_text = fresh.read(&path);
    let expected = match edit {
        None if is_upgraded => new_text.clone(),
        Some(((old, new), true)) if is_upgraded => new_text.replacen(old, new, 1),
        _ => before,
    };
    assert_eq!(repo.read(&path), expected, "{case}");
    let beside = format!("{path}.new");
    assert_eq!(repo.exists(&beside), is_upgraded && matches!(edit, Some((_, false))), "{case}");
    if repo.exists(&beside) {
        assert_eq!(repo.read(&beside), new_text, "{case}");
    }
}
