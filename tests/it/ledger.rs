//! The ledger's derived index, its proof, its upkeep, and the processes that are killed while they write it.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::{Dice, Output, TestRepo};

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
    commands.iter().map(|command| repo.squad(command).without_age()).collect()
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
    assert!(sound.out.contains("that 45 entries in 1 folder can be read"), "{sound}");
    assert!(!sound.out.contains("ledger-") && !sound.out.contains("index does not match"), "{sound}");

    // An index that is whole and says something else: whose an entry is, and how many there are.
    let forge = |whole: &[u8]| {
        let mut forged = whole.to_vec();
        match whole.windows(3).rposition(|window| window == b"bob") {
            Some(at) => forged[at..at + 3].copy_from_slice(b"eve"),
            // The first digit of the count.
            None => {
                let count = br#""entries":"#;
                let at = whole.windows(count.len()).position(|window| window == count).expect("a count") + count.len();
                forged[at] = if forged[at] == b'1' { b'2' } else { b'1' };
            }
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
        assert!(output.code == 1 && output.out.contains("the index does not match the ledger"), "{output}");
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
    for found in ["was changed or removed after it was written", "belongs at ", "nonsense.md: no front matter"] {
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
    assert!(output.out.contains(" ledger packs of ") && output.out.contains(" packed into 1 of "), "{output}");
    let again = repo.squad(&["gc"]);
    assert!(
        again.out.is_empty() && again.err.contains("nothing to remove or to pack: the ledger is 1 pack"),
        "{again}"
    );
}

/// Three writers at once, each killed again and again, with git's own upkeep beside them.
#[test]
fn writers_that_are_killed_lose_nothing() {
    const EACH: usize = 15;
    let repo = TestRepo::empty_on_disk();
    assert_eq!(repo.squad(&["init"]).code, 0);
    let write = |writer: usize| {
        let mut dice = Dice(writer as u64);
        let mut said = Vec::new();
        for number in 0..EACH {
            let mut command = repo.command(BINARY, &repo.root());
            command.args(["decisions", "add", &format!("Rule {number} of {writer}")]);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("squad runs");
            thread::sleep(Duration::from_millis(u64::try_from(dice.below(120)).expect("it is small")));
            // It may have ended by itself; the last one may, however slow the machine is.
            if number + 1 < EACH {
                let _ = child.kill();
            }
            let output = child.wait_with_output().expect("it ends");
            let line = String::from_utf8(output.stdout).expect("UTF-8");
            // An id that death cut short is no acknowledgement.
            said.extend(line.strip_suffix('\n').map(str::to_owned));
        }
        said
    };
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(move || write(writer))).collect();
        for upkeep in [["pack-refs", "--all"], ["gc", "--prune=now"], ["repack", "-ad"]] {
            // It may refuse because another one is at it.
            repo.command("git", &repo.root()).args(upkeep).output().expect("git runs");
        }
        writers.into_iter().flat_map(|writer| writer.join().expect("no writer panics")).collect()
    });
    assert!(!acknowledged.is_empty(), "all died before they had said anything");
    let output = repo.squad(&["decisions", "add", "The last rule"]);
    assert_eq!(output.code, 0, "{output}");
    let listed = repo.squad(&["decisions", "list", "--json"]).out;
    for id in acknowledged {
        assert!(listed.contains(&id), "{id} is lost: {listed}");
    }
    repo.assert_sound();
}
