//! Wherever a rescue keeps a secret, `scrub` takes it out.

use crate::support::TestRepo;

const SECRET: &str = "Swordfish of 1932";

/// Where the secret is when the rescue is made, and how the user then gets rid of it.
struct Story {
    name: &'static str,
    begin: fn(&TestRepo),
    /// Afterwards nothing of the user's leads to it any more.
    end: fn(&TestRepo),
}

fn secret(repo: &TestRepo, path: &str) {
    repo.write(path, &format!("first\n{SECRET}\nlast\n"));
}

const STORIES: &[Story] = &[
    Story {
        name: "changed and not staged",
        begin: |repo| secret(repo, "notes.txt"),
        end: |repo| drop(repo.git(&["checkout", "-q", "notes.txt"])),
    },
    Story {
        name: "staged",
        begin: |repo| {
            secret(repo, "notes.txt");
            repo.git(&["add", "notes.txt"]);
        },
        end: |repo| drop(repo.git(&["reset", "-q", "--hard"])),
    },
    Story {
        name: "staged, and other text in the work tree",
        begin: |repo| {
            secret(repo, "notes.txt");
            repo.git(&["add", "notes.txt"]);
            repo.write("notes.txt", "harmless\n");
        },
        end: |repo| drop(repo.git(&["reset", "-q", "--hard"])),
    },
    Story {
        name: "staged, and deleted in the work tree",
        begin: |repo| {
            secret(repo, "notes.txt");
            repo.git(&["add", "notes.txt"]);
            std::fs::remove_file(repo.root().join("notes.txt")).expect("it is there");
        },
        end: |repo| drop(repo.git(&["reset", "-q", "--hard"])),
    },
    Story {
        name: "a new file, staged, and gone",
        begin: |repo| {
            secret(repo, "new.txt");
            repo.git(&["add", "new.txt"]);
            std::fs::remove_file(repo.root().join("new.txt")).expect("it is there");
        },
        end: |repo| drop(repo.git(&["reset", "-q", "--hard"])),
    },
    Story {
        name: "different secrets' lines in both",
        begin: |repo| {
            secret(repo, "notes.txt");
            repo.git(&["add", "notes.txt"]);
            repo.write("notes.txt", &format!("{SECRET} again\n"));
        },
        end: |repo| drop(repo.git(&["reset", "-q", "--hard"])),
    },
    Story {
        name: "untracked, in a folder",
        begin: |repo| secret(repo, "a folder/ünicode.txt"),
        end: |repo| std::fs::remove_dir_all(repo.root().join("a folder")).expect("it is there"),
    },
];

/// A value that no file has: it is in the name of the branch, which a rescue names × and is not.
#[test]
fn what_a_rescue_says_of_itself_keeps_no_secret() {
    const VALUE: &str = "swordfish-1932";
    for (branch, rescues) in [("swordfish-1932", 1), ("swordfish-1933", 0)] {
        let repo = TestRepo::with_small_team();
        repo.write(".squad/decisions.md", "# Decisions\n\n### 2026-01-02: Tar\n\nBlack.\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "files"]);
        repo.git(&["switch", "-qc", branch]);
        repo.write("notes.txt", "harmless\n");
        assert_eq!(repo.squad(&["decisions", "import"]).code, 0);
        let told = || repo.git(&["for-each-ref", "--format=%(contents)", "refs/squad/rescue"]);
        assert!(told().contains(branch), "{}", told());
        let scrubbed = repo.with_input(VALUE).squad_in(&repo.root(), &["scrub", "--value-stdin", "--yes", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&scrubbed.out).expect("JSON");
        assert_eq!(
            report["scrubbed"]["rescues"].as_object().map(serde_json::Map::len),
            Some(rescues),
            "{branch}: {scrubbed}"
        );
        assert!(!told().contains(VALUE), "{branch}: {}", told());
        assert_eq!(told().contains("[redacted:scrubbed]"), rescues == 1, "{branch}: {}", told());
    }
}

#[test]
fn no_place_in_a_rescue_keeps_a_secret() {
    for Story { name, begin, end } in STORIES {
        let repo = TestRepo::with_small_team();
        repo.write("notes.txt", "harmless\n");
        repo.write(".squad/decisions.md", "# Decisions\n\n### 2026-01-02: Tar\n\nBlack.\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "files"]);
        begin(&repo);
        // What changes a work tree saves it first.
        let imported = repo.squad(&["decisions", "import"]);
        assert_eq!(imported.code, 0, "{name}: {imported}");
        assert_ne!(repo.git(&["for-each-ref", "refs/squad/rescue"]), "", "{name}: there is a rescue");
        end(&repo);
        let root = repo.root();
        let scrubbed = repo.with_input(SECRET).squad_in(&root, &["scrub", "--value-stdin", "--prune", "--yes"]);
        assert!(scrubbed.code == 0 && scrubbed.err.contains("1 rescue"), "{name}: {scrubbed}");
        // The user's own objects that nothing leads to are the user's to clear.
        repo.git(&["reflog", "expire", "--expire=now", "--all"]);
        repo.git(&["gc", "-q", "--prune=now"]);
        let everything = repo.git(&["cat-file", "--batch-all-objects", "--batch"]);
        assert!(!everything.contains(SECRET), "{name}");
        assert!(everything.contains("[redacted:scrubbed]"), "{name}: what was beside it is kept");
        repo.assert_sound();
    }
}
