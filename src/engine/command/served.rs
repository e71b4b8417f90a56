//! squad's own tools, for programs that accept MCP servers. `squad mcp --member` serves them to one agent of a run.

use std::path::Path;

use serde_json::json;

use super::Shared;
use crate::engine::ToolSpec;
use crate::settings::ToolsWay;

/// The server's name, which becomes part of its tools' names.
const NAME: &str = "squad";

impl Shared {
    /// The arguments that configure the server for a turn; `None`: the program gets no server.
    pub(super) fn server_arguments(&self, agent: &str, turn: Option<&str>) -> Option<Vec<String>> {
        let (way, squad, turn) = (self.profile.tools?.way, self.squad.as_deref()?, turn?);
        let is_configured = self.profile.arguments.has_tools();
        is_configured.then(|| arguments(way, squad, &self.directory, &format!("{}/{agent}", self.run), turn))
    }
}

/// The own name of one of squad's tools, by a program's name for it; `None`: it is another's.
pub(super) fn own_name(tool: &str) -> Option<&str> {
    let prefixes = ["mcp__squad__", "squad-", "squad_"];
    let name = prefixes.iter().find_map(|prefix| tool.strip_prefix(prefix))?;
    (reports_itself(name) || name.starts_with("squad_")).then_some(name)
}

/// Whether one of squad's tools reports its own calls.
pub(super) fn reports_itself(name: &str) -> bool {
    matches!(name, "shell" | "file_ops")
}

fn arguments(way: ToolsWay, squad: &Path, directory: &Path, member: &str, turn: &str) -> Vec<String> {
    let (squad, directory) = (squad.display().to_string(), directory.display().to_string());
    let arguments = ["-C", &directory, "mcp", "--member", member, "--turn", turn].map(str::to_owned).to_vec();
    match way {
        ToolsWay::Claude => {
            let server = json!({"type": "stdio", "command": squad, "args": arguments});
            let servers = json!({"mcpServers": {NAME: server}}).to_string();
            ["--mcp-config", &servers, "--allowedTools", &format!("mcp__{NAME}")].map(str::to_owned).to_vec()
        }
        ToolsWay::Codex => {
            let (squad, arguments) = (toml::Value::from(squad), toml::Value::from(arguments));
            // A call that hands work to a colleague lasts as long as that work.
            let server = format!(
                "{{command={squad},args={arguments},tool_timeout_sec=86400,default_tools_approval_mode=\"approve\"}}"
            );
            vec!["-c".to_owned(), format!("mcp_servers.{NAME}={server}")]
        }
    }
}

/// A note at the end of a role, which may mention tools that are not available.
pub(super) fn missing_tools_note(tools: &[ToolSpec]) -> Option<String> {
    let missing: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "\n\n(These tools are not available in this session: {}. Where you are told to use one, write at the end \
             of your answer what you would have passed to it.)\n",
            missing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squads_tools_are_known_by_every_programs_name_for_them() {
        for tool in ["mcp__squad__squad_remember", "squad-squad_remember", "squad_squad_remember"] {
            assert_eq!(own_name(tool), Some("squad_remember"), "{tool}");
        }
        assert_eq!(own_name("mcp__squad__shell"), Some("shell"));
        for tool in ["squad_remember", "mcp__other__squad_remember", "squad-orchestrate", "shell", ""] {
            assert_eq!(own_name(tool), None, "{tool}");
        }
    }

    #[test]
    fn paths_are_quoted_as_each_program_reads_them() {
        let of = |way| arguments(way, Path::new("/o \"p\"/squad"), Path::new("/a 'b'"), "run/ada", "s/1");
        let claude: serde_json::Value = serde_json::from_str(&of(ToolsWay::Claude)[1]).expect("JSON");
        assert_eq!(claude["mcpServers"]["squad"]["command"], "/o \"p\"/squad");
        assert_eq!(
            claude["mcpServers"]["squad"]["args"],
            json!(["-C", "/a 'b'", "mcp", "--member", "run/ada", "--turn", "s/1"])
        );
        let codex: toml::Table = of(ToolsWay::Codex)[1].parse().expect("TOML");
        let server = &codex["mcp_servers"]["squad"];
        assert_eq!(server["command"].as_str(), Some("/o \"p\"/squad"));
        assert_eq!(server["args"][1].as_str(), Some("/a 'b'"));
    }
}
