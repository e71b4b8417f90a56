//! Messages that follow upon each other, each of them a run: sessions stay open between them, and what was said is known,
//! also to the next process.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{Event, Outcome, RunId, Slug, What};
use crate::ops::run::kept_conversation::{ConversationFile, Kept};
use crate::ops::run::kept_sessions::KeptSessions;
use crate::ops::run::orchestrate::{self, Host, Sessions};
use crate::ops::run::order::{self, Ended, Order};
use crate::ops::run::signals::{Obeyed, Signals};
use crate::ops::run::watch::{self, Asked, WatchFiles};
use crate::ops::{Project, Workspace, runtime};
use crate::pool::{Cancel, Show};
use crate::view::keys;

pub(crate) struct Conversation<'a> {
    env: &'a Env,
    runtime: Runtime,
    file: Arc<ConversationFile>,
    kept: Kept,
    progress: Arc<Mutex<Progress>>,
    /// Its own sessions, where no watch has them.
    sessions: KeptSessions,
    /// Where a watch has them, if it has.
    watched: Option<WatchFiles>,
}

/// What the run that is going on has told so far.
#[derive(Default)]
struct Progress {
    run: Option<RunId>,
    /// Those who have a session.
    agents: BTreeSet<Slug>,
    /// Somebody's work was completed.
    has_completed: bool,
}

/// The run of a conversation that is going on, for whoever does something beside it.
#[derive(Clone)]
pub(crate) struct RunAtWork(Arc<Mutex<Progress>>);

impl RunAtWork {
    /// Whoever stopped it stopped all that it was at.
    pub(crate) fn was_stopped(&self, ended: Outcome) -> bool {
        ended == Outcome::Cancelled && !locked(&self.0).has_completed
    }

    /// `None`: it has not begun.
    pub(crate) fn id(&self) -> Option<RunId> {
        locked(&self.0).run.clone()
    }
}

impl<'a> Conversation<'a> {
    /// A new one, or an earlier one that goes on.
    pub(crate) fn begin(env: &'a Env, workspace: &Workspace, earlier: Option<Kept>) -> Result<Self, Failure> {
        let kept = earlier.unwrap_or_else(|| Kept::new(env.ids.run(env.clock.now())));
        let file = Arc::new(ConversationFile::take(workspace, &kept.id)?);
        let sessions = KeptSessions::of(kept.id.clone(), kept.agents.clone());
        Ok(Self { env, runtime: runtime(env)?, file, kept, progress: Arc::default(), sessions, watched: None })
    }

    /// The last run, where it did not complete.
    pub(crate) fn interrupted(&self) -> Option<&RunId> {
        self.kept.interrupted.as_ref()
    }

    /// The run that is going on.
    pub(crate) fn at_work(&self) -> RunAtWork {
        RunAtWork(Arc::clone(&self.progress))
    }

    /// Reads what is typed between two messages. A signal ends the program then: there is nothing to be ended first, and
    /// the terminal is left as it was found.
    pub(crate) fn idle<T>(&self, read: impl FnOnce() -> T) -> T {
        let (runtime, is_typed) = (&self.runtime, Notify::new());
        // Before the prompt has handlers of its own: it puts back what it finds.
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
        *locked(&self.progress) = Progress::default();
        let conversation = Some(order::Conversation { id: self.kept.id.clone(), earlier: self.kept.turns.clone() });
        let order = Order { conversation, ..order };
        let message = order.message.clone();
        let kept = Kept { at: self.env.clock.now(), ..self.kept.clone() };
        let begins = Some((Arc::clone(&self.file), kept));
        let mut show = Noting { show, progress: Arc::clone(&self.progress), begins };
        let (show, ended) = match watch::orchestrate(self.env, project, &order, &mut show) {
            Asked::Ran(ended) => {
                self.watched = Some(WatchFiles::of(project));
                (show, *ended)
            }
            asked => {
                if let Asked::Declined(reason) = asked {
                    declined(&mut show.show, &reason);
                }
                self.runtime.block_on(send_here(self.env, project, order, show, self.sessions.clone()))
            }
        };
        self.keep(message, &ended);
        (show.show, ended)
    }

    /// Kept after every message: whatever becomes of this process, the next one can go on.
    fn keep(&mut self, message: String, ended: &Result<Ended, Failure>) {
        {
            let progress = locked(&self.progress);
            self.kept.agents.extend(progress.agents.iter().cloned());
            let is_over = ended.as_ref().is_ok_and(|ended| ended.status == Outcome::Completed);
            self.kept.interrupted = progress.run.clone().filter(|_| !is_over);
        }
        if let Ok(Ended { answer: Some(answer), .. }) = ended {
            self.kept.turns.push((message, answer.clone()));
        }
        self.kept.at = self.env.clock.now();
        self.file.write(&self.kept);
    }

    /// Ends its sessions, which can be resumed, and its engine.
    pub(crate) fn close(self) {
        let pool = self.sessions.take();
        if let Some(pool) = pool.and_then(Arc::into_inner) {
            self.runtime.block_on(pool.stop());
        }
        if let Some(files) = &self.watched {
            self.runtime.block_on(watch::leave(files, self.kept.id));
        }
        // A question that nobody answered must not keep the program.
        self.runtime.shutdown_background();
    }
}

async fn send_here<S: Show + Send + 'static>(
    env: &Env,
    project: &Project,
    order: Order,
    show: S,
    sessions: KeptSessions,
) -> (S, Result<Ended, Failure>) {
    let (canceller, cancel) = Cancel::channel();
    let _obeyed = match Obeyed::by(&canceller, env) {
        Ok(obeyed) => obeyed,
        Err(failure) => return (show, Err(failure)),
    };
    let sessions = Sessions::Conversation(sessions);
    orchestrate::execute(env, project, order, show, Host { canceller, cancel, sessions }).await
}

/// Notes what a run has told, and shows it.
struct Noting<S> {
    show: S,
    progress: Arc<Mutex<Progress>>,
    /// What is kept from its first event on, so that it can be gone on with however this process ends.
    begins: Option<(Arc<ConversationFile>, Kept)>,
}

impl<S: Show> Show for Noting<S> {
    fn show(&mut self, event: &Event) {
        if let Some((file, kept)) = self.begins.take() {
            file.write(&Kept { interrupted: Some(event.run.clone()), ..kept });
        }
        {
            let mut progress = locked(&self.progress);
            progress.run.get_or_insert_with(|| event.run.clone());
            match (&event.agent, &event.what) {
                (Some(agent), What::SessionCreated { .. } | What::SessionResumed { .. }) => {
                    progress.agents.insert(agent.clone());
                }
                // The coordinator has a last word also on what was stopped.
                (Some(agent), What::Completed(_)) => progress.has_completed |= *agent != Slug::coordinator(),
                _ => {}
            }
        }
        self.show.show(event);
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
