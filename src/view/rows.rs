//! A row for each agent of a run that works, asks or waits. Rows are made from the run's events.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use unicode_width::UnicodeWidthStr;

use super::card::MAX_NAME;
use super::region::Size;
use super::text::{Mark, Text};
use super::{LineStyle, call};
use crate::model::{
    AgentWaits, Event, EventKind, OpenQuestion, PersonTime, Plan, Slug, Usage, abbreviated, clock, first_line, list,
    printable_line,
};

/// Bytes kept of what an agent is writing: more than a row has room for.
const WRITING: usize = 400;
/// Fewer lines than this have no room for rows.
const MIN_LINES: usize = 5;
/// Fewer columns than this have no room for tokens, and then for times.
const TOKENS: usize = 70;
const TIMES: usize = 40;
/// After this time without an event, a row says so.
const SILENCE: Duration = Duration::from_secs(60);
/// The name of the row of squad's own check.
const CHECKING: &str = "squad";

#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The current step, and how many there are.
    step: Option<(u32, usize)>,
    steps: Vec<Vec<Slug>>,
    begun: Option<Timestamp>,
    person: PersonTime,
    usage: Usage,
}

pub(super) struct Row {
    agent: Slug,
    /// The machine it works on, if that is another one.
    host: Option<String>,
    state: State,
    /// The end of the message that it writes or has written.
    words: String,
    is_complete: bool,
    begun: Option<Timestamp>,
    waits: AgentWaits,
    /// How long it has waited for answers and quotas, and since when it waits for one.
    rested: Duration,
    rests_since: Option<Timestamp>,
    last: Timestamp,
    tokens: u64,
}

#[derive(Clone)]
enum State {
    /// It does not work, because of this.
    Waits(String),
    Thinks,
    /// A tool and what it is about, since when.
    Calls(String, Timestamp),
    Asks(String),
}

impl State {
    fn mark(&self) -> (Mark, LineStyle) {
        match self {
            Self::Waits(_) => (Mark::Waiting, LineStyle::Faint),
            Self::Asks(_) => (Mark::Attention, LineStyle::Warning),
            Self::Thinks | Self::Calls(..) => (Mark::Working, LineStyle::Strong),
        }
    }
}

impl Row {
    /// An agent that has not begun.
    pub(super) fn waiting(agent: Slug, why: &str, now: Timestamp) -> Self {
        Self::new(agent, State::Waits(why.to_owned()), now)
    }

    fn new(agent: Slug, state: State, now: Timestamp) -> Self {
        let (host, words, is_complete, begun, waits, rested, rests_since, tokens) = Default::default();
        Self { agent, host, state, words, is_complete, begun, waits, rested, rests_since, last: now, tokens }
    }

    fn name(&self) -> String {
        self.host.as_ref().map_or_else(|| self.agent.to_string(), |host| format!("{} on {host}", self.agent))
    }

