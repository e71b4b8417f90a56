use std::ops::ControlFlow;

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::while_read;
use crate::env::{Clock, zone_name};
use crate::model::{
    self, End, EventKind, Forecast, Outcome, RunEnd, RunId, Slug, Usage, failure, first_line, indented, list, plural,
    printable,
};
use crate::ops::ledger::log::{RunSummary, Sum, UsageSums};
use crate::record::{Entry, Read};
use crate::ui::{STRONG, Ui};
use crate::view::{Bar, Chart, LineStyle, Mark, PastRun, Screen, Text, chart_page, counted, mark_of, used};

/// The columns before a run's message, and the fewest that are left for it.
const MESSAGE: usize = 12;
/// Columns of what a table of usage is about, and the most that its rows share; names of models are longer.
const LABEL: usize = 9;
const NAMED: usize = 14;

/// `all`: also those that only answered.
pub(super) fn runs(ui: &mut Ui, runs: &[RunSummary], all: bool, clock: &Clock) {
    let (zone, this_year) = (clock.zone(), clock.now().to_zoned(clock.zone()).year());
    let is_shown = |run: &&RunSummary| all || !(run.is_answer && run.status == "completed");
    let width = |text: fn(&RunSummary) -> String| runs.iter().filter(is_shown).map(|run| text(run).len()).max();
    let widths = [width(RunSummary::word), width(time), width(size)].map(Option::unwrap_or_default);
    let (mut day, mut folded, mut says_zone) = (None, 0, true);
    for run in runs {
        let started = run.started.to_zoned(zone.clone());
        if day != Some(started.date()) {
            say_folded(ui, std::mem::take(&mut folded));
            let format = if started.year() == this_year { "%a %-d %b" } else { "%a %-d %b %Y" };
            let heading = Text::default().with(LineStyle::Strong, &started.strftime(format).to_string());
            let zone =
                if std::mem::take(&mut says_zone) { format!(" ({})", zone_name(&started)) } else { String::new() };
            ui.texts(&[heading.plain(&zone)]);
            day = Some(started.date());
        }
        if is_shown(&run) {
            let line = run_line(run, &started, widths, ui.out_columns());
            ui.texts(&[line]);
        } else {
            folded += 1;
        }
    }
    say_folded(ui, folded);
}

fn say_folded(ui: &mut Ui, folded: usize) {
    if folded > 0 {
        let what =
            if folded == 1 { "1 greeting or question".to_owned() } else { format!("{folded} greetings and questions") };
        ui.texts(&[Text::default().plain("        ").with(LineStyle::Faint, &format!("{what}: squad log --all"))]);
    }
}

fn run_line(
    run: &RunSummary,
    started: &Zoned,
    [status_width, time_width, size_width]: [usize; 3],
    columns: usize,
) -> Text {
    let (mark, style) = match run.status.as_str() {
        "running" => (Mark::Working, LineStyle::Strong),
        "unknown" => (Mark::Neutral, LineStyle::Faint),
        "completed" if run.check_failed => (Mark::Attention, LineStyle::Warning),
        status => Outcome::parse(status).map_or((Mark::Neutral, LineStyle::Faint), mark_of),
    };
    let time = started.strftime("%H:%M").to_string();
    let line = Text::unmarked().with(LineStyle::Faint, &time).plain(" ").with(style, mark.as_str()).plain(" ");
    let line = line.with(LineStyle::Faint, run.run.short()).plain(" ");
    let line = line.with(style, &format!("{:<status_width$}", run.word()));
    let line = line.with(LineStyle::Faint, &format!("  {:>time_width$}", self::time(run)));
    let line = match run.lines {
        (0, 0) => line.plain(&" ".repeat(size_width + 2)),
        (added, removed) => {
            let size = counted(added, removed);
            line.plain(&" ".repeat(2 + size_width.saturating_sub(size.width()))).extend(&size)
        }
    };
    let undone = if run.undone { "(undone) " } else { "" };
    let line = line.plain("  ").hanging();
    let room = columns.saturating_sub(line.width() + undone.len()).max(MESSAGE);
    line.plain(undone).plain(&first_line(&run.message, room))
}

fn time(run: &RunSummary) -> String {
    if run.ended.is_some() { model::clock(run.usage.worked() as u64) } else { String::new() }
}

fn size(run: &RunSummary) -> String {
    let (added, removed) = run.lines;
    if run.lines == (0, 0) { String::new() } else { format!("+{added} -{removed}") }
}

/// What a row of a table of usage is about.
fn named(table: &str, of: &str) -> String {
    match RunId::parse(of).filter(|_| table == "run") {
        Some(run) => run.short().to_owned(),
        None if of.is_empty() => "unknown".to_owned(),
        None => of.to_owned(),
    }
}

