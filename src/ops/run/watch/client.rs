//! The client side: a run that `squad watch` executes for this process.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::lease::{WatchFiles, Watcher};
use crate::engine::spawn;
use crate::env::Env;
use crate::error::{Failure, FailureKind};
use crate::model::{EntryId, Event, EventKind, Keeping, Outcome, RunEnd, RunId};
use crate::ops::decisions::landing::{Landed, Lander};
use crate::ops::ledger::lost;
use crate::ops::run::host::{EngineKey, FromClient, FromHost, Incoming, PROTOCOL, Request, name, to_line};
use crate::ops::run::lease::{self, LEASE_CHECKS, LEASE_PAUSE};
use crate::ops::run::order::{Ended, Order};
use crate::ops::run::resume;
use crate::ops::run::signals::SignalGuard;
use crate::ops::{Project, runtime};
use crate::pool::{Cancel, Question, Show};

/// How long a watch may take to read an order.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the last messages may take to be sent.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The result of asking a watch to execute a run.
pub(crate) enum Asked {
    /// The watch executed it.
    Ran(Box<Result<Ended, Failure>>),
    /// No watch is running for this team.
    Nobody,
    /// The watch cannot execute it, for this reason.
    Declined(String),
}

/// Lets this team's watch execute an order, if there is a suitable one.
pub(crate) fn orchestrate(env: &Env, project: &Project, order: &Order, show: &mut dyn Show) -> Asked {
    let Some(watcher) = WatchFiles::of(project).watcher() else { return Asked::Nobody };
    if let Some(reason) = unsuitable(&watcher, order) {
        return Asked::Declined(reason);
    }
    let runtime = match runtime(env) {
        Ok(runtime) => runtime,
        Err(failure) => return Asked::Ran(Box::new(Err(failure))),
    };
    let asked = runtime.block_on(order_from(env, project, order, &watcher, show));
    // A thread may still wait for an answer; do not wait for it.
    runtime.shutdown_background();
    asked
}

/// The reason why a watch cannot execute an order.
fn unsuitable(watcher: &Watcher, order: &Order) -> Option<String> {
    if watcher.endpoint.protocol != PROTOCOL {
        let (version, pid) = (&watcher.endpoint.version, watcher.pid);
        return Some(format!("it is squad {version}; end it (process {pid}) and start `squad watch` again"));
    }
    order.flags.contains_key("max-concurrent").then(|| "it has its own --max-concurrent".to_owned())
}

async fn order_from(env: &Env, project: &Project, order: &Order, watcher: &Watcher, show: &mut dyn Show) -> Asked {
    let (canceller, cancel) = Cancel::channel();
    let _signals = match SignalGuard::by(&canceller, env) {
        Ok(guard) => guard,
        Err(failure) => return Asked::Ran(Box::new(Err(failure))),
    };
    let connected = match name(&watcher.endpoint.socket) {
        Ok(name) => Stream::connect(name).await,
        Err(error) => Err(error),
    };
    let stream = match connected {
        Ok(stream) => stream,
        Err(error) => return Asked::Declined(format!("process {} does not answer: {error}", watcher.pid)),
    };
    let (receiver, sender) = tokio::io::split(stream);
    let mut incoming = Incoming::new(receiver);
    let (lines, queue) = mpsc::unbounded_channel();
    let writing = spawn(write(sender, queue));
    let _ = lines.send(to_line(&FromClient::Orchestrate(Box::new(request(env, project, order)))));
    let mut interrupted = cancel.clone();
    // Without the word to go, a stopped process does nothing when it continues.
    let ready = tokio::select! {
        biased;
        () = interrupted.wait() => {
            let failure = Failure::new(FailureKind::Interrupted, "interrupted before anything started");
            return Asked::Ran(Box::new(Err(failure)));
        }
        ready = tokio::time::timeout(READY_TIMEOUT, incoming.next()) => ready,
    };
    if !matches!(ready, Ok(Some(FromHost::Ready {}))) {
        return Asked::Declined(format!("process {} does not answer", watcher.pid));
    }
    let _ = lines.send(to_line(&FromClient::Go {}));
    let conversation = Conversation { env, project, order, cancel, lines, asked: RefCell::default() };
    let asked = conversation.run(incoming, show).await;
    drop(conversation);
    // An unanswered question may keep the connection open.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, writing).await;
    asked
}

fn request(env: &Env, project: &Project, order: &Order) -> Request {
    Request {
        message: order.message.clone(),
        agents: order.route_options.agents.clone(),
        tier: order.route_options.tier,
        flags: order.flags.clone(),
        attachments: order.attachments.clone(),
        permissions: order.permissions,
        asks: order.ask.is_some(),
        commit: order.commit,
        resume: order.resumed.as_ref().map(|resumed| resumed.run.clone()),
        conversation: order.conversation.clone(),
        members: Vec::new(),
        fresh: order.fresh,
        engine: Some(EngineKey::of(env, project)),
    }
}

/// A connection to a watch with a run.
struct Conversation<'a> {
    env: &'a Env,
    project: &'a Project,
    order: &'a Order,
    cancel: Cancel,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    /// Open questions.
    asked: RefCell<BTreeMap<u64, AbortHandle>>,
}

