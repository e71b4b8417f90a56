use std::collections::BTreeMap;

use super::converse::{self, Prompt, Typed};
use super::route::page;
use super::{Context, Ended, TierName, agents, say_passed_hooks, status, text_or_input};
use crate::error::Failure;
use crate::model::{Attachment, Outcome, Tier, hidden, hidden_summary, list, printable};
use crate::ops::Project;
use crate::ops::run::attachments;
use crate::ops::run::conversation::Conversation;
use crate::ops::run::orchestrate;
use crate::ops::run::order::{self, Ended as RunEnded, FLAGS, Order};
use crate::ops::run::preview::{self, Preview};
use crate::ops::run::resume::{self, Interrupted};
use crate::ops::run::routing;
use crate::ops::run::watch::{self, Asked};
use crate::ops::team::engines;
use crate::ops::team::members::named_agents;
use crate::policy::Permissions;
use crate::route::Wishes;
use crate::settings;
use crate::ui::Ui;
use crate::view::{Lines, View, asker};

/// Give the team a task
///
/// Compiles the team, decides who works (by @mention, the routing table, or the coordinator when routing is not
/// sure), starts those agents side by side, streams their progress to stderr and prints the answer to stdout.
/// Everything that happens is recorded under refs/squad. When the run ends, its decisions are committed to the
/// branch, one file each.
///
/// With --json, stdout carries one event a line; the last is `run.completed`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad orchestrate \"Add a health endpoint with tests\"
  squad orchestrate                                         A conversation, message by message
  squad orchestrate --dry-run \"Fix the login form\"           Who would work, and why
  squad orchestrate --agent tester \"Cover the parser\"        This agent, whatever routing says
  squad orchestrate --permissions allow - < task.md          A task from a file; agents may act unasked
  squad orchestrate --attach login.png \"Build this page\"    Images are shown to the model, other files opened by it
  squad orchestrate --engine rehearsal \"Try it\"              No model, no login, no network
  squad orchestrate --script play.toml \"Try it\"              A rehearsal that plays your script
  squad orchestrate --resume 20260105-0900                  Go on with a run that was interrupted

