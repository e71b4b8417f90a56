//! The list of all settings.

use std::time::Duration;

use toml::Value;

use super::policy::{PolicyEntry, PolicyWord};
use super::{BudgetLimits, Isolation, Origin, Settings, parse_duration};
use crate::model::{Claim, GitAccess, HostPattern, NetworkAccess, Problem, SandboxLevel, Severity, Tier};

type Set = fn(&mut Settings, &str, &Value) -> Result<(), String>;

/// A setting: its dotted name and how to set it. A star stands for an arbitrary name; `set` gets what is in its place.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// The value names programs or endpoints, or weakens a protection, so a repository may not set it.
    pub(super) guarded: bool,
    /// The values of all layers hold side by side.
    pub(super) adds_up: bool,
    pub(super) set: Set,
}

impl Key {
    /// Whether no agent starts while its value cannot be read: to leave it out would let more happen.
    pub(super) fn fails_closed(&self) -> bool {
        self.adds_up || bounds(self.name)
    }
}

/// Whether a name is in a table that bounds what happens.
fn bounds(name: &str) -> bool {
    BOUNDS.iter().any(|table| name.starts_with(table))
}

const BOUNDS: [&str; 9] =
    [HOOKS, HOSTS, "agents.*.host", "agents.*.isolation", "check.", "budget.", PRICES, "isolation.", "policy."];

const fn free(name: &'static str, set: Set) -> Key {
    Key { name, guarded: false, adds_up: false, set }
}

const fn guarded_key(name: &'static str, set: Set) -> Key {
    Key { name, guarded: true, adds_up: false, set }
}