impl Conversation<'_> {
    async fn run(&self, mut incoming: Incoming<ReadHalf<Stream>>, show: &mut dyn Show) -> Asked {
        let mut cancel = self.cancel.clone();
        let mut is_cancelled = false;
        let (mut run, mut shown) = (None, BTreeSet::new());
        // Kept until the run has recorded it, so that nothing lands twice.
        let mut _landed: Option<Landed> = None;
        loop {
            let message = tokio::select! {
                biased;
                () = cancel.wait(), if !is_cancelled => {
                    is_cancelled = true;
                    self.say(&FromClient::Cancel { agent: None });
                    continue;
                }
                message = incoming.next() => message,
            };
            match message {
                Some(FromHost::Declined { reason }) => return Asked::Declined(reason),
                Some(FromHost::Event(event)) => {
                    run.get_or_insert_with(|| event.run.clone());
                    if event.kind.keeping() != Keeping::Never {
                        shown.insert(event.id.clone());
                    }
                    if let EventKind::QuestionAnswered { question } = event.kind {
                        self.withdraw(question);
                    }
                    show.show(&event);
                }
                Some(FromHost::Ask { id, question, proposal }) => {
                    self.answer(Question { number: id, text: question, proposal: proposal.map(|asked| *asked) });
                }
                Some(FromHost::Land {}) => {
                    let landed = self.land().await;
                    self.say(&FromClient::Landed(Box::new(
                        landed.as_ref().map(Landed::without_lock).map_err(Clone::clone),
                    )));
                    _landed = landed.ok();
                }
                Some(FromHost::Ended(ended)) => return Asked::Ran(Box::new(Ok(*ended))),
                Some(FromHost::Failed(failure)) => return Asked::Ran(Box::new(Err(*failure))),
                // No reply to anything said here.
                Some(FromHost::Ready {} | FromHost::Activity(_) | FromHost::Watching(_) | FromHost::Done {}) => {}
                None => {
                    let Some(run) = run else { return Asked::Declined("it ended just now".to_owned()) };
                    return Asked::Ran(Box::new(self.cut_off(&run, &shown, show)));
                }
            }
        }
    }

    fn say(&self, message: &FromClient) {
        // A closed connection is noticed when waiting for the next message.
        let _ = self.lines.send(to_line(message));
    }

    /// Asks the user here. Events continue while they think.
    fn answer(&self, question: Question) {
        let id = question.number;
        let Some(ask) = &self.order.ask else { return self.say(&FromClient::Answer { id, text: None }) };
        let (sender, answer) = oneshot::channel();
        ask(question, sender);
        let lines = self.lines.clone();
        let answering = spawn(async move {
            let text = answer.await.ok();
            let _ = lines.send(to_line(&FromClient::Answer { id, text }));
        });
        self.asked.borrow_mut().insert(id, answering.abort_handle());
    }

    /// Withdraws a question that was answered elsewhere or needs no answer any more.
    fn withdraw(&self, id: u64) {
        if let Some(answering) = self.asked.borrow_mut().remove(&id) {
            answering.abort();
        }
    }

    /// When a watch dies, its runs end: records the end, and shows it. A watch also disconnects clients that read too
    /// slowly; then the run goes on.
    fn cut_off(&self, run: &RunId, shown: &BTreeSet<EntryId>, show: &mut dyn Show) -> Result<Ended, Failure> {
        let (repository, prefix) = (&self.project.repository, self.project.ledger_prefix());
        for _ in 0..LEASE_CHECKS {
            lost::settle(self.env, repository);
            // The kernel frees the locks of a dying process one after another.
            if !lease::look(&self.project.local()).has(run) && WatchFiles::of(self.project).watcher().is_none() {
                break;
            }
            std::thread::sleep(LEASE_PAUSE);
        }
        let mut events = resume::read_past(self.project, &prefix, run)?.events;
        events.retain(|event| !shown.contains(&event.id));
        let end = events.iter().find_map(|event| match event.kind {
            EventKind::RunCompleted(RunEnd { status, .. }) => Some(status),
            _ => None,
        });
        let Some(status) = end.filter(|_| WatchFiles::of(self.project).watcher().is_none()) else {
            return Err(Failure::failed("squad watch dropped this terminal because it read too slowly")
                .hint(format!("`squad log {run}` shows what became of the run")));
        };
        let is_end = |event: &&Event| event.kind.end().is_some() || matches!(event.kind, EventKind::RunCompleted(_));
        events.iter().filter(is_end).for_each(|event| show.show(event));
        let failure = (status == Outcome::Lost).then(|| {
            Failure::failed(format!("squad watch has ended, and run {run} with it"))
                .hint(format!("`squad orchestrate --resume {run}` resumes it"))
        });
        Ok(Ended::without_work(run.clone(), status, failure))
    }

    async fn land(&self) -> Result<Landed, Failure> {
        Lander::new(self.env, self.project).until(self.cancel.clone()).land_aside(self.env.threads).await
    }
}

async fn write(mut sender: WriteHalf<Stream>, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if sender.write_all(&line).await.is_err() {
            return;
        }
    }
}
