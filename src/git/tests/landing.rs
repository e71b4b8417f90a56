use super::*;
#[cfg(unix)]
use crate::git::Edit;

const DECISION: &str = ".squad/decisions/2026/03/04-x.md";

fn status(world: &World) -> String {
    world.git(&["status", "--porcelain"])
}

#[test]
fn one_commit_holds_the_files_and_nothing_else() {
    let world = World::new();
    let commit = landed(&world.repository(), &change(&[(DECISION, "decided\n"), (".squad/a.md", "a\n")]));
    assert_eq!(commit, world.git(&["rev-parse", "main"]).trim());
    let shown = world.git(&["show", "--name-status", "--format=%an <%ae> %cn %at %P%n%B", "HEAD"]);
    let parent = world.git(&["rev-parse", "HEAD~1"]);
    let parent = parent.trim();
    assert_eq!(
        shown,
        format!(
            "Ada <ada@example.com> Ada 1772625600 {parent}\nsquad: decide\n\nSquad-Run: 1\n\n\nA\t.squad/a.md\nA\t{DECISION}\n"
        )
    );
    assert_eq!(world.read(DECISION), "decided\n");
    assert_eq!(status(&world), "");
    assert_eq!(world.git(&["diff-index", "--cached", "HEAD"]), "");
    let reflog = world.git(&["log", "-g", "-1", "--format=%gs %gn"]);
    assert_eq!(reflog, "commit: squad: decide Ada\n");
    assert_eq!(world.git(&["reflog", "show", "-1", "--format=%gs", "main"]), "commit: squad: decide\n");
    world.assert_sound();
}

/// A `git switch` that reads HEAD before the branch moves, and changes index and HEAD afterwards, carries staged files
/// over to the other branch.
#[cfg(unix)]
#[test]
fn a_concurrent_switch_carries_nothing_of_ours_over() {
    let world = World::new();
    world.git(&["branch", "other"]);
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    let switching = "cp .git/index .git/index.lock; echo ref: refs/heads/other >.git/HEAD.new; (sleep 0.1; \
                     mv .git/index.lock .git/index; mv .git/HEAD.new .git/HEAD; rm switching) >/dev/null 2>&1 &";
    world.write("switching", "");
    let script = format!("#!/bin/sh\ncase \"$*\" in *update-ref*) {switching}\nesac\nexec git \"$@\"\n");
    let repository = world.wrapped(&script);
    let commit = landed(&repository, &change(&[(DECISION, "decided\n")]));
    while world.root().join("switching").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(commit, world.git(&["rev-parse", "main"]).trim());
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/other\n");
    assert_eq!(status(&world), "A  staged.txt\n");
    world.git(&["switch", "-q", "main"]);
    assert_eq!(status(&world), "A  staged.txt\n");
    assert_eq!(world.read(DECISION), "decided\n");
}

/// For example by a `git stash` that resets the work tree before the index has our change.
#[cfg(unix)]
#[test]
fn files_restored_by_a_concurrent_reset_are_removed_again() {
    let world = World::new();
    for path in [".squad/old.md", ".squad/edited.md"] {
        world.write(path, "old\n");
        world.git(&["add", path]);
    }
    world.git(&["commit", "-qm", "files"]);
    let script = "#!/bin/sh\ncase \"$*\" in *update-index*) for file in old edited; do printf 'old\\n' >.squad/$file.md; done\n\
                  esac\nexec git \"$@\"\n";
    let repository = world.wrapped(script);
    let old = || b"old\n".to_vec();
    let edits = vec![
        Edit { path: ".squad/old.md".into(), old: old(), new: None },
        Edit { path: ".squad/edited.md".into(), old: old(), new: Some(b"new\n".to_vec()) },
    ];
    landed(&repository, &Change { edits, ..change(&[(DECISION, "decided\n")]) });
    assert_eq!(status(&world), "");
    assert_eq!(world.read(".squad/edited.md"), "new\n");
}

