//! What an agent's programs can do in the sandbox, looked at on disk. On a system without a level, its stories say so
//! and end.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Output, TestRepo};

/// A repository outside the folders for temporary files, where the sandbox may replace them.
pub(crate) struct World {
    pub(crate) repo: TestRepo,
}

impl World {
    /// `None`: this system has not that level.
    pub(crate) fn at(level: &'static str) -> Option<Self> {
        // Programs share memory through files, so those of the memory's file system can be written.
        let mut repo = TestRepo::empty_on_disk();
        assert_eq!(repo.squad(&["init"]).code, 0);
        repo.variables.insert("SQUAD_SANDBOX_LEVEL".into(), level.into());
        repo.variables.insert("SQUAD_SANDBOX_REQUIRE".into(), "true".into());
        let world = Self { repo };
        let tried = world.run(&["true"]);
        if tried.code == 5 {
            eprintln!("this system has no sandbox `{level}`: {}", tried.err);
            return None;
        }
        assert_eq!(tried.code, 0, "{tried}");
        Some(world)
    }

    /// Plays an agent that runs these commands, each whatever became of the one before.
    pub(crate) fn run(&self, commands: &[&str]) -> Output {
        let steps: String = commands.iter().map(|command| format!("  {{ run = {command:?} }},\n")).collect();
        let script = format!("[[turn]]\nagent = \"backend\"\nsteps = [\n{steps}  {{ say = \"Done.\" }},\n]\n");
        self.repo.rehearse(&script, &["@backend do it", "--permissions", "allow", "--json"])
    }

    pub(crate) fn home(&self, path: &str) -> PathBuf {
        Path::new(&self.repo.variables["HOME"]).join(path)
    }

    pub(crate) fn write(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }
}

const LEVELS: [&str; 3] = ["full", "files", "rules"];

/// What the commands printed, a line of JSON each.
pub(crate) fn results(output: &Output) -> String {
    let events = output.out.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    events.filter(|event| event["type"] == "tool.completed").map(|event| format!("{}\n", event["result"])).collect()
}

fn run_of(output: &Output) -> String {
    TestRepo::events(output)[0]["run"].as_str().expect("an id").to_owned()
}

/// Other programs come and go while a command is started: their sockets were listed a moment ago.
#[cfg(target_os = "linux")]
#[test]
fn a_socket_that_is_removed_meanwhile_keeps_nobody_from_starting() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let Some(world) = World::at("full") else { return };
    let others = world.repo.root().with_file_name("others");
    fs::create_dir(&others).expect("a folder");
    let is_over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let paths: Vec<PathBuf> = (0..40).map(|number| others.join(number.to_string())).collect();
                let bind = |path: &PathBuf| std::os::unix::net::UnixListener::bind(path).expect("a socket");
                let listeners: Vec<_> = paths.iter().map(bind).collect();
                paths.iter().for_each(|path| fs::remove_file(path).expect("it is there"));
                drop(listeners);
            }
        });
        let output = world.run(&["true"; 25]);
        is_over.store(true, Ordering::Relaxed);
        output
    });
    assert!(!output.out.contains("cannot be set up"), "{output}");
}

/// A submodule that is checked out, and one that is not: git would run what an agent's configuration there names.
#[test]
fn the_configuration_of_a_submodule_is_not_the_agents() {
    let Some(world) = World::at("full") else { return };
    let repo = &world.repo;
    let lib = repo.root().with_file_name("lib");
    repo.git(&["init", "--quiet", &lib.display().to_string()]);
    let lib = lib.display().to_string();
    let ann = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    repo.git(&[&["-C", &lib][..], &ann, &["commit", "--quiet", "--allow-empty", "--message=lib"]].concat());
    for name in ["libs/sub", "empty", "gone/deep"] {
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &lib, name]);
    }
    repo.git(&["commit", "--quiet", "--message=submodules"]);
    repo.git(&["submodule", "--quiet", "deinit", "--force", "empty"]);
    fs::remove_dir_all(repo.root().join("gone")).expect("a submodule");
    let before = repo.read("libs/sub/.git");
    let output = world.run(&[
        "rm -f libs/sub/.git; mv libs/sub/.git libs/sub/git",
        "git init -q empty || mkdir empty/.git",
        "git init -q gone/deep || mkdir -p gone/deep/.git; rm -rf gone; mkdir -p gone/deep/.git",
        "echo work > libs/sub/file && cat libs/sub/file",
        "mv libs/sub gone; mv libs gone; mkdir -p libs/sub && git init -q libs/sub",
    ]);
    assert!(results(&output).contains("work"), "the rest of it is the project's: {output}");
    assert_eq!(repo.read("libs/sub/.git"), before, "{output}");
    assert!(!repo.exists("empty/.git") && !repo.exists("gone/deep"), "{output}");
}

