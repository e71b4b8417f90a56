//! The sandbox of a run: what its agents' programs may write and read, and which level the system has.
//!
//! The lists come from measurements with the real programs: which folders engines, git and build tools need, and where
//! people keep keys.

mod protected;
mod registries;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::engine::command::Profile;
use crate::env::{Env, files::measure, real};
use crate::error::{Failure, FailureKind};
use crate::git::SHARED;
use crate::model::{EventKind, GitAccess, HostPattern, HostPort, IntoMap, NetworkAccess, SandboxLevel, Sort};
use crate::ops::Project;
use crate::pool::Reports;
use crate::program::{Programs, git_folders, may_be_alive};
use crate::sandbox::{GitCopy, Lack, Preparation, Rules, Sandbox, Upstream, level_of};
use crate::settings::{SandboxSettings, Settings};
pub(crate) use protected::ignored_environment_files;

/// Where keys, tokens and passwords lie, below the user's home.
const KEYS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/github-copilot",
    ".config/containers/auth.json",
    ".config/helm",
    ".config/hcloud",
    ".config/doctl",
    ".config/netlify",
    ".config/age",
    ".config/composer/auth.json",
    ".composer/auth.json",
    ".cache/huggingface/token",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".fly",
    ".oci",
    ".databrickscfg",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
];

/// Folders that hold such things, by the variables that move them.
const MOVED_KEYS: [(&str, &[&str]); 4] = [
    (
        "XDG_CONFIG_HOME",
        &["gcloud", "gh", "glab-cli", "hub", "op", "rclone", "sops", "github-copilot", "git/credentials"],
    ),
    ("CARGO_HOME", &["credentials", "credentials.toml"]),
    ("GNUPGHOME", &["."]),
    ("DOCKER_CONFIG", &["."]),
];

/// The folders of the Copilot CLI, which has no profile.
const COPILOT_HOME: &str = ".copilot";

/// Caches of the sandbox's own: what an agent puts there, nobody else runs.
const CACHES: [(&str, &str); 7] = [
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
    ("CARGO_HOME", "cargo"),
    ("PIP_CACHE_DIR", "pip"),
    ("GOMODCACHE", "go"),
    ("GRADLE_USER_HOME", "gradle"),
    ("NUGET_PACKAGES", "nuget"),
];

/// The folders of squad's own one in which those of each sandbox lie.
const TEMPORARY: &str = "tmp";
const CACHED: &str = "caches";
/// The bytes of all of them that are kept. A build of squad itself leaves half a gigabyte in the caches of cargo.
const MOST: u64 = 2 << 30;
/// Somebody may still work with what is not older than this.
const IN_USE: Duration = Duration::from_secs(24 * 60 * 60);

/// Ways to the user's daemons: agents for keys, the session's bus, containers.
const DAEMONS: [&str; 11] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "DBUS_",
    "DOCKER_HOST",
    "XDG_RUNTIME_DIR",
    "GPG_",
    "TMUX",
    "VSCODE_",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

/// What bounds a run's agents.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// `None`: only rules on commands.
    pub(crate) sandbox: Option<Sandbox>,
    /// Why it is weaker than the settings ask for.
    pub(crate) weaker: Option<String>,
    /// Why the network is open at level `full`, if nobody asked for that or against it.
    pub(crate) network_open: Option<String>,
}

impl Bounds {
    pub(crate) fn level(&self) -> SandboxLevel {
        level_of(self.sandbox.as_ref())
    }

    /// Says so where it is weaker.
    pub(crate) fn report(&self, reports: &Reports) {
        if let Some(reason) = self.weaker.clone() {
            reports.tell(None, EventKind::SandboxWeaker { level: self.level(), reason });
        }
    }
}

