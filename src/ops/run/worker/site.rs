//! Where one order is carried out: a clone of the repository, and the engine that works there.
//!
//! ```text
//! workers/stores/REPOSITORY   what clients sent of a repository, shared by its clones
//! workers/orders/ID           git/, work/NAME/   the clone
//!                             order.json, facts.ndjson, turns, ready, sent, work.bundle, lock, endpoint.json
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::grant::Grant;
use crate::engine::rehearsal::Script;
use crate::engine::remote::frames::{Attached, Order};
use crate::engine::{Adapter, Engine, Fact};
use crate::env::{Env, lock, real};
use crate::git::{Repository, WorkTreeSnapshot, clone_folders};
use crate::model::{Attachment, EventKind, HostPattern, NetworkAccess, RunId, SkippedFile, Slug};
use crate::ops::ledger::journal::{aside, writer};
use crate::ops::run::clone_setup::{self, Own};
use crate::ops::run::hosts::{TURNS, count_turn, turns};
use crate::ops::run::snapshots;
use crate::ops::team::workspace::git_environment;
use crate::ops::team::{engines, sandbox, secrets};
use crate::ops::{Project, Workspace};
use crate::policy::Redactor;
use crate::settings::SandboxSettings;
use crate::store::TeamFolder;

/// The file with the commit that a client has taken last.
const SENT: &str = "sent";
/// The bundle of what no client has taken.
const RECOVERED: &str = "work.bundle";
/// The file that says that the clone is set up.
const READY: &str = "ready";
/// The folder for attached files.
const ATTACHED: &str = "attached";

pub(super) struct Site {
    env: Env,
    folder: PathBuf,
    pub(super) engine: Engine,
    pub(super) project: Project,
    repository: Repository,
    /// The project's root.
    pub(super) root: PathBuf,
    /// Of its snapshots.
    name: String,
    redactor: Redactor,
    pub(super) grant: Arc<Grant>,
    /// What is to be told of the set-up.
    prepared: Mutex<Option<Fact>>,
    /// The hosts beyond which its own configuration lets nobody's programs reach; `None`: it names none.
    limits: Option<Vec<HostPattern>>,
    state: Mutex<State>,
    _own: Own,
}

struct State {
    base: String,
    /// The number of snapshots.
    count: usize,
    last: Option<WorkTreeSnapshot>,
    sent: Sent,
    left_out: Vec<SkippedFile>,
}

/// What the client has of the agent's work.
enum Sent {
    Nothing,
    /// It was sent something by a process that is gone.
    Unknown,
    Commit(String),
}

/// Changes for the client.
pub(super) struct Changes {
    pub(super) commit: String,
    pub(super) bundle: NamedTempFile,
    /// What stays here, if that has not been said.
    pub(super) left_out: Vec<SkippedFile>,
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The folder of all orders and of what they need.
pub(super) fn workers_folder(env: &Env) -> Result<PathBuf, String> {
    Ok(sandbox::state_folder(env).ok_or("squad has no folder of its own: HOME is not set")?.join("workers"))
}

/// What is here of an order's repository.
pub(super) fn store(env: &Env, order: &Order) -> Result<Repository, String> {
    let is_plain = |name: &str| !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric());
    if !is_plain(&order.repository) || !["sha1", "sha256"].contains(&&*order.format) {
        return Err("it names no repository".to_owned());
    }
    let folder = workers_folder(env)?.join("stores");
    fs::create_dir_all(&folder).map_err(text)?;
    let folder = real(&folder).join(&order.repository);
    // One at a time: others may be about to make it.
    let _lock = locked(&folder)?;
    Repository::store_at(&folder, &order.format, &git_environment(env, &env.directory)).map_err(text)
}

fn locked(store: &Path) -> Result<fs::File, String> {
    let file = lock::open(&store.with_extension("lock")).map_err(text)?;
    lock::wait(&file, &|_| {}).map_err(text)?;
    Ok(file)
}

