//! The user's own words in a message: without templates, quotes, pasted text, links and courtesies.

use std::ops::Range;

use crate::model::List;

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
    let mut reader = Reader { message, ..Reader::default() };
    reader.read();
    if reader.spans.is_empty() {
        // Some people write only headings and check boxes.
        reader = Reader { message, reads_templates: true, ..Reader::default() };
        reader.read();
    }
    reader.spans
}

/// The number of bytes of a message that are not read.
pub(super) fn unread(message: &str) -> usize {
    message.len().saturating_sub(BEGINNING + END)
}

/// The beginning and the end of a message, without HTML comments.
fn parts(message: &str) -> Vec<Range<usize>> {
    let all = message.len();
    let middle = match unread(message) {
        0 => all..all,
        _ => message.floor_char_boundary(BEGINNING)..message.floor_char_boundary(all - END),
    };
    let mut parts = Vec::new();
    for (mut start, end) in [(0, middle.start), (middle.end, all)] {
        let comment = |start: usize| {
            let from = start + message[start..end].find("<!--")?;
            Some((from, from + message[from..end].find("-->")? + "-->".len()))
        };
        while let Some((from, to)) = comment(start) {
            parts.push(start..from);
            start = to;
        }
        parts.push(start..end);
    }
    parts
}

#[derive(Default)]
struct Reader<'m> {
    message: &'m str,
    spans: Vec<Span>,
    fence: Option<&'m str>,
    clause: usize,
    sentence: usize,
    reads_templates: bool,
    /// In a section for versions, logs or steps.
    is_beside: bool,
}

impl<'m> Reader<'m> {
    fn read(&mut self) {
        for part in parts(self.message) {
            for line in self.message[part].split_inclusive('\n') {
                let start = line.as_ptr() as usize - self.message.as_ptr() as usize;
                self.line(line.trim(), start..start + line.len());
                (self.sentence, self.clause) = (self.sentence + 1, self.clause + 1);
            }
        }
    }

    fn line(&mut self, text: &str, range: Range<usize>) {
        let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
        match (self.fence, mark) {
            (None, Some(_)) => self.fence = mark,
            (Some(open), Some(mark)) if open == mark => self.fence = None,
            (Some(_), _) => {}
            (None, None) if self.reads_templates => self.prose(range),
            (None, None) => {
                if !PASTED.is_match(text) && !self.is_template(text, range.start) && !self.is_beside {
                    self.prose(range);
                }
            }
        }
    }

    /// Whether a line belongs to a template.
    fn is_template(&mut self, line: &str, at: usize) -> bool {
        if HEADING.is_match(line) {
            self.is_beside = List::Side.find(&line.to_lowercase()).is_some();
            // A `# Title` that begins the message is the user's.
            return !(line.starts_with("# ") && self.message[..at].trim().is_empty());
        }
        FORM.is_match(line)
    }

    /// Splits a line of prose into clauses, and these into words, code and denials.
    fn prose(&mut self, line: Range<usize>) {
        let (mut start, mut begins) = (line.start, self.spans.len());
        let message = self.message;
        for (offset, mark) in message[line.clone()].match_indices(MARKS) {
            let (at, after) = (line.start + offset, line.start + offset + mark.len());
            // Not in `config.toml`, `12:30`.
            if matches!(mark, "." | ":") && !message[after..line.end].chars().next().is_none_or(char::is_whitespace) {
                continue;
            }
            self.clause(start..at);
            start = after;
            self.clause += 1;
            if matches!(mark, "!" | "?" | "." | "。" | "！" | "？") {
                self.sentence += 1;
                self.drop_courtesy(begins);
                begins = self.spans.len();
            }
        }
        self.clause(start..line.end);
        self.drop_courtesy(begins);
    }

    /// Drops greetings, thanks and phrases such as `could you have a look at this?`.
    fn drop_courtesy(&mut self, begins: usize) {
        let is_courtesy = |span: &Span| is_courtesy(&self.message[span.range.clone()]);
        if self.spans[begins..].iter().all(is_courtesy) {
            self.spans.truncate(begins);
        } else if self.spans.get(begins).is_some_and(is_courtesy) {
            self.spans.remove(begins);
        }
    }

    fn clause(&mut self, clause: Range<usize>) {
        let text = &self.message[clause.clone()];
        let denied = denied(&text.to_ascii_lowercase());
        let first = self.spans.len();
        for (index, piece) in text.split('`').enumerate() {
            let is_code = index % 2 == 1;
            for word in piece.split_whitespace().filter(|word| !is_address(word)) {
                let start = word.as_ptr() as usize - self.message.as_ptr() as usize;
                let is_denied = denied.as_ref().is_some_and(|range| range.contains(&(start - clause.start)));
                let last = self.spans[first..].last_mut().filter(|last| {
                    (last.is_denied, last.is_code) == (is_denied, is_code)
                        && self.message[last.range.end..start].trim().is_empty()
                });
                let range = start..start + word.len();
                match last {
                    // Terms of several words are found in one span.
                    Some(last) => last.range.end = range.end,
                    None => {
                        let (clause, sentence) = (self.clause, self.sentence);
                        self.spans.push(Span { range, is_denied, clause, sentence, is_code });
                    }
                }
            }
        }
    }
}

/// Characters that may end a sentence or a clause.
const MARKS: [char; 16] = ['!', '?', '.', ',', ';', '(', ')', ':', '。', '！', '？', '、', '，', '；', '：', '—'];

/// The part of a lower-case clause that excludes work.
fn denied(clause: &str) -> Option<Range<usize>> {
    let start = clause.len() - clause.trim_start().len();
    let mut head = clause.trim();
    while let Some((_, rest)) =
        head.split_once(' ').filter(|(word, _)| matches!(*word, "please" | "and" | "also" | "so"))
    {
        head = rest;
    }
    let is_short = head.split_whitespace().count() <= SHORT;
    // `no new tests`, but not `no idea why`.
    let next = head.strip_prefix("no ").and_then(|rest| rest.split_whitespace().next());
    let begins = List::DenyBegins.begins(head).is_some()
        || (is_short && List::DenyShort.begins(head).is_some())
        || next.is_some_and(|next| !List::NotDenied.has(next));
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
