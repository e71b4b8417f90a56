//! A clone for each agent of a run, and the commits of what they did there.
//!
//! ```text
//! start ─→ clone of ada ─ work ─→ commit ─┐
//!       ─→ clone of bob ─ work ─→ commit ─┴→ merged, in the plan's order ─→ clones of the next step …
//! ```
//!
//! Where some agents work in the project, what is done there is merged in after each step, as work of no agent. Work that
//! conflicts is set aside, until its agent has resolved that: then its commit names the one in whose place it stands.
//!
//! All commits are refs below `refs/squad/runs`: an agent's last work as `RUN/AGENT`, the merged work as `RUN_merged/N`,
//! and as `RUN_aside/N` what conflicts with it. The user's work tree, index and branches are not touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::engine::rehearsal::Script;
use crate::engine::remote::Allowance;
use crate::engine::remote::frames::{BudgetLease, Order, PROTOCOL};
use crate::engine::{EngineKind, remote};
use crate::env::files::{Measured, measure, remove_tree, replace};
use crate::env::{Env, real};
use crate::error::Failure;
use crate::git::{ClonedWork, Error, MergedWork, Repository, RunCommit, WorkTreeSnapshot, clone_folders};
use crate::model::{
    Content, EventKind, IntoMap, IntoSet, Member, Outcome, Plan, PlanKind, Position, RunId, SkippedFile, Slug, Sort,
    seconds,
};
use crate::ops::Project;
use crate::ops::ledger::journal::{aside, writer};
use crate::ops::run::clone_setup::{self, Own, READY};
use crate::ops::run::hosts::{self, CloneMirror, Hosts, RemoteMailbox, Slot};
use crate::ops::run::lease::{Leases, RunFiles};
use crate::ops::run::snapshots::RunSnapshots;
use crate::ops::team::engines;
use crate::ops::team::sandbox::{self, Bounds};
use crate::policy::Redactor;
use crate::pool::{
    Budget, Cancel, Engines, FoundPlace, Hooks, Permits, Place, Places, Reports, SessionPool, Work, WorkTree,
};
use crate::sandbox::Sandbox;
use crate::settings::{Isolation, Origin};

/// Where the refs of all runs are.
pub(in crate::ops) const REFS: &str = "refs/squad/runs/";
/// The folder of clones in squad's own.
const FOLDER: &str = "clones";
/// Characters of the name of a repository's folder there.
const KEY: usize = 12;
/// The file in it that names the repository.
const OWNER: &str = "repository";
/// The file with the name of the home of a clone's engines.
const HOME: &str = "home";

/// The file with the name of the host that an agent works on, after those, a line each, that it was given up on and whose
/// work there was not taken back.
const HOST: &str = "host";
/// The file with the commit that a clone was at when its agent went to another host, and what had come from the one before
/// on top of it.
const CARRIED: &str = "carried";

/// Stands for an agent where the work of all is checked.
pub(super) const CHECK: &str = "squad-check";

/// The file that names the work whose conflicts an agent resolves in its clone.
const CONFLICT: &str = "conflict.json";
/// The trailer of a commit that stands in place of work that was set aside.
const RESOLVES: &str = "Squad-Resolves: ";

/// What the clones of a run are made of.
pub(super) struct Basis {
    pub(super) env: Env,
    /// The user's.
    pub(super) project: Project,
    pub(super) run: RunId,
    pub(super) files: RunFiles,
    pub(super) script: Option<Script>,
    /// Files that agents may read wherever they are.
    pub(super) attached: Vec<PathBuf>,
    pub(super) redactor: Redactor,
    pub(super) hooks: Hooks,
    pub(super) permits: Arc<Permits>,
    pub(super) reports: Reports,
    pub(super) cancel: Cancel,
    /// The project's, whose first snapshot is the start.
    pub(super) tree: Arc<WorkTree>,
    pub(super) hosts: Arc<Hosts>,
    pub(super) budget: Arc<Budget>,
    /// Who works in clones.
    pub(super) cloned: BTreeSet<Slug>,
}

pub(in crate::ops) struct Clones {
    basis: Arc<Basis>,
    /// Of this run.
    folder: PathBuf,
    /// Each agent's, once it is made. Its lock is held while it is.
    made: Mutex<BTreeMap<Slug, Arc<tokio::sync::Mutex<Option<Made>>>>>,
    /// One copy for each that is being made.
    making: Arc<()>,
    /// Agents of the project that have to see, or go on with, what is in clones.
    joined: Mutex<BTreeSet<Slug>>,
    /// What work is merged with, if that is not what the run has merged so far.
    onto: Mutex<Option<String>>,
    /// Snapshots of an earlier process have been looked for.
    is_looked_at: Mutex<bool>,
    /// Whose work could not be committed, and why.
    uncommitted: Mutex<BTreeMap<Slug, String>>,
    /// Tasks that look for hosts that agents were given up on.
    looking: Mutex<JoinSet<()>>,
}

struct Made {
    repository: Repository,
    place: Arc<Place>,
    /// Where its agent works, if not here; `None` between two tasks, too.
    slot: Option<Slot>,
    own: Own,
}

/// An agent's work, as it was committed.
struct Committed {
    reference: String,
    work: ClonedWork,
    conflicts: Vec<String>,
}

/// Work that conflicts with what others did, in its agent's clone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OpenConflict {
    /// The agent's work, and what it is merged with.
    pub(super) work: String,
    pub(super) onto: String,
    /// Both, as its agent got it.
    both: String,
    /// The files in conflict.
    pub(super) paths: Vec<String>,
    /// Those that are to stay as they are, by their agent's word.
    #[serde(default)]
    kept: BTreeSet<String>,
}

/// The folder of a repository's clones; `None`: squad has no folder of its own.
fn folder_of(env: &Env, repository: &Repository) -> Option<PathBuf> {
    let all = sandbox::state_folder(env)?.join(FOLDER);
    let key = blake3::hash(repository.common_dir().as_os_str().as_encoded_bytes()).to_hex();
    let own = all.join(&key[..KEY]);
    let Some(known) = key_in(&repository.own_folder()).map(|key| all.join(key)) else { return Some(own) };
    let is_its = fs::read_to_string(known.join(OWNER)).is_ok_and(|owner| {
        // It was moved, unless this is a copy of the one whose they are.
        let is_there = || key_in(&Path::new(&owner).join("squad")).is_some_and(|key| known.ends_with(key));
        owner == owner_line(repository) || !is_there()
    });
    Some(if is_its { known } else { own })
}

fn owner_line(repository: &Repository) -> String {
    std::path::absolute(repository.common_dir()).unwrap_or_default().display().to_string()
}

/// The name of the folder of clones, by what is noted in a repository.
fn key_in(own_folder: &Path) -> Option<String> {
    let key = fs::read_to_string(own_folder.join(FOLDER)).ok()?;
    (key.len() == KEY && key.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(key)
}

/// Notes in a repository and in the folder of its clones that they belong together, so that they are found when it is moved.
fn note_owner(repository: &Repository, folder: &Path) -> std::io::Result<()> {
    replace(&folder.join(OWNER), owner_line(repository).as_bytes())?;
    let key = folder.file_name().unwrap_or_default();
    replace(&repository.own_folder().join(FOLDER), key.as_encoded_bytes())
}

/// The folder of a run's clones.
pub(super) fn folder_of_run(env: &Env, repository: &Repository, run: &RunId) -> Option<PathBuf> {
    Some(folder_of(env, repository)?.join(run.as_str()))
}

/// What bounds programs to a clone.
pub(super) fn bounds(
    (env, project): (&Env, &Project),
    clone: &Project,
    attached: &[PathBuf],
    report: impl FnOnce(&Bounds),
) -> Result<Option<Sandbox>, String> {
    // The objects that the clone reads are there.
    let source = [&*project.work_dir, project.repository.common_dir()].map(real);
    let readable: Vec<PathBuf> = attached.iter().cloned().chain(source).collect();
    let bounds = sandbox::of_run(env, clone, &readable).map_err(|failure| failure.message)?;
    report(&bounds);
    // What git ignores there is no business of those that work here.
    let hidden = sandbox::ignored_environment_files(project)?;
    Ok(bounds.sandbox.map(|sandbox| sandbox.hiding(hidden)))
}

/// An agent's clone, as it lies there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CloneStatus {
    pub(crate) run: RunId,
    pub(crate) agent: String,
    pub(crate) directory: String,
    #[serde(flatten)]
    pub(crate) size: Measured,
    /// Work of its agent is on no branch.
    pub(crate) unmerged: bool,
    /// An agent can begin in it: it is set up, or on another machine.
    pub(crate) ready: bool,
}

