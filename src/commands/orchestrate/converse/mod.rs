//! `squad orchestrate` without a message, on a terminal: a conversation with the team.
//!
//! ```text
//! prompt ── message ──→ run ──→ prompt        the main thread
//!                        ├─ keys ──→ lines: to agents at work, or the next message
//!                        └─ questions ──→ answers          a second thread, while the run lasts
//! ```

mod keyboard;
mod prompt;
mod side;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::thread;

use keyboard::{Keyboard, Leftover};
use parking_lot::Mutex;
use prompt::{PROMPT, Prompt, Typed, parse_line};
use side::run_command;

use super::args::Args;
use super::say_recalled;
use super::show::{epilogue, say_declined};
use crate::commands::{Context, Ended};
use crate::error::Failure;
use crate::model::{first_line, plural, printable};
use crate::ops::Project;
use crate::ops::run::conversation::Conversation;
use crate::ops::run::order::{Ended as RunEnded, Order};
use crate::ops::run::saved_conversation::{SavedConversation, last_conversation};
use crate::policy::Permissions;
use crate::ui::{Consent, Ui};
use crate::view::keys::RawMode;
use crate::view::{LineStyle, Lines, Screen, Text, View};

/// How many characters of an earlier message are shown.
const SHOWN: usize = 60;

struct Repl<'a> {
    /// The arguments of `squad orchestrate`; each message is filled in.
    call: Args,
    conversation: Conversation<'a>,
    prompt: Prompt,
    /// Messages typed while the team was working.
    next: VecDeque<String>,
    /// Lines typed after the run had ended.
    later: Vec<String>,
    /// An unfinished line.
    begun: String,
    leaves: bool,
}

/// Runs one message per line until the user leaves.
pub(in crate::commands) fn converse(call: Args, mut context: Context<'_>) -> (Context<'_>, Ended) {
    let mut talk = match begin(call, &mut context) {
        Ok(talk) => talk,
        Err(failure) => return (context, Err(failure)),
    };
    let ended = loop {
        let typed = match talk.next.pop_front() {
            Some(line) => {
                context.ui.say(&printable(&format!("{PROMPT}{line}")));
                let Some(typed) = parse_line(&line) else { continue };
                Ok(typed)
            }
            None if talk.leaves => Ok(Typed::Leave),
            None => {
                let (prompt, begun) = (&mut talk.prompt, mem::take(&mut talk.begun));
                talk.conversation.idle(|| prompt.read(&begun))
            }
        };
        match typed {
            Ok(Typed::Message(message)) => {
                talk.call.message = Some(message);
                context = talk.say(context);
            }
            Ok(Typed::Resume) => match talk.conversation.interrupted() {
                Some(run) => {
                    talk.call.resume = Some(run.to_string());
                    context = talk.say(context);
                    talk.call.resume = None;
                }
                None => context.ui.hint("the last message was answered; there is nothing to resume"),
            },
            Ok(Typed::Leave) => break Ok(0),
            Ok(Typed::Cancel(_)) => context.ui.hint("nobody is at work"),
            Ok(typed) => run_command(&mut context, &typed),
            Err(failure) => break Err(failure),
        }
    };
    talk.conversation.close();
    (context, ended)
}

fn begin<'a>(call: Args, context: &mut Context<'a>) -> Result<Repl<'a>, Failure> {
    let project = Project::open(context.env, &context.directory, call.settings(None))?;
    let earlier = last_conversation(context.env, &project).filter(|saved| offer_to_continue(context, saved));
    let conversation = Conversation::begin(context.env, &project, earlier)?;
    let agents = project.team.startable().map(|member| member.slug.clone()).collect();
    let prompt = Prompt::new(agents, &project.folder.root, project.local().join("conversation.history"))?;
    if !call.fresh {
        say_recalled(context, &project);
    }
    let name = project.work_dir.file_name().unwrap_or_default().to_string_lossy();
    let members = plural(project.team.members.len(), "member");
    let about = format!(", {members}, {}: each line is a message to the team; /help", project.settings.engine.name);
    context.ui.text(&Text::prose("").with(LineStyle::Strong, &name).plain(&about));
    if let Some(run) = conversation.interrupted() {
        context.ui.hint(&format!("run {run} did not complete; /resume continues it"));
    }
    let (next, later, begun) = Default::default();
    Ok(Repl { call, conversation, prompt, next, later, begun, leaves: false })
}

