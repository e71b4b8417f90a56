//! Members called by name: `@name`, `Name, …`, `ask Name to …`, and `team, …`.
//!
//! An `@name` is a call unless the words around it only refer to the member (`cc @name`, `as @name said`) or exclude it
//! (`not @name`).

use super::message::{Message, Words};
use super::steps::Assignment;
use super::work::is_order;
use super::{Draft, note};
use crate::model::{Evidence, Kind, List, Member, Slug, Status, Team};

/// The members that a message names.
#[derive(Default)]
pub(super) struct Addressed {
    /// Called members that can be started, in the order of the message.
    pub(super) agents: Vec<Slug>,
    /// Members that the message excludes.
    pub(super) ruled_out: Vec<Slug>,
    /// The reasons, and called members that cannot be started.
    pub(super) evidence: Vec<Evidence>,
    /// Names that nobody on the team has, each with the agent's that it is like. Without one, only those that a sentence
    /// begins with: `@Override` is no colleague.
    pub(super) mistyped: Vec<(String, Option<String>)>,
    /// Whether any called member cannot be started.
    pub(super) any_unavailable: bool,
    /// Where the message calls each of them.
    pub(super) places: Vec<Assignment>,
}

/// Only a pasted list names more.
const MOST: usize = 40;

impl Addressed {
    fn take(&mut self, member: &Member, how: &str, start: usize) {
        if !member.is_startable() {
            self.any_unavailable = true;
            let why = format!("the message says {how}, who is {} and is not started", standing(member));
            return self.evidence.push(Evidence::new(&member.slug, why, "message", 0.0));
        }
        self.places.push(Assignment { agent: member.slug.clone(), start, is_part: false });
        if !self.agents.contains(&member.slug) {
            self.agents.push(member.slug.clone());
            self.evidence.push(Evidence::new(&member.slug, format!("the message says {how}"), "message", 1.0));
        }
    }

    fn mentions(&mut self, team: &Team, message: &Message<'_>, sentence: Words<'_>) {
        // Where the last one ends, and whether it was only spoken of.
        let mut last = (0, false);
        for (at, token) in sentence.iter().enumerate().filter(|(_, it)| it.is_name() && matches!(&*it.text, "@" | "!"))
        {
            let before = |back: usize| at.checked_sub(back).map_or("", |at| sentence.word(at));
            let colon = usize::from(before(1) == ":");
            // `cc @bea, @fay`
            let mut between = (last.0..at).map(|at| sentence.word(at));
            let is_listed = last.1 && between.all(|word| matches!(word, "," | "and"));
            let is_referred = is_listed
                || token.is_possessive
                || List::RefersBefore.has(before(1 + colon))
                || (before(1) == "by" && at > 1 && sentence.has(List::Remarks, at - 2))
                || sentence.has(List::RefersAfter, at + 1);
            let is_excluded = token.text == "!" || matches!(before(1), "not" | "except" | "without");
            last = (at + 1, is_referred);
            let name = &message.text[token.place.clone()];
            if List::Everybody.has(&name.to_lowercase()) {
                continue;
            }
            if self.evidence.len() >= MOST {
                let why = format!("the message has more than {MOST} @mentions; those from @{name} on are ignored");
                return self.evidence.extend((self.evidence.len() == MOST).then(|| note(why, "message")));
            }
            match token.member.map(|place| &team.members[place]) {
                Some(member) if is_excluded => self.ruled_out.push(member.slug.clone()),
                Some(member) if is_referred => {
                    let why = format!("the message only mentions @{name}");
                    self.evidence.push(Evidence::new(&member.slug, why, "message", 0.0));
                }
                Some(member) => self.take(member, &format!("@{name}"), token.place.start),
                None => {
                    let near = team.nearest(&name.to_lowercase()).map(str::to_owned);
                    if near.is_some() || at == 0 {
                        self.mistyped.push((name.to_owned(), near));
                    }
                    let why = format!("the message says @{name}, who is not on the team");
                    self.evidence.push(note(why, "message"));
                }
            }
        }
    }

