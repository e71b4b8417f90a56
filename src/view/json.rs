//! JSON for programs, safe to display for people.

use serde::Serialize;

use crate::model::{hidden, to_json};

/// Writes a value as one line of JSON. Strings keep every character; invisible ones are escaped, so that the line is
/// safe to print on a terminal.
pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    let line = to_json(value)?;
    let (mut safe, mut rest) = (String::with_capacity(line.len()), 0);
    // All of them are in strings: JSON has none elsewhere.
    for (at, c) in hidden(&line) {
        safe.push_str(&line[rest..at]);
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
        rest = at + c.len_utf8();
    }
    safe.push_str(&line[rest..]);
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_nothing_is_altered() {
        for (text, line) in [
            ("a\u{1b}[2K\r\n", r#""a\u001b[2K\r\n""#),
            ("\u{9b}2J \u{7f}", r#""\u009b2J \u007f""#),
            ("b\u{202e}c\u{200b}", r#""b\u202ec\u200b""#),
            ("tag \u{e0041}\u{e007f}", r#""tag \udb40\udc41\udb40\udc7f""#),
            ("👩\u{200d}💻 \"quoted\" \\ 日本", "\"👩\u{200d}💻 \\\"quoted\\\" \\\\ 日本\""),
        ] {
            assert_eq!(json_line(&text).expect("JSON"), line);
            assert_eq!(serde_json::from_str::<String>(line).expect("JSON"), text);
        }
        let nested = serde_json::json!({"key\u{200b}": ["\u{2066}", 1, null, 1.5]});
        let line = json_line(&nested).expect("JSON");
        assert!(line.is_ascii() && serde_json::from_str::<serde_json::Value>(&line).expect("JSON") == nested, "{line}");
    }

    proptest::proptest! {
        #[test]
        fn json_keeps_every_character(text in "(\\PC|[\\x00-\\x20\u{200b}-\u{200f}\u{fe00}-\u{fe0f}\u{e0000}-\u{e01ff}]){0,40}") {
            let line = json_line(&text).expect("JSON");
            proptest::prop_assert_eq!(serde_json::from_str::<String>(&line).expect("JSON"), text);
        }
    }
}
