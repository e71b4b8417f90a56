use super::{Context, Ended};
use crate::model::printable;
use crate::ops::team::engines::{self, Report};
use crate::ui::{BAD, GOOD, STRONG, Ui};

/// List the engines and whether they are ready
///
/// Starts each engine to show its version, its protocol and who is logged in, and tries your MCP servers. Shows what
/// holds for its agents' writes and commands, with and without `--permissions allow`. The README describes how to add
/// one of your own.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad engines\n  squad engines claude\n  squad engines copilot --json")]
pub(super) struct Args {
    /// Only this engine
    name: Option<String>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let reports = engines::check(context.env, &context.directory, self.name.as_deref())?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&serde_json::json!({ "engines": reports }));
        } else {
            reports.iter().for_each(|report| shown(ui, report));
        }
        Ok(0)
    }
}

fn shown(ui: &mut Ui, report: &Report) {
    let name = ui.out_paint(STRONG, &format!("{:<13}", report.name));
    let state = if report.ready { ui.out_paint(GOOD, "ready") } else { ui.out_paint(BAD, "not ready") };
    let chosen = if report.chosen { ", the one in use" } else { "" };
    ui.data(&format!("{name} {state}{chosen}"));
    let protocol = report.protocol.map(|version| {
        let supported = report.supported_protocol.as_deref().unwrap_or("-");
        format!("{version} (squad speaks {supported})")
    });
    let governed = report.governed.as_ref().map(ToString::to_string);
    for (key, value) in [
        ("about", &report.about),
        ("program", &report.program),
        ("version", &report.version),
        ("protocol", &protocol),
        ("login", &report.login),
        ("governed", &governed),
        ("problem", &report.problem),
        ("fix", &report.hint),
    ] {
        if let Some(value) = value {
            ui.data(&format!("  {key:<9} {}", printable(value)));
        }
    }
    for (name, problem) in &report.servers {
        let state = problem.as_deref().unwrap_or("answers");
        ui.data(&format!("  server    {}", printable(&format!("{name}: {state}"))));
    }
    for model in &report.models {
        ui.data(&format!("  model     {}", printable(&model.to_string())));
    }
}
