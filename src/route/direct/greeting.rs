//! Greetings, thanks and praise, at the beginning of a message.

use super::words::{ADDRESSED, GREETING, PLEASANT, THANKS, is_a};
use super::{begins, fact::is_of_work, holds};

const GREETINGS: [&str; 48] = [
    "hi",
    "hello",
    "hey",
    "hiya",
    "howdy",
    "yo",
    "good morning",
    "good afternoon",
    "good evening",
    "good night",
    "morning",
    "thanks",
    "thank you",
    "thx",
    "ty",
    "cheers",
    "great job",
    "great work",
    "good job",
    "good work",
    "nice work",
    "nice job",
    "well done",
    "awesome work",
    "congrats",
    "congratulations",
    "bye",
    "goodbye",
    "see you",
    "welcome back",
    "happy friday",
    "hola",
    "gracias",
    "muchas gracias",
    "buenos dias",
    "buenos días",
    "bonjour",
    "salut",
    "merci",
    "hallo",
    "guten morgen",
    "danke",
    "vielen dank",
    "olá",
    "obrigado",
    "ciao",
    "grazie",
    "moin",
];

/// Scripts in which no space ends a greeting.
const GREETINGS_ANYWAY: [&str; 14] = [
    "大家好",
    "你好",
    "谢谢",
    "您好",
    "辛苦了",
    "こんにちは",
    "おはよう",
    "ありがとう",
    "お疲れ",
    "안녕",
    "감사",
    "привет",
    "спасибо",
    "здравствуйте",
];

/// What is left when a greeting is taken off; the whole text where it begins with none.
pub(super) fn without_greeting(text: &str) -> &str {
    if let Some(rest) = GREETINGS_ANYWAY.iter().find_map(|greeting| text.strip_prefix(greeting)) {
        return rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
    let greeting = GREETINGS
        .iter()
        .filter_map(|greeting| text.strip_prefix(greeting))
        .filter(|rest| !rest.starts_with(char::is_alphanumeric))
        .min_by_key(|rest| rest.len());
    greeting.map_or(text, |rest| rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '@' && c != '`'))
}

/// Whether what is left of a greeting is more of it: names, thanks, a word of praise. Every part of it has to be;
/// `Hi team, the login page crashes` goes on to work.
pub(super) fn is_small_talk(rest: &str) -> bool {
    // `Thanks, now fix …`
    const GOES_ON: [&str; 15] = [
        "please",
        "can you",
        "could you",
        "now ",
        "next",
        "but ",
        "also ",
        "fix",
        "add ",
        "need",
        "should",
        "let's",
        "@",
        "broken",
        "bug",
    ];
    let mut parts = rest.split(MARKS).map(str::trim).filter(|part| part.chars().any(char::is_alphanumeric));
    let first = parts.next().is_none_or(|part| is_pleasant(part) || is_about_thanks(part));
    let goes_on = holds(rest, &GOES_ON) || (rest.contains('?') && is_of_work(rest));
    first && !goes_on && parts.all(is_pleasant)
}

const MARKS: [char; 13] = ['.', ',', '!', '?', ';', ':', '—', '\n', '，', '。', '！', '？', '、'];

/// `the quick review`, after thanks and praise: what for.
fn is_about_thanks(part: &str) -> bool {
    /// In words.
    const SHORT: usize = 9;
    let part = without_those_addressed(part);
    begins(part, &["for ", "on ", "and "]) && part.split_whitespace().count() <= SHORT
}

/// A greeting, those who are greeted, or a remark that asks for nothing.
fn is_pleasant(part: &str) -> bool {
    const REMARKS: [&str; 24] = [
        "looks ",
        "sounds ",
        "works ",
        "a lot",
        "so much",
        "again",
        "that was ",
        "that's ",
        "this was ",
        "you did",
        "you rock",
        "you are",
        "you're ",
        "you were",
        "you saved",
        "how are you",
        "how's it going",
        "what's up",
        "have a ",
        "beaucoup",
        "mucho",
        "perfect",
        "great",
        "nice",
    ];
    /// A longer remark may say anything.
    const SHORT: usize = 5;
    let part = without_those_addressed(part);
    let count = part.split_whitespace().count();
    let rest = without_greeting(part);
    part.is_empty()
        || (rest.len() < part.len() && is_pleasant(rest))
        || (begins(part, &REMARKS) && count <= SHORT)
        || part.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).all(is_pleasant_word)
}

fn is_pleasant_word(word: &str) -> bool {
    is_a(GREETING | THANKS | ADDRESSED | PLEASANT, word)
}

fn without_those_addressed(part: &str) -> &str {
    const THEY: [&str; 19] = [
        "team",
        "everyone",
        "everybody",
        "all",
        "folks",
        "squad",
        "guys",
        "there",
        "you",
        "equipo",
        "a todos",
        "alle",
        "zusammen",
        "tout le monde",
        "à tous",
        "大家",
        "各位",
        "皆さん",
        "みなさん",
    ];
    let ends = |rest: &str, they: &str| !they.is_ascii() || !rest.starts_with(char::is_alphanumeric);
    let found = THEY.iter().find_map(|they| part.strip_prefix(they).filter(|rest| ends(rest, they)));
    // `you are great` is a remark on them.
    let rest = found.map(str::trim_start).filter(|_| !part.starts_with("you ")).unwrap_or(part);
    rest.strip_prefix("ございます").unwrap_or(rest)
}
