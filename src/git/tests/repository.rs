use super::*;
use crate::git::{Error, repository::Head};

#[test]
fn discovery_starts_in_a_subfolder() {
    let world = World::new();
    world.write("a/b/c.txt", "x");
    let repository = world.at("a/b");
    assert_eq!(repository.work_dir().unwrap(), world.root());
    assert_eq!(repository.git_dir(), world.root().join(".git"));
    assert_eq!(repository.common_dir(), repository.git_dir());
}

#[test]
fn a_folder_that_is_no_repository_says_why() {
    let world = World::empty();
    fs::create_dir(world.root()).unwrap();
    let discover = |world: &World| Repository::discover(&world.root(), &world.environment).unwrap_err();
    assert!(matches!(discover(&world), Error::NoRepository { .. }));
    let missing = Repository::discover(&world.root().join("missing"), &world.environment);
    assert!(matches!(missing.unwrap_err(), Error::NoFolder { .. }));

    fs::create_dir(world.root().join(".git")).unwrap();
    assert!(matches!(discover(&world), Error::Unreadable { .. }));

    let world = World::new();
    world.git(&["config", "core.repositoryFormatVersion", "1"]);
    world.git(&["config", "extensions.noop", "true"]);
    world.repository();
    fs::write(world.root().join(".git/config"), "[core]\nrepositoryFormatVersion=1\n[extensions]\nmagic=1\n").unwrap();
    let error = discover(&world);
    assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains("magic"), "{error}");
    fs::write(world.root().join(".git/config"), "[core]\nrepositoryFormatVersion=2\n").unwrap();
    assert!(matches!(discover(&world), Error::Unsupported { .. }));
}

#[cfg(unix)]
#[test]
fn a_repository_of_another_user_needs_safe_directory() {
    let world = World::new();
    if std::os::unix::fs::chown(world.root().join(".git"), Some(65_000), None).is_err() {
        return; // only root can give files away
    }
    let answer = Repository::discover(&world.root(), &world.environment);
    assert!(matches!(answer, Err(Error::UnsafeOwnership { .. })), "{answer:?}");
    let global = world.environment.variables.get(&OsString::from("GIT_CONFIG_GLOBAL")).unwrap();
    fs::write(global, format!("[safe]\n directory = {}\n", world.root().display())).unwrap();
    assert_eq!(world.repository().work_dir().unwrap(), world.root());
}

#[test]
fn the_users_name_is_the_nearest_that_is_configured() {
    let world = World::new();
    let global = world.environment.variables.get(&OsString::from("GIT_CONFIG_GLOBAL")).unwrap();
    let included = format!("{}.d", Path::new(global).display());
    for (general, own, name) in [
        ("", None, None),
        ("[user]\n name = Ann Global\n", None, Some("Ann Global")),
        ("[user]\n name = Ann Global\n", Some("Ann Here"), Some("Ann Here")),
        ("", Some("Ann Here"), Some("Ann Here")),
        ("[user]\n name = \" \"\n", None, None),
        (&format!("[include]\n path = {included}\n"), None, Some("Ann Included")),
    ] {
        fs::write(&included, "[user]\n name = Ann Included\n").unwrap();
        fs::write(global, general).unwrap();
        let _ = fs::remove_file(world.root().join(".git/config.worktree"));
        world.git(&["config", "user.name", own.unwrap_or("x")]);
        if own.is_none() {
            world.git(&["config", "--unset", "user.name"]);
        }
        assert_eq!(world.repository().user(), name, "{general} {own:?}");
    }
}

#[test]
fn bare_repositories_open_without_a_work_tree() {
    let world = World::unborn(&["--bare"]);
    assert_eq!(world.repository().work_dir(), None);
}

#[test]
fn head_is_a_branch_with_or_without_commits_or_detached() {
    for format in known_formats(&["--object-format=sha1", "--ref-format=reftable"]) {
        let world = World::unborn(&[format]);
        let head = |branch: Option<&str>, commit: Option<&str>| Head {
            left: None,
            branch: branch.map(str::to_owned),
            commit: commit.map(str::to_owned),
        };
        assert_eq!(world.repository().head().unwrap(), head(Some("main"), None));
        world.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        let id = world.git(&["rev-parse", "HEAD"]);
        assert_eq!(world.repository().head().unwrap(), head(Some("main"), Some(id.trim())));
        world.git(&["switch", "-qc", "feature/x"]);
        world.git(&["pack-refs", "--all"]);
        assert_eq!(world.repository().head().unwrap(), head(Some("feature/x"), Some(id.trim())));
        world.git(&["switch", "-q", "--detach"]);
        assert_eq!(world.repository().head().unwrap(), head(None, Some(id.trim())));
    }
}