    /// Members that a sentence addresses, and members that get work handed over.
    fn by_name(&mut self, team: &Team, sentence: Words<'_>) {
        for (at, _) in sentence.iter().enumerate().filter(|(_, token)| token.is_name() && token.text == "^") {
            let is_before = |at: &usize| sentence.has(List::BeforeName, *at);
            let opening = (0..at).rev().take_while(is_before).last().unwrap_or(at);
            let begins = opening == 0 || sentence.word(opening - 1) == "—";
            let end = sentence.names_end(at, |token| !token.is_possessive && token.text != "!");
            let mut asks = (opening..at).map(|at| sentence.word(at));
            let is_addressed = match sentence.word(end) {
                "," => !is_list(sentence, end + 1),
                ":" | "—" | "should" | "please" | "must" | "shall" => true,
                "can" | "could" | "will" | "would" => sentence.word(end + 1) == "you",
                "needs" => sentence.word(end + 1) == "to",
                _ => asks.any(|word| matches!(word, "can" | "could")) && is_order(sentence.part(end..sentence.len())),
            };
            let hands = |from: usize| sentence.part(from..at).phrase(List::Handing, 0) == Some(at - from);
            let called = match (begins && is_addressed && end > at, (at.saturating_sub(3)..at).any(hands)) {
                (true, _) => at..end,
                (_, true) => at..at + 1,
                _ => continue,
            };
            for token in sentence.part(called).iter().filter(|token| token.text != "@") {
                let member = token.member.and_then(|place| team.members.get(place));
                if let Some(member) = member.filter(|_| self.evidence.len() < MOST) {
                    self.take(member, &member.name, token.place.start);
                }
            }
        }
    }
}

/// Whether a list of names or things goes on, as in `Bea, Fay and Tess`.
fn is_list(sentence: Words<'_>, at: usize) -> bool {
    let ends = |at: usize| at >= sentence.len() || matches!(sentence.word(at), "." | "!" | "?");
    let goes_on = |at: usize| matches!(sentence.word(at), "and" | "or");
    (at..at + 3).any(goes_on) || ends(at) || (sentence.word(at) != "," && ends(at + 1))
}

/// Finds calls by `@name` anywhere, and by plain name where a sentence addresses the member.
pub(super) fn read(team: &Team, message: &Message<'_>) -> Addressed {
    let mut called = Addressed::default();
    message.naming().for_each(|sentence| called.mentions(team, message, sentence));
    message.naming().for_each(|sentence| called.by_name(team, sentence));
    called
}

/// All members that can be started, if the message addresses the whole team. `Hey team, can someone …` does not.
pub(super) fn the_team(team: &Team, message: &str) -> Option<Draft> {
    let lower = message[..message.floor_char_boundary(64)].trim_start().to_lowercase();
    let text = ["hey ", "ok "].iter().find_map(|greeting| lower.strip_prefix(greeting)).unwrap_or(&lower);
    let rest = match text.strip_prefix('@') {
        Some(name) => List::Everybody.begins(name),
        None => List::EverybodyCalled.begins(text).filter(|rest| rest.starts_with([',', ':'])),
    };
    let asked = rest?.trim_start_matches(|c: char| !c.is_alphanumeric());
    let word = asked.split(|c: char| !c.is_alphanumeric()).next();
    let is_somebodys = word.is_some_and(|word| matches!(word, "can" | "could" | "would" | "will" | "please"));
    (!is_somebodys).then(|| {
        let why = "the message calls the whole team";
        let agents: Vec<Slug> = team.startable().map(|member| member.slug.clone()).collect();
        let evidence = agents.iter().map(|agent| Evidence::new(agent, why, "message", 1.0)).collect();
        Draft::sure(agents, evidence)
    })
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
