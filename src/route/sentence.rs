//! The sentences of a message in a form that patterns read: words in lower case and marks, parted by single blanks, with
//! each member's name as a number: `@3` for `@bea`, `^3` for `Bea`, `~3` for `bea`, `!3` where it is excluded.

use std::ops::Range;

use super::text::{Span, spans};
use crate::model::{Slug, Team};

/// More sentences are a story.
const MOST: usize = 400;
/// The most words of a name.
const LONGEST_NAME: usize = 3;

/// Whom nobody on the team is called: `@?`.
const NOBODY: &str = "?";

/// A message, read once.
pub(super) struct Message<'m> {
    pub(super) text: &'m str,
    pub(super) spans: Vec<Span>,
    pub(super) sentences: Vec<Sentence>,
}

pub(super) struct Sentence {
    pub(super) text: String,
    /// Where each word and mark stands, here and in the message.
    places: Vec<(usize, Range<usize>)>,
}

/// What members are called, by name and by slug.
#[derive(Default)]
pub(super) struct Names {
    /// With the member's place, and whether its name is written with a capital.
    known: Vec<(String, usize, bool)>,
    /// The most words of one.
    longest: usize,
}

impl Names {
    pub(super) fn of(team: &Team) -> Self {
        let names = team.members.iter().enumerate().flat_map(|(place, member)| {
            let is_capital = member.name.starts_with(char::is_uppercase);
            let name = Slug::fold(&member.name).map(|slug| (slug.to_string(), place, is_capital));
            name.into_iter().chain([(member.slug.to_string(), place, is_capital)])
        });
        let known: Vec<(String, usize, bool)> = names.collect();
        let longest = known.iter().map(|(name, ..)| name.split('-').count()).max().unwrap_or(1);
        Self { known, longest: longest.min(LONGEST_NAME) }
    }
}

impl<'m> Message<'m> {
    pub(super) fn read(names: &Names, text: &'m str) -> Self {
        let spans = spans(text);
        let of_sentences = spans.chunk_by(|a, b| a.sentence == b.sentence).take(MOST);
        let sentences = of_sentences.map(|spans| Sentence::read(names, text, spans)).collect();
        Self { text, spans, sentences }
    }
}

impl Sentence {
    fn read(names: &Names, message: &str, spans: &[Span]) -> Self {
        let mut sentence = Self { text: String::new(), places: Vec::new() };
        let mut end = spans.first().map_or(0, |span| span.range.start);
        for span in spans {
            sentence.marks(message, end..span.range.start);
            end = span.range.end;
            if span.is_code {
                sentence.push("`", span.range.clone());
                continue;
            }
            let words = words(message, span.range.clone());
            let mut at = 0;
            let mut before = span.range.start;
            while let Some(word) = words.get(at) {
                sentence.marks(message, before..word.start);
                let of = sentence.name(names, message, &words[at..], span.is_denied).unwrap_or_else(|| {
                    let text = message[word.clone()].to_lowercase().replace('’', "'");
                    sentence.push(&text, word.clone());
                    1
                });
                at += of;
                before = words[at - 1].end;
            }
            sentence.marks(message, before..end);
        }
        let after = message[end..].find(|c: char| !matches!(c, '"' | '”' | ')' | '?' | '!' | '.' | '？' | '！' | '。'));
        sentence.marks(message, end..after.map_or(message.len(), |after| end + after));
        sentence
    }

