//! Characters that cannot be seen: controls, and what Unicode calls format and default-ignorable characters.
//!
//! They reorder what a reader sees (<https://trojansource.codes>), move a terminal's cursor, or carry text to a model
//! that no person reads. One rule finds them everywhere. People are shown their code points, models do not get them, and
//! JSON escapes them.

use super::text::{list, plural};

/// Each hidden character and its byte offset.
pub(crate) fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut next = 0;
    // Nearly all text is plain, and megabytes of it are scanned at each start.
    let suspects = std::iter::from_fn(move || {
        let at = next + text.as_bytes().get(next..)?.iter().position(|byte| !is_plain(*byte))?;
        let c = text.get(at..)?.chars().next()?;
        next = at + c.len_utf8();
        Some((at, c))
    });
    suspects.filter(|(at, c)| {
        let (before, after) = (text[..*at].chars().next_back(), &text[at + c.len_utf8()..]);
        is_suspect(*c) && !is_in_place(before, *c, after) && !is_in_flag(text, *at, *c)
    })
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Untrusted text for people: each hidden character is shown by its code point, such as `[U+200B]`, and lines end with
/// LF.
pub(crate) fn printable(text: &str) -> String {
    replaced(text.replace("\r\n", "\n"), |c| format!("[{}]", code_point(c)))
}

/// Untrusted text for people, such as the name of a file, that must not make a line of its own.
pub(crate) fn printable_line(text: &str) -> String {
    printable(text).replace('\n', &format!("[{}]", code_point('\n')))
}

/// Untrusted text for a model.
pub(crate) fn without_hidden(text: String) -> String {
    replaced(text, |_| String::new())
}

/// `3 characters that cannot be seen: U+200B and U+E0041`; `None` if there are none.
pub(crate) fn hidden_summary(found: impl Iterator<Item = char>) -> Option<String> {
    const MAX_NAMED: usize = 4;
    let mut count = 0;
    let mut kinds: Vec<String> = Vec::new();
    for kind in found.map(code_point) {
        count += 1;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.len() > MAX_NAMED {
        let more = kinds.split_off(MAX_NAMED - 1).len();
        kinds.push(format!("{more} more"));
    }
    (count > 0).then(|| format!("{} that cannot be seen: {}", plural(count, "character"), list(&kinds)))
}

/// Untrusted text for a terminal, with each line marked as not being squad's.
pub(crate) fn marked(text: &str) -> String {
    printable(text).lines().map(|line| format!("  | {line}\n")).collect()
}

/// `U+200B`
fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

fn replaced(mut text: String, by: impl Fn(char) -> String) -> String {
    // Removing one may make its neighbour suspect.
    while hidden(&text).next().is_some() {
        let mut seen = String::with_capacity(text.len());
        let mut rest = 0;
        for (at, c) in hidden(&text) {
            seen.push_str(&text[rest..at]);
            seen.push_str(&by(c));
            rest = at + c.len_utf8();
        }
        seen.push_str(&text[rest..]);
        text = seen;
    }
    text
}

const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Controls except line ends and tabs; line and paragraph separators; categories Cf and Default_Ignorable_Code_Point of
/// Unicode 17, except visible signs of Arabic, Syriac and Kaithi.
fn is_suspect(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        ' '..='~' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Whether a suspect character is legitimate in this position.
fn is_in_place(before: Option<char>, c: char, after: &str) -> bool {
    let Some(before) = before else { return c == '\u{feff}' };
    let next = after.chars().next();
    match c {
        // Part of a line end. Alone it moves the cursor to the beginning of the line.
        '\r' => next == Some('\n'),
        '\u{200d}' if is_emoji_part(before) => next.is_some_and(is_emoji_part),
        _ if JOINERS.contains(&c) => uses_joiner(before),
        // Text or emoji style of a symbol or of a keycap's digit.
        '\u{fe0e}' | '\u{fe0f}' => match before {
            '0'..='9' | '#' | '*' => next == Some('\u{20e3}'),
            _ => !before.is_ascii() && (!before.is_alphabetic() || is_sign(before)) && !is_suspect(before),
        },
        '\u{fe00}'..='\u{fe0d}' => !before.is_ascii() && !before.is_whitespace() && !is_suspect(before),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1800}'..='\u{18af}') && !is_suspect(before),
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        _ => false,
    }
}

/// Letters that are signs, with a style as an emoji: ℹ, Ⓜ, 🅰, 🅱, 🅾 and 🅿.
fn is_sign(c: char) -> bool {
    matches!(c, '\u{2139}' | '\u{24c2}' | '\u{1f170}' | '\u{1f171}' | '\u{1f17e}' | '\u{1f17f}')
}

/// Neighbours of a joiner in an emoji: pictures, skin tones, and the variation selector that makes a symbol a picture.
fn is_emoji_part(c: char) -> bool {
    matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2190}'..='\u{2bff}' | '\u{fe0f}')
}

