//! The ledger's derived index, its proof, its upkeep, and the processes that are killed while they write it.

use std::fs;
use std::path::PathBuf;

use expect_test::expect;

use crate::support::{Output, TestRepo};

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// Three runs; returns the repository and the first run's id.
fn with_runs() -> (TestRepo, String) {
    let repo = TestRepo::with_small_team();
    for (agent, text) in [("bob", "first"), ("ada", "second"), ("bob", "third")] {
        let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", agent, text]);
        assert_eq!(output.code, 0, "{output}");
    }
    let runs: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let run = runs["runs"][2]["run"].as_str().expect("an id").to_owned();
    (repo, run)
}

fn kept(repo: &TestRepo) -> Vec<PathBuf> {
    let folder = fs::read_dir(repo.root().join(".git/squad/index")).expect("an index");
    folder.map(|entry| entry.expect("a file").path()).collect()
}

type Damage = fn(&[u8]) -> Vec<u8>;

/// Everything that is read from the ledger.
fn told(repo: &TestRepo, run: &str) -> Vec<String> {
    let commands: [&[&str]; 4] = [&["log"], &["log", run], &["status"], &["decisions", "list"]];
    commands.iter().map(|command| repo.squad(command).to_string()).collect()
}

#[test]
fn an_index_that_is_gone_damaged_or_of_yesterday_changes_nothing() {
    let (repo, run) = with_runs();
    let before = told(&repo, &run);
    assert!(before[1].contains("first") && !before[1].contains("second"), "{}", before[1]);
    let files = kept(&repo);
    assert!(!files.is_empty());
    let old: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("a file")).collect();
    let damages: [Damage; 4] = [
        |_| Vec::new(),
        |bytes| bytes[..bytes.len() - 1].to_vec(),
        |bytes| {
            bytes.iter().enumerate().map(|(at, byte)| if at == bytes.len() / 2 { byte ^ 1 } else { *byte }).collect()
        },
        |bytes| [bytes, b"more"].concat(),
    ];
    for damage in damages {
        for (file, bytes) in files.iter().zip(&old) {
            fs::write(file, damage(bytes)).expect("a file");
        }
        assert_eq!(told(&repo, &run), before);
    }
    fs::remove_dir_all(repo.root().join(".git/squad/index")).expect("an index");
    assert_eq!(told(&repo, &run), before);
    // An index of yesterday knows less, and is brought up to date.
    let output = repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "ada", "fourth"]);
    assert_eq!(output.code, 0, "{output}");
    let fourth: serde_json::Value = serde_json::from_str(&repo.squad(&["log", "--json"]).out).expect("JSON");
    let fourth = fourth["runs"][0]["run"].as_str().expect("an id").to_owned();
    let fresh = told(&repo, &fourth);
    for (file, bytes) in files.iter().zip(&old) {
        fs::write(file, bytes).expect("a file");
    }
    assert_eq!(told(&repo, &fourth), fresh);
    // Where it cannot be kept, it is done without.
    fs::remove_dir_all(repo.root().join(".git/squad/index")).expect("an index");
    fs::write(repo.root().join(".git/squad/index"), "").expect("a file");
    assert_eq!(told(&repo, &fourth), fresh);
}

fn prove(repo: &TestRepo) -> Output {
    repo.squad(&["doctor", "--prove"])
}