/// Asks whether to continue the last conversation.
fn offer_to_continue(context: &mut Context<'_>, saved: &SavedConversation) -> bool {
    if saved.turns.is_empty() && saved.interrupted.is_none() {
        return false;
    }
    let last = saved.turns.last().map(|(message, _)| format!(", the last “{}”", first_line(message, SHOWN)));
    let at = saved.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M");
    let count = match saved.turns.len() {
        0 => "its first message was cut short".to_owned(),
        count => plural(count, "message"),
    };
    let question = format!("Continue the conversation of {at} ({count}{})?", last.unwrap_or_default());
    context.ui.confirm(&question, false) == Consent::Yes
}

impl Repl<'_> {
    fn say<'a>(&mut self, mut context: Context<'a>) -> Context<'a> {
        // The terminal would echo what is typed before the run begins.
        let raw = RawMode::begin().ok();
        let (project, order) = match self.call.prepare(&mut context) {
            Ok(prepared) => prepared,
            Err(failure) => {
                context.ui.failure(&failure);
                return context;
            }
        };
        let (mut context, ended) = self.run(context, &project, order, raw);
        match ended {
            Ok(RunEnded { error: Some(failure), .. }) | Err(failure) => context.ui.failure(&failure),
            Ok(ended) => {
                epilogue(&mut context.ui, &project, &ended);
                // A user who stops the team does not want the next message to start it again.
                if self.conversation.at_work().was_stopped(ended.status) && !self.next.is_empty() {
                    let waiting: Vec<String> = self.next.drain(..).map(|text| first_line(&text, SHOWN)).collect();
                    context.ui.warning(&format!("not sent: {}", waiting.join("; ")));
                }
            }
        }
        self.next.extend(mem::take(&mut self.later));
        context
    }

    /// Carries out an order while a second thread reads the keyboard.
    fn run<'a>(
        &mut self,
        context: Context<'a>,
        project: &Project,
        mut order: Order,
        raw: Option<RawMode>,
    ) -> (Context<'a>, Result<RunEnded, Failure>) {
        let (handle, source) = match keyboard::connect() {
            Ok(connected) => connected,
            Err(error) => return (context, Err(Failure::failed(format!("cannot read the keyboard: {error}")))),
        };
        // Agents may ask the user even if they need no permissions.
        order.ask = (order.permissions != Permissions::Deny).then(|| handle.ask());
        let Context { env, directory, ui, recovered } = context;
        let ui = Arc::new(Mutex::new(ui));
        let lines = Lines::new(Arc::clone(&ui));
        let keyboard = Keyboard {
            prompt: &mut self.prompt,
            env: env.clone(),
            directory: directory.clone(),
            ui: Arc::clone(&ui),
            terminal: lines.terminal(),
            run: self.conversation.at_work(),
            left: Leftover::default(),
        };
        let conversation = &mut self.conversation;
        let (ended, left) = thread::scope(|scope| {
            let typing = scope.spawn(|| keyboard.serve(source, raw));
            let (view, ended) = {
                // Dropped at the end or by a panic, which stops the keyboard thread.
                let _handle = handle;
                conversation.send(project, order, View::Lines(lines), say_declined)
            };
            let left = typing.join().unwrap_or_default();
            drop(view.into_screen());
            (ended, left)
        });
        self.next.extend(left.queued);
        self.later = left.later;
        self.begun = left.begun;
        self.leaves |= left.leaves;
        let ui = mem::replace(&mut *ui.lock(), Ui::silent());
        (Context { env, directory, ui, recovered }, ended)
    }
}
