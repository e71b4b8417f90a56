//! Names of hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host's name in the one form that rules compare: lower case, without a dot at its end, addresses written out. `None`:
/// it is no name, or programs read it differently.
pub(crate) fn host_name(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address = IpAddr::V6(inner.parse::<Ipv6Addr>().ok()?).to_canonical();
        return Some(if address.is_ipv6() { format!("[{address}]") } else { address.to_string() });
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    // `127.1` and `0x7f000001` are addresses too.
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    (name.split('.').all(is_part) && (!is_number || name.parse::<Ipv4Addr>().is_ok())).then_some(name)
}
