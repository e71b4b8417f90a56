//! Splits a message into spans: the user's own words, quotes, template text, and what the user excludes.

use std::ops::Range;

use super::denial::negated;
use crate::model::List;

/// Of longer messages, only the beginning and the end are read; the middle is usually pasted.
const BEGINNING: usize = 24 * 1024;
const END: usize = 8 * 1024;
/// At most this much pasted text is read.
const PASTED: usize = 4 * 1024;

/// The weight of a word by the kind of text it is in.
const CODE_SPAN: f64 = 0.8;
const PASTED_TEXT: f64 = 0.2;
/// Template text such as headings and check boxes means almost nothing, and sections for versions or steps mean little.
const SCAFFOLD: f64 = 0.05;
const IN_A_SIDE_SECTION: f64 = 0.15;
/// The owner of excluded code is slightly less likely to be meant.
const NEGATED: f64 = -0.3;
/// From this weight on, a span is the user's own text.
pub(super) const OWN: f64 = 0.5;

/// A piece of a message whose words have the same weight.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    pub(super) weight: f64,
    /// Clauses and sentences are numbered through the message.
    pub(super) clause: usize,
    pub(super) sentence: usize,
    pub(super) is_code: bool,
}

/// Splits a message into spans.
pub(super) fn spans(message: &str) -> Vec<Span> {
    let mut reader = Reader { message, section: 1.0, ..Reader::default() };
    for part in parts(message) {
        reader.lines(part);
    }
    if !reader.spans.iter().any(|span| span.weight >= OWN) {
        // Some people write only headings and check boxes.
        reader.spans.iter_mut().filter(|span| span.weight == SCAFFOLD).for_each(|span| {
            (span.weight, span.is_code) = (1.0, false);
        });
    }
    reader.spans
}

