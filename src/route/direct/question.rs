//! Recognizes questions that the team's files or the ledger answer.
//!
//! Strict on purpose: every word of the message has to be accounted for. Otherwise the coordinator decides.

use crate::model::{List, Slug, Team};

/// A question that squad can answer by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Question {
    Greeting,
    Thanks,
    /// Current and recent work.
    Status,
    /// The list of runs.
    Runs,
    /// The members.
    Team,
    /// One member.
    Member(Slug),
    /// The agent for a kind of work.
    Handler(String),
    /// The decisions about a topic, or all if the topic is empty.
    Decisions(String),
}

/// Longer messages are more than such a question.
const LONGEST: usize = 240;

impl Question {
    /// `None`: not clearly one of these questions.
    pub(crate) fn read(message: &str, team: &Team) -> Option<Self> {
        if message.chars().count() > LONGEST || message.contains("```") || !may_ask(message, team) {
            return None;
        }
        let sentences: Vec<Vec<String>> =
            sentences(message).iter().map(|text| words(text)).filter(|words| !words.is_empty()).collect();
        let is_pleasantry = |words: &&Vec<String>| is_greeting(words, team) || is_thanks(words, team);
        let mut asked = sentences.iter().filter(|words| !is_pleasantry(words));
        match (asked.next(), asked.next()) {
            (Some(words), None) => ask(words, team),
            (None, _) if sentences.iter().any(|words| is_thanks(words, team)) => Some(Self::Thanks),
            (None, _) if !sentences.is_empty() => Some(Self::Greeting),
            _ => None,
        }
    }
}

/// A quick check of the first word, which rules out most messages: they are orders.
fn may_ask(message: &str, team: &Team) -> bool {
    let word = message.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    let word = word.to_lowercase();
    List::any(&FIRST, &word) || named(team, &word).is_some()
}

/// First words of questions and greetings.
const FIRST: [List; 10] = [
    List::Greeting,
    List::Thanks,
    List::Addressed,
    List::Pleasant,
    List::Opening,
    List::Plain,
    List::Happening,
    List::HappeningToo,
    List::When,
    List::Asking,
];

fn ask(words: &[String], team: &Team) -> Option<Question> {
    let words: Vec<&str> = polished(words, team).iter().map(String::as_str).collect();
    decisions(&words).or_else(|| who(&words, team)).or_else(|| roster(&words)).or_else(|| happening(&words))
}

/// Splits at punctuation after a word, but not at the dot in `v1.2`.
fn sentences(message: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in message.split_inclusive(char::is_whitespace) {
        if let Some(last) = sentences.last_mut() {
            last.push_str(word);
        }
        if word.trim_end().ends_with(['.', '!', '?', ';']) || word.ends_with('\n') {
            sentences.push(String::new());
        }
    }
    sentences
}

/// Words in lower case, with short forms written out.
fn words(sentence: &str) -> Vec<String> {
    let plain = sentence.to_lowercase().replace('’', "'");
    plain
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | '+' | '#' | '\'')))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '+' | '#')))
        .filter(|word| !word.is_empty())
        .flat_map(|word| match word.split_once('\'') {
            Some((asking @ ("what" | "who" | "how" | "where" | "there" | "it"), "s")) => [asking, "is"],
            Some((asking @ ("what" | "who" | "how" | "where" | "there"), "re")) => [asking, "are"],
            _ => [word, ""],
        })
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The lists are words with blanks between them.
fn is_one_of(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

fn named<'t>(team: &'t Team, word: &str) -> Option<&'t Slug> {
    let word = word.strip_suffix("'s").unwrap_or(word);
    // Most names begin with another letter.
    let is_called = |name: &str| begins_alike(name, word) && Slug::fold(name).is_some_and(|slug| slug.as_str() == word);
    team.members
        .iter()
        .find(|member| member.slug.as_str() == word || is_called(&member.name))
        .map(|member| &member.slug)
}

/// Whether a name and a word begin with the same letter, or with one that folds to it.
fn begins_alike(name: &str, word: &str) -> bool {
    let first = name.bytes().find(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    first.is_some_and(|first| !first.is_ascii() || word.as_bytes().first() == Some(&first.to_ascii_lowercase()))
}

fn is_greeting(words: &[String], team: &Team) -> bool {
    let rest = |word: &String| {
        List::any(&[List::Greeting, List::Addressed, List::Pleasant], word) || named(team, word).is_some()
    };
    let is_day = |words: &[String]| matches!(words, [happy, day, ..] if happy == "happy" && List::When.has(day));
    let greets = words.iter().take(2).any(|word| List::Greeting.has(word)) || is_day(words);
    greets && words.iter().enumerate().all(|(place, word)| rest(word) || (place == 1 && is_day(words)))
}

fn is_thanks(words: &[String], team: &Team) -> bool {
    /// Things that people praise or give thanks for.
    const PRAISED: &str = "sprint effort all session review answer quick guys";
    const THANKED_FOR: &str = "fix fixes release support reply feedback patience update explanation";
    let is_thanked_for = |place: usize, word: &String| {
        is_one_of(THANKED_FOR, word) && words.iter().take(place).any(|word| word == "for")
    };
    let rest = |(place, word): (usize, &String)| {
        List::any(&[List::Thanks, List::Addressed, List::Pleasant], word)
            || is_one_of(PRAISED, word)
            || is_thanked_for(place, word)
            || named(team, word).is_some()
    };
    words.first().is_some_and(|word| List::Thanks.has(word)) && words.iter().enumerate().all(rest)
}

/// Strips polite phrases from both ends.
fn polished<'w>(words: &'w [String], team: &Team) -> &'w [String] {
    let opens = |word: &String| {
        List::any(&[List::Opening, List::Greeting, List::Addressed], word) || named(team, word).is_some()
    };
    let start = words.iter().position(|word| !opens(word)).unwrap_or(0);
    let words = words.get(start..).unwrap_or_default();
    let end = words.iter().rposition(|word| !List::Closing.has(word)).map_or(0, |last| last + 1);
    words.get(..end).unwrap_or_default()
}

