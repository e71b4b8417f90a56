use std::path::Path;

use jiff::Timestamp;

use super::{Context, Ended};
use crate::env::{files::Measured, real};
use crate::error::Failure;
use crate::model::{
    AgentState, LiveCheck, OpenQuestion, SessionStatus, Slug, abbreviated, ago, clock, first_line, list, megabytes,
    plural,
};
use crate::ops::overview::status::{RunStatus, Status, UnmergedRun, WatchStatus, status};
use crate::ops::run::clones::CloneStatus;
use crate::ops::run::host::WatchState;
use crate::ops::team::manifest::Due;
use crate::ops::team::workspace::restoring;
use crate::ui::Ui;
use crate::view::{LineStyle, Mark, Text, mark_of, used};

/// Less than these bytes of what runs have left is not worth a line.
const MENTIONED: u64 = 1_000_000;
/// Rows of runs with work that is on no branch.
const UNMERGED: usize = 5;
/// Columns of a mark and of what it is about.
const LABEL: usize = 13;

/// Show what is going on
///
/// Shows the live runs in all work trees of this repository with their agents, the newest run, and what waits for you,
/// each with the command to type. `squad cancel` ends a run. Exits with 3 if one of the team's files holds the markers of
/// an unfinished merge.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  squad status\n  squad status --json")]
pub(super) struct Args {
    /// `squad` alone: where there is no team, it says how to begin.
    #[arg(skip)]
    pub(super) is_first: bool,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let status = status(context.env, &context.directory);
        let is_team =
            |status: &Status| status.team.is_some() || status.in_the_way.is_some() || status.left_out.is_some();
        let status = match status {
            Ok(status) if self.is_first && !is_team(&status) => return begin(context, Some(&status.repository)),
            Err(_) if self.is_first && !is_below_repository(&context.directory) => return begin(context, None),
            status => status?,
        };
        let merged = status.unmerged.as_ref().map_or(Ok(0), |problem| Err(Failure::of_problem(problem)));
        if context.ui.json() {
            merged?;
            context.value(&status);
            return Ok(0);
        }
        let now = context.env.clock.now();
        let ui = &mut context.ui;
        ui.texts(&[headline(&status)]);
        let mut page = Rows::default();
        live_rows(&mut page, &status, now);
        standing_rows(&mut page, &status, now);
        waiting_rows(&mut page, &status);
        let waits = page.rows.iter().any(|row| row.mark == Mark::Attention);
        page.show(ui);
        if !waits && status.runs_live.is_empty() && status.unmerged.is_none() {
            ui.texts(&[Text::marked(LineStyle::Good, Mark::Good).plain("nothing waits")]);
        }
        merged
    }
}

/// What to type where there is no team, or no repository.
fn begin(context: &mut Context<'_>, repository: Option<&str>) -> Ended {
    let place = repository.map_or_else(|| "a git repository".to_owned(), |path| base_name(path).to_owned());
    let commands = [
        ("squad demo", "watch a team work; no login, no network".to_owned()),
        ("squad init", format!("install a team in {place}")),
        ("squad help", "all commands, and topics".to_owned()),
    ];
    let title = Text::default().plain("squad runs a team of AI coding agents that lives in your git repository.");
    let rows = commands
        .map(|(command, what)| Text::unmarked().with(LineStyle::Strong, command).filled(LABEL + 2).plain(&what));
    context.ui.texts(&[title]);
    context.ui.texts(&rows);
    Ok(0)
}

fn is_below_repository(folder: &Path) -> bool {
    real(folder).ancestors().any(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// The last part of a path of either system.
fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path)
}

/// A mark, what it is about, what is the case, and what to type.
struct Row {
    mark: Mark,
    label: &'static str,
    text: String,
    command: String,
}

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    /// Lines of their own, which come first.
    live: Vec<Text>,
}

impl Rows {
    fn add(&mut self, mark: Mark, label: &'static str, text: &str, command: &str) {
        self.rows.push(Row { mark, label, text: text.to_owned(), command: command.to_owned() });
    }

    fn waits(&mut self, text: &str, command: &str) {
        self.add(Mark::Attention, "waits", text, command);
    }

