//! A row for each agent of a run that works, asks or waits. Rows are made from the run's events.

use std::time::{Duration, Instant};

use super::card::MAX_NAME;
use super::region::Size;
use super::text::{Mark, Text};
use super::{LineStyle, call};
use crate::model::{
    Event, EventKind, OpenQuestion, Plan, Slug, Usage, abbreviated, clock, first_line, list, printable_line,
};

/// Bytes kept of what an agent is writing: more than a row has room for.
const WRITING: usize = 400;
/// Fewer columns than this have no room for tokens, and then for times.
const TOKENS: usize = 70;
const TIMES: usize = 40;
/// After this time without an event, a row says so.
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The current step, and how many there are.
    step: Option<(u32, usize)>,
    steps: Vec<Vec<Slug>>,
    begun: Option<Instant>,
    usage: Usage,
}

struct Row {
    agent: Slug,
    state: State,
    /// The end of the message that it writes or has written.
    words: String,
    is_complete: bool,
    begun: Option<Instant>,
    /// How long it has waited for answers, and since when it waits for one.
    rested: Duration,
    waits_since: Option<Instant>,
    last: Instant,
    tokens: u64,
}

enum State {
    /// It does not work, because of this.
    Waits(String),
    Thinks,
    /// A tool and what it is about, since when.
    Calls(String, Instant),
    Asks(String),
}

impl Row {
    fn new(agent: Slug, state: State, now: Instant) -> Self {
        let (words, is_complete, begun, rested, waits_since, tokens) = Default::default();
        Self { agent, state, words, is_complete, begun, rested, waits_since, last: now, tokens }
    }

    /// The time it has worked: none in which it waited for a person.
    fn worked(&self, now: Instant) -> Option<Duration> {
        let until = self.waits_since.unwrap_or(now);
        Some(until.saturating_duration_since(self.begun?).saturating_sub(self.rested))
    }

    fn write(&mut self, text: &str) {
        if std::mem::take(&mut self.is_complete) {
            self.words.clear();
        }
        self.words.push_str(text);
        let surplus = self.words.len().saturating_sub(WRITING);
        let at = (surplus..self.words.len()).find(|at| self.words.is_char_boundary(*at));
        self.words.drain(..at.unwrap_or_default());
    }

    /// The last words, at most so many columns of them.
    fn last_words(&self, columns: usize) -> String {
        // The coordinator's choices are for squad.
        if self.agent == Slug::coordinator() && self.words.trim_start().starts_with(['{', '`']) {
            return "chooses who works".to_owned();
        }
        let line = self.words.trim().lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        super::text::end_of(&printable_line(line.trim()), columns)
    }

