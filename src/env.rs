//! The process environment, captured once at the start and passed along: arguments, variables, folder, clock, ids.
//! The streams are passed to those who need them.
//!
//! Nothing else in squad reads it, so a test that makes its own [`Env`] controls all of it.

pub(crate) mod files;
pub(crate) mod lock;
mod paths;
mod shared;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use uuid::{ContextV7, Uuid};

pub use crate::model::DamageLog;
use crate::model::{EntryId, IntoMap, RunId};
pub(crate) use paths::{ProjectPath, follow, is_without_links, real};
pub(crate) use shared::SharedFile;

/// Everything that squad gets from outside, except the streams.
#[derive(Clone)]
pub struct Env {
    /// The path of this program, for starting it again; `None` if unknown.
    pub program: Option<PathBuf>,
    /// Without the program's own name.
    pub arguments: Vec<OsString>,
    /// Only the Unicode ones; squad needs no others.
    pub variables: BTreeMap<String, String>,
    /// The working directory, absolute.
    pub directory: PathBuf,
    pub clock: Clock,
    pub ids: Ids,
    /// Makes the asynchronous runtime, when a command needs one.
    pub runtime: fn() -> io::Result<tokio::runtime::Runtime>,
    /// Whether squad handles the process's signals.
    pub signals: bool,
    /// Whether slow work may run on separate threads. Not with a paused clock, which would run ahead of it.
    pub threads: bool,
    /// Unreadable parts of the ledger, reported when the command ends.
    pub damage: DamageLog,
    /// Releases of the team's templates, oldest first, for tests; if empty, the built-in ones are used.
    pub releases: Vec<Release>,
    /// Files that another tool installs, in addition to the known ones, for tests.
    pub installed: Vec<Vec<u8>>,
}

/// A release of the files that `squad init` installs.
#[derive(Clone, Debug)]
pub struct Release {
    pub number: u32,
    /// With `/` paths from the team folder.
    pub files: Vec<(String, Vec<u8>)>,
}

/// The standard streams and their properties.
pub struct Streams {
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
    pub out_is_terminal: bool,
    pub err_is_terminal: bool,
    pub in_is_terminal: bool,
    /// Standard input.
    pub input: fn() -> Box<dyn BufRead>,
    /// Prompts at the terminal for a line without echo.
    pub secret: fn(&str) -> io::Result<String>,
}

/// A stream that several write to, a piece at a time.
#[derive(Clone)]
pub(crate) struct SharedStream(Arc<Mutex<Box<dyn Write + Send>>>);

impl Streams {
    /// Those of this process.
    pub fn standard() -> Self {
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            in_is_terminal: io::stdin().is_terminal(),
            input: || Box::new(io::stdin().lock()),
            secret: |prompt| rpassword::prompt_password(prompt),
        }
    }

    /// Streams without input that discard all output.
    pub(crate) fn silent() -> Self {
        Self {
            out: Box::new(io::sink()),
            err: Box::new(io::sink()),
            out_is_terminal: false,
            err_is_terminal: false,
            in_is_terminal: false,
            input: || Box::new(io::empty()),
            secret: |_| Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Stderr for others than the owner of these streams.
    pub(crate) fn share_err(&mut self) -> SharedStream {
        let shared = SharedStream(Arc::new(Mutex::new(std::mem::replace(&mut self.err, Box::new(io::sink())))));
        self.err = Box::new(shared.clone());
        shared
    }
}

impl Write for SharedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// The time of day.
#[derive(Clone, Debug)]
pub enum Clock {
    System,
    /// Advances by one second each time it is read; for tests.
    Stepping {
        start: Timestamp,
        looks: Arc<AtomicU64>,
    },
}

/// The source of ids.
#[derive(Clone, Debug)]
pub enum Ids {
    Random,
    /// 1, 2, 3 …; for tests.
    Counting(Arc<AtomicU64>),
}

impl Env {
    /// Captures the real environment.
    pub fn capture() -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe().ok(),
            arguments: std::env::args_os().skip(1).collect(),
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .into_map(),
            directory: std::env::current_dir()?,
            clock: Clock::System,
            ids: Ids::Random,
            runtime: || tokio::runtime::Builder::new_current_thread().enable_all().build(),
            signals: true,
            threads: true,
            damage: DamageLog::default(),
            releases: Vec::new(),
            installed: Vec::new(),
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables, for child processes. An empty author or committer counts as unset, as in [`Env::variable`]: git
    /// would refuse every commit because of it, whatever is configured.
    pub(crate) fn os_variables(&self) -> BTreeMap<OsString, OsString> {
        const NAMES: [&str; 4] = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        let is_usable = |(name, value): &(&String, &String)| !value.is_empty() || !NAMES.contains(&name.as_str());
        self.variables
            .iter()
            .filter(is_usable)
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into_map()
    }

    /// The command that runs this program in the user's shell: `squad` if `PATH` finds it, else its full path.
    pub(crate) fn command_name(&self) -> String {
        let name = "squad".to_owned();
        let Some(program) = &self.program else { return name };
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let path = std::env::split_paths(self.variable("PATH").unwrap_or_default());
        let found = path.map(|folder| folder.join(&file)).find(|candidate| candidate.is_file());
        let is_this = |found: PathBuf| real(&found) == real(program);
        match program.to_str() {
            Some(shown) if !found.is_some_and(is_this) => match shown.contains(char::is_whitespace) {
                true => format!("\"{shown}\""),
                false => shown.to_owned(),
            },
            _ => name,
        }
    }

    /// The user's own configuration file: `$XDG_CONFIG_HOME`, `~/.config`, or `%APPDATA%` on Windows.
    pub(crate) fn user_config(&self) -> Option<PathBuf> {
        Some(self.user_folder("APPDATA", "XDG_CONFIG_HOME", ".config")?.join("config.toml"))
    }

    /// The folder of squad's data about the user: `$XDG_DATA_HOME`, `~/.local/share`, or `%LOCALAPPDATA%` on Windows.
    pub(crate) fn user_data(&self) -> Option<PathBuf> {
        self.user_folder("LOCALAPPDATA", "XDG_DATA_HOME", ".local/share")
    }

    /// The folder of what squad keeps on this machine for the user, and no repository has: `$XDG_STATE_HOME`,
    /// `~/.local/state`, or `%LOCALAPPDATA%` on Windows.
    pub(crate) fn user_state(&self) -> Option<PathBuf> {
        self.user_folder("LOCALAPPDATA", "XDG_STATE_HOME", ".local/state")
    }

    fn user_folder(&self, windows: &str, xdg: &str, below_home: &str) -> Option<PathBuf> {
        let folder = if cfg!(windows) { self.variable(windows).map(PathBuf::from) } else { None }
            .or_else(|| self.variable(xdg).map(PathBuf::from).filter(|path| path.is_absolute()))
            .or_else(|| self.variable("HOME").map(|home| PathBuf::from(home).join(below_home)))?;
        Some(folder.join("squad"))
    }
}

/// `UTC`, `UTC+1`, `UTC-3:30`
pub(crate) fn zone_name(at: &jiff::Zoned) -> String {
    let minutes = at.offset().seconds() / 60;
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let sign = if minutes < 0 { '-' } else { '+' };
    match (hours, rest) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, rest) => format!("UTC{sign}{hours}:{rest:02}"),
    }
}

