//! The open sessions. Routes the CLI's messages to their sessions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::conversation::{Conversation, HookAnswer, PendingAnswer};
use super::wire::{Event, EventParams, HookCall, OpenParams, UserInput, lenient};
use crate::engine::connection::{Connection, Incoming, Responder};
use crate::engine::{Approval, EngineError, Fact, ToolResult, spawn};
use crate::model::IntoSet;

/// The answer for the model when nobody answers its question.
const NO_ANSWER: &str = "Nobody is available to answer. Continue on your own judgement, and state what you assumed.";

type Sessions = Arc<Mutex<HashMap<String, Conversation>>>;

pub(crate) struct Registry {
    sessions: Sessions,
    /// The deadline of requests that carry our answers.
    deadline: Duration,
}

impl Registry {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self { sessions: Sessions::default(), deadline }
    }

    /// Refuses an id that is already open: the CLI would answer a second `session.create` with the first session.
    pub(crate) fn add(
        &self,
        params: OpenParams,
        own_tools: impl IntoIterator<Item = Cow<'static, str>>,
    ) -> Result<mpsc::UnboundedReceiver<Fact>, EngineError> {
        let mut sessions = self.sessions.lock();
        let id = params.session_id.clone();
        if sessions.contains_key(&id) {
            let reason = "a session with this id is already open".to_owned();
            return Err(EngineError::Request { what: format!("session `{id}`"), reason });
        }
        let (conversation, facts) = Conversation::new(params, own_tools.into_set());
        sessions.insert(id, conversation);
        Ok(facts)
    }

    pub(crate) fn remove(&self, id: &str) {
        self.sessions.lock().remove(id);
    }

    /// Calls `act` with a session, if it exists.
    pub(crate) fn with<T>(&self, id: &str, act: impl FnOnce(&mut Conversation) -> T) -> Option<T> {
        self.sessions.lock().get_mut(id).map(act)
    }

    /// Calls `act` with every opened session.
    pub(crate) fn each(&self, mut act: impl FnMut(&mut Conversation)) {
        self.sessions.lock().values_mut().filter(|session| session.is_open()).for_each(&mut act);
    }

    pub(crate) fn is_working(&self, id: &str) -> bool {
        self.with(id, |session| session.is_working()).unwrap_or(false)
    }

    pub(crate) fn is_any_working(&self) -> bool {
        self.sessions.lock().values().any(Conversation::is_working)
    }

    pub(crate) fn open_params(&self) -> Vec<OpenParams> {
        let mut params = Vec::new();
        self.each(|session| params.push(session.params().clone()));
        params
    }

    fn event(&self, connection: &Arc<Connection>, params: Value) {
        let EventParams { session_id, event } = match serde_json::from_value(params) {
            Ok(params) => params,
            Err(error) => return tracing::debug!("an event has an unknown shape: {error}"),
        };
        let pending = self.with(&session_id, |session| {
            let pending = session.handle_event(&event);
            (pending, session.is_working(), session.take_end_check())
        });
        let Some((pending, working, unchecked_turn)) = pending else {
            // The session is gone, so nobody can answer; without an answer, the CLI would wait for ever.
            return drop(spawn(refuse(Arc::clone(connection), session_id, event, self.deadline)));
        };
        if let Some(pending) = pending {
            spawn(answer(Arc::clone(connection), session_id.clone(), pending, self.deadline));
        }
        if let Some(turn) = unchecked_turn {
            let sessions = Arc::clone(&self.sessions);
            spawn(end_when_idle(sessions, Arc::clone(connection), session_id.clone(), turn, self.deadline));
        }
        if working && matches!(event.r#type.as_str(), "tool.execution_start" | "tool.execution_complete") {
            // The CLI writes a turn's events 100 to 200 ms late, and it is most likely to be killed during a tool call.
            // Saving here means that a session loses nothing.
            connection.send_and_forget("sessions.save", &json!({ "sessionId": session_id }));
        }
    }
}

impl Incoming for Registry {
    fn notified(&self, connection: &Arc<Connection>, method: &str, params: Value) {
        if method == "session.event" {
            self.event(connection, params);
        }
    }

