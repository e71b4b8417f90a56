//! Members called by name: `@name`, `Name, …`, `ask Name to …`, and `team, …`.
//!
//! An `@name` is a call unless the words around it only refer to the member (`cc @name`, `as @name said`) or exclude it
//! (`not @name`, `hands off, @name`).

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::Draft;
use super::orders::is_order;
use super::steps::Assignment;
use super::text::Span;
use crate::model::{Evidence, Kind, List, Member, Slug, Status, Team, find_words};

/// The members that a message names.
#[derive(Default)]
pub(super) struct Addressed {
    /// Called members that can be started, in the order of the message.
    pub(super) agents: Vec<Slug>,
    /// Members that the message excludes.
    pub(super) ruled_out: Vec<Slug>,
    /// The reasons, and called members that cannot be started.
    pub(super) evidence: Vec<Evidence>,
    /// Names that nobody on the team has, each with the agent's that it is like. Without one, only
    /// those that a sentence begins with: `@Override` is no colleague.
    pub(super) mistyped: Vec<(String, Option<String>)>,
    /// Whether any called member cannot be started.
    pub(super) any_unavailable: bool,
    /// Where the message calls each of them.
    pub(super) places: Vec<Assignment>,
}

/// Only a pasted list names more.
const MOST: usize = 40;

impl Addressed {
    /// The plan for the called members; `Err` with the rest if there are none.
    pub(super) fn draft(mut self) -> Result<Draft, Box<Self>> {
        self.agents.retain(|agent| !self.ruled_out.contains(agent));
        if self.agents.is_empty() {
            return Err(Box::new(self));
        }
        let Self { agents, evidence, places, .. } = self;
        Ok(Draft { places, ..Draft::sure(agents, evidence) })
    }

    fn take(&mut self, member: &Member, how: &str, range: Range<usize>) {
        if !member.is_startable() {
            self.any_unavailable = true;
            let why = format!("the message says {how}, who is {} and is not started", standing(member));
            return self.evidence.push(evidence(&member.slug, why, 0.0));
        }
        self.places.push(Assignment { agent: member.slug.clone(), range });
        if !self.agents.contains(&member.slug) {
            self.agents.push(member.slug.clone());
            self.evidence.push(evidence(&member.slug, format!("the message says {how}"), 1.0));
        }
    }
}

/// Finds calls by `@name` anywhere, and by plain name where a sentence addresses the member.
pub(super) fn read(team: &Team, message: &str, spans: &[Span]) -> Addressed {
    let mut called = Addressed::default();
    for span in spans.iter().filter(|span| !span.is_code) {
        let mut before = MentionKind::Call;
        for Mention { name, at, is_listed, how } in mentions(message, span) {
            // `cc @bea, @fay`
            let how = if is_listed && before != MentionKind::Call { before } else { how };
            before = how;
            let how = if span.weight < 0.0 { MentionKind::Exclusion } else { how };
            if is_everyone(name) {
                continue;
            }
            if called.evidence.len() >= MOST {
                if called.evidence.len() == MOST {
                    let why = format!("the message has more than {MOST} @mentions; those from @{name} on are ignored");
                    called.evidence.push(evidence(&Slug::coordinator(), why, 0.0));
                }
                continue;
            }
            let member = team.members.iter().find(|member| is_called(member, &name.to_lowercase()));
            match (member, how) {
                (Some(member), MentionKind::Call) => {
                    called.take(member, &format!("@{name}"), at..at + 1 + name.len());
                }
                (Some(member), MentionKind::Exclusion) => called.ruled_out.push(member.slug.clone()),
                (Some(member), MentionKind::Reference) => {
                    let why = format!("the message only mentions @{name}");
                    called.evidence.push(evidence(&member.slug, why, 0.0));
                }
                (None, _) => {
                    let why = format!("the message says @{name}, who is not on the team");
                    let near = team.nearest(&name.to_lowercase()).map(str::to_owned);
                    let before = message[..at].trim_end();
                    let is_turned_to = before.is_empty() || before.ends_with(['.', '!', '?']);
                    if near.is_some() || is_turned_to {
                        called.mistyped.push((name.to_owned(), near));
                    }
                    called.evidence.push(evidence(&Slug::coordinator(), why, 0.0));
                }
            }
        }
    }
    by_name(team, message, spans, &mut called);
    called
}