/// The clones of a repository. Of each, at most that many files are counted.
/// `left`: work that is on no branch.
pub(in crate::ops) fn list(
    (env, repository): (&Env, &Repository),
    left: &BTreeMap<RunId, Option<BTreeSet<Slug>>>,
    most: usize,
) -> Vec<CloneStatus> {
    let mut found = Vec::new();
    for (run, folder) in runs(env, repository) {
        for (agent, place) in agents(&folder) {
            let is_of_agent = |left: &BTreeSet<Slug>| left.iter().any(|other| other.as_str() == agent);
            let unmerged = left.get(&run).is_some_and(|left| left.as_ref().is_none_or(is_of_agent));
            let directory = work_dir(&place).unwrap_or_else(|| place.clone()).display().to_string();
            let ready = [READY, HOST].iter().any(|name| place.join(name).exists());
            let size = measure([place], most);
            found.push(CloneStatus { run: run.clone(), agent, directory, size, unmerged, ready });
        }
    }
    found
}

fn runs(env: &Env, repository: &Repository) -> Vec<(RunId, PathBuf)> {
    let folder = folder_of(env, repository);
    let entries = folder.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let run = |entry: fs::DirEntry| Some((RunId::parse(entry.file_name().to_str()?)?, entry.path()));
    let mut found: Vec<_> = entries.filter_map(run).collect();
    found.sort();
    found
}

fn agents(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect();
    found.sort();
    found
}

/// The lines of a file; none if there is no file.
fn names(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The one folder in the place's folder for it.
fn work_dir(place: &Path) -> Option<PathBuf> {
    fs::read_dir(place.join("work")).ok()?.flatten().next().map(|entry| entry.path())
}

/// The agents whose work is on no branch, for each run that has such work. `None`: that cannot be told.
pub(in crate::ops) fn unmerged(repository: &Repository) -> Result<BTreeMap<RunId, Option<BTreeSet<Slug>>>, Error> {
    let run = |name: &String| {
        let folder = name.strip_prefix(REFS)?.split_once('/')?.0;
        RunId::parse(["_merged", "_aside"].iter().find_map(|kind| folder.strip_suffix(kind))?)
    };
    let runs: BTreeSet<RunId> = repository.references_below(REFS)?.iter().filter_map(run).into_set();
    let all: Vec<(RunId, Option<Vec<AgentWork>>)> =
        runs.into_iter().map(|run| (run.clone(), works(repository, &run).ok())).collect();
    let head = repository.head()?.commit;
    let delivered = match head {
        Some(_) => Delivered::on(
            repository,
            &["HEAD", "--branches"],
            all.iter().filter_map(|(_, works)| works.as_ref()).flatten(),
        )?,
        None => Delivered::default(),
    };
    let is_left = |work: &AgentWork| {
        let is_same = |head: &String| repository.has_work(head, &work.work, (&writer(), Timestamp::UNIX_EPOCH));
        // What cannot be told counts as left.
        !delivered.has(work) && !head.as_ref().is_some_and(|head| is_same(head).unwrap_or(false))
    };
    let left = |works: Vec<AgentWork>| works.into_iter().filter(is_left).map(|work| work.agent).into_set();
    let left = all.into_iter().map(|(run, works)| (run, works.map(left)));
    Ok(left.filter(|(_, agents)| agents.as_ref().is_none_or(|agents: &BTreeSet<Slug>| !agents.is_empty())).into_map())
}

/// What commits have of runs' work, whether squad has merged it, or somebody by hand.
#[derive(Debug, Default)]
pub(in crate::ops) struct Delivered(Vec<RunCommit>);

impl Delivered {
    /// What these tips have of works.
    pub(in crate::ops) fn on<'w>(
        repository: &Repository,
        tips: &[&str],
        works: impl IntoIterator<Item = &'w AgentWork>,
    ) -> Result<Self, Error> {
        let bases: BTreeSet<&str> = works.into_iter().map(|work| work.work.base.as_str()).into_set();
        match bases.is_empty() {
            true => Ok(Self::default()),
            false => repository.commits_of_runs(&Vec::from_iter(bases), tips).map(Self),
        }
    }

    /// Whether a commit of them is this work, names it, or is it picked or rebased.
    pub(in crate::ops) fn has(&self, AgentWork { work, made, .. }: &AgentWork) -> bool {
        let names =
            |line: &str| line.trim().strip_prefix(WORK).and_then(|rest| rest.strip_prefix(": ")) == Some(&work.commit);
        let is_picked = |found: &RunCommit| found.at == made.at && found.message.starts_with(made.message.trim_end());
        let is_it =
            |found: &RunCommit| found.commit == work.commit || found.message.lines().any(names) || is_picked(found);
        self.0.iter().any(is_it)
    }

    /// The commits by which squad has merged a run, the newest first.
    pub(in crate::ops) fn merges(&self, run: &RunId) -> impl Iterator<Item = &str> {
        let mark = mark(run);
        let is_merge = move |found: &&RunCommit| found.message.lines().any(|line| line == mark);
        self.0.iter().filter(is_merge).map(|found| found.commit.as_str())
    }
}

/// The trailer of a message that names the commit of a work in it.
pub(in crate::ops) const WORK: &str = "Squad-Work";

/// The line of a merge's message by which it is recognized.
pub(in crate::ops) fn mark(run: &RunId) -> String {
    format!("Squad-Merge: {run}")
}

/// Removes the clones of ended runs, unless one holds what no commit has. Returns their number, their bytes and those
/// that stay, with the reason. `force`: removes those, too. `dry_run`: removes none.
pub(in crate::ops) fn clear(
    env: &Env,
    repository: &Repository,
    leases: &Leases,
    force: bool,
    dry_run: bool,
) -> (usize, u64, Vec<SkippedFile>) {
    let (mut count, mut bytes, mut kept) = (0, 0, Vec::new());
    let ended = runs(env, repository).into_iter().filter(|(run, _)| leases.status(run) != "running");
    for (_, folder) in ended {
        for (_, place) in agents(&folder) {
            let stays = |why: String| SkippedFile { path: place.display().to_string(), why };
            if let (false, Err(why)) = (force, is_committed(repository, &place)) {
                kept.push(stays(why));
                continue;
            }
            let size = measure([place.clone()], usize::MAX).bytes;
            if dry_run {
                (count, bytes) = (count + 1, bytes + size);
                continue;
            }
            let home = fs::read_to_string(place.join(HOME)).unwrap_or_default();
            match remove_tree(&place) {
                Ok(()) => (count, bytes) = (count + 1, bytes + size),
                // What stays is tried again by the next call.
                Err(error) => kept.push(stays(error.to_string())),
            }
            if !home.is_empty() && home.chars().all(|character| character.is_ascii_hexdigit()) {
                let _ = fs::remove_dir_all(repository.own_folder().join("homes").join(home));
            }
        }
        if !dry_run {
            let _ = fs::remove_dir(folder);
        }
    }
    (count, bytes, kept)
}

/// Fails with the reason if a clone holds what no commit has.
fn is_committed(repository: &Repository, place: &Path) -> Result<(), String> {
    let Some(work_dir) = work_dir(place) else { return Ok(()) };
    let clone = repository.clone_at(&place.join("git"), &work_dir);
    if !clone.is_made() {
        return Ok(());
    }
    match clone.has_changes() {
        Ok(false) => Ok(()),
        Ok(true) => Err("it holds changes that are not committed".to_owned()),
        Err(error) => Err(format!("squad cannot tell what it holds: {error}")),
    }
}

