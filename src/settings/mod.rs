//! Configuration in layers. Each value remembers its origin.
//!
//! Lowest to highest: built-in defaults, `.squad/config.toml`, the user's own `squad/config.toml`, `SQUAD_*` variables,
//! the command line. [`keys::KEYS`] is the one list of settings; everything else follows from it.
//!
//! A cloned repository may bring a `.squad/config.toml`, so that layer must not redirect prompts or keys or name
//! programs. It may not set [`keys::Key::guarded`] keys; they are ignored with a warning.

mod engine_profile;
mod hooks;
mod hosts;
mod keys;
mod layer;
mod policy;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use engine_profile::{
    Argument, Chats, EngineProfile, Loopback, PLACEHOLDERS, Permission, PromptWay, SessionProtocol, StateMode,
    StreamKind, ToolsWay,
};
pub(crate) use hooks::{HookPoint, HookSettings};
pub(crate) use hosts::{HostSettings, WorkerSettings};
pub(crate) use keys::SESSION_ENGINES;
pub(crate) use keys::{ANY_HOST, BAD_VALUE};
pub(crate) use layer::{NOT_TOML, from_command_line, from_json, from_text, from_toml, from_variables, server_entries};
pub(crate) use policy::{PolicyEntry, PolicyScope, PolicySubject, PolicyWord};

use crate::model::{
    Claim, GitAccess, HostPattern, NetworkAccess, Problem, SandboxLevel, Severity, Source, Tier, Usage,
};

/// Where a value came from, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Default,
    /// The path of `.squad/config.toml` relative to the project's root, and the line.
    Project(String, usize),
    /// The path of the user's own file, and the line.
    User(String, usize),
    /// The variable's name.
    Variable(String),
    /// The flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Project(file, line) | Self::User(file, line) => write!(f, "{file}:{line}"),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

impl Origin {
    /// The origin as the source of a problem.
    pub(crate) fn source(&self) -> Source {
        match self {
            Self::Project(file, line) | Self::User(file, line) => Source::new(file, *line),
            other => Source::new(other.to_string(), 0),
        }
    }
}

/// One layer: dotted keys and their values as written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub(crate) entries: Vec<(String, toml::Value, Origin)>,
}

/// What a user has approved of a repository's settings, by the names that [`restricted`] gives.
#[derive(Debug, Default)]
pub(crate) struct Trusted {
    pub(crate) approved: BTreeSet<String>,
    /// As something else than it is now.
    pub(crate) changed: BTreeSet<String>,
    /// The repository brings nothing of these names any more.
    pub(crate) removed: BTreeSet<String>,
}

/// The built-in values alone, which a repository may not loosen. A test resolves them without a problem.
static BUILT_IN: LazyLock<Settings> = LazyLock::new(|| {
    let mut settings = Settings::blank();
    for (name, value, origin) in from_toml(DEFAULTS, |_| Origin::Default).0.entries {
        if let Some((key, rest)) = keys::find(&name)
            && (key.set)(&mut settings, rest, &value).is_ok()
        {
            settings.values.insert(name, (value, origin));
        }
    }
    settings
});

/// The effective settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) models: Models,
    pub(crate) sessions: Sessions,
    pub(crate) routing: RoutingSettings,
    pub(crate) sandbox: SandboxSettings,
    pub(crate) isolation: IsolationSettings,
    pub(crate) policy: PolicySettings,
    pub(crate) budget: BudgetSettings,
    /// The program and arguments that check the project; empty: none is configured.
    pub(crate) check: Vec<String>,
    pub(crate) engine: EngineSettings,
    /// By name, which is also their order.
    pub(crate) hooks: BTreeMap<String, HookSettings>,
    /// MCP servers, by name.
    pub(crate) mcp: BTreeMap<String, McpServerSettings>,
    pub(crate) git: GitSettings,
    /// Other squads' repositories by name, each with its address.
    pub(crate) links: BTreeMap<String, String>,
    /// The user's own command engines, and changes to built-in ones, by name.
    pub(crate) engines: BTreeMap<String, EngineProfile>,
    /// The engine of each agent, by its name or role in lower case.
    pub(crate) agent_engines: BTreeMap<String, String>,
    /// The host of each agent, by its name or role in lower case: a host's name, a label, or [`ANY_HOST`].
    pub(crate) agent_hosts: BTreeMap<String, String>,
    /// Where each agent works, by its name or role in lower case.
    pub(crate) agent_isolation: BTreeMap<String, Isolation>,
    /// Other machines, by name.
    pub(crate) hosts: BTreeMap<String, HostSettings>,
    pub(crate) worker: WorkerSettings,
    /// The effective value and its origin, by key.
    values: BTreeMap<String, (toml::Value, Origin)>,
    /// The values of all layers, lowest first, where one does not replace another.
    added: Vec<(String, toml::Value, Origin)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Models {
    /// The user's own choice of model, which beats everything else: by role or agent in lower case, or `all`.
    pub(crate) overrides: BTreeMap<String, String>,
    pub(crate) default: String,
    pub(crate) lightweight: String,
    pub(crate) premium: String,
    /// `None`: the default.
    pub(crate) coordinator: Option<String>,
    /// The model by role or agent, in lower case.
    pub(crate) roles: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    /// Longest silence of a working agent.
    pub(crate) timeout: Duration,
    /// Longest tool call.
    pub(crate) tool_limit: Duration,
    /// Longest working time for one message to an agent.
    pub(crate) limit: Duration,
    /// How often an agent goes on after an error of its engine.
    pub(crate) retry: u32,
    pub(crate) infinite: bool,
    /// A single run uses the agents' standing sessions, too.
    pub(crate) standing: bool,
    pub(crate) max_concurrent: usize,
    /// Agents or roles in lower case. `squad watch` keeps their sessions open, and they are first in the queue.
    pub(crate) core: Vec<String>,
    /// How long a session may be idle before it is suspended.
    pub(crate) idle_timeout: Duration,
    /// Bytes that engines' files of completed runs' sessions may take.
    pub(crate) workspace_limit: u64,
    /// Fraction of the context window, between 0 and 1.
    pub(crate) compaction_threshold: f64,
    /// `None`: depends on the message.
    pub(crate) default_tier: Option<Tier>,
}

