use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::*;
use crate::git::{Error, Walk};

#[test]
fn entries_come_back_as_they_were_written() {
    let world = World::new();
    assert!(world.repository().ledger().snapshot().unwrap().is_none());
    world.append("log/2026/03/04/b.md", "two");
    world.append("log/2026/03/04/a.md", "one");
    world.append("log/2025/12/31/z.md", "old");
    world.append("decisions/2026/03/04/d.md", "decided");
    let snapshot = world.repository().ledger().snapshot().unwrap().unwrap();
    let log = snapshot.folder("log").unwrap().unwrap();
    let (years, files) = snapshot.children(&log, &mut Walk::default()).unwrap().value;
    assert_eq!((years.iter().map(|year| &*year.path).collect::<Vec<_>>(), files), (vec!["log/2025", "log/2026"], 0));
    let listing = snapshot.listing("log/2026").unwrap().value;
    assert_eq!(
        listing.iter().map(|file| &*file.path).collect::<Vec<_>>(),
        ["log/2026/03/04/a.md", "log/2026/03/04/b.md"]
    );
    assert_eq!(snapshot.read("b", &listing[1].key()).unwrap().unwrap(), b"two");
    assert!(snapshot.folder("log/2026/03/04/a.md").unwrap().is_none());
    assert!(matches!(snapshot.read("b", "rubbish"), Err(Error::Damaged { .. })));
    assert_eq!(snapshot.paths("decisions").unwrap(), ["decisions/2026/03/04/d.md"]);
    assert_eq!((snapshot.count("log").unwrap(), snapshot.count("").unwrap(), snapshot.count("x").unwrap()), (3, 4, 0));
    assert_eq!(snapshot.find("log/2025/12/31/z.md").unwrap().unwrap(), b"old");
    assert_eq!(snapshot.find("log/2025/12/31").unwrap(), None);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    let log = world.git(&["log", "--format=%an %ae %cn %at %s", "refs/squad/log"]);
    assert_eq!(log.lines().next().unwrap(), "Ada ada@example.com Ada 1772625600 entry");
    assert_eq!(log.lines().count(), 4);
    world.assert_sound();
}

#[test]
fn appending_twice_is_idempotent_and_other_text_is_refused() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "one");
    let tip = world.git(&["rev-parse", "refs/squad/log"]);
    world.append("log/2026/03/04/a.md", "one");
    assert_eq!(world.git(&["rev-parse", "refs/squad/log"]), tip);
    for path in ["log/2026/03/04/a.md", "log/2026/03/04", "log/2026/03/04/a.md/below"] {
        let repository = world.repository();
        let answer = repository.ledger().append(&[entry(path, "other")], "entry", &ada(), noon());
        assert!(matches!(answer, Err(Error::Taken { .. })), "{path}: {answer:?}");
    }
    assert_eq!(world.git(&["rev-parse", "refs/squad/log"]), tip);
    // A file next to the day's folder: folders and files sort differently.
    world.append("log/2026/03/04.md", "beside");
    world.append("log/2026/03/04-1/x.md", "beside");
    assert_eq!(world.entries().len(), 3);
    world.assert_sound();
}

#[test]
fn paths_that_could_escape_are_refused() {
    let world = World::new();
    for path in [
        "",
        "/a",
        "a//b",
        "../a",
        "a/./b",
        ".git/config",
        "a/.GIT/b",
        "a\\b",
        "a\0b",
        "a/",
        ".git::$INDEX_ALLOCATION/x",
        "GIT~1/x",
    ] {
        let answer = world.repository().ledger().append(&[entry(path, "x")], "entry", &ada(), noon());
        assert!(matches!(answer, Err(Error::BadPath { .. })), "{path:?}: {answer:?}");
    }
}

#[test]
fn a_name_that_would_break_the_commit_is_cleaned() {
    let world = World::new();
    for (number, name) in ["", "<evil>\ncommitter x", " . "].into_iter().enumerate() {
        let identity = Identity { name: name.into(), email: "a>b@c\n".into() };
        let files = [entry(&format!("log/2026/03/04/{number}.md"), "x")];
        world.repository().ledger().append(&files, "nul \0 inside", &identity, noon()).unwrap();
    }
    world.assert_sound();
}