pub(super) const KEYS: &[Key] = &[
    // The user's choice overrides every charter, so a repository may not set it.
    guarded_key("models.override.*", |s, name, v| {
        s.models.overrides.insert(name.to_lowercase(), text(v)?);
        Ok(())
    }),
    free("models.default", |s, _, v| put(&mut s.models.default, text(v))),
    free("models.lightweight", |s, _, v| put(&mut s.models.lightweight, text(v))),
    free("models.premium", |s, _, v| put(&mut s.models.premium, text(v))),
    free("models.coordinator", |s, _, v| put(&mut s.models.coordinator, text(v).map(Some))),
    free("models.roles.*", |s, role, v| {
        s.models.roles.insert(role.to_lowercase(), text(v)?);
        Ok(())
    }),
    free("sessions.timeout", |s, _, v| put(&mut s.sessions.timeout, duration(v))),
    free("sessions.tool_limit", |s, _, v| put(&mut s.sessions.tool_limit, duration(v))),
    free("sessions.limit", |s, _, v| put(&mut s.sessions.limit, duration(v))),
    free("sessions.retry", |s, _, v| {
        let number = integer(v)?;
        let count = u32::try_from(number).ok().filter(|count| *count <= 10);
        put(&mut s.sessions.retry, count.ok_or_else(|| format!("must be from 0 to 10, not {number}")))
    }),
    free("sessions.infinite", |s, _, v| put(&mut s.sessions.infinite, flag(v))),
    free("sessions.standing", |s, _, v| put(&mut s.sessions.standing, flag(v))),
    free("sessions.max_concurrent", |s, _, v| {
        let number = integer(v)?;
        let count = usize::try_from(number).ok().filter(|count| (1..=256).contains(count));
        put(&mut s.sessions.max_concurrent, count.ok_or_else(|| format!("must be from 1 to 256, not {number}")))
    }),
    free("sessions.core", |s, _, v| {
        put(&mut s.sessions.core, texts(v).map(|names| names.iter().map(|name| name.to_lowercase()).collect()))
    }),
    free("sessions.idle_timeout", |s, _, v| put(&mut s.sessions.idle_timeout, duration(v))),
    free("sessions.workspace_limit", |s, _, v| put(&mut s.sessions.workspace_limit, size(v))),
    free("sessions.compaction_threshold", |s, _, v| put(&mut s.sessions.compaction_threshold, fraction(v))),
    free("sessions.default_tier", |s, _, v| put(&mut s.sessions.default_tier, tier(v))),
    free("routing.threshold", |s, _, v| put(&mut s.routing.threshold, fraction(v))),
    free("sandbox.level", |s, _, v| {
        let name = text(v)?;
        let level = SandboxLevel::parse(&name);
        let level = level.ok_or_else(|| format!("`{name}` is not a level; use full, files or rules"));
        put(&mut s.sandbox.level, level)
    }),
    free("sandbox.require", |s, _, v| put(&mut s.sandbox.require, flag(v))),
    guarded_key("sandbox.read", |s, _, v| put(&mut s.sandbox.read, texts(v))),
    free("sandbox.git", |s, _, v| {
        let name = text(v)?;
        let access = GitAccess::parse(&name).ok_or_else(|| format!("is read-only, overlay or open, not `{name}`"));
        put(&mut s.sandbox.git, access)
    }),
    free("sandbox.network", |s, _, v| {
        let name = text(v)?;
        let access = NetworkAccess::parse(&name).ok_or_else(|| format!("is listed or open, not `{name}`"))?;
        put(&mut s.sandbox.network, Ok(Some(access)))
    }),
    guarded_key("sandbox.hosts", |s, _, v| {
        let host = |text: &String| HostPattern::parse(text).map_err(|reason| format!("has `{text}`, which {reason}"));
        put(&mut s.sandbox.hosts, texts(v)?.iter().map(host).collect())
    }),
    free("isolation.mode", |s, _, v| put(&mut s.isolation.mode, isolation(v))),
    free("isolation.tiers.*", |s, tier, v| {
        let known = Tier::of_work(tier);
        let known = known.ok_or_else(|| format!("names no tier: use lightweight, standard or full, not `{tier}`"))?;
        s.isolation.tiers.insert(known, isolation(v)?);
        Ok(())
    }),
    guarded_key("isolation.host", |s, _, v| put(&mut s.isolation.host, text(v).map(Some))),
    guarded_key("isolation.bring", |s, _, v| put(&mut s.isolation.bring, texts(v))),
    guarded_key("isolation.setup", |s, _, v| put(&mut s.isolation.setup, arguments(v))),
    free("policy.questions", |s, _, v| {
        let number = integer(v)?;
        let count = u64::try_from(number).ok().filter(|count| *count > 0);
        put(&mut s.policy.questions, count.ok_or_else(|| format!("must be above 0, not {number}")))
    }),
    guarded_key("policy.kept.*", |s, project, v| {
        s.policy.kept.insert(project.to_owned(), texts(v)?);
        Ok(())
    }),
    Key {
        name: "policy.*",
        guarded: false,
        adds_up: true,
        set: |_, name, v| PolicyEntry::read(name, &texts(v)?, &Origin::Default)?.check(),
    },
    free("budget.turns", |s, _, v| put(&mut s.budget.run.turns, amount(v))),
    free("budget.tool_calls", |s, _, v| put(&mut s.budget.run.tool_calls, amount(v))),
    free("budget.time", |s, _, v| put(&mut s.budget.run.time, duration(v).map(Some))),
    free("budget.tokens", |s, _, v| put(&mut s.budget.run.tokens, amount(v))),
    free("budget.cost_usd", |s, _, v| put(&mut s.budget.run.cost_usd, fractional_amount(v))),
    free("budget.billed.*", |s, unit, v| billed(&mut s.budget.run, unit, v)),
    free("budget.agent.turns", |s, _, v| put(&mut s.budget.agent.turns, amount(v))),
    free("budget.agent.tool_calls", |s, _, v| put(&mut s.budget.agent.tool_calls, amount(v))),
    free("budget.agent.time", |s, _, v| put(&mut s.budget.agent.time, duration(v).map(Some))),
    free("budget.agent.tokens", |s, _, v| put(&mut s.budget.agent.tokens, amount(v))),
    free("budget.agent.cost_usd", |s, _, v| put(&mut s.budget.agent.cost_usd, fractional_amount(v))),
    free("budget.agent.billed.*", |s, unit, v| billed(&mut s.budget.agent, unit, v)),
    free("budget.day.turns", |s, _, v| put(&mut s.budget.day.turns, amount(v))),
    free("budget.day.tool_calls", |s, _, v| put(&mut s.budget.day.tool_calls, amount(v))),
    free("budget.day.time", |s, _, v| put(&mut s.budget.day.time, duration(v).map(Some))),
    free("budget.day.tokens", |s, _, v| put(&mut s.budget.day.tokens, amount(v))),
    free("budget.day.cost_usd", |s, _, v| put(&mut s.budget.day.cost_usd, fractional_amount(v))),
    free("budget.day.billed.*", |s, unit, v| billed(&mut s.budget.day, unit, v)),
    free("budget.repository.turns", |s, _, v| put(&mut s.budget.repository.turns, amount(v))),
    free("budget.repository.tool_calls", |s, _, v| put(&mut s.budget.repository.tool_calls, amount(v))),
    free("budget.repository.time", |s, _, v| put(&mut s.budget.repository.time, duration(v).map(Some))),
    free("budget.repository.tokens", |s, _, v| put(&mut s.budget.repository.tokens, amount(v))),
    free("budget.repository.cost_usd", |s, _, v| put(&mut s.budget.repository.cost_usd, fractional_amount(v))),
    free("budget.repository.billed.*", |s, unit, v| billed(&mut s.budget.repository, unit, v)),
    guarded_key("prices.*", |s, name, v| {
        let fields = "must be a table with `input`, `output` and, if they differ, `cached` and `written`";
        let (model, field) = name.rsplit_once('.').ok_or(fields)?;
        let number = number(v)?;
        let amount = Some(number).filter(|number| number.is_finite() && *number >= 0.0);
        let amount = amount.ok_or_else(|| format!("must be 0 or more, not {number}"))?;
        let price = s.budget.prices.entry(model.to_lowercase()).or_default();
        let place = match field {
            "input" => &mut price.input,
            "output" => &mut price.output,
            "cached" => &mut price.cached,
            "written" => &mut price.written,
            _ => return Err(fields.to_owned()),
        };
        *place = Some(amount);
        Ok(())
    }),
    guarded_key("check.run", |s, _, v| put(&mut s.check, arguments(v))),
    free("engine.name", |s, _, v| put(&mut s.engine.name, text(v))),
    guarded_key("engine.fallback", |s, _, v| put(&mut s.engine.fallback, texts(v))),
    Key {
        name: "engine.require",
        guarded: false,
        adds_up: true,
        set: |s, _, v| {
            for name in texts(v)? {
                let claim = Claim::parse(&name).ok_or_else(|| {
                    let names = crate::model::list(Claim::ALL.iter().map(|claim| format!("`{claim}`")));
                    format!("names `{name}`, which is no claim; the claims are {names}")
                })?;
                s.engine.require.insert(claim);
            }
            Ok(())
        },
    },
    guarded_key("engine.copilot.permission", |s, _, v| {
        let name = text(v)?;
        let permission = v.clone().try_into().map_err(|_| format!("is allow or refuse, not `{name}`"));
        put(&mut s.engine.copilot.permission, permission)
    }),
    guarded_key("engine.copilot.path", |s, _, v| put(&mut s.engine.copilot.path, text(v).map(Some))),
    guarded_key("engine.copilot.home", |s, _, v| put(&mut s.engine.copilot.home, text(v).map(Some))),
    guarded_key("engine.copilot.provider.type", |s, _, v| put(&mut provider(s).kind, text(v).map(Some))),
    guarded_key("engine.copilot.provider.wire_api", |s, _, v| put(&mut provider(s).wire_api, text(v).map(Some))),
    guarded_key("engine.copilot.provider.base_url", |s, _, v| put(&mut provider(s).base_url, text(v).map(Some))),
    guarded_key("engine.copilot.provider.api_key_env", |s, _, v| put(&mut provider(s).api_key_env, text(v).map(Some))),
    guarded_key("engine.copilot.provider.models", |s, _, v| put(&mut provider(s).models, texts(v))),
    guarded_key("engine.copilot.provider.max_prompt_tokens", |s, _, v| {
        let number = integer(v)?;
        let tokens = u64::try_from(number).ok().filter(|tokens| *tokens > 0);
        put(
            &mut provider(s).max_prompt_tokens,
            tokens.map(Some).ok_or_else(|| format!("must be above 0, not {number}")),
        )
    }),
    guarded_key("engines.*", engine_profile),
    free("agents.*.engine", |s, agent, v| {
        s.agent_engines.insert(agent.to_lowercase(), text(v)?);
        Ok(())
    }),
    free("agents.*.isolation", |s, agent, v| {
        s.agent_isolation.insert(agent.to_lowercase(), isolation(v)?);
        Ok(())
    }),
    guarded_key("agents.*.host", |s, agent, v| {
        s.agent_hosts.insert(agent.to_lowercase(), text(v)?);
        Ok(())
    }),
    guarded_key("hosts.*", host),
    guarded_key("worker.secrets", |s, _, v| put(&mut s.worker.secrets, variables(v))),
    guarded_key("worker.setup", |s, _, v| put(&mut s.worker.setup, texts(v))),
    guarded_key("hooks.*", |s, name, v| {
        let (hook, field) = name.split_once('.').ok_or("must be a table with `on` and `run`")?;
        plain_name(hook)?;
        s.hooks.entry(hook.to_owned()).or_default().put(field, v)
    }),
    guarded_key("mcp.servers.*", mcp_server),
    guarded_key("links.*", link),
    guarded_key("git.program", |s, _, v| put(&mut s.git.program, text(v).map(Some))),
    guarded_key("engine.rehearsal.script", |s, _, v| put(&mut s.engine.script, text(v).map(Some))),
];