/// Whoever writes a file that git includes has git run a program, the next time a person does.
#[test]
fn what_git_takes_settings_from_is_not_the_agents() {
    let Some(world) = World::at("full") else { return };
    let repo = &world.repo;
    repo.git(&["config", "include.path", "../.gitconfig"]);
    repo.git(&["config", "includeIf.onbranch:other.path", "../conf/ours/git config"]);
    repo.write(".gitconfig", "[a]\n\tb = c\n");
    repo.write("conf/ours/git config", "[include]\n\tpath = \"more\"\n");
    repo.write("conf/ours/more", "[a]\n\tb = c\n");
    let before = [".gitconfig", "conf/ours/git config", "conf/ours/more"].map(|path| repo.read(path));
    let output = world.run(&[
        "echo x >> .gitconfig; mv .gitconfig gone; rm -f .gitconfig; ln -sf /dev/null .gitconfig",
        "echo x >> 'conf/ours/git config'; rm conf/ours/more; mv conf/ours gone; mv conf gone; rm -rf conf",
        "echo work > conf/ours/else && mv conf/ours/else conf/ours/other && cat conf/ours/other",
    ]);
    assert!(results(&output).contains("work"), "{output}");
    assert_eq!(
        [".gitconfig", "conf/ours/git config", "conf/ours/more"].map(|path| repo.read(path)),
        before,
        "{output}"
    );
}

/// What an agent could put there itself cannot be held by a mount.
#[cfg(unix)]
#[test]
fn settings_of_git_that_an_agent_could_put_there_are_refused() {
    for (kind, said) in [
        ("link", ".git is a symbolic link"),
        ("linked folder", "conf is a symbolic link"),
        ("missing", "not/there does not exist"),
    ] {
        let Some(world) = World::at("full") else { return };
        let repo = &world.repo;
        let link = |from: &str, to: &str| {
            fs::rename(repo.root().join(from), repo.root().join(to)).expect("it is there");
            std::os::unix::fs::symlink(to, repo.root().join(from)).expect("a link");
        };
        match kind {
            "link" => link(".git", "../elsewhere"),
            "linked folder" => {
                repo.write("conf/ours", "");
                repo.git(&["config", "include.path", "../conf/ours"]);
                link("conf", "../elsewhere");
            }
            _ => drop(repo.git(&["config", "include.path", "../not/there"])),
        }
        let output = world.run(&["true"]);
        assert!(output.code == 5 && output.out.contains(said), "{kind}: {output}");
    }
}

/// git looks for a repository in the folder where a person is, and then around it.
#[test]
fn a_team_of_a_subfolder_makes_no_repository_there_and_reads_no_keys_above() {
    let Some(world) = World::at("full") else { return };
    let repo = &world.repo;
    let folder = repo.root().join("app");
    fs::create_dir(&folder).expect("a folder");
    fs::rename(repo.root().join(".squad"), folder.join(".squad")).expect("a team");
    world.write(&repo.root().join(".gitignore"), ".env\n");
    world.write(&repo.root().join(".env"), "SECRET=hunter2hunter2\n");
    let commands = [
        "cut -c1-12 ../.env",
        "git init -q .",
        "mkdir .git; touch .git/config; rmdir .git; mv .git gone",
        "echo work > file",
    ];
    let steps: String = commands.iter().map(|command| format!("  {{ run = {command:?} }},\n")).collect();
    repo.write(
        "../script.toml",
        &format!("[[turn]]\nagent = \"backend\"\nsteps = [\n{steps} {{ say = \"Done.\" }}]\n"),
    );
    let script = repo.root().join("../script.toml").display().to_string();
    let arguments = ["orchestrate", "--script", &script, "@backend do it", "--permissions", "allow", "--json"];
    let output = repo.squad_in(&folder, &arguments);
    assert!(output.code == 0 && repo.exists("app/file"), "{output}");
    assert!(!repo.exists("app/.git") && !repo.exists("app/gone"), "{output}");
    assert!(!results(&output).contains("SECRET=hunte"), "files above it are hidden, too: {output}");
}

