use super::super::change::{self, WriteArgs};
use super::super::{Context, Ended};
use crate::model::{list, plural, printable_line};
use crate::ops::change::Changed;
use crate::ops::team::hosts::{self, ExportReport, Target};
use crate::ui::Ui;

/// Write the team's agents as files of other hosts
///
/// Makes agent files for Copilot, Claude Code and Codex from the charters, a section of AGENTS.md that describes the team
/// to any host, or an Agent Plugin 1.0 with the team's skills, in one commit. Each file says that it was generated, and
/// from what. `squad upgrade` updates them and keeps your edits; `squad doctor` lists those that are out of date or
/// edited. Never overwrites a file that squad did not make.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents export --to claude --dry-run
  squad agents export --to copilot,agents-md
  squad agents export --to plugin --no-commit
  squad agents export                  Export to the same hosts again, and restore deleted files")]
pub(super) struct Args {
    /// The hosts to write for. Without it: those that the team was exported to before
    #[arg(long = "to", value_name = "HOST,…", value_delimiter = ',', value_enum)]
    to: Vec<Target>,
    #[command(flatten)]
    pub(super) write: WriteArgs,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let exported = hosts::export(context.env, &context.directory, &self.to, self.write.mode())?;
        change::show(context, exported, self.write.diff, |ui, exported| said(ui, exported, self.write.diff))
    }
}

fn said(ui: &mut Ui, exported: &Changed<ExportReport>, as_patch: bool) {
    let report = &exported.change;
    change::say_files(ui, report, as_patch);
    change::say_conflicts(ui, &exported.conflicts, report.is_dry_run);
    for path in &exported.edited {
        ui.say(&format!("{} keeps your edits.", printable_line(path)));
    }
    for file in &exported.skipped {
        ui.warning(&printable_line(&format!("{} is not exported: {}", file.path, file.why)));
    }
    let count = plural(report.files.len(), "file");
    let left = match exported.skipped.len() {
        0 => String::new(),
        count => format!("; {} not exported", plural(count, "file")),
    };
    let hosts = list(exported.targets.iter().map(|target| target.name()));
    ui.say(&match report.is_dry_run {
        _ if report.files.is_empty() && report.commit.is_none() => match exported.skipped.is_empty() {
            true => format!(
                "Nothing changed: {hosts} {} up to date.",
                if exported.targets.len() == 1 { "is" } else { "are" }
            ),
            false => "Nothing changed.".to_owned(),
        },
        true => format!("{count} would change{left}."),
        false => format!("Exported the team to {hosts}: {count}{}{left}.", change::outcome(report)),
    });
}
