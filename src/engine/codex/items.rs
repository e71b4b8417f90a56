//! What Codex's items are about, and which of them a session may have.

use std::path::Path;

use serde_json::{Value, json};

use crate::engine::{ToolCall, Writing, subject};
use crate::model::{Access, SessionSpec, ToolChoice, is_denied, list};
use crate::policy::{only_reads_git, reads_files};

/// Codex's names for its own tools, as its one-shot form has them.
pub(super) const COMMAND: &str = "command_execution";
pub(super) const FILES: &str = "file_change";

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) call: ToolCall,
    /// What it is about, for people.
    pub(super) detail: String,
    /// The files that it writes, and what it adds.
    pub(super) writings: Vec<Writing>,
    /// What it asks for, at least one. A patch may touch several files.
    pub(super) accesses: Vec<(Access, String)>,
    /// It is one of squad's own tools, or one that the client offers.
    pub(super) is_own: bool,
}

impl Call {
    /// Reads an item. `None`: it is no call.
    pub(super) fn of(item: &Value, directory: &Path) -> Option<Self> {
        let id = text(item, "/id").unwrap_or_default().to_owned();
        let new = |tool: &str, arguments: Value, detail: String, accesses: Vec<(Access, String)>| Self {
            call: ToolCall { call: id.clone(), tool: tool.to_owned(), arguments },
            detail,
            writings: Vec::new(),
            accesses,
            is_own: false,
        };
        Some(match text(item, "/type")? {
            "commandExecution" => {
                let command = command_line(item, directory);
                let arguments = json!({ "command": command });
                new(COMMAND, arguments, command.clone(), vec![(Access::Shell, command)])
            }
            "fileChange" => {
                let changes = item["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
                let paths = changes.iter().flat_map(|change| {
                    [text(change, "/path"), text(change, "/kind/move_path")].into_iter().flatten().map(str::to_owned)
                });
                let paths: Vec<String> = paths.collect();
                let accesses = paths.iter().map(|path| (Access::Write, path.clone())).collect::<Vec<_>>();
                // One without a file that can be read is shown in full to whoever decides.
                let accesses = if accesses.is_empty() { vec![(Access::Write, item.to_string())] } else { accesses };
                let inner = |path: &String| match Path::new(path).strip_prefix(directory) {
                    Ok(inner) => inner.display().to_string(),
                    Err(_) => path.clone(),
                };
                let call = new(FILES, json!({ "changes": changes }), list(paths.iter().map(inner)), accesses);
                Self { writings: changes.iter().filter_map(writing).collect(), ..call }
            }
            "mcpToolCall" => {
                let name = |pointer| text(item, pointer).unwrap_or("?");
                let (server, tool) = (name("/server"), name("/tool"));
                let arguments = item["arguments"].clone();
                let about = vec![(Access::Mcp, format!("{server}/{tool} {arguments}"))];
                new(&format!("{server}-{tool}"), arguments.clone(), subject(&arguments), about)
            }
            "dynamicToolCall" => {
                let arguments = item["arguments"].clone();
                let call = new(text(item, "/tool").unwrap_or_default(), arguments.clone(), subject(&arguments), vec![]);
                Self { is_own: true, ..call }
            }
            "webSearch" => named(item, "/query", "web_search", Access::Network, new),
            "imageView" => named(item, "/path", "view_image", Access::Read, new),
            "collabAgentToolCall" => named(item, "/prompt", "collab_agent", Access::Other, new),
            _ => return None,
        })
    }

    /// Why the session's tools do not include it.
    pub(super) fn beyond(&self, spec: &SessionSpec) -> Option<&'static str> {
        match self.call.tool.as_str() {
            COMMAND if !may_run(spec) => {
                let only_reads = |command: &str| only_reads_git(command) || reads_files(command).is_some();
                let reads = may_read(spec) && self.accesses.iter().all(|(_, command)| only_reads(command));
                (!reads).then_some(
                    "this agent's tools only read: run a single command such as `cat`, `ls`, `rg`, `sed -n 1,80p` or \
                     `git diff`, without pipes, redirections and wildcards",
                )
            }
            FILES if !may_write(spec) => Some("writing files is not among this agent's tools"),
            _ => None,
        }
    }
}

fn named(
    item: &Value,
    pointer: &str,
    tool: &str,
    access: Access,
    new: impl Fn(&str, Value, String, Vec<(Access, String)>) -> Call,
) -> Call {
    let about = text(item, pointer).unwrap_or_default().to_owned();
    new(tool, json!({ "about": about }), about.clone(), vec![(access, about)])
}

fn allows(spec: &SessionSpec, tools: &[&str]) -> bool {
    let is_denied = tools.iter().all(|tool| is_denied(&spec.denied_tools, tool));
    !is_denied
        && match &spec.tools {
            ToolChoice::All => true,
            ToolChoice::ReadOnly => tools.contains(&"view"),
            ToolChoice::Nothing => false,
            ToolChoice::Only(names) => names.iter().any(|name| name == "*" || tools.contains(&name.as_str())),
        }
}

fn may_run(spec: &SessionSpec) -> bool {
    allows(spec, &["bash"])
}

fn may_write(spec: &SessionSpec) -> bool {
    allows(spec, &["create", "edit"])
}

pub(super) fn may_change(spec: &SessionSpec) -> bool {
    may_run(spec) || may_write(spec)
}

/// Codex reads with commands.
pub(super) fn may_read(spec: &SessionSpec) -> bool {
    allows(spec, &["view", "grep", "glob"])
}

