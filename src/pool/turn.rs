//! One turn: a message to a session, and what is heard until its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cancel::Cancel;
use super::notices::Notice;
use super::requests::in_project;
use super::timer::{Limits, Timer, Waits};
use super::workers::{Started, Work, Workers};
use crate::compile::{self, PastCall};
use crate::engine::{AdapterSession, EngineError, Fact, Session};
use crate::model::{Attachment, Outcome, Slug, What, Written, list, seconds, without_hidden};
use crate::policy::is_in_inbox;

/// So often a turn goes on whose engine died in its middle: more often, and the turn may be why.
const INTERRUPTIONS: usize = 3;

/// A turn that was told to stop has this long to end. A process is killed after 5 s, and still has its last words.
const GRACE: Duration = Duration::from_secs(8);

impl Workers {
    pub(super) async fn turn(
        &self,
        session: &mut Session,
        message: (&str, &[Attachment]),
        mut cancel: Cancel,
        work: &mut Work,
    ) {
        let (prompt, attachments) = message;
        work.usage.turns += 1;
        let mut decided = self.requests.notices.subscribe();
        let mut can_hear = work.hears_decisions;
        let notice = if can_hear { self.requests.notices.due(&work.agent) } else { None };
        let prompt = notice.iter().map(|notice| format!("{}\n---\n\n", notice.text)).collect::<String>() + prompt;
        let mut said = self.requests.user_messages.subscribe();
        let mut can_hear_user = true;
        let mut prompt = without_hidden(prompt);
        for text in self.requests.user_messages.take(&work.agent) {
            prompt.push_str(&compile::said_meanwhile(&without_hidden(text)));
        }
        let mut interruptions = 0;
        if let Err(error) = session.send(&prompt, attachments).await {
            notice.iter().for_each(|notice| self.requests.notices.withdraw(&work.agent, notice));
            return work.end(Outcome::Failed, &error.to_string());
        }
        notice.iter().for_each(|notice| self.told(work, notice));
        let mut timer = Timer::start(Limits { work: work.limit.unwrap_or(self.limits.work), ..self.limits });
        let (waits, mut waiting) = Waits::channel();
        loop {
            let fact = tokio::select! {
                biased;
                // The one who has decided is told last, so this comes before anything that follows from it.
                _ = decided.changed(), if can_hear => {
                    can_hear = self.notify(session, work).await;
                    continue;
                }
                // The sender is there as long as the run.
                _ = said.changed(), if can_hear_user => {
                    can_hear_user = self.steer(session, work).await;
                    continue;
                }
                fact = session.next() => fact,
                () = cancel.wait() => {
                    self.stop(session, work, &waits).await;
                    return work.end(Outcome::Cancelled, cancel.reason());
                }
                // `waits` is here, so the channel is open.
                _ = waiting.changed() => {
                    timer.wait(*waiting.borrow_and_update() > 0);
                    continue;
                }
                over = timer.over() => {
                    self.stop(session, work, &waits).await;
                    return work.end(Outcome::TimedOut, &over.to_string());
                }
            };
            timer.hear(&fact);
            let fact = match fact {
                Fact::Interrupted(reason) if interruptions < INTERRUPTIONS => {
                    interruptions += 1;
                    let gone_on = tokio::select! {
                        biased;
                        () = cancel.wait() => {
                            self.stop(session, work, &waits).await;
                            return work.end(Outcome::Cancelled, cancel.reason());
                        }
                        gone_on = self.go_on(session, (&prompt, attachments), &reason, work) => gone_on,
                    };
                    match gone_on {
                        Ok(()) => continue,
                        Err(error) => Fact::Failed(error.to_string()),
                    }
                }
                fact => fact,
            };
            if let Some((outcome, reason)) = self.take(fact, work, &waits) {
                return work.end(outcome, &reason);
            }
        }
    }

    /// A turn goes on that was cut short: what its session holds of the prompt is not sent again.
    async fn go_on(
        &self,
        session: &mut Session,
        message: (&str, &[Attachment]),
        reason: &str,
        work: &mut Work,
    ) -> Result<(), EngineError> {
        let tell = |what| self.reports.tell(Some(&work.agent), what);
        let name = work.session.clone();
        tell(What::SessionError { session: name.clone(), reason: format!("{reason}; it goes on") });
        tell(What::SessionResumed { session: name, seconds: 0.0 });
        self.close_calls(work);
        work.usage.turns += 1;
        match self.continuation(session, message.0, work).await {
            Some(continuation) => session.send(&continuation, &[]).await,
            None => {
                let prompt = message.0.to_owned() + &without_hidden(compile::interrupted_prompt(&work.calls));
                session.send(&prompt, message.1).await
            }
        }
    }

