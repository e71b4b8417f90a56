//! A conversation: a sequence of messages, each of them a run. Sessions stay open between them, and the conversation is
//! saved, so that another process can continue it.

use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{Event, EventKind, Outcome, RunId, Slug};
use crate::ops::run::conversation_sessions::ConversationSessions;
use crate::ops::run::orchestrate::{self, Host, Sessions};
use crate::ops::run::order::{self, Ended, Order};
use crate::ops::run::recall;
use crate::ops::run::saved_conversation::{ConversationFile, SavedConversation};
use crate::ops::run::signals::{SignalGuard, Signals};
use crate::ops::run::watch::{self, Asked};
use crate::ops::{Project, Workspace, runtime};
use crate::pool::{Cancel, Show};
use crate::view::keys;

pub(crate) struct Conversation<'a> {
    env: &'a Env,
    runtime: Runtime,
    file: Arc<ConversationFile>,
    saved: SavedConversation,
    progress: Arc<Mutex<Progress>>,
    /// Its own sessions, used without a watch.
    sessions: ConversationSessions,
}

/// What the events of the current run have shown so far.
#[derive(Default)]
struct Progress {
    run: Option<RunId>,
    /// Whether any agent has completed its work.
    has_completed: bool,
}

/// The conversation's current run, for other threads.
#[derive(Clone)]
pub(crate) struct RunAtWork(Arc<Mutex<Progress>>);

impl RunAtWork {
    /// Whether the run was cancelled before any agent completed its work.
    pub(crate) fn was_stopped(&self, ended: Outcome) -> bool {
        ended == Outcome::Cancelled && !self.0.lock().has_completed
    }

    /// `None`: it has not started.
    pub(crate) fn id(&self) -> Option<RunId> {
        self.0.lock().run.clone()
    }
}

impl<'a> Conversation<'a> {
    /// Starts a new conversation, or continues an earlier one.
    pub(crate) fn begin(
        env: &'a Env,
        workspace: &Workspace,
        earlier: Option<SavedConversation>,
    ) -> Result<Self, Failure> {
        let saved = earlier.unwrap_or_else(|| SavedConversation::new(env.ids.run(env.clock.now())));
        let file = Arc::new(ConversationFile::take(workspace, &saved.id)?);
        let sessions = ConversationSessions::new(recall::store(workspace));
        Ok(Self { env, runtime: runtime(env)?, file, saved, progress: Arc::default(), sessions })
    }

    /// The last run, if it did not complete.
    pub(crate) fn interrupted(&self) -> Option<&RunId> {
        self.saved.interrupted.as_ref()
    }

    /// The current run.
    pub(crate) fn at_work(&self) -> RunAtWork {
        RunAtWork(Arc::clone(&self.progress))
    }

    /// Reads input between two messages. A signal then ends the program at once, after restoring the terminal: there is
    /// no run to end first.
    pub(crate) fn idle<T>(&self, read: impl FnOnce() -> T) -> T {
        let (runtime, is_typed) = (&self.runtime, Notify::new());
        // Before the prompt installs its own handlers, because it restores the ones it finds.
        let signals = {
            let _entered = runtime.enter();
            self.env.signals.then(Signals::listen)
        };
        let signalled = async {
            if let Some(Ok(mut signals)) = signals {
                tokio::select! {
                    () = is_typed.notified() => {}
                    () = signals.next() => {
                        keys::restore();
                        std::process::exit(i32::from(FailureKind::Interrupted.exit_code()));
                    }
                }
            }
        };
        keys::remember();
        thread::scope(|scope| {
            scope.spawn(|| runtime.block_on(signalled));
            let typed = read();
            is_typed.notify_one();
            keys::restore();
            typed
        })
    }

    /// Carries out the next message: in the sessions of `squad watch`, or in its own.
    pub(crate) fn send<S: Show + Send + 'static>(
        &mut self,
        project: &Project,
        order: Order,
        show: S,
        declined: impl FnOnce(&mut S, &str),
    ) -> (S, Result<Ended, Failure>) {
        *self.progress.lock() = Progress::default();
        let conversation = Some(order::Conversation { id: self.saved.id.clone(), earlier: self.saved.turns.clone() });
        let order = Order { conversation, ..order };
        let message = order.message.clone();
        let saved = SavedConversation { at: self.env.clock.now(), ..self.saved.clone() };
        let begins = Some((Arc::clone(&self.file), saved));
        let mut show = ProgressTracker { show, progress: Arc::clone(&self.progress), begins };
        let (show, ended) = match watch::orchestrate(self.env, project, &order, &mut show) {
            Asked::Ran(ended) => (show, *ended),
            asked => {
                if let Asked::Declined(reason) = asked {
                    declined(&mut show.show, &reason);
                }
                self.runtime.block_on(send_here(self.env, project, order, show, self.sessions.clone()))
            }
        };
        self.save(message, &ended);
        (show.show, ended)
    }

    /// Saves the conversation after every message, so that another process can continue it.
    fn save(&mut self, message: String, ended: &Result<Ended, Failure>) {
        {
            let progress = self.progress.lock();
            let is_over = ended.as_ref().is_ok_and(|ended| ended.status == Outcome::Completed);
            self.saved.interrupted = progress.run.clone().filter(|_| !is_over);
        }
        if let Ok(Ended { answer: Some(answer), .. }) = ended {
            self.saved.turns.push((message, answer.clone()));
        }
        self.saved.at = self.env.clock.now();
        self.file.write(&self.saved);
    }

    /// Ends its sessions, which can be resumed later, and its engine.
    pub(crate) fn close(self) {
        let pool = self.sessions.take();
        if let Some(pool) = pool.and_then(Arc::into_inner) {
            self.runtime.block_on(pool.stop());
        }
        // An unanswered question must not keep the program alive.
        self.runtime.shutdown_background();
    }
}

async fn send_here<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    order: Order,
    show: S,
    sessions: ConversationSessions,
) -> (S, Result<Ended, Failure>) {
    let (canceller, cancel) = Cancel::channel();
    let _signals = match SignalGuard::by(&canceller, env) {
        Ok(guard) => guard,
        Err(failure) => return (show, Err(failure)),
    };
    let sessions = Sessions::Conversation(sessions);
    orchestrate::execute(env, project, order, show, Host { canceller, cancel, sessions }).await
}

/// Tracks a run's progress from its events, and shows them.
struct ProgressTracker<S> {
    show: S,
    progress: Arc<Mutex<Progress>>,
    /// Saved at the first event, so that the conversation can be continued however this process ends.
    begins: Option<(Arc<ConversationFile>, SavedConversation)>,
}

impl<S: Show> Show for ProgressTracker<S> {
    fn show(&mut self, event: &Event) {
        if let Some((file, saved)) = self.begins.take() {
            file.write(&SavedConversation { interrupted: Some(event.run.clone()), ..saved });
        }
        {
            let mut progress = self.progress.lock();
            progress.run.get_or_insert_with(|| event.run.clone());
            // The coordinator does not count: it answers even if the work was stopped.
            if let (Some(agent), EventKind::Completed(_)) = (&event.agent, &event.kind) {
                progress.has_completed |= *agent != Slug::coordinator();
            }
        }
        self.show.show(event);
    }
}
