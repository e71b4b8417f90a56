//! The ledgers of several clones of one repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use expect_test::expect;

use crate::support::TestRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_squad");

/// A bare repository beside the test's own, and clones of it.
pub(crate) struct Shared {
    pub(crate) repo: TestRepo,
}

impl Shared {
    pub(crate) fn new() -> Self {
        let repo = TestRepo::with_small_team();
        repo.git(&["clone", "--quiet", "--bare", ".", "../hub.git"]);
        repo.git(&["remote", "add", "origin", "../hub.git"]);
        Self { repo }
    }

    pub(crate) fn hub(&self) -> PathBuf {
        self.repo.root().join("../hub.git")
    }

    pub(crate) fn clone(&self, name: &str, options: &[&str]) -> PathBuf {
        let place = self.repo.root().join("..").join(name);
        let url = format!("file://{}", self.hub().display());
        self.repo.git(&[&["clone", "--quiet"], options, &[&url, &place.display().to_string()]].concat());
        for (key, value) in [("user.name", "Bea"), ("user.email", "bea@example.com")] {
            self.repo.git_in(&place, &["config", key, value]);
        }
        place
    }

    pub(crate) fn tip(&self, place: &Path) -> String {
        self.repo.git_in(place, &["rev-parse", "refs/squad/log"])
    }

    pub(crate) fn entries(&self, place: &Path) -> usize {
        self.repo.git_in(place, &["ls-tree", "-r", "--name-only", "refs/squad/log"]).lines().count()
    }

    pub(crate) fn sync(&self, place: &Path) -> crate::support::Output {
        let output = self.repo.squad_in(place, &["sync", "--yes"]);
        assert_eq!(output.code, 0, "{output}");
        output
    }

    /// What git itself says of a repository's health.
    pub(crate) fn assert_sound(&self, place: &Path) {
        self.repo.git_in(place, &["fsck", "--full", "--strict"]);
    }

    pub(crate) fn refuse_refs(&self, pattern: &str) {
        self.write_hook(&format!("case \"$1\" in {pattern}) echo 'no such refs here' >&2; exit 1;; esac"));
    }

    /// Runs for each ref that is pushed, which is `$1`.
    pub(crate) fn write_hook(&self, script: &str) {
        let hook = self.hub().join("hooks/update");
        crate::support::script::write(&hook, &format!("#!/bin/sh\n{script}\n"));
    }
}