/// Letters of scripts in which a joiner changes the form of the next letter: Arabic and related scripts, Indic and
/// related scripts, Tibetan, Burmese, Khmer, Mongolian.
fn uses_joiner(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{dff}' | '\u{f00}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{1a20}'..='\u{1c4f}'
        | '\u{a840}'..='\u{a8ff}' | '\u{aa60}'..='\u{aaff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10d00}'..='\u{10fff}' | '\u{11000}'..='\u{11fff}')
        && !is_suspect(c)
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Flags encoded as a black flag and tags: England, Scotland and Wales.
fn is_in_flag(text: &str, at: usize, c: char) -> bool {
    const FLAGS: [&str; 3] = [
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
    ];
    const MAX_TAGS: usize = 6;
    if !matches!(c, '\u{e0062}'..='\u{e007f}') {
        return false;
    }
    let start = text[..at].char_indices().rev().take(MAX_TAGS).find(|(_, c)| *c == '\u{1f3f4}').map(|(start, _)| start);
    start.is_some_and(|start| FLAGS.iter().any(|flag| text[start..].starts_with(flag) && at < start + flag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_cannot_act_as_a_question_of_squad() {
        assert_eq!(marked("a\n> y\r\nb\u{1b}[2K\rc"), "  | a\n  | > y\n  | b[U+001B][2K[U+000D]c\n");
    }

    #[test]
    fn hidden_characters_are_shown_by_code_point() {
        for (text, shown) in [
            ("start\u{1b}[2K\rls", "start[U+001B][2K[U+000D]ls"),
            ("a\r\n\tb\n", "a\n\tb\n"),
            ("bell\u{7}, C1 \u{9b}2J, DEL \u{7f}, NUL \0", "bell[U+0007], C1 [U+009B]2J, DEL [U+007F], NUL [U+0000]"),
            ("a\u{202e}b\u{2066}c\u{200e}d\u{61c}", "a[U+202E]b[U+2066]c[U+200E]d[U+061C]"),
            ("zero\u{200b}width\u{2060}\u{feff}\u{ad}", "zero[U+200B]width[U+2060][U+FEFF][U+00AD]"),
            ("tags\u{e0041}\u{e007f}", "tags[U+E0041][U+E007F]"),
            ("\u{2028}\u{2029}\u{3164}\u{34f}", "[U+2028][U+2029][U+3164][U+034F]"),
            ("le\u{200d}tters and a\u{fe0f}\u{e0101}", "le[U+200D]tters and a[U+FE0F][U+E0101]"),
            ("☀\u{fe0f}\u{fe0f} 字\u{e0100}\u{e0101}", "☀\u{fe0f}[U+FE0F] 字\u{e0100}[U+E0101]"),
            ("می\u{200c}\u{200c}", "می\u{200c}[U+200C]"),
            ("🏴\u{e0067}\u{e0062}", "🏴[U+E0067][U+E0062]"),
            ("\u{200d}👩", "[U+200D]👩"),
        ] {
            assert_eq!(printable(text), shown, "{text:?}");
            assert_eq!(hidden(text).count(), shown.matches("[U+").count(), "{text:?}");
            assert_eq!(hidden(&without_hidden(text.to_owned())).count(), 0, "{text:?}");
        }
    }

    #[test]
    fn characters_that_scripts_need_are_kept() {
        for text in [
            "Grüße, 日本語, עברית, العربية: plain text",
            "👩\u{200d}💻 👨🏽\u{200d}🔧 ❤\u{fe0f}\u{200d}🔥 🏳\u{fe0f}\u{200d}🌈 👁\u{fe0f}\u{200d}🗨\u{fe0f}",
            "1\u{fe0f}\u{20e3} ⚠\u{fe0f} ✅ ☀\u{fe0e} ©\u{fe0f} ℹ\u{fe0f} Ⓜ\u{fe0f} 🅿\u{fe0f}",
            "می\u{200c}خواهم क्\u{200d}ष ශ්\u{200d}රී",
            "葛\u{e0100} ≨\u{fe00} 𐂂",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "\u{feff}# A file's mark",
        ] {
            assert_eq!(hidden(text).collect::<Vec<_>>(), [], "{text:?}");
            assert_eq!(printable(text), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_hidden_is_left(text in "(\\PC|[\\x00-\\x20\u{200b}-\u{200f}\u{fe00}-\u{fe0f}\u{e0000}-\u{e01ff}👩☀a字]){0,40}") {
            proptest::prop_assert_eq!(hidden(&printable(&text)).count(), 0);
            proptest::prop_assert_eq!(hidden(&without_hidden(text)).count(), 0);
        }
    }
}