impl Site {
    /// Makes the clone ready and starts the engine there.
    pub(super) async fn prepare(env: &Env, folder: &Path, order: &Order, store: Repository) -> Result<Self, String> {
        let run = RunId::parse(&order.run).ok_or("its run has no valid id")?;
        let agent = Slug::fold(&order.agent).ok_or("its agent has no valid name")?;
        let grant = Arc::new(Grant::of(env, order)?);
        let (own, at, given) = (env.clone(), folder.to_owned(), order.clone());
        let cloned = aside(env.threads, move || clone(&own, &at, &given, &store)).await??;
        let (repository, mut project, source) = cloned;
        let settings = &mut project.settings.sandbox;
        // What its own configuration says holds here, too.
        settings.level = settings.level.min(order.sandbox);
        settings.require |= order.requires_sandbox;
        let limits = tighten(settings, order)?;
        let readable = [real(&source), folder.join(ATTACHED)];
        let bounds = sandbox::of_run(env, &project, &readable).map_err(|failure| failure.message)?;
        let turns = turns(&folder.join(TURNS));
        let script = order.script.as_deref().map(Script::parse).transpose()?;
        let script = script.map(|script| script.after(BTreeMap::from([(agent.clone(), turns)])));
        let mut bound = env.clone();
        grant.withhold(&mut bound.variables);
        let own = Own::new(env, &run, &agent);
        bound.variables.extend(own.variables.iter().cloned());
        let prepared: Mutex<Option<EventKind>> = Mutex::default();
        let ready = folder.join(READY);
        if !order.setup.is_empty() && !ready.exists() {
            let tell = |kind| drop(prepared.lock().replace(kind));
            let place = (&*project.folder.root, bounds.sandbox.as_ref());
            let (names, never) = (grant.names(), std::future::pending());
            let command = ("setup", &*order.setup, &*names);
            let whose = (&agent, place, &repository);
            let ended = clone_setup::set_up((&bound, &project, &run), whose, &own, command, &tell, never).await;
            if let Err(why) = ended {
                let mut why = Value::String(with_last_line(&why, prepared.into_inner().as_ref()));
                grant.hide(&mut why);
                return Err(format!("its clone is not ready: {}", why.as_str().unwrap_or_default()));
            }
            fs::write(&ready, "").map_err(text)?;
        }
        let prepared = Mutex::new(prepared.into_inner().and_then(as_fact));
        let startable = engines::startable(&bound, &project, &run, &order.engine, script, bounds.sandbox.as_ref());
        let startable = startable.with_variables(grant.names());
        let engine = startable.start().await.map_err(|error| error.with_hint())?;
        let name = format!("{}.{agent}", order.run);
        let count = repository.last_snapshot(&name).map_err(text)?;
        let base = repository.head().map_err(text)?.commit.ok_or("its clone has no commit")?;
        let sent = match repository.reference(&works(&name)).map_err(text)? {
            Some(_) => Sent::Unknown,
            None => Sent::Nothing,
        };
        let state = State { base, count, last: None, sent, left_out: Vec::new() };
        Ok(Self {
            // Their names may not tell what they are.
            redactor: secrets::redactor_with(env, &project.folder.root, grant.values().map(|value| ("SECRET", value))),
            grant: Arc::clone(&grant),
            prepared,
            limits,
            root: project.folder.root.clone(),
            env: env.clone(),
            folder: folder.to_owned(),
            engine,
            project,
            repository,
            name,
            state: Mutex::new(state),
            _own: own,
        })
    }

    /// What is to be told of the set-up, once.
    pub(super) fn prepared(&self) -> Option<Fact> {
        self.prepared.lock().take()
    }

    /// Why its programs may not reach a host, whatever the client's user says.
    pub(super) fn refuses(&self, place: &str) -> Option<String> {
        let limits = self.limits.as_ref()?;
        let is_listed = HostPattern::parse(place).is_ok_and(|place| limits.iter().any(|limit| limit.covers(&place)));
        (!is_listed).then(|| "the configuration of the machine that it works on does not list it".to_owned())
    }

