use super::{Context, Ended};
use crate::error::Failure;
use crate::model::{AgentState, OpenQuestion, SessionStatus, first_line, list, plural, printable};
use crate::ops::overview::status::{WatchStatus, status};
use crate::ops::run::host::WatchState;
use crate::ops::team::manifest::Due;
use crate::ops::team::workspace::restoring;

/// Show what is going on
///
/// Lists the live runs in all work trees of this repository, with their agents and sessions. `squad cancel` ends a run.
/// Exits with 3 if one of the team's files holds the markers of an unfinished merge.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad status\n  squad status --json")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let status = status(context.env, &context.directory, &context.ui.progress())?;
        let merged = status.unmerged.as_ref().map_or(Ok(0), |problem| Err(Failure::of_problem(problem)));
        if context.ui.json() {
            merged?;
            context.value(&status);
            return Ok(0);
        }
        let ui = &mut context.ui;
        let branch = status.branch.as_deref().unwrap_or("detached HEAD");
        ui.data(&format!("repository  {} ({branch})", printable(&status.repository)));
        match (&status.team, &status.in_the_way) {
            (Some(team), _) => {
                ui.data(&format!("team        {}", printable(&team.folder)));
                if let Some(due) = &team.upgrade {
                    ui.data(&format!("upgrade     {}", upgrade(due)));
                }
                if team.exports_stale > 0 {
                    let files = plural(team.exports_stale, "file");
                    ui.data(&format!("exports     {files} behind the team's own: `squad upgrade`"));
                }
            }
            (None, Some(path)) => {
                ui.data(&format!(
                    "team        none; {path} is in the way, because it is not a folder: move it, then `squad init`"
                ));
            }
            (None, None) => ui.data(&match status.left_out {
                Some(folder) => format!("team        {folder}, not in this work tree: {}", restoring(folder)),
                None => "team        none; `squad init` installs one".to_owned(),
            }),
        }
        ui.data(&format!("ledger      {}", plural(status.ledger.entries, "entry")));
        if !status.withdrawn.is_empty() {
            ui.data(&format!("decisions   {}", printable(&status.withdrawn.message())));
            ui.hint(&status.withdrawn.hint());
        }
        if let Some(WatchStatus { watcher, state }) = &status.watch {
            let state = state.as_ref().map_or_else(|| "starting its engine".to_owned(), watch_state);
            ui.data(&printable(&format!("watch       process {}, {state}", watcher.pid)));
        }
        for (run, advice) in &status.runs_lost {
            ui.data(&match advice {
                Some(advice) => format!("runs        {run} was killed; {advice}; `squad log {run}` shows what it did"),
                None => format!("runs        {run} was killed; this team's ledger has nothing of it"),
            });
        }
        if status.runs_live.is_empty() && status.runs_lost.is_empty() {
            ui.data("runs        none");
        }
        for live in &status.runs_live {
            ui.data(&format!("runs        {} {}", live.run.run, printable(&first_line(&live.run.message, 60))));
            for question in live.questions.iter().filter(|question| question.agent.is_none()) {
                ui.data(&format!("            {}", open_question(question)));
            }
            for (agent, state) in &live.agents {
                let session =
                    status.sessions.iter().find(|one| one.run.as_ref() == Some(&live.run.run) && one.agent == *agent);
                ui.data(&format!("            {agent:<12} {}", agent_state(*state, session)));
                for question in live.questions.iter().filter(|question| question.agent.as_ref() == Some(agent)) {
                    ui.data(&format!("            {:<12} {}", "", open_question(question)));
                }
            }
        }
        merged
    }
}

fn open_question(question: &OpenQuestion) -> String {
    let (since, text) = (question.since.strftime("%H:%M:%S"), first_line(&question.short(), 100));
    printable(&format!("waits for an answer since {since} UTC: {text}"))
}

fn upgrade(Due { release, newest }: &Due) -> String {
    match release < newest {
        true => format!("from release {release} to {newest} is due: `squad upgrade`"),
        false => format!("a newer squad wrote its files: release {release}; this squad knows {newest}"),
    }
}

fn watch_state(state: &WatchState) -> String {
    let WatchState { engine, engine_version: version, connection, sessions, .. } = state;
    let sessions = list(sessions.iter().map(|(agent, state)| format!("{agent} {state}")));
    let sessions = if sessions.is_empty() { "no session yet".to_owned() } else { sessions };
    let version = if version.is_empty() { String::new() } else { format!(" {version}") };
    format!("{engine}{version} {connection}; {sessions}")
}

fn agent_state(state: AgentState, session: Option<&SessionStatus>) -> String {
    let state = match state {
        AgentState::Waiting => "waiting".to_owned(),
        AgentState::Working => "working".to_owned(),
        AgentState::Ended(outcome) => outcome.to_string(),
    };
    let Some(SessionStatus { model, messages, tokens, last_activity, .. }) = session else { return state };
    let (messages, at) = (plural(*messages as usize, "message"), last_activity.strftime("%H:%M:%S"));
    let model = if model.is_empty() { String::new() } else { format!(" on {model}") };
    printable(&format!("{state}{model}, {messages}, {tokens} tokens, last active {at} UTC"))
}