/// The strongest level that the settings allow and the system has, tried just now.
///
/// # Errors
///
/// `sandbox.require` is set, and the system has not the level that `sandbox.level` names; or what keeps it from being set
/// up is nothing of the system's, such as a full disk.
///
/// `attached`: files that the agents may read wherever they are.
pub(crate) fn of_run(env: &Env, project: &Project, attached: &[PathBuf]) -> Result<Bounds, Failure> {
    let settings = &project.settings.sandbox;
    let mut reasons = Vec::new();
    let (mut found, mut network_open) = (None, None);
    for level in [SandboxLevel::Full, SandboxLevel::Files].into_iter().filter(|level| *level >= settings.level) {
        let made = sandbox(env, project, attached, level);
        match made.and_then(|sandbox| tried(env, project, sandbox)) {
            Ok((sandbox, open)) => {
                found = Some(sandbox);
                match settings.network {
                    Some(NetworkAccess::Listed) => reasons.extend(open.map(|why| format!("network `listed`: {why}"))),
                    _ => network_open = open,
                }
                break;
            }
            Err(Lack::Missing(reason)) => reasons.push(format!("`{level}`: {reason}")),
            Err(Lack::Broken(reason)) => {
                let message = format!("the sandbox `{level}` cannot be set up: {reason}");
                return Err(Failure::new(FailureKind::Policy, message)
                    .hint("mend that; or choose a weaker level: `squad config set --user sandbox.level files`"));
            }
        }
    }
    let weaker = (!reasons.is_empty()).then(|| reasons.join("; "));
    match &weaker {
        Some(reason) if settings.require => {
            let message = format!("the sandbox `{}` is not to be had here: {reason}", settings.level);
            Err(Failure::new(FailureKind::Policy, message)
                .hint("`squad doctor` says what is missing; `sandbox.require = false` starts agents without it"))
        }
        _ => Ok(Bounds { sandbox: found, weaker, network_open }),
    }
}

/// Tries a sandbox, with processes of its programs' own where the system has that.
fn tried(env: &Env, project: &Project, sandbox: Sandbox) -> Result<(Sandbox, Option<String>), Lack> {
    let with_own = (sandbox.level() == SandboxLevel::Full).then(|| sandbox.clone().with_own_processes());
    match with_own.map(|sandbox| with_network(env, project, sandbox)) {
        Some(Ok(found)) => Ok(found),
        _ => with_network(env, project, sandbox),
    }
}

/// Tries a sandbox, with a network of its own where the settings allow for one; or why it has none.
fn with_network(env: &Env, project: &Project, sandbox: Sandbox) -> Result<(Sandbox, Option<String>), Lack> {
    let access = project.settings.sandbox.network;
    if sandbox.level() != SandboxLevel::Full || access == Some(NetworkAccess::Open) {
        return sandbox.probe().map(|()| (sandbox, None));
    }
    let is_required = access == Some(NetworkAccess::Listed);
    let listed = sandbox.clone().with_network(&upstream(env), listed_hosts(env, project), is_required);
    let listed = listed.and_then(|listed| listed.probe().map(|()| listed).map_err(Lack::reason));
    match listed {
        Ok(listed) => Ok((listed, None)),
        // What else is wrong, this says.
        Err(reason) => sandbox.probe().map(|()| (sandbox, Some(reason))),
    }
}

/// The proxies of the user's own programs.
fn upstream(env: &Env) -> Upstream {
    let of = |name: &str| {
        let found = env.variable(name).or_else(|| env.variable(&name.to_lowercase()));
        found.unwrap_or_default().to_owned()
    };
    Upstream { all: of("ALL_PROXY"), http: of("HTTP_PROXY"), https: of("HTTPS_PROXY"), no: of("NO_PROXY") }
}

/// The hosts that the programs of any engine may reach: the user's list, the user's servers, and package registries.
fn listed_hosts(env: &Env, project: &Project) -> Vec<HostPattern> {
    let settings = &project.settings;
    let servers = settings.mcp.values().filter_map(|server| HostPort::of_url(server.url.as_deref()?));
    let others = servers.map(HostPattern::from).chain(registries::of_user(env));
    settings.sandbox.hosts.iter().cloned().chain(others).collect()
}

