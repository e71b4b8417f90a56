//! A message, read once: the user's own words, without templates, quotes, pasted text, links and courtesies.
//!
//! They stand as spans for the ranking, and where members are named or several work, as sentences of tokens.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::FixedState;

use crate::model::{List, Slug, Team};

/// Of longer messages, only the beginning and the end are read; the middle is usually pasted.
const BEGINNING: usize = 24 * 1024;
const END: usize = 8 * 1024;
/// Longer clauses describe how something should be, whatever they begin with.
const SHORT: usize = 7;
/// More sentences are a story.
const SENTENCES: usize = 400;
/// The most words of a name.
const LONGEST_NAME: usize = 3;

/// A piece of the user's own text.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    /// The user excludes what it speaks of: `don't touch the docs`.
    pub(super) is_denied: bool,
    /// Clauses and sentences are numbered through the message.
    pub(super) clause: usize,
    pub(super) sentence: usize,
    is_code: bool,
}

pub(super) struct Message<'m> {
    names: &'m Names,
    pub(super) text: &'m str,
    pub(super) spans: Vec<Span>,
    /// Whether any of its words may be a member's name.
    pub(super) may_name: bool,
    sentences: OnceCell<Vec<Sentence>>,
}

#[derive(Default)]
pub(super) struct Sentence {
    pub(super) tokens: Vec<Token>,
    has_names: bool,
}

/// A word in lower case, a mark, a member's name, or code.
#[derive(Debug)]
pub(super) struct Token {
    /// Of a name how it is written: `@` for `@bea`, `^` for `Bea`, `~` for `bea`, `!` where it is excluded. A `` ` `` for
    /// code.
    pub(super) text: String,
    /// Where it stands in the message.
    pub(super) place: Range<usize>,
    pub(super) is_name: bool,
    /// The place in the team of the member with this name, if anybody has it.
    pub(super) member: Option<usize>,
    /// `Bea's`
    pub(super) is_possessive: bool,
}

/// What members are called, by name and by slug: with the member's place, and whether its name begins with a capital.
#[derive(Default)]
pub(super) struct Names {
    all: HashMap<String, (usize, bool)>,
    /// How their first words begin.
    begin: HashSet<u64, FixedState>,
}

impl Names {
    pub(super) fn of(team: &Team) -> Self {
        let mut names = Self::default();
        // The first of two with one name is meant.
        for (place, member) in team.members.iter().enumerate().rev() {
            for slug in Slug::fold(&member.name).iter().chain([&member.slug]) {
                names.begin.extend(slug.as_str().split('-').next().map(beginning));
                names.all.insert(slug.to_string(), (place, member.name.starts_with(char::is_uppercase)));
            }
        }
        names
    }

    /// Whether a name may begin in a word.
    pub(super) fn may_be_in(&self, word: &str) -> bool {
        let mut parts = word.split(|c: char| !c.is_ascii_alphanumeric());
        !word.is_ascii() || word.contains('@') || parts.any(|part| self.begin.contains(&beginning(part)))
    }

    /// The place of the member that a word in lower case names.
    pub(super) fn place(&self, word: &str) -> Option<usize> {
        self.all.get(word).map(|(place, _)| *place)
    }
}

/// The first letters of a word as a number.
fn beginning(word: &str) -> u64 {
    word.bytes().take(8).fold(0, |number, byte| (number << 8) | u64::from(byte.to_ascii_lowercase()))
}

impl<'m> Message<'m> {
    pub(super) fn read(names: &'m Names, text: &'m str) -> Self {
        let mut reader = Reader { message: text, spans: Vec::new(), clause: 0, sentence: 0 };
        reader.lines(false);
        if reader.spans.is_empty() {
            // Some people write only headings and check boxes.
            reader.lines(true);
        }
        let spans = reader.spans;
        let mut words = spans.iter().flat_map(|span| text[span.range.clone()].split_whitespace());
        let may_name = words.any(|word| names.may_be_in(word));
        Self { names, text, spans, may_name, sentences: OnceCell::new() }
    }