    fn show(&self, ui: &mut Ui) {
        /// Longer texts do not push the commands of all others aside.
        const WIDEST: usize = 48;
        ui.texts(&self.live);
        let widths = self.rows.iter().filter(|row| !row.command.is_empty()).map(|row| row.text.chars().count());
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or_default();
        let mut before = None;
        for row in &self.rows {
            let is_same = before == Some((row.mark, row.label));
            let line = match row.mark {
                _ if is_same => Text::unmarked(),
                Mark::Neutral => Text::unmarked(),
                Mark::Attention => Text::marked(LineStyle::Warning, row.mark),
                Mark::Bad => Text::marked(LineStyle::Bad, row.mark),
                _ => Text::marked(LineStyle::Good, row.mark),
            };
            let line = line.plain(if is_same { "" } else { row.label }).filled(LABEL).hanging().plain(&row.text);
            let line = match row.command.is_empty() {
                true => line,
                false => line.filled(LABEL + width).plain("   ").with(LineStyle::Strong, &row.command),
            };
            ui.texts(&[line]);
            before = Some((row.mark, row.label));
        }
    }
}

/// `shop, main at f8e0c9 · 6 members · copilot · 62 ledger entries`
fn headline(status: &Status) -> Text {
    let name = base_name(&status.repository);
    let branch = status.branch.as_deref().unwrap_or("detached HEAD");
    let commit = status.commit.as_deref().and_then(|commit| commit.get(..6));
    let commit = commit.map_or_else(|| ", no commit yet".to_owned(), |commit| format!(" at {commit}"));
    let team = status.team.iter().flat_map(|team| {
        let place = team.folder.rsplit_once('/').map(|(place, _)| format!(" in {place}")).unwrap_or_default();
        [Some(format!("{}{place}", plural(team.members, "member"))), status.engine.clone()]
    });
    let entries = team.flatten().chain([plural(status.ledger.entries, "ledger entry")]);
    let entries = entries.map(|entry| format!(" · {entry}")).collect::<String>();
    Text::default().with(LineStyle::Strong, name).plain(&format!(", {branch}{commit}{entries}"))
}

fn live_rows(page: &mut Rows, status: &Status, now: Timestamp) {
    for live in &status.runs_live {
        let step = live.step.map(|step| format!(", step {step}")).unwrap_or_default();
        let line = Text::marked(LineStyle::Strong, Mark::Working).plain("run ");
        let line = line.with(LineStyle::Strong, live.run.run.short()).plain(&step).plain(", ");
        let time = clock(seconds_since(live.run.started, now).saturating_sub(live.waited as u64));
        page.live.push(line.with(LineStyle::Faint, &time).plain(": ").plain(&first_line(&live.run.message, 60)));
        if let Some(LiveCheck { command, since }) = &live.check {
            let line = Text::marked(LineStyle::Strong, Mark::Working).with(LineStyle::Strong, "check").filled(LABEL);
            let took = clock(seconds_since(*since, now));
            page.live.push(line.hanging().plain(&format!("runs {}, {took}", first_line(command, 60))));
        }
        for question in asked(live, None) {
            page.live.push(asks("squad", question, now));
        }
        for (agent, state) in &live.agents {
            let of_agent = |one: &&SessionStatus| one.run.as_ref() == Some(&live.run.run) && one.agent == *agent;
            let session = status.sessions.iter().map(|known| &known.session).find(of_agent);
            // An agent that asks does not work.
            let mut questions = asked(live, Some(agent)).peekable();
            if questions.peek().is_none() {
                let line = match state {
                    AgentState::Working => Text::marked(LineStyle::Strong, Mark::Working),
                    AgentState::Ended(outcome) => {
                        let (mark, style) = mark_of(*outcome);
                        Text::marked(style, mark)
                    }
                    _ => Text::marked(LineStyle::Faint, Mark::Waiting),
                };
                let line = line.with(LineStyle::Strong, agent.as_str()).filled(LABEL).hanging();
                let is_its = |clone: &&CloneStatus| clone.run == live.run.run && clone.agent == agent.as_str();
                let text = match status.clones.iter().find(is_its) {
                    Some(clone) if *state == AgentState::Waiting && !clone.ready => "waits for its clone".to_owned(),
                    _ => agent_state(*state, session),
                };
                page.live.push(line.plain(&text));
            }
            questions.for_each(|question| page.live.push(asks(agent.as_str(), question, now)));
        }
    }
}