/// The agents of a team that work in clones in a run with this plan.
pub(super) fn cloned(project: &Project, plan: &Plan) -> BTreeSet<Slug> {
    let (settings, team) = (&project.settings, &project.team);
    let planned = plan.agents.iter().chain(plan.reviewers()).filter_map(|slug| team.member(slug));
    // Where some work on other machines, the others are in clones too, unless something else is said of them.
    let general = if hosts::is_any_away(settings, planned) { Isolation::Clone } else { settings.isolation.mode };
    let is_cloned = |member: &&Member| {
        let names = member.names();
        let mode = settings.isolation_of(&names, plan.tier).unwrap_or(general);
        mode == Isolation::Clone || settings.host_of(&names).is_some()
    };
    team.startable().filter(is_cloned).map(|member| member.slug.clone()).into_set()
}

/// Fails if those agents cannot work in clones of this project, or those in the project would not see their work.
pub(super) fn require(env: &Env, project: &Project, plan: &Plan, cloned: &BTreeSet<Slug>) -> Result<(), Failure> {
    let is_cloned = |agent: &Slug| cloned.contains(agent);
    // Whoever is chosen or asked for help later fails by itself, unless all have to.
    let all = || !cloned.is_empty() && project.team.startable().all(|member| is_cloned(&member.slug));
    let is_needed = match plan.kind {
        PlanKind::Abstain => all(),
        PlanKind::Agents | PlanKind::Direct => plan.agents.iter().chain(plan.reviewers()).any(is_cloned),
    };
    if !is_needed {
        return Ok(());
    }
    let refused = |why: String| Failure::team(format!("agents cannot work in clones: {why}"));
    if folder_of(env, &project.repository).is_none() {
        return Err(refused("squad has no folder for them".to_owned()).hint("set HOME, or XDG_STATE_HOME"));
    }
    let within = [&*project.work_dir, project.repository.common_dir()].map(real);
    let folder = folder_of(env, &project.repository).map(|folder| real(&folder)).unwrap_or_default();
    if within.iter().any(|place| folder.starts_with(place)) {
        let why = format!("{} is in the project, so each clone would have the others", folder.display());
        return Err(refused(why).hint("set XDG_STATE_HOME to a folder elsewhere"));
    }
    if let Some(reason) = project.repository.obstacle_to_clones() {
        return Err(refused(reason.to_owned()).hint("leave out `--isolation clone`: they work in the project then"));
    }
    let is_number = |slug: &&Slug| slug.as_str().chars().all(|character| character.is_ascii_digit());
    if let Some(slug) = cloned.iter().find(is_number) {
        return Err(refused(format!("the agent `{slug}` is called as a snapshot is")).hint("rename it"));
    }
    require_order(plan, cloned)
}

/// Fails if an agent in the project comes after one in a clone: squad brings nothing from a clone to the user's work tree
/// by itself. Whoever only reviews or talks is given a clone.
fn require_order(plan: &Plan, cloned: &BTreeSet<Slug>) -> Result<(), Failure> {
    let mut earlier: Option<&Slug> = None;
    for (number, agents) in (1..).zip(&plan.steps) {
        let mut workers = agents.iter().filter(|agent| plan.ceremony(number).is_none() && !plan.is_reviewer(agent));
        if let (Some(before), Some(agent)) = (earlier, workers.clone().find(|agent| !cloned.contains(*agent))) {
            let message = format!("{agent} works in the project and after {before}, whose work stays in a clone");
            let hint = format!("set `agents.{agent}.isolation = \"clone\"`, or `--isolation` for all of them");
            return Err(Failure::team(message).hint(hint));
        }
        earlier = earlier.or_else(|| workers.find(|agent| cloned.contains(*agent)));
    }
    Ok(())
}

impl Clones {
    pub(super) fn new(basis: Basis) -> Result<Arc<Self>, String> {
        let folder = folder_of_run(&basis.env, &basis.project.repository, &basis.run)
            .ok_or("squad has no folder for clones: HOME is not set")?;
        let of_repository = folder.parent().unwrap_or(&folder);
        let made = fs::create_dir_all(&folder).and_then(|()| note_owner(&basis.project.repository, of_repository));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        if let Some(reason) = clone_setup::not_included(&basis.env, &basis.project) {
            basis.reports.tell(None, EventKind::SessionError { session: String::new(), reason });
        }
        Ok(Arc::new(Self {
            basis: Arc::new(basis),
            folder: real(&folder),
            made: Mutex::default(),
            making: Arc::default(),
            joined: Mutex::default(),
            onto: Mutex::default(),
            is_looked_at: Mutex::default(),
            uncommitted: Mutex::default(),
            looking: Mutex::default(),
        }))
    }

