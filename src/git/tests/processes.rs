//! Many writers, and writers that die.

use std::{
    io::{BufRead, BufReader},
    process::Child,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::*;

const ROOT: &str = "SQUAD_TEST_ROOT";
const NAME: &str = "SQUAD_TEST_NAME";

/// Not a test by itself: the process that the others start and kill. Says each path after it is acknowledged.
#[test]
fn child_appends_until_it_dies() {
    let (Some(root), Some(name)) = (std::env::var_os(ROOT), std::env::var_os(NAME)) else { return };
    let environment = Environment { git: "git".into(), variables: std::env::vars_os().collect() };
    let repository = Repository::discover(Path::new(&root), &environment).unwrap();
    for number in 0.. {
        let path = format!("log/2026/03/{:02}/{}-{number}.md", number % 28 + 1, name.to_string_lossy());
        repository.ledger().append(&[entry(&path, &path)], "entry", &ada(), noon()).unwrap();
        println!("\nacknowledged {path}");
    }
}

fn child(world: &World, name: &str) -> Child {
    let (_, test) = concat!(module_path!(), "::child_appends_until_it_dies").split_once("::").unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env_clear()
        .envs(&world.environment.variables)
        .env(ROOT, world.root())
        .env(NAME, name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn acknowledged(child: &mut Child) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // A line that death cut short is no acknowledgement.
    let lines = lines.map_while(Result::ok).filter(|line| line.ends_with(".md"));
    lines.filter_map(|line| line.strip_prefix("acknowledged ").map(str::to_owned)).collect()
}

#[test]
fn nothing_acknowledged_is_lost_when_writers_are_killed() {
    let world = World::new();
    let mut expected = Vec::new();
    for round in 0..30_u64 {
        if round % 7 == 3 {
            world.git(&["pack-refs", "--all", "--prune"]);
        }
        let mut children = [child(&world, &format!("a{round}")), child(&world, &format!("b{round}"))];
        // Different moments of the append, the first of them often before the first append.
        thread::sleep(Duration::from_micros(15_000 + round * 7_919 % 60_000));
        for child in &mut children {
            child.kill().unwrap();
        }
        for child in &mut children {
            expected.extend(acknowledged(child));
            child.wait().unwrap();
        }
        let start = Instant::now();
        let path = format!("log/2026/04/01/{round}.md");
        world.append(&path, "after");
        assert!(start.elapsed() < Duration::from_secs(5), "the next writer is not held up");
        expected.push(path);
    }
    let entries = world.entries();
    let lost: Vec<_> = expected.iter().filter(|path| !entries.contains(path)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(expected.len() > 100, "only {} entries were acknowledged", expected.len());
    assert!(!world.root().join(".git/refs/squad/log.lock").exists());
    assert!(!world.root().join(".git/packed-refs.lock").exists());
    world.assert_sound();
}

#[test]
fn writers_and_git_beside_them_lose_nothing() {
    const WRITERS: usize = 8;
    const EACH: usize = 25;
    let world = World::new();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for command in [&["pack-refs", "--all", "--prune"][..], &["gc", "-q"], &["prune-packed", "-q"]] {
            let (world, is_over) = (&world, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    world.try_git(command);
                }
            });
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let repository = world.repository();
                scope.spawn(move || {
                    for number in 0..EACH {
                        let path = format!("log/2026/03/{:02}/{writer}-{number}.md", number % 3 + 1);
                        repository.ledger().append(&[entry(&path, "text")], "entry", &ada(), noon()).unwrap();
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            outcome.unwrap();
        }
    });
    assert_eq!(world.entries().len(), WRITERS * EACH);
    let commits = world.git(&["rev-list", "--count", "refs/squad/log"]);
    assert_eq!(commits.trim(), (WRITERS * EACH).to_string());
    world.assert_sound();
}

/// Not a test: figures for this machine. `cargo test --release git:: -- --ignored --nocapture figures`
#[test]
#[ignore = "prints figures"]
fn figures() {
    let world = World::new();
    let repository = world.repository();
    let text = "x".repeat(1000);
    let append = |number: usize| {
        let path = format!("log/2026/03/{:02}/{number:06}.md", number % 28 + 1);
        repository.ledger().append(&[entry(&path, &text)], "entry", &ada(), noon()).unwrap();
    };
    let start = Instant::now();
    let mut times: Vec<_> = (0..1000)
        .map(|number| {
            let start = Instant::now();
            append(number);
            start.elapsed()
        })
        .collect();
    let total = start.elapsed();
    times.sort();
    println!("1,000 appends: {:.0}/s, median {:?}, worst {:?}", 1000.0 / total.as_secs_f64(), times[500], times[999]);

    let start = Instant::now();
    thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || (0..100).for_each(|number| append(10_000 + writer * 1_000 + number)));
        }
    });
    println!("8 threads x 100: {:.0}/s", 800.0 / start.elapsed().as_secs_f64());

    let start = Instant::now();
    let files: Vec<_> =
        (0..9_000).map(|number| entry(&format!("log/2026/05/{:02}/{number}.md", number % 28 + 1), &text)).collect();
    repository.ledger().append(&files, "many", &ada(), noon()).unwrap();
    println!("9,000 entries in one append: {:?}", start.elapsed());
    for state in ["loose", "packed"] {
        if state == "packed" {
            world.git(&["gc", "-q"]);
        }
        let start = Instant::now();
        let repository = world.repository();
        let discovered = start.elapsed();
        let head = repository.head().unwrap();
        let snapshot = repository.ledger().snapshot().unwrap().unwrap();
        let count = snapshot.count("log").unwrap();
        let counted = start.elapsed();
        let newest = snapshot.files(&snapshot.days("log").unwrap()[0]).unwrap().len();
        println!(
            "{state}: discover {discovered:?}, with head and count of {count} {counted:?}, with the newest {newest} {:?}",
            start.elapsed()
        );
        assert!(head.commit.is_some());
    }
    let start = Instant::now();
    (20_000..20_200).for_each(append);
    println!("200 appends beside 10,800 packed: {:?} each", start.elapsed() / 200);
    let start = Instant::now();
    landed(&repository, &change(&[(".squad/decisions/2026/03/04-x.md", &text)]));
    println!("landing: {:?}", start.elapsed());
}
