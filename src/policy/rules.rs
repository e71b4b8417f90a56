//! The rules of `[policy]`: what a person, or a team, has written about what agents may do.
//!
//! All rules that are about a request hold side by side, whichever file they stand in: it is denied if one of them denies
//! it, else a person is asked if one of them says so, else it is allowed if one of them allows it. What none is about is
//! for the run's mode to decide.

use std::collections::{BTreeMap, BTreeSet};

use globset::GlobMatcher;

use super::always::{Host, host};
use super::paths::PathScope;
use super::permission::{Permissions, Ruling, rule};
use super::review_commands::only_reads_git;
use super::rule_commands::{CommandPattern, Commands, Found, are_covered};
use crate::model::{Access, Slug, Team, Tier, list, may_be_tool, surely_is_tool};
use crate::settings::{PolicyEntry, PolicyScope, PolicySubject, PolicyWord};

/// The pattern for what routing says that an agent owns.
const OWNED: &str = "@owned";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Allow,
    Ask,
    Deny,
}

/// What the rules say of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    /// The rule that decided: `policy.commands.deny: git push`
    pub(crate) rule: String,
    /// Where it stands: a file and line.
    pub(crate) source: String,
    /// What it would have allowed.
    instead: Option<String>,
}

impl Answered {
    /// For the model and the user.
    pub(crate) fn reason(&self) -> String {
        let Self { rule, source, instead, .. } = self;
        let instead = instead.as_ref().map(|instead| format!("; what it allows: {instead}")).unwrap_or_default();
        format!("denied by the rule `{rule}` ({source}){instead}")
    }
}

/// What is done about a request that nothing forbids in every mode: a rule comes before what is free for those who only
/// read, and that before the mode. `scope`: where a path that is read leads.
pub(crate) fn ruling(
    by_rule: Option<&Answered>,
    (mode, may_only_read): (Permissions, bool),
    access: Access,
    detail: &str,
    scope: &PathScope,
) -> Ruling {
    match by_rule.map(|answered| (answered.answer, answered)) {
        Some((Answer::Deny, answered)) => Ruling::Deny(answered.reason()),
        Some((Answer::Ask, _)) => Ruling::Ask,
        Some((Answer::Allow, _)) => Ruling::Allow,
        None if may_only_read && access == Access::Shell && only_reads_git(detail) => Ruling::Allow,
        None => rule(mode, access, scope),
    }
}

/// What an agent asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyRequest<'r> {
    pub(crate) agent: &'r Slug,
    pub(crate) tier: Tier,
    pub(crate) access: Access,
    /// The tool's name, as the engine has it.
    pub(crate) tool: &'r str,
    /// The command or the address.
    pub(crate) detail: &'r str,
    /// Where a write leads, from the project's root; `None`: outside of it.
    pub(crate) path: Option<&'r str>,
}

/// A team's rules.
#[derive(Debug, Default)]
pub(crate) struct PolicyRules {
    rules: Vec<Rule>,
    /// The modules of each agent.
    owned: BTreeMap<Slug, Vec<Pattern>>,
}

#[derive(Debug)]
struct Rule {
    name: String,
    source: String,
    whom: Whom,
    subject: PolicySubject,
    word: PolicyWord,
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
enum Whom {
    Everybody,
    Agents(BTreeSet<Slug>),
    Tier(Tier),
}

#[derive(Debug)]
struct Pattern {
    text: String,
    /// What comes before anything that a glob gives a meaning.
    start: String,
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    Words(CommandPattern),
    /// `None`: it is no glob.
    Glob(Option<GlobMatcher>),
}

impl PolicyRules {
    pub(crate) fn new(entries: impl IntoIterator<Item = PolicyEntry>, team: &Team) -> Self {
        let rules = entries.into_iter().map(|entry| {
            let PolicyEntry { name, scope, subject, word, patterns, origin } = entry;
            let whom = match scope {
                PolicyScope::Everybody => Whom::Everybody,
                PolicyScope::Tier(tier) => Whom::Tier(tier),
                PolicyScope::Agent(named) => {
                    let agents = team.startable().filter(|member| member.goes_by(&named));
                    Whom::Agents(agents.map(|member| member.slug.clone()).collect())
                }
            };
            let patterns = patterns.into_iter().map(|text| Pattern::new(text, subject)).collect();
            Rule { name, source: origin.to_string(), whom, subject, word, patterns }
        });
        let rules = rules.collect();
        let mut owned: BTreeMap<Slug, Vec<Pattern>> = BTreeMap::new();
        for (owner, paths) in team.owned() {
            let pattern = |path: String| Pattern::new(path, PolicySubject::Writes);
            owned.insert(owner, paths.into_iter().map(pattern).collect());
        }
        Self { rules, owned }
    }

    /// What the rules say; `None`: no rule is about the request.
    pub(crate) fn answer(&self, request: &PolicyRequest<'_>) -> Option<Answered> {
        let subject = match request.access {
            Access::Write => Some(PolicySubject::Writes),
            Access::Shell => Some(PolicySubject::Commands),
            Access::Network => Some(PolicySubject::Hosts),
            Access::Read | Access::Mcp | Access::Own | Access::Other => None,
        };
        let about = |rule: &&Rule| rule.subject == PolicySubject::Tools || Some(rule.subject) == subject;
        let rules: Vec<&Rule> = self.of(request.agent, request.tier).filter(about).collect();
        if rules.is_empty() {
            return None;
        }
        let asked = Asked {
            request,
            owned: self.owned.get(request.agent).map_or(&[], Vec::as_slice),
            commands: (request.access == Access::Shell).then(|| Commands::of(request.detail)),
            host: if request.access == Access::Network { host(request.detail) } else { None },
        };
        let answered = rules.iter().filter_map(|rule| asked.by(rule));
        answered.max_by_key(|answered| answered.answer as u8)
    }

