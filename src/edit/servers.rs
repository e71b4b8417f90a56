//! Replaces another tool's MCP server by squad in hosts' JSON files. Comments, formatting and all other bytes stay.

use std::ops::Range;

/// The npm package of another tool that starts itself as an MCP server.
const PACKAGE: &str = "@bradygaster/squad-cli";
/// The argument that starts the server in that tool's own program.
const COMMAND: &str = "state-mcp";

/// Keys for server lists in hosts' files.
const LISTS: [&str; 2] = ["mcpServers", "servers"];

/// The maximum nesting depth.
const DEEPEST: usize = 64;

/// A value and its byte range.
struct Value {
    range: Range<usize>,
    kind: Kind,
}

enum Kind {
    Object(Vec<(Value, Value)>),
    Array(Vec<Value>),
    Text(String),
    /// A number, `true`, `false` or `null`.
    Other,
}

impl Value {
    fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    fn members(&self) -> &[(Value, Value)] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        Some(&self.members().iter().find(|(name, _)| name.text() == Some(key))?.1)
    }

    fn items(&self) -> &[Value] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }
}

/// The changed text, and the names of the replaced servers. `None`: no server is the other tool's.
pub(crate) fn swap_servers(text: &str) -> Option<(String, Vec<String>)> {
    let root = Scanner { text, at: 0, depth: 0 }.value()?;
    let (mut edits, mut names) = (Vec::new(), Vec::new());
    for list in LISTS.iter().filter_map(|name| root.get(name)) {
        let mut is_taken = list.members().iter().any(|(name, _)| name.text() == Some("squad"));
        for (name, server) in list.members() {
            let (Some(command), Some(arguments)) = (server.get("command"), server.get("args")) else { continue };
            let (Some(first), Some(last)) = (arguments.items().first(), arguments.items().last()) else { continue };
            if !is_theirs(command, arguments.items()) {
                continue;
            }
            if !is_taken {
                edits.push((name.range.clone(), "\"squad\""));
                is_taken = true;
            }
            edits.push((command.range.clone(), "\"squad\""));
            edits.push((first.range.start..last.range.end, "\"mcp\""));
            names.extend(name.text().map(str::to_owned));
        }
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut swapped = text.to_owned();
    for (range, new) in edits.into_iter().rev() {
        swapped.replace_range(range, new);
    }
    Some((swapped, names))
}

fn is_theirs(command: &Value, arguments: &[Value]) -> bool {
    let program = command.text().unwrap_or_default();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.split_once('.').map_or(program, |(name, _)| name);
    let mut words = arguments.iter().filter_map(Value::text);
    words.clone().any(|word| word == PACKAGE || word.starts_with(&format!("{PACKAGE}@")))
        || (program == "squad" && words.next() == Some(COMMAND))
}

/// Reads JSON with comments and trailing commas.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips a character, if it is next.
    fn eat(&mut self, character: char) -> bool {
        let is_there = self.rest().starts_with(character);
        self.at += if is_there { character.len_utf8() } else { 0 };
        is_there
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
            let comment = match &rest[blank..] {
                line if line.starts_with("//") => line.find('\n').unwrap_or(line.len()),
                block if block.starts_with("/*") => block.find("*/").map_or(block.len(), |end| end + 2),
                _ => 0,
            };
            self.at += blank + comment;
            if blank + comment == 0 {
                return;
            }
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.skip();
        let start = self.at;
        self.depth += 1;
        let kind = match self.rest().chars().next()? {
            _ if self.depth > DEEPEST => return None,
            '{' => Kind::Object(self.list('}', |scanner| {
                let name = scanner.value().filter(|name| name.text().is_some())?;
                scanner.skip();
                if scanner.eat(':') { Some((name, scanner.value()?)) } else { None }
            })?),
            '[' => Kind::Array(self.list(']', Self::value)?),
            '"' => Kind::Text(self.string()?),
            _ => {
                let word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
                let length = self.rest().find(|c| !word(c)).unwrap_or(self.rest().len());
                self.at += length;
                if length == 0 {
                    return None;
                }
                Kind::Other
            }
        };
        self.depth -= 1;
        Some(Value { range: start..self.at, kind })
    }

    /// The items between an opening character, which is next, and a closing one.
    fn list<T>(&mut self, close: char, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut all = Vec::new();
        loop {
            self.skip();
            if self.eat(close) {
                return Some(all);
            }
            all.push(one(self)?);
            self.skip();
            if !self.eat(',') {
                return self.eat(close).then_some(all);
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut is_escaped = false;
        let inner = self.rest().get(1..)?;
        let end = inner.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        })?;
        let quoted = self.rest().get(..end + 2)?;
        let text = serde_json::from_str(quoted).ok()?;
        self.at += end + 2;
        Some(text)
    }
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
