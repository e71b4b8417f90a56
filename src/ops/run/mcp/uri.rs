//! `squad://…`, the URIs of resources.

use std::fmt::Write;

use crate::model::RunId;
use crate::ops::run::members::MemberResult;

pub(super) fn run(run: &RunId) -> String {
    format!("squad://runs/{run}")
}

/// A member's output of one kind: `text`, `stdout`, `stderr` or `prompt`.
pub(super) fn output(run: &RunId, member: &MemberResult, kind: &str) -> String {
    format!("{}/{}/{kind}", self::run(run), encoded(member.given.id.as_str()))
}

/// Percent-encodes everything but letters, digits and `-._~`, so that an id stays within its segment.
pub(super) fn encoded(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

/// The decoded segments of a URI.
pub(super) fn parts(uri: &str) -> Option<Vec<String>> {
    let path = uri.strip_prefix("squad://")?;
    path.split('/').map(decoded).collect()
}

fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_their_addresses() {
        for id in ["a", "ünter/../x %", "%2F", "a?b#c"] {
            let uri = format!("squad://roles/{}", encoded(id));
            assert_eq!(parts(&uri), Some(vec!["roles".to_owned(), id.to_owned()]), "{uri}");
        }
        for wrong in ["file:///etc/passwd", "squad://a%", "squad://a%4", "squad://%zz", "squad://%FF"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
