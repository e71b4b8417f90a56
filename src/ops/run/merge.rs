//! `squad merge`: brings what a run's agents did in their clones to the user's branch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tokio::task::JoinSet;

use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::git::{MergePlan, MergeTarget, MergedFile, WorkToMerge};
use crate::model::{
    ChangeKind, Event, EventKind, FileVerdicts, IntoSet, Outcome, Position, ProjectCheck, RunEnd, RunId, SkippedFile,
    Slug, Verdict, command_line, first_line, list, plural, printable_line,
};
use crate::ops::change::lock;
use crate::ops::ledger::journal::writer;
use crate::ops::ledger::log::{Choice, one_run, timeline};
use crate::ops::ledger::{lost, undone};
use crate::ops::run::check_clone::CheckClone;
use crate::ops::run::clones::{self, AgentWork, Delivered};
use crate::ops::run::conflicts::{RETURNS, is_return};
use crate::ops::run::host::Requests;
use crate::ops::run::lease::{Lease, LiveRun};
use crate::ops::run::orchestrate;
use crate::ops::run::order::{Order, flag_settings};
use crate::ops::run::own_commands::named_by_check;
use crate::ops::run::resume::{self, Returned};
use crate::ops::run::signals::SignalGuard;
use crate::ops::run::train::{self, Train};
use crate::ops::team::{engines, secrets};
use crate::ops::{Project, Workspace, runtime};
use crate::policy::Permissions;
use crate::pool::{Cancel, Reports, Show, UserMessages};
use crate::record::Read;
use crate::settings::Layer;

/// Files that programs run, or take commands from, when a person opens a folder, builds, tests or commits. A name that
/// ends in `/` is a folder, one that begins with `*` is an ending.
const RUN_BY_THEMSELVES: [&str; 52] = [
    ".vscode/",
    ".idea/",
    ".devcontainer/",
    ".github/workflows/",
    ".github/actions/",
    ".circleci/",
    ".husky/",
    ".githooks/",
    ".cargo/",
    ".claude/",
    ".cursor/",
    ".gemini/",
    ".squad/config.toml",
    ".mcp.json",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    ".lefthook.yml",
    "lefthook.yml",
    ".envrc",
    ".gitattributes",
    ".gitmodules",
    ".npmrc",
    ".yarnrc.yml",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "*.mk",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "Rakefile",
    "Gemfile",
    "CMakeLists.txt",
    "meson.build",
    "package.json",
    "build.rs",
    "rust-toolchain.toml",
    "conftest.py",
    "setup.py",
    "noxfile.py",
    "tox.ini",
    "sitecustomize.py",
    "*.gradle",
    "*.gradle.kts",
    "Dockerfile",
    "docker-compose.yml",
    "docker-compose.yaml",
    "compose.yml",
    "compose.yaml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "pyproject.toml",
];

/// What is to be merged.
pub(crate) struct Options<'a> {
    pub(crate) run: &'a str,
    pub(crate) dry_run: bool,
    pub(crate) squash: bool,
    /// `--check` and `--no-check`; `None`: where a check is configured, and it is no dry run.
    pub(crate) check: Option<bool>,
    /// Work that conflicts goes back to its agents.
    pub(crate) returns: bool,
}

/// What a merge says and asks while it goes on.
pub(crate) trait Talk {
    fn say(&mut self, text: &str);

    /// Whether agents may be started.
    fn may_return(&mut self, question: &str) -> bool;

    /// Fails unless the user agrees to what would happen.
    fn agree(&mut self, report: &MergeReport) -> Result<(), Failure>;
}

/// What a merge did, or would do.
#[derive(Debug, Serialize)]
pub(crate) struct MergeReport {
    pub(crate) run: RunId,
    pub(crate) dry_run: bool,
    /// The agents whose work is in it, in order.
    pub(crate) merged: Vec<Slug>,
    /// Work that is not, and why.
    pub(crate) left: Vec<LeftWork>,
    /// Files that change on the branch.
    pub(crate) files: Vec<String>,
    /// Those of them that programs run, with the reason.
    pub(crate) runs_by_itself: Vec<SkippedFile>,
    /// The branch that has the work; `None`: none.
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    /// The project's check of all that is merged; `None`: it was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Box<ProjectCheck>>,
    /// How often it was run.
    pub(crate) checks: usize,
    /// Why it is not on the checked-out branch.
    pub(crate) aside: Option<String>,
}

