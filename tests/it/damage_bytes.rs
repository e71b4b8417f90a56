//! Bytes of the object database change by themselves, as on a failing disk: whatever becomes of them, nothing panics,
//! what cannot be read is named, and what can be is answered as it was written.
//!
//! `SQUAD_FLIPS=500 cargo test --test it damage_bytes -- --nocapture` does it more often; `SQUAD_SEED=N` begins with that
//! seed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::damage::{loosen, with_ledger};
use crate::support::{Dice, Output, TestRepo, number_of};

/// Every command that only reads.
const COMMANDS: [&[&str]; 7] = [
    &["decisions", "list", "--json"],
    &["log", "--json"],
    &["log", "2026"],
    &["status"],
    &["agents", "show", "ada", "--prompt"],
    &["route", "fix the endpoint"],
    &["doctor", "--prove"],
];

#[test]
fn whatever_byte_changes_nothing_is_answered_wrongly() {
    let repo = with_ledger();
    let entries = Entries::of(&repo);
    // As squad leaves it, many objects in two packs; as git packs it; and each object in a file of its own.
    let forms = ["folded", "packed", "loose"].map(|form| repo.root().join("..").join(form));
    copy(&repo.root().join(".git"), &forms[0]);
    repo.git(&["repack", "-adq"]);
    copy(&repo.root().join(".git"), &forms[1]);
    loosen(&repo, &repo.root());
    copy(&repo.root().join(".git"), &forms[2]);
    let first = number_of("SQUAD_SEED", 1);
    let (mut damaged, mut fatal) = (0, 0);
    for seed in first..first + number_of("SQUAD_FLIPS", 9) {
        fs::remove_dir_all(repo.root().join(".git")).expect("it is ours");
        copy(&forms[seed % 3], &repo.root().join(".git"));
        let mut dice = Dice(seed as u64);
        let changed = flip(&repo, &mut dice);
        let readable = entries.readable(&repo);
        damaged += usize::from(readable.len() < entries.objects.len());
        let case = format!("seed {seed}: {changed:?}, readable {}", readable.len());
        for command in COMMANDS {
            let output = repo.squad(command);
            assert!(!output.err.contains("panicked"), "{case}: {command:?}: {output}");
            // A broken branch is not the ledger's matter.
            let is_branch_whole = || {
                let archive = repo.command("git", &repo.root()).args(["archive", "-o", "/dev/null", "HEAD"]).output();
                archive.expect("git runs").status.success()
            };
            if command[0] == "decisions" && is_branch_whole() {
                fatal += usize::from(output.code != 0);
                entries.check(&readable, &output, &case);
            }
        }
    }
    println!("{damaged} times something could not be read, {fatal} times nothing");
}

/// What the ledger holds.
struct Entries {
    /// The titles of decisions that are in the ledger alone, by their paths.
    titles: BTreeMap<String, &'static str>,
    /// For each path, the objects that lead to it and its own.
    objects: BTreeMap<String, Vec<String>>,
}

impl Entries {
    fn of(repo: &TestRepo) -> Self {
        let id = |what: &str| repo.git(&["rev-parse", what]).trim().to_owned();
        let listed = repo.git(&["ls-tree", "-r", "--name-only", "refs/squad/log"]);
        let (mut titles, mut objects) = (BTreeMap::new(), BTreeMap::new());
        for path in listed.lines() {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            let way = ends.map(|end| id(&format!("refs/squad/log:{}", &path[..end])));
            let tip = [id("refs/squad/log"), id("refs/squad/log^{tree}")];
            objects.insert(path.to_owned(), tip.into_iter().chain(way).collect());
            let text = repo.git(&["show", &format!("refs/squad/log:{path}")]);
            let title = ["First", "Second"].into_iter().find(|title| text.contains(&format!("\"{title}\"")));
            titles.extend(title.filter(|_| path.contains("decision.logged")).map(|title| (path.to_owned(), title)));
        }
        assert_eq!(titles.len(), 2, "{titles:?}");
        Self { titles, objects }
    }

    /// The paths of entries that git can read, with all that leads to them.
    fn readable(&self, repo: &TestRepo) -> Vec<&str> {
        let mut known = BTreeMap::new();
        let mut is_sound = |id: &String| {
            *known.entry(id.clone()).or_insert_with(|| {
                let git = |arguments: &[&str]| repo.command("git", &repo.root()).args(arguments).output().expect("git");
                let kind = String::from_utf8_lossy(&git(&["cat-file", "-t", id]).stdout).trim().to_owned();
                let content = git(&["cat-file", &kind, id]);
                let hashed = crate::damage::git_with(
                    repo,
                    &repo.root(),
                    &["hash-object", "--literally", "-t", if kind.is_empty() { "blob" } else { &kind }, "--stdin"],
                    &content.stdout,
                );
                content.status.success() && hashed == *id
            })
        };
        let all = self.objects.iter().filter(|(_, objects)| objects.iter().all(&mut is_sound));
        all.map(|(path, _)| path.as_str()).collect()
    }

    fn check(&self, readable: &[&str], output: &Output, case: &str) {
        if output.code != 0 {
            assert!(readable.len() < self.objects.len() && !output.err.is_empty(), "{case}: {output}");
            // Without its newest commit or its root nothing is known of it.
            assert!(readable.is_empty() || output.err.contains("newest commit"), "{case}: {output}");
            return;
        }
        for (path, title) in &self.titles {
            let is_there = output.out.contains(&format!("\"title\":\"{title}\""));
            let is_told = output.out.contains("ledger-unreadable") || output.out.contains("ledger-malformed");
            assert!(is_there || is_told, "{case}: {title} is missing and nothing is said\n{output}");
            assert!(is_there || !readable.contains(&path.as_str()), "{case}: {title} could be read\n{output}");
        }
        let titles = output.out.matches("\"title\":\"").count();
        let right = ["First", "Second", "On the branch"].iter();
        let right = right.filter(|title| output.out.contains(&format!("\"title\":\"{title}\""))).count();
        assert_eq!(titles, right, "{case}: something else is answered\n{output}");
    }
}

/// Changes some bytes of one file that holds objects or says where they are.
fn flip(repo: &TestRepo, dice: &mut Dice) -> (PathBuf, Vec<usize>) {
    let mut files = Vec::new();
    let mut folders = vec![repo.root().join(".git/objects")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        let (below, here): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        folders.extend(below);
        files.extend(here);
    }
    files.sort();
    let file = files.swap_remove(dice.below(files.len()));
    let mut bytes = fs::read(&file).expect("a file");
    let places: Vec<usize> = (0..1 + dice.below(3)).map(|_| dice.below(bytes.len())).collect();
    for at in &places {
        bytes[*at] ^= 1 << dice.below(8);
    }
    fs::remove_file(&file).expect("it is ours");
    fs::write(&file, bytes).expect("written");
    (file.strip_prefix(repo.root()).expect("below").to_owned(), places)
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(done.expect("cp runs").success());
}
