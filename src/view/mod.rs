//! Shows events: lines for people, NDJSON for programs.
//!
//! A view writes to a [`Screen`], which `ui` implements, so views know nothing of streams, colours or flags.

mod ask;
mod card;
mod channel;
#[cfg(all(feature = "bench", unix))]
#[path = "../../tests/bench/costs.rs"]
mod costs;
mod dialog;
#[cfg(test)]
mod every_kind_tests;
#[cfg(feature = "bench")]
#[path = "../../tests/bench/frames.rs"]
pub(crate) mod frames;
mod html;
mod json;
pub(crate) mod keys;
mod lines;
mod live;
mod markdown;
mod past;
mod progress;
mod redacting;
mod region;
mod rows;
mod standard_stream;
mod story;
mod text;
mod watched;

pub(crate) use ask::{Terminal, asker};
pub(crate) use card::{Card, counted, lines_changed, mark_of, used};
pub(crate) use channel::{UserCommand, ViewInput, ViewReceiver, ViewSender, WatchView};
pub(crate) use html::{Bar, Chart, HtmlPage, chart_page};
pub(crate) use json::json_line;
pub(crate) use lines::Lines;
pub(crate) use live::{Board, Live};
pub(crate) use markdown::markdown;
pub(crate) use past::PastRun;
pub(crate) use progress::Progress;
pub(crate) use redacting::Redacting;
pub(crate) use region::{Above, Size, clear as clear_region, line_was_ended, size};
pub(crate) use standard_stream::{StandardStream, drain, outlive};
pub(crate) use story::Story;
pub(crate) use text::{Mark, Painter, Text, without_signs};
pub(crate) use watched::Watched;

use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::{Access, Event, EventKind, HookEffect, change_by, first_line, list, plural};
use crate::pool::Show;

/// The output that a view writes to.
pub(crate) trait Screen {
    /// Prints the answer as data.
    fn answer(&mut self, text: &str);

    /// One event as one line of JSON.
    fn event(&mut self, event: &Event);

    /// Prints a line for the user.
    fn text(&mut self, line: &Text);

    /// Prints a line for the user that begins with a name.
    fn line(&mut self, who: &str, style: LineStyle, text: &str) {
        let line = Text::default().with(LineStyle::Strong, &format!("{who:<NAME$}")).plain(" ").hanging();
        self.text(&line.with(style, text));
    }

    /// Prints the card of a run's end.
    fn card(&mut self, lines: &[Text]);

    /// The width that lines are laid out for.
    fn columns(&self) -> usize;

    fn painter(&self) -> Painter;

    /// Whether lines may be animated.
    fn is_animated(&self) -> bool;

    /// Whether a line now and then says who works, where nothing is animated.
    fn says_alive(&self) -> bool {
        false
    }

    /// Whether the user asked for everything.
    fn is_verbose(&self) -> bool;
}

/// One screen shared by several writers.
impl<S: Screen> Screen for Arc<Mutex<S>> {
    fn answer(&mut self, text: &str) {
        self.lock().answer(text);
    }

    fn event(&mut self, event: &Event) {
        self.lock().event(event);
    }

    fn text(&mut self, line: &Text) {
        self.lock().text(line);
    }

    fn card(&mut self, lines: &[Text]) {
        self.lock().card(lines);
    }

    fn columns(&self) -> usize {
        self.lock().columns()
    }

    fn painter(&self) -> Painter {
        self.lock().painter()
    }

    fn is_animated(&self) -> bool {
        self.lock().is_animated()
    }

    fn is_verbose(&self) -> bool {
        self.lock().is_verbose()
    }
}

/// Columns of the name that begins a line.
const NAME: usize = 11;

/// Characters shown of a tool's detail.
const DETAIL: usize = 90;

/// Determines the colour of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineStyle {
    Plain,
    Strong,
    Faint,
    Emphasis,
    Code,
    Good,
    Bad,
    Warning,
}

/// A view for people or for programs.
pub(crate) enum View<S> {
    Json(S),
    Lines(Lines<S>),
}

impl<S: Screen> View<S> {
    /// Prints a line that is no event. JSON output has none.
    pub(crate) fn say(&mut self, text: &str) {
        if let Self::Lines(lines) = self {
            lines.say(text);
        }
    }

    pub(crate) fn into_screen(self) -> S {
        match self {
            Self::Json(screen) => screen,
            Self::Lines(lines) => lines.into_screen(),
        }
    }
}

impl<S: Screen> Show for View<S> {
    fn show(&mut self, event: &Event) {
        match self {
            Self::Json(screen) => screen.event(event),
            Self::Lines(lines) => lines.show(event),
        }
    }
}