/// An agent's work that is not merged.
#[derive(Debug, Serialize)]
pub(crate) struct LeftWork {
    pub(crate) agent: Slug,
    /// The files in conflict.
    pub(crate) conflicts: Vec<String>,
    pub(crate) why: String,
    /// The project's check, which is red with it and green without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Box<ProjectCheck>>,
    /// The commit of the work.
    pub(crate) commit: String,
}

impl LeftWork {
    fn new(AgentWork { agent, work, .. }: &AgentWork, why: String) -> Self {
        Self { agent: agent.clone(), conflicts: Vec::new(), why, check: None, commit: work.commit.clone() }
    }
}

/// What reviewers rejected, by its commits.
#[derive(Debug, Default)]
struct Rejections {
    /// The reviewer whose rejection stands.
    standing: BTreeMap<String, Slug>,
    /// The commits that revise what was rejected, and are approved. It is merged only with all of them.
    revisions: BTreeMap<String, Vec<String>>,
}

impl Rejections {
    fn of(events: &[Event]) -> Self {
        let (mut found, mut verdicts) = (Self::default(), FileVerdicts::default());
        let mut commits: BTreeMap<&Slug, Vec<String>> = BTreeMap::new();
        // Committed since the first rejection that stands.
        let mut since: Vec<String> = Vec::new();
        for event in events {
            let Some(agent) = &event.agent else { continue };
            match &event.kind {
                EventKind::CloneCommitted { commit, .. } => {
                    let own = commits.entry(agent).or_default();
                    match own.last().filter(|_| is_return(event.position)) {
                        Some(last) => found.replace(last, commit),
                        None if !found.standing.is_empty() => since.push(commit.clone()),
                        None => {}
                    }
                    own.push(commit.clone());
                }
                EventKind::ReviewVerdict { verdict, authors, judged, .. } => {
                    verdicts.add(*verdict, Some(agent), judged);
                    let of_authors = authors.iter().filter_map(|author| commits.get(author)).flatten();
                    if *verdict == Verdict::Rejected {
                        found.standing.extend(of_authors.map(|commit| (commit.clone(), agent.clone())));
                    }
                    // Where nothing has changed, an approval does not lift the rejection.
                    let is_revised = !since.is_empty() && verdicts.rejected_among(judged).next().is_none();
                    if *verdict == Verdict::Approved && is_revised {
                        let revised = found.standing.extract_if(.., |_, reviewer| reviewer == agent);
                        found.revisions.extend(revised.map(|(commit, _)| (commit, since.clone())));
                    }
                    if found.standing.is_empty() {
                        since.clear();
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// A commit stands in the place of one that conflicted.
    fn replace(&mut self, old: &str, new: &str) {
        if let Some(reviewer) = self.standing.get(old).cloned() {
            self.standing.insert(new.to_owned(), reviewer);
        }
        if let Some(revisions) = self.revisions.get(old).cloned() {
            self.revisions.insert(new.to_owned(), revisions);
        }
        let revisions = self.revisions.values_mut().flatten().filter(|commit| *commit == old);
        revisions.for_each(|commit| new.clone_into(commit));
    }

    /// Whether work was rejected, and not all that revises it is there.
    fn lacks(&self, commit: &str, has: &dyn Fn(&String) -> bool) -> bool {
        self.revisions.get(commit).is_some_and(|revisions| !revisions.iter().all(has))
    }
}

/// Merges a run's work, once the user agrees to what would happen.
pub(crate) fn merge(
    env: &Env,
    directory: &Path,
    options: &Options<'_>,
    talk: &mut dyn Talk,
) -> Result<MergeReport, Failure> {
    let workspace = Workspace::find(env, directory)?;
    let (repository, team) = (&workspace.repository, workspace.ledger_prefix());
    lost::settle(env, repository);
    let run = one_run(repository, &team, options.run)?;
    if let Some(live) = workspace.leases().live(&run) {
        if live.is_merged() {
            return Err(Failure::failed(format!("another process merges run {run}: {}", live.pid)));
        }
        return Err(Failure::usage(format!("run {run} goes on, so its work cannot be merged yet"))
            .hint(format!("`squad log {run} --follow` shows it; `squad cancel {run}` ends it")));
    }
    let mut events = events_of(&workspace, &run)?;
    let works = clones::works(repository, &run)?;
    if works.is_empty() {
        return Err(nothing(&run, &events));
    }
    let head = repository.head()?;
    let Some(onto) = head.commit.clone() else {
        let name = head.branch.unwrap_or_default();
        return Err(Failure::usage(format!("{name} has no commit yet, so there is nothing to merge into"))
            .hint("make the first commit, then try again"));
    };
    let aside = format!("squad/{run}");
    let delivered = Delivered::on(repository, &[&onto], &works)?;
    if let (Some(commit), false) = (delivered.merges(&run).next(), options.dry_run) {
        note_merge(env, &workspace, &run, &mut events, (head.branch.as_deref(), commit))?;
    }
    // What an earlier merge left may go now.
    let (done, works): (Vec<AgentWork>, Vec<AgentWork>) = works.into_iter().partition(|work| delivered.has(work));
    if works.is_empty() {
        return Err(match delivered.merges(&run).next() {
            Some(commit) => {
                let commit = commit.get(..12).unwrap_or(commit);
                let hint =
                    format!("`git revert` takes it back, with `-m 1` if it is a merge: `git revert -m 1 {commit}`");
                Failure::usage(format!("run {run} is merged already, in {commit}")).hint(hint)
            }
            None => Failure::usage(format!("run {run} is merged already: your branch has all of its work")),
        });
    }
    if let Some(tip) = repository.reference(&format!("refs/heads/{aside}"))?
        && delivered.merges(&run).all(|commit| commit != tip)
    {
        return Err(merged_aside(&run, &aside, &Delivered::on(repository, &[&tip], &works)?, &works));
    }
    let rejections = Rejections::of(&events);
    let (works, rejected): (Vec<AgentWork>, Vec<AgentWork>) =
        works.into_iter().partition(|work| !rejections.standing.contains_key(&work.work.commit));
    let (ready, unfinished): (Vec<AgentWork>, Vec<AgentWork>) =
        works.into_iter().partition(|work| completed(&events, &work.agent));
    let at = env.clock.now();
    let committer = repository.identity();
    let signer = committer.clone().unwrap_or_else(writer);
    let message = |work: &AgentWork| message_of(&run, &events, work);
    let to_merge: Vec<WorkToMerge<'_>> =
        ready.iter().map(|work| WorkToMerge { work: &work.work, message: message(work) }).collect();
    let plan_of = |indices: &[usize]| {
        let mut indices = indices.to_vec();
        loop {
            let plan = repository.plan_merge(&onto, (&to_merge, &indices), (&signer, at));
            let plan = plan.map_err(|error| gone(&run, &ready, &error))?;
            let merged: Vec<&AgentWork> = plan.merged.iter().filter_map(|index| ready.get(*index)).collect();
            let has = |commit: &String| {
                merged.iter().any(|work| work.work.commit == *commit)
                    || done.iter().any(|work| work.work.commit == *commit)
            };
            let lacking = plan.merged.iter().filter(|index| rejections.lacks(&ready[**index].work.commit, &has));
            let lacking: Vec<usize> = lacking.copied().collect();
            if lacking.is_empty() {
                return Ok(plan);
            }
            indices.retain(|index| !lacking.contains(index));
        }
    };
    let all: Vec<usize> = (0..ready.len()).collect();
    let mut plan = plan_of(&all)?;
    let was_returned = |agent: &Slug| {
        let ends = events.iter().filter(|event| event.agent.as_ref() == Some(agent) && event.kind.end().is_some());
        ends.filter(|event| is_return(event.position)).count() >= RETURNS
    };
    let conflicting = plan.conflicts.iter().filter_map(|(index, _)| ready.get(*index));
    let returned: Vec<(Slug, String)> = conflicting
        .filter(|work| !was_returned(&work.agent))
        .map(|work| (work.agent.clone(), work.work.commit.clone()))
        .collect();
    if options.returns && !options.dry_run && !returned.is_empty() {
        let reference = format!("{}{run}_onto/1", clones::REFS);
        let (onto, _) = repository.keep_plan(&plan, &reference)?;
        match return_work(env, directory, &run, Returned { onto, works: returned }, talk) {
            Ok(Outcome::Cancelled) => {
                let message = "interrupted while work was given back; nothing is merged".to_owned();
                return Err(Failure::new(FailureKind::Interrupted, message));
            }
            Ok(_) => {}
            Err(reason) => talk.say(&format!("no conflict is given back to its agent: {reason}")),
        }
        // What they resolved is there now.
        return merge(env, directory, &Options { returns: false, ..*options }, talk);
    }
    // Nobody else merges it meanwhile, and no `gc` takes its clones away.
    let lease = if options.dry_run { None } else { Some(Arc::new(lease_of(env, &workspace, &run)?)) };
    let (mut train, mut checks) = (Train::default(), 0);
    if let Some(project) = checked_project(env, directory, options)?.filter(|_| plan.changes_anything()) {
        let command = command_line(&project.settings.check);
        let mut note = |number: usize, works: usize, check: &ProjectCheck| {
            checks = number;
            talk.say(&format!("check {number}, of {}: `{command}` {}", pieces(works), check.result()));
        };
        let whose = (env, &project, &run, lease.as_ref());
        train = checked_train(whose, &onto, ready.len(), &plan_of, &mut note)?;
        if let Some(base) = train.base.take() {
            let last = base.output.trim_end().lines().next_back().unwrap_or_default();
            let message = format!(
                "`{command}` {} without any of the work: {}",
                base.result(),
                printable_line(&first_line(last, 200))
            );
            return Err(Failure::failed(message).hint("mend that first, or leave the check out: --no-check"));
        }
        plan = plan_of(&train.kept)?;
    }
    let merged_works = || plan.merged.iter().filter_map(|index| ready.get(*index));
    let agents = || -> Vec<Slug> {
        let mut found: Vec<Slug> = Vec::new();
        for agent in merged_works().map(|work| &work.agent) {
            if !found.contains(agent) {
                found.push(agent.clone());
            }
        }
        found
    };
    let conflicts = plan.conflicts.iter().filter_map(|(index, paths)| Some((ready.get(*index)?, paths)));
    let conflicts = conflicts.map(|(work, paths)| LeftWork {
        conflicts: paths.clone(),
        ..LeftWork::new(work, format!("it conflicts in {}", list(paths)))
    });
    let is_red = |index: &usize| train.red.iter().any(|(red, _)| red == index);
    let is_planned = |index: &usize| {
        plan.merged.contains(index) || plan.conflicts.iter().any(|(other, _)| other == index) || is_red(index)
    };
    let unrevised = all.iter().filter(|index| !is_planned(index)).filter_map(|index| ready.get(*index));
    let unrevised =
        unrevised.map(|work| LeftWork::new(work, "it was rejected, and its revision is not merged".to_owned()));
    let red = train.red.iter().filter_map(|(index, check)| Some((ready.get(*index)?, check)));
    let red = red.map(|(work, check)| LeftWork {
        check: Some(Box::new(check.clone())),
        ..LeftWork::new(work, format!("`{}` {} with it, and passed without", check.command, check.result()))
    });
    let rejected = rejected.iter().map(|work| {
        let reviewer = rejections.standing.get(&work.work.commit).cloned().unwrap_or_else(Slug::coordinator);
        LeftWork::new(work, format!("{reviewer} rejected it"))
    });
    let unfinished =
        unfinished.iter().map(|work| LeftWork::new(work, format!("{} did not complete its work", work.agent)));
    let left = conflicts.chain(red).chain(unrevised).chain(rejected).chain(unfinished).collect();
    let files = plan.files();
    let mut report = MergeReport {
        run: run.clone(),
        dry_run: options.dry_run,
        merged: agents(),
        left,
        runs_by_itself: files.iter().filter_map(runs_by_itself).collect(),
        files: files.into_iter().map(|file| file.path).collect(),
        branch: None,
        commit: None,
        check: train.check.map(Box::new),
        checks,
        aside: repository.obstacle_to_merge(&plan, head.branch.as_deref())?,
    };
    let not_merged =
        |(reason, hint): (String, String)| Failure::usage(format!("run {run} cannot be merged: {reason}")).hint(hint);
    if let (true, Some(why)) = (plan.changes_anything(), &report.aside)
        && let Some((reason, hint)) = repository.obstacle_to_branch(&aside)?
    {
        return Err(not_merged((format!("{why}, and {reason}"), hint)));
    }
    if options.dry_run {
        if report.aside.is_none() && plan.changes_anything() {
            report.aside = repository.obstacle_to_signature(&plan, "merge", (&signer, at))?;
        }
        return Ok(report);
    }
    if plan.changes_anything() {
        talk.agree(&report)?;
    }
    for left in report.left.iter().filter(|left| left.check.is_some()) {
        let (commit, conflicts, check) = (left.commit.clone(), left.conflicts.clone(), left.check.clone());
        let kind = EventKind::WorkSetAside { commit, conflicts, check };
        record(env, &workspace, &run, &mut events, Some(&left.agent), kind)?;
    }
    if !plan.changes_anything() {
        return Ok(report);
    }
    let Some(committer) = committer else {
        return Err(Failure::failed("git does not know who you are")
            .hint("git config --global user.name 'Your Name' && git config --global user.email you@example.com"));
    };
    let kind = ChangeKind::Merge { run: run.clone() };
    let commits = merged_works().map(|work| &work.work.commit);
    let text = message_of_merge(&run, &events, &report.merged, commits);
    let branch = head.branch.as_deref();
    let target = MergeTarget { kind: &kind, branch, aside: &aside, message: &text, squash: options.squash };
    let merged = {
        let _lock = lock(repository, None)?;
        repository.carry_out_merge(plan, &target, &committer, at)?
    };
    let merged = merged.map_err(not_merged)?;
    let left = report.left.iter().map(|left| left.agent.clone()).collect();
    let (branch, commit) = (merged.branch.clone(), merged.commit.clone());
    let (merged_agents, check) = (report.merged.clone(), report.check.clone());
    let by = Some(committer.name);
    let kind = EventKind::RunMerged { branch, commit, merged: merged_agents, by, left, check };
    record(env, &workspace, &run, &mut events, None, kind)?;
    (report.branch, report.commit, report.aside) = (Some(merged.branch), Some(merged.commit), merged.aside);
    Ok(report)
}

/// Why a run is not merged again whose work is on a branch of its own, and what that lacks.
fn merged_aside(run: &RunId, aside: &str, delivered: &Delivered, works: &[AgentWork]) -> Failure {
    let left: BTreeSet<&Slug> = works.iter().filter(|work| !delivered.has(work)).map(|work| &work.agent).into_set();
    let merged = format!("run {run} is merged already, on the branch {aside}");
    let brings = format!("`git merge {aside}` brings it here");
    let again = format!("`git branch -D {aside}` lets squad merge it again");
    match left.is_empty() {
        true => Failure::usage(merged).hint(format!("{brings}; {again}")),
        false => Failure::usage(format!("{merged}, without the work of {}", list(left)))
            .hint(format!("{brings}, and `squad merge {run}` then the rest; {again}")),
    }
}

/// Has agents resolve the conflicts of their work, in the run that it is from. The error says why none does.
fn return_work(
    env: &Env,
    directory: &Path,
    run: &RunId,
    returned: Returned,
    talk: &mut dyn Talk,
) -> Result<Outcome, String> {
    let failed = |failure: Failure| failure.message;
    let project = Project::open(env, directory, Layer::default()).map_err(failed)?;
    let agents = list(returned.works.iter().map(|(agent, _)| agent));
    let interrupted = resume::returning(&project, run, returned).map_err(failed)?;
    let project = Project::open(env, directory, flag_settings(&interrupted.flags)).map_err(failed)?;
    project.require_sound().map_err(failed)?;
    if interrupted.permissions != Some(Permissions::Allow) {
        return Err("its run was not under `--permissions allow`, and nobody can be asked here".to_owned());
    }
    if !talk.may_return(&format!("The work of {agents} conflicts. Have {agents} resolve that?")) {
        return Err("you did not ask for it".to_owned());
    }
    talk.say(&format!("{agents} resolves what conflicts"));
    let script = engines::script(&project.settings, &project.folder.root).map_err(failed)?;
    let script = script.map(|script| script.after(interrupted.past.played()));
    let order = Order {
        message: interrupted.message.clone(),
        route_options: interrupted.route_options.clone(),
        flags: interrupted.flags.clone(),
        permissions: Permissions::Allow,
        script,
        resumed: Some(interrupted),
        ..Order::default()
    };
    let ended = orchestrate::run(env, &project, order, Unseen).1.map_err(failed)?;
    ended.error.map_or(Ok(ended.status), |failure| Err(failed(failure)))
}

/// Nobody watches: what comes of it is in the report.
struct Unseen;

impl Show for Unseen {
    fn show(&mut self, _: &Event) {}
}

/// The project whose check is to be run. `None`: none is.
fn checked_project(env: &Env, directory: &Path, options: &Options<'_>) -> Result<Option<Project>, Failure> {
    let is_wanted = options.check.unwrap_or(!options.dry_run);
    if !is_wanted {
        return Ok(None);
    }
    let project = Project::open(env, directory, Layer::default())?;
    project.require_settings()?;
    if options.check == Some(true) {
        project.require_check()?;
    }
    Ok(Some(project).filter(|project| !project.settings.check.is_empty()))
}

fn pieces(works: usize) -> String {
    match works {
        0 => "your branch alone".to_owned(),
        1 => "1 piece of work".to_owned(),
        works => format!("{works} pieces of work"),
    }
}

fn lease_of(env: &Env, workspace: &Workspace, run: &RunId) -> Result<Lease, Failure> {
    let live = LiveRun::merged_by(run, env.clock.now());
    Lease::take(&workspace.local(), &live, &workspace.ledger_prefix()).map_err(|error| {
        let is_taken = error.kind() == std::io::ErrorKind::AlreadyExists;
        let why = if is_taken { "another process merges it".to_owned() } else { error.to_string() };
        Failure::failed(format!("the work of run {run} is not merged: {why}"))
    })
}

/// Checks works on top of each other, in a clone of their own. Other processes may cancel it by its lease.
fn checked_train<'p>(
    (env, project, run, lease): (&Env, &Project, &RunId, Option<&Arc<Lease>>),
    onto: &str,
    count: usize,
    plan_of: &dyn Fn(&[usize]) -> Result<MergePlan<'p>, Failure>,
    note: &mut dyn FnMut(usize, usize, &ProjectCheck),
) -> Result<Train, Failure> {
    let failed = |why: String| {
        let message = format!("the work of run {run} cannot be checked, so nothing is merged: {why}");
        Failure::failed(message).hint("--no-check merges it unchecked")
    };
    let (canceller, cancel) = Cancel::channel();
    let runtime = runtime(env)?;
    let _entered = runtime.enter();
    let _signals = SignalGuard::by(&canceller, env)?;
    // They may ask only for its end. What is told of that is recorded nowhere: nothing is merged.
    let requests = lease.map(|lease| Requests {
        lease: Arc::downgrade(lease),
        sessions: Arc::default(),
        canceller,
        user_messages: Arc::new(UserMessages::with_past(&[])),
        reports: Reports::channel().0,
    });
    let mut serving = JoinSet::new();
    requests.into_iter().for_each(|requests| drop(serving.spawn(requests.serve())));
    let stopped = |cancel: &Cancel| {
        let message = format!("{} while the work was checked; nothing is merged", cancel.reason());
        Failure::new(FailureKind::Interrupted, message)
    };
    let clone = runtime.block_on(CheckClone::open((env, project, run), onto, cancel.clone()));
    let clone = clone.map_err(|why| if cancel.is_set() { stopped(&cancel) } else { failed(why) })?;
    let reference = format!("{}{run}_train/1", clones::REFS);
    let named = named_by_check(project);
    let redactor = secrets::redactor(env, &project.folder.root);
    let mut known: BTreeMap<String, ProjectCheck> = BTreeMap::new();
    let mut check = |works: &[usize]| {
        let plan = plan_of(works)?;
        // Works may come to the same, such as those that conflict.
        let (commit, tree) = project.repository.keep_plan(&plan, &reference)?;
        if let Some(known) = known.get(&tree) {
            return Ok(known.clone());
        }
        let checked = runtime.block_on(clone.check(&commit, cancel.clone()));
        let checked = checked.unwrap_or_else(|reason| {
            let command = command_line(&project.settings.check);
            Some(ProjectCheck { command, reason, ..ProjectCheck::default() })
        });
        let Some(mut checked) = checked else { return Err(stopped(&cancel)) };
        checked.output = redactor.text(&checked.output, &mut Vec::new());
        let changed = plan.files().into_iter().map(|file| file.path);
        checked.rewritten = changed.filter(|path| named.contains(path)).collect();
        known.insert(tree, checked.clone());
        note(known.len(), works.len(), &checked);
        Ok(checked)
    };
    train::checked(count, &mut check)
}

fn record(
    env: &Env,
    workspace: &Workspace,
    run: &RunId,
    events: &mut Vec<Event>,
    agent: Option<&Slug>,
    kind: EventKind,
) -> Result<(), Failure> {
    let at = env.clock.now();
    let last = events.last();
    let event = Event {
        seq: last.map_or(1, |event| event.seq + 1),
        at,
        run: run.clone(),
        agent: agent.cloned(),
        kind,
        id: env.ids.entry(at),
        position: Position::default(),
        causes: last.map(|event| event.id.clone()).into_iter().collect(),
    };
    events.push(event.clone());
    undone::record_event(env, &workspace.repository, &workspace.ledger_prefix(), event)?;
    Ok(())
}

/// Records a merge whose process was killed before it could.
fn note_merge(
    env: &Env,
    workspace: &Workspace,
    run: &RunId,
    events: &mut Vec<Event>,
    (branch, commit): (Option<&str>, &str),
) -> Result<(), Failure> {
    if events.iter().any(|event| matches!(&event.kind, EventKind::RunMerged { commit: known, .. } if known == commit)) {
        return Ok(());
    }
    let agents = workspace.repository.trailers_ending_in("Squad-Agent", commit)?;
    let merged: Vec<Slug> = agents.iter().filter_map(|line| Slug::fold(line.split_once(": ")?.1)).collect();
    let left: BTreeSet<Slug> = clones::works(&workspace.repository, run)?.into_iter().map(|work| work.agent).into_set();
    let left = left.into_iter().filter(|agent| !merged.contains(agent)).collect();
    let (branch, commit) = (branch.unwrap_or_default().to_owned(), commit.to_owned());
    record(
        env,
        workspace,
        run,
        events,
        None,
        EventKind::RunMerged { branch, commit, merged, by: None, left, check: None },
    )
}

/// Records a merge that a later command has finished.
pub(crate) fn settle(env: &Env, directory: &Path, run: &RunId) -> Result<(), Failure> {
    let workspace = Workspace::find(env, directory)?;
    let mut events = events_of(&workspace, run)?;
    let head = workspace.repository.head()?;
    let Some(onto) = &head.commit else { return Ok(()) };
    let works = clones::works(&workspace.repository, run)?;
    match Delivered::on(&workspace.repository, &[onto], &works)?.merges(run).next() {
        Some(commit) => note_merge(env, &workspace, run, &mut events, (head.branch.as_deref(), commit)),
        None => Ok(()),
    }
}

fn events_of(workspace: &Workspace, run: &RunId) -> Result<Vec<Event>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    let (repository, team) = (&workspace.repository, workspace.ledger_prefix());
    for entry in timeline(repository, &team, Some(run), &Choice::default())?.entries() {
        if let (_, Read::Entry(entry)) = entry? {
            events.extend(entry.event());
        }
    }
    Ok(events)
}

fn nothing(run: &RunId, events: &[Event]) -> Failure {
    let is_cloned = events.iter().any(|event| matches!(event.kind, EventKind::CloneCreated { .. }));
    let is_committed = events.iter().any(|event| matches!(event.kind, EventKind::CloneCommitted { .. }));
    // Where no clone could be made, or no engine started.
    let begins = |kind: &EventKind| matches!(kind, EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. });
    let is_of_agent = |event: &&Event| event.agent.as_ref().is_some_and(|agent| *agent != Slug::coordinator());
    let has_worked = events.iter().filter(is_of_agent).any(|event| begins(&event.kind));
    let end = events.iter().rev().find_map(|event| match event.kind {
        EventKind::RunCompleted(RunEnd { status, .. }) => Some(status),
        _ => None,
    });
    match (is_cloned, is_committed) {
        (true, false) if end.is_none_or(|end| end == Outcome::Lost) => {
            Failure::usage(format!("run {run} was lost before squad committed what its agents did in their clones"))
                .hint(format!("`squad orchestrate --resume {run}` goes on with it; `squad status` shows the clones"))
        }
        (_, true) => {
            let message =
                format!("the work of run {run} is not here: another clone has it, or `squad gc` has deleted it");
            Failure::usage(message).hint(format!("`squad log {run}` shows what it was"))
        }
        (true, false) => {
            Failure::usage(format!("run {run} left nothing that could be committed, so there is nothing to merge"))
                .hint(format!("`squad log {run}` shows what happened"))
        }
        (false, false) if !has_worked => {
            Failure::usage(format!("no agent of run {run} could begin, so there is nothing to merge"))
                .hint(format!("`squad log {run}` says why"))
        }
        (false, false) => Failure::usage(format!("the agents of run {run} worked in your work tree, not in clones"))
            .hint(format!("`squad diff {run}` shows what they changed; the files are yours to commit")),
    }
}

/// Says what can be had where a part of the history is missing.
fn gone(run: &RunId, works: &[AgentWork], error: &crate::git::Error) -> Failure {
    let commits = list(works.iter().map(|work| work.work.commit.get(..12).unwrap_or_default().to_owned()));
    Failure::usage(format!("run {run} cannot be merged: {error}"))
        .hint(format!("the agents' commits: {commits}; `git show COMMIT` shows what is left of them"))
}

/// Whether an agent's last work is complete.
fn completed(events: &[Event], agent: &Slug) -> bool {
    // Whether it resolved a conflict says nothing of the work before.
    let is_work = |event: &&Event| event.agent.as_ref() == Some(agent) && !is_return(event.position);
    let of_agent = events.iter().rev().filter(is_work);
    let mut ends = of_agent.filter_map(|event| event.kind.end());
    ends.next().is_some_and(|(outcome, _)| outcome == Outcome::Completed)
}

/// The message of an agent's commit: what it reported.
fn message_of(run: &RunId, events: &[Event], AgentWork { agent, work, .. }: &AgentWork) -> String {
    let of_agent = events.iter().rev().filter(|event| event.agent.as_ref() == Some(agent));
    let report = of_agent.filter_map(|event| event.kind.end()).map(|(_, end)| end.text.clone()).next();
    let report = report.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "work".to_owned());
    let subject = first_line(&report, 60);
    format!("{agent}: {subject}\n\nSquad-Run: {run}\nSquad-Agent: {agent}\n{}: {}\n", clones::WORK, work.commit)
}

fn message_of_merge<'c>(
    run: &RunId,
    events: &[Event],
    agents: &[Slug],
    commits: impl Iterator<Item = &'c String>,
) -> String {
    let task = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted { text, .. } => Some(first_line(text, 60)),
        _ => None,
    });
    let task = task.unwrap_or_else(|| format!("run {run}"));
    let agents: String = agents.iter().map(|agent| format!("Squad-Agent: {agent}\n")).collect();
    let works: String = commits.map(|commit| format!("{}: {commit}\n", clones::WORK)).collect();
    format!("{task}\n\nSquad-Run: {run}\n{agents}{works}{}\n", clones::mark(run))
}