#[test]
fn work_in_progress_of_every_kind_stays_as_it_is() {
    let world = World::new();
    for name in ["staged.txt", "edited.txt", "both.txt", "removed.txt", "stashed.txt"] {
        world.write(name, "before\n");
    }
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "files"]);
    world.write("stashed.txt", "stashed\n");
    world.git(&["stash", "-q"]);
    world.write("staged.txt", "staged\n");
    world.write("both.txt", "staged\n");
    world.write("new.txt", "new\n");
    world.git(&["add", "staged.txt", "both.txt", "new.txt"]);
    world.git(&["rm", "-q", "--cached", "removed.txt"]);
    world.write("both.txt", "edited\n");
    world.write("edited.txt", "edited\n");
    world.write("untracked.txt", "untracked\n");
    world.write("intended.txt", "intended\n");
    world.git(&["add", "-N", "intended.txt"]);
    let picture = || {
        [
            status(&world),
            world.git(&["diff"]),
            world.git(&["diff", "--cached"]),
            world.git(&["stash", "list", "--format=%H"]),
            world.git(&["ls-files", "--stage", "--", ":!.squad"]),
        ]
    };
    let before = picture();
    landed(&world.repository(), &change(&[(DECISION, "decided\n")]));
    assert_eq!(picture(), before);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]).trim(), DECISION);
    assert_eq!(world.git(&["stash", "show", "--name-only"]), "stashed.txt\n");
    world.assert_sound();
}

#[test]
fn landing_again_only_restores_missing_files() {
    let world = World::new();
    let change = change(&[(DECISION, "decided\n")]);
    let repository = world.repository();
    let commit = landed(&repository, &change);
    assert_eq!(landed(&repository, &change), commit);
    fs::remove_file(world.root().join(DECISION)).unwrap();
    assert_eq!(landed(&repository, &change), commit);
    assert_eq!(status(&world), "");
    world.git(&["rm", "-q", "--cached", DECISION]);
    fs::remove_file(world.root().join(DECISION)).unwrap();
    assert_eq!(landed(&repository, &change), commit);
    assert_eq!(status(&world), "");
    // The user's later changes to it stay.
    world.write(DECISION, "edited\n");
    world.git(&["add", "."]);
    world.write(DECISION, "edited again\n");
    let before = status(&world);
    assert_eq!(landed(&repository, &change), commit);
    assert_eq!((status(&world), world.read(DECISION)), (before, "edited again\n".to_owned()));
}

/// The states that a kill can leave, in order.
#[test]
fn a_landing_that_was_cut_short_is_finished_by_the_next() {
    for steps in 0..3 {
        let world = World::new();
        if steps >= 1 {
            world.write(DECISION, "decided\n");
        }
        if steps >= 2 {
            world.git(&["add", DECISION]);
        }
        landed(&world.repository(), &change(&[(DECISION, "decided\n")]));
        assert_eq!(status(&world), "", "after {steps} steps");
        assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "2\n");
        world.assert_sound();
    }
}

#[test]
fn landing_refuses_wrong_branches_and_states() {
    let world = World::new();
    let decide = change(&[(DECISION, "decided\n")]);
    let repository = world.repository();
    let head = world.git(&["rev-parse", "HEAD"]);

    world.git(&["switch", "-q", "--detach"]);
    assert!(refused(&repository, &decide).contains("detached"));
    world.git(&["switch", "-qc", "other"]);
    assert_eq!(refused(&repository, &decide), "other is checked out, not main");
    world.git(&["switch", "-q", "main"]);
    fs::write(world.root().join(".git/MERGE_HEAD"), &head).unwrap();
    assert_eq!(refused(&repository, &decide), "a merge is in progress");
    fs::remove_file(world.root().join(".git/MERGE_HEAD")).unwrap();
    fs::write(world.root().join(".git/index.lock"), "").unwrap();
    assert!(refused(&repository, &decide).contains("index"));
    fs::remove_file(world.root().join(".git/index.lock")).unwrap();
    let nobody = repository.land(&decide, None, noon()).unwrap();
    assert!(matches!(nobody, Landing::NotLanded { .. }));

    assert_eq!((status(&world), world.git(&["rev-parse", "HEAD"])), (String::new(), head));
    assert!(!world.root().join(".squad").exists());
    landed(&repository, &decide);
}

