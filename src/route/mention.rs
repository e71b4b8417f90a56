//! Who is called by name: `@name`, `Name, …`, `ask Name to …`, and `team, …`.

use super::Draft;
use super::fields::names;
use super::text::Stretch;
use crate::model::{Evidence, Kind, Member, Slug, Status, Team};

/// What a message says of members by name.
#[derive(Default)]
pub(super) struct Called {
    /// Those that can be started, in the order of the message.
    pub(super) agents: Vec<Slug>,
    /// Why, and who was called and cannot be started.
    pub(super) evidence: Vec<Evidence>,
    /// Whether a member was called who cannot be started.
    pub(super) in_vain: bool,
}

/// Nobody calls more by name; a pasted list does.
const MOST: usize = 40;

impl Called {
    pub(super) fn draft(self) -> Result<Draft, Self> {
        if self.agents.is_empty() {
            return Err(self);
        }
        Ok(Draft { agents: self.agents, confidence: 1.0, evidence: self.evidence, reviewer: None })
    }

    fn take(&mut self, team: &Team, name: &str, how: &str) {
        let wanted = name.to_lowercase();
        match team.members.iter().find(|member| is_called(member, &wanted)) {
            Some(member) if member.is_startable() => {
                if !self.agents.contains(&member.slug) {
                    self.agents.push(member.slug.clone());
                    self.evidence.push(said(&member.slug, format!("the message says {how}"), 1.0));
                }
            }
            Some(member) => {
                self.in_vain = true;
                let why = format!("the message says {how}, who is {} and is not started", standing(member));
                self.evidence.push(said(&member.slug, why, 0.0));
            }
            None => {
                let why = format!("the message says {how}, who is not on the team");
                self.evidence.push(said(&Slug::coordinator(), why, 0.0));
            }
        }
    }
}

/// Those called by `@name` anywhere, or by name where a sentence turns to them.
pub(super) fn read(team: &Team, message: &str, stretches: &[Stretch]) -> Called {
    let mut called = Called::default();
    for stretch in stretches.iter().filter(|stretch| !stretch.is_code) {
        for name in mentions(message, stretch) {
            if !is_everyone(name) && called.evidence.len() < MOST {
                called.take(team, name, &format!("@{name}"));
            }
        }
    }
    let mut sentence = usize::MAX;
    if !team.members.iter().any(|member| message.contains(member.name.as_str())) {
        return called;
    }
    for stretch in stretches.iter().filter(|stretch| !stretch.is_code && stretch.weight > 0.0) {
        let text = &message[stretch.range.clone()];
        if called.evidence.len() >= MOST {
            break;
        }
        if stretch.sentence != sentence {
            sentence = stretch.sentence;
            let after = message[stretch.range.end..].trim_start();
            turned_to(team, text, after, &mut called);
        }
        asked(team, text, &mut called);
    }
    called
}

