//! The sandbox: what bounds the programs that an engine starts, whatever they do.
//!
//! ```text
//! squad ─ starts ─→ squad within RULES PROGRAM … ─ bounds itself, becomes ─→ PROGRAM
//! ```
//!
//! squad itself stays outside, and so do its tools. The second squad has one thread and no state, so it may change its
//! namespaces, and nothing has to happen between a fork and an exec. The kernel hands the bounds on to every process
//! that PROGRAM starts, and none can lift them.

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::model::{SandboxLevel, from_json, to_json};
use crate::program::Program;

/// The hidden command by which squad starts a program in the sandbox.
const COMMAND: &str = "within";
/// In the place of a program: try the bounds and say what holds.
const PROBE: &str = "probe";
/// Begins what is said if the bounds cannot be set.
const NOT_SET_UP: &str = "the sandbox cannot be set up: ";
/// The exit code if the bounds cannot be set, as `env` and `nice` use it.
pub(crate) const NOT_ENTERED: u8 = 125;

/// Bounds, and the program that sets them.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    squad: Program,
    rules: Rules,
    /// The folder for temporary files, which is removed with the last copy of this.
    _temporary: Arc<TempDir>,
    _placeholders: Arc<Vec<Placeholder>>,
    /// Those of [`Rules::hidden_in_project`].
    _held: Arc<Vec<fs::File>>,
    git: Option<Arc<GitCopy>>,
}

/// The copy of the project's `.git` that the programs have in its place.
#[derive(Debug)]
pub(crate) struct GitCopy {
    /// `None`: it stays when this ends.
    folder: Mutex<Option<TempDir>>,
    path: PathBuf,
}

impl GitCopy {
    pub(crate) fn new(folder: TempDir) -> Self {
        let path = folder.path().to_owned();
        Self { folder: Mutex::new(Some(folder)), path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder as it is, because it holds what is nowhere else.
    pub(crate) fn keep(&self) {
        if let Some(folder) = self.folder.lock().take() {
            let _ = folder.keep();
        }
    }
}

/// An empty folder in the place of one that a program may not make. It is removed with the last copy, unless somebody
/// else still needs it.
#[derive(Debug)]
pub(crate) struct Placeholder {
    path: PathBuf,
    /// Locked, shared with others.
    folder: fs::File,
}

impl Placeholder {
    /// `None`: something else is there.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let is_taken =
                || path.is_symlink() || !fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            let made = fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::create_dir(path));
            if made.is_err() && is_taken() {
                return Ok(None);
            }
            let folder = match fs::File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            folder.lock_shared()?;
            // Whoever made it may have removed it just before.
            if path.is_dir() {
                return Ok(Some(Self { path: path.to_owned(), folder }));
            }
        }
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        if self.folder.try_lock().is_ok() {
            // It stays, and does no harm, if something is in it.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Whether a process with this command line is squad on its way into the sandbox: the program that it becomes has not
/// begun.
pub(crate) fn is_entering(command_line: &str) -> bool {
    command_line.contains(&format!(" {COMMAND} {{\"level\":"))
}

/// Why a level cannot be had.
#[derive(Debug)]
pub(crate) enum Lack {
    /// This system has it not; the next level may do.
    Missing(String),
    /// It would be there, but for what an agent may have brought about: a full disk, too many files to hide. No weaker
    /// level may take its place.
    Broken(String),
}

impl Lack {
    pub(crate) fn of(path: &Path, error: &io::Error) -> Self {
        let reason = format!("{}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ArgumentListTooLong => {
                Self::Broken(reason)
            }
            _ => Self::Missing(reason),
        }
    }
}

impl From<String> for Lack {
    fn from(reason: String) -> Self {
        Self::Missing(reason)
    }
}

/// What a program may do. Paths are absolute; those that do not exist are passed over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub(crate) level: SandboxLevel,
    /// Files and folders that may be written.
    pub(crate) writable: Vec<PathBuf>,
    /// Folders in [`Self::writable`] that may not be written after all. Only at level `full`.
    pub(crate) read_only: Vec<PathBuf>,
    /// Files and folders that cannot be read.
    pub(crate) hidden: Vec<PathBuf>,
    /// Files in the project that cannot be read: links of squad's to them, as they can be renamed. Only at level `full`.
    pub(crate) hidden_in_project: Vec<PathBuf>,
    /// Files and folders in [`Self::hidden`] that can be read.
    pub(crate) readable: Vec<PathBuf>,
    /// The folder for temporary files.
    pub(crate) temporary: PathBuf,
    /// Folders, and what stands in their places. Only at level `full`.
    pub(crate) replaced: Vec<(PathBuf, PathBuf)>,
    /// An empty file, which stands in the place of those that are hidden.
    pub(crate) empty: PathBuf,
    /// What is made before the program starts.
    pub(crate) prepared: Vec<Preparation>,
    /// Environment variables to set.
    pub(crate) set: BTreeMap<String, PathBuf>,
    /// Beginnings of environment variables to remove.
    pub(crate) unset: Vec<String>,
}