#[test]
fn a_branch_may_be_a_symbolic_ref() {
    let world = World::new();
    world.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    world.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    let head = world.repository().head().unwrap();
    let id = world.git(&["rev-parse", "HEAD"]);
    assert_eq!((head.branch.as_deref(), head.commit.as_deref()), (Some("alias"), Some(id.trim())));
    let mut decide = change(&[(".squad/a.md", "a")]);
    decide.branch = "alias".into();
    assert_eq!(landed(&world.repository(), &decide), world.git(&["rev-parse", "main"]).trim());
    world.git(&["symbolic-ref", "refs/heads/main", "refs/heads/alias"]);
    assert!(matches!(world.repository().head(), Err(Error::Damaged { .. })));
}

#[test]
fn operations_are_seen() {
    let world = World::new();
    assert_eq!(world.repository().operation(), None);
    world.git(&["switch", "-qc", "other"]);
    world.write("README.md", "other\n");
    world.git(&["commit", "-qam", "other"]);
    world.git(&["switch", "-q", "main"]);
    world.write("README.md", "mine\n");
    world.git(&["commit", "-qam", "mine"]);
    for (begin, end, name) in [
        (&["merge", "other"][..], &["merge", "--abort"][..], "merge"),
        (&["rebase", "other"], &["rebase", "--abort"], "rebase"),
        (&["cherry-pick", "other"], &["cherry-pick", "--abort"], "cherry-pick"),
        (&["revert", "HEAD~1"], &["revert", "--abort"], "revert"),
        (&["bisect", "start"], &["bisect", "reset"], "bisect"),
    ] {
        world.try_git(begin);
        assert_eq!(world.repository().operation(), Some(name));
        world.git(end);
        assert_eq!(world.repository().operation(), None);
    }
}

#[test]
fn the_identity_is_what_git_says() {
    let mut world = World::new();
    assert_eq!(world.repository().identity(), Some(ada()));
    world.environment.variables.insert("GIT_AUTHOR_NAME".into(), "Grace".into());
    let grace = Identity { name: "Grace".into(), email: "ada@example.com".into() };
    assert_eq!(world.repository().identity(), Some(grace));
    world.environment.variables.remove(&OsString::from("GIT_AUTHOR_NAME"));
    world.environment.variables.insert("GIT_CONFIG_GLOBAL".into(), "/dev/null".into());
    assert_eq!(world.repository().identity(), None);
}

#[test]
fn files_are_read_from_a_commit() {
    let world = World::new();
    world.write(".squad/team.md", "team");
    world.write(".squad/agents/a.md", "a");
    world.write(".gitignore", "kept-out/\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "team"]);
    world.write(".squad/team.md", "changed since");
    let repository = world.repository();
    let commit = repository.head().unwrap().commit.unwrap();
    assert_eq!(repository.paths_at(&commit, ".squad").unwrap(), [".squad/agents/a.md", ".squad/team.md"]);
    let files = repository.files_at(&commit, ".squad", |path| path.ends_with("team.md").then_some(4)).unwrap();
    assert_eq!(files, [entry(".squad/team.md", "team")]);
    let small = repository.files_at(&commit, ".squad", |path| path.ends_with("team.md").then_some(3)).unwrap_err();
    assert_eq!(small.to_string(), ".squad/team.md is not read: it has 4 bytes in the commit, and at most 3 are read");
    assert_eq!(repository.paths_at(&commit, "nowhere").unwrap(), [""; 0]);
    assert!(repository.paths_at("nonsense", "").is_err() && repository.paths_at(&"1".repeat(40), "").is_err());
    world.write("kept-out/a", "x");
    assert!(
        repository.is_ignored("kept-out") && repository.is_ignored("kept-out/a") && !repository.is_ignored(".squad")
    );
}

#[test]
fn hook_variables_are_ignored() {
    let mut world = World::new();
    let other = World::new();
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"] {
        world.environment.variables.insert(name.into(), other.root().join(".git").into());
    }
    let repository = world.repository();
    repository.ledger().append(&[entry("log/2026/03/04/a.md", "x")], "entry", &ada(), noon()).unwrap();
    landed(&repository, &change(&[(".squad/a.md", "a")]));
    assert_eq!(world.read(".squad/a.md"), "a");
    assert_eq!(other.git(&["status", "--porcelain"]), "");
    assert!(other.try_git(&["rev-parse", "--verify", "refs/squad/log"]).stdout.is_empty());
}
