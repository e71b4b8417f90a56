//! Everything squad writes, while the user runs `git gc --prune=now` and `git repack -ad`, which remove everything that
//! was unreferenced when they started, however new. The time between pack and ref is stretched from one millisecond to
//! fifty.
//!
//! `cargo test --lib beside_gc -- --ignored --nocapture` runs the long ones.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::*;

thread_local! {
    static WINDOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Called between writing a pack and moving its ref.
pub(in crate::git) fn linger() {
    thread::sleep(WINDOW.get());
}

fn with_window<T>(act: impl FnOnce() -> T) -> T {
    WINDOW.set(Duration::from_millis(50));
    let answer = act();
    WINDOW.set(Duration::ZERO);
    answer
}

/// The paths that writers wrote.
#[derive(Default)]
struct Written {
    entries: Vec<String>,
    landed: Vec<String>,
}

/// State shared by the writers and the user's git.
#[derive(Default)]
struct Race {
    is_over: AtomicBool,
    appended: AtomicUsize,
}

/// Runs writers of every kind until the race is over; returns what was acknowledged.
fn write_until(world: &World, race: &Race) -> Written {
    let goes_on = || !race.is_over.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let appending = |name: &'static str| {
            let repository = world.repository();
            scope.spawn(move || {
                with_window(|| {
                    let mut paths = Vec::new();
                    while goes_on() {
                        let path = format!("log/2026/03/{:02}/{name}-{}.md", paths.len() % 28 + 1, paths.len());
                        repository.ledger().append(&[entry(&path, &path)], "entry", &ada(), noon()).unwrap();
                        paths.push(path);
                        race.appended.fetch_add(1, Ordering::Relaxed);
                    }
                    paths
                })
            })
        };
        let appends = [appending("a"), appending("b")];
        let landings = scope.spawn(|| {
            with_window(|| {
                let repository = world.repository();
                let mut paths = Vec::new();
                while goes_on() {
                    let path = format!(".squad/decisions/{}.md", paths.len());
                    // `git gc` does not wait for an index.
                    if let Landing::Landed { .. } = land(&repository, &change(&[(&path, &path)])) {
                        paths.push(path);
                    }
                }
                paths
            })
        });
        let rescues = scope.spawn(|| {
            with_window(|| {
                let repository = world.repository();
                for number in 0.. {
                    fs::write(world.root().join("untracked.txt"), number.to_string()).unwrap();
                    let at = noon() + jiff::SignedDuration::from_secs(number);
                    repository.rescue(|_| None, |_, _| "rescue".to_owned(), &ada(), at).unwrap();
                    if !goes_on() {
                        break;
                    }
                }
            })
        });
        let entries = appends.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        rescues.join().unwrap();
        Written { entries, landed: landings.join().unwrap() }
    })
}

fn assert_nothing_is_lost(world: &World, written: &Written) {
    world.assert_sound();
    let listed = world.git(&["rev-list", "--objects", "--missing=print", "--all", "--reflog"]);
    let missing: Vec<_> = listed.lines().filter(|line| line.starts_with('?')).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let holds = |reference: &str, paths: &[String]| {
        for path in paths {
            assert_eq!(world.git(&["show", &format!("{reference}:{path}")]), *path);
        }
    };
    holds("refs/squad/log", &written.entries);
    holds("main", &written.landed);
    // The user's gc still works.
    world.git(&["gc", "--prune=now", "-q"]);
    assert!(files_in(&world.packs(), "keep").is_empty());
}

fn beside_gc(rounds: usize) {
    let world = World::new();
    for number in 0..100 {
        world.write(&format!("src/{number}.txt"), &number.to_string());
    }
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "files"]);
    let start = Instant::now();
    let race = Race::default();
    let mut most = 0;
    let mut round = 0;
    let written = thread::scope(|scope| {
        let writers = scope.spawn(|| write_until(&world, &race));
        let mut failed = Vec::new();
        // A slow machine runs more rounds, and never has fewer entries than the requested rounds.
        while round < rounds || race.appended.load(Ordering::Relaxed) <= rounds && !writers.is_finished() {
            for command in [&["gc", "--prune=now", "-q"][..], &["repack", "-adq"]] {
                let output = world.try_git(command);
                if !output.status.success() {
                    failed.push(format!("{round} {command:?}: {}", String::from_utf8_lossy(&output.stderr)));
                }
                most = most.max(files_in(&world.packs(), "idx").len());
            }
            round += 1;
        }
        race.is_over.store(true, Ordering::Relaxed);
        let written = writers.join().unwrap();
        assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
        written
    });
    let (entries, landed, rescues) =
        (written.entries.len(), written.landed.len(), world.repository().rescues().unwrap().len());
    println!(
        "{round} gc --prune=now and {round} repack -ad beside {entries} appends, {landed} landings and {rescues} rescues in {:.0?}; at most {most} packs",
        start.elapsed(),
    );
    assert_nothing_is_lost(&world, &written);
    assert!(entries > rounds && landed > 0 && rescues > 0);
}