A script is TOML; the turns of an agent are played in their order:
  [[turn]]
  agent = \"backend\"
  steps = [ { wait = \"300ms\" }, { say = \"…\" }, { write = \"a.txt\", text = \"…\" },
            { tool = \"squad_log_decision\", args = { title = \"…\", what = \"…\" } } ]
Other steps: ask, fail, hang, die, panic. `models = [\"…\"]` above the turns says which models are on offer.")]
pub(super) struct Args {
    /// The task; `-` reads it from standard input. Without it, on a terminal: a conversation
    message: Option<String>,
    /// Go on with a run that was interrupted: what is done stays done
    #[arg(long, value_name = "RUN", conflicts_with_all = ["message", "agents", "tier", "attach", "dry_run"])]
    resume: Option<String>,
    /// Use this agent, whatever routing says; may be repeated
    #[arg(long = "agent", short, value_name = "NAME")]
    agents: Vec<String>,
    /// Pass this file to every agent of the plan; may be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<String>,
    /// How much to run, instead of what the message suggests
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
    /// The model for every agent
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// The engine that runs the sessions: copilot or rehearsal
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// The script that the rehearsal engine plays; chooses that engine
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
    /// Whether agents may change things; `ask` on a terminal, otherwise `deny`
    #[arg(long, value_enum, value_name = "MODE")]
    permissions: Option<Permissions>,
    /// Show the plan and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Commit no decisions to the branch; the ledger still records them
    #[arg(long)]
    no_commit: bool,
}

impl Args {
    pub(super) fn writes_to_the_branch(&self) -> bool {
        !self.dry_run && !self.no_commit
    }

    pub(super) fn run(self, mut context: Context<'_>) -> (Context<'_>, Ended) {
        if self.message.is_none()
            && self.resume.is_none()
            && context.ui.can_ask()
            && !context.ui.json()
            && !self.dry_run
        {
            return self.converse(context);
        }
        let (project, order) = match self.prepare(&mut context) {
            Ok(prepared) => prepared,
            Err(failure) => return (context, Err(failure)),
        };
        if self.dry_run {
            let shown = preview::preview(context.env, &project, &order).map(|preview| show(&mut context.ui, &preview));
            return (context, shown);
        }
        perform(context, &project, order)
    }

    fn prepare(&self, context: &mut Context<'_>) -> Result<(Project, Order), Failure> {
        if self.agents.is_empty() {
            routing::prepare(context.env);
        }
        let (project, resumed) = self.open(context)?;
        context.ui.problems(&project.problems);
        project.insist_on_sound()?;
        engines::check_names(&project.settings)?;
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
        let attachments = self.attachments(context, &project, resumed.as_ref())?;
        let default_tier = project.settings.sessions.default_tier;
        let wishes = match &resumed {
            Some(interrupted) => Wishes { default_tier, ..interrupted.wishes.clone() },
            None => Wishes { agents, tier: self.tier.map(Tier::from), default_tier },
        };
        Ok((
            project,
            Order {
                message,
                wishes,
                flags: self.flags(resumed.as_ref()),
                attachments,
                permissions,
                script,
                commit: !self.no_commit && !resumed.as_ref().is_some_and(|run| run.no_commit),
                ask: None,
                land: None,
                conversation: None,
                resumed,
            },
        ))
    }

    /// A message a line, until the user leaves.
    fn converse(mut self, mut context: Context<'_>) -> (Context<'_>, Ended) {
        let opened = Project::open(context.env, &context.directory, self.settings(None)).and_then(|project| {
            let agents = project.team.startable().map(|member| member.slug.clone()).collect();
            let prompt = Prompt::new(agents, &project.folder.root, project.local().join("conversation.history"))?;
            Ok((prompt, Conversation::new(context.env)?))
        });
        let (mut prompt, mut conversation) = match opened {
            Ok(opened) => opened,
            Err(failure) => return (context, Err(failure)),
        };
        context.ui.hint("a line is a message to the team; /help says more");
        let ended = loop {
            match prompt.read() {
                Ok(Typed::Message(message)) => {
                    self.message = Some(message);
                    context = self.say_in(context, &mut conversation);
                }
                Ok(Typed::Status) => context = tell(context, |context| status::Args {}.run(context)),
                Ok(Typed::Agents) => context = tell(context, |context| agents::Args::default().run(context)),
                Ok(Typed::Help) => context.ui.say(converse::HELP),
                Ok(Typed::Unknown(word)) => context.ui.hint(&format!("there is no {word}; /help names what there is")),
                Ok(Typed::Leave) => break Ok(0),
                Err(failure) => break Err(failure),
            }
        };
        conversation.close();
        (context, ended)
    }

    fn say_in<'a>(&self, mut context: Context<'a>, conversation: &mut Conversation<'_>) -> Context<'a> {
        let (project, order) = match self.prepare(&mut context) {
            Ok(prepared) => prepared,
            Err(failure) => {
                context.ui.failure(&failure);
                return context;
            }
        };
        let (mut context, ended) =
            perform_by(context, &project, order, |project, order, view| conversation.send(project, order, view));
        if let Err(failure) = ended {
            context.ui.failure(&failure);
        }
        context
    }

    /// A run that goes on is given what its first call named.
    fn open(&self, context: &Context<'_>) -> Result<(Project, Option<Interrupted>), Failure> {
        let open = |resumed| Project::open(context.env, &context.directory, self.settings(resumed));
        let mut project = open(None)?;
        self.insist_on_flags(&project)?;
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
            return attachments::look(context.env, project, &context.directory, &self.attach);
        };
        let (found, changed) = attachments::look_again(context.env, project, &resumed.attachments)?;
        if !changed.is_empty() {
            context.ui.warning(&format!("changed since the run began: {}", list(changed)));
        }
        Ok(found)
    }

    /// The flags that are remembered with the run, and what they are given now or were before. A script is not: the
    /// turns that it still has are for its caller to say.
    fn flags(&self, resumed: Option<&Interrupted>) -> BTreeMap<String, String> {
        let implied = self.script.as_ref().map(|_| "rehearsal".to_owned());
        let values = [
            self.model.clone(),
            self.engine.clone().or(implied),
            self.timeout.clone(),
            self.limit.clone(),
            self.max_concurrent.clone(),
        ];
        let before = |name: &str| resumed?.flags.get(name).cloned();
        let named = FLAGS.iter().zip(values);
        named.filter_map(|((name, _), value)| Some(((*name).to_owned(), value.or_else(|| before(name))?))).collect()
    }

    fn settings(&self, resumed: Option<&Interrupted>) -> settings::Layer {
        let mut layer = order::flag_settings(&self.flags(resumed));
        let script = ("engine.rehearsal.script", self.script.clone(), "--script");
        layer.entries.extend(settings::from_command_line([script]).entries);
        layer
    }

    /// A value of a flag that cannot be used is a mistake in the call; in a file it is a warning.
    fn insist_on_flags(&self, project: &Project) -> Result<(), Failure> {
        match project
            .problems
            .iter()
            .find(|problem| problem.code == "config-bad-value" && problem.file.starts_with("--"))
        {
            Some(problem) => Err(Failure::usage(problem.message.clone()).at(&problem.file)),
            None => Ok(()),
        }
    }

    fn message(&self, ui: &Ui) -> Result<String, Failure> {
        let message = text_or_input(ui, self.message.as_deref().unwrap_or_default())?;
        if message.trim().is_empty() {
            return Err(Failure::usage("the message is empty").hint("squad orchestrate \"what is to be done\""));
        }
        Ok(message)
    }
}

/// Runs an order and shows it; `squad demo` does the same.
pub(super) fn perform<'a>(context: Context<'a>, project: &Project, order: Order) -> (Context<'a>, Ended) {
    let env = context.env;
    perform_by(context, project, order, |project, order, mut view| {
        match watch::orchestrate(env, project, &order, &mut view) {
            Asked::Ran(ended) => (view, *ended),
            Asked::Nobody => orchestrate::run(env, project, order, view),
            Asked::Declined(reason) => {
                view.say(&format!("not in the sessions of `squad watch`: {reason}"));
                orchestrate::run(env, project, order, view)
            }
        }
    })
}

/// Has an order carried out, shows it, and says what is left to say.
fn perform_by<'a>(
    mut context: Context<'a>,
    project: &Project,
    mut order: Order,
    run: impl FnOnce(&Project, Order, View<Ui>) -> (View<Ui>, Result<RunEnded, Failure>),
) -> (Context<'a>, Ended) {
    let ask = order.permissions == Permissions::Ask && context.ui.can_ask();
    let view = if context.ui.json() {
        View::Json(context.ui)
    } else {
        let lines = Lines::new(context.ui);
        if ask {
            order.ask = Some(asker(lines.terminal()));
        }
        View::Lines(lines)
    };
    let (view, ended) = run(project, order, view);
    context.ui = view.into_screen();
    if ended.as_ref().is_ok_and(|ended| ended.has_committed) {
        say_passed_hooks(&mut context.ui, project);
    }
    let code = match ended {
        // The run's last line has said it, and nothing comes after that.
        Ok(RunEnded { error: Some(failure), .. }) if context.ui.json() => Ok(failure.kind.exit_code()),
        Ok(RunEnded { error: Some(failure), .. }) => Err(failure),
        ended => ended.map(|ended| epilogue(&mut context.ui, &ended)),
    };
    (context, code)
}

