//! What each agent did of late, shown when it is looked into: the same lines as in the terminal of its run, and more.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Event, Slug};
use crate::view::{Story, Text};

/// Lines kept for each agent.
const MAX_LINES: usize = 40;

#[derive(Default)]
pub(super) struct Recent(BTreeMap<Slug, AgentHistory>);

struct AgentHistory {
    story: Story,
    lines: VecDeque<Text>,
}

impl Recent {
    /// Adds an event. Returns the agent's new lines.
    pub(super) fn note(&mut self, event: &Event) -> Vec<Text> {
        let Event { at, agent, position, kind, .. } = event;
        let Some(agent) = agent else { return Vec::new() };
        let begin = || AgentHistory { story: Story::live(true), lines: VecDeque::new() };
        let history = self.0.entry(agent.clone()).or_insert_with(begin);
        let lines = history.story.see(*at, Some(agent), *position, kind);
        history.lines.extend(lines.iter().cloned());
        history.lines.drain(..history.lines.len().saturating_sub(MAX_LINES));
        lines
    }

    /// Its last lines with a text, or none if its name has it. `None`: neither has.
    pub(super) fn find(&mut self, agent: &Slug, text: &str) -> Option<Vec<Text>> {
        let text = text.to_lowercase();
        if agent.as_str().to_lowercase().contains(&text) {
            return Some(Vec::new());
        }
        let mut lines = self.lines(agent);
        lines.retain(|line| line.to_string().to_lowercase().contains(&text));
        (!lines.is_empty()).then_some(lines)
    }

    /// Its last lines, with a message that may still be its answer.
    pub(super) fn lines(&mut self, agent: &Slug) -> Vec<Text> {
        let Some(history) = self.0.get_mut(agent) else { return Vec::new() };
        history.lines.extend(history.story.rest());
        history.lines.iter().cloned().collect()
    }
}
