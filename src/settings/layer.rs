//! Builds layers from their sources.

use std::collections::BTreeMap;

use toml::Value;
use toml::de::{DeTable, DeValue};

use super::{Layer, Origin, keys};
use crate::model::{Problem, Severity, Sort};

/// The problem of a file of which no setting is known.
pub(crate) const NOT_TOML: &str = "config-not-toml";

/// Variables whose names are not derived from a key, because they are older or shorter.
const ALIASES: [(&str, &str); 3] = [
    ("SQUAD_MODEL", "models.override.all"),
    ("SQUAD_ENGINE", "engine.name"),
    ("SQUAD_REHEARSAL", "engine.rehearsal.script"),
];

/// Reads a TOML file. `origin` gives the origin for a line.
pub(crate) fn from_toml(text: &str, origin: impl Fn(usize) -> Origin) -> (Layer, Vec<Problem>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut layer = Layer::default();
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let message = format!("is not TOML: {}", error.message().trim());
            let problem = Problem::new(Severity::Error, origin(line).source(), NOT_TOML, message)
                .hint("fix the file: no agent starts until then");
            return (layer, vec![problem]);
        }
    };
    flatten(table.into_inner(), "", &mut |key, value, start| {
        layer.entries.push((key, value, origin(line_of(text, start))));
    });
    (layer, Vec::new())
}

/// Reads settings from another tool's `config.json` under squad's names. Unknown settings are reported.
pub(crate) fn from_json(text: &str, origin: impl Fn(usize) -> Origin) -> (Layer, Vec<Problem>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut layer = Layer::default();
    let value: serde_json::Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("is not JSON: {error}");
            let problem = Problem::warning(origin(error.line()).source(), "config-not-json", message)
                .hint("this file is ignored until it is fixed");
            return (layer, vec![problem]);
        }
    };
    if !value.is_object() {
        let problem = Problem::warning(origin(1).source(), "config-not-json", "is not a JSON object")
            .hint("write it like {\"models\": {\"default\": \"…\"}}");
        return (layer, vec![problem]);
    }
    let mut take = |key: String, value: Value, line: usize| {
        // In those files, this means that the model is chosen elsewhere.
        let is_choice = matches!(&value, Value::String(id) if id.is_empty() || id.eq_ignore_ascii_case("auto"));
        if !(is_choice && key.starts_with("models.")) {
            layer.entries.push((key, value, origin(line)));
        }
    };
    for (pointer, key) in JSON_NAMES {
        let at = |name: Option<&str>| line_of_json(text, pointer.split('/').skip(1).chain(name));
        match value.pointer(pointer) {
            Some(serde_json::Value::Object(table)) => {
                for (name, value) in table {
                    if let Some(value) = plain_json(value) {
                        take(format!("{key}.{name}"), value, at(Some(name)));
                    }
                }
            }
            Some(serde_json::Value::Number(millis)) if pointer.ends_with("Ms") => {
                take((*key).to_owned(), Value::String(format!("{millis}ms")), at(None));
            }
            Some(value) => plain_json(value).into_iter().for_each(|value| take((*key).to_owned(), value, at(None))),
            None => {}
        }
    }
    for pointer in &SERVERS {
        for (name, server) in value.pointer(pointer).and_then(serde_json::Value::as_object).into_iter().flatten() {
            if (*pointer, name.as_str()) == ("/mcp", "servers") {
                continue;
            }
            let line = line_of_json(text, pointer.split('/').skip(1).chain([name.as_str()]));
            layer.entries.extend(server_entries(name, server, &[], &origin(line)));
        }
    }
    let unknown = ignored_names(&value).into_iter().map(|names| {
        let source = origin(line_of_json(text, names.iter().copied())).source();
        let message =
            format!("`{}` has no effect: squad does not read this setting from a config.json", names.join("."));
        Problem::warning(source, "config-no-effect", message)
            .hint("`squad config list` shows what can be set; keep it if another tool reads it")
    });
    (layer, unknown.collect())
}

