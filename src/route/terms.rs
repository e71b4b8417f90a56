//! Splits texts into terms, so that messages, charters and tables can be compared.
//!
//! A term is a folded, stemmed word. `GameEventBus`, `exit-codes.ts` and `end-to-end` yield their parts and the whole; a
//! file name also yields the purpose of such files. Scripts without spaces yield pairs of letters. Parts keep their
//! order, so that phrases can be found.

use std::ops::Range;

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
            each_of_chunk(lexicon, chunk, start, &mut buffer, each);
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
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += until(&text[at..], STARTS, char::is_alphanumeric)?;
            let start = at;
            at += usize::from(bytes[at].is_ascii_alphabetic());
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
            let plain = at - start;
            at += until(&text[at..], ENDS, char::is_whitespace).unwrap_or(text.len() - at);
            let chunk = text[start..at].trim_end_matches(|c| !is_of_a_word(c) && c != '/');
            // A chunk may be nothing but slashes.
            if chunk.contains(char::is_alphanumeric) {
                return Some(Chunk { start, text: chunk, is_plain: chunk.len() == plain });
            }
        }
    })
}

/// The number of bytes before the first character that is in the ASCII set or satisfies `beyond`.
pub(super) fn until(text: &str, ascii: AsciiSet, beyond: fn(char) -> bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| !byte.is_ascii() || is(ascii, *byte))?;
        if bytes[at].is_ascii() {
            return Some(at);
        }
        let c = text[at..].chars().next()?;
        if beyond(c) {
            return Some(at);
        }
        at += c.len_utf8();
    }
}

/// A bit for each character.
pub(super) type AsciiSet = u128;

pub(super) const fn set(characters: &[u8]) -> AsciiSet {
    let mut set = 0;
    let mut place = 0;
    while place < characters.len() {
        set |= 1 << characters[place];
        place += 1;
    }
    set
}

fn is(set: AsciiSet, byte: u8) -> bool {
    byte.is_ascii() && set & (1 << byte) != 0
}

const STARTS: AsciiSet = set(b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
const ENDS: AsciiSet = set(b" \t\n\x0b\x0c\r,;()[]{}\"`|<>=");

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '+' || c == '#'
}

fn each_of_chunk(
    lexicon: &Lexicon,
    chunk: &str,
    at: usize,
    buffer: &mut String,
    each: &mut impl FnMut(&str, Range<usize>, TermKind),
) {
    // `don't` and `team's`: the rest is no word.
    if let Some((word, rest)) = chunk.split_once(['\'', '’']).filter(|(_, rest)| rest.chars().count() <= 2) {
        return match rest {
            "t" | "T" => {
                whole_into(chunk, buffer);
                each(buffer, at..at + chunk.len(), TermKind::Word);
            }
            _ => each_of_chunk(lexicon, word, at, buffer, each),
        };
    }
    if chunk.eq_ignore_ascii_case(".net") {
        each("dotnet", at..at + chunk.len(), TermKind::Word);
        return;
    }
    // A slash always separates words.
    let mut start = at;
    for segment in chunk.split('/') {
        each_of_segment(lexicon, segment, start, buffer, each);
        start += segment.len() + 1;
    }
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
        let mut letters = segment[start..].char_indices().peekable();
        let (mut before, mut end, mut plural) = (None::<char>, segment.len(), 0);
        while let Some((offset, c)) = letters.next() {
            let next = letters.peek().map(|(_, next)| *next);
            let after = start + offset + c.len_utf8();
            // `APIs` is `API`.
            let is_plural = before.is_some_and(char::is_uppercase)
                && c.is_uppercase()
                && segment[after..].strip_prefix('s').is_some_and(|rest| !rest.starts_with(is_of_a_word));
            if is_plural {
                (end, plural) = (after, 1);
                break;
            }
            let hump = before.is_some_and(|before| is_hump(before, c, next));
            if !is_of_a_word(c) || hump {
                end = start + offset;
                break;
            }
            before = Some(c);
        }
        at = end + plural;
        Some(start..end)
    })
}

fn is_hump(before: char, c: char, next: Option<char>) -> bool {
    let rises = before.is_lowercase() && c.is_uppercase();
    let ends_acronym = before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase);
    rises || ends_acronym || (is_ideographic(before) != is_ideographic(c))
}

fn each_of_piece(
    piece: &str,
    start: usize,
    buffer: &mut String,
    each: &mut impl FnMut(&str, Range<usize>, TermKind),
) -> usize {
    if !piece.starts_with(is_ideographic) {
        // A letter, a number and an article say nothing.
        if piece.len() == 1 || piece.bytes().all(|byte| byte.is_ascii_digit()) || is_article(piece) {
            each("", start..start + piece.len(), TermKind::Word);
            return 1;
        }
        stem_into(piece, buffer);
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

fn is_article(word: &str) -> bool {
    word.eq_ignore_ascii_case("the") || word.eq_ignore_ascii_case("an")
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
        let plain = match c {
            'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
            'ç' | 'ć' | 'č' => 'c',
            'è'..='ë' | 'ē' | 'ę' | 'ě' => 'e',
            'ì'..='ï' | 'ī' | 'ı' => 'i',
            'ñ' | 'ń' | 'ň' => 'n',
            'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
            'ý' | 'ÿ' => 'y',
            'š' | 'ś' => 's',
            'ž' | 'ź' | 'ż' => 'z',
            'ё' => 'е',
            // Combining marks of letters written apart.
            '\u{300}'..='\u{36f}' => continue,
            'ß' => {
                buffer.push('s');
                's'
            }
            c => c,
        };
        buffer.push(plain);
    }
}