#[derive(Clone, Debug)]
pub(crate) struct RoutingSettings {
    /// Routing answers by itself from this confidence on, between 0 and 1.
    pub(crate) threshold: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct SandboxSettings {
    /// The strongest level to use. A system without it has the next one.
    pub(crate) level: SandboxLevel,
    /// No agent starts at a weaker level.
    pub(crate) require: bool,
    /// Files and folders that agents may read, although they are hidden by default; `~/` is the user's home.
    pub(crate) read: Vec<String>,
    /// What commands may do in the project's `.git` at level `full`.
    pub(crate) git: GitAccess,
    /// What of the network they reach at level `full`; `None`: listed hosts, where the engine's own can be reached so.
    pub(crate) network: Option<NetworkAccess>,
    /// The user's list of hosts, beside those that engines and package managers need.
    pub(crate) hosts: Vec<HostPattern>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct IsolationSettings {
    pub(crate) mode: Isolation,
    /// By tier, where it differs.
    pub(crate) tiers: BTreeMap<Tier, Isolation>,
    /// Where agents without a host of their own work: a host, a label, or any host; `None`: on this machine.
    pub(crate) host: Option<String>,
    /// What git ignores and each clone gets all the same: files and folders below the project's.
    pub(crate) bring: Vec<String>,
    /// A program and its arguments that make a new clone ready; empty: none is needed.
    pub(crate) setup: Vec<String>,
}

/// Where agents work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// In the user's work tree, side by side.
    #[default]
    Project,
    /// Each in a clone of its own.
    Clone,
}

impl Isolation {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "project" => Some(Self::Project),
            "clone" => Some(Self::Clone),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct PolicySettings {
    /// Most questions that an agent may ask a person in one piece of work.
    pub(crate) questions: u64,
    /// What a person has allowed with "always" for later runs too, by the project's root.
    pub(crate) kept: BTreeMap<String, Vec<String>>,
}

/// What may be spent, of a run as a whole and by each of its agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BudgetSettings {
    pub(crate) run: BudgetLimits,
    pub(crate) agent: BudgetLimits,
    /// Of all runs of a team in one day.
    pub(crate) day: BudgetLimits,
    /// Of all runs of a team in its clone, ever.
    pub(crate) repository: BudgetLimits,
    /// The user's, by model, for engines that do not tell what their calls cost.
    pub(crate) prices: BTreeMap<String, Price>,
}

/// What a model's tokens cost, in US dollars for a million.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Price {
    pub(crate) input: Option<f64>,
    pub(crate) output: Option<f64>,
    /// Input that the engine's provider has cached; `None`: as other input.
    pub(crate) cached: Option<f64>,
    /// Input that it caches now; `None`: as other input.
    pub(crate) written: Option<f64>,
}

impl Price {
    /// What it lacks to be one.
    fn lack(&self) -> Option<&'static str> {
        let is_whole = self.input.is_some() && self.output.is_some();
        (!is_whole).then_some("needs `input` and `output`, in US dollars for a million tokens")
    }

    /// What these tokens cost; `None`: the engine told none. Input that was or is cached is a part of the input.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<f64> {
        const MILLION: f64 = 1_000_000.0;
        let (input, output) = (self.input?, self.output?);
        let cached = usage.cache_read_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let fresh = usage.input_tokens - cached - written;
        let parts = [
            (fresh, input),
            (cached, self.cached.unwrap_or(input)),
            (written, self.written.unwrap_or(input)),
            (usage.output_tokens, output),
        ];
        let sum: f64 = parts.into_iter().map(|(tokens, price)| tokens as f64 * price).sum();
        (usage.input_tokens + usage.output_tokens > 0).then_some(sum / MILLION)
    }
}

/// The price of a model by one of these names, if the table has it.
pub(crate) fn price_of<'p>(prices: &'p BTreeMap<String, Price>, models: [Option<&str>; 2]) -> Option<&'p Price> {
    models.into_iter().flatten().find_map(|model| prices.get(&model.to_lowercase()))
}

impl BudgetSettings {
    /// The price of a model by one of these names, if the user's table has it.
    pub(crate) fn price_of(&self, models: [Option<&str>; 2]) -> Option<&Price> {
        price_of(&self.prices, models)
    }

    /// Whether anything is limited beyond a single run.
    pub(crate) fn spans_runs(&self) -> bool {
        [&self.day, &self.repository].into_iter().any(|limits| *limits != BudgetLimits::default())
    }
}

