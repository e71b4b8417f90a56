use super::super::outlet::{OutletArgs, say_conflicts};
use super::super::{Context, Ended, say_passed_hooks};
use crate::model::{list, plural, printable, printable_line};
use crate::ops::Workspace;
use crate::ops::team::hosts::{self, Exported, Target};
use crate::ui::Ui;

/// Write the team's agents as files of other hosts
///
/// Makes agent files for Copilot, Claude Code and Codex out of the charters, a section of AGENTS.md that tells any host
/// of the team, or an Agent Plugin 1.0 with the team's skills, in one commit. Each file says that it was generated, and
/// from what. `squad upgrade` keeps them in step with the team, and keeps what people change in them; `squad doctor` names
/// those that are stale or edited. A file that squad did not make is never overwritten.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad agents export --to claude --dry-run
  squad agents export --to copilot,agents-md
  squad agents export --to plugin --no-commit
  squad agents export                  Make deleted files again, for the hosts of before")]
pub(super) struct Args {
    /// The hosts to write for. Without it: those that the team was exported to before
    #[arg(long = "to", value_name = "HOST,…", value_delimiter = ',', value_enum)]
    to: Vec<Target>,
    #[command(flatten)]
    pub(super) outlet: OutletArgs,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let mut exported = hosts::export(context.env, &context.directory, &self.to, self.outlet.outlet())?;
        if let Some(commit) = context.finished(&hosts::command(&exported.targets)) {
            exported.commit = exported.commit.or(commit);
        }
        if exported.commit.is_some() {
            say_passed_hooks(&mut context.ui, &Workspace::find(context.env, &context.directory)?);
        }
        if context.ui.json() {
            let mut value = serde_json::to_value(&exported).unwrap_or_default();
            if self.outlet.diff {
                value["diff"] = exported.diff.into();
            }
            context.ui.value(&value);
        } else {
            said(&mut context.ui, &exported, &self.outlet);
        }
        Ok(0)
    }
}

fn said(ui: &mut Ui, exported: &Exported, outlet: &OutletArgs) {
    if outlet.diff {
        let diff = printable(&exported.diff);
        ui.data(diff.strip_suffix('\n').unwrap_or(&diff));
    } else {
        for file in &exported.files {
            ui.data(&printable_line(&format!("{:<8} {}", file.change, file.path)));
        }
    }
    let is_shown = !outlet.writes();
    say_conflicts(ui, &exported.conflicts, is_shown);
    for path in &exported.kept {
        ui.say(&format!("{} keeps what was changed in it by hand.", printable_line(path)));
    }
    for left in &exported.left {
        ui.warning(&printable_line(&format!("{} is not exported: {}", left.path, left.why)));
    }
    let count = plural(exported.files.len(), "file");
    let left = match exported.left.len() {
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
        None if exported.files.is_empty() && !exported.left.is_empty() => ui.say("Nothing changed."),
        None if exported.files.is_empty() => {
            let verb = if exported.targets.len() == 1 { "is" } else { "are" };
            ui.say(&format!("Nothing changed: {hosts} {verb} in step with the team."));
        }
        None if is_shown => ui.say(&format!("{count} would change{left}.")),
        None => ui.say(&format!("Exported the team to {hosts}: {count}, not committed{left}.")),
    }
}
