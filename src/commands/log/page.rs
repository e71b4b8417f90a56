use std::ops::ControlFlow;

use super::while_read;
use crate::model::{End, EventKind, RunId, Slug, Usage, failure, first_line, indented, list, printable, run_end};
use crate::ops::ledger::log::RunSummary;
use crate::record::{Entry, Read};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui};

/// `is_filtered`: the runs were selected by agent or time.
pub(super) fn runs(ui: &mut Ui, runs: &[RunSummary], is_filtered: bool) {
    match (runs, is_filtered) {
        ([], true) => ui.say("No run matches."),
        ([], false) => {
            ui.say("There are no runs yet.");
            ui.hint("squad orchestrate \"what to do\"");
        }
        _ => {}
    }
    for run in runs {
        let id = ui.out_paint(STRONG, run.run.as_str());
        let style = match run.status.as_str() {
            "completed" => GOOD,
            "running" | "unknown" => STRONG,
            _ => BAD,
        };
        let status = ui.out_paint(style, &format!("{:<9}", run.status.replace('_', " ")));
        let agents: Vec<&str> = run.agents.keys().map(|slug| slug.as_str()).collect();
        let undone = if run.undone { "(undone) " } else { "" };
        ui.data(&format!("{id}  {status}  {undone}{}", printable(&first_line(&run.message, 70))));
        if !agents.is_empty() {
            let line = format!("{:24}{}  {:.1} s", "", printable(&agents.join(", ")), run.usage.seconds);
            ui.data(&ui.out_paint(FAINT, &line));
        }
    }
}

/// Shows entries, one by one.
pub(super) struct Page<'u> {
    ui: &'u mut Ui,
    /// The run of the last entry shown, if several runs are shown; `Some(None)`: an entry of no run.
    run: Option<Option<RunId>>,
    is_of_one_run: bool,
}

impl<'u> Page<'u> {
    pub(super) fn of_run(ui: &'u mut Ui, run: &RunId) -> Self {
        if !ui.json() {
            ui.data(&ui.out_paint(STRONG, &format!("run {run}")));
        }
        Self { ui, run: None, is_of_one_run: true }
    }

    pub(super) fn of_all(ui: &'u mut Ui) -> Self {
        Self { ui, run: None, is_of_one_run: false }
    }

    /// Breaks when nobody reads the output any more.
    pub(super) fn show(&mut self, path: &str, read: Read) -> ControlFlow<()> {
        match (self.ui.json(), read) {
            (true, read) => self.ui.value(&as_json(path, read)),
            (false, Read::Entry(entry)) => self.entry(*entry),
            (false, Read::Newer { version }) => {
                self.ui.data(&format!("          entry of a newer squad (version {version}): {path}"));
            }
            (false, Read::Damaged { reason }) => {
                self.ui.data(&format!("          damaged entry: {path}: {reason}"));
            }
        }
        while_read(self.ui)
    }

    fn entry(&mut self, entry: Entry) {
        // The end of a call tells the rest, and the end of its agent if the call has none.
        if entry.kind == "tool.started" && !self.ui.is_verbose() {
            return;
        }
        if !self.is_of_one_run && self.run.as_ref() != Some(&entry.run) {
            let title = entry.run.as_ref().map_or_else(|| "no run".to_owned(), |run| format!("run {run}"));
            self.ui.data(&self.ui.out_paint(STRONG, &printable(&title)));
            self.run = Some(entry.run.clone());
        }
        let kind = entry.known_kind();
        let time = self.ui.out_paint(FAINT, &entry.at.strftime("%H:%M:%S").to_string());
        let agent = entry.agent.as_ref().map_or("squad", |agent| agent.as_str());
        let line = format!("{agent:<12} {:<20} {}", entry.kind, detail(kind, &entry.text));
        for (number, line) in printable(line.trim_end()).lines().enumerate() {
            self.ui.data(&if number == 0 { format!("{time}  {line}") } else { format!("            {line}") });
        }
        if self.ui.is_verbose() && entry.text.lines().count() > 1 {
            for line in entry.text.lines() {
                self.ui.data(&format!("            {}", printable(line)));
            }
        }
    }
}

fn as_json(path: &str, read: Read) -> serde_json::Value {
    match read {
        Read::Entry(entry) => {
            let mut value = serde_json::to_value(&entry).unwrap_or_default();
            value["text"] = entry.text.into();
            value
        }
        Read::Newer { version } => serde_json::json!({"kind": "unknown", "path": path, "squad": version}),
        Read::Damaged { reason } => serde_json::json!({"kind": "damaged", "path": path, "reason": reason}),
    }
}