/// The command as its agent wrote it, and the folder if it runs elsewhere.
pub(super) fn command_line(item: &Value, directory: &Path) -> String {
    let whole = text(item, "/command").unwrap_or_default();
    let script = script(whole).unwrap_or_else(|| whole.to_owned());
    match text(item, "/cwd") {
        Some(folder) if Path::new(folder) != directory && !folder.is_empty() => {
            format!("cd '{}' && {script}", folder.replace('\'', r"'\''"))
        }
        _ => script,
    }
}

/// The script in `/bin/bash -lc 'SCRIPT'`.
fn script(command: &str) -> Option<String> {
    let words = words(command)?;
    let [shell, option, script] = <[String; 3]>::try_from(words).ok()?;
    let name = shell.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_shell = ["bash", "zsh", "sh", "dash", "ksh"].contains(&name) && ["-lc", "-c"].contains(&option.as_str());
    let is_powershell =
        ["powershell.exe", "pwsh", "pwsh.exe"].contains(&name) && option.eq_ignore_ascii_case("-command");
    (is_shell || is_powershell).then_some(script)
}

/// The words that were quoted into one line. `None`: a quote is open.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) = Default::default();
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') => {
                let escaped = characters.next_if(|next| ['$', '`', '"', '\\', '\n'].contains(next));
                word.get_or_insert_default().push(escaped.unwrap_or(c));
            }
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, '\\') => word.get_or_insert_default().push(characters.next()?),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// What a change writes; `None`: it deletes.
fn writing(change: &Value) -> Option<Writing> {
    let diff = text(change, "/diff").unwrap_or_default();
    let path = text(change, "/kind/move_path").or_else(|| text(change, "/path"))?.to_owned();
    match text(change, "/kind/type")? {
        "add" => Some(Writing { path, old: None, text: diff.to_owned(), is_whole: true }),
        "update" => {
            let added = diff.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
            let text = added.map(|line| format!("{line}\n")).collect();
            Some(Writing { path, old: None, text, is_whole: false })
        }
        _ => None,
    }
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(item: &Value) -> Call {
        Call::of(item, Path::new("/p")).expect("a call")
    }

    #[test]
    fn a_command_is_the_script_that_its_agent_wrote() {
        for (command, cwd, wanted) in [
            ("/bin/bash -lc 'ls; touch ok'", "/p", "ls; touch ok"),
            ("/bin/bash -lc cat", "/p", "cat"),
            (r#"/bin/zsh -lc "echo 'a' \"\$HOME\" \\n""#, "/p", r#"echo 'a' "$HOME" \n"#),
            ("/bin/bash -lc 'a'\"'\"'b'", "/p", "a'b"),
            ("/bin/bash -lc 'make'", "/p/it's", r"cd '/p/it'\''s' && make"),
            ("python3 -c 'print()'", "/p", "python3 -c 'print()'"),
            ("/bin/bash -lc 'open", "/p", "/bin/bash -lc 'open"),
            ("/bin/bash -lc 'x' y", "/p", "/bin/bash -lc 'x' y"),
            ("pwsh.exe -Command ls", "/p", "ls"),
            ("", "", ""),
        ] {
            let item = json!({ "type": "commandExecution", "id": "c", "command": command, "cwd": cwd });
            assert_eq!(call(&item).accesses, [(Access::Shell, wanted.to_owned())], "{command}");
        }
    }

    #[test]
    fn a_patch_names_all_its_files() {
        let item = json!({ "type": "fileChange", "id": "c", "changes": [
            { "path": "/p/a", "kind": { "type": "add" }, "diff": "hello\n" },
            { "path": "/p/b", "kind": { "type": "update", "move_path": "/p/c" }, "diff": "--- b\n+++ c\n@@ -1 +1 @@\n-x\n+y\n" },
            { "path": "/p/d", "kind": { "type": "delete" }, "diff": "gone" },
        ] });
        let call = call(&item);
        let paths: Vec<&str> = call.accesses.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(paths, ["/p/a", "/p/b", "/p/c", "/p/d"]);
        let wrote: Vec<_> =
            call.writings.iter().map(|file| (file.path.as_str(), file.text.as_str(), file.is_whole)).collect();
        assert_eq!(wrote, [("/p/a", "hello\n", true), ("/p/c", "y\n", false)]);
        let odd = Call::of(&json!({ "type": "fileChange", "changes": 7 }), Path::new("/p")).expect("a call");
        assert_eq!(odd.accesses.len(), 1);
    }

    #[test]
    fn an_agent_that_reads_runs_commands_that_read() {
        let beyond = |tools: ToolChoice, command: &str| {
            let spec = crate::engine::copilot::testing::opening("s", tools).spec;
            let item =
                json!({ "type": "commandExecution", "command": format!("/bin/bash -lc '{command}'"), "cwd": "/p" });
            call(&item).beyond(&spec).is_some()
        };
        let only = |name: &str| ToolChoice::Only(vec![name.to_owned()]);
        for (command, changes) in [("cat a", false), ("git diff", false), ("touch a", true), ("cat a > b", true)] {
            assert!(!beyond(ToolChoice::All, command) && !beyond(only("bash"), command), "{command}");
            assert_eq!(beyond(ToolChoice::ReadOnly, command), changes, "{command}");
            assert_eq!(beyond(only("view"), command), changes, "{command}");
            assert!(beyond(ToolChoice::Nothing, command) && beyond(only("edit"), command), "{command}");
        }
        let spec = |tools| crate::engine::copilot::testing::opening("s", tools).spec;
        let patch = call(&json!({ "type": "fileChange", "changes": [] }));
        assert!(patch.beyond(&spec(ToolChoice::ReadOnly)).is_some() && patch.beyond(&spec(only("edit"))).is_none());
    }
}
