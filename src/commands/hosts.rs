use std::time::Duration;

use clap::Subcommand;

use super::{Context, Ended};
use crate::model::{megabytes, plural};
use crate::ops::run::host_install::Installed;
use crate::ops::run::host_reports::{HostReport, Known};
use crate::settings::parse_duration;
use crate::view::{LineStyle, Mark, Text};

/// List the other machines that agents can work on
///
/// `[hosts.NAME]` in your own configuration file names a machine and the program that starts `squad worker` there: ssh, srun,
/// docker, kubectl, or any other that passes on standard input and output and the exit code. With `--check`, exits with 1
/// when one of them cannot be reached.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  squad hosts\n  squad hosts build1 gpu --check\n  squad hosts --check --json | jq -r '.hosts[] | select(.reachable).name'\n  squad hosts install build1"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only the hosts with these names or labels
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Start a worker on each, and show its version, its engines and how long that took
    #[arg(long)]
    check: bool,
    /// How long a worker may take to start, such as `2m` where jobs are queued
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "check", value_parser = parse_duration)]
    timeout: Duration,
}

#[derive(Subcommand)]
enum Command {
    /// Copy this squad to a host, over its own launcher
    ///
    /// The launcher has to end in `squad worker`: in the place of these two words it starts `sh` there, which gets the program
    /// on its standard input. The host's platform has to be this one. The new file takes the old one's place, or goes to
    /// `~/.local/bin` where there is none, once it has told its version there.
    Install {
        /// The host's name
        #[arg(value_name = "NAME")]
        name: String,
        /// How long that may take
        #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
        timeout: Duration,
    },
}

impl Args {
    pub(super) fn is_long(&self) -> bool {
        self.check || self.command.is_some()
    }

    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let known = Known::read(context.env, &context.directory);
        if let Some(Command::Install { name, timeout }) = self.command {
            let Installed { path, bytes, before } = known.install(context.env, &name, timeout)?;
            let version = env!("CARGO_PKG_VERSION");
            let is_other = !before.is_empty() && before != format!("squad {version}");
            let instead = if is_other { format!(", in the place of {before}") } else { String::new() };
            if context.ui.json() {
                let value = serde_json::json!({ "host": name, "path": path, "bytes": bytes, "version": version, "before": before });
                context.ui.value(&value);
            } else {
                let size = megabytes(bytes);
                context.ui.data(&format!("{name}: squad {version} is in {path} ({size}){instead}"));
                context.ui.hint(&format!("`squad hosts {name} --check` tries it"));
            }
            return Ok(0);
        }
        let mut reports = known.list(&self.names)?;
        if self.check {
            reports = known.check(context.env, reports, self.timeout)?;
        }
        let is_unreachable = reports.iter().any(|report| report.reachable == Some(false));
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&serde_json::json!({ "hosts": reports }));
        } else {
            ui.texts(&listed(&reports));
            if let Some(first) = reports.first().filter(|_| !self.check) {
                ui.hint(&format!(
                    "`squad hosts --check` tries them; `squad orchestrate --on {} \"…\"` works there",
                    first.name
                ));
            }
            if reports.is_empty() {
                ui.notice("No other machine is configured: agents work on this one.");
                ui.hint("squad config set --user hosts.build1.launch '[\"ssh\", \"build1\", \"--\", \"squad\", \"worker\"]'");
            }
        }
        Ok(u8::from(is_unreachable))
    }
}

fn listed(reports: &[HostReport]) -> Vec<Text> {
    let width = reports.iter().map(|report| report.name.chars().count()).max().unwrap_or_default();
    let line = |report: &HostReport| {
        let line = match report.reachable {
            None => Text::unmarked(),
            Some(true) => Text::marked(LineStyle::Good, Mark::Good),
            Some(false) => Text::marked(LineStyle::Bad, Mark::Bad),
        };
        let line = line.with(LineStyle::Strong, &report.name).filled(2 + width).plain("  ").hanging();
        match &report.problem {
            // The line begins with its name.
            Some(problem) => {
                let why = problem.strip_prefix(&format!("host {}: ", report.name)).unwrap_or(problem);
                line.with(LineStyle::Bad, "unreachable").plain(&format!(": {why}"))
            }
            None if report.reachable == Some(true) => {
                let line = line.with(LineStyle::Good, "ready").plain(&format!(": {}", offer(report).join(", ")));
                line.with(LineStyle::Faint, &format!("   {}", aside(report)))
            }
            None => line.plain(&offer(report).join(", ")).with(LineStyle::Faint, &format!("   {}", aside(report))),
        }
    };
    reports.iter().map(line).collect()
}

fn offer(report: &HostReport) -> Vec<String> {
    let version = report.version.iter().map(|version| format!("squad {version}"));
    let platform = report.platform.iter().cloned();
    let slots = match report.busy {
        Some(busy) => format!("{} of {} free", report.slots.saturating_sub(busy), plural(report.slots, "slot")),
        None => plural(report.slots, "slot"),
    };
    let mode = (report.mode != "stream").then(|| report.mode.to_owned());
    let parts = version.chain(platform).chain(mode).chain([slots]).chain(report.labels.iter().cloned());
    parts.chain(report.engines.iter().cloned()).collect()
}

fn aside(report: &HostReport) -> String {
    report.seconds.map_or_else(|| report.launch.join(" "), |seconds| format!("{seconds:.1} s"))
}