    /// What a session is told whose turn was cut short; `None` where it does not hold the task.
    pub(super) async fn continuation(&self, session: &mut Session, task: &str, work: &Work) -> Option<String> {
        let recall = session.recall(task).await?;
        let warn = |reason: String| {
            let what = What::SessionError { session: work.session.clone(), reason };
            self.reports.tell(Some(&work.agent), what);
        };
        if !recall.has_prompt {
            warn("its session does not hold the task, which is given again".to_owned());
            return None;
        }
        let lost: Vec<PastCall> =
            work.calls.iter().filter(|past| !recall.calls.contains(&past.call)).cloned().collect();
        if !recall.unfinished.is_empty() {
            let tools = list(recall.unfinished.iter().map(|tool| format!("`{tool}`")));
            warn(format!("nobody knows what became of its last calls of {tools}, which it is told to check"));
        }
        if !lost.is_empty() {
            warn(format!("its session has lost {} of its tool calls, of which it is told", lost.len()));
        }
        Some(without_hidden(compile::continuation_prompt(&recall.unfinished, &lost)))
    }

    /// Tells a turn what was decided. `false`: it hears of it with its next message.
    async fn notify(&self, session: &mut Session, work: &Work) -> bool {
        let Some(notice) = self.requests.notices.due(&work.agent) else { return true };
        // It may come behind what was meant to be the last message.
        let text = format!("{}\nWhere your work was done already, end with your whole report again.\n", notice.text);
        if let Ok(true) = session.notify(&without_hidden(text)).await {
            self.told(work, &notice);
            return true;
        }
        self.requests.notices.withdraw(&work.agent, &notice);
        false
    }

    /// Tells a turn what the user says. `false`: it is over, and what was said is for the next one.
    async fn steer(&self, session: &mut Session, work: &Work) -> bool {
        let messages = &self.requests.user_messages;
        let mut said = messages.take(&work.agent).into_iter();
        while let Some(text) = said.next() {
            if !matches!(session.steer(&without_hidden(text.clone())).await, Ok(true)) {
                said.rev().chain([text]).for_each(|text| messages.give_back(&work.agent, text));
                return false;
            }
        }
        true
    }

    /// What the user said when the turn was about to end is the next one's.
    pub(super) async fn hear_out(&self, session: &mut Session, cancel: Cancel, work: &mut Work) {
        loop {
            let said = self.requests.user_messages.leave(&work.agent);
            if said.is_empty() || work.outcome != Outcome::Completed {
                return;
            }
            self.turn(session, (&said.join("\n\n"), &[]), cancel.clone(), work).await;
        }
    }

    /// What the user said before the run was interrupted, as far as the session does not hold it.
    pub(super) async fn said_before(&self, session: &mut Session, agent: &Slug) -> String {
        let mut unheard = String::new();
        for text in self.requests.user_messages.take_past(agent) {
            let text = without_hidden(text);
            if !session.recall(&text).await.is_some_and(|recall| recall.has_prompt) {
                unheard.push_str(&compile::said_meanwhile(&text));
            }
        }
        unheard
    }

    fn told(&self, work: &Work, notice: &Notice) {
        let decisions = notice.decisions.iter().map(|decision| decision.id.clone()).collect();
        let what = What::DecisionDelivered { decisions, session: work.session.clone() };
        self.reports.tell_because(&work.agent, what, notice.entries.clone());
    }

    /// What the turn's end cut short has an end of its own, so that the record shows that it began.
    pub(super) fn close_calls(&self, work: &mut Work) {
        for (call, Started { tool, detail, at, .. }) in std::mem::take(&mut work.under_way) {
            let result = "cut short by the end of the turn".to_owned();
            let seconds = seconds(at.elapsed());
            work.calls.push(PastCall::new(&call, &tool, &detail, false));
            let what =
                What::ToolCompleted { call, tool, ok: false, exit_code: None, seconds, detail, result, wrote: None };
            self.reports.tell(Some(&work.agent), what);
            work.usage.tool_calls += 1;
        }
    }

