//! Writers that wait for another one, and share one commit.

use std::{
    thread,
    time::{Duration, SystemTime},
};

use super::*;
use crate::git::{Error, queue::Queue};

fn folder(world: &World) -> PathBuf {
    world.root().join(".git/squad/queue")
}

fn queue(world: &World) -> Queue {
    let repository = world.repository();
    Queue::new(folder(world), repository.hash(), repository.sharing())
}

/// The extensions of the queue's files.
pub(super) fn kinds(world: &World) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder(world)) else { return Vec::new() };
    let mut kinds: Vec<_> =
        entries.map(|entry| entry.unwrap().path().extension().unwrap().to_string_lossy().into_owned()).collect();
    kinds.sort();
    kinds
}

/// Leaves a queue entry, like a writer that dies while it waits.
pub(super) fn leave_waiting(world: &World, path: &str) {
    fs::create_dir_all(folder(world)).unwrap();
    std::mem::forget(queue(world).enqueue(&[entry(path, "text")]).unwrap());
}

/// Runs `act` with the ledger locked, until it is waiting in the queue.
pub(super) fn after_waiting<T>(world: &World, act: impl FnOnce() -> T) -> T {
    let lock = world.repository().ledger().lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            while !kinds(world).contains(&"wait".to_owned()) {
                thread::sleep(Duration::from_micros(100));
            }
            drop(lock);
        });
        act()
    })
}

fn commits(world: &World) -> String {
    world.git(&["rev-list", "--count", "refs/squad/log"]).trim().to_owned()
}

/// The results of concurrent appends that all find the ledger locked.
fn append_together(world: &World, paths: &[String], text: &str) -> Vec<Result<(), Error>> {
    let repository = world.repository();
    let ledger = repository.ledger();
    let lock = ledger.lock().unwrap();
    thread::scope(|scope| {
        let append = |path| ledger.append(&[entry(path, text)], "entry", &ada(), noon());
        let writers: Vec<_> = paths.iter().map(|path| scope.spawn(move || append(path))).collect();
        while queue(world).pending().len() < paths.len() {
            assert!(writers.iter().all(|writer| !writer.is_finished()), "the ledger is locked");
            thread::sleep(Duration::from_millis(1));
        }
        drop(lock);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    })
}

#[test]
fn waiting_appends_share_one_commit() {
    let world = World::new();
    let paths: Vec<_> = (0..12).map(|number| format!("log/2026/03/04/{number:02}.md")).collect();
    for answer in append_together(&world, &paths, "text") {
        answer.unwrap();
    }
    assert_eq!(world.entries(), paths);
    assert_eq!(commits(&world), "1");
    assert_eq!(world.git(&["log", "-1", "--format=%s", "refs/squad/log"]), "entries of 12 writers\n");
    assert_eq!(kinds(&world), [""; 0]);
    world.assert_sound();
}

#[test]
fn a_conflicting_append_fails_only_its_own_writer() {
    let world = World::new();
    world.append("log/2026/03/04/b.md", "another text");
    let paths = ["a", "b", "c"].map(|name| format!("log/2026/03/04/{name}.md"));
    let answers = append_together(&world, &paths, "text");
    assert!(matches!(&answers[1], Err(Error::Taken { path }) if *path == paths[1]), "{answers:?}");
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert_eq!(world.entries(), paths);
    assert_eq!(world.git(&["show", &format!("refs/squad/log:{}", paths[1])]), "another text");
    assert_eq!(kinds(&world), [""; 0]);
    world.assert_sound();
}

#[test]
fn entries_of_dead_writers_are_appended_and_garbage_is_not() {
    let world = World::new();
    leave_waiting(&world, "log/2026/03/04/dead.md");
    let whole = fs::read_dir(folder(&world)).unwrap().next().unwrap().unwrap().path();
    let (id, _) = whole.file_name().unwrap().to_str().unwrap().split_once('-').unwrap();
    let bytes = fs::read(&whole).unwrap();
    // Torn, empty, with a wrong name, a folder, and with a bad path.
    let torn = folder(&world).join(format!("{id}-torn.wait"));
    fs::write(&torn, &bytes[..bytes.len() / 2]).unwrap();
    fs::write(folder(&world).join(format!("{id}-empty.wait")), b"").unwrap();
    fs::write(folder(&world).join("rubbish.wait"), &bytes).unwrap();
    fs::create_dir(folder(&world).join("folder.wait")).unwrap();
    std::mem::forget(queue(&world).enqueue(&[entry("log/../../a", "text")]).unwrap());
    world.append("log/2026/03/04/a.md", "text");
    assert_eq!(world.entries(), ["log/2026/03/04/a.md", "log/2026/03/04/dead.md"]);
    assert_eq!(kinds(&world), ["done", "wait", "wait", "wait", "wait", "wait"]);
    assert!(whole.with_extension("done").exists());

    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    for path in [&torn, &whole.with_extension("done")] {
        fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    world.append("log/2026/03/04/b.md", "text");
    assert_eq!(kinds(&world), ["wait", "wait", "wait", "wait"]);
    assert_eq!(world.entries().len(), 3);
    world.assert_sound();
}

#[test]
fn a_broken_or_deleted_queue_blocks_nobody() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "text");
    fs::write(folder(&world), "").unwrap();
    let (repository, large) = (world.repository(), "x".repeat(300 << 10));
    let lock = repository.ledger().lock().unwrap();
    thread::scope(|scope| {
        let append = |path: &'static str, text: &'static str| {
            let repository = world.repository();
            scope.spawn(move || repository.ledger().append(&[entry(path, text)], "entry", &ada(), noon()))
        };
        let refused = append("log/2026/03/04/b.md", "text");
        thread::sleep(Duration::from_millis(50));
        fs::remove_file(folder(&world)).unwrap();
        let forgotten = append("log/2026/03/04/c.md", "text");
        while kinds(&world).is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        fs::remove_dir_all(folder(&world)).unwrap();
        drop(lock);
        refused.join().unwrap().unwrap();
        forgotten.join().unwrap().unwrap();
    });
    assert!(queue(&world).enqueue(&[entry("log/2026/03/04/large.md", &large)]).is_none());
    assert_eq!(world.entries().len(), 3);
}
