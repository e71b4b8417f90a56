//! A message, read once: the user's own words, without templates, quotes, pasted text and courtesies.
//!
//! It becomes tokens in clauses and sentences. Calls, orders, reviews, what is asked for and what speaks for whom are all
//! read from these.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, Range};

use foldhash::fast::FixedState;

use super::stems::is_between;
use crate::model::{List, Membership, Slug, Team};

/// Of longer messages, only the beginning and the end are read; the middle is usually pasted.
const BEGINNING: usize = 24 * 1024;
const END: usize = 8 * 1024;
/// Longer clauses describe how something should be, whatever they begin with.
const SHORT: usize = 7;
/// The most words of a name.
const LONGEST_NAME: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Word,
    Mark,
    Name,
    Code,
}

#[derive(Clone, Debug)]
pub(super) struct Token<'m> {
    /// In lower case. Of a mark of any script the Latin one, a `` ` `` of code, and of a name how it is written: `@` for
    /// `@bea`, `^` for `Bea`, `~` for `bea`, `!` where it is excluded.
    pub(super) text: Cow<'m, str>,
    lists: Membership,
    pub(super) kind: Kind,
    /// Where it stands in the message.
    pub(super) place: Range<usize>,
    /// The place in the team of the member with this name, if anybody has it.
    pub(super) member: Option<usize>,
    /// `Bea's`
    pub(super) is_possessive: bool,
    /// The user excludes what it speaks of: `don't touch the docs`.
    pub(super) is_denied: bool,
    /// Clauses and sentences are numbered through the message.
    pub(super) clause: usize,
    pub(super) sentence: usize,
}

impl Token<'_> {
    pub(super) fn is_mark(&self) -> bool {
        self.kind == Kind::Mark
    }

    pub(super) fn is_name(&self) -> bool {
        self.kind == Kind::Name
    }

    pub(super) fn any(&self, lists: &[List]) -> bool {
        lists.iter().any(|list| self.lists.has(*list))
    }
}

/// Some tokens of one sentence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'w>(pub(super) &'w [Token<'w>]);

impl<'w> Deref for Words<'w> {
    type Target = [Token<'w>];

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl<'w> Words<'w> {
    /// A word or mark; empty for a name and where there is none.
    pub(super) fn word(&self, at: usize) -> &'w str {
        self.0.get(at).filter(|token| !token.is_name()).map_or("", |token| &token.text)
    }

    pub(super) fn has(&self, list: List, at: usize) -> bool {
        self.any(&[list], at)
    }

    pub(super) fn any(&self, lists: &[List], at: usize) -> bool {
        self.get(at).is_some_and(|token| token.any(lists))
    }

    /// The number of words of a list's longest phrase that begins at a token.
    pub(super) fn phrase(&self, list: List, at: usize) -> Option<usize> {
        self.get(at).filter(|token| token.lists.has_phrase(list))?;
        list.length((at..self.len()).map(|at| self.word(at)))
    }

    pub(super) fn asks(&self) -> bool {
        self.last().is_some_and(|last| last.text == "?")
    }

    /// Where the first of a list's phrases begins.
    pub(super) fn find(&self, list: List) -> Option<usize> {
        (0..self.len()).find(|at| self.phrase(list, *at).is_some())
    }

    pub(super) fn part(&self, range: Range<usize>) -> Self {
        Self(self.0.get(range).unwrap_or_default())
    }

    /// Where the names end that are joined from a token on, as in `Bea, @fay and Tess`.
    pub(super) fn names_end(&self, start: usize, is_meant: impl Fn(&Token<'_>) -> bool) -> usize {
        let (mut end, mut next) = (start, start);
        while self.get(next).is_some_and(|token| token.is_name() && is_meant(token)) {
            end = next + 1;
            next = end + usize::from(self.word(end) == ",");
            next += usize::from(matches!(self.word(next), "and" | "or"));
        }
        end
    }

    /// Where the tokens stand in the message.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        let tokens = self.part(range);
        tokens.first().map_or(0, |token| token.place.start)..tokens.last().map_or(0, |token| token.place.end)
    }

    /// The token that stands at a place of the message, or the next.
    pub(super) fn at(&self, in_message: usize) -> Option<usize> {
        let begins = self.first().is_some_and(|first| first.place.start <= in_message);
        self.iter().position(|token| in_message < token.place.end).filter(|_| begins)
    }
}

/// What members are called, by name and by slug: with the member's place, and whether its name begins with a capital.
#[derive(Default)]
pub(super) struct Names {
    all: HashMap<String, (usize, bool)>,
    /// Their first words.
    begin: HashSet<String, FixedState>,
}

impl Names {
    pub(super) fn of(team: &Team) -> Self {
        let mut names = Self::default();
        // The first of two with one name is meant.
        for (place, member) in team.members.iter().enumerate().rev() {
            for slug in Slug::fold(&member.name).iter().chain([&member.slug]) {
                names.begin.extend(slug.as_str().split('-').next().map(str::to_owned));
                names.all.insert(slug.to_string(), (place, member.name.starts_with(char::is_uppercase)));
            }
        }
        names
    }