/// `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BudgetLimits {
    /// Messages to an engine's session.
    pub(crate) turns: Option<u64>,
    pub(crate) tool_calls: Option<u64>,
    /// Working time: none in which everybody waits.
    pub(crate) time: Option<Duration>,
    /// Input and output, cached input too.
    pub(crate) tokens: Option<u64>,
    /// US dollars.
    pub(crate) cost_usd: Option<f64>,
    /// In the engines' own units, by their names.
    pub(crate) billed: BTreeMap<String, f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct EngineSettings {
    pub(crate) name: String,
    /// Engines to try in order, with a message, when the engine cannot start.
    pub(crate) fallback: Vec<String>,
    pub(crate) copilot: CopilotSettings,
    /// What an engine must have proved before it is started.
    pub(crate) require: BTreeSet<Claim>,
    /// Path of the rehearsal script, relative to the working directory.
    pub(crate) script: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct GitSettings {
    /// The `git` program: a full path, or a name to look up.
    pub(crate) program: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CopilotSettings {
    /// The CLI's program.
    pub(crate) path: Option<String>,
    /// `auto`, `user`, or a folder.
    pub(crate) home: Option<String>,
    pub(crate) permission: Permission,
    pub(crate) provider: Option<ProviderSettings>,
}

/// A model endpoint of one's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProviderSettings {
    pub(crate) kind: Option<String>,
    pub(crate) wire_api: Option<String>,
    pub(crate) base_url: Option<String>,
    /// The name of the environment variable with the key.
    pub(crate) api_key_env: Option<String>,
    pub(crate) models: Vec<String>,
    /// The limit of tokens in one request.
    pub(crate) max_prompt_tokens: Option<u64>,
}

/// A tool server: a program or a URL.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct McpServerSettings {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// `stdio`, `http` or `sse`; `None`: as `command` or `url` says.
    pub(crate) kind: Option<String>,
    /// The tools that agents are offered; `None`: all.
    pub(crate) tools: Option<Vec<String>>,
    /// Longest tool call.
    pub(crate) timeout: Option<Duration>,
    /// The agents that it is for, by name or role; `None`: all.
    pub(crate) agents: Option<Vec<String>>,
}

impl McpServerSettings {
    /// Replaces each `${NAME}` in variables and headers. Fails with the first name that `variable` does not know.
    fn expand<'e>(&mut self, variable: impl Fn(&str) -> Option<&'e str>) -> Result<(), String> {
        for value in self.env.values_mut().chain(self.headers.values_mut()) {
            let mut expanded = String::new();
            let mut rest = value.as_str();
            while let Some((before, (name, after))) =
                rest.split_once("${").and_then(|(before, inner)| Some((before, inner.split_once('}')?)))
            {
                let known = variable(name).ok_or_else(|| name.to_owned())?;
                expanded.push_str(before);
                expanded.push_str(known);
                rest = after;
            }
            expanded.push_str(rest);
            *value = expanded;
        }
        Ok(())
    }
}

/// The built-in defaults.
const DEFAULTS: &str = r#"
[models]
default = "claude-sonnet-4.5"
lightweight = "claude-haiku-4.5"
premium = "claude-opus-4.5"

[sessions]
timeout = "5m"
tool_limit = "30m"
limit = "1h"
retry = 1
infinite = true
standing = false
max_concurrent = 8
core = ["lead", "tester"]
idle_timeout = "15m"
workspace_limit = "256 MiB"
compaction_threshold = 0.80
default_tier = "auto"

[routing]
threshold = 0.70

[isolation]
mode = "project"

[sandbox]
level = "full"
require = false
read = []
git = "read-only"
hosts = []

[policy]
questions = 30

[engine]
name = "copilot"
fallback = []
"#;

impl Default for Settings {
    fn default() -> Self {
        Self::resolve([]).0
    }
}

impl Settings {
    /// Applies the layers to the defaults, lowest first. Unusable values are ignored and reported.
    pub(crate) fn resolve(layers: impl IntoIterator<Item = Layer>) -> (Self, Vec<Problem>) {
        Self::resolve_trusting(layers, &Trusted::default())
    }

    /// With what a user has approved of a repository's settings.
    pub(crate) fn resolve_trusting(layers: impl IntoIterator<Item = Layer>, trusted: &Trusted) -> (Self, Vec<Problem>) {
        let mut settings = BUILT_IN.clone();
        let mut problems = Vec::new();
        let (mut unknown, mut refused) = (BTreeSet::new(), BTreeSet::new());
        for (name, value, origin) in layers.into_iter().flat_map(|layer| layer.entries) {
            let Some((key, rest)) = keys::find(&name) else {
                if unknown.insert(name.clone()) {
                    problems.push(keys::unknown(&name, &origin));
                }
                continue;
            };
            let is_restricted = matches!(origin, Origin::Project(..)) && !trusted.approved.contains(keys::owner(&name));
            if key.guarded && is_restricted {
                let name = keys::owner(&name);
                if refused.insert(name.to_owned()) {
                    let say = if trusted.changed.contains(name) { keys::changed } else { keys::guarded };
                    problems.push(say(name, &origin));
                }
                continue;
            }
            if is_restricted && keys::loosens(&name, &value, &BUILT_IN) {
                problems.push(keys::loosened(&name, &BUILT_IN, &origin));
                continue;
            }
            match (key.set)(&mut settings, rest, &value) {
                Ok(()) if key.adds_up => settings.added.push((name, value, origin)),
                Ok(()) => {
                    settings.values.insert(name, (value, origin));
                }
                Err(reason) if key.fails_closed() => problems.push(keys::blocking(&name, &reason, &origin)),
                Err(reason) => problems.push(keys::unusable(&name, &reason, &origin)),
            }
        }
        let hooks = settings.hooks.iter().map(|(name, hook)| (format!("{}{name}", keys::HOOKS), hook.lack()));
        let hosts = settings.hosts.iter().map(|(name, host)| (format!("{}{name}", keys::HOSTS), host.lack()));
        let prices =
            settings.budget.prices.iter().map(|(name, price)| (format!("{}{name}", keys::PRICES), price.lack()));
        for (name, lack) in hooks.chain(hosts).chain(prices) {
            // What cannot be read has been reported.
            let is_reported = problems.iter().any(|problem| problem.message.contains(&format!("`{name}.")));
            if let (Some(lack), false) = (lack, is_reported) {
                problems.push(keys::blocking(&name, lack, &settings.origin_of_table(&name)));
            }
        }
        for (agent, host) in settings.agent_hosts.iter().filter(|(_, host)| settings.hosts_named(host).is_empty()) {
            let name = settings.values.keys().find(|key| key.to_lowercase() == format!("agents.{agent}.host"));
            let reason = format!("is `{host}`, and no host has that name or label");
            problems.extend(name.map(|name| keys::blocking(name, &reason, &settings.origin(name))));
        }
        if let Some(host) = settings.isolation.host.as_ref().filter(|host| settings.hosts_named(host).is_empty()) {
            let reason = format!("is `{host}`, and no host has that name or label");
            problems.push(keys::blocking("isolation.host", &reason, &settings.origin("isolation.host")));
        }
        problems.extend(settings.timeout_meaning_changed());
        (settings, problems)
    }