/// The open questions of an agent, or of the run itself.
fn asked<'s>(live: &'s RunStatus, agent: Option<&'s Slug>) -> impl Iterator<Item = &'s OpenQuestion> {
    live.questions.iter().filter(move |question| question.agent.as_ref() == agent)
}

fn asks(who: &str, question: &OpenQuestion, now: Timestamp) -> Text {
    let line = Text::marked(LineStyle::Warning, Mark::Attention).with(LineStyle::Strong, who).filled(LABEL).hanging();
    let waited = clock(seconds_since(question.since, now));
    line.plain(&format!("waits for your answer, {waited}: {}", first_line(&question.short(), 100)))
}

/// What is there, and waits for nobody.
fn standing_rows(page: &mut Rows, status: &Status, now: Timestamp) {
    if let Some(last) = &status.last {
        let ended = last.ended.unwrap_or(last.started);
        let (word, ago) = (last.word(), ago(seconds_since(ended, now)));
        let mark = match last.status.as_str() {
            "completed" if last.check_failed => Mark::Attention,
            "completed" => Mark::Good,
            _ => Mark::Bad,
        };
        let changed = match last.lines {
            (0, 0) => String::new(),
            _ if last.undone => ", undone".to_owned(),
            (added, removed) => format!(", +{added} -{removed}"),
        };
        let checked = match last.verified {
            Some(true) => ", check passed",
            Some(false) if last.status != "completed" => ", check failed",
            _ => "",
        };
        let text = format!("{} {word} {ago}{changed}{checked}: {}", last.run.short(), first_line(&last.message, 60));
        page.add(mark, "last run", &text, "");
    }
    if let Some(WatchStatus { watcher, state }) = &status.watch {
        let state = state.as_ref().map_or_else(|| "starting its engine".to_owned(), watch_state);
        page.add(Mark::Good, "watch", &format!("process {}, {state}", watcher.pid), "");
    }
    if let Some(used) = status.today.as_ref().and_then(used) {
        page.add(Mark::Neutral, "today", &used, "squad log --usage");
    }
    for CloneStatus { run, agent, size, unmerged, .. } in &status.clones {
        let more = if size.is_whole { "" } else { "more than " };
        let text = format!("{agent} of run {}, {more}{}", run.short(), megabytes(size.bytes));
        match unmerged {
            true => page.add(
                Mark::Neutral,
                "clones",
                &format!("{text}, not merged"),
                &format!("squad merge {}", run.short()),
            ),
            // Those of a run are not removed before it ends.
            false if status.runs_live.iter().any(|live| live.run.run == *run) => {
                page.add(Mark::Neutral, "clones", &text, "");
            }
            false => page.add(Mark::Neutral, "clones", &text, "squad gc"),
        }
    }
    for UnmergedRun { run, agents } in status.not_merged.iter().take(UNMERGED) {
        let text = format!("{} of run {}, gone; the work is not merged", list(agents), run.short());
        page.add(Mark::Neutral, "clones", &text, &format!("squad merge {}", run.short()));
    }
    if let more @ 1.. = status.not_merged.len().saturating_sub(UNMERGED) {
        let text = format!("{} more with work that is not merged", plural(more, "run"));
        page.add(Mark::Neutral, "clones", &text, "squad gc --dry-run");
    }
    let Measured { bytes, is_whole, .. } = &status.left_by_runs;
    if *bytes >= MENTIONED {
        let more = if *is_whole { "" } else { "more than " };
        page.add(
            Mark::Neutral,
            "leftovers",
            &format!("{more}{} of sessions, output and caches", megabytes(*bytes)),
            "squad gc",
        );
    }
}

