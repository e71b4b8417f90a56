use std::collections::BTreeMap;

use crate::commands::{Context, TierName, require_flags, say_mistyped, text_or_input};
use crate::error::Failure;
use crate::model::{Attachment, IntoMap, Tier, hidden, hidden_summary, list};
use crate::ops::Project;
use crate::ops::run::attachments;
use crate::ops::run::order::{self, CHECK, FLAGS, NO_CHECK, Order, WAIT};
use crate::ops::run::resume::{self, Interrupted};
use crate::ops::run::routing;
use crate::ops::team::engines;
use crate::ops::team::members::named_agents;
use crate::policy::Permissions;
use crate::route::RouteOptions;
use crate::settings;
use crate::ui::Ui;

/// Give the team a task
///
/// Compiles the team, decides who works (by @mention, the routing table, or the coordinator when routing is not
/// sure), starts those agents side by side, streams their progress to stderr and prints the answer to stdout.
/// Everything that happens is recorded under refs/squad. When the run ends, its decisions are committed to the
/// branch, one file each.
///
/// With --json, prints events to stdout, one per line; the last is `run.completed`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad orchestrate \"Add a health endpoint with tests\"
  squad orchestrate                                       Talk to the team, message by message
  squad orchestrate --dry-run \"Fix the login form\"        Show who would work, and why
  squad orchestrate --agent tester \"Cover the parser\"     Choose the agent yourself
  squad orchestrate --permissions allow - < task.md       Read the task from a file; never ask
  squad orchestrate --attach login.png \"Build this page\"  Pass an image or another file
  squad orchestrate --engine rehearsal \"Try it\"           No model, no login, no network
  squad orchestrate --script play.toml \"Try it\"           Rehearse a script of your own
  squad orchestrate --isolation clone \"Rework the API\"    Let each agent work in a clone of its own
  squad orchestrate --resume 20260105-0900                Resume an interrupted run
  squad orchestrate --wait \"Port every module\"           Sleep while an account's quota is used up
  squad orchestrate --no-check \"Sketch the importer\"      Leave out the check that is configured

At a limit of `budget.*` nothing new starts: the work is kept, the exit code is 5, and --resume
goes on after a higher one. Turns and tool calls never go over. Tokens, cost and billed units do
by at most one model call of each agent at work, the time of a day or repository by two seconds.

