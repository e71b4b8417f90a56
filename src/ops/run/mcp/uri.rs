//! `squad://…`: what resources are called.

use std::fmt::Write;

/// Everything but letters, digits and `-._~` as `%XX`, so that no id reaches beyond its part.
pub(super) fn encoded(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            // A `String` takes everything.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

/// The parts of such an address, decoded.
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