/// Shows what was used: a table for each way to sum it up.
pub(super) fn usage(ui: &mut Ui, sums: &UsageSums) {
    if ui.json() {
        return ui.value(&serde_json::json!({ "usage": sums }));
    }
    let total = [Sum { of: "all".to_owned(), usage: sums.total.clone() }];
    let tables: [(&str, &[Sum]); 5] =
        [("total", &total), ("day", &sums.days), ("agent", &sums.agents), ("model", &sums.models), ("run", &sums.runs)];
    let all = || tables.iter().flat_map(|(table, sums)| sums.iter().map(|sum| named(table, &sum.of).chars().count()));
    let width = all().max().unwrap_or_default().min(NAMED);
    for (table, sums) in tables {
        for (number, Sum { of, usage }) in sums.iter().enumerate() {
            let name = if number == 0 { table } else { "" };
            let of = named(table, of);
            // Where nothing is known of any, it is said once.
            let none = (table == "total").then(|| "no tokens known".to_owned());
            let used = used(usage).or(none).map(|used| format!("{used}; ")).unwrap_or_default();
            let counts = [(usage.turns, "message"), (usage.tool_calls, "tool call")];
            let counts = counts.map(|(count, noun)| plural(count as usize, noun)).join(", ");
            let line = Text::unmarked().with(LineStyle::Faint, name).filled(LABEL).hanging();
            let line = line.plain(&printable(&format!("{of:<width$}")));
            ui.texts(&[line.plain(&format!("  {used}{counts}, {}", model::clock(usage.worked() as u64)))]);
        }
    }
}

/// Sums of usage as pictures.
pub(super) fn usage_html(sums: &UsageSums, forecasts: &[(RunId, Forecast, Usage)]) -> String {
    let tokens = |usage: &Usage| (usage.input_tokens + usage.output_tokens) as f64;
    let cost = |usage: &Usage| usage.cost_usd.unwrap_or_default();
    let short = |amount: f64| format!("{} tokens", model::abbreviated(amount as u64));
    let dollars = |amount: f64| format!("${amount:.2}");
    let bars = |sums: &[Sum], amount: &dyn Fn(&Usage) -> f64, words: &dyn Fn(f64) -> String| -> Vec<Bar> {
        let bar = |Sum { of, usage }: &Sum| {
            let (name, amount) = (if of.is_empty() { "unknown" } else { of }.to_owned(), amount(usage));
            Bar { name, text: words(amount), amount, expected: None }
        };
        sums.iter().map(bar).collect()
    };
    let is_priced = sums.total.cost_usd.is_some();
    let mut charts = Vec::new();
    for (tokens_of, cost_of, sums) in [
        ("Tokens by day", "Cost by day", &sums.days),
        ("Tokens by agent", "Cost by agent", &sums.agents),
        ("Tokens by model", "Cost by model", &sums.models),
    ] {
        charts.push(Chart { heading: tokens_of, bars: bars(sums, &tokens, &short) });
        if is_priced {
            charts.push(Chart { heading: cost_of, bars: bars(sums, &cost, &dollars) });
        }
    }
    let expected = forecasts.iter().map(|(run, forecast, usage)| Bar {
        name: run.short().to_owned(),
        text: format!("{}; expected {}", short(tokens(usage)), forecast.text()),
        amount: tokens(usage),
        expected: Some((forecast.tokens.median, forecast.tokens.p90)),
    });
    charts.push(Chart { heading: "Forecast (light) against what was used", bars: expected.collect() });
    let used = used(&sums.total).unwrap_or_else(|| "no tokens known".to_owned());
    let counts = [(sums.total.turns, "message"), (sums.total.tool_calls, "tool call")];
    let counts = counts.map(|(count, noun)| plural(count as usize, noun)).join(", ");
    chart_page("What agents used", &format!("{used}; {counts}"), &charts)
}

/// Shows entries, one by one.
pub(super) struct Page<'u> {
    ui: &'u mut Ui,
    /// The run of the last entry shown, if several runs are shown; `Some(None)`: an entry of no run.
    run: Option<Option<RunId>>,
    is_of_one_run: bool,
    /// `None`: entries are shown as they were recorded.
    told: Option<Box<PastRun>>,
}

impl<'u> Page<'u> {
    pub(super) fn of_run(ui: &'u mut Ui, run: &RunId) -> Self {
        if !ui.json() {
            ui.data(&ui.out_paint(STRONG, &format!("run {run}")));
        }
        Self { ui, run: None, is_of_one_run: true, told: None }
    }

    pub(super) fn of_all(ui: &'u mut Ui) -> Self {
        Self { ui, run: None, is_of_one_run: false, told: None }
    }

    pub(super) fn story(ui: &'u mut Ui, run: &RunId, zone: TimeZone) -> Self {
        let told = Some(Box::new(PastRun::new(run.clone(), zone)));
        Self { ui, run: Some(Some(run.clone())), is_of_one_run: true, told }
    }

    /// Breaks when nobody reads the output any more.
    pub(super) fn show(&mut self, path: &str, read: Read) -> ControlFlow<()> {
        match (self.ui.json(), read) {
            (true, read) => self.ui.value(&as_json(path, read)),
            (false, Read::Entry(entry)) if self.told.is_some() => self.tell(&entry),
            (false, Read::Entry(entry)) => self.entry(*entry),
            (false, read) => self.ui.data(&format!("          {}", not_understood(path, &read))),
        }
        while_read(self.ui)
    }