    /// Tells a turn to stop and hears it out, so that nothing it still said or used is lost.
    async fn stop(&self, session: &mut Session, work: &mut Work, waits: &Waits) {
        let heard_out = async {
            session.abort().await;
            while self.take(session.next().await, work, waits).is_none() {}
        };
        // An engine that does not even stop is ended with its process.
        let _ = tokio::time::timeout(GRACE, heard_out).await;
    }

    /// Reports one fact. Returns how the turn ended, when it did.
    fn take(&self, fact: Fact, work: &mut Work, waits: &Waits) -> Option<(Outcome, String)> {
        let tell = |what| self.reports.tell(Some(&work.agent), what);
        match fact {
            Fact::Alive => {}
            Fact::MessageDelta(text) => tell(What::MessageDelta { text }),
            Fact::Message(text) => {
                tell(What::Message { text: text.clone() });
                work.text = text;
            }
            Fact::ToolStarted { call, tool, detail, writes } => {
                let writes = writes.and_then(|(path, text)| {
                    // What is written into the inbox becomes a decision, and no file.
                    let path = in_project(&self.requests.project, &path).filter(|path| !is_in_inbox(path))?;
                    Some(Written { path, text, ..Written::default() })
                });
                if let (Some(tree), Some(writes)) = (&work.requester.tree, &writes) {
                    tree.name(&work.agent, &writes.path);
                    self.requests.notices.write(&work.agent, &writes.path);
                }
                let at = Instant::now();
                work.under_way.insert(call.clone(), Started { tool: tool.clone(), detail: detail.clone(), writes, at });
                tell(What::ToolStarted { call, tool, detail });
            }
            Fact::ToolCompleted { call, tool, ok, exit_code, detail: result } => {
                let started = work.under_way.remove(&call);
                let Started { tool, detail, writes, at } = started.unwrap_or_else(|| Started {
                    tool,
                    detail: String::new(),
                    writes: None,
                    at: Instant::now(),
                });
                let (seconds, wrote) = (seconds(at.elapsed()), writes.filter(|_| ok));
                work.calls.push(PastCall::new(&call, &tool, &detail, ok));
                tell(What::ToolCompleted { call, tool, ok, exit_code, seconds, detail, result, wrote });
                work.usage.tool_calls += 1;
            }
            Fact::Request(request) => {
                // Answered beside the turn, so that its other facts do not wait.
                let wait = waits.begin();
                let (workers, requester) = (self.clone(), Arc::clone(&work.requester));
                tokio::spawn(async move {
                    let _wait = wait;
                    workers.answer(requester, request).await;
                });
            }
            Fact::Denied { tool, detail, reason } => {
                work.requester.note_refused();
                tell(What::ToolDenied { tool, detail, reason });
            }
            Fact::Governed { engine, by } => tell(What::EngineGoverned { engine, by }),
            Fact::Exited(exited) => tell(What::EngineExited(exited)),
            Fact::Usage(usage) => {
                work.usage += &usage;
                work.usage.context = usage.context.or(work.usage.context);
                tell(What::Usage(usage));
            }
            Fact::Warning(reason) => tell(What::SessionError { session: String::new(), reason }),
            Fact::Shortened { session, is_summed_up: true, tokens_before, tokens_after } => {
                tell(What::SessionCompacted { session, tokens_before, tokens_after });
            }
            Fact::Shortened { session, is_summed_up: false, tokens_before, tokens_after } => {
                tell(What::SessionTruncated { session, tokens_before, tokens_after });
            }
            Fact::ConnectionLost(reason) => tell(What::ConnectionLost { reason }),
            Fact::ConnectionRestored { attempts } => tell(What::ConnectionRestored { attempts }),
            // No silent success: who says nothing has not done the task, unless it has given its verdict.
            Fact::Idle if work.text.trim().is_empty() && work.judgement().is_none() => {
                return Some((Outcome::Failed, "it ended without an answer".to_owned()));
            }
            Fact::Idle => return Some((Outcome::Completed, String::new())),
            Fact::Interrupted(reason) | Fact::Failed(reason) | Fact::Lost(reason) => {
                return Some((Outcome::Failed, reason));
            }
        }
        None
    }
}