    fn of_sentences(&self) -> impl Iterator<Item = &[Span]> {
        self.spans.chunk_by(|a, b| a.sentence == b.sentence).take(SENTENCES)
    }

    pub(super) fn sentences(&self) -> &[Sentence] {
        let read = |spans| Sentence::read(self.names, self.text, spans);
        self.sentences.get_or_init(|| self.of_sentences().map(read).collect())
    }

    /// Those that name members.
    pub(super) fn naming(&self) -> impl Iterator<Item = &Sentence> {
        let sentences = if self.may_name { self.sentences() } else { &[] };
        sentences.iter().filter(|sentence| sentence.has_names)
    }

    /// Its first sentences in lower case, with their ends.
    pub(super) fn plain(&self, most: usize) -> Vec<String> {
        let plain = |spans: &[Span]| match spans {
            [first, ..] => {
                self.text[first.range.start..sentence_end(self.text, spans)].to_lowercase().replace('’', "'")
            }
            [] => String::new(),
        };
        self.of_sentences().take(most).map(plain).collect()
    }
}

/// The number of bytes of a message that are not read.
pub(super) fn unread(message: &str) -> usize {
    message.len().saturating_sub(BEGINNING + END)
}

struct Reader<'m> {
    message: &'m str,
    spans: Vec<Span>,
    clause: usize,
    sentence: usize,
}

impl<'m> Reader<'m> {
    fn lines(&mut self, reads_templates: bool) {
        let all = self.message.len();
        let (beginning, end) = match unread(self.message) {
            0 => (all, all),
            _ => (self.message.floor_char_boundary(BEGINNING), self.message.floor_char_boundary(all - END)),
        };
        // In a section for versions, logs or steps.
        let (mut fence, mut is_beside) = (None, false);
        let parts = [&self.message[..beginning], &self.message[end..]];
        // Without HTML comments.
        let uncommented = |part: &'m str| match part.split_once("-->") {
            Some((_, rest)) => rest,
            None => part,
        };
        let parts = parts.into_iter().flat_map(|part| part.split("<!--").enumerate());
        let parts = parts.map(|(place, part)| if place > 0 { uncommented(part) } else { part });
        for line in parts.flat_map(str::lines) {
            let text = line.trim();
            let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
            // A `# Title` that begins the message is the user's.
            let is_title = text.starts_with("# ") && self.spans.is_empty();
            if mark.is_some() || fence.is_some() {
                fence = if fence.is_none() || fence == mark { mark.filter(|_| fence.is_none()) } else { fence };
            } else if reads_templates {
                self.line(line);
            } else if !is_title && is_heading(text) {
                is_beside = List::Side.find(&text.to_lowercase()).is_some();
            } else if !is_beside && !is_form(text) && !is_pasted(text) {
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: &'m str) {
        let (mut start, mut begins) = (0, self.spans.len());
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            let ends_sentence = match c {
                // Not in `config.toml` and `12:30`.
                '.' | ':' if !line[end..].chars().next().is_none_or(char::is_whitespace) => continue,
                '.' | '!' | '?' | '。' | '！' | '？' => true,
                ':' | ',' | ';' | '(' | ')' | '、' | '，' | '；' | '：' | '—' => false,
                _ => continue,
            };
            self.clause(&line[start..at]);
            start = end;
            if ends_sentence {
                begins = self.end_sentence(begins);
            }
        }
        self.clause(&line[start..]);
        self.end_sentence(begins);
    }

    /// Drops greetings, thanks and phrases such as `could you have a look at this?`. Where the next sentence begins.
    fn end_sentence(&mut self, begins: usize) -> usize {
        let is_courtesy = |span: &Span| is_courtesy(&self.message[span.range.clone()]);
        if self.spans.get(begins).is_some_and(is_courtesy) {
            self.spans.remove(begins);
        }
        self.sentence += 1;
        self.spans.len()
    }

