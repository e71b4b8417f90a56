//! What looking for secrets costs, and what it takes for one that is none: the ledger holds other people's sources, those
//! of the crates that squad is built from. Against git, which only reads the same objects.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{SQUAD, print, run, time};

/// Bytes of text.
const ENOUGH: usize = 32 << 20;

pub(super) fn bench() {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"))).unwrap_or_default();
    let mut texts = Vec::new();
    collect(&home.join("registry/src"), &mut texts);
    let size: usize = texts.iter().map(String::len).sum();
    if size == 0 {
        return println!("\nsecrets: no sources of crates under {}", home.display());
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path();
    run(repo, "git", &["init", "--quiet", "--initial-branch=main"]);
    run(repo, SQUAD, &["--quiet", "init", "--no-commit"]);
    import(repo, &texts);

    let megabytes = size as f64 / 1e6;
    println!(
        "\n{:<48} {:>10} {:>10} {:>7}",
        format!("{megabytes:.1} MB in {} texts", texts.len()),
        "squad",
        "peer",
        "ratio"
    );
    let looking = || time(repo, SQUAD, &["scrub", "--rescan", "--dry-run"]);
    let reading = || time(repo, "git", &["cat-file", "--batch-all-objects", "--batch"]);
    let (mut squad, mut git) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        squad.push(looking());
        git.push(reading());
    }
    let took = super::median(squad);
    print("secrets looked for, against `git cat-file`", took, super::median(git));
    println!("{:.0} MB/s; texts in which it finds something:", megabytes / took.as_secs_f64());
    let found =
        Command::new(SQUAD).args(["scrub", "--rescan", "--dry-run"]).current_dir(repo).output().expect("it runs");
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for line in String::from_utf8_lossy(&found.stdout).lines().filter(|line| line.starts_with("ledger ")) {
        for kind in line.split_whitespace().skip(2) {
            *kinds.entry(kind.trim_end_matches(',').to_owned()).or_default() += 1;
        }
    }
    for (kind, count) in kinds {
        println!("  {count:>5}  {kind}");
    }
}

fn collect(folder: &Path, texts: &mut Vec<String>) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if texts.iter().map(String::len).sum::<usize>() > ENOUGH {
            return;
        }
        if path.is_dir() {
            collect(&path, texts);
        } else if path
            .extension()
            .is_some_and(|kind| ["rs", "md", "toml", "txt", "yml", "json"].iter().any(|it| kind == *it))
        {
            // Larger ones are tables.
            texts.extend(fs::read_to_string(path).ok().filter(|text| text.len() < 256 << 10));
        }
    }
}

/// As entries of the ledger that no rule has seen.
fn import(repo: &Path, texts: &[String]) {
    let mut git = Command::new("git").args(["fast-import", "--quiet"]).current_dir(repo).stdin(Stdio::piped()).spawn();
    let git = git.as_mut().expect("git runs");
    let mut stream = git.stdin.take().expect("it is piped");
    let mut write = |bytes: &[u8]| stream.write_all(bytes).expect("git reads");
    write(b"commit refs/squad/log\ncommitter bench <bench@example.com> 1767603600 +0000\ndata 0\n");
    for (number, text) in texts.iter().enumerate() {
        let id = format!("019b8d1f-6c00-7000-8000-{number:012}");
        let entry = format!(
            "---\nsquad: 1\nid: \"{id}\"\nat: \"2026-01-05T09:00:00Z\"\nkind: \"agent.message\"\nactor: \"agent\"\n---\n{text}\n"
        );
        let path = format!("log/2026/01/05/09/00/{id}-agent.message.md");
        write(format!("M 100644 inline {path}\ndata {}\n{entry}\n", entry.len()).as_bytes());
    }
    drop(stream);
    assert!(git.wait().expect("git ends").success());
}