/// One line about an entry, and further ones if a command has them.
fn detail(kind: Option<EventKind>, text: &str) -> String {
    let Some(kind) = kind else { return first_line(text, 80) };
    match kind {
        EventKind::RoutePlanned(plan) => {
            let reviewers: Vec<&Slug> = plan.reviewers().collect();
            let reviewed =
                if reviewers.is_empty() { String::new() } else { format!(", reviewed by {},", list(reviewers)) };
            format!("{}{reviewed} tier {}", list(&plan.agents), plan.tier)
        }
        EventKind::EngineFallback { from, to, reason } => format!("{from} → {to}: {reason}"),
        EventKind::EngineGoverned { engine, by, .. } => format!("{engine}: {by}"),
        EventKind::EngineExited(exited) => {
            let how = match (exited.exit_code, exited.signal) {
                (Some(code), _) => format!("code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            };
            format!("{} ended with {how}; its output is in {}", exited.engine, exited.stdout)
        }
        EventKind::EngineStarted { engine, version, .. } => format!("{engine} {version}"),
        EventKind::ConnectionFailed { reason, .. }
        | EventKind::ConnectionLost { reason }
        | EventKind::SessionError { reason, .. } => reason,
        EventKind::SessionCreated { session, model, .. } if model.is_empty() => session,
        EventKind::SessionCreated { session, model, .. } => format!("{session} on {model}"),
        EventKind::SessionResumed { session, .. }
        | EventKind::SessionIdle { session }
        | EventKind::SessionDestroyed { session } => session,
        EventKind::ToolStarted { tool, detail, .. } | EventKind::ToolCompleted { tool, ok: true, detail, .. } => {
            format!("{tool} {}", indented(&detail))
        }
        EventKind::ToolCompleted { tool, detail, exit_code, result, .. } => {
            call_and_end(&tool, &detail, &failure(exit_code, &result))
        }
        EventKind::ToolDenied { tool, detail, reason } => {
            call_and_end(&tool, &detail, &format!("was refused: {reason}"))
        }
        EventKind::PermissionAsked { tool, detail, .. } => format!("{tool} {}", indented(&detail)),
        EventKind::PermissionAnswered { tool, detail, allowed } => {
            call_and_end(&tool, &detail, if allowed { "is allowed" } else { "is not allowed" })
        }
        EventKind::RunUndone(undone) => undone.to_string(),
        EventKind::DecisionLogged { decision, .. } => format!("{} {}", decision.id, decision.title),
        EventKind::DecisionLanded { decisions, branch, commit } => {
            format!("{} on {branch} in {}", list(&decisions), commit.get(..10).unwrap_or(&commit))
        }
        EventKind::Usage(usage) => cost(&usage),
        EventKind::Completed(end) => {
            let about: Vec<String> = std::iter::once(cost(&end.usage)).chain(end.remarks()).collect();
            format!("{} ({}){}", first_line(&end.text, 70), about.join(", "), changes(&end))
        }
        EventKind::ReviewVerdict { verdict, authors, .. } => {
            let verdict = format!("{verdict:?}").to_lowercase();
            let authors = if authors.is_empty() { String::new() } else { format!(" the work of {}", list(&authors)) };
            format!("{verdict}{authors}")
        }
        EventKind::RouteRequested { to, text, .. } => format!("to {to}: {}", first_line(&text, 80)),
        EventKind::DecisionDelivered { decisions, session } => format!("{} to {session}", list(&decisions)),
        EventKind::CancelRequested { reason } => reason,
        EventKind::UserMessage { text } => first_line(&text, 80),
        EventKind::Lockout { reviewer, .. } => format!("may not revise what {reviewer} rejected"),
        EventKind::RunCompleted { status, agents, work, rejections, commits, usage, error } => {
            let commits: Vec<&str> = commits.iter().map(|commit| commit.get(..10).unwrap_or(commit)).collect();
            let commits = if commits.is_empty() { String::new() } else { format!(", committed {}", list(commits)) };
            let spent = format!("{}{commits}", cost(&usage));
            let why = error.map(|error| format!("\n  {}", error.message)).unwrap_or_default();
            run_end(status, rejections, agents.len(), &spent, &work) + &why
        }
        kind => match kind.end() {
            Some((_, end)) => format!("{}{}", end.reason, changes(end)),
            None => first_line(text, 80),
        },
    }
}

/// The files that changed while an agent worked, and what it did to git; each on a line of its own.
fn changes(end: &End) -> String {
    let files = end.changed.iter().flatten().map(|change| format!("\n  {change}"));
    let git = (!end.git.is_empty()).then(|| format!("\n  git: {}", end.git));
    files.chain(git).collect()
}

/// A call with its whole command. Its end stands on a line of its own if the command has several.
fn call_and_end(tool: &str, detail: &str, end: &str) -> String {
    let call = indented(detail);
    let gap = if call.contains('\n') { '\n' } else { ' ' };
    format!("{tool} {call}{gap}{end}")
}

fn cost(usage: &Usage) -> String {
    format!("{:.1} s, {} in, {} out", usage.seconds, usage.input_tokens, usage.output_tokens)
}