/// The names in a `config.json` that squad does not read, as paths.
fn ignored_names(value: &serde_json::Value) -> Vec<Vec<&str>> {
    /// These describe the file itself, and where another tool has its team.
    const OF_THE_FILE: [&str; 3] = ["version", "$schema", "teamRoot"];
    let known = || JSON_NAMES.iter().map(|(pointer, _)| *pointer).chain(SERVERS).map(|pointer| &pointer[1..]);
    let is_known = |name: &str| known().any(|pointer| pointer == name);
    let contains_known = |name: &str| {
        let inside = |pointer: &str| pointer.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        known().any(inside)
    };
    let mut unknown = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        match value.as_object() {
            _ if is_known(name) || OF_THE_FILE.contains(&name.as_str()) => {}
            Some(table) if contains_known(name) => {
                let others = table.keys().filter(|inner| !is_known(&format!("{name}/{inner}")));
                unknown.extend(others.map(|inner| vec![name.as_str(), inner.as_str()]));
            }
            _ => unknown.push(vec![name.as_str()]),
        }
    }
    unknown
}

/// The line of a nested name, found by text search because the parser gives no positions. Each name follows the one
/// that contains it.
fn line_of_json<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> usize {
    let mut start = 0;
    for name in names {
        let Some(found) = text.get(start..).and_then(|rest| rest.find(&format!("\"{name}\""))) else { break };
        start += found + name.len() + 2;
    }
    line_of(text, start)
}

/// Names in `config.json` and squad's keys for them, as found in existing teams.
const JSON_NAMES: &[(&str, &str)] = &[
    ("/defaultModel", "models.default"),
    ("/agentModelOverrides", "models.roles"),
    ("/models/default", "models.default"),
    ("/models/costOptimized", "models.lightweight"),
    ("/models/premium", "models.premium"),
    ("/models/roleOverrides", "models.roles"),
    // In those files, this is the limit of a whole turn, however busy.
    ("/sessions/defaultTimeoutMs", "sessions.limit"),
    ("/sessions/maxConcurrent", "sessions.max_concurrent"),
    ("/sessions/infiniteSessions", "sessions.infinite"),
    ("/sessions/compactionThreshold", "sessions.compaction_threshold"),
];

/// Tables of MCP servers in `config.json`.
const SERVERS: [&str; 3] = ["/mcp/servers", "/mcpServers", "/mcp"];

/// The settings of an MCP server as other agent tools write it, for these agents or, if none is named, for all.
pub(crate) fn server_entries(
    name: &str,
    server: &serde_json::Value,
    agents: &[&str],
    origin: &Origin,
) -> Vec<(String, Value, Origin)> {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
        serde_json::Value::String(text) => Some(Value::String(text.clone())),
        plain => Some(Value::String(plain.to_string())),
    };
    let mut entries = Vec::new();
    let mut take = |field: &str, value: Value| {
        entries.push((format!("{}{name}.{field}", keys::MCP_SERVERS), value, origin.clone()));
    };
    for (field, value) in server.as_object().into_iter().flatten() {
        match (field.as_str(), value) {
            ("env" | "headers", serde_json::Value::Object(table)) => {
                for (name, value) in table {
                    text(value).into_iter().for_each(|value| take(&format!("{field}.{name}"), value));
                }
            }
            // Without a list, squad offers all.
            ("tools", serde_json::Value::Array(tools)) if tools.iter().any(|tool| tool == "*") => {}
            ("type", kind) if kind == "local" => take(field, Value::String("stdio".to_owned())),
            ("timeout", serde_json::Value::Number(millis)) => take(field, Value::String(format!("{millis}ms"))),
            (_, serde_json::Value::Array(items)) => take(field, Value::Array(items.iter().filter_map(text).collect())),
            _ => text(value).into_iter().for_each(|value| take(field, value)),
        }
    }
    if !agents.is_empty() {
        take("agents", Value::Array(agents.iter().map(|agent| Value::String((*agent).to_owned())).collect()));
    }
    entries
}

fn plain_json(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::String(text) => Some(Value::String(text.clone())),
        serde_json::Value::Bool(flag) => Some(Value::Boolean(*flag)),
        serde_json::Value::Number(number) => number.as_i64().map(Value::Integer).or(number.as_f64().map(Value::Float)),
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
    }
}

fn flatten(table: DeTable<'_>, prefix: &str, take: &mut impl FnMut(String, Value, usize)) {
    for (key, value) in table {
        let start = key.span().start;
        let name = format!("{prefix}{}", key.into_inner());
        match value.into_inner() {
            DeValue::Table(inner) => flatten(inner, &format!("{name}."), take),
            other => take(name, plain(other), start),
        }
    }
}

