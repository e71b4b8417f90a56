//! A request in progress: it can report progress, ask the user, and be cancelled.

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

/// The key of the user's answer, in the form and in a repeated call.
const CONFIRM: &str = "confirm";

/// A request, as seen by the thread that handles it.
pub(crate) struct Call {
    pub(crate) signal: Arc<Signal>,
    /// What the client calls itself.
    pub(crate) client_name: Option<String>,
    version: ProtocolVersion,
    client: ClientCapabilities,
    /// `None`: the client wants no progress notifications.
    token: Option<ProgressToken>,
    /// The user's answers to the questions of an earlier result.
    answers: InputResponses,
    outgoing: mpsc::Sender<Outgoing>,
}

/// A message to the client. The request's own async task sends it, so that it belongs to that request.
pub(super) struct Outgoing {
    message: Message,
    reply: oneshot::Sender<Option<bool>>,
}

enum Message {
    Progress(ProgressNotificationParam),
    Question(ElicitRequestParams),
}

/// The user's answer.
pub(crate) enum Confirmed {
    Yes,
    No,
    /// The client cannot ask, or nobody answered.
    Unavailable,
    /// The client asks the user when it gets this result, and repeats the call with the answer.
    InputRequired(Box<ToolResult>),
}

impl Confirmed {
    /// `None`: nobody answered.
    fn of(answer: Option<bool>) -> Self {
        match answer {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None => Self::Unavailable,
        }
    }
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
            client_name: context.client_info().map(|client| client.name),
            version: context.protocol_version().unwrap_or_default(),
            client: context.client_capabilities().unwrap_or_default(),
            token: context.meta.get_progress_token(),
            answers,
            outgoing,
        };
        (call, messages)
    }

    /// Reports progress. `done` must increase with each report.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let Some(token) = self.token.clone().filter(|_| !self.signal.is_cancelled()) else { return };
        let mut progress = ProgressNotificationParam::new(token, done);
        progress.total = total;
        progress.message = (self.version >= ProtocolVersion::V_2025_03_26).then(|| message.to_owned());
        self.send(Message::Progress(progress));
    }

    /// Whether the client prefers a task to a result. Revisions with `initialize` have an incompatible kind of tasks.
    pub(crate) fn wants_task(&self) -> bool {
        !self.version.has_initialize() && self.client.supports_tasks()
    }

    /// Asks the user for yes or no.
    pub(crate) fn confirm(&self, question: &str) -> Confirmed {
        // A capability that names no mode means forms.
        let can_ask = |modes: &rmcp::model::ElicitationCapability| modes.form.is_some() || modes.url.is_none();
        if !self.client.elicitation.as_ref().is_some_and(can_ask) {
            return Confirmed::Unavailable;
        }
        if let Some(answer) = self.answers.get(CONFIRM) {
            return Confirmed::of(serde_json::from_value(answer.clone()).ok().as_ref().and_then(answer_of));
        }
        let Some(question) = form(question) else { return Confirmed::Unavailable };
        if self.version.has_initialize() {
            return Confirmed::of(self.send(Message::Question(question)));
        }
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        let questions = [(CONFIRM.to_owned(), question)].into();
        let result = ToolResult::from_response(InputRequiredResult::from_input_requests(questions));
        Confirmed::InputRequired(Box::new(result))
    }

    /// Sends a message and waits until it is sent, or for a question, until it is answered.
    fn send(&self, message: Message) -> Option<bool> {
        let (reply, answer) = oneshot::channel();
        self.outgoing.blocking_send(Outgoing { message, reply }).ok()?;
        answer.blocking_recv().ok().flatten()
    }
}

/// A form with one checkbox.
fn form(question: &str) -> Option<ElicitRequestParams> {
    let checkbox = |field: BooleanSchema| field.title("Go ahead").with_default(false);
    let requested_schema = ElicitationSchema::builder().required_bool_with(CONFIRM, checkbox).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message: question.to_owned(), requested_schema })
}

/// `None`: the user closed the form, or never saw it.
fn answer_of(answer: &ElicitResult) -> Option<bool> {
    let is_checked = answer.content.as_ref().and_then(|content| content.get(CONFIRM)?.as_bool());
    match answer.action {
        ElicitationAction::Accept => Some(is_checked == Some(true)),
        ElicitationAction::Decline => Some(false),
        _ => None,
    }
}

impl Outgoing {
    pub(super) async fn send(self, peer: &Peer<RoleServer>, signal: &Signal) {
        let sending = async {
            match self.message {
                Message::Progress(progress) => {
                    // A client that has disconnected needs no progress.
                    let _ = peer.notify_progress(progress).await;
                    None
                }
                Message::Question(question) => {
                    let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
                    match peer.send_request(request).await {
                        Ok(ClientResult::ElicitResult(answer)) => answer_of(&answer),
                        _ => None,
                    }
                }
            }
        };
        let answer = tokio::select! {
            answer = sending => answer,
            () = signal.abandoned() => None,
        };
        // The call blocks on the other end, so this cannot fail.
        let _ = self.reply.send(answer);
    }
}
