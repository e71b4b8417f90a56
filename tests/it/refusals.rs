//! Remotes that refuse what is pushed, for a moment or for good.

use expect_test::expect;

use crate::sync::Shared;

const LOG: &str = "refs/squad/log";

fn refs(shared: &Shared) -> String {
    shared.repo.git_in(&shared.hub(), &["for-each-ref", "--format=%(refname)", "refs/squad", "refs/heads/squad"])
}

fn unsynced(shared: &Shared, place: &std::path::Path) -> String {
    let status = shared.repo.squad_in(place, &["status", "--json"]);
    let count = status.out.split("\"unsynced\":").nth(1).expect("a count");
    count.split(['}', ',']).next().unwrap_or_default().to_owned()
}

/// A hook that declines so many pushes.
fn decline(shared: &Shared, count: usize) {
    std::fs::write(shared.hub().join("left"), "x".repeat(count)).expect("a file");
    shared.write_hook("test -s \"$GIT_DIR/left\" || exit 0; truncate -s -1 \"$GIT_DIR/left\"; exit 1");
}

#[test]
fn one_refused_push_changes_nothing() {
    for count in [1, 2, 5] {
        let shared = Shared::new();
        let (ours, theirs) = (shared.repo.root(), shared.clone("theirs", &[]));
        shared.repo.squad(&["decisions", "add", "Ours"]);
        shared.repo.squad_in(&theirs, &["decisions", "add", "Theirs"]);
        decline(&shared, count);
        let output = shared.sync(&ours);
        assert!(output.out.starts_with("2 entries pushed"), "{count}: {output}");
        assert_eq!(unsynced(&shared, &ours), "0", "{count}");
        shared.write_hook("exit 0");
        shared.sync(&theirs);
        shared.sync(&ours);
        assert_eq!(refs(&shared), "refs/squad/log\n", "{count}");
        assert_eq!(shared.tip(&ours), shared.tip(&theirs), "{count}");
        assert_eq!(shared.repo.git(&["config", "remote.origin.squadLedger"]), format!("{LOG}\n"), "{count}");
    }
}

