//! What a message asks for besides work, and the effort it is worth.

use super::message::Message;
use super::work::asks_for_work;
use crate::model::{List, Member, Team, Tier, words};

pattern!(
    ASKS,
    r"^(?:so |and |but |ok |okay |hm+ |, )*(?:what|why|how|who|whose|when|where|which|is|are|was|were|does|do|did|has|have|had|can|could|should|would|will|may|am|remind me)\b"
);
pattern!(
    PLAINLY,
    r"^(?:where (?:do|does|is|are)|what(?:'s| is| are| does| do)|who(?:'s| is| are| owns?)|how (?:do|does)|remind me)\b"
);
pattern!(POLITE, r"\b(?:can|could|would|will) (?:you|we|someone|somebody|anyone|anybody)\b|\bplease\b");
pattern!(LEADS, r"^(?:design|decide|plan|analy[sz]e|propose|compare|evaluate|assess|weigh|should|which approach)\b");
pattern!(CHOOSES, r"^(?:should|shall|which|how (?:should|shall|would)|where should|do we (?:want|need))\b| or .*\?$");
pattern!(FULL, r"(?i)\b(?:tier full|full tier|(?:premium|best|strongest) model)\b");

/// Longer messages tell a story.
const SENTENCES: usize = 20;
/// A short question has at most this many bytes.
const SHORT: usize = 120;

/// What a message asks of the team, besides work for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Work,
    /// It asks something, and only that.
    Question,
    /// It asks for a decision.
    Decision,
}

impl Asks {
    pub(super) fn of(message: &Message<'_>) -> Self {
        let plain = message.sentences.iter().take(SENTENCES).map(|sentence| sentence.plain(message.text));
        let plain: Vec<_> = plain.collect();
        let sentences = || plain.iter().map(|sentence| &**sentence);
        let is_question =
            |sentence: &str| (sentence.ends_with('?') && ASKS.is_match(sentence)) || PLAINLY.is_match(sentence);
        let first = sentences().next().unwrap_or_default();
        let is_polite = POLITE.is_match(first);
        let first = List::Polite.begins(first).map_or(first, str::trim_start);
        if LEADS.is_match(first) || (!is_polite && sentences().any(|it| it.ends_with('?') && CHOOSES.is_match(it))) {
            return Self::Decision;
        }
        let begins = words(message.text).next().unwrap_or_default().to_lowercase();
        if List::Thanks.has(&begins) && !asks_for_work(message.text) {
            return Self::Question;
        }
        if !first.is_empty() && sentences().all(|sentence| is_question(sentence) && !POLITE.is_match(sentence)) {
            return Self::Question;
        }
        Self::Work
    }
}

/// The tier if neither the user nor the team names one, with the reason: the full tier if the message asks for it, the
/// lightweight one for a short question, else the standard one.
pub(super) fn tier(message: &Message<'_>) -> (Tier, &'static str) {
    let text = message.text.trim();
    match text {
        _ if FULL.is_match(text) => (Tier::Full, "the message asks for it"),
        _ if text.ends_with(['?', '？']) && text.len() <= SHORT && Asks::of(message) == Asks::Question => {
            (Tier::Lightweight, "a short question, nothing to change")
        }
        _ => (Tier::Standard, "work to do"),
    }
}

/// The lead is the member with the shortest role that says so: a QA lead does not lead the team.
pub(super) fn lead(team: &Team) -> Option<&Member> {
    const ROLES: [&str; 8] = ["lead", "leader", "architect", "manager", "head", "chief", "principal", "director"];
    ROLES.iter().find_map(|word| {
        let is_called = |member: &&Member| words(&member.role).any(|it| it.eq_ignore_ascii_case(word));
        team.startable().filter(is_called).min_by_key(|member| words(&member.role).count())
    })
}