    /// Empty settings, before even the defaults.
    fn blank() -> Self {
        Self {
            models: Models {
                overrides: BTreeMap::new(),
                default: String::new(),
                lightweight: String::new(),
                premium: String::new(),
                coordinator: None,
                roles: BTreeMap::new(),
            },
            sessions: Sessions {
                timeout: Duration::MAX,
                tool_limit: Duration::MAX,
                limit: Duration::MAX,
                infinite: false,
                standing: false,
                retry: 0,
                max_concurrent: 1,
                core: Vec::new(),
                idle_timeout: Duration::MAX,
                workspace_limit: u64::MAX,
                compaction_threshold: 1.0,
                default_tier: None,
            },
            routing: RoutingSettings { threshold: 1.0 },
            isolation: IsolationSettings::default(),
            sandbox: SandboxSettings {
                level: SandboxLevel::Full,
                require: false,
                read: Vec::new(),
                git: GitAccess::ReadOnly,
                network: None,
                hosts: Vec::new(),
            },
            policy: PolicySettings { questions: u64::MAX, kept: BTreeMap::new() },
            budget: BudgetSettings::default(),
            check: Vec::new(),
            engine: EngineSettings {
                name: String::new(),
                fallback: Vec::new(),
                copilot: CopilotSettings::default(),
                require: BTreeSet::new(),
                script: None,
            },
            hooks: BTreeMap::new(),
            mcp: BTreeMap::new(),
            git: GitSettings::default(),
            links: BTreeMap::new(),
            engines: BTreeMap::new(),
            agent_engines: BTreeMap::new(),
            agent_hosts: BTreeMap::new(),
            agent_isolation: BTreeMap::new(),
            hosts: BTreeMap::new(),
            worker: WorkerSettings::default(),
            values: BTreeMap::new(),
            added: Vec::new(),
        }
    }

    /// `sessions.timeout` used to limit a whole turn. A file from that time no longer does, so point that out.
    fn timeout_meaning_changed(&self) -> Option<Problem> {
        let (_, origin) = self.values.get("sessions.timeout")?;
        let is_of_a_file = matches!(origin, Origin::Project(..) | Origin::User(..));
        if !is_of_a_file || self.origin("sessions.limit") != Origin::Default {
            return None;
        }
        let message = "`sessions.timeout` limits how long an agent may be silent, not how long it may work";
        let problem = Problem::new(Severity::Note, origin.source(), "config-timeout", message);
        Some(problem.hint("`sessions.limit` limits its working time; the default is 1h"))
    }