#[test]
fn the_first_sync_asks_and_says_what_would_go() {
    let shared = Shared::new();
    let repo = &shared.repo;
    repo.squad(&["decisions", "add", "Money is in cents"]);
    let entries = shared.entries(&repo.root());
    assert_eq!(
        repo.squad(&["sync", "-n"]).out,
        format!("{entries} entries would be pushed to origin, 0 entries fetched\n")
    );
    let output = repo.squad(&["sync"]);
    assert!(output.code == 2 && output.err.contains("squad sync --yes"), "{output}");
    assert_eq!(repo.git_in(&shared.hub(), &["for-each-ref", "refs/squad"]), "");
    assert!(repo.squad(&["status", "--json"]).out.contains(&format!("\"entries\":{entries},\"unsynced\":{entries}")));
    shared.sync(&repo.root());
    assert_eq!(shared.tip(&shared.hub()), shared.tip(&repo.root()));
    assert!(repo.squad(&["status", "--json"]).out.contains("\"unsynced\":0"));
    expect![[r#"
        0 entries pushed to origin, 0 entries fetched
        --- exit 0
    "#]]
    .assert_eq(&repo.squad(&["sync"]).to_string());
    expect![[r#"
        --- stderr
        error: there is no remote `-x`
        hint: remotes: origin
        --- exit 2
    "#]]
    .assert_eq(&repo.squad(&["sync", "--", "-x"]).to_string());
}

#[test]
fn clones_that_both_wrote_converge_to_the_same_bytes() {
    let shared = Shared::new();
    let ours = shared.repo.root();
    for options in [&[][..], &["--depth=1"], &["--filter=blob:none"], &["--filter=tree:0", "--no-checkout"]] {
        let name = format!("clone{}", options.concat().len());
        shared.repo.git_in(&shared.hub(), &["config", "uploadpack.allowFilter", "true"]);
        let theirs = shared.clone(&name, options);
        if options.contains(&"--no-checkout") {
            shared.repo.git_in(&theirs, &["checkout", "--quiet"]);
        }
        shared.repo.squad(&["decisions", "add", "Ours"]);
        let output = shared.repo.squad_in(&theirs, &["decisions", "add", "Theirs"]);
        assert_eq!(output.code, 0, "{output}");
        shared.sync(&ours);
        shared.sync(&theirs);
        assert!(shared.repo.squad(&["sync"]).out.starts_with("0 entries pushed"), "{options:?}");
        assert_eq!(shared.tip(&ours), shared.tip(&theirs), "{options:?}");
        for place in [&ours, &theirs] {
            let list = shared.repo.squad_in(place, &["decisions", "list"]);
            assert!(list.out.contains("Ours") && list.out.contains("Theirs"), "{options:?}: {list}");
        }
        shared.assert_sound(&theirs);
    }
    shared.assert_sound(&ours);
    shared.assert_sound(&shared.hub());
}

#[test]
fn git_fetch_brings_the_ledger_too_and_never_fails_for_want_of_it() {
    let shared = Shared::new();
    let theirs = shared.clone("theirs", &[]);
    shared.repo.squad_in(&theirs, &["decisions", "add", "Theirs"]);
    shared.sync(&theirs);
    let ours = shared.repo.root();
    shared.sync(&ours);
    shared.repo.squad_in(&theirs, &["decisions", "add", "More"]);
    shared.sync(&theirs);
    shared.repo.git(&["fetch", "--quiet"]);
    assert_eq!(shared.repo.git(&["rev-parse", "refs/squad/remotes/origin/log"]), shared.tip(&theirs));
    shared.repo.git_in(&shared.hub(), &["update-ref", "-d", "refs/squad/log"]);
    shared.repo.git(&["fetch", "--quiet"]);
    assert_eq!(shared.repo.git(&["config", "--get-all", "remote.origin.fetch"]).lines().count(), 2);
}

/// git fetched it, nobody merged it, and then the remote lost it: this clone has the only copy.
#[test]
fn what_git_fetched_and_the_remote_lost_is_merged_by_the_next_sync() {
    for fetches in [false, true] {
        let shared = Shared::new();
        let (theirs, ours) = (shared.clone("theirs", &[]), shared.repo.root());
        shared.repo.squad_in(&theirs, &["decisions", "add", "Theirs"]);
        shared.sync(&theirs);
        shared.sync(&ours);
        let before = shared.tip(&ours);
        shared.repo.squad_in(&theirs, &["decisions", "add", "More"]);
        shared.sync(&theirs);
        if fetches {
            shared.repo.git(&["fetch", "--quiet"]);
        }
        assert_eq!(shared.tip(&ours), before, "a fetch merges nothing");
        let has = || shared.repo.squad(&["decisions", "list"]).out.contains("More");
        assert!(!has());
        shared.repo.git_in(&shared.hub(), &["update-ref", "refs/squad/log", before.trim()]);
        shared.sync(&ours);
        assert_eq!((has(), shared.tip(&ours) == shared.tip(&shared.hub())), (fetches, true));
        shared.assert_sound(&ours);
    }
}

#[test]
fn a_remote_that_is_not_there_is_said() {
    let shared = Shared::new();
    fs::remove_dir_all(shared.hub()).expect("it is there");
    let output = shared.repo.squad(&["sync", "--yes"]);
    assert!(output.code == 3 && output.err.contains("cannot reach the remote `origin`"), "{output}");
    assert!(
        output.err.contains("hint: check its address, your network and your access: git ls-remote origin"),
        "{output}"
    );
    let lonely = TestRepo::with_small_team();
    let output = lonely.squad(&["sync"]);
    assert!(output.code == 2 && output.err.contains("there is no remote"), "{output}");
}

#[test]
fn four_clones_that_push_at_once_lose_nothing() {
    const EACH: usize = 4;
    let shared = Shared::new();
    let clones: Vec<PathBuf> = (0..4).map(|number| shared.clone(&format!("clone{number}"), &[])).collect();
    for round in 0..EACH {
        let syncs: Vec<_> = clones
            .iter()
            .map(|clone| {
                shared.repo.squad_in(clone, &["decisions", "add", &format!("Round {round}")]);
                let mut command = shared.repo.command(BINARY, clone);
                command.args(["sync", "--yes"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
                command.spawn().expect("squad runs")
            })
            .collect();
        for sync in syncs {
            let done = sync.wait_with_output().expect("it ends");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
    }
    clones.iter().for_each(|clone| drop(shared.sync(clone)));
    let tips: Vec<String> = clones.iter().map(|clone| shared.tip(clone)).collect();
    assert_eq!(tips[3], shared.tip(&shared.hub()));
    clones[..3].iter().for_each(|clone| drop(shared.sync(clone)));
    assert!(clones.iter().all(|clone| shared.tip(clone) == tips[3]));
    // A decision and its landing, each.
    assert_eq!(shared.entries(&clones[0]), clones.len() * EACH * 2);
    shared.assert_sound(&shared.hub());
}

/// As in CI: jobs that start from nothing push at once, and none of them waits.
#[test]
fn jobs_with_refs_of_their_own_do_not_wait_for_each_other() {
    let shared = Shared::new();
    shared.repo.squad(&["decisions", "add", "Before"]);
    let ours = shared.repo.root();
    shared.sync(&ours);
    let clones: Vec<PathBuf> = (0..6).map(|number| shared.clone(&format!("job{number}"), &["--depth=1"])).collect();
    let syncs: Vec<_> = clones
        .iter()
        .map(|clone| {
            shared.repo.squad_in(clone, &["decisions", "add", "Made in a job"]);
            let mut command = shared.repo.command(BINARY, clone);
            command.args(["sync", "--own-ref", "--yes", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped());
            command.spawn().expect("squad runs")
        })
        .collect();
    for sync in syncs {
        let done = sync.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success() && said.contains("\"sent\":2,"), "{said}");
    }
    let own = |place: &Path| shared.repo.git_in(place, &["for-each-ref", "refs/squad/clones"]).lines().count();
    assert_eq!(own(&shared.hub()), clones.len());
    assert!(shared.repo.squad(&["sync", "-n"]).out.ends_with(&format!("{} entries fetched\n", clones.len() * 2)));
    let output = shared.sync(&ours);
    assert!(output.out.contains(&format!("{} entries fetched", clones.len() * 2)), "{output}");
    assert_eq!((own(&shared.hub()), shared.entries(&shared.hub())), (0, 2 + clones.len() * 2));
    assert!(shared.repo.squad(&["status", "--json"]).out.contains("\"unsynced\":0"));
    // A job may go on in its clone.
    shared.repo.squad_in(&clones[0], &["decisions", "add", "One more"]);
    let again = shared.repo.squad_in(&clones[0], &["sync", "--own-ref"]);
    assert_eq!(again.code, 0, "{again}");
    shared.sync(&ours);
    assert_eq!(shared.entries(&shared.hub()), 4 + clones.len() * 2);
    shared.assert_sound(&shared.hub());
}

#[test]
fn a_decision_that_landed_in_another_clone_is_elsewhere_until_its_branch_comes() {
    let shared = Shared::new();
    let (one, other) = (shared.clone("one", &[]), shared.clone("other", &[]));
    let added = shared.repo.squad_in(&one, &["decisions", "add", "Money is in cents"]);
    assert_eq!(added.code, 0, "{added}");
    shared.sync(&one);
    shared.sync(&other);
    let state = || {
        let listed = shared.repo.squad_in(&other, &["decisions", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
        listed["decisions"][0]["state"].as_str().expect("a state").to_owned()
    };
    assert_eq!(state(), "elsewhere", "only the ledger came");
    shared.repo.git_in(&one, &["push", "--quiet", "origin", "main"]);
    shared.repo.git_in(&other, &["fetch", "--quiet"]);
    assert_eq!(state(), "elsewhere", "fetched, not merged");
    shared.repo.git_in(&other, &["merge", "--quiet", "--ff-only", "origin/main"]);
    assert_eq!(state(), "in_force");
    shared.repo.git_in(&other, &["rm", "--quiet", "-r", ".squad/decisions"]);
    shared.repo.git_in(&other, &["commit", "--quiet", "--message=no"]);
    assert_eq!(state(), "withdrawn");
}