A script is TOML. The turns of each agent are played in order:
  [[turn]]
  agent = \"backend\"
  steps = [ { wait = \"300ms\" }, { say = \"…\" }, { write = \"a.txt\", text = \"…\" },
            { tool = \"squad_log_decision\", args = { title = \"…\", what = \"…\" } } ]
Other steps: run, ask, listen, quota, usage, fail, hang, die, panic. `models = [\"…\"]` above the turns lists the models
that the engine offers.")]
pub(in crate::commands) struct Args {
    /// The task, or `-` to read it from standard input. Without it, a conversation starts on a terminal
    pub(super) message: Option<String>,
    /// Resume an interrupted run; finished work is not repeated
    #[arg(long, value_name = "RUN", conflicts_with_all = ["message", "agents", "tier", "attach", "dry_run"])]
    pub(super) resume: Option<String>,
    /// Use this agent, or these (`backend,tester`), whatever routing says; may be repeated
    #[arg(long = "agent", short, value_name = "NAME", value_delimiter = ',')]
    agents: Vec<String>,
    /// Pass this file to every agent in the plan; may be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<String>,
    /// How much effort to spend; by default, the message decides
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
    /// The model for every agent
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// The engine for every agent in this run, such as claude; `squad engines` lists them
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// A script for the rehearsal engine; implies `--engine rehearsal`
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// Stop an agent that shows no sign of work for this long, such as 90s or 5m
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Stop an agent after this much working time; waiting for you does not count
    #[arg(long, value_name = "TIME")]
    limit: Option<String>,
    /// How many agents work at the same time
    #[arg(long, value_name = "N")]
    max_concurrent: Option<String>,
    /// Where agents work: in the `project`, or each in a `clone` of its own, for `squad merge` to bring together
    #[arg(long, value_name = "WHERE")]
    isolation: Option<String>,
    /// Let agents work on another machine of `[hosts]`: its name, a label, or `any`; each in a clone there
    #[arg(long, value_name = "HOST")]
    on: Option<String>,
    /// Whether agents may change things; by default `ask` on a terminal, otherwise `deny`
    #[arg(long, value_enum, value_name = "MODE")]
    permissions: Option<Permissions>,
    /// Show the plan and start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Start agents without their earlier tasks, in sessions of this run
    #[arg(long)]
    pub(super) fresh: bool,
    /// Fail if no check is configured (`check.run`), instead of running without one
    #[arg(long, conflicts_with = "no_check")]
    check: bool,
    /// Do not run the check that is configured
    #[arg(long)]
    no_check: bool,
    /// Where the quota of an engine's account is used up, sleep until it is there again, instead of stopping the run
    #[arg(long)]
    wait: bool,
    /// Commit no decisions to the branch; the ledger still records them
    #[arg(long)]
    no_commit: bool,
}

impl Args {
    pub(in crate::commands) fn writes_to_the_branch(&self) -> bool {
        !self.dry_run && !self.no_commit
    }

    pub(super) fn prepare(&self, context: &mut Context<'_>) -> Result<(Project, Order), Failure> {
        if self.agents.is_empty() {
            routing::prepare(context.env);
        }
        let (project, resumed) = self.open(context)?;
        context.ui.problems(&project.problems);
        project.require_sound()?;
        engines::check_names(&project)?;
        if self.check {
            project.require_check()?;
        }
        let script = engines::script(&project.settings, &context.directory)?;
        let script = script.map(|script| match &resumed {
            Some(interrupted) => script.after(interrupted.past.played()),
            None => script,
        });
        let agents = named_agents(&project.team, &self.agents)?;
        let interactive = context.ui.can_ask();
        let before = resumed.as_ref().and_then(|interrupted| interrupted.permissions);
        let otherwise = before.unwrap_or(if interactive { Permissions::Ask } else { Permissions::Deny });
        let permissions = self.permissions.unwrap_or(otherwise);
        if permissions == Permissions::Ask && !interactive {
            return Err(Failure::usage("there is no terminal to ask on")
                .hint("use `--permissions deny` or `--permissions allow`"));
        }
        let message = match &resumed {
            Some(interrupted) => interrupted.message.clone(),
            None => self.message(&context.ui)?,
        };
        if let Some(summary) = hidden_summary(hidden(&message).map(|(_, c)| c)) {
            context.ui.warning(&format!("the message has {summary}; agents do not see them"));
        }
        say_mistyped(&mut context.ui, &project.team, &message);
        let attachments = self.attachments(context, &project, resumed.as_ref())?;
        let default_tier = project.settings.sessions.default_tier;
        let route_options = match &resumed {
            Some(interrupted) => RouteOptions { default_tier, ..interrupted.route_options.clone() },
            None => RouteOptions { agents, tier: self.tier.map(Tier::from), default_tier },
        };
        Ok((
            project,
            Order {
                message,
                route_options,
                flags: self.flags(resumed.as_ref()),
                attachments,
                permissions,
                script,
                commit: !self.no_commit && !resumed.as_ref().is_some_and(|run| run.no_commit),
                ask: None,
                land: None,
                conversation: None,
                fresh: self.fresh,
                resumed,
                members: Vec::new(),
                described: None,
            },
        ))
    }

    /// Opens the project. A resumed run gets the flags of its first call.
    fn open(&self, context: &Context<'_>) -> Result<(Project, Option<Interrupted>), Failure> {
        let open = |resumed| Project::open(context.env, &context.directory, self.settings(resumed));
        let mut project = open(None)?;
        require_flags(&project.problems)?;
        let Some(id) = &self.resume else { return Ok((project, None)) };
        let resumed = resume::find(context.env, &project, id)?;
        if !resumed.flags.is_empty() {
            project = open(Some(&resumed))?;
        }
        Ok((project, Some(resumed)))
    }

    fn attachments(
        &self,
        context: &mut Context<'_>,
        project: &Project,
        resumed: Option<&Interrupted>,
    ) -> Result<Vec<Attachment>, Failure> {
        let Some(resumed) = resumed else {
            return attachments::check(context.env, project, &context.directory, &self.attach);
        };
        let (found, changed) = attachments::check_again(context.env, project, &resumed.attachments)?;
        if !changed.is_empty() {
            context.ui.warning(&format!("changed since the run began: {}", list(changed)));
        }
        Ok(found)
    }

    /// The flags that are recorded with the run, from this call or else from an earlier one. The script is not recorded:
    /// the caller says which turns are left.
    fn flags(&self, resumed: Option<&Interrupted>) -> BTreeMap<String, String> {
        let implied = self.script.as_ref().map(|_| "rehearsal".to_owned());
        let values = [
            self.model.clone(),
            self.engine.clone().or(implied),
            self.timeout.clone(),
            self.limit.clone(),
            self.max_concurrent.clone(),
            self.isolation.clone(),
            self.on.clone(),
        ];
        let before = |name: &str| resumed?.flags.get(name).cloned();
        let named = FLAGS.iter().zip(values);
        let named = named.filter_map(|((name, _), value)| Some(((*name).to_owned(), value.or_else(|| before(name))?)));
        let plain =
            [(CHECK, self.check, self.no_check), (NO_CHECK, self.no_check, self.check), (WAIT, self.wait, false)];
        let plain = plain
            .into_iter()
            .filter(|(name, is_given, is_taken_back)| *is_given || (!is_taken_back && before(name).is_some()));
        named.chain(plain.map(|(name, ..)| (name.to_owned(), String::new()))).into_map()
    }

    pub(super) fn settings(&self, resumed: Option<&Interrupted>) -> settings::Layer {
        let mut layer = order::flag_settings(&self.flags(resumed));
        let script = ("engine.rehearsal.script", self.script.clone(), "--script");
        layer.entries.extend(settings::from_command_line([script]).entries);
        layer
    }

    fn message(&self, ui: &Ui) -> Result<String, Failure> {
        let message = text_or_input(ui, self.message.as_deref().unwrap_or_default())?;
        if message.trim().is_empty() {
            return Err(Failure::usage("the message is empty").hint("squad orchestrate \"what to do\""));
        }
        Ok(message)
    }
}