#[test]
fn writes_land_in_the_project_and_nowhere_else() {
    for level in LEVELS {
        let Some(world) = World::at(level) else { continue };
        let (out, home) = (world.repo.root().join("../out"), world.home("out"));
        let commands = [
            "echo a > inside",
            "mkdir -p deep/er && echo a > deep/er/file && mv deep/er/file deep/moved && rm -r deep/er",
            "echo a > \"${TMPDIR:-.}/mine\" && cat \"${TMPDIR:-.}/mine\"",
            "echo a > ../out",
            &format!("echo a > {}", home.display()),
            &format!("ln -s {} link; echo a > link", home.display()),
        ];
        let output = world.run(&commands);
        let written = ["inside", "deep/moved"].map(|path| world.repo.root().join(path).exists());
        assert_eq!(written, [true, true], "{level}: {output}");
        assert_eq!([out.exists(), home.exists()], [level == "rules"; 2], "{level}: {output}");
        assert!(output.out.contains(&format!("\"sandbox\":\"{level}\"")), "{level}: {output}");
        let log = world.repo.squad(&["log", &run_of(&output)]);
        let said = format!("{level}: only the project, temporary files and caches could be written");
        assert_eq!(log.out.contains(&said), level != "rules", "{log}");
        let left = fs::read_dir(world.home(".local/state/squad/tmp")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{level}: temporary files are left");
    }
}

#[test]
fn keys_are_read_by_nobody_unless_the_user_says_so() {
    for level in LEVELS {
        let Some(mut world) = World::at(level) else { continue };
        let keys = [".ssh/id", ".aws/credentials", ".netrc", ".claude/login", ".copilot/token", ".local/state/squad/x"];
        for key in keys {
            world.write(&world.home(key), "the-key-itself\n");
        }
        let commands: Vec<String> =
            keys.iter().map(|key| format!("cat {}", world.home(key).display())).chain(["ls -d ~".to_owned()]).collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let said = results(&world.run(&commands));
        assert_eq!(
            said.matches("the-key-itself").count(),
            if level == "rules" { keys.len() } else { 0 },
            "{level}: {said}"
        );
        world.repo.variables.insert("SQUAD_SANDBOX_READ".into(), "~/.ssh,~/.netrc".into());
        let said = results(&world.run(&commands));
        assert_eq!(
            said.matches("the-key-itself").count(),
            if level == "rules" { keys.len() } else { 2 },
            "{level}: {said}"
        );
    }
}

#[test]
fn git_is_read_only_at_level_full_and_open_if_the_user_says_so() {
    let commit = "git -c user.name=B -c user.email=b@example.com commit --quiet --allow-empty -m made";
    for (level, git, is_made) in [("full", "read-only", false), ("full", "open", true), ("files", "read-only", true)] {
        let Some(mut world) = World::at(level) else { continue };
        world.repo.variables.insert("SQUAD_SANDBOX_GIT".into(), git.into());
        let output = world.run(&["git status --short", "git log --oneline", commit, "echo x > .git/hooks/pre-commit"]);
        let log = world.repo.git(&["log", "--format=%s"]);
        assert_eq!(log.contains("made"), is_made, "{level}, {git}: {output}");
        let hook = world.repo.root().join(".git/hooks/pre-commit");
        assert_eq!(hook.exists(), is_made, "{level}, {git}: {output}");
        assert!(!results(&output).contains("not a git repository"), "{level}, {git}: {output}");
    }
}

/// Everything in the user's `.git` but squad's own.
fn git_of_user(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let git = world.repo.root().join(".git");
    let (mut open, mut found) = (vec![git.clone()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let inner = path.strip_prefix(&git).expect("it is below").to_owned();
            // squad's refs, and the packs that hold what they lead to.
            if ["squad", "refs/squad", "objects", "logs/refs/squad"].iter().any(|own| inner.starts_with(own)) {
                continue;
            }
            if path.is_dir() { open.push(path) } else { found.push((inner, fs::read(&path).expect("a file"))) }
        }
    }
    found.sort();
    found
}

/// The value × what the agent's git does: whether that succeeds, and what of it is kept for the user. The rest of the
/// user's `.git` is what it was, to the byte.
#[test]
fn an_agents_git_works_on_a_copy_if_the_user_says_so() {
    const ANN: &str = "git -c user.name=B -c user.email=b@example.com";
    let commit = format!("echo a > a.txt && git add a.txt && {ANN} commit --quiet -m made");
    let amend = format!("{ANN} commit --quiet --amend --allow-empty -m made");
    let stash = format!("echo b >> README.md && {ANN} stash --quiet");
    let stashes = format!("{stash}; {}", stash.replace("echo b", "echo c"));
    let detached = format!("git checkout --quiet --detach && {ANN} commit --quiet --allow-empty -m made");
    let cases = [
        ("git add README.md", true, 0),
        (&commit, true, 1),
        (&format!("{commit} && {amend}"), true, 1),
        (&format!("git checkout --quiet -b other && {commit}"), true, 1),
        (&detached, true, 1),
        (&stashes, true, 2),
        ("git gc --quiet --prune=now", true, 0),
        ("git branch -D spare", true, 0),
        ("git update-ref -d refs/squad/log; git update-ref -d HEAD", true, 0),
        ("git config core.hooksPath hooks && git config core.fsmonitor 'touch ../out' && git status --short", true, 0),
        ("echo 'touch ../out' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit", true, 0),
        ("mv .git/HEAD .git/gone && mv .git/gone .git/HEAD", true, 0),
        ("touch .git/shared/pack/more", false, 0),
        ("mv .git gone", false, 0),
    ];
    for git in ["overlay", "read-only"] {
        for (command, succeeds, kept) in &cases {
            let Some(mut world) = World::at("full") else { return };
            world.repo.variables.insert("SQUAD_SANDBOX_GIT".into(), git.into());
            world.repo.write("README.md", "read me\n");
            world.repo.git(&["add", "README.md"]);
            world.repo.git(&["commit", "--quiet", "--message=first"]);
            world.repo.git(&["branch", "spare"]);
            let before = git_of_user(&world);
            let output = world.run(&[&format!("({command}) && echo it 'worked'")]);
            let after = git_of_user(&world);
            let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
            assert_eq!(names(&before), names(&after), "{git}: {command}: {output}");
            assert!(before == after, "{git}: {command}: {output}");
            let is_copy = git == "overlay";
            let worked = results(&output).contains("it worked");
            assert_eq!(worked, *succeeds && is_copy, "{git}: {command}: {output}");
            let refs = world.repo.git(&["for-each-ref", "--format=%(refname)", "refs/squad/runs"]);
            let refs: Vec<&str> = refs.lines().filter(|name| name.contains("_git/")).collect();
            assert_eq!(refs.len(), if is_copy { *kept } else { 0 }, "{git}: {command}: {output}");
            assert_eq!(output.out.matches("\"git.fetched\"").count(), refs.len(), "{git}: {command}: {output}");
            world.repo.git(&["fsck", "--strict", "--no-dangling"]);
            assert!(!world.repo.root().with_file_name("out").exists(), "{git}: {command}: {output}");
            assert!(!output.out.contains("are only in"), "{git}: {command}: {output}");
            let Some(reference) = refs.first() else { continue };
            let said = world.repo.squad(&["diff", &run_of(&output)]);
            assert!(said.err.contains(&format!("`git show {reference}`")), "{git}: {command}: {said}");
            let log = world.repo.squad(&["log", &run_of(&output)]);
            assert!(log.out.contains(&format!("is kept as {reference}")), "{git}: {command}: {log}");
        }
    }
}

/// What squad cannot fetch is not deleted with the run.
#[test]
fn commits_of_a_broken_copy_stay_there() {
    let Some(mut world) = World::at("full") else { return };
    world.repo.variables.insert("SQUAD_SANDBOX_GIT".into(), "overlay".into());
    let output = world.run(&["echo x > .git/HEAD", "echo kept > .git/mine"]);
    let events = TestRepo::events(&output);
    let said = events.iter().filter(|event| event["type"] == "session.error");
    let said: Vec<String> = said.map(|event| event["reason"].as_str().expect("a text").to_owned()).collect();
    let folder = said[0].strip_prefix("the commits of its git are only in ").and_then(|rest| rest.split(',').next());
    // Homes have one name in what is compared.
    let folder = folder.and_then(|folder| folder.strip_prefix("HOME/")).expect("a folder");
    let text = fs::read_to_string(world.home(folder).join("mine"));
    assert_eq!(text.ok().as_deref(), Some("kept\n"), "{output}");
    assert_eq!(output.code, 0, "{output}");
}

/// What commits in a linked work tree, or in a project below the repository's root, is written elsewhere.
#[test]
fn git_of_a_linked_work_tree_and_around_the_project() {
    let commit =
        "git -c user.name=B -c user.email=b@example.com commit --quiet --allow-empty -m made && echo it 'worked'";
    for (git, kind) in [
        ("overlay", "linked"),
        ("open", "linked"),
        ("read-only", "linked"),
        ("overlay", "below"),
        ("open", "below"),
        ("read-only", "below"),
    ] {
        let Some(mut world) = World::at("full") else { return };
        world.repo.variables.insert("SQUAD_SANDBOX_GIT".into(), git.into());
        let repo = &world.repo;
        repo.git(&["add", "."]);
        repo.git(&["commit", "--quiet", "--allow-empty", "--message=team"]);
        let folder = match kind {
            "linked" => {
                repo.git(&["worktree", "add", "--quiet", "../linked"]);
                repo.root().with_file_name("linked")
            }
            _ => {
                fs::create_dir(repo.root().join("app")).expect("a folder");
                fs::rename(repo.root().join(".squad"), repo.root().join("app/.squad")).expect("a team");
                repo.root().join("app")
            }
        };
        let script =
            format!("[[turn]]\nagent = \"backend\"\nsteps = [{{ run = {commit:?} }}, {{ say = \"Done.\" }}]\n");
        repo.write("../script.toml", &script);
        let script = repo.root().join("../script.toml").display().to_string();
        let arguments = ["orchestrate", "--script", &script, "@backend do it", "--permissions", "allow", "--json"];
        let output = repo.squad_in(&folder, &arguments);
        assert_eq!(results(&output).contains("it worked"), git != "read-only", "{git}, {kind}: {output}");
        let made = repo.git(&["log", "--branches", "--format=%s"]).matches("made").count();
        assert_eq!(made, usize::from(git == "open"), "{git}, {kind}: {output}");
        let kept = output.out.matches("\"git.fetched\"").count();
        assert_eq!(kept, usize::from(git == "overlay"), "{git}, {kind}: {output}");
    }
}

#[test]
fn ignored_environment_files_are_hidden_at_level_full_and_unharmed() {
    for level in LEVELS {
        let Some(world) = World::at(level) else { continue };
        let root = world.repo.root();
        world.write(&root.join(".gitignore"), ".env\n");
        world.write(&root.join(".env"), "SECRET=hunter2hunter2\n");
        world.write(&root.join("README.md"), "Read this.\n");
        world.write(&root.join("apps/api/.env"), "SECRET=hunter2hunter2\n");
        world.write(&root.join("build/.a/b/c/d/.env"), "SECRET=hunter2hunter2\n");
        world.write(&root.join("../common/.env"), "SECRET=hunter2hunter2\n");
        world.write(&root.join("../common/prod"), "SECRET=hunter2hunter2\n");
        fs::create_dir(root.join("web")).expect("a folder");
        for (to, at) in [("../common", "linked"), ("../../common/prod", "web/.env")] {
            #[cfg(unix)]
            std::os::unix::fs::symlink(to, root.join(at)).expect("a link");
        }
        world.write(&root.join(".env.local"), "NOT_IGNORED=1\n");
        let output = world.run(&[
            "cut -c1-12 .env apps/api/.env build/.a/b/c/d/.env linked/.env web/.env ../common/prod",
            "mv apps moved; mv build/.a moved-too",
            "cut -c1-12 moved/api/.env moved-too/b/c/d/.env",
            "rm web/.env; cut -c1-12 ../common/prod",
            "cat .env.local",
            "echo X=1 > .env; echo X=1 >> .env",
            "python3 -c \"import os; os.rename('moved/api', 'api'); os.rename('README.md', 'api/README.md')\" && echo re'named'",
        ]);
        let said = results(&output);
        assert!(said.contains("renamed"), "a folder with such a file is like others: {output}");
        assert_eq!(said.matches("SECRET=hunte").count(), if level == "full" { 0 } else { 9 }, "{level}: {output}");
        assert!(said.contains("NOT_IGNORED"), "{level}: {output}");
        let text = fs::read_to_string(root.join(".env")).expect("it is there");
        assert_eq!(text.contains("SECRET"), level == "full", "{level}: {text}");
    }
}

/// A program that is started while the folder around such a file is renamed does not see it either.
#[test]
fn an_environment_file_that_is_renamed_all_the_time_is_hidden() {
    let Some(world) = World::at("full") else { return };
    let root = world.repo.root();
    world.write(&root.join(".gitignore"), ".env\n");
    world.write(&root.join("a/.env"), "SECRET=hunter2hunter2\n");
    let turn = "(for n in $(seq 3000); do mv -T a b; mv -T b a; done) > /dev/null 2>&1 & sleep 0.2";
    let look = "for n in $(seq 300); do cut -c1-12 a/.env b/.env; done 2> /dev/null; true";
    let output = world.run(&[&[turn][..], &[look; 20]].concat());
    assert!(!results(&output).contains("SECRET=hunte"), "{output}");
    assert!(results(&output).lines().count() > 1, "{output}");
}

/// A system that lacks something × the level that is left, and what is said; the real program in such a system.
#[cfg(target_os = "linux")]
#[test]
fn a_system_that_lacks_something_has_the_next_level_and_says_so() {
    /// Answers the system call by which Landlock is asked for, 444, as a kernel without it does.
    const NO_LANDLOCK: &str = "import ctypes as c, os, sys, struct
class F(c.Structure): _fields_ = [('len', c.c_ushort), ('filter', c.c_char_p)]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7fff0000)]
text = b''.join(struct.pack('HBBI', *line) for line in code)
libc = c.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, c.byref(F(len(code), text)), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])";
    let no_namespaces = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let inner = "mount -t tmpfs none \"$1\" && cp -a ./. \"$1\" && cd \"$1\" && shift && exec \"$@\"";
    let alone = ["unshare", "--user", "--map-root-user", "--mount"];
    let world = World::at("full");
    let Some(world) = world.filter(|_| std::process::Command::new("unshare").arg("--version").output().is_ok()) else {
        return;
    };
    let root = world.repo.root();
    let (device, link) = (root.with_file_name("device"), root.with_file_name("link"));
    fs::create_dir(&device).expect("a folder");
    std::os::unix::fs::symlink(&root, &link).expect("a link");
    let device = device.display().to_string();
    let script = "[[turn]]\nagent = \"backend\"\nsteps = [{ run = \"echo it 'worked'; echo x > ../out\" }, { say = \"Done.\" }]\n";
    world.repo.write("../script.toml", script);
    let script = root.join("../script.toml").display().to_string();
    let squad = [env!("CARGO_BIN_EXE_squad"), "orchestrate", "--script", &script, "@backend do it", "--json"];
    let squad = [&squad[..], &["--permissions", "allow"]].concat();
    for (name, wrapper, directory, level, said) in [
        ("nothing is lacking", &[][..], &root, "full", ""),
        ("below a link", &[], &link, "full", ""),
        ("a sandbox of another's", &alone, &root, "full", ""),
        ("another device", &[&alone[..], &["sh", "-c", inner, "-", &device]].concat(), &root, "full", ""),
        (
            "no user namespaces",
            &[&alone[..], &["sh", "-c", no_namespaces, "-"]].concat(),
            &root,
            "files",
            "`full`: no user namespace: user.max_user_namespaces allows none",
        ),
        ("no Landlock", &["python3", "-c", NO_LANDLOCK], &root, "rules", "`files`: Landlock"),
    ] {
        for is_required in [false, true] {
            let words = [wrapper, &squad].concat();
            let mut command = world.repo.command(words[0], directory);
            command.args(&words[1..]).env("SQUAD_SANDBOX_REQUIRE", is_required.to_string());
            let output = command.output().expect("it runs");
            let text = [&output.stdout[..], &output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            assert!(text.contains(said), "{name}, {is_required}: {text}");
            let is_refused = is_required && level != "full";
            assert_eq!(output.status.code(), Some(if is_refused { 5 } else { 0 }), "{name}, {is_required}: {text}");
            assert_eq!(text.contains("it worked"), !is_refused, "{name}, {is_required}: {text}");
            let held = text.contains(&format!("\"sandbox\":\"{level}\""));
            assert_eq!(held, !is_refused, "{name}, {is_required}: {text}");
            let out = root.with_file_name("out");
            assert_eq!(out.exists(), level == "rules" && !is_refused, "{name}, {is_required}: {text}");
            let _ = fs::remove_file(out);
        }
    }
}

