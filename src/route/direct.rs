//! Messages that need no agent: greetings, thanks, and questions that the team's own files or the ledger answer.

/// Why nobody needs to be started, or `None` when somebody does.
pub(super) fn read(message: &str) -> Option<&'static str> {
    let text = message.trim();
    // Longer messages are work, whatever they begin with.
    if text.chars().count() > LENGTH || text.contains("```") || text.lines().count() > 2 {
        return None;
    }
    let text = text.to_lowercase().replace('’', "'");
    let rest = without_greeting(&text);
    if rest.len() < text.len() && is_small_talk(rest) {
        return Some("a greeting or thanks");
    }
    let question = rest.trim_start_matches(['¿', ' ']);
    if !asks(question) || question.split_whitespace().count() > WORDS || is_of_work(question) {
        return None;
    }
    if begins(question, &OF_THE_TEAM) || holds(question, &ABOUT_THE_TEAM) {
        Some("a question about the team itself")
    } else if begins(question, &OF_PROGRESS) || is_of_progress(question) {
        Some("a question how things stand")
    } else if begins(question, &OF_FACTS) || question.ends_with(" again?") || is_of_a_name(question) {
        Some("a question for a fact")
    } else {
        None
    }
}

/// In letters and in words.
const LENGTH: usize = 200;
const WORDS: usize = 20;

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
const GREETINGS_ANYWAY: [&str; 12] = [
    "你好",
    "谢谢",
    "您好",
    "辛苦了",
    "こんにちは",
    "ありがとう",
    "お疲れ",
    "안녕",
    "감사",
    "привет",
    "спасибо",
    "здравствуйте",
];

fn without_greeting(text: &str) -> &str {
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
fn is_small_talk(rest: &str) -> bool {
    const BEGINS: [&str; 34] = [
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
        "looks good",
        "perfect",
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

/// A question, or an order to tell something.
fn asks(text: &str) -> bool {
    const TELLS: [&str; 16] = [
        "remind me",
        "tell me who",
        "tell me which",
        "tell me where",
        "tell me what",
        "show me the",
        "list the",
        "list all",
        "who ",
        "where is",
        "where are",
        "what is the",
        "what's the",
        "which ",
        "how many",
        "show the",
    ];
    text.ends_with(['?', '？']) || begins(text, &TELLS)
}

/// A question of this kind needs somebody who looks into the work.
fn is_of_work(text: &str) -> bool {
    const WORK: [&str; 46] = [
        "why ",
        "how should",
        "should ",
        "could ",
        "would ",
        "how can",
        "how do i",
        "how do we",
        "how does",
        "how would",
        "can we",
        "can i",
        "can you",
        "what if",
        "fix",
        "fail",
        "broken",
        "break",
        "bug",
        "error",
        "crash",
        "wrong",
        "slow",
        "leak",
        "missing",
        "no tests",
        "untested",
        "coverage",
        "vulnerab",
        "secure",
        "improve",
        "best way",
        "better",
        "approach",
        "compare",
        "cause",
        "replaces",
        "gaps",
        "what would",
        "really ",
        "feasib",
        "involve",
        "pourquoi",
        "por qué",
        "warum",
        "each of you",
    ];
    holds(text, &WORK)
}

const OF_THE_TEAM: [&str; 26] = [
    "who is",
    "who's",
    "who are",
    "who handles",
    "who owns",
    "who does",
    "who do i",
    "who should i",
    "who works",
    "who reviews",
    "who takes",
    "who can",
    "who knows",
    "who wrote",
    "who maintains",
    "which agent",
    "which member",
    "which of you",
    "wer ist",
    "wer macht",
    "qui est",
    "qui s'occupe",
    "quién",
    "quien",
    "quem",
    "谁",
];

const ABOUT_THE_TEAM: [&str; 23] = [
    "on this squad",
    "on the squad",
    "on this team",
    "on the team",
    "in this team",
    "in the team",
    "the roster",
    "our roster",
    "did we decide",
    "have we decided",
    "was decided",
    "our decisions",
    "the decisions",
    "decision about",
    "team members",
    "squad members",
    "your team",
    "this squad",
    "our team",
    "routing rule",
    "im team",
    "l'équipe",
    "en el equipo",
];

const OF_PROGRESS: [&str; 18] = [
    "what's the status",
    "what is the status",
    "status?",
    "how far",
    "what is everyone",
    "what's everyone",
    "what are you working",
    "what's on the board",
    "what is on the board",
    "what happened",
    "what did you",
    "what's next",
    "what is next",
    "any news",
    "any progress",
    "what has been done",
    "how is it going",
    "wie weit",
];

/// `Is it released already?`
fn is_of_progress(text: &str) -> bool {
    const STATES: [&str; 16] = [
        "released",
        "merged",
        "deployed",
        "done",
        "finished",
        "shipped",
        "live",
        "closed",
        "complete",
        "completed",
        "open",
        "started",
        "published",
        "decided",
        "approved",
        "out",
    ];
    let asks = ["is ", "are ", "was ", "were ", "has ", "have ", "did "].iter().any(|verb| text.starts_with(verb));
    let words = || text.split(|c: char| !c.is_alphanumeric());
    asks && words().any(|word| STATES.contains(&word))
        && words()
            .any(|word| matches!(word, "already" | "yet" | "still" | "phase" | "release" | "milestone" | "sprint"))
}

const OF_FACTS: [&str; 48] = [
    "remind me",
    "where is",
    "where's",
    "where are",
    "where do we keep",
    "where do we track",
    "where does the",
    "where can i find",
    "where do i find",
    "how often",
    "how many people",
    "how many agents",
    "how many members",
    "how many open",
    "how old is",
    "when is",
    "when was",
    "when did",
    "when does",
    "when do we",
    "when will",
    "which version",
    "which branch",
    "which label",
    "which framework",
    "which license",
    "which licence",
    "which stack",
    "which port",
    "which languages",
    "which language",
    "which repo",
    "what stack",
    "what version",
    "what license",
    "what licence",
    "what port",
    "what branch",
    "do we use ",
    "wo ist",
    "wo liegt",
    "welche version",
    "wie oft",
    "cada cuánto",
    "cuándo",
    "dónde está",
    "à quelle fréquence",
    "quelle version",
];

/// `What's the command for …?` asks for something's name, not for work on it.
fn is_of_a_name(text: &str) -> bool {
    const NAMES: [&str; 30] = [
        "name",
        "url",
        "link",
        "version",
        "command",
        "task",
        "port",
        "branch",
        "path",
        "license",
        "licence",
        "stack",
        "deadline",
        "label",
        "channel",
        "repo",
        "repository",
        "email",
        "address",
        "tech",
        "framework",
        "goal",
        "codename",
        "owner",
        "contact",
        "default",
        "project",
        "target",
        "team",
        "website",
    ];
    let after = [
        "what is the ",
        "what's the ",
        "what was the ",
        "what is our ",
        "what's our ",
        "what are the ",
        "what are our ",
    ]
    .iter()
    .find_map(|start| text.strip_prefix(start));
    after.is_some_and(|rest| {
        rest.split(|c: char| !c.is_alphanumeric()).take(4).any(|word| NAMES.contains(&word.trim_end_matches('s')))
    })
}

fn begins(text: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| text.starts_with(start))
}

fn holds(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}
