//! Greetings, thanks and praise, at the beginning of a message.

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
const GREETINGS_ANYWAY: [&str; 13] = [
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

/// What is left of a greeting: nothing, a name, a word of praise.
pub(super) fn is_small_talk(rest: &str) -> bool {
    const BEGINS: [&str; 41] = [
        "looks ",
        "sounds ",
        "works ",
        "team",
        "everyone",
        "everybody",
        "all",
        "folks",
        "squad",
        "guys",
        "there",
        "for ",
        "a lot",
        "so much",
        "again",
        "and ",
        "that was",
        "that's",
        "this was",
        "you",
        "how are you",
        "how's it going",
        "what's up",
        "on ",
        "great",
        "nice",
        "have a",
        "equipo",
        "a todos",
        "alle",
        "zusammen",
        "tout le monde",
        "beaucoup",
        "à tous",
        "mucho",
        "perfect",
        "大家",
        "各位",
        "皆さん",
        "みなさん",
        "ございます",
    ];
    // `Thanks, now fix …` goes on to ask for work.
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
    let few = rest.split_whitespace().count() <= 12;
    let ends = rest.is_empty() || !rest.chars().any(char::is_alphanumeric);
    ends || (few && begins(rest, &BEGINS) && !holds(rest, &GOES_ON) && !(rest.contains('?') && is_of_work(rest)))
}
