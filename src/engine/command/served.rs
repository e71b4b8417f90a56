//! Squad's own tools for a program that takes MCP servers: this program is such a server, for one agent of one run.

use std::path::Path;

use serde_json::json;

use super::Shared;
use crate::engine::ToolSpec;
use crate::settings::ToolsWay;

/// What the server is called, which is part of its tools' names.
const NAME: &str = "squad";

impl Shared {
    /// The arguments that name the server; `None`: the program is told of none. `turn`: it offers what the program has
    /// no tools for.
    pub(super) fn server(&self, agent: &str, tools: &[ToolSpec], turn: Option<&str>) -> Option<Vec<String>> {
        let (way, squad) = (self.profile.tools?.way, self.squad.as_deref()?);
        let has_tools = turn.is_some() || tools.iter().any(|tool| tool.is_served);
        let is_placed = self.profile.arguments.has_tools() && has_tools;
        is_placed.then(|| arguments(way, squad, &self.directory, &format!("{}/{agent}", self.run), turn))
    }
}

/// Whether a name that a program gives a tool is that of one of squad's, where these report what they do by themselves.
pub(super) fn reports_itself(tool: &str) -> bool {
    let name = tool.strip_prefix("mcp__squad__").or_else(|| tool.strip_prefix("squad-"));
    matches!(name, Some("shell" | "file_ops"))
}

fn arguments(way: ToolsWay, squad: &Path, directory: &Path, member: &str, turn: Option<&str>) -> Vec<String> {
    let (squad, directory) = (squad.display().to_string(), directory.display().to_string());
    let mut arguments = vec!["-C", &directory, "mcp", "--member", member];
    arguments.extend(turn.iter().flat_map(|turn| ["--turn", turn]));
    match way {
        ToolsWay::Claude => {
            let server = json!({"type": "stdio", "command": squad, "args": arguments});
            let servers = json!({"mcpServers": {NAME: server}}).to_string();
            ["--mcp-config", &servers, "--allowedTools", &format!("mcp__{NAME}")].map(str::to_owned).to_vec()
        }
        ToolsWay::Codex => {
            let (squad, arguments) = (toml::Value::from(squad), toml::Value::from(arguments));
            let server = format!("{{command={squad},args={arguments},default_tools_approval_mode=\"approve\"}}");
            vec!["-c".to_owned(), format!("mcp_servers.{NAME}={server}")]
        }
    }
}

/// Behind a role, which may speak of tools that are not there.
pub(super) fn missing(tools: &[ToolSpec], has_server: bool) -> Option<String> {
    let missing: Vec<String> =
        tools.iter().filter(|tool| !(has_server && tool.is_served)).map(|tool| format!("`{}`", tool.name)).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "\n\n(These tools are not there in this session: {}. Where you are told to use one, say at the end of your \
             answer what you would have told it.)\n",
            missing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_as_each_program_reads_them() {
        let of = |way| arguments(way, Path::new("/o \"p\"/squad"), Path::new("/a 'b'"), "run/ada", Some("s/1"));
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
