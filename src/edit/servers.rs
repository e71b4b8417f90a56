//! MCP servers in hosts' files. Comments, formatting and what else a file holds stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};

/// The npm package of another tool that starts itself as an MCP server.
const PACKAGE: &str = "@bradygaster/squad-cli";
/// The argument that starts the server in that tool's own program.
const COMMAND: &str = "state-mcp";

/// Keys for server lists in hosts' files.
const LISTS: [&str; 2] = ["mcpServers", "servers"];

/// The byte order mark that some editors put first.
const MARK: &str = "\u{feff}";

/// The text with another tool's servers replaced by squad, and their names. `None`: no server is the other tool's.
pub(crate) fn swap_servers(text: &str) -> Option<(String, Vec<String>)> {
    let (mark, root) = parse(text).ok()?;
    let lists = root.object_value()?;
    let mut names = Vec::new();
    for list in LISTS.iter().filter_map(|name| lists.object_value(name)) {
        let mut is_taken = list.get("squad").is_some();
        for property in list.properties() {
            let Some(server) = property.object_value() else { continue };
            let Some(arguments) = server.array_value("args").filter(|_| is_theirs(&server)) else { continue };
            names.extend(property.decoded_name());
            server.get("command")?.set_value("squad".into());
            for argument in arguments.elements().into_iter().skip(1) {
                argument.remove();
            }
            replace(arguments.elements().into_iter().next()?, "mcp");
            if !std::mem::replace(&mut is_taken, true) {
                property.name()?.as_string_lit()?.set_raw_value("\"squad\"".to_owned());
            }
        }
    }
    (!names.is_empty()).then(|| (format!("{mark}{root}"), names))
}

/// The keys that say how squad is started. Where the server is there already, its other keys stay as they are.
const STARTS: [&str; 2] = ["command", "args"];

/// Fails if a server that is named squad is something else.
fn require_squad(command: Option<&str>, has_address: bool) -> Result<(), String> {
    let name = command.map(|command| command.rsplit(['/', '\\']).next().unwrap_or(command).trim_end_matches(".exe"));
    match name {
        _ if has_address => Err("there is a server named squad already, which is reached by an address".to_owned()),
        Some("squad") | None => Ok(()),
        Some(other) => Err(format!("there is a server named squad already, which starts `{other}`")),
    }
}

/// The JSON text with a server named squad in the list that has this key. Of a server that is there already, only how it
/// is started changes. `Err`: the text is not JSON, something else is in the place of the list or server, or the server
/// is another one.
pub(crate) fn with_json_server(text: &str, list: &str, server: &Map<String, Value>) -> Result<String, String> {
    let (mark, root) = parse(text)?;
    let taken = |what: &str| format!("{what} is not an object");
    let lists = root.object_value_or_create().ok_or_else(|| taken("all of it"))?;
    let servers = lists.object_value_or_create(list).ok_or_else(|| taken(list))?;
    let squad = servers.object_value_or_create("squad").ok_or_else(|| taken(&format!("{list}.squad")))?;
    for (object, key) in [(&lists, list), (&servers, "squad")] {
        let is_named = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(key);
        if object.properties().iter().filter(|property| is_named(property)).count() > 1 {
            return Err(format!("`{key}` is there twice"));
        }
    }
    let command = squad.get("command").and_then(|old| old.value()?.as_string_lit()?.decoded_value().ok());
    require_squad(command.as_deref(), squad.get("url").is_some())?;
    merge_json(&squad, server);
    Ok(format!("{mark}{root}"))
}

fn merge_json(object: &CstObject, members: &Map<String, Value>) {
    for (key, value) in members {
        match (object.get(key), value) {
            (None, value) => drop(object.append(key, input(value))),
            (Some(old), Value::Object(members)) if old.object_value().is_some() => {
                old.object_value().into_iter().for_each(|old| merge_json(&old, members));
            }
            (Some(old), value) if STARTS.contains(&key.as_str()) => {
                if old.to_serde_value().as_ref() != Some(value) {
                    old.set_value(input(value));
                }
            }
            (Some(_), _) => {}
        }
    }
}

/// Like [`with_json_server`], for Codex.
pub(crate) fn with_toml_server(text: &str, server: &Map<String, Value>) -> Result<String, String> {
    let (mark, text) = without_mark(text);
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in ["mcp_servers", "squad"] {
        let inner = table.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(name == "mcp_servers");
            Item::Table(table)
        });
        table = inner.as_table_like_mut().ok_or_else(|| format!("{name} is not a table"))?;
    }
    require_squad(table.get("command").and_then(Item::as_str), table.contains_key("url"))?;
    merge_toml(table, server);
    // The library writes line feeds only.
    let changed = document.to_string();
    Ok(match text.contains("\r\n") {
        true => format!("{mark}{}", changed.replace("\r\n", "\n").replace('\n', "\r\n")),
        false => format!("{mark}{changed}"),
    })
}

