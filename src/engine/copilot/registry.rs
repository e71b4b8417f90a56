//! The sessions that are open, and the way of what the CLI sends to the session it is meant for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::connection::{Connection, Incoming, Responder, lock};
use super::conversation::{Asked, Conversation, Hooked};
use super::wire::{Event, EventParams, HookCall, OpenParams, UserInput, lenient};
use crate::engine::{Approval, EngineError, Fact, ToolResult};

/// What the model reads when nobody answers its question.
const NO_ANSWER: &str = "Nobody is available to answer. Go on by your own best judgement, and say what you assumed.";

type Sessions = Arc<Mutex<HashMap<String, Conversation>>>;

pub(crate) struct Registry {
    sessions: Sessions,
    /// Of the requests that carry answers.
    deadline: Duration,
}

impl Registry {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self { sessions: Sessions::default(), deadline }
    }

    /// One process answers a second `session.create` of an id with the first session, so it is refused here.
    pub(crate) fn add(
        &self,
        params: OpenParams,
        own_tools: impl IntoIterator<Item = &'static str>,
    ) -> Result<mpsc::UnboundedReceiver<Fact>, EngineError> {
        let mut sessions = lock(&self.sessions);
        let id = params.session_id.clone();
        if sessions.contains_key(&id) {
            let reason = "a session of this id is open already".to_owned();
            return Err(EngineError::Request { what: format!("session `{id}`"), reason });
        }
        let (conversation, facts) = Conversation::new(params, own_tools.into_iter().collect());
        sessions.insert(id, conversation);
        Ok(facts)
    }

    pub(crate) fn remove(&self, id: &str) {
        lock(&self.sessions).remove(id);
    }

    /// Does something with a session, if it is there.
    pub(crate) fn with<T>(&self, id: &str, act: impl FnOnce(&mut Conversation) -> T) -> Option<T> {
        lock(&self.sessions).get_mut(id).map(act)
    }

    /// Does something with every session that was opened.
    pub(crate) fn each(&self, mut act: impl FnMut(&mut Conversation)) {
        lock(&self.sessions).values_mut().filter(|session| session.is_open()).for_each(&mut act);
    }

    pub(crate) fn is_working(&self, id: &str) -> bool {
        self.with(id, |session| session.is_working()).unwrap_or(false)
    }

    pub(crate) fn is_any_working(&self) -> bool {
        lock(&self.sessions).values().any(Conversation::is_working)
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
        let asked = self.with(&session_id, |session| {
            let asked = session.happened(&event);
            (asked, session.is_working(), session.new_doubt())
        });
        let Some((asked, working, doubt)) = asked else {
            // Nobody is there any more who could allow anything; unanswered, the CLI would wait for ever.
            return drop(tokio::spawn(refuse(Arc::clone(connection), session_id, event, self.deadline)));
        };
        if let Some(asked) = asked {
            tokio::spawn(answer(Arc::clone(connection), session_id.clone(), asked, self.deadline));
        }
        if let Some(turn) = doubt {
            let sessions = Arc::clone(&self.sessions);
            tokio::spawn(settle(sessions, Arc::clone(connection), session_id.clone(), turn, self.deadline));
        }
        if working && matches!(event.r#type.as_str(), "tool.execution_start" | "tool.execution_complete") {
            // The CLI writes a turn's events 100 to 200 ms late, and a tool is where it is most likely to be killed:
            // flushed here, a session loses nothing.
            connection.tell("sessions.save", &json!({ "sessionId": session_id }));
        }
    }
}

impl Incoming for Registry {
    fn notified(&self, connection: &Arc<Connection>, method: &str, params: Value) {
        if method == "session.event" {
            self.event(connection, params);
        }
    }

    fn asked(&self, responder: Responder, method: &str, params: Value) {
        match method {
            "hooks.invoke" => {
                let hook: HookCall = lenient(params);
                match self.with(&hook.session_id, |session| session.hook_called(&hook)) {
                    Some(Hooked::Now(output)) => responder.answer(output),
                    Some(hooked) => drop(tokio::spawn(async move { responder.answer(hooked.answer().await) })),
                    None => responder.invalid("there is no such session"),
                }
            }
            "userInput.request" => {
                let question: UserInput = lenient(params);
                match self.with(&question.session_id, |session| session.question_asked(&question)) {
                    Some(answer) => drop(tokio::spawn(async move {
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

/// How often a turn is looked at that may have ended without saying so.
const LOOK: Duration = Duration::from_secs(1);

/// Ends a turn that has ended without saying so. Seen once, it may just be between two of its steps.
async fn settle(sessions: Sessions, connection: Arc<Connection>, id: String, turn: u64, deadline: Duration) {
    let mut times = 0;
    while times < 2 {
        tokio::time::sleep(LOOK).await;
        if !lock(&sessions).get(&id).is_some_and(|session| session.is_in_turn(turn)) {
            return;
        }
        let params = json!({ "sessionId": id });
        match connection.request("session.metadata.activity", &params, deadline).await {
            Ok(activity) if activity.get("hasActiveWork") == Some(&Value::Bool(false)) => times += 1,
            Ok(_) => times = 0,
            // One that cannot tell has its limits, and one that is gone is dealt with elsewhere.
            Err(error) => return tracing::debug!("what session {id} is at is not known: {error}"),
        }
    }
    if let Some(session) = lock(&sessions).get_mut(&id) {
        session.found_idle(turn);
    }
}

/// Answers what a session asks that is gone.
async fn refuse(connection: Arc<Connection>, session: String, event: Event, deadline: Duration) {
    let Some(request) = event.data.get("requestId").and_then(Value::as_str).map(str::to_owned) else { return };
    let asked = match event.r#type.as_str() {
        "external_tool.requested" => Asked::Tool { request, answer: oneshot::channel().1 },
        "permission.requested" => Asked::Permission { request, answers: vec![oneshot::channel().1] },
        _ => return,
    };
    answer(connection, session, asked, deadline).await;
}

async fn answer(connection: Arc<Connection>, session: String, asked: Asked, deadline: Duration) {
    let (method, params) = match asked {
        Asked::Tool { request, answer } => {
            let result = answer.await.unwrap_or_else(|_| refused_call());
            let kind = if result.ok { "success" } else { "failure" };
            let result = json!({ "textResultForLlm": result.text, "resultType": kind });
            let params = json!({ "sessionId": session, "requestId": request, "result": result });
            ("session.tools.handlePendingToolCall", params)
        }
        Asked::Permission { request, answers } => {
            let result = match approval(answers).await {
                Approval::Allow => json!({ "kind": "approve-once" }),
                Approval::Deny(reason) => json!({ "kind": "reject", "feedback": reason }),
            };
            let params = json!({ "sessionId": session, "requestId": request, "result": result });
            ("session.permissions.handlePendingPermissionRequest", params)
        }
    };
    // The call is on the disk before its answer is given: whoever resumes the session knows that it was begun.
    let _ = connection.request("sessions.save", &json!({ "sessionId": session }), deadline).await;
    if let Err(error) = connection.request(method, &params, deadline).await {
        tracing::debug!("the engine did not take an answer: {error}");
    }
}

fn refused_call() -> ToolResult {
    ToolResult { ok: false, text: "squad did not run this tool.".to_owned() }
}

/// Allowed when all are; refused by the first refusal, or when nobody answers.
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
