//! A message as squad reads it: what is said, what is quoted, what is asked not to be done.

use std::ops::Range;

use super::denial::{DENIAL, negated};
use super::terms::{AsciiSet, set, until};

/// Longer messages are read at their beginning and their end: in between is what was pasted.
const BEGINNING: usize = 24 * 1024;
const END: usize = 8 * 1024;
/// Of pasted text this much is looked at.
const PASTED: usize = 4 * 1024;

/// From this many words on, a message tells a story, and its requests count more than the story.
const STORY: usize = 45;
const IN_A_STORY: f64 = 0.5;

/// What kind of text it is decides how much its words count.
const CODE_SPAN: f64 = 0.8;
const PASTED_TEXT: f64 = 0.2;
/// What shall not be touched is no reason to choose its owner, and a small one against.
const NEGATED: f64 = -0.3;

/// A piece of a message whose words count alike.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) range: Range<usize>,
    pub(super) weight: f64,
    /// Clauses and sentences are numbered through the message.
    pub(super) clause: usize,
    pub(super) sentence: usize,
    pub(super) is_code: bool,
    /// The places of its terms in [`super::message::Message`], once it is read.
    pub(super) words: Range<usize>,
}

/// A message in stretches.
pub(super) fn stretches(message: &str) -> Vec<Stretch> {
    let (begin, end) = parts(message);
    let denies = DENIAL.is_match(&message[begin.clone()]) || DENIAL.is_match(&message[end.clone()]);
    let mut reader = Reader { message, denies, ..Reader::default() };
    reader.lines(begin);
    reader.lines(end);
    reader.weigh_story();
    reader.stretches
}

/// What of a message is not read, in bytes.
pub(super) fn unread(message: &str) -> usize {
    message.len().saturating_sub(BEGINNING + END)
}

/// The beginning and the end of a message; of a short one the beginning is all.
fn parts(message: &str) -> (Range<usize>, Range<usize>) {
    let all = message.len();
    if all <= BEGINNING + END {
        return (0..all, all..all);
    }
    (0..floor(message, BEGINNING), floor(message, all - END)..all)
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[derive(Default)]
struct Reader<'m> {
    message: &'m str,
    /// Whether anything in it may be a denial: few messages have any.
    denies: bool,
    stretches: Vec<Stretch>,
    fence: Option<&'m str>,
    pasted: usize,
    clause: usize,
    sentence: usize,
}

impl<'m> Reader<'m> {
    fn lines(&mut self, part: Range<usize>) {
        let mut at = part.start;
        let message = self.message;
        for line in message[part].split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            let text = line.trim();
            let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
            match (self.fence, mark) {
                (None, Some(mark)) => self.fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => self.fence = None,
                (Some(_), _) => self.paste(range),
                (None, None) if is_pasted(text) => self.paste(range),
                (None, None) => self.prose(range),
            }
            self.sentence += 1;
            self.clause += 1;
        }
    }

    fn paste(&mut self, range: Range<usize>) {
        if self.pasted < PASTED {
            let end = floor(self.message, range.end.min(range.start + PASTED - self.pasted));
            self.pasted += end - range.start;
            self.push(range.start..end, PASTED_TEXT, true);
        }
    }

    fn push(&mut self, range: Range<usize>, weight: f64, is_code: bool) {
        let (clause, sentence) = (self.clause, self.sentence);
        self.stretches.push(Stretch { range, weight, clause, sentence, is_code, words: 0..0 });
    }

    /// A line of prose: clause by clause, with code spans, addresses and negations told apart.
    fn prose(&mut self, line: Range<usize>) {
        let (mut start, mut at) = (line.start, line.start);
        let message = self.message;
        while let Some(skipped) = until(&message[at..line.end], MARKS, is_wide_mark) {
            at += skipped;
            let Some(c) = message[at..].chars().next() else { break };
            let is_last = || message[at + c.len_utf8()..line.end].chars().next().is_none_or(char::is_whitespace);
            let ends_sentence = matches!(c, '!' | '?' | '。' | '！' | '？')
                || (c == '.' && is_last() && !is_abbreviation(&message[start..at]));
            let ends_clause =
                matches!(c, ',' | ';' | '(' | ')' | '、' | '，' | '；' | '：' | '—') || (c == ':' && is_last());
            if ends_sentence || ends_clause {
                self.clause_of(start..at);
                start = at + c.len_utf8();
                self.clause += 1;
                self.sentence += usize::from(ends_sentence);
            }
            at += c.len_utf8();
        }
        self.clause_of(start..line.end);
    }

    fn clause_of(&mut self, clause: Range<usize>) {
        let text = &self.message[clause.clone()];
        let negated = if self.denies { negated(text) } else { None };
        // Most clauses are plain words: no code, no address, no denial.
        if negated.is_none() && !text.contains(['`', '@', '/', '.']) {
            let start = clause.start + text.len() - text.trim_start().len();
            let end = start + text.trim().len();
            if start < end {
                self.push(start..end, 1.0, false);
            }
            return;
        }
        let first = self.stretches.len();
        let weight = |at: usize| if negated.as_ref().is_some_and(|range| range.contains(&at)) { NEGATED } else { 1.0 };
        let mut at = 0;
        for (index, span) in text.split('`').enumerate() {
            let is_code = index % 2 == 1;
            for word in words(span) {
                let range = clause.start + at + word.start..clause.start + at + word.end;
                if is_address(&self.message[range.clone()]) {
                    continue;
                }
                let base = if is_code { CODE_SPAN } else { 1.0 };
                self.push(range, base * weight(at + word.start), is_code);
            }
            at += span.len() + 1;
        }
        self.join(first);
    }

    /// Neighbours that count alike become one stretch: terms of several words stand across them.
    fn join(&mut self, first: usize) {
        let mut kept = first;
        for place in first..self.stretches.len() {
            let stretch = self.stretches[place].clone();
            match self.stretches[first..kept].last_mut() {
                Some(last)
                    if last.weight == stretch.weight
                        && last.is_code == stretch.is_code
                        && self.message[last.range.end..stretch.range.start].trim().is_empty() =>
                {
                    last.range.end = stretch.range.end;
                }
                _ => {
                    self.stretches[kept] = stretch;
                    kept += 1;
                }
            }
        }
        self.stretches.truncate(kept);
    }

    /// In a long message the sentences that ask for something are what it is about.
    fn weigh_story(&mut self) {
        if self.message.len() < 2 * STORY {
            return;
        }
        let words: usize = self
            .stretches
            .iter()
            .filter(|stretch| stretch.weight > PASTED_TEXT)
            .map(|stretch| self.message[stretch.range.clone()].split_whitespace().count())
            .sum();
        if words < STORY {
            return;
        }
        let last = self.stretches.iter().rev().find(|stretch| stretch.weight != PASTED_TEXT).map(|last| last.sentence);
        let asks: std::collections::BTreeSet<usize> = self
            .stretches
            .iter()
            .filter(|stretch| asks(&self.message[stretch.range.clone()]))
            .map(|stretch| stretch.sentence)
            .chain(last)
            .collect();
        for stretch in &mut self.stretches {
            if stretch.weight > PASTED_TEXT && stretch.sentence > 0 && !asks.contains(&stretch.sentence) {
                stretch.weight *= IN_A_STORY;
            }
        }
    }
}