/// The line for an event that needs nothing else than a line.
fn agent_line(kind: &EventKind) -> Option<(LineStyle, String)> {
    Some(match kind {
        EventKind::ModelFallback { from, to, reason } => {
            (LineStyle::Warning, format!("works on model {to} and not on {from}: {reason}"))
        }
        EventKind::EngineGoverned { engine, by, lacks_tools } => {
            let tools = if *lacks_tools { " and has no tools of squad's" } else { "" };
            (LineStyle::Faint, format!("{engine} asks nobody{tools}; what governs it: {by}"))
        }
        EventKind::DecisionLogged { decision, .. } => {
            (LineStyle::Good, format!("decision {}: {}", decision.id, decision.title))
        }
        EventKind::RouteRequested { to, text, wait } => {
            let waits = if *wait { " and waits" } else { "" };
            (LineStyle::Plain, format!("hands work to {to}{waits}: {}", first_line(text, DETAIL)))
        }
        EventKind::DecisionDelivered { decisions, .. } => {
            (LineStyle::Faint, format!("was told of {}", plural(decisions.len(), "decision")))
        }
        EventKind::CancelRequested { reason } => (LineStyle::Warning, format!("cancel: {reason}")),
        EventKind::UserMessage { text } => (LineStyle::Plain, format!("is told by you: {}", first_line(text, DETAIL))),
        EventKind::MemoryLogged { text, .. } => (LineStyle::Faint, format!("learned: {}", first_line(text, DETAIL))),
        EventKind::ClonePreparing { command } if !command.is_empty() => {
            (LineStyle::Faint, format!("makes its clone ready: $ {}", first_line(command, DETAIL)))
        }
        EventKind::GitFetched { reference, commit, name } => {
            let (commit, name) = (commit.get(..7).unwrap_or(commit), name.trim_start_matches("refs/heads/"));
            (LineStyle::Good, format!("its commit {commit} of {} is kept as {reference}", first_line(name, 80)))
        }
        EventKind::CloneCommitted { conflicts, .. } if !conflicts.is_empty() => {
            (LineStyle::Warning, format!("its work is set aside: it conflicts in {}", list(conflicts)))
        }
        EventKind::WorkSetAside { conflicts, check, .. } => {
            let why = match check {
                Some(check) => format!("`{}` {} with it", first_line(&check.command, 80), check.result()),
                None => format!("it conflicts in {}", list(conflicts)),
            };
            (LineStyle::Warning, format!("its work is not merged: {why}"))
        }
        EventKind::RunMerged { branch, commit, merged, by, left, .. } => {
            let by = by.as_ref().map(|by| format!(" by {}", first_line(by, 40))).unwrap_or_default();
            let left = if left.is_empty() { String::new() } else { format!(", without {}", list(left)) };
            let commit = commit.get(..7).unwrap_or(commit);
            (LineStyle::Good, format!("merged into {branch} as {commit}{by}: {}{left}", list(merged)))
        }
        EventKind::SessionResumed { changed: true, .. } => {
            let text = "its session is made anew: charter, model, tools or policy changed";
            (LineStyle::Faint, text.to_owned())
        }
        EventKind::HostAssigned { host } => (LineStyle::Faint, format!("works on {host}")),
        EventKind::ConnectionLost { reason } => (LineStyle::Warning, format!("connection lost: {reason}")),
        EventKind::ConnectionRestored { .. } => (LineStyle::Good, "connection restored".to_owned()),
        EventKind::SessionError { reason, .. } => (LineStyle::Warning, reason.clone()),
        EventKind::QuotaOpened { engine, reason, until } => {
            let until = until.map(|until| until.strftime(" until %Y-%m-%d %H:%M UTC").to_string());
            (LineStyle::Warning, format!("the quota of {engine} is used up{}: {reason}", until.unwrap_or_default()))
        }
        EventKind::QuotaClosed { engine } => (LineStyle::Good, format!("the quota of {engine} is there again")),
        EventKind::HookAnswered(answered) => {
            let failed = answered.effect == HookEffect::Failed;
            let style = if failed { LineStyle::Warning } else { LineStyle::Plain };
            (style, first_line(&answered.to_string(), 2 * DETAIL))
        }
        _ => return None,
    })
}

/// A call as a person would write it.
fn call(tool: &str, detail: &str, has_exit_code: bool) -> String {
    match change_by(tool) {
        Some(Access::Shell) => format!("$ {detail}"),
        _ if has_exit_code => format!("$ {detail}"),
        _ => format!("{tool} {detail}").trim_end().to_owned(),
    }
}