#[test]
fn many_entries_at_once_become_a_pack() {
    let world = World::new();
    world.append("log/2026/03/04/first.md", "x");
    let files: Vec<_> =
        (0..300).map(|number| entry(&format!("log/2026/03/05/{number}.md"), &"text ".repeat(number))).collect();
    world.repository().ledger().append(&files, "many", &ada(), noon()).unwrap();
    let snapshot = world.repository().ledger().snapshot().unwrap().unwrap();
    assert_eq!(snapshot.count("log").unwrap(), 301);
    assert_eq!(snapshot.find("log/2026/03/05/299.md").unwrap().unwrap().len(), 5 * 299);
    assert_eq!(files_in(&world.packs(), "pack").len(), 2, "one for each append");
    world.assert_sound();
}

#[test]
fn all_kinds_of_repositories_keep_a_ledger() {
    for init in known_formats(&["--object-format=sha256", "--ref-format=reftable", "--bare", "--shared=group"]) {
        let world = World::unborn(&[init]);
        for number in 0..3 {
            world.append(&format!("log/2026/03/0{number}/a.md"), "x");
        }
        assert_eq!(world.entries().len(), 3, "{init:?}");
        assert_eq!(world.repository().ledger().snapshot().unwrap().unwrap().count("log").unwrap(), 3);
        world.assert_sound();
    }
}

#[test]
fn no_reflog_is_kept_and_linked_work_trees_share_the_ledger() {
    let world = World::new();
    world.git(&["config", "core.logAllRefUpdates", "always"]);
    world.git(&["worktree", "add", "-q", "../linked"]);
    let linked = Repository::discover(&world.folder.path().join("linked"), &world.environment).unwrap();
    linked.ledger().append(&[entry("log/2026/03/04/a.md", "x")], "entry", &ada(), noon()).unwrap();
    world.append("log/2026/03/04/b.md", "y");
    assert_eq!(world.entries().len(), 2);
    assert!(!world.root().join(".git/logs/refs/squad").exists());
}

#[test]
fn a_packed_ledger_is_found_and_goes_on() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "x");
    world.git(&["pack-refs", "--all", "--prune"]);
    world.git(&["gc", "-q"]);
    assert!(!world.root().join(".git/refs/squad/log").exists());
    world.append("log/2026/03/04/b.md", "y");
    assert_eq!(world.entries().len(), 2);
    world.assert_sound();
}

#[test]
fn only_the_lock_of_a_dead_writer_is_removed() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "x");
    let lock = world.root().join(".git/refs/squad/log.lock");
    let id = world.git(&["rev-parse", "HEAD"]);
    fs::write(&lock, &id).unwrap();
    fs::write(world.root().join(".git/squad/ledger.lock"), format!("refs/squad/log {id}")).unwrap();
    world.append("log/2026/03/04/b.md", "y");
    assert!(!lock.exists());

    // After a power cut the intent may be gone, but the link to our draft still identifies the lock.
    let draft = world.root().join(".git/squad/ledger.ref");
    fs::write(&draft, &id).unwrap();
    fs::hard_link(&draft, &lock).unwrap();
    world.append("log/2026/03/04/c.md", "z");
    assert!(!lock.exists());

    fs::write(&lock, "").unwrap();
    let release = thread::spawn({
        let lock = lock.clone();
        move || {
            thread::sleep(Duration::from_millis(200));
            fs::remove_file(lock).unwrap();
        }
    });
    let start = Instant::now();
    world.append("log/2026/03/04/d.md", "z");
    assert!(start.elapsed().as_millis() >= 150, "waited for the living");
    release.join().unwrap();
    assert_eq!(world.entries().len(), 4);
}

