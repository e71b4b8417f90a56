//! Rescues of every kind of work tree, compared byte for byte.

use super::*;
use crate::git::{FileStatus, Rescue, TargetState};

pub(super) fn save(repository: &Repository) -> Rescue {
    let objects = |bytes: &[u8]| bytes.starts_with(b"secret").then(|| "it is secret".to_owned());
    let message =
        |files: usize, left: &[crate::model::SkippedFile]| format!("rescue\n\n{files} files, {} left", left.len());
    let saved = repository.rescue(objects, message, &ada(), noon()).unwrap();
    repository.rescues().unwrap().into_iter().find(|rescue| rescue.id == saved.id).unwrap()
}

/// Restores all uncommitted files into a new folder; returns paths and bytes, from the work tree or the index.
fn read_back(repository: &Repository, rescue: &Rescue, staged: bool) -> BTreeMap<String, Vec<u8>> {
    let folder = TempDir::new().unwrap();
    let files: Vec<_> = repository.rescued(rescue).unwrap().into_iter().filter(|file| file.is_uncommitted()).collect();
    let extracted = repository.extract(files, staged).unwrap();
    let places = extracted.target_states(folder.path()).unwrap();
    assert!(places.iter().all(|(_, place)| *place == TargetState::Free));
    extracted.write(repository, &ChangeKind::LandDecisions, folder.path(), &places).unwrap();
    assert!(extracted.target_states(folder.path()).unwrap().iter().all(|(_, place)| *place == TargetState::Same));
    places.into_iter().map(|(path, _)| (path.clone(), fs::read(folder.path().join(path)).unwrap())).collect()
}

fn picture(world: &World, folder: &Path) -> [String; 3] {
    [&["status", "--porcelain"][..], &["ls-files", "--stage"], &["stash", "list"]]
        .map(|arguments| world.git_in(folder, arguments))
}

#[test]
fn every_kind_of_repository_is_rescued() {
    for format in known_formats(&["--object-format=sha1", "--object-format=sha256", "--ref-format=reftable"]) {
        let world = World::with(&[format]);
        world.write("README.md", "edited\n");
        world.write("new/a.bin", "\u{0}\r\n\u{7f}");
        let before = picture(&world, &world.root());
        let repository = world.repository();
        let rescue = save(&repository);
        assert_eq!(picture(&world, &world.root()), before, "{format}");
        let held = read_back(&repository, &rescue, false);
        assert_eq!(held["README.md"], b"edited\n", "{format}");
        assert_eq!(held["new/a.bin"], b"\0\r\n\x7f", "{format}");
        assert_eq!(save(&repository).id, rescue.id, "the same again is the same");
        world.assert_sound();
        repository.forget(&rescue).unwrap();
        assert!(repository.rescues().unwrap().is_empty(), "{format}");
    }
}

#[test]
fn a_linked_work_tree_has_its_own_and_shares_the_rescue() {
    let world = World::new();
    world.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let side = world.folder.path().join("side");
    fs::write(side.join("README.md"), "side\n").unwrap();
    let linked = Repository::discover(&side, &world.environment).unwrap();
    let before = picture(&world, &side);
    let rescue = save(&linked);
    assert_eq!(picture(&world, &side), before);
    assert_eq!(read_back(&world.repository(), &rescue, false)["README.md"], b"side\n");
    assert_eq!(world.repository().rescues().unwrap().len(), 1);
}

#[test]
fn before_the_first_commit_and_in_the_middle_of_a_merge() {
    let world = World::unborn(&[]);
    world.write("a.txt", "staged\n");
    world.git(&["add", "a.txt"]);
    world.write("a.txt", "edited\n");
    let repository = world.repository();
    let rescue = save(&repository);
    assert_eq!((rescue.head(), read_back(&repository, &rescue, true)["a.txt"].as_slice()), (None, &b"staged\n"[..]));
    assert_eq!(read_back(&repository, &rescue, false)["a.txt"], b"edited\n");

    world.git(&["commit", "-qam", "first"]);
    world.git(&["switch", "-qc", "other"]);
    world.write("a.txt", "theirs\n");
    world.git(&["commit", "-qam", "theirs"]);
    world.git(&["switch", "-q", "main"]);
    world.write("a.txt", "ours\n");
    world.git(&["commit", "-qam", "ours"]);
    assert!(!world.try_git(&["merge", "other"]).status.success());
    let before = picture(&world, &world.root());
    let rescue = save(&repository);
    assert_eq!(picture(&world, &world.root()), before, "the conflict is as it was");
    let held = read_back(&repository, &rescue, false);
    assert!(String::from_utf8_lossy(&held["a.txt"]).contains("<<<<<<<"));
    world.assert_sound();
}

