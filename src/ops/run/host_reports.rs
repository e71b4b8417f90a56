//! What is known of the user's other machines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;

use crate::engine::remote;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{list, printable, seconds};
use crate::ops::run::host_install::{self, Installed};
use crate::ops::run::hosts::{self, launch};
use crate::ops::{Project, own_settings, runtime};
use crate::settings::{HostSettings, Layer, Settings};

/// What is known of a host.
#[derive(Debug, Serialize)]
pub(crate) struct HostReport {
    pub(crate) name: String,
    /// `stream`, or `batch`: nobody talks to the worker while it works.
    pub(crate) mode: &'static str,
    /// `None`: it was not tried.
    pub(crate) reachable: Option<bool>,
    /// The version of squad there.
    pub(crate) version: Option<String>,
    /// As `linux-x86_64`.
    pub(crate) platform: Option<String>,
    pub(crate) slots: usize,
    /// How many agents work there; `None`: unknown.
    pub(crate) busy: Option<usize>,
    /// Those that may be started there; before it was tried, empty: any.
    pub(crate) engines: Vec<String>,
    pub(crate) labels: Vec<String>,
    /// The program and its arguments that start a worker there.
    pub(crate) launch: Vec<String>,
    /// Until the worker's first word.
    pub(crate) seconds: Option<f64>,
    /// Why it cannot be reached.
    pub(crate) problem: Option<String>,
}

impl HostReport {
    fn of(name: &str, host: &HostSettings) -> Self {
        Self {
            name: name.to_owned(),
            mode: if host.is_batch { "batch" } else { "stream" },
            reachable: None,
            version: None,
            platform: None,
            slots: host.slots,
            busy: None,
            engines: host.engines.clone(),
            labels: host.labels.clone(),
            launch: host.launch.clone(),
            seconds: None,
            problem: None,
        }
    }

    /// Whether orders can be left for it: no job is started.
    fn try_remote(mut self, remote: Result<(), String>) -> Self {
        (self.reachable, self.problem) = (Some(remote.is_ok()), remote.err().map(|reason| printable(&reason)));
        self
    }

    /// Starts a worker there, which ends at once.
    async fn try_it(mut self, launch: Result<remote::Launch, String>, limit: Duration) -> Self {
        let greeted = match &launch {
            Ok(launch) => remote::greet(launch, limit).await.map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        };
        self.reachable = Some(greeted.is_ok());
        match greeted {
            Ok((hello, waited)) => {
                let may_start = |engine: &String| self.engines.is_empty() || self.engines.contains(engine);
                self.engines = hello.engines.into_iter().filter(may_start).collect();
                (self.version, self.platform) = (Some(hello.version), Some(hello.platform));
                (self.busy, self.seconds) = (Some(hello.busy), Some(seconds(waited)));
            }
            Err(reason) => self.problem = Some(printable(&reason)),
        }
        self
    }
}

/// The hosts of the configuration.
pub(crate) struct Known {
    settings: Settings,
    /// Where launchers are started.
    directory: PathBuf,
}

impl Known {
    /// Works without a team.
    pub(crate) fn read(env: &Env, directory: &Path) -> Self {
        match Project::open(env, directory, Layer::default()) {
            Ok(project) => Self { directory: project.folder.root.clone(), settings: project.settings },
            Err(_) => Self { directory: directory.to_owned(), settings: own_settings(env) },
        }
    }

    /// The hosts that these names stand for; without names, all.
    pub(crate) fn list(&self, names: &[String]) -> Result<Vec<HostReport>, Failure> {
        let mut wanted: Vec<&str> = Vec::new();
        for name in names {
            let found = self.settings.hosts_named(name);
            if found.is_empty() {
                return Err(unknown(name, &self.settings));
            }
            wanted.extend(found);
        }
        let hosts = self.settings.hosts.iter().filter(|(name, _)| names.is_empty() || wanted.contains(&name.as_str()));
        Ok(hosts.map(|(name, host)| HostReport::of(name, host)).collect())
    }

    /// Copies this program to the host of a name.
    pub(crate) fn install(&self, env: &Env, name: &str, limit: Duration) -> Result<Installed, Failure> {
        if !self.settings.hosts.contains_key(name) {
            return Err(unknown(name, &self.settings));
        }
        host_install::install(env, &self.directory, &self.settings, name, limit)
    }

    /// Tries each of these, all at the same time. `limit`: how long a worker may take to say its first word.
    pub(crate) fn check(
        &self,
        env: &Env,
        reports: Vec<HostReport>,
        limit: Duration,
    ) -> Result<Vec<HostReport>, Failure> {
        runtime(env)?.block_on(async {
            let mut tries = JoinSet::new();
            for report in reports {
                if report.mode == "batch" {
                    let remote = hosts::try_remote(env, &self.directory);
                    tries.spawn(async move { report.try_remote(remote) });
                    continue;
                }
                let launch = launch(env, &self.directory, &self.settings, &report.name);
                tries.spawn(report.try_it(launch, limit));
            }
            let mut reports = tries.join_all().await;
            reports.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(reports)
        })
    }
}

fn unknown(name: &str, settings: &Settings) -> Failure {
    let hosts = list(settings.hosts.keys().map(|host| format!("`{host}`")));
    let hint = match hosts.as_str() {
        "" => "`[hosts.NAME]` in your own configuration file names one".to_owned(),
        hosts => format!("the hosts are {hosts}"),
    };
    Failure::usage(format!("no host has the name or label `{name}`")).hint(hint)
}