    fn tell(&mut self, entry: &Entry) {
        let (Some(told), Some(kind)) = (&mut self.told, entry.known_kind()) else { return };
        let head = told.head(entry.at, &kind);
        let lines = told.see(entry.at, entry.agent.as_ref(), entry.position, &kind);
        self.ui.texts(&head.into_iter().chain(lines).collect::<Vec<_>>());
        if matches!(kind, EventKind::RoutePlanned(_)) {
            self.ui.data("");
        }
    }

    /// Ends a story with the answer and the card. `state`: of a run without an end; `None`: not all of it was told.
    pub(super) fn end(&mut self, state: Option<&str>) {
        let Some(told) = &mut self.told else { return };
        let rest = told.rest();
        self.ui.texts(&rest);
        let is_terminal = self.ui.output_is_terminal();
        if let Some(answer) = told.answer() {
            if !is_terminal {
                self.ui.data("");
            }
            self.ui.answer(answer);
        }
        let Some(state) = state else { return };
        let end = told.end(state, self.ui.out_columns());
        if end.len() > 1 && !(is_terminal && told.answer().is_some()) {
            self.ui.data("");
        }
        self.ui.texts(&end);
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
        let agent = entry.agent.as_ref().map_or("squad", |agent| agent.as_str());
        let head = Text::default().with(LineStyle::Faint, &entry.at.strftime("%H:%M:%S").to_string());
        let head = head.plain("  ").hanging().plain(&format!("{agent:<12} {:<20} ", entry.kind));
        let detail = detail(kind, &entry.text);
        let (first, rest) = detail.split_once('\n').unwrap_or((&detail, ""));
        let below = |line: &str| Text::default().filled(12).hanging().plain(line);
        let mut lines = vec![head.plain(first)];
        lines.extend(rest.lines().map(below));
        if self.ui.is_verbose() && entry.text.lines().count() > 1 {
            lines.extend(entry.text.lines().map(below));
        }
        self.ui.texts(&lines);
    }
}

fn as_json(path: &str, read: Read) -> serde_json::Value {
    match read {
        Read::Entry(entry) => {
            let mut value = serde_json::to_value(&entry).unwrap_or_default();
            // As in the events of `orchestrate --json`.
            value["type"] = value["kind"].take();
            value.as_object_mut().map(|fields| fields.shift_remove("kind"));
            value["text"] = entry.text.into();
            value
        }
        Read::Newer { version } => serde_json::json!({"type": "unknown", "path": path, "squad": version}),
        Read::Damaged { reason } => serde_json::json!({"type": "damaged", "path": path, "reason": reason}),
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
        EventKind::PermissionAnswered { tool, detail, allowed, rule, reason } => {
            let word = if allowed { "is allowed" } else { "is not allowed" };
            let why = rule.or(reason).map(|why| format!(": {why}")).unwrap_or_default();
            call_and_end(&tool, &detail, &format!("{word}{why}"))
        }
        EventKind::HookAnswered(answered) => indented(&answered.to_string()),
        EventKind::RunUndone(undone) => undone.to_string(),
        EventKind::BudgetReached { budget, limit, spent } => format!("budget.{budget}: {spent} of {limit}"),
        EventKind::QuotaOpened { engine, reason, until: None } => format!("{engine}: {reason}"),
        EventKind::QuotaOpened { engine, reason, until: Some(until) } => format!("{engine} until {until}: {reason}"),
        EventKind::QuotaClosed { engine } => engine,
        EventKind::CheckStarted { command } => format!("$ {command}"),
        EventKind::CheckCompleted(check) => {
            let remarks = check.remarks().iter().map(|text| format!("\n  {text}")).collect::<String>();
            let output = if check.passed { "" } else { check.output.trim_end() };
            let output = output.lines().map(|line| format!("\n  {line}")).collect::<String>();
            format!("$ {} {}{remarks}{output}", check.command, check.result())
        }
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
        EventKind::RunCompleted(RunEnd { status, commits, usage, error, .. }) => {
            let commits: Vec<&str> = commits.iter().map(|commit| commit.get(..10).unwrap_or(commit)).collect();
            let commits = if commits.is_empty() { String::new() } else { format!(", committed {}", list(commits)) };
            let why = error.map(|error| format!("\n  {}", error.message)).unwrap_or_default();
            format!("{status}: {}{commits}{why}", cost(&usage))
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
    format!("{:.1} s, {} in, {} out", usage.worked(), usage.input_tokens, usage.output_tokens)
}

/// An entry that this squad cannot show.
pub(super) fn not_understood(path: &str, read: &Read) -> String {
    match read {
        Read::Entry(_) => String::new(),
        Read::Newer { version } => format!("entry of a newer squad (version {version}): {path}"),
        Read::Damaged { reason } => format!("damaged entry: {path}: {reason}"),
    }
}