#[test]
fn a_concurrent_gc_removes_nothing_of_ours() {
    beside_gc(8);
}

/// The number of rounds: `SQUAD_TEST_ROUNDS`, by default 500.
#[test]
#[ignore = "takes minutes"]
fn hundreds_of_concurrent_gcs_remove_nothing_of_ours() {
    beside_gc(std::env::var("SQUAD_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(500));
}

/// A gc that takes seconds, in the middle of the decisions of a run.
#[test]
#[ignore = "takes a minute"]
fn one_gc_of_a_large_repository_takes_no_decision() {
    const COMMITS: usize = 20_000;
    const DECISIONS: usize = 60;
    for round in 0..6 {
        let world = World::new();
        let mut stream = String::new();
        for number in 0..COMMITS {
            let from = if number == 0 { "from refs/heads/main^0\n" } else { "" };
            stream.push_str(&format!(
                "commit refs/heads/main\ncommitter Ada <ada@example.com> {} +0000\ndata 1\nx\n{from}M 100644 inline src/{}.txt\ndata 6\n{number:06}\n",
                1_700_000_000 + number,
                number % 500,
            ));
        }
        let file = world.folder.path().join("stream");
        fs::write(&file, stream).unwrap();
        let import =
            world.command(&world.root(), &["fast-import", "--quiet"]).stdin(fs::File::open(&file).unwrap()).status();
        assert!(import.unwrap().success());
        world.git(&["reset", "-q", "--hard"]);
        let mut written = Written::default();
        let took = thread::scope(|scope| {
            let repository = world.repository();
            let mut gc = None;
            for number in 0..DECISIONS {
                if number == 5 {
                    let world = &world;
                    gc = Some(scope.spawn(move || {
                        let start = Instant::now();
                        world.git(&["gc", "--prune=now", "-q"]);
                        start.elapsed()
                    }));
                }
                let path = format!("decisions/2026/03/04/{number}.md");
                repository.ledger().append(&[entry(&path, &path)], "entry", &ada(), noon()).unwrap();
                written.entries.push(path);
                let path = format!(".squad/decisions/{number}.md");
                landed(&repository, &change(&[(&path, &path)]));
                written.landed.push(path);
                // At the pace of an agent.
                thread::sleep(Duration::from_millis(20));
            }
            gc.unwrap().join().unwrap()
        });
        assert_nothing_is_lost(&world, &written);
        println!("round {round}: {DECISIONS} decisions beside a gc of {took:.1?}");
    }
}

/// A bundle's objects come in under a `.keep`, and nothing comes in before they are wanted.
#[test]
fn a_bundle_comes_in_beside_a_gc_whole_or_not_at_all() {
    let source = World::new();
    source.write(".squad/team.md", "team");
    source.git(&["add", "."]);
    source.git(&["commit", "-qm", "team"]);
    for number in 0..20 {
        source.append(&format!("log/2026/03/04/{number}.md"), &number.to_string());
    }
    let (head, bundle) = (source.git(&["rev-parse", "HEAD"]), source.folder.path().join("team.squad"));
    source.repository().write_bundle(head.trim(), Some(".squad"), true, &ada(), &bundle).unwrap();
    for round in 0..4 {
        let world = World::new();
        world.append("log/2026/03/04/ours.md", "ours");
        let everything = |world: &World| world.git(&["for-each-ref"]) + &world.git(&["count-objects", "-v"]);
        let before = everything(&world);
        let read = world.repository().read_bundle(&bundle, 1 << 20).unwrap();
        assert_eq!((read.files.len(), everything(&world)), (1, before), "reading takes nothing");
        let ledger = read.ledger.unwrap();
        assert_eq!(ledger.entries, 20);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    world.git(if round % 2 == 0 { &["gc", "--prune=now", "-q"] } else { &["repack", "-adq"] });
                }
            });
            let taken = with_window(|| {
                world.repository().take_bundled_ledger(&ledger, &|_| Default::default(), &|a, _| a.to_owned(), &ada())
            });
            is_over.store(true, Ordering::Relaxed);
            taken.unwrap();
        });
        assert_eq!(world.entries().len(), 21);
        world.assert_sound();
        world.git(&["gc", "--prune=now", "-q"]);
        assert!(files_in(&world.packs(), "keep").is_empty());
    }
}
