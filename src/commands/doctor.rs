use super::{Context, Ended};
use crate::model::{Severity, plural};
use crate::ops::doctor;

/// Find what is wrong, and how to mend it
///
/// Looks at the repository, the team's files, the configuration and the engine. Exits with 1 when something is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad doctor\n  squad doctor --json | jq -r '.problems[].hint'")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let diagnosis = doctor::diagnose(context.env, &context.directory)?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&diagnosis);
        } else {
            ui.findings(diagnosis.problems.iter().map(|finding| &finding.problem));
            let wrong = diagnosis.problems.iter().filter(|finding| finding.problem.severity != Severity::Note).count();
            ui.data(&if wrong == 0 {
                "Everything is in order.".to_owned()
            } else {
                format!("{} to mend", plural(wrong, "problem"))
            });
        }
        Ok(u8::from(!diagnosis.is_well()))
    }
}
