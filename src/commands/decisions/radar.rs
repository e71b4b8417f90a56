use super::super::{Context, Ended};
use crate::model::{plural, printable};
use crate::ops::Workspace;
use crate::ops::decisions::radar::{self, Radar};
use crate::review::{Certainty, Conflict};
use crate::ui::Ui;
use crate::view::{LineStyle, Mark, Text};

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
        let [one, other] = &between.branches;
        let branches = if one == other { one.clone() } else { format!("{one} and {other}") };
        ui.texts(&contradiction(&between.conflict, &branches));
    }
    let decisions = plural(radar.branches.iter().map(|branch| branch.new.len()).sum(), "decision");
    let branches = match radar.branches.len() {
        0 => "no other branch".to_owned(),
        1 => format!("1 other branch with {decisions} of its own"),
        count => format!("{count} other branches with {decisions} of their own"),
    };
    let contradictions = match radar.conflicts.len() {
        0 => "no contradiction".to_owned(),
        count => plural(count, "contradiction"),
    };
    ui.say(&format!("Read {} and {branches}: {contradictions}.", printable(&radar.base.name)));
}

/// What contradicts each other; `place`: where it was decided.
pub(super) fn contradiction(conflict: &Conflict, place: &str) -> Vec<Text> {
    let (word, style, mark) = match conflict.certainty {
        Certainty::Explicit => ("contradiction", LineStyle::Bad, Mark::Bad),
        Certainty::Likely => ("likely contradiction", LineStyle::Warning, Mark::Attention),
    };
    let head = Text::marked(style, mark).with(LineStyle::Strong, place).plain(if place.is_empty() { "" } else { ": " });
    let head = head.with(style, word).plain(&format!(": {}", conflict.message));
    let decisions = conflict.decisions.iter().zip(&conflict.titles).map(|(id, title)| {
        let line = Text::unmarked().plain("  ").with(LineStyle::Strong, id.short()).plain("  ").hanging();
        line.plain(title)
    });
    std::iter::once(head).chain(decisions).collect()
}
