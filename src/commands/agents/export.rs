use super::super::write_args::{WriteArgs, say_conflicts};
use super::super::{Context, Ended, say_passed_hooks};
use crate::model::{list, plural, printable, printable_line};
use crate::ops::Workspace;
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
        let mut exported = hosts::export(context.env, &context.directory, &self.to, self.write.mode())?;
        if let Some(commit) = context.finished(&hosts::command(&exported.targets)) {
            exported.commit = exported.commit.or(commit);
        }
        if exported.commit.is_some() {
            say_passed_hooks(&mut context.ui, &Workspace::find(context.env, &context.directory)?);
        }
        if context.ui.json() {
            let mut value = serde_json::to_value(&exported).unwrap_or_default();
            if self.write.diff {
                value["diff"] = exported.diff.into();
            }
            context.ui.value(&value);
        } else {
            said(&mut context.ui, &exported, &self.write);
        }
        Ok(0)
    }
}

fn said(ui: &mut Ui, exported: &ExportReport, write: &WriteArgs) {
    if write.diff {
        let diff = printable(&exported.diff);
        ui.data(diff.strip_suffix('\n').unwrap_or(&diff));
    } else {
        for file in &exported.files {
            ui.data(&printable_line(&format!("{:<8} {}", file.change, file.path)));
        }
    }
    let is_shown = !write.writes();
    say_conflicts(ui, &exported.conflicts, is_shown);
    for path in &exported.edited {
        ui.say(&format!("{} keeps your edits.", printable_line(path)));
    }
    for file in &exported.skipped {
        ui.warning(&printable_line(&format!("{} is not exported: {}", file.path, file.why)));
    }
    let count = plural(exported.files.len(), "file");
    let left = match exported.skipped.len() {
        0 => String::new(),
        count => format!("; {} not exported", plural(count, "file")),
    };
    let hosts = list(exported.targets.iter().map(|target| target.name()));
    match &exported.commit {
        Some(commit) => {
            ui.say(&format!(
                "Exported the team to {hosts}: {count}, committed in {}{left}.",
                commit.get(..10).unwrap_or(commit)
            ));
        }
        None if exported.files.is_empty() && !exported.skipped.is_empty() => ui.say("Nothing changed."),
        None if exported.files.is_empty() => {
            let verb = if exported.targets.len() == 1 { "is" } else { "are" };
            ui.say(&format!("Nothing changed: {hosts} {verb} up to date."));
        }
        None if is_shown => ui.say(&format!("{count} would change{left}.")),
        None => ui.say(&format!("Exported the team to {hosts}: {count}, not committed{left}.")),
    }
}