/// Everyone who can be started, where the message turns to the team and asks it for something.
pub(super) fn the_team(team: &Team, message: &str) -> Option<Draft> {
    let start = message.trim_start();
    let start = start[..start.floor_char_boundary(40)].to_lowercase();
    let start = start.trim_start_matches("hey ").trim_start_matches("ok ").trim_start_matches('@');
    const CALLS: [&str; 6] = ["team", "everyone", "everybody", "squad", "all of you", "each of you"];
    let calls = CALLS.iter().any(|call| start.strip_prefix(call).is_some_and(|rest| rest.starts_with([',', ':'])))
        || ["@team ", "@everyone ", "@squad ", "@all "].iter().any(|call| message.trim_start().starts_with(call));
    calls.then(|| {
        let evidence =
            team.startable().map(|member| said(&member.slug, "the message calls the whole team".to_owned(), 1.0));
        Draft {
            agents: team.startable().map(|member| member.slug.clone()).collect(),
            confidence: 1.0,
            evidence: evidence.collect(),
            reviewer: None,
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

/// What follows an `@` that begins a word: not the `@` of an e-mail address, a package or a version.
fn mentions<'m>(message: &'m str, stretch: &Stretch) -> Vec<&'m str> {
    let mut names = Vec::new();
    for (at, _) in message[stretch.range.clone()].match_indices('@') {
        let at = stretch.range.start + at;
        let before = message[..at].chars().next_back().unwrap_or(' ');
        if before.is_alphanumeric() || matches!(before, '.' | '_' | '-' | '/' | '@' | '`') {
            continue;
        }
        let rest = &message[at + 1..stretch.range.end];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('-');
        // `@scope/package` and `@media(…)` are no colleagues.
        if !name.is_empty() && !rest[end..].starts_with(['/', '(', '[']) {
            names.push(name);
        }
    }
    names
}

/// `Bea, fix …`, `Bea: fix …`, `Bea, Fay and Tess: …`, `Bea should …`, `Hey Bea, …` at the beginning of a sentence.
fn turned_to(team: &Team, text: &str, after: &str, called: &mut Called) {
    let text = text.trim();
    let text = ["Hey ", "Hi ", "Hello ", "hey ", "hi ", "OK ", "Ok ", "Please "]
        .iter()
        .find_map(|hey| text.strip_prefix(hey))
        .unwrap_or(text);
    for member in &team.members {
        let Some(name) = spelled(member, text) else { continue };
        let rest = text[name.len()..].trim_start();
        let turns = match rest.is_empty() {
            true => after.starts_with([',', ':']) && !is_list(after),
            false => ADDRESSES.iter().any(|verb| rest.starts_with(verb)),
        };
        if turns {
            called.take(team, name, name);
            return;
        }
    }
}

/// What follows the name of somebody who is to do something.
const ADDRESSES: [&str; 9] =
    ["should ", "please ", "can you ", "could you ", "will you ", "must ", "needs to ", "shall ", "would you "];

/// `Backend, frontend and docs need …` turns to nobody.
fn is_list(after: &str) -> bool {
    let clause = after[1..].split(['.', '!', '?', '\n']).next().unwrap_or_default();
    let first_words: Vec<&str> = clause.split_whitespace().take(3).collect();
    after.starts_with(',')
        && (first_words.len() < 2 || first_words[1..].contains(&"and") || first_words.contains(&"or"))
}

/// The member's name as the text begins with it, in capitals as names are.
fn spelled<'t>(member: &'t Member, text: &str) -> Option<&'t str> {
    let name = member.name.as_str();
    let begins = name.starts_with(|c: char| c.is_uppercase()) && text.starts_with(name);
    (begins && !text[name.len()..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\'')))
        .then_some(name)
}

/// `ask Bea to …`, `assign this to Bea`, `let Bea …`.
fn asked(team: &Team, text: &str, called: &mut Called) {
    const CUES: [&str; 16] = [
        "ask ",
        "tell ",
        "let ",
        "have ",
        "ping ",
        "get ",
        "assign to ",
        "assign this to ",
        "assign it to ",
        "hand this to ",
        "hand it to ",
        "hand over to ",
        "give this to ",
        "give it to ",
        "route this to ",
        "route to ",
    ];
    for (at, _) in text.char_indices().filter(|(at, _)| *at == 0 || text[..*at].ends_with(' ')) {
        let rest = &text[at..];
        let lower = |cue: &&str| {
            rest.len() >= cue.len() && rest.is_char_boundary(cue.len()) && rest[..cue.len()].eq_ignore_ascii_case(cue)
        };
        let Some(cue) = CUES.iter().find(|cue| lower(cue)) else { continue };
        let rest = &rest[cue.len()..];
        if let Some(name) = team.members.iter().find_map(|member| spelled(member, rest)) {
            let verb = matches!(*cue, "let " | "have " | "get ");
            let follows = rest[name.len()..].trim_start();
            // `have Link components` is no order to Link.
            if !verb || follows.chars().next().is_some_and(char::is_lowercase) && !names(follows, "is") {
                called.take(team, name, name);
            }
        }
    }
}
