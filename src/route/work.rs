//! Whether a message asks for work or for words.
//!
//! An agent that was asked for work and does nothing is not believed, so doubtful messages count as asking for words.

use super::message::{Message, Names};
use crate::model::List;

/// What ends a clause.
const MARKS: [char; 5] = [',', ';', ':', '(', '—'];

/// What a wish is about, if that is no person.
fn is_determiner(word: &str) -> bool {
    const WORDS: &str = "the a an our my its this these every each it";
    WORDS.split(' ').any(|it| word.split('\'').next() == Some(it))
}

/// Whether a message asks that something be made, changed, fixed or run.
pub(crate) fn asks_for_work(message: &str) -> bool {
    asked(message).work
}

/// Whether it asks one of several agents for work. A part that asks for words may be that agent's, unless the message
/// says whose it is.
pub(crate) fn asks_each_for_work(message: &str, agent: &str) -> bool {
    let is_its = |part: &&str| part.to_lowercase().strip_prefix(agent).is_some_and(|rest| !rest.starts_with(is_named));
    let own: Vec<String> = message.split('@').skip(1).filter(is_its).map(|part| format!("@{part}")).collect();
    let part = if message.matches('@').count() > 1 && !own.is_empty() { own.join("\n") } else { message.to_owned() };
    let Asked { work, words, .. } = asked(&part);
    work && !words
}

fn is_named(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// Whether a clause begins by asking for something to be done: `add …`, `then document …`.
pub(super) fn is_order(clause: &str) -> bool {
    // A verb alone may be a noun in a list.
    let mut words = clause.split(' ').filter(|word| !word.is_empty());
    words.find(|word| !List::BeforeVerb.has(word)).is_some_and(|verb| List::Verb.has(verb)) && words.next().is_some()
}

/// Whether a verb means that something is made, changed or run.
pub(super) fn is_work(verb: &str) -> bool {
    List::any(&[List::Verb, List::Make], verb) && !List::any(&[List::Tell, List::Look], verb)
}

#[derive(Default)]
struct Asked {
    work: bool,
    words: bool,
    /// It says how something should be.
    wishes: bool,
}

fn asked(message: &str) -> Asked {
    let mut asked = Asked::default();
    let message = message.to_lowercase().replace('’', "'");
    if List::NoWork.find(&message).is_some() {
        return Asked { words: true, ..asked };
    }
    for sentence in Message::read(&Names::default(), &message).sentences() {
        asked.read(&sentence.text(0..sentence.tokens.len()));
    }
    // `Why is it slow? It should not be.` asks a question.
    asked.work |= asked.wishes && !asked.words;
    asked
}

impl Asked {
    fn read(&mut self, sentence: &str) {
        let asks = sentence.ends_with(" ?");
        let sentence = sentence.trim_end_matches([' ', '?', '!', '.']);
        // `It is slow, can you fix it?` is an order.
        let is_question = asks && !sentence.split(MARKS).any(|clause| Piece::read(clause).is_polite);
        // `Explain how to build, test and deploy it` asks for words, until a `then`.
        let mut may_be_order = true;
        for clause in sentence.split(MARKS) {
            let begins = clause.trim_start().trim_start_matches("and ");
            may_be_order |= List::Next.begins(begins).or_else(|| List::NextFirst.begins(begins)).is_some();
            for piece in clause.split(" and ").map(Piece::read) {
                let is_order = piece.is_order();
                let asks_words = is_question || piece.is_question || (!is_order && piece.asks_for_words());
                may_be_order &= !asks_words;
                self.words |= asks_words;
                self.work |= is_order && may_be_order;
                self.wishes |= !asks && !piece.is_question && is_wish(clause);
            }
        }
    }
}

/// `It should always be …`, `users must be able to …`, `it is still broken`
fn is_wish(clause: &str) -> bool {
    let words: Vec<&str> = clause.split(' ').filter(|word| !word.is_empty()).collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let wishes = |at: &usize| match word(*at) {
        "has" | "have" => word(at + 1) == "to",
        word => matches!(word, "should" | "must" | "shall" | "needs" | "ought"),
    };
    let is_wished = (1..words.len()).find(wishes).is_some_and(|at| {
        let mut after = words[at + 1..].iter();
        let verb = after.find(|word| !matches!(**word, "to" | "also" | "always" | "now" | "not" | "only"));
        // Not that somebody should say or have a look at something.
        let is_thing = words[..at].iter().any(|word| is_determiner(word))
            && !List::any(&[List::Everybody, List::Texts], words[at - 1]);
        verb.is_some_and(|verb| is_thing || !(List::any(&[List::Tell, List::Look], verb) || *verb == "have"))
    });
    let is_broken = |at: usize| match word(at) {
        "is" | "are" => word(at + 1 + usize::from(matches!(word(at + 1), "still" | "now"))) == "broken",
        "do" | "does" => word(at + 1) == "not" && word(at + 2) == "work",
        word_here => matches!(word_here, "don't" | "doesn't") && word(at + 1) == "work",
    };
    is_wished || (0..words.len()).any(is_broken)
}

/// A part of a clause, without what stands before its verb.
struct Piece<'p> {
    words: Vec<&'p str>,
    is_polite: bool,
    is_question: bool,
    /// It says what is needed instead of what to do.
    is_need: bool,
    /// `@ada adds …`
    is_called: bool,
}

