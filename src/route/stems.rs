//! Splits texts into stems, so that messages, charters and tables can be compared.
//!
//! A stem is a folded word without its ending. Hyphens part words. An identifier (`GameEventBus`, `exit_codes.ts`) is one
//! unit: it yields the whole and then its pieces. Scripts without spaces yield pairs of letters.

use std::ops::Range;

use deunicode::deunicode_char;

use crate::model::{List, stem_of};

/// Longer words are nobody's.
const LONGEST: usize = 40;

/// Calls `each` with every stem, the range of its unit, and whether it is a whole identifier whose pieces follow.
pub(super) fn each_stem(text: &str, each: &mut impl FnMut(&str, Range<usize>, bool)) {
    each_stem_in(&mut String::with_capacity(LONGEST), text, each);
}

/// The same with a buffer, for many short texts.
pub(super) fn each_stem_in(stem: &mut String, text: &str, each: &mut impl FnMut(&str, Range<usize>, bool)) {
    let is_plain = |(at, byte): (usize, u8)| byte.is_ascii_lowercase() || (at == 0 && byte.is_ascii_uppercase());
    for run in text.split(is_between) {
        if run.bytes().enumerate().all(is_plain) {
            let start = run.as_ptr() as usize - text.as_ptr() as usize;
            each_word(run, start..start + run.len(), stem, each);
            continue;
        }
        let run = run.trim_matches(|c: char| !is_of_a_word(c) && c != '/');
        if is_outside(run) {
            continue;
        }
        // `import/export` is two words, `src/cli/main.rs` is one identifier.
        let is_path = run.contains(['.', '_', '\\']) || run.matches('/').count() > 1;
        for chunk in run.split(|c| c == '-' || (c == '/' && !is_path)) {
            let start = chunk.as_ptr() as usize - text.as_ptr() as usize;
            if chunk.bytes().enumerate().all(is_plain) {
                each_word(chunk, start..start + chunk.len(), stem, each);
                continue;
            }
            let pieces: Vec<Range<usize>> = pieces(chunk).take(LONGEST).collect();
            let whole = match &pieces[..] {
                [first, .., last] if last.end - first.start <= LONGEST && !chunk.contains(is_ideographic) => {
                    let whole = first.start..last.end;
                    fold_into(&chunk[whole.clone()], stem);
                    stem.retain(is_of_a_word);
                    stem_of(stem);
                    each(stem, start + whole.start..start + whole.end, true);
                    Some(start + whole.start..start + whole.end)
                }
                _ => None,
            };
            for piece in pieces {
                let unit = whole.clone().unwrap_or(start + piece.start..start + piece.end);
                each_word(&chunk[piece], unit, stem, each);
            }
        }
    }
}

/// Whether a path belongs to the machine, not to the project: `/var/www/html`.
pub(super) fn is_outside(path: &str) -> bool {
    let mut folders = path.split(['/', '\\']).skip(1);
    let is_of_system = path.starts_with('/') && folders.next().is_some_and(|folder| List::SystemFolder.has(folder));
    (is_of_system && folders.next().is_some()) || path.get(1..3) == Some(":\\")
}

pub(super) fn is_between(c: char) -> bool {
    matches!(c, ' ' | ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '"' | '`' | '|' | '<' | '=' | '>')
        || c.is_whitespace()
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '+' || c == '#'
}

/// Runs of letters and digits, split at capitals: `HTTPRoute` is `HTTP` and `Route`.
fn pieces(chunk: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += chunk[at..].find(is_of_a_word)?;
        let start = at;
        let mut before = None;
        let end = chunk[start..].char_indices().find_map(|(offset, c)| {
            let rest = &chunk[start + offset + c.len_utf8()..];
            let is_end = !is_of_a_word(c) || before.replace(c).is_some_and(|before| is_hump(before, c, rest));
            is_end.then_some(start + offset)
        });
        at = end.unwrap_or(chunk.len());
        // `APIs` is `API`.
        let plural =
            chunk[start..at].strip_suffix('s').filter(|rest| rest.len() > 1 && rest.chars().all(char::is_uppercase));
        Some(start..plural.map_or(at, |rest| start + rest.len()))
    })
}

fn is_hump(before: char, c: char, rest: &str) -> bool {
    let rises = before.is_lowercase() && c.is_uppercase();
    let is_plural = rest.strip_prefix('s').is_some_and(|rest| !rest.starts_with(is_of_a_word));
    let ends_acronym = before.is_uppercase() && c.is_uppercase() && rest.starts_with(char::is_lowercase) && !is_plural;
    rises || ends_acronym || (is_ideographic(before) != is_ideographic(c))
}

/// Scripts without spaces, in which pairs of letters are meaningful.
fn is_ideographic(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

fn each_word(word: &str, unit: Range<usize>, stem: &mut String, each: &mut impl FnMut(&str, Range<usize>, bool)) {
    if word.starts_with(is_ideographic) {
        let letters: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        for pair in letters.windows(3.min(letters.len())) {
            let (from, to) = (pair[0], pair[pair.len() - 1]);
            each(&word[from..to], unit.start + from..unit.start + to, false);
        }
    } else if word.len() > 1 && word.len() <= LONGEST && !word.bytes().all(|byte| byte.is_ascii_digit()) {
        fold_into(word, stem);
        stem_of(stem);
        each(stem, unit, false);
    }
}

/// Lower case without the diacritics of Latin letters, which people leave out.
fn fold_into(word: &str, folded: &mut String) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        folded.make_ascii_lowercase();
        return;
    }
    for c in word.chars().flat_map(char::to_lowercase) {
        match c {
            // Combining marks of letters written apart.
            '\u{300}'..='\u{36f}' => {}
            'ё' => folded.push('е'),
            '\u{df}'..='\u{17f}' => folded.push_str(deunicode_char(c).unwrap_or_default()),
            c => folded.push(c),
        }
    }
}