    /// Says which engines may write where the clones are, by the folders that their own sandboxes let their programs write.
    pub(super) fn name_writers<'e>(&self, engines: impl Iterator<Item = (&'e str, Vec<PathBuf>)>) {
        for (engine, folders) in engines {
            let Some(folder) = folders.iter().map(|folder| real(folder)).find(|folder| self.folder.starts_with(folder))
            else {
                continue;
            };
            let reason = format!(
                "the sandbox of {engine} lets its programs write all of {}, where the clones are, so its agents can change \
                 those of others; set XDG_STATE_HOME to a folder elsewhere",
                folder.display()
            );
            self.basis.reports.tell(None, EventKind::SessionError { session: String::new(), reason });
        }
    }

    /// Whether some agents of the team work in the project.
    pub(super) fn is_mixed(&self) -> bool {
        self.basis.project.team.startable().any(|member| !self.basis.cloned.contains(&member.slug))
    }

    /// Whether an agent works in a clone.
    pub(super) fn is_for(&self, agent: &Slug) -> bool {
        let is_made = || {
            let (git_dir, work_dir) = self.folders(agent);
            self.basis.project.repository.clone_at(&git_dir, &work_dir).is_made()
        };
        self.basis.cloned.contains(agent) || self.joined.lock().contains(agent) || is_made()
    }

    /// Whether agents have worked in clones so far, and not all in the project.
    pub(super) fn is_used(&self) -> bool {
        agents(&self.folder).iter().any(|(agent, _)| agent != CHECK)
    }

    /// From now on, the agent works in a clone.
    pub(super) fn join(&self, agent: &Slug) {
        self.joined.lock().insert(agent.clone());
    }

    /// Fails if a plan that was made in the run cannot be carried out.
    pub(super) fn require_order(&self, plan: &Plan) -> Result<(), Failure> {
        require_order(plan, &self.basis.cloned)
    }

    /// The project's root in an agent's clone, whether or not that is made.
    pub(super) fn root(&self, agent: &Slug) -> String {
        let (_, work_dir) = self.folders(agent);
        let inner = self.basis.project.path_in_repository();
        work_dir.join(inner.trim_end_matches('/')).display().to_string().trim_end_matches('/').to_owned()
    }

    fn folders(&self, agent: &Slug) -> (PathBuf, PathBuf) {
        let place = self.folder.join(agent.as_str());
        // The project may have had another name when it was made.
        let made = work_dir(&place).unwrap_or_else(|| self.basis.project.work_dir.clone());
        clone_folders(&place, made.file_name().and_then(|name| name.to_str()).unwrap_or("project"))
    }

    fn slot(&self, agent: &Slug) -> Arc<tokio::sync::Mutex<Option<Made>>> {
        Arc::clone(self.made.lock().entry(agent.clone()).or_default())
    }

    /// An agent's clone as it is, or a new one of what is merged so far.
    async fn open(&self, agent: &Slug) -> Result<Made, String> {
        let (making, tip) = (Arc::clone(&self.making), self.tip().await?);
        let (git_dir, work_dir) = self.folders(agent);
        let repository = self.basis.project.repository.clone_at(&git_dir, &work_dir);
        if let Some(reason) = self.basis.project.repository.obstacle_to_clones() {
            return Err(format!("agents cannot work in clones: {reason}"));
        }
        if !repository.is_made() {
            self.basis.reports.tell(Some(agent), EventKind::ClonePreparing { command: String::new() });
        }
        let asked = Instant::now();
        let (basis, made, at) = (Arc::clone(&self.basis), repository.clone(), tip.clone());
        let is_new = aside(self.basis.env.threads, move || {
            if made.is_made() {
                return made.reopen_clone(&basis.project.repository).map(|()| false);
            }
            made.make_clone(&basis.project.repository, &at, Arc::strong_count(&making) - 1).map(|()| true)
        });
        let is_new = is_new.await?.map_err(|error| format!("its clone cannot be made: {error}"))?;
        let ready = self.folder.join(agent.as_str()).join(READY);
        if is_new {
            // Somebody may have removed the one that was.
            let _ = fs::remove_file(&ready);
            let directory = work_dir.display().to_string();
            let created = EventKind::CloneCreated { directory, commit: tip, seconds: seconds(asked.elapsed()) };
            self.basis.reports.tell(Some(agent), created);
            if let Some(why) = self.basis.project.repository.obstacle_to_history().map_err(|error| error.to_string())? {
                let reason = format!("git cannot read all of the history in the clone of {agent}: {why}");
                self.basis.reports.tell(Some(agent), EventKind::SessionError { session: String::new(), reason });
            }
        }
        let (basis, agent, place) = (Arc::clone(&self.basis), agent.clone(), self.folder.join(agent.as_str()));
        // Both the set-up and the agent have it.
        let own = Own::new(&basis.env, &basis.run, &agent);
        let before = names(&place.join(HOST)).pop();
        let slot = self.host_slot(&agent).await?;
        let host = slot.as_ref().map(|slot| slot.host.clone());
        let is_moved = before.is_some() && before != host;
        let left = names(&place.join(HOST));
        let left: Vec<String> = left.into_iter().filter(|left| Some(left) != host.as_ref()).collect();
        let (name, clone) = (agent.clone(), repository.clone());
        let bind = move || basis.bind(&agent, &place, (repository, &work_dir), own, host.as_deref());
        let (mut made, base, agent) = aside(self.basis.env.threads, bind).await??;
        made.slot = slot;
        left.into_iter().for_each(|left| self.look_for(&name, &clone, left, None));
        if made.slot.is_none() && !ready.exists() {
            let Basis { env, project, run, reports, cancel, .. } = &*self.basis;
            let place = (Path::new(&made.place.project), made.place.pool.sandbox());
            let whose = (&agent, place, &made.repository);
            let tell = |kind| reports.tell(Some(&agent), kind);
            let prepared = clone_setup::prepare((env, project, run), whose, &made.own, &tell, cancel.clone()).await;
            let prepared = prepared.and_then(|()| fs::write(&ready, "").map_err(|error| error.to_string()));
            prepared.map_err(|why| format!("its clone is not ready: {why}"))?;
        }
        made.place.tree.begin_at(base, &agent).await;
        if is_moved {
            self.carry(&made, &self.folder.join(agent.as_str())).await?;
        }
        Ok(made)
    }

    /// Waits for a slot on a host of the agent's, the one where it worked before; `None`: it works here.
    async fn host_slot(&self, agent: &Slug) -> Result<Option<Slot>, String> {
        let Some(hosts) = hosts::hosts_of(&self.basis.project, agent)? else { return Ok(None) };
        let settings = &self.basis.project.settings;
        let before = names(&self.folder.join(agent.as_str()).join(HOST));
        let last = before.last().map(String::as_str);
        // Who asks for others has given that one up.
        let is_asked = matches!(settings.origin("isolation.host"), Origin::Flag(_));
        let hosts = match last {
            Some(last) if !is_asked || hosts.contains(&last) => vec![last],
            _ => hosts,
        };
        if let Some(gone) = hosts.iter().find(|host| !settings.hosts.contains_key(**host)) {
            let hint = "`--on HOST` lets it begin again on another one";
            return Err(format!("its work is on the host `{gone}`, which is not configured any more; {hint}"));
        }
        self.take_slot(agent, &hosts, &before).await.map(Some)
    }

    /// Waits for a slot on one of these hosts. `before`: the hosts that the agent was on.
    async fn take_slot(&self, agent: &Slug, hosts: &[&str], before: &[String]) -> Result<Slot, String> {
        // Another run may have all slots for hours.
        let mut cancel = self.basis.cancel.of(vec![agent.clone()]);
        let slot = tokio::select! {
            biased;
            () = cancel.wait() => return Err(cancel.reason().to_owned()),
            slot = self.basis.hosts.take(hosts) => slot,
        };
        if before.last() != Some(&slot.host) {
            let mut all: Vec<&str> = before.iter().map(String::as_str).filter(|host| **host != slot.host).collect();
            all.push(&slot.host);
            let file = self.folder.join(agent.as_str()).join(HOST);
            fs::write(&file, all.join("\n")).map_err(|error| format!("{}: {error}", file.display()))?;
            self.basis.reports.tell(Some(agent), EventKind::HostAssigned { host: slot.host.clone() });
        }
        Ok(slot)
    }

    /// Has an agent whose host is gone go on in the same clone with another host, if the configuration says so and there is
    /// one. What the one before had sent goes along.
    async fn go_elsewhere(&self, agent: &Slug, why: &str) -> Result<bool, String> {
        let (slot, place) = (self.slot(agent), self.folder.join(agent.as_str()));
        let (mut slot, before) = (slot.lock().await, names(&place.join(HOST)));
        let settings = &self.basis.project.settings;
        let (Some(made), Some(gone)) = (slot.as_mut(), before.last()) else { return Ok(false) };
        let warn = |reason: String| {
            self.basis.reports.tell(Some(agent), EventKind::SessionError { session: String::new(), reason });
        };
        if !settings.hosts.get(gone).is_some_and(|host| host.retries_elsewhere) {
            let run = &self.basis.run;
            warn(format!("`squad orchestrate --resume {run}` asks {gone} again, and with `--on HOST` another one"));
            return Ok(false);
        }
        let hosts = hosts::hosts_of(&self.basis.project, agent)?.unwrap_or_default();
        let hosts: Vec<&str> = hosts.into_iter().filter(|host| !before.iter().any(|before| before == host)).collect();
        if hosts.is_empty() {
            warn(format!("{gone} is gone, and no other host fits {agent}"));
            return Ok(false);
        }
        warn(format!("{why}; it begins again on {}", if let [host] = hosts[..] { host } else { "another host" }));
        self.carry(made, &place).await?;
        // Its worker's end is not known, so it keeps the slot there.
        let held = made.slot.take();
        made.place.pool.rest().await;
        self.look_for(agent, &made.repository, gone.clone(), held);
        let taken = self.take_slot(agent, &hosts, &before).await?;
        let (basis, clone, name) = (Arc::clone(&self.basis), made.repository.clone(), agent.clone());
        let (host, at) = (taken.host.clone(), place.clone());
        let bind = move || {
            let project = basis.project.moved_to(clone.clone(), clone.work_dir().unwrap_or(&at));
            basis.engines_on(&host, &name, &at, (&project, &clone))
        };
        let engines = aside(self.basis.env.threads, bind).await??;
        let pool = Arc::new(SessionPool::of_one_run(engines, Arc::clone(&self.basis.permits)));
        let Place { project, hooks, tree, .. } = &*made.place;
        let (project, hooks, tree) = (project.clone(), hooks.clone(), Arc::clone(tree));
        made.place = Arc::new(Place { project, hooks, pool, tree });
        made.slot = Some(taken);
        Ok(true)
    }

    /// Notes what a clone has on top of its commit, for the next host.
    async fn carry(&self, made: &Made, place: &Path) -> Result<(), String> {
        made.place.tree.snapshot().await.ok_or("no snapshot of the clone could be taken")?;
        let head = made.repository.head().map_err(|error| error.to_string())?.commit;
        let (Some(head), Some(now)) = (head, made.place.tree.last()) else { return Ok(()) };
        let file = place.join(CARRIED);
        fs::write(&file, format!("{head}\n{}\n", now.commit())).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Looks for a host that an agent was given up on, as long as the run lasts. Once it is there, its worker ends, and what
    /// it had changed is kept as a ref: the run goes on with what it got first.
    ///
    /// The move decides whose result is accepted, and not who ends first: whoever works now has decided, answered colleagues
    /// and been reviewed on top of what the first host had sent. A late result in its place would take back what others were
    /// told. Nothing of it is lost that way: it is a commit, which the run names.
    fn look_for(&self, agent: &Slug, clone: &Repository, host: String, held: Option<Slot>) {
        let (basis, place) = (Arc::clone(&self.basis), self.folder.join(agent.as_str()));
        let warn = {
            let (reports, agent) = (basis.reports.clone(), agent.clone());
            move |reason: String| {
                reports.tell(Some(&agent), EventKind::SessionError { session: String::new(), reason });
            }
        };
        let reference = format!("{REFS}{}_left/{agent}-{host}", basis.run);
        let repository = &basis.project.repository;
        let before = repository.reference(&reference).ok().flatten();
        let base = clone.head().ok().and_then(|head| head.commit).unwrap_or_default();
        let mirror = hosts::Left::of(repository, &reference, base);
        let carried = names(&place.join(CARRIED)).pop();
        let project = basis.project.moved_to(clone.clone(), clone.work_dir().unwrap_or(&place));
        let options = match basis.order_for(&host, agent, &place, (&project, clone)) {
            Ok(options) if options.mailbox.is_none() => {
                // An engine that needs no program: nobody works there any more.
                let engine = EngineKind::Rehearsal.name().to_owned();
                let (secrets, setup) = Default::default();
                let order = Order { engine, script: None, secrets, setup, ..options.order };
                remote::Options { mirror, order, allowance: Arc::new(()), ..options }
            }
            // The order of a batch host was withdrawn.
            Ok(_) => return,
            Err(why) => return warn(format!("what it did on {host} cannot be taken: {why}")),
        };
        let (name, repository) = (agent.clone(), repository.clone());
        let looking = async move {
            let _held = held;
            match remote::take_back(options).await {
                Ok(()) => {
                    let commit = repository.reference(&reference).ok().flatten();
                    let at = |commit: &str| repository.snapshot_at(commit).ok();
                    let known = carried.as_deref().and_then(at);
                    let is_new = |commit: &String| {
                        before.as_ref() != Some(commit)
                            && at(commit).is_some_and(|left| known.is_none_or(|known| !left.has_tree_of(&known)))
                    };
                    if let Some(commit) = commit.filter(is_new) {
                        warn(format!("{host} is there again; what {name} had done there is kept: `git show {commit}`"));
                    }
                    let left: Vec<String> = names(&place.join(HOST)).into_iter().filter(|it| *it != host).collect();
                    // It is asked again by the next one that takes the run up.
                    let _ = fs::write(place.join(HOST), left.join("\n"));
                }
                Err(error) => warn(format!("what {name} did on {host} cannot be taken: {error}")),
            }
        };
        self.looking.lock().spawn(looking);
    }

    /// Sets a clone to what is merged so far, unless its agent is at work there.
    async fn advance(&self, agent: &Slug, made: &mut Made) -> Result<(), String> {
        let tip = self.tip().await?;
        let head = made.repository.head().map_err(|error| error.to_string())?.commit;
        let is_committed = |made: &Made| {
            let (Some(head), Some(now)) = (&head, made.place.tree.last()) else { return false };
            made.repository.snapshot_at(head).is_ok_and(|base| base.has_tree_of(&now))
        };
        if head.as_ref() == Some(&tip) || !is_committed(made) {
            return Ok(());
        }
        let Some(now) = made.place.tree.last() else { return Ok(()) };
        let (repository, at) = (made.repository.clone(), tip.clone());
        let set = aside(self.basis.env.threads, move || repository.set_clone(&now, &at)).await?;
        set.map_err(|error| format!("its clone cannot be set to what the others did: {error}"))?;
        let base = made.repository.snapshot_at(&tip).map_err(|error| error.to_string())?;
        self.begin_again(agent, made, base).await
    }

    /// Puts work that is set aside, or that is given, into its agent's clone again, merged with all that the others did. Where both changed the
    /// same, the files have both sides. `None`: not here, as on another machine.
    pub(super) async fn reopen(&self, agent: &Slug, given: Option<&str>) -> Result<Option<OpenConflict>, String> {
        let failed = |error: Error| error.to_string();
        let (repository, run) = (&self.basis.project.repository, &self.basis.run);
        let place = self.folder.join(agent.as_str());
        let works = works(repository, run).map_err(failed)?;
        let left = set_aside(repository, run).map_err(failed)?;
        let is_it = |commit: &String| given.map_or_else(|| left.contains(commit), |given| given == commit);
        let of_agent = works.into_iter().rev().find(|it| it.agent == *agent && is_it(&it.work.commit));
        let Some(AgentWork { work, .. }) = of_agent.filter(|_| !place.join(HOST).exists()) else { return Ok(None) };
        let slot = self.slot(agent);
        let mut slot = slot.lock().await;
        if slot.is_none() {
            *slot = Some(self.open(agent).await?);
        }
        let (tip, Some(made)) = (self.tip().await?, &mut *slot) else { return Ok(None) };
        let committer = (&repository.identity().unwrap_or_else(writer), self.basis.env.clock.now());
        let reference = format!("{REFS}{run}_conflict/{agent}");
        let (both, paths) = repository.merge_with_conflicts(&reference, (&tip, &work), committer).map_err(failed)?;
        let conflict = OpenConflict { work: work.commit, onto: tip, both: both.clone(), paths, kept: BTreeSet::new() };
        self.note_conflict(agent, &conflict)?;
        let at = conflict.onto.clone();
        let clone = made.repository.clone();
        let threads = self.basis.env.threads;
        let kept = self.kept_in(agent, made, Some(&conflict.work)).await?;
        let set = aside(threads, move || clone.restore_clone(&at, &kept).and_then(|()| clone.show(&both))).await?;
        set.map_err(failed)?;
        let base = made.repository.snapshot_at(&conflict.onto).map_err(failed)?;
        self.begin_again(agent, made, base).await?;
        Ok(Some(conflict))
    }

    fn note_conflict(&self, agent: &Slug, conflict: &OpenConflict) -> Result<(), String> {
        let text = serde_json::to_string(conflict).map_err(|error| error.to_string())?;
        fs::write(self.folder.join(agent.as_str()).join(CONFLICT), text).map_err(|error| error.to_string())
    }

    /// Notes which files in conflict are to stay as they are, by an agent's report: a line `KEEP: path` for each.
    pub(super) fn keep(&self, agent: &Slug, mut conflict: OpenConflict, report: &str) -> Result<(), String> {
        let named = report.lines().filter_map(|line| line.trim().strip_prefix("KEEP:"));
        conflict.kept = named.map(|path| path.trim().trim_matches('`').to_owned()).into_set();
        self.note_conflict(agent, &conflict)
    }

    /// Leaves the conflicts of an agent unresolved: its clone is as it was.
    pub(super) async fn give_up(&self, agent: &Slug) -> Result<(), String> {
        let slot = self.slot(agent);
        let mut slot = slot.lock().await;
        match &mut *slot {
            Some(made) => self.close_conflict(agent, made).await,
            None => Ok(()),
        }
    }

    async fn close_conflict(&self, agent: &Slug, made: &mut Made) -> Result<(), String> {
        let Some(conflict) = self.conflict(agent) else { return Ok(()) };
        let kept = self.kept_in(agent, made, None).await?;
        let restored = made.repository.restore_clone(&conflict.work, &kept);
        let base = restored.and_then(|()| made.repository.snapshot_at(&conflict.work));
        self.begin_again(agent, made, base.map_err(|error| error.to_string())?).await?;
        fs::remove_file(self.folder.join(agent.as_str()).join(CONFLICT)).map_err(|error| error.to_string())
    }

    /// What stays in a clone whose files are set to others: what no commit has. Names what has changed since a commit.
    async fn kept_in(&self, agent: &Slug, made: &Made, since: Option<&str>) -> Result<Vec<String>, String> {
        made.place.tree.snapshot().await.ok_or("no snapshot of the clone could be taken")?;
        let Some(now) = made.place.tree.last() else { return Ok(Vec::new()) };
        let was = since.map(|commit| made.repository.snapshot_at(commit)).transpose();
        if was.map_err(|error| error.to_string())?.is_some_and(|was| !was.has_tree_of(&now)) {
            let commit = now.commit();
            let reason = format!("what has changed in the clone of {agent} since is set aside: `git show {commit}`");
            self.basis.reports.tell(Some(agent), EventKind::SessionError { session: String::new(), reason });
        }
        Ok(now.left_out().into_iter().map(|left| left.path).collect())
    }

    fn conflict(&self, agent: &Slug) -> Option<OpenConflict> {
        serde_json::from_slice(&fs::read(self.folder.join(agent.as_str()).join(CONFLICT)).ok()?).ok()
    }

    /// Counts what happens in a clone from now on from another commit.
    async fn begin_again(&self, agent: &Slug, made: &mut Made, base: WorkTreeSnapshot) -> Result<(), String> {
        let tree = self.basis.tree_of(agent, &self.folder.join(agent.as_str()), &made.repository)?;
        let Place { project, hooks, pool, .. } = &*made.place;
        let (project, hooks, pool) = (project.clone(), hooks.clone(), Arc::clone(pool));
        made.place = Arc::new(Place { project, hooks, pool, tree });
        made.place.tree.begin_at(base, agent).await;
        Ok(())
    }

    /// From now on, work is merged with this commit and what comes on top of it.
    pub(super) fn merge_onto(&self, commit: &str) {
        *self.onto.lock() = Some(commit.to_owned());
    }

    /// The commit of all that is merged so far, or of the start.
    async fn tip(&self) -> Result<String, String> {
        if let Some(onto) = self.onto.lock().clone() {
            return Ok(onto);
        }
        self.basis.tree.is_ready().await;
        let Basis { project, run, .. } = &*self.basis;
        let missing = || "the project's first snapshot could not be taken".to_owned();
        let merged = merged(&project.repository, run).map_err(|error| error.to_string())?;
        let start = || project.repository.first_snapshot(run.as_str());
        let start = if merged.is_empty() { start().map_err(|error| error.to_string())? } else { None };
        merged.into_iter().next_back().or(start).ok_or_else(missing)
    }

    /// Commits what these agents, and then others, left in their clones, and merges it in that order. Returns whose work
    /// conflicts, and is set aside.
    pub(super) async fn collect(&self, order: &[Slug]) -> Vec<Slug> {
        let is_whole = self.onto.lock().is_none();
        if is_whole
            && self.is_mixed()
            && let Err(reason) = self.take_in_project().await
        {
            let reason = format!("agents in clones do not see what was done in the project: {reason}");
            self.basis.reports.tell(None, EventKind::SessionError { session: String::new(), reason });
        }
        // Work that was handed on, also in a process that was killed.
        let others = agents(&self.folder).into_iter().map(|(agent, _)| agent).chain(self.seen_once());
        let others: BTreeSet<Slug> = others.filter_map(|agent| Slug::fold(&agent)).into_set();
        let others: Vec<Slug> = others.into_iter().filter(|agent| is_whole && !order.contains(agent)).collect();
        let mut conflicting = Vec::new();
        for agent in order.iter().chain(&others) {
            let collected = self.collect_from(agent).await;
            self.uncommitted.lock().remove(agent);
            match collected {
                Ok(true) => {}
                Ok(false) => conflicting.push(agent.clone()),
                Err(reason) => {
                    let reason = format!("what {agent} left in its clone could not be committed: {reason}");
                    self.uncommitted.lock().insert(agent.clone(), reason.clone());
                    self.basis.reports.tell(Some(agent), EventKind::SessionError { session: String::new(), reason });
                }
            }
        }
        conflicting
    }

    /// Work that is in no commit has failed: a resumed run commits it.
    pub(super) fn fail_uncommitted(&self, works: &mut [Work]) {
        for (agent, reason) in &*self.uncommitted.lock() {
            let last = works.iter_mut().rfind(|work| work.agent == *agent);
            if let Some(work) = last.filter(|work| work.outcome == Outcome::Completed) {
                (work.outcome, work.reason) = (Outcome::Failed, reason.clone());
            }
        }
    }

    /// Merges what was done in the project since the last time, so that those who work in clones from now on have it.
    async fn take_in_project(&self) -> Result<(), String> {
        self.basis.tree.snapshot().await.ok_or("no snapshot of it could be taken")?;
        let (tip, now) = (self.tip().await?, self.basis.tree.last());
        let (Some(now), basis) = (now, Arc::clone(&self.basis)) else { return Ok(()) };
        let taken = aside(self.basis.env.threads, move || basis.take_in_project(&tip, &now)).await?;
        match taken.map_err(|error| error.to_string())? {
            MergedWork::Merged { .. } => Ok(()),
            MergedWork::Conflict(paths) => Err(format!("it conflicts with theirs in {}", paths.join(", "))),
        }
    }

    /// Those of these agents whose work is set aside.
    pub(super) fn set_aside_of<'s>(&self, agents: impl Iterator<Item = &'s Slug>) -> Vec<Slug> {
        let (repository, run) = (&self.basis.project.repository, &self.basis.run);
        let (Ok(aside), Ok(works)) = (set_aside(repository, run), works(repository, run)) else { return Vec::new() };
        let is_aside = |agent: &&Slug| works.iter().any(|it| it.agent == **agent && aside.contains(&it.work.commit));
        agents.filter(is_aside).cloned().collect()
    }

    /// The agents of whose clones there are snapshots, the first time that they are asked for.
    fn seen_once(&self) -> Vec<String> {
        if std::mem::replace(&mut *self.is_looked_at.lock(), true) {
            return Vec::new();
        }
        let (repository, of_run) = (&self.basis.project.repository, format!("{REFS}{}.", self.basis.run));
        let names = repository.references_below(REFS).unwrap_or_default();
        let agent = |name: &String| Some(name.strip_prefix(&of_run)?.split_once('/')?.0.to_owned());
        names.iter().filter_map(agent).collect()
    }

    /// Why the work of an agent is in no commit, whose clone is gone.
    fn lost(&self, agent: &Slug) -> Option<String> {
        let (repository, run) = (&self.basis.project.repository, &self.basis.run);
        let has_work = works(repository, run).ok()?.iter().any(|work| work.agent == *agent);
        let name = format!("{run}.{agent}");
        let last = repository.last_snapshot(&name).ok().filter(|last| *last > 0 && !has_work)?;
        let last = repository.reference(&format!("{REFS}{name}/{last}")).ok().flatten()?;
        let start = repository.first_snapshot(run.as_str()).ok().flatten();
        // Its clone began as the start, or as what was merged by then.
        let began = merged(repository, run).unwrap_or_default().into_iter().chain(start);
        let after = repository.snapshot_at(&last).ok()?;
        let is_same = began.filter_map(|at| repository.snapshot_at(&at).ok()).any(|before| before.has_tree_of(&after));
        (!is_same).then(|| format!("its clone is gone; `git show {last}` has what it had done"))
    }

    /// An agent begins where its clone is ready, or on a host.
    fn has_begun(&self, agent: &Slug) -> bool {
        let place = self.folder.join(agent.as_str());
        place.join(READY).exists() || !names(&place.join(HOST)).is_empty()
    }

    /// `false`: it conflicts.
    async fn collect_from(&self, agent: &Slug) -> Result<bool, String> {
        let slot = self.slot(agent);
        let mut slot = slot.lock().await;
        let (git_dir, work_dir) = self.folders(agent);
        let made = match &*slot {
            Some(made) => made,
            // Of a process that was killed.
            None if self.basis.project.repository.clone_at(&git_dir, &work_dir).is_made() && self.has_begun(agent) => {
                let made = slot.insert(self.open(agent).await?);
                // Nobody works on its host now, and others may wait for the slot.
                made.slot = None;
                self.close_conflict(agent, made).await?;
                made
            }
            None => return self.lost(agent).map_or(Ok(true), Err),
        };
        made.place.tree.snapshot().await.ok_or("no snapshot of it could be taken")?;
        let Some(now) = made.place.tree.last() else { return Ok(true) };
        let conflict = self.conflict(agent);
        if let Some(conflict) = &conflict
            && !is_resolved(&self.basis.project.repository, conflict, &now).map_err(|error| error.to_string())?
        {
            return Ok(false);
        }
        // Its clone began without any.
        for SkippedFile { path, why } in now.left_out() {
            let reason = format!("{path} stays in the clone of {agent} and is in no commit: {why}");
            self.basis.reports.tell(Some(agent), EventKind::SessionError { session: String::new(), reason });
        }
        let tip = self.tip().await?;
        let (basis, name, repository) = (Arc::clone(&self.basis), agent.clone(), made.repository.clone());
        let resolves = conflict.as_ref().map(|conflict| conflict.work.clone());
        let commit = move || basis.commit((&name, &tip), &repository, &now, resolves.as_deref());
        let committed = aside(self.basis.env.threads, commit).await?.map_err(|error| error.to_string())?;
        let mut is_merged = true;
        if let Some(Committed { reference, work, conflicts }) = committed {
            is_merged = conflicts.is_empty();
            let committed = EventKind::CloneCommitted { reference, commit: work.commit.clone(), conflicts };
            self.basis.reports.record(Some(agent), committed).await?;
            made.repository.settle_clone(&work.commit).map_err(|error| error.to_string())?;
            if let Some(onto) = self.onto.lock().as_mut().filter(|_| is_merged) {
                *onto = work.commit;
            }
        }
        if conflict.is_some() {
            fs::remove_file(self.folder.join(agent.as_str()).join(CONFLICT)).map_err(|error| error.to_string())?;
        }
        Ok(is_merged)
    }

    /// The changed lines of these files, from the start to what is merged so far.
    pub(super) async fn diff(&self, paths: &[String]) -> Result<String, String> {
        let (repository, tip) = (&self.basis.project.repository, self.tip().await?);
        let read = || {
            let start = repository.first_snapshot(self.basis.run.as_str())?.unwrap_or_else(|| tip.clone());
            repository.diff_between(&repository.snapshot_at(&start)?, &repository.snapshot_at(&tip)?, paths)
        };
        read().map_err(|error| error.to_string())
    }

    /// The contents of these files in what is merged so far.
    pub(super) async fn contents(&self, paths: &[String]) -> Result<BTreeMap<String, Content>, String> {
        let (repository, tip) = (&self.basis.project.repository, self.tip().await?);
        let read = || repository.contents_of(&repository.snapshot_at(&tip)?, paths);
        read().map_err(|error| error.to_string())
    }

    /// Ends all engines. The clones stay, for people to look at, until `squad gc`.
    pub(super) async fn stop(&self) {
        let mut looking = std::mem::take(&mut *self.looking.lock());
        looking.shutdown().await;
        let made = std::mem::take(&mut *self.made.lock());
        for slot in made.into_values() {
            let Some(made) = slot.lock().await.take() else { continue };
            made.place.tree.close();
            if let Some(pool) = Arc::into_inner(made.place).and_then(|place| Arc::into_inner(place.pool)) {
                pool.stop().await;
            }
        }
    }
}