/// Why a changed file needs a look before it is merged: no sandbox bounds what a person starts.
fn runs_by_itself(file: &MergedFile) -> Option<SkippedFile> {
    let named = |why: &str| Some(SkippedFile { path: file.path.clone(), why: why.to_owned() });
    if let Some(link) = &file.link {
        let depth = file.path.matches('/').count();
        let ups = link.split('/').filter(|part| *part == "..").count();
        if link.starts_with('/') || ups > depth {
            return named(&format!("a link to {link}, outside the project"));
        }
        if link.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
            return named(&format!("a link to {link}, where git takes programs from"));
        }
    }
    if file.is_removed {
        return None;
    }
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let is_it = |known: &str| match (known.strip_suffix('/'), known.strip_prefix('*')) {
        (Some(_), _) => file.path.starts_with(known) || file.path.contains(&format!("/{known}")),
        (_, Some(ending)) => name.ends_with(ending),
        _ if known.contains('/') => file.path == known,
        _ => name == known,
    };
    RUN_BY_THEMSELVES.into_iter().find(|known| is_it(known)).and_then(|_| named("runs by itself"))
}

/// What would be merged, in a few words, and where to.
pub(crate) fn summary(report: &MergeReport) -> String {
    let MergeReport { run, files, merged, aside, .. } = report;
    match (merged.is_empty(), aside) {
        (true, _) => "Nothing would be merged".to_owned(),
        (_, None) => format!("{} of {} would be merged", plural(files.len(), "file"), list(merged)),
        (_, Some(why)) => format!(
            "{} of {} would be merged, to the branch squad/{run} because {why}",
            plural(files.len(), "file"),
            list(merged)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_run_by_themselves_are_named_and_others_are_not() {
        let why = |path: &str, link: Option<&str>| {
            let file = MergedFile { path: path.to_owned(), is_removed: false, link: link.map(str::to_owned) };
            runs_by_itself(&file).map(|found| found.why)
        };
        for path in [".envrc", "Makefile", "a/package.json", ".github/workflows/ci.yml", "a/.vscode/tasks.json", "x.mk"]
        {
            assert!(why(path, None).is_some(), "{path}");
        }
        for path in ["src/main.rs", "docs/Makefile.md", "github/workflows/ci.yml", ".envrc.example"] {
            assert_eq!(why(path, None), None, "{path}");
        }
        for (path, link, is_out) in [
            ("a", "/etc/passwd", true),
            ("a/b", "../c", false),
            ("a/b", "../../c", true),
            ("a", "b", false),
            ("a", ".git/hooks", true),
            ("a/b", "../.GIT/hooks", true),
            ("a", "x.git", false),
        ] {
            assert_eq!(why(path, Some(link)).is_some(), is_out, "{path} {link}");
        }
    }
}
