//! The outside world, asked once at the start and passed along: arguments, variables, folder, clock, ids, streams.
//!
//! Nothing else in squad reads them, so a test that makes its own [`Env`] is in control of all of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use uuid::Uuid;

pub use crate::model::DamageLog;
use crate::model::{EntryId, RunId};

/// Everything a run of the program gets from outside.
pub struct Env {
    /// This program, to start it again beside itself; `None` where it cannot be told.
    pub program: Option<PathBuf>,
    /// Without the program's own name.
    pub arguments: Vec<OsString>,
    /// Those that are Unicode; the others cannot hold anything squad reads.
    pub variables: BTreeMap<String, String>,
    /// The working directory, absolute.
    pub directory: PathBuf,
    pub clock: Clock,
    pub ids: Ids,
    pub streams: Streams,
    /// Makes the asynchronous runtime, when a command needs one.
    pub runtime: fn() -> io::Result<tokio::runtime::Runtime>,
    /// Whether the process's signals are squad's to handle.
    pub signals: bool,
    /// Whether slow work may go to threads of its own. With a paused clock it must not: the clock would run ahead of it.
    pub threads: bool,
    /// What of the ledger could not be read: said when the command ends.
    pub damage: DamageLog,
    /// Releases of the team's templates, the oldest first, for tests; empty for those that squad carries.
    pub releases: Vec<Release>,
    /// What another tool installs, beside what squad knows of, for tests.
    pub installed: Vec<Vec<u8>>,
}

/// A release of the files that `squad init` installs.
#[derive(Clone, Debug)]
pub struct Release {
    pub number: u32,
    /// By path from the team folder, with `/`.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Where output goes, and what is known of it.
pub struct Streams {
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
    pub out_is_terminal: bool,
    pub err_is_terminal: bool,
    pub in_is_terminal: bool,
    /// Standard input.
    pub input: fn() -> Box<dyn BufRead>,
    /// Asks at the terminal for a line that the terminal does not show.
    pub secret: fn(&str) -> io::Result<String>,
}

/// The time of day.
#[derive(Clone, Debug)]
pub enum Clock {
    System,
    /// Starts somewhere and is a second later at each look: what tests use.
    Stepping {
        start: Timestamp,
        looks: Arc<AtomicU64>,
    },
}

/// Where ids come from.
#[derive(Clone, Debug)]
pub enum Ids {
    Random,
    /// 1, 2, 3 …: what tests use.
    Counting(Arc<AtomicU64>),
}

impl Env {
    /// The world as it is.
    pub fn capture() -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe().ok(),
            arguments: std::env::args_os().skip(1).collect(),
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            directory: std::env::current_dir()?,
            clock: Clock::System,
            ids: Ids::Random,
            streams: Streams {
                out: Box::new(io::stdout()),
                err: Box::new(io::stderr()),
                out_is_terminal: io::stdout().is_terminal(),
                err_is_terminal: io::stderr().is_terminal(),
                in_is_terminal: io::stdin().is_terminal(),
                input: || Box::new(io::stdin().lock()),
                secret: |prompt| rpassword::prompt_password(prompt),
            },
            runtime: || tokio::runtime::Builder::new_current_thread().enable_all().build(),
            signals: true,
            threads: true,
            damage: DamageLog::default(),
            releases: Vec::new(),
            installed: Vec::new(),
        })
    }

    /// The streams, for the one who speaks; nobody is left to hear whoever comes later.
    pub(crate) fn take_streams(&mut self) -> Streams {
        std::mem::replace(&mut self.streams, Streams::silent())
    }

    /// The same world without its streams, for who works beside the one who speaks.
    pub(crate) fn beside(&self) -> Self {
        let Self {
            program,
            arguments,
            variables,
            directory,
            clock,
            ids,
            runtime,
            signals,
            threads,
            damage,
            releases,
            installed,
            ..
        } = self;
        Self {
            program: program.clone(),
            arguments: arguments.clone(),
            variables: variables.clone(),
            directory: directory.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            streams: Streams::silent(),
            runtime: *runtime,
            signals: *signals,
            threads: *threads,
            damage: damage.clone(),
            releases: releases.clone(),
            installed: installed.clone(),
        }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables, as programs are given them. An empty name is no name, here as in [`Env::variable`]; git would
    /// refuse every commit over it, whatever is configured.
    pub(crate) fn os_variables(&self) -> BTreeMap<OsString, OsString> {
        const NAMES: [&str; 4] = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        let says = |(name, value): &(&String, &String)| !value.is_empty() || !NAMES.contains(&name.as_str());
        self.variables.iter().filter(says).map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    /// What a shell of the user's calls this program: `squad` where the `PATH` leads to it, else its whole path.
    pub(crate) fn command_name(&self) -> String {
        let name = "squad".to_owned();
        let Some(program) = &self.program else { return name };
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let path = std::env::split_paths(self.variable("PATH").unwrap_or_default());
        let found = path.map(|folder| folder.join(&file)).find(|candidate| candidate.is_file());
        let is_this = |found: PathBuf| found.canonicalize().ok() == program.canonicalize().ok();
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
        let folder = if cfg!(windows) { self.variable("APPDATA").map(PathBuf::from) } else { None }
            .or_else(|| self.variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute()))
            .or_else(|| self.variable("HOME").map(|home| PathBuf::from(home).join(".config")))?;
        Some(folder.join("squad").join("config.toml"))
    }
}

impl Streams {
    /// Nobody hears and nobody speaks.
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
}

impl Clock {
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            // Milliseconds are what ids and people can use.
            Self::System => {
                let now = Timestamp::now();
                Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
            }
            Self::Stepping { start, looks } => {
                let seconds = i64::try_from(looks.fetch_add(1, Ordering::Relaxed)).unwrap_or(i64::MAX);
                start.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
            }
        }
    }
}

impl Ids {
    pub(crate) fn entry(&self, at: Timestamp) -> EntryId {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
        let id = match self {
            // The context within `now_v7` keeps ids of one process in the order they were made.
            Self::Random => Uuid::now_v7(),
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
            Self::Random => (Uuid::now_v7().as_u128() & 0xff_ffff) as u64,
            Self::Counting(count) => count.fetch_add(1, Ordering::Relaxed),
        };
        let run = format!("{}-{tail:06x}", at.strftime("%Y%m%d-%H%M%S"));
        RunId::parse(&run).expect("a time and a number are digits and hyphens")
    }
}