impl Basis {
    /// What an agent in this clone works with, and the snapshot that its work counts from.
    fn bind(
        &self,
        agent: &Slug,
        place: &Path,
        (repository, work_dir): (Repository, &Path),
        own: Own,
        host: Option<&str>,
    ) -> Result<(Made, WorkTreeSnapshot, Slug), String> {
        let project = self.project.moved_to(repository.clone(), work_dir);
        let whose = (&self.env, &self.project);
        let mut sandbox = bounds(whose, &project, &self.attached, |bounds| bounds.report(&self.reports))?;
        if host.is_none() {
            let (layered, said) = clone_setup::lay(&self.project, (place, &project.folder.root, &repository), sandbox)?;
            for reason in said {
                self.reports.tell(Some(agent), EventKind::SessionError { session: String::new(), reason });
            }
            sandbox = layered;
        }
        let engines = match host {
            Some(host) => self.engines_on(host, agent, place, (&project, &repository))?,
            None => self.engines_here(place, &project, &own, sandbox.as_ref())?,
        };
        let hooks = self.hooks.moved_to(&project.folder.root, sandbox.as_ref());
        let pool = Arc::new(SessionPool::of_one_run(engines, Arc::clone(&self.permits)));
        let tree = self.tree_of(agent, place, &repository)?;
        let base = repository.head().map_err(|error| error.to_string())?.commit.unwrap_or_default();
        let base = repository.snapshot_at(&base).map_err(|error| error.to_string())?;
        let project = project.folder.root.display().to_string();
        let place = Arc::new(Place { project, hooks, pool, tree });
        Ok((Made { repository, place, slot: None, own }, base, agent.clone()))
    }

