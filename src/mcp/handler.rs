//! Implements the server traits of `rmcp`. Calls of the service run on threads of their own.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, ClientNotification,
    ClientRequest, CustomRequest, CustomResult, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, InputResponses,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResultType,
    ServerCapabilities, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use super::call::Call;
use super::fault::Fault;
use super::service::Service;
use super::signal::Calls;
use crate::engine::spawn_blocking;

/// Maximum calls in progress, over all connections.
const MAX_CALLS: usize = 64;

/// Puts its result aside.
type Work = Box<dyn FnOnce(&dyn Service, &Call) + Send>;

/// The server of one connection.
pub(super) struct Handler {
    service: Arc<dyn Service>,
    permits: Arc<Semaphore>,
    calls: Calls,
}

/// The state that all connections share.
pub(super) struct Shared {
    service: Arc<dyn Service>,
    permits: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(service: Arc<dyn Service>) -> Self {
        Self { service, permits: Arc::new(Semaphore::new(MAX_CALLS)) }
    }

    pub(super) fn handler(&self) -> Handler {
        let (service, permits) = (Arc::clone(&self.service), Arc::clone(&self.permits));
        Handler { service, permits, calls: Calls::default() }
    }
}

impl Handler {
    pub(super) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// Runs a call on a thread and sends its messages to the client. It fails if too many calls are in progress.
    async fn run<T: Send + 'static>(
        &self,
        context: RequestContext<RoleServer>,
        answers: Option<InputResponses>,
        work: impl FnOnce(&dyn Service, &Call) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let (sender, result) = oneshot::channel();
        self.perform(context, answers, Box::new(|service, call| drop(sender.send(work(service, call))))).await?;
        result.await.map_err(internal)?.map_err(|Fault(error)| error)
    }

    /// [`Self::run`] for work of any result, compiled once.
    async fn perform(
        &self,
        context: RequestContext<RoleServer>,
        answers: Option<InputResponses>,
        work: Work,
    ) -> Result<(), ErrorData> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| {
            ErrorData::internal_error(format!("{MAX_CALLS} calls are in progress; try again later"), None)
        })?;
        let signal = self.calls.begin(&context.id);
        let (call, mut messages) = Call::new(&context, Arc::clone(&signal), answers.unwrap_or_default());
        let service = Arc::clone(&self.service);
        let running = spawn_blocking(move || {
            let _permit = permit;
            work(&*service, &call)
        });
        // Runs until the call has ended, so that no message follows its result.
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => message.send(&context.peer, &signal).await,
                    None => break,
                },
                () = disconnected(&context), if !signal.is_closing() => signal.close(),
            }
        }
        let result = running.await;
        self.calls.end(&context.id);
        result.map_err(internal)
    }
}

fn no_method(method: &str) -> ErrorData {
    ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None)
}

fn internal(error: impl std::error::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Returns when the client disconnects, if the request has a connection of its own. This does not cancel the request:
/// the network may just have failed.
async fn disconnected(context: &RequestContext<RoleServer>) {
    let has_own_connection = context.extensions.get::<http::request::Parts>().is_some()
        && context.protocol_version().is_some_and(|version| !version.has_initialize());
    if has_own_connection { context.ct.cancelled().await } else { std::future::pending().await }
}

/// Converts the service's JSON to a type of `rmcp`.
fn convert<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(internal)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        let capabilities =
            if self.service.has_tasks() { capabilities.enable_tasks().build() } else { capabilities.build() };
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new("squad", env!("CARGO_PKG_VERSION")).with_title("squad"))
            .with_instructions(self.service.instructions())
    }

    /// Newest first, the order in which `server/discover` and errors list them.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ProtocolVersion::KNOWN_VERSIONS.iter().rev().cloned().collect()
    }

    /// Clients may initialize at any time. The agreed revision applies from then on.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut agreed = self.negotiate_initialize(&request)?;
        // Clients that initialize know an incompatible kind of tasks.
        agreed.capabilities.extensions = None;
        let mut client = request;
        client.protocol_version = agreed.protocol_version.clone();
        context.peer.set_peer_info(client);
        Ok(agreed)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(convert(self.service.tools().into())?))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let version = context.protocol_version().unwrap_or_default();
        let CallToolRequestParams { name, arguments, input_responses, .. } = request;
        let call = move |service: &dyn Service, call: &Call| service.call(&name, arguments.unwrap_or_default(), call);
        Ok(self.run(context, input_responses, call).await?.into_response(&version))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = self.run(context, None, |service, _| Ok(service.resources())).await?;
        Ok(ListResourcesResult::with_all_items(convert(all.into())?))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(convert(self.service.templates().into())?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self.run(context, None, move |service, _| service.read(&request.uri)).await?;
        Ok(ReadResourceResult::new(convert(contents.into())?).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = self.run(context, None, |service, _| Ok(service.prompts())).await?;
        Ok(ListPromptsResult::with_all_items(convert(all.into())?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let prompt = self.run(context, None, move |service, _| service.prompt(&request.name, &arguments)).await?;
        let mut prompt = convert::<GetPromptResult>(prompt)?;
        prompt.result_type = Some(ResultType::COMPLETE);
        Ok(prompt.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.run(context, None, move |service, call| service.task(&request.task_id, call)).await?;
        Ok(task.into_result())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.run(context, None, move |service, call| service.cancel_task(&request.task_id, call)).await
    }

    /// Called for what `rmcp` cannot parse: an unknown method or invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const KNOWN: [&str; 5] = ["initialize", "tools/call", "resources/read", "prompts/get", "tasks/get"];
        let CustomRequest { method, .. } = request;
        Err(if KNOWN.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("invalid parameters of `{method}`"), None)
        } else {
            no_method(&method)
        })
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, _context: NotificationContext<RoleServer>) {
        if let Some(id) = notification.request_id {
            self.calls.cancel(&id, notification.reason);
        }
    }
}

/// Rejects requests of a client that has neither initialized nor identified itself in the request's `_meta`.
pub(super) struct IdentityGuard(pub(super) Handler);

impl rmcp::Service<RoleServer> for IdentityGuard {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let is_handshake = matches!(request, ClientRequest::InitializeRequest(_) | ClientRequest::PingRequest(_));
        let is_invalid_initialize =
            matches!(&request, ClientRequest::CustomRequest(custom) if custom.method == "initialize");
        // The stateless revision has no such method.
        let is_stateless = context.meta.protocol_version().is_some_and(|version| !version.has_initialize());
        if is_stateless && (is_invalid_initialize || matches!(request, ClientRequest::InitializeRequest(_))) {
            return Err(no_method("initialize"));
        }
        if context.protocol_version().is_none() && !is_handshake && !is_invalid_initialize {
            let names = context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).join("` and `");
            let message = format!("send `initialize` first, or `{names}` in `_meta`");
            return Err(ErrorData::invalid_params(message, None));
        }
        self.0.handle_request(request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.0)
    }
}
