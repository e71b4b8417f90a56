use super::super::{Context, Ended};
use crate::model::{plural, printable};
use crate::ops::Workspace;
use crate::ops::decisions::radar::{self, Radar};
use crate::review::Certainty;
use crate::ui::{BAD, STRONG, Ui, WARN};

/// Show decisions on different branches that contradict each other
///
/// Compares the decisions each branch adds to the base with those of the other branches, and with what the base has
/// decided since, and the base's own with each other. Without REF, looks at every local and remote branch. Always exits with 0.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad decisions radar
  squad decisions radar feature-a feature-b
  squad decisions radar --base origin/develop --json")]
pub(super) struct Args {
    /// Branches or other revisions
    #[arg(value_name = "REF")]
    revisions: Vec<String>,
    /// The branch they will be merged into; by default origin's HEAD, main or master
    #[arg(long, value_name = "REF")]
    base: Option<String>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let workspace = Workspace::find_or_root(context.env, &context.directory)?;
        let radar = radar::radar(&workspace, self.base.as_deref(), &self.revisions)?;
        if context.ui.json() {
            context.value(&radar);
        } else {
            show(&mut context.ui, &radar);
        }
        Ok(0)
    }
}

fn show(ui: &mut Ui, radar: &Radar) {
    for between in &radar.conflicts {
        let (word, style) = match between.conflict.certainty {
            Certainty::Explicit => ("contradiction", BAD),
            Certainty::Likely => ("likely contradiction", WARN),
        };
        let [one, other] = &between.branches;
        let branches = if one == other { one.clone() } else { format!("{one} and {other}") };
        let branches = ui.out_paint(STRONG, &printable(&branches));
        let word = ui.out_paint(style, word);
        ui.data(&format!("{branches}: {word}: {}", printable(&between.conflict.message)));
        for (id, title) in between.conflict.decisions.iter().zip(&between.conflict.titles) {
            ui.data(&printable(&format!("  {id}  {title}")));
        }
    }
    let decisions = radar.branches.iter().map(|branch| branch.new.len()).sum();
    ui.say(&format!(
        "{} on {} on top of {}; {}.",
        plural(decisions, "decision"),
        if radar.branches.len() == 1 { "1 branch".to_owned() } else { format!("{} branches", radar.branches.len()) },
        printable(&radar.base.name),
        plural(radar.conflicts.len(), "contradiction"),
    ));
}
