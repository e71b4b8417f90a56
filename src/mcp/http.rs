//! Serves over streamable HTTP, for clients that do not start the server themselves.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::handler::{Handler, Shared};
use super::line::MAX_MESSAGE;
use super::service::Service;

/// The environment variable with the user's own token.
pub(crate) const TOKEN_VARIABLE: &str = "SQUAD_MCP_TOKEN";
const PATH: &str = "/mcp";
/// Maximum open connections; more wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// How long a client may take to send the headers of its next request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// A listening socket, the host names that requests may use, and the token that they must carry.
pub(crate) struct Endpoint {
    listener: TcpListener,
    hosts: Vec<String>,
    token: String,
}

impl Endpoint {
    /// Uses a new token if there is none. `hosts`: the server's names for clients on other machines.
    pub(crate) fn open(address: SocketAddr, hosts: &[String], token: Option<&str>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let token = token.map_or_else(new_token, |token| Ok(token.to_owned()))?;
        let mut all = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        // 0.0.0.0 and :: are no addresses that a client can use.
        all.extend(Some(address.ip()).filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string()));
        all.extend_from_slice(hosts);
        Ok(Self { listener, hosts: all, token })
    }

    pub(crate) fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}{PATH}", self.listener.local_addr()?))
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }
}

/// 256 random bits in hexadecimal.
fn new_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

/// Serves until the process ends.
pub(crate) fn serve_http<S: Service>(service: S, runtime: &Runtime, endpoint: Endpoint) -> io::Result<()> {
    let Endpoint { listener, hosts, token } = endpoint;
    // Web pages of these hosts may connect. They need the token too, because any program can serve pages on localhost.
    let origins = hosts.iter().flat_map(|host| {
        let host = if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) { format!("[{host}]") } else { host.clone() };
        ["http", "https"].map(|scheme| format!("{scheme}://{host}:*"))
    });
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins.collect::<Vec<_>>())
        .with_allowed_hosts(hosts)
        .with_max_request_body_bytes(MAX_MESSAGE);
    let shared = Shared::new(service);
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server =
            StreamableHttpService::new(move || Ok(shared.handler()), Arc::<LocalSessionManager>::default(), config);
        let token: Arc<str> = token.into();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return Ok(()) };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                // The client is gone already, or there is no free file descriptor until a connection ends.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (server, token) = (server.clone(), Arc::clone(&token));
            tokio::spawn(async move {
                let _permit = permit;
                let service = service_fn(|request| answer(&server, &token, request));
                // It fails when a client disconnects early or does not speak HTTP; neither concerns the server.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

type Server<S> = StreamableHttpService<Handler<S>, LocalSessionManager>;
type Body = http_body_util::combinators::BoxBody<hyper::body::Bytes, Infallible>;

async fn answer<S: Service>(
    server: &Server<S>,
    token: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if request.uri().path() != PATH {
        return Ok(refusal(StatusCode::NOT_FOUND, "the endpoint is /mcp\n"));
    }
    if !has_token(request.headers(), token) {
        let mut refused = refusal(StatusCode::UNAUTHORIZED, "`Authorization: Bearer TOKEN` is missing or wrong\n");
        refused.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
        return Ok(refused);
    }
    Ok(server.handle(request).await)
}

fn refusal(status: StatusCode, text: &'static str) -> Response<Body> {
    let body = http_body_util::combinators::BoxBody::new(http_body_util::Full::from(text));
    let mut response = Response::new(body);
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
    use super::*;

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
        assert_ne!(new_token().expect("random"), new_token().expect("random"));
    }
}
