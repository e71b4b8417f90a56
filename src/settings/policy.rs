//! `[policy]`: what people write about what agents may do, as written.

use globset::{GlobBuilder, GlobMatcher};

use super::Origin;
use crate::model::{Tier, host_name};

/// What rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicySubject {
    /// Tools, by their names.
    Tools,
    /// Files that are written, by their paths from the project's root.
    Writes,
    /// Commands, by their first words.
    Commands,
    /// Hosts that are reached, with or without a port.
    Hosts,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyWord {
    /// Nobody is asked. Not for a repository to say.
    Allow,
    /// A person is asked, in every mode.
    Ask,
    Deny,
    /// Everything else is denied.
    Only,
}

const SUBJECTS: [(&str, PolicySubject); 4] = [
    ("tools", PolicySubject::Tools),
    ("writes", PolicySubject::Writes),
    ("commands", PolicySubject::Commands),
    ("hosts", PolicySubject::Hosts),
];
const WORDS: [(&str, PolicyWord); 4] =
    [("allow", PolicyWord::Allow), ("ask", PolicyWord::Ask), ("deny", PolicyWord::Deny), ("only", PolicyWord::Only)];

impl PolicySubject {
    /// A pattern as it is matched. `None`: by words.
    pub(crate) fn glob(self, pattern: &str) -> Option<Result<GlobMatcher, globset::Error>> {
        let bracket = pattern.find(']').filter(|_| self == Self::Hosts && pattern.starts_with('['));
        let (literal, rest) = pattern.split_at(bracket.map_or(0, |end| end + 1));
        let pattern = globset::escape(literal) + rest;
        let mut glob = GlobBuilder::new(&pattern);
        // On file systems that fold case, another spelling is the same file.
        glob.literal_separator(self == Self::Writes).case_insensitive(true);
        (self != Self::Commands).then(|| glob.build().map(|glob| glob.compile_matcher()))
    }

    fn tidy(self, pattern: &str) -> String {
        match self {
            Self::Writes => pattern.trim_start_matches("./").trim_end_matches('/').to_owned(),
            Self::Hosts => {
                let port = pattern.rfind(':').filter(|at| !pattern[*at..].ends_with(']'));
                let (name, port) = pattern.split_at(port.unwrap_or(pattern.len()));
                host_name(name).unwrap_or_else(|| name.trim_end_matches('.').to_owned()) + port
            }
            Self::Tools | Self::Commands => pattern.to_owned(),
        }
    }
}

/// Whom a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolicyScope {
    Everybody,
    /// An agent's name or role, in lower case.
    Agent(String),
    Tier(Tier),
}

/// A list of patterns.
#[derive(Clone, Debug)]
pub(crate) struct PolicyEntry {
    /// The setting's name.
    pub(crate) name: String,
    pub(crate) scope: PolicyScope,
    pub(crate) subject: PolicySubject,
    pub(crate) word: PolicyWord,
    pub(crate) patterns: Vec<String>,
    pub(crate) origin: Origin,
}

impl PolicyEntry {
    /// Whether it is for an agent with these names and roles, in lower case, that works in this tier.
    pub(crate) fn is_for(&self, names: &[String], tier: Tier) -> bool {
        match &self.scope {
            PolicyScope::Everybody => true,
            PolicyScope::Agent(agent) => names.contains(agent),
            PolicyScope::Tier(only) => *only == tier,
        }
    }

    /// Reads the setting `policy.NAME`. Fails with what is wrong with it, to follow its name.
    pub(super) fn read(name: &str, patterns: &[String], origin: &Origin) -> Result<Self, String> {
        let parts: Vec<&str> = name.split('.').collect();
        let (scope, rule) = match &parts[..] {
            // A role may have a dot in it.
            ["agents", agent @ .., subject, word] if !agent.is_empty() => {
                (PolicyScope::Agent(agent.join(".").to_lowercase()), [*subject, *word])
            }
            ["tiers", tier, subject, word] => {
                let known = Tier::of_work(tier);
                let known =
                    known.ok_or_else(|| format!("names no tier: use lightweight, standard or full, not `{tier}`"))?;
                (PolicyScope::Tier(known), [*subject, *word])
            }
            [subject, word] => (PolicyScope::Everybody, [*subject, *word]),
            _ => return Err(NO_RULE.to_owned()),
        };
        let subject = SUBJECTS.iter().find(|(name, _)| *name == rule[0]).map(|(_, subject)| *subject).ok_or(NO_RULE)?;
        let word = WORDS.iter().find(|(name, _)| *name == rule[1]).map(|(_, word)| *word).ok_or(NO_RULE)?;
        let patterns = patterns.iter().map(|pattern| subject.tidy(pattern)).collect();
        let name = format!("policy.{name}");
        Ok(Self { name, scope, subject, word, patterns, origin: origin.clone() })
    }

    /// Fails with what is wrong with its patterns, to follow its name.
    pub(super) fn check(&self) -> Result<(), String> {
        let subject = self.subject;
        for pattern in &self.patterns {
            let wrong = |why: String| format!("has the pattern `{pattern}`, which {why}");
            if pattern.is_empty() || pattern.len() > MAX_PATTERN || pattern.matches('{').count() > MAX_BRACES {
                return Err(format!(
                    "has a pattern that is empty, has more than {MAX_PATTERN} bytes or {MAX_BRACES} braces"
                ));
            }
            if subject == PolicySubject::Writes && (pattern.starts_with(['/', '~']) || pattern.contains("..")) {
                return Err(wrong("is not a path from the project's root".to_owned()));
            }
            if subject == PolicySubject::Hosts && !pattern.is_ascii() {
                return Err(wrong("is not in ASCII; addresses write such a host as `xn--…`".to_owned()));
            }
            if subject == PolicySubject::Hosts && (pattern.contains(['/', '@']) || is_odd_address(pattern)) {
                return Err(wrong("is no host, such as `*.example.com` or `localhost:8080`".to_owned()));
            }
            if subject == PolicySubject::Commands && pattern.contains(['*', '|', '&', ';', '<', '>']) {
                return Err(wrong("is not the beginning of one command, such as `git push`".to_owned()));
            }
            if let Some(Err(error)) = subject.glob(pattern) {
                return Err(wrong(format!("is no glob: {}", error.kind())));
            }
        }
        Ok(())
    }
}

/// Whether it is like an address, but in no form that a host is compared in.
fn is_odd_address(pattern: &str) -> bool {
    let name = pattern.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(pattern, |(name, _)| name);
    (name.starts_with('[') || name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        && host_name(name).is_none()
}

/// Longer ones make large programs of the matcher.
const MAX_PATTERN: usize = 256;
const MAX_BRACES: usize = 8;

const NO_RULE: &str = "is no rule: they are called `policy.commands.deny`, or `policy.agents.NAME.writes.only`, with tools, \
                       writes, commands or hosts, and allow, ask, deny or only";
