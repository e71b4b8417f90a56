//! The commands in a CI file: of GitHub, GitLab, CircleCI, Azure and Travis.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Spanned, UserMessageFormatter};

const WORKFLOWS: &str = ".github/workflows/";

/// A command that CI runs.
#[derive(Debug, PartialEq)]
pub(super) struct CiCommand {
    pub(super) line: usize,
    /// The folder it runs in, from the root; `None`: not known.
    pub(super) folder: Option<String>,
    pub(super) command: String,
}

pub(super) fn is_ci(path: &str) -> bool {
    const FILES: [&str; 4] = [".gitlab-ci.yml", ".circleci/config.yml", "azure-pipelines.yml", ".travis.yml"];
    FILES.contains(&path)
        || path
            .strip_prefix(WORKFLOWS)
            .is_some_and(|name| !name.contains('/') && [".yml", ".yaml"].iter().any(|end| name.ends_with(end)))
}

/// The commands that run whenever CI does: nothing that is switched off, that only runs after a failure, or deploys.
/// Fails if the file is not YAML.
pub(super) fn commands(text: &str) -> Result<Vec<CiCommand>, String> {
    let root = read(text)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    Walk { lines, found: &mut found }.within(&root, &Some(String::new()), 0);
    Ok(found)
}

/// Whether one of GitHub's workflows runs at an event. One that cannot be read runs at none.
pub(super) fn reacts_to(text: &str, event: &str) -> bool {
    let is_it = |node: &Node| node.text() == Some(event);
    read(text).is_ok_and(|root| match root.get("on").map(|events| &events.value) {
        Some(Value::List(events)) => events.iter().any(is_it),
        Some(Value::Map(events)) => events.iter().any(|(name, _)| name == event),
        Some(Value::Text(name)) => name == event,
        Some(Value::Empty) | None => false,
    })
}

fn read(text: &str) -> Result<Node, String> {
    // `on` is a key, not "true".
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text.trim_start_matches('\u{feff}'), options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let message = error.without_snippet().render_with_formatter(&UserMessageFormatter);
        format!("line {line}: {}", message.lines().next().unwrap_or_default())
    })
}

/// Deeper ones are not read.
const MAX_DEPTH: usize = 24;
/// Keys whose values are no commands of a job.
const ASIDE: [&str; 12] = [
    "with",
    "env",
    "variables",
    "inputs",
    "services",
    "on",
    "strategy",
    "docker",
    "parameters",
    "matrix",
    "cache",
    "defaults",
];

struct Walk<'t> {
    lines: Vec<&'t str>,
    found: &'t mut Vec<CiCommand>,
}

impl Walk<'_> {
    fn within(&mut self, node: &Node, folder: &Option<String>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| self.within(item, folder, depth + 1)),
            Value::Map(entries) if !is_left_out(node) => {
                let folder = &own_folder(node, folder);
                for (key, value) in entries {
                    match key.as_str() {
                        key if ASIDE.contains(&key) || is_of_release(key) => {}
                        "run" | "script" | "bash" | "command" => match value.get("command") {
                            // CircleCI has a mapping.
                            Some(command) if !is_left_out(value) => {
                                self.add(command, &own_folder(value, folder));
                            }
                            Some(_) => {}
                            None => self.add(value, folder),
                        },
                        _ => self.within(value, folder, depth + 1),
                    }
                }
            }
            Value::Map(_) | Value::Text(_) | Value::Empty => {}
        }
    }

    /// Adds the commands of a script, but not the text that it gives to one; `cd` holds for those that follow.
    fn add(&mut self, script: &Node, folder: &Option<String>) {
        let mut folder = folder.clone();
        let mut is_continued = false;
        let mut until: Option<String> = None;
        for (line, text) in script.lines() {
            let mut command = text.trim();
            if let Some(mark) = &until {
                if command == mark {
                    until = None;
                }
                continue;
            }
            until = here_document(command);
            // A line that goes on on the next one, and the next one, are no commands of their own.
            let is_part = is_continued || command.ends_with('\\');
            // GitLab's name for the script of another job.
            let source = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
            is_continued = command.ends_with('\\');
            if command.is_empty() || command.starts_with('#') || is_part || source.contains("!reference") {
                continue;
            }
            while let Some(rest) = command.strip_prefix("cd ") {
                let (to, after) = rest.split_once("&&").unwrap_or((rest, ""));
                folder = folder.and_then(|folder| joined(&folder, to));
                command = after.trim();
            }
            if command.starts_with("pushd") || command.starts_with("popd") {
                folder = None;
            }
            if !command.is_empty() {
                // A block begins on the line behind its mark.
                let is_it = |number: &usize| {
                    self.lines.get(number.saturating_sub(1)).is_some_and(|line| line.contains(text.trim()))
                };
                let line = (line..line + 3).find(is_it).unwrap_or(line);
                self.found.push(CiCommand { line, folder: folder.clone(), command: command.to_owned() });
            }
        }
    }
}

