//! Writers that wait while another one writes, and are served together.

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

/// The kinds of the files that are there.
pub(super) fn kinds(world: &World) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder(world)) else { return Vec::new() };
    let mut kinds: Vec<_> =
        entries.map(|entry| entry.unwrap().path().extension().unwrap().to_string_lossy().into_owned()).collect();
    kinds.sort();
    kinds
}

/// As a writer leaves it that dies while it waits.
pub(super) fn leave_waiting(world: &World, path: &str) {
    fs::create_dir_all(folder(world)).unwrap();
    std::mem::forget(queue(world).enqueue(&[entry(path, "text")]).unwrap());
}

/// Does what is to find the ledger locked, until it waits.
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

/// Appends side by side, all of which find the ledger locked, and what they are told.
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
fn all_who_wait_become_one_commit() {
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
fn what_cannot_be_added_is_the_matter_of_its_own_writer() {
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
fn what_the_dead_left_is_taken_along_and_rubbish_is_not() {
    let world = World::new();
    leave_waiting(&world, "log/2026/03/04/dead.md");
    let whole = fs::read_dir(folder(&world)).unwrap().next().unwrap().unwrap().path();
    let (id, _) = whole.file_name().unwrap().to_str().unwrap().split_once('-').unwrap();
    let bytes = fs::read(&whole).unwrap();
    // Torn, empty, under another name, a folder, and of a path that leads elsewhere.
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
fn a_queue_that_cannot_be_used_or_goes_away_stops_nobody() {
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
