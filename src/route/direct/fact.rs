//! Questions about the team, how things stand, and facts: a look into files answers them.

use super::{begins, holds};

/// Why files answer a question, or `None` where somebody has to look into the work.
pub(super) fn read(question: &str) -> Option<&'static str> {
    if !asks(question) || question.split_whitespace().count() > WORDS {
        return None;
    }
    if asks_who(question) {
        return Some(super::OF_THE_TEAM);
    }
    if is_of_work(question) {
        return None;
    }
    if begins(question, &["who "]) && question.ends_with(" here?") {
        return Some(super::OF_THE_TEAM);
    }
    if begins(question, &OF_THE_TEAM) || holds(question, &ABOUT_THE_TEAM) {
        Some(super::OF_THE_TEAM)
    } else if begins(question, &OF_PROGRESS) || is_of_progress(question) {
        Some("a question how things stand")
    } else if begins(question, &OF_FACTS)
        || question.ends_with(" again?")
        || is_of_a_place(question)
        || is_of_a_count(question)
        || is_of_a_name(question)
    {
        Some("a question for a fact")
    } else {
        None
    }
}

/// Longer questions tell of something first.
const WORDS: usize = 20;

/// Asks who has some kind of work, whatever the work is; and asks nothing else.
pub(super) fn asks_who(question: &str) -> bool {
    const WHO: [&str; 14] = [
        "who handles ",
        "who owns ",
        "who does ",
        "who takes ",
        "who maintains ",
        "who is responsible for ",
        "who's responsible for ",
        "who is in charge of ",
        "who's in charge of ",
        "who do i ask ",
        "who should i ask ",
        "which agent handles ",
        "which agent owns ",
        "which agent does ",
    ];
    let marks = question.trim_end_matches(['?', '？', '.', '!', ' ']).contains(['?', '.', '!', ';', ',']);
    begins(question, &WHO) && !marks
}

/// A question, or an order to tell something.
fn asks(text: &str) -> bool {
    const TELLS: [&str; 16] = [
        "list everyone",
        "list all agents",
        "list the agents",
        "list the team",
        "remind me",
        "tell me who",
        "tell me which",
        "tell me where",
        "tell me what",
        "who ",
        "where is",
        "where are",
        "what is the",
        "what's the",
        "which ",
        "how many",
    ];
    text.ends_with(['?', '？']) || begins(text, &TELLS)
}

/// A question of this kind needs somebody who looks into the work.
pub(super) fn is_of_work(text: &str) -> bool {
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

const OF_PROGRESS: [&str; 22] = [
    "what has everyone",
    "what did everyone",
    "what was everyone",
    "how far has everyone",
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

const OF_FACTS: [&str; 47] = [
    "remind me",
    "where is",
    "where's",
    "where are",
    "where do we keep",
    "where do we track",
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

/// `How many modules are there?`, `Which sprint are we in?`
fn is_of_a_count(text: &str) -> bool {
    (begins(text, &["how many "]) && holds(text, &[" are there", " do we have", " have we "]))
        || (begins(text, &["which ", "what "]) && holds(text, &[" are we in?", " are we on?", " are we at?"]))
}

/// `Where does the design document live?`
fn is_of_a_place(text: &str) -> bool {
    const STANDS: [&str; 7] = ["live", "lie", "sit", "stand", "reside", "belong", "go"];
    let last = text.trim_end_matches(|c: char| !c.is_alphanumeric()).rsplit(' ').next().unwrap_or_default();
    begins(text, &["where does ", "where do "]) && STANDS.contains(&last)
}

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