impl<'p> Piece<'p> {
    fn read(piece: &'p str) -> Self {
        let (mut rest, mut is_polite, mut is_called) = (piece, false, false);
        loop {
            rest = rest.trim_start();
            let first = rest.split(' ').next().unwrap_or_default();
            if let Some(after) = List::Polite.begins(rest).or_else(|| List::Wishes.begins(rest)) {
                (rest, is_polite) = (after, true);
            } else if first.starts_with('@') || List::any(&[List::BeforeVerb, List::Polished], first) {
                is_called |= first.starts_with('@');
                rest = &rest[first.len()..];
            } else {
                break;
            }
        }
        let need = List::Needs.begins(rest);
        let words: Vec<&str> = need.unwrap_or(rest).split_whitespace().collect();
        let is_question = !is_polite && words.first().is_some_and(|word| List::Questions.has(word));
        Self { words, is_polite, is_question, is_need: need.is_some(), is_called }
    }

    fn word(&self, place: usize) -> &'p str {
        self.words.get(place).copied().unwrap_or_default()
    }

    fn verb(&self) -> &'p str {
        let first = self.word(0);
        first.strip_suffix('s').filter(|verb| self.is_called && is_work(verb)).unwrap_or(first)
    }

    fn is_order(&self) -> bool {
        let object = self.word(1);
        let has_object = (!object.is_empty() || self.is_polite) && !matches!(object, "me" | "us");
        // `Get` has many meanings: `get the build green` is work.
        let is_work = is_work(self.verb()) || (self.verb() == "get" && is_determiner(object));
        ((is_work && has_object && !self.is_report()) || (self.is_need && !self.words.is_empty())) && !self.makes_text()
    }

    /// Whether the first word may as well be a noun that something is said of: `Test results are odd`, `Fix for #12 did
    /// not help`, `Run times doubled since March`, `Release notes mention the wrong version`.
    fn is_report(&self) -> bool {
        let [object, second, third] = [1, 2, 3].map(|place| self.word(place));
        if List::Finite.has(object) {
            return true;
        }
        if is_determiner(object) || List::AfterObject.has(object) {
            return false;
        }
        let mut subject = self.words.iter().skip(1).take_while(|word| !List::AfterObject.has(word));
        let is_past = second.ends_with("ed") && !second.ends_with("eed") && !is_work(second);
        let is_name = |word: &str| !List::any(&[List::Stop, List::Talk], word) && !word.ends_with("ing");
        subject.any(|word| List::Finite.has(word)) || is_past || (is_name(second) && is_determiner(third))
    }

    fn asks_for_words(&self) -> bool {
        List::Tell.has(self.verb()) || self.makes_text()
    }

    /// `Write a summary of …`; but `a summary page` is work.
    fn makes_text(&self) -> bool {
        let begins = usize::from(!self.is_need);
        let ends = |word: &str| word.is_empty() || List::AfterText.has(word) || word.ends_with("ing");
        let is_text = |place: usize| List::Texts.has(self.word(place)) && ends(self.word(place + 1));
        let is_for_us = matches!(self.word(begins), "me" | "us") || (self.is_need && self.word(0) == "to");
        // `Make the list of orders faster`
        let is_bettered = self.verb() == "make" && self.words.last().is_some_and(|word| word.ends_with("er"));
        let is_text = || !is_bettered && (begins..begins + 5).any(is_text);
        (self.is_need || List::Making.has(self.verb())) && (is_for_us || is_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_wishes_ask_for_work_and_doubtful_messages_do_not() {
        let lines: Vec<&str> = include_str!("../../fixtures/asks_for_work.txt").lines().skip(1).collect();
        let is_wrong = |line: &&&str| asks_for_work(&line[2..]) != line.starts_with('+');
        assert_eq!(lines.iter().filter(is_wrong).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn each_of_several_agents_is_asked_for_its_part() {
        let message = "@lea plans the import, then @bea adds it and @tim writes tests";
        assert_eq!(["lea", "bea", "tim"].map(|agent| asks_each_for_work(message, agent)), [false, true, true]);
        let message = "@ada adds the page, @ada-b explains it and @ada2 says why";
        assert_eq!(["ada", "ada-b", "ada2"].map(|agent| asks_each_for_work(message, agent)), [true, false, false]);
        assert!(asks_each_for_work("Add the import page and its tests", "bea"));
        assert!(!asks_each_for_work("Plan the import, then add it", "bea"));
    }

    #[test]
    fn orders_begin_with_verbs_that_have_an_object() {
        for order in ["add a page", "then document it", "please fix the build", "and also write tests"] {
            assert!(is_order(order), "{order}");
        }
        for other in ["the page is slow", "rotate", "it adds a page", "with the list", "charts the rows", ""] {
            assert!(!is_order(other), "{other}");
        }
    }
}
