//! `squad mcp`: the server, and what clients need to know of it.

mod http;

use std::sync::Arc;
use std::time::Duration;

use super::{Context, Ended, require_flags};
use crate::engine::command::blueprint::Blueprint;
use crate::env::Env;
use crate::error::Failure;
use crate::mcp;
use crate::model::{IntoMap, list, printable, printable_line};
use crate::ops;
use crate::ops::run::mcp::{Check, McpServer, MemberServer, Options};
use crate::ops::run::members::described;
use crate::ops::run::memory;
use crate::ops::run::order::flag_settings;
use crate::ops::team::registration::{self, Client, Registered, Scope};
use crate::ops::team::{engines, roles};
use crate::policy::Permissions;
use crate::settings::Settings;
use crate::ui::Ui;

/// Serve the team to MCP clients, on standard input and output
///
/// Any MCP client can list the team's roles and start members of it. Roles are the team's agents and the Markdown
/// files in `.squad/agents` and `.squad/roles`; AGENTS_DIRECTORY_PATH names a folder of your own with more of them.
/// Without a team, the built-in roles and those in `.claude/agents`, `.github/agents`, `.codex/agents` and `agents` are
/// offered, and members run on the client's own engine if it is ready, or on the first that is.
///
/// Every revision of the protocol is served, but for batches of revision 2025-03-26: they are answered with an error.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad mcp --register claude                     Add it to the client's file in this project: .mcp.json
  squad mcp --register codex --user               Add it to your own file, for all your projects
  squad mcp --print-config cursor                 Print what to add, and change nothing
  squad mcp --check                               What it would offer and start, and what is wrong with it
  squad mcp --add-roles reviewer,researcher       More roles, for you to edit
  squad mcp --permissions allow                   Members may change files and run commands
  squad mcp                                       What a client starts
  squad mcp --http 8080                           For clients that connect to http://127.0.0.1:8080/mcp

Environment: AGENTS_DIRECTORY_PATH (a folder with more roles), STATE_MODE (stateless or stateful: whether members keep
their chats), PROCESS_TIMEOUT_MS (how long a member may work; 300000), ENGINE_COMMAND (an engine's name or program),
RUN_TEMPLATE_PATH and CREATE_CHAT_TEMPLATE_PATH (files of your own with command lines), SQUAD_MCP_TOKEN (what clients
of --http show; made anew at each start and printed where it is not set).")]
pub(super) struct Args {
    /// Show what would be offered and started, and exit
    #[arg(long)]
    check: bool,
    /// Add the server to this client's file in the project, which keeps all else, and exit
    #[arg(long, value_enum, value_name = "CLIENT", group = "client", conflicts_with = "check")]
    register: Option<Client>,
    /// Add it to your own file, so that it is there in all your projects
    #[arg(long, requires = "client")]
    user: bool,
    /// Print what registers the server with this client, and exit
    #[arg(long, value_enum, value_name = "CLIENT", group = "client", conflicts_with_all = ["check", "register"])]
    print_config: Option<Client>,
    /// Serve squad's own tools to an agent of a live run, instead of the team
    #[arg(long, value_name = "RUN/AGENT", conflicts_with_all = ["check", "print_config", "register"])]
    member: Option<String>,
    /// The turn of that agent, `SESSION/NUMBER`, which `shell` and `file_ops` belong to
    #[arg(long, hide = true, value_name = "TURN", requires = "member")]
    turn: Option<String>,
    /// Serve streamable HTTP on this port, or IP:PORT, instead of standard input and output
    #[arg(long, value_name = "[IP:]PORT", conflicts_with_all = ["check", "print_config", "register", "member"])]
    http: Option<String>,
    /// A name by which clients on other machines call the server; an address that they can reach needs one
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// Copy generic roles to .squad/roles, and exit: reviewer, tester, researcher, writer, planner or debugger
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', conflicts_with_all = ["check", "print_config", "register", "member"])]
    add_roles: Vec<String>,
    /// The engine that members run on
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// The model for every member
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// How many members work at the same time, in all calls to this clone together
    #[arg(long, value_name = "N")]
    max_concurrent: Option<String>,
    /// How many seconds a call waits for its members: many clients give up after 60
    #[arg(long, value_name = "SECONDS", default_value_t = 50, conflicts_with = "member")]
    wait: u64,
    /// Whether members may change things; nobody is there to ask
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::Deny)]
    permissions: Mode,
}

