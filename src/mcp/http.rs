//! Streamable HTTP: the protocol for clients that do not start the server themselves.

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
use super::line::LONGEST;
use super::service::Service;

/// Names the token that clients show, where the user has one.
pub(crate) const TOKEN: &str = "SQUAD_MCP_TOKEN";
const PATH: &str = "/mcp";
/// Connections at the same time; more wait to be accepted.
const CONNECTIONS: usize = 256;
/// A connection that says nothing is closed.
const SILENCE: Duration = Duration::from_secs(30);

/// Where clients find the server, and what they show.
pub(crate) struct Endpoint {
    listener: TcpListener,
    hosts: Vec<String>,
    token: String,
}

impl Endpoint {
    /// `hosts`: the names by which clients on other machines call it.
    pub(crate) fn open(address: SocketAddr, hosts: &[String], token: Option<&str>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let token = token.map_or_else(new_token, |token| Ok(token.to_owned()))?;
        let mut all = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        // Nobody calls a server by the address that stands for all of them.
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

/// 256 bits that nobody guesses.
fn new_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

/// Serves until the process ends.
pub(crate) fn serve_http<S: Service>(service: S, runtime: &Runtime, endpoint: Endpoint) -> io::Result<()> {
    let Endpoint { listener, hosts, token } = endpoint;
    // A page in a browser on this machine may be anybody's: it needs the token too.
    let pages = hosts.iter().flat_map(|host| {
        let host = if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) { format!("[{host}]") } else { host.clone() };
        ["http", "https"].map(|scheme| format!("{scheme}://{host}:*"))
    });
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(pages.collect::<Vec<_>>())
        .with_allowed_hosts(hosts)
        .with_max_request_body_bytes(LONGEST);
    let shared = Shared::new(service);
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server =
            StreamableHttpService::new(move || Ok(shared.handler()), Arc::<LocalSessionManager>::default(), config);
        let token: Arc<str> = token.into();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                // One that is gone already, or no file descriptor left: others end.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (server, token) = (server.clone(), Arc::clone(&token));
            tokio::spawn(async move {
                let _place = place;
                let service = service_fn(|request| answer(&server, &token, request));
                // A client that breaks off is its own affair.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(SILENCE)
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
        return Ok(refusal(StatusCode::NOT_FOUND, "there is only /mcp here\n"));
    }
    if !shows(request.headers(), token) {
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

/// Whether these carry the token. Hashes are compared in constant time, whatever they are of.
fn shows(headers: &HeaderMap, token: &str) -> bool {
    let given =
        headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| value.split_once(' '));
    given.is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case("bearer") && blake3::hash(given.trim().as_bytes()) == blake3::hash(token.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_opens() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a header"));
            shows(&headers, "abc")
        };
        assert!(with("Bearer abc") && with("bearer abc"));
        for wrong in ["abc", "Bearer", "Bearer ", "Bearer ab", "Bearer abcd", "Basic abc", "Bearer abc abc"] {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!shows(&HeaderMap::new(), "abc"));
        assert_ne!(new_token().expect("random"), new_token().expect("random"));
    }
}