#[test]
fn sparse_and_split_indexes_stay_and_submodules_are_left_alone() {
    let world = World::new();
    world.write("in/a.txt", "a\n");
    world.write("out/b.txt", "b\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "folders"]);
    world.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    world.write("in/a.txt", "edited\n");
    let index = || fs::read(world.root().join(".git/index")).unwrap();
    let before = index();
    let rescue = save(&world.repository());
    assert_eq!(index(), before);
    let held = read_back(&world.repository(), &rescue, false);
    assert_eq!(held.keys().collect::<Vec<_>>(), ["in/a.txt"], "what the checkout hides is not gone");
    world.git(&["sparse-checkout", "disable"]);

    world.git(&["update-index", "--split-index"]);
    world.git(&["init", "-q", "inner"]);
    world.write("inner/x.txt", "x\n");
    world.write("secret.txt", "secret\n");
    let before = index();
    let rescue = save(&world.repository());
    assert_eq!(index(), before);
    let held = read_back(&world.repository(), &rescue, false);
    assert_eq!(held.keys().collect::<Vec<_>>(), ["in/a.txt"], "no other repository, and no secret");
    assert!(rescue.message.ends_with("1 files, 1 left\n"), "{}", rescue.message);
    world.assert_sound();
}

/// Files that git converts: changed ones are stored as in the work tree, unchanged ones as git checks them out.
#[test]
fn line_ends_and_filters_are_as_they_were() {
    let world = World::new();
    world.git(&["config", "core.autocrlf", "true"]);
    world.write("same.txt", "same\r\n");
    world.write("mixed.txt", "one\r\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "texts"]);
    world.write("mixed.txt", "one\r\ntwo\nthree\r\n");
    let repository = world.repository();
    let rescue = save(&repository);
    assert_eq!(read_back(&repository, &rescue, false)["mixed.txt"], b"one\r\ntwo\nthree\r\n");
    let same = repository.rescued(&rescue).unwrap().into_iter().filter(|file| file.path == "same.txt").collect();
    let extracted = repository.extract(same, false).unwrap();
    assert_eq!(extracted.target_states(&world.root()).unwrap(), [("same.txt".to_owned(), TargetState::Same)]);
}

#[test]
fn every_state_is_told() {
    let world = World::new();
    for name in ["changed", "removed", "cached"] {
        world.write(name, "before\n");
    }
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "files"]);
    world.write("changed", "after\n");
    fs::remove_file(world.root().join("removed")).unwrap();
    world.git(&["rm", "-q", "--cached", "cached"]);
    world.write("new", "new\n");
    world.git(&["add", "new"]);
    world.write("untracked", "x\n");
    let rescue = save(&world.repository());
    let states: BTreeMap<String, FileStatus> =
        world.repository().rescued(&rescue).unwrap().into_iter().map(|file| (file.path, file.state)).collect();
    let expected = [
        ("README.md", FileStatus::Unchanged),
        ("cached", FileStatus::Untracked),
        ("changed", FileStatus::Changed),
        ("new", FileStatus::New),
        ("removed", FileStatus::Removed),
        ("untracked", FileStatus::Untracked),
    ];
    assert_eq!(states, expected.map(|(path, state)| (path.to_owned(), state)).into_iter().collect());
    // git itself can also restore everything.
    world.git(&["reset", "-q", "--hard"]);
    world.git(&["clean", "-qfd"]);
    world.git(&["stash", "apply", "-q", &rescue.commit()]);
    assert_eq!((world.read("changed"), world.read("untracked")), ("after\n".to_owned(), "x\n".to_owned()));
}

/// A file can change without a change of size or time while the index is written. git rereads files that are as new as
/// the index, so our copy of the index must not look newer.
#[test]
fn a_change_in_the_same_instant_is_seen() {
    let world = World::new();
    world.write("a.txt", "before\n");
    world.git(&["add", "."]);
    world.write("a.txt", "edited\n");
    // git compares times in seconds.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let rescue = save(&world.repository());
    assert_eq!(read_back(&world.repository(), &rescue, false)["a.txt"], b"edited\n");
}
