//! Who is called by name: `@name`, `Name, …`, `ask Name to …`, and `team, …`.

use super::Draft;
use super::fields::names;
use super::orders::is_order;
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
    let mut beside = Vec::new();
    for stretch in stretches.iter().filter(|stretch| !stretch.is_code && stretch.weight > 0.0) {
        for (name, how) in mentions(message, stretch) {
            if is_everyone(name) || called.evidence.len() >= MOST {
                continue;
            }
            match how {
                Mentioned::Called => called.take(team, name, &format!("@{name}")),
                Mentioned::Beside => beside.push(name),
                Mentioned::RuledOut => {}
            }
        }
    }
    by_name(team, message, stretches, &mut called);
    // `Do it as @bea said` speaks to nobody else.
    if called.agents.is_empty() {
        for name in beside.into_iter().take(MOST) {
            called.take(team, name, &format!("@{name}"));
        }
    }
    called
}

/// Those who are spoken to by their names.
fn by_name(team: &Team, message: &str, stretches: &[Stretch], called: &mut Called) {
    let mut sentence = usize::MAX;
    let spoken = || stretches.iter().filter(|stretch| !stretch.is_code && stretch.weight > 0.0);
    let holds_any = |text: &str| team.members.iter().any(|member| holds_name(text, &member.name));
    if !spoken().any(|stretch| holds_any(&message[stretch.range.clone()])) {
        return;
    }
    for stretch in spoken() {
        let text = &message[stretch.range.clone()];
        if called.evidence.len() >= MOST {
            break;
        }
        // `For Bea's page — Tess, write the tests`
        let after_a_dash = message[..stretch.range.start].trim_end().ends_with(['—', '–']);
        if stretch.sentence != sentence || after_a_dash {
            sentence = stretch.sentence;
            let after = message[stretch.range.end..].trim_start();
            turned_to(team, text, after, called);
        }
        asked(team, text, called);
    }
}

/// Whether a name stands in a text, whatever its case.
fn holds_name(text: &str, name: &str) -> bool {
    let (text, name) = (text.as_bytes(), name.as_bytes());
    !name.is_empty() && text.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name))
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

/// How somebody is mentioned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mentioned {
    Called,
    /// `as @bea said`, `cc @bea`
    Beside,
    /// `not @bea`
    RuledOut,
}

/// What follows an `@` that begins a word: not the `@` of an e-mail address, a package or a version.
fn mentions<'m>(message: &'m str, stretch: &Stretch) -> Vec<(&'m str, Mentioned)> {
    let mut names = Vec::new();
    for (at, _) in message[stretch.range.clone()].match_indices('@') {
        let at = stretch.range.start + at;
        let before = message[..at].chars().next_back().unwrap_or(' ');
        if is_of_a_name(before) || matches!(before, '.' | '/' | '@' | '`') {
            continue;
        }
        let rest = &message[at + 1..stretch.range.end];
        let end = rest.find(|c: char| !is_of_a_name(c)).unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('-');
        // `@scope/package` and `@media(…)` are no colleagues.
        if !name.is_empty() && !rest[end..].starts_with(['/', '(', '[']) {
            names.push((name, mentioned_after(&message[..at])));
        }
    }
    names
}

/// In scripts without spaces a name ends where another script begins.
fn is_of_a_name(c: char) -> bool {
    const SCRIPTS_WITHOUT_SPACES: std::ops::RangeFrom<char> = '\u{2e80}'..;
    (c.is_alphanumeric() && !SCRIPTS_WITHOUT_SPACES.contains(&c)) || matches!(c, '-' | '_')
}

fn mentioned_after(before: &str) -> Mentioned {
    let word = before.trim_end().rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match word.to_lowercase().as_str() {
        "not" | "except" | "without" => Mentioned::RuledOut,
        "as" | "like" | "cc" | "per" | "than" => Mentioned::Beside,
        _ => Mentioned::Called,
    }
}

/// `Bea, fix …`, `Bea: fix …`, `Bea, Fay and Tess: …`, `Bea should …`, `Hey Bea, …` at the beginning of a sentence.
fn turned_to(team: &Team, text: &str, after: &str, called: &mut Called) {
    let text = text.trim();
    let text = ["Hey ", "Hi ", "Hello ", "hey ", "hi ", "OK ", "Ok ", "Please "]
        .iter()
        .find_map(|hey| text.strip_prefix(hey))
        .unwrap_or(text);
    for member in &team.members {
        let Some(name) = spelled(member, text).or_else(|| begged(member, text)) else { continue };
        let rest = text[name.len()..].trim_start();
        // `Bea and Tess, please pair on it`
        let second = ["and ", "& "].iter().find_map(|joint| rest.strip_prefix(joint)).and_then(|rest| {
            let other = team.members.iter().find_map(|member| spelled(member, rest))?;
            rest[other.len()..].trim().is_empty().then_some(other)
        });
        if let Some(other) = second.filter(|_| after.starts_with([',', ':']) && !is_list(after)) {
            called.take(team, name, name);
            called.take(team, other, other);
            return;
        }
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

/// `bea please …`: written small, what is begged tells that it is a name.
fn begged<'t>(member: &Member, text: &'t str) -> Option<&'t str> {
    let (name, rest) = text.split_at_checked(member.name.len())?;
    let begs = [" please ", " can you ", " could you "].iter().any(|verb| rest.starts_with(verb));
    (begs && name.eq_ignore_ascii_case(&member.name)).then_some(name)
}

/// `ask Bea to …`, `assign this to Bea`, `let Bea …`, `can Bea …?`.
fn asked(team: &Team, text: &str, called: &mut Called) {
    const CUES: [&str; 21] = [
        "can ",
        "could ",
        "i want ",
        "i'd like ",
        "i would like ",
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
            let follows = rest[name.len()..].trim_start();
            let is_asked = match cue.trim_end() {
                // `How can Link …` asks for something else, and `can Link components …` of something else.
                "can" | "could" => at == 0 && is_order(follows),
                "i want" | "i'd like" | "i would like" => at == 0 && follows.starts_with("to "),
                // `have Link components` is no order to Link.
                "let" | "have" | "get" => follows.starts_with(char::is_lowercase) && !names(follows, "is"),
                _ => true,
            };
            if is_asked {
                called.take(team, name, name);
            }
        }
    }
}