    /// All values in effect: name, value as written, and origin.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&str, &toml::Value, &Origin)> {
        let added = self.added.iter().map(|(name, value, origin)| (name.as_str(), value, origin));
        self.values.iter().map(|(name, (value, origin))| (name.as_str(), value, origin)).chain(added)
    }

    /// The rules of `[policy]`, of all layers.
    pub(crate) fn policy_rules(&self) -> impl Iterator<Item = PolicyEntry> {
        let read = |(name, value, origin): &(String, toml::Value, Origin)| {
            PolicyEntry::read(name.strip_prefix("policy.")?, &keys::texts(value).ok()?, origin).ok()
        };
        self.added.iter().filter_map(read)
    }

    /// Fills variables of the environment into what MCP servers get. A server that needs one which is not set is left out.
    pub(crate) fn fill_in<'e>(&mut self, variable: impl Fn(&str) -> Option<&'e str>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut servers = std::mem::take(&mut self.mcp);
        servers.retain(|name, server| {
            let Err(missing) = server.expand(&variable) else { return true };
            let name = format!("{}{name}", keys::MCP_SERVERS);
            let source = self.origin_of_table(&name).source();
            let message = format!("`{name}` is left out: the variable `{missing}` that it needs is not set");
            problems.push(Problem::warning(source, "config-unset-variable", message));
            false
        });
        self.mcp = servers;
        problems
    }

    /// Values that are for MCP servers only.
    pub(crate) fn confidential(&self) -> impl Iterator<Item = (&str, &str)> {
        let both = self.mcp.values().flat_map(|server| server.env.iter().chain(&server.headers));
        both.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The engine chosen for an agent; `None`: the run's engine. An engine given by flag or variable is for all agents.
    pub(crate) fn engine_of(&self, names: &[String], chartered: Option<&str>) -> Option<String> {
        if matches!(self.origin("engine.name"), Origin::Flag(_) | Origin::Variable(_)) {
            return None;
        }
        let configured = names.iter().find_map(|name| self.agent_engines.get(name)).map(String::as_str);
        configured.or(chartered).filter(|engine| *engine != self.engine.name).map(str::to_owned)
    }

    /// The hosts that a name stands for: the host of that name, those with that label, or all for [`ANY_HOST`].
    pub(crate) fn hosts_named(&self, name: &str) -> Vec<&str> {
        if let Some((host, _)) = self.hosts.get_key_value(name) {
            return vec![host];
        }
        let fits = |host: &HostSettings| name == ANY_HOST || host.labels.iter().any(|label| label == name);
        self.hosts.iter().filter(|(_, host)| fits(host)).map(|(name, _)| name.as_str()).collect()
    }

    /// The host, or the label of hosts, that an agent works on; `None`: this machine. A flag is for all agents.
    pub(crate) fn host_of(&self, names: &[String]) -> Option<&str> {
        let all = self.isolation.host.as_deref();
        if matches!(self.origin("isolation.host"), Origin::Flag(_) | Origin::Variable(_)) {
            return all;
        }
        names.iter().find_map(|name| self.agent_hosts.get(name)).map(String::as_str).or(all)
    }

    /// What is said of an agent alone, by its name, role or tier; a flag is said of each. A repository does not take an agent
    /// out of the clone that the user wants for all.
    pub(crate) fn isolation_of(&self, names: &[String], tier: Tier) -> Option<Isolation> {
        let mode = self.isolation.mode;
        let origin = self.origin("isolation.mode");
        let is_by_user = !matches!(origin, Origin::Default | Origin::Project(..));
        let of_agent =
            names.iter().find_map(|name| Some((format!("agents.{name}.isolation"), *self.agent_isolation.get(name)?)));
        let own = of_agent.or_else(|| Some((format!("isolation.tiers.{tier}"), *self.isolation.tiers.get(&tier)?)));
        let is_of_repository = |key: &str| {
            let mut origins = self.values.iter().filter(|(name, _)| name.eq_ignore_ascii_case(key));
            origins.any(|(_, (_, origin))| matches!(origin, Origin::Project(..)))
        };
        match own {
            _ if matches!(origin, Origin::Flag(_) | Origin::Variable(_)) => Some(mode),
            Some((key, _)) if is_by_user && mode == Isolation::Clone && is_of_repository(&key) => Some(mode),
            own => own.map(|(_, own)| own),
        }
    }

    /// The origin of the first value in a table.
    pub(crate) fn origin_of_table(&self, name: &str) -> Origin {
        let inner =
            self.values.range(format!("{name}.")..).next().filter(|(key, _)| key.starts_with(&format!("{name}.")));
        inner.map_or(Origin::Default, |(_, (_, origin))| origin.clone())
    }

    /// The origin of a key's value.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.values.get(key).map_or(Origin::Default, |(_, origin)| origin.clone())
    }
}

/// Reports settings that are in two of a team's files, with the one that counts.
pub(crate) fn overlaps(lower: &Layer, higher: &Layer) -> Vec<Problem> {
    let wins = |name: &str| higher.entries.iter().find(|(other, _, _)| other == name).map(|(_, _, origin)| origin);
    let problem = |(name, _, origin): &(String, toml::Value, Origin)| {
        let winner = wins(name)?;
        let message = format!("`{name}` is also set in {winner}, which wins");
        Some(Problem::warning(origin.source(), "config-twice", message).hint("delete one of them"))
    };
    lower.entries.iter().filter_map(problem).collect()
}

/// Checks whether a key can have this value, and may be set in a repository's file.
pub(crate) fn check(name: &str, value: &toml::Value, in_project: bool) -> Result<(), String> {
    let Some((key, rest)) = keys::find(name) else {
        let suggestion = keys::suggestion(name).unwrap_or_else(|| "`squad config` lists them".to_owned());
        return Err(format!("there is no setting `{name}`; {suggestion}"));
    };
    if key.guarded && in_project {
        return Err(format!("a repository may not set `{name}`; use --user"));
    }
    (key.set)(&mut Settings::blank(), rest, value).map_err(|reason| format!("`{name}` {reason}"))?;
    let built_in = Settings::default();
    match in_project && keys::loosens(name, value, &built_in) {
        true => Err(format!("{}; use --user", keys::loosening(name, &built_in))),
        false => Ok(()),
    }
}

/// The settings of a repository's layer that would act or loosen something, and so need the user's approval: the name of
/// each, of a server or engine as a whole, with its entries. Not among them is what only the user's own file can say: their
/// choices, and the git that reads the repository.
pub(crate) fn restricted(layer: &Layer) -> BTreeMap<String, Vec<(String, toml::Value, Origin)>> {
    let built_in = LazyCell::new(Settings::default);
    let mut found: BTreeMap<String, Vec<(String, toml::Value, Origin)>> = BTreeMap::new();
    for (name, value, origin) in &layer.entries {
        let is_guarded = keys::find(name).is_some_and(|(key, _)| key.guarded);
        if !keys::is_for_users_alone(name) && (is_guarded || keys::loosens(name, value, &built_in)) {
            let entry = (name.clone(), value.clone(), origin.clone());
            found.entry(keys::owner(name).to_owned()).or_default().push(entry);
        }
    }
    found
}

/// What a user has approved and the repository, whose settings stand in `file`, does not bring any more.
pub(crate) fn removed(name: &str, file: String) -> Problem {
    keys::removed(name, &Origin::Project(file, 0))
}

