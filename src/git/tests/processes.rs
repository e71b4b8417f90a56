//! Concurrent writers, and writers that die.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    process::Child,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use super::*;

const ROOT: &str = "SQUAD_TEST_ROOT";
const NAME: &str = "SQUAD_TEST_NAME";

/// Not a test by itself: the process that other tests start and kill. Prints each path once it is acknowledged.
#[test]
fn child_appends_until_it_dies() {
    let (Some(root), Some(name)) = (std::env::var_os(ROOT), std::env::var_os(NAME)) else { return };
    let environment = Environment::new("git".into(), Path::new(&root), std::env::vars_os().collect());
    let repository = Repository::discover(Path::new(&root), &environment).unwrap();
    for number in 0.. {
        let path = format!("log/2026/03/{:02}/{}-{number}.md", number % 28 + 1, name.to_string_lossy());
        repository.ledger().append(&[entry(&path, &path)], "entry", &ada(), noon()).unwrap();
        println!("\nacknowledged {path}");
    }
}

/// Runs one of this program's tests in a new process.
fn this_program(world: &World, test: &str) -> Command {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("{module}::{test}"), "--exact", "--nocapture", "--test-threads=1"])
        .env_clear()
        .envs(&world.environment.variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

fn child(world: &World, name: &str) -> Child {
    this_program(world, "child_appends_until_it_dies").env(ROOT, world.root()).env(NAME, name).spawn().unwrap()
}

/// A child's output. A truncated line is no acknowledgement.
fn acknowledgements(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines = lines.map_while(Result::ok).filter(|line| line.ends_with(".md"));
    lines.filter_map(|line| line.strip_prefix("acknowledged ").map(str::to_owned))
}

#[test]
fn nothing_acknowledged_is_lost_when_writers_are_killed() {
    const ROUNDS: u64 = 30;
    let world = World::on_disk();
    let mut expected = Vec::new();
    for round in 0..ROUNDS {
        if round % 7 == 3 {
            world.git(&["pack-refs", "--all", "--prune"]);
        }
        let mut children = [child(&world, &format!("a{round}")), child(&world, &format!("b{round}"))];
        let mut said = children.each_mut().map(acknowledgements);
        expected.extend(said[0].by_ref().take(1 + usize::try_from(round % 3).unwrap()));
        // At some point in the next append.
        thread::sleep(Duration::from_micros(round * 7_919 % 4_000));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        expected.extend(said.into_iter().flatten());
        let path = format!("log/2026/04/01/{round}.md");
        world.append(&path, "after");
        expected.push(path);
    }
    let entries = world.entries();
    let lost: Vec<_> = expected.iter().filter(|path| !entries.contains(path)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(expected.len() as u64 >= 2 * ROUNDS, "only {} entries were acknowledged", expected.len());
    assert!(!world.root().join(".git/refs/squad/log.lock").exists());
    assert!(!world.root().join(".git/packed-refs.lock").exists());
    world.assert_sound();
}

/// Not a test by itself: lands a decision, with a `git` that may kill it.
#[cfg(unix)]
#[test]
fn child_lands() {
    let Some(root) = std::env::var_os("SQUAD_TEST_LAND") else { return };
    let git = std::env::var_os("SQUAD_TEST_GIT").unwrap().into();
    let environment = Environment::new(git, Path::new(&root), std::env::vars_os().collect());
    let repository = Repository::discover(Path::new(&root), &environment).unwrap();
    landed(&repository, &change(&[(".squad/a.md", "a\n"), (".squad/b/c.md", "c\n")]));
}

#[cfg(unix)]
#[test]
fn a_landing_that_is_killed_loses_nothing_and_is_finished_by_the_next() {
    let steps = ["ls-files -t", "check-attr", "config --type", "update-index", "update-ref"];
    for (step, moment) in steps.iter().flat_map(|step| [(step, "before"), (step, "after")]) {
        let world = World::new();
        let wrapper = world.folder.path().join("git-wrapper");
        let script = "#!/bin/sh\ncase \"$*\" in *\"$STEP\"*)\n test $MOMENT = before || git \"$@\" >/dev/null\n \
                      kill -9 $PPID; exit 1;;\nesac\nexec git \"$@\"\n";
        crate::script::write(&wrapper, script);
        world.write("staged.txt", "staged\n");
        world.git(&["add", "staged.txt"]);
        world.write("README.md", "edited\n");
        let mut child = this_program(&world, "child_lands");
        child.env("SQUAD_TEST_LAND", world.root()).env("SQUAD_TEST_GIT", &wrapper).env("STEP", step);
        let output = child.env("MOMENT", moment).output().unwrap();
        assert_eq!(output.status.code(), None, "{moment} {step}: killed");
        world.assert_sound();
        let status = world.git(&["status", "--porcelain", "-uall"]);
        let ours = status.lines().filter(|line| line.contains(".squad"));
        assert!(
            ours.clone().all(|line| line.starts_with("?? ") || line.starts_with("A  ")),
            "{moment} {step}:\n{status}"
        );
        let theirs: Vec<_> = status.lines().filter(|line| !line.contains(".squad")).collect();
        assert_eq!(theirs, [" M README.md", "A  staged.txt"]);
        landed(&world.repository(), &change(&[(".squad/a.md", "a\n"), (".squad/b/c.md", "c\n")]));
        assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\nA  staged.txt\n");
        assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "2\n");
        world.assert_sound();
    }
}

#[test]
fn concurrent_writers_and_git_lose_nothing() {
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
    let commits: usize = world.git(&["rev-list", "--count", "refs/squad/log"]).trim().parse().unwrap();
    assert!((EACH..=WRITERS * EACH).contains(&commits), "{commits}");
    world.assert_sound();
}

#[cfg(unix)]
#[test]
fn a_program_that_waits_for_input_is_killed() {
    let world = World::empty();
    let [script, program] = ["script", "sleeper"].map(|name| world.folder.path().join(name));
    // The grandchild holds the pipes open too.
    fs::write(&script, "#!/bin/sh\nsleep 600 &\nwait\n").unwrap();
    // Copied by another process: a file that we had open for writing could be "busy" if another thread forks.
    assert!(Command::new("install").args(["-m", "755"]).args([&script, &program]).status().unwrap().success());
    let environment = Environment { git: program, ..world.environment.clone() };
    let call = crate::git::program::Call::new(&environment, world.folder.path(), &["commit-tree"]);
    let error = call.timeout(Duration::from_millis(100)).run().err().unwrap();
    assert_eq!(error.to_string(), "`git commit-tree` failed: it did not end within 0 seconds");
}

#[test]
fn git_may_tidy_up_in_the_background() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "x");
    world.git(&["config", "maintenance.autoDetach", "false"]);
    world.repository().maintain().unwrap();
    world.append("log/2026/03/04/b.md", "x");
    assert_eq!(world.entries().len(), 2);
}

