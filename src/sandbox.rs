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
mod layers;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod proxy;
mod traffic;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::model::{HostPattern, HostPort, NetworkAccess, SandboxLevel, first_line, from_json, to_json};
use crate::program::Program;
pub(crate) use traffic::{HostQuestion, Traffic};

/// The hidden command by which squad starts a program in the sandbox.
const COMMAND: &str = "within";
/// In the place of a program: try the bounds and say what holds.
const PROBE: &str = "probe";
/// In the place of a program: mount layers, which are in the place of rules.
#[cfg(target_os = "linux")]
const LAY: &str = "lay";
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
    layers: Option<Arc<Layers>>,
    /// `None`: programs reach what the user can reach.
    network: Option<Network>,
}

/// A folder of the user's that programs have in another place too, where they may change it: the user's stays as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Layer {
    /// The user's folder is [`Self::path`] below this one.
    pub(crate) source: PathBuf,
    /// Below this one, a folder of that path is there. No link leads to either.
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
    /// Holds what has changed: the folders `upper` and `work`.
    pub(crate) folder: PathBuf,
    /// Files in the user's folder that programs do not have, by their paths in it.
    pub(crate) without: Vec<PathBuf>,
}

/// Which hosts programs reach, and who lets them.
#[derive(Clone, Debug)]
struct Network {
    proxy: Arc<Proxy>,
    traffic: Arc<Traffic>,
    /// It stays, also for an engine that cannot work so.
    is_required: bool,
}

#[cfg(target_os = "linux")]
use layers::Layers;
#[cfg(target_os = "linux")]
use proxy::Proxy;

/// Other systems have no layers.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum Layers {}

/// Other systems have no network for a sandbox.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum Proxy {}

/// The proxies that the user's own programs use, as in the environment variables of these names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upstream {
    pub(crate) all: String,
    pub(crate) http: String,
    pub(crate) https: String,
    pub(crate) no: String,
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
    pub(crate) fn reason(self) -> String {
        let (Self::Missing(reason) | Self::Broken(reason)) = self;
        reason
    }

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
    /// The program sees no processes but its own. Only at level `full`.
    #[serde(default)]
    pub(crate) own_processes: bool,
    /// A network of the program's own; `None`: that of the user. Only at level `full`.
    #[serde(default)]
    pub(crate) network: Option<NetworkRules>,
    /// Links to the namespaces, of users and of mounts, in which layers are mounted. Only at level `full`.
    #[serde(default)]
    pub(crate) layers: Option<[PathBuf; 2]>,
}

/// The network of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NetworkRules {
    /// The name of the abstract socket by which squad takes the listeners.
    socket: String,
    /// Whose they are.
    key: String,
    /// Ports of this machine that are the same inside.
    ports: Vec<u16>,
    /// Addresses inside that stand for hosts, and ports of these.
    named: Vec<(Ipv4Addr, u16)>,
    /// The folder with the files that have programs find hosts by these addresses.
    resolving: PathBuf,
}

/// By which programs find hosts: files of the system, and the names of squad's own.
#[cfg(target_os = "linux")]
const RESOLVING: [(&str, &str); 2] = [("/etc/resolv.conf", "resolv.conf"), ("/etc/hosts", "hosts")];

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

impl NetworkRules {
    #[cfg(target_os = "linux")]
    fn of(Network { proxy, traffic, .. }: &Network, resolving: PathBuf) -> Self {
        let mut ports: Vec<u16> = traffic.hosts().iter().filter_map(|host| Some(host.passed_in()?.port())).collect();
        ports.sort_unstable();
        ports.dedup();
        let named = names::Names::listened(traffic.hosts());
        Self { socket: proxy.name().to_owned(), key: traffic.key().to_owned(), ports, named, resolving }
    }

    /// Files of the system, where they are, and what is in the place of each. Programs that find none of their own ask this
    /// machine.
    #[cfg(target_os = "linux")]
    fn resolving(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        let there = |path: &str| fs::canonicalize(path).ok();
        RESOLVING.into_iter().filter_map(move |(path, name)| Some((there(path)?, self.resolving.join(name))))
    }

    #[cfg(not(target_os = "linux"))]
    fn of(network: &Network, _resolving: PathBuf) -> Self {
        match *network.proxy {}
    }
}

