//! A run for people: its story as it happens, a row for each agent at work, and the answer and the card at the end.

use std::collections::BTreeSet;

use super::ask::{Output, Terminal};
use super::text::{Mark, Text};
use super::{Card, LineStyle, Screen, Story};
use crate::engine::EngineKind;
use crate::model::{Event, EventKind, list};
use crate::pool::Show;

pub(crate) struct Lines<S> {
    screen: S,
    terminal: Terminal,
    card: Box<Card>,
    story: Box<Story>,
    has_engine: bool,
    /// Those that were said to be started in this run.
    engines: BTreeSet<String>,
    may_change: bool,
}

impl<S: Screen> Lines<S> {
    pub(crate) fn new(screen: S) -> Self {
        Self {
            terminal: Terminal::new(&screen),
            card: Box::default(),
            story: Box::new(Story::live(screen.is_verbose())),
            screen,
            has_engine: true,
            engines: BTreeSet::new(),
            may_change: true,
        }
    }

    /// Ends with a card that names no further commands.
    pub(crate) fn of_passing_run(mut self) -> Self {
        self.card.names_no_commands = true;
        self
    }

    /// Goes on with a run that has come so far: its card is about all of it.
    pub(crate) fn after(mut self, past: &[Event]) -> Self {
        for Event { at, run, agent, kind, .. } in past {
            self.card.see(*at, Some(run), agent.as_ref(), kind);
        }
        self
    }

    /// The terminal that questions are asked on.
    pub(crate) fn terminal(&self) -> Terminal {
        self.terminal.clone()
    }

    pub(super) fn into_screen(mut self) -> S {
        self.terminal.release(&mut self.screen);
        self.terminal.end();
        self.screen
    }

    /// The rows as they are shown.
    #[cfg(test)]
    pub(super) fn animated(&self) -> Vec<String> {
        self.terminal.rows()
    }

    fn write(&mut self, output: impl IntoIterator<Item = Output>) {
        self.terminal.queue(output);
        self.terminal.release(&mut self.screen);
    }

    pub(super) fn say(&mut self, text: &str) {
        let line = self.story.note(None, text);
        self.write([Output::Text(line)]);
    }

    /// What is said of an event besides the story.
    fn notes(&mut self, kind: &EventKind) -> Vec<Text> {
        match kind {
            EventKind::RunStarted { permissions, attachments, .. } => {
                self.may_change = permissions.as_deref() != Some("deny");
                self.engines.clear();
                let paths = attachments.iter().map(|attachment| &attachment.path);
                let attached = (!attachments.is_empty()).then(|| format!("attached: {}", list(paths)));
                attached.iter().map(|text| self.story.note(None, text)).collect()
            }
            EventKind::EngineStarted { engine, version, warm, .. } => self.engine_started(engine, version, *warm),
            EventKind::RoutePlanned(plan) => {
                let left = plan.left_to_people();
                let left = left.iter().map(|text| self.story.note(None, text));
                let warn = |text: String| self.story.note(Some((Mark::Attention, LineStyle::Warning)), &text);
                left.chain(plan.overlap_warnings().map(warn)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn engine_started(&mut self, engine: &str, version: &str, is_warm: bool) -> Vec<Text> {
        // Each clone has a process of its own.
        if !self.engines.insert(engine.to_owned()) {
            return Vec::new();
        }
        let text = match EngineKind::parse(engine) {
            Some(EngineKind::Rehearsal) => "the rehearsal engine: a script plays, no model is asked".to_owned(),
            _ => format!("engine {engine} {version}"),
        };
        let ready = if is_warm { ", ready under `squad watch`" } else { "" };
        let mut lines = vec![self.story.note(None, &format!("{text}{ready}"))];
        if !self.may_change {
            let text = "nothing may be changed: writes and commands are refused; \
                        `--permissions allow` lets agents make them";
            lines.push(self.story.note(Some((Mark::Attention, LineStyle::Warning)), text));
        }
        lines
    }
}

impl<S: Screen> Show for Lines<S> {
    fn show(&mut self, event: &Event) {
        let Event { at, run, agent, position, kind, .. } = event;
        self.card.see(*at, Some(run), agent.as_ref(), kind);
        self.terminal.see(event);
        // The error message that follows says why.
        if matches!(kind, EventKind::ConnectionFailed { .. }) {
            self.has_engine = false;
            return;
        }
        self.story.begin(run);
        let mut lines = self.story.see(*at, agent.as_ref(), *position, kind);
        lines.extend(self.notes(kind));
        let mut output: Vec<Output> = lines.into_iter().map(Output::Text).collect();
        match kind {
            EventKind::Answer { text } => output.push(Output::Answer(text.clone())),
            EventKind::RunCompleted(_) if self.has_engine => {
                output.push(Output::Card(self.card.lines(self.screen.columns())));
            }
            _ => {}
        }
        match output.is_empty() {
            true => self.terminal.refresh(),
            false => self.write(output),
        }
    }
}
