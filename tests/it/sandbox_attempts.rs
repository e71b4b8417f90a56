//! The ways out of `fixtures/sandbox/attempts.txt`, each tried, and what they were after looked at on disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::attempts::{attempts, differences, git_state, state};
use crate::sandbox::{World, results};
use crate::support::TestRepo;

const ORDINARY: &str = include_str!("../../fixtures/sandbox/ordinary.txt");

#[test]
fn what_works_outside_works_inside() {
    let commands: Vec<&str> = ORDINARY.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let ended = |level| -> Option<Vec<(bool, String)>> {
        let world = World::at(level)?;
        world.write(&world.repo.root().join("README.md"), "Read this.\n");
        for command in ["add -A", "commit -qm all"] {
            world.repo.git(&command.split(' ').collect::<Vec<_>>());
        }
        let events = TestRepo::events(&world.run(&commands));
        let ended = events.iter().filter(|event| event["type"] == "tool.completed");
        Some(ended.map(|event| (event["ok"] == true, event["result"].to_string())).collect())
    };
    let outside = ended("rules").expect("it needs nothing");
    assert!(commands.len() >= 150 && outside.len() == commands.len(), "{}", commands.len());
    for level in ["full", "files"] {
        let Some(inside) = ended(level) else { continue };
        let broken = commands.iter().zip(outside.iter().zip(&inside));
        let broken: Vec<_> = broken.filter(|(_, (outside, inside))| outside.0 && !inside.0).collect();
        assert!(broken.is_empty(), "{level}: {broken:#?}");
    }
    let worked = outside.iter().filter(|(ok, _)| *ok).count();
    assert!(worked > 120, "this machine lacks most programs: {worked}");
}

/// What attempts are after: a folder and a key outside of the project, whose paths programs find in `OUT` and `KEY`. All of the
/// project is committed.
fn tempt(world: &mut World) -> (PathBuf, PathBuf) {
    let (out, key) = (world.home("out"), world.home(".ssh/id"));
    for (path, text) in [("kept", "kept\n"), ("run.sh", "#!/bin/sh\necho x >> $OUT/kept\n"), ("empty/x", "")] {
        world.write(&out.join(path), text);
    }
    fs::remove_file(out.join("empty/x")).expect("a file");
    world.write(&key, "echo the-key-itself\n");
    for folder in [".netrc", ".aws/credentials", ".claude/x", ".codex/x", ".copilot/x"] {
        world.write(&world.home(folder), "the-key-itself\n");
    }
    world.write(&world.repo.root().join("README.md"), "Read this.\n");
    for command in ["add -A", "commit -qm all"] {
        world.repo.git(&command.split(' ').collect::<Vec<_>>());
    }
    let other = out.join("other");
    for command in ["init -q", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m one"] {
        fs::create_dir_all(&other).expect("a folder");
        world.repo.git_in(&other, &command.split(' ').collect::<Vec<_>>());
    }
    for (name, value) in [("OUT", &out), ("KEY", &key)] {
        world.repo.variables.insert(name.into(), value.display().to_string());
    }
    (out, key)
}

#[test]
fn no_attempt_gets_out() {
    assert!(attempts("full").len() >= 120, "{}", attempts("full").len());
    for level in ["full", "files"] {
        let Some(mut world) = World::at(level) else { continue };
        let (out, key) = tempt(&mut world);
        let git = world.repo.root().join(".git");
        let is_full = level == "full";
        let attempts = attempts(level);
        for some in attempts.chunks(12) {
            let (outside, inside) = (state(&out, is_full), git_state(&git));
            let output = world.run(some);
            let said = results(&output);
            let tried = format!("{level}: {some:#?}\n{said}");
            assert_eq!(differences(&outside, &state(&out, is_full)), <[PathBuf; 0]>::default(), "{tried}");
            assert!(!said.contains("the-key-itself"), "{tried}");
            if is_full {
                assert_eq!(differences(&inside, &git_state(&git)), <[PathBuf; 0]>::default(), "{tried}");
                assert!(said.lines().count() == some.len(), "each was tried: {tried}");
            }
        }
        assert_eq!(fs::read_to_string(&key).expect("a key"), "echo the-key-itself\n", "{level}");
        assert!(!world.home(".gitconfig").exists(), "{level}");
    }
}

