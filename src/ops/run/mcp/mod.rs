//! The service behind `squad mcp`: roles, runs and decisions as tools, resources and prompts.

mod answers;
mod arguments;
mod check;
mod decisions;
mod member;
mod members;
mod review;
mod roles;
mod runs;
mod schemas;
mod tasks;
mod team;
mod turn_tools;
mod uri;

pub(crate) use member::MemberServer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::engine::command::{Profile, Values};
use crate::env::Env;
use crate::error::Failure;
use crate::mcp::{Call, Fault, Object, Service, Task, ToolResult};
use crate::model::{IntoMap, Problem, Severity};
use crate::ops::Project;
use crate::ops::run::members::Runner;
use crate::ops::run::order::flag_settings;
use crate::ops::team::engines::{self, Readiness};
use crate::policy::Permissions;
use crate::settings::BAD_VALUE;
use arguments::checked;
use roles::KnownRoles;

/// The server's options.
#[derive(Clone)]
pub(crate) struct Options {
    /// A folder with more roles.
    pub(crate) roles: Option<PathBuf>,
    /// Whether members keep their chats, so that a caller can continue one.
    pub(crate) is_stateful: bool,
    /// The default time limit of a member.
    pub(crate) limit: Duration,
    /// How long a call waits for members: hosts give up on a longer one.
    pub(crate) patience: Duration,
    pub(crate) permissions: Permissions,
    /// The engine described by environment variables.
    pub(crate) described: Option<Profile>,
    /// Settings given as flags, by flag name without dashes.
    pub(crate) flags: BTreeMap<String, String>,
}

#[derive(Clone)]
pub(crate) struct McpServer {
    env: Env,
    directory: PathBuf,
    options: Options,
    /// What the client of this call calls itself: over HTTP there may be several.
    client: Option<String>,
    /// The roles when they were last read.
    known: Arc<Mutex<Option<Arc<KnownRoles>>>>,
    /// The engine that was found ready where nobody has chosen one, by the client's own.
    ready: Arc<Mutex<BTreeMap<Option<&'static str>, String>>>,
    /// A process for the next run, started after the first one: starting a process takes longer than some members
    /// work. It ends with the server, however the server ends.
    spare: Arc<Mutex<Option<Runner>>>,
}

/// What the server offers and starts, for `squad mcp --check`.
#[derive(Serialize)]
pub(crate) struct Check {
    pub(crate) project: String,
    pub(crate) roles: Vec<String>,
    pub(crate) engine: String,
    /// The command line of a command engine.
    pub(crate) command: Option<Vec<String>>,
    /// The command line that creates a chat, for members that keep theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) create_chat: Option<Vec<String>>,
    pub(crate) state_mode: &'static str,
    pub(crate) max_concurrent: usize,
    pub(crate) timeout_ms: u64,
    pub(crate) permissions: String,
    /// What holds under these for the writes and commands of members, for each engine.
    pub(crate) governed: BTreeMap<String, String>,
    pub(crate) problems: Vec<String>,
}