#[test]
fn ways_to_daemons_are_not_handed_on() {
    for level in LEVELS {
        let Some(mut world) = World::at(level) else { continue };
        for name in ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR"] {
            world.repo.variables.insert(name.into(), "/a/way/out".into());
        }
        let said = results(&world.run(&["env", "echo caches: $CARGO_HOME $npm_config_cache"]));
        assert_eq!(said.contains("/a/way/out"), level == "rules", "{level}: {said}");
        assert_eq!(said.contains("/caches/"), level != "rules", "{level}: {said}");
    }
}

/// squad prepares folders in which agents of earlier runs could write.
#[cfg(unix)]
#[test]
fn a_link_that_an_agent_left_leads_squad_nowhere() {
    for level in ["full", "files"] {
        let Some(world) = World::at(level) else { continue };
        let settings = world.home(".cargo/config.toml");
        world.write(&settings, "[net]\noffline = true\n");
        let cargo = settings.parent().expect("a folder").display().to_string();
        let link = format!("rm -r $CARGO_HOME && ln -s {cargo} $CARGO_HOME");
        assert!(results(&world.run(&["cat $CARGO_HOME/config.toml", &link])).contains("offline"), "{level}");
        let output = world.run(&["ls -l $CARGO_HOME", "echo x > $CARGO_HOME/config.toml"]);
        let text = fs::read_to_string(&settings).expect("it is there");
        assert_eq!(text, "[net]\noffline = true\n", "{level}: {output}");
    }
}

