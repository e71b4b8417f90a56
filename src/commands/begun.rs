//! Messages about earlier commands that were stopped before they were done.

use super::Context;
use super::change::short;
use crate::error::Failure;
use crate::git::Outcome;
use crate::model::list;
use crate::ops::change::interrupted;

/// Finishes or undoes a stopped command; called before every command that writes to the branch.
pub(super) fn finish(context: &mut Context<'_>) -> Result<(), Failure> {
    let Some(recovered) = interrupted::finish(context.env, &context.directory)? else { return Ok(()) };
    let ui = &mut context.ui;
    let command = format!("`squad {}`", recovered.kind);
    let branch = recovered.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    match &recovered.outcome {
        Outcome::Finished { commit: Some(commit) } => {
            ui.say(&format!("Finished {command}, which was interrupted{branch}: committed in {}.", short(commit)));
        }
        Outcome::Finished { commit: None } => ui.say(&format!("Finished {command}, which was interrupted.")),
        Outcome::Undone { reason, hint } => {
            ui.warning(&format!("{command} was interrupted{branch} and has been undone: {reason}"));
            ui.hint(&format!("{hint}; then {command}"));
        }
        // Reported after the command, by `report`.
        Outcome::Waits { .. } => {}
    }
    if !recovered.left.is_empty() {
        let files = list(recovered.left.iter().map(|path| format!("`{path}`")));
        ui.warning(&format!("you changed {files} since then; your changes stay"));
    }
    context.recovered = Some(recovered);
    Ok(())
}

/// Warns about a stopped command; called after every command.
pub(super) fn report(context: &mut Context<'_>) {
    let ui = &mut context.ui;
    match interrupted::find(context.env, &context.directory) {
        Ok(None) => {}
        Ok(Some(begun)) => {
            let branch = begun.branch.map(|branch| format!(" on {branch}")).unwrap_or_default();
            ui.warning(&format!("`squad {}` was interrupted{branch}", begun.command));
            let waits = context.recovered.as_ref().and_then(|recovered| match &recovered.outcome {
                Outcome::Waits { reason, hint } => Some(format!("{reason}: {hint}; then ")),
                _ => None,
            });
            ui.hint(&format!("{}`squad {}` finishes it", waits.unwrap_or_default(), begun.command));
        }
        Err(failure) => {
            ui.warning(&failure.message);
            if let Some(hint) = &failure.hint {
                ui.hint(hint);
            }
        }
    }
}
