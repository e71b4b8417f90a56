use super::{Context, Ended};
use crate::model::{Severity, plural};
use crate::ops::doctor;

/// Find what is wrong, and how to mend it
///
/// Looks at the repository, the team's files, the configuration and the engine. Exits with 1 when something is wrong.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  squad doctor\n  squad doctor --prove\n  squad doctor --json | jq -r '.problems[].hint'"
)]
pub(super) struct Args {
    /// Also read the whole ledger, make everything derived again and compare, and check what must always hold
    #[arg(long)]
    prove: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let diagnosis = doctor::diagnose(context.env, &context.directory, self.prove)?;
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&diagnosis);
        } else {
            ui.findings(diagnosis.problems.iter().map(|finding| &finding.problem));
            if let Some(proof) = &diagnosis.proof {
                let (entries, commits) = (plural(proof.entries, "entry"), plural(proof.commits, "commit"));
                ui.data(&format!("Read {entries} of {} in {commits}.", plural(proof.folders, "folder")));
            }
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
