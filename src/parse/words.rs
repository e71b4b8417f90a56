//! Cleans names and cells of emoji, markup and remarks; word lists.

/// The text without pictographs, the marks that join them, and replacement characters left by a bad conversion.
pub(crate) fn without_pictographs(text: &str) -> String {
    let kept: String = text.chars().filter(|&c| !is_pictograph(c)).collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Trims pictographs at both ends.
pub(super) fn trim_pictographs(text: &str) -> &str {
    text.trim_matches(|c| is_pictograph(c) && c != '\u{fffd}' || char::is_whitespace(c))
}

/// The blocks of emoji and dingbats, variation selectors, joiners, tags, and U+FFFD.
fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{200d}' | '\u{20e3}' | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fffd}' | '\u{1f000}'..='\u{1faff}' | '\u{e0000}'..='\u{e007f}')
}

/// Removes struck-out text: `~~Anna~~ Bob` is `Bob`.
pub(super) fn without_struck(text: &str) -> String {
    let parts: Vec<&str> = text.split("~~").collect();
    // An unpaired mark strikes nothing.
    let pairs = (parts.len() - 1) / 2;
    let struck = |index: usize| index % 2 == 1 && index / 2 < pairs;
    let kept: String = parts.iter().enumerate().filter(|(index, _)| !struck(*index)).map(|(_, part)| *part).collect();
    kept.trim().to_owned()
}

/// Splits off a remark in parentheses at the end: `Eric (review)` is `Eric` and `review`.
pub(crate) fn remark(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        Some((before, remark)) if !before.trim().is_empty() => (before.trim(), remark.trim()),
        _ => (text, ""),
    }
}

/// Whether a text has no letter and no digit: it is empty, or a dash.
pub(crate) fn is_blank(text: &str) -> bool {
    !text.chars().any(char::is_alphanumeric)
}

/// The runs of letters and digits in a text.
pub(super) fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether a word list, `"one, two"`, contains a word.
pub(super) fn listed(list: &str, word: &str) -> bool {
    list.split(", ").any(|listed| listed == word)
}

/// Whether a text contains a word of a list.
pub(super) fn has_word(text: &str, list: &str) -> bool {
    words(text).any(|word| listed(list, word))
}

/// `Ada (Lead) + Bob (via chat)` without the remarks in brackets; a text that is nothing else stays.
pub(super) fn without_brackets(text: &str) -> String {
    let mut depth = 0usize;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    let kept = kept.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ,", ",").replace(" ;", ";");
    if kept.is_empty() { text.to_owned() } else { kept }
}

/// `[ ] Ada` is `Ada`.
pub(super) fn without_box(text: &str) -> &str {
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text)
}

/// Whether a cell is a template's unfilled `{place}`.
pub(super) fn is_placeholder(text: &str) -> bool {
    text.split_once('{').is_some_and(|(_, rest)| rest.contains('}'))
}

/// The words of a text that may be paths: targets of links, and text in backticks or quotes.
pub(super) fn path_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "()[]`\"'<>|#?".contains(c))
}

/// Splits at commas that are not inside parentheses, quotes or braces, and drops the quotes.
pub(super) fn comma_list(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let (mut depth, mut quoted) = (0usize, false);
    for c in text.chars() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            '"' | '“' | '”' => quoted = !quoted,
            _ => {}
        }
        if matches!(c, ',' | ';' | '\n') && depth == 0 && !quoted {
            items.push(std::mem::take(&mut item));
        } else {
            item.push(c);
        }
    }
    items.push(item);
    let quotes: &[char] = &['"', '“', '”', '\'', '`'];
    items
        .iter()
        .map(|item| item.trim().trim_matches(quotes).trim().to_owned())
        .filter(|item| !is_blank(item))
        .map(|item| item.trim_end_matches('…').trim_end_matches("...").to_owned())
        .collect()
}
