//! Recent messages and actions of each agent, shown when it is inspected.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Event, EventKind, Slug, first_line, indented_beginning};
use crate::view::LineStyle;

/// Lines kept for each agent.
const MAX_LINES: usize = 40;
/// Characters shown of a tool's detail.
const DETAIL: usize = 160;

#[derive(Default)]
pub(super) struct Recent(BTreeMap<Slug, AgentHistory>);

#[derive(Default)]
struct AgentHistory {
    lines: VecDeque<(LineStyle, String)>,
    /// The message in progress, and how much of it is already in `lines`.
    partial: String,
    already_shown: usize,
}

impl Recent {
    /// Adds an event. Returns the agent's new lines.
    pub(super) fn note(&mut self, event: &Event) -> Vec<(LineStyle, String)> {
        let Some(agent) = &event.agent else { return Vec::new() };
        let history = self.0.entry(agent.clone()).or_default();
        let lines = history.lines_for(&event.kind);
        history.lines.extend(lines.iter().cloned());
        history.lines.drain(..history.lines.len().saturating_sub(MAX_LINES));
        lines
    }

    pub(super) fn lines(&self, agent: &Slug) -> impl Iterator<Item = &(LineStyle, String)> {
        self.0.get(agent).into_iter().flat_map(|history| &history.lines)
    }

    /// The line that an agent is writing.
    pub(super) fn partial_line(&self, agent: &Slug) -> &str {
        self.0.get(agent).and_then(|history| history.partial.get(history.already_shown..)).unwrap_or_default()
    }
}

impl AgentHistory {
    fn lines_for(&mut self, kind: &EventKind) -> Vec<(LineStyle, String)> {
        let plain = |text: &str| text.lines().map(|line| (LineStyle::Plain, line.to_owned())).collect();
        match kind {
            EventKind::MessageDelta { text } => {
                self.partial.push_str(text);
                let Some(end) = self.partial.rfind('\n').filter(|end| *end >= self.already_shown) else {
                    return Vec::new();
                };
                let lines = plain(&self.partial[self.already_shown..end]);
                self.already_shown = end + 1;
                lines
            }
            EventKind::Message { text } => {
                // Text already shown is not repeated.
                let already_shown = self.partial.get(..self.already_shown).unwrap_or_default();
                let rest = text.strip_prefix(already_shown).unwrap_or(text).to_owned();
                (self.partial, self.already_shown) = (String::new(), 0);
                plain(&rest)
            }
            kind => {
                let mut lines = Vec::new();
                if !self.partial.is_empty() {
                    // The message was cut off.
                    lines = plain(&self.partial[self.already_shown..]);
                    (self.partial, self.already_shown) = (String::new(), 0);
                }
                if let Some((style, text)) = action_line(kind) {
                    let text = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
                    lines.extend(text.map(|line| (style, line.to_owned())));
                }
                lines
            }
        }
    }
}

fn action_line(kind: &EventKind) -> Option<(LineStyle, String)> {
    Some(match kind {
        EventKind::ToolStarted { tool, detail, .. } => {
            (LineStyle::Faint, format!("{tool} {}", indented_beginning(detail, DETAIL, "`squad log` shows them")))
        }
        EventKind::ToolCompleted { tool, ok: false, result, .. } => {
            (LineStyle::Warning, format!("{tool} failed: {}", first_line(result, DETAIL)))
        }
        EventKind::ToolCompleted { result, .. } => (LineStyle::Faint, format!("  {}", first_line(result, DETAIL))),
        EventKind::ToolDenied { tool, reason, .. } => (LineStyle::Warning, format!("{tool} was refused: {reason}")),
        EventKind::DecisionLogged { decision, .. } => (LineStyle::Good, format!("decision: {}", decision.title)),
        EventKind::MemoryLogged { text, .. } => (LineStyle::Faint, format!("learned: {}", first_line(text, DETAIL))),
        EventKind::RouteRequested { to, text, .. } => {
            (LineStyle::Plain, format!("hands work to {to}: {}", first_line(text, DETAIL)))
        }
        EventKind::QuestionAsked { text, .. } => (LineStyle::Warning, text.clone()),
        EventKind::CancelRequested { reason } => (LineStyle::Warning, format!("cancel: {reason}")),
        // Sessions that were opened without work are not shown.
        EventKind::SessionCreated { session, model, warm: true, .. } => {
            (LineStyle::Faint, format!("begins in session {session} on {model}"))
        }
        EventKind::SessionError { reason, .. } => (LineStyle::Warning, reason.clone()),
        kind => {
            let (outcome, end) = kind.end()?;
            (LineStyle::Good, format!("{outcome} {}", end.reason))
        }
    })
}
