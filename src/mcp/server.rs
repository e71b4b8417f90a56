//! Answers HTTP requests: checks the token, and passes them to `rmcp`.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::timeout;

use super::handler::{Handler, Shared};
use super::line::MAX_MESSAGE;
use super::messages;
use super::service::Service;
use super::sessions::Sessions;

pub(super) const PATH: &str = "/mcp";
const SESSION: &str = "mcp-session-id";
/// How long a client may take to send a body.
const BODY_LIMIT: Duration = Duration::from_secs(10);
/// How long a session lives after its last request has ended. Clients then begin a new one.
const SESSION_LIMIT: Duration = Duration::from_secs(3600);
const SESSION_CHECK: Duration = Duration::from_secs(60);

pub(super) type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

pub(super) struct Server {
    rmcp: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Sessions,
    token: String,
}

impl Server {
    /// `hosts`: the server's names.
    pub(super) fn new(service: Arc<dyn Service>, hosts: Vec<String>, token: String) -> Self {
        // Web pages of these hosts may connect. They need the token too, because any program can serve pages on
        // localhost.
        let origins = hosts.iter().flat_map(|host| {
            let is_ipv6 = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6());
            let host = if is_ipv6 { format!("[{host}]") } else { host.clone() };
            ["http", "https"].map(|scheme| format!("{scheme}://{host}:*"))
        });
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(origins.collect::<Vec<_>>())
            .with_allowed_hosts(hosts)
            .with_max_request_body_bytes(MAX_MESSAGE);
        let shared = Shared::new(service);
        let sessions = Sessions::new();
        let rmcp = StreamableHttpService::new(move || Ok(shared.handler()), sessions.manager.clone(), config);
        Self { rmcp, sessions, token }
    }

    /// Ends idle sessions; runs until it is dropped.
    pub(super) async fn end_idle_sessions(&self) -> Infallible {
        loop {
            tokio::time::sleep(SESSION_CHECK).await;
            self.sessions.end_idle(SESSION_LIMIT).await;
        }
    }

    /// Reads a request. A client without the token gets a response before its body is read.
    pub(super) async fn receive<B>(&self, request: Request<B>) -> Result<Request<Bytes>, Response<Body>>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
    {
        if request.uri().path() != PATH {
            return Err(refusal(StatusCode::NOT_FOUND, "the endpoint is /mcp\n"));
        }
        if !has_token(request.headers(), &self.token) {
            let mut refused = refusal(StatusCode::UNAUTHORIZED, "`Authorization: Bearer TOKEN` is missing or wrong\n");
            refused.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
            return Err(refused);
        }
        let (head, body) = request.into_parts();
        if head.method != Method::POST {
            return Ok(Request::from_parts(head, Bytes::new()));
        }
        match timeout(BODY_LIMIT, read(body)).await {
            Ok(body) => Ok(Request::from_parts(head, body?)),
            Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT, "the request's body did not arrive in time\n")),
        }
    }

    pub(super) async fn answer(&self, mut request: Request<Bytes>) -> Response<Body> {
        let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if let Some(session) = session {
            self.sessions.begin(&session, request.extensions_mut());
        }
        let body = request.body().clone();
        let response = self.rmcp.handle(request.map(Full::new)).await;
        let is_invalid = response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE;
        is_invalid.then(|| invalid(&body)).flatten().unwrap_or(response)
    }
}

async fn read<B>(body: B) -> Result<Bytes, Response<Body>>
where
    B: hyper::body::Body<Data = Bytes> + Send,
{
    let mut all = Vec::new();
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| refusal(StatusCode::BAD_REQUEST, "the request's body cannot be read\n"))?;
        let data = frame.into_data().unwrap_or_default();
        if all.len() + data.len() > MAX_MESSAGE {
            return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, "the message is longer than 16 MiB\n"));
        }
        all.extend_from_slice(&data);
    }
    Ok(all.into())
}

/// What is wrong with a body that `rmcp` cannot parse. `None`: nothing is.
fn invalid(body: &[u8]) -> Option<Response<Body>> {
    let error = messages::parse(body).err()?;
    let mut response = Response::new(Body::new(Full::from(error.to_string())));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Some(response)
}

fn refusal(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::from(text)));
    *response.status_mut() = status;
    response
}