/// The bounds explained to an agent, so that it need not find out by failing.
/// `has_copy`: its git works on a copy of `.git`.
pub(crate) fn explained(
    sandbox: Option<&Sandbox>,
    settings: &SandboxSettings,
    (may_commit, has_copy): (bool, bool),
) -> Option<String> {
    let instead = match may_commit {
        true => "if you are asked to commit, use `squad_commit`",
        false => "so leave your changes in the work tree",
    };
    let writable = "what you start can write in the project and in $TMPDIR, and nowhere else";
    let is_listed = sandbox.is_some_and(|sandbox| sandbox.network() == NetworkAccess::Listed);
    let network = match is_listed {
        true => {
            " It reaches package registries and the hosts that the user lists: with others a proxy answers 403 or \
                 the connection is closed, and there is no way around it, so say which host you need."
        }
        false => "",
    };
    let explained = match level_of(sandbox) {
        SandboxLevel::Full if has_copy => Some(format!(
            "{writable}. Your git works on a copy of `.git`: what you commit there is kept for the user as a ref below \
             `refs/squad/runs`, and moves none of the user's branches."
        )),
        SandboxLevel::Full if settings.git != GitAccess::Open => {
            Some(format!("{writable}. `.git` is read-only: `git add` and `git commit` fail; {instead}."))
        }
        SandboxLevel::Full | SandboxLevel::Files => Some(format!("{writable}.")),
        SandboxLevel::Rules => None,
    };
    explained.map(|text| text + network)
}

/// squad's own folder for what is no part of a repository.
pub(crate) fn state_folder(env: &Env) -> Option<PathBuf> {
    env.user_state()
}

/// Where the user's keys, logins and squad's own files lie.
pub(super) fn hidden(env: &Env, settings: &Settings) -> Vec<PathBuf> {
    let home = env.variable("HOME").map(Path::new).filter(|home| home.is_absolute()).map(real);
    let mut hidden: Vec<PathBuf> =
        home.iter().flat_map(|home| KEYS.iter().chain([&COPILOT_HOME]).map(|path| home.join(path))).collect();
    for (variable, names) in MOVED_KEYS {
        let folder = env.variable(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        hidden.extend(folder.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))));
    }
    hidden.extend(Profile::homes(&settings.engines, &env.os_variables()));
    hidden.extend(state_folder(env).as_deref().map(real));
    hidden.extend(env.user_config().as_deref().and_then(Path::parent).map(real));
    hidden.extend(env.user_data());
    hidden
}