    fn requested(&self, responder: Responder, method: &str, params: Value) {
        match method {
            "hooks.invoke" => {
                let hook: HookCall = lenient(params);
                match self.with(&hook.session_id, |session| session.hook_called(&hook)) {
                    Some(HookAnswer::Now(output)) => responder.answer(output),
                    Some(hooked) => drop(spawn(async move { responder.answer(hooked.answer().await) })),
                    None => responder.invalid("there is no such session"),
                }
            }
            "userInput.request" => {
                let question: UserInput = lenient(params);
                match self.with(&question.session_id, |session| session.question_requested(&question)) {
                    Some(answer) => drop(spawn(async move {
                        let answer = answer.await.ok().flatten().unwrap_or_else(|| NO_ANSWER.to_owned());
                        let freeform = !question.choices.contains(&answer);
                        responder.answer(json!({ "answer": answer, "wasFreeform": freeform }));
                    })),
                    None => responder.invalid("there is no such session"),
                }
            }
            _ => responder.unknown_method(method),
        }
    }
}

/// How often to check whether a turn has ended without an end event.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Ends a turn that has ended without an end event. Requires two idle results in a row, since a turn may be idle
/// between two steps.
async fn end_when_idle(sessions: Sessions, connection: Arc<Connection>, id: String, turn: u64, deadline: Duration) {
    let mut idle_count = 0;
    while idle_count < 2 {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if !sessions.lock().get(&id).is_some_and(|session| session.is_in_turn(turn)) {
            return;
        }
        let params = json!({ "sessionId": id });
        match connection.request("session.metadata.activity", &params, deadline).await {
            Ok(activity) if activity.get("hasActiveWork") == Some(&Value::Bool(false)) => idle_count += 1,
            Ok(_) => idle_count = 0,
            // If the CLI lacks this method, the turn's time limits apply; a lost CLI is handled elsewhere.
            Err(error) => return tracing::debug!("the state of session {id} is unknown: {error}"),
        }
    }
    if let Some(session) = sessions.lock().get_mut(&id) {
        session.end_if_current(turn);
    }
}

/// Refuses a request of a session that is gone.
async fn refuse(connection: Arc<Connection>, session: String, event: Event, deadline: Duration) {
    let Some(request) = event.data.get("requestId").and_then(Value::as_str).map(str::to_owned) else { return };
    let pending = match event.r#type.as_str() {
        "external_tool.requested" => PendingAnswer::Tool { request, answer: oneshot::channel().1 },
        "permission.requested" => PendingAnswer::Permission { request, answers: vec![oneshot::channel().1] },
        _ => return,
    };
    answer(connection, session, pending, deadline).await;
}

async fn answer(connection: Arc<Connection>, session: String, pending: PendingAnswer, deadline: Duration) {
    let (method, params) = match pending {
        PendingAnswer::Tool { request, answer } => {
            let result = answer.await.unwrap_or_else(|_| refused_call());
            let kind = if result.ok { "success" } else { "failure" };
            let result = json!({ "textResultForLlm": result.text, "resultType": kind });
            let params = json!({ "sessionId": session, "requestId": request, "result": result });
            ("session.tools.handlePendingToolCall", params)
        }
        PendingAnswer::Permission { request, answers } => {
            let result = match approval(answers).await {
                Approval::Allow => json!({ "kind": "approve-once" }),
                Approval::Deny(reason) => json!({ "kind": "reject", "feedback": reason }),
            };
            let params = json!({ "sessionId": session, "requestId": request, "result": result });
            ("session.permissions.handlePendingPermissionRequest", params)
        }
    };
    // Save the call to disk before answering it, so that a resumed session knows that it was started.
    let _ = connection.request("sessions.save", &json!({ "sessionId": session }), deadline).await;
    if let Err(error) = connection.request(method, &params, deadline).await {
        tracing::debug!("the engine did not take an answer: {error}");
    }
}

fn refused_call() -> ToolResult {
    ToolResult { ok: false, text: "squad did not run this tool.".to_owned() }
}

/// Allowed if all answers are; denied by the first denial or missing answer.
async fn approval(answers: Vec<oneshot::Receiver<Approval>>) -> Approval {
    for answer in answers {
        match answer.await {
            Ok(Approval::Allow) => {}
            Ok(denied) => return denied,
            Err(_) => return Approval::Deny("squad did not allow this.".to_owned()),
        }
    }
    Approval::Allow
}