/// `DeValue` keeps numbers as text, already checked by the parser.
fn plain(value: DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::String(number.to_string()), Value::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| Value::String(number.to_string()), Value::Float)
        }
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Datetime(datetime) => Value::Datetime(datetime),
        DeValue::Array(items) => Value::Array(items.into_iter().map(|item| plain(item.into_inner())).collect()),
        DeValue::Table(table) => {
            Value::Table(table.into_iter().map(|(k, v)| (k.into_inner().into_owned(), plain(v.into_inner()))).collect())
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count()
}

/// Reads `SQUAD_` variables, named after keys in capitals with underscores: `SQUAD_SESSIONS_MAX_CONCURRENT`. Numbers,
/// `true`, `false` and comma-separated lists are converted if the key needs that.
pub(crate) fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> (Layer, Vec<Problem>) {
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in variables {
        if !name.starts_with("SQUAD_") || value.is_empty() {
            continue;
        }
        let alias = ALIASES.iter().find(|(variable, _)| *variable == name).map(|(_, key)| *key);
        match alias.or_else(|| keys::KEYS.iter().map(|key| key.name).find(|key| variable_of(key) == name)) {
            Some(key) => entries.push((key.to_owned(), from_text(key, &value), Origin::Variable(name))),
            None => problems.extend(mistyped(&name)),
        }
    }
    entries.stable_sort_by(|a, b| a.2.cmp(&b.2));
    (Layer { entries }, problems)
}

/// Other programs use `SQUAD_` variables too, so only names similar to a known one are reported.
fn mistyped(name: &str) -> Option<Problem> {
    const NEARLY: f64 = 0.85;
    let ours = ALIASES.iter().map(|(variable, _)| ((*variable).to_owned(), false));
    let ours = ours.chain(keys::KEYS.iter().map(|key| (variable_of(key.name), key.fails_closed())));
    let ours: BTreeMap<String, bool> = ours.collect();
    let near = crate::model::nearest(name, NEARLY, ours.keys().map(String::as_str))?;
    let source = Origin::Variable(name.to_owned()).source();
    let (severity, code) = match ours.get(near) {
        Some(true) => (Severity::Error, keys::BAD_VALUE),
        _ => (Severity::Warning, "config-unknown-variable"),
    };
    let problem = Problem::new(severity, source, code, format!("there is no variable `{name}`"));
    Some(problem.hint(format!("did you mean `{near}`?")))
}

/// Values from flags: `(key, value, flag)`.
pub(crate) fn from_command_line<'a>(
    values: impl IntoIterator<Item = (&'a str, Option<String>, impl Into<String>)>,
) -> Layer {
    let entries = values.into_iter().filter_map(|(key, value, flag)| {
        value.map(|value| (key.to_owned(), from_text(key, &value), Origin::Flag(flag.into())))
    });
    Layer { entries: entries.collect() }
}

/// Settings for which a bare number gets its own error message.
const DURATIONS: [&str; 3] = ["sessions.timeout", "sessions.tool_limit", "sessions.limit"];

fn variable_of(key: &str) -> String {
    format!("SQUAD_{}", key.replace('.', "_").to_uppercase())
}

/// A value as a TOML file has it, and as `squad config list` prints it.
fn as_toml(text: &str) -> Option<Value> {
    toml::from_str::<toml::Table>(&format!("value = {text}")).ok()?.remove("value")
}

/// Converts text from a flag, a variable or `squad config set` to a value. Lists and quoted strings may be TOML.
pub(crate) fn from_text(key: &str, text: &str) -> Value {
    let fits = |value: &Value| super::check(key, value, false).is_ok();
    let takes_list =
        [Vec::new(), vec![Value::String("x".to_owned())]].into_iter().any(|list| fits(&Value::Array(list)));
    if takes_list && text.trim_start().starts_with('[') {
        return as_toml(text).unwrap_or_else(|| Value::String(text.to_owned()));
    }
    if takes_list {
        return Value::Array(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect());
    }
    if let Some(quoted @ Value::String(_)) = as_toml(text) {
        return quoted;
    }
    let typed = match (text.parse::<i64>(), text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(number), _, _) => Some(Value::Integer(number)),
        (_, Ok(number), _) => Some(Value::Float(number)),
        (_, _, Ok(flag)) => Some(Value::Boolean(flag)),
        _ => None,
    };
    // A model may be called `4`, so try which type the setting accepts.
    let plain = Value::String(text.to_owned());
    match typed {
        // If it accepts neither, the error for the number is more helpful.
        Some(typed) if fits(&typed) || (!fits(&plain) && !DURATIONS.contains(&key)) => typed,
        _ => plain,
    }
}