fn merge_toml(table: &mut dyn TableLike, members: &Map<String, Value>) {
    for (key, value) in members {
        match (table.get_mut(key), value) {
            (Some(old), Value::Object(members)) if old.is_table_like() => {
                old.as_table_like_mut().into_iter().for_each(|old| merge_toml(old, members));
            }
            (Some(_), _) if !STARTS.contains(&key.as_str()) => {}
            (Some(old), value) => {
                // The comment behind a value is part of it.
                let decor = old.as_value().map(|old| old.decor().clone()).unwrap_or_default();
                let mut new = toml_value(value);
                *new.decor_mut() = decor;
                *old = Item::Value(new);
            }
            (None, Value::Object(members)) => {
                let mut new = Table::new();
                merge_toml(&mut new, members);
                table.insert(key, Item::Table(new));
            }
            (None, value) => drop(table.insert(key, Item::Value(toml_value(value)))),
        }
    }
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number.as_i64().unwrap_or_default().into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml_value).collect(),
        Value::Null => "".into(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key, toml_value(value))).collect::<toml_edit::InlineTable>().into()
        }
    }
}

fn without_mark(text: &str) -> (&'static str, &str) {
    text.strip_prefix(MARK).map_or(("", text), |text| (MARK, text))
}

fn parse(text: &str) -> Result<(&'static str, CstRootNode), String> {
    let (mark, text) = without_mark(text);
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    let root = CstRootNode::parse(text, &options).map_err(|error| error.to_string())?;
    Ok((mark, root))
}

fn replace(node: CstNode, text: &str) {
    if let Some(literal) = node.as_string_lit() {
        literal.replace_with(text.into());
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(bool) => (*bool).into(),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

fn is_theirs(server: &CstObject) -> bool {
    let text = |node: CstNode| node.as_string_lit()?.decoded_value().ok();
    let program = server.get("command").and_then(|command| text(command.value()?)).unwrap_or_default();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.split_once('.').map_or(program, |(name, _)| name);
    let arguments = server.array_value("args").map(|arguments| arguments.elements()).unwrap_or_default();
    let words: Vec<String> = arguments.into_iter().filter_map(text).collect();
    words.iter().any(|word| word == PACKAGE || word.starts_with(&format!("{PACKAGE}@")))
        || (program == "squad" && words.first().is_some_and(|word| word == COMMAND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_of_the_entry_change() {
        let text = "\u{feff}{\r\n  // ours\r\n  \"mcpServers\": {\r\n    \"a\": { \"command\": \"npx\", \"args\": [\"-y\", \"a\"] },\r\n    \
            \"squad_state\": {\r\n      \"command\": \"npx\",\r\n      \"args\": [\r\n        \"-y\",\r\n        \
            \"@bradygaster/squad-cli@0.10.0\",\r\n        \"state-mcp\"\r\n      ],\r\n      \"env\": {},\r\n    },\r\n  },\r\n}\r\n";
        let (swapped, names) = swap_servers(text).expect("an entry");
        assert_eq!(names, ["squad_state"]);
        let expected = text
            .replace("squad_state", "squad")
            .replace("\"npx\",\r\n", "\"squad\",\r\n")
            .replace("\"-y\",\r\n        \"@bradygaster/squad-cli@0.10.0\",\r\n        \"state-mcp\"", "\"mcp\"");
        assert_eq!(swapped, expected);
        assert!(swap_servers(&swapped).is_none());
    }

    #[test]
    fn the_program_itself_is_an_entry_too() {
        let text = r#"{"servers":{"squad":{"command":"x"},"s":{"command":"C:\\npm\\squad.cmd","args":["state-mcp"]}}}"#;
        let (swapped, _) = swap_servers(text).expect("an entry");
        assert_eq!(swapped, r#"{"servers":{"squad":{"command":"x"},"s":{"command":"squad","args":["mcp"]}}}"#);
    }

    #[test]
    fn what_is_not_theirs_or_not_json_stays() {
        for text in [
            "",
            "{",
            "[]",
            "{\"mcpServers\":[]}",
            "{\"mcpServers\":{\"s\":{\"command\":\"npx\",\"args\":[]}}}",
            "{\"mcpServers\":{\"s\":{\"command\":\"npx\",\"args\":[\"@bradygaster/squad-clip\"]}}}",
            "{\"mcpServers\":{\"s\":{\"command\":\"squad\",\"args\":[\"mcp\"]}}}",
            "{\"a\":\"\\",
            &"[".repeat(100_000),
        ] {
            assert!(swap_servers(text).is_none(), "{text:.80}");
        }
    }
}
