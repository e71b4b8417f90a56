//! `[hosts.NAME]`: other machines that agents can work on, each with the program that starts `squad worker` there.

use std::time::Duration;

use toml::Value;

use super::keys::{arguments, duration, integer, texts, variables};

/// How long an agent's host may be out of reach, unless the configuration says more or less. A laptop may sleep, or change
/// its network.
const LEASE: Duration = Duration::from_secs(60 * 60);
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
const LONGEST_LEASE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

#[derive(Clone, Debug)]
pub(crate) struct HostSettings {
    /// A program and its arguments that start `squad worker` there and pass on its standard input and output and its exit
    /// code. Of a batch host, what hands a job in; empty: something else looks for orders.
    pub(crate) launch: Vec<String>,
    /// Nobody talks to the worker while it works: its order and its result lie on a remote.
    pub(crate) is_batch: bool,
    /// How many agents may work there at the same time.
    pub(crate) slots: usize,
    pub(crate) labels: Vec<String>,
    /// The engines that may be started there; empty: any.
    pub(crate) engines: Vec<String>,
    /// An agent whose host is gone begins again on another one. Otherwise somebody has to say so.
    pub(crate) retries_elsewhere: bool,
    /// How long a worker goes on without this machine, and this machine looks for a host that is out of reach.
    pub(crate) lease: Duration,
    /// Names of variables that agents there get from the worker's own environment, if its configuration lets them.
    pub(crate) secrets: Vec<String>,
    /// A program and its arguments that make an agent's clone there ready; empty: none is needed.
    pub(crate) setup: Vec<String>,
}

/// `[worker]`: what the orders of others may have on this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerSettings {
    /// Names of variables that orders may name, and that nobody gets whose order does not.
    pub(crate) secrets: Vec<String>,
    /// The command lines that orders may have run to make a clone ready.
    pub(crate) setup: Vec<String>,
}

impl Default for HostSettings {
    fn default() -> Self {
        // squad does not know what a machine can bear, and one agent's build may use all of it. CI runners begin with one, too.
        let (launch, labels, engines, secrets, setup) = Default::default();
        let retries_elsewhere = false;
        Self { launch, is_batch: false, slots: 1, labels, engines, retries_elsewhere, lease: LEASE, secrets, setup }
    }
}

impl HostSettings {
    /// Sets one key. Fails with what is wrong with it, to follow its name.
    pub(super) fn put(&mut self, field: &str, value: &Value) -> Result<(), String> {
        match field {
            "launch" => self.launch = arguments(value)?,
            "slots" => {
                let number = integer(value)?;
                let count = usize::try_from(number).ok().filter(|count| (1..=1000).contains(count));
                self.slots = count.ok_or_else(|| format!("must be from 1 to 1000, not {number}"))?;
            }
            "mode" => {
                self.is_batch = match value.as_str() {
                    Some("stream") => false,
                    Some("batch") => true,
                    _ => return Err(format!("must be \"stream\" or \"batch\", not {value}")),
                }
            }
            "labels" => self.labels = texts(value)?,
            "engines" => self.engines = texts(value)?,
            "retry" => {
                self.retries_elsewhere = match value.as_str() {
                    Some("ask") => false,
                    Some("elsewhere") => true,
                    _ => return Err(format!("must be \"ask\" or \"elsewhere\", not {value}")),
                }
            }
            "lease" => {
                let lease = duration(value)?;
                if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
                    return Err("must be from one second to seven days".to_owned());
                }
                self.lease = lease;
            }
            "secrets" => self.secrets = variables(value)?,
            "setup" => self.setup = arguments(value)?,
            _ => {
                let fields = "`launch`, `mode`, `slots`, `labels`, `engines`, `retry`, `lease`, `secrets` and `setup`";
                return Err(format!("must be one of {fields}"));
            }
        }
        Ok(())
    }

    /// What it lacks, to follow its name.
    pub(super) fn lack(&self) -> Option<&'static str> {
        let lacks = "does not say how to start a worker, such as `launch = [\"ssh\", \"build1\", \"--\", \"squad\", \"worker\"]`";
        (self.launch.is_empty() && !self.is_batch).then_some(lacks)
    }
}
