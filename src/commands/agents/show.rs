use super::super::{Ended, TierName};
use super::{note, runs};
use crate::compile::{Input, Receipt};
use crate::env::Clock;
use crate::model::{Kind, ModelLayer, Rule, Slug, Tier, first_line, plural, printable};
use crate::ops::Project;
use crate::ops::team::agents::{self, MemberReport, PromptOptions, PromptReport};
use crate::ui::{STRONG, Ui};
use crate::view::{LineStyle, Text};

/// What stands between prompt and context.
const SEPARATOR: &str = "\n----- context -----\n";
/// How many of the inputs that were left out are listed; --verbose and --json list all.
const LEFT_OUT: usize = 10;

/// Show one agent and its prompt
///
/// --prompt prints exactly what the engine receives: the agent's prompt, an empty line, a line `----- context
/// -----`, and the context that is appended to the engine's system message. The task is the first message and not
/// part of it. With --json these are the fields `prompt` and `context`.
///
/// --receipt lists every candidate for the prompt with its source, hash and tokens, whether it is in, and why.
/// Decisions and history are chosen for the task, so give one with --task.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents show backend
  squad agents show backend --prompt --task \"Fix the login form\"
  squad agents show backend --receipt --task \"Fix the login form\"
  squad agents show coordinator --prompt                      Who decides when routing is not sure
  squad agents show backend --prompt --json | jq -r .context")]
pub(super) struct Args {
    /// The agent's name, or `coordinator`
    name: String,
    /// The task that the agent would work on
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// The tier the session would run in
    #[arg(long, value_enum, value_name = "TIER", default_value = "standard")]
    tier: TierName,
    /// Print what the engine receives
    #[arg(long)]
    prompt: bool,
    /// Print what is in the prompt, what was left out, and why
    #[arg(long, conflicts_with = "prompt")]
    receipt: bool,
}

impl Args {
    pub(super) fn run(self, ui: &mut Ui, project: &Project, clock: &Clock) -> Ended {
        let options = PromptOptions { task: self.task.as_deref(), tier: Tier::from(self.tier) };
        if self.prompt {
            prompt_shown(ui, &agents::prompt(project, &self.name, &options)?);
        } else if self.receipt || agents::is_coordinator(project, &self.name) {
            receipt_shown(ui, &agents::receipt(project, &self.name, &options)?);
        } else {
            member_shown(ui, &agents::member(project, &self.name, &options)?, clock);
        }
        Ok(0)
    }
}

fn prompt_shown(ui: &mut Ui, report: &PromptReport) {
    if ui.json() {
        ui.value(report);
    } else {
        ui.verbatim(&format!("{}\n{SEPARATOR}{}", report.prompt, report.context));
    }
}

fn member_shown(ui: &mut Ui, report: &MemberReport, clock: &Clock) {
    if ui.json() {
        ui.value(report);
        return;
    }
    let agent = &report.agent;
    let title = printable(&format!("{} — {}", agent.name, agent.role));
    ui.data(&ui.out_paint(STRONG, &title));
    let mut fields = vec![
        ("slug", agent.slug.to_string()),
        ("kind", format!("{}{}", kind(agent.kind), note(agent.status))),
        ("source", agent.source.to_string()),
        ("charter", agent.charter.clone().unwrap_or_else(|| "none".to_owned())),
    ];
    if agent.kind == Kind::Agent {
        fields.extend([
            ("model", format!("{}, {}", agent.resolved_model, layer(agent.model_layer))),
            ("tools", agent.tools.as_ref().map_or("all".to_owned(), |tools| tools.join(", "))),
            ("tokens", tokens(report)),
            ("hash", agent.compiled_hash.clone()),
            ("runs", runs(&agent.runs, clock).unwrap_or_else(|| "none yet".to_owned())),
        ]);
    }
    for (name, value) in fields {
        ui.texts(&[Text::default().plain(name).filled(8).hanging().plain(&value)]);
    }
    if !report.rules.is_empty() {
        ui.data("\nRules that route here:");
    }
    let signals: Vec<String> = report.rules.iter().map(|rule| signal(rule, &agent.slug)).collect();
    let width = signals.iter().map(|signal| signal.chars().count()).max().unwrap_or(0);
    for (rule, signal) in report.rules.iter().zip(signals) {
        let line = Text::unmarked().plain(&format!("{signal:<width$}  "));
        ui.texts(&[line.with(LineStyle::Faint, &rule.source.to_string())]);
    }
    ui.all_problems(&report.problems);
}

