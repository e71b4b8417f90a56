//! Landing changes to files that are already on the branch.

use super::*;
use crate::git::Edit;

fn edit(path: &str, old: &str, new: Option<&str>) -> Edit {
    Edit { path: path.into(), old: old.into(), new: new.map(Into::into) }
}

/// A world with a file to change, a file to remove that is alone in its folder, and work in progress next to them.
fn world(init: &[&str]) -> World {
    let world = World::with(init);
    world.write("list.md", "one\ntwo\n");
    world.write("in/note.md", "note\n");
    world.write("other.txt", "before\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "files"]);
    world.write("other.txt", "staged\n");
    world.git(&["add", "other.txt"]);
    world.write("other.txt", "edited\n");
    world.write("new.txt", "new\n");
    world
}

fn split() -> Change {
    let edits = vec![edit("list.md", "one\ntwo\n", Some("two\n")), edit("in/note.md", "note\n", None)];
    Change { edits, ..change(&[("each/one.md", "one\n")]) }
}

fn picture(world: &World) -> [String; 3] {
    [world.git(&["status", "--porcelain"]), world.git(&["diff"]), world.git(&["ls-files", "--stage"])]
}

const IN_PROGRESS: &str = "MM other.txt\n?? new.txt\n";

#[test]
fn files_are_changed_and_removed_with_new_ones() {
    for format in known_formats(&["--object-format=sha1", "--object-format=sha256", "--ref-format=reftable"]) {
        let world = world(&[format]);
        let commit = landed(&world.repository(), &split());
        let shown = world.git(&["show", "--name-status", "--format=", &commit]);
        assert_eq!(shown, "A\teach/one.md\nD\tin/note.md\nM\tlist.md\n");
        assert_eq!(world.git(&["ls-tree", "--name-only", "HEAD"]), "README.md\neach\nlist.md\nother.txt\n");
        assert_eq!((world.read("list.md"), world.root().join("in/note.md").exists()), ("two\n".to_owned(), false));
        assert_eq!(world.git(&["status", "--porcelain"]), IN_PROGRESS);
        let names = fs::read_dir(world.root()).unwrap().flatten().map(|entry| entry.file_name());
        assert!(!names.into_iter().any(|name| name.to_string_lossy().starts_with(".squad-")));
        assert_eq!(landed(&world.repository(), &split()), commit, "it is there");
        world.assert_sound();
    }
}

#[test]
fn the_users_changes_block_a_landing() {
    let world = world(&[]);
    let refuses = |why: &str| {
        let before = picture(&world);
        assert!(refused(&world.repository(), &split()).contains(why), "{why}");
        let (reason, _) = world.repository().obstacle(&split()).unwrap().expect("something stands against it");
        assert!(reason.contains(why), "{why}: {reason}");
        assert_eq!(picture(&world), before);
        assert!(!world.root().join("each").exists());
    };
    world.write("list.md", "three\n");
    refuses("list.md has changes that are not committed");
    world.git(&["add", "list.md"]);
    // A sparse checkout may hide what is staged.
    for mark in ["--skip-worktree", "--no-skip-worktree"] {
        world.git(&["update-index", mark, "list.md"]);
        refuses("list.md is staged with other content");
    }
    world.git(&["commit", "-qm", "three", "list.md"]);
    refuses("list.md changed on the branch after it was read");
    world.git(&["revert", "--no-edit", "-n", "HEAD"]);
    world.git(&["commit", "-qm", "back"]);
    fs::write(world.root().join(".git/index.lock"), "").unwrap();
    assert!(refused(&world.repository(), &split()).contains("index"));
    fs::remove_file(world.root().join(".git/index.lock")).unwrap();
    assert_eq!(world.repository().obstacle(&split()).unwrap(), None);
    landed(&world.repository(), &split());
}

#[test]
fn executable_files_stay_executable() {
    let world = world(&[]);
    for path in ["list.md", "in/note.md"] {
        world.git(&["update-index", "--chmod=+x", path]);
        world.git(&["checkout", "-q", "--", path]);
    }
    world.git(&["commit", "-qm", "executable", "list.md", "in/note.md"]);
    let mut change = split();
    let (path, bytes) = ("run.sh".to_owned(), b"true\n".to_vec());
    change.files.push(NewFile { path, bytes, executable: true });
    let commit = landed(&world.repository(), &change);
    let listed = world.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", &commit]);
    let (plain, executable): (Vec<_>, Vec<_>) = listed.lines().partition(|line| line.starts_with("100644"));
    assert_eq!(executable, ["100755 list.md", "100755 run.sh"]);
    assert!(plain.contains(&"100644 each/one.md"), "{listed}");
    assert_eq!(world.git(&["status", "--porcelain"]), IN_PROGRESS);
    world.assert_sound();
}

#[cfg(unix)]
#[test]
fn executable_files_are_put_back_executable() {
    let mut world = world(&[]);
    world.git(&["update-index", "--chmod=+x", "list.md"]);
    world.git(&["checkout", "-q", "--", "list.md"]);
    world.git(&["commit", "-qm", "executable", "list.md"]);
    let before = picture(&world);
    wrapped(&mut world, " update-ref -m ", "  echo 'fatal: no space' >&2; exit 128");
    assert!(world.repository().land(&split(), Some(&ada()), noon()).is_err());
    assert_eq!(picture(&world), before);
    world.assert_sound();
}

#[test]
fn what_a_sparse_checkout_hides_stays_hidden() {
    let world = world(&[]);
    world.git(&["sparse-checkout", "set", "--no-cone", "/README.md", "/list.md"]);
    assert!(!world.root().join("in/note.md").exists());
    landed(&world.repository(), &split());
    assert!(!world.root().join("in").exists());
    assert_eq!(world.git(&["ls-files", "in"]), "");
    assert_eq!(world.git(&["status", "--porcelain"]), IN_PROGRESS);
}

/// A `git` that first runs `deed` when it is called with these words.
#[cfg(unix)]
pub(super) fn wrapped(world: &mut World, words: &str, deed: &str) {
    let wrapper = world.folder.path().join("git-wrapper");
    let script = format!("#!/bin/sh\ncase \"$*\" in *'{words}'*)\n{deed};;\nesac\nexec git \"$@\"\n");
    crate::script::write(&wrapper, &script);
    world.environment.git = wrapper;
}

#[cfg(unix)]
#[test]
fn a_branch_that_cannot_move_leaves_everything_as_it_was() {
    for words in [" update-ref -m ", "update-index -z --add"] {
        let mut world = world(&[]);
        let before = picture(&world);
        wrapped(&mut world, words, "  echo 'fatal: no space' >&2; exit 128");
        assert!(world.repository().land(&split(), Some(&ada()), noon()).is_err(), "{words}");
        assert_eq!(picture(&world), before, "{words}");
        assert_eq!((world.read("list.md"), world.read("in/note.md")), ("one\ntwo\n".into(), "note\n".into()));
        assert!(!world.root().join("each").exists());
        world.assert_sound();
    }
}

#[cfg(unix)]
#[test]
fn what_the_user_writes_meanwhile_stays() {
    let mut world = world(&[]);
    wrapped(&mut world, "--get commit.gpgSign", "  echo three >> list.md");
    // This git call runs while the files are checked.
    let reason = refused(&world.repository(), &split());
    assert!(["list.md is being changed", "list.md has changes that are not committed"].contains(&&*reason), "{reason}");
    assert_eq!(world.read("list.md").lines().next_back(), Some("three"));
    assert_eq!(world.git(&["status", "--porcelain"]), format!(" M list.md\n{IN_PROGRESS}"));
    assert!(world.root().join("in/note.md").exists());
}

/// Between git's look at the file and squad's own.
#[cfg(unix)]
#[test]
fn what_the_user_saves_right_after_gits_look_stays() {
    let mut world = world(&[]);
    let after = "  \"$(command -v git)\" \"$@\"; echo three >> list.md; exit 0";
    wrapped(&mut world, "status --porcelain -z --no-renames --untracked-files=no", after);
    let reason = refused(&world.repository(), &split());
    assert_eq!(reason, "list.md is being changed");
    assert_eq!(world.read("list.md"), "one\ntwo\nthree\n");
    assert_eq!(world.git(&["show", "HEAD:list.md"]), "one\ntwo\n");
}

/// An error on the way leaves the files as they were, and nothing for another command to finish.
#[test]
fn files_that_cannot_be_written_are_taken_back() {
    let world = World::new();
    let too_long = format!("made/{}", "n".repeat(300));
    let edit = Edit { path: "README.md".into(), old: b"hello\n".to_vec(), new: Some(b"changed\n".to_vec()) };
    let change = Change { edits: vec![edit], ..change(&[("made/first.md", "one\n"), (&too_long, "two\n")]) };
    let repository = world.repository();
    assert!(repository.rewrite(&change).is_err(), "no file system takes such a name");
    assert_eq!(world.read("README.md"), "hello\n");
    assert!(!world.root().join("made").exists());
    assert_eq!(repository.begun().unwrap(), None);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}