/// The setting for a name, with the part in place of its star.
pub(super) fn find(name: &str) -> Option<(&'static Key, &str)> {
    KEYS.iter().find_map(|key| match key.name.split_once('*') {
        Some((before, after)) => {
            let rest = name.strip_prefix(before)?.strip_suffix(after)?;
            (!rest.is_empty()).then_some((key, rest))
        }
        None => (key.name == name).then_some((key, "")),
    })
}

/// A suggestion for a mistyped name.
pub(super) fn suggestion(name: &str) -> Option<String> {
    nearest(name).map(|near| format!("did you mean `{}`?", near.name)).or_else(|| {
        let inner = |key: &&Key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let names: Vec<_> = KEYS.iter().filter(inner).map(|key| format!("`{}`", key.name)).collect();
        (!names.is_empty()).then(|| format!("it is a table of {}", crate::model::list(names)))
    })
}

fn provider(settings: &mut Settings) -> &mut super::ProviderSettings {
    settings.engine.copilot.provider.get_or_insert_default()
}

/// Prefix of the settings of MCP servers. Problems are reported once per server.
pub(super) const MCP_SERVERS: &str = "mcp.servers.";

/// Prefix of the settings of hooks.
pub(super) const HOOKS: &str = "hooks.";

/// Prefix of the prices of models.
pub(super) const PRICES: &str = "prices.";

