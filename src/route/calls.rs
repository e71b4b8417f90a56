//! Members called by name: `@name`, `Name, …`, `ask Name to …`, and `team, …`.
//!
//! An `@name` is a call unless the words around it only refer to the member (`cc @name`, `as @name said`) or exclude it
//! (`not @name`).

use std::ops::Range;

use super::message::{Message, Sentence};
use super::steps::Assignment;
use super::work::is_order;
use super::{Draft, note};
use crate::model::{Evidence, Kind, Member, Slug, Status, Team};

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

pattern!(MENTION, r"(?:^| )([@!])(\d+|\?)('s)?");
pattern!(LISTED, r"^( ,)?( and)?$");
pattern!(EXCLUDES, r"\b(not|except|without)$");
pattern!(REFERS_BEFORE, r"\b(as|like|cc|per|than|via|from|thanks|thank|unlike)( :)?$");
pattern!(
    REFERS_AFTER,
    r"^ (said|says|wrote|reported|suggested|mention(s|ed)|asked|thinks|thought|noted|proposed|found|told)\b"
);
pattern!(
    TURNS_TO,
    r"(^|— )((?:(?:hi|hello|hey|ok|okay|morning|so|and|then|also|please|quick|can|could|would) )*)(\^\d+(?:(?: ,)?(?: and)? [@^~]\d+)*)(( [,:]| —)|( (?:should|please|can you|could you|will you|must|needs to|shall|would you)\b)|)"
);
pattern!(
    HANDS,
    r"\b(?:ask|tell|let|ping|i want|i'd like|i would like|assign(?: this| it)? to|hand (?:this to|it to|over to)|give (?:this|it) to|route(?: this| it)? to) (\^\d+)"
);
pattern!(NUMBER, r"[@^~](\d+)");
pattern!(LISTS, r"^(( \S+){0,2} (and|or)\b|( [^ ,.!?]+)?( [.!?]|$))");
pattern!(EVERYBODY, r"(?i)^(team|everyone|squad|all|here|channel)$");
pattern!(
    EVERYBODY_CALLED,
    r"(?i)^\s*((hey|ok) )?(@(team|everyone|squad|all|here|channel)\b|(team|everyone|everybody|squad|(all|each) of you)[,:])"
);
pattern!(SOMEBODY, r"(?i)^\W*(can|could|would|will|please)\b");

impl Addressed {
    fn take(&mut self, member: &Member, how: &str, range: Range<usize>) {
        if !member.is_startable() {
            self.any_unavailable = true;
            let why = format!("the message says {how}, who is {} and is not started", standing(member));
            return self.evidence.push(Evidence::new(&member.slug, why, "message", 0.0));
        }
        self.places.push(Assignment { agent: member.slug.clone(), range });
        if !self.agents.contains(&member.slug) {
            self.agents.push(member.slug.clone());
            self.evidence.push(Evidence::new(&member.slug, format!("the message says {how}"), "message", 1.0));
        }
    }

    fn mentions(&mut self, team: &Team, message: &Message<'_>, sentence: &Sentence) {
        let text = sentence.text.as_str();
        // Where the last one ends, and whether it was only spoken of.
        let mut last = (0, false);
        for found in MENTION.captures_iter(text) {
            let (Some(all), Some(sign)) = (found.get(0), found.get(1)) else { continue };
            let (before, after) = (&text[..all.start()], &text[all.end()..]);
            let is_excluded = sign.as_str() == "!" || EXCLUDES.is_match(before);
            // `cc @bea, @fay`
            let is_listed = last.1 && LISTED.is_match(&text[last.0..all.start()]);
            let is_referred =
                is_listed || REFERS_BEFORE.is_match(before) || found.get(3).is_some() || REFERS_AFTER.is_match(after);
            last = (all.end(), is_referred);
            let range = sentence.range(sign.start()..all.end());
            let name = &message.text[range.clone()];
            if EVERYBODY.is_match(name) {
                continue;
            }
            if self.evidence.len() >= MOST {
                let why = format!("the message has more than {MOST} @mentions; those from @{name} on are ignored");
                return self.evidence.extend((self.evidence.len() == MOST).then(|| note(why, "message")));
            }
            match found[2].parse().ok().and_then(|place: usize| team.members.get(place)) {
                Some(member) if is_excluded => self.ruled_out.push(member.slug.clone()),
                Some(member) if is_referred => {
                    let why = format!("the message only mentions @{name}");
                    self.evidence.push(Evidence::new(&member.slug, why, "message", 0.0));
                }
                Some(member) => self.take(member, &format!("@{name}"), range),
                None => {
                    let near = team.nearest(&name.to_lowercase()).map(str::to_owned);
                    if near.is_some() || before.is_empty() {
                        self.mistyped.push((name.to_owned(), near));
                    }
                    let why = format!("the message says @{name}, who is not on the team");
                    self.evidence.push(note(why, "message"));
                }
            }
        }
    }

    /// Members that a sentence addresses, and members that get work handed over.
    fn by_name(&mut self, team: &Team, sentence: &Sentence) {
        let text = sentence.text.as_str();
        let turned_to = TURNS_TO.captures_iter(text).filter(|found| {
            let after = &text[found.get(0).map_or(0, |found| found.end())..];
            match (found.get(5), found.get(6)) {
                (Some(mark), _) => !mark.as_str().contains(',') || !LISTS.is_match(after),
                (_, Some(_)) => true,
                _ => (found[2].contains("can ") || found[2].contains("could ")) && is_order(after),
            }
        });
        let handed = HANDS.captures_iter(text).filter_map(|found| found.get(1));
        for group in turned_to.filter_map(|found| found.get(3)).chain(handed).collect::<Vec<_>>() {
            for found in NUMBER.captures_iter(group.as_str()).filter(|found| !found[0].starts_with('@')) {
                let member = found[1].parse().ok().and_then(|place: usize| team.members.get(place));
                let at = group.start() + found.get(0).map_or(0, |found| found.start());
                if let Some(member) = member.filter(|_| self.evidence.len() < MOST) {
                    self.take(member, &member.name, sentence.range(at..at + 1));
                }
            }
        }
    }
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
    let call = EVERYBODY_CALLED.find(message)?;
    (!SOMEBODY.is_match(&message[call.end()..])).then(|| {
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
