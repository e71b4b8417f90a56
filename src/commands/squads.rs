use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::json;

use super::status::seconds_since;
use super::{Context, Ended};
use crate::model::{ago, plural};
use crate::ops::run::squads::{self, Squad, SquadActivity, SquadState};
use crate::ops::team::projects::{self, Scan};
use crate::view::{LineStyle, Mark, Text};

/// List your projects with a team
///
/// squad notes where a project is when a command first works with its team, in your data folder; nothing else depends on
/// it. A project is called by the name of its folder, or by more of its path if there are two: `work/shop`. With
/// `-C @NAME`, every command works in that project from anywhere. `-C ./@NAME` names a folder.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad squads\n  squad squads shop\n  squad squads --scan ~/code\n  \
                        squad status -C @shop")]
pub(super) struct Args {
    /// Show one project
    #[arg(conflicts_with = "scan")]
    name: Option<String>,
    /// Find the projects below DIR, and forget those that are gone
    #[arg(long, value_name = "DIR")]
    scan: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let env = context.env;
        if let Some(directory) = &self.scan {
            let scan = projects::scan(env, &context.directory.join(directory))?;
            say(context, &scan);
        }
        let now = env.clock.now();
        let (squads, is_one) = match &self.name {
            Some(name) => (vec![squads::one(env, name.trim_start_matches('@'))?], true),
            None => (squads::all(env), false),
        };
        let ui = &mut context.ui;
        if ui.json() {
            context.value(json!({ "squads": squads }));
        } else if is_one {
            squads.iter().for_each(|squad| ui.texts(&details(squad, now)));
        } else {
            ui.texts(&listed(&squads, now));
            if squads.is_empty() {
                ui.notice("no project with a team is known");
                ui.hint("`squad squads --scan DIR` looks for them below DIR");
            }
        }
        Ok(0)
    }
}

fn say(context: &mut Context<'_>, scan: &Scan) {
    let shown = |path| projects::shown(context.env, path);
    let gone: Vec<String> =
        scan.forgotten.iter().map(|path| format!("forgot {}: there is no team", shown(path))).collect();
    let ui = &mut context.ui;
    ui.notice(&format!("found {}", plural(scan.added, "new project")));
    gone.iter().for_each(|line| ui.notice(line));
    if !scan.is_whole {
        ui.warning("there are too many folders: not all were looked into");
        ui.hint("name a folder nearer to your projects");
    }
}

fn marked(squad: &Squad) -> Text {
    match squad.state {
        SquadState::Working => Text::marked(LineStyle::Strong, Mark::Working),
        SquadState::Idle => Text::unmarked(),
        SquadState::Error => Text::marked(LineStyle::Bad, Mark::Bad),
    }
}

fn listed(squads: &[Squad], now: Timestamp) -> Vec<Text> {
    let width = |text: fn(&Squad) -> &str| squads.iter().map(|squad| text(squad).chars().count()).max().unwrap_or(0);
    let (names, paths) = (width(|squad| &squad.handle), width(|squad| &squad.shown_path));
    let line = |squad: &Squad| {
        let line = marked(squad).with(LineStyle::Strong, &squad.handle).filled(2 + names).plain("  ").hanging();
        let line = line.plain(state(squad)).filled(4 + names + 7).plain("  ");
        let line = line.with(LineStyle::Faint, &squad.shown_path).filled(6 + names + 7 + paths).plain("  ");
        line.plain(&squad.problem.clone().unwrap_or_else(|| parts(&squad.activity, now).join(", ")))
    };
    squads.iter().map(line).collect()
}

fn state(squad: &Squad) -> &'static str {
    match squad.state {
        SquadState::Working => "working",
        SquadState::Idle => "idle",
        SquadState::Error => "error",
    }
}

/// What is worth a word in a list.
fn parts(activity: &SquadActivity, now: Timestamp) -> Vec<String> {
    let mut parts = Vec::new();
    let mut add = |count: usize, noun: &str, what: &str| {
        if count > 0 {
            parts.push(format!("{}{what}", plural(count, noun)));
        }
    };
    add(activity.sessions, "session", "");
    add(activity.decisions, "decision", "");
    add(activity.unlanded, "decision", " not landed");
    add(activity.lockouts, "lockout", "");
    add(activity.unfinished_runs, "run", " not finished");
    parts.push(match activity.last_activity {
        Some(last) => ago(seconds_since(last, now)),
        None => "never used".to_owned(),
    });
    parts
}

fn details(squad: &Squad, now: Timestamp) -> Vec<Text> {
    const LABEL: usize = 16;
    let head = marked(squad).with(LineStyle::Strong, &squad.handle).plain(&format!(", {}", state(squad)));
    let mut lines = vec![head.with(LineStyle::Faint, &format!("; {}", squad.shown_path))];
    let mut row = |label: &str, text: String| {
        lines.push(Text::unmarked().plain(label).filled(LABEL).hanging().plain(&text));
    };
    if let Some(problem) = &squad.problem {
        row("problem", problem.clone());
        return lines;
    }
    let SquadActivity { created, last_activity, sessions, decisions, unlanded, lockouts, unfinished, .. } =
        &squad.activity;
    if let Some((created, last)) = created.zip(*last_activity) {
        row("since", created.strftime("%Y-%m-%d").to_string());
        row("last used", ago(seconds_since(last, now)));
    }
    row("sessions", sessions.to_string());
    row("decisions", format!("{decisions} in force, {unlanded} not landed"));
    row("lockouts", lockouts.to_string());
    let more = |run| format!("; `squad orchestrate --resume {run} -C @{}` resumes the newest", squad.handle);
    row(
        "not finished",
        format!(
            "{}{}",
            plural(squad.activity.unfinished_runs, "run"),
            unfinished.as_ref().map(more).unwrap_or_default()
        ),
    );
    lines
}