/// Ways from a clone to what is the user's. In files, as squad reads what it can of command lines.
const OF_CLONES: [&str; 8] = [
    "echo x >> $USERS/README.md; echo x > $USERS/new.txt; rm -rf $USERS/deps; mv $USERS/README.md $USERS/moved",
    "git -C $USERS update-ref refs/heads/stolen HEAD; git -C $USERS config core.hooksPath /tmp; git -C $USERS gc -q",
    "git -C $USERS checkout -q -f .; git -C $USERS stash -q; GIT_DIR=$USERS/.git git branch -m main gone",
    "git push -q $USERS HEAD:refs/heads/pushed; git push -q -f $USERS HEAD:main",
    "for f in $(find $(cat .git/objects/info/alternates) -type f); do chmod u+w $f; echo x >> $f; done",
    "umount deps; cat deps/.env; mount --bind $USERS deps; ln -s $USERS deps/users; echo x > deps/users/x; rm -rf deps/*; echo x > deps/lib.txt",
    "cat $USERS/deps/.env; cat $USERS/deps/../deps/.env; cp -r $USERS/deps own; cat own/.env; ln $USERS/deps/.env other; cat other",
    "cat ../../layers/*/upper/*; echo x > ../../layers/x; echo x > ../../ready; cat ../../../../../../*/*",
];

/// The same from a clone: the user's work tree, with what git ignores there and what lies over the clone, and all of the
/// repository but squad's refs and objects stay as they are.
#[test]
fn no_attempt_gets_out_of_a_clone() {
    for level in ["full", "files"] {
        let Some(mut world) = World::at(level) else { continue };
        let root = world.repo.root();
        world.write(&root.join(".gitignore"), "deps/\n.env\n");
        for (number, attack) in OF_CLONES.iter().enumerate() {
            world.write(&root.join(format!("attack{number}.sh")), attack);
        }
        let (out, key) = tempt(&mut world);
        world.write(&root.join("deps/lib.txt"), "library\n");
        world.write(&root.join("deps/.env"), "the-key-itself\n");
        world.write(&root.join("README.md"), "Read that.\n");
        world.repo.variables.insert("USERS".into(), root.display().to_string());
        world.repo.write("../home/config/squad/config.toml", "[isolation]\nmode = \"clone\"\nbring = [\"deps\"]\n");
        let is_full = level == "full";
        let of_clones: Vec<String> = (0..OF_CLONES.len()).map(|number| format!("sh attack{number}.sh")).collect();
        let attempts: Vec<&str> = of_clones.iter().map(String::as_str).chain(attempts(level)).collect();
        for some in attempts.chunks(12) {
            let users = |path: &PathBuf| {
                let inner = path.strip_prefix(&root).unwrap_or(path);
                let squads =
                    [".git/squad", ".git/refs/squad", ".git/logs/refs/squad", ".git/objects", ".git/packed-refs"];
                !squads.iter().any(|folder| inner.starts_with(folder) || Path::new(folder).starts_with(inner))
            };
            let states =
                || [state(&out, is_full), state(&root, is_full).into_iter().filter(|(path, _)| users(path)).collect()];
            let refs = || {
                world.repo.git(&[
                    "for-each-ref",
                    "--format=%(refname) %(objectname)",
                    "refs/heads",
                    "refs/stash",
                    "refs/tags",
                ])
            };
            let (before, heads) = (states(), refs());
            let output = world.run(some);
            let said = results(&output);
            let tried = format!("{level}: {some:#?}\n{said}");
            for (before, now) in before.iter().zip(&states()) {
                assert_eq!(differences(before, now), <[PathBuf; 0]>::default(), "{tried}");
            }
            assert_eq!(refs(), heads, "{tried}");
            assert!(!said.contains("the-key-itself"), "{tried}");
            assert!(said.lines().count() == some.len() || !is_full, "each was tried: {tried}");
        }
        world.repo.git(&["fsck", "--full"]);
        assert_eq!(fs::read_to_string(&key).expect("a key"), "echo the-key-itself\n", "{level}");
        assert!(!world.home(".gitconfig").exists(), "{level}");
    }
}
