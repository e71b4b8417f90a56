//! Serves over streamable HTTP, for clients that do not start the server themselves.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::server::{PATH, Server};
use super::service::Service;

/// The environment variable with the user's own token.
pub(crate) const TOKEN_VARIABLE: &str = "SQUAD_MCP_TOKEN";
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
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server = Arc::new(Server::new(service, hosts, token));
        let sessions = Arc::clone(&server);
        tokio::spawn(async move { sessions.end_idle_sessions().await });
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
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let _permit = permit;
                let service = service_fn(|request| async { Ok::<_, Infallible>(server.answer(request).await) });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_new() {
        assert_ne!(new_token().expect("random"), new_token().expect("random"));
    }
}