#[test]
fn other_content_is_never_overwritten() {
    let world = World::new();
    let repository = world.repository();
    let decide = change(&[(".squad/a.md", "a\n"), (DECISION, "decided\n")]);
    let head = world.git(&["rev-parse", "HEAD"]);

    world.write(DECISION, "mine\n");
    assert!(refused(&repository, &decide).contains("other content"));
    assert_eq!(world.read(DECISION), "mine\n");
    world.git(&["add", DECISION]);
    fs::remove_file(world.root().join(DECISION)).unwrap();
    assert!(refused(&repository, &decide).contains("staged"));
    world.git(&["rm", "-q", "--cached", DECISION]);

    fs::remove_dir_all(world.root().join(".squad")).unwrap();
    world.write(".squad", "a file\n");
    assert!(refused(&repository, &decide).contains("not a folder"));
    world.git(&["add", ".squad"]);
    fs::remove_file(world.root().join(".squad")).unwrap();
    assert!(refused(&repository, &decide).contains(".squad is staged"));
    world.git(&["rm", "-q", "--cached", ".squad"]);

    world.write(&format!("{DECISION}/below.txt"), "x");
    assert!(refused(&repository, &decide).contains("not a file"));
    world.git(&["add", "."]);
    fs::remove_dir_all(world.root().join(".squad")).unwrap();
    assert!(refused(&repository, &decide).contains("stands in the way"));
    world.git(&["rm", "-qr", "--cached", ".squad"]);

    world.git(&["init", "-q", ".squad"]);
    assert!(refused(&repository, &decide).contains("a repository of its own"));
    fs::remove_dir_all(world.root().join(".squad")).unwrap();

    assert_eq!(world.git(&["rev-parse", "HEAD"]), head);
    world.write(DECISION, "committed\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "other"]);
    assert!(refused(&repository, &decide).contains("on the branch"));
    assert_eq!(status(&world), "");
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_does_not_lead_out_of_the_work_tree() {
    let world = World::new();
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, world.root().join(".squad")).unwrap();
    assert_eq!(refused(&world.repository(), &change(&[(DECISION, "x")])), ".squad is a symbolic link");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn an_unborn_branch_gets_its_first_commit_only_when_asked() {
    for format in known_formats(&["--object-format=sha1", "--object-format=sha256", "--ref-format=reftable"]) {
        let world = World::unborn(&[format]);
        let mut first = change(&[(DECISION, "decided\n")]);
        world.write("staged.txt", "x");
        world.git(&["add", "staged.txt"]);
        assert!(refused(&world.repository(), &first).contains("no commit yet"));
        first.allow_unborn = true;
        landed(&world.repository(), &first);
        assert_eq!(world.git(&["log", "-g", "--format=%gs"]), "commit (initial): squad: decide\n");
        assert_eq!(status(&world), "A  staged.txt\n");
        landed(&world.repository(), &change(&[(".squad/b.md", "b\n")]));
        assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "2\n", "{format}");
        world.assert_sound();
    }
}

#[test]
fn ignored_folders_line_endings_and_sparse_or_split_indexes_are_respected() {
    let world = World::new();
    for name in ["inside/a.txt", "outside/b.txt", "outside/deep/c.txt"] {
        world.write(name, "text\n");
    }
    world.write(".gitignore", ".squad/\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "files"]);
    world.git(&["config", "core.autocrlf", "true"]);
    landed(&world.repository(), &change(&[(DECISION, "decided\n")]));
    assert_eq!(status(&world), "");
    assert_eq!(world.git(&["show", &format!("HEAD:{DECISION}")]), "decided\n");

    world.git(&["update-index", "--split-index"]);
    landed(&world.repository(), &change(&[(".squad/split.md", "x\n")]));
    assert_eq!(status(&world), "");
    world.git(&["update-index", "--no-split-index"]);

    world.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "inside"]);
    assert!(!world.root().join("outside").exists());
    landed(&world.repository(), &change(&[("outside/deep/d.md", "new\n"), (".squad/sparse.md", "x\n")]));
    assert_eq!(status(&world), "");
    assert_eq!(world.git(&["ls-files", "outside"]), "outside/b.txt\noutside/deep/c.txt\noutside/deep/d.md\n");
    assert!(!world.root().join("outside/b.txt").exists());
    world.git(&["sparse-checkout", "disable"]);
    assert_eq!(world.read("outside/b.txt"), "text\r\n");
    assert_eq!(status(&world), "");
    world.assert_sound();
}

#[test]
fn attributes_that_change_bytes_are_refused() {
    let world = World::new();
    world.write(".gitattributes", "*.md filter=lfs\n*.txt text eol=crlf\n");
    assert!(refused(&world.repository(), &change(&[(DECISION, "x\n")])).contains("filter=lfs"));
    assert!(refused(&world.repository(), &change(&[("a.txt", "x\r\n")])).contains("text=set"));
    landed(&world.repository(), &change(&[("a.txt", "x\n")]));
    assert_eq!(status(&world), "?? .gitattributes\n");
}

