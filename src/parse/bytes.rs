//! Decodes files. Most are UTF-8, but some editors and shells write other encodings.

/// The encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// With a byte order mark, as some shells write redirected output.
    Utf16,
    /// UTF-8 with invalid bytes, which are read as Windows-1252.
    Windows1252,
}

/// Windows-1252 from 0x80 to 0x9f. Its five undefined bytes are U+FFFD.
const HIGH: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž', '\u{fffd}', '\u{fffd}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}', 'ž', 'Ÿ',
];

/// Decodes a file. Never fails: undefined bytes become U+FFFD.
pub(crate) fn text_of(bytes: Vec<u8>) -> (String, Encoding) {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes.chunks(2).skip(1).map(|pair| of([pair[0], pair.get(1).copied().unwrap_or(0)])).collect();
        (String::from_utf16_lossy(&units), Encoding::Utf16)
    };
    match bytes.get(..2) {
        Some([0xff, 0xfe]) => return wide(u16::from_le_bytes),
        Some([0xfe, 0xff]) => return wide(u16::from_be_bytes),
        _ => {}
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return (text, Encoding::Utf8),
        Err(error) => error.into_bytes(),
    };
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(
            chunk
                .invalid()
                .iter()
                .map(|&byte| HIGH.get(usize::from(byte.wrapping_sub(0x80))).copied().unwrap_or(char::from(byte))),
        );
    }
    (text, Encoding::Windows1252)
}

/// The first line end of a text; LF if it has none.
pub(crate) fn line_end(text: &str) -> &'static str {
    match text.find(['\r', '\n']).and_then(|at| text.get(at..)) {
        Some(rest) if rest.starts_with("\r\n") => "\r\n",
        Some(rest) if rest.starts_with('\r') => "\r",
        _ => "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_what_their_writers_saw() {
        assert_eq!(text_of("Zoé — 🧪".into()), ("Zoé — 🧪".to_owned(), Encoding::Utf8));
        assert_eq!(text_of(b"R\xf4le \x96 \x80\n".to_vec()), ("Rôle – €\n".to_owned(), Encoding::Windows1252));
        // Both in one file, as pasting makes it; and a byte that means nothing.
        assert_eq!(text_of(b"\xc3\xa9 \xe9 \x81".to_vec()), ("é é \u{fffd}".to_owned(), Encoding::Windows1252));
        let wide = |mark: &[u8], of: fn(u16) -> [u8; 2]| {
            let bytes = mark.iter().copied().chain("| Zoé |\n".encode_utf16().flat_map(of)).collect();
            text_of(bytes)
        };
        assert_eq!(wide(b"\xff\xfe", u16::to_le_bytes), ("| Zoé |\n".to_owned(), Encoding::Utf16));
        assert_eq!(wide(b"\xfe\xff", u16::to_be_bytes), ("| Zoé |\n".to_owned(), Encoding::Utf16));
        assert_eq!(text_of(b"\xff\xfea".to_vec()).0, "a");
    }
}