    /// Whether a name may begin with a word in lower case.
    pub(super) fn may_begin(&self, word: &str) -> bool {
        let first = word.split(['-', '\'']).next().unwrap_or(word);
        !word.is_ascii() || self.begin.contains(first)
    }

    /// The place of the member that a word in lower case names.
    pub(super) fn place(&self, word: &str) -> Option<usize> {
        self.all.get(word).map(|(place, _)| *place)
    }
}

#[derive(Clone)]
pub(super) struct Message<'m> {
    pub(super) text: &'m str,
    pub(super) tokens: Vec<Token<'m>>,
}

impl<'m> Message<'m> {
    pub(super) fn read(names: &Names, text: &'m str) -> Self {
        let tokens = Vec::with_capacity(text.len().min(BEGINNING + END) / 5);
        let mut reader = Reader { names, text, tokens, clause: 0, sentence: 0 };
        reader.lines(false);
        if reader.tokens.is_empty() {
            // Some people write only headings and check boxes.
            reader.lines(true);
        }
        Self { text, tokens: reader.tokens }
    }

    pub(super) fn sentences(&self) -> impl Iterator<Item = Words<'_>> {
        self.tokens.chunk_by(|a, b| a.sentence == b.sentence).map(Words)
    }

    /// Those that name members.
    pub(super) fn naming(&self) -> impl Iterator<Item = Words<'_>> {
        self.sentences().filter(|sentence| sentence.iter().any(Token::is_name))
    }

    /// The message without some places.
    pub(super) fn without(&self, places: &[Range<usize>]) -> Self {
        let is_kept = |token: &&Token<'_>| !places.iter().any(|place| place.contains(&token.place.start));
        Self { text: self.text, tokens: self.tokens.iter().filter(is_kept).cloned().collect() }
    }
}

/// The number of bytes of a message that are not read.
pub(super) fn unread(message: &str) -> usize {
    message.len().saturating_sub(BEGINNING + END)
}

struct Reader<'n, 'm> {
    names: &'n Names,
    text: &'m str,
    tokens: Vec<Token<'m>>,
    clause: usize,
    sentence: usize,
}

