//! `squad mcp --http`: the server's address, token and hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::super::{Context, Ended};
use crate::error::Failure;
use crate::mcp::{self, Endpoint, TOKEN_VARIABLE};
use crate::ops;

pub(super) fn serve(
    context: &mut Context<'_>,
    server: Arc<dyn mcp::Service>,
    address: &str,
    hosts: &[String],
) -> Ended {
    let address = parse(address, hosts)?;
    let own = context.env.variable(TOKEN_VARIABLE).filter(|token| !token.is_empty());
    if own.is_some_and(|token| token.len() < SHORTEST || token.contains(|c: char| !c.is_ascii_graphic())) {
        return Err(Failure::usage(format!(
            "{TOKEN_VARIABLE} must be {SHORTEST} or more ASCII characters without spaces"
        )));
    }
    let failed = |error| Failure::failed(format!("cannot serve on {address}: {error}"));
    let endpoint = Endpoint::open(address, hosts, own).map_err(failed)?;
    let runtime = ops::runtime(context.env)?;
    context.ui.notice(&format!("serving {}", endpoint.url().map_err(failed)?));
    if own.is_none() {
        context.ui.notice(&format!("clients send the header `Authorization: Bearer {}`", endpoint.token()));
    }
    if !address.ip().is_loopback() {
        context.ui.warning("the connection is not encrypted, and neither is the token: put a TLS proxy in front");
    }
    mcp::serve_http(server, &runtime, endpoint).map_err(failed)?;
    Ok(0)
}

/// Minimum length of the user's own token.
const SHORTEST: usize = 16;

/// Parses `PORT` or `IP:PORT`. An address that other machines can reach needs an allowed host.
fn parse(address: &str, hosts: &[String]) -> Result<SocketAddr, Failure> {
    let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = address.strip_prefix("localhost:").unwrap_or(address).parse().map(local);
    let address: SocketAddr = port.or_else(|_| address.parse()).map_err(|_| {
        Failure::usage(format!("`{address}` is not an address")).hint("write a port, such as 8080, or IP:PORT")
    })?;
    if !address.ip().is_loopback() && hosts.is_empty() {
        return Err(Failure::usage(format!("other machines can reach {address}"))
            .hint("use a port alone, or pass this machine's name with `--allow-host`"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_name_to_call() {
        let parsed = |address: &str, hosts: &[String]| parse(address, hosts).ok().map(|address| address.to_string());
        for (address, expected) in [
            ("8080", Some("127.0.0.1:8080")),
            ("localhost:0", Some("127.0.0.1:0")),
            ("127.0.0.9:80", Some("127.0.0.9:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("0.0.0.0:80", None),
            ("192.168.1.7:80", None),
            ("[::]:80", None),
            ("example.com:80", None),
            ("70000", None),
            ("", None),
        ] {
            assert_eq!(parsed(address, &[]).as_deref(), expected, "{address}");
        }
        assert_eq!(parsed("0.0.0.0:80", &["build.lan".to_owned()]).as_deref(), Some("0.0.0.0:80"));
    }
}
