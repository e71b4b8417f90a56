//! Gives facts their order, number and time. Nothing else does.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::LiveSessions;
use super::lineage::Lineage;
use crate::env::{Clock, Ids};
use crate::model::{EntryId, Event, EventKind, Keeping, PersonTime, Position, RunId, Slug};

/// Longest delay before commentary is written.
const MAX_WRITE_DELAY: Duration = Duration::from_millis(250);

/// Input of the dispatcher.
pub(crate) enum Message {
    Report(Box<Report>),
    /// Make the reports sent so far durable.
    Flush(oneshot::Sender<Result<(), String>>),
    /// Process the reports sent so far, then end. There may still be [`Reports`] senders: a question that nobody
    /// answers keeps its agent waiting.
    Finish,
}

/// Something that happened, before it has a number.
pub(crate) struct Report {
    agent: Option<Slug>,
    position: Position,
    pub(super) kind: EventKind,
    /// The entries that caused it, where the reporter knows better than the dispatcher.
    causes: Option<Vec<EntryId>>,
    /// Gets the entry's id once it is durable, or the reason why it is not.
    done: Option<oneshot::Sender<Result<EntryId, String>>>,
}

/// Sender of reports for one step and attempt.
#[derive(Clone)]
pub(crate) struct Reports {
    sender: mpsc::UnboundedSender<Message>,
    position: Position,
    /// Nobody writes them.
    #[cfg(test)]
    are_unwritten: bool,
}

impl Reports {
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let reports = Self {
            sender,
            position: Position::default(),
            #[cfg(test)]
            are_unwritten: false,
        };
        (reports, receiver)
    }

    /// For tests that read the reports when all is over.
    #[cfg(test)]
    pub(crate) fn unwritten() -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (reports, receiver) = Self::channel();
        (Self { are_unwritten: true, ..reports }, receiver)
    }

    /// A sender whose reports belong to this step and attempt.
    pub(crate) fn at(&self, position: Position) -> Self {
        Self { position, ..self.clone() }
    }

    pub(crate) fn position(&self) -> Position {
        self.position
    }

    pub(crate) fn tell(&self, agent: Option<&Slug>, kind: EventKind) {
        self.send(agent, kind, None, None);
    }

    /// Like [`Self::tell`], with explicit causes.
    pub(crate) fn tell_because(&self, agent: &Slug, kind: EventKind, causes: Vec<EntryId>) {
        self.send(Some(agent), kind, Some(causes), None);
    }

    /// Reports, and returns once the entry is durable.
    pub(crate) async fn record(&self, agent: Option<&Slug>, kind: EventKind) -> Result<EntryId, String> {
        self.record_for(agent, kind, None).await
    }

    /// Like [`Self::record`], with causes that the run may not know.
    pub(crate) async fn record_because(&self, kind: EventKind, causes: Vec<EntryId>) -> Result<EntryId, String> {
        self.record_for(None, kind, Some(causes)).await
    }

    /// Returns once all reports sent so far are durable, or why they cannot be made so.
    pub(crate) async fn flush(&self) -> Result<(), String> {
        #[cfg(test)]
        if self.are_unwritten {
            return Ok(());
        }
        let (done, flushed) = oneshot::channel();
        let _ = self.sender.send(Message::Flush(done));
        // Nobody listens once the run has ended.
        let written = flushed.await.unwrap_or(Ok(()));
        written.map_err(|reason| format!("what happens cannot be recorded: {reason}"))
    }

    async fn record_for(
        &self,
        agent: Option<&Slug>,
        kind: EventKind,
        causes: Option<Vec<EntryId>>,
    ) -> Result<EntryId, String> {
        let (done, answer) = oneshot::channel();
        self.send(agent, kind, causes, Some(done));
        answer.await.unwrap_or_else(|_| Err("the run has ended".to_owned()))
    }

    fn send(
        &self,
        agent: Option<&Slug>,
        kind: EventKind,
        causes: Option<Vec<EntryId>>,
        done: Option<oneshot::Sender<Result<EntryId, String>>>,
    ) {
        let report = Report { agent: agent.cloned(), position: self.position, kind, causes, done };
        // The dispatcher outlives all senders.
        let _ = self.sender.send(Message::Report(Box::new(report)));
    }

    pub(crate) fn finish(&self) {
        let _ = self.sender.send(Message::Finish);
    }
}

/// Writes entries durably.
pub(crate) trait Journal {
    /// All events are durable when this returns.
    async fn write(&mut self, events: &[Event]) -> Result<(), String>;
}

/// Displays events.
pub(crate) trait Show {
    fn show(&mut self, event: &Event);
}

impl<S: Show> Show for Arc<Mutex<S>> {
    fn show(&mut self, event: &Event) {
        self.lock().show(event);
    }
}