#[test]
fn the_proof_finds_what_squad_did_not_do() {
    let (repo, run) = with_runs();
    repo.squad(&["log", &run]);
    repo.git(&["config", "squad.unused", "true"]);
    let sound = prove(&repo);
    assert!(sound.out.contains("Read 33 entries of 1 folder in"), "{sound}");
    assert!(!sound.out.contains("ledger-") && !sound.out.contains("index"), "{sound}");

    // An index that is whole and says something else: whose an entry is, and how many there are.
    let forge = |whole: &[u8]| {
        let mut forged = whole.to_vec();
        match whole.windows(3).rposition(|window| window == b"bob") {
            Some(at) => forged[at..at + 3].copy_from_slice(b"eve"),
            None => forged[whole.windows(7).position(|window| window == b"entries").expect("a count") + 7] += 1,
        }
        let hash = *blake3::hash(&forged[64..]).as_bytes();
        forged[32..64].copy_from_slice(&hash);
        forged
    };
    let files = kept(&repo);
    for kind in ["head", "about", "told"] {
        let file = files.iter().find(|file| file.extension().is_some_and(|is| is == kind)).expect(kind);
        let whole = fs::read(file).expect("a file");
        fs::write(file, forge(&whole)).expect("a file");
        let output = prove(&repo);
        assert!(output.code == 1 && output.out.contains("the index does not say what the ledger says"), "{output}");
        fs::write(file, whole).expect("a file");
    }

    // Somebody else's commit: one entry gone, one changed, one in the wrong place, one that is none.
    let index = repo.root().join(".git/other");
    let git = |arguments: &[&str]| {
        let done = repo.command("git", &repo.root()).env("GIT_INDEX_FILE", &index).args(arguments).output();
        let done = done.expect("git runs");
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("UTF-8").trim().to_owned()
    };
    git(&["read-tree", "refs/squad/log"]);
    let listed = git(&["ls-files", "-s"]);
    let entries: Vec<(&str, &str)> =
        listed.lines().filter_map(|line| Some((line.split(' ').nth(1)?, line.split_once('\t')?.1))).collect();
    git(&["update-index", "--force-remove", entries[0].1]);
    git(&["update-index", "--cacheinfo", &format!("100644,{},{}", entries[2].0, entries[1].1)]);
    repo.write("nonsense", "nonsense");
    let blob = git(&["hash-object", "-w", "nonsense"]);
    git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},log/2026/01/05/nonsense.md")]);
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", &tree, "-p", "refs/squad/log", "-m", "another"]);
    git(&["update-ref", "refs/squad/log", &commit]);
    let output = prove(&repo);
    for found in ["was changed or removed after it was written", "is not where entry", "nonsense.md: no front matter"] {
        assert!(output.out.contains(found), "{found}: {output}");
    }
    assert_eq!(output.out.matches("was changed or removed").count(), 2, "{output}");
}

#[test]
fn what_was_packed_is_still_there() {
    let (repo, run) = with_runs();
    let before = told(&repo, &run);
    let output = repo.squad(&["gc", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    let number = |when: &str, what: &str| value[when][what].as_u64().expect("a number");
    assert!(number("before", "objects") > 0 && number("after", "objects") == 0, "{output}");
    assert!(number("before", "packs") > 1 && number("after", "packs") == 1, "{output}");
    assert!(number("before", "pack_kibibytes") > number("after", "pack_kibibytes"), "{output}");
    assert_eq!(told(&repo, &run), before);
    assert_eq!(repo.squad(&["orchestrate", "--engine", "rehearsal", "--agent", "ada", "after"]).code, 0);
    repo.assert_sound();
    let output = repo.squad(&["gc"]);
    let told = "before, 0 loose objects of 0 KiB and 1 pack of the ledger of ";
    assert!(output.out.contains(told) && output.out.ends_with(" KiB now\n"), "{output}");
}

#[test]
fn writers_that_are_killed_lose_nothing() {
    let repo = TestRepo::empty_on_disk();
    let mut command = repo.command(BINARY, &repo.root());
    let done = command.args(["torture", "--kills", "60", "--writers", "3", "--json"]).output().expect("squad runs");
    let value: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert!(done.status.success() && value["kills"] == 60, "{value}");
    assert!(value["acknowledged"].as_u64().expect("a number") > 10, "{value}");
    expect![[r#"{"lost":[],"unsound":[],"stuck":0,"repository":null}"#]].assert_eq(
        &serde_json::json!({"lost": value["lost"], "unsound": value["unsound"], "stuck": value["stuck"],
            "repository": value["repository"]})
        .to_string(),
    );
    assert!(
        fs::read_dir(repo.root().join(".git"))
            .expect("a folder")
            .all(|entry| { !entry.expect("a file").file_name().to_string_lossy().starts_with("torture-") })
    );
}