    fn doing(&self, columns: usize, now: Instant) -> String {
        match &self.state {
            State::Waits(why) => why.clone(),
            State::Asks(what) => format!("asks: {what}"),
            State::Calls(call, since) => match now.saturating_duration_since(*since).as_secs() {
                0..2 => call.clone(),
                seconds => format!("{call}  {seconds} s"),
            },
            State::Thinks if now.saturating_duration_since(self.last) > SILENCE => {
                let silence = now.saturating_duration_since(self.last).as_secs();
                format!("no sign for {}", clock(silence))
            }
            State::Thinks if self.words.trim().is_empty() => "thinks".to_owned(),
            State::Thinks => self.last_words(columns),
        }
    }
}

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn see(&mut self, event: &Event, now: Instant) {
        self.begun.get_or_insert(now);
        match (&event.agent, &event.kind) {
            (_, EventKind::RoutePlanned(plan)) => self.plan(plan, now),
            (_, EventKind::StepStarted { agents }) => {
                self.step = event.position.step.map(|step| (step, self.steps.len())).filter(|(_, steps)| *steps > 1);
                for agent in agents {
                    self.row(agent, now).state = State::Waits("waits for a slot".to_owned());
                }
            }
            (_, EventKind::RunCompleted { .. }) => self.rows.clear(),
            (None, EventKind::QuestionAsked { question, text }) => {
                self.asks(&Slug::coordinator(), *question, text, event, now);
            }
            (None, EventKind::QuestionAnswered { .. }) => self.rows.retain(|row| row.agent != Slug::coordinator()),
            (Some(agent), kind) => self.of_agent(agent, kind, event, now),
            _ => {}
        }
    }

    fn of_agent(&mut self, agent: &Slug, kind: &EventKind, event: &Event, now: Instant) {
        if kind.end().is_some() {
            return self.rows.retain(|row| row.agent != *agent);
        }
        match kind {
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } => {
                let row = self.row(agent, now);
                (row.begun, row.state, row.last) = (Some(now), State::Thinks, now);
                return;
            }
            EventKind::QuestionAsked { question, text } => return self.asks(agent, *question, text, event, now),
            EventKind::Usage(usage) => self.usage += usage,
            _ => {}
        }
        let Some(row) = self.rows.iter_mut().find(|row| row.agent == *agent) else { return };
        row.last = now;
        match kind {
            EventKind::MessageDelta { text } => {
                row.write(text);
                row.state = State::Thinks;
            }
            EventKind::Message { text } => {
                row.is_complete = true;
                row.write(text);
                (row.state, row.is_complete) = (State::Thinks, true);
            }
            EventKind::ToolStarted { tool, detail, .. } => {
                row.state = State::Calls(first_line(&call(tool, detail, false), WRITING), now);
            }
            EventKind::ToolCompleted { .. } => row.state = State::Thinks,
            EventKind::RouteRequested { to, wait: true, .. } => row.state = State::Waits(format!("waits for {to}")),
            EventKind::QuestionAnswered { .. } => {
                row.rested += row.waits_since.take().map_or(Duration::ZERO, |since| now - since);
                row.state = State::Thinks;
            }
            EventKind::CancelRequested { .. } => row.state = State::Waits("is being cancelled".to_owned()),
            EventKind::ConnectionLost { .. } => row.state = State::Waits("waits for its connection".to_owned()),
            EventKind::ConnectionRestored { .. } => row.state = State::Thinks,
            EventKind::Usage(usage) => row.tokens += usage.input_tokens + usage.output_tokens,
            _ => {}
        }
    }

    fn asks(&mut self, agent: &Slug, question: u64, text: &str, event: &Event, now: Instant) {
        let asked = OpenQuestion { question, agent: event.agent.clone(), since: event.at, text: text.to_owned() };
        let short = asked.short();
        let row = self.row(agent, now);
        row.waits_since.get_or_insert(now);
        row.state = State::Asks(short.strip_prefix("wants to ").unwrap_or(&short).to_owned());
    }

    fn row(&mut self, agent: &Slug, now: Instant) -> &mut Row {
        let place = self.rows.iter().position(|row| row.agent == *agent);
        let place = place.unwrap_or_else(|| {
            self.rows.push(Row::new(agent.clone(), State::Thinks, now));
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// Who works only later waits for those before.
    fn plan(&mut self, plan: &Plan, now: Instant) {
        self.rows.retain(|row| row.begun.is_some());
        self.steps = plan.steps.clone();
        let reviewers: Vec<Slug> = plan.final_reviewers().cloned().collect();
        self.steps.extend((!reviewers.is_empty()).then_some(reviewers));
        let mut before = "waits for a slot".to_owned();
        for agents in self.steps.clone() {
            for agent in &agents {
                if self.rows.iter().all(|row| row.agent != *agent) {
                    self.rows.push(Row::new(agent.clone(), State::Waits(before.clone()), now));
                }
            }
            before = format!("waits for {}", list(&agents));
        }
    }

    pub(super) fn lines(&self, size: Size, now: Instant) -> Vec<Text> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        // On some terminals, a line that reaches the edge wraps.
        let columns = size.columns.saturating_sub(1);
        let room = (size.lines / 3).max(1);
        let shown = if self.rows.len() > room { room.saturating_sub(1) } else { self.rows.len() };
        let (first, rest) = self.rows.split_at(shown);
        let step = self.step.map(|(step, steps)| format!("Step {step} of {steps}"));
        let mut lines: Vec<Text> = step.iter().map(|step| Text::default().with(LineStyle::Strong, step)).collect();
        let name = self.rows.iter().map(|row| Text::default().plain(row.agent.as_str()).width()).max();
        let name = name.unwrap_or_default().min(MAX_NAME);
        lines.extend(first.iter().map(|row| line(row, name, columns, now)));
        if !rest.is_empty() {
            let waiting = rest.iter().filter(|row| matches!(row.state, State::Waits(_))).count();
            let asking = rest.iter().filter(|row| matches!(row.state, State::Asks(_))).count();
            let working = rest.len() - waiting - asking;
            let counts = [(working, "work"), (asking, "ask"), (waiting, "wait")].into_iter();
            let counts = counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
            let counts = counts.collect::<Vec<_>>().join(", ");
            lines.push(Text::unmarked().with(LineStyle::Faint, &format!("and {} more: {counts}", rest.len())));
        }
        lines.push(self.total(now));
        lines.iter().map(|line| line.cut(columns)).collect()
    }

    fn total(&self, now: Instant) -> Text {
        let time = self.begun.map_or(0, |begun| now.saturating_duration_since(begun).as_secs());
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        let tokens = if tokens > 0 { format!(" · {} tokens", abbreviated(tokens)) } else { String::new() };
        Text::unmarked().with(LineStyle::Faint, &format!("{}{tokens} · Ctrl-C stops", clock(time)))
    }
}

/// `● backend   writes the check…    0:42  12.4k`
fn line(row: &Row, name: usize, columns: usize, now: Instant) -> Text {
    let (mark, style) = match row.state {
        State::Waits(_) => (Mark::Waiting, LineStyle::Faint),
        State::Asks(_) => (Mark::Attention, LineStyle::Warning),
        State::Thinks | State::Calls(..) => (Mark::Working, LineStyle::Strong),
    };
    let line = Text::marked(style, mark).with(LineStyle::Strong, row.agent.as_str()).cut(2 + name).filled(2 + name);
    let line = line.plain("  ");
    let time = row.worked(now).filter(|_| columns >= TIMES).map(|worked| clock(worked.as_secs()));
    let tokens = (row.tokens > 0 && columns >= TOKENS).then(|| format!("{:>7}", abbreviated(row.tokens)));
    let right = [time.map(|time| format!("  {time:>5}")), tokens].into_iter().flatten().collect::<String>();
    let room = columns.saturating_sub(line.width() + right.len());
    let line = line.plain(&row.doing(room, now)).cut(columns.saturating_sub(right.len()));
    if right.is_empty() { line } else { line.filled(columns - right.len()).with(LineStyle::Faint, &right) }
}
