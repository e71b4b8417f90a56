//! What `rmcp` calls: requests become calls of the service, in threads of their own.

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
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::call::Call;
use super::fault::Fault;
use super::service::Service;
use super::signal::Calls;

/// So many calls may be worked on at the same time.
const PLACES: usize = 64;

/// One connection's server.
pub(super) struct Handler<S> {
    service: Arc<S>,
    places: Arc<Semaphore>,
    calls: Calls,
}

/// What all connections share.
pub(super) struct Shared<S> {
    service: Arc<S>,
    places: Arc<Semaphore>,
}

impl<S: Service> Shared<S> {
    pub(super) fn new(service: S) -> Self {
        Self { service: Arc::new(service), places: Arc::new(Semaphore::new(PLACES)) }
    }

    pub(super) fn handler(&self) -> Handler<S> {
        let (service, places) = (Arc::clone(&self.service), Arc::clone(&self.places));
        Handler { service, places, calls: Calls::default() }
    }
}

impl<S: Service> Handler<S> {
    pub(super) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    async fn work<T: Send + 'static>(
        &self,
        context: RequestContext<RoleServer>,
        answers: Option<InputResponses>,
        work: impl FnOnce(&S, &Call) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            ErrorData::internal_error(format!("{PLACES} calls are being worked on; try again later"), None)
        })?;
        let signal = self.calls.begin(&context.id);
        let (call, mut messages) = Call::new(&context, Arc::clone(&signal), answers.unwrap_or_default());
        let service = Arc::clone(&self.service);
        let working = spawn_blocking(move || {
            let _place = place;
            work(&service, &call)
        });
        // Until the call is over: nothing is sent after its result.
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => message.send(&context.peer, &signal).await,
                    None => break,
                },
                () = hung_up(&context), if !signal.is_closing() => signal.close(),
            }
        }
        let done = working.await;
        self.calls.end(&context.id);
        done.map_err(|error| ErrorData::internal_error(error.to_string(), None))?.map_err(|Fault(error)| error)
    }
}

/// A request of its own connection is over with it. That is no cancellation: a network that fails does not mean it.
async fn hung_up(context: &RequestContext<RoleServer>) {
    let is_alone = context.extensions.get::<http::request::Parts>().is_some()
        && context.protocol_version().is_some_and(|version| !version.has_initialize());
    if is_alone { context.ct.cancelled().await } else { std::future::pending().await }
}

/// What the service wrote as JSON, as `rmcp` has it.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl<S: Service> ServerHandler for Handler<S> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        let capabilities =
            if self.service.has_tasks() { capabilities.enable_tasks().build() } else { capabilities.build() };
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new("squad", env!("CARGO_PKG_VERSION")).with_title("squad"))
            .with_instructions(self.service.instructions())
    }

    /// The newest first, as `server/discover` and refusals list them.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ProtocolVersion::KNOWN_VERSIONS.iter().rev().cloned().collect()
    }

    /// A client may greet at any time; what it is told then holds for what follows.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut agreed = self.negotiate_initialize(&request)?;
        // Those who greet know tasks of another kind.
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
        Ok(ListToolsResult::with_all_items(read(self.service.tools().into())?))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let version = context.protocol_version().unwrap_or_default();
        let CallToolRequestParams { name, arguments, input_responses, .. } = request;
        let call = move |service: &S, call: &Call| service.call(&name, arguments.unwrap_or_default(), call);
        Ok(self.work(context, input_responses, call).await?.into_response(&version))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = self.work(context, None, |service, _| Ok(service.resources())).await?;
        Ok(ListResourcesResult::with_all_items(read(all.into())?))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(read(self.service.templates().into())?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self.work(context, None, move |service, _| service.read(&request.uri)).await?;
        Ok(ReadResourceResult::new(read(contents.into())?).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = self.work(context, None, |service, _| Ok(service.prompts())).await?;
        Ok(ListPromptsResult::with_all_items(read(all.into())?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let prompt = self.work(context, None, move |service, _| service.prompt(&request.name, &arguments)).await?;
        let mut prompt = read::<GetPromptResult>(prompt)?;
        prompt.result_type = Some(ResultType::COMPLETE);
        Ok(prompt.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.work(context, None, move |service, _| service.task(&request.task_id)).await?;
        Ok(task.into_result())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.work(context, None, move |service, _| service.cancel_task(&request.task_id)).await
    }

    /// What is left: a method that nobody knows, or one whose parameters are not what they should be.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const KNOWN: [&str; 5] = ["initialize", "tools/call", "resources/read", "prompts/get", "tasks/get"];
        let CustomRequest { method, .. } = request;
        Err(if KNOWN.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("these are not the parameters of `{method}`"), None)
        } else {
            ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None)
        })
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, _context: NotificationContext<RoleServer>) {
        if let Some(id) = notification.request_id {
            self.calls.cancel(&id, notification.reason);
        }
    }
}

/// A server that may be greeted at any time, and before that answers only those who say with each request who they are.
pub(super) struct Gate<S>(pub(super) Handler<S>);

impl<S: Service> rmcp::Service<RoleServer> for Gate<S> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let is_greeting = matches!(request, ClientRequest::InitializeRequest(_) | ClientRequest::PingRequest(_));
        let is_malformed = matches!(&request, ClientRequest::CustomRequest(custom) if custom.method == "initialize");
        if context.protocol_version().is_none() && !is_greeting && !is_malformed {
            let names = context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).join("` and `");
            let message = format!("`initialize` comes first, or `_meta` has `{names}`");
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
