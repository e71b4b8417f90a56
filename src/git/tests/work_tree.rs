//! Compares work tree snapshots with the real git's result for the same files.

use proptest::prelude::*;

use super::*;
use crate::git::WorkTreeSnapshot;
use crate::model;

pub(super) fn take(repository: &Repository, number: usize, previous: Option<&WorkTreeSnapshot>) -> WorkTreeSnapshot {
    let objection = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("secret").then(|| "it is secret".to_owned());
    repository.take_snapshot(("run", number), previous, objection, &ada(), noon()).unwrap()
}

/// `path +added -removed` for each change.
fn shown(changes: &[model::Change]) -> Vec<String> {
    let lines = |lines: Option<u64>| lines.map_or("?".to_owned(), |lines| lines.to_string());
    changes
        .iter()
        .map(|change| format!("{} +{} -{}", change.path, lines(change.added), lines(change.removed)))
        .collect()
}

fn left_out(snapshot: &WorkTreeSnapshot) -> Vec<String> {
    snapshot.left_out().into_iter().map(|left| format!("{}: {}", left.path, left.why)).collect()
}

const ATTRIBUTES: &str = "*.up filter=up\n*.leak filter=leak\n*.bin binary\n";

/// A world with line end conversion and two filters: a normal one, and one that reveals a secret.
fn world() -> World {
    let world = World::unborn(&[]);
    for (key, value) in
        [("core.autocrlf", "true"), ("filter.up.clean", "tr a-z A-Z"), ("filter.leak.clean", "sed s/open/secret/")]
    {
        world.git(&["config", key, value]);
    }
    world.write(".gitattributes", ATTRIBUTES);
    world.write(".gitignore", "*.ignored\n");
    world.write("a.txt", "one\r\ntwo\r\n");
    world.write("b.up", "one\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "first"]);
    world
}

/// The tree that `git add` makes of a work tree and a copy of its index, in a separate object directory. `first` is run
/// on that copy.
pub(super) fn tree_of(world: &World, place: &str, first: &[&str]) -> String {
    let folder = temporary::folder();
    let (root, copy) = (world.root().join(place), folder.path().join("index"));
    let index = root.join(world.git_in(&root, &["rev-parse", "--git-path", "index"]).trim());
    if index.exists() {
        fs::copy(&index, &copy).unwrap();
        // git tells by its time which entries may be outdated.
        let modified = fs::metadata(&index).unwrap().modified().unwrap();
        fs::File::options().write(true).open(&copy).unwrap().set_modified(modified).unwrap();
    }
    let git = |arguments: &[&str]| {
        let mut command = world.command(&root, arguments);
        command.env("GIT_INDEX_FILE", &copy);
        command.env("GIT_OBJECT_DIRECTORY", world.root().join("../oracle"));
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", world.root().join(".git/objects"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    fs::create_dir_all(world.root().join("../oracle")).unwrap();
    if !first.is_empty() {
        git(first);
    }
    let plain = ["-c", "core.safecrlf=false", "-c", "core.splitIndex=false", "-c", "advice.addEmbeddedRepo=false"];
    git(&[&plain[..], &["add", "--all", "--sparse", "--", ".", ":(exclude)nested", ":(exclude)sub"]].concat());
    git(&["write-tree"])
}

/// The same between two trees made by the real git.
pub(super) fn expected(world: &World, from: &str, to: &str) -> Vec<String> {
    let mut command = world.command(&world.root(), &["diff-tree", "-r", "--numstat", "--no-renames", from, to]);
    command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", world.root().join("../oracle"));
    let listed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line = |line: &str| {
        let [added, removed, path] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        format!("{path} +{} -{}", added.replace('-', "?"), removed.replace('-', "?"))
    };
    listed.lines().map(line).collect()
}

#[test]
fn a_snapshot_of_a_clean_tree_is_its_commit_and_costs_no_object() {
    let world = world();
    let objects = || world.git(&["count-objects", "-v"]);
    let before = objects();
    let first = take(&world.repository(), 1, None);
    assert_eq!((first.commit(), objects()), (world.git(&["rev-parse", "HEAD"]).trim().to_owned(), before));
    assert_eq!(world.git(&["rev-parse", "refs/squad/runs/run/1"]).trim(), first.commit());
    let second = take(&world.repository(), 2, Some(&first));
    assert_eq!(
        (second.commit(), shown(&world.repository().changed_between(&first, &second).unwrap())),
        (first.commit(), vec![])
    );
    assert!(!world.try_git(&["rev-parse", "--verify", "-q", "refs/squad/runs/run/2"]).status.success());
}

#[test]
fn what_changed_is_counted_as_git_counts_it() {
    let world = world();
    world.write("before.txt", "mine\n");
    let first = take(&world.repository(), 1, None);
    world.write("a.txt", "one\r\ntwo\r\nthree\r\n");
    world.write("b.up", "ONE\ntwo\n");
    world.write("new/c.txt", "1\n2\n");
    world.write("x.ignored", "x\n");
    fs::remove_file(world.root().join("before.txt")).unwrap();
    fs::write(world.root().join("d.bin"), [0, 1, 2]).unwrap();
    let repository = world.repository();
    let second = take(&repository, 2, Some(&first));
    let changed = shown(&repository.changed_between(&first, &second).unwrap());
    assert_eq!(changed, ["a.txt +1 -0", "b.up +1 -0", "before.txt +0 -1", "d.bin +? -?", "new/c.txt +2 -0"]);
    assert_eq!(left_out(&second), [""; 0]);
    world.assert_sound();
    // Computed from the stored snapshots, as the next process would.
    assert_eq!(world.git(&["rev-parse", "refs/squad/runs/run/2^"]).trim(), first.commit());
    assert_eq!(repository.forget_snapshots(|run| run == "run").unwrap(), 0);
    assert_eq!(repository.forget_snapshots(|_| false).unwrap(), 2);
    assert_eq!(world.git(&["for-each-ref", "refs/squad/runs"]), "");
}

/// A file with a secret is listed, its changes are noticed, and its content is not stored.
#[test]
fn the_contents_of_files_are_those_that_git_would_add() {
    let world = world();
    let repository = world.repository();
    world.write("a.txt", "three\r\n");
    world.write("b.up", "two\n");
    world.write("key.txt", "secret");
    fs::remove_file(world.root().join(".gitattributes")).unwrap();
    world.write(".gitattributes", ATTRIBUTES);
    let snapshot = take(&repository, 1, None);
    let paths: Vec<String> = ["a.txt", "b.up", "gone.txt", "key.txt"].map(str::to_owned).into();
    let contents = repository.contents_of(&snapshot, &paths).unwrap();
    for path in ["a.txt", "b.up", "gone.txt"] {
        assert_eq!(contents.get(path), Some(&repository.id_in_work_tree(path).unwrap()), "{path}");
    }
    assert!(contents["a.txt"].is_some() && contents["gone.txt"].is_none());
    assert_eq!(contents.get("key.txt"), None, "it is left out");
}

/// A file of attributes that is configured after git was asked for its settings × with and without an earlier snapshot.
#[test]
fn attributes_are_those_of_the_configuration_there_is_now() {
    for is_first in [true, false] {
        let world = World::unborn(&[]);
        world.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
        let repository = world.repository();
        let _ = repository.user();
        let previous = (!is_first).then(|| take(&repository, 1, None));
        world.write("../attributes", "b.up filter=up\n");
        world.write("b.up", "two\n");
        world.git(&["config", "core.attributesFile", &world.root().join("../attributes").to_string_lossy()]);
        let paths = ["b.up".to_owned()];
        let contents = repository.contents_of(&take(&repository, 2, previous.as_ref()), &paths).unwrap();
        assert_eq!(contents.get("b.up"), Some(&repository.id_in_work_tree("b.up").unwrap()), "{is_first}");
    }
}

#[test]
fn omitted_files_are_listed_and_their_changes_noticed() {
    let world = world();
    world.write("key.txt", "secret one\n");
    world.write("same.txt", "secret\n");
    world.write("late.txt", "fine\n");
    fs::File::create(world.root().join("huge.dat")).unwrap().set_len(33 << 20).unwrap();
    world.git(&["init", "-q", "nested"]);
    world.write("nested/inner.txt", "x\n");
    let repository = world.repository();
    let first = take(&repository, 1, None);
    let huge = "huge.dat: it is larger than 32 MiB";
    assert_eq!(
        left_out(&first),
        [huge, "key.txt: it is secret", "nested/: it is a repository of its own", "same.txt: it is secret"]
    );
    world.write("key.txt", "secret two\n");
    world.write("late.txt", "secret\n");
    world.write("a.txt", "secret\n");
    world.write("filtered.leak", "an open door\n");
    world.write("nested/inner.txt", "y\n");
    let second = take(&repository, 2, Some(&first));
    let all = [
        "a.txt: it is secret",
        "filtered.leak: it is secret",
        huge,
        "key.txt: it is secret",
        "late.txt: it is secret",
        "nested/: it is a repository of its own",
        "same.txt: it is secret",
    ];
    assert_eq!(left_out(&second), all);
    let changed = shown(&repository.changed_between(&first, &second).unwrap());
    assert_eq!(changed, ["a.txt +? -?", "filtered.leak +? -?", "key.txt +? -?", "late.txt +? -?"]);
    // A later process does not know what was left out then, so it cannot tell that it has changed.
    let read_back = repository.snapshot_at(&first.commit()).unwrap();
    assert_eq!(shown(&repository.changed_between(&read_back, &second).unwrap()), [""; 0]);
    let objects = world.git(&["cat-file", "--batch-all-objects", "--batch"]);
    assert!(objects.contains("fine") && !objects.contains("secret"), "{objects}");
    world.assert_sound();
}

/// Hooks and configuration: what there was before × what becomes of it.
#[test]
fn what_changes_in_the_repository_itself_is_named() {
    type Act = fn(&World);
    let cases: [(Act, Act, &[&str], &[&str]); 10] = [
        (|_| (), |world| write_hook(world, "pre-commit", "exit 0\n"), &[], &["pre-commit"]),
        (
            |world| write_hook(world, "pre-commit", "exit 0\n"),
            |world| write_hook(world, "pre-commit", "exit 1\n"),
            &[],
            &["pre-commit"],
        ),
        (
            |world| write_hook(world, "pre-commit", "exit 0\n"),
            |world| fs::remove_file(world.root().join(".git/hooks/pre-commit")).unwrap(),
            &[],
            &["pre-commit"],
        ),
        (|world| write_hook(world, "pre-commit", "exit 0\n"), |_| (), &[], &[]),
        (|_| (), |world| write_hook(world, "pre-commit.sample", "exit 0\n"), &[], &[]),
        #[cfg(unix)]
        (
            |world| write_hook(world, "pre-commit", "exit 0\n"),
            |world| {
                use std::os::unix::fs::PermissionsExt;
                let hook = world.root().join(".git/hooks/pre-commit");
                fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
            },
            &[],
            &["pre-commit"],
        ),
        #[cfg(not(unix))]
        (|_| (), |_| (), &[], &[]),
        (|_| (), |world| drop(world.git(&["config", "alias.x", "!evil"])), &["alias.x"], &[]),
        (
            |world| drop(world.git(&["config", "alias.x", "!evil"])),
            |world| drop(world.git(&["config", "--unset", "alias.x"])),
            &["alias.x"],
            &[],
        ),
        (
            |world| drop(world.git(&["config", "extensions.worktreeConfig", "true"])),
            |world| drop(world.git(&["config", "--worktree", "alias.y", "!evil"])),
            &["alias.y"],
            &[],
        ),
        (
            |world| {
                world.git(&["config", "extensions.worktreeConfig", "true"]);
                world.git(&["config", "--worktree", "alias.y", "!evil"]);
            },
            |world| drop(world.git(&["config", "--worktree", "alias.y", "!worse"])),
            &["alias.y"],
            &[],
        ),
    ];
    for (number, (before, act, config, hooks)) in cases.into_iter().enumerate() {
        let world = world();
        before(&world);
        let first = take(&world.repository(), 1, None);
        act(&world);
        let repository = world.repository();
        let second = take(&repository, 2, Some(&first));
        let changes = repository.git_changes(first.state().unwrap(), second.state().unwrap(), |_| true).unwrap();
        assert_eq!((&changes.config[..], &changes.hooks[..]), (&owned(config)[..], &owned(hooks)[..]), "{number}");
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn write_hook(world: &World, name: &str, text: &str) {
    world.write(&format!(".git/hooks/{name}"), text);
}

#[test]
fn conflicts_unborn_branches_and_odd_names_are_no_obstacle() {
    let world = World::unborn(&[]);
    let names: &[&str] =
        if cfg!(windows) { &["a b", "ü.txt"] } else { &["a b", "ü.txt", "new\nline", "-x", "tab\there", ":(top)"] };
    let first = take(&world.repository(), 1, None);
    for name in names {
        world.write(name, "x\n");
    }
    let second = take(&world.repository(), 2, Some(&first));
    let mut expected: Vec<String> = names.iter().map(|name| format!("{name} +1 -0")).collect();
    expected.sort();
    assert_eq!(shown(&world.repository().changed_between(&first, &second).unwrap()), expected);
    let world = World::new();
    world.git(&["checkout", "-qb", "side"]);
    world.write("README.md", "side\n");
    world.git(&["commit", "-qam", "side"]);
    world.git(&["checkout", "-q", "main"]);
    world.write("README.md", "main\n");
    world.git(&["commit", "-qam", "main"]);
    assert!(!world.try_git(&["merge", "side"]).status.success());
    let first = take(&world.repository(), 1, None);
    world.write("README.md", "both\n");
    let second = take(&world.repository(), 2, Some(&first));
    assert_eq!(shown(&world.repository().changed_between(&first, &second).unwrap()), ["README.md +1 -5"]);
    assert!(world.git(&["status", "--porcelain"]).starts_with("UU "));
}

/// Staged or not: a folder replaces a file, a file replaces a folder, and line ends stay if the index has the same.
#[test]
fn files_and_folders_take_each_others_place() {
    for is_staged in [false, true] {
        let world = World::unborn(&[]);
        world.write("file", "1\n");
        world.write("folder/a", "1\n");
        world.write("folder/b/c", "1\n");
        world.write("kept.txt", "one\r\ntwo\r\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "first"]);
        world.git(&["config", "core.autocrlf", "true"]);
        let repository = world.repository();
        let first = take(&repository, 1, None);
        fs::remove_file(world.root().join("file")).unwrap();
        world.write("file/inside", "2\n");
        fs::remove_dir_all(world.root().join("folder")).unwrap();
        world.write("folder", "2\n");
        world.write("kept.txt", "one\r\ntwo\r\nthree\r\n");
        if is_staged {
            world.git(&["add", "."]);
        }
        let second = take(&repository, 2, Some(&first));
        let changed = shown(&repository.changed_between(&first, &second).unwrap());
        let expected = ["file +0 -1", "file/inside +1 -0", "folder +1 -0", "folder/a +0 -1", "folder/b/c +0 -1"];
        assert_eq!(changed, [&expected[..], &["kept.txt +1 -0"]].concat(), "staged: {is_staged}");
        world.assert_sound();
    }
}

#[cfg(unix)]
#[test]
fn links_and_executables_are_what_they_are() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let world = World::new();
    let repository = world.repository();
    symlink("nowhere", world.root().join("link")).unwrap();
    world.write("run.sh", "true\n");
    fs::set_permissions(world.root().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let snapshot = take(&repository, 1, None);
    let listed = world.git(&["ls-tree", &snapshot.commit(), "link", "run.sh"]);
    let modes: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(modes, ["120000", "100755"]);
    assert_eq!(world.git(&["cat-file", "-p", &format!("{}:link", snapshot.commit())]), "nowhere");
}

/// Actions of agents, users and formatters.
#[derive(Clone, Debug)]
enum Act {
    Write(usize, String),
    Remove(usize),
    /// Changes line ends, like a formatter.
    Format(usize),
    Stage(usize),
    Commit,
    Huge(usize),
}

const NAMES: [&str; 8] =
    ["a.txt", "b.up", "c.bin", "new/d.txt", "new/e.ignored", "f.leak", "nested/g.txt", "with space.txt"];

fn act() -> impl Strategy<Value = Act> {
    let name = 0..NAMES.len();
    let text = prop::collection::vec(prop::sample::select(vec!["one", "two", "open", "secret", "x\ry", ""]), 0..4);
    let text = (text, prop::bool::ANY).prop_map(|(lines, is_crlf)| lines.join(if is_crlf { "\r\n" } else { "\n" }));
    prop_oneof![
        4 => (name.clone(), text).prop_map(|(name, text)| Act::Write(name, text)),
        1 => name.clone().prop_map(Act::Remove),
        1 => name.clone().prop_map(Act::Format),
        1 => name.clone().prop_map(Act::Stage),
        1 => Just(Act::Commit),
        1 => name.prop_map(Act::Huge),
    ]
}

/// Whether a file must be omitted: it has a secret, or is too large.
fn is_unwelcome(world: &World, name: &str) -> bool {
    let bytes = fs::read(world.root().join(name)).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    bytes.len() > 32 << 20 || text.contains("secret") || name.ends_with(".leak") && text.contains("open")
}

fn perform(world: &World, act: &Act) {
    match act {
        Act::Write(name, text) => world.write(NAMES[*name], text),
        Act::Remove(name) => drop(fs::remove_file(world.root().join(NAMES[*name]))),
        Act::Format(name) => {
            let path = world.root().join(NAMES[*name]);
            if let Ok(text) = fs::read_to_string(&path) {
                fs::write(path, text.replace("\r\n", "\n").replace('\n', "\r\n")).unwrap();
            }
        }
        Act::Stage(name) if !is_unwelcome(world, NAMES[*name]) && !NAMES[*name].starts_with("nested") => {
            world.try_git(&["add", "--", NAMES[*name]]);
        }
        Act::Stage(_) => {}
        Act::Commit => drop(world.try_git(&["commit", "-qm", "more"])),
        Act::Huge(name) => {
            world.write(NAMES[*name], "");
            fs::File::options().write(true).open(world.root().join(NAMES[*name])).unwrap().set_len(33 << 20).unwrap();
        }
    }
}

#[test]
fn a_work_tree_that_is_gone_is_said_to_be() {
    let world = world();
    world.git(&["worktree", "add", "-q", "linked"]);
    let linked = world.at("linked");
    fs::remove_dir_all(world.root().join("linked")).unwrap();
    let error = linked.take_snapshot(("run", 1), None, |_| None, &ada(), noon()).unwrap_err().to_string();
    assert!(error.starts_with("`git ls-files") && error.ends_with("linked is gone"), "{error}");
}

/// What an agent adds to the index or takes from it while both of the gits that look at the work tree read it.
#[cfg(unix)]
#[test]
fn a_file_that_enters_or_leaves_the_index_meanwhile_is_seen() {
    for (words, deed) in [
        ("ls-files --others", "sleep 0.3; git add new.txt"),
        ("--untracked-files=no", "sleep 0.3; git rm -q --cached b.up"),
    ] {
        let mut world = world();
        world.write("new.txt", "new\n");
        edits::wrapped(&mut world, words, &format!("  if mkdir \"$HOME/once\" 2>/dev/null; then {deed}; fi"));
        let taken = take(&world.repository(), 1, None);
        let files = world.git(&["ls-tree", "-r", "--name-only", &taken.commit()]);
        assert!(files.contains("new.txt") && files.contains("b.up"), "{deed}: {files}");
        assert_ne!(world.git(&["status", "--porcelain"]), "?? new.txt\n", "it was done");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 50, ..ProptestConfig::default() })]
    #[test]
    fn any_history_is_seen_as_the_real_git_sees_it(
        before in prop::collection::vec(act(), 0..8),
        after in prop::collection::vec(act(), 0..8),
    ) {
        let world = world();
        world.git(&["init", "-q", "nested"]);
        world.git_in(&world.root().join("nested"), &["commit", "-q", "--allow-empty", "-m", "inner"]);
        let repository = world.repository();
        let index = || fs::read(world.root().join(".git/index")).unwrap();
        before.iter().for_each(|act| perform(&world, act));
        let mut unwelcome: std::collections::BTreeSet<&str> =
            NAMES.into_iter().filter(|name| is_unwelcome(&world, name)).collect();
        let (old, old_index) = (tree_of(&world, "", &[]), index());
        let first = take(&repository, 1, None);
        prop_assert_eq!(index(), old_index);
        after.iter().for_each(|act| perform(&world, act));
        unwelcome.extend(NAMES.into_iter().filter(|name| is_unwelcome(&world, name)));
        let new = tree_of(&world, "", &[]);
        let second = take(&repository, 2, Some(&first));
        let changed = repository.changed_between(&first, &second).unwrap();
        let is_welcome = |path: &str| !unwelcome.contains(path);
        let seen: Vec<String> =
            shown(&changed.iter().filter(|change| is_welcome(&change.path)).cloned().collect::<Vec<_>>());
        let expected: Vec<String> = expected(&world, &old, &new)
            .into_iter()
            .filter(|line| is_welcome(line.rsplitn(3, ' ').last().unwrap_or_default()))
            .collect();
        prop_assert_eq!(seen, expected);
        prop_assert!(changed.iter().filter(|change| !is_welcome(&change.path)).all(|change| change.added.is_none()));
        prop_assert_eq!(take(&repository, 3, Some(&second)).commit(), second.commit());
        let objects = world.git(&["cat-file", "--batch-all-objects", "--batch"]);
        prop_assert!(!objects.contains("secret"), "{}", objects);
        world.assert_sound();
    }
}

/// Somebody exchanges a file, or its folder, with a link while snapshots are taken: files that git converts, and others.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_read_through_a_link_that_takes_a_files_place() {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let world = world();
    // A filter that may be a file of the work tree is started there, and reads what is there.
    world.git(&["config", "--remove-section", "filter.leak"]);
    world.write(".gitattributes", "*.crlf text eol=crlf\n");
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["plain.txt", "ends.crlf"] {
        fs::write(outside.join(name), "SECRET OF OUTSIDE\r\n").unwrap();
        world.write(name, "inside\r\n");
        world.write(&format!("dir/{name}"), "inside\r\n");
        std::os::unix::fs::symlink(outside.join(name), world.root().join(format!("{name}.link"))).unwrap();
    }
    std::os::unix::fs::symlink(&outside, world.root().join("dir.link")).unwrap();
    let pairs = ["plain.txt", "ends.crlf", "dir"].map(|name| {
        let place = world.root().join(name);
        let link = world.root().join(format!("{name}.link"));
        (place, link)
    });
    let repository = world.repository();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (place, link) in &pairs {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, place, CWD, link, RenameFlags::EXCHANGE).unwrap();
                }
            });
        }
        for number in 1..=40 {
            let taken = repository.take_snapshot(("race", number), None, |_| None, &ada(), noon());
            // What is being exchanged may be missed, or a folder in a file's place.
            drop(taken);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let objects = world.git(&["cat-file", "--batch-all-objects", "--batch"]);
    assert!(objects.contains("inside") && !objects.contains("SECRET OF OUTSIDE"));
}