#[test]
fn unreadable_objects_are_reported_and_the_rest_is_read() {
    let paths = ["log/2026/03/04/a.md", "log/2026/05/b.md", "memory/c.md"];
    let cases: [(&str, &str, &[&str]); 6] = [
        ("refs/squad/log:log/2026/03/04/a.md", "log/2026/03/04/a.md", &["log/2026/05/b.md", "memory/c.md"]),
        ("refs/squad/log:log/2026/03", "log/2026/03", &["log/2026/05/b.md", "memory/c.md"]),
        ("refs/squad/log:log/2026", "log/2026", &["memory/c.md"]),
        ("refs/squad/log:log", "log", &["memory/c.md"]),
        ("refs/squad/log^{tree}", "", &[]),
        ("refs/squad/log", "", &[]),
    ];
    for (lost, place, left) in cases {
        let world = World::new();
        paths.iter().for_each(|path| world.append(path, path));
        let id = world.lose(lost);
        let repository = world.repository();
        let mut found = Vec::new();
        let snapshot = repository.ledger().snapshot().unwrap().unwrap();
        snapshot.each(|file, bytes| found.push((file.path.clone(), bytes.to_vec()))).unwrap();
        let left: Vec<_> = left.iter().map(|path| ((*path).to_owned(), path.as_bytes().to_vec())).collect();
        assert_eq!(found, left, "{lost}");
        let damage = repository.damage().all();
        assert_eq!((damage.len(), &*damage[0].path, damage[0].object.as_ref()), (1, place, Some(&id)), "{lost}");

        // New entries can be appended, and the unreadable folder is still kept.
        let appended = repository.ledger().append(&[entry("log/2026/03/04/d.md", "d")], "e", &ada(), noon());
        if lost == "refs/squad/log" {
            assert!(matches!(appended, Err(Error::Object { .. })), "{appended:?}");
            continue;
        }
        appended.unwrap();
        let again = world.repository();
        let snapshot = again.ledger().snapshot().unwrap().unwrap();
        assert_eq!(snapshot.find("log/2026/03/04/d.md").unwrap().unwrap(), b"d", "{lost}");
        assert_eq!(snapshot.count("").unwrap(), left.len() + 1 + usize::from(lost.ends_with("a.md")), "{lost}");
        snapshot.each(|_, _| ()).unwrap();
        assert_eq!(again.damage().all()[0].object.as_ref(), Some(&id), "{lost}");
    }
}

#[test]
fn an_exponential_tree_costs_no_more_than_it_stores() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "a");
    let mut bomb = world.git_with(&["hash-object", "-w", "--stdin"], "boom");
    let mut kind = "100644 blob";
    for _ in 0..30 {
        let lines: String = (0..40).map(|at| format!("{kind} {bomb}\tf{at:02}\n")).collect();
        bomb = world.git_with(&["mktree"], &lines);
        kind = "040000 tree";
    }
    let log = world.git(&["rev-parse", "refs/squad/log:log"]);
    let root =
        world.git_with(&["mktree"], &format!("040000 tree {bomb}\tdecisions\n040000 tree {}\tlog\n", log.trim()));
    let commit = world.git(&["commit-tree", &root, "-p", "refs/squad/log", "-m", "bomb"]);
    world.git(&["update-ref", "refs/squad/log", commit.trim()]);
    let repository = world.repository();
    let snapshot = repository.ledger().snapshot().unwrap().unwrap();
    assert_eq!(snapshot.count("log").unwrap(), 1);
    let found = snapshot.count("decisions").unwrap();
    assert!((40..5_000).contains(&found), "{found}");
    let damage = repository.damage().all();
    assert!((1_000..10_000).contains(&damage.len()), "{}", damage.len());
    assert!(damage.iter().all(|damage| damage.path.starts_with("decisions/f") && damage.reason.contains("too many")));
    // Writing and comparing do not read every folder either.
    world.append("decisions/f00/f00/f00/b.md", "b");
    let now = repository.ledger().snapshot().unwrap().unwrap();
    let added = now.added_since(&snapshot, "decisions").unwrap();
    assert_eq!(added.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["decisions/f00/f00/f00/b.md"]);
}

#[test]
fn a_ref_that_holds_no_object_is_an_error_and_never_empty() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "x");
    for content in ["rubbish\n", "", "ref: refs/heads/main\n", &"0".repeat(39)] {
        fs::write(world.root().join(".git/refs/squad/log"), content).unwrap();
        assert!(matches!(world.repository().ledger().snapshot(), Err(Error::Damaged { .. })), "{content:?}");
    }
    // The ref names a blob: the ledger cannot be read or appended to.
    let blob = world.git(&["rev-parse", "HEAD:README.md"]);
    fs::write(world.root().join(".git/refs/squad/log"), &blob).unwrap();
    let repository = world.repository();
    assert!(!repository.ledger().snapshot().unwrap().unwrap().is_there());
    assert_eq!(repository.damage().all()[0].object.as_deref(), Some(blob.trim()));
    let answer = repository.ledger().append(&[entry("log/2026/03/04/b.md", "x")], "e", &ada(), noon());
    assert!(matches!(answer, Err(Error::Object { .. })), "{answer:?}");
}

