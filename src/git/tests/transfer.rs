//! Commits that come from another machine as bundles.

use std::io::Write as _;
use std::process::Stdio;

use super::*;

/// Another machine's repository, with what the world has.
struct Host<'w> {
    world: &'w World,
    root: PathBuf,
}

impl<'w> Host<'w> {
    fn of(world: &'w World) -> Self {
        let root = world.folder.path().join("host");
        world.git(&["clone", "-q", "--bare", ".", root.to_str().unwrap()]);
        Self { world, root }
    }

    fn git(&self, arguments: &[&str], input: &str) -> String {
        let mut command = self.world.command(&self.root, arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{arguments:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// A commit of a tree, whose entries are as `git mktree` takes them.
    fn commit(&self, entries: &str) -> String {
        let tree = self.git(&["mktree"], entries);
        self.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "work"], "")
    }

    fn bundle(&self, name: &str, commit: &str) -> PathBuf {
        let file = self.world.folder.path().join("work.bundle");
        self.git(&["update-ref", name, commit], "");
        self.git(&["bundle", "create", "-q", file.to_str().unwrap(), name, "--not", "HEAD"], "");
        file
    }
}

#[test]
fn work_is_taken_from_a_bundle_and_nothing_else_of_it() {
    let world = World::new();
    let (host, base) = (Host::of(&world), world.git(&["rev-parse", "HEAD"]).trim().to_owned());
    let blob = host.git(&["hash-object", "-w", "--stdin"], "from there\n");
    let file = format!("100644 blob {blob}\t");
    let (other, work) = (host.commit(&format!("{file}other.txt\n")), host.commit(&format!("{file}new.txt\n")));
    let kept = "refs/squad/runs/r_work/ada";
    let repository = world.repository();
    let before = world.git(&["for-each-ref"]);
    // The bundle is of another commit, of a ref of the user's, or no bundle.
    let of_other = host.bundle("refs/squad/works/x", &other);
    assert!(
        repository
            .take_work(&of_other, (&work, kept), std::slice::from_ref(&base))
            .unwrap_err()
            .to_string()
            .contains("is not in it")
    );
    let of_branch = host.bundle("refs/heads/main2", &work);
    assert!(repository.take_work(&of_branch, (&work, kept), std::slice::from_ref(&base)).is_err());
    fs::write(&of_branch, "# v2 git bundle\nnonsense").unwrap();
    assert!(repository.take_work(&of_branch, (&work, kept), std::slice::from_ref(&base)).is_err());
    assert!(repository.take_work(&of_branch, ("--all", kept), std::slice::from_ref(&base)).is_err());
    // git would read another repository of the user's in its place.
    let work_there = format!("gitdir: {}\n", host.root.display());
    host.git(&["update-ref", "refs/squad/works/x", &work], "");
    fs::write(&of_branch, work_there).unwrap();
    assert!(
        repository
            .take_work(&of_branch, (&work, kept), std::slice::from_ref(&base))
            .unwrap_err()
            .to_string()
            .contains("no bundle")
    );
    assert_eq!(world.git(&["for-each-ref"]), before, "none of them left anything");
    let good = host.bundle("refs/squad/works/ada", &work);
    repository.take_work(&good, (&work, kept), std::slice::from_ref(&base)).unwrap();
    assert_eq!(world.git(&["show", &format!("{kept}:new.txt")]), "from there\n");
    let after = world.git(&["for-each-ref"]);
    assert_eq!(after.lines().filter(|line| !before.contains(*line)).count(), 1, "only the work has a ref: {after}");
    world.assert_sound();
}

/// Paths that would lead into git's own folder, or out of the work tree.
#[test]
fn paths_that_lead_elsewhere_are_not_taken() {
    let world = World::new();
    let (host, base) = (Host::of(&world), world.git(&["rev-parse", "HEAD"]).trim().to_owned());
    let blob = host.git(&["hash-object", "-w", "--stdin"], "evil\n");
    let hooks = host.git(&["mktree"], &format!("100755 blob {blob}\tpost-checkout\n"));
    for name in [".git", "..", ".", ".GIT", "git~1"] {
        let work = host.commit(&format!("040000 tree {hooks}\t{name}\n"));
        let file = host.bundle("refs/squad/works/x", &work);
        let taken =
            world.repository().take_work(&file, (&work, "refs/squad/runs/r_work/ada"), std::slice::from_ref(&base));
        assert!(taken.is_err(), "{name}");
        assert!(!world.git(&["for-each-ref"]).contains("r_work"), "{name}");
    }
    world.assert_sound();
}

/// What a host has of the repository is not sent again, and what it lacks is.
#[test]
fn a_base_is_sent_once() {
    let world = World::new();
    let folder = world.folder.path().join("store");
    let store = Repository::store_at(&folder, "sha1", &world.environment).unwrap();
    let repository = world.repository();
    let mut sizes = Vec::new();
    for number in 0..3 {
        world.write("big.txt", &"a line\n".repeat(1000 * (number + 1)));
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "more"]);
        let commit = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let has = store.bases().unwrap();
        assert_eq!((has.len(), store.has_commit(&commit)), (number, false));
        repository.keep("refs/squad/runs/r_sent/ada", &commit).unwrap();
        let file = world.folder.path().join("base.bundle");
        repository.bundle("refs/squad/runs/r_sent/ada", &has, &file).unwrap();
        sizes.push(fs::metadata(&file).unwrap().len());
        store.take_base(&file, &commit, &has).unwrap();
        assert!(store.has_commit(&commit) && store.bases().unwrap().contains(&commit));
    }
    assert!(sizes[1] < sizes[0] && sizes[2] < sizes[0], "{sizes:?}");
    store.set_branch("main", world.git(&["rev-parse", "HEAD"]).trim()).unwrap();
    assert!(store.set_branch("--x y", "HEAD").is_err() && store.set_branch("../../x", &"0".repeat(40)).is_err());
    assert!(Repository::store_at(&world.root().join("src"), "sha1", &world.environment).is_ok());
}