    /// Engines on this machine, bound to the clone.
    fn engines_here(
        &self,
        place: &Path,
        project: &Project,
        own: &Own,
        sandbox: Option<&Sandbox>,
    ) -> Result<Engines, String> {
        fs::write(place.join(HOME), engines::home_name(project)).map_err(|error| error.to_string())?;
        let script = self.script.clone();
        let mut env = self.env.clone();
        env.variables.extend(own.variables.iter().cloned());
        Ok(engines::prepare_with(&env, project, &self.run, script, (&[], None), sandbox))
    }

    /// Engines on a host, which work in a clone that this one mirrors.
    fn engines_on(
        &self,
        host: &str,
        agent: &Slug,
        place: &Path,
        (project, clone): (&Project, &Repository),
    ) -> Result<Engines, String> {
        let options = self.order_for(host, agent, place, (project, clone))?;
        Ok(engines::on_host(project, |engine| remote::Options {
            order: Order { engine: engine.to_owned(), ..options.order.clone() },
            ..options.clone()
        }))
    }

    /// An agent's order for a host, which names no engine yet.
    fn order_for(
        &self,
        host: &str,
        agent: &Slug,
        place: &Path,
        (project, clone): (&Project, &Repository),
    ) -> Result<remote::Options, String> {
        let launch = hosts::launch(&self.env, &self.project.folder.root, &self.project.settings, host)?;
        let head = self.project.repository.head().map_err(|error| error.to_string())?;
        let name = project.work_dir.file_name().and_then(|name| name.to_str()).unwrap_or("project");
        let common = blake3::hash(self.project.repository.common_dir().as_os_str().as_encoded_bytes());
        let settings = &self.project.settings;
        let configured = settings.hosts.get(host);
        let order = Order {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            id: format!("{}-{agent}", self.run),
            client: String::new(),
            after: 0,
            repository: common.to_hex()[..16].to_owned(),
            format: clone.format(),
            branch: head.branch,
            head: head.commit,
            base: String::new(),
            name: name.to_owned(),
            inner: self.project.path_in_repository(),
            run: self.run.to_string(),
            agent: agent.to_string(),
            engine: String::new(),
            sandbox: settings.sandbox.level,
            requires_sandbox: settings.sandbox.require,
            network: settings.sandbox.network,
            reachable: settings.sandbox.hosts.iter().map(ToString::to_string).collect(),
            script: self.script.as_ref().map(|script| script.text.clone()),
            lease: configured.map_or(0, |host| host.lease.as_secs()),
            budget: None,
            secrets: configured.map(|host| host.secrets.clone()).unwrap_or_default(),
            setup: configured.map(|host| host.setup.clone()).unwrap_or_default(),
        };
        let is_batch = configured.is_some_and(|host| host.is_batch);
        let mailbox = is_batch.then(|| {
            let store = &self.project.repository;
            RemoteMailbox::of(&self.env, store, order.id.clone(), place)
        });
        let mailbox = mailbox.transpose()?;
        let root = project.folder.root.display().to_string();
        let references = ["sent", "work"].map(|kind| format!("{REFS}{}_{kind}/{agent}", self.run));
        let mirror = CloneMirror::of(&self.project.repository, clone, references, place.join(CARRIED));
        let allowance = Arc::new(AllowanceOf { budget: Arc::clone(&self.budget), agent: agent.clone() });
        Ok(remote::Options { launch, order, root, mirror, mailbox, allowance })
    }

