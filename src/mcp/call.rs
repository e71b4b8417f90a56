//! A request while it is worked on: it may report progress, ask the person, and be cancelled.

use std::sync::Arc;

use rmcp::model::{
    BooleanSchema, ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, oneshot};

use super::result::ToolResult;
use super::signal::Signal;

/// What our question is called where the client answers it with the next call.
const CONFIRM: &str = "confirm";

/// One request, for the thread that works on it.
pub(crate) struct Call {
    pub(crate) signal: Arc<Signal>,
    version: ProtocolVersion,
    client: ClientCapabilities,
    /// What its progress is called, where the client wants to hear of it.
    token: Option<ProgressToken>,
    /// The person's answers to what an earlier result asked for.
    answers: InputResponses,
    outgoing: mpsc::Sender<Outgoing>,
}

/// Something for the client, which the request's own task sends: that is what it belongs to.
pub(super) struct Outgoing {
    message: Message,
    sent: oneshot::Sender<Option<bool>>,
}

enum Message {
    Progress(ProgressNotificationParam),
    Question(ElicitRequestParams),
}

/// What the person at the client says.
pub(crate) enum Confirmed {
    Yes,
    No,
    /// The client cannot ask, or nobody answered.
    Unasked,
    /// The client asks when it gets this, and calls again.
    Later(Box<ToolResult>),
}

impl Call {
    pub(super) fn new(
        context: &RequestContext<RoleServer>,
        signal: Arc<Signal>,
        answers: InputResponses,
    ) -> (Self, mpsc::Receiver<Outgoing>) {
        let (outgoing, messages) = mpsc::channel(1);
        let call = Self {
            signal,
            version: context.protocol_version().unwrap_or_default(),
            client: context.client_capabilities().unwrap_or_default(),
            token: context.meta.get_progress_token(),
            answers,
            outgoing,
        };
        (call, messages)
    }

    /// Says how far it has come. `done` must grow from one time to the next.
    pub(crate) fn progress(&self, done: f64, of: Option<f64>, message: &str) {
        let Some(token) = self.token.clone().filter(|_| !self.signal.is_cancelled()) else { return };
        let mut progress = ProgressNotificationParam::new(token, done);
        progress.total = of;
        progress.message = (self.version >= ProtocolVersion::V_2025_03_26).then(|| message.to_owned());
        self.send(Message::Progress(progress));
    }

    /// Whether the client would rather ask about it later. Older revisions know tasks of another kind.
    pub(crate) fn wants_task(&self) -> bool {
        !self.version.has_initialize() && self.client.supports_tasks()
    }

    /// Asks the person at the client for yes or no.
    pub(crate) fn confirm(&self, question: &str) -> Confirmed {
        // Without a word on what it can ask with, it is a form.
        let can_ask = |how: &rmcp::model::ElicitationCapability| how.form.is_some() || how.url.is_none();
        if !self.client.elicitation.as_ref().is_some_and(can_ask) {
            return Confirmed::Unasked;
        }
        if let Some(answer) = self.answers.get(CONFIRM) {
            let answer = serde_json::from_value(answer.clone());
            return if answer.is_ok_and(|answer| is_yes(&answer)) { Confirmed::Yes } else { Confirmed::No };
        }
        let Some(question) = form(question) else { return Confirmed::Unasked };
        if self.version.has_initialize() {
            return match self.send(Message::Question(question)) {
                Some(true) => Confirmed::Yes,
                Some(false) => Confirmed::No,
                None => Confirmed::Unasked,
            };
        }
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        let questions = [(CONFIRM.to_owned(), question)].into();
        let asked = ToolResult::instead(InputRequiredResult::from_input_requests(questions));
        Confirmed::Later(Box::new(asked))
    }

    /// Sent when this returns, and answered where it is a question.
    fn send(&self, message: Message) -> Option<bool> {
        let (sent, answered) = oneshot::channel();
        self.outgoing.blocking_send(Outgoing { message, sent }).ok()?;
        answered.blocking_recv().ok().flatten()
    }
}

/// A form with one box to tick.
fn form(question: &str) -> Option<ElicitRequestParams> {
    let tick = |field: BooleanSchema| field.title("Go ahead").with_default(false);
    let requested_schema = ElicitationSchema::builder().required_bool_with(CONFIRM, tick).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message: question.to_owned(), requested_schema })
}

fn is_yes(answer: &ElicitResult) -> bool {
    let is_ticked = answer.content.as_ref().and_then(|content| content.get(CONFIRM)?.as_bool());
    answer.action == ElicitationAction::Accept && is_ticked == Some(true)
}

impl Outgoing {
    pub(super) async fn send(self, peer: &Peer<RoleServer>, signal: &Signal) {
        let sending = async {
            match self.message {
                Message::Progress(progress) => {
                    // Who does not listen any more misses nothing.
                    let _ = peer.notify_progress(progress).await;
                    None
                }
                Message::Question(question) => {
                    let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
                    match peer.send_request(request).await {
                        Ok(ClientResult::ElicitResult(answer)) => Some(is_yes(&answer)),
                        _ => None,
                    }
                }
            }
        };
        let answer = tokio::select! {
            answer = sending => answer,
            () = signal.given_up() => None,
        };
        // The call waits for it.
        let _ = self.sent.send(answer);
    }
}
