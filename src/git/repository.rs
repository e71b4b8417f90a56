use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gix::{ObjectId, hash, objs, objs::tree::EntryKind};

use super::{
    commit::Identity,
    error::Error,
    objects::{Sharing, identify},
    pack::PackFolder,
    program::{Call, Environment},
    recent::RecentObjects,
    references::{References, Target, follow, parse_id, read_head},
    tree::ObjectStore,
};
use crate::model::DamageLog;

/// Extensions that do not affect this module, or that it supports. From git's `Documentation/config/extensions.adoc`.
const KNOWN_EXTENSIONS: [&str; 9] = [
    "compatobjectformat",
    "noop",
    "noop-v1",
    "objectformat",
    "partialclone",
    "preciousobjects",
    "refstorage",
    "relativeworktrees",
    "worktreeconfig",
];

/// A git repository, seen from one of its work trees.
///
/// Holds paths and settings but no open files, so it can live long and be shared between threads.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    git_dir: PathBuf,
    common_dir: PathBuf,
    work_dir: Option<PathBuf>,
    hash: hash::Kind,
    sharing: Sharing,
    is_reftable: bool,
    tracks_modes: bool,
    environment: Environment,
    recent: RecentObjects,
    damage: DamageLog,
    /// The configured user name.
    user: Option<String>,
    /// The author identity from git, once known; a missing identity is not cached, since it can be set while we run.
    identity: Arc<OnceLock<Identity>>,
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

