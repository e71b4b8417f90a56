use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread,
};

use gix::{ObjectId, hash};
use parking_lot::Mutex;

use super::{
    commit::Identity,
    discover,
    error::Error,
    filters,
    object_store::ObjectStore,
    objects::Sharing,
    pack::PackFolder,
    program::{Call, Environment, Output},
    recent::RecentObjects,
    references::{References, Target, follow, parse_id, read_head},
};
use crate::model::DamageLog;

/// A git repository, seen from one of its work trees.
///
/// Holds paths and settings but no open files, so it can live long and be shared between threads.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    git_dir: PathBuf,
    common_dir: PathBuf,
    work_dir: Option<PathBuf>,
    /// Nothing in the work tree leads to `git_dir`; see `clone`.
    is_clone: bool,
    /// Nothing is written to it, not even what is derived from it.
    is_looked_at: bool,
    hash: hash::Kind,
    sharing: Sharing,
    is_reftable: bool,
    tracks_modes: bool,
    has_links: bool,
    has_remotes: bool,
    environment: Environment,
    recent: RecentObjects,
    damage: DamageLog,
    /// What git said of its settings when it was first asked.
    settings: Arc<OnceLock<Settings>>,
    /// Held while git is asked for them: whoever needs them meanwhile waits for the answer.
    asking: Arc<Mutex<()>>,
    /// The author identity from git, once known; a missing identity is not cached, since it can be set while we run.
    identity: Arc<OnceLock<Identity>>,
}

/// What `git var -l` prints: the configuration, then git's own variables.
#[derive(Debug)]
struct Settings {
    /// The repository's configuration before git was asked.
    config: Vec<String>,
    listed: String,
}

impl Settings {
    fn values(&self, prefix: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.listed.lines().filter_map(move |line| line.strip_prefix(prefix)?.split_once('='))
    }
}

/// What HEAD points to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Head {
    /// The branch's short name; `None`: HEAD is detached.
    pub(crate) branch: Option<String>,
    /// The branch that a rebase or bisection will return to.
    pub(crate) left: Option<String>,
    /// The commit id; `None`: the branch has no commit yet.
    pub(crate) commit: Option<String>,
}

impl Head {
    /// The current branch, or the one a rebase or bisection will return to.
    pub(crate) fn work(&self) -> Option<&str> {
        self.branch.as_deref().or(self.left.as_deref())
    }
}

impl Repository {
    /// Finds the repository that contains `start`, searching upwards.
    ///
    /// Ignores `GIT_DIR` and the like: inside a hook they may name a temporary index or another work tree. A bare
    /// repository opens too, without a work tree.
    pub(crate) fn discover(start: &Path, environment: &Environment) -> Result<Self, Error> {
        let start = std::path::absolute(start).map_err(Error::io("find", start))?;
        Self::from_gix(&discover::open(&start, environment)?, environment)
    }

    /// The same repository, with unreadable parts of the ledger reported to `damage`.
    pub(crate) fn reporting_to(self, damage: &DamageLog) -> Self {
        Self { damage: damage.clone(), ..self }
    }

    /// The same repository, to look at.
    pub(crate) fn looked_at(self) -> Self {
        Self { is_looked_at: true, ..self }
    }

    pub(crate) fn is_looked_at(&self) -> bool {
        self.is_looked_at
    }

    /// The unreadable parts of the ledger that were skipped so far.
    pub(crate) fn damage(&self) -> &DamageLog {
        &self.damage
    }