/// The modes of [`Permissions`] that need nobody at a terminal.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Mode {
    /// Allow everything the members ask for: a member can do what you can do
    Allow,
    /// Refuse what would change something or reach outside the project; engines that do not ask squad are started in their strictest mode, or not at all
    Deny,
}

impl From<Mode> for Permissions {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Allow => Self::Allow,
            Mode::Deny => Self::Deny,
        }
    }
}

impl Args {
    pub(super) fn writes_to_the_work_tree(&self) -> bool {
        self.register.is_some() && !self.user || !self.add_roles.is_empty()
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        if let Some(client) = self.print_config.or(self.register) {
            let options = self.registered_options(context)?;
            let scope = if self.user { Scope::User } else { Scope::Project };
            if self.register.is_none() {
                let (text, left_out) = registration::printed(context.env, (client, scope), &options)?;
                context.ui.data(text.trim_end());
                let (name, file, flag) = match scope {
                    Scope::Project => (client.name(), client.project_file(), ""),
                    Scope::User => (client.name(), "your own file", " --user"),
                };
                context.ui.hint(&format!("`squad mcp --register {name}{flag}` adds it to {file} for you"));
                hint_at_start(context, client, scope, &left_out);
                return Ok(0);
            }
            let registered = registration::register(context.env, &context.directory, (client, scope), &options)?;
            show_registered(context, &registered, scope);
            return Ok(0);
        }
        if !self.add_roles.is_empty() {
            return add_roles(context, &self.add_roles);
        }
        memory::limit();
        if let Some(member) = &self.member {
            let server = MemberServer::new(context.env, &context.directory, member, self.turn.as_deref())?;
            return serve(context, Arc::new(server));
        }
        let options = self.options(context)?;
        if !self.check {
            require_engine(context.env, self.engine.as_deref())?;
        }
        let server = McpServer::new(context.env, &context.directory, options);
        if self.check {
            return check(&mut context.ui, &server.check()?);
        }
        if let Some(address) = &self.http {
            return http::serve(context, Arc::new(server), address, &self.allow_host);
        }
        if context.ui.input_is_terminal() {
            context.ui.say("Serving MCP on standard input and output, as a client starts it; Ctrl-D ends it.");
            context.ui.hint(
                "`squad mcp --register CLIENT` adds it to a client's file; `squad mcp --check` shows what it offers",
            );
        }
        serve(context, Arc::new(server))
    }
}

fn show_registered(context: &mut Context<'_>, registered: &Registered, scope: Scope) {
    let ui = &mut context.ui;
    if ui.json() {
        return ui.value(registered);
    }
    let (label, file) = (registered.client.label(), printable_line(&registered.file));
    if !registered.changed {
        return ui.say(&format!("{label} has squad already: {file}"));
    }
    ui.data(printable(&registered.diff).trim_end_matches('\n'));
    ui.say(&format!("registered squad with {label} in {file}"));
    hint_at_start(context, registered.client, scope, &registered.left_out);
}

/// What the client needs on this machine to start the server.
fn hint_at_start(context: &mut Context<'_>, client: Client, scope: Scope, left_out: &[&str]) {
    let is_found = scope == Scope::User || context.env.command_name() == "squad";
    if !left_out.is_empty() {
        let label = client.label();
        context
            .ui
            .hint(&format!("{} is for this machine and was left out: set it where {label} starts", list(left_out)));
    }
    if !is_found {
        context.ui.hint("`squad` is not on your PATH, where clients look for it");
    }
}