impl Clock {
    /// The zone that people are shown times in.
    pub(crate) fn zone(&self) -> TimeZone {
        match self {
            Self::System => TimeZone::system(),
            Self::Stepping { .. } => TimeZone::UTC,
        }
    }

    /// A day for people: `today`, `24 Nov`, or `24 Nov 2025` if it is not of this year.
    pub(crate) fn day(&self, at: Timestamp) -> String {
        let [now, at] = [self.now(), at].map(|time| time.to_zoned(self.zone()));
        let format = if at.year() == now.year() { "%-d %b" } else { "%-d %b %Y" };
        if at.date() == now.date() { "today".to_owned() } else { at.strftime(format).to_string() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        match self {
            // Millisecond precision is enough for ids and people.
            Self::System => {
                let millis = i64::try_from(since_epoch(SystemTime::now()).as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
            }
            Self::Stepping { start, looks } => {
                let seconds = i64::try_from(looks.fetch_add(1, Ordering::Relaxed)).unwrap_or(i64::MAX);
                start.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
            }
        }
    }
}

/// The last second of the year 9999: later times have no place in a timestamp.
const LATEST: u64 = 253_402_207_199;

/// The time since 1970. A clock that is set before it, or beyond the year 9999, counts as being at that end.
fn since_epoch(now: SystemTime) -> Duration {
    now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().min(Duration::from_secs(LATEST))
}

/// An id that no other process gives out. Those of one process are in the order of their creation.
pub(crate) fn unique_id() -> Uuid {
    static CONTEXT: Mutex<ContextV7> = Mutex::new(ContextV7::new());
    let now = since_epoch(SystemTime::now());
    Uuid::new_v7(uuid::Timestamp::from_unix(&CONTEXT, now.as_secs(), now.subsec_nanos()))
}

impl Ids {
    pub(crate) fn entry(&self, at: Timestamp) -> EntryId {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
        let id = match self {
            Self::Random => unique_id(),
            Self::Counting(count) => {
                let mut tail = [0; 10];
                tail[2..].copy_from_slice(&count.fetch_add(1, Ordering::Relaxed).to_be_bytes());
                uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
            }
        };
        EntryId::parse(&id.to_string()).expect("a UUID is hex digits and hyphens")
    }

    pub(crate) fn run(&self, at: Timestamp) -> RunId {
        let tail = match self {
            Self::Random => (unique_id().as_u128() & 0xff_ffff) as u64,
            Self::Counting(count) => count.fetch_add(1, Ordering::Relaxed),
        };
        let run = format!("{}-{tail:06x}", at.strftime("%Y%m%d-%H%M%S"));
        RunId::parse(&run).expect("a time and a number are digits and hyphens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_by_centuries_still_gives_a_time() {
        let epoch = SystemTime::UNIX_EPOCH;
        for (now, seconds) in [
            (epoch.checked_sub(Duration::from_secs(1)), 0),
            (Some(epoch), 0),
            (epoch.checked_add(Duration::from_secs(5)), 5),
            (epoch.checked_add(Duration::from_secs(LATEST)), LATEST),
            (epoch.checked_add(Duration::from_secs(LATEST * 2)), LATEST),
        ] {
            let time = since_epoch(now.expect("a time that the system can have"));
            assert_eq!(time.as_secs(), seconds);
            let at = Timestamp::from_second(i64::try_from(seconds).expect("small")).expect("a time");
            Ids::Random.entry(at);
            Ids::Random.run(at);
        }
    }

    #[test]
    fn ids_of_one_process_are_in_order() {
        let ids: Vec<Uuid> = (0..1000).map(|_| unique_id()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
