//! `squad mcp --member RUN/AGENT`: squad's own tools, for an agent in a live run whose engine takes tools by MCP only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::turn_tools::TurnTools;
use crate::engine::ToolCall;
use crate::env::Env;
use crate::error::Failure;
use crate::mcp::{Call, Fault, Object, Service, Signal, ToolResult};
use crate::model::{Actor, Decision, EntryId, EventKind, RunId, Slug};
use crate::ops::decisions::list;
use crate::ops::ledger::journal::append;
use crate::ops::run::host::{activity, activity_with};
use crate::ops::team::{knowledge, secrets};
use crate::ops::{Project, Workspace};
use crate::record::Entry;
use crate::settings::Layer;
use crate::tools::{self, Intent, Tool};

/// Most decisions in one answer.
const SHOWN: usize = 20;

pub(crate) struct MemberServer {
    env: Env,
    directory: PathBuf,
    run: RunId,
    agent: Slug,
    /// Of the turn in which an engine started this server. Without one, a person did, beside the run.
    turn: Option<TurnTools>,
}

impl MemberServer {
    /// `member` is `RUN/AGENT`, of a live run of this clone; `turn` is `SESSION/NUMBER`, of that agent.
    pub(crate) fn new(env: &Env, directory: &Path, member: &str, turn: Option<&str>) -> Result<Self, Failure> {
        let wrong = || Failure::usage(format!("`{member}` names no member")).hint("it is `RUN/AGENT`");
        let (run, agent) = member.split_once('/').ok_or_else(wrong)?;
        let run = RunId::parse(run).ok_or_else(wrong)?;
        let agent = serde_json::from_value(agent.into()).map_err(|_| wrong())?;
        let mut server = Self { env: env.clone(), directory: directory.to_owned(), run, agent, turn: None };
        match turn {
            // The sandbox may hide everything else of the run.
            Some(turn) => {
                let workspace = Workspace::find(env, directory)?;
                let found = TurnTools::new(env, &workspace.local(), workspace.folder.root.clone(), turn);
                let wrong = || Failure::usage(format!("there is no turn `{turn}` of {}", server.agent));
                server.turn = Some(found.ok_or_else(wrong)?);
            }
            None => {
                server.workspace().map_err(|reason| {
                    Failure::usage(reason).hint("`squad status` shows the runs that are live, and who works in them")
                })?;
            }
        }
        Ok(server)
    }

    /// Fails once the member's work has ended: nothing may be added to it then.
    fn workspace(&self) -> Result<Workspace, String> {
        let workspace = Workspace::find(&self.env, &self.directory).map_err(|failure| failure.message)?;
        let leases = workspace.leases();
        let live = leases.live(&self.run).ok_or_else(|| format!("run {} is not running here", self.run))?;
        // A run that does not answer just now may well have it.
        match activity_with(live, &self.agent) {
            Some(activity) if !activity.agents.contains_key(&self.agent) => {
                Err(format!("`{}` is not in run {}", self.agent, self.run))
            }
            _ => Ok(workspace),
        }
    }

    fn perform(&self, tool: &str, arguments: Object, signal: &Arc<Signal>) -> Result<String, String> {
        if let Some(turn) = &self.turn {
            return turn.perform(tool, arguments, signal);
        }
        let workspace = self.workspace()?;
        let call = ToolCall { call: String::new(), tool: tool.to_owned(), arguments: Value::Object(arguments) };
        match tools::read(&call)? {
            Intent::Decide(decision) => self.decide(&workspace, *decision),
            Intent::Remember { text, share } => {
                self.record(&workspace, |_| EventKind::MemoryLogged { text, share })?;
                Ok("Kept.".to_owned())
            }
            Intent::Search(query) => self.search(&query),
            Intent::Status => Ok(self.status(&workspace)),
            Intent::Judge(_) | Intent::Route(_) | Intent::Commit(_) | Intent::Shell(_) | Intent::Files(_) => {
                Err(format!("`{tool}` is not offered here"))
            }
        }
    }

    fn decide(&self, workspace: &Workspace, decision: Decision) -> Result<String, String> {
        let branch = workspace.repository.head().map_err(|error| error.to_string())?.work().map(str::to_owned);
        let title = decision.title.clone();
        let date = self.env.clock.now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let id = self.record(workspace, |id| {
            let (by, run) = (Some(self.agent.to_string()), Some(self.run.clone()));
            let decision = Decision { id: id.decision(), by, run, date: Some(date), ..decision };
            EventKind::DecisionLogged { decision, branch }
        })?;
        Ok(format!("Decision {} is recorded: {title}", id.decision()))
    }

    /// The entry is durable when this returns.
    fn record(&self, workspace: &Workspace, kind: impl FnOnce(&EntryId) -> EventKind) -> Result<EntryId, String> {
        let env = &self.env;
        let at = env.clock.now();
        let id = env.ids.entry(at);
        let redactor = secrets::redactor(env, &workspace.folder.root);
        let entry = Entry::new(id.clone(), at, Actor::Agent, &kind(&id), &redactor);
        let entry = Entry { run: Some(self.run.clone()), agent: Some(self.agent.clone()), ..entry };
        let written = append(&workspace.repository, &workspace.ledger_prefix(), &[entry], at);
        written.map(|()| id).map_err(|error| error.to_string())
    }

    fn search(&self, query: &str) -> Result<String, String> {
        let failed = |failure: Failure| failure.message;
        let project = Project::open(&self.env, &self.directory, Layer::default()).map_err(failed)?;
        let notes = knowledge::found(&project, query).map_err(failed)?;
        let query = query.to_lowercase();
        let is_meant = |text: &str| query.split_whitespace().all(|word| text.contains(word));
        let all = list::all(&project).map_err(failed)?;
        let meant = all.iter().filter(|one| is_meant(&format!("{}\n{}", one.title, one.text).to_lowercase()));
        let shown: Vec<String> =
            meant.take(SHOWN).map(|one| format!("{} {}\n{}", one.id, one.title, one.text)).chain(notes).collect();
        Ok(if shown.is_empty() { "There is no such decision or note.".to_owned() } else { shown.join("\n\n") })
    }

    fn served(&self) -> impl Iterator<Item = Tool> {
        let is_offered = |tool: &Tool| match &self.turn {
            Some(turn) => turn.offers(tool.name()),
            None => tool.is_independent(),
        };
        Tool::ALL.into_iter().filter(is_offered)
    }

    fn status(&self, workspace: &Workspace) -> String {
        let leases = workspace.leases();
        leases.live(&self.run).and_then(activity).unwrap_or_default().summary_for(&self.agent)
    }
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
                "destructiveHint": tool.is_project_tool(), "openWorldHint": tool == Tool::Shell,
            });
            json!({"name": spec.name, "description": spec.description, "inputSchema": spec.parameters, "annotations": hints})
        };
        self.served().map(shown).collect()
    }

    fn call(&self, tool: &str, arguments: Object, call: &Call) -> Result<ToolResult, Fault> {
        if !self.served().any(|known| known.name() == tool) {
            return Err(Fault::invalid_params(format!("there is no tool `{tool}`")));
        }
        Ok(match self.perform(tool, arguments, &call.signal) {
            Ok(text) => ToolResult::text(&text),
            Err(reason) => ToolResult::error(&reason),
        })
    }
}