impl<'m> Reader<'_, 'm> {
    fn lines(&mut self, reads_templates: bool) {
        let all = self.text.len();
        let (beginning, end) = match unread(self.text) {
            0 => (all, all),
            _ => (self.text.floor_char_boundary(BEGINNING), self.text.floor_char_boundary(all - END)),
        };
        // In a section for versions, logs or steps.
        let (mut fence, mut is_beside) = (None, false);
        let parts = [&self.text[..beginning], &self.text[end..]];
        // Without HTML comments.
        let uncommented = |part: &'m str| part.split_once("-->").map_or(part, |(_, rest)| rest);
        let parts = parts.into_iter().flat_map(|part| part.split("<!--").enumerate());
        let parts = parts.map(|(place, part)| if place > 0 { uncommented(part) } else { part });
        for line in parts.flat_map(str::lines) {
            let text = line.trim();
            let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
            // A `# Title` that begins the message is the user's.
            let is_title = text.starts_with("# ") && self.tokens.is_empty();
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
        let (mut sentence, mut clause, mut rest) = (self.tokens.len(), self.tokens.len(), line);
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            if c == ' ' {
                rest = after;
                continue;
            }
            let is_last = after.chars().next().is_none_or(char::is_whitespace);
            let mark = match c {
                ',' | '，' | '、' => ",",
                ';' | '；' => ";",
                ':' | '：' => ":",
                '—' | '–' => "—",
                '-' if is_last => "—",
                '?' | '？' => "?",
                '!' | '！' => "!",
                '.' | '。' => ".",
                '(' | ')' => "(",
                _ => "",
            };
            let (length, kind) = match c {
                '`' if after.contains('`') => (2 + after.find('`').unwrap_or_default(), Kind::Code),
                _ => (word(rest), Kind::Word),
            };
            if length > 0 {
                let text = if kind == Kind::Code { Cow::Borrowed("`") } else { lower(&rest[..length]) };
                self.push(text, kind, rest, length);
                rest = &rest[length..];
                continue;
            }
            // What a sentence begins with ends nothing.
            if !mark.is_empty() && self.tokens.len() > sentence {
                self.push(Cow::Borrowed(mark), Kind::Mark, rest, c.len_utf8());
            }
            rest = after;
            let is_end = matches!(c, '!' | '?' | '。' | '！' | '？') || (c == '.' && is_last);
            // Not in `12:30`.
            if is_end || !(matches!(c, '.' | '-' | '–') || mark.is_empty() || (c == ':' && !is_last)) {
                clause = self.end_clause(clause);
            }
            if is_end {
                sentence = self.end_sentence(sentence);
                clause = sentence;
            }
        }
        self.end_clause(clause);
        self.end_sentence(sentence);
    }

    fn push(&mut self, text: Cow<'m, str>, kind: Kind, rest: &'m str, length: usize) {
        let start = rest.as_ptr() as usize - self.text.as_ptr() as usize;
        let lists = if kind == Kind::Word { List::of(&text) } else { Membership::default() };
        let (member, clause, sentence) = (None, self.clause, self.sentence);
        let place = start..start + length;
        let (is_possessive, is_denied) = (false, false);
        self.tokens.push(Token { text, lists, kind, place, member, is_possessive, is_denied, clause, sentence });
    }

    /// Finds what a clause denies and whom it names. Where the next one begins.
    fn end_clause(&mut self, begin: usize) -> usize {
        let denied = denied(Words(&self.tokens[begin..])).unwrap_or_default();
        self.tokens[begin..][denied].iter_mut().for_each(|token| token.is_denied = true);
        let mut at = begin;
        while at < self.tokens.len() {
            if let Some((name, length)) = self.name(at) {
                self.tokens.splice(at..at + length, [name]);
            }
            at += 1;
        }
        self.clause += 1;
        at
    }

    /// Drops greetings, thanks and phrases such as `could you have a look at this?`. Where the next sentence begins.
    fn end_sentence(&mut self, begin: usize) -> usize {
        const TALK: [List; 5] = [List::Greeting, List::Thanks, List::Addressed, List::Pleasant, List::Courtesy];
        if let Some(first) = self.tokens.get(begin).map(|token| token.clause) {
            let is_first = |token: &&Token<'_>| token.clause == first;
            let all = self.tokens[begin..].iter().take_while(is_first).count();
            if self.tokens[begin..begin + all].iter().all(|token| token.is_mark() || token.any(&TALK)) {
                self.tokens.drain(begin..begin + all);
            }
        }
        self.sentence += 1;
        self.tokens.len()
    }

    /// The name that begins at a token, and of how many tokens it is.
    fn name(&self, at: usize) -> Option<(Token<'m>, usize)> {
        let first = &self.tokens[at];
        let start = first.place.start;
        let is_at = self.text[..start].ends_with('@')
            && !self.text[..start - 1].ends_with(is_joined)
            && !self.text[first.place.end..].starts_with(['/', '(', '[']);
        if first.kind != Kind::Word || !(is_at || self.names.may_begin(&first.text)) || first.text.contains('/') {
            return None;
        }
        let words = self.tokens[at..].iter().take(LONGEST_NAME).take_while(|token| token.kind == Kind::Word);
        (1..=words.count()).rev().find_map(|length| {
            let end = self.tokens[at + length - 1].place.end;
            let text = lower(&self.text[start..end]);
            let name = text.strip_suffix("'s");
            let called = name.unwrap_or(&text).replace(' ', "-");
            let known = self.names.all.get(&called);
            let sign = match (known, is_at, first.is_denied) {
                (Some(_), true, true) => "!",
                (_, true, _) if known.is_some() || length == 1 => "@",
                (Some((_, true)), _, false) if self.text[start..].starts_with(char::is_uppercase) => "^",
                (Some(_), _, false) => "~",
                _ => return None,
            };
            let shown =
                name.and_then(|_| self.text[start..end].rfind(['\'', '’'])).map_or(end, |length| start + length);
            let (member, is_possessive) = (known.map(|(place, _)| *place), name.is_some());
            let (text, lists, place) = (Cow::Borrowed(sign), Membership::default(), start..shown);
            Some((Token { text, lists, kind: Kind::Name, place, member, is_possessive, ..first.clone() }, length))
        })
    }
}