/// What a person can do something about, with the command that does it.
fn waiting_rows(page: &mut Rows, status: &Status) {
    for used_up in &status.quotas {
        page.add(Mark::Attention, "quota", &used_up.sentence(), "");
    }
    if let Some(reason) = &status.quotas_unknown {
        page.add(Mark::Attention, "quota", reason, "");
    }
    match (&status.team, &status.in_the_way) {
        (Some(team), _) => {
            match &team.upgrade {
                Some(Due { release, newest }) if release < newest => {
                    page.waits(&format!("an upgrade from release {release} to {newest} is due"), "squad upgrade");
                }
                Some(due) => page.add(Mark::Attention, "team", &newer(due), ""),
                None => {}
            }
            if team.exports_stale > 0 {
                let files = plural(team.exports_stale, "exported file");
                page.waits(&format!("{files} behind the team's own"), "squad upgrade");
            }
        }
        (None, Some(path)) => {
            let text = format!("none; {path} is in the way, because it is not a folder: move it, then `squad init`");
            page.add(Mark::Attention, "team", &text, "");
        }
        (None, None) => match status.left_out {
            Some(folder) => {
                let text = format!("{folder}, not in this work tree: {}", restoring(folder));
                page.add(Mark::Attention, "team", &text, "");
            }
            None => page.add(Mark::Attention, "team", "none; `squad init` installs one", ""),
        },
    }
    if status.uncommitted > 0
        && let Some(last) = &status.last
    {
        let files = plural(status.uncommitted, "file");
        let verb = if status.uncommitted == 1 { "is" } else { "are" };
        page.waits(&format!("{files} of it {verb} not committed"), &format!("squad diff {}", last.run.short()));
    }
    match status.unlanded.as_slice() {
        [] => {}
        [(id, branch)] => {
            let made_for = branch.as_ref().map(|branch| format!(" for {branch}")).unwrap_or_default();
            page.waits(
                &format!("decision {} has not landed{made_for}", id.as_str().get(..6).unwrap_or(id.as_str())),
                "squad decisions land",
            );
        }
        many => page.waits(&format!("{} have not landed", plural(many.len(), "decision")), "squad decisions land"),
    }
    if !status.withdrawn.is_empty() {
        page.waits(&status.withdrawn.message(), &status.withdrawn.hint());
    }
    for (run, advice) in &status.runs_lost {
        let text = format!("run {} was killed", run.short());
        match advice {
            // A command stands by itself.
            Some(advice) => page.waits(&text, advice.split('`').nth(1).unwrap_or(advice)),
            None => page.waits(&format!("{text}; this team's ledger has nothing of it"), ""),
        }
    }
    if status.has_remote && status.ledger.unsynced > 0 {
        let entries = plural(status.ledger.unsynced, "ledger entry");
        let verb = if status.ledger.unsynced == 1 { "is" } else { "are" };
        page.waits(&format!("{entries} {verb} not shared"), "squad sync");
    }
    if let Some(name) = &status.engine_missing {
        page.add(Mark::Attention, "engine", &format!("{name} is not installed"), "squad engines");
    }
}

fn newer(Due { release, newest }: &Due) -> String {
    format!("a newer squad wrote its files: release {release}; this squad knows {newest}")
}

pub(super) fn seconds_since(then: Timestamp, now: Timestamp) -> u64 {
    now.as_second().saturating_sub(then.as_second()).max(0).unsigned_abs()
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
        AgentState::Waiting => "waits".to_owned(),
        AgentState::WaitingQuota => "waits for its engine's quota".to_owned(),
        AgentState::WaitingAnswer => "waits for an answer".to_owned(),
        AgentState::WaitingConnection => "waits for its connection".to_owned(),
        AgentState::Working => "works".to_owned(),
        AgentState::Ended(outcome) => outcome.to_string(),
    };
    let Some(SessionStatus { model, messages, tokens, .. }) = session else { return state };
    let model = if model.is_empty() { String::new() } else { format!(" on {model}") };
    let tokens = if *tokens == 0 { String::new() } else { format!(", {} tokens", abbreviated(*tokens)) };
    format!("{state}{model}, {}{tokens}", plural(*messages as usize, "message"))
}