    /// What it does as it is shown: what waits is not at work.
    fn shown(&self) -> Cow<'_, State> {
        if let Some((question, text)) = self.waits.question() {
            let asked = OpenQuestion {
                question,
                agent: Some(self.agent.clone()),
                since: Timestamp::UNIX_EPOCH,
                text: text.to_owned(),
                proposal: None,
            };
            let short = asked.short();
            return Cow::Owned(State::Asks(short.strip_prefix("wants to ").unwrap_or(&short).to_owned()));
        }
        match (self.waits.quota(), self.waits.state()) {
            (Some(engine), _) => Cow::Owned(State::Waits(format!("waits for the quota of {engine}"))),
            (None, Some(_)) => Cow::Owned(State::Waits("waits for its connection".to_owned())),
            (None, None) => Cow::Borrowed(&self.state),
        }
    }

    fn rest(&mut self, now: Timestamp) {
        let rests = self.waits.question().is_some() || self.waits.quota().is_some();
        match self.rests_since {
            None if rests => self.rests_since = Some(now),
            Some(since) if !rests => {
                self.rested += between(since, now);
                self.rests_since = None;
            }
            _ => {}
        }
    }

    /// The time it has worked: none in which it waited for a person or a quota.
    fn worked(&self, now: Timestamp) -> Option<Duration> {
        let until = self.rests_since.unwrap_or(now);
        Some(between(self.begun?, until).saturating_sub(self.rested))
    }

    /// An event of this agent that does not end its work.
    pub(super) fn see(&mut self, kind: &EventKind, now: Timestamp) {
        self.last = now;
        self.waits.see(kind);
        self.rest(now);
        match kind {
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } => {
                (self.begun, self.state) = (Some(now), State::Thinks);
                (self.rested, self.rests_since) = Default::default();
            }
            EventKind::SessionSpawning { .. } => self.state = State::Waits("opens a session".to_owned()),
            EventKind::ClonePreparing { command } => {
                let command = if command.is_empty() { String::new() } else { format!(": $ {command}") };
                self.state = State::Waits(first_line(&format!("waits for its clone{command}"), WRITING));
            }
            EventKind::HostAssigned { host } => self.host = Some(host.clone()),
            EventKind::CancelRequested { .. } => self.state = State::Waits("is being cancelled".to_owned()),
            _ if self.begun.is_none() => {}
            EventKind::MessageDelta { text } => {
                self.write(text);
                self.state = State::Thinks;
            }
            EventKind::Message { text } => {
                self.is_complete = true;
                self.write(text);
                (self.state, self.is_complete) = (State::Thinks, true);
            }
            EventKind::ToolStarted { tool, detail, .. } => {
                self.state = State::Calls(first_line(&call(tool, detail, false), WRITING), now);
            }
            EventKind::ToolCompleted { .. } => self.state = State::Thinks,
            EventKind::RouteRequested { to, wait: true, .. } => self.state = State::Waits(format!("waits for {to}")),
            EventKind::Usage(usage) => self.tokens += usage.input_tokens + usage.output_tokens,
            _ => {}
        }
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

    fn doing(&self, columns: usize, now: Timestamp) -> String {
        match &*self.shown() {
            State::Waits(why) => why.clone(),
            State::Asks(what) => format!("asks: {what}"),
            State::Calls(call, since) => match between(*since, now).as_secs() {
                0..2 => call.clone(),
                seconds => format!("{call}  {seconds} s"),
            },
            State::Thinks if between(self.last, now) > SILENCE => {
                let silence = between(self.last, now).as_secs();
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

    pub(super) fn see(&mut self, event: &Event) {
        let now = event.at;
        self.begun.get_or_insert(now);
        self.person.see(event.at, event.agent.as_ref(), &event.kind);
        match (&event.agent, &event.kind) {
            (_, EventKind::RoutePlanned(plan)) => self.plan(plan, now),
            (_, EventKind::StepStarted { agents }) => {
                self.step = event.position.step.map(|step| (step, self.steps.len())).filter(|(_, steps)| *steps > 1);
                for agent in agents {
                    self.row(agent, now).state = State::Waits("waits for a slot".to_owned());
                }
            }
            (_, EventKind::RunCompleted(_)) => self.rows.clear(),
            (_, EventKind::CheckStarted { command }) => {
                if let Some(name) = Slug::fold(CHECKING) {
                    let row = self.row(&name, now);
                    row.begun = Some(now);
                    row.state = State::Calls(first_line(&format!("$ {command}"), WRITING), now);
                }
            }
            (_, EventKind::QuotaOpened { engine, .. }) => self.wait_for(&format!("waits for the quota of {engine}")),
            (_, EventKind::QuotaClosed { .. }) => self.wait_for("waits for a slot"),
            (_, EventKind::CheckCompleted(_)) => self.rows.retain(|row| row.agent.as_str() != CHECKING),
            (None, kind @ EventKind::QuestionAsked { .. }) => {
                self.row(&Slug::coordinator(), now).see(kind, now);
            }
            (None, EventKind::QuestionAnswered { .. }) => self.rows.retain(|row| row.agent != Slug::coordinator()),
            (Some(agent), kind) => self.of_agent(agent, kind, now),
            _ => {}
        }
    }

    /// What those wait for that have not begun.
    fn wait_for(&mut self, what: &str) {
        for row in self.rows.iter_mut().filter(|row| row.begun.is_none()) {
            row.state = State::Waits(what.to_owned());
        }
    }

    fn of_agent(&mut self, agent: &Slug, kind: &EventKind, now: Timestamp) {
        if kind.end().is_some() {
            return self.rows.retain(|row| row.agent != *agent);
        }
        match kind {
            EventKind::SessionCreated { .. } | EventKind::SessionResumed { .. } | EventKind::QuestionAsked { .. } => {
                self.row(agent, now).see(kind, now);
                return;
            }
            EventKind::Usage(usage) => self.usage += usage,
            _ => {}
        }
        if let Some(row) = self.rows.iter_mut().find(|row| row.agent == *agent) {
            row.see(kind, now);
        }
    }

    fn row(&mut self, agent: &Slug, now: Timestamp) -> &mut Row {
        let place = self.rows.iter().position(|row| row.agent == *agent);
        let place = place.unwrap_or_else(|| {
            self.rows.push(Row::new(agent.clone(), State::Thinks, now));
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// Who works only later waits for those before.
    fn plan(&mut self, plan: &Plan, now: Timestamp) {
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

    pub(super) fn lines(&self, size: Size, now: Timestamp) -> Vec<Text> {
        if self.rows.is_empty() || size.lines < MIN_LINES {
            return Vec::new();
        }
        // On some terminals, a line that reaches the edge wraps.
        let columns = size.columns.saturating_sub(1);
        let room = (size.lines / 3).max(1);
        let shown = if self.rows.len() > room { room.saturating_sub(1) } else { self.rows.len() };
        let (first, rest) = self.rows.split_at(shown);
        let step = self.step.map(|(step, steps)| format!("Step {step} of {steps}"));
        let mut lines: Vec<Text> = step.iter().map(|step| Text::default().with(LineStyle::Strong, step)).collect();
        let name = self.rows.iter().map(|row| row.name().width()).max();
        let name = name.unwrap_or_default().min(MAX_NAME);
        lines.extend(first.iter().map(|row| row.line(name, columns, now)));
        if !rest.is_empty() {
            let waiting = rest.iter().filter(|row| matches!(*row.shown(), State::Waits(_))).count();
            let asking = rest.iter().filter(|row| matches!(*row.shown(), State::Asks(_))).count();
            let working = rest.len() - waiting - asking;
            let counts = [(working, "work"), (asking, "ask"), (waiting, "wait")].into_iter();
            let counts = counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
            let counts = counts.collect::<Vec<_>>().join(", ");
            lines.push(Text::unmarked().with(LineStyle::Faint, &format!("and {} more: {counts}", rest.len())));
        }
        lines.push(self.total(now));
        lines.iter().map(|line| line.cut(columns)).collect()
    }

    /// Without rows on the screen, how long nothing may be said: of a command of squad's own as of others of its.
    pub(super) fn silence(&self) -> Duration {
        let is_checking = self.rows.iter().any(|row| row.agent.as_str() == CHECKING);
        if is_checking { super::progress::SILENCE } else { SILENCE }
    }

    /// Who works, in one line.
    pub(super) fn alive(&self, now: Timestamp) -> Text {
        let has_begun = |row: &&Row| row.begun.is_some();
        let is_any = self.rows.iter().any(|row| has_begun(&row));
        let named = self.rows.iter().filter(|row| !is_any || has_begun(row)).map(|row| {
            let time = row.worked(now).map(|worked| clock(worked.as_secs())).unwrap_or_default();
            match &*row.shown() {
                State::Calls(call, _) => format!("{} {time}, {call}", row.agent),
                State::Waits(what) => format!("{} {what}", row.agent),
                State::Asks(what) => format!("{} asks: {what}", row.agent),
                State::Thinks => format!("{} {time}", row.agent),
            }
        });
        let named = named.collect::<Vec<_>>().join("; ");
        Text::unmarked().with(LineStyle::Strong, "squad").plain(&format!("  still working: {named}"))
    }

    fn total(&self, now: Timestamp) -> Text {
        let time = self.begun.map_or(Duration::ZERO, |begun| between(begun, now));
        let waited = Duration::try_from_secs_f64(self.person.seconds(now)).unwrap_or_default();
        let time = time.saturating_sub(waited).as_secs();
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        let tokens = if tokens > 0 { format!(" · {} tokens", abbreviated(tokens)) } else { String::new() };
        Text::unmarked().with(LineStyle::Faint, &format!("{}{tokens} · Ctrl-C stops", clock(time)))
    }
}

impl Row {
    /// `● backend   writes the check…    0:42  12.4k`
    pub(super) fn line(&self, name: usize, columns: usize, now: Timestamp) -> Text {
        let (mark, style) = self.shown().mark();
        let line = Text::marked(style, mark).with(LineStyle::Strong, &self.name()).cut(2 + name).filled(2 + name);
        let line = line.plain("  ");
        let time = self.worked(now).filter(|_| columns >= TIMES).map(|worked| clock(worked.as_secs()));
        let tokens = (self.tokens > 0 && columns >= TOKENS).then(|| format!("{:>7}", abbreviated(self.tokens)));
        let right = [time.map(|time| format!("  {time:>5}")), tokens].into_iter().flatten().collect::<String>();
        let room = columns.saturating_sub(line.width() + right.len());
        let line = line.plain(&self.doing(room, now)).cut(columns.saturating_sub(right.len()));
        if right.is_empty() { line } else { line.filled(columns - right.len()).with(LineStyle::Faint, &right) }
    }
}

/// Nothing, if the clock was set back.
fn between(since: Timestamp, until: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(since)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::model::{EntryId, PlanKind, Position, RunId, Tier};

    struct Scene {
        rows: Rows,
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_second(1_767_603_600 + seconds as i64).expect("a time")
    }

    impl Scene {
        fn new() -> Self {
            Self { rows: Rows::default() }
        }

        fn see(&mut self, seconds: u64, agent: &str, kind: EventKind) {
            let event = Event {
                seq: 1,
                at: at(seconds),
                run: RunId::new("20260105-090000-0000b1"),
                agent: Slug::fold(agent),
                kind,
                id: EntryId::new("i"),
                position: Position::new(1, 1),
                causes: Vec::new(),
            };
            self.rows.see(&event);
        }

        fn planned(steps: &[&[&str]]) -> Self {
            let mut scene = Self::new();
            let slugs = |names: &[&str]| names.iter().filter_map(|name| Slug::fold(name)).collect::<Vec<_>>();
            let steps: Vec<Vec<Slug>> = steps.iter().map(|names| slugs(names)).collect();
            let mut plan = crate::model::samples::every_kind()
                .into_iter()
                .find_map(|kind| match kind {
                    EventKind::RoutePlanned(plan) => Some(plan),
                    _ => None,
                })
                .expect("a plan");
            (plan.kind, plan.tier, plan.agents, plan.steps) = (PlanKind::Agents, Tier::Standard, steps.concat(), steps);
            (plan.reviewer, plan.other_reviewers) = (Slug::fold("reviewer"), Vec::new());
            scene.see(0, "", EventKind::RoutePlanned(plan.clone()));
            scene.see(0, "", EventKind::StepStarted { agents: plan.steps[0].clone() });
            scene
        }

        fn begins(&mut self, seconds: u64, agent: &str) {
            let (session, model, compiled_hash) = ("s".to_owned(), "m".to_owned(), String::new());
            let created = EventKind::SessionCreated { session, model, compiled_hash, seconds: 0.0, warm: false };
            self.see(seconds, agent, created);
        }

        fn shown(&self, seconds: u64, size: (usize, usize), expected: &Expect) {
            let size = Size { lines: size.0, columns: size.1 };
            let lines = self.rows.lines(size, at(seconds));
            assert!(lines.iter().all(|line| line.width() < size.columns), "{lines:?}");
            let shown: String = lines.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect();
            expected.assert_eq(&shown);
        }
    }

    fn at_work() -> Scene {
        let mut scene = Scene::planned(&[&["backend", "tester", "docs"]]);
        ["backend", "tester", "docs"].iter().for_each(|agent| scene.begins(1, agent));
        let words = "I settle what the endpoint answers first.\nThe cause goes to the log and not to the caller, because \
                     no login is asked for where it stands";
        scene.see(2, "backend", EventKind::MessageDelta { text: words.to_owned() });
        scene.see(
            2,
            "backend",
            EventKind::Usage(Usage { input_tokens: 12_000, output_tokens: 400, ..Usage::default() }),
        );
        let (call, tool, detail) = ("c".to_owned(), "bash".to_owned(), "python3 -m unittest".to_owned());
        scene.see(35, "tester", EventKind::ToolStarted { call, tool, detail });
        let text = "docs wants to write docs/health.md, a new file of 38 lines\n     1 + # Health".to_owned();
        scene.see(13, "docs", EventKind::QuestionAsked { question: 1, text, proposal: None });
        scene
    }

    #[test]
    fn who_has_no_clone_yet_waits_for_it() {
        let mut scene = Scene::planned(&[&["backend", "tester"]]);
        scene.see(1, "backend", EventKind::ClonePreparing { command: String::new() });
        scene.see(1, "tester", EventKind::ClonePreparing { command: "npm ci\nnpm run build".to_owned() });
        scene.shown(
            9,
            (30, 80),
            &expect![[r#"
            Step 1 of 2
            ○ backend   waits for its clone
            ○ tester    waits for its clone: $ npm ci
            ○ reviewer  waits for backend and tester
              0:09 · Ctrl-C stops
        "#]],
        );
        let alive = scene.rows.alive(at(9)).to_string();
        expect!["  squad  still working: backend waits for its clone; tester waits for its clone: $ npm ci; reviewer waits for backend and tester"].assert_eq(&alive);
    }

    #[test]
    fn each_agent_has_a_row_that_says_what_it_does_or_waits_for() {
        let scene = at_work();
        scene.shown(
            43,
            (30, 100),
            &expect![[r#"
                Step 1 of 2
                ● backend   …and not to the caller, because no login is asked for where it stands       0:42    12k
                ● tester    $ python3 -m unittest  8 s                                                         0:42
                ! docs      asks: write docs/health.md, a new file of 38 lines                                 0:12
                ○ reviewer  waits for backend, tester and docs
                  0:43 · 12k tokens · Ctrl-C stops
            "#]],
        );
        scene.shown(
            43,
            (30, 60),
            &expect![[r#"
                Step 1 of 2
                ● backend   …no login is asked for where it stands     0:42
                ● tester    $ python3 -m unittest  8 s                 0:42
                ! docs      asks: write docs/health.md, a new file …   0:12
                ○ reviewer  waits for backend, tester and docs
                  0:43 · 12k tokens · Ctrl-C stops
            "#]],
        );
    }

    #[test]
    fn rows_take_a_third_of_the_screen_and_count_the_rest() {
        let scene = at_work();
        scene.shown(
            43,
            (6, 60),
            &expect![[r#"
                Step 1 of 2
                ● backend   …no login is asked for where it stands     0:42
                  and 3 more: 1 work, 1 ask, 1 wait
                  0:43 · 12k tokens · Ctrl-C stops
            "#]],
        );
        scene.shown(
            43,
            (5, 20),
            &expect![[r#"
                Step 1 of 2
                  and 4 more: 2 wo…
                  0:43 · 12k token…
            "#]],
        );
    }

    #[test]
    fn without_rows_a_line_says_who_works() {
        let scene = at_work();
        let line = scene.rows.alive(at(61)).to_string();
        let says = "  squad  still working: backend 1:00; tester 1:00, $ python3 -m unittest; \
                    docs asks: write docs/health.md, a new file of 38 lines";
        assert_eq!(line, says);
    }

    /// The clock of who asks stands still, and goes on with the answer.
    #[test]
    fn a_question_costs_its_asker_no_time() {
        let mut scene = at_work();
        let time = |scene: &Scene, seconds| {
            let now = at(seconds);
            let row = scene.rows.rows.iter().find(|row| row.agent.as_str() == "docs").expect("a row");
            row.worked(now).map(|worked| worked.as_secs())
        };
        assert_eq!((time(&scene, 20), time(&scene, 100)), (Some(12), Some(12)));
        scene.see(100, "docs", EventKind::QuestionAnswered { question: 1 });
        assert_eq!(time(&scene, 103), Some(15));
    }

    #[test]
    fn who_is_silent_is_said_and_who_ended_is_gone() {
        let mut scene = Scene::planned(&[&["ada"], &["bob"]]);
        scene.begins(1, "ada");
        scene.shown(
            80,
            (30, 60),
            &expect![[r#"
                Step 1 of 3
                ● ada       no sign for 1:19                           1:19
                ○ bob       waits for ada
                ○ reviewer  waits for bob
                  1:20 · Ctrl-C stops
            "#]],
        );
        let end = crate::model::samples::every_kind().into_iter().find(|kind| matches!(kind, EventKind::Completed(_)));
        scene.see(81, "ada", end.expect("an end"));
        let json = EventKind::MessageDelta { text: "{\"agents\": [".to_owned() };
        scene.begins(82, "coordinator");
        scene.see(82, "coordinator", json);
        scene.shown(
            83,
            (30, 60),
            &expect![[r#"
                Step 1 of 3
                ○ bob          waits for ada
                ○ reviewer     waits for bob
                ● coordinator  chooses who works                       0:01
                  1:23 · Ctrl-C stops
            "#]],
        );
    }
}
