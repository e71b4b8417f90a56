//! The status of the team, its runs and the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::SignedDuration;
use serde::{Serialize, Serializer};

use crate::env::{Env, files::Measured, real};
use crate::error::Failure;
use crate::git::{InterruptedCommand, Repository};
use crate::model::{
    AgentState, Change, DecisionId, EventKind, IntoMap, IntoSet, LiveCheck, OpenQuestion, Outcome, Problem,
    RunActivity, RunEnd, RunId, SessionStatus, Slug, Usage,
};
use crate::ops::decisions::withdrawn::Withdrawn;
use crate::ops::ledger::contents as ledger;
use crate::ops::ledger::gc::left_by_runs;
use crate::ops::ledger::log::{self, Choice, RunSummary};
use crate::ops::run::cancel;
use crate::ops::run::clones::{self, CloneStatus};
use crate::ops::run::host::{WatchState, activities};
use crate::ops::run::lease::{self, Leases, LiveRun};
use crate::ops::run::recall::Record;
use crate::ops::run::resume;
use crate::ops::run::watch::{WatchFiles, Watcher};
use crate::ops::team::cache::{Cache, CachedTeam};
use crate::ops::team::engines;
use crate::ops::team::hosts;
use crate::ops::team::init::FOLDER;
use crate::ops::team::manifest::{self, Due};
use crate::ops::team::templates::Templates;
use crate::ops::team::workspace::left_out;
use crate::ops::{Workspace, repository, team_settings};
use crate::parse;
use crate::pool::{EarlierRuns, UsedUp, date, standing_session_id};
use crate::record::Read;

/// So many files take about 5 ms.
const MOST_MEASURED: usize = 4_000;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Status {
    /// The work tree's root.
    pub(crate) repository: String,
    pub(crate) branch: Option<String>,
    #[serde(skip)]
    pub(crate) commit: Option<String>,
    /// The newest run that is over.
    #[serde(skip)]
    pub(crate) last: Option<RunSummary>,
    /// Whether there is a remote that the ledger can be shared with.
    #[serde(skip)]
    pub(crate) has_remote: bool,
    /// `None`: there is no team.
    pub(crate) team: Option<TeamStatus>,
    /// The path of the team folder, if something else is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_the_way: Option<String>,
    /// The team's folder on the branch, if this work tree lacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<&'static str>,
    /// `None`: no watch is running.
    pub(crate) watch: Option<WatchStatus>,
    pub(crate) runs_live: Vec<RunStatus>,
    /// Runs whose processes died, as far as their end is not recorded yet or no run came after them, with advice for
    /// people; `None`: this team's ledger has nothing of the run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "keys")]
    pub(crate) runs_lost: BTreeMap<RunId, Option<String>>,
    /// The sessions of live runs and of `squad watch`.
    pub(crate) sessions: Vec<KnownSession>,
    pub(crate) ledger: LedgerStatus,
    /// What agents have used today, by the user's calendar, as far as engines tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) today: Option<Usage>,
    /// Accounts of the user's whose quota is used up, on which nothing starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) quotas: Vec<UsedUp>,
    /// Why nothing is known of that, so that nothing starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quotas_unknown: Option<String>,
    /// Decisions that the next commit would withdraw.
    #[serde(skip_serializing_if = "Withdrawn::is_empty")]
    pub(crate) withdrawn: Withdrawn,
    /// Files of the newest ended run's agents that differ from the checked-out commit.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) uncommitted: usize,
    /// Ended runs whose clones are gone, and the agents of theirs whose work is on no branch, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_merged: Vec<UnmergedRun>,
    /// Decisions that have landed on no branch, newest first, with the branch they were made for.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "ids")]
    pub(crate) unlanded: Vec<(DecisionId, Option<String>)>,
    /// The team's engine. Nothing is started, so its version is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// The same, if its program is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine_missing: Option<String>,
    /// An unfinished merge in one of the team's files.
    #[serde(skip)]
    pub(crate) unmerged: Option<Problem>,
    /// The clones that agents worked in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) clones: Vec<CloneStatus>,
    /// What runs have left on this machine.
    pub(crate) left_by_runs: Measured,
    /// A command that was interrupted in this work tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) begun: Option<InterruptedCommand>,
}

