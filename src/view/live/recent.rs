//! What each agent has said and done lately, for whoever looks into it.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Event, Slug, What, first_line};
use crate::view::Mood;

/// Lines that are kept of an agent.
const KEPT: usize = 40;
/// Characters of a tool's detail.
const DETAIL: usize = 160;

#[derive(Default)]
pub(super) struct Recent(BTreeMap<Slug, Lately>);

#[derive(Default)]
struct Lately {
    lines: VecDeque<(Mood, String)>,
    /// Of the message that it is writing: what has come, and how much of it is among the lines.
    saying: String,
    said: usize,
}

impl Recent {
    /// The lines that this adds for its agent.
    pub(super) fn note(&mut self, event: &Event) -> Vec<(Mood, String)> {
        let Some(agent) = &event.agent else { return Vec::new() };
        let lately = self.0.entry(agent.clone()).or_default();
        let lines = lately.of(&event.what);
        lately.lines.extend(lines.iter().cloned());
        lately.lines.drain(..lately.lines.len().saturating_sub(KEPT));
        lines
    }

    pub(super) fn lines(&self, agent: &Slug) -> impl Iterator<Item = &(Mood, String)> {
        self.0.get(agent).into_iter().flat_map(|lately| &lately.lines)
    }

    /// The line that an agent is writing.
    pub(super) fn saying(&self, agent: &Slug) -> &str {
        self.0.get(agent).and_then(|lately| lately.saying.get(lately.said..)).unwrap_or_default()
    }
}

impl Lately {
    fn of(&mut self, what: &What) -> Vec<(Mood, String)> {
        let plain = |text: &str| text.lines().map(|line| (Mood::Plain, line.to_owned())).collect();
        match what {
            What::MessageDelta { text } => {
                self.saying.push_str(text);
                let Some(end) = self.saying.rfind('\n').filter(|end| *end >= self.said) else { return Vec::new() };
                let lines = plain(&self.saying[self.said..end]);
                self.said = end + 1;
                lines
            }
            What::Message { text } => {
                // What has been shown as it came is not shown again.
                let shown = self.saying.get(..self.said).unwrap_or_default();
                let rest = text.strip_prefix(shown).unwrap_or(text).to_owned();
                (self.saying, self.said) = (String::new(), 0);
                plain(&rest)
            }
            what => {
                let mut lines = Vec::new();
                if !self.saying.is_empty() {
                    // It was cut off.
                    lines = plain(&self.saying[self.said..]);
                    (self.saying, self.said) = (String::new(), 0);
                }
                let (mood, text) = match what {
                    What::ToolStarted { tool, detail, .. } => {
                        (Mood::Faint, format!("{tool} {}", first_line(detail, DETAIL)))
                    }
                    What::ToolCompleted { tool, ok: false, result, .. } => {
                        (Mood::Warning, format!("{tool} failed: {}", first_line(result, DETAIL)))
                    }
                    What::ToolCompleted { result, .. } => (Mood::Faint, format!("  {}", first_line(result, DETAIL))),
                    What::ToolDenied { tool, reason, .. } => (Mood::Warning, format!("{tool} was refused: {reason}")),
                    What::DecisionLogged { decision, .. } => (Mood::Good, format!("decision: {}", decision.title)),
                    What::MemoryLogged { text } => (Mood::Faint, format!("learned: {}", first_line(text, DETAIL))),
                    What::RouteRequested { to, text, .. } => {
                        (Mood::Plain, format!("hands work to {to}: {}", first_line(text, DETAIL)))
                    }
                    What::QuestionAsked { text, .. } => (Mood::Warning, text.clone()),
                    What::CancelRequested { reason } => (Mood::Warning, format!("cancel: {reason}")),
                    // Those that nobody works in yet are not.
                    What::SessionCreated { session, model, warm: true, .. } => {
                        (Mood::Faint, format!("begins in session {session} on {model}"))
                    }
                    What::SessionError { reason, .. } => (Mood::Warning, reason.clone()),
                    what => match what.end() {
                        Some((outcome, end)) => (Mood::Good, format!("{outcome} {}", end.reason)),
                        None => return lines,
                    },
                };
                lines.extend(
                    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(|line| (mood, line.to_owned())),
                );
                lines
            }
        }
    }
}
