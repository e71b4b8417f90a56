//! The hosts that a team can be exported to.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Target {
    /// .github/agents/*.agent.md, and squad.agent.md, which hands work to squad
    Copilot,
    /// .claude/agents/*.md
    Claude,
    /// .codex/agents/*.toml
    Codex,
    /// A section of AGENTS.md
    AgentsMd,
    /// .agents/plugins/squad-team: an Agent Plugin 1.0 with the team's skills
    Plugin,
}

impl Target {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Copilot => "copilot",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::AgentsMd => "agents-md",
            Self::Plugin => "plugin",
        }
    }

    /// Whether a path from the project's root belongs to this target.
    pub(super) fn contains(self, path: &str) -> bool {
        match self {
            Self::Copilot => path.starts_with(".github/agents/"),
            Self::Claude => path.starts_with(".claude/agents/"),
            Self::Codex => path.starts_with(".codex/agents/"),
            Self::AgentsMd => path == "AGENTS.md",
            Self::Plugin => path.starts_with(".agents/plugins/squad-team/"),
        }
    }
}
