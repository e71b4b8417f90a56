//! A test world under control: the clock starts on a fixed date, ids count from one, variables are few, and git sees
//! no configuration but the repository's own.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use squad::{Clock, DamageLog, Env, Ids, Release, Streams};
use tempfile::TempDir;

#[path = "../support/script.rs"]
pub(crate) mod script;
#[path = "../support/temporary.rs"]
pub(crate) mod temporary;

/// A real repository in a folder of its own.
pub(crate) struct TestRepo {
    folder: TempDir,
    clock: Arc<AtomicU64>,
    ids: Arc<AtomicU64>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) input: &'static str,
    /// Whether git's commits are made at the time that squad's clock shows, and not all at its start.
    pub(crate) one_clock: bool,
    /// Of the team's templates, in the place of squad's own.
    pub(crate) releases: Vec<Release>,
    /// Texts that count as another tool's.
    pub(crate) installed: Vec<String>,
}

/// A repository whose next command reads something.
pub(crate) struct Typed<'a> {
    repo: &'a TestRepo,
    input: &'static str,
}

impl Typed<'_> {
    pub(crate) fn squad_in(&self, directory: &Path, arguments: &[&str]) -> Output {
        self.repo.squad_with(self.input, directory, arguments)
    }
}

/// What a command printed, with its exit code last. `Display` is what tests compare.
pub(crate) struct Output {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: u8,
}

impl Output {
    /// What was said, without how long runs took: real commands take longer on a busy machine.
    pub(crate) fn without_durations(&self) -> String {
        let is_duration = |word: &str| word.contains(':') && word.chars().all(|c| c.is_ascii_digit() || c == ':');
        let word = |word: &str| match is_duration(word.trim_end_matches(';')) {
            true => format!("TIME{}", if word.ends_with(';') { ";" } else { "" }),
            false => word.to_owned(),
        };
        let line = |line: &str| match line.contains("; run ") {
            true => line.split(' ').map(word).collect::<Vec<_>>().join(" "),
            false => line.to_owned(),
        };
        self.err.lines().map(|text| line(text) + "\n").collect()
    }

    /// Without the age of the newest run in `squad status`, which grows.
    pub(crate) fn without_age(&self) -> String {
        self.to_string().lines().filter(|line| !line.contains("last run")).map(|line| format!("{line}\n")).collect()
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.out)?;
        if !self.err.is_empty() {
            write!(f, "--- stderr\n{}", self.err)?;
        }
        writeln!(f, "--- exit {}", self.code)
    }
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics while writing").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no test panics while writing").clone()).expect("UTF-8")
    }
}

impl TestRepo {
    /// A folder without a repository.
    pub(crate) fn folder() -> Self {
        Self::folder_in(temporary::folder())
    }

    /// A repository without a commit, on a file system that has to flush.
    pub(crate) fn empty_on_disk() -> Self {
        Self::folder_in(temporary::folder_on_disk()).begun()
    }

    fn folder_in(folder: TempDir) -> Self {
        // An engine of the machine is none of the test's.
        let has_engine = |folder: &PathBuf| {
            ["claude", "codex", "gemini", "cursor-agent", "opencode"].iter().any(|name| folder.join(name).exists())
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::env::split_paths(&path).filter(|folder| !has_engine(folder)));
        let path = path.expect("folders").into_string().expect("UTF-8");
        let home = folder.path().join("home");
        fs::create_dir_all(home.join("cache")).expect("a home");
        fs::create_dir(folder.path().join("repo")).expect("a folder");
        let home = home.display().to_string();
        let variables = [
            ("PATH", path.as_str()),
            ("HOME", &home),
            ("XDG_CONFIG_HOME", &format!("{home}/config")),
            ("XDG_CACHE_HOME", &format!("{home}/cache")),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_DATE", "2026-01-05T09:00:00Z"),
            ("GIT_COMMITTER_DATE", "2026-01-05T09:00:00Z"),
            // What the sandbox does has stories of its own; the others are to be the same on every system.
            ("SQUAD_SANDBOX_LEVEL", "rules"),
            // These tests never start the machine's own Copilot CLI, should there be one.
            ("COPILOT_CLI_PATH", "/nonexistent/copilot"),
        ];
        Self {
            variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            folder,
            clock: Arc::new(AtomicU64::new(0)),
            ids: Arc::new(AtomicU64::new(1)),
            input: "",
            one_clock: false,
            releases: Vec::new(),
            installed: Vec::new(),
        }
    }

    /// A repository without a commit.
    pub(crate) fn empty() -> Self {
        Self::folder().begun()
    }

    fn begun(self) -> Self {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.git(&["config", "user.name", "Ann"]);
        self.git(&["config", "user.email", "ann@example.com"]);
        self
    }

    /// A repository with the built-in team.
    pub(crate) fn with_team() -> Self {
        let repo = Self::empty();
        let output = repo.squad(&["init"]);
        assert_eq!(output.code, 0, "{output}");
        repo
    }

