//! The form of a message: an order, a question whether something should be, a question how something is.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Something is to be done; a report that something is broken is one too.
    Order,
    /// Something is to be decided.
    Decision,
    /// Something is to be found out.
    Inquiry,
}

/// Questions are short: from what is longer they are read at its end.
const LENGTH: usize = 600;

impl Form {
    pub(super) fn of(message: &str) -> Self {
        let message = message.trim();
        let mut start = message.len().saturating_sub(LENGTH);
        while !message.is_char_boundary(start) {
            start += 1;
        }
        let mut text = message[start..].to_lowercase();
        if text.contains('’') {
            text = text.replace('’', "'");
        }
        let mut form = Self::Order;
        for sentence in text.split_inclusive(['.', '!', '?', '\n', '？']) {
            let sentence = sentence.trim().trim_start_matches('¿');
            if is_decision(sentence) {
                return Self::Decision;
            }
            if sentence.ends_with(['?', '？']) && !is_polite_order(sentence) {
                form = Self::Inquiry;
            }
        }
        form
    }
}

/// What everything in `HOLDS` has.
const HAVE: [&str; 6] = [" we", "which", "worth", "pros", "sollten", "take"];

fn is_decision(sentence: &str) -> bool {
    const BEGINS: [&str; 16] = [
        "should we",
        "should our",
        "should it",
        "should this",
        "should every",
        "should each",
        "should the",
        "how should",
        "where should",
        "what should",
        "which should",
        "do we want",
        "do we need",
        "would it make sense",
        "is it worth",
        "in which order",
    ];
    const HOLDS: [&str; 14] = [
        "or should we",
        "or do we",
        "how should we",
        "how do we want",
        "how would we",
        "what would it take",
        "should we",
        "do we want",
        "shall we",
        "which approach",
        "pros and cons",
        "worth it",
        "tell me which",
        "sollten wir",
    ];
    let asks = sentence.ends_with(['?', '？']);
    let between = asks
        && sentence.contains(" or ")
        && ["would ", "should ", "is it better", "do we"].iter().any(|begin| sentence.starts_with(begin));
    let involves = asks
        && sentence.starts_with("what would ")
        && ["involve", "take", "mean", "cost"].iter().any(|verb| sentence.contains(verb));
    (asks && BEGINS.iter().any(|begin| sentence.starts_with(begin)))
        // Nearly no sentence has any of it.
        || (HAVE.iter().any(|word| sentence.contains(word)) && HOLDS.iter().any(|words| sentence.contains(words)))
        || between
        || involves
}

/// `Can you fix it?` is no question.
fn is_polite_order(sentence: &str) -> bool {
    const BEGINS: [&str; 12] = [
        "can you",
        "could you",
        "would you",
        "will you",
        "can we",
        "could we",
        "please",
        "can someone",
        "could someone",
        "can anybody",
        "puedes",
        "kannst du",
    ];
    BEGINS.iter().any(|begin| sentence.starts_with(begin))
        || sentence.contains(", can you")
        || sentence.contains("lo puedes")
}

/// Whether a clause begins by asking for something to be done: `add …`, `then document …`.
pub(super) fn is_order(clause: &str) -> bool {
    let text = clause.trim_start_matches(|c: char| !c.is_alphabetic());
    let mut words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let is_before = |word: &&str| BEFORE_A_VERB.iter().any(|before| before.eq_ignore_ascii_case(word));
    let verb = words.by_ref().find(|word| !is_before(word));
    // A verb alone may be a noun in a list.
    verb.is_some_and(is_verb) && words.next().is_some()
}

fn is_verb(word: &str) -> bool {
    let small = || word.bytes().map(|byte| byte.to_ascii_lowercase());
    VERBS.binary_search_by(|verb| verb.bytes().cmp(small())).is_ok()
}

/// Whether a clause names what is wanted without a verb: `a new endpoint`.
pub(super) fn is_wish(clause: &str) -> bool {
    let word = clause.split_whitespace().next().unwrap_or_default().to_lowercase();
    matches!(word.as_str(), "a" | "an" | "new" | "another" | "more")
}

const BEFORE_A_VERB: [&str; 9] = ["and", "then", "also", "please", "to", "finally", "so", "next", "afterwards"];