/// What another command says, in the middle of a conversation.
fn tell<'a>(mut context: Context<'a>, say: impl FnOnce(&mut Context<'a>) -> Ended) -> Context<'a> {
    if let Err(failure) = say(&mut context) {
        context.ui.failure(&failure);
    }
    context
}

fn epilogue(ui: &mut Ui, ended: &RunEnded) -> u8 {
    if let Some(left) = &ended.unlanded {
        ui.warning(&format!("{} recorded but not on the branch yet: {}", left.what(), left.reason));
        ui.hint(&format!("{}; then `squad decisions land`", left.hint));
    }
    if let Some(reason) = &ended.unrecorded {
        ui.warning(&format!("the end of the run could not be recorded: {reason}"));
    }
    if ended.refused > 0 && ui.is_quiet() && !ui.json() {
        ui.warning(&format!("{}: {}", ended.status, refusals(ended.refused)));
    }
    if ended.status == Outcome::Stopped && !ui.json() {
        ui.hint("`--permissions allow` lets agents change files and run commands");
    }
    if !ui.json() {
        ui.say(&format!("squad       details: squad log {}", ended.run));
        if ended.is_stuck {
            ui.say(&format!(
                "squad       nobody may revise it: `squad review lift {}` lets its authors, in a new run",
                ended.run
            ));
        } else if matches!(ended.status, Outcome::Cancelled | Outcome::Failed | Outcome::TimedOut) {
            ui.say(&format!("squad       to go on: squad orchestrate --resume {}", ended.run));
        }
    }
    match ended.status {
        Outcome::Completed => u8::from(ended.unrecorded.is_some()),
        Outcome::Failed | Outcome::TimedOut | Outcome::Skipped | Outcome::Lost => 1,
        Outcome::Stopped => 5,
        Outcome::Cancelled => 130,
    }
}

fn refusals(count: u64) -> String {
    if count == 1 { "1 request was refused".to_owned() } else { format!("{count} requests were refused") }
}

fn show(ui: &mut Ui, preview: &Preview) -> u8 {
    if ui.json() {
        ui.value(preview);
        return 0;
    }
    page::show(ui, &preview.plan, false);
    if !preview.attachments.is_empty() {
        let paths = preview.attachments.iter().map(|attachment| &attachment.path);
        ui.data(&printable(&format!("\nAttached: {}", list(paths))));
    }
    if let Some(answer) = &preview.answer {
        ui.data(&format!("\nThe answer, without any engine:\n\n{}", printable(answer)));
    }
    if preview.sessions.is_empty() {
        return 0;
    }
    ui.data("\nSessions:");
    for session in &preview.sessions {
        let tools = match &session.tools {
            crate::model::ToolChoice::All => "all tools".to_owned(),
            crate::model::ToolChoice::Nothing => "no tools".to_owned(),
            crate::model::ToolChoice::ReadOnly => "tools that read".to_owned(),
            crate::model::ToolChoice::Only(tools) => list(tools),
        };
        let model = &session.model.id;
        let line =
            format!("  {:<12} {model}, {tools}, {:.1} KB of prompt", session.agent, session.bytes as f64 / 1000.0);
        ui.data(&printable(&line));
    }
    0
}
