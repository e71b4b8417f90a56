use super::{Context, Ended};
use crate::model::{first_line, plural, printable};
use crate::ops::team::status::status;

/// Show what is going on
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad status\n  squad status --json")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let status = status(context.env, &context.directory, &context.ui.progress())?;
        if context.ui.json() {
            context.value(&status);
            return Ok(0);
        }
        let ui = &mut context.ui;
        let branch = status.branch.as_deref().unwrap_or("detached HEAD");
        ui.data(&format!("repository  {} ({branch})", printable(&status.repository)));
        match (&status.team, &status.in_the_way) {
            (Some(team), _) => ui.data(&format!("team        {}", printable(&team.folder))),
            (None, Some(path)) => {
                ui.data(&format!(
                    "team        none; {path} is in the way, it is no folder: move it, then `squad init`"
                ));
            }
            (None, None) => ui.data("team        none; `squad init` makes one"),
        }
        ui.data(&format!("ledger      {}", plural(status.ledger.entries, "entry")));
        if status.runs_live.is_empty() {
            ui.data("runs        none");
        }
        for run in &status.runs_live {
            ui.data(&format!("runs        {} {}", run.run, printable(&first_line(&run.message, 60))));
        }
        Ok(0)
    }
}