/// What software teams are asked to do, as orders begin: in the order of the alphabet.
const VERBS: [&str; 235] = [
    "accept",
    "add",
    "allow",
    "animate",
    "announce",
    "approve",
    "ask",
    "assess",
    "assign",
    "audit",
    "automate",
    "backfill",
    "benchmark",
    "block",
    "bring",
    "build",
    "bump",
    "bundle",
    "cache",
    "calculate",
    "calibrate",
    "cap",
    "change",
    "check",
    "choose",
    "clamp",
    "classify",
    "clean",
    "collapse",
    "collect",
    "compare",
    "compile",
    "compress",
    "compute",
    "configure",
    "confirm",
    "connect",
    "convert",
    "count",
    "cover",
    "create",
    "critique",
    "cut",
    "decide",
    "decrease",
    "define",
    "delete",
    "demonstrate",
    "deploy",
    "describe",
    "design",
    "detect",
    "disable",
    "display",
    "document",
    "draft",
    "draw",
    "drop",
    "email",
    "embed",
    "enable",
    "encrypt",
    "enforce",
    "ensure",
    "estimate",
    "evaluate",
    "exercise",
    "expand",
    "explain",
    "explore",
    "export",
    "expose",
    "extend",
    "extract",
    "fetch",
    "filter",
    "find",
    "fix",
    "format",
    "forward",
    "gather",
    "generate",
    "give",
    "group",
    "guard",
    "handle",
    "harden",
    "hide",
    "hook",
    "illustrate",
    "implement",
    "import",
    "increase",
    "index",
    "inject",
    "inspect",
    "install",
    "instrument",
    "integrate",
    "introduce",
    "invalidate",
    "investigate",
    "invite",
    "let",
    "limit",
    "load",
    "localise",
    "localize",
    "lock",
    "log",
    "lower",
    "make",
    "map",
    "measure",
    "merge",
    "migrate",
    "mirror",
    "mock",
    "monitor",
    "mount",
    "move",
    "notify",
    "offer",
    "optimise",
    "optimize",
    "organize",
    "outline",
    "package",
    "paginate",
    "paint",
    "parse",
    "pass",
    "patch",
    "persist",
    "pilot",
    "pin",
    "plan",
    "polish",
    "port",
    "post",
    "predict",
    "prepare",
    "prioritise",
    "prioritize",
    "profile",
    "propose",
    "protect",
    "prototype",
    "prove",
    "provision",
    "publish",
    "push",
    "put",
    "raise",
    "read",
    "recommend",
    "record",
    "redesign",
    "redirect",
    "reduce",
    "refactor",
    "register",
    "reject",
    "release",
    "reload",
    "remove",
    "rename",
    "render",
    "replace",
    "reproduce",
    "require",
    "research",
    "reset",
    "resize",
    "resolve",
    "restore",
    "restrict",
    "restyle",
    "retry",
    "return",
    "revert",
    "review",
    "rework",
    "rewrite",
    "rotate",
    "run",
    "sanitize",
    "scan",
    "schedule",
    "seed",
    "send",
    "set",
    "ship",
    "show",
    "sign",
    "simplify",
    "simulate",
    "sketch",
    "slice",
    "sort",
    "split",
    "start",
    "stop",
    "store",
    "structure",
    "stub",
    "study",
    "style",
    "summarise",
    "summarize",
    "support",
    "switch",
    "sync",
    "tag",
    "test",
    "throttle",
    "tidy",
    "track",
    "train",
    "translate",
    "triage",
    "trim",
    "tune",
    "turn",
    "update",
    "upgrade",
    "use",
    "validate",
    "verify",
    "visualise",
    "visualize",
    "wire",
    "work",
    "wrap",
    "write",
];

#[cfg(test)]
mod tests {
    use super::{VERBS, is_order};

    #[test]
    fn verbs_are_found() {
        assert!(VERBS.is_sorted());
    }

    #[test]
    fn orders_begin_with_verbs_that_have_an_object() {
        for order in ["Add a page", "then document it", "- please fix the build", "And also Write tests"] {
            assert!(is_order(order), "{order}");
        }
        for other in ["The page is slow", "rotate", "pan, zoom", "it adds a page", ""] {
            assert!(!is_order(other), "{other}");
        }
    }
}
