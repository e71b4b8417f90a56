//! `squad mcp --member RUN/AGENT`: squad's own tools, for an agent in a live run whose engine takes tools by MCP only.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::engine::ToolCall;
use crate::env::Env;
use crate::error::Failure;
use crate::mcp::{Call, Fault, Object, Service, ToolResult};
use crate::model::{Actor, Decision, EntryId, RunId, Slug, What};
use crate::ops::decisions::list;
use crate::ops::ledger::journal::append;
use crate::ops::run::{lease, live};
use crate::ops::team::secrets;
use crate::ops::{Project, Workspace};
use crate::record::Entry;
use crate::settings::Layer;
use crate::tools::{self, Intent, Tool};

/// Decisions in one answer.
const SHOWN: usize = 20;

pub(crate) struct MemberServer {
    env: Mutex<Env>,
    directory: PathBuf,
    run: RunId,
    agent: Slug,
}

impl MemberServer {
    /// `member` is `RUN/AGENT`, of a run that is live in this clone.
    pub(crate) fn new(env: &Env, directory: &Path, member: &str) -> Result<Self, Failure> {
        let wrong = || Failure::usage(format!("`{member}` names no member")).hint("it is `RUN/AGENT`");
        let (run, agent) = member.split_once('/').ok_or_else(wrong)?;
        let run = RunId::parse(run).ok_or_else(wrong)?;
        let agent = serde_json::from_value(agent.into()).map_err(|_| wrong())?;
        let server = Self { env: Mutex::new(env.beside()), directory: directory.to_owned(), run, agent };
        server.workspace().map_err(|reason| {
            Failure::usage(reason).hint("`squad status` shows the runs that are live, and who works in them")
        })?;
        Ok(server)
    }

    fn env(&self) -> Env {
        self.env.lock().unwrap_or_else(PoisonError::into_inner).beside()
    }

    /// As long as the member works: what is over is not added to.
    fn workspace(&self) -> Result<Workspace, String> {
        let workspace = Workspace::find(&self.env(), &self.directory).map_err(|failure| failure.message)?;
        let local = workspace.local();
        if lease::look(&local).status(&self.run) != "running" {
            return Err(format!("run {} is not running here", self.run));
        }
        let agents = live::activity(&local, &self.run).unwrap_or_default().agents;
        if !agents.contains_key(&self.agent) {
            return Err(format!("`{}` is not in run {}", self.agent, self.run));
        }
        Ok(workspace)
    }

    fn perform(&self, tool: &str, arguments: Object) -> Result<String, String> {
        let workspace = self.workspace()?;
        let call = ToolCall { call: String::new(), tool: tool.to_owned(), arguments: Value::Object(arguments) };
        match tools::read(&call)? {
            Intent::Decide(decision) => self.decide(&workspace, *decision),
            Intent::Remember(text) => {
                self.record(&workspace, |_| What::MemoryLogged { text })?;
                Ok("Kept.".to_owned())
            }
            Intent::Search(query) => self.search(&query),
            Intent::Status => Ok(self.status(&workspace)),
            Intent::Judge(_) | Intent::Route(_) => Err(format!("`{tool}` is not offered here")),
        }
    }

    fn decide(&self, workspace: &Workspace, decision: Decision) -> Result<String, String> {
        let branch = workspace.repository.head().map_err(|error| error.to_string())?.work().map(str::to_owned);
        let title = decision.title.clone();
        let env = self.env();
        let date = env.clock.now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let id = self.record(workspace, |id| {
            let (by, run) = (Some(self.agent.to_string()), Some(self.run.clone()));
            let decision = Decision { id: id.decision(), by, run, date: Some(date), ..decision };
            What::DecisionLogged { decision, branch }
        })?;
        Ok(format!("Decision {} is recorded: {title}", id.decision()))
    }

    /// Durable when this returns.
    fn record(&self, workspace: &Workspace, what: impl FnOnce(&EntryId) -> What) -> Result<EntryId, String> {
        let env = self.env();
        let at = env.clock.now();
        let id = env.ids.entry(at);
        let redactor = secrets::redactor(&env, &workspace.folder.root);
        let entry = Entry::new(id.clone(), at, Actor::Agent, &what(&id), &redactor);
        let entry = Entry { run: Some(self.run.clone()), agent: Some(self.agent.clone()), ..entry };
        let written = append(&workspace.repository, &workspace.ledger_prefix(), &[entry], at);
        written.map(|()| id).map_err(|error| error.to_string())
    }

    fn search(&self, query: &str) -> Result<String, String> {
        let failed = |failure: Failure| failure.message;
        let project = Project::open(&self.env(), &self.directory, Layer::default()).map_err(failed)?;
        let query = query.to_lowercase();
        let is_meant = |text: &str| query.split_whitespace().all(|word| text.contains(word));
        let all = list::standing(&project).map_err(failed)?;
        let meant = all.iter().filter(|one| is_meant(&format!("{}\n{}", one.title, one.text).to_lowercase()));
        let shown: Vec<String> =
            meant.take(SHOWN).map(|one| format!("{} {}\n{}", one.id, one.title, one.text)).collect();
        Ok(if shown.is_empty() { "There is no such decision.".to_owned() } else { shown.join("\n\n") })
    }

    fn status(&self, workspace: &Workspace) -> String {
        let agents = live::activity(&workspace.local(), &self.run).unwrap_or_default().agents;
        let line = |(agent, state): (&Slug, &crate::model::AgentState)| {
            let state = serde_json::to_value(state).unwrap_or_default();
            format!("{agent}: {}", state.as_str().unwrap_or("at work"))
        };
        agents.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn served() -> impl Iterator<Item = Tool> {
    Tool::ALL.into_iter().filter(|tool| tool.is_served())
}

impl Service for MemberServer {
    fn instructions(&self) -> String {
        format!("squad's own tools for `{}`, who works in run {}.", self.agent, self.run)
    }

    fn tools(&self) -> Vec<Value> {
        let shown = |tool: Tool| {
            let spec = tool.spec();
            let hints = json!({
                "readOnlyHint": matches!(tool, Tool::Decisions | Tool::Status),
                "destructiveHint": false, "openWorldHint": false,
            });
            json!({"name": spec.name, "description": spec.description, "inputSchema": spec.parameters, "annotations": hints})
        };
        served().map(shown).collect()
    }

    fn call(&self, tool: &str, arguments: Object, _call: &Call) -> Result<ToolResult, Fault> {
        if !served().any(|known| known.name() == tool) {
            return Err(Fault::invalid_params(format!("there is no tool `{tool}`")));
        }
        Ok(match self.perform(tool, arguments) {
            Ok(text) => ToolResult::said(&text),
            Err(reason) => ToolResult::error(&reason),
        })
    }

    fn resources(&self) -> Vec<Value> {
        Vec::new()
    }

    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    fn read(&self, uri: &str) -> Result<Vec<Value>, Fault> {
        Err(Fault::no_resource(uri))
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    fn prompt(&self, name: &str, _arguments: &Object) -> Result<Value, Fault> {
        Err(Fault::invalid_params(format!("there is no prompt `{name}`")))
    }
}