/// Finds members addressed by name at the start of a sentence, and members that get work handed over.
fn by_name(team: &Team, message: &str, spans: &[Span], called: &mut Addressed) {
    let members: Vec<&Member> =
        team.members.iter().filter(|member| find_words(message, &member.name).is_some()).collect();
    let mut sentence = usize::MAX;
    for span in spans.iter().filter(|span| !span.is_code && span.weight > 0.0) {
        if members.is_empty() || called.evidence.len() >= MOST {
            return;
        }
        let text = message[span.range.clone()].trim();
        let place = |member: &Member| {
            let at = span.range.start + find_words(text, &member.name).unwrap_or(0);
            at..at + member.name.len()
        };
        // `For Bea's page — Tess, write the tests`
        let after_a_dash = message[..span.range.start].trim_end().ends_with(['—', '–']);
        if span.sentence != sentence || after_a_dash {
            let after = message[span.range.end..].trim_start();
            for member in turned_to(&members, text, after) {
                called.take(member, &member.name, place(member));
            }
        }
        sentence = span.sentence;
        let lower = text.to_ascii_lowercase();
        for cue in List::Hand.entries() {
            let name = find_words(&lower, cue).map(|at| text[at + cue.len()..].trim_start());
            if let Some(member) = name.and_then(|name| members.iter().find(|member| rest_of(member, name).is_some())) {
                called.take(member, &member.name, place(member));
            }
        }
    }
}

/// `Bea, fix …`, `Bea: fix …`, `Bea and Tess, …`, `Bea should …`, `Can Bea …?`, `Hey Bea, …`.
fn turned_to<'t>(members: &[&'t Member], text: &str, after: &str) -> Vec<&'t Member> {
    let (mut rest, mut asks) = (text, false);
    while let Some((word, next)) = rest.split_once(' ') {
        let word = word.to_lowercase();
        if !List::any(&[List::Greeting, List::Opening, List::BeforeVerb], &word) {
            break;
        }
        asks = matches!(word.as_str(), "can" | "could");
        rest = next;
    }
    let mut found = Vec::new();
    while let Some((member, next)) = members.iter().find_map(|member| Some((*member, rest_of(member, rest)?))) {
        found.push(member);
        rest = next.trim_start();
        rest = ["and ", "& "].iter().find_map(|joint| rest.strip_prefix(joint)).unwrap_or(rest);
    }
    let turns = match rest.is_empty() {
        true => after.starts_with([',', ':']) && !is_list(after),
        false => List::Address.begins(rest).is_some() || (asks && is_order(rest)),
    };
    if !turns {
        found.clear();
    }
    found
}

/// The text after a member's name, if the text begins with that name as people write it, with a capital.
fn rest_of<'t>(member: &Member, text: &'t str) -> Option<&'t str> {
    let rest = text.strip_prefix(member.name.as_str()).filter(|_| member.name.starts_with(char::is_uppercase))?;
    (!rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\''))).then_some(rest)
}

/// `Backend, frontend and docs need …` addresses nobody.
fn is_list(after: &str) -> bool {
    let clause = after[1..].split(['.', '!', '?', '\n']).next().unwrap_or_default();
    let first_words: Vec<&str> = clause.split_whitespace().take(3).collect();
    after.starts_with(',')
        && (first_words.len() < 2 || first_words[1..].contains(&"and") || first_words.contains(&"or"))
}