    /// Whether a rule keeps the agent from something. An engine that does not ask cannot be told.
    pub(crate) fn restricts<'r>(&'r self, agent: &'r Slug, tier: Tier) -> Option<&'r str> {
        self.of(agent, tier).find(|rule| rule.word != PolicyWord::Allow).map(|rule| rule.name.as_str())
    }

    fn of<'r>(&'r self, agent: &'r Slug, tier: Tier) -> impl Iterator<Item = &'r Rule> {
        self.rules.iter().filter(move |rule| match &rule.whom {
            Whom::Everybody => true,
            Whom::Agents(agents) => agents.contains(agent),
            Whom::Tier(only) => *only == tier,
        })
    }
}

/// A request, taken apart.
struct Asked<'r> {
    request: &'r PolicyRequest<'r>,
    owned: &'r [Pattern],
    commands: Option<Commands>,
    /// `None`: no address, or nobody knows of which host.
    host: Option<Host>,
}

impl Asked<'_> {
    fn by(&self, rule: &Rule) -> Option<Answered> {
        let answered = |answer, pattern: Option<&str>| {
            let pattern = pattern.map(|pattern| format!(": {pattern}")).unwrap_or_default();
            let instead = (rule.word == PolicyWord::Only).then(|| list(rule.patterns.iter().map(|one| &one.text)));
            Some(Answered { answer, rule: format!("{}{pattern}", rule.name), source: rule.source.clone(), instead })
        };
        let is_unknown = match rule.subject {
            PolicySubject::Commands => self.commands.as_ref().is_some_and(|commands| commands.hides_some),
            PolicySubject::Hosts => self.host.is_none(),
            PolicySubject::Tools | PolicySubject::Writes => false,
        };
        let covering = || match rule.subject {
            PolicySubject::Commands => {
                let patterns: Vec<&str> = rule.patterns.iter().map(|pattern| &*pattern.text).collect();
                // Which of them it is is plain from the line.
                are_covered(self.request.detail, &patterns).then(|| self.found(rule).1).flatten()
            }
            PolicySubject::Hosts if self.host.as_ref().is_some_and(|host| !host.is_sure) => None,
            _ => self.found(rule).1,
        };
        match rule.word {
            PolicyWord::Deny | PolicyWord::Ask => match self.found(rule) {
                (Found::Surely, text) if rule.word == PolicyWord::Deny => answered(Answer::Deny, text),
                // It may be what the rule is about.
                (Found::No, _) if !is_unknown => None,
                (Found::No, _) => answered(Answer::Ask, None),
                (_, text) => answered(Answer::Ask, text),
            },
            // Lists of an engine's tools say nothing of squad's.
            PolicyWord::Only if rule.subject == PolicySubject::Tools && self.request.access == Access::Own => None,
            PolicyWord::Only if covering().is_some() => None,
            PolicyWord::Only => answered(Answer::Deny, None),
            PolicyWord::Allow => covering().and_then(|text| answered(Answer::Allow, Some(text))),
        }
    }

    /// How surely one of a rule's patterns is about the request, and which.
    fn found<'p>(&self, rule: &'p Rule) -> (Found, Option<&'p str>) {
        let mut best = (Found::No, None);
        for pattern in &rule.patterns {
            let found = self.is_about(rule, pattern);
            if found > best.0 {
                best = (found, Some(&*pattern.text));
            }
            if found == Found::Surely {
                break;
            }
        }
        best
    }

    fn is_about(&self, rule: &Rule, pattern: &Pattern) -> Found {
        let PolicyRequest { access, tool, path, .. } = *self.request;
        let is_it = match (rule.subject, &pattern.matcher) {
            (PolicySubject::Commands, Matcher::Words(words)) => {
                return self.commands.as_ref().map_or(Found::No, |commands| commands.include(words));
            }
            (PolicySubject::Tools, _) => {
                let text = &*pattern.text;
                let is_named = match rule.word {
                    PolicyWord::Allow | PolicyWord::Only => surely_is_tool(text, (tool, access)),
                    PolicyWord::Deny | PolicyWord::Ask => may_be_tool(text, (tool, access)),
                };
                pattern.matches(tool) || is_named
            }
            (PolicySubject::Writes, _) => path.is_some_and(|path| match &*pattern.text {
                OWNED => self.owned.iter().any(|module| module.is_path(path)),
                _ => pattern.is_path(path),
            }),
            (PolicySubject::Hosts | PolicySubject::Commands, _) => {
                self.host.as_ref().is_some_and(|host| pattern.is_host(host))
            }
        };
        if is_it { Found::Surely } else { Found::No }
    }
}

impl Pattern {
    fn new(text: String, subject: PolicySubject) -> Self {
        let matcher = match subject.glob(&text) {
            None => Matcher::Words(CommandPattern::new(&text)),
            Some(glob) => Matcher::Glob(glob.ok()),
        };
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c))).unwrap_or(text.len());
        let start = text[..end].to_owned();
        Self { text, start, matcher }
    }

    fn matches(&self, text: &str) -> bool {
        let begins = || {
            text.as_bytes()
                .get(..self.start.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(self.start.as_bytes()))
        };
        matches!(&self.matcher, Matcher::Glob(Some(glob)) if begins() && glob.is_match(text))
    }

    /// A folder includes everything below it.
    fn is_path(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.into_iter().any(|end| path.get(..end).is_some_and(|above| self.matches(above)))
    }

    fn is_host(&self, Host { names, port, .. }: &Host) -> bool {
        names.iter().any(|name| self.matches(name) || self.matches(&format!("{name}:{port}")))
    }
}