    /// Splits a clause into spans of words, of code and of what is denied.
    fn clause(&mut self, clause: &'m str) {
        let offset = |part: &str| part.as_ptr() as usize - self.message.as_ptr() as usize;
        let (first, trimmed) = (self.spans.len(), clause.trim());
        if trimmed.is_empty() {
            return;
        }
        let (start, denied) = (offset(clause), denied(&clause.to_ascii_lowercase()).unwrap_or_default());
        if denied.is_empty() && !trimmed.contains('`') {
            let range = offset(trimmed)..offset(trimmed) + trimmed.len();
            let (clause, sentence) = (self.clause, self.sentence);
            self.spans.push(Span { range, is_denied: false, clause, sentence, is_code: false });
            self.clause += 1;
            return;
        }
        for (index, piece) in clause.split('`').enumerate() {
            for word in piece.split_whitespace() {
                let range = offset(word)..offset(word) + word.len();
                let (is_denied, is_code) = (denied.contains(&(range.start - start)), index % 2 == 1);
                let continues = |last: &&mut Span| {
                    (last.is_denied, last.is_code) == (is_denied, is_code)
                        && self.message[last.range.end..range.start].trim().is_empty()
                };
                match self.spans[first..].last_mut().filter(continues) {
                    // Terms of several words are found in one span.
                    Some(last) => last.range.end = range.end,
                    None => self.spans.push(Span {
                        range,
                        is_denied,
                        clause: self.clause,
                        sentence: self.sentence,
                        is_code,
                    }),
                }
            }
        }
        self.clause += 1;
    }
}

fn is_heading(line: &str) -> bool {
    let bold = line.strip_prefix("**").map(|rest| rest.trim_end_matches([':', ' ']));
    let is_bold = bold.and_then(|rest| rest.strip_suffix("**")).is_some_and(|bold| !bold.contains('*'));
    is_bold || line.trim_start_matches('#').starts_with(' ') && line.starts_with('#')
}

/// A check box, or what a form says where people write.
fn is_form(line: &str) -> bool {
    let text = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '+' | '.' | ' '));
    let is_box = ["[ ]", "[x]", "[X]"].iter().any(|mark| text.starts_with(mark));
    is_box || (text.contains('[') && text.contains("[e.g.")) || List::Form.begins(&text.to_lowercase()).is_some()
}

/// A quote, a log, a shell session or a stack trace: `at Page.render (page.js:1:2)`, but not `at last: it works.`
fn is_pasted(line: &str) -> bool {
    const BEGIN: &str = "> ;| ;$ ;--> ;Traceback (;File \";Caused by:;npm ERR!;error[E;thread ';E/;##[";
    const LEVELS: &str = "ERROR WARN WARNING INFO DEBUG TRACE";
    let text = line.strip_prefix(['[', '(']).unwrap_or(line);
    let is_like = |shape: &str| {
        let of_shape = |(c, shape): (u8, u8)| c == shape || (shape == b'0' && c.is_ascii_digit());
        text.len() >= shape.len() && text.bytes().zip(shape.bytes()).all(of_shape)
    };
    let level = text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let place = line.strip_prefix("at ").and_then(|rest| rest.split(' ').next());
    BEGIN.split(';').any(|begin| line.starts_with(begin))
        || is_like("0000-00")
        || is_like("00:00:")
        || LEVELS.split(' ').any(|it| it == level)
        || place.is_some_and(|place| place.contains(['.', '(', ':']) && !line.ends_with(['.', '?']))
}