#[test]
fn a_remote_that_takes_only_branches_gets_one() {
    let shared = Shared::new();
    shared.refuse_refs("refs/squad/*");
    let (ours, theirs) = (shared.repo.root(), shared.clone("theirs", &[]));
    shared.repo.squad(&["decisions", "add", "Ours"]);
    shared.repo.squad_in(&theirs, &["decisions", "add", "Theirs"]);
    expect![[r#"
        2 entries pushed to origin, 0 entries fetched
        --- stderr
        warning: origin refuses refs for the ledger: [remote rejected] (hook declined): no such refs here
        hint: the ledger is in its branch refs/heads/squad/state until that changes
        --- exit 0
    "#]]
    .assert_eq(&shared.sync(&ours).to_string());
    // It looks in both places, so it does not have to be refused to find it.
    assert!(!shared.sync(&theirs).out.contains(" 0 entries taken"));
    shared.sync(&ours);
    shared.repo.squad(&["decisions", "add", "Later"]);
    assert!(shared.repo.squad(&["sync"]).err.is_empty());
    shared.sync(&theirs);
    assert_eq!(shared.tip(&ours), shared.tip(&theirs));
    assert_eq!(shared.repo.git_in(&shared.hub(), &["rev-parse", "squad/state"]), shared.tip(&ours));
    assert!(shared.repo.squad(&["status", "--json"]).out.contains("\"unsynced\":0"));
    // And goes back where it belongs when that is possible again, however old the branch is.
    shared.write_hook("exit 0");
    shared.repo.squad(&["decisions", "add", "Back"]);
    shared.sync(&ours);
    assert_eq!(shared.repo.git_in(&shared.hub(), &["rev-parse", LOG]), shared.tip(&ours));
    assert_eq!(shared.repo.git(&["config", "remote.origin.squadLedger"]), format!("{LOG}\n"));
    shared.sync(&theirs);
    assert_eq!(shared.tip(&ours), shared.tip(&theirs));
}

#[test]
fn a_remote_that_hides_custom_refs_is_asked_once() {
    let shared = Shared::new();
    shared.repo.git_in(&shared.hub(), &["config", "transfer.hideRefs", "refs/squad"]);
    shared.repo.squad(&["decisions", "add", "Ours"]);
    expect![[r#"
        2 entries pushed to origin, 0 entries fetched
        --- stderr
        warning: origin refuses refs for the ledger: [remote rejected] (deny updating a hidden ref)
        hint: the ledger is in its branch refs/heads/squad/state until that changes
        --- exit 0
    "#]]
    .assert_eq(&shared.sync(&shared.repo.root()).to_string());
    assert_eq!(refs(&shared), "refs/heads/squad/state\n");
}

#[test]
fn a_remote_that_refuses_the_ledgers_ref_alone_has_it_under_another() {
    let shared = Shared::new();
    shared.refuse_refs(LOG);
    let (ours, theirs) = (shared.repo.root(), shared.clone("theirs", &[]));
    shared.repo.squad(&["decisions", "add", "Ours"]);
    shared.repo.squad_in(&theirs, &["decisions", "add", "Theirs"]);
    let output = shared.sync(&ours);
    assert!(
        output.out.starts_with("2 entries pushed") && output.err.contains("all the same, under refs/squad/clones/"),
        "{output}"
    );
    assert_eq!((unsynced(&shared, &ours), refs(&shared).lines().count()), ("0".to_owned(), 1));
    let output = shared.sync(&theirs);
    assert!(output.out.contains("2 entries fetched"), "{output}");
    shared.sync(&ours);
    assert_eq!(shared.tip(&ours), shared.tip(&theirs));
    // What is nowhere else is not removed.
    assert_eq!(refs(&shared).lines().count(), 2);
    shared.write_hook("exit 0");
    shared.sync(&ours);
    shared.repo.squad_in(&theirs, &["decisions", "add", "More"]);
    shared.sync(&theirs);
    shared.sync(&ours);
    assert_eq!((refs(&shared), shared.tip(&ours)), ("refs/squad/log\n".to_owned(), shared.tip(&theirs)));
}

#[test]
fn what_reached_no_ref_of_the_remote_is_an_error_that_says_what_was_tried() {
    let shared = Shared::new();
    let ours = shared.repo.root();
    shared.repo.squad(&["decisions", "add", "Sent"]);
    shared.sync(&ours);
    shared.refuse_refs("*");
    shared.repo.squad(&["decisions", "add", "Refused"]);
    let output = shared.repo.squad(&["sync"]);
    assert_eq!(output.code, 1, "{output}");
    for tried in ["2 entries not pushed: refs/squad/log:", "; refs/squad/clones/", "; refs/heads/squad/state:"] {
        assert!(output.err.contains(tried), "{tried}: {output}");
    }
    assert_eq!(unsynced(&shared, &ours), "2");
    shared.write_hook("exit 0");
    assert!(shared.sync(&ours).out.starts_with("2 entries pushed"));
    assert_eq!(unsynced(&shared, &ours), "0");
}

#[test]
fn a_lock_that_somebody_left_on_the_remote_is_no_refusal() {
    let shared = Shared::new();
    let ours = shared.repo.root();
    shared.repo.squad(&["decisions", "add", "Sent"]);
    shared.sync(&ours);
    let lock = shared.hub().join("refs/squad/log.lock");
    std::fs::write(&lock, "").expect("a lock");
    shared.repo.squad(&["decisions", "add", "Later"]);
    let output = shared.sync(&ours);
    assert!(output.out.starts_with("2 entries pushed") && output.err.contains("rejected refs/squad/log"), "{output}");
    std::fs::remove_file(lock).expect("it is there");
    shared.sync(&ours);
    assert_eq!((refs(&shared), shared.tip(&shared.hub())), ("refs/squad/log\n".to_owned(), shared.tip(&ours)));
}

/// As earlier squads left it: one clone had been refused once and went to the branch, the others did not.
#[test]
fn clones_that_went_to_different_places_meet_again() {
    let shared = Shared::new();
    let (ours, theirs) = (shared.repo.root(), shared.clone("theirs", &[]));
    for (place, to) in [(&ours, "refs/heads/squad/state"), (&theirs, LOG)] {
        shared.repo.squad_in(place, &["decisions", "add", to]);
        shared.repo.git_in(place, &["config", "remote.origin.squadLedger", to]);
        shared.repo.git_in(place, &["push", "--quiet", "origin", &format!("{LOG}:{to}")]);
        shared.repo.squad_in(place, &["decisions", "add", "More"]);
    }
    assert_eq!(shared.repo.squad(&["sync", "-n"]).out, "2 entries would be pushed to origin, 2 entries fetched\n");
    shared.sync(&ours);
    shared.sync(&theirs);
    shared.sync(&ours);
    assert_eq!((shared.tip(&ours), shared.entries(&ours)), (shared.tip(&theirs), 8));
    assert_eq!(shared.repo.git_in(&shared.hub(), &["rev-parse", LOG]), shared.tip(&ours));
}