/// A file or folder that a program needs where agents may write. It is made inside, because an agent may have put a link
/// there, which leads nowhere from inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Preparation {
    Folder(PathBuf),
    /// A copy of a file, in the place of what is there.
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
    /// A link to what can be read, unless something is there.
    Link {
        to: PathBuf,
        at: PathBuf,
    },
}

impl Preparation {
    fn perform(&self) -> io::Result<()> {
        match self {
            Self::Folder(path) => fs::create_dir_all(path),
            Self::Copy { from, to } => {
                let text = fs::read(from)?;
                // It may be a link to another file in the project.
                let _ = fs::remove_file(to);
                fs::OpenOptions::new().write(true).create_new(true).open(to)?.write_all(&text)
            }
            #[cfg(unix)]
            Self::Link { to, at } => std::os::unix::fs::symlink(to, at),
            #[cfg(not(unix))]
            Self::Link { .. } => Ok(()),
        }
    }
}

impl Sandbox {
    /// `squad` is this program; `temporary` is the folder of [`Rules::temporary`].
    pub(crate) fn new(squad: &Path, rules: Rules, (temporary, placeholders): (TempDir, Vec<Placeholder>)) -> Self {
        let (_temporary, _placeholders) = (Arc::new(temporary), Arc::new(placeholders));
        Self { squad: Program::of_user(squad), rules, _temporary, _placeholders, _held: Arc::default(), git: None }
    }

