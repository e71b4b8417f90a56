use crate::commands::change::short;
use crate::commands::{Context, Ended};
use crate::model::{Decision, plural};
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
            show(ui, &landed, "decision");
        }
        Ok(u8::from(landed.left.is_some()))
    }
}

fn show(ui: &mut Ui, landed: &Landed, noun: &str) {
    if let Some(commit) = &landed.commit {
        let count = plural(landed.decisions.len(), noun);
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

/// Prints the id of a new decision or note, then tries to land it. It is already durable, so a failure to land is only a warning.
pub(in crate::commands) fn new(context: &mut Context<'_>, workspace: &Workspace, decision: &Decision) {
    let noun = if decision.note.is_some() { "note" } else { "decision" };
    let ui = &mut context.ui;
    if !ui.json() {
        ui.data(decision.id.as_str());
    }
    let lander = Lander::new(context.env, workspace).of_new(&decision.id);
    let landed = lander.land(Which::OfThisBranch).and_then(|landed| {
        landing::record(context.env, workspace, &landed)?;
        Ok(landed)
    });
    if ui.json() {
        let commit = landed.as_ref().ok().and_then(|landed| landed.commit.clone());
        let reason = match &landed {
            Ok(landed) => landed.left.as_ref().map(|left| left.reason.clone()),
            Err(failure) => Some(failure.message.clone()),
        };
        ui.value(&serde_json::json!({"id": decision.id, "commit": commit, "unlanded": reason}));
    }
    if landed.as_ref().is_ok_and(|landed| landed.commit.is_some()) {
        context.say_passed_hooks();
    }
    let ui = &mut context.ui;
    match &landed {
        _ if ui.json() => {}
        Ok(landed) => show(ui, landed, noun),
        Err(failure) => {
            ui.warning(&format!("the {noun} is recorded but not on the branch yet: {}", failure.message));
            failure.hint.iter().for_each(|hint| ui.hint(hint));
        }
    }
}