/// The length of the word or identifier that a text begins with. In scripts without spaces, a word ends where another
/// script begins.
fn word(text: &str) -> usize {
    let plain = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    if plain > 0 && matches!(text.as_bytes().get(plain), None | Some(b' ' | b',' | b')' | b'?' | b'!')) {
        return plain;
    }
    let begins = |c: char| c.is_alphanumeric() || c == '_';
    let is_wide = |c: char| c >= '\u{2e80}';
    let Some(first) = text.chars().next().filter(|c| begins(*c) || matches!(c, '/' | '.' | '#')) else { return 0 };
    let run = text.find(|c| is_between(c) || is_wide(c) || matches!(c, '!' | '?' | '—')).unwrap_or(text.len());
    let run = text[..run].trim_end_matches(|c: char| !begins(c) && !matches!(c, '+' | '#'));
    if run.contains(['.', '\\']) || run.contains("::") || run.matches('/').count() > 1 {
        return run.len();
    }
    // `#12`, `C#` and `C++` too.
    let is_of_it = |c: char| match is_wide(first) {
        true => is_wide(c) && begins(c),
        false => !is_wide(c) && (begins(c) || matches!(c, '\'' | '’' | '-' | '+' | '#' | '\u{300}'..='\u{36f}')),
    };
    let length = text.find(|c| !is_of_it(c)).unwrap_or(text.len());
    let word = text[..length].trim_end_matches(['\'', '’', '-']);
    if word.contains(begins) { word.len() } else { 0 }
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

/// The part of a clause that excludes work.
fn denied(clause: Words<'_>) -> Option<Range<usize>> {
    let clause = clause.part(0..clause.iter().rposition(|token| !token.is_mark())? + 1);
    // `no new tests`, but not `no idea why`.
    let begins = clause.phrase(List::DenyBegins, 0).is_some()
        || (clause.word(0) == "no" && clause.len() > 1 && !clause.has(List::NotDenied, 1))
        || (clause.phrase(List::DenyShort, 0).is_some() && clause.len() <= SHORT);
    let from = if begins { 0 } else { clause.find(List::Deny)? };
    // `everything but the docs`: this one ends nothing. In `don't touch anything but the docs` it does.
    let is_all_but =
        begins && (from..clause.len()).any(|at| clause.word(at).ends_with("thing") && clause.word(at + 1) == "but");
    let after = from + if is_all_but { 2 } else { 1 };
    let end = (after..clause.len() - 1).find(|at| clause.has(List::DenyEnds, *at));
    Some(from..end.unwrap_or(clause.len()))
}

fn is_joined(c: char) -> bool {
    (c.is_alphanumeric() && c < '\u{2e80}') || matches!(c, '-' | '_' | '.' | '/' | '@' | '`')
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.to_lowercase().replace('’', "'"))
}