    /// Sets the clone to another commit, unless it is there.
    pub(super) fn set_base(&self, base: &str) -> Result<(), String> {
        let mut state = self.state.lock();
        if state.base != base {
            let now = self.snapshot(&mut state)?;
            self.repository.set_clone(&now, base).map_err(text)?;
            base.clone_into(&mut state.base);
            (state.last, state.sent) = (None, Sent::Nothing);
            let _ = fs::remove_file(self.folder.join(SENT));
        }
        Ok(())
    }

    /// What the client does not have yet.
    pub(super) fn changes(&self) -> Result<Option<Changes>, String> {
        let mut state = self.state.lock();
        let now = self.snapshot(&mut state)?;
        let base = self.repository.snapshot_at(&state.base).map_err(text)?;
        let commit = now.commit();
        let is_known = match &state.sent {
            Sent::Nothing => now.has_tree_of(&base),
            Sent::Unknown => false,
            Sent::Commit(sent) => *sent == commit,
        };
        if is_known {
            return Ok(None);
        }
        let bundle = NamedTempFile::new().map_err(text)?;
        // What was sent was taken back: the client has that commit, and no bundle of nothing can be made.
        if commit != state.base {
            let reference = works(&self.name);
            self.repository.keep(&reference, &commit).map_err(text)?;
            self.repository.bundle(&reference, &[state.base.clone()], bundle.path()).map_err(text)?;
        }
        let mut left_out = now.left_out();
        left_out.retain(|file| !state.left_out.contains(file));
        state.left_out.extend(left_out.iter().cloned());
        Ok(Some(Changes { commit, bundle, left_out }))
    }

    pub(super) fn sent(&self, commit: &str) {
        self.state.lock().sent = Sent::Commit(commit.to_owned());
        // Without the file, it is taken for what nobody has.
        let _ = fs::write(self.folder.join(SENT), commit);
    }

    /// Writes a bundle of what no client has, and names the ref in it.
    pub(super) fn recover(&self) -> Result<Option<(PathBuf, String)>, String> {
        let mut state = self.state.lock();
        let now = self.snapshot(&mut state)?;
        let sent = fs::read_to_string(self.folder.join(SENT)).ok().filter(|sent| self.repository.has_commit(sent));
        let known = self.repository.snapshot_at(sent.as_ref().unwrap_or(&state.base)).map_err(text)?;
        if now.has_tree_of(&known) || now.commit() == state.base {
            return Ok(None);
        }
        let (reference, file) = (works(&self.name), self.folder.join(RECOVERED));
        self.repository.keep(&reference, &now.commit()).map_err(text)?;
        self.repository.bundle(&reference, &[state.base.clone()], &file).map_err(text)?;
        Ok(Some((file, reference)))
    }

    fn snapshot(&self, state: &mut State) -> Result<WorkTreeSnapshot, String> {
        state.count += 1;
        let objection = |bytes: &[u8]| snapshots::objection(&self.redactor, bytes);
        let (name, at) = ((&*self.name, state.count), self.env.clock.now());
        let taken = self.repository.take_snapshot(name, state.last.as_ref(), objection, &writer(), at);
        let taken = taken.map_err(text)?;
        state.last = Some(taken.clone());
        Ok(taken)
    }

    /// Puts attached files where the agent can read them.
    pub(super) fn attach(&self, files: Vec<Attached>) -> Result<Vec<Attachment>, String> {
        let folder = self.folder.join(ATTACHED);
        let mut attachments = Vec::new();
        for (at, Attached { path, data }) in files.into_iter().enumerate() {
            let bytes = STANDARD.decode(data).map_err(text)?;
            let name = Path::new(&path).file_name().ok_or("an attached file has no name")?;
            let folder = folder.join(at.to_string());
            fs::create_dir_all(&folder).map_err(text)?;
            fs::write(folder.join(name), &bytes).map_err(text)?;
            let (path, hash) = (folder.join(name).display().to_string(), blake3::hash(&bytes).to_hex().to_string());
            attachments.push(Attachment { path, hash, bytes: bytes.len() as u64 });
        }
        Ok(attachments)
    }

    /// Counts a completed turn.
    pub(super) fn completed(&self) {
        count_turn(&self.folder.join(TURNS));
    }