/// Prefix of the settings of hosts.
pub(super) const HOSTS: &str = "hosts.";

/// The server, engine, hook or host that a setting belongs to, or the setting's own name.
pub(super) fn owner(name: &str) -> &str {
    let end = |table: &str| name.strip_prefix(table).and_then(|rest| Some(table.len() + rest.find('.')?));
    let end = end(MCP_SERVERS).or_else(|| end("engines.")).or_else(|| end(HOOKS)).or_else(|| end(HOSTS));
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

/// Stands for every host.
pub(crate) const ANY_HOST: &str = "any";

/// The code of a value that is not valid for its setting.
pub(crate) const BAD_VALUE: &str = "config-bad-value";

/// Engines that are no command lines.
pub(crate) const SESSION_ENGINES: [&str; 2] = ["copilot", "rehearsal"];

fn host(settings: &mut Settings, name: &str, value: &Value) -> Result<(), String> {
    let (host, field) = name.split_once('.').ok_or("must be a table with `launch`")?;
    plain_name(host)?;
    if host == ANY_HOST {
        return Err("needs another name: `any` stands for every host".to_owned());
    }
    settings.hosts.entry(host.to_owned()).or_default().put(field, value)
}

/// Checks the name of a table of settings.
pub(super) fn plain_name(name: &str) -> Result<(), &'static str> {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_plain.then_some(()).ok_or("may have only letters, digits, `-` and `_` in its name")
}

