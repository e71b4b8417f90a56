//! Decodes keys from a terminal's bytes.

use super::Key;

/// The first key and its length in bytes; an unknown key is `None`. Returns `None` if more bytes are needed, unless
/// `is_all`.
pub(super) fn decode(bytes: &[u8], is_all: bool) -> Option<(Option<Key>, usize)> {
    let first = *bytes.first()?;
    let key = match first {
        0x1b => return escaped(bytes, is_all),
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x08 | 0x7f => Key::Backspace,
        0..0x20 => Key::Control(char::from(first | 0x40).to_ascii_lowercase()),
        _ => return character(bytes, is_all),
    };
    Some((Some(key), 1))
}

fn character(bytes: &[u8], is_all: bool) -> Option<(Option<Key>, usize)> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?,
        Err(error) => match error.error_len() {
            None if !is_all => return None,
            wrong => return Some((None, wrong.unwrap_or(bytes.len()))),
        },
    };
    let first = text.chars().next()?;
    Some((Some(Key::Char(first)), first.len_utf8()))
}

/// The escape key, or a key sent as an escape sequence.
fn escaped(bytes: &[u8], is_all: bool) -> Option<(Option<Key>, usize)> {
    let begin = match bytes.get(1) {
        Some(b'[' | b'O') => 2,
        None if !is_all => return None,
        _ => return Some((Some(Key::Escape), 1)),
    };
    let rest = bytes.get(begin..)?;
    let Some(end) = rest.iter().position(|byte| (0x40..0x7f).contains(byte)) else {
        return is_all.then_some((None, bytes.len()));
    };
    let (parameters, last) = (rest.get(..end)?, *rest.get(end)?);
    let key = match (last, parameters) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C', _) => Some(Key::Right),
        (b'D', _) => Some(Key::Left),
        (b'H', _) | (b'~', b"1" | b"7") => Some(Key::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(Key::End),
        (b'~', b"3") => Some(Key::Delete),
        _ => None,
    };
    Some((key, begin + end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mut bytes: &[u8]) -> Vec<Option<Key>> {
        let mut keys = Vec::new();
        while let Some((key, length)) = decode(bytes, true) {
            keys.push(key);
            bytes = &bytes[length..];
        }
        keys
    }

    #[test]
    fn bytes_of_terminals_are_decoded_as_keys() {
        let known = [Key::Char('a'), Key::Char('ü'), Key::Char('日'), Key::Enter, Key::Enter, Key::Tab, Key::Backspace];
        assert_eq!(keys("aü日\r\n\t\x7f".as_bytes()), known.map(Some));
        assert_eq!(keys(b"\x03\x04\x00"), ['c', 'd', '@'].map(|letter| Some(Key::Control(letter))));
        let arrows = [Key::Up, Key::Down, Key::Right, Key::Left];
        assert_eq!(keys(b"\x1b[A\x1b[B\x1b[C\x1b[D"), arrows.map(Some));
        assert_eq!(keys(b"\x1bOA\x1bOB\x1b[1;5C\x1bOD"), arrows.map(Some), "as applications are sent them");
        let others = [Key::Home, Key::Home, Key::End, Key::End, Key::Delete];
        assert_eq!(keys(b"\x1b[H\x1b[1~\x1b[F\x1b[4~\x1b[3~"), others.map(Some));
        assert_eq!(keys(b"\x1b\x1bq"), [Some(Key::Escape), Some(Key::Escape), Some(Key::Char('q'))]);
    }

    #[test]
    fn incomplete_keys_are_waited_for_and_unknown_keys_skipped() {
        for half in [&b""[..], b"\x1b", b"\x1b[", b"\x1b[1;", b"\xe6\x97"] {
            assert_eq!(decode(half, false), None, "{half:?}");
        }
        assert_eq!(keys(b"\x1b"), [Some(Key::Escape)]);
        assert_eq!(keys(b"\x1b[1;"), [None]);
        assert_eq!(keys(b"\x1b[15~x\xff\xe6\x97"), [None, Some(Key::Char('x')), None, None]);
    }
}
