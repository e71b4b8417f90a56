//! What `squad init` is about to write: each line with its source, for a user who may change it first.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::engines::{self, Readiness};
use super::survey::{self, Survey};
pub(crate) use super::survey::{Fact, Kind};
use crate::env::Env;
use crate::error::Failure;
use crate::model::list;
use crate::ops::own_settings;

/// A line of the proposal: what it is called, its value, and where that comes from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) source: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Proposal {
    pub(crate) purpose: Option<Fact>,
    /// Who it is for, which no file says.
    pub(crate) users: Option<Fact>,
    pub(crate) kind: Option<Fact<Kind>>,
    pub(crate) stack: Option<Fact>,
    /// The commands that build and test.
    pub(crate) checks: Vec<Fact>,
    /// The one of them that squad is to run itself.
    pub(crate) check: Option<Fact>,
    /// Folders, each with the agent that owns it.
    pub(crate) owners: Vec<(String, String)>,
    pub(crate) owners_source: String,
    /// Manifests that nothing is read from, because they cannot be parsed, and why.
    damaged: Vec<Fact>,
    left_out: Vec<Fact>,
    /// All folders of the repository, from its root.
    pub(crate) folders: BTreeSet<String>,
    pub(crate) is_empty: bool,
    pub(crate) conventions: Vec<&'static str>,
    pub(crate) code_owners: Option<String>,
    /// The slugs of the agents; empty for all of the user's own preset.
    pub(crate) agents: Vec<String>,
    /// Why these.
    pub(crate) team: String,
    /// The engine to name in the team's configuration.
    pub(crate) engine: Option<String>,
    /// The engine that will be used, and how that is known.
    pub(crate) used_engine: Fact,
}

/// A source of what the user typed.
pub(crate) const YOURS: &str = "yours";

/// A source of a team that fits the repository.
const PRESET: &str = "preset ";

impl Proposal {
    pub(super) fn new(
        env: &Env,
        directory: &Path,
        survey: Survey,
        agents: Vec<String>,
        is_built_in: impl Fn(&str) -> bool,
    ) -> Result<Self, Failure> {
        let (preset, fitting) = survey.team();
        let are_known = fitting.iter().all(|slug| is_built_in(slug));
        let (agents, team) = match agents.is_empty() {
            false => (agents, YOURS.to_owned()),
            true if are_known => (fitting.into_iter().map(str::to_owned).collect(), format!("{PRESET}{preset}")),
            true => (agents, "all of the preset".to_owned()),
        };
        let (engine, used_engine) = engine(env, directory)?;
        let stack = survey.stack();
        Ok(Self {
            purpose: survey.purpose,
            users: None,
            kind: survey.kind,
            stack,
            checks: survey.checks.into_iter().map(|check| Fact { value: check.line(), source: check.source }).collect(),
            check: survey.check,
            owners: survey.owners.into_iter().map(|(path, owner)| (path, owner.to_owned())).collect(),
            owners_source: "by what is in them".to_owned(),
            damaged: survey.damaged,
            left_out: survey.left_out,
            folders: survey.folders,
            is_empty: survey.is_empty,
            conventions: survey.conventions,
            code_owners: survey.code_owners,
            agents,
            team,
            engine,
            used_engine,
        })
    }

    /// Takes another kind, and the team that fits it, unless the user has chosen one.
    pub(crate) fn set_kind(&mut self, kind: Option<Kind>) {
        self.kind = kind.map(|value| Fact { value, source: YOURS.to_owned() });
        if self.team.starts_with(PRESET) {
            let has_docs = self.owners.iter().any(|(_, owner)| owner == "Docs");
            let (preset, agents) = survey::team(kind, has_docs, self.is_empty);
            self.agents = agents.into_iter().map(str::to_owned).collect();
            self.team = format!("{PRESET}{preset}");
        }
    }

    /// The commands that the user named, and the one of them that squad is to run.
    pub(crate) fn set_checks(&mut self, checks: Vec<Fact>) {
        self.check = survey::only_check(checks.iter().map(|check| (check.clone(), true)));
        self.checks = checks;
    }

    /// The owners of folders that are on the team.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &(String, String)> {
        let is_on_team = |owner: &String| self.agents.is_empty() || self.agents.contains(&owner.to_lowercase());
        self.owners.iter().filter(move |(_, owner)| is_on_team(owner))
    }

    /// Everything that is known, a line for each.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let line = |name, fact: &Fact| Line { name, value: fact.value.clone(), source: fact.source.clone() };
        let mut lines = Vec::new();
        lines.extend(self.purpose.as_ref().map(|fact| line("purpose", fact)));
        lines.extend(self.users.as_ref().map(|fact| line("users", fact)));
        lines.extend(self.kind.as_ref().map(|Fact { value, source }| Line {
            name: "kind",
            value: value.name().to_owned(),
            source: source.clone(),
        }));
        lines.extend(self.stack.as_ref().map(|fact| line("stack", fact)));
        if !self.checks.is_empty() {
            let mut sources: Vec<&String> = self.checks.iter().map(|check| &check.source).collect();
            sources.dedup();
            let value = self.checks.iter().map(|check| check.value.as_str()).collect::<Vec<_>>().join(", ");
            lines.push(Line { name: "checks", value, source: list(sources) });
        }
        if let Some(Fact { value, source }) = &self.check {
            let value = format!("{value}, run by squad itself after changes");
            lines.push(Line { name: "checked", value, source: source.clone() });
        }
        let owners: Vec<String> =
            self.owners().map(|(path, owner)| format!("{path}/ {}", owner.to_lowercase())).collect();
        if !owners.is_empty() {
            lines.push(Line { name: "folders", value: owners.join(", "), source: self.owners_source.clone() });
        }
        if !self.agents.is_empty() {
            lines.push(Line { name: "team", value: self.agents.join(", "), source: self.team.clone() });
        }
        lines.push(line("engine", &self.used_engine));
        lines.extend(self.left_out.iter().map(|fact| line("left out", fact)));
        lines.extend(self.damaged.iter().map(|fact| line("damaged", fact)));
        lines
    }

    /// What a colleague would ask and nothing here says.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let all = [
            ("purpose", self.purpose.is_none()),
            ("users", self.users.is_none()),
            ("stack", self.stack.is_none()),
            ("build and test", self.checks.is_empty()),
        ];
        all.into_iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| name).collect()
    }
}

/// The engine that is ready, else one that is installed: what to write into the configuration, if it is not the usual one,
/// and how that is known.
fn engine(env: &Env, directory: &Path) -> Result<(Option<String>, Fact), Failure> {
    let settings = own_settings(env);
    let usual = &settings.engine.name;
    let reports = engines::until_ready(env, directory, &settings)?;
    let ready = reports.last().filter(|last| last.ready == Readiness::Ready);
    let Some(found) = ready.or_else(|| reports.iter().find(|report| report.installed)) else {
        let source = "not installed: `squad engines` shows how".to_owned();
        return Ok((None, Fact { value: usual.clone(), source }));
    };
    let is_other = found.name != *usual;
    let state = found.ready.name();
    let source = match found.complaint() {
        Some(complaint) if found.ready == Readiness::NotReady => complaint,
        _ if is_other && reports[0].installed => format!("{state}; {usual} is not ready"),
        _ if is_other => format!("{state}; {usual} is not installed"),
        _ => state.to_owned(),
    };
    Ok((is_other.then(|| found.name.clone()), Fact { value: found.name.clone(), source }))
}