fn engine_profile(settings: &mut Settings, name: &str, value: &Value) -> Result<(), String> {
    let (engine, field) = name.split_once('.').ok_or("must be a table that says how to start it")?;
    plain_name(engine)?;
    if SESSION_ENGINES.contains(&engine) {
        return Err(format!(
            "has no effect: `{engine}` is not started as a command line; its settings are in `[engine.{engine}]`"
        ));
    }
    let mut profile = settings.engines.get(engine).cloned().unwrap_or_default();
    let put = profile.put(field, value);
    profile.wrong = profile.wrong.or_else(|| Some(format!("has a `{field}` that {}", put.as_ref().err()?)));
    settings.engines.insert(engine.to_owned(), profile);
    put
}

fn link(settings: &mut Settings, name: &str, value: &Value) -> Result<(), String> {
    let link = name.strip_suffix(".git").ok_or("must be a table with `git`, the address of a repository")?;
    plain_name(link)?;
    settings.links.insert(link.to_owned(), text(value)?);
    Ok(())
}

fn mcp_server(settings: &mut Settings, name: &str, value: &Value) -> Result<(), String> {
    let (server, field) = name.split_once('.').ok_or("must be a table with `command` or `url`")?;
    plain_name(server)?;
    let raw = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| needs("a string in quotes", value));
    let mut changed = settings.mcp.get(server).cloned().unwrap_or_default();
    match field.split_once('.').unwrap_or((field, "")) {
        ("command", "") => changed.command = Some(text(value)?),
        ("args", "") => {
            let list = value.as_array().ok_or_else(|| needs("a list of strings", value))?;
            changed.args = list.iter().map(raw).collect::<Result<_, _>>()?;
        }
        ("url", "") => changed.url = Some(text(value)?),
        ("type", "") => match text(value)? {
            kind if ["stdio", "http", "sse"].contains(&&*kind) => changed.kind = Some(kind),
            kind => return Err(format!("is stdio, http or sse, not `{kind}`")),
        },
        ("tools", "") => changed.tools = Some(texts(value)?),
        ("timeout", "") => changed.timeout = Some(duration(value)?),
        ("agents", "") => changed.agents = Some(texts(value)?),
        ("env", key) if !key.is_empty() => drop(changed.env.insert(key.to_owned(), raw(value)?)),
        ("headers", key) if !key.is_empty() => drop(changed.headers.insert(key.to_owned(), raw(value)?)),
        _ => {
            return Err(
                "must be one of `type`, `command`, `args`, `env`, `url`, `headers`, `tools`, `agents` and `timeout`"
                    .to_owned(),
            );
        }
    }
    settings.mcp.insert(server.to_owned(), changed);
    Ok(())
}

fn put<T>(target: &mut T, value: Result<T, String>) -> Result<(), String> {
    *target = value?;
    Ok(())
}

/// Bytes.
fn size(value: &Value) -> Result<u64, String> {
    let text = text(value).map_err(|_| needs("a size such as \"256 MiB\"", value))?;
    let size: bytesize::ByteSize =
        text.parse().map_err(|_| format!("`{text}` is not a size; write it like `256 MiB` or `1 GB`"))?;
    Ok(size.as_u64())
}

pub(super) fn text(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| needs("a string in quotes", value))?.trim();
    if text.is_empty() { Err("is empty".to_owned()) } else { Ok(text.to_owned()) }
}

pub(super) fn texts(value: &Value) -> Result<Vec<String>, String> {
    value.as_array().ok_or_else(|| needs("a list of strings", value))?.iter().map(text).collect()
}

/// The names of variables.
pub(super) fn variables(value: &Value) -> Result<Vec<String>, String> {
    let names = texts(value)?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name =
        |name: &String| !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_letter);
    match names.iter().find(|name| !is_name(name)) {
        Some(other) => Err(format!("must be names of variables, and `{other}` is none")),
        None => Ok(names),
    }
}

/// What may be spent of something that is counted.
fn amount(value: &Value) -> Result<Option<u64>, String> {
    let number = integer(value)?;
    let amount = u64::try_from(number).ok().filter(|amount| *amount > 0);
    amount.map(Some).ok_or_else(|| format!("must be above 0, not {number}; leave it out for no limit"))
}

