//! Every kind of repository that people have: each supports a ledger, or reports why not.

use super::*;
use crate::git::Error;

/// Appends, reads back, and checks that nothing else changed.
fn assert_keeps_a_ledger(world: &World, repository: &Repository, what: &str) {
    let status = || world.git_in(repository.work_dir().unwrap(), &["status", "--porcelain"]);
    let before = status();
    // Enough for folds.
    for number in 0..12 {
        let path = format!("log/2026/03/04/{number}.md");
        repository.ledger().append(&[entry(&path, "text")], "entry", &ada(), noon()).unwrap();
    }
    let snapshot = repository.ledger().snapshot().unwrap().unwrap();
    assert_eq!(snapshot.count("log").unwrap(), 12, "{what}");
    assert_eq!(status(), before, "{what}");
    let listed = world.git_in(repository.git_dir(), &["ls-tree", "-r", "--name-only", "refs/squad/log"]);
    assert_eq!(listed.lines().count(), 12, "{what}");
    world.git_in(repository.git_dir(), &["fsck", "--strict"]);
}

#[test]
fn clones_of_every_kind_keep_a_ledger() {
    for options in [
        &["--depth=1"][..],
        &["--filter=blob:none"],
        &["--filter=tree:0"],
        &["--shared"],
        &["--reference", "repo", "--dissociate"],
        &["--sparse"],
        &["--no-checkout"],
        &["--single-branch"],
    ] {
        let world = World::new();
        world.write("src/deep/file.txt", "x\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "second"]);
        world.git(&["config", "uploadpack.allowFilter", "true"]);
        let url = format!("file://{}", world.root().display());
        let source = if options.contains(&"--shared") { "repo" } else { &url };
        world.git_in(world.folder.path(), &[&["clone", "-q"], options, &[source, "clone"]].concat());
        let clone = Repository::discover(&world.folder.path().join("clone"), &world.environment).unwrap();
        assert_keeps_a_ledger(&world, &clone, &format!("{options:?}"));
    }
}

#[test]
fn a_sparse_index_stays_as_it_is() {
    let world = World::new();
    world.write("in/a.txt", "a\n");
    world.write("out/b.txt", "b\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "folders"]);
    world.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    let before = fs::read(world.root().join(".git/index")).unwrap();
    assert_keeps_a_ledger(&world, &world.repository(), "sparse");
    assert_eq!(fs::read(world.root().join(".git/index")).unwrap(), before);
    assert!(!world.root().join("out").exists());
}

#[test]
fn a_submodule_keeps_its_own_ledger() {
    let world = World::new();
    let inner = World::new();
    world.git(&["submodule", "add", "-q", &inner.root().display().to_string(), "sub"]);
    let sub = world.at("sub");
    assert!(sub.common_dir().ends_with(".git/modules/sub"), "{}", sub.common_dir().display());
    assert_keeps_a_ledger(&world, &sub, "submodule");
    assert!(world.repository().ledger().snapshot().unwrap().is_none(), "the outer one's is another");
}

#[test]
fn linked_work_trees_of_every_storage_share_one() {
    let formats = ["--ref-format=files", "--ref-format=reftable", "--object-format=sha256"];
    for format in known_formats(&formats).into_iter().chain(["--bare"]) {
        let world = match format {
            "--bare" => {
                let world = World::new();
                world.git_in(world.folder.path(), &["clone", "-q", "--bare", "repo", "bare"]);
                world.git_in(&world.folder.path().join("bare"), &["worktree", "add", "-q", "../linked", "main"]);
                world
            }
            format => {
                let world = World::with(&[format]);
                world.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
                world
            }
        };
        let linked = Repository::discover(&world.folder.path().join("linked"), &world.environment).unwrap();
        assert_keeps_a_ledger(&world, &linked, format);
        if format != "--bare" {
            assert_eq!(world.entries().len(), 12, "{format}");
            world.append("log/2026/03/05/main.md", "x");
            assert_eq!(linked.ledger().snapshot().unwrap().unwrap().count("log").unwrap(), 13, "{format}");
        }
    }
}

#[test]
fn the_git_directory_may_be_elsewhere_or_read_only() {
    let world = World::empty();
    world.git_in(world.folder.path(), &["init", "-q", "--separate-git-dir", "elsewhere", "repo"]);
    assert_keeps_a_ledger(&world, &world.repository(), "separate");

    let world = World::new();
    let repository = world.repository();
    let append = |path| repository.ledger().append(&[entry(path, "x")], "entry", &ada(), noon());
    append("log/2026/03/04/a.md").unwrap();
    world.unpack();
    // Root may write anywhere, so put a file where the pack folder should be.
    fs::remove_dir(world.packs()).unwrap();
    fs::write(world.packs(), "").unwrap();
    let answer = append("log/2026/03/04/b.md");
    assert!(matches!(answer, Err(Error::Io { .. })), "{answer:?}");
    assert_eq!(world.entries().len(), 1);
}
