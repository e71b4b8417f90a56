//! Another process moves the ledger's ref at the worst moment: between our read and our own move.

use std::thread;
use std::time::Duration;

use super::*;

/// Takes git's own lock on the ledger's ref, like `git fetch` and `git update-ref`.
fn lock(world: &World) -> PathBuf {
    let lock = world.root().join(".git/refs/squad/log.lock");
    fs::File::create_new(&lock).unwrap();
    lock
}

/// A commit on top of the ledger with one more file, not referenced yet.
fn commit_beside(world: &World, path: &str) -> String {
    let index = world.folder.path().join("other-index");
    let git = |arguments: &[&str]| {
        let done = world.command(&world.root(), arguments).env("GIT_INDEX_FILE", &index).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", "refs/squad/log"]);
    let blob = git(&["rev-parse", "HEAD:README.md"]);
    git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
    let tree = git(&["write-tree"]);
    git(&["commit-tree", &tree, "-p", "refs/squad/log", "-m", "another's"])
}

/// Waits until the writer has read the ref and declared its update.
fn until_it_is_announced(world: &World) {
    let intent = world.root().join(".git/squad/ledger.lock");
    for _ in 0..6_000 {
        if fs::read_to_string(&intent).unwrap_or_default().contains("refs/squad/log") {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("nobody announces anything in {}", intent.display());
}

#[test]
fn a_ref_that_moves_before_we_hold_its_lock_is_read_again() {
    let world = World::new();
    world.append("log/2026/03/04/first.md", "first");
    let theirs = commit_beside(&world, "log/2026/03/04/theirs.md");
    let lock = lock(&world);
    thread::scope(|scope| {
        let writer = scope.spawn(|| world.append("log/2026/03/04/ours.md", "ours"));
        until_it_is_announced(&world);
        // Like git: write the new value into the lock, then rename the lock over the ref.
        fs::write(&lock, format!("{theirs}\n")).unwrap();
        fs::rename(&lock, world.root().join(".git/refs/squad/log")).unwrap();
        writer.join().unwrap();
    });
    let names = ["first", "ours", "theirs"].map(|name| format!("log/2026/03/04/{name}.md"));
    assert_eq!(world.entries(), names, "neither is lost");
    assert!(world.git(&["rev-list", "refs/squad/log"]).contains(&theirs), "and theirs is led to");
    world.assert_sound();
}

/// If the ref is deleted, that stands; our next append starts over, with a commit without a parent.
#[test]
fn a_ref_that_is_deleted_meanwhile_is_read_again() {
    let world = World::new();
    world.append("log/2026/03/04/first.md", "first");
    let lock = lock(&world);
    thread::scope(|scope| {
        let writer = scope.spawn(|| world.append("log/2026/03/04/ours.md", "ours"));
        until_it_is_announced(&world);
        fs::remove_file(world.root().join(".git/refs/squad/log")).unwrap();
        fs::remove_file(&lock).unwrap();
        writer.join().unwrap();
    });
    assert_eq!(world.entries(), ["log/2026/03/04/ours.md"]);
    world.assert_sound();
}

/// A lock that squad did not make is waited for: with an id, without one, or with a draft of ours next to it.
#[test]
fn a_lock_of_somebody_else_is_never_removed() {
    for (content, with_draft) in [("", false), ("", true), ("0000000000000000000000000000000000000001\n", true)] {
        let world = World::new();
        world.append("log/2026/03/04/first.md", "first");
        let lock = lock(&world);
        fs::write(&lock, content).unwrap();
        if with_draft {
            fs::write(world.root().join(".git/squad/ledger.ref"), content).unwrap();
        }
        thread::scope(|scope| {
            let writer = scope.spawn(|| world.append("log/2026/03/04/ours.md", "ours"));
            until_it_is_announced(&world);
            thread::sleep(Duration::from_millis(50));
            assert!(lock.exists() && !writer.is_finished(), "{content:?}: it waits");
            assert_eq!(fs::read_to_string(&lock).unwrap(), content);
            fs::remove_file(&lock).unwrap();
            writer.join().unwrap();
        });
        assert_eq!(world.entries().len(), 2);
        assert!(!lock.exists());
        world.assert_sound();
    }
}

/// A dead writer's declaration is cleared once, and not taken for that of later writers.
#[test]
fn an_intent_ends_with_its_append() {
    let world = World::new();
    world.append("log/2026/03/04/first.md", "first");
    let intent = fs::read_to_string(world.root().join(".git/squad/ledger.lock")).unwrap();
    assert_eq!(intent, "", "nothing is left to be done");
}

/// A push never overwrites what the remote received since our last fetch.
#[test]
fn a_push_overwrites_nothing() {
    let world = World::new();
    world.append("log/2026/03/04/first.md", "first");
    let hub = world.folder.path().join("hub.git");
    world.git(&["clone", "-q", "--bare", ".", "../hub.git"]);
    world.git(&["remote", "add", "origin", "../hub.git"]);
    let theirs = commit_beside(&world, "log/2026/03/04/theirs.md");
    world.git(&["push", "-q", "origin", &format!("{theirs}:refs/squad/log")]);
    world.append("log/2026/03/04/ours.md", "ours");
    let pushed = world.repository().remote("origin").push("refs/squad/log", &ada());
    assert_eq!(world.git_in(&hub, &["rev-parse", "refs/squad/log"]).trim(), theirs, "{pushed:?}");
}

/// A queued append whose bytes do not match its name is ignored.
#[test]
fn a_torn_queue_entry_is_ignored() {
    let world = World::new();
    queue::leave_waiting(&world, "log/2026/03/04/waiting.md");
    let folder = world.root().join(".git/squad/queue");
    for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let mut bytes = fs::read(&file).unwrap();
        // Still readable, but with different text.
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&file, bytes).unwrap();
    }
    world.append("log/2026/03/04/ours.md", "ours");
    assert_eq!(world.entries(), ["log/2026/03/04/ours.md"]);
}
