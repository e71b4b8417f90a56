//! Whether a message asks for work or for words.
//!
//! An agent that was asked for work and does nothing is not believed, so doubtful messages count as asking for words.

use super::message::{Message, Names, Token, Words};
use crate::model::List;

/// What a wish is about, if that is no person.
fn is_determiner(word: &str) -> bool {
    const WORDS: &str = "the a an our my its this these every each it";
    WORDS.split(' ').any(|it| word.split('\'').next() == Some(it))
}

/// Whether a message asks that something be made, changed, fixed or run.
pub(crate) fn asks_for_work(message: &str) -> bool {
    is_asked_for(&Message::read(&Names::default(), message))
}

/// The same of a message that is read already.
pub(super) fn is_asked_for(message: &Message<'_>) -> bool {
    asked(message).work
}

/// Whether it asks one of several agents for work. A part that asks for words may be that agent's, unless the message
/// says whose it is.
pub(crate) fn asks_each_for_work(message: &str, agent: &str) -> bool {
    let is_its = |part: &&str| part.to_lowercase().strip_prefix(agent).is_some_and(|rest| !rest.starts_with(is_named));
    let own: Vec<String> = message.split('@').skip(1).filter(is_its).map(|part| format!("@{part}")).collect();
    let part = if message.matches('@').count() > 1 && !own.is_empty() { own.join("\n") } else { message.to_owned() };
    let Asked { work, words, .. } = asked(&Message::read(&Names::default(), &part));
    work && !words
}

