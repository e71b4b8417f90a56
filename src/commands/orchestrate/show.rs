//! Shows a run, and its dry run.

use crate::commands::route::page;
use crate::commands::{Context, Ended, say_passed_hooks};
use crate::model::{Forecast, Outcome, Team, ToolChoice, list, printable};
use crate::ops::Project;
use crate::ops::run::orchestrate;
use crate::ops::run::order::{Ended as RunEnded, Order};
use crate::ops::run::preview::Preview;
use crate::ops::run::watch::{self, Asked};
use crate::policy::Permissions;
use crate::ui::Ui;
use crate::view::{Lines, Screen, Terminal, View, asker};

/// Runs an order, shows it and reports its end; also used by `squad demo`. `stays`: its repository is there afterwards.
pub(in crate::commands) fn perform<'a>(
    mut context: Context<'a>,
    project: &Project,
    mut order: Order,
    stays: bool,
) -> (Context<'a>, Ended) {
    let ask = order.permissions == Permissions::Ask && context.ui.can_ask();
    let mut terminal = None;
    let mut view = if context.ui.json() {
        View::Json(context.ui)
    } else {
        let past = order.resumed.as_ref().map_or(&[][..], |resumed| &resumed.past.events);
        let lines = Lines::new(context.ui).after(past);
        let lines = if stays { lines } else { lines.of_passing_run() };
        if ask {
            order.ask = Some(asker(lines.terminal()));
            terminal = Some(lines.terminal());
        }
        View::Lines(lines)
    };
    let asked = watch::orchestrate(context.env, project, &order, &mut view);
    let (view, ended) = match asked {
        Asked::Ran(ended) => (view, *ended),
        Asked::Nobody => orchestrate::run(context.env, project, order, view),
        Asked::Declined(reason) => {
            say_declined(&mut view, &reason);
            orchestrate::run(context.env, project, order, view)
        }
    };
    terminal.iter().for_each(Terminal::settle);
    context.ui = view.into_screen();
    let code = ended.and_then(|ended| {
        let code = epilogue(&mut context.ui, project, &ended);
        match ended.error {
            None => Ok(code),
            // `run.completed` is the last line of JSON, with the error if no agent started.
            Some(failure) if context.ui.json() => {
                if ended.status == Outcome::Lost {
                    context.ui.warning(&failure.message);
                    failure.hint.iter().for_each(|hint| context.ui.hint(hint));
                }
                Ok(failure.kind.exit_code())
            }
            Some(failure) => Err(failure),
        }
    });
    (context, code)
}

pub(super) fn say_declined<S: Screen>(view: &mut View<S>, reason: &str) {
    view.say(&format!("not using the sessions of `squad watch`: {reason}"));
}

/// Reports what the run's events did not, and returns the exit code.
pub(super) fn epilogue(ui: &mut Ui, project: &Project, ended: &RunEnded) -> u8 {
    if ended.has_committed {
        say_passed_hooks(ui, &project.repository);
    }
    if let Some(left) = &ended.unlanded {
        ui.warning(&format!("{} recorded but not on the branch yet: {}", left.what(), left.reason));
        ui.hint(&format!("{}; then `squad decisions land`", left.hint));
    }
    if let Some(reason) = &ended.unrecorded {
        ui.warning(&format!("the end of the run could not be recorded: {reason}"));
        ui.hint(&format!("squad orchestrate --resume {}", ended.run));
    }
    if ended.refused > 0 && ui.is_quiet() && !ui.json() {
        ui.warning(&format!("{}: {}", ended.status, refusals(ended.refused)));
    }
    match ended.status {
        Outcome::Completed => u8::from(ended.unrecorded.is_some()),
        Outcome::Failed | Outcome::Claimed | Outcome::TimedOut | Outcome::Skipped | Outcome::Lost => 1,
        Outcome::Stopped => 5,
        Outcome::Cancelled => 130,
    }
}

fn refusals(count: u64) -> String {
    if count == 1 { "1 request was refused".to_owned() } else { format!("{count} requests were refused") }
}

/// Shows a dry run.
pub(super) fn show(ui: &mut Ui, team: &Team, preview: &Preview, message: &str) -> u8 {
    if ui.json() {
        ui.value(preview);
        return 0;
    }
    page::show(ui, team, &preview.plan, false, message);
    if !preview.attachments.is_empty() {
        let paths = preview.attachments.iter().map(|attachment| &attachment.path);
        ui.data(&printable(&format!("\nAttached: {}", list(paths))));
    }
    if let Some(answer) = &preview.answer {
        ui.data(&format!("\nThe answer, without any engine:\n\n{}", printable(answer)));
    }
    if preview.sessions.is_empty() {
        return 0;
    }
    ui.data("\nSessions:");
    for session in &preview.sessions {
        let tools = match &session.tools {
            ToolChoice::All => "all of the engine's tools".to_owned(),
            ToolChoice::Nothing => "no tools".to_owned(),
            ToolChoice::ReadOnly => "the engine's tools that only read".to_owned(),
            ToolChoice::Only(tools) if tools.is_empty() => "none of the engine's tools".to_owned(),
            ToolChoice::Only(tools) => list(tools),
        };
        let model = &session.model.id;
        let line =
            format!("  {:<12} {model}, {tools}, {:.1} KB of prompt", session.agent, session.bytes as f64 / 1000.0);
        ui.data(&printable(&line));
        if !session.squad_tools.is_empty() {
            ui.data(&format!("  {:<12} and {}", "", list(&session.squad_tools)));
        }
    }
    let forecast = preview.forecast.as_ref();
    let forecast = forecast.map_or_else(|| "none; fewer than 5 runs like it are known".to_owned(), Forecast::text);
    ui.data(&format!("\nForecast: {forecast}"));
    0
}