/// The line that ends the text which a line begins: `EOF` of `cat <<'EOF' >file`.
fn here_document(line: &str) -> Option<String> {
    let (before, behind) = line.split_once("<<")?;
    let mark = behind.trim_start_matches('-').trim_start().trim_start_matches(['\'', '"', '\\']);
    let end = mark.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(mark.len());
    let is_name = mark.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (is_name && !behind.starts_with('<') && !before.trim_start().starts_with('#')).then(|| mark[..end].to_owned())
}

/// Whether a job or a step is switched off, runs only when another has failed or when somebody asks, or deploys.
fn is_left_out(node: &Node) -> bool {
    let text = |key: &str| node.get(key).and_then(Node::text);
    let condition = ["if", "condition"].iter().find_map(|key| text(key)).unwrap_or_default();
    let condition = condition.trim_start_matches("${{").trim_end_matches("}}").trim();
    let is_never = condition == "false" || text("enabled") == Some("false");
    let is_called =
        |call: &str| condition.match_indices(call).any(|(at, _)| !condition[..at].trim_end().ends_with('!'));
    let is_after_failure = ["failure()", "failed()", "cancelled()"].into_iter().any(is_called);
    let when = text("when").unwrap_or_default();
    let names = ["name", "stage", "displayName", "job"].iter().filter_map(|key| text(key));
    is_never
        || is_after_failure
        || ["on_fail", "on_failure", "never", "manual", "delayed"].contains(&when)
        || node.get("environment").is_some_and(is_target)
        || names.into_iter().any(is_of_release)
}

/// Whether this is where a job deploys to. CircleCI calls variables so.
fn is_target(environment: &Node) -> bool {
    environment.text().is_some() || ["name", "url", "action"].iter().any(|key| environment.get(key).is_some())
}

/// Whether a job's or a step's name is one of those that deploy.
fn is_of_release(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "deploy",
        "deploys",
        "deployment",
        "deploying",
        "publish",
        "publishing",
        "release",
        "releases",
        "upload",
        "cleanup",
        "teardown",
        "rollback",
    ];
    // A hidden job of GitLab's runs only by another that extends it.
    let is_hidden = name.starts_with('.');
    is_hidden || name.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// The folder that the steps of a mapping run in.
fn own_folder(node: &Node, outer: &Option<String>) -> Option<String> {
    let defaults = node.get("defaults").and_then(|defaults| defaults.get("run"));
    let named = |node: &Node| {
        let keys = ["working-directory", "working_directory", "workingDirectory"];
        keys.iter().find_map(|key| node.get(key)).map(|folder| folder.text().map(str::to_owned))
    };
    let before = node.get("before_script").map(Node::lines).unwrap_or_default();
    let moves = before.iter().any(|(_, line)| line.trim_start().starts_with("cd "));
    match named(node).or_else(|| defaults.and_then(named)) {
        _ if moves => None,
        // CircleCI's is where the checkout goes.
        Some(Some(folder)) if folder.starts_with('~') && node.get("steps").is_some() => outer.clone(),
        Some(folder) => joined("", &folder?),
        None => outer.clone(),
    }
}

