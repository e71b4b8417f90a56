//! Kills writers of the ledger at random moments, with git at work beside them, and checks that nothing that was
//! acknowledged is lost. Works in repositories of its own on the file system that it is started on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::ToSpan;
use serde::Serialize;

use super::journal::append;
use super::workspace::git_environment;
use crate::env::Env;
use crate::error::Failure;
use crate::git::{Environment, Repository, Writer};
use crate::model::{Actor, What};
use crate::policy::Redactor;
use crate::program::Program;
use crate::record::Entry;

/// Kills to one repository: small enough that `git fsck` stays quick.
const ROUND: usize = 250;

/// A living process that says nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Torture {
    pub(crate) kills: usize,
    pub(crate) limit: Option<Duration>,
    pub(crate) writers: usize,
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Verdict {
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) kills: usize,
    pub(crate) acknowledged: usize,
    /// Acknowledged entries that are not there.
    pub(crate) lost: Vec<String>,
    /// What `git fsck` found.
    pub(crate) unsound: Vec<String>,
    /// Writers that could not go on after others had died.
    pub(crate) stuck: usize,
    /// Kept where something was wrong.
    pub(crate) repository: Option<PathBuf>,
}

impl Verdict {
    pub(crate) fn is_well(&self) -> bool {
        self.lost.is_empty() && self.unsound.is_empty() && self.stuck == 0
    }
}

/// Runs rounds until there were enough kills, the time is over, or something is wrong. `tell` hears of each round.
pub(crate) fn torture(
    env: &Env,
    directory: &Path,
    torture: &Torture,
    mut tell: impl FnMut(&Verdict),
) -> Result<Verdict, Failure> {
    let Some(program) = env.program.as_deref().map(Program::of_user) else {
        return Err(Failure::failed("squad cannot tell where its program is"));
    };
    let environment = git_environment(env, directory);
    // In the repository's local folder where there is one: it is on the file system that is meant.
    let place = Repository::discover(directory, &environment).map_or_else(
        |_| directory.to_owned(),
        |repository| {
            let local = repository.common_dir().join("squad");
            if local.is_dir() { local } else { repository.common_dir().to_owned() }
        },
    );
    let start = Instant::now();
    let mut verdict = Verdict::default();
    let is_over = |verdict: &Verdict| {
        verdict.kills >= torture.kills || torture.limit.is_some_and(|limit| start.elapsed() >= limit)
    };
    while verdict.is_well() && !is_over(&verdict) {
        let folder = tempfile::Builder::new().prefix("torture-").tempdir_in(&place);
        let folder =
            folder.map_err(|error| Failure::failed(format!("cannot write to {}: {error}", place.display())))?;
        Repository::create(folder.path(), &environment)?;
        let repository = Repository::discover(folder.path(), &environment)?;
        let round = Round { program: &program, repository, environment: &environment, kills: AtomicUsize::new(0) };
        let wanted = ROUND.min(torture.kills - verdict.kills);
        round.run(wanted, torture.writers, &mut verdict)?;
        verdict.rounds += 1;
        verdict.seconds = start.elapsed().as_secs_f64();
        if !verdict.is_well() {
            verdict.repository = Some(folder.keep());
        }
        tell(&verdict);
    }
    Ok(verdict)
}

struct Round<'a> {
    program: &'a Program,
    repository: Repository,
    environment: &'a Environment,
    kills: AtomicUsize,
}