/// The sentences that the user wrote, with their punctuation.
pub(super) fn sentences<'m>(message: &'m str, spans: &'m [Span]) -> impl Iterator<Item = &'m str> {
    spans.chunk_by(|a, b| a.sentence == b.sentence).filter_map(move |sentence| {
        let (first, last) = (sentence.first()?, sentence.last()?);
        let end = last.range.end;
        let marks = message[end..].find(|c: char| !matches!(c, '"' | '”' | ')' | '?' | '!' | '.' | '？' | '！'));
        (first.weight >= OWN).then(|| &message[first.range.start..marks.map_or(message.len(), |marks| end + marks)])
    })
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
        while let Some((comment, length)) = message[start..end].find("<!--").and_then(|comment| {
            let length = message[start + comment..end].find("-->")?;
            Some((comment, length + "-->".len()))
        }) {
            parts.push(start..start + comment);
            start += comment + length;
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
    pasted: usize,
    clause: usize,
    sentence: usize,
    /// The weight of words in the current section.
    section: f64,
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
                (None, None) if self.is_scaffold(text, range.start) => self.push(range, SCAFFOLD, true),
                (None, None) => self.prose(range),
            }
            self.sentence += 1;
            self.clause += 1;
        }
    }

    /// Whether a line belongs to a template: a heading, a bold line, a check box, or a placeholder sentence.
    fn is_scaffold(&mut self, line: &str, at: usize) -> bool {
        let bold = line.strip_prefix("**").and_then(|rest| rest.trim_end_matches([':', ' ']).strip_suffix("**"));
        let title = line.trim_start_matches('#');
        let heading = (title.len() < line.len() && title.starts_with(' ')).then_some(title);
        if let Some(heading) = heading.or(bold.filter(|bold| !bold.contains("**"))) {
            let heading = heading.to_lowercase();
            let is_side = List::Side.find(&heading).is_some();
            self.section = if is_side { IN_A_SIDE_SECTION } else { 1.0 };
            // A `# Title` that begins the message is the user's.
            return !(line.starts_with("# ") && self.message[..at].trim().is_empty());
        }
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        let item = item.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['.', ' ']);
        let box_at = ["[ ]", "[x]", "[X]"].iter().any(|mark| item.starts_with(mark));
        box_at || List::Placeholder.begins(&item.to_lowercase()).is_some() || item.contains("[e.g.")
    }

    fn paste(&mut self, range: Range<usize>) {
        if self.pasted < PASTED {
            let end = self.message.floor_char_boundary(range.end.min(range.start + PASTED - self.pasted));
            self.pasted += end - range.start;
            self.push(range.start..end, PASTED_TEXT * self.section, true);
        }
    }

    fn push(&mut self, range: Range<usize>, weight: f64, is_code: bool) {
        let (clause, sentence) = (self.clause, self.sentence);
        self.spans.push(Span { range, weight, clause, sentence, is_code });
    }

    /// Splits a line of prose into clauses, and these into code, addresses and negations.
    fn prose(&mut self, line: Range<usize>) {
        let (mut start, mut begins) = (line.start, self.spans.len());
        let message = self.message;
        for (offset, mark) in message[line.clone()].match_indices(MARKS) {
            let (at, after) = (line.start + offset, line.start + offset + mark.len());
            // Not in `config.toml`, `12:30`.
            if matches!(mark, "." | ":") && !message[after..line.end].chars().next().is_none_or(char::is_whitespace) {
                continue;
            }
            self.clause_of(start..at);
            start = after;
            self.clause += 1;
            if matches!(mark, "!" | "?" | "." | "。" | "！" | "？") {
                self.sentence += 1;
                self.drop_courtesy(begins);
                begins = self.spans.len();
            }
        }
        self.clause_of(start..line.end);
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

    fn clause_of(&mut self, clause: Range<usize>) {
        let text = &self.message[clause.clone()];
        let negated = negated(&text.to_ascii_lowercase());
        let first = self.spans.len();
        let weight = |at: usize| if negated.as_ref().is_some_and(|range| range.contains(&at)) { NEGATED } else { 1.0 };
        for (index, piece) in text.split('`').enumerate() {
            let is_code = index % 2 == 1;
            for word in piece.split_whitespace().filter(|word| !is_address(word)) {
                let start = word.as_ptr() as usize - self.message.as_ptr() as usize;
                let base = if is_code { CODE_SPAN } else { 1.0 };
                let weight = base * self.section * weight(start - clause.start);
                self.extend(first, start..start + word.len(), weight, is_code);
            }
        }
    }

    /// Adds a word of a clause. Neighbors of the same weight become one span, so that terms of several words are found.
    fn extend(&mut self, first: usize, range: Range<usize>, weight: f64, is_code: bool) {
        match self.spans[first..].last_mut() {
            Some(last)
                if last.weight == weight
                    && last.is_code == is_code
                    && self.message[last.range.end..range.start].trim().is_empty() =>
            {
                last.range.end = range.end;
            }
            _ => self.push(range, weight, is_code),
        }
    }
}

/// Characters that may end a sentence or a clause.
const MARKS: [char; 16] = ['!', '?', '.', ',', ';', '(', ')', ':', '。', '！', '？', '、', '，', '；', '：', '—'];

/// E-mail addresses and links do not describe work.
fn is_address(word: &str) -> bool {
    if word.contains("://") || word.starts_with("www.") {
        return true;
    }
    word.split_once('@').is_some_and(|(user, host)| {
        user.ends_with(|c: char| c.is_alphanumeric()) && host.contains('.') && !host.starts_with('.')
    })
}

fn is_courtesy(clause: &str) -> bool {
    const TALK: [List; 5] = [List::Greeting, List::Thanks, List::Addressed, List::Pleasant, List::Courtesy];
    let mut words = clause.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    words.all(|word| List::any(&TALK, &word.to_lowercase()))
}

/// Whether a line looks pasted: a quote, a log, a stack trace, a shell session.
fn is_pasted(line: &str) -> bool {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let stamp = line.trim_start_matches(['[', '(']);
    let dated = match digits(stamp) {
        4 => stamp[4..].starts_with('-') && digits(&stamp[5..]) == 2,
        2 => stamp[2..].starts_with(':') && digits(&stamp[3..]) == 2 && stamp[5..].starts_with(':'),
        _ => false,
    };
    let is_frame = line.starts_with("at ") && line.contains(['(', ':']) && line.contains('.');
    dated
        || (is_frame && !line.ends_with(['.', '?']))
        || ["> ", "$ ", "--> ", "| "].iter().any(|start| line.starts_with(start))
        || List::Paste.begins(line).is_some()
}
