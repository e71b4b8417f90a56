//! The user's other machines, as the settings name them.

use std::path::Path;

use serde::Serialize;

use crate::env::Env;
use crate::error::Failure;
use crate::model::list;
use crate::ops::{Project, own_settings};
use crate::settings::{Layer, Settings};

/// What is known of a host.
#[derive(Debug, Serialize)]
pub(crate) struct HostReport {
    pub(crate) name: String,
    /// `None`: it was not tried.
    pub(crate) reachable: Option<bool>,
    /// The version of squad there.
    pub(crate) version: Option<String>,
    pub(crate) slots: usize,
    /// How many agents work there; `None`: unknown.
    pub(crate) busy: Option<usize>,
    /// Those that may be started there; before it was tried, empty: any.
    pub(crate) engines: Vec<String>,
    pub(crate) labels: Vec<String>,
    /// The program and its arguments that start a worker there.
    pub(crate) launch: Vec<String>,
}

/// The hosts that these names stand for; without names, all. Works without a team.
pub(crate) fn listed(env: &Env, directory: &Path, names: &[String]) -> Result<Vec<HostReport>, Failure> {
    let project = Project::open(env, directory, Layer::default()).ok();
    let settings = project.map_or_else(|| own_settings(env), |project| project.settings);
    let mut wanted: Vec<&str> = Vec::new();
    for name in names {
        let found = settings.hosts_named(name);
        if found.is_empty() {
            return Err(unknown(name, &settings));
        }
        wanted.extend(found);
    }
    let is_wanted = |name: &str| names.is_empty() || wanted.contains(&name);
    let report = |(name, host): (&String, &crate::settings::HostSettings)| HostReport {
        name: name.clone(),
        reachable: None,
        version: None,
        slots: host.slots,
        busy: None,
        engines: host.engines.clone(),
        labels: host.labels.clone(),
        launch: host.launch.clone(),
    };
    Ok(settings.hosts.iter().filter(|(name, _)| is_wanted(name)).map(report).collect())
}

fn unknown(name: &str, settings: &Settings) -> Failure {
    let hosts = list(settings.hosts.keys().map(|host| format!("`{host}`")));
    let hint = match hosts.as_str() {
        "" => "`[hosts.NAME]` in your own configuration file names one".to_owned(),
        hosts => format!("the hosts are {hosts}"),
    };
    Failure::usage(format!("no host has the name or label `{name}`")).hint(hint)
}
