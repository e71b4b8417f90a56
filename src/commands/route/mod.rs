mod evaluation;
pub(super) mod page;
mod triage;

use super::{Context, Ended, TierName, say_mistyped, text_or_input};
use crate::error::Failure;
use crate::model::{Plan, Tier};
use crate::ops::Project;
use crate::ops::run::{lockouts, past, routing};
use crate::ops::team::members::named_agents;
use crate::route::{Considered, Request, RouteOptions, Router, ceremonies, overlaps};
use crate::settings::Layer;

/// Show who would work on a message, and why
///
/// Starts no agent and calls no model: routing is decided in code, from the team's files and its past work.
/// `--explain` prints all evidence. Exits with 0 even when routing is not sure.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad route \"Fix the login form\"
  squad route --explain \"Fix the login form\"     Show all evidence and the other candidates
  squad route --json - < task.md | jq .agents
  squad route --label bug --path src/api/login.rs \"Passwords with blanks are refused\"
  squad route --eval cases.jsonl                 Score routing on labelled cases
  squad log --export-routing cases.jsonl         Make such cases from this team's runs

A case is one line of JSON, of one of these kinds; `labels` and `paths` are optional:
  {\"message\": \"…\", \"kind\": \"single\", \"accept\": [\"backend\", \"lead\"]}     Any of them is right
  {\"message\": \"…\", \"kind\": \"multi\", \"accept\": [\"backend\", \"docs\"]}      All of them are needed
  {\"message\": \"…\", \"kind\": \"ambiguous\"}                               Routing should abstain
  {\"message\": \"…\", \"kind\": \"direct\"}                                  No agent is needed

To triage issues, send one JSON object per line; each is answered by a plan at once, in order:
  gh issue list --json number,title,body,labels --jq '.[]' | squad route --stdin")]
pub(super) struct Args {
    /// The task, or `-` to read it from standard input
    #[arg(required_unless_present_any = ["eval", "stdin", "labels", "paths"])]
    message: Option<String>,
    /// Show all evidence and the other candidates
    #[arg(long)]
    explain: bool,
    /// A label of the issue; may be repeated
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// A file or folder the work is about; may be repeated
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Plan for this agent, or these (`backend,tester`), whatever routing says; may be repeated
    #[arg(long = "agent", short, value_name = "NAME", value_delimiter = ',')]
    agents: Vec<String>,
    /// How much effort to spend; by default, the message decides
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
    /// Score routing on the labelled cases in FILE (`-` for standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["message", "explain", "labels", "paths", "agents", "tier"])]
    eval: Option<String>,
    /// Read issues from standard input, one JSON object per line (title, body, labels, paths); print a plan for each
    #[arg(long, conflicts_with_all = ["message", "explain", "labels", "paths", "agents", "tier", "eval"])]
    stdin: bool,
}

/// The JSON output.
#[derive(serde::Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    /// Only with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    considered: Option<Vec<Considered>>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        if self.agents.is_empty() {
            routing::prepare(context.env);
        }
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        context.ui.problems(&project.problems);
        project.require_sound()?;
        if let Some(file) = &self.eval {
            return evaluation::run(context, &project, file);
        }
        let past = past::work(&project)?;
        let router = Router::new(&project.team, &past).answering_from(project.settings.routing.threshold);
        if self.stdin {
            return Ok(triage::run(&mut context.ui, &router));
        }
        let message = self.message.as_deref().map_or(Ok(String::new()), |text| text_or_input(&context.ui, text))?;
        if message.trim().is_empty() && self.labels.is_empty() && self.paths.is_empty() {
            return Err(Failure::usage("the message is empty").hint("squad route \"what to do\""));
        }
        let route_options = RouteOptions {
            agents: named_agents(&project.team, &self.agents)?,
            tier: self.tier.map(Tier::from),
            default_tier: project.settings.sessions.default_tier,
        };
        let paths: Vec<String> =
            self.paths.iter().map(|path| project.path_from_root(&context.directory, path)).collect();
        let request = Request { text: &message, labels: &self.labels, paths: &paths };
        for (what, name) in router.unknown(&request) {
            context.ui.warning(&format!("the {what} `{name}` has no effect: no routing row matches it"));
        }
        say_mistyped(&mut context.ui, &project.team, &message);
        let mut plan = router.plan(&request, &route_options);
        let named =
            [&[message.as_str()], &paths.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat().join("\n");
        let lockouts = lockouts::binding(&project, &message, &route_options.agents, || context.env.clock.now())?;
        lockouts::bind(&mut plan, &lockouts, &named);
        ceremonies::add(&project.team, &mut plan, &message);
        overlaps::add(&project.team, &mut plan);
        let considered = self.explain.then(|| router.considered(&request, &plan));
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&Answer { plan: &plan, considered });
        } else {
            page::show(ui, &project.team, &plan, self.explain, &message);
            page::show_considered(ui, &considered.unwrap_or_default());
        }
        Ok(0)
    }
}