impl McpServer {
    pub(crate) fn new(env: &Env, directory: &Path, options: Options) -> Self {
        let (env, directory) = (env.clone(), directory.to_owned());
        Self {
            env,
            directory,
            options,
            client: None,
            known: Arc::default(),
            ready: Arc::default(),
            spare: Arc::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<Check, Failure> {
        let project = self.project()?;
        let roles = self.roles_of(Some(&project))?;
        let is_wrong = |problem: &&Problem| problem.severity == Severity::Error || problem.code == BAD_VALUE;
        let mut problems: Vec<String> = project.problems.iter().filter(is_wrong).map(Problem::to_string).collect();
        let (described, permissions) = (self.options.described.as_ref(), self.options.permissions);
        let used = engines::check_used(&self.env, &project, described)?;
        let governed = used
            .iter()
            .filter_map(|report| Some((report.name.clone(), report.governed.as_ref()?.under(permissions).to_owned())));
        let governed = governed.into_map();
        let mut complaints: Vec<String> = used.iter().filter_map(engines::Report::complaint).collect();
        match engines::check_names(&project) {
            Err(failure) => problems.push(failure.message),
            Ok(()) => {
                let usable = engines::require_usable(&self.env, &project, None, described, permissions);
                let unusable = usable.err().map(|error| error.with_hint()).filter(|why| !complaints.contains(why));
                complaints.extend(unusable);
            }
        }
        problems.extend(complaints);
        let (command, create_chat) = self.command_lines(&project).unzip();
        problems.extend(roles.all.iter().filter_map(|role| role.body.as_ref().err().cloned()));
        problems.extend(roles.hidden.iter().filter(|role| role.agent.is_none()).filter_map(|role| {
            let first = roles.find(&role.id).filter(|first| first.source != role.source)?;
            Some(format!("{} is not used: `{}` is {}", role.source, role.id, first.source))
        }));
        let usable = roles.all.iter().filter(|role| role.body.is_ok()).map(|role| role.id.clone());
        Ok(Check {
            project: project.folder.root.display().to_string(),
            roles: usable.collect(),
            engine: self
                .options
                .described
                .as_ref()
                .map_or(&project.settings.engine.name, |profile| &profile.name)
                .clone(),
            command,
            create_chat: create_chat.flatten(),
            state_mode: if self.options.is_stateful { "stateful" } else { "stateless" },
            max_concurrent: project.settings.sessions.max_concurrent,
            timeout_ms: u64::try_from(self.options.limit.as_millis()).unwrap_or(u64::MAX),
            permissions: permissions.name().to_owned(),
            governed,
            problems,
        })
    }

    /// How members are started, and how chats are created.
    fn command_lines(&self, project: &Project) -> Option<(Vec<String>, Option<Vec<String>>)> {
        let users = &project.settings.engines;
        let configured = || Profile::find(&project.settings.engine.name, users).and_then(Result::ok);
        // One that serves sessions is not started for each message.
        let is_one_shot = |profile: &Profile| profile.protocol.is_none();
        let profile = self.options.described.clone().or_else(configured).filter(is_one_shot)?;
        let shown = |name: &str| Some(format!("{{{name}}}"));
        let level = engines::level_for(&self.env, project, &profile);
        let mode = profile.mode(self.options.permissions == Permissions::Allow, level);
        let chosen = project.settings.models.overrides.get("all");
        let model = profile.model_for(chosen.map_or("", String::as_str), chosen.is_some());
        let values = Values {
            prompt: shown("prompt"),
            chat_id: shown("chatId").filter(|_| self.options.is_stateful),
            // Unless a member names another.
            cwd: Some(project.folder.root.display().to_string()),
            role_id: shown("roleId"),
            task: shown("task"),
            model: Some(model).filter(|model| !model.is_empty()),
            mode,
            tools: shown("tools").into_iter().collect(),
            ..Values::default()
        };
        let create_chat = profile.preview_of_chat(&Values { chat_id: None, ..values.clone() });
        Some((profile.preview(&values), create_chat.filter(|_| self.options.is_stateful)))
    }

    fn list_engines(&self) -> Result<ToolResult, Failure> {
        let shown = |report: engines::Report| {
            let governed = report.governed.as_ref().map(|governed| governed.under(self.options.permissions).to_owned());
            json!({
                "name": report.name, "about": report.about, "chosen": report.chosen, "ready": report.ready,
                "installed": report.installed, "version": report.version, "governed": governed,
                "problem": report.complaint(),
            })
        };
        let mut found: Vec<Value> = engines::check(&self.env, &self.directory, None)?.into_iter().map(shown).collect();
        let flags = self.flags();
        if let Some(used) = self.options.described.as_ref().map(|profile| &profile.name).or(flags.get("engine")) {
            found.iter_mut().for_each(|engine| engine["chosen"] = (engine["name"] == **used).into());
        }
        Ok(ToolResult::structured(json!({ "engines": found })))
    }

    /// How many bytes of a reply's JSON the client keeps.
    fn room(&self) -> usize {
        answers::room(self.client.as_deref())
    }

    fn for_call(&self, call: &Call) -> Self {
        Self { client: call.client_name.clone(), ..self.clone() }
    }

    /// Opens the project in its current state, with or without a team.
    fn project(&self) -> Result<Project, Failure> {
        Project::open_without_team(&self.env, &self.directory, flag_settings(&self.flags()))
    }

    /// The server's flags. Without a team, and if nobody has chosen an engine, members run on the client's own if it is
    /// ready, or on the first that is.
    fn flags(&self) -> BTreeMap<String, String> {
        let mut flags = self.options.flags.clone();
        if self.options.described.is_none() && !flags.contains_key("engine") {
            flags.extend(self.engine_without_team().map(|engine| ("engine".to_owned(), engine)));
        }
        flags
    }

    fn engine_without_team(&self) -> Option<String> {
        let settings = engines::undecided(&self.env, &self.directory)?;
        let own = self.client.as_deref().and_then(engines::of_client);
        let mut known = self.ready.lock();
        if let Some(engine) = known.get(&own) {
            return Some(engine.clone());
        }
        let preferred = own.unwrap_or(&settings.engine.name);
        let (engine, ready) = engines::first_ready(&self.env, &self.directory, &settings, preferred)?;
        if ready == Readiness::Ready {
            known.insert(own, engine.clone());
        }
        Some(engine)
    }
}

/// Parses the arguments of a call, which fit the tool's schema.
fn arguments<T: DeserializeOwned>(given: Object) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(given)).map_err(|error| Failure::usage(error.to_string()))
}

