//! Messages that are the coordinator's whatever their words speak for.

use std::sync::LazyLock;

use regex::Regex;

use super::areas::Says;
use super::asks_for_work;
use super::index::Index;
use super::score::Ranking;
use super::text::{Span, sentences};
use crate::model::{List, Member, Team, words};

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("the pattern is fixed"));
    };
}

pattern!(
    ASKS,
    r"^\W*(so |and |but |ok(ay)? |hm+ )?(what|why|how|who|whose|when|where|which|is|are|was|were|does|do|did|has|have|had|can|could|should|would|will|may|am|remind me)\b"
);
pattern!(
    PLAIN_QUESTION,
    r"^\W*(where (do|does|is|are)|what (is|are|does|do)|who (is|are|owns?)|how (do|does) |remind me)\b"
);
pattern!(POLITE, r"\b(can|could|would|will) (you|we|someone|somebody|anyone|anybody)\b|\bplease\b");
pattern!(LEADS, r"^\W*(design|decide|plan|analy[sz]e|propose|compare|evaluate|assess|weigh|should|which approach)\b");
pattern!(CHOOSES, r"^\W*(should|shall|which|how (should|shall|would)|where should|do we (want|need))\b");
pattern!(EVERYBODY, r"\b(each|all|every one) of you\b|\b(everyone|everybody)\b|\beach (agent|member)\b");

/// Longer messages tell a story.
const SENTENCES: usize = 20;

/// What a message asks of the team, besides work for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Work,
    /// It asks something, and only that.
    Question,
    /// It asks for a decision.
    Decision,
    Everybody,
}

pub(super) fn asks(message: &str, spans: &[Span]) -> Asks {
    let sentences: Vec<String> = sentences(message, spans)
        .take(SENTENCES)
        .map(|sentence| sentence.trim().to_lowercase().replace('’', "'"))
        .collect();
    let is_question = |sentence: &String| {
        (sentence.ends_with(['?', '？']) && ASKS.is_match(sentence)) || PLAIN_QUESTION.is_match(sentence)
    };
    let offers =
        |sentence: &String| sentence.ends_with('?') && (sentence.contains(" or ") || CHOOSES.is_match(sentence));
    let first = sentences.first().map(String::as_str).unwrap_or_default();
    let first = List::Polite.begins(first).unwrap_or(first);
    if LEADS.is_match(first) || (sentences.iter().any(offers) && !POLITE.is_match(first)) {
        return Asks::Decision;
    }
    let begins = message.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    if List::Thanks.has(&begins.to_lowercase()) && !asks_for_work(message) {
        return Asks::Question;
    }
    if !sentences.is_empty() && sentences.iter().all(|sentence| is_question(sentence) && !POLITE.is_match(sentence)) {
        return Asks::Question;
    }
    if sentences.iter().any(|sentence| EVERYBODY.is_match(sentence)) {
        return Asks::Everybody;
    }
    Asks::Work
}

/// Whether any word of the message tells agents apart.
pub(super) fn is_solid(ranking: &Ranking) -> bool {
    let reading = &ranking.reading;
    let tells = |at: usize| reading.units[at].says == Says::Something && reading.units[at].quality > 0.0;
    reading
        .supports
        .iter()
        .any(|(units, supports)| units.clone().any(tells) || supports.iter().any(|support| support.weight >= 1.0))
}

/// The lead is the member with the shortest role that says so: a QA lead does not lead the team.
pub(super) fn lead(team: &Team) -> Option<&Member> {
    const ROLES: [&str; 8] = ["lead", "leader", "architect", "manager", "head", "chief", "principal", "director"];
    ROLES.iter().find_map(|word| {
        let is_called = |member: &&Member| words(&member.role).any(|it| it.eq_ignore_ascii_case(word));
        team.startable().filter(is_called).min_by_key(|member| words(&member.role).count())
    })
}

pub(super) fn is_lead(index: &Index<'_>, agent: usize) -> bool {
    lead(index.team).is_some_and(|lead| lead.slug == index.agents[agent].slug)
}