    pub(super) async fn stop(self) {
        self.engine.stop().await;
    }
}

/// What of the network an order's programs reach is what the order says and this machine's own configuration leaves. Returns
/// the list of that, if it has one.
fn tighten(own: &mut SandboxSettings, order: &Order) -> Result<Option<Vec<HostPattern>>, String> {
    let is_bound = own.network == Some(NetworkAccess::Listed);
    let is_named = own.network.is_none() && !own.hosts.is_empty();
    let limits = (is_bound || is_named).then(|| std::mem::take(&mut own.hosts));
    let read = |text: &String| HostPattern::parse(text).map_err(|why| format!("its list of hosts: `{text}` {why}"));
    let listed: Vec<HostPattern> = order.reachable.iter().map(read).collect::<Result<_, _>>()?;
    own.network = match order.network {
        _ if is_bound => own.network,
        Some(NetworkAccess::Open) if is_named => None,
        ordered => ordered,
    };
    own.hosts = match &limits {
        None => listed,
        Some(limits) => {
            let within = |list: &[HostPattern], all: &[HostPattern]| -> Vec<HostPattern> {
                list.iter().filter(|one| all.iter().any(|other| other.covers(one))).cloned().collect()
            };
            [within(&listed, limits), within(limits, &listed)].concat()
        }
    };
    Ok(limits)
}

/// How the set-up ended.
fn as_fact(kind: EventKind) -> Option<Fact> {
    match kind {
        EventKind::ClonePrepared { command, exit_code, reason, seconds, output, .. } => {
            Some(Fact::Prepared { command, exit_code, reason, seconds, output })
        }
        _ => None,
    }
}

/// Why the set-up failed, with the last that it said.
fn with_last_line(why: &str, ended: Option<&EventKind>) -> String {
    let output = match ended {
        Some(EventKind::ClonePrepared { output, .. }) => output.trim_end(),
        _ => "",
    };
    match output.lines().next_back() {
        Some(line) => format!("{why}: {line}"),
        None => why.to_owned(),
    }
}

/// The ref of what an agent's clone holds.
fn works(name: &str) -> String {
    format!("refs/squad/works/{name}")
}

/// Whether an order's clone was made.
pub(super) fn has_clone(folder: &Path, order: &Order) -> bool {
    let (git_dir, work_dir) = clone_folders(folder, &order.name);
    git_dir.is_dir() && work_dir.is_dir()
}

/// Makes the clone, or finds it as it is. Also returns where its objects are.
fn clone(
    env: &Env,
    folder: &Path,
    order: &Order,
    store: &Repository,
) -> Result<(Repository, Project, PathBuf), String> {
    let is_name = |name: &str| Path::new(name).file_name().is_some_and(|file| file == name);
    let is_inner = |path: &str| path.is_empty() || path.trim_end_matches('/').split('/').all(is_name);
    if !is_name(&order.name) || !is_inner(&order.inner) {
        return Err("it names no folder for the clone".to_owned());
    }
    let (git_dir, work_dir) = clone_folders(folder, &order.name);
    let clone = store.clone_at(&git_dir, &work_dir);
    if clone.is_made() {
        clone.reopen_clone(store).map_err(text)?;
    } else {
        let _lock = locked(store.git_dir())?;
        if let (Some(branch), Some(head)) = (&order.branch, &order.head) {
            // The user may have committed since the run began.
            let at = if store.has_commit(head) { head } else { &order.base };
            store.set_branch(branch, at).map_err(text)?;
        }
        clone.make_clone(store, &order.base, 1).map_err(text)?;
    }
    fs::create_dir_all(folder.join(ATTACHED)).map_err(text)?;
    let work_dir = real(&work_dir);
    let root = real(&work_dir.join(&order.inner));
    if !root.starts_with(&work_dir) {
        return Err("the project's folder is a link out of the clone".to_owned());
    }
    let workspace = Workspace { repository: clone.clone(), folder: TeamFolder::of(&root), work_dir };
    Ok((clone, Project::of_workspace(env, workspace), store.common_dir().to_owned()))
}