fn failed(failure: &Failure) -> ToolResult {
    let source = failure.source.as_ref().map(|source| format!("{source}: ")).unwrap_or_default();
    let hint = failure.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    ToolResult::error(&format!("{source}{}{hint}", failure.message))
}

impl Service for McpServer {
    fn instructions(&self) -> String {
        "squad runs a team of AI coding agents in this repository. `list_roles` says who there is; \
         `start_squad_members` gives each of several members a role and a task and runs them side by side. A member \
         does not see your conversation: write the whole task."
            .to_owned()
    }

    fn tools(&self) -> Vec<Value> {
        let mut engines = engines::names(&crate::ops::own_settings(&self.env));
        // The environment may describe one more.
        if let Some(described) = self.options.described.as_ref().filter(|profile| !engines.contains(&profile.name)) {
            engines.push(described.name.clone());
        }
        schemas::offered(&engines, self.options.is_stateful)
    }

    fn call(&self, tool: &str, given: Object, call: &Call) -> Result<ToolResult, Fault> {
        let no_tool = || Fault::invalid_params(format!("there is no tool `{tool}`"));
        let given = match checked(schemas::input(tool).ok_or_else(no_tool)?, given) {
            Ok(given) => given,
            Err(problems) => return Ok(ToolResult::error(&problems)),
        };
        let server = self.for_call(call);
        let done = match tool {
            "list_roles" => server.list_roles(given),
            "start_squad_members" => server.start_members(given, call),
            "review_changes" => server.review_changes(given, call),
            "list_engines" => server.list_engines(),
            "get_run" => server.get_run(given, call),
            "cancel_run" => server.cancel_run(given, call),
            "orchestrate" => server.orchestrate(given, call),
            "log_decision" => server.log_decision(given),
            "list_decisions" => server.list_decisions(given),
            "init_squad" => server.init_squad(given, call),
            _ => return Err(no_tool()),
        };
        Ok(done.unwrap_or_else(|failure| failed(&failure)))
    }

    fn resources(&self) -> Vec<Value> {
        let mut all = self.role_resources();
        all.extend(self.other_resources());
        all.extend(self.squad_resources());
        all
    }

    fn templates(&self) -> Vec<Value> {
        schemas::templates()
    }

    fn read(&self, uri: &str) -> Result<Vec<Value>, Fault> {
        let parts = uri::parts(uri).unwrap_or_default();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            ["roles", id] => self.role_contents(uri, id),
            ["squads", name] => self.squad_contents(uri, name),
            ["decisions"] => self.decision_contents(uri),
            ["runs", run] => self.run_contents(uri, run),
            ["runs", run, member, kind] => self.output_contents(uri, run, member, kind),
            _ => Err(Fault::no_resource(uri)),
        }
    }

    fn has_tasks(&self) -> bool {
        true
    }

    fn task(&self, id: &str, call: &Call) -> Result<Task, Fault> {
        self.for_call(call).run_task(id)
    }

    fn cancel_task(&self, id: &str, _call: &Call) -> Result<(), Fault> {
        self.cancel_run_task(id)
    }

    fn prompts(&self) -> Vec<Value> {
        self.role_prompts()
    }

    fn prompt(&self, name: &str, arguments: &Object) -> Result<Value, Fault> {
        self.role_prompt(name, arguments)
    }
}
