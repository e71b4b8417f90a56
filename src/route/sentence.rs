//! The sentences of a message in a form that patterns read: words in lower case and marks, parted by single blanks, with
//! each member's name as a number: `@3` for `@bea`, `^3` for `Bea`, `~3` for `bea`, `!3` where it is excluded.

use std::collections::HashMap;
use std::ops::Range;

use super::text::{Span, spans};
use crate::model::{Slug, Team};

/// More sentences are a story.
const MOST: usize = 400;
/// The most words of a name.
const LONGEST_NAME: usize = 3;

// A word or a mark. In scripts without spaces, a name ends where another script begins.
pattern!(
    TOKEN,
    r"[\w'’\-&&[^\u{2e80}-\u{10ffff}]]*[\w&&[^\u{2e80}-\u{10ffff}]][\w'’\-&&[^\u{2e80}-\u{10ffff}]]*|[\w&&[\u{2e80}-\u{10ffff}]]+|[,，、;；:：—–\-?？!！.。()]"
);

/// A message, read once.
pub(super) struct Message<'m> {
    pub(super) text: &'m str,
    pub(super) spans: Vec<Span>,
    pub(super) sentences: Vec<Sentence>,
}

#[derive(Default)]
pub(super) struct Sentence {
    pub(super) text: String,
    pub(super) has_names: bool,
    /// Where each word and mark stands, here and in the message.
    places: Vec<(usize, Range<usize>)>,
}

/// What members are called, by name and by slug: with the member's place, and whether its name begins with a capital.
#[derive(Default)]
pub(super) struct Names(HashMap<String, (usize, bool)>);

impl Names {
    pub(super) fn of(team: &Team) -> Self {
        // The first of two with one name is meant.
        let names = team.members.iter().enumerate().rev().flat_map(|(place, member)| {
            let is_capital = member.name.starts_with(char::is_uppercase);
            let slugs = Slug::fold(&member.name).into_iter().chain([member.slug.clone()]);
            slugs.map(move |slug| (slug.to_string(), (place, is_capital)))
        });
        Self(names.collect())
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
        let mut sentence = Self::default();
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return sentence };
        let (start, end) = (first.range.start, last.range.end);
        let closes = |c: char| matches!(c, '"' | '”' | ')' | '?' | '!' | '.' | '？' | '！' | '。');
        let end = message[end..].find(|c| !closes(c)).map_or(message.len(), |after| end + after);
        let tokens = TOKEN.find_iter(&message[start..end]).map(|token| start + token.start()..start + token.end());
        let tokens: Vec<Range<usize>> = tokens.collect();
        let (mut at, mut spans) = (0, spans.iter().peekable());
        while let Some(token) = tokens.get(at) {
            while spans.next_if(|span| span.range.end <= token.start).is_some() {}
            let span = spans.peek().filter(|span| span.range.contains(&token.start));
            at += match (mark(&message[token.clone()]), span) {
                (_, Some(span)) if span.is_code => {
                    sentence.push("`", span.range.clone());
                    tokens[at..].iter().take_while(|token| token.start < span.range.end).count()
                }
                (Some(mark), _) => {
                    // What a sentence begins with ends nothing.
                    if !sentence.text.is_empty() {
                        sentence.push(mark, token.clone());
                    }
                    1
                }
                (None, Some(span)) => sentence.name(names, message, &tokens[at..], span).unwrap_or_else(|| {
                    sentence.push(&lower(&message[token.clone()]), token.clone());
                    1
                }),
                (None, None) => 1,
            };
        }
        sentence
    }

    /// Adds the member's name that words begin with; the number of these words.
    fn name(&mut self, names: &Names, message: &str, words: &[Range<usize>], span: &Span) -> Option<usize> {
        let (before, start) = (&message[..words[0].start], words[0].start);
        let is_joined =
            |c: char| (c.is_alphanumeric() && c < '\u{2e80}') || matches!(c, '-' | '_' | '.' | '/' | '@' | '`');
        let is_at = before.strip_suffix('@').is_some_and(|before| !before.ends_with(is_joined))
            && !message[words[0].end..].starts_with(['/', '(', '[']);
        let is_in_span = |word: &&Range<usize>| word.end <= span.range.end;
        let most = words.iter().take(LONGEST_NAME).take_while(is_in_span).count();
        for length in (1..=most).rev() {
            let end = words[length - 1].end;
            let text = lower(&message[start..end]);
            let name = text.strip_suffix("'s");
            let called = name.unwrap_or(&text).trim_end_matches(['-', '\'']).replace(' ', "-");
            let known = names.0.get(&called);
            let sign = match (known, is_at, span.is_denied) {
                (Some(_), true, true) => '!',
                (_, true, _) if known.is_some() || length == 1 => '@',
                (Some((_, true)), _, false) if message[start..].starts_with(char::is_uppercase) => '^',
                (Some(_), _, false) => '~',
                _ => continue,
            };
            // Whom nobody on the team is called: `@?`.
            let number = known.map_or("?".to_owned(), |(place, _)| place.to_string());
            let shown = name.and_then(|_| message[start..end].rfind(['\'', '’'])).map_or(end, |length| start + length);
            self.push(&format!("{sign}{number}{}", if name.is_some() { "'s" } else { "" }), start..shown);
            self.has_names = true;
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
        let tokens = self.text.split(' ').zip(&self.places).map(|(token, (_, place))| match token {
            name if name.starts_with(['@', '^', '~', '!']) && name.len() > 1 => message[place.clone()].to_lowercase(),
            word => word.to_owned(),
        });
        tokens.collect::<Vec<_>>().join(" ")
    }

    /// Where something of the message stands here, if it does.
    pub(super) fn find(&self, in_message: usize) -> Option<usize> {
        let (at, _) = self.places.iter().find(|(_, place)| in_message < place.end)?;
        (in_message >= self.places.first()?.1.start).then_some(*at)
    }
}

fn lower(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

/// A mark of any script as patterns read it.
fn mark(token: &str) -> Option<&'static str> {
    Some(match token {
        "," | "，" | "、" => ",",
        ";" | "；" => ";",
        ":" | "：" => ":",
        "—" | "–" | "-" => "—",
        "?" | "？" => "?",
        "!" | "！" => "!",
        "." | "。" => ".",
        "(" | ")" => "(",
        _ => return None,
    })
}