/// An open session, and what is known of it here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct KnownSession {
    #[serde(flatten)]
    pub(crate) session: SessionStatus,
    /// The branch of its directory; `None`: a commit is checked out, or it is a clone of its own.
    branch: Option<String>,
    /// Of a standing session: squad's record of the agent's last work, in at most 200 words.
    summary: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct UnmergedRun {
    pub(crate) run: RunId,
    pub(crate) agents: BTreeSet<Slug>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct WatchStatus {
    #[serde(flatten)]
    pub(crate) watcher: Watcher,
    /// `None`: its engine has not started yet.
    #[serde(flatten)]
    pub(crate) state: Option<WatchState>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TeamStatus {
    /// The team folder, relative to the repository's root.
    pub(crate) folder: String,
    pub(crate) members: usize,
    /// Present if the team's files are of another release than this squad installs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade: Option<Due>,
    /// The number of exported files that are out of date.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) exports_stale: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_no_time(seconds: &f64) -> bool {
    *seconds == 0.0
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunStatus {
    #[serde(flatten)]
    pub(crate) run: LiveRun,
    pub(crate) step: Option<u32>,
    pub(crate) agents: BTreeMap<Slug, AgentState>,
    /// Questions that wait for the user's answer.
    pub(crate) questions: Vec<OpenQuestion>,
    /// squad's own check of the project, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<LiveCheck>,
    /// Seconds in which it only waited for a person.
    #[serde(skip_serializing_if = "is_no_time")]
    pub(crate) waited: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LedgerStatus {
    pub(crate) entries: usize,
    /// Entries that no remote had as of the last `squad sync` or `git fetch`.
    pub(crate) unsynced: usize,
}

/// Reads the team only if it was exported or has changed: prompts and editors call this often.
pub(crate) fn status(env: &Env, directory: &Path) -> Result<Status, Failure> {
    let (repository, work_dir) = repository(env, directory)?;
    let start = real(directory);
    let folder = crate::ops::team::workspace::team_folder(&repository, &start, &work_dir);
    let place =
        folder.as_ref().map(|folder| crate::ops::team::workspace::project_path(folder, &work_dir)).unwrap_or_default();
    let left_out = if folder.is_none() { left_out(&repository)? } else { None };
    // A broken link in the place of the folder also prevents `squad init`.
    let in_the_way = folder.is_none() && work_dir.join(FOLDER).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let prefix = crate::ops::team::workspace::ledger_prefix(&place);
    let ledger::Amount { entries, unsynced } = ledger::amount(&repository, &prefix)?;
    let local = repository.own_folder();
    let Leases { live, dead } = lease::look(&local);
    let advised = |run: RunId| {
        let advice = resume::advice(&repository, &prefix, &run);
        // A damaged entry must not hide the rest.
        (run, advice.unwrap_or_else(|_| Some("`squad doctor` says why its entries cannot be read".to_owned())))
    };
    // A merge of an ended run may have died, too.
    let has_ended = |run: &RunId| {
        cancel::end_of(&repository, &prefix, run, None).is_ok_and(|end| end.is_some_and(|end| end != Outcome::Lost))
    };
    // A ledger that cannot be read is the doctor's to name.
    let leases = Leases { live: live.clone(), dead: BTreeSet::new() };
    let runs = log::runs(&repository, &prefix, &leases, &Choice::default(), live.len() + 1).unwrap_or_default();
    let last = runs.into_iter().find(|run| run.ended.is_some());
    let lost = last.iter().filter(|last| last.status == "lost").map(|last| last.run.clone());
    let runs_lost = dead.into_iter().filter(|run| !has_ended(run)).chain(lost).map(advised).into_map();
    let (runs_live, mut sessions) = live_runs(env, live);
    let team_folder = folder.as_ref().map(|folder| crate::ops::team::workspace::below(&place, folder.name));
    // What is wrong with the index is git's to say.
    let withdrawn = |folder: &String| Withdrawn::find(&repository, folder).unwrap_or_default();
    let withdrawn = team_folder.as_ref().map(withdrawn).unwrap_or_default();
    let mut watch = team_folder.as_ref().and_then(|folder| watch_of(&repository, folder));
    if let Some(state) = watch.as_mut().and_then(|watch| watch.state.as_mut()) {
        // Sessions in use by a run are already listed.
        let kept = std::mem::take(&mut state.kept).into_iter();
        let idle: Vec<_> = kept.filter(|kept| sessions.iter().all(|session| session.id != kept.id)).collect();
        sessions.extend(idle);
    }
    let exported = folder.as_ref().filter(|folder| hosts::is_exported(folder));
    let exports_stale = exported
        .and_then(|_| Workspace::find(env, directory).ok())
        .map_or(0, |workspace| hosts::stale_count(&workspace));
    let cached = folder.as_ref().map(|folder| Cache::new(env, &local).look_up(folder));
    let members = cached.as_ref().map(CachedTeam::members).unwrap_or_default();
    let mut problems = cached.map(|cached| cached.problems().to_vec()).unwrap_or_default();
    problems.extend(team_settings(env, None).1);
    let unmerged = problems.into_iter().find(|problem| problem.code == parse::CONFLICT);
    let upgrade = folder.as_ref().and_then(|folder| manifest::due(&folder.path, Templates::newest(env)));
    let head = repository.head()?;
    let (quotas, quotas_unknown) = match engines::quotas(env).all() {
        Ok(quotas) => (quotas.into_values().collect(), None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    let today = last.as_ref().and_then(|last| used_today(env, &repository, &prefix, last));
    let uncommitted = last.as_ref().and_then(|last| uncommitted(&repository, &prefix, last)).unwrap_or_default();
    let left = clones::unmerged(&repository).unwrap_or_default();
    let clones = clones::list((env, &repository), &left, MOST_MEASURED);
    let is_listed =
        |run: &RunId| clones.iter().any(|clone| clone.run == *run) || runs_live.iter().any(|live| live.run.run == *run);
    let without_clones = left.into_iter().rev().filter(|(run, _)| !is_listed(run));
    let not_merged = without_clones.filter_map(|(run, agents)| Some(UnmergedRun { run, agents: agents? })).collect();
    let unlanded = ledger::unlanded(&repository, &prefix).unwrap_or_default();
    let workspace = Workspace::find(env, directory).ok();
    let settings = workspace.as_ref().map(|workspace| team_settings(env, Some(workspace)).0);
    let engine = settings.as_ref().map(|settings| settings.engine.name.clone());
    let is_there = workspace.as_ref().zip(settings).is_none_or(|(workspace, settings)| {
        // Starts nothing.
        let (root, names) = (workspace.repository.work_dir(), std::iter::once(settings.engine.name.clone()));
        root.is_none_or(|root| engines::installed(env, root, &settings, names).next().is_some())
    });
    let engine_missing = engine.clone().filter(|_| !is_there);
    Ok(Status {
        today,
        uncommitted,
        not_merged,
        unlanded: unlanded.into_iter().map(|one| (one.decision.id, one.branch)).collect(),
        engine,
        engine_missing,
        repository: work_dir.display().to_string(),
        branch: head.branch,
        commit: head.commit,
        last,
        has_remote: repository.has_remotes(),
        team: team_folder.map(|folder| TeamStatus { folder, members, upgrade, exports_stale }),
        in_the_way: in_the_way.then(|| FOLDER.to_owned()),
        left_out,
        watch,
        runs_live,
        runs_lost,
        sessions: known(env, sessions),
        ledger: LedgerStatus { entries, unsynced },
        quotas,
        quotas_unknown,
        withdrawn,
        unmerged,
        clones,
        left_by_runs: left_by_runs(env, &repository, MOST_MEASURED),
        // The caller reports an error separately.
        begun: repository.begun().ok().flatten(),
    })
}

/// How many files of a run's agents are not committed; `None`: that cannot be told.
fn uncommitted(repository: &Repository, prefix: &str, run: &RunSummary) -> Option<usize> {
    /// Of the entries at a run's end, one has what was changed.
    const LAST: usize = 8;
    if run.lines == (0, 0) || run.undone {
        return Some(0);
    }
    // What was done in a clone is not in the work tree, or was committed when it was merged.
    let cloned: BTreeSet<Slug> =
        clones::works(repository, &run.run).ok()?.into_iter().map(|work| work.agent).into_set();
    let is_here = |change: &Change| {
        let is_cloned = !change.by.is_empty() && change.by.iter().all(|agent| cloned.contains(agent));
        change.class.is_of_agents() && !is_cloned
    };
    let mut timeline = log::timeline(repository, prefix, Some(&run.run), &Choice::default()).ok()?;
    timeline.keep_last(LAST).ok()?;
    let mut paths = BTreeSet::new();
    for entry in timeline.entries() {
        let (_, Read::Entry(entry)) = entry.ok()? else { continue };
        if let Some(EventKind::RunCompleted(RunEnd { work, .. })) = entry.event().map(|event| event.kind) {
            let changed = work.into_iter().flat_map(|work| work.changed.unwrap_or_default());
            paths.extend(changed.filter(&is_here).map(|change| change.path));
        }
    }
    repository.count_uncommitted(&Vec::from_iter(paths)).ok()
}

/// What agents have used today, if engines have told anything; `last` is the newest run that has ended.
fn used_today(env: &Env, repository: &Repository, prefix: &str, last: &RunSummary) -> Option<Usage> {
    // Today began no more than a day before that run, whatever the zone's clocks did meanwhile.
    let since = last.started.checked_sub(SignedDuration::from_hours(26)).ok();
    let sums = log::usage(repository, prefix, &Choice { since, agent: None }, &env.clock).ok()?;
    let is_known =
        |used: &Usage| used.input_tokens + used.output_tokens > 0 || used.cost_usd.is_some() || !used.billed.is_empty();
    if !is_known(&sums.total) {
        return None;
    }
    let today = date(&env.clock, env.clock.now());
    sums.days.into_iter().find(|day| day.of == today).map(|day| day.usage).filter(is_known)
}

fn ids<S: Serializer>(unlanded: &[(DecisionId, Option<String>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(unlanded.iter().map(|(id, _)| id))
}

fn keys<S: Serializer>(runs: &BTreeMap<RunId, Option<String>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(runs.keys())
}

fn watch_of(repository: &Repository, team: &str) -> Option<WatchStatus> {
    let watcher = WatchFiles::new(repository, team).watcher()?;
    Some(WatchStatus { state: watcher.state(), watcher })
}

fn known(env: &Env, sessions: Vec<SessionStatus>) -> Vec<KnownSession> {
    let mut places: BTreeMap<String, Option<Workspace>> = BTreeMap::new();
    let known = |session: SessionStatus| {
        let find = || Workspace::find(env, Path::new(&session.directory)).ok();
        let place = places.entry(session.directory.clone()).or_insert_with(find).as_ref();
        let branch = place.and_then(|place| place.repository.head().ok()?.branch);
        let is_standing = session.id == standing_session_id(&session.agent);
        let record = place.filter(|_| is_standing).map(|place| Record::new(place, session.run.as_ref()));
        let summary = record.and_then(|record| record.last_work(&session.agent));
        KnownSession { session, branch, summary }
    };
    sessions.into_iter().map(known).collect()
}

/// The state that live runs report. A run that has just started may not have reported anything yet.
fn live_runs(env: &Env, live: Vec<LiveRun>) -> (Vec<RunStatus>, Vec<SessionStatus>) {
    let (mut runs, mut all) = (Vec::new(), Vec::new());
    let activities = activities(&live);
    for (run, activity) in live.into_iter().zip(activities) {
        let RunActivity { step, agents, sessions, questions, check, person, tasks: _ } = activity.unwrap_or_default();
        runs.push(RunStatus { run, step, agents, questions, check, waited: person.seconds(env.clock.now()) });
        all.extend(sessions);
    }
    (runs, all)
}