fn billed(limits: &mut BudgetLimits, unit: &str, value: &Value) -> Result<(), String> {
    let amount = fractional_amount(value)?;
    limits.billed.extend(amount.map(|amount| (unit.to_owned(), amount)));
    Ok(())
}

fn fractional_amount(value: &Value) -> Result<Option<f64>, String> {
    let number = number(value)?;
    let is_amount = number.is_finite() && number > 0.0;
    is_amount.then_some(Some(number)).ok_or_else(|| format!("must be above 0, not {number}; leave it out for no limit"))
}

/// A program and its arguments; no shell reads them.
pub(super) fn arguments(value: &Value) -> Result<Vec<String>, String> {
    const FORM: &str = "a list of strings like [\"cargo\", \"test\"]";
    let words = value.as_array().ok_or_else(|| needs(FORM, value))?.iter();
    let words: Vec<String> = words
        .map(|word| word.as_str().map(str::to_owned).ok_or_else(|| needs(FORM, word)))
        .collect::<Result<_, _>>()?;
    match words.first().map(|program| program.trim()) {
        None => Err(format!("names no program; it needs {FORM}")),
        Some("") => Err("has an empty name for its program".to_owned()),
        Some(_) if words.iter().any(|word| word.contains('\0')) => Err("has a NUL in an argument".to_owned()),
        Some(_) => Ok(words),
    }
}

/// `auto`: the message decides.
fn fraction(value: &Value) -> Result<f64, String> {
    let number = number(value)?;
    let is_inside = number > 0.0 && number < 1.0;
    is_inside.then_some(number).ok_or_else(|| format!("must be a fraction between 0 and 1, not {number}"))
}

fn isolation(value: &Value) -> Result<Isolation, String> {
    let name = text(value)?;
    Isolation::parse(&name).ok_or_else(|| format!("is project or clone, not `{name}`"))
}

fn tier(value: &Value) -> Result<Option<Tier>, String> {
    let name = text(value)?;
    match Tier::of_work(&name) {
        _ if name == "auto" => Ok(None),
        Some(tier) => Ok(Some(tier)),
        None => Err(format!("`{name}` is not a tier; use auto, lightweight, standard or full")),
    }
}

pub(super) fn duration(value: &Value) -> Result<Duration, String> {
    parse_duration(value.as_str().ok_or_else(|| needs("a duration like \"5m\"", value))?)
}

fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| needs("`true` or `false`", value))
}

pub(super) fn integer(value: &Value) -> Result<i64, String> {
    value.as_integer().ok_or_else(|| needs("a whole number", value))
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64)).ok_or_else(|| needs("a number", value))
}

fn needs(what: &str, value: &Value) -> String {
    let article = if value.type_str().starts_with(['a', 'i']) { "an" } else { "a" };
    format!("needs {what}, not {article} {}", value.type_str())
}

/// A name that no setting has. If it may be meant for one that fails closed, it has to be mended before any agent starts.
pub(super) fn unknown(name: &str, origin: &Origin) -> Problem {
    let table = near_bounds(name);
    let is_blocking = bounds(&format!("{name}.")) || nearest(name).is_some_and(Key::fails_closed) || table.is_some();
    let problem = match is_blocking {
        true => blocking(name, "is no setting", origin),
        false => problem(origin, "config-unknown-key", format!("there is no setting `{name}`")),
    };
    match suggestion(name).or_else(|| table.map(|table| format!("did you mean `[{table}]`?"))) {
        Some(suggestion) => problem.hint(suggestion),
        None => problem,
    }
}

/// The table that bounds what happens, if a name's own table is nearly called so.
fn near_bounds(name: &str) -> Option<&'static str> {
    let (table, _) = name.split_once('.')?;
    let is_known = KEYS.iter().any(|key| key.name.split('.').next() == Some(table));
    let tables = BOUNDS.iter().filter_map(|name| name.strip_suffix('.'));
    let near = crate::model::nearest(&table.to_lowercase(), 0.7, tables.clone()).filter(|_| !is_known)?;
    tables.into_iter().find(|table| *table == near)
}

pub(super) fn guarded(name: &str, origin: &Origin) -> Problem {
    problem(origin, "config-untrusted", format!("`{name}` is ignored: a repository may not set it"))
        .hint(if is_for_users_alone(name) { OWN } else { APPROVE })
}