/// The folder that `cd TO` leads to from another; `None`: that is not known.
fn joined(from: &str, to: &str) -> Option<String> {
    let to = to.trim().trim_matches(['"', '\'']);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if to.is_empty() || to.starts_with(['/', '-']) || !to.chars().all(is_plain) {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    for part in to.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A value of YAML with its place.
type Node = Spanned<Value>;

trait NodeExt {
    fn get(&self, key: &str) -> Option<&Node>;
    fn text(&self) -> Option<&str>;
    /// The lines of a script, each with its number.
    fn lines(&self) -> Vec<(usize, &str)>;
}

#[derive(Debug)]
enum Value {
    Empty,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl NodeExt for Node {
    fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    fn lines(&self) -> Vec<(usize, &str)> {
        let first = usize::try_from(self.defined.line()).unwrap_or_default();
        match &self.value {
            Value::Text(text) => (first..).zip(text.lines()).collect(),
            Value::List(items) => items.iter().flat_map(NodeExt::lines).collect(),
            Value::Map(_) | Value::Empty => Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.to_owned()))
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Empty)
            }

            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Empty)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
                Value::deserialize(deserializer)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut found = Vec::new();
                while let Some(item) = items.next_element()? {
                    found.push(item);
                }
                Ok(Value::List(found))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
                let mut found = Vec::new();
                while let Some((key, value)) = entries.next_entry::<Value, Node>()? {
                    if let Value::Text(key) = key {
                        found.push((key, value));
                    }
                }
                Ok(Value::Map(found))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let shown = |found: CiCommand| {
            let folder = found.folder.unwrap_or_else(|| "?".to_owned());
            format!("{} {folder}: {}", found.line, found.command)
        };
        commands(text).expect("YAML").into_iter().map(shown).collect()
    }

    #[test]
    fn a_workflow_reacts_to_the_events_it_names() {
        for (text, reacts) in [
            ("on: issues\n", true),
            ("on: [push, issues]\n", true),
            ("on:\n  - push\n  - issues\n", true),
            ("'on':\n  push:\n  issues:\n    types: [opened]\n", true),
            ("on: push # issues\n", false),
            ("on: [push, issue_comment]\n", false),
            ("on:\n  push:\n    branches: [issues]\n", false),
            ("name: issues\npermissions:\n  issues: write\n", false),
            ("on: [issues\n", false),
        ] {
            assert_eq!(reacts_to(text, "issues"), reacts, "{text}");
        }
    }

    #[test]
    fn commands_are_found_with_their_lines_and_folders() {
        for (text, expected) in [
            ("jobs:\n  a:\n    steps:\n      - run: make test\n", &["4 : make test"][..]),
            ("a:\n  script: make test\n", &["2 : make test"]),
            ("a:\n  script:\n    - make a\n    # no\n    - \"make b\"\n", &["3 : make a", "5 : make b"]),
            ("steps:\n- run: |\n    make a\n\n    make b\n", &["3 : make a", "5 : make b"]),
            ("steps:\n- run: |\n    cd ml\n    pytest\n    cd ..\n    make\n", &["4 ml: pytest", "6 : make"]),
            ("steps:\n- run: cd a && make\n- run: make\n", &["2 a: make", "3 : make"]),
            ("steps:\n- run: cd $A && make\n- run: cd ../a\n- run: (cd a; make)\n", &["2 ?: make", "4 : (cd a; make)"]),
            ("steps:\n- run: make\n  working-directory: ./a/\n", &["2 a: make"]),
            (
                "jobs:\n  a:\n    defaults:\n      run:\n        working-directory: a\n    steps:\n    - run: make\n    - run: b\n      working-directory: c\n",
                &["7 a: make", "8 c: b"],
            ),
            ("steps:\n- run:\n    name: make test\n    command: make a\n    working_directory: b\n", &["4 b: make a"]),
            ("steps:\n- script: make a\n  workingDirectory: $(x)\n- bash: make b\n", &["2 ?: make a", "4 : make b"]),
            ("steps:\n- run: >-\n    make\n    test\n", &["3 : make test"]),
            ("a:\n  before_script:\n  - cd web\n  script:\n  - make\n", &["5 ?: make"]),
            ("steps:\n- run: |\n    make \\\n      test \\\n      lint\n    make\n", &["6 : make"]),
            (
                "steps:\n- run: |\n    cat <<'EOF' >a\n    pytest\n    EOF\n    make\n",
                &["3 : cat <<'EOF' >a", "6 : make"],
            ),
            (
                "steps:\n- run: |\n    sh <<-END\n      pytest\n      END\n    # <<A\n    cat <<<a\n    make\n",
                &["3 : sh <<-END", "7 : cat <<<a", "8 : make"],
            ),
            ("jobs:\n  a:\n    environment:\n      A: b\n    steps:\n    - run: make\n", &["6 : make"]),
            ("steps:\n- uses: a\n  with:\n    command: test\n", &[]),
            ("a:\n  script:\n  - !reference [b, script]\n  - make\n", &["4 : make"]),
            ("", &[]),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    /// Whatever keeps a job or a step from running in each run, in each of the systems.
    #[test]
    fn what_does_not_always_run_is_left_out() {
        for line in [
            "if: false",
            "if: ${{ false }}",
            "if: failure()",
            "if: always() && failure()",
            "if: cancelled()",
            "condition: failed()",
            "enabled: false",
            "when: on_failure",
            "when: on_fail",
            "when: manual",
            "when: never",
            "environment: production",
            "environment: {name: production}",
            "if: failure() && a != 'b'",
            "stage: deploy",
            "name: Publish to PyPI",
        ] {
            let step = format!("jobs:\n  a:\n    steps:\n      - run: make test\n        {line}\n      - run: make\n");
            assert_eq!(of(&step), ["6 : make"], "{line}");
            let job = format!("jobs:\n  a:\n    {line}\n    steps:\n      - run: make test\n");
            assert_eq!(of(&job), [""; 0], "{line}");
        }
        for name in ["deploy", "deploy-docs", "publish_pypi", "release", ".hidden"] {
            assert_eq!(of(&format!("{name}:\n  script: make test\n")), [""; 0], "{name}");
        }
        for line in
            ["if: github.ref != 'x'", "if: ${{ !cancelled() }}", "if: success()", "when: always", "name: Deployers"]
        {
            let step = format!("steps:\n  - run: make test\n    {line}\n");
            assert_eq!(of(&step), ["2 : make test"], "{line}");
        }
    }

    #[test]
    fn what_is_not_yaml_is_told() {
        for text in ["run: |\n  \t- run:\n\u{feff}- a", "a: [b\n", "a: b: c\n", "a: 1\na: 2\n"] {
            assert!(commands(text).is_err(), "{text}");
        }
    }
}