/// See [`Repository::plain_files_at`].
#[derive(Debug, Default)]
pub(crate) struct PlainFiles {
    pub(crate) plain: Vec<(String, Vec<u8>)>,
    /// Of them.
    pub(crate) executables: Vec<String>,
    pub(crate) other: Vec<String>,
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
        let found = find(&start, environment).map_err(|cause| explain(&start, environment, &cause))?;
        let trusted = if found.git_dir_trust() == gix::sec::Trust::Full {
            found
        } else {
            check_trust(&start, found.workdir().unwrap_or(found.git_dir()), environment)?;
            open_trusted(&found)?
        };
        Self::from_gix(&trusted, environment)
    }

    /// The same repository, with unreadable parts of the ledger reported to `damage`.
    pub(crate) fn reporting_to(self, damage: &DamageLog) -> Self {
        Self { damage: damage.clone(), ..self }
    }

    /// The unreadable parts of the ledger that were skipped so far.
    pub(crate) fn damage(&self) -> &DamageLog {
        &self.damage
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

    /// The newest commits of the current branch, one line each.
    pub(crate) fn log(&self, count: usize) -> Result<String, Error> {
        let count = format!("--max-count={count}");
        self.call(&["log", "--oneline", "--no-decorate", &count]).succeed().map(|answer| answer.text())
    }

    fn from_gix(found: &gix::Repository, environment: &Environment) -> Result<Self, Error> {
        let config = found.config_snapshot();
        let text = |key: &str| config.string(key).map(|value| value.to_string());
        let git_dir = found.git_dir().to_owned();
        check_format(&git_dir, &config)?;
        let storage = text("extensions.refStorage").map(|format| format.to_ascii_lowercase());
        Ok(Self {
            common_dir: tidy(found.common_dir()),
            work_dir: found.workdir().map(tidy),
            hash: found.object_hash(),
            tracks_modes: cfg!(unix) && config.boolean("core.fileMode").unwrap_or(true),
            sharing: Sharing::from_setting(text("core.sharedRepository").as_deref()),
            is_reftable: match storage.as_deref() {
                None | Some("files") => false,
                Some("reftable") => true,
                Some(other) => return Err(unsupported(&git_dir, format!("keeps its refs in the format {other:?}"))),
            },
            user: text("user.name").filter(|name| !name.trim().is_empty()),
            git_dir,
            environment: environment.clone(),
            recent: RecentObjects::default(),
            damage: DamageLog::default(),
            identity: Arc::default(),
        })
    }

    /// The root of this work tree; a linked work tree has its own. `None`: the repository is bare.
    pub(crate) fn work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref()
    }

    /// The root of the main work tree; `None` if the repository itself is bare.
    pub(crate) fn main_work_dir(&self) -> Option<&Path> {
        self.common_dir.parent().filter(|_| self.common_dir.file_name().is_some_and(|name| name == ".git"))
    }

    /// The directory of this work tree's own HEAD and index.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The directory all work trees share: objects, branches, the ledger.
    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub(crate) fn head(&self) -> Result<Head, Error> {
        let target = match self.is_reftable {
            true => self.ask_for_head()?,
            false => read_head(&self.git_dir, self.hash)?,
        };
        Ok(match target {
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

    /// The configured user name.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
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

    /// The paths of all files below a folder in a commit. Reads trees only.
    pub(crate) fn paths_at(&self, commit: &str, folder: &str) -> Result<Vec<String>, Error> {
        let store = self.objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        Ok(store.files_below(root, folder)?.into_iter().map(|(path, _)| path).collect())
    }

    /// Whether a commit has an entry at a path.
    pub(crate) fn has_at(&self, commit: &str, path: &str) -> Result<bool, Error> {
        let store = self.objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        Ok(store.find(root, path)?.is_some())
    }

    /// Selected files below a folder in a commit, with their full paths. `wanted` returns a file's size limit, or
    /// `None` to skip it; a larger file is an error and is not read.
    pub(crate) fn files_at(
        &self,
        commit: &str,
        folder: &str,
        wanted: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let store = self.objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        contents(&store, store.files_below(root, folder)?, wanted)
    }

    /// The file at a path in a commit, or all files below it, with their full paths; and the paths of links and very
    /// large files there, which a landing leaves alone.
    pub(crate) fn plain_files_at(&self, commit: &str, path: &str) -> Result<PlainFiles, Error> {
        const LARGEST: u64 = 64 << 20;
        let store = self.objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        let found = match store.find(root, path)? {
            Some((mode, id)) if !mode.is_tree() => vec![(path.to_owned(), mode, id)],
            _ => store.entries_below(root, path)?,
        };
        let mut files = PlainFiles::default();
        for (path, mode, id) in found {
            match mode.kind() {
                EntryKind::Commit | EntryKind::Tree => {}
                EntryKind::Link => files.other.push(path),
                _ if store.size(&id).is_some_and(|size| size > LARGEST) => files.other.push(path),
                kind => {
                    files.executables.extend((kind == EntryKind::BlobExecutable).then(|| path.clone()));
                    files.plain.push((path, store.blob(&id)?));
                }
            }
        }
        Ok(files)
    }

    /// The executable files below a folder in a commit, with their full paths.
    pub(crate) fn executables_at(&self, commit: &str, folder: &str) -> Result<BTreeSet<String>, Error> {
        let store = self.objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        let entries = store.entries_below(root, folder)?;
        Ok(entries.into_iter().filter(|(_, mode, _)| mode.is_executable()).map(|(path, ..)| path).collect())
    }

    /// The blob id of a text.
    pub(crate) fn id_of_text(&self, bytes: &[u8]) -> Result<String, Error> {
        identify(self.hash, objs::Kind::Blob, bytes).map(|id| id.to_string())
    }

    /// The text of an id, if this clone has it.
    pub(crate) fn text_of_id(&self, id: &str) -> Option<Vec<u8>> {
        const LARGEST: u64 = 16 << 20;
        let id = parse_id(id.as_bytes(), self.hash)?;
        let store = self.objects();
        store.size(&id).filter(|size| *size <= LARGEST)?;
        store.blob(&id).ok()
    }

    /// The targets of selected symbolic links below a folder, listed under the links' full paths.
    pub(crate) fn links_at(
        &self,
        commit: &str,
        folder: &str,
        wanted: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let store = self.objects();
        let root = store.tree_of(&self.parse_commit(commit)?)?;
        contents(&store, store.links_below(root, folder)?, wanted)
    }

    /// The files of the work tree that git tracks or would add, as `/` paths from its root.
    pub(crate) fn listed_files(&self) -> Result<Vec<String>, Error> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = self.call(&list).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| String::from_utf8(name.to_owned()).ok()).collect())
    }

    /// The names of all refs below a folder of refs.
    pub(crate) fn references_below(&self, folder: &str) -> Result<Vec<String>, Error> {
        self.references().list(folder)
    }

    /// The tracked files below folders, as `/` paths from the work tree's root.
    pub(crate) fn tracked_files(&self, folders: &[&str]) -> Result<Vec<String>, Error> {
        let listed = self.call(&["ls-files", "-z", "--"]).arguments(folders).succeed()?.stdout;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Whether git ignores a file or folder of the work tree.
    pub(crate) fn is_ignored(&self, path: &str) -> bool {
        // Not `check-ignore`: that does not accept literal paths.
        let list = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "--", path];
        self.call(&list).run().is_ok_and(|answer| answer.is_success() && !answer.stdout.is_empty())
    }

    /// Whether git would ignore a file that does not exist yet.
    pub(crate) fn would_ignore(&self, path: &str) -> Result<bool, Error> {
        // With a temporary index, since `git add` locks the index.
        let folder = tempfile::tempdir().map_err(Error::io("write to", env::temp_dir()))?;
        let call = self.call(&["add", "--dry-run", "--ignore-missing", "--", path]);
        let answer = call.variable("GIT_INDEX_FILE", &folder.path().join("index").to_string_lossy()).run()?;
        Ok(!answer.is_success() && answer.error_lines().iter().any(|line| line == path))
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
    pub(super) fn ledger_objects(&self) -> ObjectStore {
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
    pub(crate) fn insist_on_git(&self) -> Result<(), Error> {
        self.environment.git().map(drop).map_err(Error::NoGit)
    }

    /// The environment for git calls.
    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// A call of git in this work tree.
    pub(super) fn call(&self, arguments: &[&str]) -> Call {
        Call::new(&self.environment, self.work_dir.as_deref().unwrap_or(&self.git_dir), arguments)
    }
}

/// gix reads only the repository's own settings; whatever it needs from the environment comes from us.
fn options() -> gix::open::Options {
    gix::open::Options::isolated()
}

fn find(start: &Path, environment: &Environment) -> Result<gix::Repository, String> {
    let ceilings = environment.variable("GIT_CEILING_DIRECTORIES").map(env::split_paths);
    let search = gix::discover::upwards::Options {
        ceiling_dirs: ceilings.into_iter().flatten().filter(|path| path.is_absolute()).collect(),
        match_ceiling_dir_or_error: false,
        ..Default::default()
    };
    let trust = gix::sec::trust::Mapping { full: options(), reduced: options() };
    let found = gix::ThreadSafeRepository::discover_opts(start, search, trust).map_err(|cause| cause.to_string())?;
    Ok(found.to_thread_local())
}

/// Explains why no repository was opened, from the first `.git` found upwards of `start`; git would not look past it.
fn explain(start: &Path, environment: &Environment, cause: &str) -> Error {
    if let Err(source) = fs::metadata(start) {
        return Error::Io { action: "open", path: start.to_owned(), source };
    }
    for folder in start.ancestors() {
        let candidate = folder.join(".git");
        match fs::symlink_metadata(&candidate) {
            Err(absent) if absent.kind() == io::ErrorKind::NotFound => {}
            Err(refused) => return Error::Unreadable { path: candidate, cause: refused.to_string() },
            Ok(_) => return explain_candidate(candidate, folder, environment, cause),
        }
    }
    Error::NoRepository { start: start.to_owned() }
}

/// gix could not open it. Report git's own message: that is the one users can search for.
fn explain_candidate(path: PathBuf, folder: &Path, environment: &Environment, cause: &str) -> Error {
    match Call::new(environment, folder, &["rev-parse", "--git-dir"]).run() {
        Ok(answer) if answer.is_success() => Error::Unsupported { path, what: format!("cannot be opened: {cause}") },
        Ok(answer) => match answer.error_line() {
            newer if newer.contains("repo version") || newer.contains("unknown repository") => {
                Error::Unsupported { path, what: format!("is of a newer kind: {newer}") }
            }
            error_line => Error::Unreadable { path, cause: error_line },
        },
        Err(_) => Error::Unreadable { path, cause: cause.to_owned() },
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

/// The contents of selected files.
pub(super) fn contents(
    store: &ObjectStore,
    files: Vec<(String, ObjectId)>,
    wanted: impl Fn(&str) -> Option<u64>,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let wanted = files.into_iter().filter_map(|(path, id)| Some((wanted(&path)?, path, id)));
    let content = |(largest, path, id): (u64, String, ObjectId)| match store.size(&id) {
        Some(size) if size > largest => Err(Error::TooLarge { path, size, largest }),
        _ => Ok((path, store.blob(&id)?)),
    };
    wanted.map(content).collect()
}

/// Another user's repository may have settings that run programs. Only git knows what `safe.directory` says in its many
/// configuration files.
fn check_trust(start: &Path, path: &Path, environment: &Environment) -> Result<(), Error> {
    match Call::new(environment, start, &["rev-parse", "--git-dir"]).run() {
        Ok(answer) if answer.is_success() => Ok(()),
        _ => Err(Error::UnsafeOwnership { path: path.to_owned() }),
    }
}

fn open_trusted(found: &gix::Repository) -> Result<gix::Repository, Error> {
    let path = found.workdir().unwrap_or(found.git_dir());
    let opened = options().with(gix::sec::Trust::Full).open(path);
    let opened = opened.map_err(|cause| Error::Unreadable { path: path.to_owned(), cause: cause.to_string() })?;
    Ok(opened.to_thread_local())
}

/// Like git, refuses a repository with an unknown extension.
fn check_format(git_dir: &Path, config: &gix::config::Snapshot<'_>) -> Result<(), Error> {
    let version = config.integer("core.repositoryFormatVersion").unwrap_or(0);
    if version > 1 {
        return Err(unsupported(git_dir, format!("has the format version {version}, which is newer than we know")));
    }
    let sections = config.plumbing().sections_by_name("extensions").into_iter().flatten();
    let mut names = sections.flat_map(|section| section.value_names().collect::<Vec<_>>());
    match names.find(|name| !KNOWN_EXTENSIONS.contains(&name.to_ascii_lowercase().as_str())) {
        Some(name) if version > 0 => {
            Err(unsupported(git_dir, format!("uses the extension {name:?}, which we do not know")))
        }
        _ => Ok(()),
    }
}

fn unsupported(git_dir: &Path, what: String) -> Error {
    Error::Unsupported { path: git_dir.to_owned(), what }
}

/// Resolves `..` where possible: a linked work tree names its common folder as `…/worktrees/x/../..`.
fn tidy(path: &Path) -> PathBuf {
    if path.components().any(|component| component == std::path::Component::ParentDir) {
        return fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    }
    path.to_owned()
}