impl Sandbox {
    /// `squad` is this program; `temporary` is the folder of [`Rules::temporary`].
    pub(crate) fn new(squad: &Path, rules: Rules, (temporary, placeholders): (TempDir, Vec<Placeholder>)) -> Self {
        let (_temporary, _placeholders) = (Arc::new(temporary), Arc::new(placeholders));
        Self {
            squad: Program::of_user(squad),
            rules,
            _temporary,
            _placeholders,
            _held: Arc::default(),
            git: None,
            layers: None,
            network: None,
        }
    }

    /// The same, whose programs have a network of their own and reach these hosts only, through `upstream` where the user's
    /// own programs use that. `is_required`: also those of an engine that squad does not reach so.
    ///
    /// # Errors
    ///
    /// To follow "the network `listed` cannot be had: ".
    #[cfg(target_os = "linux")]
    pub(crate) fn with_network(
        self,
        upstream: &Upstream,
        hosts: Vec<HostPattern>,
        is_required: bool,
    ) -> Result<Self, String> {
        let known = fs::read_to_string("/etc/hosts").unwrap_or_default();
        for ((_, name), text) in RESOLVING.into_iter().zip([names::SETTINGS, &names::hosts_inside(&known)]) {
            let path = self.resolving().join(name);
            // A program in the sandbox of another run may read it now.
            if fs::read_to_string(&path).ok().as_deref() != Some(text) {
                fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        let (proxy, traffic) = (Arc::new(Proxy::start(upstream)?), Arc::new(Traffic::new(hosts, false)));
        proxy.register(&traffic);
        Ok(Self { network: Some(Network { proxy, traffic, is_required }), ..self })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn with_network(
        self,
        _upstream: &Upstream,
        _hosts: Vec<HostPattern>,
        _is_required: bool,
    ) -> Result<Self, String> {
        Err("it exists on Linux only".to_owned())
    }

    /// The folder of squad's own files that stand in the place of others.
    fn resolving(&self) -> PathBuf {
        self.rules.empty.parent().unwrap_or(&self.rules.empty).to_owned()
    }

    /// The same for an engine: its programs reach these hosts too, or whatever the user can reach if squad does not reach
    /// the engine's `endpoint` so. With why the network is open then.
    pub(crate) async fn for_engine(
        self,
        endpoint: Option<&HostPort>,
        hosts: Vec<HostPattern>,
    ) -> (Self, Option<String>) {
        let Some(network) = &self.network else { return (self, None) };
        let reached = match endpoint {
            _ if network.is_required => Ok(()),
            None => Err("squad does not know which host has its models".to_owned()),
            Some(endpoint) => self.reaches(endpoint).await,
        };
        match reached {
            Ok(()) => {
                let reaching =
                    self.with_traffic(|known| Traffic::new(known.iter().cloned().chain(hosts).collect(), false));
                (reaching, None)
            }
            Err(reason) => (Self { network: None, ..self }, Some(reason)),
        }
    }

    /// The same for the programs of a session, or of several, that can ask a person about hosts.
    pub(crate) fn of_session(self) -> Self {
        self.with_traffic(|known| Traffic::new(known.to_vec(), true))
    }

    #[cfg(target_os = "linux")]
    fn with_traffic(self, of: impl FnOnce(&[HostPattern]) -> Traffic) -> Self {
        let network = self.network.map(|network| {
            let traffic = Arc::new(of(network.traffic.hosts()));
            network.proxy.register(&traffic);
            Network { traffic, ..network }
        });
        Self { network, ..self }
    }

    #[cfg(not(target_os = "linux"))]
    fn with_traffic(self, _of: impl FnOnce(&[HostPattern]) -> Traffic) -> Self {
        self
    }

    /// What was reached, and who is asked about the rest; `None`: the network is open.
    pub(crate) fn traffic(&self) -> Option<&Arc<Traffic>> {
        self.network.as_ref().map(|network| &network.traffic)
    }

    /// What of the network programs reach.
    pub(crate) fn network(&self) -> NetworkAccess {
        if self.network.is_some() { NetworkAccess::Listed } else { NetworkAccess::Open }
    }

    /// Whether squad's proxy reaches a host.
    #[cfg(target_os = "linux")]
    async fn reaches(&self, place: &HostPort) -> Result<(), String> {
        /// A run's start waits for it.
        const WITHIN: std::time::Duration = std::time::Duration::from_secs(2);
        const WITHIN_THIS_MACHINE: std::time::Duration = std::time::Duration::from_millis(300);
        let within = if place.is_loopback() { WITHIN_THIS_MACHINE } else { WITHIN };
        match &self.network {
            Some(network) => network.proxy.reaches(place, within).await,
            None => Ok(()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn reaches(&self, _place: &HostPort) -> Result<(), String> {
        Ok(())
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

    /// The same, whose programs have these layers. Also returns why they have not, for each.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_layers(self, layers: &[Layer]) -> Result<(Self, Vec<Option<String>>), String> {
        let (made, reasons) = layers::make(&self.squad, layers)?;
        Ok((Self { layers: Some(Arc::new(made)), ..self }, reasons))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn with_layers(self, _layers: &[Layer]) -> Result<(Self, Vec<Option<String>>), String> {
        Err("they exist on Linux only".to_owned())
    }

    /// Whether a folder is a layer, which only programs inside see.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_layer(&self, folder: &Path) -> bool {
        self.layers.iter().any(|layers| layers.places.iter().any(|place| place == folder))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_layer(&self, _folder: &Path) -> bool {
        false
    }

    /// Whether a path is hidden.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.rules.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    /// The files and folders that are hidden below a folder, and the folder itself if it is.
    pub(crate) fn hidden_below<'s>(&'s self, folder: &'s Path) -> impl Iterator<Item = &'s PathBuf> {
        self.rules.hidden.iter().filter(move |path| path.starts_with(folder))
    }

    /// The folder for temporary files, which programs inside reach by the same name.
    pub(crate) fn temporary(&self) -> &Path {
        &self.rules.temporary
    }

    pub(crate) fn level(&self) -> SandboxLevel {
        self.rules.level
    }

    /// The same, whose programs see no processes but their own. Not every system has that.
    pub(crate) fn with_own_processes(mut self) -> Self {
        self.rules.own_processes = true;
        self
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

    #[cfg(target_os = "linux")]
    fn links_to_layers(&self) -> Option<[PathBuf; 2]> {
        self.layers.as_ref().map(|layers| layers.links())
    }

    #[cfg(not(target_os = "linux"))]
    fn links_to_layers(&self) -> Option<[PathBuf; 2]> {
        self.layers.as_ref().map(|layers| match **layers {})
    }

    /// Starts a program inside.
    pub(crate) fn command(&self, program: &Program) -> Command {
        let mut command = self.squad.command();
        let network = self.network.as_ref().map(|network| NetworkRules::of(network, self.resolving()));
        let rules = Rules { network, layers: self.links_to_layers(), ..self.rules.clone() };
        // Text and paths have a form in JSON unless they are not Unicode; then the program is not started.
        let rules = to_json(&rules).unwrap_or_default();
        command.arg(COMMAND).arg(rules).arg(program.path());
        command
    }

    /// The same as a program that is tried has it: it reaches one port outside by the proxy, which is returned.
    #[cfg(target_os = "linux")]
    fn with_tried_network(self) -> (Self, Option<String>) {
        let outside = self.network.as_ref().map(|network| network.proxy.outside());
        let place = outside.and_then(|outside| HostPort::new(&outside.ip().to_string(), outside.port()));
        let tried = self.with_traffic(|_| Traffic::only(place.as_ref()));
        (tried, outside.map(|outside| outside.to_string()))
    }

    #[cfg(not(target_os = "linux"))]
    fn with_tried_network(self) -> (Self, Option<String>) {
        (self, None)
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
        let (tried, outside) = tried.with_tried_network();
        let mut command = tried.command(&Program::of_user(Path::new(PROBE)));
        command.args([&allowed, &denied, &secret]).args(&outside).env_clear();
        let output = command.stdin(Stdio::null()).output();
        let (has_written, has_escaped) = (allowed.exists(), denied.exists());
        for file in [&secret, &allowed, &denied] {
            // What is not there need not be removed.
            let _ = fs::remove_file(file);
        }
        let output = output.map_err(|error| Lack::of(self.squad.path(), &error))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let is_said = |wanted: &str| said.lines().any(|line| line == wanted);
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.trim().trim_start_matches("warning: ").trim_start_matches(NOT_SET_UP).to_owned();
        Err(match () {
            () if !output.status.success() => complaint,
            () if !has_written => format!("{} could not be written inside", allowed.display()),
            () if has_escaped => format!("{} could be written inside", denied.display()),
            () if said.contains(&mark) => format!("{} could be read inside", secret.display()),
            () if outside.is_some() && !is_said(NETWORK_HOLDS) => {
                format!("the network does not do what it should: {}", first_line(&said, 200))
            }
            () if self.rules.own_processes && !is_said(&seen_processes(2)) => {
                format!("programs see processes that are not theirs: {}", first_line(&said, 200))
            }
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
    #[cfg(target_os = "linux")]
    if program == LAY {
        return layers::lay(rules);
    }
    let entered = from_json(rules).map_err(|error| format!("the rules cannot be read: {error}"));
    let entered = entered.and_then(|rules: Rules| enter(&rules).map(|entered| (rules, entered)));
    let (rules, entered) = match entered {
        Ok(entered) => entered,
        Err(reason) => return (format!("{NOT_SET_UP}{reason}"), NOT_ENTERED),
    };
    for preparation in rules.prepared.iter().filter(|_| program != PROBE) {
        // A program that needs what cannot be made says so.
        let _ = preparation.perform();
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = entered.ending.map_or(Ok(()), processes::separate) {
        return (format!("{NOT_SET_UP}the program's process: {error}"), NOT_ENTERED);
    }
    if program == PROBE {
        return probe(arguments, entered.proxy);
    }
    let mut command = Program::of_user(Path::new(program)).command();
    command.args(arguments).envs(&rules.set);
    for (name, _) in std::env::vars_os() {
        let is_unset = |prefix: &String| name.to_str().is_some_and(|name| name.starts_with(prefix.as_str()));
        if rules.unset.iter().any(is_unset) {
            command.env_remove(name);
        }
    }
    command.envs(entered.proxy.map(proxy_variables).unwrap_or_default());
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

#[cfg(target_os = "linux")]
use network::{PROBED_WELL as NETWORK_HOLDS, probe as probe_network, variables as proxy_variables};

#[cfg(not(target_os = "linux"))]
const NETWORK_HOLDS: &str = "";

#[cfg(not(target_os = "linux"))]
fn probe_network(_outside: &str, _proxy: u16) -> String {
    String::new()
}

#[cfg(not(target_os = "linux"))]
fn proxy_variables(_proxy: u16) -> BTreeMap<&'static str, String> {
    BTreeMap::new()
}

/// What the probe says of the processes that it sees: itself, and the first one where it has processes of its own.
fn seen_processes(count: usize) -> String {
    format!("processes: {count}")
}

/// Inside: writes where it may and where it may not, and prints what it may not read, and what it reaches.
fn probe(arguments: &[OsString], proxy: Option<u16>) -> (String, u8) {
    let [allowed, denied, secret, outside @ ..] = arguments else {
        return ("the probe needs three files".to_owned(), NOT_ENTERED);
    };
    let reached = outside.first().zip(proxy).map(|(outside, proxy)| probe_network(&outside.to_string_lossy(), proxy));
    let written = fs::write(allowed, "");
    let _ = fs::write(denied, "");
    // squad, outside, judges by what is on disk and what is said here. Nobody else listens.
    let _ = io::stdout().write_all(&fs::read(secret).unwrap_or_default());
    let _ = io::stdout().write_all(reached.unwrap_or_default().as_bytes());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    let _ = writeln!(io::stdout(), "{}", seen_processes(entries.filter(is_process).count()));
    match written {
        Ok(()) => (String::new(), 0),
        Err(error) => (format!("{}: {error}", allowed.display()), 1),
    }
}

/// What the rest of the way needs.
#[derive(Default)]
struct Entered {
    /// The port of the proxy, if there is one.
    proxy: Option<u16>,
    /// By which this process, the first of the program's own ones, says how the program has ended.
    #[cfg(target_os = "linux")]
    ending: Option<processes::Ending>,
}

#[cfg(target_os = "linux")]
fn enter(rules: &Rules) -> Result<Entered, String> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    let (mut proxy, mut ending) = (None, None);
    match (rules.level, &rules.network) {
        // Landlock forbids mounts, so it comes last.
        (SandboxLevel::Full, Some(network)) => {
            let squad = network::reach_squad(network)?;
            ending = mounts::enter(rules)?;
            proxy = Some(network::hand_over(network, squad)?);
        }
        (SandboxLevel::Full, None) => ending = mounts::enter(rules)?,
        (SandboxLevel::Files, _) => {}
        (SandboxLevel::Rules, _) => return Ok(Entered::default()),
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| format!("capabilities cannot be dropped: {error}"))?;
    close_inherited().map_err(|error| format!("open files cannot be closed: {error}"))?;
    landlock::enter(rules)?;
    Ok(Entered { proxy, ending })
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
fn enter(rules: &Rules) -> Result<Entered, String> {
    match rules.level {
        SandboxLevel::Rules => Ok(Entered::default()),
        level => Err(format!("level `{level}` exists on Linux only")),
    }
}