/// What the user approved may be there to deny something, so that without it nobody works.
pub(super) fn changed(name: &str, origin: &Origin) -> Problem {
    let hint =
        format!("`squad trust` shows it: then `squad trust approve {name}`, or `revoke`; no agent starts until then");
    let reason = "has changed since you approved it, or a file that it names has";
    Problem { severity: Severity::Error, ..unusable(name, reason, origin).hint(hint) }
}

/// It may have been there to deny something, and a person meant it.
pub(super) fn removed(name: &str, origin: &Origin) -> Problem {
    let message = format!("`{name}`, which you approved, is not there any more, and has no effect");
    let hint = format!("if that is meant, `squad trust revoke {name}`");
    problem(origin, "config-removed", message).hint(hint)
}

const OWN: &str = "set it in your own configuration file or with its SQUAD_ variable";
const APPROVE: &str = "`squad trust` shows what it would do, and approves it; or set it in your own configuration file";

/// Whether no approval gives a repository's value an effect: the user's own choices, and the git that reads the repository.
pub(super) fn is_for_users_alone(name: &str) -> bool {
    ["models.override.", "policy.kept.", PRICES, "git.program"].iter().any(|own| name.starts_with(own))
}

/// Whether a value of a limit, or of the sandbox, lets agents do more than `built_in`.
pub(super) fn loosens(name: &str, value: &Value, built_in: &Settings) -> bool {
    if let Some(rule) = name
        .strip_prefix("policy.")
        .and_then(|rule| PolicyEntry::read(rule, &texts(value).ok()?, &Origin::Default).ok())
    {
        return rule.word == PolicyWord::Allow;
    }
    let mut tried = built_in.clone();
    if find(name).is_none_or(|(key, rest)| (key.set)(&mut tried, rest, value).is_err()) {
        return false;
    }
    let is_weaker = tried.sandbox.level > built_in.sandbox.level
        || tried.sandbox.git > built_in.sandbox.git
        || tried.sandbox.network == Some(NetworkAccess::Open);
    let asks_more = tried.policy.questions > built_in.policy.questions;
    let (tried, built_in) = (&tried.sessions, &built_in.sessions);
    // Each setting changes only its own field.
    is_weaker
        || tried.timeout > built_in.timeout
        || tried.tool_limit > built_in.tool_limit
        || tried.limit > built_in.limit
        || tried.idle_timeout > built_in.idle_timeout
        || tried.workspace_limit > built_in.workspace_limit
        || tried.retry > built_in.retry
        || tried.max_concurrent > built_in.max_concurrent
        || asks_more
}

/// Why a repository may not set that value.
pub(super) fn loosening(name: &str, built_in: &Settings) -> String {
    if name.starts_with("policy.") && name.ends_with(".allow") {
        return "a repository may deny and have people asked, but not allow".to_owned();
    }
    let what = if name.starts_with("sandbox.") { "weaken" } else { "raise it above" };
    match built_in.values.get(name) {
        Some((limit, _)) => format!("a repository may not {what} the built-in `{name} = {limit}`"),
        None => format!("a repository may not {what} what is built in"),
    }
}

pub(super) fn loosened(name: &str, built_in: &Settings, origin: &Origin) -> Problem {
    problem(origin, "config-raised", format!("`{name}` is ignored: {}", loosening(name, built_in))).hint(APPROVE)
}

pub(super) fn unusable(name: &str, reason: &str, origin: &Origin) -> Problem {
    problem(origin, BAD_VALUE, format!("`{name}` {reason}"))
}

/// A value that has to be mended before any agent starts.
pub(super) fn blocking(name: &str, reason: &str, origin: &Origin) -> Problem {
    Problem { severity: Severity::Error, ..unusable(name, reason, origin).hint("fix it: no agent starts until then") }
}

fn problem(origin: &Origin, code: &'static str, message: String) -> Problem {
    Problem::new(Severity::Warning, origin.source(), code, message)
}

fn nearest(name: &str) -> Option<&'static Key> {
    let near = crate::model::nearest(name, 0.7, KEYS.iter().map(|key| key.name))?;
    KEYS.iter().find(|key| key.name == near)
}