fn is_named(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// Whether a clause begins by asking for something to be done: `add …`, `then document …`.
pub(super) fn is_order(clause: Words<'_>) -> bool {
    // A verb alone may be a noun in a list.
    let verb = (0..clause.len()).find(|at| !clause.has(List::BeforeVerb, *at));
    verb.is_some_and(|at| clause.has(List::Verb, at) && at + 1 < clause.len())
}

/// Whether a verb means that something is made, changed or run.
pub(super) fn is_work(verb: &str) -> bool {
    let lists = List::of(verb);
    (lists.has(List::Verb) || lists.has(List::Make)) && !(lists.has(List::Tell) || lists.has(List::Look))
}

#[derive(Default)]
struct Asked {
    work: bool,
    words: bool,
    /// It says how something should be.
    wishes: bool,
}

fn asked(message: &Message<'_>) -> Asked {
    let mut asked = Asked::default();
    if message.sentences().any(|sentence| sentence.find(List::NoWork).is_some()) {
        return Asked { words: true, ..asked };
    }
    message.sentences().for_each(|sentence| asked.read(sentence));
    // `Why is it slow? It should not be.` asks a question.
    asked.work |= asked.wishes && !asked.words;
    asked
}

impl Asked {
    fn read(&mut self, sentence: Words<'_>) {
        let asks = sentence.asks();
        let clauses = || sentence.split(Token::is_mark).map(Words);
        // `It is slow, can you fix it?` is an order.
        let is_question = asks && !clauses().any(|clause| Piece::read(clause).is_polite);
        // `Explain how to build, test and deploy it` asks for words, until a `then`.
        let mut may_be_order = true;
        for clause in clauses() {
            let begin = usize::from(clause.word(0) == "and");
            may_be_order |= clause.phrase(List::Next, begin).is_some() || clause.has(List::NextFirst, begin);
            for piece in clause.split(|token| token.text == "and").map(|piece| Piece::read(Words(piece))) {
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
fn is_wish(clause: Words<'_>) -> bool {
    let word = |at: usize| clause.word(at);
    let wishes = |at: &usize| match word(*at) {
        "has" | "have" => word(at + 1) == "to",
        word => matches!(word, "should" | "must" | "shall" | "needs" | "ought"),
    };
    let is_wished = (1..clause.len()).find(wishes).is_some_and(|at| {
        let is_passed = |at: &usize| matches!(word(*at), "to" | "also" | "always" | "now" | "not" | "only");
        let verb = (at + 1..clause.len()).find(|at| !is_passed(at));
        // Not that somebody should say or have a look at something.
        let is_thing =
            (0..at).any(|at| is_determiner(word(at))) && !clause.any(&[List::Everybody, List::Texts], at - 1);
        verb.is_some_and(|verb| is_thing || !(clause.any(&[List::Tell, List::Look], verb) || word(verb) == "have"))
    });
    let is_broken = |at: usize| match word(at) {
        "is" | "are" => word(at + 1 + usize::from(matches!(word(at + 1), "still" | "now"))) == "broken",
        "do" | "does" => word(at + 1) == "not" && word(at + 2) == "work",
        word_here => matches!(word_here, "don't" | "doesn't") && word(at + 1) == "work",
    };
    is_wished || (0..clause.len()).any(is_broken)
}

/// A part of a clause, without what stands before its verb.
struct Piece<'p> {
    words: Words<'p>,
    is_polite: bool,
    is_question: bool,
    /// It says what is needed instead of what to do.
    is_need: bool,
    /// `@ada adds …`
    is_called: bool,
}

impl<'p> Piece<'p> {
    fn read(piece: Words<'p>) -> Self {
        let (mut at, mut is_polite, mut is_called) = (0, false, false);
        while let Some(first) = piece.get(at) {
            if let Some(length) = piece.phrase(List::Polite, at).or_else(|| piece.phrase(List::Wishes, at)) {
                (at, is_polite) = (at + length, true);
            } else if first.is_name() || first.any(&[List::BeforeVerb, List::Polished]) {
                is_called |= first.is_name();
                at += 1;
            } else {
                break;
            }
        }
        let need = piece.phrase(List::Needs, at);
        let words = piece.part(at + need.unwrap_or(0)..piece.len());
        let is_question = !is_polite && words.has(List::Questions, 0);
        Self { words, is_polite, is_question, is_need: need.is_some(), is_called }
    }

    fn verb(&self) -> &'p str {
        let first = self.words.word(0);
        first.strip_suffix('s').filter(|verb| self.is_called && is_work(verb)).unwrap_or(first)
    }

    fn is_order(&self) -> bool {
        let object = self.words.word(1);
        let has_object = (self.words.len() > 1 || self.is_polite) && !matches!(object, "me" | "us");
        // `Get` has many meanings: `get the build green` is work.
        let is_work = is_work(self.verb()) || (self.verb() == "get" && is_determiner(object));
        ((is_work && has_object && !self.is_report()) || (self.is_need && !self.words.is_empty())) && !self.makes_text()
    }

    /// Whether the first word may as well be a noun that something is said of: `Test results are odd`, `Fix for #12 did
    /// not help`, `Run times doubled since March`, `Release notes mention the wrong version`.
    fn is_report(&self) -> bool {
        let [object, second, third] = [1, 2, 3].map(|at| self.words.word(at));
        if self.words.has(List::Finite, 1) {
            return true;
        }
        if is_determiner(object) || self.words.has(List::AfterObject, 1) {
            return false;
        }
        let mut subject = self.words.iter().skip(1).take_while(|word| !word.any(&[List::AfterObject]));
        let is_past = second.ends_with("ed") && !second.ends_with("eed") && !is_work(second);
        let is_name = !self.words.any(&[List::Stop, List::Talk], 2) && !second.ends_with("ing");
        subject.any(|word| word.any(&[List::Finite])) || is_past || (is_name && is_determiner(third))
    }

    fn asks_for_words(&self) -> bool {
        List::Tell.has(self.verb()) || self.makes_text()
    }

    /// `Write a summary of …`; but `a summary page` is work.
    fn makes_text(&self) -> bool {
        let begin = usize::from(!self.is_need);
        let word = |at: usize| self.words.word(at);
        let ends =
            |at: usize| at >= self.words.len() || self.words.has(List::AfterText, at) || word(at).ends_with("ing");
        let is_for_us = matches!(word(begin), "me" | "us") || (self.is_need && word(0) == "to");
        // `Make the list of orders faster`
        let is_bettered = self.verb() == "make" && self.words.last().is_some_and(|last| last.text.ends_with("er"));
        let is_text = || (begin..begin + 5).any(|at| self.words.has(List::Texts, at) && ends(at + 1));
        (self.is_need || List::Making.has(self.verb())) && (is_for_us || (!is_bettered && is_text()))
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
        let is_order = |text: &str| {
            let message = Message::read(&Names::default(), text);
            message.sentences().next().is_some_and(is_order)
        };
        for order in ["add a page", "then document it", "please fix the build", "and also write tests"] {
            assert!(is_order(order), "{order}");
        }
        for other in ["the page is slow", "rotate", "it adds a page", "with the list", "charts the rows", ""] {
            assert!(!is_order(other), "{other}");
        }
    }
}
