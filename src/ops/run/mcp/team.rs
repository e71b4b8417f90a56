//! `orchestrate`, which lets squad choose who works, and `init_squad`.

use serde::Deserialize;
use serde_json::json;

use super::{McpServer, arguments};
use crate::error::Failure;
use crate::mcp::{Call, Confirmed, Object, ToolResult};
use crate::ops::Workspace;
use crate::ops::change::Report;
use crate::ops::run::host::Request;
use crate::ops::team::fit;
use crate::ops::team::init::{self, Installed, Options};
use crate::ops::team::members::named_agents;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Orchestrate {
    message: String,
    #[serde(default)]
    agents: Vec<String>,
    #[serde(default = "yes")]
    wait: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InitSquad {
    preset: Option<String>,
}

fn yes() -> bool {
    true
}

impl McpServer {
    pub(super) fn orchestrate(&self, given: Object, call: &Call) -> Result<ToolResult, Failure> {
        let Orchestrate { message, agents, wait } = arguments(given)?;
        if message.trim().is_empty() {
            return Err(Failure::usage("`message` is empty"));
        }
        let runner = self.runner()?;
        call.progress(0.0, None, "deciding who works");
        let project = self.project()?;
        if !project.has_team() {
            return Err(Failure::usage("there is no team here that could choose who works").hint(
                "`start_squad_members` starts members in the roles of `list_roles`; `init_squad` installs a team",
            ));
        }
        project.require_sound()?;
        let agents = named_agents(&project.team, &agents)?;
        let started = runner.start(&project, Request { agents, ..self.request(message) })?;
        self.follow(&project, started, wait, call, &|result| self.reply(&project, result))
    }

    /// Asks the user before it commits to their branch.
    pub(super) fn init_squad(&self, given: Object, call: &Call) -> Result<ToolResult, Failure> {
        let InitSquad { preset } = arguments(given)?;
        if let Ok(workspace) = Workspace::find(&self.env, &self.directory) {
            return Ok(ToolResult::structured(json!({"installed": false, "folder": workspace.folder.name})));
        }
        init::require_place(&self.env, &self.directory)?;
        let preset = preset.as_deref();
        let agents = preset.map(fit::preset).transpose()?.unwrap_or_default();
        let option = preset.map(|preset| format!(" --preset {preset}")).unwrap_or_default();
        let command = format!("squad init{option}");
        let question = format!("Install a team of AI agents in {}, in one commit?", self.directory.display());
        match call.confirm(&question) {
            Confirmed::Yes => {}
            Confirmed::InputRequired(question) => return Ok(*question),
            // Some clients decline by themselves when no user is there.
            Confirmed::No => {
                return Err(Failure::usage("no team was installed: the client's answer was no").hint(format!(
                    "if the user was not asked, have them run `{command}` in {}",
                    self.directory.display()
                )));
            }
            Confirmed::Unavailable => {
                return Err(Failure::usage(
                    "installing a team makes a commit, and the user could not be asked for that",
                )
                .hint(format!("have the user run `{command}` in {}", self.directory.display())));
            }
        }
        let options = Options { agents, commit: true, ..Options::default() };
        let installed = init::init(&self.env, &self.directory, options, |_| Ok(true))?;
        Ok(ToolResult::structured(match installed {
            Installed::Already { folder, .. } => json!({"installed": false, "folder": folder}),
            Installed::Proposed(_) => json!({"installed": false}),
            Installed::New(Report { files, commit, uncommitted, .. }, proposal) => {
                let mut said = json!({"installed": true, "folder": init::FOLDER, "files": files.len(),
                                      "found": proposal.lines(), "missing": proposal.missing()});
                match commit {
                    Some(commit) => said["commit"] = json!(commit),
                    None => said["uncommitted"] = json!(uncommitted),
                }
                said
            }
        }))
    }
}
