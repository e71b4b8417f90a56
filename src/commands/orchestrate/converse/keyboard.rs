//! Keyboard input while a run works: lines to agents, lines for later, and answers to questions.
//!
//! The run has the terminal. What the user types stands in its last line, below what scrolls, until Enter; a question takes
//! its place and gives it back. Where nothing can be redrawn, and for keys that move in the line, the prompt has the
//! terminal to the end of the line, and the run's output waits.

use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::prompt::{PROMPT, Prompt, Typed, parse_line};
use super::side::run_command;
use crate::commands::Context;
use crate::env::Env;
use crate::error::Failure;
use crate::model::{Slug, list, printable};
use crate::ops::run::cancel;
use crate::ops::run::conversation::RunAtWork;
use crate::pool::{Ask, Question};
use crate::ui::Ui;
use crate::view::Terminal;
use crate::view::keys::{Key, KeyInput, Keys, RawMode, Waker};

/// How often to check whether the run is over, when waiting for keys is impossible.
const LOOK: Duration = Duration::from_millis(100);

type PendingQuestion = (Question, oneshot::Sender<String>);

/// The run's side of the keyboard thread.
pub(super) struct KeyboardHandle {
    questions: Sender<PendingQuestion>,
    waker: Waker,
    is_over: Arc<AtomicBool>,
}

/// The keyboard thread's input: keys, and the run's questions and end.
pub(super) struct Source {
    keys: Keys,
    questions: Receiver<PendingQuestion>,
    is_over: Arc<AtomicBool>,
}

pub(super) fn connect() -> io::Result<(KeyboardHandle, Source)> {
    let (keys, waker) = Keys::new()?;
    let (sender, questions) = channel();
    let is_over = Arc::<AtomicBool>::default();
    let handle = KeyboardHandle { questions: sender, waker, is_over: Arc::clone(&is_over) };
    Ok((handle, Source { keys, questions, is_over }))
}

impl KeyboardHandle {
    /// The function through which agents ask the user.
    pub(super) fn ask(&self) -> Ask {
        let (questions, waker) = (self.questions.clone(), self.waker.clone());
        Arc::new(move |question, answer| {
            // Fails when the keyboard thread is gone: the question stays unanswered.
            let _ = questions.send((question, answer));
            waker.wake();
        })
    }
}

/// Tells the keyboard thread that the run is over, also after a panic.
impl Drop for KeyboardHandle {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// The keyboard while a run works.
pub(super) struct Keyboard<'p> {
    pub(super) prompt: &'p mut Prompt,
    pub(super) env: Env,
    pub(super) directory: PathBuf,
    pub(super) ui: Arc<Mutex<Ui>>,
    /// Shared with the run's output.
    pub(super) terminal: Terminal,
    pub(super) run: RunAtWork,
    pub(super) left: Leftover,
}

/// Unprocessed input when the run is over.
#[derive(Default)]
pub(super) struct Leftover {
    /// Messages to send next, in order.
    pub(super) queued: Vec<String>,
    /// Lines typed after the run had ended.
    pub(super) later: Vec<String>,
    /// An unfinished line.
    pub(super) begun: String,
    pub(super) leaves: bool,
}