    /// Why agents cannot work in clones of it.
    pub(crate) fn obstacle_to_clones(&self) -> Option<&'static str> {
        // Each work tree has a table of its own, with its HEAD.
        self.is_reftable.then_some("git keeps its refs as a reftable, and so the HEAD of each work tree")
    }

    /// A clone of this repository's work tree, which need not be there yet.
    pub(crate) fn clone_at(&self, git_dir: &Path, work_dir: &Path) -> Self {
        // Calls in the clone leave out some filters.
        let _ = self.settings();
        // Calls in the clone have another working folder.
        let common_dir = std::path::absolute(&self.common_dir).unwrap_or_else(|_| self.common_dir.clone());
        let (git_dir, work_dir) = (git_dir.to_owned(), Some(work_dir.to_owned()));
        Self { git_dir, common_dir, work_dir, is_clone: true, ..self.clone() }
    }

    /// Creates a repository on branch `main`, whatever the user's default is. If git knows no identity, the repository
    /// gets its own, so that commits can be made in it.
    pub(crate) fn create(folder: &Path, environment: &Environment) -> Result<(), Error> {
        let git = |arguments: &[&str]| Call::new(environment, folder, arguments).succeed().map(drop);
        git(&["init", "--quiet", "--initial-branch=main"])?;
        if Self::discover(folder, environment)?.identity().is_none() {
            git(&["config", "user.name", "squad"])?;
            git(&["config", "user.email", "squad@localhost"])?;
        }
        Ok(())
    }

    fn from_gix(found: &gix::Repository, environment: &Environment) -> Result<Self, Error> {
        let config = found.config_snapshot();
        let text = |key: &str| config.string(key).map(|value| value.to_string());
        let git_dir = found.git_dir().to_owned();
        discover::check_format(&git_dir, &config)?;
        let storage = text("extensions.refStorage").map(|format| format.to_ascii_lowercase());
        Ok(Self {
            common_dir: discover::tidy(found.common_dir()),
            work_dir: found.workdir().map(discover::tidy),
            is_clone: false,
            is_looked_at: false,
            hash: found.object_hash(),
            tracks_modes: cfg!(unix) && config.boolean("core.fileMode").unwrap_or(true),
            has_links: cfg!(unix) && config.boolean("core.symlinks").unwrap_or(true),
            has_remotes: !found.remote_names().is_empty(),
            sharing: Sharing::from_setting(text("core.sharedRepository").as_deref()),
            is_reftable: match storage.as_deref() {
                None | Some("files") => false,
                Some("reftable") => true,
                Some(other) => {
                    return Err(discover::unsupported(&git_dir, format!("keeps its refs in the format {other:?}")));
                }
            },
            settings: Arc::default(),
            asking: Arc::default(),
            git_dir,
            environment: environment.clone(),
            recent: RecentObjects::default(),
            damage: DamageLog::default(),
            identity: Arc::default(),
        })
    }

    /// Whether there is a remote that something could be shared with. Starts no program.
    pub(crate) fn has_remotes(&self) -> bool {
        self.has_remotes
    }

    /// The root of this work tree; a linked work tree has its own. `None`: the repository is bare.
    pub(crate) fn work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref()
    }

    /// The name of this work tree, if it is a linked one.
    pub(crate) fn linked_name(&self) -> Option<String> {
        let name = self.git_dir.strip_prefix(self.common_dir.join("worktrees")).ok()?;
        Some(name.to_str()?.to_owned())
    }

    /// The root of a linked work tree, or without a name of the main one, if it is still there.
    pub(crate) fn work_tree_named(&self, name: Option<&str>) -> Option<PathBuf> {
        let Some(name) = name else { return self.main_work_dir().map(Path::to_owned) };
        let git = fs::read_to_string(self.common_dir.join("worktrees").join(name).join("gitdir")).ok()?;
        Some(Path::new(git.trim()).parent()?.to_owned()).filter(|root| root.is_dir())
    }

    /// The root of the main work tree; `None` if the repository itself is bare.
    pub(crate) fn main_work_dir(&self) -> Option<&Path> {
        self.common_dir.parent().filter(|_| self.common_dir.file_name().is_some_and(|name| name == ".git"))
    }

    /// Squad's own folder, which all work trees share. Disposable.
    pub(crate) fn own_folder(&self) -> PathBuf {
        self.common_dir.join("squad")
    }

    /// The directory of this work tree's own HEAD and index.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The directory all work trees share: objects, branches, the ledger.
    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub(super) fn head_target(&self) -> Result<Target, Error> {
        match self.is_reftable {
            true => self.ask_for_head(),
            false => read_head(&self.git_dir, self.hash),
        }
    }

    pub(crate) fn head(&self) -> Result<Head, Error> {
        Ok(match self.head_target()? {
            Target::Object(id) => Head { branch: None, left: self.left_branch()?, commit: Some(id.to_string()) },
            Target::Symbolic(name) => {
                let commit = follow(&self.references(), &name)?.map(|id| id.to_string());
                Head { branch: Some(name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned()), left: None, commit }
            }
        })
    }

    fn ask_for_head(&self) -> Result<Target, Error> {
        let answer = self.call(&["symbolic-ref", "--quiet", "HEAD"]).run()?;
        if answer.is_success() {
            return Ok(Target::Symbolic(answer.text()));
        }
        let id = self.call(&["rev-parse", "--verify", "HEAD"]).succeed()?;
        let id = parse_id(&id.stdout, self.hash);
        id.map(Target::Object).ok_or_else(|| Error::damaged(&self.git_dir, "HEAD does not hold an object id"))
    }

    /// The configured user name, from the repository's or the user's configuration. Runs `git` the first time.
    pub(crate) fn user(&self) -> Option<&str> {
        let name = self.settings()?.values("user.name").rfind(|(rest, _)| rest.is_empty())?.1;
        (!name.trim().is_empty()).then_some(name)
    }

    /// Asks git for its settings in the background, so that the first who needs them does not wait.
    pub(crate) fn ask_ahead(&self) {
        let repository = self.clone();
        // Without a thread, whoever needs them asks.
        drop(thread::Builder::new().spawn(move || repository.settings().is_some()));
    }

    fn settings(&self) -> Option<&Settings> {
        if self.settings.get().is_none() {
            let _asking = self.asking.lock();
            if self.settings.get().is_none() {
                let _ = self.settings.set(self.ask_for_settings(self.own_config())?);
            }
        }
        self.settings.get()
    }

    fn ask_for_settings(&self, config: Vec<String>) -> Option<Settings> {
        let answer = self.call(&["var", "-l"]).run().ok().filter(Output::is_success)?;
        Some(Settings { config, listed: answer.text() })
    }

    /// The text of each configuration file of the repository; of one that cannot be read, an empty one.
    pub(super) fn own_config(&self) -> Vec<String> {
        let files = [self.common_dir.join("config"), self.git_dir.join("config.worktree")];
        let text = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        files.map(|path| text(path).unwrap_or_default()).into()
    }

    /// The author identity git would use now. `None`: none is configured; an identity that git derives from login and
    /// host name does not count. Runs `git` the first time.
    pub(crate) fn identity(&self) -> Option<Identity> {
        if let Some(known) = self.identity.get() {
            return Some(known.clone());
        }
        let answer = self.call(&["-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"]).run().ok()?;
        let identity = answer.is_success().then(|| Identity::parse(&answer.text())).flatten()?;
        Some(self.identity.get_or_init(|| identity).clone())
    }

    /// The files outside the work tree that git reads attributes from, where the repository's configuration is this one.
    /// `None`: git is older than 2.42 and does not tell. Runs `git` unless it was asked before.
    pub(super) fn attribute_files(&self, config: &[String]) -> Option<Vec<PathBuf>> {
        let asked;
        let settings = match self.settings().filter(|known| known.config == config) {
            Some(known) => known,
            None => {
                asked = self.ask_for_settings(config.to_owned())?;
                &asked
            }
        };
        let files: Vec<PathBuf> = settings.values("GIT_ATTR_").map(|(_, path)| path.into()).collect();
        (!files.is_empty()).then(|| [files, vec![self.common_dir.join("info").join("attributes")]].concat())
    }

    /// The names of the hooks git would run when the user commits.
    pub(crate) fn commit_hooks(&self) -> Vec<&'static str> {
        const HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
        let answer = self.call(&["config", "--type=path", "--get-all", "core.hooksPath"]).run();
        let all = answer.ok().filter(|answer| answer.is_success()).map(|answer| answer.text()).unwrap_or_default();
        // The last value is our own override, which disables hooks.
        let folder = match all.lines().rev().nth(1).filter(|path| !path.is_empty()) {
            Some(path) => self.work_dir.as_deref().unwrap_or(&self.git_dir).join(path),
            None => self.common_dir.join("hooks"),
        };
        HOOKS.into_iter().filter(|name| is_hook(&folder.join(name))).collect()
    }

    /// The names of all refs below a folder of refs.
    pub(crate) fn references_below(&self, folder: &str) -> Result<Vec<String>, Error> {
        self.references().list(folder)
    }

    pub(super) fn parse_commit(&self, commit: &str) -> Result<ObjectId, Error> {
        parse_id(commit.as_bytes(), self.hash)
            .ok_or_else(|| Error::damaged(&self.git_dir, format!("{commit:?} is not a commit id")))
    }

    pub(super) fn hash(&self) -> hash::Kind {
        self.hash
    }

    /// Whether file modes in the work tree are meaningful: `core.fileMode`.
    pub(super) fn tracks_modes(&self) -> bool {
        self.tracks_modes
    }

    /// Whether git makes symbolic links in the work tree: `core.symlinks`.
    pub(super) fn has_links(&self) -> bool {
        self.has_links
    }

    pub(super) fn sharing(&self) -> Sharing {
        self.sharing
    }

    pub(super) fn objects_directory(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    pub(super) fn packs(&self) -> PackFolder {
        PackFolder::new(&self.common_dir, self.hash, self.sharing)
    }

    /// The objects this process wrote last.
    pub(super) fn recent(&self) -> &RecentObjects {
        &self.recent
    }

    pub(super) fn objects(&self) -> ObjectStore {
        ObjectStore::new(&self.objects_directory(), self.hash, self.recent.clone())
    }

    /// For reading the ledger, which may be damaged or written by anybody.
    pub(super) fn limited_objects(&self) -> ObjectStore {
        self.objects().with_size_limit()
    }

    pub(super) fn references(&self) -> References {
        match self.is_reftable {
            true => References::Reftable {
                git_dir: self.git_dir.clone(),
                common_dir: self.common_dir.clone(),
                hash: self.hash,
                environment: self.environment.clone(),
            },
            false => References::Files { common_dir: self.common_dir.clone(), hash: self.hash, sharing: self.sharing },
        }
    }

    /// Fails if there is no `git` program that we are allowed to run.
    pub(crate) fn require_git(&self) -> Result<(), Error> {
        self.environment.git().map(drop).map_err(Error::NoGit)
    }

    /// The environment for git calls.
    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The user's filters that are files of the work tree, or load some: in a clone they would be its agent's.
    pub(super) fn filters_in_tree(&self) -> Vec<String> {
        self.settings().map_or_else(Vec::new, |settings| filters::in_tree(settings.values("filter.")))
    }

    pub(super) fn is_clone(&self) -> bool {
        self.is_clone
    }

    /// Whether the file system takes names for the same that differ in case.
    pub(super) fn ignores_case(&self) -> bool {
        self.git_dir.join("head").exists()
    }

    /// A call of git in this work tree.
    pub(super) fn call(&self, arguments: &[&str]) -> Call {
        let place = self.work_dir.as_deref().unwrap_or(&self.git_dir);
        if !self.is_clone {
            return Call::new(&self.environment, place, arguments);
        }
        // To ask here would be a call in the clone.
        let known = self.settings.get().map_or_else(Vec::new, |known| filters::in_tree(known.values("filter.")));
        let off: Vec<String> = known.iter().flat_map(|name| filters::off(name)).collect();
        // The user's may lie on another file system.
        let case = format!("core.ignoreCase={}", self.ignores_case());
        let call =
            Call::new(&self.environment, place, &[]).arguments(&off).arguments(&["-c", &case]).arguments(arguments);
        // What its own file says of the common folder is where the repository was.
        let names = [("GIT_DIR", &*self.git_dir), ("GIT_COMMON_DIR", &*self.common_dir), ("GIT_WORK_TREE", place)];
        names.iter().fold(call, |call, (name, path)| call.variable(name, &path.to_string_lossy()))
    }
}

/// Whether git would run a file as a hook.
#[cfg(unix)]
fn is_hook(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_hook(path: &Path) -> bool {
    path.is_file()
}