#[test]
fn linked_work_trees_and_submodules_have_branches_of_their_own() {
    let world = World::new();
    world.git(&["worktree", "add", "-qb", "linked", "../linked"]);
    let root = world.folder.path().join("linked");
    let linked = Repository::discover(&root, &world.environment).unwrap();
    assert_eq!(linked.work_dir().unwrap(), root);
    assert_eq!(linked.common_dir(), world.repository().common_dir());
    let mut decide = change(&[(DECISION, "decided\n")]);
    decide.branch = "linked".into();
    landed(&linked, &decide);
    assert_eq!(world.git_in(&root, &["status", "--porcelain"]), "");
    assert_eq!(status(&world), "");
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "1\n");

    let other = World::new();
    let url = other.root();
    world.git(&["submodule", "--quiet", "add", url.to_str().unwrap(), "module"]);
    world.git(&["commit", "-qm", "module"]);
    landed(&world.at("module"), &change(&[(DECISION, "decided\n")]));
    assert_eq!(world.git_in(&world.root().join("module"), &["status", "--porcelain"]), "");
    assert_eq!(status(&world), " M module\n");
    assert!(refused(&world.repository(), &change(&[("module/x.md", "x")])).contains("module"));
    world.assert_sound();
}

#[test]
fn no_hook_runs() {
    let world = World::new();
    for hook in ["pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"] {
        let path = world.root().join(".git/hooks").join(hook);
        crate::script::write(&path, "#!/bin/sh\ntouch \"$(git rev-parse --git-common-dir)/hooked\"\nexit 1\n");
    }
    landed(&world.repository(), &change(&[(DECISION, "x\n")]));
    assert!(!world.root().join(".git/hooked").exists());
}

#[cfg(unix)]
fn signer(world: &World, script: &str) {
    let program = world.folder.path().join("signer");
    crate::script::write(&program, &format!("#!/bin/sh\n{script}"));
    world.git(&["config", "commit.gpgSign", "true"]);
    world.git(&["config", "gpg.program", program.to_str().unwrap()]);
}

#[cfg(unix)]
#[test]
fn commits_are_signed_as_configured_or_not_made() {
    let world = World::new();
    signer(&world, "echo 'signer: no secret key' >&2\nexit 2\n");
    let reason = refused(&world.repository(), &change(&[(DECISION, "x\n")]));
    assert!(reason.starts_with("the commit could not be signed"), "{reason}");
    assert_eq!(status(&world), "");
    assert!(!world.root().join(".squad").exists());

    signer(
        &world,
        "test -z \"$GPG_TTY$DISPLAY\" || exit 3\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n\
         echo '-----BEGIN PGP SIGNATURE-----'\necho\necho '=x'\necho '-----END PGP SIGNATURE-----'\n",
    );
    let commit = landed(&world.repository(), &change(&[(DECISION, "x\n")]));
    let raw = world.git(&["cat-file", "commit", &commit]);
    assert!(raw.contains("gpgsig -----BEGIN PGP SIGNATURE-----"), "{raw}");
    assert!(raw.contains("author Ada <ada@example.com> 1772625600 +0000\n"), "{raw}");
    assert!(raw.ends_with("squad: decide\n\nSquad-Run: 1\n"), "{raw}");
    assert_eq!(status(&world), "");
}

/// A branch that moves between our check and our update, by a "git" that commits before it moves the ref.
#[cfg(unix)]
#[test]
fn a_branch_that_moves_meanwhile_is_built_upon() {
    let mut world = World::new();
    let wrapper = world.folder.path().join("git-wrapper");
    let script = "#!/bin/sh\ncase \"$*\" in *' update-ref -m '*)\n  if mkdir \"$HOME/once\" 2>/dev/null; then\n    \
                  git commit -q --allow-empty -m beside\n  fi;;\nesac\nexec git \"$@\"\n";
    crate::script::write(&wrapper, script);
    world.environment.git = wrapper;
    world.write("staged.txt", "x");
    landed(&world.repository(), &change(&[(DECISION, "x\n")]));
    assert_eq!(status(&world), "?? staged.txt\n");
    let subjects = world.git(&["log", "--format=%s"]);
    assert!(subjects.contains("beside") && subjects.contains("first"), "{subjects}");
    assert!(!world.git(&["ls-tree", "-r", "HEAD", DECISION]).is_empty());
    world.assert_sound();
}