/// What may end a sentence or a clause.
const MARKS: AsciiSet = set(b"!?.,;():");

fn is_wide_mark(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '、' | '，' | '；' | '：' | '—')
}

fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].find(|c: char| !c.is_whitespace())?;
        let start = at;
        at += text[at..].find(char::is_whitespace).unwrap_or(text.len() - at);
        Some(start..at)
    })
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    matches!(word, "e.g" | "i.e" | "etc" | "vs" | "approx" | "cf" | "No" | "Nr" | "z.B" | "bzw")
}

/// E-mail addresses and links name people and places, not work.
fn is_address(word: &str) -> bool {
    if word.contains("://") || word.starts_with("www.") {
        return true;
    }
    word.split_once('@').is_some_and(|(user, host)| {
        user.ends_with(|c: char| c.is_alphanumeric()) && host.contains('.') && !host.starts_with('.')
    })
}

/// Lines that people paste rather than write: quotes, logs, stack traces, shell sessions.
fn is_pasted(line: &str) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let stamp = line.trim_start_matches(['[', '(']);
    let dated = match digits(stamp) {
        4 => stamp[4..].starts_with('-') && digits(&stamp[5..]) == 2,
        2 => stamp[2..].starts_with(':') && digits(&stamp[3..]) == 2 && stamp[5..].starts_with(':'),
        _ => false,
    };
    dated
        || (begins(&["at "]) && line.contains(['(', ':']) && line.contains('.') && !line.ends_with(['.', '?']))
        || begins(&[
            "> ",
            "$ ",
            "Traceback (",
            "File \"",
            "Caused by: ",
            "npm ERR!",
            "error[E",
            "thread '",
            "goroutine ",
        ])
        || begins(&[
            "ERROR ", "WARN ", "WARNING ", "INFO ", "DEBUG ", "TRACE ", "[ERROR]", "[WARN]", "[INFO]", "E/", "##[",
        ])
        || (begins(&["--> ", "| ", "^"]) && line.len() > 3)
}

/// Whether a stretch asks for something rather than tells of it.
fn asks(text: &str) -> bool {
    const CUES: [&str; 22] = [
        "please",
        "can you",
        "could you",
        "would you",
        "can we",
        "could we",
        "we need",
        "we want",
        "i want",
        "i need",
        "i'd like",
        "should",
        "needs to",
        "make sure",
        "let's",
        "fix ",
        "add ",
        "bitte",
        "por favor",
        "merci de",
        "tell me",
        "find out",
    ];
    let text = text.to_lowercase();
    CUES.iter().any(|cue| text.contains(cue)) || text.starts_with("find") || text.starts_with("write")
}