/// 32 processes in 3 work trees, while a user runs `git commit`, `git switch` and `git gc`.
#[test]
fn many_processes_over_work_trees_disturb_nobody() {
    const WRITERS: usize = 32;
    const EACH: usize = 3;
    let world = World::new();
    for name in ["second", "third"] {
        world.git(&["worktree", "add", "-q", "-b", name, &format!("../{name}")]);
    }
    let trees = ["repo", "second", "third"].map(|name| world.folder.path().join(name));
    let mut children: Vec<Child> = (0..WRITERS)
        .map(|number| {
            let mut command = this_program(&world, "child_appends_until_it_dies");
            command.env(ROOT, &trees[number % 3]).env(NAME, format!("w{number}"));
            command.spawn().unwrap()
        })
        .collect();
    let is_over = AtomicBool::new(false);
    let expected: Vec<Vec<String>> = thread::scope(|scope| {
        // The writers run as long as somebody reads their output, so all of the user's work happens meanwhile, however
        // fast they are.
        let readers: Vec<_> = children
            .iter_mut()
            .map(|child| {
                let said = acknowledgements(child);
                let is_over = &is_over;
                let enough = move |heard: usize| heard >= EACH && is_over.load(Ordering::Relaxed);
                scope.spawn(move || {
                    said.enumerate().take_while(|(heard, _)| !enough(*heard)).map(|(_, path)| path).collect()
                })
            })
            .collect();
        let user = scope.spawn(|| {
            for commit in 0..4 {
                let tree = &trees[commit % 3];
                fs::write(tree.join("work.txt"), commit.to_string()).unwrap();
                world.git_in(tree, &["add", "work.txt"]);
                world.git_in(tree, &["commit", "-qm", "work"]);
                world.git_in(tree, &["switch", "-qc", &format!("topic-{commit}")]);
            }
            world.git(&["gc", "-q"]);
        });
        let user = user.join();
        is_over.store(true, Ordering::Relaxed);
        user.unwrap();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(expected.iter().all(|heard| heard.len() >= EACH), "nobody gave up: {expected:?}");
    let entries: BTreeSet<_> = world.entries().into_iter().collect();
    let lost: Vec<_> = expected.iter().flatten().filter(|path| !entries.contains(*path)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    for tree in &trees {
        assert_eq!(world.git_in(tree, &["status", "--porcelain"]), "");
    }
    world.append("log/2026/09/09/next.md", "next");
    world.assert_sound();
}