/// All members that can be started, if the message addresses the whole team. `Hey team, can someone …` does not.
pub(super) fn the_team(team: &Team, message: &str) -> Option<Draft> {
    static CALLS: LazyLock<Regex> = LazyLock::new(|| {
        let calls = r"^\s*((hey|ok) )?(@(team|everyone|squad|all|here|channel)\b|(team|everyone|everybody|squad|(all|each) of you)[,:])";
        Regex::new(&format!("(?i){calls}")).expect("the pattern is fixed")
    });
    static SOMEONE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)^\W*(can|could|would|will|please)\b").expect("the pattern is fixed"));
    let call = CALLS.find(message)?;
    (!SOMEONE.is_match(&message[call.end()..])).then(|| {
        let why = "the message calls the whole team";
        let agents = team.startable().map(|member| member.slug.clone());
        Draft::sure(agents.collect(), team.startable().map(|member| evidence(&member.slug, why, 1.0)).collect())
    })
}

fn evidence(agent: &Slug, why: impl Into<String>, weight: f64) -> Evidence {
    Evidence::new(agent, why, "message", weight)
}

fn is_everyone(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "team" | "everyone" | "squad" | "all" | "here" | "channel")
}

fn is_called(member: &Member, wanted: &str) -> bool {
    member.slug.as_str() == wanted || Slug::fold(&member.name).is_some_and(|slug| slug.as_str() == wanted)
}

fn standing(member: &Member) -> &'static str {
    match (member.kind, member.status) {
        (Kind::Human, _) => "a person",
        (Kind::Bot, _) => "a bot that works elsewhere",
        (Kind::Helper, _) => "a built-in helper",
        (Kind::Agent, Status::Retired) => "retired",
        (Kind::Agent, _) => "inactive",
    }
}

/// What an `@name` means.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MentionKind {
    Call,
    /// `as @bea said`, `cc @bea`
    Reference,
    /// `not @bea`
    Exclusion,
}

struct Mention<'m> {
    name: &'m str,
    at: usize,
    /// Only a comma or `and` separates it from the mention before.
    is_listed: bool,
    how: MentionKind,
}

/// The names after an `@` that begins a word, which excludes e-mail addresses, packages and versions.
fn mentions<'m>(message: &'m str, span: &Span) -> Vec<Mention<'m>> {
    let mut found: Vec<Mention<'m>> = Vec::new();
    for (at, _) in message[span.range.clone()].match_indices('@') {
        let at = span.range.start + at;
        let before = &message[..at];
        if before.ends_with(|c: char| is_of_a_name(c) || matches!(c, '.' | '/' | '@' | '`')) {
            continue;
        }
        let rest = &message[at + 1..span.range.end];
        let end = rest.find(|c: char| !is_of_a_name(c)).unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('-');
        // `@scope/package` and `@media(…)` are no colleagues.
        if name.is_empty() || rest[end..].starts_with(['/', '(', '[']) {
            continue;
        }
        let between = found.last().map(|last| message[last.at + 1 + last.name.len()..at].trim_matches([' ', ',', '&']));
        let is_listed = between.is_some_and(|between| matches!(between, "" | "and"));
        found.push(Mention { name, at, is_listed, how: mentioned(before, &message[at + 1 + name.len()..]) });
    }
    found
}

/// In scripts without spaces, a name ends where another script begins.
fn is_of_a_name(c: char) -> bool {
    const SCRIPTS_WITHOUT_SPACES: std::ops::RangeFrom<char> = '\u{2e80}'..;
    (c.is_alphanumeric() && !SCRIPTS_WITHOUT_SPACES.contains(&c)) || matches!(c, '-' | '_')
}

/// `as @bea said`, `@bea's proposal`, `cc @bea`, `not @bea`.
fn mentioned(before: &str, after: &str) -> MentionKind {
    let word =
        before.trim_end().trim_end_matches(':').rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let next = after.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let (word, next) = (word.to_lowercase(), next.to_lowercase());
    if List::RulesOut.has(&word) {
        MentionKind::Exclusion
    } else if List::Beside.has(&word) || after.starts_with(['\'', '’']) || List::Says.has(&next) {
        MentionKind::Reference
    } else {
        MentionKind::Call
    }
}
