use super::{Context, Ended};
use crate::model::plural;
use crate::ops::run::host_reports::{self, HostReport};
use crate::view::{LineStyle, Text};

/// List the other machines that agents can work on
///
/// `[hosts.NAME]` in your own configuration file names a machine and the program that starts `squad worker` there: ssh, srun,
/// docker, kubectl, or any other that passes on standard input and output and the exit code.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  squad hosts\n  squad hosts build1 gpu\n  squad hosts --json | jq -r '.hosts[].name'"
)]
pub(super) struct Args {
    /// Only the hosts with these names or labels
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let reports = host_reports::listed(context.env, &context.directory, &self.names)?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&serde_json::json!({ "hosts": reports }));
            return Ok(0);
        }
        ui.texts(&listed(&reports));
        if reports.is_empty() {
            ui.notice("no other machine is configured");
            ui.hint(
                "squad config set --user hosts.build1.launch '[\"ssh\", \"build1\", \"--\", \"squad\", \"worker\"]'",
            );
        }
        Ok(0)
    }
}

fn listed(reports: &[HostReport]) -> Vec<Text> {
    let width = reports.iter().map(|report| report.name.chars().count()).max().unwrap_or_default();
    let line = |report: &HostReport| {
        let offer: Vec<String> = std::iter::once(plural(report.slots, "slot"))
            .chain(report.labels.iter().cloned())
            .chain(report.engines.iter().cloned())
            .collect();
        let line = Text::unmarked().with(LineStyle::Strong, &report.name).filled(2 + width).plain("  ").hanging();
        line.plain(&offer.join(", ")).with(LineStyle::Faint, &format!("   {}", report.launch.join(" ")))
    };
    reports.iter().map(line).collect()
}