/// The part of a lower-case clause that excludes work.
fn denied(clause: &str) -> Option<Range<usize>> {
    let head = clause.trim_start();
    let start = clause.len() - head.len();
    // `no new tests`, but not `no idea why`.
    let next = head.strip_prefix("no ").and_then(|rest| rest.split_whitespace().next());
    let begins = List::DenyBegins.begins(head).is_some()
        || next.is_some_and(|next| !List::NotDenied.has(next))
        || (List::DenyShort.begins(head).is_some() && head.split_whitespace().count() <= SHORT);
    let from = if begins { start } else { List::Deny.find(clause)? };
    // `everything but the docs`: this one ends nothing. In `don't touch anything but the docs` it does.
    let after = from + if clause[from..].contains("thing but") && begins { "everything but".len() } else { 1 };
    let rest = clause.get(after..).unwrap_or_default();
    let end = List::DenyEnds.entries().iter().filter_map(|word| Some(after + rest.find(&format!(" {word} "))?)).min();
    Some(from..end.unwrap_or(clause.len()))
}

fn is_courtesy(clause: &str) -> bool {
    const TALK: [List; 5] = [List::Greeting, List::Thanks, List::Addressed, List::Pleasant, List::Courtesy];
    let mut words = clause.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    words.all(|word| List::any(&TALK, &word.to_lowercase()))
}

impl Sentence {
    fn read(names: &Names, message: &str, spans: &[Span]) -> Self {
        let mut sentence = Self::default();
        let Some(first) = spans.first() else { return sentence };
        let (mut at, end) = (first.range.start, sentence_end(message, spans));
        let mut spans = spans.iter().peekable();
        while let Some((mark, place)) = next_token(message, at, end) {
            at = place.end;
            while spans.next_if(|span| span.range.end <= place.start).is_some() {}
            let span = spans.peek().filter(|span| span.range.contains(&place.start));
            let token = match (mark, span) {
                (_, Some(span)) if span.is_code => Token::new("`", span.range.clone()),
                // What a sentence begins with ends nothing.
                (Some(mark), _) if !sentence.tokens.is_empty() => Token::new(mark, place),
                (None, Some(span)) => names.find(message, &place, span).unwrap_or_else(|| {
                    let text = lower(&message[place.clone()]);
                    Token::new(&text, place)
                }),
                _ => continue,
            };
            (at, sentence.has_names) = (at.max(token.place.end), sentence.has_names || token.is_name);
            sentence.tokens.push(token);
        }
        sentence
    }

    /// A word or mark; empty for a name and where there is none.
    pub(super) fn word(&self, at: usize) -> &str {
        self.tokens.get(at).filter(|token| !token.is_name).map_or("", |token| &token.text)
    }

    pub(super) fn text(&self, range: Range<usize>) -> String {
        let tokens = self.tokens.get(range).unwrap_or_default().iter().map(|token| token.text.as_str());
        tokens.collect::<Vec<_>>().join(" ")
    }

    /// The range in the message of some tokens.
    pub(super) fn range(&self, range: Range<usize>) -> Range<usize> {
        let tokens = self.tokens.get(range).unwrap_or_default();
        let start = tokens.first().map_or(0, |token| token.place.start);
        start..tokens.last().map_or(start, |token| token.place.end)
    }

    /// The token that stands at a place of the message, or the next.
    pub(super) fn find(&self, in_message: usize) -> Option<usize> {
        let begins = self.tokens.first().is_some_and(|first| first.place.start <= in_message);
        self.tokens.iter().position(|token| in_message < token.place.end).filter(|_| begins)
    }

    /// The names from a token on, joined as in `Bea, @fay and Tess`: where they end.
    pub(super) fn names_end(&self, start: usize) -> usize {
        let is_name = |at: usize| self.tokens.get(at).is_some_and(Token::is_plain_name);
        let mut end = start;
        let mut next = start;
        while is_name(next) {
            end = next + 1;
            next = end + usize::from(self.word(end) == ",");
            next += usize::from(matches!(self.word(next), "and" | "or"));
        }
        end
    }
}

impl Token {
    fn new(text: &str, place: Range<usize>) -> Self {
        Self { text: text.to_owned(), place, is_name: false, member: None, is_possessive: false }
    }