impl Round<'_> {
    fn run(&self, wanted: usize, writers: usize, verdict: &mut Verdict) -> Result<(), Failure> {
        let is_over = AtomicBool::new(false);
        let stuck = AtomicUsize::new(0);
        let acknowledged = Mutex::new(Vec::new());
        let outcomes: Vec<Result<(), crate::git::Error>> = thread::scope(|scope| {
            let git = scope.spawn(|| {
                let mut rounds = 0..;
                while let Some(round) = rounds.next().filter(|_| !is_over.load(Ordering::Relaxed)) {
                    self.repository.disturb(round)?;
                    thread::sleep(Duration::from_millis(20));
                }
                Ok(())
            });
            let work = |number: usize| {
                let mut chance = Chance::new();
                while self.kills.fetch_add(1, Ordering::Relaxed) < wanted {
                    let said = self.live_and_die(number, &mut chance, &stuck)?;
                    if let Ok(mut all) = acknowledged.lock() {
                        all.extend(said);
                    }
                }
                Ok(())
            };
            let writers: Vec<_> = (0..writers).map(|number| scope.spawn(move || work(number))).collect();
            let mut outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap_or(Ok(()))).collect();
            is_over.store(true, Ordering::Relaxed);
            outcomes.push(git.join().unwrap_or(Ok(())));
            outcomes
        });
        outcomes.into_iter().collect::<Result<(), _>>()?;
        let mut acknowledged = acknowledged.into_inner().unwrap_or_default();
        verdict.kills += wanted;
        verdict.unsound = self.repository.complaints()?;
        // The next command works without help.
        let last = self.writer("after", &["--count", "1"])?.finish();
        verdict.stuck = stuck.into_inner() + usize::from(last.is_empty());
        acknowledged.extend(last.iter().filter_map(|line| path_of(line)));
        let paths = match self.repository.ledger().snapshot()? {
            Some(snapshot) => snapshot.paths("")?,
            None => Vec::new(),
        };
        verdict.acknowledged += acknowledged.len();
        verdict.lost = acknowledged.into_iter().filter(|path| paths.binary_search(path).is_err()).collect();
        Ok(())
    }

    /// One writer from its start to its death, somewhere between its first breath and its third append.
    fn live_and_die(
        &self,
        number: usize,
        chance: &mut Chance,
        stuck: &AtomicUsize,
    ) -> Result<Vec<String>, crate::git::Error> {
        let writer = self.writer(&number.to_string(), &[])?;
        let mut said = Vec::new();
        for _ in 0..chance.below(3) {
            match writer.line(PATIENCE) {
                Some(line) => said.push(line),
                None => {
                    stuck.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
        thread::sleep(Duration::from_micros(chance.below(8_000)));
        said.extend(writer.kill());
        Ok(said.iter().filter_map(|line| path_of(line)).collect())
    }

    fn writer(&self, name: &str, more: &[&str]) -> Result<Writer, crate::git::Error> {
        let folder = self.repository.common_dir().as_os_str().to_owned();
        let mut arguments: Vec<OsString> = vec!["torture".into(), "--writer".into(), name.into(), "-C".into(), folder];
        arguments.extend(more.iter().map(OsString::from));
        Writer::start(self.program, &arguments, self.environment)
    }
}

fn path_of(line: &str) -> Option<String> {
    line.split_once(' ').map(|(_, path)| path.to_owned())
}

/// Not for secrets.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let id = uuid::Uuid::now_v7().as_u128();
        Self(u64::try_from(id & u128::from(u64::MAX)).unwrap_or(1))
    }

    fn below(&mut self, bound: u64) -> u64 {
        // Knuth's multiplier; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// Appends entries of about a kilobyte and tells of each when it is durable: how many microseconds that took, and its
/// path.
pub(crate) fn write(
    env: &Env,
    directory: &Path,
    name: &str,
    count: Option<u64>,
    mut tell: impl FnMut(u128, &str),
) -> Result<(), Failure> {
    let repository = Repository::discover(directory, &git_environment(env, directory))?;
    let begin = env.clock.now();
    for number in 0..count.unwrap_or(u64::MAX) {
        // A day folder holds what a busy team writes in a day.
        let days = i64::try_from(number % 100).unwrap_or_default();
        let at = begin.checked_sub((days * 24).hours()).unwrap_or(begin);
        let text =
            format!("Learned by {name}, number {number}.\n{}", "What was learned is about this long. ".repeat(20));
        let entry = Entry::new(env.ids.entry(at), at, Actor::Squad, &What::MemoryLogged { text }, &Redactor::default());
        let path = entry.path("");
        let start = Instant::now();
        append(&repository, "", &[entry], at)?;
        tell(start.elapsed().as_micros(), &path);
    }
    Ok(())
}