#[test]
fn a_repository_may_only_tighten() {
    let repo = TestRepo::with_team();
    fs::write(
        repo.root().join(".squad/config.toml"),
        "[sandbox]\nlevel = \"files\"\nread = [\"~/.ssh\"]\ngit = \"overlay\"\nrequire = true\n\
         network = \"open\"\nhosts = [\"evil.example\"]\n",
    )
    .expect("a file");
    let output = repo.squad(&["config", "list", "--json"]);
    let text = format!("{}{}", output.out, output.err);
    for refused in ["level", "read", "git", "network", "hosts"] {
        assert!(text.contains(&format!("`sandbox.{refused}` is ignored")), "{refused}: {output}");
    }
    assert!(!text.contains("`sandbox.require` is ignored"), "{output}");
    let output = repo.squad(&["config", "set", "sandbox.level", "rules"]);
    assert_eq!(output.code, 2, "{output}");
    let output = repo.squad(&["config", "set", "--user", "sandbox.level", "most"]);
    assert!(output.err.contains("`most` is not a level; use full, files or rules"), "{output}");
    let output = repo.squad(&["config", "set", "--user", "sandbox.hosts", "[\"https://example.com\"]"]);
    assert!(output.code == 2 && output.err.contains("`https://example.com`, which is no host"), "{output}");
    // It may ask for the strict one.
    fs::write(repo.root().join(".squad/config.toml"), "[sandbox]\nnetwork = \"listed\"\n").expect("a file");
    let output = repo.squad(&["config", "list"]);
    assert!(output.out.contains("sandbox.network = \"listed\""), "{output}");
}