/// Whether a value is only shown when asked for by its name.
pub(crate) fn is_confidential(name: &str) -> bool {
    name.starts_with(keys::MCP_SERVERS) && [".env.", ".headers."].iter().any(|part| name.contains(part))
}

/// Checks whether a setting of this name exists.
pub(crate) fn is_known(name: &str) -> Result<(), String> {
    check(name, &toml::Value::String(String::new()), false)
        .or_else(|reason| if keys::find(name).is_some() { Ok(()) } else { Err(reason) })
}

/// Parses `90s`, `5m`, `1h`, `1m 30s`, `250ms`. A bare number is refused, because its unit would be unclear.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let number = text.trim();
    let unusable = || match number.parse::<u64>() {
        Ok(_) => format!("`{text}` has no unit; write `{number}s` or `{number}m`"),
        Err(_) => format!("`{text}` is not a duration; write it like `90s`, `5m` or `1h`"),
    };
    let span: jiff::SignedDuration = text.trim().parse().map_err(|_| unusable())?;
    let duration = Duration::try_from(span).map_err(|_| unusable())?;
    if duration.is_zero() { Err(format!("`{text}` is zero; write it like `90s`, `5m` or `1h`")) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_defaults_are_values() {
        let (defaults, problems) = from_toml(DEFAULTS, |_| Origin::Default);
        let (settings, more) = Settings::resolve([defaults]);
        assert_eq!((problems, more), (Vec::new(), Vec::new()));
        assert_eq!(settings.values, BUILT_IN.values);
        assert!(!settings.values.is_empty());
    }

    fn resolve(project: &str, user: &str, variables: &[(&str, &str)]) -> (Settings, Vec<String>) {
        let (project, mut problems) = from_toml(project, |line| Origin::Project(".squad/config.toml".to_owned(), line));
        let (user, more) = from_toml(user, |line| Origin::User("config.toml".to_owned(), line));
        problems.extend(more);
        let (variables, more) =
            from_variables(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        problems.extend(more);
        let (settings, more) = Settings::resolve([project, user, variables]);
        problems.extend(more);
        (settings, problems.iter().map(|p| format!("{}:{}: {}: {}", p.file, p.line, p.code, p.message)).collect())
    }

    /// Every subset of the places that can name an agent's engine: flag, variable, the agent's own in the user's and in the
    /// team's file, its charter, and the run's in either file.
    #[test]
    fn an_agents_engine_is_that_of_the_highest_place_which_names_one() {
        let table = |of_agent: Option<&str>, of_run: Option<&str>| {
            let of_agent = of_agent.map(|engine| format!("[agents.ada]\nengine = \"{engine}\"\n"));
            let of_run = of_run.map(|engine| format!("[engine]\nname = \"{engine}\"\n"));
            of_agent.unwrap_or_default() + &of_run.unwrap_or_default()
        };
        for set in 0..1 << 7 {
            let at = |place: usize, engine: &'static str| (set & (1 << place) != 0).then_some(engine);
            let [flag, variable] = [at(0, "flag"), at(1, "variable")];
            let [users_own, teams_own, charter] = [at(2, "users-own"), at(3, "teams-own"), at(4, "charter")];
            let [users, teams] = [at(5, "users"), at(6, "teams")];
            let layer = |text: &str, origin: fn(usize) -> Origin| from_toml(text, origin).0;
            let files = [
                layer(&table(teams_own, teams), |line| Origin::Project("team".to_owned(), line)),
                layer(&table(users_own, users), |line| Origin::User("user".to_owned(), line)),
            ];
            let variables = variable.map(|engine| ("SQUAD_ENGINE".to_owned(), engine.to_owned()));
            let flags = from_command_line([("engine.name", flag.map(str::to_owned), "--engine")]);
            let layers = files.into_iter().chain([from_variables(variables).0, flags]);
            let (settings, problems) = Settings::resolve(layers);
            assert!(problems.is_empty(), "{problems:?}");
            let of_all = flag.or(variable);
            let of_run = of_all.or(users).or(teams).unwrap_or("copilot");
            let expected = of_all.or(users_own).or(teams_own).or(charter).unwrap_or(of_run);
            let found = settings.engine_of(&["ada".to_owned(), "backend".to_owned()], charter);
            assert_eq!(
                (found.as_deref().unwrap_or(of_run), settings.engine.name.as_str()),
                (expected, of_run),
                "{set:b}"
            );
            // Another agent has nothing from what names this one.
            let other = of_all.or(charter).unwrap_or(of_run);
            assert_eq!(settings.engine_of(&["bob".to_owned()], charter).as_deref().unwrap_or(of_run), other, "{set:b}");
        }
    }

    #[test]
    fn the_highest_layer_wins_and_is_remembered() {
        let (settings, problems) = resolve(
            "[models]\ndefault = \"a\"\nlightweight = \"small\"\n[sessions]\nmax_concurrent = 2\n",
            "[models]\ndefault = \"b\"\n",
            &[("SQUAD_SESSIONS_MAX_CONCURRENT", "3"), ("SQUAD_MODEL", "m"), ("SQUAD_SESSIONS_TIMEOUT", "90s")],
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(settings.models.default, "b");
        assert_eq!(settings.models.overrides["all"], "m");
        assert_eq!(settings.sessions.max_concurrent, 3);
        assert_eq!(settings.sessions.timeout, Duration::from_secs(90));
        assert_eq!(settings.origin("models.default").to_string(), "config.toml:2");
        assert_eq!(settings.origin("models.lightweight").to_string(), ".squad/config.toml:3");
        assert_eq!(settings.origin("sessions.max_concurrent").to_string(), "SQUAD_SESSIONS_MAX_CONCURRENT");
        assert_eq!(settings.origin("sessions.infinite"), Origin::Default);
    }

    #[test]
    fn unknown_keys_and_bad_values_are_located() {
        let (settings, problems) = resolve("[sessions]\ntimout = \"1m\"\ntimeout = 120\n[model]\n", "", &[]);
        assert_eq!(settings.sessions.timeout, Duration::from_secs(300));
        assert_eq!(
            problems,
            [
                ".squad/config.toml:2: config-unknown-key: there is no setting `sessions.timout`",
                ".squad/config.toml:3: config-bad-value: `sessions.timeout` needs a duration like \"5m\", not an integer",
            ]
        );
    }

    #[test]
    fn a_misspelled_variable_is_reported() {
        // Only what bounds something stops all agents.
        for (wrong, code) in [
            ("SQUAD_SESSIONS_TIMOUT", Some("config-unknown-variable")),
            ("SQUAD_BUDGET_TURN", Some(BAD_VALUE)),
            ("SQUAD_ISOLATION_MODES", Some(BAD_VALUE)),
            ("SQUAD_ROOM", None),
        ] {
            let (_, problems) = resolve("", "", &[(wrong, "4")]);
            let said = code.map(|code| format!("{wrong}:0: {code}: there is no variable `{wrong}`"));
            assert_eq!(problems, said.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn values_of_a_json_file_are_located() {
        let text =
            "{\n  \"models\": {\n    \"default\": \"m\"\n  },\n  \"sessions\": {\n    \"maxConcurrent\": 0\n  }\n}\n";
        let (layer, _) = from_json(text, |line| Origin::Project("config.json".to_owned(), line));
        let (settings, problems) = Settings::resolve([layer]);
        assert_eq!(settings.origin("models.default").to_string(), "config.json:3");
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [6]);
        assert_eq!(from_json("[]", |_| Origin::Default).1.len(), 1);
        // A model that is chosen elsewhere.
        for value in ["auto", "Auto", "", "m"] {
            let text = format!("{{\"models\": {{\"default\": \"{value}\"}}}}");
            let (layer, _) = from_json(&text, |line| Origin::Project("config.json".to_owned(), line));
            let (settings, _) = Settings::resolve([layer]);
            let is_set = settings.origin("models.default").to_string() == "config.json:1";
            assert_eq!(is_set, value == "m", "{text}");
        }
    }

    #[test]
    fn a_repository_cannot_name_programs_or_endpoints() {
        let guarded = "[engine]\nfallback = [\"rehearsal\"]\n[engine.copilot]\npath = \"./evil\"\n";
        let (settings, problems) = resolve(guarded, "", &[]);
        assert!(settings.engine.fallback.is_empty() && settings.engine.copilot.path.is_none());
        assert_eq!(problems.len(), 2, "{problems:?}");
        let (settings, problems) = resolve("", guarded, &[]);
        assert_eq!((settings.engine.fallback.len(), problems.len()), (1, 0));
    }

    #[test]
    fn a_repository_can_tighten_limits_and_not_loosen_them() {
        for (tight, loose) in [
            ("timeout = \"1m\"", "timeout = \"6m\""),
            ("tool_limit = \"30m\"", "tool_limit = \"31m\""),
            ("limit = \"59m\"", "limit = \"1000h\""),
            ("idle_timeout = \"1s\"", "idle_timeout = \"16m\""),
            ("workspace_limit = \"1 MB\"", "workspace_limit = \"1 GiB\""),
            ("max_concurrent = 1", "max_concurrent = 256"),
            ("retry = 0", "retry = 2"),
        ] {
            let file = |line: &str| format!("[sessions]\n{line}\n");
            let name = format!("sessions.{}", tight.split(' ').next().unwrap_or_default());
            let raised = format!(".squad/config.toml:2: config-raised: `{name}` is ignored: a repository may not");
            let of = |project: &str, user: &str| {
                let (settings, mut problems) = resolve(project, user, &[]);
                problems.retain(|problem| !problem.contains("config-timeout"));
                (settings.origin(&name).to_string(), problems)
            };
            let (origin, problems) = of(&file(tight), "");
            assert!(origin == ".squad/config.toml:2" && problems.is_empty(), "{origin} {problems:?}");
            let (origin, problems) = of(&file(loose), "");
            assert!(origin == Origin::Default.to_string() && problems.len() == 1, "{origin} {problems:?}");
            assert!(problems.iter().all(|problem| problem.starts_with(&raised)), "{problems:?}");
            // The user's own value holds, whatever the repository says.
            let (origin, problems) = of("", &file(loose));
            assert!(origin == "config.toml:2" && problems.is_empty(), "{origin} {problems:?}");
            for project in [tight, loose] {
                assert_eq!(of(&file(project), &file(loose)).0, "config.toml:2", "{project}");
            }
            let value = from_toml(loose, |_| Origin::Default).0.entries.remove(0).1;
            assert!(check(&name, &value, true).is_err() && check(&name, &value, false).is_ok(), "{name}");
        }
    }

    #[test]
    fn only_users_can_configure_mcp_servers() {
        let servers = "[mcp.servers.tides]\ncommand = \"tides\"\nargs = [\"-v\", \"\"]\nenv = { A = \"1\" }\n\
                       [mcp.servers.far]\nurl = \"https://x/mcp\"\nheaders.Authorization = \"Bearer b\"\n";
        let (settings, problems) = resolve("", servers, &[]);
        assert_eq!(problems, Vec::<String>::new());
        let tides = &settings.mcp["tides"];
        assert_eq!((tides.command.as_deref(), tides.args.len(), tides.env["A"].as_str()), (Some("tides"), 2, "1"));
        assert_eq!(settings.mcp["far"].url.as_deref(), Some("https://x/mcp"));
        assert_eq!(settings.confidential().count(), 2);
        assert!(is_confidential("mcp.servers.tides.env.A") && !is_confidential("mcp.servers.tides.command"));
        let (settings, problems) = resolve(servers, "", &[]);
        assert!(settings.mcp.is_empty());
        assert_eq!(
            problems,
            [
                ".squad/config.toml:2: config-untrusted: `mcp.servers.tides` is ignored: a repository may not set it",
                ".squad/config.toml:6: config-untrusted: `mcp.servers.far` is ignored: a repository may not set it",
            ]
        );
        let odd = "[mcp.servers.\"a b\"]\ncommand = \"x\"\n[mcp.servers.a]\ncomand = \"x\"\n[mcp.servers]\nb = 1\n";
        let (settings, problems) = resolve("", odd, &[]);
        assert!(settings.mcp.is_empty() && problems.len() == 3, "{problems:?}");
    }

    #[test]
    fn hosts_are_checked_with_the_agents_that_name_them() {
        let far = "[hosts.far]\nlaunch = [\"ssh\", \"far\"]\nlabels = [\"gpu\", \"big\"]\n";
        let near = "[hosts.near]\nlaunch = [\"srun\"]\nslots = 1000\nengines = [\"copilot\"]\nlabels = [\"big\"]\n";
        let agents = "[agents.Ada]\nhost = \"gpu\"\n[agents.\"Backend Dev\"]\nhost = \"any\"\n";
        let (settings, problems) = resolve("", &[far, near, agents].concat(), &[]);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((settings.hosts["far"].slots, settings.hosts["near"].slots), (1, 1000));
        assert_eq!((&*settings.agent_hosts["ada"], &*settings.agent_hosts["backend dev"]), ("gpu", "any"));
        for (name, hosts) in [("gpu", &["far"][..]), ("near", &["near"]), ("big", &["far", "near"]), ("Far", &[])] {
            assert_eq!(settings.hosts_named(name), hosts, "{name}");
        }
        assert_eq!(settings.hosts_named(ANY_HOST), ["far", "near"]);
        let (settings, problems) = resolve(&[far, agents].concat(), "", &[]);
        assert!(settings.hosts.is_empty() && settings.agent_hosts.is_empty());
        assert!(problems.len() == 3 && problems.iter().all(|p| p.contains("config-untrusted")), "{problems:?}");
        for (text, expected) in [
            ("[hosts.a]\nslots = 2\n", "2: config-bad-value: `hosts.a` does not say how to start a worker"),
            ("[hosts.a]\nlaunch = []\n", "2: config-bad-value: `hosts.a.launch` names no program"),
            (
                "[hosts.a]\nlaunch = [\"x\"]\nslots = 0\n",
                "3: config-bad-value: `hosts.a.slots` must be from 1 to 1000, not 0",
            ),
            ("[hosts.a]\nlaunch = [\"x\"]\nretry = 3\n", "3: config-bad-value: `hosts.a.retry` must be \"ask\" or"),
            ("[hosts.a]\nlaunch = [\"x\"]\nlease = \"169h\"\n", "3: config-bad-value: `hosts.a.lease` must be from"),
            ("[hosts.a]\nlaunch = [\"x\"]\nlease = 5\n", "3: config-bad-value: `hosts.a.lease` needs a duration"),
            (
                "[hosts.a]\nlaunch = [\"x\"]\nsecrets = [\"A\", \"B C\"]\n",
                "3: config-bad-value: `hosts.a.secrets` must be names of variables, and `B C` is none",
            ),
            ("[hosts.a]\nlaunch = [\"x\"]\nsetup = []\n", "3: config-bad-value: `hosts.a.setup` names no program"),
            (
                "[worker]\nsecrets = [\"1A\"]\n",
                "2: config-bad-value: `worker.secrets` must be names of variables, and `1A` is none",
            ),
            ("[hosts.a]\nlaunch = [\"x\"]\nslot = 1\n", "3: config-bad-value: `hosts.a.slot` must be one of"),
            ("[hosts.any]\nlaunch = [\"x\"]\n", "2: config-bad-value: `hosts.any.launch` needs another name"),
            ("[hosts.\"a b\"]\nlaunch = [\"x\"]\n", "2: config-bad-value: `hosts.a b.launch` may have only letters"),
            ("[hosts]\na = 1\n", "2: config-bad-value: `hosts.a` must be a table with `launch`"),
            (
                "[agents.Ada]\nhost = \"far\"\n",
                "2: config-bad-value: `agents.Ada.host` is `far`, and no host has that name",
            ),
            ("[agents.ada]\nhost = \"any\"\n", "2: config-bad-value: `agents.ada.host` is `any`, and no host"),
            ("[agents.ada]\nhots = \"a\"\n", "2: config-bad-value: `agents.ada.hots` is no setting"),
        ] {
            let (_, problems) = resolve("", text, &[]);
            assert!(problems.len() == 1 && problems[0].starts_with(&format!("config.toml:{expected}")), "{problems:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_toml_is_located() {
        let (_, problems) = resolve("[models]\ndefault = \n", "", &[]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with(".squad/config.toml:2: config-not-toml:"), "{problems:?}");
    }

    #[test]
    fn durations_name_their_unit() {
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_duration("120").is_err() && parse_duration("-5m").is_err() && parse_duration("0s").is_err());
    }
}
