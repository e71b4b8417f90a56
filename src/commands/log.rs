use std::path::{Path, PathBuf};

use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{RunId, Usage, What, first_line, list, plural, printable};
use crate::ops::ledger::{self, RunSummary};
use crate::ops::{Workspace, past, routing};
use crate::record::Read;
use crate::route::evaluate::Case;
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui};

/// Show what happened
///
/// Without RUN, the newest runs; with it, everything that run left. The same can be read with
/// `git log -p refs/squad/log`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad log                        The newest runs
  squad log 20260105-0900          One run, by the beginning of its id
  squad log --json | jq '.runs[0]'
  squad log --export-routing cases.jsonl && squad route --eval cases.jsonl")]
pub(super) struct Args {
    /// A run's id, or the beginning of it
    run: Option<String>,
    /// How many runs to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Write the completed runs as labelled cases for `squad route --eval`, to a new FILE or to stdout
    ///
    /// The agents that completed a run count as the right ones; look the cases over, and correct those that were not.
    /// Runs that failed, were cancelled or were rejected are left out.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["run", "limit"])]
    export_routing: Option<Option<PathBuf>>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let workspace = Workspace::find(context.env, &context.directory)?;
        let prefix = workspace.ledger_prefix();
        let ui = &mut context.ui;
        if let Some(file) = self.export_routing {
            let file = file.map(|file| context.directory.join(file));
            return export(ui, &past::cases(&workspace)?, file.as_deref());
        }
        match self.run {
            None => {
                let runs = ledger::runs(&workspace.repository, &prefix, &workspace.live_runs(), self.limit as usize)?;
                runs_shown(ui, &runs);
            }
            Some(id) => {
                let run = one(ledger::find_runs(&workspace.repository, &prefix, &id)?, &id)?;
                run_shown(ui, &run, &ledger::timeline(&workspace.repository, &prefix, &run)?);
            }
        }
        Ok(0)
    }
}

fn export(ui: &mut Ui, cases: &[Case], file: Option<&Path>) -> Ended {
    match file {
        None => cases.iter().for_each(|case| ui.value(case)),
        Some(file) => routing::write(file, cases)?,
    }
    ui.say(&format!("{} from the team's completed runs", plural(cases.len(), "case")));
    Ok(0)
}

fn one(mut found: Vec<RunId>, id: &str) -> Result<RunId, Failure> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::usage(format!("there is no run `{id}`")).hint("`squad log` shows the newest runs")),
        _ => Err(Failure::usage(format!("`{id}` may be {}", list(found.iter().take(5)))).hint("write more of the id")),
    }
}

fn runs_shown(ui: &mut Ui, runs: &[RunSummary]) {
    if ui.json() {
        ui.value(&serde_json::json!({ "runs": runs }));
        return;
    }
    if runs.is_empty() {
        ui.say("Nothing has happened yet.");
        ui.hint("squad orchestrate \"what is to be done\"");
    }
    for run in runs {
        let id = ui.out_paint(STRONG, run.run.as_str());
        let style = match run.status.as_str() {
            "completed" => GOOD,
            "running" => STRONG,
            _ => BAD,
        };
        let status = ui.out_paint(style, &format!("{:<9}", run.status.replace('_', " ")));
        let agents: Vec<&str> = run.agents.keys().map(|slug| slug.as_str()).collect();
        ui.data(&format!("{id}  {status}  {}", printable(&first_line(&run.message, 70))));
        if !agents.is_empty() {
            let line = format!("{:24}{}  {:.1} s", "", printable(&agents.join(", ")), run.usage.seconds);
            ui.data(&ui.out_paint(FAINT, &line));
        }
    }
}

fn run_shown(ui: &mut Ui, run: &RunId, entries: &[(String, Read)]) {
    if ui.json() {
        for (path, read) in entries {
            ui.value(&match read {
                Read::Entry(entry) => {
                    let mut value = serde_json::to_value(entry).unwrap_or_default();
                    value["text"] = entry.text.clone().into();
                    value
                }
                Read::Newer { version } => serde_json::json!({"kind": "unknown", "path": path, "squad": version}),
                Read::Damaged { reason } => serde_json::json!({"kind": "damaged", "path": path, "reason": reason}),
            });
        }
        return;
    }
    ui.data(&ui.out_paint(STRONG, &format!("run {run}")));
    for (path, read) in entries {
        match read {
            Read::Entry(entry) => {
                let time = ui.out_paint(FAINT, &entry.at.strftime("%H:%M:%S").to_string());
                let agent = entry.agent.as_ref().map_or("squad", |agent| agent.as_str());
                let line = format!("{agent:<12} {:<20} {}", entry.kind, detail(entry.what(), &entry.text));
                ui.data(&format!("{time}  {}", printable(line.trim_end())));
                if ui.is_verbose() && entry.text.lines().count() > 1 {
                    for line in entry.text.lines() {
                        ui.data(&format!("            {}", printable(line)));
                    }
                }
            }
            Read::Newer { version } => {
                ui.data(&format!("          unknown entry of a newer squad (version {version}): {path}"))
            }
            Read::Damaged { reason } => ui.data(&format!("          damaged entry: {path}: {reason}")),
        }
    }
}

/// What an entry is about, in a line.
fn detail(what: Option<What>, text: &str) -> String {
    let Some(what) = what else { return first_line(text, 80) };
    match what {
        What::RoutePlanned(plan) => match &plan.reviewer {
            Some(reviewer) => format!("{}, reviewed by {reviewer}, tier {}", list(&plan.agents), plan.tier),
            None => format!("{} tier {}", list(&plan.agents), plan.tier),
        },
        What::EngineFallback { from, to, reason } => format!("{from} → {to}: {reason}"),
        What::ConnectionLost { reason } | What::SessionError { reason, .. } => reason,
        What::SessionCreated { session, model, .. } => format!("{session} on {model}"),
        What::SessionResumed { session } | What::SessionIdle { session } | What::SessionDestroyed { session } => {
            session
        }
        What::ToolCompleted { tool, ok: true, detail, .. } => format!("{tool} {detail}"),
        What::ToolCompleted { tool, detail, result, .. } => format!("{tool} {detail} failed: {result}"),
        What::ToolDenied { tool, detail, reason } => format!("{tool} {detail}: {reason}"),
        What::DecisionLogged { decision, .. } => format!("{} {}", decision.id, decision.title),
        What::DecisionLanded { decisions, branch, commit } => {
            format!("{} on {branch} in {}", list(&decisions), commit.get(..10).unwrap_or(&commit))
        }
        What::Usage(usage) => spent(&usage),
        What::Completed { text, usage } => format!("{} ({})", first_line(&text, 70), spent(&usage)),
        What::Failed { reason, .. } | What::TimedOut { reason, .. } | What::Cancelled { reason, .. } => reason,
        What::ReviewVerdict { verdict, authors, .. } => {
            format!("{} the work of {}", format!("{verdict:?}").to_lowercase(), list(&authors))
        }
        What::RunCompleted { status, agents, commits, usage } => {
            let commits: Vec<&str> = commits.iter().map(|commit| commit.get(..10).unwrap_or(commit)).collect();
            let commits = if commits.is_empty() { String::new() } else { format!(", committed {}", list(commits)) };
            format!("{status}, {}{commits} ({})", plural(agents.len(), "agent"), spent(&usage))
        }
        _ => first_line(text, 80),
    }
}

fn spent(usage: &Usage) -> String {
    format!("{:.1} s, {} in, {} out", usage.seconds, usage.input_tokens, usage.output_tokens)
}
