//! Splits texts into terms, so that messages, charters and tables can be compared.
//!
//! A term is a folded, stemmed word. `GameEventBus`, `exit-codes.ts` and `end-to-end` yield their parts and the whole; a
//! file name also yields the purpose of such files. Scripts without spaces yield pairs of letters. Parts keep their
//! order, so that phrases can be found.

use std::ops::Range;

use deunicode::deunicode_char;

use super::lexicon::Lexicon;
use crate::model::{List, stem_of};

/// How a term was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermKind {
    /// A word, or a part of a compound.
    Word,
    /// A whole compound, in addition to its parts.
    Whole,
    /// Not in the text: the purpose of a file with this name.
    Implied,
}

/// Calls `each` with every term and its range in the text.
pub(super) fn each_term(lexicon: &Lexicon, text: &str, each: &mut impl FnMut(&str, Range<usize>, TermKind)) {
    let mut buffer = String::with_capacity(LONGEST);
    for Chunk { start, text: chunk, is_plain } in chunks(text) {
        if is_plain {
            each_of_piece(chunk, start, &mut buffer, each);
            // `Dockerfile`, `Makefile`: plain names of files end like this.
            if !chunk.ends_with("ile") {
                continue;
            }
        } else if is_outside(chunk) {
            continue;
        } else {
            let mut at = start;
            for segment in chunk.split('/') {
                each_of_segment(lexicon, segment, at, &mut buffer, each);
                at += segment.len() + 1;
            }
        }
        if let Some(implied) = lexicon.file_kind(chunk) {
            for Chunk { text: word, .. } in chunks(implied) {
                stem_into(word, &mut buffer);
                each(&buffer, start..start + chunk.len(), TermKind::Implied);
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

/// A run without spaces, trimmed of punctuation.
struct Chunk<'t> {
    start: usize,
    text: &'t str,
    /// Lower case, perhaps with a capital first: no compound.
    is_plain: bool,
}

fn chunks(text: &str) -> impl Iterator<Item = Chunk<'_>> {
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(c, ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '"' | '`' | '|' | '<' | '=' | '>')
    };
    text.split(ends).filter_map(|run| {
        let run = run.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/'));
        let start = run.as_ptr() as usize - text.as_ptr() as usize;
        let text = run.trim_end_matches(|c| !is_of_a_word(c) && c != '/');
        let is_plain_at = |(at, byte): (usize, u8)| byte.is_ascii_lowercase() || (at == 0 && byte.is_ascii_uppercase());
        // A chunk may be nothing but slashes.
        let is_plain = text.bytes().enumerate().all(is_plain_at);
        text.contains(char::is_alphanumeric).then_some(Chunk { start, text, is_plain })
    })
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '+' || c == '#'
}

fn each_of_segment(
    lexicon: &Lexicon,
    segment: &str,
    at: usize,
    buffer: &mut String,
    each: &mut impl FnMut(&str, Range<usize>, TermKind),
) {
    let (mut parts, mut first, mut last) = (0, None, 0);
    let mut after = 0;
    for Range { start, end } in pieces(segment) {
        // A part of a word that was taken as a whole.
        if start < after {
            continue;
        }
        first.get_or_insert(start);
        let run = start + run_length(&segment[start..]);
        if run > end && start >= last.max(after) && is_one_word(lexicon, &segment[start..run], buffer) {
            each(buffer, at + start..at + run, TermKind::Word);
            (parts, last, after) = (parts + 1, run, run);
        } else {
            parts += each_of_piece(&segment[start..end], at + start, buffer, each);
            last = end;
        }
    }
    if let Some(first) = first.filter(|_| parts > 1) {
        whole_into(&segment[first..last], buffer);
        each(buffer, at + first..at + last, TermKind::Whole);
    }
}

/// The length of the run of letters and digits, up to just over the longest word.
fn run_length(text: &str) -> usize {
    let near = &text[..text.floor_char_boundary(LONGEST + 1)];
    near.find(|c| !is_of_a_word(c)).unwrap_or(near.len())
}

/// Longer words are in no table.
const LONGEST: usize = 40;

/// `DevOps` and `RabbitMQ` are one word in spite of their capitals.
fn is_one_word(lexicon: &Lexicon, run: &str, buffer: &mut String) -> bool {
    if run.len() > LONGEST {
        return false;
    }
    whole_into(run, buffer);
    lexicon.speaks(buffer)
}

/// Runs of letters and digits, split at capitals: `HTTPRoute` is `HTTP` and `Route`.
fn pieces(segment: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += segment[at..].find(is_of_a_word)?;
        let start = at;
        let mut before = None;
        let end = segment[start..].char_indices().find_map(|(offset, c)| {
            let rest = &segment[start + offset + c.len_utf8()..];
            let is_end = !is_of_a_word(c) || before.replace(c).is_some_and(|before| is_hump(before, c, rest));
            is_end.then_some(start + offset)
        });
        at = end.unwrap_or(segment.len());
        // `APIs` is `API`.
        let plural =
            segment[start..at].strip_suffix('s').filter(|rest| rest.len() > 1 && rest.chars().all(char::is_uppercase));
        Some(start..plural.map_or(at, |rest| start + rest.len()))
    })
}

fn is_hump(before: char, c: char, rest: &str) -> bool {
    let rises = before.is_lowercase() && c.is_uppercase();
    let is_plural = rest.strip_prefix('s').is_some_and(|rest| !rest.starts_with(is_of_a_word));
    let ends_acronym = before.is_uppercase() && c.is_uppercase() && rest.starts_with(char::is_lowercase) && !is_plural;
    rises || ends_acronym || (is_ideographic(before) != is_ideographic(c))
}

fn each_of_piece(
    piece: &str,
    start: usize,
    buffer: &mut String,
    each: &mut impl FnMut(&str, Range<usize>, TermKind),
) -> usize {
    if !piece.starts_with(is_ideographic) {
        stem_into(piece, buffer);
        // A letter, a number and an article say nothing.
        let is_article = ["the", "an"].iter().any(|article| article.eq_ignore_ascii_case(piece));
        if piece.len() == 1 || piece.bytes().all(|byte| byte.is_ascii_digit()) || is_article {
            buffer.clear();
        }
        each(buffer, start..start + piece.len(), TermKind::Word);
        return 1;
    }
    let letters: Vec<usize> = piece.char_indices().map(|(at, _)| at).chain([piece.len()]).collect();
    for pair in letters.windows(3.min(letters.len())) {
        let (from, to) = (pair[0], pair[pair.len() - 1]);
        each(&piece[from..to], start + from..start + to, TermKind::Word);
    }
    0
}

/// Scripts without spaces, in which pairs of letters are meaningful.
fn is_ideographic(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{2ffff}')
}

fn stem_into(word: &str, buffer: &mut String) {
    fold_into(word, buffer);
    stem_of(buffer);
}

fn whole_into(compound: &str, buffer: &mut String) {
    fold_into(compound, buffer);
    buffer.retain(char::is_alphanumeric);
    stem_of(buffer);
}

/// Lower case without the diacritics of Latin letters, which people leave out.
fn fold_into(word: &str, buffer: &mut String) {
    buffer.clear();
    if word.is_ascii() {
        buffer.push_str(word);
        buffer.make_ascii_lowercase();
        return;
    }
    for c in word.chars().flat_map(char::to_lowercase) {
        match c {
            // Combining marks of letters written apart.
            '\u{300}'..='\u{36f}' => {}
            'ё' => buffer.push('е'),
            '\u{df}'..='\u{17f}' => buffer.push_str(deunicode_char(c).unwrap_or_default()),
            c => buffer.push(c),
        }
    }
}
