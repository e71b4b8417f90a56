//! A run of the ledger: where it began, its story, and its end.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::text::{Mark, Text};
use super::{Card, LineStyle, Story};
use crate::env::zone_name;
use crate::model::{EventKind, Position, RunId, Slug, first_line};

pub(crate) struct PastRun {
    run: RunId,
    zone: TimeZone,
    story: Story,
    card: Card,
    /// When and where it began, until that is shown.
    began: Option<(Timestamp, String)>,
    engine: String,
}

impl PastRun {
    pub(crate) fn new(run: RunId, zone: TimeZone) -> Self {
        let (story, card, began, engine) = Default::default();
        Self { run, zone, story, card, began, engine }
    }

    /// The lines above the story: the message, then when, where and on which engine.
    pub(crate) fn head(&mut self, at: Timestamp, kind: &EventKind) -> Option<Text> {
        match kind {
            EventKind::RunStarted { text, branch, commit, .. } => {
                let on = branch.as_ref().map(|branch| format!(", on {branch}")).unwrap_or_default();
                let commit = commit.as_ref().and_then(|commit| commit.get(..7));
                let commit = commit.map(|commit| format!(" at {commit}")).unwrap_or_default();
                self.began = Some((at, format!("{on}{commit}")));
                Some(Text::default().with(LineStyle::Strong, &first_line(text, 500)))
            }
            EventKind::EngineStarted { engine, version, .. } => {
                self.engine = format!(", {engine} {version}");
                None
            }
            _ => {
                let (at, place) = self.began.take()?;
                let at = at.to_zoned(self.zone.clone());
                let when = format!("{} ({})", at.strftime("%a %-d %b %Y %H:%M"), zone_name(&at));
                Some(Text::default().with(LineStyle::Faint, &format!("{when}{place}{}", self.engine)))
            }
        }
    }

    /// The lines that an event adds to the story.
    pub(crate) fn see(
        &mut self,
        at: Timestamp,
        agent: Option<&Slug>,
        position: Position,
        kind: &EventKind,
    ) -> Vec<Text> {
        self.card.see(at, Some(&self.run), agent, kind);
        self.story.see(at, agent, position, kind)
    }

    /// What is left of the story at the end of the events.
    pub(crate) fn rest(&mut self) -> Vec<Text> {
        self.story.rest()
    }

    pub(crate) fn answer(&self) -> Option<&str> {
        self.story.answer.as_deref().map(str::trim)
    }

    /// The card, or the state of a run without an end.
    pub(crate) fn end(&self, state: &str, columns: usize) -> Vec<Text> {
        let card = self.card.lines(columns);
        if !card.is_empty() {
            return card;
        }
        let mark = if state == "running" { Mark::Working } else { Mark::Neutral };
        let line = Text::marked(LineStyle::Strong, mark).with(LineStyle::Strong, state).plain("; run ");
        vec![line.with(LineStyle::Faint, self.run.short())]
    }
}
