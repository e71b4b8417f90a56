//! `squad orchestrate` without a message, on a terminal: a conversation with the team.
//!
//! ```text
//! prompt ── message ──→ run ──→ prompt        the main thread
//!                        ├─ keys ──→ lines: to agents at work, or the next message
//!                        └─ questions ──→ answers          a second one, as long as the run lasts
//! ```

mod keyboard;
mod prompt;
mod side;

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex};
use std::thread;

use keyboard::{Keyboard, Left};
use prompt::{PROMPT, Prompt, Typed, understood};
use side::tell;

use super::args::Args;
use super::show::{epilogue, say_declined};
use crate::commands::{Context, Ended};
use crate::error::Failure;
use crate::model::{first_line, plural, printable};
use crate::ops::Project;
use crate::ops::run::conversation::Conversation;
use crate::ops::run::kept_conversation::{Kept, last_conversation};
use crate::ops::run::order::{Ended as RunEnded, Order};
use crate::policy::Permissions;
use crate::ui::Ui;
use crate::view::{Lines, View, shared};

/// Characters of a message that is shown again.
const SHOWN: usize = 60;

struct Talk<'a> {
    /// How `squad orchestrate` was called; each message is put into it.
    call: Args,
    conversation: Conversation<'a>,
    prompt: Prompt,
    /// Messages that were typed while the team was at work.
    next: VecDeque<String>,
    /// Lines that came when it was over already.
    later: Vec<String>,
    /// A line that was begun then.
    begun: String,
    leaves: bool,
}

/// A message a line, until the user leaves.
pub(in crate::commands) fn converse(call: Args, mut context: Context<'_>) -> (Context<'_>, Ended) {
    let mut talk = match begin(call, &mut context) {
        Ok(talk) => talk,
        Err(failure) => return (context, Err(failure)),
    };
    let ended = loop {
        let typed = match talk.next.pop_front() {
            Some(line) => {
                context.ui.say(&printable(&format!("{PROMPT}{line}")));
                let Some(typed) = understood(&line) else { continue };
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
                None => context.ui.hint("the last message is answered; there is nothing to go on with"),
            },
            Ok(Typed::Leave) => break Ok(0),
            Ok(Typed::Cancel(_)) => context.ui.hint("nobody is at work"),
            Ok(typed) => tell(&mut context, &typed),
            Err(failure) => break Err(failure),
        }
    };
    talk.conversation.close();
    (context, ended)
}

fn begin<'a>(call: Args, context: &mut Context<'a>) -> Result<Talk<'a>, Failure> {
    let project = Project::open(context.env, &context.directory, call.settings(None))?;
    let earlier = last_conversation(context.env, &project).filter(|kept| goes_on(context, kept));
    let conversation = Conversation::begin(context.env, &project, earlier)?;
    let agents = project.team.startable().map(|member| member.slug.clone()).collect();
    let prompt = Prompt::new(agents, &project.folder.root, project.local().join("conversation.history"))?;
    context.ui.hint("a line is a message to the team; /help says more");
    if let Some(run) = conversation.interrupted() {
        context.ui.hint(&format!("run {run} did not complete; /resume goes on with it"));
    }
    let (next, later, begun) = Default::default();
    Ok(Talk { call, conversation, prompt, next, later, begun, leaves: false })
}

/// Offers the conversation that was left last.
fn goes_on(context: &mut Context<'_>, kept: &Kept) -> bool {
    if kept.turns.is_empty() && kept.interrupted.is_none() {
        return false;
    }
    let last = kept.turns.last().map(|(message, _)| format!(", the last “{}”", first_line(message, SHOWN)));
    let at = kept.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M");
    let count = match kept.turns.len() {
        0 => "its first message was cut short".to_owned(),
        count => plural(count, "message"),
    };
    context.ui.confirm(&format!("Go on with the conversation of {at} ({count}{})?", last.unwrap_or_default()))
}

impl Talk<'_> {
    fn say<'a>(&mut self, mut context: Context<'a>) -> Context<'a> {
        let (project, order) = match self.call.prepare(&mut context) {
            Ok(prepared) => prepared,
            Err(failure) => {
                context.ui.failure(&failure);
                return context;
            }
        };
        let (mut context, ended) = self.run(context, &project, order);
        match ended {
            Ok(RunEnded { error: Some(failure), .. }) | Err(failure) => context.ui.failure(&failure),
            Ok(ended) => {
                epilogue(&mut context.ui, &project, &ended);
                // Whoever stops the team does not want the next message to start it again.
                if self.conversation.at_work().was_stopped(ended.status) && !self.next.is_empty() {
                    let waiting: Vec<String> = self.next.drain(..).map(|text| first_line(&text, SHOWN)).collect();
                    context.ui.warning(&format!("not sent: {}", waiting.join("; ")));
                }
            }
        }
        self.next.extend(mem::take(&mut self.later));
        context
    }

    /// Has an order carried out, and hears meanwhile what is typed.
    fn run<'a>(
        &mut self,
        context: Context<'a>,
        project: &Project,
        mut order: Order,
    ) -> (Context<'a>, Result<RunEnded, Failure>) {
        let (handle, source) = match keyboard::connect() {
            Ok(connected) => connected,
            Err(error) => return (context, Err(Failure::failed(format!("cannot hear what is typed: {error}")))),
        };
        // Somebody is there to be asked, also where nothing has to be allowed.
        order.ask = (order.permissions != Permissions::Deny).then(|| handle.ask());
        let Context { env, directory, ui, recovered } = context;
        let ui = Arc::new(Mutex::new(ui));
        let lines = Lines::new(Arc::clone(&ui));
        let keyboard = Keyboard {
            prompt: &mut self.prompt,
            env: env.beside(),
            directory: directory.clone(),
            ui: Arc::clone(&ui),
            terminal: lines.terminal(),
            run: self.conversation.at_work(),
            left: Left::default(),
        };
        let conversation = &mut self.conversation;
        let (ended, left) = thread::scope(|scope| {
            let typing = scope.spawn(|| keyboard.serve(source));
            let (view, ended) = {
                // Dropped at the end, or by a panic on the way.
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
        let ui = mem::replace(&mut *shared(&ui), Ui::silent());
        (Context { env, directory, ui, recovered }, ended)
    }
}
