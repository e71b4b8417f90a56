//! Serves over streamable HTTP, for clients that do not start the server themselves.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::connections::{self, Limits};
use super::server::{PATH, Server};
use super::service::Service;
use crate::engine::spawn;

/// The environment variable with the user's own token.
pub(crate) const TOKEN_VARIABLE: &str = "SQUAD_MCP_TOKEN";
const MAX_CONNECTIONS: usize = 256;
const HEADER_LIMIT: Duration = Duration::from_secs(10);

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
pub(crate) fn serve_http(service: Arc<dyn Service>, runtime: &Runtime, endpoint: Endpoint) -> io::Result<()> {
    let Endpoint { listener, hosts, token } = endpoint;
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server = Arc::new(Server::new(service, hosts, token));
        let sessions = Arc::clone(&server);
        spawn(async move { sessions.end_idle_sessions().await });
        let limits = Limits { connections: MAX_CONNECTIONS, headers: HEADER_LIMIT };
        match connections::accept(listener, server, limits).await {}
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
