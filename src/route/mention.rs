//! Who is called by name: `@name`, `Name, …`, `ask Name to …`, and `team, …`.
//!
//! An `@name` calls, unless what stands around it says that somebody is only mentioned (`cc @name`, `as @name said`) or
//! shall not work (`not @name`, `hands off, @name`).

use std::ops::Range;

use super::Draft;
use super::orders::is_order;
use super::steps::Place;
use super::text::Stretch;
use crate::model::{Evidence, Kind, List, Member, Slug, Status, Team, find_words};

/// What a message says of members by name.
#[derive(Default)]
pub(super) struct Called {
    /// Those that can be started, in the order of the message.
    pub(super) agents: Vec<Slug>,
    /// Those who shall not work.
    pub(super) ruled_out: Vec<Slug>,
    /// Why, and who was called and cannot be started.
    pub(super) evidence: Vec<Evidence>,
    /// Whether a member was called who cannot be started.
    pub(super) in_vain: bool,
    /// Where those who can be started are called.
    pub(super) places: Vec<Place>,
}

/// Nobody calls more by name; a pasted list does.
const MOST: usize = 40;

impl Called {
    /// The plan for those who are called; where nobody is, what was found besides.
    pub(super) fn draft(mut self) -> Result<Draft, Self> {
        self.agents.retain(|agent| !self.ruled_out.contains(agent));
        if self.agents.is_empty() {
            return Err(self);
        }
        let Self { agents, evidence, places, .. } = self;
        Ok(Draft { agents, confidence: 1.0, evidence, places, ..Draft::default() })
    }

    fn take(&mut self, member: &Member, how: &str, range: Range<usize>) {
        if member.is_startable() {
            self.places.push(Place { agent: member.slug.clone(), range });
        }
        if !member.is_startable() {
            self.in_vain = true;
            let why = format!("the message says {how}, who is {} and is not started", standing(member));
            self.evidence.push(said(&member.slug, why, 0.0));
        } else if !self.agents.contains(&member.slug) {
            self.agents.push(member.slug.clone());
            self.evidence.push(said(&member.slug, format!("the message says {how}"), 1.0));
        }
    }
}

/// Those called by `@name` anywhere, or by name where a sentence turns to them.
pub(super) fn read(team: &Team, message: &str, stretches: &[Stretch]) -> Called {
    let mut called = Called::default();
    for stretch in stretches.iter().filter(|stretch| !stretch.is_code) {
        let mut before = Mentioned::Called;
        for Mention { name, at, is_listed, how } in mentions(message, stretch) {
            // `cc @bea, @fay`
            let how = if is_listed && before != Mentioned::Called { before } else { how };
            before = how;
            let how = if stretch.weight < 0.0 { Mentioned::RuledOut } else { how };
            if is_everyone(name) {
                continue;
            }
            if called.evidence.len() >= MOST {
                if called.evidence.len() == MOST {
                    let why = format!("the message calls more than {MOST} names; from @{name} on they are not read");
                    called.evidence.push(said(&Slug::coordinator(), why, 0.0));
                }
                continue;
            }
            let member = team.members.iter().find(|member| is_called(member, &name.to_lowercase()));
            match (member, how) {
                (Some(member), Mentioned::Called) => {
                    called.take(member, &format!("@{name}"), at..at + 1 + name.len());
                }
                (Some(member), Mentioned::RuledOut) => called.ruled_out.push(member.slug.clone()),
                (Some(member), Mentioned::Beside) => {
                    let why = format!("the message only mentions @{name}");
                    called.evidence.push(said(&member.slug, why, 0.0));
                }
                (None, _) => {
                    let why = format!("the message says @{name}, who is not on the team");
                    called.evidence.push(said(&Slug::coordinator(), why, 0.0));
                }
            }
        }
    }
    by_name(team, message, stretches, &mut called);
    called
}