    fn tree_of(&self, agent: &Slug, place: &Path, repository: &Repository) -> Result<Arc<WorkTree>, String> {
        let work_dir = repository.work_dir().unwrap_or(place);
        let project = self.project.moved_to(repository.clone(), work_dir);
        let name = format!("{}.{agent}", self.run);
        let taken = repository.last_snapshot(&name).map_err(|error| error.to_string())?;
        let (files, redactor) = (self.files.of_clone(place), self.redactor.clone());
        let source = RunSnapshots::new(&project, (&self.run, &files), taken, redactor, self.env.clock.clone());
        let source = Arc::new(source.of_clone(name, place.join(HOST).exists().then(|| agent.clone())));
        let prefix = self.project.path_in_repository();
        Ok(WorkTree::new(source, self.env.threads, prefix, self.reports.at(Position::FIRST)))
    }

    /// Commits and merges an agent's work. `None`: it changed nothing.
    fn commit(
        &self,
        (agent, tip): (&Slug, &str),
        clone: &Repository,
        now: &WorkTreeSnapshot,
        resolves: Option<&str>,
    ) -> Result<Option<Committed>, Error> {
        let (repository, run, at) = (&self.project.repository, &self.run, self.env.clock.now());
        let committer = repository.identity().unwrap_or_else(writer);
        let reference = format!("{REFS}{run}/{agent}");
        // Whoever takes the others' side of a conflict resolves it by changing nothing.
        let is_something = resolves.is_some();
        let resolves = resolves.map(|work| format!("{RESOLVES}{work}\n")).unwrap_or_default();
        let message = format!("work tree of run {run}.{agent}\n\nSquad-Run: {run}\nSquad-Agent: {agent}\n{resolves}");
        let work = clone.commit_clone((&reference, now), (&committer, at), &message, is_something)?;
        let Some(work) = work else { return Ok(None) };
        let merged = self.merge(tip, &work)?;
        let conflicts = match merged {
            MergedWork::Merged { .. } => Vec::new(),
            MergedWork::Conflict(paths) => {
                repository.set_aside(&self.next("aside")?, &work)?;
                paths
            }
        };
        Ok(Some(Committed { reference, work, conflicts }))
    }