fn first<'w>(words: &[&'w str]) -> &'w str {
    words.first().copied().unwrap_or_default()
}

fn topic(words: &[&str]) -> String {
    let start = words.iter().take_while(|word| List::Plain.has(word)).count();
    words.get(start..).unwrap_or_default().join(" ")
}

/// "What did we decide about X", "decisions on X", "is there a decision on X"; never "decide X".
fn decisions(words: &[&str]) -> Option<Question> {
    const ASKING: &str =
        "what which did have has is are was were when why who any list latest recent last all our the decisions";
    const QUESTIONS: &str = "what which did have has is are was were when why who any";
    /// Words before the topic.
    const ON: &str = "about on regarding concerning for to whether against so far we since from";
    const BETWEEN: &str = "are were was there do did have has already yet with in still made";
    let place = words.iter().position(|word| matches!(*word, "decided" | "decide" | "decision" | "decisions"))?;
    if !is_one_of(ASKING, first(words)) {
        return None;
    }
    let (before, after) = (words.get(..place)?, words.get(place + 1..)?);
    // `decision table` is a term of its own, and `what is the decision like` asks for an opinion.
    let bridges = if is_one_of(QUESTIONS, first(words)) { [ON, BETWEEN] } else { [ON, ""] };
    if after.first().is_some_and(|word| !bridges.iter().any(|list| is_one_of(list, word))) {
        return None;
    }
    // Only known words may stand between the question and the topic.
    let is_known =
        |word: &&str| List::any(&[List::Plain, List::When], word) || is_one_of("latest recent last made why", word);
    let after: Vec<&str> = after.iter().copied().skip_while(is_known).collect();
    match before.iter().all(is_known) {
        true => Some(Question::Decisions(topic(&after))),
        // "What auth decisions are there": the topic stands before.
        false if after.is_empty() => {
            let topic: Vec<&str> = before.iter().copied().filter(|word| !is_known(word)).collect();
            Some(Question::Decisions(topic.join(" ")))
        }
        false => None,
    }
}

fn who(words: &[&str], team: &Team) -> Option<Question> {
    let member = |name: &str| named(team, name).cloned().map(Question::Member);
    let handler = |rest: &[&str]| {
        let asks = |word: &&&str| is_one_of("ask talk go contact", word) || List::Plain.has(word);
        let start = rest.iter().take_while(asks).count();
        Some(topic(rest.get(start..).unwrap_or_default())).filter(|topic| !topic.is_empty()).map(Question::Handler)
    };
    match *words {
        ["who" | "what", "is", name] | ["what", "does", name, "do"] | ["about", name] => member(name),
        ["what", "is", name, "role" | "job"] if name.ends_with("'s") => member(name),
        ["who", "is", "working" | "running", ..] => None,
        ["who", "is", "responsible" | "accountable", "for", ref rest @ ..]
        | ["who", "is", "in", "charge", "of", ref rest @ ..]
        | ["who", "is", "the", "owner" | "expert" | "person", "of" | "for" | "on", ref rest @ ..]
        | ["who", "do" | "should" | "can", "i" | "we", "ask" | "talk" | "go", "about" | "to" | "for", ref rest @ ..] => {
            handler(rest)
        }
        ["which", "agent" | "member", verb, ref rest @ ..] | ["who", verb, ref rest @ ..]
            if List::Handles.has(verb) =>
        {
            handler(rest)
        }
        // "Who can fix it?" asks for the fix.
        ["which", "agent" | "member", ref rest @ ..] => handler(rest),
        _ => None,
    }
}

fn roster(words: &[&str]) -> Option<Question> {
    if matches!(*words, ["who", "are", "you"] | ["what", "can", "you", "do"]) {
        return Some(Question::Team);
    }
    let asks =
        matches!(first(words), "who" | "list" | "which" | "what" | "how" | "introduce" | "describe" | "name" | "the");
    let known = |word: &&str| {
        List::any(&[List::Plain, List::Team], word) || is_one_of("many how introduce describe name", word)
    };
    let says_team = words.iter().any(|word| List::Team.has(word));
    (asks && says_team && words.iter().all(known) && (first(words) != "what" || words.contains(&"agents")))
        .then_some(Question::Team)
}

fn happening(words: &[&str]) -> Option<Question> {
    let says = |word: &str| words.contains(&word);
    let is_known = |word: &&str| {
        List::any(&[List::Plain, List::Closing, List::Happening, List::HappeningToo, List::When], word)
            || is_one_of("runs ran failed completed", word)
    };
    // "Update the team" is an order.
    let is_order = words.len() > 1 && is_one_of("update do go run work", first(words));
    if words.is_empty() || is_order || !words.iter().all(is_known) {
        return None;
    }
    if says("runs") || says("ran") {
        return Some(Question::Runs);
    }
    let is_news = words == ["what", "is", "up"] || (says("new") && (says("anything") || says("what")));
    let asks = is_news || words.iter().any(|word| List::Happening.has(word));
    asks.then_some(Question::Status)
}