/// Fails if the command line or the environment names an engine that does not exist. The files may still change.
fn require_engine(env: &Env, flag: Option<&str>) -> Result<(), Failure> {
    let settings = ops::own_settings(env);
    let named = flag.map(|name| ("--engine", name)).or_else(|| Some(("SQUAD_ENGINE", env.variable("SQUAD_ENGINE")?)));
    named.map_or(Ok(()), |(source, name)| engines::require_known(name, &settings).map_err(|failure| failure.at(source)))
}

fn serve(context: &mut Context<'_>, server: Arc<dyn mcp::Service>) -> Ended {
    let runtime = ops::runtime(context.env)?;
    let output = context.ui.take_output();
    mcp::serve(server, runtime, context.ui.input_opener(), output)
        .map_err(|error| Failure::failed(format!("standard input cannot be read: {error}")))?;
    Ok(0)
}

fn add_roles(context: &mut Context<'_>, names: &[String]) -> Ended {
    let added = roles::add(context.env, &context.directory, names)?;
    if context.ui.json() {
        let files: Vec<_> =
            added.iter().map(|(path, is_new)| serde_json::json!({"path": path, "written": is_new})).collect();
        context.ui.value(&serde_json::json!({"files": files}));
        return Ok(0);
    }
    for (path, is_new) in added {
        let said = if is_new { "wrote" } else { "is there already:" };
        context.ui.say(&format!("{said} {path}"));
    }
    Ok(0)
}

impl Args {
    /// The options that a client starts the server with.
    fn registered_options(&self, context: &Context<'_>) -> Result<Vec<String>, Failure> {
        let options = self.options(context)?;
        require_engine(context.env, self.engine.as_deref())?;
        let mut arguments: Vec<String> =
            options.flags.into_iter().map(|(name, value)| format!("--{name}={value}")).collect();
        if options.permissions != Permissions::from(Mode::Deny) {
            arguments.push(format!("--permissions={}", options.permissions.name()));
        }
        Ok(arguments)
    }

    fn options(&self, context: &Context<'_>) -> Result<Options, Failure> {
        let named = [("engine", &self.engine), ("model", &self.model), ("max-concurrent", &self.max_concurrent)];
        let flags = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).into_map();
        require_flags(&Settings::resolve([flag_settings(&flags)]).1)?;
        let Blueprint { profile: described, is_stateful, timeout: limit, agents: roles } =
            described(context.env, &context.directory)?;
        let (permissions, patience) = (self.permissions.into(), Duration::from_secs(self.wait));
        Ok(Options { roles, is_stateful, limit, patience, permissions, described, flags })
    }
}

/// Exit code 1 when something is wrong.
fn check(ui: &mut Ui, found: &Check) -> Ended {
    if ui.json() {
        ui.value(found);
    } else {
        let seconds = found.timeout_ms / 1000;
        let named = [("command", &found.command), ("create-chat", &found.create_chat)];
        let commands = named.into_iter().filter_map(|(name, command)| Some((name, command.as_ref()?.join(" "))));
        let facts = [
            ("project", found.project.clone()),
            ("roles", format!("{}: {}", found.roles.len(), list(&found.roles))),
            ("engine", found.engine.clone()),
            ("state", found.state_mode.to_owned()),
            ("members", format!("{} at the same time, {seconds} s each", found.max_concurrent)),
            ("permissions", found.permissions.clone()),
        ];
        let governed = found.governed.iter().map(|(engine, how)| ("governed", format!("{engine}: {how}")));
        for (name, value) in facts.into_iter().chain(governed).chain(commands) {
            ui.data(&format!("{name:<12} {}", printable(&value)));
        }
        found.problems.iter().for_each(|problem| ui.warning(problem));
    }
    Ok(u8::from(!found.problems.is_empty()))
}
