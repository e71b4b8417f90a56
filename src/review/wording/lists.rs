//! The words by which a sentence is understood: grammar, and the trade's usual opposites.

/// Words with which people say no. Two of them say yes.
pub(super) const NO: &[&str] = &[
    "abandon",
    "avoid",
    "ban",
    "banned",
    "cannot",
    "discontinue",
    "disallow",
    "disable",
    "disabled",
    "discourage",
    "don't",
    "drop",
    "dropped",
    "forbid",
    "forbidden",
    "never",
    "no",
    "nor",
    "not",
    "prohibit",
    "prohibited",
    "refuse",
    "reject",
    "skip",
    "skipped",
    "skips",
    "stop",
    "stops",
    "without",
];

/// Words that exclude each other.
pub(super) const OPPOSITES: &[(&str, &str)] = &[
    ("abort", "continue"),
    ("allow", "deny"),
    ("always", "never"),
    ("append", "overwrite"),
    ("ascending", "descending"),
    ("async", "sync"),
    ("asynchronous", "synchronous"),
    ("automatic", "manual"),
    ("automatically", "manually"),
    ("before", "after"),
    ("block", "allow"),
    ("blocking", "advisory"),
    ("centralized", "decentralized"),
    ("client", "server"),
    ("closed", "open"),
    ("dark", "light"),
    ("dynamic", "static"),
    ("eager", "lazy"),
    ("eagerly", "lazily"),
    ("enable", "disable"),
    ("enabled", "disabled"),
    ("explicit", "implicit"),
    ("global", "local"),
    ("hard", "soft"),
    ("immutable", "mutable"),
    ("include", "exclude"),
    ("inline", "external"),
    ("internal", "external"),
    ("keep", "remove"),
    ("keep", "delete"),
    ("local", "remote"),
    ("local", "utc"),
    ("lower", "raise"),
    ("mandatory", "optional"),
    ("maximum", "minimum"),
    ("merge", "rebase"),
    ("merge", "squash"),
    ("monolith", "microservices"),
    ("monorepo", "polyrepo"),
    ("nullable", "required"),
    ("off", "on"),
    ("online", "offline"),
    ("optional", "required"),
    ("permit", "forbid"),
    ("private", "public"),
    ("pull", "push"),
    ("sequential", "parallel"),
    ("serial", "parallel"),
    ("signed", "unsigned"),
    ("shared", "separate"),
    ("spaces", "tabs"),
    ("stateful", "stateless"),
    ("strict", "lenient"),
    ("strict", "loose"),
    ("strong", "eventual"),
    ("temporary", "permanent"),
    ("vertical", "horizontal"),
    ("warn", "fail"),
    ("whitelist", "blacklist"),
    ("with", "without"),
    ("daily", "hourly"),
    ("daily", "weekly"),
    ("encrypted", "plain"),
    ("ephemeral", "persistent"),
    ("nightly", "weekly"),
    ("poll", "push"),
    ("preserve", "drop"),
    ("preserve", "remove"),
    ("preserve", "strip"),
    ("preserves", "strips"),
    ("preserve", "strips"),
    ("keep", "strip"),
    ("singular", "plural"),
    ("synchronously", "asynchronously"),
    ("uppercase", "lowercase"),
    ("visible", "hidden"),
];

/// Verbs whose object is what was chosen.
pub(super) const CHOOSE: &[&str] = &[
    "adopt",
    "be",
    "build",
    "cap",
    "choose",
    "default",
    "deploy",
    "expose",
    "favor",
    "follow",
    "follows",
    "format",
    "host",
    "keep",
    "limit",
    "log",
    "migrate",
    "name",
    "pick",
    "pin",
    "prefer",
    "require",
    "return",
    "round",
    "run",
    "select",
    "send",
    "serve",
    "ship",
    "sort",
    "standardize",
    "store",
    "switch",
    "target",
    "use",
    "using",
    "uses",
    "write",
    "written",
    "is",
    "are",
];

/// Verbs that may be done to one thing after another.
pub(super) const DO: &[&str] = &[
    "add",
    "analyze",
    "audit",
    "clean",
    "cover",
    "create",
    "document",
    "extend",
    "extract",
    "fix",
    "implement",
    "improve",
    "introduce",
    "investigate",
    "plan",
    "refactor",
    "rename",
    "review",
    "split",
    "support",
    "test",
    "update",
    "verify",
];

/// What stands behind these is chosen.
pub(super) const AS: &[&str] =
    &["as", "at", "be", "by", "from", "in", "into", "is", "are", "on", "through", "to", "under", "via", "with"];

/// What stands behind these has been turned down.
pub(super) const OVER: &[&str] = &["instead of", "rather than", "over", "not", "without", "replaces", "from"];

/// `not to X`, `not from X`: no bound, but part of what is turned down.
pub(super) const AT: &[&str] = &["as", "at", "by", "for", "from", "in", "on", "through", "to", "via", "with"];

/// Words by which one is taken *over* another.
pub(super) const PREFER: &[&str] =
    &["choose", "chose", "chosen", "favor", "favour", "pick", "picked", "prefer", "preferred", "prefers", "selected"];

/// A sentence that begins so and goes on with a thing or two turns these down.
pub(super) const REFUSE: &[&str] = &[
    "no",
    "avoid",
    "ban",
    "never use",
    "do not use",
    "do not add",
    "stop using",
    "we do not use",
    "we do not need",
    "drop",
    "remove",
    "get rid of",
];

/// What is turned down is not these.
pub(super) const VAGUE: &[&str] = &["always", "both", "either", "other", "own", "same", "such"];

/// Numbers as words, from one.
pub(super) const COUNTS: &[&str] = &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// Here what was turned down has been said.
pub(super) const BOUNDS: &[&str] =
    &["as", "at", "because", "by", "for", "if", "in", "on", "since", "to", "when", "where", "with"];

/// Words that carry a grammatical part only.
pub(super) const FILLERS: &[&str] =
    &["a", "all", "an", "any", "every", "must", "our", "only", "shall", "should", "the", "their", "this", "we", "will"];

/// A number behind these is a name and no value.
pub(super) const NUMBERED: &[&str] = &[
    "adr",
    "batch",
    "chapter",
    "day",
    "decision",
    "issue",
    "iteration",
    "item",
    "milestone",
    "part",
    "phase",
    "pr",
    "priority",
    "q",
    "report",
    "round",
    "run",
    "section",
    "session",
    "sprint",
    "stage",
    "step",
    "tier",
    "track",
    "wave",
    "week",
];
