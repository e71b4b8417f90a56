//! The user's own words in a message: without templates, quotes, pasted text, links and courtesies.

use std::ops::Range;

use crate::model::List;

pattern!(COMMENT, r"(?s)<!--.*?-->");
pattern!(HEADING, r"^(#+ |\*\*[^*]+\*\*[: ]*$)");
// A check box, or what a form says where people write.
pattern!(
    FORM,
    r"(?i)^[-*+.\d ]*(\[[ x]\]|.*\[e\.g\.|_no response_|a clear and concise description|if applicable|add any other context|steps to reproduce the behavior|go to '\.\.\.'|click on '\.\.\.|scroll down to '|see error)"
);
// A quote, a log, a stack trace, a shell session.
pattern!(
    PASTED,
    r#"^(> |\$ |--> |\| |[\[(]?(\d{4}-\d\d|\d\d:\d\d:)|at \S*[.(:].*[^.?]$|Traceback \(|File "|Caused by:|npm ERR!|error\[E|thread '|\[?(ERROR|WARN|WARNING|INFO|DEBUG|TRACE)\b|E/|##\[)"#
);
// The end of a sentence or a clause, but not in `config.toml` and `12:30`.
pattern!(MARK, r"[!?,;()。！？、，；：—]|[.:](?:\s|$)");
pattern!(BEFORE_DENIAL, r"^\s*(?:(?:please|and|also|so) +)*");

/// Of longer messages, only the beginning and the end are read; the middle is usually pasted.
const BEGINNING: usize = 24 * 1024;
const END: usize = 8 * 1024;
/// Longer clauses describe how something should be, whatever they begin with.
const SHORT: usize = 7;

/// A piece of the user's own text.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    /// The user excludes what it speaks of: `don't touch the docs`.
    pub(super) is_denied: bool,
    /// Clauses and sentences are numbered through the message.
    pub(super) clause: usize,
    pub(super) sentence: usize,
    pub(super) is_code: bool,
}

/// Splits a message into spans.
pub(super) fn spans(message: &str) -> Vec<Span> {
    let own = Reader::read(message, false);
    // Some people write only headings and check boxes.
    if own.is_empty() { Reader::read(message, true) } else { own }
}

/// The number of bytes of a message that are not read.
pub(super) fn unread(message: &str) -> usize {
    message.len().saturating_sub(BEGINNING + END)
}

/// The beginning and the end of a message, without HTML comments.
fn parts(message: &str) -> impl Iterator<Item = &str> {
    let all = message.len();
    let (beginning, end) = match unread(message) {
        0 => (all, all),
        _ => (message.floor_char_boundary(BEGINNING), message.floor_char_boundary(all - END)),
    };
    [&message[..beginning], &message[end..]].into_iter().flat_map(|part| COMMENT.split(part))
}

struct Reader<'m> {
    message: &'m str,
    spans: Vec<Span>,
    clause: usize,
    sentence: usize,
}

impl<'m> Reader<'m> {
    fn read(message: &'m str, reads_templates: bool) -> Vec<Span> {
        let mut reader = Self { message, spans: Vec::new(), clause: 0, sentence: 0 };
        // In a section for versions, logs or steps.
        let (mut fence, mut is_beside) = (None, false);
        for line in parts(message).flat_map(str::lines) {
            let text = line.trim();
            let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
            // A `# Title` that begins the message is the user's.
            let is_heading =
                |text: &str| HEADING.is_match(text) && !(text.starts_with("# ") && reader.spans.is_empty());
            if mark.is_some() || fence.is_some() {
                fence = if fence.is_none() || fence == mark { mark.filter(|_| fence.is_none()) } else { fence };
            } else if reads_templates {
                reader.line(line);
            } else if is_heading(text) {
                is_beside = List::Side.find(&text.to_lowercase()).is_some();
            } else if !is_beside && !FORM.is_match(text) && !PASTED.is_match(text) {
                reader.line(line);
            }
        }
        reader.spans
    }

    fn offset(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.message.as_ptr() as usize
    }

    fn line(&mut self, line: &'m str) {
        let (mut start, mut begins) = (0, self.spans.len());
        for mark in MARK.find_iter(line) {
            self.clause(&line[start..mark.start()]);
            start = mark.end();
            if mark.as_str().starts_with(['!', '?', '.', '。', '！', '？']) {
                begins = self.end_sentence(begins);
            }
        }
        self.clause(&line[start..]);
        self.end_sentence(begins);
    }

    /// Drops greetings, thanks and phrases such as `could you have a look at this?`. Where the next sentence begins.
    fn end_sentence(&mut self, begins: usize) -> usize {
        let is_courtesy = |span: &Span| is_courtesy(&self.message[span.range.clone()]);
        if self.spans[begins..].iter().all(is_courtesy) {
            self.spans.truncate(begins);
        } else if self.spans.get(begins).is_some_and(is_courtesy) {
            self.spans.remove(begins);
        }
        self.sentence += 1;
        self.spans.len()
    }

    /// Splits a clause into spans of words, of code and of what is denied.
    fn clause(&mut self, clause: &'m str) {
        let denied = denied(&clause.to_ascii_lowercase());
        let first = self.spans.len();
        for (index, piece) in clause.split('`').enumerate() {
            for word in piece.split_whitespace().filter(|word| !is_address(word)) {
                let start = self.offset(word);
                let span = Span {
                    range: start..start + word.len(),
                    is_denied: denied.as_ref().is_some_and(|range| range.contains(&(start - self.offset(clause)))),
                    clause: self.clause,
                    sentence: self.sentence,
                    is_code: index % 2 == 1,
                };
                let continues = |last: &&mut Span| {
                    (last.is_denied, last.is_code) == (span.is_denied, span.is_code)
                        && self.message[last.range.end..start].trim().is_empty()
                };
                match self.spans[first..].last_mut().filter(continues) {
                    // Terms of several words are found in one span.
                    Some(last) => last.range.end = span.range.end,
                    None => self.spans.push(span),
                }
            }
        }
        self.clause += 1;
    }
}

/// The part of a lower-case clause that excludes work.
fn denied(clause: &str) -> Option<Range<usize>> {
    let start = BEFORE_DENIAL.find(clause).map_or(0, |found| found.end());
    let head = &clause[start..];
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

/// E-mail addresses and links do not describe work.
fn is_address(word: &str) -> bool {
    let is_mail = |(user, host): (&str, &str)| {
        user.ends_with(|c: char| c.is_alphanumeric()) && host.contains('.') && !host.starts_with('.')
    };
    word.contains("://") || word.starts_with("www.") || word.split_once('@').is_some_and(is_mail)
}

fn is_courtesy(clause: &str) -> bool {
    const TALK: [List; 5] = [List::Greeting, List::Thanks, List::Addressed, List::Pleasant, List::Courtesy];
    let mut words = clause.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    words.all(|word| List::any(&TALK, &word.to_lowercase()))
}
