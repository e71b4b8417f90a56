//! Detects changes of the team's files and updates the sessions.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::{Duration, Instant};

use super::Watch;
use crate::compile::{Learnings, Task};
use crate::engine::Opening;
use crate::model::{EventKind, IntoMap, IntoSet, LineDiff, SessionSpec, Slug, Tier};
use crate::ops::run::executor::opening;
use crate::ops::run::setup::core;
use crate::ops::team::agents::compiler;
use crate::ops::team::project;
use crate::ops::{Project, Workspace};
use crate::pool::{SessionPool, WorkKind, standing_session_id};

/// How long a charter must be empty or missing before this counts as a change, not as a file being saved.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(500);

/// The team when it was last read.
#[derive(Default)]
pub(super) struct KnownTeam {
    /// Hash of everything the team was read from, see [`project::Opening::key`]. `None`: it could not be read.
    key: Option<String>,
    /// The session configurations of its agents.
    specs: BTreeMap<(Slug, Tier), SessionSpec>,
    charters: BTreeMap<Slug, String>,
    problem: Option<String>,
    idle: Duration,
    /// Since when charters that had text are empty or missing.
    empty_since: Option<Instant>,
}

/// The result of checking the team's files.
enum TeamCheck {
    /// Nothing has changed.
    Unchanged,
    Team(Option<String>, Box<Project>),
    Problem(String),
}

impl Watch {
    /// Checks the team and updates sessions with a changed configuration. Returns whether to check again soon.
    pub(super) async fn refresh_team(&self) -> bool {
        let Some(pool) = self.pool.borrow().clone() else { return false };
        let mut is_unsure = false;
        match self.check_team() {
            TeamCheck::Unchanged => self.team.borrow_mut().empty_since = None,
            TeamCheck::Team(_, project) if self.may_be_saving(&project) => is_unsure = true,
            TeamCheck::Team(key, project) => self.apply_team(&pool, key, &project).await,
            TeamCheck::Problem(problem) => {
                let is_known = self.team.borrow().problem.as_ref() == Some(&problem);
                if !is_known {
                    self.team.borrow_mut().problem = Some(problem.clone());
                    self.tell_changes(Vec::new(), Vec::new(), Vec::new(), Some(problem));
                }
            }
        }
        let idle = self.team.borrow().idle;
        pool.suspend(idle).await;
        is_unsure
    }

    /// Whether a charter may be in the middle of being saved.
    fn may_be_saving(&self, project: &Project) -> bool {
        let mut known = self.team.borrow_mut();
        let has_text = |text: &str| !text.trim().is_empty();
        let is_lost = |slug: &Slug| {
            let now = project.team.charters.get(slug);
            known.charters.get(slug).is_some_and(|text| has_text(text)) && !now.is_some_and(|now| has_text(&now.text))
        };
        let is_lost = project.team.startable().any(|member| is_lost(&member.slug));
        is_lost && known.empty_since.get_or_insert_with(Instant::now).elapsed() < SETTLE_TIME
    }

    fn check_team(&self) -> TeamCheck {
        let workspace = match Workspace::find(&self.env, &self.directory) {
            Ok(workspace) => workspace,
            Err(failure) => return TeamCheck::Problem(failure.message),
        };
        let looked = project::Opening::new(&self.env, workspace, self.settings());
        let key = looked.key();
        {
            let known = self.team.borrow();
            if key.is_some() && key == known.key && known.problem.is_none() {
                return TeamCheck::Unchanged;
            }
        }
        let project = looked.read();
        match project.require_sound() {
            Ok(()) => TeamCheck::Team(key, Box::new(project)),
            Err(failure) => {
                let location = failure.source.map(|source| format!("{source}: ")).unwrap_or_default();
                TeamCheck::Problem(format!("{location}{}", failure.message))
            }
        }
    }