    /// The same, where these files of the project cannot be read, whatever becomes of their names.
    #[cfg(target_os = "linux")]
    pub(crate) fn hiding_in_project(mut self, files: &[PathBuf]) -> Result<Self, Lack> {
        let held = mounts::hold(files)?;
        self.rules.hidden_in_project = held.iter().map(mounts::link_to).collect();
        Ok(Self { _held: Arc::new(held), ..self })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn hiding_in_project(self, _files: &[PathBuf]) -> Result<Self, Lack> {
        Ok(self)
    }

    /// The same, whose programs have this copy in the place of the project's `.git`.
    pub(crate) fn with_git(self, copy: Option<GitCopy>) -> Self {
        Self { git: copy.map(Arc::new), ..self }
    }

    pub(crate) fn git(&self) -> Option<&Arc<GitCopy>> {
        self.git.as_ref()
    }

    /// The folder for temporary files, which programs inside reach by the same name.
    pub(crate) fn temporary(&self) -> &Path {
        &self.rules.temporary
    }

    pub(crate) fn level(&self) -> SandboxLevel {
        self.rules.level
    }

    /// The same, where these may be written too.
    pub(crate) fn with_writable(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.rules.writable.extend(paths);
        self
    }

    /// The same, where these may be read only at level `full`, although what is around them may be written.
    pub(crate) fn with_read_only(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.rules.read_only.extend(paths);
        self
    }

    /// The same, where these cannot be read.
    pub(crate) fn hiding(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.rules.hidden.extend(paths);
        self
    }

    /// The same, where this tree may be read only.
    pub(crate) fn without_writable(mut self, path: &Path) -> Self {
        self.rules.writable.retain(|writable| writable != path);
        self.rules.readable.push(path.to_owned());
        self
    }

    /// Starts a program inside.
    pub(crate) fn command(&self, program: &Program) -> Command {
        let mut command = self.squad.command();
        // Text and paths have a form in JSON unless they are not Unicode; then the program is not started.
        let rules = to_json(&self.rules).unwrap_or_default();
        command.arg(COMMAND).arg(rules).arg(program.path());
        command
    }

    /// Tries the bounds in both directions: what is allowed happens, and what is not does not.
    ///
    /// # Errors
    ///
    /// What failed, to follow "level … cannot be had: ".
    pub(crate) fn probe(&self) -> Result<(), Lack> {
        let Rules { temporary, .. } = &self.rules;
        let outside = temporary.parent().unwrap_or(temporary);
        let mark = crate::env::unique_id().to_string();
        let (secret, allowed, denied) =
            (outside.join(format!("{mark}.key")), temporary.join(&mark), outside.join(format!("{mark}.out")));
        fs::write(&secret, &mark).map_err(|error| Lack::of(&secret, &error))?;
        let hidden = self.rules.hidden.iter().chain([&secret]).cloned().collect();
        let tried = Self { rules: Rules { hidden, ..self.rules.clone() }, ..self.clone() };
        let mut command = tried.command(&Program::of_user(Path::new(PROBE)));
        command.args([&allowed, &denied, &secret]).env_clear();
        let output = command.stdin(Stdio::null()).output();
        let (has_written, has_escaped) = (allowed.exists(), denied.exists());
        for file in [&secret, &allowed, &denied] {
            // What is not there need not be removed.
            let _ = fs::remove_file(file);
        }
        let output = output.map_err(|error| Lack::of(self.squad.path(), &error))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.trim().trim_start_matches("warning: ").trim_start_matches(NOT_SET_UP).to_owned();
        Err(match () {
            () if !output.status.success() => complaint,
            () if !has_written => format!("{} could not be written inside", allowed.display()),
            () if has_escaped => format!("{} could be written inside", denied.display()),
            () if said.contains(&mark) => format!("{} could be read inside", secret.display()),
            () => return Ok(()),
        }
        .into())
    }
}

pub(crate) fn level_of(sandbox: Option<&Sandbox>) -> SandboxLevel {
    sandbox.map_or(SandboxLevel::Rules, Sandbox::level)
}

/// A program's command, in a sandbox if there is one.
pub(crate) fn command_in(sandbox: Option<&Sandbox>, program: &Program) -> Command {
    sandbox.map_or_else(|| program.command(), |sandbox| sandbox.command(program))
}

/// Bounds this process and becomes the program. Returns only if that fails, with the reason and the exit code.
pub(crate) fn within(rules: &str, program: &OsStr, arguments: &[OsString]) -> (String, u8) {
    let entered = from_json(rules).map_err(|error| format!("the rules cannot be read: {error}"));
    let entered = entered.and_then(|rules: Rules| enter(&rules).map(|()| rules));
    let rules = match entered {
        Ok(rules) => rules,
        Err(reason) => return (format!("{NOT_SET_UP}{reason}"), NOT_ENTERED),
    };
    if program == PROBE {
        return probe(arguments);
    }
    for preparation in &rules.prepared {
        // A program that needs what cannot be made says so.
        let _ = preparation.perform();
    }
    let mut command = Program::of_user(Path::new(program)).command();
    command.args(arguments).envs(&rules.set);
    for (name, _) in std::env::vars_os() {
        let is_unset = |prefix: &String| name.to_str().is_some_and(|name| name.starts_with(prefix.as_str()));
        if rules.unset.iter().any(is_unset) {
            command.env_remove(name);
        }
    }
    let error = become_program(&mut command);
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (format!("{}: {error}", program.display()), code)
}

#[cfg(unix)]
fn become_program(command: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

#[cfg(not(unix))]
fn become_program(_command: &mut Command) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// Inside: writes where it may and where it may not, and prints what it may not read.
fn probe(files: &[OsString]) -> (String, u8) {
    let [allowed, denied, secret] = files else { return ("the probe needs three files".to_owned(), NOT_ENTERED) };
    let written = fs::write(allowed, "");
    let _ = fs::write(denied, "");
    // squad, outside, judges by what is on disk and what is said here. Nobody else listens.
    let _ = io::stdout().write_all(&fs::read(secret).unwrap_or_default());
    match written {
        Ok(()) => (String::new(), 0),
        Err(error) => (format!("{}: {error}", allowed.display()), 1),
    }
}

#[cfg(target_os = "linux")]
fn enter(rules: &Rules) -> Result<(), String> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    match rules.level {
        // Landlock forbids mounts, so it comes last.
        SandboxLevel::Full => mounts::enter(rules)?,
        SandboxLevel::Files => {}
        SandboxLevel::Rules => return Ok(()),
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| format!("capabilities cannot be dropped: {error}"))?;
    close_inherited().map_err(|error| format!("open files cannot be closed: {error}"))?;
    landlock::enter(rules)
}

/// A descriptor of squad's parent, of a folder say, would lead around all bounds.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix has no close_range")]
fn close_inherited() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: takes numbers only, and the descriptors are closed with the exec that follows.
    let result = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn enter(rules: &Rules) -> Result<(), String> {
    match rules.level {
        SandboxLevel::Rules => Ok(()),
        level => Err(format!("level `{level}` exists on Linux only")),
    }
}
