//! One turn: a message to a session, and its facts until the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::budget::{Exhausted, WorkClock};
use super::cancel::Cancel;
use super::notices::Notice;
use super::requests::in_project;
use super::slots::as_shortened;
use super::timer::{Limits, PendingAnswers, Timer};
use super::workers::{ToolInProgress, Work, Workers, outcome_of, unknown_end};
use crate::compile::{self, PastCall};
use crate::engine::{AdapterSession, EngineError, Fact, RESTART_WAIT, Request, Session, spawn};
use crate::model::{
    Access, Attachment, EventKind, Outcome, ReachedHosts, Slug, Usage, Written, change_by, list, seconds,
    without_hidden,
};
use crate::policy::is_in_inbox;

/// How long a turn may take to stop. An engine process is killed after 5 s and still delivers its last output.
const GRACE: Duration = Duration::from_secs(8);

impl Workers {
    pub(super) async fn turn(
        &self,
        session: &mut Session,
        (prompt, attachments): (&str, &[Attachment]),
        mut cancel: Cancel,
        work: &mut Work,
    ) {
        if let Err((outcome, reason)) = self.may_send(work, &mut cancel).await {
            return work.end(outcome, &reason);
        }
        if let Err(exhausted) = self.budget.take_turn(&work.agent) {
            return self.stop_for_budget(&exhausted, work);
        }
        work.usage.turns += 1;
        let mut decided = self.requests.notices.subscribe();
        let mut new_messages = self.requests.user_messages.subscribe();
        let (mut can_notify, mut can_steer, mut retries) = (work.gets_decisions, true, 0);
        let prompt = match self.send_with_news(session, prompt, attachments, work).await {
            Ok(prompt) => prompt,
            Err(error) => {
                return work.end(outcome_of(&error), &error.to_string());
            }
        };
        let mut timer = Timer::start(Limits { work: work.limit.unwrap_or(self.limits.work), ..self.limits });
        let (waits, mut waiting) = PendingAnswers::channel();
        let mut clock = WorkClock::start(&self.budget, &work.agent);
        loop {
            let fact = tokio::select! {
                biased;
                // Comes first: the deciding agent gets its answer last, so others learn of the decision before its
                // consequences.
                _ = decided.changed(), if can_notify => {
                    can_notify = self.notify(session, work).await;
                    continue;
                }
                // The sender lives as long as the run.
                _ = new_messages.changed(), if can_steer => {
                    can_steer = self.steer(session, work).await;
                    continue;
                }
                fact = session.next() => fact,
                () = cancel.wait() => return self.stop_cancelled(session, work, &waits, &cancel).await,
                // `waits` is alive, so the channel is open.
                _ = waiting.changed() => {
                    let is_waiting = *waiting.borrow_and_update() > 0;
                    timer.wait(is_waiting);
                    clock.wait(is_waiting);
                    continue;
                }
                exhausted = self.budget.time_up(&work.agent) => {
                    self.stop(session, work, &waits, (Outcome::Stopped, "")).await;
                    return self.stop_for_budget(&exhausted, work);
                }
                limit = timer.limit_reached() => {
                    return self.stop(session, work, &waits, (Outcome::TimedOut, &limit.to_string())).await;
                }
            };
            timer.register(&fact);
            match &fact {
                Fact::ConnectionLost(_) => self.budget.cut_off(&work.agent, true),
                Fact::ConnectionRestored { .. } => self.budget.cut_off(&work.agent, false),
                _ => {}
            }
            let fact = match fact {
                Fact::Interrupted(_) | Fact::Failed(_)
                    if retries < self.retries && self.budget.take_turn(&work.agent).is_ok() =>
                {
                    retries += 1;
                    tokio::select! {
                        biased;
                        () = cancel.wait() => return work.end(Outcome::Cancelled, cancel.reason()),
                        () = tokio::time::sleep(RESTART_WAIT * retries) => {}
                    }
                    match self.resume_or_cancel(session, (&prompt, attachments), fact, work, &mut cancel).await {
                        Some(Ok(())) => continue,
                        Some(Err(error)) => Fact::Failed(error.to_string()),
                        None => return self.stop_cancelled(session, work, &waits, &cancel).await,
                    }
                }
                Fact::NoQuota { reason, reset } => {
                    timer.wait(true);
                    clock.wait(true);
                    self.close_calls(work);
                    if let Err((outcome, reason)) = self.quota_used_up((&reason, reset), work, &mut cancel).await {
                        return work.end(outcome, &reason);
                    }
                    timer.wait(false);
                    clock.wait(false);
                    if let Err(exhausted) = self.budget.take_turn(&work.agent) {
                        return self.stop_for_budget(&exhausted, work);
                    }
                    let ended = Fact::NoQuota { reason, reset };
                    match self.resume_or_cancel(session, (&prompt, attachments), ended, work, &mut cancel).await {
                        Some(Ok(())) => continue,
                        Some(Err(error)) => Fact::Failed(error.to_string()),
                        None => return self.stop_cancelled(session, work, &waits, &cancel).await,
                    }
                }
                fact => fact,
            };
            if matches!(
                fact,
                Fact::MessageDelta(_) | Fact::Message(_) | Fact::ToolStarted { .. } | Fact::Usage(_) | Fact::Idle
            ) {
                self.model_answered(work);
            }
            let is_of_call = matches!(fact, Fact::ToolStarted { .. } | Fact::ToolCompleted { .. });
            if let Some((outcome, reason)) = self.report_fact(fact, work, &waits) {
                return work.end(outcome, &reason);
            }
            // Calls that may be made end first. Then the model would be called again.
            let is_free = || work.tools_in_progress.keys().all(|call| self.budget.is_beyond(&work.agent, call));
            if is_of_call
                && is_free()
                && let Some(exhausted) = self.budget.ends(&work.agent)
            {
                self.stop(session, work, &waits, (Outcome::Stopped, "")).await;
                return self.stop_for_budget(&exhausted, work);
            }
        }
    }