impl Keyboard<'_> {
    /// Handles input until the run is over.
    pub(super) fn serve(mut self, source: Source, mut raw: Option<RawMode>) -> Leftover {
        let Source { mut keys, questions, is_over } = source;
        while !is_over.load(Ordering::Acquire) {
            // As long as nobody else needs the terminal: it would echo what is typed meanwhile, in the middle of the rows.
            raw = raw.or_else(|| RawMode::begin().ok());
            if raw.is_none() {
                // squad does not get the keys, for example because the shell has put it in the background.
                match questions.recv_timeout(LOOK) {
                    Ok(asked) => self.answer(asked),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
                }
                continue;
            }
            match keys.next() {
                KeyInput::Key(key) => self.key(key, &mut keys, &mut raw),
                KeyInput::Woken => {
                    for asked in questions.try_iter() {
                        drop(raw.take());
                        self.answer(asked);
                    }
                }
                // The prompt will find the end of input.
                KeyInput::End => std::thread::sleep(LOOK),
            }
        }
        self.terminal.show_draft(PROMPT, "");
        while let Some(key) = keys.buffered() {
            match key {
                Key::Char(letter) => self.left.begun.push(letter),
                Key::Enter => self.left.later.push(mem::take(&mut self.left.begun)),
                _ => {}
            }
        }
        self.left
    }

    fn answer(&mut self, (question, answer): PendingQuestion) {
        while let Some(line) = self.terminal.ask(&question, &Vec::new, &|| !answer.is_closed()) {
            let command = parse_line(&line).filter(|typed| !matches!(typed, Typed::Message(_) | Typed::Unknown(_)));
            let Some(command) = command else {
                // The agent that asked may have been stopped meanwhile.
                let _ = answer.send(line);
                break;
            };
            if let Err(failure) = self.act(command) {
                self.ui.lock().failure(&failure);
            }
            if answer.is_closed() || self.left.leaves {
                break;
            }
        }
        self.show_what_waited();
    }

    fn show_what_waited(&self) {
        // Lock order as in the run: the terminal first, then the screen.
        self.terminal.release(&mut Arc::clone(&self.ui));
    }

    /// Handles a key of a line that the user types, and those that came with it.
    fn key(&mut self, key: Key, keys: &mut Keys, raw: &mut Option<RawMode>) {
        let (mut next, mut needs_prompt) = (Some(key), false);
        while let Some(key) = next {
            next = keys.buffered();
            let draft = &mut self.left.begun;
            match key {
                Key::Char(letter) => draft.push(letter),
                Key::Backspace => drop(draft.pop()),
                // Lines that come at once are pasted, and one message.
                Key::Enter if next.is_some() || draft.ends_with('\\') => draft.push('\n'),
                Key::Enter if draft.is_empty() => {}
                Key::Enter => return self.line(),
                Key::Control('u') | Key::Escape => draft.clear(),
                Key::Control('w') => draft.truncate(draft.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1)),
                _ => needs_prompt = !draft.is_empty(),
            }
        }
        if !self.terminal.show_draft(PROMPT, &self.left.begun) || needs_prompt {
            drop(raw.take());
            self.edit();
        }
    }

    /// Handles the line that was typed, or pasted.
    fn line(&mut self) {
        let text = mem::take(&mut self.left.begun);
        self.terminal.show_draft(PROMPT, "");
        self.ui.lock().say(&printable(&format!("{PROMPT}{text}")));
        self.typed(parse_line(&text));
    }

    /// Leaves the line to the prompt.
    fn edit(&mut self) {
        if self.left.begun.is_empty() {
            return;
        }
        let terminal = self.terminal.clone();
        terminal.show_draft(PROMPT, "");
        let paused = terminal.pause();
        let typed = self.prompt.read_one(&mem::take(&mut self.left.begun));
        self.typed(typed);
        drop(paused);
        self.show_what_waited();
    }

    fn typed(&mut self, typed: Option<Typed>) {
        if let Some(typed) = typed
            && let Err(failure) = self.act(typed)
        {
            self.ui.lock().failure(&failure);
        }
    }

    fn act(&mut self, typed: Typed) -> Result<(), Failure> {
        match typed {
            Typed::Message(text) => return self.message(text),
            Typed::Cancel(agent) => return self.cancel(agent.as_deref()),
            Typed::Leave => {
                self.left.leaves = true;
                return self.cancel(None);
            }
            Typed::Resume => self.ui.lock().hint("the team is working; /cancel stops it"),
            Typed::Status | Typed::Agents | Typed::Help | Typed::Unknown(_) => {
                let mut ui = self.ui.lock();
                let directory = self.directory.clone();
                let mut context =
                    Context { env: &self.env, directory, ui: mem::replace(&mut ui, Ui::silent()), recovered: None };
                run_command(&mut context, &typed);
                *ui = context.ui;
            }
        }
        Ok(())
    }

    fn cancel(&self, agent: Option<&str>) -> Result<(), Failure> {
        let Some(run) = self.run.id() else { return Ok(()) };
        cancel::cancel(&self.env, &self.directory, run.as_str(), agent).map(drop)
    }

    /// Sends a line that begins with `@agent` to those agents if they are working; queues any other line as the next
    /// message.
    fn message(&mut self, text: String) -> Result<(), Failure> {
        let (agents, said) = addressed(&text);
        let run = self.run.id();
        let mut not_working = Vec::new();
        for agent in &agents {
            let is_delivered = match &run {
                Some(run) => cancel::say(&self.env, &self.directory, run, agent, said)?,
                None => false,
            };
            if !is_delivered {
                not_working.push(agent);
            }
        }
        if not_working.len() < agents.len() {
            if !not_working.is_empty() {
                self.ui.lock().hint(&format!("not delivered, because they are not working: {}", list(not_working)));
            }
            return Ok(());
        }
        self.ui.lock().hint("queued as the next message; `@agent …` reaches an agent at work");
        self.left.queued.push(text);
        Ok(())
    }
}

/// Splits a line into the agents mentioned at its beginning and the rest.
fn addressed(text: &str) -> (Vec<Slug>, &str) {
    let (mut agents, mut rest) = (Vec::new(), text.trim());
    while let Some(mention) = rest.strip_prefix('@') {
        let (name, said) = mention.split_once(char::is_whitespace).unwrap_or((mention, ""));
        let Some(agent) = Slug::fold(name.trim_end_matches([',', ':'])) else { break };
        agents.push(agent);
        rest = said.trim_start();
    }
    // A mention without text is an ordinary message.
    if rest.is_empty() { (Vec::new(), text) } else { (agents, rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_addressed_by_the_names_at_its_beginning() {
        let of = |text| {
            let (agents, said) = addressed(text);
            (agents.iter().map(Slug::to_string).collect::<Vec<_>>(), said.to_owned())
        };
        assert_eq!(of("@ada: without the cache"), (vec!["ada".to_owned()], "without the cache".to_owned()));
        assert_eq!(of("@ada, @bob stop"), (vec!["ada".to_owned(), "bob".to_owned()], "stop".to_owned()));
        assert_eq!(of("ask @ada"), (Vec::new(), "ask @ada".to_owned()));
        assert_eq!(of("@ada"), (Vec::new(), "@ada".to_owned()));
        assert_eq!(of("@"), (Vec::new(), "@".to_owned()));
    }
}