fn signal(rule: &Rule, agent: &Slug) -> String {
    let review = if rule.reviewer.as_ref() == Some(agent) { ", as reviewer" } else { "" };
    printable(&format!("{}{review}", first_line(&rule.signal, 60)))
}

fn tokens(report: &MemberReport) -> String {
    let tokens = report.tokens;
    format!(
        "about {} of {} at the {} tier: charter {}, skills and notes {}, decisions {}, history {}",
        tokens.total,
        report.budget.total,
        report.tier,
        tokens.prompt,
        tokens.knowledge,
        tokens.decisions,
        tokens.history
    )
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Agent => "agent",
        Kind::Helper => "built-in helper, its work is squad's own",
        Kind::Human => "a person",
        Kind::Bot => "works elsewhere",
    }
}

fn layer(layer: ModelLayer) -> &'static str {
    match layer {
        ModelLayer::User => "the user's choice",
        ModelLayer::Charter => "named by the charter",
        ModelLayer::Role => "by [models.roles]",
        ModelLayer::Default => "the tier's default",
        ModelLayer::Engine => "the engine's own",
    }
}

fn receipt_shown(ui: &mut Ui, receipt: &Receipt) {
    if ui.json() {
        ui.value(receipt);
        return;
    }
    let totals = receipt.tokens;
    let task = receipt.task_hash.as_deref().unwrap_or("none");
    for (name, value) in [
        ("agent", format!("{}, {} tier, {}", receipt.agent, receipt.tier, receipt.model.id)),
        (
            "tokens",
            format!(
                "about {} of {}: prompt {}, context {}",
                totals.total, receipt.budget.total, totals.prompt, totals.context
            ),
        ),
        ("", format!("decisions {} of {}", totals.decisions, receipt.budget.decisions)),
        ("", format!("history {} of {}", totals.history, receipt.budget.history)),
        ("session", receipt.compiled_hash.clone()),
        ("told", format!("decisions {}, history {}, task {task}", receipt.decisions_hash, receipt.history_hash)),
    ] {
        ui.texts(&[Text::default().plain(name).filled(9).hanging().plain(&value)]);
    }
    let (ins, outs): (Vec<&Input>, Vec<&Input>) = receipt.inputs.iter().partition(|input| input.included);
    inputs_shown(ui, "In the prompt:", &ins);
    let shown = if ui.is_verbose() { outs.len() } else { outs.len().min(LEFT_OUT) };
    inputs_shown(ui, "Left out:", &outs[..shown]);
    if shown < outs.len() {
        ui.say(&format!("{} left out; --verbose shows all", plural(outs.len() - shown, "more input")));
    }
}

fn inputs_shown(ui: &mut Ui, heading: &str, inputs: &[&Input]) {
    if inputs.is_empty() {
        return;
    }
    ui.data(&format!("\n{heading}"));
    for input in inputs {
        let style = if input.included { LineStyle::Good } else { LineStyle::Faint };
        let line = Text::default().with(style, &format!("{:<12}", input.kind.word()));
        let title = first_line(&input.title, 60);
        let title = if title.is_empty() { title } else { format!("  {title}") };
        let line = line.plain(&format!("{:>6}  ", input.tokens)).hanging();
        let line = line.plain(&format!("{}  {}{title}", input.hash, input.source));
        let why = Text::default().filled(20).hanging().with(LineStyle::Faint, &input.why);
        ui.texts(&[line, why]);
    }
}