    /// Sends a prompt with the decisions and user messages that the agent has not received. Returns the text sent.
    async fn send_with_news(
        &self,
        session: &mut Session,
        prompt: &str,
        attachments: &[Attachment],
        work: &Work,
    ) -> Result<String, EngineError> {
        let notice = if work.gets_decisions { self.requests.notices.due(&work.agent) } else { None };
        let prompt = notice.iter().map(|notice| format!("{}\n---\n\n", notice.text)).collect::<String>() + prompt;
        let mut prompt = without_hidden(prompt);
        for text in self.requests.user_messages.take(&work.agent) {
            prompt.push_str(&compile::user_additions(&without_hidden(text)));
        }
        let sent = session.send(&prompt, attachments).await;
        if let Some(notice) = &notice {
            match &sent {
                Ok(()) => self.report_delivered(work, notice),
                Err(_) => self.requests.notices.withdraw(&work.agent, notice),
            }
        }
        sent.map(|()| prompt)
    }

    /// Resumes a turn that ended like this; `None` if it is cancelled meanwhile.
    async fn resume_or_cancel(
        &self,
        session: &mut Session,
        message: (&str, &[Attachment]),
        ended: Fact,
        work: &mut Work,
        cancel: &mut Cancel,
    ) -> Option<Result<(), EngineError>> {
        tokio::select! {
            biased;
            () = cancel.wait() => None,
            resumed = self.resume(session, message, ended, work) => Some(resumed),
        }
    }