fn sandbox(env: &Env, project: &Project, attached: &[PathBuf], level: SandboxLevel) -> Result<Sandbox, Lack> {
    let unset = || "HOME is not set".to_owned();
    let squad = env.program.clone().ok_or_else(|| "squad does not know its own program".to_owned())?;
    let home = Path::new(env.variable("HOME").filter(|home| Path::new(home).is_absolute()).ok_or_else(unset)?);
    let home = real(home);
    let state = state_folder(env).ok_or_else(unset)?;
    // Clones share those of the project.
    let key = format!("{}\n{}", project.repository.common_dir().display(), project.folder_in_repository());
    let caches = state.join(CACHED).join(&blake3::hash(key.as_bytes()).to_hex()[..12]);
    let make = |folder: &Path| fs::create_dir_all(folder).map_err(|error| Lack::of(folder, &error));
    make(&state.join(TEMPORARY))?;
    let state = real(&state);
    let folder = folder_for(&state.join(TEMPORARY))?;
    let temporary = folder.path().to_owned();
    let empty = state.join("empty");
    fs::write(&empty, "").map_err(|error| Lack::of(&empty, &error))?;
    make(&caches)?;
    // Its time says when somebody last worked there.
    let _ = fs::File::open(&caches).and_then(|folder| folder.set_modified(SystemTime::now()));
    let caches = real(&caches);
    let own = |name: &str| caches.join(name);
    let set = CACHES.iter().map(|(variable, name)| ((*variable).to_owned(), own(name))).into_map();
    let mut prepared: Vec<Preparation> = CACHES.iter().map(|(_, name)| Preparation::Folder(own(name))).collect();
    prepared.extend(settings_of_caches(env, &home, &caches));

    let root = real(&project.folder.root);
    let local = project.local();
    let mut hidden = hidden(env, &project.settings);
    let mut readable: Vec<PathBuf> = project.settings.sandbox.read.iter().map(|path| expanded(&home, path)).collect();
    // A name may be a link, into a folder of all such files: both are hidden.
    hidden.extend(hidden.iter().map(|path| real(path)).collect::<Vec<_>>());
    hidden.sort_unstable();
    hidden.dedup();
    hidden.retain(|path| !readable.contains(&real(path)));

    readable.extend(attached.iter().cloned());
    // A server of the user's may be a script anywhere.
    let servers = project.settings.mcp.values().flat_map(|server| server.command.iter().chain(&server.args));
    readable.extend(servers.map(PathBuf::from).filter(|path| path.is_absolute() && path.exists()));

    let mut rules = Rules {
        level,
        writable: vec![root.clone(), caches],
        read_only: Vec::new(),
        hidden,
        hidden_in_project: Vec::new(),
        readable,
        temporary,
        replaced: Vec::new(),
        empty,
        prepared,
        set,
        unset: DAEMONS.map(str::to_owned).to_vec(),
        own_processes: false,
        network: None,
        layers: None,
    };
    if project.settings.sandbox.git == GitAccess::Open {
        // That of a linked work tree, or of a repository around the project, lies elsewhere.
        rules.writable.extend(git_folders(&root).into_iter().filter(|folder| !folder.starts_with(&root)));
    }
    let (mut placeholders, mut hidden_in_project) = (Vec::new(), Vec::new());
    if level == SandboxLevel::Full {
        let path: Vec<PathBuf> = Programs::new(&root, &env.os_variables()).folders().to_vec();
        if project.settings.sandbox.git != GitAccess::Open {
            (rules.read_only, placeholders) = protected::settings_of_git(project, &root)?;
        }
        rules.hidden.extend(["runs", "watch", "homes", "output", "sessions"].map(|name| local.join(name)));
        rules.hidden.push("/run".into());
        hidden_in_project = ignored_environment_files(project)?;
        // A program there needs what lies beside it, so the folder stays as it is, read-only.
        let settings = &project.settings;
        let programs = settings.engines.values().filter_map(|profile| profile.program.as_deref());
        let programs = programs.chain(settings.engine.copilot.path.as_deref()).chain(env.variable("COPILOT_CLI_PATH"));
        let programs: Vec<PathBuf> = programs.map(PathBuf::from).filter(|program| program.is_absolute()).collect();
        let needed = path.iter().chain(&programs).chain([&root, &home, &state, &squad, &local]);
        let needed: Vec<PathBuf> = needed.flat_map(|path| [path.clone(), real(path)]).collect();
        let is_free = |folder: &PathBuf| folder.is_dir() && !needed.iter().any(|path| path.starts_with(folder));
        let replaced = ["/tmp", "/var/tmp"].map(PathBuf::from).into_iter().filter(is_free);
        rules.replaced = replaced.map(|folder| (folder, rules.temporary.clone())).collect();
        rules.readable.extend(path);
        rules.readable.extend([real(Path::new("/etc/resolv.conf")), squad.clone()]);
    }
    let shown = rules.replaced.first().map_or(&rules.temporary, |(folder, _)| folder).clone();
    for variable in ["TMPDIR", "TEMP", "TMP"] {
        rules.set.insert(variable.to_owned(), shown.clone());
    }
    let copies = level == SandboxLevel::Full && project.settings.sandbox.git == GitAccess::Overlay;
    let git = if copies { git_copy(project, &root, &state.join(TEMPORARY), &mut rules)? } else { None };
    Sandbox::new(&squad, rules, (folder, placeholders)).with_git(git).hiding_in_project(&hidden_in_project)
}