    async fn apply_team(&self, pool: &SessionPool, key: Option<String>, project: &Project) {
        let (task, learnings) = (Task::none(), Learnings::new());
        let compiler = compiler(project, &learnings, &[], &task).on(pool.offer().await);
        let mut tiers: BTreeMap<Slug, BTreeSet<Tier>> = BTreeMap::new();
        for (agent, tier) in pool.kept_agents() {
            tiers.entry(agent).or_default().insert(tier);
        }
        let mut specs = BTreeMap::new();
        for member in project.team.startable() {
            let kept = tiers.remove(&member.slug).unwrap_or_default();
            for tier in kept.into_iter().chain([Tier::Standard]) {
                specs.insert((member.slug.clone(), tier), compiler.agent(member, tier).spec);
            }
        }
        let coordinator = compiler.coordinator().spec;
        specs.insert((coordinator.agent.clone(), coordinator.tier), coordinator);
        let of_agents = project.team.startable().map(|member| &member.slug);
        let charters = of_agents.filter_map(|slug| Some((slug.clone(), project.team.charters.get(slug)?.text.clone())));
        let charters = charters.into_map();
        let idle = project.settings.sessions.idle_timeout;
        let now = KnownTeam { key, specs, charters, problem: None, idle, empty_since: None };
        let before = self.team.replace(now);
        if before.specs.is_empty() {
            self.warm_up(pool, project).await;
        } else {
            self.follow_changes(pool, project, &before).await;
        }
    }

    /// Opens the core agents' sessions in advance.
    async fn warm_up(&self, pool: &SessionPool, project: &Project) {
        for agent in core(project) {
            let spec = self.team.borrow().specs.get(&(agent.clone(), Tier::Standard)).cloned();
            if let Some(spec) = spec {
                pool.warm_up(self.opening(project, &agent, spec)).await;
            }
        }
    }

    fn opening(&self, project: &Project, agent: &Slug, spec: SessionSpec) -> Opening {
        opening(project, spec, standing_session_id(agent), WorkKind::Work, self.asks)
    }

    async fn follow_changes(&self, pool: &SessionPool, project: &Project, before: &KnownTeam) {
        let (specs, charters) = {
            let now = self.team.borrow();
            (now.specs.clone(), now.charters.clone())
        };
        let agents = |specs: &BTreeMap<(Slug, Tier), SessionSpec>| -> BTreeSet<Slug> {
            specs.keys().map(|(agent, _)| agent.clone()).collect()
        };
        let (old, new) = (agents(&before.specs), agents(&specs));
        let is_changed = |key: &(Slug, Tier), spec: &SessionSpec| {
            before.specs.get(key).is_some_and(|old| old.compiled_hash != spec.compiled_hash)
        };
        let changed: Vec<(&(Slug, Tier), &SessionSpec)> =
            specs.iter().filter(|(key, spec)| is_changed(key, spec)).collect();
        let of_changed: BTreeSet<Slug> = changed.iter().map(|((agent, _), _)| agent.clone()).into_set();
        let (joined, left): (Vec<_>, Vec<_>) =
            (new.difference(&old).cloned().collect(), old.difference(&new).cloned().collect());
        if !(of_changed.is_empty() && joined.is_empty() && left.is_empty()) || before.problem.is_some() {
            self.tell_changes(of_changed.into_iter().collect(), joined, left.clone(), None);
        }
        self.show_charters(&before.charters, &charters);
        let kept: BTreeSet<(Slug, Tier)> = pool.kept_agents().into_iter().into_set();
        for (key, spec) in changed.into_iter().filter(|(key, _)| kept.contains(key)) {
            pool.recreate(&key.0, spec.clone()).await;
        }
        for agent in &left {
            pool.dismiss(agent).await;
        }
        self.warm_up(pool, project).await;
    }

    fn show_charters(&self, before: &BTreeMap<Slug, String>, now: &BTreeMap<Slug, String>) {
        for (agent, text) in now {
            if let Some(old) = before.get(agent).filter(|old| *old != text) {
                let diff = LineDiff::new(old, text).unified(1);
                self.reports.tell(Some(agent), EventKind::CharterChanged { diff });
            }
        }
    }

    fn tell_changes(&self, changed: Vec<Slug>, joined: Vec<Slug>, left: Vec<Slug>, problem: Option<String>) {
        self.reports.tell(None, EventKind::TeamChanged { changed, joined, left, problem });
    }
}