/// Compares hashes, so that the comparison takes constant time.
fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    authorization.and_then(|value| value.split_once(' ')).is_some_and(|(scheme, sent)| {
        scheme.eq_ignore_ascii_case("bearer") && blake3::hash(sent.trim().as_bytes()) == blake3::hash(token.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use serde_json::{Value, json};

    use super::*;
    use crate::mcp::stub::Stub;

    /// A body whose end never comes.
    struct Unfinished;

    impl hyper::body::Body for Unfinished {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    fn server() -> (Arc<Server>, std::sync::mpsc::Sender<()>) {
        let (stub, finish) = Stub::new();
        (Arc::new(Server::new(Arc::new(stub), vec!["localhost".to_owned()], "secret".to_owned())), finish)
    }

    async fn post(server: &Server, session: &str, message: Value) -> Response<Body> {
        send(server, session, Full::<Bytes>::from(message.to_string())).await
    }

    async fn send<B>(server: &Server, session: &str, body: B) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
    {
        let mut request = Request::post(PATH)
            .header("Host", "localhost")
            .header("Authorization", "Bearer secret")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream");
        if !session.is_empty() {
            request = request.header(SESSION, session).header("Mcp-Protocol-Version", "2025-06-18");
        }
        match server.receive(request.body(body).expect("a request")).await {
            Ok(request) => server.answer(request).await,
            Err(refused) => refused,
        }
    }

    async fn text(response: Response<Body>) -> String {
        let bytes = response.into_body().collect().await.expect("it cannot fail").to_bytes();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn new_session(server: &Server) -> String {
        let client =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client});
        let greeted = post(server, "", initialize).await;
        let session = greeted.headers().get(SESSION).expect("a session").to_str().expect("ASCII").to_owned();
        text(greeted).await;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(post(server, &session, ready).await.status(), 202);
        session
    }

    #[test]
    fn only_the_token_is_accepted() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a header"));
            has_token(&headers, "abc")
        };
        assert!(with("Bearer abc") && with("bearer abc"));
        for wrong in ["abc", "Bearer", "Bearer ", "Bearer ab", "Bearer abcd", "Basic abc", "Bearer abc abc"] {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!has_token(&HeaderMap::new(), "abc"));
    }

    #[tokio::test]
    async fn a_body_that_is_no_message_gets_a_json_rpc_error() {
        let (server, _finish) = server();
        let session = new_session(&server).await;
        let ping = |id: u8| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let batch = json!([ping(1), ping(2)]).to_string();
        for (body, code) in [("{bad", -32700), ("", -32700), ("7", -32600), (&batch, -32600)] {
            let answer = send(&server, &session, Full::<Bytes>::from(body.to_owned())).await;
            assert_eq!(
                (answer.status().as_u16(), &answer.headers()[CONTENT_TYPE]),
                (400, &"application/json".parse().expect("a header"))
            );
            let error: Value = serde_json::from_str(&text(answer).await).expect("JSON");
            assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(code)), "{body}: {error}");
        }
        let long = send(&server, &session, Full::<Bytes>::from(vec![b'x'; MAX_MESSAGE + 1])).await;
        assert_eq!(long.status(), 413);
        assert_eq!(post(&server, &session, ping(3)).await.status(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_idle_but_not_during_a_call() {
        let (server, finish) = server();
        let session = new_session(&server).await;
        let idle = new_session(&server).await;
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait"}});
        let answer = post(&server, &session, call).await;
        assert_eq!(answer.status(), 200);
        let list = |id: u8| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        for _ in 0..2 {
            server.sessions.end_idle(SESSION_LIMIT).await;
            tokio::time::advance(SESSION_LIMIT * 2).await;
        }
        server.sessions.end_idle(SESSION_LIMIT).await;
        finish.send(()).expect("the call waits");
        let answer = text(answer).await;
        assert!(answer.contains("finished"), "{answer}");
        let listed = text(post(&server, &session, list(3)).await).await;
        assert!(listed.contains("\"wait\""), "{listed}");
        assert_eq!(post(&server, &idle, list(2)).await.status(), 404);
        // The session's time begins again when its call has ended.
        tokio::time::advance(SESSION_LIMIT * 2).await;
        server.sessions.end_idle(SESSION_LIMIT).await;
        assert_eq!(post(&server, &session, list(4)).await.status(), 404);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_limited_time_to_arrive() {
        let (server, _finish) = server();
        assert_eq!(send(&server, "", Unfinished).await.status(), 408);
    }
}
