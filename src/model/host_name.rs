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

/// What programs may read where a host is written as a number, or as fewer than four, in whatever base: most read `0177.1`
/// as 127.0.0.1, and some take zeros before a number for decimal ones.
pub(crate) fn numeric_hosts(text: &str) -> Vec<String> {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let parts: Vec<&str> = text.split('.').collect();
    let read = |number: fn(&str) -> Option<u32>| -> Option<Ipv4Addr> {
        let numbers = parts.iter().map(|part| number(part)).collect::<Option<Vec<_>>>()?;
        let (last, first) = numbers.split_last().filter(|(_, first)| first.len() < 4)?;
        // The last one stands for all bytes that are left.
        let mut address = *last;
        let left = 32 - 8 * u32::try_from(first.len()).ok()?;
        if left < 32 && address >> left != 0 {
            return None;
        }
        for (at, byte) in first.iter().enumerate() {
            address |= u32::from(u8::try_from(*byte).ok()?) << (24 - 8 * at);
        }
        Some(Ipv4Addr::from(address))
    };
    let mut found: Vec<String> =
        [read(in_c), read(|part| in_base(part, 10))].into_iter().flatten().map(|address| address.to_string()).collect();
    found.dedup();
    found
}

/// A number as C writes it.
fn in_c(part: &str) -> Option<u32> {
    match part.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) => in_base(digits, 16),
        None if part.len() > 1 && part.starts_with('0') => in_base(part, 8),
        None => in_base(part, 10),
    }
}

fn in_base(digits: &str, base: u32) -> Option<u32> {
    let is_number = digits.chars().all(|digit| digit.is_digit(base));
    if is_number { u32::from_str_radix(digits, base).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_each_way() {
        for (text, addresses) in [
            ("127.1", &["127.0.0.1"][..]),
            ("10.1", &["10.0.0.1"]),
            ("2130706433", &["127.0.0.1"]),
            ("0x7f000001", &["127.0.0.1"]),
            ("0X7F.1", &["127.0.0.1"]),
            ("0x7f.0.0x1.", &["127.0.0.1"]),
            ("0177.0.0.1", &["127.0.0.1", "177.0.0.1"]),
            ("127.0.0.08", &["127.0.0.8"]),
            ("1.2.3.4", &["1.2.3.4"]),
            ("1.2.65535", &["1.2.255.255"]),
            ("4294967295", &["255.255.255.255"]),
            ("0", &["0.0.0.0"]),
            ("4294967296", &[]),
            ("1.2.3.256", &[]),
            ("1.2.3.4.5", &[]),
            ("256.1", &[]),
            ("1..1", &[]),
            ("+1.1", &[]),
            ("", &[]),
            ("a.1", &[]),
        ] {
            assert_eq!(numeric_hosts(text), addresses, "{text}");
        }
    }
}