#[cfg(unix)]
#[test]
fn an_unwritable_folder_is_named_in_the_error() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "x");
    // Root ignores permissions, so put a file where a folder is needed.
    let place = world.root().join(".git/squad");
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "").unwrap();
    let answer = world.repository().ledger().append(&[entry("log/2026/03/04/b.md", "x")], "e", &ada(), noon());
    let sentence = answer.unwrap_err().to_string();
    assert!(sentence.contains(".git/squad") && sentence.starts_with("cannot "), "{sentence}");
    assert_eq!(world.entries().len(), 1);
    world.assert_sound();
}

#[test]
fn entries_of_every_size_come_back() {
    let world = World::new();
    let sizes = [0, 1, 3, 4_060, 4_070, 4_074, 4_075, 4_076, 4_077, 4_085, 4_096, 65_535, 65_536, 300_000];
    for (number, size) in sizes.into_iter().enumerate() {
        // Content that does not compress well.
        let text: String =
            (0..size as u32).map(|at| char::from(b' ' + (at.wrapping_mul(2_654_435_761) >> 25) as u8 % 95)).collect();
        let path = format!("log/2026/03/04/{number}.md");
        world.append(&path, &text);
        assert_eq!(world.git(&["cat-file", "-p", &format!("refs/squad/log:{path}")]), text, "{size}");
        let read = world.repository().ledger().snapshot().unwrap().unwrap().find(&path).unwrap();
        assert_eq!(read.as_deref(), Some(text.as_bytes()), "{size}");
    }
    world.assert_sound();
}

#[test]
fn cached_objects_do_not_hide_another_writers_append() {
    let world = World::new();
    let (mine, other) = (world.repository(), world.repository());
    let append = |repository: &Repository, name: &str| {
        let path = format!("log/2026/03/04/{name}.md");
        repository.ledger().append(&[entry(&path, name)], "entry", &ada(), noon()).unwrap();
    };
    for (repository, name) in [(&mine, "a"), (&mine, "b"), (&other, "c"), (&mine, "d"), (&other, "e"), (&other, "f")] {
        append(repository, name);
        // Packed, and no longer where it was written.
        world.git(&["gc", "--quiet", "--prune=now"]);
    }
    assert_eq!(world.entries().len(), 6);
    world.assert_sound();
}

/// Does what gc does to objects, in a loop: packs them, removes the loose files, and unpacks them.
#[test]
fn an_object_is_found_while_it_moves() {
    let world = World::new();
    world.append("log/2026/03/04/a.md", "x");
    world.unpack();
    let objects = world.root().join(".git/objects");
    let aside = world.folder.path().join("aside");
    copy_folder(&objects, &aside);
    let names = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.strip_prefix(folder).unwrap().to_owned()).collect()
    };
    let fan_outs = names(&objects).into_iter().filter(|name| name.as_os_str().len() == 2);
    let files: Vec<PathBuf> =
        fan_outs.flat_map(|name| names(&objects.join(&name)).into_iter().map(move |file| name.join(file))).collect();
    world.git(&["gc", "-q"]);
    let mut packs: Vec<PathBuf> =
        names(&objects.join("pack")).into_iter().map(|file| Path::new("pack").join(file)).collect();
    // The index last, since it makes the pack visible.
    packs.sort_by_key(|file| file.extension().is_some_and(|extension| extension == "idx"));
    for file in &packs {
        fs::copy(objects.join(file), aside.join(file)).unwrap();
    }
    let repository = world.repository();
    let tip = repository.references().read("refs/squad/log").unwrap().unwrap();

    let is_over = AtomicBool::new(false);
    let bring = |file: &PathBuf| {
        fs::create_dir_all(objects.join(file).parent().unwrap()).unwrap();
        fs::hard_link(aside.join(file), objects.join(file)).unwrap();
    };
    let remove = |file: &PathBuf| fs::remove_file(objects.join(file)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                files.iter().for_each(bring);
                packs.iter().rev().for_each(remove);
                packs.iter().for_each(bring);
                files.iter().for_each(remove);
            }
        });
        // A panic of the readers ends the loop too, and is seen.
        let read = || (0..20_000).map(|_| repository.objects().tree_of(&tip)).collect::<Vec<_>>();
        let answers = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        is_over.store(true, Ordering::Relaxed);
        let answers = answers.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let failed: Vec<_> = answers.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        assert!(failed.is_empty(), "{} of 20,000: {}", failed.len(), failed[0]);
    });
}
