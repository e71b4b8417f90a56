//! Checks the user's own model endpoint before a session waits for it. The CLI retries a dead endpoint for half a
//! minute, and then only reports "streaming error".

use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::options::{Options, Provider};
use crate::engine::EngineError;

/// Timeout for the host look-up, and again for the connection.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The variables that configure a proxy.
const PROXY_VARIABLES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The address of an endpoint.
#[derive(Debug, PartialEq)]
pub(super) struct Address {
    host: String,
    port: u16,
}

/// The address in a URL.
pub(super) fn address(provider: &Provider) -> Result<Address, EngineError> {
    parse(&provider.base_url).ok_or_else(|| EngineError::Unusable {
        reason: format!("the model endpoint `{}` is not a URL", provider.base_url),
        hint: Some(
            "write it like `http://127.0.0.1:8080/v1`, in `engine.copilot.provider.base_url` or \
             COPILOT_PROVIDER_BASE_URL"
                .to_owned(),
        ),
    })
}

fn parse(url: &str) -> Option<Address> {
    let (scheme, rest) = url.split_once("://")?;
    let standard = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host_port = authority.rsplit('@').next()?;
    let (host, port) = match host_port.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => host_port.find(':').map_or((host_port, ""), |at| host_port.split_at(at)),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
        None if port.is_empty() => standard,
        None => return None,
    };
    (!host.is_empty()).then(|| Address { host: host.to_owned(), port })
}

/// Whether the CLI may reach addresses that squad cannot, by a proxy.
pub(super) fn is_proxied(options: &Options) -> bool {
    PROXY_VARIABLES.iter().any(|name| options.variable(name).is_some())
}

/// Fails if the host is unknown or refuses the connection. A slow host passes, since it may still answer the CLI in
/// time, and behind a proxy nothing can be checked.
pub(super) async fn check_reachable(
    options: &Options,
    provider: &Provider,
    address: Address,
) -> Result<(), EngineError> {
    let Address { host, port } = address;
    if is_proxied(options) {
        return Ok(());
    }
    let unusable = |what: String| EngineError::Unusable {
        reason: format!("the model endpoint {} {what}", provider.base_url),
        hint: Some("check that its server runs and that its address is right".to_owned()),
    };
    let found = match timeout(TIMEOUT, lookup_host((host.as_str(), port))).await {
        Ok(Ok(found)) => found.collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(unusable(format!("cannot be found: the host `{host}` is unknown ({error})"))),
        Err(_) => return Err(unusable(format!("cannot be found: the host `{host}` is unknown"))),
    };
    let all = async {
        let mut refused = None;
        for socket in found {
            match TcpStream::connect(socket).await {
                Ok(_) => return Ok(()),
                Err(error) => refused = Some(format!("cannot be reached: {socket}: {error}")),
            }
        }
        Err(unusable(refused.unwrap_or_else(|| format!("cannot be found: the host `{host}` has no address"))))
    };
    timeout(TIMEOUT, all).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_scheme_and_a_host() {
        for (url, host, port) in [
            ("http://127.0.0.1:8080/v1", "127.0.0.1", 8080),
            ("https://models.example", "models.example", 443),
            ("HTTP://localhost", "localhost", 80),
            ("http://user:word@host:1?x=/", "host", 1),
            ("https://[::1]:9/v1", "::1", 9),
            ("https://[::1]", "::1", 443),
        ] {
            assert_eq!(parse(url), Some(Address { host: host.to_owned(), port }), "{url}");
        }
        for url in [
            "",
            "localhost:8080",
            "127.0.0.1:8080/v1",
            "ftp://host",
            "http://",
            "http:///v1",
            "http://:80",
            "http://host:port",
            "http://host:0",
            "http://host:99999",
            "http://a b",
            "http://[::1",
            "http://[::1]x",
            "not a url",
        ] {
            assert_eq!(parse(url), None, "{url}");
        }
    }
}