    /// A repository with a team of three that is small enough to read in a test.
    pub(crate) fn with_small_team() -> Self {
        let repo = Self::empty();
        repo.write(
            ".squad/team.md",
            "# Small\n\n| Name | Role | Status |\n|---|---|---|\n| Ada | Backend Dev | Active |\n| Bob | Tester | Active |\n\
             | Rex | Reviewer | Active |\n| Scribe | Logger | Silent |\n| Old | Backend Dev | Retired |\n",
        );
        repo.write(
            ".squad/routing.md",
            "# Routing\n\n| Work Type | Route To | Examples |\n|---|---|---|\n| Server, API | Ada | endpoint, query |\n\
             | Testing | Bob | unit test, coverage |\n| Security | Ada + Rex (review) | login, password |\n",
        );
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "--quiet", "--message=team"]);
        repo
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// A program that can be executed at once, by its path from the root.
    pub(crate) fn write_script(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root().join(path);
        script::write(&path, text);
        path
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).expect(path)
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root().join(path).exists()
    }

    /// So many seconds pass.
    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Runs squad in this process, with a paused clock: waiting costs nothing.
    pub(crate) fn squad(&self, arguments: &[&str]) -> Output {
        self.squad_in(&self.root(), arguments)
    }

    pub(crate) fn squad_in(&self, directory: &Path, arguments: &[&str]) -> Output {
        self.squad_with(self.input, directory, arguments)
    }

    fn squad_with(&self, input: &'static str, directory: &Path, arguments: &[&str]) -> Output {
        let (out, err) = (Buffer::default(), Buffer::default());
        INPUT.with(|place| *place.borrow_mut() = input);
        let env = Env {
            program: Some(PathBuf::from(env!("CARGO_BIN_EXE_squad"))),
            arguments: arguments.iter().map(Into::into).collect(),
            variables: self.variables.clone(),
            directory: directory.to_owned(),
            clock: Clock::Stepping {
                start: "2026-01-05T09:00:00Z".parse().expect("a time stamp"),
                looks: Arc::clone(&self.clock),
            },
            ids: Ids::Counting(Arc::clone(&self.ids)),
            runtime: || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build(),
            signals: false,
            threads: false,
            damage: DamageLog::default(),
            releases: self.releases.clone(),
            installed: self.installed.iter().map(|text| text.as_bytes().to_vec()).collect(),
        };
        let streams = Streams {
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
            out_is_terminal: false,
            err_is_terminal: false,
            in_is_terminal: false,
            input: || Box::new(INPUT.with(|place| place.borrow().as_bytes())),
            secret: |_| Err(io::ErrorKind::Unsupported.into()),
        };
        let code = squad::run(env, streams);
        let shown = |text: String| {
            let home = self.home().display().to_string();
            text.replace(&self.root().display().to_string(), "REPO").replace(&home, "HOME")
        };
        Output { out: shown(out.text()), err: shown(err.text()), code }
    }

    /// From now on git's commits have the time that squad's clock has.
    pub(crate) fn set_gits_clock(&mut self) {
        let start: jiff::Timestamp = "2026-01-05T09:00:00Z".parse().expect("a time stamp");
        let now = start.as_second() + i64::try_from(self.clock.load(Ordering::Relaxed)).expect("it is small");
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            self.variables.insert(name.to_owned(), format!("{now} +0000"));
        }
    }

    /// One that reads this from standard input.
    pub(crate) fn with_input(&self, input: &'static str) -> Typed<'_> {
        Typed { repo: self, input }
    }

    /// A rehearsal of this script, as lines for people.
    pub(crate) fn rehearse(&self, script: &str, arguments: &[&str]) -> Output {
        let path = self.folder.path().join("script.toml");
        fs::write(&path, script).expect("a script");
        let path = path.display().to_string();
        let mut all = vec!["orchestrate", "--script", path.as_str()];
        all.extend(arguments);
        self.squad(&all)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root(), arguments)
    }

    pub(crate) fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let done = self.command("git", directory).args(arguments).output().expect("git runs");
        let err = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "git {arguments:?}: {err}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub(crate) fn command(&self, program: &str, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env_clear().envs(&self.variables);
        if self.one_clock {
            let seconds = 1_767_603_600 + self.clock.load(Ordering::Relaxed);
            let now = format!("@{seconds} +0000");
            command.env("GIT_AUTHOR_DATE", &now).env("GIT_COMMITTER_DATE", &now);
        }
        command
    }

    /// What git itself says of the repository's health.
    pub(crate) fn assert_sound(&self) {
        let done = self.command("git", &self.root()).args(["fsck", "--full", "--strict"]).output().expect("git runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
        let bad: Vec<&str> =
            said.lines().filter(|line| !line.starts_with("dangling") && !line.starts_with("notice")).collect();
        assert!(done.status.success() && bad.is_empty(), "{said}");
    }

    /// The events of a run that was asked for as JSON.
    pub(crate) fn events(output: &Output) -> Vec<serde_json::Value> {
        output.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

thread_local! {
    static INPUT: std::cell::RefCell<&'static str> = const { std::cell::RefCell::new("") };
}

/// What a variable says of how much is to be played.
pub(crate) fn number_of(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Chance that can be played again.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // SplitMix64: the same histories every time.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ (x >> 31)) % end.max(1) as u64).expect("it is small")
    }
}