/// A home that squad cannot keep its state in leaves only the rules, which is said, or refused.
#[test]
fn what_cannot_be_had_is_said_or_refused() {
    let mut repo = TestRepo::with_team();
    repo.variables.insert("SQUAD_SANDBOX_LEVEL".into(), "full".into());
    let file = repo.root().join("../a-file");
    fs::write(&file, "").expect("a file");
    repo.variables.insert("XDG_STATE_HOME".into(), file.display().to_string());
    let arguments = ["orchestrate", "@backend say hello", "--engine", "rehearsal"];
    let output = repo.squad(&arguments);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.err.contains("the agents' sandbox is only `rules` here"), "{output}");
    repo.variables.insert("SQUAD_SANDBOX_REQUIRE".into(), "true".into());
    let output = repo.squad(&arguments);
    assert_eq!(output.code, 5, "{output}");
    assert!(output.err.contains("the sandbox `full` is not to be had here"), "{output}");
}

/// A program that does not ask before it acts, and ignores its own read-only mode.
#[cfg(unix)]
#[test]
fn an_agent_that_may_change_nothing_is_kept_from_it() {
    for level in LEVELS {
        for (permissions, mode) in [("deny", "strict"), ("allow", "free")] {
            let Some(world) = World::at(level) else { continue };
            let program = world.home("bin/mine");
            let text = "#!/bin/sh\necho x > by-$1\necho x > ~/.mine/state\necho x >> ~/.mine/hooks\necho x > ~/elsewhere\necho \"Did $1.\"\n";
            crate::support::script::write(&program, text);
            world.write(&world.home(".mine/hooks"), "kept\n");
            let config = format!(
                "[engines.mine]\nprogram = \"{}\"\nargs = [\"{{mode}}\", \"{{prompt}}\"]\nstrict = [\"strict\"]\n\
                 free = [\"free\"]\nhome = [\"~/.mine/\"]\nsettings = [\"~/.mine/hooks\"]\n",
                program.display()
            );
            world.write(&world.home("config/squad/config.toml"), &config);
            let arguments = ["--engine", "mine", "--permissions", permissions, "@backend do it"];
            let output = world.repo.squad(&[&["orchestrate"][..], &arguments].concat());
            assert!(output.out.contains(&format!("Did {mode}.")), "{level}, {permissions}: {output}");
            let file = world.repo.exists(&format!("by-{mode}"));
            assert_eq!(file, mode == "free" || level == "rules", "{level}, {permissions}: {output}");
            assert_eq!(world.home("elsewhere").exists(), level == "rules", "{level}, {permissions}: {output}");
            assert!(world.home(".mine/state").exists(), "{level}, {permissions}: {output}");
            let hooks = fs::read_to_string(world.home(".mine/hooks")).expect("they are there");
            assert_eq!(hooks == "kept\n", level == "full", "{level}, {permissions}: {hooks}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_a_link_leads_to_is_hidden_under_both_names() {
    for level in ["full", "files"] {
        let Some(world) = World::at(level) else { continue };
        world.write(&world.home("dotfiles/netrc"), "the-key-itself\n");
        world.write(&world.home("dotfiles/aws/credentials"), "the-key-itself\n");
        for (name, place) in [(".netrc", "dotfiles/netrc"), (".aws", "dotfiles/aws")] {
            std::os::unix::fs::symlink(world.home(place), world.home(name)).expect("a link");
        }
        let said = results(&world.run(&[
            "cat ~/.netrc",
            "cat ~/dotfiles/netrc",
            "cat ~/.aws/credentials",
            "cat ~/dotfiles/aws/credentials",
        ]));
        assert!(!said.contains("the-key-itself"), "{level}: {said}");
    }
}

/// Programs that listen on a path do what they are told, outside.
#[cfg(unix)]
#[test]
fn sockets_of_others_are_not_reached_at_level_full() {
    for level in ["full", "rules"] {
        let Some(world) = World::at(level) else { continue };
        let path = world.home("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let connect = format!(
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{}'); print('rea' + 'ched')\"",
            path.display()
        );
        let said = results(&world.run(&[&connect]));
        assert_eq!(said.contains("reached"), level == "rules", "{level}: {said}");
    }
}

/// An agent can make more to hide than one argument holds. Its next run must not be bounded less for that.
#[test]
fn too_much_to_hide_is_no_reason_for_a_weaker_level() {
    let Some(world) = World::at("full") else { return };
    world.repo.write(".gitignore", ".env\n");
    let long = "x".repeat(200);
    (0..700).for_each(|number| world.repo.write(&format!("{long}/{number}/.env"), ""));
    let mut repo = world.repo;
    repo.variables.remove("SQUAD_SANDBOX_REQUIRE");
    let output = repo.squad(&["orchestrate", "@backend say hello", "--engine", "rehearsal"]);
    assert_eq!(output.code, 5, "{output}");
    assert!(output.err.contains("the sandbox `full` cannot be set up"), "{output}");
}

/// squad asks git about the work tree, outside of the sandbox, when the agent is done.
#[cfg(unix)]
#[test]
fn a_monitor_that_an_agent_configured_is_not_run() {
    let Some(world) = World::at("files") else { return };
    let proof = world.home("proof");
    let script = format!("#!/bin/sh\ntouch {}\n", proof.display());
    let make = format!("printf '{}' > f.sh; chmod +x f.sh", script.replace('\n', "\\n"));
    let output = world.run(&[&make, "git config core.fsmonitor $PWD/f.sh", "echo x > new"]);
    world.repo.squad(&["status"]);
    world.repo.squad(&["doctor"]);
    assert!(!proof.exists(), "{output}");
}

/// A process outside, and what programs inside make of it.
#[cfg(target_os = "linux")]
#[test]
fn programs_have_to_do_with_no_processes_but_their_own() {
    use std::process::{Child, Command};

    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    let seconds = format!("{}", 70_000 + std::process::id() % 10_000);
    let sleeper = || Sleeper(Command::new("sleep").arg(&seconds).spawn().expect("it sleeps"));
    for level in LEVELS {
        let Some(world) = World::at(level) else { continue };
        let mut outside = sleeper();
        let id = outside.0.id();
        let commands = [
            &*format!("cat /proc/{id}/cmdline | tr '\\0' ' '"),
            &format!("renice -n 19 -p {id}; kill -9 {id}"),
            "ls /proc | grep -c '^[0-9]'",
            "sleep 30 & kill $! && wait $!; echo ended by $?",
            "readlink /proc/self; sh -c 'echo $PPID'; ps -e > /dev/null || true",
        ];
        let output = world.run(&commands);
        let said = results(&output);
        let said: Vec<&str> = said.lines().collect();
        let niceness = || {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(16)?.parse::<i32>().ok())
        };
        let (is_killed, is_niced) = (outside.0.try_wait().expect("a state").is_some(), niceness() == Some(19));
        let has_own = level == "full";
        assert_eq!(said[0].contains(&seconds), !has_own, "{level}: {output}");
        assert!(!has_own || !is_killed && !is_niced, "{level}: {output}");
        assert!(level != "rules" || is_killed, "{level}: {output}");
        let seen: usize =
            said[2].trim_matches(|c: char| !c.is_ascii_digit()).trim_end_matches("\\n").parse().expect("a number");
        assert_eq!(seen < 8, has_own, "{level}: {output}");
        assert!(said[3].contains("ended by 143"), "{level}: {output}");
    }
}

/// How a program ends × what is told of it.
#[test]
fn a_program_ends_inside_as_it_does_outside() {
    for level in LEVELS {
        let Some(world) = World::at(level) else { continue };
        let commands = [
            ("exit 0", Some(0)),
            ("exit 7", Some(7)),
            ("exit 137", Some(137)),
            ("kill -TERM $$", None),
            ("kill -KILL $$", None),
            ("kill -SEGV $$", None),
            ("kill -USR1 $$", None),
            ("(sleep 30 &) ; exit 3", Some(3)),
            ("setsid sh -c 'exit 9'; exit $?", Some(9)),
            ("nobody-knows-this-program", Some(127)),
            ("true | cat; yes | head -n 1 > /dev/null", Some(0)),
        ];
        let output = world.run(&commands.map(|(command, _)| command));
        let events = TestRepo::events(&output);
        let ended: Vec<_> = events.iter().filter(|event| event["type"] == "tool.completed").collect();
        assert_eq!(ended.len(), commands.len(), "{level}: {output}");
        for ((command, code), event) in commands.iter().zip(ended) {
            let told = event["exit_code"].as_i64();
            assert_eq!(told, code.map(i64::from), "{level}: {command}: {event}");
        }
    }
}

/// What a program leaves running is ended and named, and what hides from squad ends with it where there are processes of
/// its own.
#[cfg(target_os = "linux")]
#[test]
fn what_is_left_running_is_ended_whatever_it_calls_itself() {
    let number = std::process::id() % 10_000;
    let (plain, hidden) = (80_000 + number, 90_000 + number);
    let is_there = |seconds: u32| {
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .any(|line| line.trim() == format!("sleep {seconds}"))
    };
    let Some(world) = World::at("full") else { return };
    let output = world.run(&[
        &format!("setsid sleep {plain} > /dev/null 2>&1 < /dev/null & echo begun"),
        // Its environment says nothing, and neither does its parent.
        &format!("(setsid env -i sh -c 'sleep {hidden} & sleep 0.1' > /dev/null 2>&1 < /dev/null &); sleep 0.3"),
    ]);
    let work = TestRepo::events(&output).into_iter().find(|event| event["type"] == "agent.completed");
    let work = work.unwrap_or_default();
    assert!(work["left_running"].to_string().contains(&format!("\"sleep {plain}\"")), "{output}");
    assert!(!work["left_running"].to_string().contains("within"), "{output}");
    for seconds in [plain, hidden] {
        let mut tries = 0..50;
        while is_there(seconds) {
            assert!(tries.next().is_some(), "`sleep {seconds}` is left: {output}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}