/// Those who are spoken to by their names at the beginning of a sentence, and to whom work is handed.
fn by_name(team: &Team, message: &str, stretches: &[Stretch], called: &mut Called) {
    let members: Vec<&Member> =
        team.members.iter().filter(|member| find_words(message, &member.name).is_some()).collect();
    let mut sentence = usize::MAX;
    for stretch in stretches.iter().filter(|stretch| !stretch.is_code && stretch.weight > 0.0) {
        if members.is_empty() || called.evidence.len() >= MOST {
            return;
        }
        let text = message[stretch.range.clone()].trim();
        let place = |member: &Member| {
            let at = stretch.range.start + find_words(text, &member.name).unwrap_or(0);
            at..at + member.name.len()
        };
        // `For Bea's page — Tess, write the tests`
        let after_a_dash = message[..stretch.range.start].trim_end().ends_with(['—', '–']);
        if stretch.sentence != sentence || after_a_dash {
            let after = message[stretch.range.end..].trim_start();
            for member in turned_to(&members, text, after) {
                called.take(member, &member.name, place(member));
            }
        }
        sentence = stretch.sentence;
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

/// What follows a member's name where a text begins with it, in capitals as names are.
fn rest_of<'t>(member: &Member, text: &'t str) -> Option<&'t str> {
    let rest = text.strip_prefix(member.name.as_str()).filter(|_| member.name.starts_with(char::is_uppercase))?;
    (!rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\''))).then_some(rest)
}

/// `Backend, frontend and docs need …` turns to nobody.
fn is_list(after: &str) -> bool {
    let clause = after[1..].split(['.', '!', '?', '\n']).next().unwrap_or_default();
    let first_words: Vec<&str> = clause.split_whitespace().take(3).collect();
    after.starts_with(',')
        && (first_words.len() < 2 || first_words[1..].contains(&"and") || first_words.contains(&"or"))
}

/// Everyone who can be started, where the message turns to the team and asks it for something.
pub(super) fn the_team(team: &Team, message: &str) -> Option<Draft> {
    let start = message.trim_start();
    let start = start[..start.floor_char_boundary(40)].to_lowercase();
    let start = start.trim_start_matches("hey ").trim_start_matches("ok ");
    const CALLS: [&str; 6] = ["team", "everyone", "everybody", "squad", "all of you", "each of you"];
    let calls = CALLS.iter().any(|call| start.strip_prefix(call).is_some_and(|rest| rest.starts_with([',', ':'])))
        || start.strip_prefix('@').is_some_and(|rest| rest.split([' ', ',', ':']).next().is_some_and(is_everyone));
    calls.then(|| {
        let evidence =
            team.startable().map(|member| said(&member.slug, "the message calls the whole team".to_owned(), 1.0));
        Draft {
            agents: team.startable().map(|member| member.slug.clone()).collect(),
            confidence: 1.0,
            evidence: evidence.collect(),
            ..Draft::default()
        }
    })
}

fn said(agent: &Slug, why: String, weight: f64) -> Evidence {
    Evidence { agent: agent.clone(), why, source: "message".to_owned(), weight }
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

/// How somebody is mentioned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mentioned {
    Called,
    /// `as @bea said`, `cc @bea`
    Beside,
    /// `not @bea`
    RuledOut,
}

struct Mention<'m> {
    name: &'m str,
    at: usize,
    /// Whether nothing but a comma or `and` stands between it and the one before.
    is_listed: bool,
    how: Mentioned,
}

/// What follows an `@` that begins a word: not the `@` of an e-mail address, a package or a version.
fn mentions<'m>(message: &'m str, stretch: &Stretch) -> Vec<Mention<'m>> {
    let mut found: Vec<Mention<'m>> = Vec::new();
    for (at, _) in message[stretch.range.clone()].match_indices('@') {
        let at = stretch.range.start + at;
        let before = &message[..at];
        if before.ends_with(|c: char| is_of_a_name(c) || matches!(c, '.' | '/' | '@' | '`')) {
            continue;
        }
        let rest = &message[at + 1..stretch.range.end];
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

/// In scripts without spaces a name ends where another script begins.
fn is_of_a_name(c: char) -> bool {
    const SCRIPTS_WITHOUT_SPACES: std::ops::RangeFrom<char> = '\u{2e80}'..;
    (c.is_alphanumeric() && !SCRIPTS_WITHOUT_SPACES.contains(&c)) || matches!(c, '-' | '_')
}

/// `as @bea said`, `@bea's proposal`, `cc @bea`, `not @bea`.
fn mentioned(before: &str, after: &str) -> Mentioned {
    let word =
        before.trim_end().trim_end_matches(':').rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let next = after.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let (word, next) = (word.to_lowercase(), next.to_lowercase());
    if List::RulesOut.has(&word) {
        Mentioned::RuledOut
    } else if List::Beside.has(&word) || after.starts_with(['\'', '’']) || List::Says.has(&next) {
        Mentioned::Beside
    } else {
        Mentioned::Called
    }
}