    fn merge(&self, tip: &str, work: &ClonedWork) -> Result<MergedWork, Error> {
        let (repository, run, at) = (&self.project.repository, &self.run, self.env.clock.now());
        let committer = repository.identity().unwrap_or_else(writer);
        let message = format!("work tree of run {run}, merged\n\nSquad-Run: {run}\n");
        repository.merge_work(&self.next("merged")?, (tip, work), (&committer, at), &message)
    }

    /// The next ref of a kind.
    fn next(&self, kind: &str) -> Result<String, Error> {
        let name = format!("{}_{kind}", self.run);
        Ok(format!("{REFS}{name}/{}", self.project.repository.last_snapshot(&name)? + 1))
    }

    fn take_in_project(&self, tip: &str, now: &WorkTreeSnapshot) -> Result<MergedWork, Error> {
        let (repository, run) = (&self.project.repository, &self.run);
        let mut base = repository.first_snapshot(run.as_str())?;
        for commit in merged(repository, run)?.iter().rev() {
            // What is no agent's is the project's.
            let of_project = repository.cloned_work(commit)?.filter(|(_, made)| agent_of(&made.message).is_none());
            if let Some((taken, _)) = of_project {
                base = Some(taken.commit);
                break;
            }
        }
        let base = base.unwrap_or_else(|| tip.to_owned());
        if repository.snapshot_at(&base)?.has_tree_of(now) {
            return Ok(MergedWork::Merged { commit: tip.to_owned() });
        }
        self.merge(tip, &ClonedWork { base, commit: now.commit() })
    }
}

impl Clones {
    /// Gives an agent's host back: its worker there has nothing to do any more.
    async fn leave_host(&self, agent: &Slug) {
        let slot = self.slot(agent);
        let mut slot = slot.lock().await;
        let Some(made) = slot.as_mut().filter(|made| made.slot.is_some()) else { return };
        made.place.pool.rest().await;
        made.slot = None;
    }
}

impl Clones {
    /// An agent's clone, set to what is merged so far.
    pub(super) async fn clone_of(&self, agent: &Slug) -> Result<Arc<Place>, String> {
        let slot = self.slot(agent);
        let mut slot = slot.lock().await;
        match &mut *slot {
            Some(made) => {
                self.advance(agent, made).await?;
                if made.slot.is_none() {
                    made.slot = self.host_slot(agent).await?;
                }
            }
            None => {
                let mut made = self.open(agent).await?;
                // It may be there since an earlier step of a run that was killed.
                self.advance(agent, &mut made).await?;
                *slot = Some(made);
            }
        }
        let place = slot.as_ref().map(|made| Arc::clone(&made.place));
        place.ok_or_else(|| "its clone is gone".to_owned())
    }
}

/// An agent's part of the run's budgets.
struct AllowanceOf {
    budget: Arc<Budget>,
    agent: Slug,
}

impl Allowance for AllowanceOf {
    fn lease(&self) -> Option<BudgetLease> {
        self.budget.lease(&self.agent)
    }

    fn has_arrived(&self) {
        self.budget.has_lease(&self.agent);
    }
}

impl Places for Clones {
    fn place(&self, agent: &Slug) -> FoundPlace<'_> {
        let agent = agent.clone();
        Box::pin(async move {
            match self.is_for(&agent) {
                true => self.clone_of(&agent).await.map(Some),
                false => Ok(None),
            }
        })
    }

    fn move_away<'p>(
        &'p self,
        agent: &Slug,
        why: &str,
    ) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'p>> {
        let (agent, why) = (agent.clone(), why.to_owned());
        Box::pin(async move { self.go_elsewhere(&agent, &why).await })
    }

    fn leave(&self, agent: &Slug) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let agent = agent.clone();
        Box::pin(async move { self.leave_host(&agent).await })
    }
}

/// What an agent of a run did in its clone.
#[derive(Clone, Debug)]
pub(in crate::ops) struct AgentWork {
    pub(in crate::ops) agent: Slug,
    pub(in crate::ops) work: ClonedWork,
    made: Arc<RunCommit>,
}

/// What agents did in clones, in the order in which it is to be merged; last what was set aside. Empty: they worked in
/// the project, or changed nothing.
pub(in crate::ops) fn works(repository: &Repository, run: &RunId) -> Result<Vec<AgentWork>, Error> {
    let (mut works, mut resolved) = (Vec::new(), BTreeSet::new());
    for commit in merged(repository, run)?.into_iter().chain(set_aside(repository, run)?) {
        let Some((work, made)) = repository.cloned_work(&commit)? else { continue };
        let Some(agent) = agent_of(&made.message) else { continue };
        resolved.extend(made.message.lines().filter_map(|line| Some(line.strip_prefix(RESOLVES)?.to_owned())));
        works.push(AgentWork { agent, work, made: Arc::new(made) });
    }
    works.retain(|work: &AgentWork| !resolved.contains(&work.work.commit));
    Ok(works)
}

/// Whether nothing is left of a conflict: its agent changed each of the files, and no line that it added is a mark.
fn is_resolved(repository: &Repository, conflict: &OpenConflict, now: &WorkTreeSnapshot) -> Result<bool, Error> {
    let contents = |snapshot: &WorkTreeSnapshot| repository.contents_of(snapshot, &conflict.paths);
    let (both, now_there) = (contents(&repository.snapshot_at(&conflict.both)?)?, contents(now)?);
    // A folder in a file's place, a mode, a deletion: not all that conflicts has marks. Where there is no file, the one that
    // was there has another name, which is in conflict, too.
    let is_left = |path: &&String| both.get(*path).is_some_and(Option::is_some) && !conflict.kept.contains(*path);
    if conflict.paths.iter().filter(is_left).any(|path| both.get(path) == now_there.get(path)) {
        return Ok(false);
    }
    let onto = repository.snapshot_at(&conflict.onto)?;
    let changed: Vec<String> = repository.changed_between(&onto, now)?.into_iter().map(|change| change.path).collect();
    let added = repository.diff_between(&onto, now, &changed)?;
    Ok(!added.lines().any(|line| line.starts_with("+<<<<<<< ") || line.starts_with("+>>>>>>> ")))
}

/// The agent whose work a commit is, by its message.
fn agent_of(message: &str) -> Option<Slug> {
    message.lines().find_map(|line| line.strip_prefix("Squad-Agent: ")).and_then(Slug::fold)
}

/// The commits of a run's merged work, in order.
fn merged(repository: &Repository, run: &RunId) -> Result<Vec<String>, Error> {
    numbered(repository, &format!("{REFS}{run}_merged/"))
}

/// The commits of the work that was set aside, in order.
fn set_aside(repository: &Repository, run: &RunId) -> Result<Vec<String>, Error> {
    numbered(repository, &format!("{REFS}{run}_aside/"))
}

fn numbered(repository: &Repository, folder: &str) -> Result<Vec<String>, Error> {
    let mut names = repository.references_below(folder)?;
    names.stable_sort_by_key(|name| name.rsplit('/').next().and_then(|number| number.parse::<u64>().ok()));
    let commits = names.iter().map(|name| repository.reference(name)).collect::<Result<Vec<_>, _>>()?;
    Ok(commits.into_iter().flatten().collect())
}
