//! One session of an order: the client's requests to it, and what its engine reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::outbox::Outbox;
use super::purse::USED_UP;
use super::site::{Changes, Site};
use crate::engine::connection::Responder;
use crate::engine::remote::frames::{Ask, Asked, OfSession, Opened, Parts, Work, method};
use crate::engine::{AdapterSession, Approval, EngineError, Fact, Session, ToolCall, ToolResult, spawn};
use crate::ops::ledger::journal::aside;
use crate::tools::Tool;

/// What the client asks of a session.
pub(super) struct Command {
    pub(super) method: String,
    pub(super) of: OfSession,
    pub(super) responder: Responder,
}

/// An open session, as the others see it.
pub(super) struct Handle {
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) opened: Opened,
    /// The turn it is at work on, 0 for none.
    pub(super) working: Arc<AtomicU64>,
}

/// The task of a session.
pub(super) struct Task {
    pub(super) number: u64,
    pub(super) session: Session,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) working: Arc<AtomicU64>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) site: Arc<Site>,
    /// Counts the order's questions.
    pub(super) asked: Arc<AtomicU64>,
    /// What its programs had reached when its turn began.
    pub(super) mark: u64,
    pub(super) threads: bool,
}

impl Task {
    /// Works until it is closed. Dropping the commands' sender closes it, too.
    pub(super) async fn run(mut self) {
        let (mut is_lost, mut is_stopped, mut turns) = (false, false, 0);
        let outbox = Arc::clone(&self.outbox);
        loop {
            let is_working = self.working.load(Ordering::Relaxed) > 0;
            let fact = tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(Command { method, responder, .. }) if method == method::CLOSE => {
                        let mut left = json!(self.session.close().await);
                        self.site.grant.hide(&mut left);
                        return responder.answer(left);
                    }
                    Some(command) => {
                        self.perform(command, &mut turns).await;
                        continue;
                    }
                    None => {
                        self.session.abort().await;
                        self.session.close().await;
                        return;
                    }
                },
                fact = self.session.next(), if !is_lost => fact,
                () = outbox.is_used_up(), if is_working && !is_stopped => {
                    is_stopped = true;
                    self.session.abort().await;
                    continue;
                }
            };
            let fact = match is_stopped && fact.is_last() {
                true => Fact::Failed(USED_UP.to_owned()),
                false => fact,
            };
            is_stopped &= !fact.is_last();
            is_lost = matches!(fact, Fact::Lost(_));
            self.pass_on(fact).await;
        }
    }

    async fn perform(&mut self, Command { method, of, responder }: Command, turns: &mut u64) {
        let answer = match &*method {
            // It was sent again, because its answer was lost.
            method::SEND if of.turn <= *turns => Ok(Value::Null),
            method::SEND => {
                *turns = of.turn;
                self.mark = self.session.traffic().map(|traffic| traffic.mark()).unwrap_or_default();
                self.working.store(of.turn, Ordering::Relaxed);
                let sent = self.send(of).await;
                if sent.is_err() {
                    self.working.store(0, Ordering::Relaxed);
                }
                sent
            }
            method::RECALL => Ok(json!(self.session.recall(&of.text).await)),
            method::NOTIFY => value(self.session.notify(&of.text).await),
            method::STEER => value(self.session.steer(&of.text).await),
            method::ABORT => {
                self.session.abort().await;
                Ok(Value::Null)
            }
            other => return responder.unknown_method(other),
        };
        match answer {
            Ok(answer) => responder.answer(answer),
            Err(why) => responder.invalid(&why),
        }
    }

    async fn send(&mut self, of: OfSession) -> Result<Value, String> {
        let attachments = self.site.attach(of.attachments)?;
        value(self.session.send(&of.text, &attachments).await)
    }

    /// Passes a fact on to the client; before a turn's last one, what was changed.
    async fn pass_on(&self, fact: Fact) {
        let (number, outbox) = (self.number, Arc::clone(&self.outbox));
        let fact = match fact {
            Fact::Request(request) => {
                let (asked, answer) = Asked::of(request);
                let is_for_files =
                    |call: &ToolCall| Tool::ALL.iter().any(|tool| tool.is_project_tool() && tool.name() == call.tool);
                if matches!(&asked, Asked::Tool(call) if is_for_files(call)) {
                    // The client's files are not these.
                    let text = "this tool is not to be had on another machine".to_owned();
                    return answer(json!(ToolResult { ok: false, text }));
                }
                if let Asked::Host(place) = &asked
                    && let Some(why) = self.site.refuses(place)
                {
                    return answer(json!(Approval::Deny(why)));
                }
                let id = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
                let mut ask = serde_json::to_value(Ask { id, session: number, asked }).unwrap_or_default();
                self.site.grant.hide(&mut ask);
                spawn(async move {
                    if let Some(given) = outbox.ask(method::ASK, &ask).await {
                        answer(given);
                    }
                });
                return;
            }
            fact => fact,
        };
        if fact.is_last() {
            let seen = self.session.traffic().map(|traffic| traffic.seen_since(self.mark));
            if let Some(seen) = seen.filter(|seen| !seen.is_empty()) {
                outbox.tell(number, Fact::Reached(seen));
            }
            self.working.store(0, Ordering::Relaxed);
            if matches!(fact, Fact::Idle) {
                self.site.completed();
            }
            if let Err(why) = deliver(&self.site, &self.outbox, Some(number), self.threads).await {
                return outbox.tell(number, Fact::Failed(format!("what it changed cannot be sent: {why}")));
            }
        }
        outbox.tell(number, fact);
    }
}

fn value(answer: Result<impl Serialize, EngineError>) -> Result<Value, String> {
    answer.map(|answer| json!(answer)).map_err(|error| error.with_hint())
}

/// Sends what was changed and the client has not. What it refuses stays here, and it knows why.
pub(super) async fn deliver(
    site: &Arc<Site>,
    outbox: &Outbox,
    session: Option<u64>,
    threads: bool,
) -> Result<(), String> {
    let changed = Arc::clone(site);
    let Some(Changes { commit, bundle, left_out }) = aside(threads, move || changed.changes()).await?? else {
        return Ok(());
    };
    for file in left_out.iter().filter(|_| session.is_some()) {
        let warning = format!("{} stays on its host: {}", file.path, file.why);
        outbox.tell(session.unwrap_or_default(), Fact::Warning(warning));
    }
    for (part, objects) in (0..).zip(Parts::of(bundle.path())?) {
        let work = Work { commit: commit.clone(), objects: objects?, part };
        let work = serde_json::to_value(work).unwrap_or_default();
        if outbox.ask(method::WORK, &work).await.is_none() {
            return Ok(());
        }
    }
    site.sent(&commit);
    Ok(())
}