    /// Adds the member's name that words begin with; the number of these words.
    fn name(&mut self, names: &Names, message: &str, words: &[Range<usize>], is_denied: bool) -> Option<usize> {
        let before = &message[..words[0].start];
        let is_at = before.ends_with('@')
            && !before[..before.len() - 1]
                .ends_with(|c: char| (is_of_word(c) && is_spaced(c)) || matches!(c, '.' | '/' | '@' | '`'))
            && !message[words[0].end..].starts_with(['/', '(', '[']);
        for length in (1..=names.longest.clamp(1, words.len())).rev() {
            let (start, end) = (words[0].start, words[length - 1].end);
            let text = message[start..end].to_lowercase().replace('’', "'");
            let (name, owner) = text.strip_suffix("'s").map_or((text.as_str(), ""), |name| (name, "'s"));
            let name = name.trim_end_matches(['-', '\'']).replace(' ', "-");
            let known = names.known.iter().find(|(known, ..)| *known == name);
            let sign = match (known, is_at, is_denied) {
                (Some(_), true, true) => "!",
                (_, true, _) if known.is_some() || length == 1 => "@",
                (Some((.., true)), _, false) if message[start..].starts_with(char::is_uppercase) => "^",
                (Some(_), _, false) => "~",
                _ => continue,
            };
            let number = known.map_or(NOBODY.to_owned(), |(_, place, _)| place.to_string());
            let shown = if owner.is_empty() { None } else { message[start..end].rfind(['\'', '’']) };
            self.push(&format!("{sign}{number}{owner}"), start..shown.map_or(end, |length| start + length));
            return Some(length);
        }
        None
    }

    fn push(&mut self, token: &str, range: Range<usize>) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.places.push((self.text.len(), range));
        self.text.push_str(token);
    }

    fn marks(&mut self, message: &str, range: Range<usize>) {
        for (at, mark) in message[range.clone()].char_indices() {
            let token = match mark {
                ',' | '，' | '、' => ",",
                ';' | '；' => ";",
                ':' | '：' => ":",
                '—' | '–' | '-' => "—",
                '?' | '？' => "?",
                '!' | '！' => "!",
                '.' | '。' => ".",
                '(' | ')' => "(",
                _ => continue,
            };
            if self.text.is_empty() {
                continue;
            }
            self.push(token, range.start + at..range.start + at + mark.len_utf8());
        }
    }

    /// The range in the message of the words and marks in a range of the sentence.
    pub(super) fn range(&self, range: Range<usize>) -> Range<usize> {
        // A pattern may begin with the blank before a word.
        let first = self.places.iter().rfind(|(at, _)| *at <= range.start + 1).or(self.places.first());
        let last = self.places.iter().rfind(|(at, _)| *at < range.end).or(first);
        let start = first.map_or(0, |(_, place)| place.start);
        start..last.map_or(start, |(_, place)| place.end.max(start))
    }

    /// The text with the words that are names too.
    pub(super) fn plain(&self, message: &str) -> String {
        let ends = self.places.iter().skip(1).map(|(at, _)| at - 1).chain([self.text.len()]);
        let tokens = self.places.iter().zip(ends).map(|((at, place), end)| match &self.text[*at..end] {
            name if name.starts_with(['@', '^', '~', '!']) && name.len() > 1 => message[place.clone()].to_lowercase(),
            word => word.to_owned(),
        });
        tokens.collect::<Vec<_>>().join(" ")
    }

    /// Where something of the message stands here, if it does.
    pub(super) fn find(&self, in_message: usize) -> Option<usize> {
        let end = self.places.last()?.1.end;
        let (at, _) = self.places.iter().find(|(_, place)| in_message < place.end)?;
        (in_message >= self.places.first()?.1.start && in_message < end).then_some(*at)
    }
}

/// The words of a part of a message. In scripts without spaces, a name ends where another script begins.
fn words(message: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let is_joint = |a: char, b: char| is_of_word(a) && is_of_word(b) && is_spaced(a) == is_spaced(b);
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut last = ' ';
    for (at, c) in message[part.clone()].char_indices().filter(|(_, c)| is_of_word(*c)) {
        let (start, end) = (part.start + at, part.start + at + c.len_utf8());
        match words.last_mut().filter(|word| word.end == start && is_joint(last, c)) {
            Some(word) => word.end = end,
            None => words.push(start..end),
        }
        last = c;
    }
    words.retain(|word| message[word.clone()].contains(char::is_alphanumeric));
    words
}

fn is_spaced(c: char) -> bool {
    c < '\u{2e80}'
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '\'' | '’')
}