/// Has programs find a copy in the place of the project's `.git`. `None`: `root` is a clone, in which squad commits.
fn git_copy(project: &Project, root: &Path, temporary: &Path, rules: &mut Rules) -> Result<Option<GitCopy>, Lack> {
    let common = real(project.repository.common_dir());
    if !git_folders(root).contains(&common) {
        return Ok(None);
    }
    let copy = folder_for(temporary)?;
    project.repository.copy_for_agents(copy.path()).map_err(|error| Lack::Broken(error.to_string()))?;
    rules.read_only.retain(|path| !path.starts_with(&common));
    rules.replaced.push((common.clone(), copy.path().to_owned()));
    for (name, of_user) in SHARED {
        let tree = real(&common.join(of_user));
        if tree.is_dir() {
            rules.read_only.push(common.join(name));
            rules.replaced.push((common.join(name), tree));
        }
    }
    Ok(Some(GitCopy::new(copy)))
}

/// A folder of this process's. The path of a socket in it has 107 bytes, so its name is short.
fn folder_for(temporary: &Path) -> Result<TempDir, Lack> {
    let folder = tempfile::Builder::new().prefix(&format!("{}-", std::process::id())).tempdir_in(temporary);
    folder.map_err(|error| Lack::of(temporary, &error))
}

/// The folders in which those of each sandbox lie.
pub(crate) fn folders(env: &Env) -> Vec<PathBuf> {
    let state = state_folder(env);
    state.iter().flat_map(|state| [TEMPORARY, CACHED].map(|name| state.join(name))).collect()
}

/// Removes what sandboxes left: temporary files of killed runs, and caches of projects in which nobody has worked for
/// `age`, or that are the oldest beyond [`MOST`]. Returns the number of folders and their bytes. A dry run
/// removes none.
pub(crate) fn clear(env: &Env, age: Duration, dry_run: bool) -> (usize, u64) {
    let entries = folders(env).into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let now: SystemTime = env.clock.now().into();
    // A watch may hold its folder for longer.
    let is_held = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.rsplit('-').nth(1).and_then(|process| process.parse().ok()).is_some_and(may_be_alive)
    };
    let mut found: Vec<(SystemTime, PathBuf)> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    found.retain(|(_, path)| !is_held(path));
    found.stable_sort_by(|one, other| other.cmp(one));
    let (mut kept, mut cleared) = (0, (0, 0));
    for (modified, path) in found {
        let passed = now.duration_since(modified).unwrap_or_default();
        let bytes = measure([path.clone()], usize::MAX).bytes;
        if passed <= IN_USE || passed <= age && kept + bytes <= MOST {
            kept += bytes;
        } else if dry_run || fs::remove_dir_all(&path).is_ok() {
            // Caches may hold folders that are read-only, as Go's does; what stays is tried again by the next call.
            cleared = (cleared.0 + 1, cleared.1 + bytes);
        }
    }
    cleared
}

/// What the sandbox's own caches get of the user's: which registries there are, without the tokens for them.
fn settings_of_caches(env: &Env, home: &Path, caches: &Path) -> Vec<Preparation> {
    let cargo = env.variable("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let (from, to) = (cargo.join("config.toml"), caches.join("cargo/config.toml"));
    let mut prepared = vec![Preparation::Copy { from, to }];
    // Each version of the Copilot CLI unpacks itself there, 235 MB; the user's copies can be read.
    let cache = env.variable("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let (theirs, own) = (cache.join("copilot/pkg"), caches.join("xdg/copilot/pkg"));
    for platform in fs::read_dir(&theirs).into_iter().flatten().flatten() {
        let folder = own.join(platform.file_name());
        prepared.push(Preparation::Folder(folder.clone()));
        let versions = fs::read_dir(platform.path()).into_iter().flatten().flatten();
        prepared.extend(
            versions.map(|version| Preparation::Link { to: version.path(), at: folder.join(version.file_name()) }),
        );
    }
    prepared
}

fn expanded(home: &Path, path: &str) -> PathBuf {
    real(&path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| home.join(rest)))
}
