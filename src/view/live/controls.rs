//! What a person does with the keys: chooses, looks, cancels, answers.

use super::agents::{Agents, Key as RowKey};
use crate::model::{OpenQuestion, RunId, Slug};
use crate::view::keys::Key;
use crate::view::shown::Wish;

#[derive(Default)]
pub(super) struct Controls {
    chosen: Option<RowKey>,
    /// Only this one's lines are shown.
    pub(super) looking: Option<Slug>,
    pub(super) dialog: Dialog,
    /// Said until the next key.
    pub(super) notice: Option<String>,
    pub(super) is_ending: bool,
}

#[derive(Default)]
pub(super) enum Dialog {
    #[default]
    None,
    Help,
    Cancel {
        run: RunId,
        agent: Slug,
    },
    Answer {
        run: RunId,
        question: OpenQuestion,
        /// What is typed so far.
        text: String,
    },
}

/// What is to be done for a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    Wish(Wish),
    /// Look into an agent.
    Look(Slug),
    Back,
    /// End the watch.
    End,
}

impl Controls {
    /// The row that is chosen. Where it is gone, the one that has its place.
    pub(super) fn chosen<'a>(&self, agents: &'a Agents) -> Option<&'a RowKey> {
        let rows = agents.rows();
        match &self.chosen {
            Some(chosen) => rows.range(chosen..).next().or_else(|| rows.iter().next_back()).map(|(key, _)| key),
            None => rows.keys().next(),
        }
    }

    pub(super) fn press(&mut self, key: Key, agents: &Agents) -> Act {
        self.notice = None;
        match std::mem::take(&mut self.dialog) {
            Dialog::None => self.plain(key, agents),
            Dialog::Help => match key {
                Key::Char('q') | Key::Control('d') => Act::End,
                _ => Act::Nothing,
            },
            Dialog::Cancel { run, agent } => match key {
                Key::Char('y' | 'Y') => Act::Wish(Wish::Cancel { run, agent }),
                Key::Char('n' | 'N') | Key::Escape | Key::Enter => Act::Nothing,
                Key::Control('d') => Act::End,
                _ => {
                    self.dialog = Dialog::Cancel { run, agent };
                    Act::Nothing
                }
            },
            Dialog::Answer { run, question, text } => self.answer(key, run, question, text),
        }
    }

    fn plain(&mut self, key: Key, agents: &Agents) -> Act {
        match key {
            Key::Up | Key::Char('k') => self.choose(agents, -1),
            Key::Down | Key::Char('j') => self.choose(agents, 1),
            Key::Char('?') => self.dialog = Dialog::Help,
            Key::Char('c') => self.begin_to_cancel(agents),
            Key::Char('a') => self.begin_to_answer(agents),
            Key::Char('q') | Key::Control('d') => return Act::End,
            Key::Enter | Key::Escape if self.looking.is_some() => {
                self.looking = None;
                return Act::Back;
            }
            Key::Enter => {
                if let Some(row) = self.chosen(agents) {
                    self.looking = Some(row.agent.clone());
                    return Act::Look(row.agent.clone());
                }
            }
            _ => {}
        }
        Act::Nothing
    }

    fn choose(&mut self, agents: &Agents, by: isize) {
        let keys: Vec<&RowKey> = agents.rows().keys().collect();
        let at = self.chosen(agents).and_then(|chosen| keys.iter().position(|key| *key == chosen)).unwrap_or_default();
        self.chosen =
            keys.get(at.saturating_add_signed(by).min(keys.len().saturating_sub(1))).map(|key| (*key).clone());
    }

    fn begin_to_cancel(&mut self, agents: &Agents) {
        let Some(key) = self.chosen(agents) else { return };
        match agents.rows().get(key).and_then(|row| row.work.as_ref()) {
            Some(work) => self.dialog = Dialog::Cancel { run: work.run.clone(), agent: key.agent.clone() },
            None => self.notice = Some(format!("{} has no work to cancel", key.agent)),
        }
    }

    fn begin_to_answer(&mut self, agents: &Agents) {
        let Some(key) = self.chosen(agents) else { return };
        let work = agents.rows().get(key).and_then(|row| row.work.as_ref());
        match work.and_then(|work| Some((work.run.clone(), work.questions.first()?.clone()))) {
            Some((run, question)) => self.dialog = Dialog::Answer { run, question, text: String::new() },
            None => self.notice = Some(format!("{} asks nothing", key.agent)),
        }
    }

    fn answer(&mut self, key: Key, run: RunId, question: OpenQuestion, mut text: String) -> Act {
        match key {
            Key::Enter => return Act::Wish(Wish::Answer { run, question: question.question, text }),
            Key::Escape => return Act::Nothing,
            Key::Control('d') if text.is_empty() => return Act::End,
            Key::Char(letter) => text.push(letter),
            Key::Backspace => drop(text.pop()),
            Key::Control('u') => text.clear(),
            _ => {}
        }
        self.dialog = Dialog::Answer { run, question, text };
        Act::Nothing
    }

    /// What is asked for may have happened meanwhile.
    pub(super) fn settle(&mut self, agents: &Agents) {
        let is_over = match &self.dialog {
            Dialog::None | Dialog::Help => false,
            Dialog::Cancel { run, agent } => !agents.works_in(run, agent),
            Dialog::Answer { run, question, .. } => !agents.is_open(run, question.question),
        };
        if is_over {
            self.notice = Some(match std::mem::take(&mut self.dialog) {
                Dialog::Cancel { agent, .. } => format!("{agent} has ended its work"),
                _ => "the question has its answer, or needs none any more".to_owned(),
            });
        }
    }
}
