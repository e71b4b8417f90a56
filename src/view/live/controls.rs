//! Interprets keys: select, inspect, find, cancel, answer.

use super::agents::{Agents, Key as RowKey};
use crate::model::{OpenQuestion, RunId, Slug};
use crate::view::channel::UserCommand;
use crate::view::dialog::{Dialog as PermissionDialog, Pressed};
use crate::view::keys::Key;

#[derive(Default)]
pub(super) struct Controls {
    chosen: Option<RowKey>,
    pub(super) viewed: Option<Viewed>,
    /// What was looked for last.
    sought: String,
    pub(super) dialog: Dialog,
    /// Shown until the next key.
    pub(super) notice: Option<String>,
    pub(super) is_ending: bool,
}

/// What alone is shown, while lines wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Viewed {
    LinesOf(Slug),
    /// Not yet: they are being looked up.
    ComingChanges {
        run: RunId,
        agent: Slug,
    },
    ChangesOf(Slug),
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
    /// A message to an agent at work.
    Message {
        run: RunId,
        agent: Slug,
        /// What was typed of it so far.
        text: String,
    },
    /// What was typed so far of what is looked for.
    Find(String),
    /// One key answers.
    Permission {
        run: RunId,
        question: OpenQuestion,
        asked: PermissionDialog,
    },
    Answer {
        run: RunId,
        question: OpenQuestion,
        /// What the answer begins with, and what was typed of it so far.
        before: &'static str,
        text: String,
    },
}

/// What to do after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    UserCommand(UserCommand),
    /// Show this agent's lines only.
    Inspect(Slug),
    /// Show what this agent changed in a run.
    ShowChanges {
        run: RunId,
        agent: Slug,
    },
    /// Choose the next agent that has this text.
    Find(String),
    Back,
    /// Show a whole question.
    ShowQuestion(String),
    /// End the watch.
    End,
}

