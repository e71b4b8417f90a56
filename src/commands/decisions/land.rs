use crate::commands::change::short;
use crate::commands::{Context, Ended};
use crate::model::plural;
use crate::ops::decisions::landing::{self, Landed, Lander, Which};
use crate::ops::{Workspace, require_readable};
use crate::ui::Ui;

/// Commit the recorded decisions of this branch that are not on it yet
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad decisions land")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        // Does not read the team's decisions, so that the cost does not grow with their number.
        let workspace = Workspace::find(context.env, &context.directory)?;
        require_readable(&workspace)?;
        let landed = Lander::new(context.env, &workspace).land(Which::AndOfNone)?;
        landing::record(context.env, &workspace, &landed)?;
        if landed.commit.is_some() {
            context.say_passed_hooks();
        }
        let ui = &mut context.ui;
        if ui.json() {
            ui.value(&serde_json::json!({
                "landed": landed.decisions,
                "commit": landed.commit,
                "unlanded": landed.left.as_ref().and_then(|left| left.count).unwrap_or(0),
            }));
        } else {
            if landed.decisions.is_empty() && landed.left.is_none() {
                ui.say("There is nothing to land.");
            }
            show(ui, &landed);
        }
        Ok(u8::from(landed.left.is_some()))
    }
}

pub(super) fn show(ui: &mut Ui, landed: &Landed) {
    if let Some(commit) = &landed.commit {
        let count = plural(landed.decisions.len(), "decision");
        ui.say(&format!("{count} landed on {} in {}.", landed.branch, short(commit)));
    }
    if let Some(pending) = &landed.left {
        ui.warning(&format!("{} recorded but not on the branch yet: {}", pending.what(), pending.reason));
        ui.hint(&format!("{}; then `squad decisions land`", pending.hint));
    }
    if !landed.withdrawn.is_empty() {
        ui.warning(&landed.withdrawn.message());
        ui.hint(&landed.withdrawn.hint());
    }
}