    pub(super) fn is_mark(&self) -> bool {
        matches!(self.text.as_str(), "," | ";" | ":" | "(" | "." | "!" | "?" | "—") && !self.is_name
    }

    /// A name that is neither excluded nor possessive.
    pub(super) fn is_plain_name(&self) -> bool {
        self.is_name && !self.is_possessive && self.text != "!"
    }
}

impl Names {
    /// The name that a word begins.
    fn find(&self, message: &str, word: &Range<usize>, span: &Span) -> Option<Token> {
        let (before, start) = (&message[..word.start], word.start);
        let is_at = before.ends_with('@')
            && !before[..start - 1].ends_with(is_joined)
            && !message[word.end..].starts_with(['/', '(', '[']);
        if !is_at && !self.may_be_in(&message[word.clone()]) {
            return None;
        }
        let mut ends = vec![word.end];
        while ends.len() < LONGEST_NAME {
            match next_token(message, ends[ends.len() - 1], span.range.end) {
                Some((None, next)) => ends.push(next.end),
                _ => break,
            }
        }
        ends.into_iter().enumerate().rev().find_map(|(length, end)| {
            let text = lower(&message[start..end]);
            let name = text.strip_suffix("'s");
            let called = name.unwrap_or(&text).trim_end_matches(['-', '\'']).replace(' ', "-");
            let known = self.all.get(&called);
            let sign = match (known, is_at, span.is_denied) {
                (Some(_), true, true) => "!",
                (_, true, _) if known.is_some() || length == 0 => "@",
                (Some((_, true)), _, false) if message[start..].starts_with(char::is_uppercase) => "^",
                (Some(_), _, false) => "~",
                _ => return None,
            };
            let shown = name.and_then(|_| message[start..end].rfind(['\'', '’'])).map_or(end, |length| start + length);
            let (member, is_possessive) = (known.map(|(place, _)| *place), name.is_some());
            Some(Token { is_name: true, member, is_possessive, ..Token::new(sign, start..shown) })
        })
    }
}

/// The end of a sentence of some spans, with its marks.
fn sentence_end(message: &str, spans: &[Span]) -> usize {
    let closes = |c: char| matches!(c, '"' | '”' | ')' | '?' | '!' | '.' | '？' | '！' | '。');
    let last = spans.last().map_or(0, |last| last.range.end);
    message[last..].find(|c| !closes(c)).map_or(message.len(), |after| last + after)
}

/// The next word or mark of a text; a mark of any script with how patterns read it. In scripts without spaces, a name
/// ends where another script begins.
fn next_token(text: &str, from: usize, end: usize) -> Option<(Option<&'static str>, Range<usize>)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = from;
    while let Some(c) = text[at..end].chars().next() {
        let rest = &text[at..end];
        let is_wide = c >= '\u{2e80}' && is_word(c);
        let is_of_it = |c: char| match is_wide {
            true => c >= '\u{2e80}' && is_word(c),
            false => c < '\u{2e80}' && (is_word(c) || matches!(c, '\'' | '’' | '-' | '\u{300}'..='\u{36f}')),
        };
        let length = rest.find(|c| !is_of_it(c)).unwrap_or(rest.len());
        if rest[..length].contains(is_word) {
            return Some((None, at..at + length));
        }
        let mark = match c {
            ',' | '，' | '、' => ",",
            ';' | '；' => ";",
            ':' | '：' => ":",
            '—' | '–' | '-' => "—",
            '?' | '？' => "?",
            '!' | '！' => "!",
            '.' | '。' => ".",
            '(' | ')' => "(",
            _ => "",
        };
        if !mark.is_empty() {
            return Some((Some(mark), at..at + c.len_utf8()));
        }
        at += c.len_utf8();
    }
    None
}

fn is_joined(c: char) -> bool {
    (c.is_alphanumeric() && c < '\u{2e80}') || matches!(c, '-' | '_' | '.' | '/' | '@' | '`')
}

fn lower(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}