    /// Resumes a turn that was cut short, without repeating the parts of the prompt its session already has.
    async fn resume(
        &self,
        session: &mut Session,
        message: (&str, &[Attachment]),
        ended: Fact,
        work: &mut Work,
    ) -> Result<(), EngineError> {
        let tell = |kind| self.reports.tell(Some(&work.agent), kind);
        let error = |reason| EventKind::SessionError { session: work.session.clone(), reason };
        match ended {
            Fact::Interrupted(reason) => {
                tell(error(format!("{reason}; it goes on")));
                tell(EventKind::SessionResumed { session: work.session.clone(), seconds: 0.0, changed: false });
            }
            // The session is still open.
            Fact::Failed(reason) => tell(error(format!("{reason}; it is tried again"))),
            _ => {}
        }
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

    /// The message that resumes a turn cut short; `None` if its session does not contain the task.
    pub(super) async fn continuation(&self, session: &mut Session, task: &str, work: &Work) -> Option<String> {
        let recall = session.recall(task).await?;
        let warn = |reason: String| {
            let kind = EventKind::SessionError { session: work.session.clone(), reason };
            self.reports.tell(Some(&work.agent), kind);
        };
        if !recall.has_prompt {
            warn("its session does not have the task, so it gets the task again".to_owned());
            return None;
        }
        // An engine may use an id again in its next turn.
        let recorded = |call: &str| work.calls.iter().rfind(|past| past.call == call).filter(|past| past.is_finished());
        let (ended, unfinished): (Vec<_>, Vec<_>) =
            recall.unfinished.into_iter().partition(|(call, _)| recorded(call).is_some());
        let has_lost = |past: &PastCall| {
            !recall.calls.contains(&past.call)
                || ended.iter().any(|(call, _)| recorded(call).is_some_and(|end| std::ptr::eq(end, past)))
        };
        let lost: Vec<PastCall> = work.calls.iter().filter(|past| has_lost(past)).cloned().collect();
        let unfinished: Vec<String> = unfinished.into_iter().map(|(_, tool)| tool).collect();
        if !unfinished.is_empty() {
            let tools = list(unfinished.iter().map(|tool| format!("`{tool}`")));
            warn(format!("the outcome of its last calls of {tools} is unknown; it is told to check"));
        }
        if let Some(unknown) = compile::unknown_calls(&lost) {
            warn(unknown_end(&unknown));
        }
        if !lost.is_empty() {
            warn(format!("its session lost {} of its tool calls and is told about them", lost.len()));
        }
        Some(without_hidden(compile::continuation_prompt(&unfinished, &lost)))
    }

    /// Sends new decisions into a turn. `false`: they come with the next message.
    async fn notify(&self, session: &mut Session, work: &Work) -> bool {
        let Some(notice) = self.requests.notices.due(&work.agent) else { return true };
        // The notice may arrive after the model's intended last message.
        let text = format!("{}\nIf your work was already done, end with your whole report again.\n", notice.text);
        if let Ok(true) = session.notify(&without_hidden(text)).await {
            self.report_delivered(work, &notice);
            return true;
        }
        self.requests.notices.withdraw(&work.agent, &notice);
        false
    }

    /// Sends the user's messages into a turn. `false`: the turn is over, and they are kept for the next one.
    async fn steer(&self, session: &mut Session, work: &Work) -> bool {
        let messages = &self.requests.user_messages;
        let mut new_messages = messages.take(&work.agent).into_iter();
        while let Some(text) = new_messages.next() {
            if !matches!(session.steer(&without_hidden(text.clone())).await, Ok(true)) {
                messages.put_back(&work.agent, [text].into_iter().chain(new_messages));
                return false;
            }
        }
        true
    }

    /// Runs another turn for messages the user sent just before this one ended.
    pub(super) async fn deliver_late_messages(&self, session: &mut Session, cancel: Cancel, work: &mut Work) {
        loop {
            let new_messages = self.requests.user_messages.leave(&work.agent);
            if new_messages.is_empty() || work.outcome != Outcome::Completed {
                return;
            }
            self.turn(session, (&new_messages.join("\n\n"), &[]), cancel.clone(), work).await;
        }
    }

    /// Messages the user sent before the run was interrupted that are not in the session.
    pub(super) async fn earlier_messages(&self, session: &mut Session, agent: &Slug) -> String {
        let mut unheard = String::new();
        for text in self.requests.user_messages.take_past(agent) {
            let text = without_hidden(text);
            if !session.recall(&text).await.is_some_and(|recall| recall.has_prompt) {
                unheard.push_str(&compile::user_additions(&text));
            }
        }
        unheard
    }

    fn report_delivered(&self, work: &Work, notice: &Notice) {
        let decisions = notice.decisions.iter().map(|decision| decision.id.clone()).collect();
        let kind = EventKind::DecisionDelivered { decisions, session: work.session.clone() };
        self.reports.tell_because(&work.agent, kind, notice.entries.clone());
    }

    /// Reports an end for each unfinished tool call, so that the record shows that it began.
    pub(super) fn close_calls(&self, work: &mut Work) {
        for (call, ToolInProgress { tool, detail, at, .. }) in std::mem::take(&mut work.tools_in_progress) {
            if let Some(tree) = &work.requester.tree {
                tree.end_call(&work.agent, &call, true);
            }
            let is_beyond = self.budget.is_beyond(&work.agent, &call);
            let result = "cut short by the end of the turn".to_owned();
            let seconds = seconds(at.elapsed());
            work.calls.push(PastCall::new(&call, &tool, &detail, None));
            let kind = EventKind::ToolCompleted {
                call,
                tool,
                ok: false,
                exit_code: None,
                seconds,
                detail,
                result,
                wrote: None,
            };
            self.reports.tell(Some(&work.agent), kind);
            work.usage.tool_calls += u64::from(!is_beyond);
        }
    }

    /// Ends work whose budget is used up, and says so once.
    fn stop_for_budget(&self, exhausted: &Exhausted, work: &mut Work) {
        if let Some((agent, reached)) = self.budget.event(&work.agent, exhausted) {
            self.reports.tell(agent.as_ref(), reached);
        }
        work.end(Outcome::Stopped, &exhausted.to_string());
    }

    async fn stop_cancelled(&self, session: &mut Session, work: &mut Work, waits: &PendingAnswers, cancel: &Cancel) {
        self.stop(session, work, waits, (Outcome::Cancelled, cancel.reason())).await;
    }

    /// Ends a turn early. Reads its remaining facts first, so that its last output and usage are not lost.
    async fn stop(&self, session: &mut Session, work: &mut Work, waits: &PendingAnswers, end: (Outcome, &str)) {
        let drained = async {
            session.abort().await;
            while self.report_fact(session.next().await, work, waits).is_none() {}
        };
        // An engine that does not stop is ended with its process.
        let _ = tokio::time::timeout(GRACE, drained).await;
        work.end(end.0, end.1);
    }

    fn tool_started(
        &self,
        (call, tool, detail): (String, String, String),
        writes: Option<(String, String)>,
        work: &mut Work,
    ) {
        let writes = writes.and_then(|(path, text)| {
            // A write to the inbox becomes a decision, not a file.
            let project = self.requests.project_of(&work.requester);
            let path = in_project(project, &path).filter(|path| !is_in_inbox(path))?;
            Some(Written { path, text, ..Written::default() })
        });
        if let (Some(tree), Some(writes)) = (&work.requester.tree, &writes) {
            tree.begin_write(&work.agent, &call, &writes.path, false);
            self.requests.notices.write(&work.agent, &writes.path);
        }
        let in_progress = ToolInProgress { tool: tool.clone(), detail: detail.clone(), writes, at: Instant::now() };
        work.tools_in_progress.insert(call.clone(), in_progress);
        self.reports.tell(Some(&work.agent), EventKind::ToolStarted { call, tool, detail });
    }

    /// Counts what a model call has used. It costs what the user's prices say, until its engine tells what all since it
    /// last did have cost.
    fn used(&self, mut usage: Usage, work: &mut Work) {
        let is_told = usage.cost_usd.is_some();
        let price = self.budget.price_of(work.models()).cloned();
        usage.cost_usd = work.priced.cost(&usage, price.as_ref());
        work.is_unpriced = !is_told && (work.is_unpriced || usage.cost_usd.is_none());
        work.usage += &usage;
        work.usage.context = usage.context.or(work.usage.context);
        self.budget.settle(&work.agent, &usage);
        self.reports.tell(Some(&work.agent), EventKind::Usage(usage));
    }

    /// Answers a request in a task, so that the turn's other facts do not wait.
    fn answer_concurrently(&self, request: Request, work: &Work, waits: &PendingAnswers) {
        // A hook's time is its agent's.
        let is_hooks = matches!(request, Request::BeforeTool(..) | Request::AfterTool(..));
        let wait = (!is_hooks).then(|| waits.begin());
        let (workers, requester) = (self.clone(), Arc::clone(&work.requester));
        spawn(async move {
            let _wait = wait;
            workers.answer(requester, request).await;
        });
    }

    /// Reports one fact. Returns the outcome if the turn has ended.
    fn report_fact(&self, fact: Fact, work: &mut Work, waits: &PendingAnswers) -> Option<(Outcome, String)> {
        let tell = |kind| self.reports.tell(Some(&work.agent), kind);
        match fact {
            Fact::Alive => {}
            Fact::MessageDelta(text) => tell(EventKind::MessageDelta { text }),
            Fact::Message(text) => {
                tell(EventKind::Message { text: text.clone() });
                work.text = text;
            }
            Fact::ToolStarted { call, tool, detail, writes } => {
                // One too many is refused when it asks; the turn ends at once if it does not.
                let _ = self.budget.take_call(&work.agent, Some(&call));
                self.tool_started((call, tool, detail), writes, work);
            }
            Fact::ToolCompleted { call, tool, ok, exit_code, detail: result } => {
                let is_beyond = self.budget.is_beyond(&work.agent, &call);
                if let Some(tree) = &work.requester.tree {
                    tree.end_call(&work.agent, &call, ok);
                }
                let started = work.tools_in_progress.remove(&call);
                let ToolInProgress { tool, detail, writes, at } = started.unwrap_or_else(|| ToolInProgress {
                    tool,
                    detail: String::new(),
                    writes: None,
                    at: Instant::now(),
                });
                let (seconds, wrote) = (seconds(at.elapsed()), writes.filter(|_| ok));
                work.note_done(&tool, wrote.is_some(), ok || exit_code.is_some());
                if change_by(&tool) == Some(Access::Shell) {
                    work.requester.commands.lock().end(&detail, ok, exit_code, &self.requests.checks);
                }
                work.calls.push(PastCall { exit_code, ..PastCall::new(&call, &tool, &detail, Some(ok)) });
                tell(EventKind::ToolCompleted { call, tool, ok, exit_code, seconds, detail, result, wrote });
                work.usage.tool_calls += u64::from(!is_beyond);
            }
            Fact::Request(request) => {
                // A question to the person, or a call that its engine does not report, is no mere claim.
                work.has_requested |= !matches!(request, Request::Unasked(_) | Request::Host(..));
                self.answer_concurrently(request, work, waits);
            }
            Fact::Denied { access, tool, detail, reason } => {
                work.requester.note_refused(access);
                if change_by(&tool) == Some(Access::Shell) {
                    work.requester.commands.lock().refuse(&detail);
                }
                tell(EventKind::ToolDenied { tool, detail, reason });
            }
            Fact::Governed { engine, by, lacks_tools, hides_refusals } => {
                work.is_unasked = true;
                work.hides_refusals = Some(engine.clone()).filter(|_| hides_refusals);
                tell(EventKind::EngineGoverned { engine, by, lacks_tools });
            }
            Fact::Exited(exited) => tell(EventKind::EngineExited(exited)),
            Fact::Usage(usage) => self.used(usage.bounded(), work),
            Fact::Warning(reason) => tell(EventKind::SessionError { session: String::new(), reason }),
            fact @ Fact::Shortened { .. } => {
                work.is_shortened = true;
                as_shortened(&fact).into_iter().for_each(tell);
            }
            Fact::Prepared { command, exit_code, reason, seconds, output } => {
                let output_file = String::new();
                tell(EventKind::ClonePrepared { command, exit_code, reason, seconds, output, output_file });
            }
            Fact::Reached(ReachedHosts { reached, refused }) => {
                work.hosts.reached.extend(reached);
                work.hosts.refused.extend(refused);
            }
            Fact::ConnectionLost(reason) => tell(EventKind::ConnectionLost { reason }),
            Fact::ConnectionRestored { attempts } => tell(EventKind::ConnectionRestored { attempts }),
            // An agent that ends without output has not done its task, unless it gave a verdict.
            Fact::Idle if work.text.trim().is_empty() && work.judgement().is_none() => {
                return Some((Outcome::Failed, "it ended without an answer".to_owned()));
            }
            Fact::Idle => return Some((Outcome::Completed, String::new())),
            Fact::Gone(reason) => return Some((Outcome::Lost, reason)),
            Fact::Interrupted(reason) | Fact::Failed(reason) | Fact::Lost(reason) | Fact::NoQuota { reason, .. } => {
                return Some((Outcome::Failed, reason));
            }
            Fact::NoLogin { reason, hint } => {
                let error = EngineError::Unauthenticated { reason, hint };
                let reason = error.with_hint();
                work.no_login = Some(error);
                return Some((Outcome::Failed, reason));
            }
        }
        None
    }
}