pub(crate) struct Dispatcher<J> {
    pub(crate) run: RunId,
    /// Events before the run was resumed: numbering continues after them, and they can be causes.
    pub(crate) past: Vec<Event>,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) journal: J,
    pub(crate) show: Box<dyn Show + Send>,
    pub(crate) sessions: Arc<LiveSessions>,
}

/// Events with a number that are not written yet.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    due: Option<Instant>,
}

struct Numbered {
    event: Event,
    done: Option<oneshot::Sender<Result<EntryId, String>>>,
}

impl<J: Journal> Dispatcher<J> {
    /// Runs until told to finish. The error says why the last entries could not be written.
    pub(crate) async fn serve(mut self, mut messages: mpsc::UnboundedReceiver<Message>) -> Result<(), String> {
        let mut batch = Batch::default();
        let (mut lineage, mut person) = (Lineage::default(), PersonTime::default());
        let mut number = self.past.iter().map(|event| event.seq).max().unwrap_or_default();
        std::mem::take(&mut self.past).iter().for_each(|event| lineage.note(event));
        let (mut is_over, mut finished) = (false, false);
        while !finished {
            let mut next = tokio::select! {
                message = messages.recv() => message.or(Some(Message::Finish)),
                () = due(batch.due) => None,
            };
            if next.is_none() {
                // A failed write is retried; only the last attempt counts.
                let _ = self.flush(&mut batch).await;
                continue;
            }
            // All other messages that have arrived go into the same commit, and what others report at the same moment,
            // as a run does when its last agent ends.
            let (mut group, mut flushes, mut has_waited) = (Vec::new(), Vec::new(), false);
            while let Some(message) = next {
                match message {
                    // Nothing is reported after a run's end. Dropping `done` tells the sender so.
                    Message::Report(_) if is_over => {}
                    Message::Report(report) => {
                        is_over = matches!(report.kind, EventKind::RunCompleted(_));
                        group.push(self.number(*report, &mut number, &mut lineage, &mut person));
                    }
                    Message::Flush(done) => flushes.push(done),
                    Message::Finish => finished = true,
                }
                next = messages.try_recv().ok();
                if next.is_none() && !has_waited {
                    has_waited = true;
                    tokio::task::yield_now().await;
                    next = messages.try_recv().ok();
                }
            }
            self.take(&mut batch, group, flushes).await;
        }
        self.flush(&mut batch).await
    }

    fn number(&self, report: Report, number: &mut u64, lineage: &mut Lineage, person: &mut PersonTime) -> Numbered {
        *number += 1;
        let at = self.clock.now();
        let id = self.ids.entry(at);
        let Report { agent, position, mut kind, causes, done } = report;
        if let EventKind::DecisionLogged { decision, .. } = &mut kind {
            decision.id = id.decision();
            decision.date = Some(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
        }
        person.see(at, agent.as_ref(), &kind);
        if let EventKind::RunCompleted(end) = &mut kind {
            end.usage.waited += person.seconds(at);
        }
        let causes = causes.unwrap_or_else(|| lineage.causes(agent.as_ref(), position, &kind));
        let event = Event { seq: *number, at, run: self.run.clone(), agent, kind, id, position, causes };
        lineage.note(&event);
        Numbered { event, done }
    }

    /// Writes what must be durable before it is shown; then shows events and answers senders, in order.
    async fn take(
        &mut self,
        batch: &mut Batch,
        group: Vec<Numbered>,
        flushes: Vec<oneshot::Sender<Result<(), String>>>,
    ) {
        let mut urgent = !flushes.is_empty();
        for Numbered { event, done } in &group {
            match event.kind.keeping() {
                Keeping::Never => continue,
                Keeping::AtOnce => urgent = true,
                Keeping::Batched => urgent |= done.is_some(),
            }
            batch.events.push(event.clone());
            batch.due.get_or_insert_with(|| Instant::now() + MAX_WRITE_DELAY);
        }
        let written = if urgent { self.flush(batch).await } else { Ok(()) };
        for Numbered { event, done } in group {
            let id = event.id.clone();
            let is_promise = matches!(event.kind, EventKind::DecisionLogged { .. } | EventKind::MemoryLogged { .. });
            if written.is_err() && is_promise {
                // The caller is told that this failed, so it must not be written later either.
                batch.events.retain(|other| other.id != id);
            } else {
                self.sessions.note(&event);
                self.show.show(&event);
            }
            if let Some(done) = done {
                // An aborted turn no longer waits for its answer.
                let _ = done.send(written.clone().map(|()| id));
            }
        }
        for done in flushes {
            let _ = done.send(written.clone());
        }
    }

    async fn flush(&mut self, batch: &mut Batch) -> Result<(), String> {
        batch.due = None;
        if batch.events.is_empty() {
            return Ok(());
        }
        let written = self.journal.write(&batch.events).await;
        match &written {
            Ok(()) => batch.events.clear(),
            // Retried with the next batch, and at the end.
            Err(_) => batch.due = Some(Instant::now() + 4 * MAX_WRITE_DELAY),
        }
        written
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