impl Controls {
    /// The selected row. If it is gone, its successor.
    pub(super) fn chosen<'a>(&self, agents: &'a Agents) -> Option<&'a RowKey> {
        let rows = agents.rows();
        match &self.chosen {
            Some(chosen) => rows.range(chosen..).next().or_else(|| rows.iter().next_back()).map(|(key, _)| key),
            None => rows.keys().next(),
        }
    }

    pub(super) fn go_to(&mut self, row: RowKey) {
        self.chosen = Some(row);
    }

    /// All rows, those behind the selected one first, which comes last.
    pub(super) fn behind_chosen(&self, agents: &Agents) -> Vec<RowKey> {
        let mut keys: Vec<RowKey> = agents.rows().keys().cloned().collect();
        let chosen = self.chosen(agents).and_then(|chosen| keys.iter().position(|key| key == chosen));
        keys.rotate_left(chosen.map_or(0, |at| at + 1));
        keys
    }

    pub(super) fn press(&mut self, key: Key, agents: &Agents) -> Action {
        self.notice = None;
        match std::mem::take(&mut self.dialog) {
            Dialog::None => self.plain(key, agents),
            Dialog::Help => match key {
                Key::Char('q') | Key::Control('d') => Action::End,
                _ => Action::Nothing,
            },
            Dialog::Cancel { run, agent } => match key {
                Key::Char('y' | 'Y') => Action::UserCommand(UserCommand::Cancel { run, agent }),
                Key::Char('n' | 'N') | Key::Escape | Key::Enter => Action::Nothing,
                Key::Control('d') => Action::End,
                _ => {
                    self.dialog = Dialog::Cancel { run, agent };
                    Action::Nothing
                }
            },
            Dialog::Message { run, agent, text } => self.message(key, run, agent, text),
            Dialog::Find(text) => self.find(key, text),
            Dialog::Permission { run, question, asked } => self.permit(key, run, question, asked),
            Dialog::Answer { run, question, before, text } => self.answer(key, run, question, (before, text)),
        }
    }

    fn plain(&mut self, key: Key, agents: &Agents) -> Action {
        match key {
            Key::Up | Key::Char('k') => self.choose(agents, -1),
            Key::Down | Key::Char('j') => self.choose(agents, 1),
            Key::Char('?') => self.dialog = Dialog::Help,
            Key::Char('c') => self.begin(agents, |run, agent| Dialog::Cancel { run, agent }),
            Key::Char('m') => self.begin(agents, |run, agent| Dialog::Message { run, agent, text: String::new() }),
            Key::Char('a') => return self.begin_to_answer(agents),
            Key::Char('D') => return self.show_changes(agents),
            Key::Char('/') => self.dialog = Dialog::Find(String::new()),
            Key::Char('q') | Key::Control('d') => return Action::End,
            Key::Enter | Key::Escape if self.viewed.is_some() => {
                self.viewed = None;
                return Action::Back;
            }
            Key::Enter => {
                if let Some(row) = self.chosen(agents) {
                    self.viewed = Some(Viewed::LinesOf(row.agent.clone()));
                    return Action::Inspect(row.agent.clone());
                }
            }
            _ => {}
        }
        Action::Nothing
    }

    fn choose(&mut self, agents: &Agents, by: isize) {
        let keys: Vec<&RowKey> = agents.rows().keys().collect();
        let at = self.chosen(agents).and_then(|chosen| keys.iter().position(|key| *key == chosen)).unwrap_or_default();
        self.chosen =
            keys.get(at.saturating_add_signed(by).min(keys.len().saturating_sub(1))).map(|key| (*key).clone());
    }

    /// Opens a dialog about the work of the chosen agent.
    fn begin(&mut self, agents: &Agents, dialog: impl FnOnce(RunId, Slug) -> Dialog) {
        let Some(key) = self.chosen(agents) else { return };
        match agents.rows().get(key).and_then(|row| row.work.as_ref()) {
            Some(work) => self.dialog = dialog(work.run.clone(), key.agent.clone()),
            None => self.notice = Some(format!("{} is not at work", key.agent)),
        }
    }

    fn show_changes(&mut self, agents: &Agents) -> Action {
        let Some(key) = self.chosen(agents) else { return Action::Nothing };
        match agents.rows().get(key).and_then(|row| row.run()) {
            Some(run) => Action::ShowChanges { run: run.clone(), agent: key.agent.clone() },
            None => {
                self.notice = Some(format!("{} has not worked here yet; `squad diff` shows the newest run", key.agent));
                Action::Nothing
            }
        }
    }

    /// Nothing typed means the same as before.
    fn find(&mut self, key: Key, mut text: String) -> Action {
        match key {
            Key::Enter => {
                if !text.trim().is_empty() {
                    text.trim().clone_into(&mut self.sought);
                }
                return if self.sought.is_empty() { Action::Nothing } else { Action::Find(self.sought.clone()) };
            }
            Key::Escape => return Action::Nothing,
            Key::Control('d') if text.is_empty() => return Action::End,
            key => edit(&mut text, key),
        }
        self.dialog = Dialog::Find(text);
        Action::Nothing
    }

    fn message(&mut self, key: Key, run: RunId, agent: Slug, mut text: String) -> Action {
        match key {
            Key::Enter if text.trim().is_empty() => return Action::Nothing,
            Key::Enter => return Action::UserCommand(UserCommand::Say { run, agent, text }),
            Key::Escape => return Action::Nothing,
            Key::Control('d') if text.is_empty() => return Action::End,
            key => edit(&mut text, key),
        }
        self.dialog = Dialog::Message { run, agent, text };
        Action::Nothing
    }

    fn begin_to_answer(&mut self, agents: &Agents) -> Action {
        let Some(key) = self.chosen(agents) else { return Action::Nothing };
        let work = agents.rows().get(key).and_then(|row| row.work.as_ref());
        match work.and_then(|work| Some((work.run.clone(), work.questions.first()?.clone()))) {
            Some((run, question)) => {
                if let Some(proposal) = &question.proposal {
                    let mut asked = PermissionDialog::new((**proposal).clone());
                    asked.is_ready = true;
                    self.dialog = Dialog::Permission { run, question, asked };
                    return Action::Nothing;
                }
                let action = Action::ShowQuestion(question.text.clone());
                self.dialog = Dialog::Answer { run, question, before: "", text: String::new() };
                action
            }
            None => {
                self.notice = Some(format!("{} asks nothing", key.agent));
                Action::Nothing
            }
        }
    }

    fn permit(&mut self, key: Key, run: RunId, question: OpenQuestion, mut asked: PermissionDialog) -> Action {
        match key {
            Key::Escape => return Action::Nothing,
            Key::Control('d') => return Action::End,
            _ => {}
        }
        let mut action = Action::Nothing;
        match asked.press(key) {
            Pressed::Nothing => {}
            Pressed::Answer(answer) => {
                let (question, text) = (question.question, answer.to_owned());
                return Action::UserCommand(UserCommand::Answer { run, question, text });
            }
            Pressed::Say => {
                let asker = question.agent.as_ref().map_or("squad", Slug::as_str);
                let question = OpenQuestion { text: format!("Why not? {asker} reads it: "), ..question };
                self.dialog = Dialog::Answer { run, question, before: "s ", text: String::new() };
                return Action::Nothing;
            }
            Pressed::ShowAll => {
                let lines: Vec<String> = asked.body().map(|line| line.to_string()).collect();
                action = Action::ShowQuestion(format!("{}\n{}", asked.title(), lines.join("\n")));
            }
        }
        self.dialog = Dialog::Permission { run, question, asked };
        action
    }

    fn answer(&mut self, key: Key, run: RunId, question: OpenQuestion, typed: (&'static str, String)) -> Action {
        let (before, mut text) = typed;
        match key {
            // No reason is a change of mind.
            Key::Enter if !before.is_empty() && text.trim().is_empty() => return Action::Nothing,
            Key::Enter => {
                let (question, text) = (question.question, format!("{before}{text}"));
                return Action::UserCommand(UserCommand::Answer { run, question, text });
            }
            Key::Escape => return Action::Nothing,
            Key::Control('d') if text.is_empty() => return Action::End,
            key => edit(&mut text, key),
        }
        self.dialog = Dialog::Answer { run, question, before, text };
        Action::Nothing
    }

    /// Closes a dialog that is no longer needed.
    pub(super) fn settle(&mut self, agents: &Agents) {
        let is_over = match &self.dialog {
            Dialog::None | Dialog::Help | Dialog::Find(_) => false,
            Dialog::Cancel { run, agent } | Dialog::Message { run, agent, .. } => !agents.works_in(run, agent),
            Dialog::Permission { run, question, .. } | Dialog::Answer { run, question, .. } => {
                !agents.is_open(run, question.question)
            }
        };
        if is_over {
            self.notice = Some(match std::mem::take(&mut self.dialog) {
                Dialog::Cancel { agent, .. } | Dialog::Message { agent, .. } => format!("{agent} has ended its work"),
                _ => "the question was answered or is no longer needed".to_owned(),
            });
        }
    }
}

/// Changes a text as the key says, if it does.
fn edit(text: &mut String, key: Key) {
    match key {
        Key::Char(letter) => text.push(letter),
        Key::Backspace => drop(text.pop()),
        Key::Control('u') => text.clear(),
        _ => {}
    }
}
